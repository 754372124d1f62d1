"""cpu-fast: the compiled passes give what the numpy ops give, and nothing runs at import."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from paperkiln.engine import kernels, ops
from paperkiln.engine.gradcases import CASES
from paperkiln.models.config import PRESETS, ModelConfig
from paperkiln.models.decoder import Decoder
from paperkiln.models.init import init_parameters

if reason := kernels.unavailable():
    pytest.skip(f"cpu-fast: {reason}", allow_module_level=True)

from paperkiln.engine import fast_ops

COMPILED = (
    "attention", "geglu", "gelu", "gelu_tanh", "layer_norm", "linear_cross_entropy", "reglu",
    "relu", "rms_norm", "rope", "silu", "squared_relu", "swiglu",
)  # fmt: skip


def value_and_grads(F, case, arrays):
    tensors = [F.tensor(a, True) for a in arrays]
    out = case.apply(F, *tensors)
    weights = np.random.default_rng(1).standard_normal(out.shape).astype(out.dtype)
    F.sum(out * weights).backward()
    return [out.data, *(t.grad for t in tensors)]


def error(ours: np.ndarray, reference: np.ndarray) -> float:
    return float(np.abs(ours - reference).max() / max(1e-4, np.abs(reference).max()))


def test_the_op_sets_have_the_same_names():
    assert fast_ops.__all__ == ops.__all__
    redefined = {n for n in ops.__all__ if getattr(fast_ops, n) is not getattr(ops, n)}
    assert redefined == set(COMPILED)


@pytest.mark.parametrize("op", COMPILED)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("block", [2, 64])
def test_compiled_ops_agree_with_numpy(op, dtype, block, monkeypatch):
    monkeypatch.setattr("paperkiln.engine.attention._BLOCK", block)
    worst = 0.0
    for case in CASES[op]:
        arrays = [a.astype(dtype) for a in case.inputs(np.random.default_rng(0))]
        both = zip(
            value_and_grads(fast_ops, case, arrays), value_and_grads(ops, case, arrays), strict=True
        )
        worst = max([worst, *(error(a, b) for a, b in both if b is not None)])
    print(f"{op} {np.dtype(dtype).name}: {worst:.1e}")
    assert worst <= (2e-6 if dtype == np.float32 else 0.0)


@pytest.mark.parametrize("name", ["relu", "squared_relu", "silu", "gelu", "gelu_tanh"])
def test_activations_over_the_whole_range(name):
    """Every magnitude, both signs: the tails must neither overflow nor drift."""
    magnitudes = np.geomspace(1e-30, 1e4, 4001, dtype=np.float32)
    x = np.concatenate([-magnitudes, [0.0], magnitudes]).astype(np.float32)
    results = []
    for F in (fast_ops, ops):
        t = F.tensor(x, True)
        out = getattr(F, name)(t)
        F.sum(out).backward()
        results.append((out.data, t.grad))
    for ours, reference in zip(*results, strict=True):
        np.testing.assert_allclose(ours, reference, rtol=2e-5, atol=3e-6)


@pytest.mark.parametrize("preset", PRESETS)
def test_models_agree_with_numpy(preset):
    config = ModelConfig.from_preset(preset, vocab_size=97, n_layers=2, dropout=0.0)
    ids = np.random.default_rng(0).integers(0, 97, (3, 33))
    losses, grads = [], []
    for F in (fast_ops, ops):
        leaves = {n: F.tensor(a, True) for n, a in init_parameters(config, 0).items()}
        loss = Decoder(config, leaves, F).loss(ids[:, :-1], ids[:, 1:])
        loss.backward()
        losses.append(loss.item())
        grads.append({n: leaf.grad for n, leaf in leaves.items()})
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    worst = max(error(grads[0][n], grads[1][n]) for n in grads[0])
    print(f"{preset}: worst gradient {worst:.1e}")
    assert worst <= 1e-4


def test_not_a_number_is_not_hidden():
    x = fast_ops.tensor(np.array([[1.0, np.nan, 2.0, 3.0]], np.float32))
    w = fast_ops.tensor(np.eye(4, dtype=np.float32))
    assert np.isnan(fast_ops.swiglu(x).data).any()
    assert np.isnan(fast_ops.rms_norm(x, w[0], 1e-5).data).all()
    assert np.isnan(fast_ops.linear_cross_entropy(x, w, np.array([0])).item())


def test_weights_of_any_layout_and_dtype_are_read_right():
    rng = np.random.default_rng(0)
    x = fast_ops.tensor(rng.standard_normal((3, 4)).astype(np.float32))
    strided = fast_ops.tensor(rng.standard_normal((4, 2)).astype(np.float32)[:, 0])
    double = fast_ops.tensor(rng.standard_normal(4))
    for w in (strided, double):
        for ours, numpys in (
            (fast_ops.rms_norm(x, w, 1e-5), ops.rms_norm(x, w, 1e-5)),
            (fast_ops.layer_norm(x, w, w, 1e-5), ops.layer_norm(x, w, w, 1e-5)),
        ):
            np.testing.assert_allclose(ours.data, numpys.data, rtol=2e-6, atol=1e-6)


def test_nothing_is_compiled_at_import(tmp_path):
    code = "import paperkiln.engine.fast_ops"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PAPERKILN_CACHE": str(tmp_path)})
    assert list(tmp_path.iterdir()) == []


def test_adamw_agrees_with_numpy():
    from paperkiln.train.optim import adamw_update

    rng = np.random.default_rng(0)
    start = [rng.standard_normal(1001).astype(np.float32) for _ in range(3)]
    start.append(rng.random(1001).astype(np.float32))
    both = []
    for update in (fast_ops.adamw_update, adamw_update):
        theta, grad, m, v = (a.copy() for a in start)
        update(theta, grad, m, v, 0.5, 0.9, 0.95, 1e-2, 1.3, 1e-8, 0.999)
        both.append((theta, m, v))
    for ours, reference in zip(*both, strict=True):
        np.testing.assert_allclose(ours, reference, rtol=2e-6, atol=1e-7)
