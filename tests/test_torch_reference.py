"""The benchmark's torch opponent computes our loss and decodes greedily."""

from __future__ import annotations

import numpy as np
import pytest

from paperkiln.engine import ops
from paperkiln.errors import PaperkilnError
from paperkiln.lab.torch_reference import build, generate
from paperkiln.models.config import ModelConfig
from paperkiln.models.decoder import Decoder
from paperkiln.models.init import init_parameters

torch = pytest.importorskip("torch", reason="torch is not installed (the extra `torch`)")

# Large weights: greedy text varies, and attention is not uniform.
SHAPES = {
    "quick": {"d_model": 128, "n_layers": 2, "n_heads": 4, "d_ff": 352, "vocab_size": 259},
    "grouped": {"d_model": 48, "n_heads": 6, "n_kv_heads": 2, "vocab_size": 99, "init_std": 0.3},
    "untied": {"d_model": 32, "tied_embeddings": False, "vocab_size": 50, "init_std": 0.4},
    "wide heads": {"d_model": 32, "head_dim": 20, "rope_theta": 777.0, "vocab_size": 50},
}
shapes = pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))


def batch(config: ModelConfig, B: int = 3, T: int = 40) -> tuple[np.ndarray, np.ndarray]:
    ids = np.random.default_rng(0).integers(0, config.vocab_size, (B, T + 1))
    targets = ids[:, 1:].copy()
    targets[0, :5] = -1
    return ids[:, :-1], targets


@shapes
def test_loss_and_gradients_equal_ours(shape: dict) -> None:
    config = ModelConfig(**shape)
    params, (ids, targets) = init_parameters(config, seed=1), batch(config)
    leaves = {name: ops.tensor(p, requires_grad=True) for name, p in params.items()}
    ours = Decoder(config, leaves, ops).loss(ids, targets)
    ours.backward()
    module = build(config, params)
    theirs = module(torch.from_numpy(ids), torch.from_numpy(targets))
    theirs.backward()
    assert theirs.item() == pytest.approx(ours.item(), rel=1e-5)
    pairs = [
        (leaves["embed.weight"].grad, module.embed.weight.grad),
        (leaves["blocks.0.attn.qkv.weight"].grad, module.blocks[0].qkv.weight.grad),
        (leaves["blocks.1.ffn.in.weight"].grad, module.blocks[1].gate_up.weight.grad),
        (leaves["norm.weight"].grad, module.norm.weight.grad),
    ]
    for a, b in pairs:
        assert np.abs(a - b.numpy()).max() <= 1e-4 * np.abs(a).max()


@shapes
def test_the_cache_does_not_change_the_text(shape: dict) -> None:
    config = ModelConfig(**shape)
    params = init_parameters(config, seed=2)
    model, text = Decoder(config, params, ops), [3, 1, 4, 1, 5]
    for _ in range(30):  # the whole sequence again for each token, on the tape
        text.append(int(model.logits(np.array([text])).data[0, -1].argmax()))
    assert generate(build(config, params), text[:5], 30) == text[5:]
    assert generate(build(config, params), text[:5], 0) == []
    assert generate(build(config, params), text[:1], 1) == [
        int(model.logits(np.array([text[:1]])).data[0, -1].argmax())
    ]


@pytest.mark.parametrize(("prompt", "n"), [([], 3), ([1] * 120, 9)])
def test_a_text_that_does_not_fit_is_refused(prompt: list[int], n: int) -> None:
    config = ModelConfig(**SHAPES["quick"])
    with pytest.raises(PaperkilnError, match="128 positions"):
        generate(build(config, init_parameters(config, seed=0)), prompt, n)


@pytest.mark.parametrize("other", [{"norm": "layernorm"}, {"bias": True}, {"activation": "relu"}])
def test_other_architectures_are_refused_by_name(other: dict) -> None:
    config = ModelConfig(**SHAPES["quick"], **other)
    (name,) = other
    with pytest.raises(PaperkilnError, match=name):
        build(config, init_parameters(config, seed=0))
