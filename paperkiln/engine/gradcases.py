"""What `gradcheck` tries on every op: inputs that are differentiated, and how to apply the op.

A case does not know its engine: `apply(F, *tensors)` works on any op set, so that the same
cases compare two engines. Integer ids and targets live in the closure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Inputs = Callable[[np.random.Generator], tuple[np.ndarray, ...]]
Apply = Callable[..., Any]  # (F, *tensors) -> Tensor


@dataclass(frozen=True)
class Case:
    """One way to use an op: `inputs` gives float64 arrays, `apply(F, *tensors)` a tensor."""

    label: str
    inputs: Inputs
    apply: Apply


CASES: dict[str, list[Case]] = {}


def _case(op: str, label: str, inputs: Inputs, apply: Apply) -> None:
    CASES.setdefault(op, []).append(Case(label, inputs, apply))


# --- inputs --------------------------------------------------------------------------------

Shape = tuple[int, ...]


def _normal(*shapes: Shape, shift: float = 0.0) -> Inputs:
    return lambda rng: tuple(np.asarray(rng.normal(shift, 1.0, s)) for s in shapes)


def _positive(*shapes: Shape) -> Inputs:
    return lambda rng: tuple(np.asarray(rng.uniform(0.5, 2.0, s)) for s in shapes)


def _off_zero(*shapes: Shape) -> Inputs:
    """Both signs, |x| >= 0.2: no step crosses a kink at 0, no denominator is near it."""
    return lambda rng: tuple(
        np.asarray(rng.choice([-1.0, 1.0], s) * rng.uniform(0.2, 2.0, s)) for s in shapes
    )


def _strided(inputs: Inputs) -> Inputs:
    """The same values seen through a transposed slice of a larger array: no axis contiguous."""

    def view(x: np.ndarray) -> np.ndarray:
        every_second = tuple(slice(None, None, 2) for _ in x.shape)
        out = np.zeros(tuple(2 * n for n in x.shape[::-1]))[every_second].T
        out[...] = x
        return out

    return lambda rng: tuple(view(x) for x in inputs(rng))


# --- arithmetic, with broadcasting ---------------------------------------------------------

_BROADCASTS: dict[str, tuple[Shape, Shape]] = {
    "same shape": ((2, 3), (2, 3)),
    "row": ((2, 3, 4), (4,)),
    "column": ((2, 3, 4), (3, 1)),
    "both repeated": ((2, 1, 4), (3, 1)),
    "left repeated": ((1,), (2, 3)),
    "no axes": ((2, 3), ()),
    "no axes at all": ((), ()),
}


def _arithmetic(op: str, inputs: Callable[..., Inputs]) -> None:
    for label, shapes in _BROADCASTS.items():
        _case(op, label, inputs(*shapes), lambda F, a, b: getattr(F, op)(a, b))
    _case(op, "number on the right", inputs((2, 3)), lambda F, a: getattr(F, op)(a, 3.0))
    _case(op, "number on the left", inputs((2, 3)), lambda F, a: getattr(F, op)(3.0, a))
    # Twice the same: mixed with its square, so that sub and div do not cancel to nothing.
    _case(op, "one tensor twice", inputs((2, 3)), lambda F, a: getattr(F, op)(F.mul(a, a), a))


_arithmetic("add", _normal)
_arithmetic("sub", _normal)
_arithmetic("mul", _normal)
_arithmetic("div", _off_zero)

_case("neg", "2 axes", _normal((2, 3)), lambda F, x: F.neg(x))
_case("exp", "2 axes", _normal((2, 3)), lambda F, x: F.exp(x))
_case("log", "2 axes", _positive((2, 3)), lambda F, x: F.log(x))

_case("matmul", "matrices", _normal((2, 3), (3, 4)), lambda F, a, b: F.matmul(a, b))
_case("matmul", "batch", _normal((2, 5, 2, 3), (2, 5, 3, 4)), lambda F, a, b: F.matmul(a, b))
_case("matmul", "repeated", _normal((2, 1, 2, 3), (4, 3, 2)), lambda F, a, b: F.matmul(a, b))
_case("matmul", "one matrix for all", _normal((2, 3, 4), (4, 2)), lambda F, a, b: F.matmul(a, b))
_case("matmul", "a aᵀ", _normal((3, 4)), lambda F, a: F.matmul(a, F.transpose(a, (1, 0))))

# --- shape and reduction -------------------------------------------------------------------

_case("reshape", "split and join", _normal((2, 6)), lambda F, x: F.reshape(x, (3, 2, 2)))
_case("reshape", "-1", _normal((2, 3, 4)), lambda F, x: F.reshape(x, (4, -1)))
_case("reshape", "to no axes", _normal((1, 1)), lambda F, x: F.reshape(x, ()))
_case(
    "reshape",
    "of a transpose",
    _normal((2, 3, 4)),
    lambda F, x: F.reshape(F.transpose(x, (2, 0, 1)), (8, 3)),
)
_case("transpose", "two axes", _normal((2, 3)), lambda F, x: F.transpose(x, (1, 0)))
_case("transpose", "cycle", _normal((2, 3, 4)), lambda F, x: F.transpose(x, (1, 2, 0)))
_case("transpose", "from the end", _normal((3, 3, 3)), lambda F, x: F.transpose(x, (-1, 0, 1)))

_KEYS: dict[str, Any] = {
    "slice": np.s_[1:3],
    "step": np.s_[:, ::2],
    "integer": np.s_[2],
    "last": np.s_[:, -1],
    "ellipsis": np.s_[..., 1:],
    "new axis": np.s_[:, None],
    "mixed": np.s_[1:, 0, ::2],
}
for _label, _key in _KEYS.items():
    _case("index", _label, _normal((4, 3, 5)), lambda F, x, key=_key: F.index(x, key))
_case("index", "one element", _normal((4,)), lambda F, x: F.index(x, 2))
_case(
    "index",
    "overlapping parts, and the whole",
    _normal((4, 3)),
    lambda F, x: F.add(F.mul(F.index(x, np.s_[:3]), F.index(x, np.s_[1:])), F.sum(F.mul(x, x))),
)

_case("concat", "axis 0", _normal((2, 3), (1, 3)), lambda F, a, b: F.concat([a, b], 0))
_case("concat", "last axis", _normal((2, 3), (2, 1), (2, 2)), lambda F, *t: F.concat(t, -1))
_case("concat", "middle", _normal((2, 3, 2), (2, 1, 2)), lambda F, a, b: F.concat([a, b], 1))
_case("concat", "one twice", _normal((2, 3)), lambda F, a: F.concat([a, F.mul(a, a), a], 1))
_case("concat", "alone", _normal((2, 3)), lambda F, a: F.concat([a], 0))

for _op in ("sum", "mean"):
    _reduce = lambda F, x, op=_op, **how: getattr(F, op)(x, **how)  # noqa: E731
    _case(_op, "all", _normal((2, 3)), _reduce)
    for _axis in (0, 1, -1):
        for _keep in (False, True):
            _case(
                _op,
                f"axis {_axis}{', kept' if _keep else ''}",
                _normal((2, 3, 4)),
                lambda F, x, f=_reduce, a=_axis, k=_keep: f(F, x, axis=a, keepdims=k),
            )
    _case(_op, "all, kept", _normal((2, 3)), lambda F, x, f=_reduce: f(F, x, keepdims=True))
    _case(_op, "no axes", _normal(()), _reduce)

# --- layers --------------------------------------------------------------------------------

_case("linear", "bias", _normal((2, 3, 4), (5, 4), (5,)), lambda F, x, w, b: F.linear(x, w, b))
_case("linear", "no bias", _normal((2, 3, 4), (5, 4)), lambda F, x, w: F.linear(x, w))
_case("linear", "one row", _normal((4,), (5, 4), (5,)), lambda F, x, w, b: F.linear(x, w, b))
_case("linear", "x is w", _normal((3, 3)), lambda F, x: F.linear(x, x))

_IDS = np.array([[3, 0, 3], [3, 1, 0]])
_case("embedding", "repeated ids", _normal((5, 4)), lambda F, w: F.embedding(_IDS, w))
_case("embedding", "one axis of ids", _normal((5, 4)), lambda F, w: F.embedding(_IDS[0], w))
_case("embedding", "every second id", _normal((5, 4)), lambda F, w: F.embedding(_IDS[:, ::2], w))

for _eps in (1e-5, 0.1):
    _eps_label = f"eps {_eps:g}"
    _case(
        "rms_norm",
        _eps_label,
        _normal((2, 3, 5), (5,)),
        lambda F, x, w, e=_eps: F.rms_norm(x, w, e),
    )
    _case(
        "layer_norm",
        f"{_eps_label}, bias",
        _normal((2, 3, 5), (5,), (5,)),
        lambda F, x, w, b, e=_eps: F.layer_norm(x, w, b, e),
    )
    _case(
        "layer_norm",
        f"{_eps_label}, no bias",
        _normal((2, 3, 5), (5,)),
        lambda F, x, w, e=_eps: F.layer_norm(x, w, None, e),
    )
_case("rms_norm", "one row", _normal((5,), (5,)), lambda F, x, w: F.rms_norm(x, w, 1e-5))
_case(
    "layer_norm",
    "far from 0",
    _normal((3, 5), (5,), shift=30.0),
    lambda F, x, w: F.layer_norm(x, w, None, 1e-5),
)

_case("dropout", "p 0.5", _normal((4, 5)), lambda F, x: F.dropout(x, 0.5, (1, 2)))
_case("dropout", "p 0.1", _normal((4, 5)), lambda F, x: F.dropout(x, 0.1, (3,)))
_case("dropout", "p 0", _normal((4, 5)), lambda F, x: F.dropout(x, 0.0, (3,)))

# --- activations ---------------------------------------------------------------------------

for _op in ("sigmoid", "tanh", "silu", "gelu", "gelu_tanh", "relu", "squared_relu", "softmax"):
    _f = lambda F, x, op=_op: getattr(F, op)(x)  # noqa: E731
    # relu has a kink at 0: its inputs stay off it, and the others lose nothing by that.
    _case(_op, "3 axes", _off_zero((2, 3, 4)), _f)
    _case(_op, "one axis", _off_zero((5,)), _f)
_case("softmax", "values near 300", _normal((2, 5), shift=300.0), lambda F, x: F.softmax(x))
for _op in ("swiglu", "geglu", "reglu"):
    _f = lambda F, x, op=_op: getattr(F, op)(x)  # noqa: E731
    _case(_op, "3 axes", _off_zero((2, 3, 8)), _f)
    _case(_op, "width 1", _off_zero((4, 2)), _f)

# --- attention -----------------------------------------------------------------------------

for _label, _shape, _options in (
    ("half", (2, 5, 3, 6), {}),
    ("interleaved", (2, 5, 3, 6), {"interleaved": True}),
    ("one pair", (1, 4, 1, 2), {}),
    ("theta 100, interleaved", (1, 7, 2, 4), {"theta": 100.0, "interleaved": True}),
    ("scaled", (2, 5, 3, 6), {"factors": (1.0, 2.5, 8.0)}),
):
    _case("rope", _label, _normal(_shape), lambda F, x, o=_options: F.rope(x, **o))

# label: (B, T, H, K, E), options
_ATTENTION: dict[str, tuple[tuple[int, int, int, int, int], dict[str, Any]]] = {
    "multi-head": ((3, 4, 2, 2, 3), {}),
    "grouped-query": ((2, 4, 4, 2, 3), {}),
    "multi-query": ((2, 3, 3, 1, 2), {}),
    "one token": ((2, 1, 2, 1, 3), {}),
    "odd sizes": ((1, 7, 3, 3, 5), {}),
    "width 1": ((1, 5, 1, 1, 1), {}),
    "alibi, 4 heads": ((2, 4, 4, 4, 2), {"alibi": True}),
    "alibi, 6 heads grouped": ((1, 5, 6, 2, 2), {"alibi": True}),
    "window 1, sink 1": ((1, 4, 2, 2, 3), {"window": 1, "sinks": 1}),
    "window 2": ((2, 5, 2, 1, 3), {"window": 2}),
    "window 3, sinks 2": ((1, 7, 2, 2, 2), {"window": 3, "sinks": 2}),
    "window past the end": ((1, 4, 2, 2, 2), {"window": 9}),
    "window 2, sink 1, alibi, grouped": (
        (1, 6, 4, 2, 2),
        {"window": 2, "sinks": 1, "alibi": True},
    ),
}
for _label, ((_B, _T, _H, _K, _E), _options) in _ATTENTION.items():
    _case(
        "attention",
        _label,
        _normal((_B, _T, _H, _E), (_B, _T, _K, _E), (_B, _T, _K, _E)),
        lambda F, q, k, v, o=_options: F.attention(q, k, v, **o),
    )
# As the decoder makes them: three slices of one projection.
_case(
    "attention",
    "sliced from one tensor",
    _normal((2, 4, 4, 3)),
    lambda F, x: F.attention(
        F.index(x, np.s_[:, :, :2]), F.index(x, np.s_[:, :, 2:3]), F.index(x, np.s_[:, :, 3:])
    ),
)

# --- losses --------------------------------------------------------------------------------

_TARGETS = np.array([[2, 0, -1], [2, 4, 1]])
_LOSS_OPTIONS: dict[str, dict[str, Any]] = {
    "one ignored": {},
    "divisor": {"divisor": 11.0},
    "ignore_index 2": {"targets": np.array([[2, 0, 3], [2, 4, 1]]), "ignore_index": 2},
    "ignore_index -100": {"targets": np.array([[2, 0, -100], [3, 4, 1]]), "ignore_index": -100},
}
for _label, _options in _LOSS_OPTIONS.items():
    _options = {"targets": _TARGETS} | _options
    _case(
        "cross_entropy",
        _label,
        _normal((2, 3, 5)),
        lambda F, x, o=_options: F.cross_entropy(x, **o),
    )
    _case(
        "linear_cross_entropy",
        _label,
        _normal((2, 3, 4), (5, 4)),
        lambda F, x, w, o=_options: F.linear_cross_entropy(x, w, **o),
    )
_case(
    "cross_entropy",
    "logits near 300",
    _normal((6, 5), shift=300.0),
    lambda F, x: F.cross_entropy(x, _TARGETS.reshape(-1)),
)
_MANY_TARGETS = np.arange(-1, 149) % 6 - 1  # 150 rows, every sixth of them ignored
_case(
    "linear_cross_entropy",
    "150 rows: several chunks",
    _normal((150, 2), (5, 2)),
    lambda F, x, w: F.linear_cross_entropy(x, w, _MANY_TARGETS),
)
_case(
    "linear_cross_entropy",
    "used twice, scaled",
    _normal((2, 3, 4), (5, 4)),
    lambda F, x, w: F.add(F.mul(F.linear_cross_entropy(x, w, _TARGETS), 3.0), F.sum(F.mul(w, w))),
)

# --- checkpoint ----------------------------------------------------------------------------

_case(
    "checkpoint",
    "nonlinear",
    _normal((2, 3)),
    lambda F, x: F.checkpoint(lambda h: F.tanh(F.mul(h, h)), x),
)
_case(
    "checkpoint",
    "two inputs, one twice",
    _normal((2, 3), (2, 3)),
    lambda F, a, b: F.checkpoint(lambda p, q, r: F.mul(F.tanh(F.mul(p, q)), r), a, b, a),
)
_case(
    "checkpoint",
    "parameter used inside and outside",
    _normal((2, 3), (3, 3)),
    lambda F, x, w: F.add(F.checkpoint(lambda h: F.tanh(F.linear(h, w)), x), F.linear(x, w)),
)
_case(
    "checkpoint",
    "nested",
    _normal((2, 3), (3, 3)),
    lambda F, x, w: F.checkpoint(
        lambda h: F.linear(F.checkpoint(lambda g: F.tanh(F.linear(g, w)), h), w), x
    ),
)
_case(
    "checkpoint",
    "dropout inside",
    _normal((4, 5)),
    lambda F, x: F.checkpoint(lambda h: F.dropout(F.tanh(h), 0.5, (7,)), x),
)

for _cases in CASES.values():
    _first = _cases[0]
    _cases.append(Case(f"{_first.label}, strided", _strided(_first.inputs), _first.apply))
