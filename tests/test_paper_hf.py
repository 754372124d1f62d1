"""What transformers makes of the config.json of a paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from made_papers import LLAMA, QUOTE, VASWANI, paper, papers

from paperkiln.papers.architecture import Architecture, Inheritance, Mention, Scalar, Value
from paperkiln.papers.emit import to_hf


def opened(architecture: Architecture, folder: Path) -> Any:
    """Open the emitted config.json with transformers."""
    reason = "transformers opens config.json"
    transformers = pytest.importorskip("transformers", reason=reason)
    text = json.dumps(to_hf(architecture)[0])
    (folder / "config.json").write_text(text, encoding="utf-8")
    return transformers.AutoConfig.from_pretrained(folder)


@pytest.mark.parametrize(
    ("values", "model_type", "act"),
    [
        (LLAMA, "llama", "silu"),
        (LLAMA | {"activation": "geglu"}, "llama", "gelu"),
        (LLAMA | {"activation": "reglu"}, "llama", "relu"),
        (LLAMA | {"activation": "gated-glu"}, "llama", "silu"),
        (LLAMA | {"attention": "swa", "window": 4096}, "mistral", "silu"),
        (VASWANI, "gpt2", "relu"),
        ({"norm": "layernorm", "activation": "gelu", "positional": "learned"}, "gpt2", "gelu"),
        ({"norm": "layernorm", "positional": "learned"}, "gpt2", "gelu_new"),
        ({"norm": "layernorm", "activation": "silu", "positional": "learned"}, "gpt2", "silu"),
        ({"norm": "layernorm", "activation": "gelu", "positional": "rope"}, "gpt_neox", "gelu"),
        ({"norm": "layernorm", "positional": "rope", "activation": "swiglu"}, "llama", "silu"),
        ({"positional": "rope"}, "llama", "silu"),
        ({}, "llama", "silu"),
    ],
)
def test_transformers_opens_it_with_the_right_activation(
    tmp_path: Path, values: dict[str, Scalar], model_type: str, act: str
) -> None:
    config = opened(paper(**values), tmp_path)
    assert config.model_type == model_type
    assert (config.activation_function if model_type == "gpt2" else config.hidden_act) == act
    if "d_model" in values:
        assert config.hidden_size == values["d_model"]
        assert config.num_hidden_layers == values["n_layers"]
        assert config.num_attention_heads == values["n_heads"]
        assert config.vocab_size == values["vocab_size"]
    if "window" in values:
        assert config.sliding_window == values["window"]


def test_grouped_heads_theta_and_an_untied_head_arrive(tmp_path: Path) -> None:
    config = opened(paper(head_dim=64, **LLAMA), tmp_path)
    assert (config.num_key_value_heads, config.head_dim) == (8, 64)
    assert config.rope_parameters["rope_theta"] == 500000.0
    assert config.tie_word_embeddings is False
    assert config.intermediate_size == 14336
    assert config._paperkiln["not_expressed"] == []


def test_the_provenance_says_what_is_known_and_what_is_not(tmp_path: Path) -> None:
    architecture = paper(**{n: v for n, v in VASWANI.items() if n != "vocab_size"}, n_experts=8)
    architecture.unresolved = {"vocab_size": "not stated"}
    rival = Mention("gelu", 2.0, QUOTE)
    architecture.values["activation"] = Value("relu", "contested", (QUOTE,), runner_up=rival)
    architecture.inherits = Inheritance("GPT-2", "Radford et al. 2019", QUOTE)
    known = opened(architecture, tmp_path)._paperkiln
    assert known["generator"] == "paperkiln"
    assert known["arxiv_id"] == "2401.00001"
    assert known["title"] == "A Paper"
    assert known["family"] == "gpt2"
    assert known["unresolved"] == ["vocab_size"]
    assert known["fields"]["d_model"]["value"] == 512
    assert known["fields"]["d_model"]["evidence"][0]["quote"] == QUOTE.quote
    assert known["fields"]["activation"]["verdict"] == "contested"
    assert known["fields"]["activation"]["runner_up"]["value"] == "gelu"
    assert known["inherits"]["ancestor"] == "GPT-2"
    assert known["defaults_applied"]["vocab_size"] == 50257
    assert known["defaults_applied"]["activation"] == "gelu_tanh"
    assert "d_model" not in known["defaults_applied"]
    lost = " | ".join(known["not_expressed"])
    for what in ("n_experts 8", "positional sinusoidal", "norm_placement post"):
        assert what in lost


@pytest.mark.parametrize(
    ("values", "lost"),
    [
        ({"norm": "layernorm", "positional": "alibi", "activation": "gelu"}, "positional alibi"),
        (LLAMA | {"attention": "mla"}, "attention mla"),
        ({"norm": "layernorm", "activation": "gelu", "positional": "rope", "n_heads": 16,
          "n_kv_heads": 4, "d_model": 1024}, "n_kv_heads other than n_heads"),
        ({"norm": "layernorm", "positional": "learned", "bias": False}, "bias false"),
        ({"d_model": 100, "n_heads": 3}, "n_heads 3, which does not divide d_model 100"),
        ({"norm": "layernorm", "positional": "learned", "head_dim": 96, "d_model": 768,
          "n_heads": 12}, "head_dim 96"),
        (LLAMA | {"activation": "relu"}, "whether the feed-forward is gated: false"),
    ],
)  # fmt: skip
def test_what_the_form_cannot_say_is_listed(
    tmp_path: Path, values: dict[str, Scalar], lost: str
) -> None:
    architecture = paper(**values)
    assert lost in " | ".join(opened(architecture, tmp_path)._paperkiln["not_expressed"])
    assert any("not expressed as" in note and lost in note for note in to_hf(architecture)[1])


@settings(max_examples=60, deadline=None)
@given(papers())
def test_any_paper_becomes_a_config_that_opens(
    tmp_path_factory: pytest.TempPathFactory, architecture: Architecture
) -> None:
    assert opened(architecture, tmp_path_factory.mktemp("hf")).model_type
