"""Scaled rotary positions: the logits of llama.cpp and of transformers, in both our engines."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bpe_files import bpe_keys, train_bpe
from ember_host import ember_tokens, modules, numpy_tokens, open_in_ember
from llama_cpp import greedy_llama_cpp, llama_cpp, log_probabilities_llama_cpp
from sentencepiece_files import write_llama

from paperkiln.engine import fast_ops, ops
from paperkiln.errors import PaperkilnError
from paperkiln.formats.export import export_model
from paperkiln.formats.gguf_writer import write_gguf
from paperkiln.formats.hf import load_hf
from paperkiln.formats.rope_scaling import hf_rope_factors
from paperkiln.infer.load import LoadedModel, load_run
from paperkiln.infer.sampling import GREEDY
from paperkiln.lab.score import score_text
from paperkiln.models.config import ROPE_FACTORS
from paperkiln.models.decoder import Decoder

__all__ = ["modules"]  # a fixture

SHAPE = {"D": 64, "L": 2, "H": 4, "K": 2, "F": 96, "C": 128}
LLAMA3 = {
    "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}  # fmt: skip
FACTORS = np.array(hf_rope_factors(LLAMA3, 10000.0, 16))
RANDOM = np.exp(np.random.default_rng(3).normal(0, 1, 8))
# A tensor rope_freqs.weight, metadata, and what all frequencies are divided by in the end.
FILES: dict[str, tuple[np.ndarray | None, dict[str, Any], np.ndarray]] = {
    "Llama 3": (FACTORS, {}, FACTORS),
    "random": (RANDOM, {}, RANDOM),
    "linear": (None, {"type": "linear", "factor": 4.0}, np.full(8, 4.0)),
    "linear and a tensor": (RANDOM, {"type": "linear", "factor": 4.0}, 4 * RANDOM),
    "a factor alone": (None, {"factor": 4.0}, np.full(8, 4.0)),
    "none": (None, {"type": "none", "factor": 4.0}, np.ones(8)),
}
IDS = [(37 * i + 11) % 400 for i in range(60)]


@cache
def keys() -> dict[str, Any]:
    # Names that llama.cpp takes for no end of a text, or it would stop before the 64 tokens.
    return bpe_keys(train_bpe("llama-bpe", specials=("<a>", "<b>", "<c>")), "llama-bpe")


def write(path: Path, tensor: np.ndarray | None = None, scaling: dict[str, Any] = {}) -> Path:  # noqa: B006
    said = {f"llama.rope.scaling.{name}": value for name, value in scaling.items()}
    return write_llama(path, keys() | said, rope_freqs=tensor, **SHAPE)


def logits_of(model: LoadedModel, ids: list[int] = IDS) -> np.ndarray:
    return model.decoder.prefill(ids, model.decoder.new_cache(), all_logits=True)


@pytest.mark.parametrize("name", FILES)
def test_three_engines_say_the_same(name: str, tmp_path: Path, modules: list[Path]) -> None:
    tensor, scaling, divisors = FILES[name]
    path = write(tmp_path / "m.gguf", tensor, scaling)
    model = load_run(path)
    logits = logits_of(model).astype(np.float64)
    np.testing.assert_allclose(model.params.get(ROPE_FACTORS, np.ones(8)), divisors, rtol=1e-6)
    tokens = numpy_tokens(model, IDS[:40], 64, GREEDY)
    assert len(set(tokens)) >= 8, "a greedy text of one token proves nothing"
    for module in modules:
        ours = open_in_ember(module, path)
        for i, token in enumerate(IDS):
            ours.read([token])
            np.testing.assert_allclose(ours.logits(), logits[i], rtol=0, atol=1e-3)
        assert ember_tokens(ours, IDS[:40], 64, GREEDY) == tokens
    with llama_cpp(path) as post:
        assert greedy_llama_cpp(post, model.tokenizer.begin(IDS[:40]), 64) == tokens
        for t in (20, 60):
            row = logits[t - 1] - logits[t - 1].max()
            found = log_probabilities_llama_cpp(post, IDS[:t], len(row), IDS[0])
            np.testing.assert_allclose(found, row - np.log(np.exp(row).sum()), rtol=0, atol=1e-4)
    if (divisors != 1).any():
        plain = logits_of(load_run(write(tmp_path / "plain.gguf")))
        assert np.abs(plain - logits).max() > 0.1


@pytest.mark.parametrize("scaling", [LLAMA3, {"rope_type": "linear", "factor": 4.0}])
def test_transformers_computes_the_same(scaling: dict[str, Any], tmp_path: Path) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=97, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256,
        initializer_range=0.2, rope_parameters=scaling | {"rope_theta": 500.0},
    )  # fmt: skip
    torch.manual_seed(0)
    theirs = transformers.LlamaForCausalLM(config).eval()
    theirs.save_pretrained(tmp_path)
    ours = load_hf(tmp_path)
    assert ours.params[ROPE_FACTORS].max() == pytest.approx(scaling["factor"])
    ids = [i % 97 for i in IDS]
    with torch.no_grad():
        expected = theirs(torch.tensor([ids])).logits[0].numpy()
    found = logits_of(LoadedModel(ours.config, ours.params, None, {}), ids)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3)
    del ours.params[ROPE_FACTORS]
    plain = logits_of(LoadedModel(ours.config, ours.params, None, {}), ids)
    assert np.abs(plain - expected).max() > 0.1


def test_the_tape_computes_the_same(tmp_path: Path) -> None:
    torch_ops = pytest.importorskip("paperkiln.engine.torch_ops")
    model = load_run(write(tmp_path / "m.gguf", FACTORS))
    params = dict(model.params)
    factors = tuple(params.pop(ROPE_FACTORS).tolist())
    for F in (ops, fast_ops, torch_ops):
        found = Decoder(model.config, params, F, rope_factors=factors).logits(np.array([IDS]))
        np.testing.assert_allclose(np.asarray(found.data)[0], logits_of(model), rtol=0, atol=1e-3)


def test_a_text_is_scored_with_them(tmp_path: Path) -> None:
    path, text = write(tmp_path / "m.gguf", FACTORS), tmp_path / "text.txt"
    text.write_text("The kiln is hot. " * 3)
    model = load_run(path)
    ids = model.tokenizer.begin(model.tokenizer.encode(text.read_text()))
    logits = logits_of(model, ids[:-1]).astype(np.float64)
    nats = np.logaddexp.reduce(logits, axis=1) - logits[range(len(ids) - 1), ids[1:]]
    assert score_text(str(path), str(text))["loss"] == pytest.approx(nats.mean(), rel=1e-5)
    plain = score_text(str(write(tmp_path / "plain.gguf")), str(text))["loss"]
    assert abs(plain - nats.mean()) > 1e-3


@pytest.mark.parametrize("changed", [{}, {"activation": "geglu"}], ids=["llama", "paperkiln"])
def test_exported_again_it_is_the_same_model(
    changed: dict[str, Any], tmp_path: Path, modules: list[Path]
) -> None:
    model = load_run(write(tmp_path / "m.gguf", FACTORS, {"type": "linear", "factor": 2.0}))
    config = model.config.model_copy(update=changed)
    model = LoadedModel(config, model.params, model.tokenizer, {})
    report = write_gguf(tmp_path / "again.gguf", config, model.params, model.tokenizer)
    assert report.architecture == ("paperkiln" if changed else "llama")
    again = load_run(tmp_path / "again.gguf")
    np.testing.assert_array_equal(logits_of(again), logits_of(model))
    ours = open_in_ember(modules[0], tmp_path / "again.gguf")
    ours.read(IDS)
    np.testing.assert_allclose(ours.logits(), logits_of(model)[-1], rtol=0, atol=1e-3)


@pytest.mark.parametrize("kind", ["safetensors", "hf"])
def test_a_format_without_a_place_for_them(kind: str, tmp_path: Path) -> None:
    path = write(tmp_path / "m.gguf", FACTORS)
    with pytest.raises(PaperkilnError, match="scaled, which this format has no place for"):
        export_model(path, kind, "f32", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("tensor", "scaling", "said"),
    [
        (None, {"type": "yarn", "factor": 4.0}, "scaled by 'yarn'"),
        (None, {"type": "longrope"}, "scaled by 'longrope'"),
        (None, {"factor": -2.0}, "factor is -2.0, not a number above 0"),
        (None, {"factor": float("nan")}, "factor is nan"),
        (None, {"factor": "4"}, "factor is '4'"),
        (np.ones(4), {}, r"rope_freqs.weight' has shape \(4,\)"),
        (np.ones((2, 4)), {}, "has shape"),
        (np.zeros(8), {}, "rope_freqs.weight divides by what is not above 0"),
        (-FACTORS, {}, "not above 0"),
        (np.full(8, np.nan), {}, "not above 0"),
    ],
)  # fmt: skip
def test_hostile_files(
    tensor: np.ndarray | None, scaling: dict[str, Any], said: str, tmp_path: Path,
    modules: list[Path],
) -> None:  # fmt: skip
    path = write(tmp_path / "m.gguf", tensor, scaling)
    with pytest.raises(PaperkilnError, match=said):
        load_run(path)
    with pytest.raises(PaperkilnError, match=said):
        open_in_ember(modules[0], path)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"factor": 0}, ValueError), ({"factor": None}, ValueError),
        ({"low_freq_factor": 4.0}, ValueError), ({"high_freq_factor": "4"}, ValueError),
        ({"original_max_position_embeddings": float("nan")}, ValueError),
        ({"rope_type": "yarn"}, KeyError),
    ],
)  # fmt: skip
def test_broken_configs(changed: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        hf_rope_factors(LLAMA3 | changed, 10000.0, 16)
