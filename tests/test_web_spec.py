"""The spec builder's Python: checks by field, costs, and a picture of what is built."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from paperkiln.errors import PaperkilnError
from paperkiln.models.config import PRESETS, ModelConfig, count_parameters
from paperkiln.models.cost import train_flops_per_token, train_memory_bytes
from paperkiln.spec import RunSpec, json_schema
from paperkiln.web.diagram import draw, short
from paperkiln.web.spec import check, schema


def errors(values: dict[str, Any]) -> dict[str, str]:
    return {".".join(e["path"]): e["message"] for e in check(values)["errors"]}


def test_the_schema_is_that_of_the_spec() -> None:
    assert schema() == {"schema": json_schema(), "presets": PRESETS}
    json.dumps(schema())


def test_a_good_spec_comes_back_resolved() -> None:
    answer = check({"arch": {"preset": "llama-tiny"}})
    assert answer["errors"] == []
    assert answer["spec"]["arch"]["d_ff"] == 384
    assert answer["folder"] == "runs/run"
    json.dumps(answer)


@pytest.mark.parametrize("preset", PRESETS)
def test_what_a_run_costs(preset: str) -> None:
    values = {"arch": {"preset": preset}, "train": {"batch": 4, "accum": 2, "steps": 7}}
    arch = ModelConfig(preset=preset, vocab_size=1024)  # the most that the spec's tokenizer learns
    cost = check(values)["estimate"]
    assert cost["vocabulary"] == RunSpec.model_validate(values).data.vocab_size == 1024
    assert cost["tokens_per_step"] == 4 * 2 * arch.context_length
    assert cost["tokens"] == 7 * cost["tokens_per_step"]
    assert cost["parameters"] == cost["weights_bytes"] / 4 == count_parameters(arch)
    assert cost["flops"] == train_flops_per_token(arch) * cost["tokens"]
    assert cost["memory_bytes"] == train_memory_bytes(arch, 4, cost["parameters"])
    assert cost["seconds"] == pytest.approx(cost["flops"] / 100e9)
    assert check(values, gflops=50)["estimate"]["seconds"] == pytest.approx(cost["flops"] / 50e9)


def test_what_to_know_before_a_run() -> None:
    said = check({"train": {"warmup_steps": 5, "steps": 5}, "arch": {"activation": "geglu"}})
    assert ["llama.cpp" in note for note in said["notes"]] == [True, False]
    assert "the peak learning rate is never held" in said["notes"][1]
    said = check({"train": {"warmup_steps": 4, "steps": 5}, "export": {"gguf": None}})
    assert said["notes"] == []


def test_errors_stand_at_their_field() -> None:
    assert errors({"train": {"lr": "fast"}}) == {"train.lr": "Input should be a valid number"}
    assert errors({"train": {"rate": 1}}) == {"train.rate": "There is no field of this name."}
    assert errors({"version": 2}) == {"version": "Input should be 1"}
    assert "unknown preset" in errors({"arch": {"preset": "gpt9"}})["arch.preset"].lower()


def test_a_rule_over_several_fields_stands_at_one_that_was_set() -> None:
    assert "arch.d_model" in errors({"arch": {"d_model": 130}})
    assert "arch.n_heads" in errors({"arch": {"n_heads": 3}})
    assert "arch.n_kv_heads" in errors({"arch": {"n_kv_heads": 3}})
    assert "arch.head_dim" in errors({"arch": {"head_dim": 3}})


@pytest.mark.parametrize("gflops", [1e-320, 1e300])
def test_a_rate_that_no_machine_has_is_refused(gflops: float) -> None:
    with pytest.raises(PaperkilnError, match="no machine's rate"):
        check({}, gflops)


@pytest.mark.parametrize("values", [[], "x", None, 3])
def test_what_is_no_object_is_refused(values: Any) -> None:
    with pytest.raises(PaperkilnError, match="JSON object"):
        check(values)


@pytest.mark.parametrize("values", [{"arch": []}, {"arch": None}, {"train": 3}, {"data": "x"}])
def test_sections_of_a_wrong_kind_are_errors(values: dict[str, Any]) -> None:
    assert set(errors(values)) == set(values)


def test_what_llama_cpp_cannot_open_is_said() -> None:
    assert check({"arch": {"preset": "llama-tiny"}})["notes"] == []
    (note,) = check({"arch": {"activation": "geglu"}})["notes"]
    assert "llama.cpp" in note


# --- the picture ------------------------------------------------------------------------------

FLAVOURS: list[dict[str, Any]] = [
    {"norm_placement": "post", "norm": "layernorm", "bias": True},
    {"positional": "learned", "dropout": 0.1},
    {"positional": "alibi", "attention": "swa", "window": 32, "sinks": 2},
    {"positional": "sinusoidal", "scale_embeddings": True, "tied_embeddings": False},
    {"n_kv_heads": 1, "n_layers": 1000, "activation": "squared_relu"},
    {"n_kv_heads": 2, "positional": "none"},
]


@pytest.mark.parametrize("fields", [{"preset": name} for name in PRESETS] + FLAVOURS)
def test_the_picture_is_whole_and_counts_every_parameter(fields: dict[str, Any]) -> None:
    config = ModelConfig(**{"vocab_size": 1024} | fields)
    drawn = draw(config)
    svg = ElementTree.fromstring(drawn["svg"])
    assert f"{count_parameters(config):,} parameters" in drawn["words"]
    texts = [element.text for element in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert f"× {config.n_layers:,}" in texts
    width, height = map(float, svg.attrib["viewBox"].split()[2:])
    for box in svg.iter("{http://www.w3.org/2000/svg}rect"):
        x, y, w, h = (float(box.attrib[name]) for name in ("x", "y", "width", "height"))
        assert x >= 0
        assert x + w <= width
        assert y + h <= height


def test_the_picture_says_what_is_chosen() -> None:
    words = draw(ModelConfig(vocab_size=512, **FLAVOURS[2]))["words"]
    for part in ("Sliding window 32 + 2 sinks", "ALiBi", "SwiGLU", "2 blocks"):
        assert part in words
    assert "GQA" in draw(ModelConfig(vocab_size=9, n_kv_heads=2))["words"]
    assert "the embedding, transposed" in words


def test_pre_and_post_norm_are_drawn_apart() -> None:
    pre = draw(ModelConfig(vocab_size=9))["words"]
    post = draw(ModelConfig(vocab_size=9, norm_placement="post"))["words"]
    assert pre.index("RMSNorm") < pre.index("Attention")
    assert post.index("RMSNorm") > post.index("Attention")


@pytest.mark.parametrize(
    ("n", "text"), [(7, "7"), (65_536, "65.5k"), (1.2e6, "1.2M"), (3e12, "3T")]
)
def test_counts_in_three_digits(n: float, text: str) -> None:
    assert short(int(n)) == text
