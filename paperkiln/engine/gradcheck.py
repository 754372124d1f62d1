"""Every hand-derived backward against central differences, in float64.

For an op: loss = Σ out ∘ R with a fixed random R, and every element of every input x is moved
by ±h: numeric = (loss(x + h) - loss(x - h)) / 2h. For a whole model: its own loss, and in each
parameter a few single elements and one dense random direction.

The error of an input is max |analytic - numeric| over its elements, divided by the largest
|gradient| of that input (or by 1e-4 when all are smaller: the gradient of a query with a single
key is zero); a case has the error of its worst input, an op of its worst case.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, get_args

import numpy as np

from paperkiln.engine import attention, losses, ops
from paperkiln.engine.gradcases import CASES, Case
from paperkiln.engine.tape import Tensor, reachable
from paperkiln.errors import PaperkilnError
from paperkiln.models.config import PRESETS, Activation, ModelConfig, Positional
from paperkiln.models.decoder import Decoder
from paperkiln.models.init import init_parameters

TOLERANCE = 1e-6
# Truncation grows as h², rounding as 2e-16 / h: near h = 1e-5 both are about 1e-10.
STEP = 1e-5
# Where a gradient is zero in exact arithmetic, both sides hold rounding noise of up to 1e-11.
SMALLEST_SCALE = 1e-4

# Ops without a gradient: two wrap an array, one unwraps it, one is a context manager.
NOT_DIFFERENTIATED = frozenset({"constant", "no_grad", "tensor", "to_numpy"})

MODELS = (*(f"model {preset}" for preset in PRESETS), "model flavours")


@dataclass(frozen=True)
class Result:
    """The worst case of one op or model family."""

    op: str
    case: str
    max_rel_error: float
    dtype: str
    ok: bool


def gradcheck(only: list[str] | None = None) -> list[Result]:
    """Return one Result per op, then one per model family; `only` names a few of them.

    Raises PaperkilnError for a name that is neither.
    """
    known = [name for name in ops.__all__ if name not in NOT_DIFFERENTIATED] + list(MODELS)
    for name in only or ():
        if name not in known:
            raise PaperkilnError(f"gradcheck knows no {name!r}; it knows: {', '.join(known)}")
    with _many_small_chunks():
        return [_worst(name, _errors(name)) for name in only or known]


def table(results: list[Result]) -> str:
    """Return the results as aligned text, with a verdict on the last line."""
    width = max(len(r.op) for r in results)
    lines = [f"{'op':{width}}  max rel error  worst case"]
    for r in results:
        mark = "" if r.ok else "  <-- FAILS"
        lines.append(f"{r.op:{width}}  {r.max_rel_error:13.1e}  {r.case}{mark}")
    failed = sum(not r.ok for r in results)
    verdict = f"{failed} FAIL" if failed else "all pass"
    lines.append(f"{len(results)} checked in float64, tolerance {TOLERANCE:.0e}: {verdict}")
    return "\n".join(lines)


def main(as_json: bool = False, only: list[str] | None = None) -> int:
    """Print the table, or JSON with one object per op; return 0 when all pass, else 1."""
    results = gradcheck(only)
    print(json.dumps([asdict(r) for r in results], indent=1) if as_json else table(results))
    if not as_json and not only:
        print(checkpoint_saves())
    return 0 if all(r.ok for r in results) else 1


def checkpoint_saves(preset: str = "attention-is-all-you-need") -> str:
    """Return in words how many live tensors checkpoints leave, and whether they change a bit."""
    config = shrunk(preset).model_copy(update={"n_layers": 6})
    ids = np.random.default_rng(0).integers(0, config.vocab_size, (2, config.context_length))
    live, losses, grads = [], [], []
    for checkpoint in (False, True):
        leaves = {n: Tensor(a, True) for n, a in init_parameters(config, 0).items()}
        loss = Decoder(config, leaves, ops, checkpoint).loss(ids, ids, seed=(0,))
        live.append(len(reachable(loss)))
        losses.append(loss.item())
        loss.backward()
        grads.append(b"".join(leaf.grad.tobytes() for leaf in leaves.values()))
    same = losses[0] == losses[1] and grads[0] == grads[1]
    verdict = "bit-identical" if same else "DIFFERENT"
    return f"checkpoints on {preset}: {live[0]} live tensors become {live[1]}, gradients {verdict}"


def _errors(name: str) -> Iterator[tuple[str, float]]:
    """Yield the label and error of every case under `name`."""
    if name in CASES:
        for n, case in enumerate(CASES[name]):
            yield case.label, op_error(case, seed=n)
    elif name == "model flavours":
        for n, config in enumerate(flavours()):
            # Every second one recomputes its blocks going back.
            yield _label(config), model_error(config, seed=n, checkpoint=n % 2 == 1)
    elif name.startswith("model "):
        yield "d 16, 2 layers, V 11", model_error(shrunk(name.removeprefix("model ")), seed=0)
    else:
        raise PaperkilnError(f"op {name!r} has no gradcheck case: add one to gradcases.py")


def _worst(name: str, errors: Iterator[tuple[str, float]]) -> Result:
    finite = ((label, e if np.isfinite(e) else np.inf) for label, e in errors)
    label, error = max(finite, key=lambda pair: pair[1])
    return Result(name, label, error, "float64", bool(error <= TOLERANCE))


@contextmanager
def _many_small_chunks() -> Iterator[None]:
    """Make the chunked ops take several chunks at these small sizes."""
    before = attention._CHUNK_BYTES, attention._BLOCK, losses._LOGIT_CHUNK_BYTES
    attention._CHUNK_BYTES = losses._LOGIT_CHUNK_BYTES = 1
    attention._BLOCK = 2
    try:
        yield
    finally:
        attention._CHUNK_BYTES, attention._BLOCK, losses._LOGIT_CHUNK_BYTES = before


# --- differences ---------------------------------------------------------------------------


def central_difference(f: Callable[[], float], x: np.ndarray, direction: np.ndarray) -> float:
    """Return the slope of f() as x moves along `direction`; x is moved in place, then restored."""
    before = x.copy()
    x += STEP * direction
    ahead = f()
    x[...] = before - STEP * direction
    behind = f()
    x[...] = before
    return (ahead - behind) / (2 * STEP)


def relative_error(analytic: np.ndarray, numeric: np.ndarray, scale: float) -> float:
    """Return max |analytic - numeric| / scale, the scale being the input's largest |gradient|."""
    return float(np.abs(analytic - numeric).max() / max(scale, SMALLEST_SCALE))


def op_error(case: Case, seed: int) -> float:
    """Return the error of one case, the worst over its inputs, moving every element."""
    rng = np.random.default_rng(seed)
    arrays = case.inputs(rng)
    with ops.no_grad():
        shape = case.apply(ops, *map(Tensor, arrays)).shape
    # R in Fortran order: the incoming gradient of every op is then non-contiguous too.
    weights = Tensor(np.asarray(rng.normal(size=shape[::-1])).T)
    loss = lambda tensors: ops.sum(case.apply(ops, *tensors) * weights)  # noqa: E731

    leaves = [Tensor(x, requires_grad=True) for x in arrays]
    loss(leaves).backward()
    errors = []
    with ops.no_grad():
        for leaf in leaves:
            analytic = np.zeros(leaf.shape) if leaf.grad is None else leaf.grad
            numeric = np.empty(leaf.shape)
            for at in np.ndindex(leaf.shape):
                unit = np.zeros(leaf.shape)
                unit[at] = 1.0
                numeric[at] = central_difference(lambda: loss(leaves).item(), leaf.data, unit)
            scale = max(np.abs(analytic).max(), np.abs(numeric).max())
            errors.append(relative_error(analytic, numeric, scale))
    return float(np.max(errors))  # np.max keeps a NaN, max() may lose it


# --- whole models --------------------------------------------------------------------------

_TINY: dict[str, Any] = {"d_model": 16, "n_layers": 2, "vocab_size": 11, "context_length": 7}


def shrunk(preset: str) -> ModelConfig:
    """Return the preset at a size that central differences can afford."""
    config = ModelConfig.from_preset(preset, **_TINY, n_heads=4, n_kv_heads=None, d_ff=20)
    return config.model_copy(update={"window": 3}) if config.attention == "swa" else config


_CHOICES: tuple[tuple[dict[str, Any], ...], ...] = (
    tuple({"activation": a} for a in get_args(Activation)),
    tuple({"positional": p} for p in get_args(Positional)),
    ({"norm": "layernorm"}, {"norm": "rmsnorm"}),
    ({"norm_placement": "pre"}, {"norm_placement": "post"}),
    (
        {"attention": "exact"},
        {"attention": "swa", "window": 2},
        {"attention": "swa", "window": 3, "sinks": 1},
    ),
    (
        {"n_heads": 4},
        {"n_heads": 4, "n_kv_heads": 2},
        {"n_heads": 3, "n_kv_heads": 1, "head_dim": 6},
    ),
    ({"bias": True}, {"bias": False}),
    ({"tied_embeddings": True}, {"tied_embeddings": False}),
    ({"scale_embeddings": True}, {"scale_embeddings": False}),
    ({"rope_layout": "half"}, {"rope_layout": "interleaved"}),
    ({"dropout": 0.0}, {"dropout": 0.2}),
)


def flavours() -> list[ModelConfig]:
    """Return configurations in which every two choices of the family meet at least once.

    Activations × positionals in full; the rest of each row is the one of a few random draws
    that brings the most pairs not met before.
    """
    rng = np.random.default_rng(0)
    met: set[tuple[int, int, int, int]] = set()
    configs = []
    for first in itertools.product(*(range(len(c)) for c in _CHOICES[:2])):
        draws = [(*first, *(int(rng.integers(len(c))) for c in _CHOICES[2:])) for _ in range(20)]
        row = max(draws, key=lambda draw: len(_pairs(draw) - met))
        met |= _pairs(row)
        fields = [choices[n] for choices, n in zip(_CHOICES, row, strict=True)]
        configs.append(
            ModelConfig(**_TINY, d_ff=12, **{k: v for f in fields for k, v in f.items()})
        )
    return configs


def _pairs(row: tuple[int, ...]) -> set[tuple[int, int, int, int]]:
    """Return which choice of which question meets which of which, in one row."""
    return {(i, row[i], j, row[j]) for i, j in itertools.combinations(range(len(row)), 2)}


def _label(c: ModelConfig) -> str:
    window = f" {c.window}+{c.sinks}" if c.attention == "swa" else ""
    layout = f" {c.rope_layout}" if c.positional == "rope" else ""
    flags = ("bias", "tied_embeddings", "scale_embeddings", "dropout")
    return (
        f"{c.norm} {c.norm_placement} {c.activation} {c.positional}{layout} {c.attention}{window} "
        f"{c.n_heads}/{c.n_kv_heads} heads " + " ".join(f for f in flags if getattr(c, f))
    ).strip()


def model_error(config: ModelConfig, seed: int, checkpoint: bool = False) -> float:
    """Return the error of the loss's gradients, the worst over the parameters."""
    rng = np.random.default_rng(seed)
    T = config.context_length - 1
    ids = rng.integers(0, config.vocab_size, (2, T))
    targets = rng.integers(0, config.vocab_size, (2, T))
    targets[0, 1] = -1  # not scored
    parameters = {}
    for name, values in init_parameters(config, seed, np.float64).items():
        # Away from gains of 1, biases of 0 and scores near 0, where errors could hide.
        values += rng.normal(0.0, 0.3, values.shape)
        parameters[name] = Tensor(values, requires_grad=True)
    decoder = Decoder(config, parameters, ops, checkpoint)
    loss = lambda: decoder.loss(ids, targets, seed=(seed,))  # noqa: E731

    loss().backward()
    errors = []
    with ops.no_grad():
        for p in parameters.values():
            directions = _directions(p.shape, rng)
            numeric = [central_difference(lambda: loss().item(), p.data, d) for d in directions]
            analytic = [(p.grad * d).sum() for d in directions]
            scale = max(np.abs(p.grad).max(), np.abs(numeric).max())
            errors.append(relative_error(np.array(analytic), np.array(numeric), scale))
    return float(np.max(errors))


def _directions(shape: tuple[int, ...], rng: np.random.Generator) -> list[np.ndarray]:
    """Return three single elements and one dense direction of length 1, as arrays of `shape`."""
    dense = rng.normal(size=shape)
    directions = [dense / np.linalg.norm(dense)]
    for at in rng.integers(0, dense.size, 3):
        directions.append(np.zeros(shape))
        directions[-1].flat[at] = 1.0
    return directions
