"""The tape and torch compute the same: op by op, and whole models, values and gradients.

Torch differentiates by itself, so agreement checks every backward derived by hand.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from paperkiln.engine import ops
from paperkiln.engine.gradcases import CASES, Case
from paperkiln.models.config import PRESETS, ModelConfig
from paperkiln.models.decoder import Decoder
from paperkiln.models.init import init_parameters

torch = pytest.importorskip("torch", reason="torch is not installed (the extra `torch`)")

from paperkiln.engine import torch_ops  # noqa: E402


@pytest.fixture(autouse=True, scope="module")
def one_torch_thread() -> Iterator[None]:
    """These arrays are small: threads would cost more than they save."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


TOLERANCE = {np.float32: 1e-4, np.float64: 1e-10}
dtypes = pytest.mark.parametrize("dtype", TOLERANCE, ids=lambda d: d.__name__)


def rel_error(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return max|ours - theirs| / max|theirs|, after checking shape and dtype."""
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    assert np.isfinite(ours).all()
    assert np.isfinite(theirs).all()
    largest = float(np.abs(theirs).max(initial=0.0))
    return float(np.abs(ours - theirs).max(initial=0.0)) / (largest or 1.0)


def report(capsys: pytest.CaptureFixture, what: str, dtype: type, worst: tuple) -> None:
    with capsys.disabled():
        print(f"\n  {what}, {dtype.__name__}: worst rel. error {worst[0]:.1e} ({worst[1]})", end="")


# --- the op set ----------------------------------------------------------------------------


def test_both_engines_offer_the_same_names_with_the_same_signatures() -> None:
    assert sorted(torch_ops.__all__) == sorted(ops.__all__)
    for name in ops.__all__:
        ours, theirs = (
            [(p.name, p.kind, p.default) for p in inspect.signature(f).parameters.values()]
            for f in (getattr(ops, name), getattr(torch_ops, name))
        )
        assert ours == theirs, name


def value_and_grads(F: Any, case: Case, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Return the case's output, and the gradient of Σ output ∘ R for each input."""
    leaves = [F.tensor(a.copy(), requires_grad=True) for a in arrays]
    out = case.apply(F, *leaves)
    weights = np.random.default_rng(1).normal(size=tuple(out.shape))
    F.sum(F.mul(out, weights)).backward()
    return [F.to_numpy(out), *(as_array(F, leaf.grad) for leaf in leaves)]


def as_array(F: Any, grad: Any) -> np.ndarray:
    """Return a gradient as an array; the tape keeps it as one."""
    return F.to_numpy(grad) if isinstance(grad, torch.Tensor) else np.asarray(grad)


def draws_its_own_mask(op: str, case: Case) -> bool:
    """Whether the engines differ on purpose; what torch's dropout promises is tested below."""
    return (op == "dropout" and "p 0" != case.label.split(",")[0]) or "dropout" in case.label


@dtypes
def test_every_op_agrees(dtype: type, capsys: pytest.CaptureFixture) -> None:
    assert set(CASES) == set(ops.__all__) - {"constant", "no_grad", "tensor", "to_numpy"}
    errors = []
    for op, case in ((op, case) for op, cases in CASES.items() for case in cases):
        if draws_its_own_mask(op, case):
            continue
        arrays = [a.astype(dtype) for a in case.inputs(np.random.default_rng(0))]
        both = (value_and_grads(F, case, arrays) for F in (ops, torch_ops))
        for n, (ours, theirs) in enumerate(zip(*both, strict=True)):
            part = f"gradient {n}" if n else "value"
            errors.append((rel_error(ours, theirs), f"{op}: {case.label}: {part}"))
    report(capsys, f"{len(errors)} values and gradients of {len(CASES)} ops", dtype, max(errors))
    assert [e for e in errors if e[0] > TOLERANCE[dtype]] == []


def attention_by_definition(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, window: int | None, sinks: int, slopes: list[float]
) -> np.ndarray:
    """One query at a time: (T, H, E) and (T, K, E) -> (T, H, E)."""
    T, H, E = q.shape
    out = np.zeros(q.shape)
    for i, h in product(range(T), range(H)):
        seen = [j for j in range(i + 1) if window is None or i - j < window or j < sinks]
        keys, values = (a[seen, h // (H // k.shape[1])] for a in (k, v))
        scores = keys @ q[i, h] / np.sqrt(E) - slopes[h] * (i - np.array(seen))
        weights = np.exp(scores) / np.exp(scores).sum()
        out[i, h] = weights @ values
    return out


# The engines share the tables of slopes and of what a window sees; here those are spelled out.
@pytest.mark.parametrize(("window", "sinks"), [(None, 0), (1, 0), (4, 0), (3, 2), (50, 1)])
@pytest.mark.parametrize(
    "slopes",
    [[0.0] * 4, [2**-2, 2**-4, 2**-6, 2**-8], [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]],
    ids=["no alibi", "alibi 4", "alibi 6"],
)
@pytest.mark.parametrize("F", [ops, torch_ops], ids=["tape", "torch"])
def test_attention_follows_its_definition(
    F: Any, slopes: list[float], window: int | None, sinks: int
) -> None:
    rng, H, alibi = np.random.default_rng(0), len(slopes), slopes[0] > 0
    q, k, v = (rng.normal(size=(2, 9, heads, 5)) for heads in (H, 2, 2))
    out = F.to_numpy(F.attention(*map(F.tensor, (q, k, v)), window, sinks, alibi))
    one_by_one = zip(q, k, v, strict=True)
    expected = [attention_by_definition(*one, window, sinks, slopes) for one in one_by_one]
    assert rel_error(out, np.stack(expected)) <= 1e-12


# --- whole models --------------------------------------------------------------------------


def uneven(config: ModelConfig, dtype: type, seed: int = 7) -> dict[str, np.ndarray]:
    """Initial parameters with gains off 1 and biases off 0, which would hide a wrong gradient."""
    rng = np.random.default_rng(seed)
    return {
        name: (p + rng.normal(0, 0.1, p.shape) * (p.ndim == 1)).astype(dtype)
        for name, p in init_parameters(config, seed, dtype).items()
    }


def outcome(
    F: Any, config: ModelConfig, params: dict[str, np.ndarray], batch: Any, checkpoint: bool
) -> dict[str, np.ndarray]:
    """Return logits, loss and the gradient of every parameter."""
    ids, targets = batch
    leaves = {name: F.tensor(p.copy(), requires_grad=True) for name, p in params.items()}
    model = Decoder(config, leaves, F, checkpoint)
    with F.no_grad():
        logits = F.to_numpy(model.logits(ids))
    loss = model.loss(ids, targets)
    loss.backward()
    grads = {name: as_array(F, leaf.grad) for name, leaf in leaves.items()}
    return {"logits": logits, "loss": F.to_numpy(loss)} | grads


def model_errors(
    config: ModelConfig, dtype: type, B: int, T: int, checkpoint: bool = False
) -> Iterator[tuple[float, str]]:
    """Yield the relative error and the name of logits, loss and each gradient."""
    rng = np.random.default_rng(3)
    ids = rng.integers(0, config.vocab_size, (B, T))
    targets = np.where(rng.random((B, T)) < 0.1, -1, rng.integers(0, config.vocab_size, (B, T)))
    params = uneven(config, dtype)
    ours, theirs = (
        outcome(F, config, params, (ids, targets), checkpoint) for F in (ops, torch_ops)
    )
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        yield rel_error(value, theirs[name]), name


# Real dimensions but where they would be slow.
SHRUNK = {"attention-is-all-you-need": {"n_layers": 2}}


@pytest.mark.parametrize("preset", PRESETS)
@dtypes
def test_presets_agree(preset: str, dtype: type, capsys: pytest.CaptureFixture) -> None:
    config = ModelConfig.from_preset(preset, vocab_size=300, **SHRUNK.get(preset, {}))
    T = min(config.context_length, 128)
    worst = max(model_errors(config, dtype, B=2, T=T))
    report(capsys, preset, dtype, worst)
    assert worst[0] <= TOLERANCE[dtype]


# Large weights, so that scores, gates and norms leave the region where everything is linear.
SMALL = {
    "d_model": 24, "n_layers": 2, "n_heads": 6, "d_ff": 40, "vocab_size": 37,
    "context_length": 20, "init_std": 0.3, "bias": True,
}  # fmt: skip
ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu", "squared_relu", "swiglu", "geglu", "reglu")
SEEING = (
    {"attention": "exact"},
    {"attention": "swa", "window": 5},
    {"attention": "swa", "window": 4, "sinks": 2},
    {"attention": "swa", "window": 99},
)
FLAVOURS = {
    "norms and placements": [
        {"norm": norm, "norm_placement": placement, "activation": activation}
        for norm, placement, activation in product(
            ("layernorm", "rmsnorm"), ("pre", "post"), ACTIVATIONS
        )
    ],
    "positions, attention and groups": [
        {"positional": positional, "n_kv_heads": n_kv_heads} | seeing
        for positional, n_kv_heads, seeing in product(
            ("learned", "sinusoidal", "rope", "alibi", "none"), (6, 3, 2, 1), SEEING
        )
    ],
    "the rest": [
        {"positional": "rope", "rope_layout": "interleaved", "n_kv_heads": 2},
        {"positional": "rope", "rope_theta": 500.0, "head_dim": 10},
        {"positional": "alibi", "n_heads": 8},
        {"positional": "learned", "scale_embeddings": True},
        {"bias": False, "norm": "layernorm"},
        {"tied_embeddings": False},
        {"residual_init": "depth-scaled"},
        {"norm_eps": 0.05},
        {"n_layers": 1, "n_heads": 1},
    ],
}


@pytest.mark.parametrize("family", FLAVOURS)
@dtypes
def test_flavours_agree(family: str, dtype: type, capsys: pytest.CaptureFixture) -> None:
    worst = max(
        (*max(model_errors(ModelConfig(**SMALL | flavour), dtype, B=2, T=17)), str(flavour))
        for flavour in FLAVOURS[family]
    )
    report(capsys, family, dtype, worst)
    assert worst[0] <= TOLERANCE[dtype], worst


def test_every_flavour_is_compared() -> None:
    compared = [*FLAVOURS["norms and placements"], *FLAVOURS["positions, attention and groups"]]
    for field in ("norm", "norm_placement", "activation", "positional", "attention"):
        known = ModelConfig.model_fields[field].annotation.__args__
        assert {flavour[field] for flavour in compared if field in flavour} == set(known), field


@dtypes
def test_checkpointed_models_agree(dtype: type) -> None:
    config = ModelConfig(**SMALL, n_kv_heads=2)
    assert max(model_errors(config, dtype, B=2, T=17, checkpoint=True))[0] <= TOLERANCE[dtype]


# --- what torch does its own way -----------------------------------------------------------


def test_dropout_is_a_pure_function_of_its_seed() -> None:
    x = torch.ones(400, 100, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(0)
    first = torch_ops.dropout(x, 0.25, (1, 2, 3))
    torch.manual_seed(1)
    assert torch.equal(first, torch_ops.dropout(x, 0.25, (1, 2, 3)))
    assert not torch.equal(first, torch_ops.dropout(x, 0.25, (1, 2, 4)))
    assert not torch.equal(first, torch_ops.dropout(x, 0.25, (3, 2, 1)))
    assert set(first.detach().unique().tolist()) == {0.0, 1 / 0.75}
    assert (first == 0).double().mean().item() == pytest.approx(0.25, abs=0.01)
    first.sum().backward()
    assert torch.equal(x.grad, first)
    assert torch_ops.dropout(x, 0.0, (1,)) is x


def test_dropout_is_drawn_again_the_same_when_a_block_is_recomputed() -> None:
    config = ModelConfig(**SMALL, dropout=0.3)
    ids = np.random.default_rng(0).integers(0, 37, (2, 17))
    grads = []
    for checkpoint in (False, True):
        leaves = {n: torch_ops.tensor(p, True) for n, p in uneven(config, np.float32).items()}
        Decoder(config, leaves, torch_ops, checkpoint).loss(ids, ids, seed=(5, 0)).backward()
        grads.append(torch.cat([leaf.grad.flatten() for leaf in leaves.values()]))
    assert torch.equal(*grads)


@dtypes
def test_chunked_logits_agree_with_whole_ones(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(dtype) for shape in ((2, 150, 8), (50, 8))]
    targets = rng.integers(-1, 50, (2, 150))
    results = []
    for limit in (torch_ops._LOGIT_CHUNK_BYTES, 1):  # one chunk; chunks of 64 rows
        monkeypatch.setattr(torch_ops, "_LOGIT_CHUNK_BYTES", limit)
        x, w = (torch_ops.tensor(a.copy(), True) for a in arrays)
        loss = torch_ops.linear_cross_entropy(x, w, targets)
        loss.backward()
        results.append([torch_ops.to_numpy(t) for t in (loss, x.grad, w.grad)])
    for whole, chunked in zip(*results, strict=True):
        assert rel_error(chunked, whole) <= TOLERANCE[dtype]


def test_tensor_takes_what_arrays_there_are() -> None:
    assert torch_ops.tensor([1, 2]).dtype == torch.float32
    assert torch_ops.tensor(np.float64(3)).shape == ()
    frozen = np.arange(6.0).reshape(2, 3)[:, ::-1]
    frozen.flags.writeable = False
    x = torch_ops.tensor(frozen, requires_grad=True)
    assert x.dtype == torch.float64
    assert x.requires_grad
    assert np.array_equal(torch_ops.to_numpy(x), frozen)


def test_place_on_decides_where_tensors_live() -> None:
    try:
        torch_ops.place_on("meta")
        assert torch_ops.tensor(np.ones(3)).device.type == "meta"
    finally:
        torch_ops.place_on("cpu")
    assert torch_ops.tensor(np.ones(3)).device.type == "cpu"


def test_tables_made_in_inference_mode_serve_training() -> None:
    for cached in (torch_ops._rope_table, torch_ops._attention_bias):
        cached.cache_clear()
    config = ModelConfig(**SMALL, attention="swa", window=4)
    leaves = {n: torch_ops.tensor(p, True) for n, p in uneven(config, np.float32).items()}
    model, ids = Decoder(config, leaves, torch_ops), np.arange(34).reshape(2, 17)
    with torch.inference_mode():
        model.logits(ids)
    model.loss(ids, ids).backward()
    assert all(leaf.grad is not None for leaf in leaves.values())
