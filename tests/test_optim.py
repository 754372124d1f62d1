"""Optimisers against torch's, against the formulas written out, and against themselves in parts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from paperkiln.engine import device
from paperkiln.engine.device import TapeEngine, pick_engine
from paperkiln.engine.parameters import Parameters
from paperkiln.models.config import PRESETS, ModelConfig, parameter_shapes
from paperkiln.models.init import init_parameters
from paperkiln.spec import TrainSpec
from paperkiln.train import optim
from paperkiln.train.optim import (
    decayed_names,
    grad_norm,
    make_optimizer,
    muon_splits,
    newton_schulz,
)

CONFIG = ModelConfig(
    d_model=16, n_layers=2, n_heads=4, n_kv_heads=2, d_ff=24, vocab_size=30, context_length=8,
    norm="layernorm", bias=True, tied_embeddings=False,
)  # fmt: skip
STEPS = 20


@pytest.fixture(scope="module")
def engine() -> TapeEngine:
    return pick_engine("cpu")


def gradients(seed: int = 0) -> list[dict[str, np.ndarray]]:
    stream = np.random.default_rng(seed)
    shapes = parameter_shapes(CONFIG)
    return [{n: stream.normal(0, 0.1, s) for n, s in shapes.items()} for _ in range(STEPS)]


def scale(update: int) -> float:
    return 1 / (1 + 0.1 * update)


def ours(engine: Any, spec: TrainSpec, grad_scale: float = 1.0) -> dict[str, np.ndarray]:
    """Run 20 steps in float64 and return the parameters."""
    arrays = init_parameters(CONFIG, 1, np.float64)
    parameters = engine.parameters(arrays, decayed_names(CONFIG, spec.decay_all))
    optimizer = make_optimizer(parameters, engine, spec, CONFIG)
    for update, grads in enumerate(gradients(), 1):
        for name, grad in grads.items():
            parameters.grad_view(name)[...] = engine.from_numpy(grad)
        optimizer.step(update, scale(update), grad_scale)
    flat = engine.arrays(parameters.flat)
    return {name: parameters.shaped(flat, name) for name in arrays}


def theirs(
    make: Callable, lr: float, names: list[str], decayed: set[str], weight_decay: float
) -> dict[str, np.ndarray]:
    """Run the same steps with a torch optimiser over `names`, decay in a group of its own."""
    import torch

    arrays = init_parameters(CONFIG, 1, np.float64)
    leaves = {name: torch.tensor(arrays[name], requires_grad=True) for name in names}
    groups = [
        {"params": [t for n, t in leaves.items() if n in decayed], "weight_decay": weight_decay},
        {"params": [t for n, t in leaves.items() if n not in decayed], "weight_decay": 0.0},
    ]
    optimizer = make([group for group in groups if group["params"]], lr=lr)
    for update, grads in enumerate(gradients(), 1):
        for group in optimizer.param_groups:
            group["lr"] = lr * scale(update)
        for name, leaf in leaves.items():
            leaf.grad = torch.tensor(grads[name])
        optimizer.step()
    return {name: leaf.detach().numpy() for name, leaf in leaves.items()}


def close(a: dict[str, np.ndarray], b: dict[str, np.ndarray], rtol: float = 1e-12) -> None:
    for name in b:
        np.testing.assert_allclose(a[name], b[name], rtol, rtol, err_msg=name)


def test_what_is_decayed() -> None:
    names = set(decayed_names(CONFIG, decay_all=False))
    assert names == {
        "head.weight",
        *(f"blocks.{i}.{m}.weight" for i in (0, 1)
          for m in ("attn.qkv", "attn.out", "ffn.in", "ffn.out")),
    }  # fmt: skip
    assert set(decayed_names(CONFIG, decay_all=True)) == set(parameter_shapes(CONFIG))


@pytest.mark.parametrize("decay_all", [False, True])
@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
def test_adamw_is_torch_s(engine: TapeEngine, decay_all: bool, weight_decay: float) -> None:
    torch = pytest.importorskip("torch")
    spec = TrainSpec(
        lr=0.02, beta1=0.8, beta2=0.97, eps=1e-7, weight_decay=weight_decay, decay_all=decay_all
    )
    names = list(parameter_shapes(CONFIG))
    make = lambda groups, lr: torch.optim.AdamW(groups, lr, (0.8, 0.97), 1e-7)  # noqa: E731
    decayed = set(decayed_names(CONFIG, decay_all))
    close(ours(engine, spec), theirs(make, 0.02, names, decayed, weight_decay))


def test_sgd_without_decay_is_torch_s(engine: TapeEngine) -> None:
    torch = pytest.importorskip("torch")
    spec = TrainSpec(optimizer="sgd", lr=0.1, momentum=0.85, weight_decay=0.0)
    make = lambda groups, lr: torch.optim.SGD(groups, lr, momentum=0.85)  # noqa: E731
    close(ours(engine, spec), theirs(make, 0.1, list(parameter_shapes(CONFIG)), set(), 0.0))


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_the_formulas_written_out(engine: TapeEngine, optimizer: str) -> None:
    spec = TrainSpec(optimizer=optimizer, lr=0.05, weight_decay=0.2, momentum=0.7, eps=1e-3)
    expected = init_parameters(CONFIG, 1, np.float64)
    decayed = set(decayed_names(CONFIG, decay_all=False))
    for name, theta in expected.items():
        decay = 0.2 if name in decayed else 0.0
        m = v = u = 0.0
        for t, grads in enumerate(gradients(), 1):
            g, lr = grads[name] * 0.5, 0.05 * scale(t)
            if optimizer == "adamw":
                m, v = 0.9 * m + 0.1 * g, 0.95 * v + 0.05 * g * g
                direction = m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.95**t)) + 1e-3)
            else:
                direction = u = 0.7 * u + g
            theta = theta - lr * (direction + decay * theta)
        expected[name] = theta
    close(ours(engine, spec, grad_scale=0.5), expected)


def orthogonalised(g: np.ndarray) -> np.ndarray:
    """Newton-Schulz by what it does to singular values: five odd polynomials, one after another."""
    left, s, right = np.linalg.svd(g, full_matrices=False)
    s = s / (np.linalg.norm(g) + 1e-7)
    for _ in range(5):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    return left * s @ right


@pytest.mark.parametrize("shape", [(4, 4), (8, 3), (3, 8), (1, 5), (32, 16)])
def test_newton_schulz_works_on_the_singular_values(shape: tuple[int, int]) -> None:
    g = np.random.default_rng(0).normal(size=shape)
    out = newton_schulz(g)
    np.testing.assert_allclose(out, orthogonalised(g), rtol=1e-9, atol=1e-12)
    s = np.linalg.svd(out, compute_uv=False)
    assert 0.3 < s.min() <= s.max() < 1.3


def blocks_of(name: str, per_head: bool) -> list[slice]:
    """The rows of each matrix stacked in a parameter of CONFIG, written out."""
    E, H, K, F, D = 4, 4, 2, 24, 16
    if "qkv" in name:
        ends = range(E, (H + 2 * K) * E + 1, E) if per_head else [H * E, (H + K) * E, 8 * E]
    elif "ffn.in" in name:
        ends = [F, 2 * F]
    else:
        ends = [D]
    starts = [0, *ends[:-1]]
    return [slice(a, b) for a, b in zip(starts, ends, strict=True)]


@pytest.mark.parametrize("per_head", [False, True])
def test_muon_is_its_formula_on_each_stacked_matrix_alone(
    engine: TapeEngine, per_head: bool
) -> None:
    spec = TrainSpec(
        optimizer="muon", muon_lr=0.03, muon_momentum=0.9, muon_per_head=per_head, weight_decay=0.1
    )
    result = ours(engine, spec)
    assert set(muon_splits(CONFIG, per_head)) == {
        n for n, s in parameter_shapes(CONFIG).items() if n.startswith("blocks.") and len(s) == 2
    }
    start = init_parameters(CONFIG, 1, np.float64)
    expected = {}
    for name in muon_splits(CONFIG, per_head):
        parts = []
        for rows in blocks_of(name, per_head):
            W, u = start[name][rows], 0.0
            for t, grads in enumerate(gradients(), 1):
                g, lr = grads[name][rows], 0.03 * scale(t)
                u = 0.9 * u + g
                W = W * (1 - lr * 0.1)
                W = W - lr * math.sqrt(max(1, W.shape[0] / W.shape[1])) * orthogonalised(
                    g + 0.9 * u
                )
            parts.append(W)
        expected[name] = np.concatenate(parts)
        assert expected[name].shape == start[name].shape
    close(result, expected, 1e-9)


def test_muon_steps_the_rest_with_adamw(engine: TapeEngine) -> None:
    muon = ours(engine, TrainSpec(optimizer="muon", lr=0.01, weight_decay=0.2))
    adamw = ours(engine, TrainSpec(optimizer="adamw", lr=0.01, weight_decay=0.2))
    for name in parameter_shapes(CONFIG):
        same = (muon[name] == adamw[name]).all()
        assert same == (name not in muon_splits(CONFIG, False)), name


def test_muon_is_torch_s_as_far_as_its_bfloat16_goes(engine: TapeEngine) -> None:
    torch = pytest.importorskip("torch")
    if not hasattr(torch.optim, "Muon"):
        pytest.skip("this torch has no Muon")
    spec = TrainSpec(optimizer="muon", muon_lr=0.02, weight_decay=0.1)
    names = [n for n in muon_splits(CONFIG, False) if "out" in n]  # one matrix each
    make = lambda groups, lr: torch.optim.Muon(groups, lr, momentum=0.95)  # noqa: E731
    expected = theirs(make, 0.02, names, set(names), 0.1)
    result, start = ours(engine, spec), init_parameters(CONFIG, 1, np.float64)
    for name in names:
        moved, their_move = result[name] - start[name], expected[name] - start[name]
        cosine = (moved * their_move).sum() / np.linalg.norm(moved) / np.linalg.norm(their_move)
        assert cosine > 0.999
        assert np.linalg.norm(moved) == pytest.approx(np.linalg.norm(their_move), rel=0.02)


@pytest.mark.parametrize("optimizer", ["adamw", "sgd", "muon"])
def test_torch_buffers_are_stepped_by_the_same_code(engine: TapeEngine, optimizer: str) -> None:
    pytest.importorskip("torch")
    spec = TrainSpec(optimizer=optimizer, lr=0.01, momentum=0.9)
    close(ours(pick_engine("torch-cpu"), spec), ours(engine, spec), 1e-9)


@pytest.mark.parametrize("optimizer", ["adamw", "sgd", "muon"])
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_chunks_and_workers_do_not_change_a_bit(
    engine: TapeEngine, optimizer: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = TrainSpec(optimizer=optimizer, lr=0.01)
    expected = ours(engine, spec)
    monkeypatch.setattr(optim.chunks, "__defaults__", (size * 50,))
    monkeypatch.setattr(device.os, "cpu_count", lambda: 5)
    result = ours(pick_engine("cpu"), spec)
    assert all((result[name] == expected[name]).all() for name in expected)


@pytest.mark.parametrize("preset", PRESETS)
def test_muon_splits_cover_each_matrix_once(preset: str) -> None:
    config = ModelConfig.from_preset(preset, vocab_size=300)
    for per_head in (False, True):
        for name, parts in muon_splits(config, per_head).items():
            assert sum(parts) == parameter_shapes(config)[name][0]


def test_the_gradient_norm_is_global() -> None:
    arrays = {"a": np.full((3, 4), 2.0, np.float32), "b": np.full(700_000, 1.0, np.float32)}
    parameters = Parameters(arrays, lambda flat: flat, ["b"])
    parameters.grad[...] = parameters.flat
    assert grad_norm(parameters) == pytest.approx(math.sqrt(12 * 4 + 700_000), rel=1e-7)
    assert list(parameters.shapes) == ["b", "a"], "what is decayed lies first"
    assert parameters.n_decayed == 700_000
    norms = parameters.grad_norms()
    assert norms == {"a": pytest.approx(math.sqrt(48)), "b": pytest.approx(math.sqrt(700_000))}
