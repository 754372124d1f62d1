"""The golden model: one greedy string from every engine and every file that can hold it.

tests/golden/make.py trained it. The string guards the tokenizer, attention with grouped heads,
the rotation's layout and sign, the exports and the readers at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_cpp import greedy_llama_cpp, llama_cpp

from paperkiln.engine import ops
from paperkiln.formats.export import export_model
from paperkiln.infer.generate import complete
from paperkiln.infer.load import LoadedModel, load_run
from paperkiln.infer.sampling import GREEDY
from paperkiln.lab.fingerprint import fingerprint
from paperkiln.models.decoder import Decoder

HERE = Path(__file__).parent / "golden"
GGUF = HERE / "golden.gguf"
GOLDEN: dict[str, Any] = json.loads((HERE / "golden.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return load_run(GGUF)


def greedy(next_logits: Callable[[list[int]], np.ndarray], prompt: list[int], n: int) -> list[int]:
    """Decode without a cache: every token from a whole forward pass."""
    ids = list(prompt)
    for _ in range(n):
        ids.append(int(next_logits(ids).argmax()))
    return ids[len(prompt) :]


def decoder_string(model: LoadedModel, F: Any) -> str:
    decoder = Decoder(model.config, model.params, F)

    def next_logits(ids: list[int]) -> np.ndarray:
        with F.no_grad():
            return F.to_numpy(decoder.logits(np.array([ids])))[0, -1]

    prompt = model.tokenizer.encode(GOLDEN["prompt"])
    return model.tokenizer.decode(greedy(next_logits, prompt, len(GOLDEN["ids"])))


def generated(model: LoadedModel) -> str:
    n = len(GOLDEN["ids"])
    return complete(
        model.decoder, model.tokenizer, GOLDEN["prompt"], max_new_tokens=n, sampling=GREEDY
    ).text


def test_the_string_is_worth_guarding(model: LoadedModel) -> None:
    assert model.config.n_kv_heads < model.config.n_heads
    assert model.config.positional == "rope"
    assert len(GOLDEN["ids"]) >= 64
    assert len(set(GOLDEN["ids"])) >= 30
    assert fingerprint(model.params) == GOLDEN["fingerprint"]
    assert model.tokenizer.decode(GOLDEN["ids"]) == GOLDEN["text"]


def test_the_tape(model: LoadedModel) -> None:
    assert decoder_string(model, ops) == GOLDEN["text"]


def test_the_compiled_tape(model: LoadedModel) -> None:
    from paperkiln.engine import kernels

    if reason := kernels.unavailable():
        pytest.skip(f"cpu-fast: {reason}")
    from paperkiln.engine import fast_ops

    assert decoder_string(model, fast_ops) == GOLDEN["text"]


def test_torch(model: LoadedModel) -> None:
    pytest.importorskip("torch", reason="torch is not installed (the extra `torch`)")
    from paperkiln.engine import torch_ops

    assert decoder_string(model, torch_ops) == GOLDEN["text"]


def test_the_cached_decoder_on_the_gguf(model: LoadedModel) -> None:
    assert generated(model) == GOLDEN["text"]


@pytest.mark.parametrize("form", ["gguf", "hf"])
def test_written_again_and_reloaded(form: str, tmp_path: Path) -> None:
    out = tmp_path / ("again.gguf" if form == "gguf" else "hf")
    export_model(GGUF, form, "f32", str(out))
    again = load_run(out)
    assert fingerprint(again.params) == GOLDEN["fingerprint"]
    assert generated(again) == GOLDEN["text"]
    if form == "gguf":
        assert out.read_bytes()[:4] == b"GGUF"
        assert again.config == load_run(GGUF).config


def test_transformers(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="the extra `hf` is not installed")
    import torch

    export_model(GGUF, "hf", "f32", str(tmp_path / "hf"))
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "hf")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    inputs = tokenizer(GOLDEN["prompt"], return_tensors="pt")
    with torch.no_grad():
        out = model.generate(
            **inputs, max_new_tokens=len(GOLDEN["ids"]), do_sample=False, use_cache=True
        )
    assert tokenizer.decode(out[0, inputs["input_ids"].shape[1] :]) == GOLDEN["text"]


def test_llama_cpp(model: LoadedModel) -> None:
    with llama_cpp(GGUF) as post:
        ids = greedy_llama_cpp(post, GOLDEN["prompt"], len(GOLDEN["ids"]))
    assert ids == GOLDEN["ids"]
    assert model.tokenizer.decode(ids) == GOLDEN["text"]
