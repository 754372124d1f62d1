"""ember, the second inference engine, against the numpy decoder and llama.cpp; under wasmtime."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from ember_host import (
    BYTES,
    GOLDEN,
    GOLDEN_GGUF,
    Wasmtime,
    ember_tokens,
    modules,
    numpy_tokens,
    open_in_ember,
    write_model,
)
from llama_cpp import greedy_llama_cpp, llama_cpp
from scipy.special import erf

from paperkiln.infer import ember as host
from paperkiln.infer.ember import Ember
from paperkiln.infer.load import load_run
from paperkiln.infer.sampling import GREEDY
from paperkiln.models.config import PRESETS
from paperkiln.train.tokenizers import train_word

__all__ = ["modules"]  # a fixture

# The largest difference allowed between two engines' logits, which lie between -10 and 10. With
# q8_0 weights the engine rounds activations to 16 bits as well.
TOLERANCE = {"f32": 1e-3, "f16": 1e-3, "q8_0": 2e-3}
SMALL: dict[str, Any] = {"d_model": 32, "n_layers": 2, "n_heads": 4, "d_ff": 64}

FLAVOURS: dict[str, list[dict[str, Any]]] = {
    "norm": [{"norm": "rmsnorm"}, {"norm": "layernorm"}],
    "placement": [{"norm_placement": "pre"}, {"norm_placement": "post"}],
    "bias": [{"bias": False}, {"bias": True}],
    "activation": [
        {"activation": a}
        for a in "relu gelu gelu_tanh silu squared_relu swiglu geglu reglu".split()
    ],
    "positional": [
        {"positional": "learned"}, {"positional": "sinusoidal"}, {"positional": "none"},
        {"positional": "alibi"}, {"positional": "rope", "rope_theta": 500.0},
        {"positional": "rope", "rope_layout": "interleaved"},
    ],
    "attention": [
        {}, {"attention": "swa", "window": 8}, {"attention": "swa", "window": 5, "sinks": 3},
        {"attention": "swa", "window": 1, "sinks": 1},
    ],
    "heads": [
        {}, {"n_kv_heads": 2}, {"n_kv_heads": 1}, {"n_heads": 6, "n_kv_heads": 3, "head_dim": 10},
        {"n_heads": 3, "head_dim": 64},
    ],
    "sizes": [{}, {"d_model": 64, "d_ff": 96}, {"d_model": 40, "d_ff": 50}],
    "head": [{"tied_embeddings": True}, {"tied_embeddings": False}],
    "scale": [{"scale_embeddings": False}, {"scale_embeddings": True}],
    "context": [{"context_length": 40}, {"context_length": 37}],
    "dtype": [{"dtype": "f32"}, {"dtype": "f16"}, {"dtype": "q8_0"}],
}  # fmt: skip


def covering(options: dict[str, list[Any]], rng: Random) -> list[dict[str, Any]]:
    """Return combinations in which every two values of every two options meet."""
    names = list(options)
    pairs = {
        ((a, i), (b, j))
        for a, b in itertools.combinations(names, 2)
        for i in range(len(options[a]))
        for j in range(len(options[b]))
    }
    found = []
    while pairs:
        (a, i), (b, j) = min(pairs)
        tries = []
        for _ in range(40):
            picks = {name: rng.randrange(len(options[name])) for name in names} | {a: i, b: j}
            met = pairs & set(itertools.combinations(picks.items(), 2))
            tries.append((len(met), sorted(picks.items())))
        picks = dict(max(tries)[1])
        pairs -= set(itertools.combinations([(n, picks[n]) for n in names], 2))
        found.append({k: v for n in names for k, v in options[n][picks[n]].items()})
    return found


COMBINATIONS = covering(FLAVOURS, Random(0))


def step_by_step(model: Ember, ids: list[int]) -> np.ndarray:
    """Return the logits after every token, read one at a time from an empty context."""
    model.keep_common([-1])
    logits = []
    for token in ids:
        model.read([token])
        logits.append(model.logits())
    return np.array(logits, np.float32)


def check_logits(path: Path, modules: list[Path], tolerance: float) -> float:
    """Compare every position's logits and 64 greedy tokens; return the largest difference."""
    theirs = load_run(path)
    n = min(theirs.config.context_length, 128)
    ids = Random(1).choices(range(theirs.tokenizer.vocab_size), k=n)
    expected = theirs.decoder.prefill(ids, theirs.decoder.new_cache(), all_logits=True)
    expected = expected[:, : theirs.tokenizer.vocab_size]
    text = numpy_tokens(theirs, ids[:9], 64, GREEDY)
    worst = 0.0
    for module in modules:
        ours = open_in_ember(module, path)
        found = step_by_step(ours, ids)
        worst = max(worst, float(np.abs(found - expected).max()))
        assert ember_tokens(ours, ids[:9], 64, GREEDY) == text
        # Blocks give the bits that single tokens give.
        ours.keep_common([-1])
        ours.read(ids)
        assert np.array_equal(np.float32(ours.logits()), found[-1])
    assert worst < tolerance
    return worst


class TestTheModule:
    def test_it_is_small_and_imports_nothing(self, modules: list[Path]) -> None:
        import wasmtime

        for path in modules:
            assert path.stat().st_size <= 100_000
            module = wasmtime.Module.from_file(wasmtime.Engine(), str(path))
            assert not module.imports

    def test_functions_keep_their_stated_error(self, modules: list[Path]) -> None:
        machine = Wasmtime(modules[0])
        xs = np.linspace(-700, 0, 1001)
        found = np.array([machine.call("ember_exp", x) for x in xs])
        assert np.abs(found / np.exp(xs) - 1).max() < 1e-15
        assert machine.call("ember_exp", -1e300) == 0
        assert machine.call("ember_exp", -math.inf) == 0
        xs = np.concatenate([np.linspace(0, 50, 1001), np.geomspace(50, 2**24 - 1, 1001)])
        for cosine, exact in enumerate((np.sin, np.cos)):
            found = np.array([machine.call("ember_sine", x, cosine) for x in xs])
            assert np.abs(found - exact(xs)).max() < 1e-9

    @pytest.mark.parametrize("build", [0, 1], ids=["plain", "relaxed"])
    def test_activations(self, modules: list[Path], build: int) -> None:
        machine = Wasmtime(modules[build])
        x = np.concatenate(
            [np.linspace(-12, 12, 4000), [0, -0.0, 1e-20, -1e-20, 80, -80, 3e4, -3e4]]
        )
        x = x.astype(np.float32).reshape(-1, 4)
        at = machine.call("ember_reserve", 64)
        wide = x.astype(np.float64).ravel()
        gelu = wide * (1 + erf(wide / math.sqrt(2))) / 2
        inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
        exact = [
            np.maximum(wide, 0), gelu, wide / 2 * (1 + np.tanh(inner)),
            wide / (1 + np.exp(-np.maximum(wide, -700))), np.maximum(wide, 0) ** 2,
        ]  # fmt: skip
        for kind, y in enumerate(exact):
            found = []
            for four in x:
                machine.write(at, four.tobytes())
                machine.call("ember_activate", at, kind)
                found.append(np.frombuffer(machine.read(at, 16), np.float32))
            np.testing.assert_allclose(np.concatenate(found), y, rtol=1e-6, atol=1e-6)


class TestAgainstNumpy:
    def test_the_golden_string(self, modules: list[Path]) -> None:
        for module in modules:
            model = open_in_ember(module, GOLDEN_GGUF)
            ids = model.tokenizer.encode(GOLDEN["prompt"])
            *_, last = host.generate(model, ids, max_new_tokens=len(GOLDEN["ids"]), sampling=GREEDY)
            assert last.result.ids == GOLDEN["ids"]
            assert last.result.text == GOLDEN["text"]

    @pytest.mark.parametrize("preset", PRESETS)
    def test_presets(self, preset: str, modules: list[Path], tmp_path: Path) -> None:
        path = write_model(tmp_path, preset=preset)
        worst = check_logits(path, modules, TOLERANCE["f32"])
        print(f"{preset}: largest difference of a logit {worst:.1e}")

    @pytest.mark.parametrize("fields", COMBINATIONS, ids=range(len(COMBINATIONS)))
    def test_flavours(self, fields: dict[str, Any], modules: list[Path], tmp_path: Path) -> None:
        path = write_model(tmp_path, **SMALL | fields)
        worst = check_logits(path, modules, TOLERANCE[fields["dtype"]])
        print(f"{worst:.1e} {fields}")

    @pytest.mark.parametrize("dtype", ["f16", "q8_0"])
    def test_stored_smaller(self, dtype: str, modules: list[Path], tmp_path: Path) -> None:
        for preset in ("gpt2-nano", "llama-tiny"):
            path = write_model(tmp_path, dtype=dtype, preset=preset)
            worst = check_logits(path, modules, TOLERANCE[dtype])
            print(f"{preset} {dtype}: largest difference of a logit {worst:.1e}")

    def test_rows_beyond_the_tokenizer_are_never_chosen(
        self, modules: list[Path], tmp_path: Path
    ) -> None:
        path = write_model(tmp_path, **SMALL, vocab_size=300, context_length=40)
        check_logits(path, modules[:1], TOLERANCE["f32"])
        assert open_in_ember(modules[0], path).n_choices == BYTES.vocab_size

    def test_whole_words(self, modules: list[Path], tmp_path: Path) -> None:
        words = train_word("the cat sat on the mat , said the cat", 40)
        path = write_model(tmp_path, words, **SMALL, context_length=40)
        check_logits(path, modules[:1], TOLERANCE["f32"])


@pytest.mark.parametrize("build", [0, 1], ids=["plain", "relaxed"])
@pytest.mark.parametrize("preset", ["gpt2-nano", "llama-tiny"])
def test_llama_cpp_chooses_the_same(
    preset: str, build: int, modules: list[Path], tmp_path: Path
) -> None:
    path = write_model(tmp_path, preset=preset)
    ours = open_in_ember(modules[build], path)
    prompt = ours.tokenizer.encode("Once upon a time")
    with llama_cpp(path) as post:
        theirs = greedy_llama_cpp(post, prompt, 64)
    assert ember_tokens(ours, prompt, 64, GREEDY)[: len(theirs)] == theirs
    assert len(theirs) >= 40
