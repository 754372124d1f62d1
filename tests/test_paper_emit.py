"""What a paper becomes: a run spec, and a script that trains."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_papers import LLAMA, QUOTE, VASWANI, notes_of, paper, papers, spec_of

from paperkiln.models import config as models
from paperkiln.models.config import ModelConfig
from paperkiln.papers.architecture import (
    Architecture,
    Check,
    Evidence,
    Mention,
    Scalar,
    Value,
    Variant,
)
from paperkiln.papers.emit import choices as choosing
from paperkiln.papers.emit import to_python, to_spec
from paperkiln.papers.emit.choices import MODEL_LIMITS, TRAINING, TRAINING_LIMITS, choose
from paperkiln.papers.emit.fit import count, fit, parse_size, shape_of
from paperkiln.spec import DataSpec, TrainSpec
from paperkiln.train.run import run

# --- the run spec -----------------------------------------------------------------------------


@pytest.mark.parametrize("values", [VASWANI, LLAMA], ids=["vaswani", "llama"])
def test_what_is_asserted_is_built(values: dict[str, Scalar]) -> None:
    spec = spec_of(paper(**values))
    for name, value in values.items():
        if name in ModelConfig.model_fields and name != "vocab_size":
            assert getattr(spec.arch, name) == value, name
    assert spec.data.vocab_size == values["vocab_size"]
    assert spec.arch.vocab_size is None
    assert spec.name == "arxiv-2401.00001"


def test_training_facts_are_applied() -> None:
    stated = {
        "optimizer": "adamw", "beta1": 0.9, "beta2": 0.98, "lr": 6e-4, "schedule": "cosine",
        "warmup_steps": 4000, "weight_decay": 0.01, "clip": 0.5, "batch_sequences": 256,
        "steps": 100_000,
    }  # fmt: skip
    train = spec_of(paper(training=stated)).train
    assert train.batch == 256
    for name, value in stated.items():
        if name != "batch_sequences":
            assert getattr(train, name) == value, name


def test_tokens_become_sequences_and_steps() -> None:
    stated = {"batch_tokens": 1_000_000, "tokens": 100_000_000, "warmup_tokens": 5_000_000}
    architecture = paper(training=stated, context_length=1000)
    train = spec_of(architecture).train
    assert (train.batch, train.steps, train.warmup_steps) == (1000, 100, 5)
    assert "batch 1000: the paper's 1000000 tokens, 1,000 each" in notes_of(architecture)


def test_adam_is_adamw_without_decay() -> None:
    train = spec_of(paper(training={"optimizer": "adam"})).train
    assert (train.optimizer, train.weight_decay) == ("adamw", 0)
    assert "optimizer adamw: for the paper's adam" in notes_of(
        paper(training={"optimizer": "adam"})
    )
    assert spec_of(paper(training={"optimizer": "adam", "weight_decay": 0.2})).train.weight_decay


def test_every_field_left_open_is_named() -> None:
    notes = notes_of(Architecture("Nothing"))
    named = set(re.findall(r"\b[a-z]\w*(?= )", notes))
    fields = {
        "d_model", "n_layers", "n_heads", "n_kv_heads", "d_ff", "vocab_size", "context_length",
        "norm", "norm_placement", "activation", "positional", "rope_theta", "attention", "bias",
        "tied_embeddings", "dropout", *TRAINING,
    }  # fmt: skip
    assert fields <= named
    assert spec_of(Architecture("Nothing")).arch == ModelConfig()


def test_a_paper_that_says_all_gets_no_default() -> None:
    training = {
        "optimizer": "adamw", "beta1": 0.9, "beta2": 0.95, "lr": 1e-3, "schedule": "cosine",
        "warmup_steps": 10, "weight_decay": 0.1, "clip": 1.0, "batch_sequences": 4, "steps": 10,
    }  # fmt: skip
    notes = notes_of(paper(training=training, attention="exact", dropout=0.0, **LLAMA))
    assert "default" not in notes


def test_sinusoids_come_with_scaled_embeddings() -> None:
    assert spec_of(paper(**VASWANI)).arch.scale_embeddings
    assert "scale_embeddings true: default" in notes_of(paper(**VASWANI))
    assert not spec_of(paper(**LLAMA)).arch.scale_embeddings


@pytest.mark.parametrize("verdict", ["contested", "unresolved"])
def test_what_is_not_asserted_is_not_applied(verdict: str) -> None:
    architecture = paper(norm="layernorm", positional="learned")
    if verdict == "contested":
        rival = Mention("gelu", 2.0, QUOTE)
        architecture.values["activation"] = Value("relu", "contested", (QUOTE,), runner_up=rival)
        words = "activation gelu_tanh: default, the paper leaves it contested (relu or gelu)"
    else:
        architecture.unresolved["activation"] = "named only as an alternative"
        words = "activation gelu_tanh: default, named only as an alternative"
    assert words in notes_of(architecture)
    assert spec_of(architecture).arch.activation == "gelu_tanh"


def test_a_family_s_name_takes_its_usual_member() -> None:
    architecture = paper()
    architecture.values["activation"] = Value("gated-glu", "family", (QUOTE,))
    assert spec_of(architecture).arch.activation == "swiglu"
    assert "activation swiglu: for the paper's gated-glu" in notes_of(architecture)


@pytest.mark.parametrize(
    ("values", "lost"),
    [
        ({"positional": "relative"}, "positional relative"),
        ({"attention": "mla"}, "attention mla"),
        ({"n_experts": 64, "n_experts_active": 6}, "n_experts_active 6"),
        ({"window": 512}, "window 512, as sliding-window attention is not asserted"),
        ({"residual": "highway"}, "residual highway"),
        ({"rope_theta": 1e6, "positional": "learned"}, "rope_theta 1e+06, as positions are"),
        ({"ssm_state": 16}, "ssm_state 16"),
    ],
)
def test_what_cannot_be_built_is_named(values: dict[str, Scalar], lost: str) -> None:
    notes = notes_of(paper(**values))
    assert f"not built: {lost}" in notes
    spec_of(paper(**values))


def test_experts_become_one_feed_forward_of_their_width() -> None:
    architecture = paper(
        n_experts=64, n_experts_active=6, n_experts_shared=2, expert_d_ff=1408, d_model=2048
    )
    assert spec_of(architecture).arch.d_ff == 8 * 1408
    assert "as wide as the 8 experts of 1408 a token sees" in notes_of(architecture)


@pytest.mark.parametrize(
    ("values", "expected", "note"),
    [
        ({"d_model": 100, "n_heads": 3}, {"head_dim": 32}, "100 is not divisible by n_heads 3"),
        ({"n_heads": 8, "n_kv_heads": 3}, {"n_kv_heads": 8}, "3 does not divide n_heads 8"),
        ({"d_model": 60, "n_heads": 4}, {"head_dim": 16}, "heads of 15 are odd"),
        ({"d_model": 896}, {"n_heads": 14}, "each 64 wide"),
        ({"d_model": 512, "head_dim": 128}, {"n_heads": 4}, "each 128 wide"),
        ({"n_layers": 5000}, {"n_layers": 1000}, "5000 is outside 1 to 1000"),
        ({"d_model": "big"}, {"d_model": 128}, "d_model 128"),
        ({"d_model": math.inf}, {"d_model": 128}, "d_model 128"),
        ({"d_model": 512.0}, {"d_model": 512}, ""),
        ({"attention": "swa", "window": 4096, "context_length": 8192}, {"window": 4096}, ""),
        ({"attention": "swa"}, {"window": 64}, "window 64: default"),
    ],
)
def test_sizes_are_mended_with_a_note(
    values: dict[str, Scalar], expected: dict[str, Any], note: str
) -> None:
    arch = spec_of(paper(**values)).arch
    assert {name: getattr(arch, name) for name in expected} == expected
    assert note in notes_of(paper(**values))


def test_the_vocabulary_is_the_tokenizer_s() -> None:
    assert spec_of(paper(vocab_size=256)).data.vocab_size == 260
    assert "256 is outside 260 to 1e+06" in notes_of(paper(vocab_size=256))
    assert "a tokenizer of at most that many tokens is trained on your text" in notes_of(paper())


def test_notes_tell_of_other_sizes_checks_and_the_stated_count() -> None:
    architecture = paper(**VASWANI)
    architecture.model = "base"
    architecture.variants = [Variant("big", {"d_model": 1024}, QUOTE)]
    architecture.checks = [Check("heads", False, "8 x 63 is not 512"), Check("n", True, "fine")]
    notes = notes_of(architecture)
    assert "from A Paper (arXiv:2401.00001), base; built as a decoder-only" in notes
    assert "not built here: big" in notes
    assert "check failed: 8 x 63 is not 512" in notes
    assert "fine" not in notes
    assert re.search(
        r"n_parameters [\d,]+ with the whole vocabulary; the paper says 65,000,000", notes
    )


@pytest.mark.parametrize(
    ("paper_id", "title", "name"),
    [
        ("hep-th/9901001v2", "x", "arxiv-hep-th-9901001v2"),
        ("", "Attention Is All You Need!", "attention-is-all-you-need"),
        ("", "…", "paper"),
        ("../../etc/passwd", "x", "arxiv-etc-passwd"),
        ("", "y" * 300, "y" * 94),
    ],
)
def test_runs_have_names_that_are_folders(paper_id: str, title: str, name: str) -> None:
    assert spec_of(Architecture(title, paper_id)).name == name


# --- the tables repeated from the spec, so that papers/ runs without pydantic --------------------


@pytest.mark.parametrize(
    ("limits", "model"), [(MODEL_LIMITS, ModelConfig), (TRAINING_LIMITS, TrainSpec)]
)
def test_limits_are_the_spec_s(limits: dict[str, Any], model: type[Any]) -> None:
    for name, limit in limits.items():
        of = DataSpec if name == "vocab_size" else model
        for edge in (limit.low, limit.high):
            value = int(edge) if limit.integer else edge
            n_heads = value if name == "n_kv_heads" else 1
            others = {"n_heads": n_heads, "head_dim": 2, "positional": "none"}
            of.model_validate((others if of is ModelConfig else {}) | {name: value})
        if not limit.integer:
            continue
        bounds = {type(m).__name__: m for m in of.model_fields[name].metadata}
        if bounds:
            assert (bounds["Ge"].ge, bounds["Le"].le) == (limit.low, limit.high), name


def test_defaults_and_words_are_the_spec_s() -> None:
    assert {n: getattr(TrainSpec(), n) for n in TRAINING} == TRAINING
    for name, words in choosing.FLAVORS.items():
        allowed = get_args(ModelConfig.model_fields[name].annotation) or (True, False)
        assert set(words.values()) == set(allowed), name
    for name, words in choosing.TRAINING_FLAVORS.items():
        assert set(words.values()) == set(get_args(TrainSpec.model_fields[name].annotation))


@settings(max_examples=150, deadline=None)
@given(papers(), st.sampled_from([None, "cpu", "50k", "300M"]))
def test_any_paper_becomes_a_spec(architecture: Architecture, size: str | None) -> None:
    spec = spec_of(architecture, size)
    for note in to_spec(architecture, size)[1]:
        assert note.isprintable()
    if size:
        chosen = fit(choose(architecture), parse_size(size))
        counted = count(shape_of(chosen.model), chosen.model)
        whole = spec.arch.model_copy(update={"vocab_size": spec.data.vocab_size})
        assert models.count_parameters(whole) == counted.total


# --- the script -------------------------------------------------------------------------------


def test_the_script_says_where_each_value_stands(tmp_path: Path) -> None:
    script = to_python(paper(attention="mla", **VASWANI))
    assert '    d_model=512,  # model.tex:12 "a width of $512$"' in script
    assert "    bias=True,  # default, the paper does not state it" in script
    assert "# Not built: attention mla." in script
    assert max(map(len, script.splitlines())) <= 100
    path = tmp_path / "model.py"
    path.write_text(script, encoding="utf-8")
    shown = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, check=True, cwd=tmp_path
    ).stdout
    whole = spec_of(paper(**VASWANI)).arch.model_copy(update={"vocab_size": 37000})
    assert f"{models.count_parameters(whole):,} parameters, 6 layers" in shown


def test_the_script_s_spec_is_the_one_that_runs(tmp_path: Path) -> None:
    architecture = paper(**LLAMA)
    names: dict[str, Any] = {"__name__": "script"}
    exec(compile(to_python(architecture, "50k"), "script", "exec"), names)
    spec, emitted = names["spec"], spec_of(architecture, "50k")
    assert spec.arch == emitted.arch
    assert spec.data == emitted.data
    short = {"steps": 3, "eval_every": 3, "warmup_steps": 1}
    spec = spec.model_copy(
        update={
            "out_dir": str(tmp_path / "run"),
            "train": spec.train.model_copy(update=short),
            "data": spec.data.model_copy(update={"dialogues": 300}),
        }
    )
    assert (run(spec) / "model.safetensors").exists()


HOSTILE = 'x\n"""\rimport os\x0c\u2028\u202e</script>\\ {spec} \x00\ud800'


def test_hostile_words_stay_in_comments() -> None:
    quote = Evidence(HOSTILE, 1, 0, 3, HOSTILE, HOSTILE, HOSTILE)
    architecture = Architecture(HOSTILE, HOSTILE, model=HOSTILE)
    architecture.values["d_model"] = Value(256, "used", (quote,))
    architecture.values["attention"] = Value(HOSTILE, "used", (quote,))
    architecture.unresolved["norm"] = HOSTILE
    for i in range(300):
        architecture.values[f"field{i}"] = Value(HOSTILE, "used", (quote,))
    script = to_python(architecture)
    script.encode("utf-8")
    names: dict[str, Any] = {"__name__": "script"}
    exec(compile(script, "script", "exec"), names)
    assert names["model"].d_model == 256
    assert "os" not in names
    assert spec_of(architecture).arch.d_model == 256


def test_papers_need_only_the_standard_library() -> None:
    code = """
import sys
for name in ("numpy", "torch", "pydantic", "requests", "rich"):
    sys.modules[name] = None
from paperkiln.papers.architecture import Architecture
from paperkiln.papers import emit
for out in (emit.to_spec, emit.to_hf, emit.to_python):
    out(Architecture("x"))
"""
    subprocess.run([sys.executable, "-c", code], check=True)
