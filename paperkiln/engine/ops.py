"""The op set on numpy: each op is a forward and, right below, its hand-derived backward.

Arithmetic, shapes and layers are here; nonlinearities, attention and losses have files of
their own and are offered under this one name. A model imports nothing else from an engine.
`torch_ops` offers the same names with the same shapes, `fast_ops` the same with fused C loops;
`gradcheck` measures every backward. Linear weights are (out, in). "..." stands for any
leading axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from paperkiln.engine.activations import (
    geglu,
    gelu,
    gelu_tanh,
    reglu,
    relu,
    sigmoid,
    silu,
    softmax,
    squared_relu,
    swiglu,
    tanh,
)  # fmt: skip
from paperkiln.engine.attention import attention, rope
from paperkiln.engine.losses import cross_entropy, linear_cross_entropy
from paperkiln.engine.tape import Grads, Tensor, checkpoint, no_grad, record

__all__ = [
    "add", "attention", "checkpoint", "concat", "constant", "cross_entropy", "div", "dropout",
    "embedding", "exp", "geglu", "gelu", "gelu_tanh", "index", "layer_norm", "linear",
    "linear_cross_entropy", "log", "matmul", "mean", "mul", "neg", "no_grad", "reglu", "relu",
    "reshape", "rms_norm", "rope", "sigmoid", "silu", "softmax", "squared_relu", "sub", "sum",
    "swiglu", "tanh", "tensor", "to_numpy", "transpose",
]  # fmt: skip

Operand = Tensor | np.ndarray | float


def tensor(data: Any, requires_grad: bool = False) -> Tensor:
    """Wrap an array; integers become float32."""
    data = np.asarray(data)
    if data.dtype.kind != "f":
        data = data.astype(np.float32)
    return Tensor(data, requires_grad)


def constant(values: np.ndarray, like: Tensor) -> Tensor:
    """Wrap values that are not trained, in the dtype (and on the device) of `like`."""
    return Tensor(values.astype(like.dtype))


def to_numpy(x: Tensor) -> np.ndarray:
    """Return the values as a numpy array."""
    return x.data


# --- arithmetic, with broadcasting ---------------------------------------------------------


def _pair(a: Operand, b: Operand) -> tuple[Tensor, Tensor]:
    """Wrap a number or an array in the other operand's dtype."""
    if not isinstance(a, Tensor):
        return Tensor(np.asarray(a, dtype=b.dtype)), b
    if not isinstance(b, Tensor):
        return a, Tensor(np.asarray(b, dtype=a.dtype))
    return a, b


def _unbroadcast(grad: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sum over the axes along which an operand of `shape` was repeated."""
    if grad.shape == shape:
        return grad
    grad = grad.sum(axis=tuple(range(grad.ndim - len(shape))))
    repeated = tuple(i for i, n in enumerate(shape) if n == 1 and grad.shape[i] != 1)
    return grad.sum(axis=repeated, keepdims=True) if repeated else grad


def add(a: Operand, b: Operand) -> Tensor:
    """a + b. d(a + b) = da + db."""
    a, b = _pair(a, b)

    def backward(dout: np.ndarray) -> Grads:
        return _unbroadcast(dout, a.shape), _unbroadcast(dout, b.shape)

    return record(a.data + b.data, (a, b), backward)


def sub(a: Operand, b: Operand) -> Tensor:
    """a - b."""
    a, b = _pair(a, b)

    def backward(dout: np.ndarray) -> Grads:
        return _unbroadcast(dout, a.shape), _unbroadcast(-dout, b.shape)

    return record(a.data - b.data, (a, b), backward)


def mul(a: Operand, b: Operand) -> Tensor:
    """a · b elementwise. d(ab) = b da + a db."""
    a, b = _pair(a, b)

    def backward(dout: np.ndarray) -> Grads:
        da = _unbroadcast(dout * b.data, a.shape) if a.requires_grad else None
        db = _unbroadcast(dout * a.data, b.shape) if b.requires_grad else None
        return da, db

    return record(a.data * b.data, (a, b), backward)


def div(a: Operand, b: Operand) -> Tensor:
    """a / b elementwise. d(a/b) = da / b - (a/b) db / b."""
    a, b = _pair(a, b)
    out = a.data / b.data

    def backward(dout: np.ndarray) -> Grads:
        da = dout / b.data
        return _unbroadcast(da, a.shape), _unbroadcast(-da * out, b.shape)

    return record(out, (a, b), backward)


def neg(x: Tensor) -> Tensor:
    """-x."""
    return record(-x.data, (x,), lambda dout: (-dout,))


def exp(x: Tensor) -> Tensor:
    """e^x, its own derivative."""
    out = np.exp(x.data)
    return record(out, (x,), lambda dout: (dout * out,))


def log(x: Tensor) -> Tensor:
    """ln x. d ln x = dx / x."""
    return record(np.log(x.data), (x,), lambda dout: (dout / x.data,))


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """a (..., N, M) @ b (..., M, P), leading axes broadcast. dA = dO Bᵀ, dB = Aᵀ dO."""

    def backward(dout: np.ndarray) -> Grads:
        da = _unbroadcast(dout @ b.data.swapaxes(-1, -2), a.shape) if a.requires_grad else None
        db = _unbroadcast(a.data.swapaxes(-1, -2) @ dout, b.shape) if b.requires_grad else None
        return da, db

    return record(a.data @ b.data, (a, b), backward)


# --- shape and reduction -------------------------------------------------------------------


def reshape(x: Tensor, shape: Sequence[int]) -> Tensor:
    """The same elements in another shape."""
    return record(x.data.reshape(shape), (x,), lambda dout: (dout.reshape(x.shape),))


def transpose(x: Tensor, axes: Sequence[int]) -> Tensor:
    """Permute the axes; the gradient goes back by the inverse permutation."""
    inverse = np.argsort(np.asarray(axes) % x.ndim)  # axes may count from the end
    return record(x.data.transpose(axes), (x,), lambda dout: (dout.transpose(inverse),))


def index(x: Tensor, key: Any) -> Tensor:
    """x[key] for slices and integers; what was not selected gets no gradient.

    Raises TypeError for an array of indices: one may repeat, and its gradients would be lost.
    """
    parts = key if isinstance(key, tuple) else (key,)
    if not all(isinstance(part, slice | int | type(...) | None) for part in parts):
        raise TypeError(f"index takes slices and integers, not {key!r}; use embedding for rows")

    def backward(dout: np.ndarray) -> Grads:
        x.accumulate_at(key, dout)
        return (None,)

    return record(x.data[key], (x,), backward)


def concat(tensors: Sequence[Tensor], axis: int) -> Tensor:
    """Join along `axis`; each piece gets its part of the gradient."""
    ends = np.cumsum([t.shape[axis] for t in tensors])[:-1]

    def backward(dout: np.ndarray) -> Grads:
        return np.split(dout, ends, axis)

    return record(np.concatenate([t.data for t in tensors], axis), tuple(tensors), backward)


def sum(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Sum over one axis or all; every element gets the sum's gradient."""

    def backward(dout: np.ndarray) -> Grads:
        if axis is not None and not keepdims:
            dout = np.expand_dims(dout, axis)
        return (np.broadcast_to(dout, x.shape),)

    return record(np.asarray(x.data.sum(axis=axis, keepdims=keepdims)), (x,), backward)


def mean(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Average over one axis or all."""
    count = x.data.size if axis is None else x.shape[axis]
    return mul(sum(x, axis, keepdims), 1.0 / count)


# --- layers --------------------------------------------------------------------------------


def linear(x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    """x (..., I) wᵀ + b with w (O, I) -> (..., O). dx = dO w, dw = dOᵀ x, db = Σ dO."""
    n_out, n_in = w.shape
    rows = x.data.reshape(-1, n_in)
    out = rows @ w.data.T
    if b is not None:
        out += b.data

    def backward(dout: np.ndarray) -> Grads:
        dout = dout.reshape(-1, n_out)
        dx = (dout @ w.data).reshape(x.shape) if x.requires_grad else None
        dw = dout.T @ rows if w.requires_grad else None
        return (dx, dw) if b is None else (dx, dw, dout.sum(axis=0))

    parents = (x, w) if b is None else (x, w, b)
    return record(out.reshape(*x.shape[:-1], n_out), parents, backward)


def embedding(ids: np.ndarray, w: Tensor) -> Tensor:
    """Rows of w (V, D) by integer ids (...) -> (..., D); a row's gradient sums over its uses.

    Raises IndexError for an id outside [0, V).
    """
    if ids.size and ids.min() < 0:
        raise IndexError(f"token id {ids.min()} is negative")

    def backward(dout: np.ndarray) -> Grads:
        dw = np.zeros(w.shape, w.dtype)
        flat = ids.reshape(-1)
        order = np.argsort(flat, kind="stable")  # equal ids become neighbours, in a fixed order
        used, starts = np.unique(flat[order], return_index=True)
        dw[used] = np.add.reduceat(dout.reshape(-1, w.shape[1])[order], starts, axis=0)
        return (dw,)

    return record(w.data[ids], (w,), backward)


def rms_norm(x: Tensor, w: Tensor, eps: float) -> Tensor:
    """x̂ ∘ w with x̂ = x / sqrt(mean(x²) + eps), over the last axis (Zhang & Sennrich 2019).

    With g = dO ∘ w and r = 1 / sqrt(mean(x²) + eps): dx = r (g - x̂ mean(g ∘ x̂)).
    """
    D = x.shape[-1]
    rows = x.data.reshape(-1, D)
    r = (1.0 / np.sqrt(np.einsum("nd,nd->n", rows, rows) / D + eps)).astype(x.dtype)[:, None]
    normed = rows * r
    out = normed * w.data

    def backward(dout: np.ndarray) -> Grads:
        dout = dout.reshape(-1, D)
        dw = np.einsum("nd,nd->d", dout, normed)
        dx = dout * w.data
        dx -= normed * (np.einsum("nd,nd->n", dx, normed) / D)[:, None]
        dx *= r
        return dx.reshape(x.shape), dw

    return record(out.reshape(x.shape), (x, w), backward)


def layer_norm(x: Tensor, w: Tensor, b: Tensor | None, eps: float) -> Tensor:
    """x̂ ∘ w + b with x̂ = (x - mean) / sqrt(var + eps), biased variance (Ba et al. 2016).

    With g = dO ∘ w and r = 1 / sqrt(var + eps): dx = r (g - mean(g) - x̂ mean(g ∘ x̂)).
    """
    D = x.shape[-1]
    rows = x.data.reshape(-1, D)
    normed = rows - rows.mean(axis=1, keepdims=True)
    r = (1.0 / np.sqrt(np.einsum("nd,nd->n", normed, normed) / D + eps)).astype(x.dtype)[:, None]
    normed *= r
    out = normed * w.data
    if b is not None:
        out += b.data

    def backward(dout: np.ndarray) -> Grads:
        dout = dout.reshape(-1, D)
        dw = np.einsum("nd,nd->d", dout, normed)
        dx = dout * w.data
        dots = (np.einsum("nd,nd->n", dx, normed) / D)[:, None]
        dx -= dx.mean(axis=1, keepdims=True)
        dx -= normed * dots
        dx *= r
        dx = dx.reshape(x.shape)
        return (dx, dw) if b is None else (dx, dw, dout.sum(axis=0))

    parents = (x, w) if b is None else (x, w, b)
    return record(out.reshape(x.shape), parents, backward)


def dropout(x: Tensor, p: float, seed: Sequence[int]) -> Tensor:
    """Zero each element with probability p and scale the rest by 1 / (1 - p).

    The mask is a pure function of `seed`, so a recomputed or resumed pass draws it again.
    """
    if p == 0.0:
        return x
    keep = np.random.default_rng(seed).random(x.shape, dtype=np.float32) >= p
    mask = keep.astype(x.dtype) * x.dtype.type(1.0 / (1.0 - p))
    return record(x.data * mask, (x,), lambda dout: (dout * mask,))


Tensor.__add__, Tensor.__radd__ = add, add
Tensor.__sub__, Tensor.__rsub__ = sub, lambda a, b: sub(b, a)
Tensor.__mul__, Tensor.__rmul__ = mul, mul
Tensor.__truediv__, Tensor.__rtruediv__ = div, lambda a, b: div(b, a)
Tensor.__neg__, Tensor.__matmul__, Tensor.__getitem__ = neg, matmul, index
