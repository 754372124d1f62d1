"""The parameter count of a paper's model, held against our decoder, torch and transformers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperkiln.models import config as models
from paperkiln.models.config import PRESETS, ModelConfig
from paperkiln.papers.emit.counting import count_parameters

TINY: dict[str, Any] = {"d_model": 32, "n_layers": 3, "n_heads": 4, "d_ff": 80, "vocab_size": 50}


def counted(config: ModelConfig) -> int:
    """Count a model of ours from its dimensions."""
    count = count_parameters(
        d_model=config.d_model, n_layers=config.n_layers, n_heads=config.n_heads,
        n_kv_heads=config.n_kv_heads, head_dim=config.head_dim, d_ff=config.d_ff,
        vocab_size=config.vocab_size, gated=config.gated, tied=config.tied_embeddings,
        bias=config.bias, norm=config.norm, norm_placement=config.norm_placement,
        learned_positions=config.context_length if config.positional == "learned" else 0,
    )  # fmt: skip
    assert count is not None
    assert count.active == count.total
    return count.total


@pytest.mark.parametrize("name", PRESETS)
def test_presets_count_as_their_tensors_do(name: str) -> None:
    config = ModelConfig.from_preset(name, vocab_size=1000)
    assert counted(config) == models.count_parameters(config)


@st.composite
def configs(draw: st.DrawFn) -> ModelConfig:
    kv_heads = draw(st.integers(1, 4))
    return ModelConfig(
        d_model=draw(st.integers(1, 90)), n_layers=draw(st.integers(1, 5)),
        n_kv_heads=kv_heads, n_heads=kv_heads * draw(st.integers(1, 4)),
        head_dim=2 * draw(st.integers(1, 20)), d_ff=draw(st.integers(1, 300)),
        vocab_size=draw(st.integers(2, 900)), context_length=draw(st.integers(2, 64)),
        norm=draw(st.sampled_from(["layernorm", "rmsnorm"])),
        norm_placement=draw(st.sampled_from(["pre", "post"])),
        activation=draw(st.sampled_from(["relu", "swiglu", "gelu", "reglu"])),
        positional=draw(st.sampled_from(["learned", "rope", "alibi"])),
        bias=draw(st.booleans()), tied_embeddings=draw(st.booleans()),
    )  # fmt: skip


@given(configs())
def test_any_decoder_counts_as_its_tensors_do(config: ModelConfig) -> None:
    assert counted(config) == models.count_parameters(config)


@pytest.mark.parametrize(
    ("dimensions", "published"),
    [
        # Radford et al. 2019, the smallest model: 124,439,808 in the released file.
        ({"d_model": 768, "n_layers": 12, "n_heads": 12, "d_ff": 3072, "vocab_size": 50257,
          "bias": True, "norm": "layernorm", "learned_positions": 1024}, 124_439_808),
        # Touvron et al. 2023, table 2: 6.7B.
        ({"d_model": 4096, "n_layers": 32, "n_heads": 32, "d_ff": 11008, "vocab_size": 32000,
          "gated": True, "tied": False}, 6_738_415_616),
        # Jiang et al. 2024: 46.7B in all, 12.9B of them for a token.
        ({"d_model": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "d_ff": 14336,
          "vocab_size": 32000, "gated": True, "tied": False, "n_experts": 8,
          "n_experts_active": 2}, 46_702_792_704),
    ],
)  # fmt: skip
def test_published_models(dimensions: dict[str, Any], published: int) -> None:
    count = count_parameters(**dimensions)
    assert count is not None
    assert count.total == published
    if "n_experts" in dimensions:
        assert round(count.active / 1e9, 1) == 12.9


def test_embedding_is_tables_and_an_untied_head() -> None:
    tied = count_parameters(**TINY, learned_positions=10)
    untied = count_parameters(**TINY, learned_positions=10, tied=False)
    assert tied
    assert untied
    assert (tied.embedding, untied.embedding) == (32 * 60, 32 * 110)
    assert tied.total - tied.embedding == untied.total - untied.embedding


def test_heads_matter_only_where_they_change_the_width() -> None:
    without = {k: v for k, v in TINY.items() if k != "n_heads"}
    assert count_parameters(**without) == count_parameters(**TINY)
    assert count_parameters(**without, n_kv_heads=2) is None
    assert count_parameters(**without, head_dim=8) is None


@pytest.mark.parametrize("unknown", ["d_model", "n_layers", "d_ff", "vocab_size"])
def test_an_unknown_dimension_gives_no_count(unknown: str) -> None:
    assert count_parameters(**TINY | {unknown: None}) is None


def test_heads_that_do_not_divide_give_no_count() -> None:
    assert count_parameters(**TINY | {"n_heads": 5}) is None
    assert count_parameters(**TINY | {"n_heads": 5, "head_dim": 8}) is not None


def test_shared_experts_are_always_active() -> None:
    experts = {"n_experts": 8, "n_experts_active": 2, "n_experts_shared": 1, "expert_d_ff": 16}
    count = count_parameters(**TINY | experts)
    assert count
    assert count.total - count.active == 3 * (8 - 2) * (2 * 32 * 16)
    assert count == count_parameters(**TINY | experts | {"d_ff": None})


def test_encoder_and_decoder_count_as_torch_s_transformer() -> None:
    torch = pytest.importorskip("torch", reason="torch counts the encoder-decoder")
    model = torch.nn.Transformer(
        32,
        nhead=4,
        num_encoder_layers=3,
        num_decoder_layers=3,
        dim_feedforward=80,
        batch_first=True,
    )
    count = count_parameters(**TINY, bias=True, norm="layernorm", encoder_decoder=True)
    assert count
    assert count.total - count.embedding == sum(p.numel() for p in model.parameters())
