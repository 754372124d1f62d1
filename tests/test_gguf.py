"""GGUF: our files in llama.cpp, and back again; the reader alone is in test_gguf_reader.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from corpora import CORPORA
from llama_cpp import greedy_llama_cpp, llama_cpp, log_probabilities_llama_cpp

from paperkiln.engine import ops
from paperkiln.errors import PaperkilnError
from paperkiln.formats.gguf_io import architecture_of, load_gguf, read_header, why_not_llama_cpp
from paperkiln.formats.gguf_writer import write_gguf
from paperkiln.formats.layout import swap_rotary_pairs
from paperkiln.infer.chat_template import render_chat
from paperkiln.models.config import ModelConfig, parameter_shapes
from paperkiln.models.decoder import Decoder
from paperkiln.train.tokenizers import SPECIALS, Tokenizer, byte_tokenizer, train_bpe, train_word

TEXT = "".join(
    f"The {size} {animal} said: \"I'm here, aren't I?\" and it {verb} {n} times.\n"
    for size in ("small", "tall", "old")
    for animal in ("cat", "dog", "llama 🦙", "café owner")
    for verb in ("ran", "sang", "slept")
    for n in (1, 22, 333)
)
ODD_TEXT = "a  b\r\n\r\n\tc   d\u00a0e ñ 日本語 🦙🦙 don't WE'LL x1y2 <|user|>hi<|endoftext|>  \n"

# init_std 0.2: sharp enough for a greedy text of many different tokens, tied or not.
SMALL: dict[str, Any] = {"d_model": 64, "n_layers": 2, "context_length": 128, "init_std": 0.2}
LLAMA = SMALL | {"n_heads": 8, "n_kv_heads": 2, "d_ff": 172}
GPT2 = SMALL | {"preset": "gpt2-nano", "n_heads": 4}
FOR_LLAMA_CPP: dict[str, dict[str, Any]] = {
    "llama": LLAMA | {"tied_embeddings": False, "n_layers": 3},
    "llama, tied": LLAMA | {"rope_theta": 500.0, "norm_eps": 1e-6},
    "llama, biases": LLAMA | {"bias": True},
    "llama, interleaved": LLAMA | {"rope_layout": "interleaved"},
    "llama, odd sizes": LLAMA | {"d_model": 100, "n_heads": 4, "head_dim": 26, "d_ff": 173},
    "llama, padded": LLAMA | {"vocab_size": 384},
    "gpt2": GPT2 | {"tied_embeddings": False},
    "gpt2, tied": GPT2,
}
FOR_US_ONLY: dict[str, dict[str, Any]] = {
    "swa": LLAMA | {"attention": "swa", "window": 8, "sinks": 1},
    "geglu": LLAMA | {"activation": "geglu"},
    "erf": GPT2 | {"activation": "gelu"},
    "no bias": GPT2 | {"bias": False},
    "post-norm": SMALL | {"preset": "attention-is-all-you-need", "n_heads": 4, "d_ff": 96},
    "alibi": LLAMA | {"positional": "alibi"},
    "grouped gpt2": GPT2 | {"n_kv_heads": 2},
    "wide gpt2": GPT2 | {"head_dim": 32},
    "interleaved swa": LLAMA | {"attention": "swa", "rope_layout": "interleaved"},
}


@pytest.fixture(scope="module")
def bpe() -> Tokenizer:
    return train_bpe(TEXT, 320)


def build(
    fields: dict[str, Any], tokenizer: Tokenizer, seed: int = 0
) -> tuple[ModelConfig, dict[str, np.ndarray]]:
    """A random model whose gains and biases are random too, so that a swap of two shows."""
    config = ModelConfig(**{"vocab_size": tokenizer.vocab_size} | fields)
    rng = np.random.default_rng(seed)
    params = {}
    for name, shape in parameter_shapes(config).items():
        gain = len(shape) == 1 and name.endswith("weight")
        params[name] = (gain + rng.normal(0, config.init_std, shape)).astype(np.float32)
    return config, params


def logits_of(config: ModelConfig, params: dict[str, np.ndarray], ids: list[int]) -> np.ndarray:
    with ops.no_grad():
        return Decoder(config, params, ops).logits(np.array([ids])).data[0]


@pytest.mark.parametrize("name", FOR_LLAMA_CPP)
def test_llama_cpp_computes_what_we_compute(name: str, bpe: Tokenizer, tmp_path: Path) -> None:
    config, params = build(FOR_LLAMA_CPP[name], bpe)
    report = write_gguf(tmp_path / "m.gguf", config, params, bpe)
    assert report.architecture == architecture_of(config) == name.split(",")[0]
    assert report.notes == []

    text = "The small cat said: "
    prompt = bpe.encode(text)
    n_prompt, ours = len(prompt), list(prompt)
    while len(ours) < n_prompt + 64 and ours[-1] != bpe.eos_id:
        ours.append(int(logits_of(config, params, ours)[-1].argmax()))
    assert len(set(ours[n_prompt:])) >= 8, "a greedy text of one token proves nothing"
    all_logits = logits_of(config, params, ours).astype(np.float64)

    # llama.cpp's GELU is a float16 table; everything else is float32 here and there.
    tolerance = 5e-3 if config.norm == "layernorm" else 1e-4
    with llama_cpp(tmp_path / "m.gguf") as post:
        assert greedy_llama_cpp(post, text, 64) == ours[n_prompt:]
        worst = 0.0
        for t in range(n_prompt, len(ours), 9):  # teacher-forced
            logits = all_logits[t - 1] - all_logits[t - 1].max()
            expected = logits - np.log(np.exp(logits).sum())
            found = log_probabilities_llama_cpp(post, ours[:t], config.vocab_size, prompt[0])
            assert np.isfinite(found).all(), "a token without a probability"
            worst = max(worst, np.abs(found - expected).max())
    print(f"{name}: 64 greedy tokens equal llama.cpp's, log p differs by at most {worst:.1e}")
    assert worst <= tolerance


@pytest.mark.parametrize("kind", ["bpe", "byte"])
def test_llama_cpp_gives_our_ids_and_our_chat(kind: str, bpe: Tokenizer, tmp_path: Path) -> None:
    tokenizer = bpe if kind == "bpe" else byte_tokenizer()
    config, params = build(LLAMA, tokenizer)
    write_gguf(tmp_path / "m.gguf", config, params, tokenizer)
    turns = [("user", "hi, who?"), ("assistant", "me."), ("user", "ok <x>")]
    with llama_cpp(tmp_path / "m.gguf") as post:
        for text in (TEXT, ODD_TEXT, *corpus_lines()):
            for specials in (False, True):
                body = {"content": text, "parse_special": specials}
                found = post("/tokenize", body)["tokens"]
                assert found == tokenizer.encode(text, specials=specials)
        messages = [{"role": role, "content": text} for role, text in turns]
        prompt = post("/apply-template", {"messages": messages})["prompt"]
        assert prompt == render_chat(turns, add_generation_prompt=True)


def corpus_lines() -> list[str]:
    """1,000 lines of real text as a few blocks; nothing where the corpora are not at hand."""
    lines: list[str] = []
    for file in sorted(CORPORA.glob("*.txt")):
        lines += file.read_text(encoding="utf-8").splitlines(keepends=True)[:334]
    if not lines:
        print(f"no corpora in {CORPORA}: the tokenizer is compared on made-up text only")
    return ["".join(lines[i : i + 100]) for i in range(0, len(lines), 100)]


@pytest.mark.parametrize("dtype", ["f16", "q8_0"])
@pytest.mark.parametrize("name", ["llama, tied", "gpt2, tied", "llama, odd sizes"])
def test_narrow_files_load_and_talk(name: str, dtype: Any, bpe: Tokenizer, tmp_path: Path) -> None:
    config, params = build(FOR_LLAMA_CPP[name], bpe)
    report = write_gguf(tmp_path / "m.gguf", config, params, bpe, dtype=dtype)
    narrow_config, narrow, _, _ = load_gguf(tmp_path / "m.gguf")
    for key, array in params.items():  # half a step of the block's largest weight, or of f16
        step = {"q8_0": np.abs(array).max() / 127, "f16": np.abs(array).max() / 1024}[dtype]
        assert np.abs(narrow[key] - array).max() <= 0.51 * step + 1e-3 * np.abs(array).max()
    kept = [note.split(" ")[0] for note in report.notes]
    odd = [n for n, t in read_header(tmp_path / "m.gguf").tensors.items() if t.shape[-1] % 32]
    is_matrix = read_header(tmp_path / "m.gguf").tensors
    assert kept == [n for n in odd if dtype == "q8_0" and len(is_matrix[n].shape) == 2]

    prompt = bpe.encode("The small cat said: ")
    expected = logits_of(narrow_config, narrow, prompt)[-1]  # what the narrow weights mean
    with llama_cpp(tmp_path / "m.gguf", exact=False) as post:
        assert len(greedy_llama_cpp(post, prompt, 16)) >= 1
        found = log_probabilities_llama_cpp(post, prompt, config.vocab_size, prompt[0])
    expected = expected - expected.max()
    expected -= np.log(np.exp(expected).sum())
    # llama.cpp also rounds activations, to 8 bits with q8_0.
    assert np.abs(found - expected).max() < {"f16": 0.05, "q8_0": 1.0}[dtype]
    assert found.argmax() == expected.argmax()


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("swa", "attention exact"), ("geglu", "activation swiglu"), ("erf", "gelu_tanh"),
        ("no bias", "bias True"), ("post-norm", "positional learned"), ("alibi", "positional rope"),
        ("grouped gpt2", "n_kv_heads"), ("wide gpt2", "head_dim"),
    ],
)  # fmt: skip
def test_what_llama_cpp_cannot_run_is_said_before_training(name: str, word: str) -> None:
    config = ModelConfig(**FOR_US_ONLY[name])
    assert architecture_of(config) == "paperkiln"
    assert word in (why_not_llama_cpp(config) or "")
    assert why_not_llama_cpp(ModelConfig(**LLAMA)) is None
    assert "whole-word" in (why_not_llama_cpp(ModelConfig(**LLAMA), "word") or "")


# --- our own reading -------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*FOR_LLAMA_CPP, *FOR_US_ONLY])
def test_a_model_comes_back_exactly(name: str, bpe: Tokenizer, tmp_path: Path) -> None:
    config, params = build((FOR_LLAMA_CPP | FOR_US_ONLY)[name], bpe)
    report = write_gguf(tmp_path / "m.gguf", config, params, bpe, name="a kiln 🦙")
    again, loaded, tokenizer, metadata = load_gguf(tmp_path / "m.gguf")
    assert metadata["general.name"] == "a kiln 🦙"
    ids = bpe.encode("The small cat said: ")
    np.testing.assert_allclose(
        logits_of(again, loaded, ids), logits_of(config, params, ids), atol=2e-5
    )
    assert tokenizer is not None
    assert (tokenizer.tokens, tokenizer.merges) == (bpe.tokens, bpe.merges)
    if report.architecture == "paperkiln":
        assert "own engines only" in report.notes[0]
        assert again == config.model_copy(update={"preset": None})
    same_layout = report.architecture == "paperkiln" or config.rope_layout == "half"
    for key in params if same_layout else ():
        np.testing.assert_array_equal(loaded[key], params[key])


def test_every_tokenizer_comes_back(bpe: Tokenizer, tmp_path: Path) -> None:
    for made in (bpe, byte_tokenizer(), train_word(TEXT, 60)):
        config, params = build(LLAMA | {"vocab_size": 400}, made)
        report = write_gguf(tmp_path / "m.gguf", config, params, made)
        assert report.architecture == ("paperkiln" if made.kind == "word" else "llama")
        _, _, found, metadata = load_gguf(tmp_path / "m.gguf")
        assert found is not None
        assert found.kind == made.kind
        assert found.specials == made.specials
        assert found.encode(ODD_TEXT, specials=True) == made.encode(ODD_TEXT, specials=True)
        tokens = metadata["tokenizer.ggml.tokens"]
        assert len(tokens) == len(set(tokens)) == 400
        assert tokens[-1] == "<|pad_399|>"
        types = metadata["tokenizer.ggml.token_type"]
        assert [tokens[i] for i, kind in enumerate(types) if kind == 3] == list(SPECIALS)
        assert [i for i, kind in enumerate(types) if kind == 5] == [*range(made.vocab_size, 400)]


def test_a_foreign_tokenizer_is_not_guessed(bpe: Tokenizer, tmp_path: Path) -> None:
    config, params = build(LLAMA, bpe)
    write_gguf(tmp_path / "m.gguf", config, params, bpe)
    path = tmp_path / "m.gguf"
    path.write_bytes(path.read_bytes().replace(b"gpt-2", b"qwen9"))
    assert load_gguf(path)[2] is None


def test_a_text_ends_where_the_file_says(bpe: Tokenizer, tmp_path: Path) -> None:
    config, params = build(LLAMA, bpe)
    other = Tokenizer("bpe", bpe.tokens, bpe.merges, bpe.specials, ends=[300, 2])
    write_gguf(tmp_path / "m.gguf", config, params, other)
    found = load_gguf(tmp_path / "m.gguf")[2]
    assert (found.eos_id, found.end_ids) == (300, (300,))


@pytest.mark.parametrize(
    ("fields", "said"),
    [  # in float32 each is 1, which no model can have
        ({"dropout": 1 - 1e-9, "attention": "swa"}, "dropout = 1.0: Input should be less than 1"),
        ({"rope_theta": 1 + 1e-9}, "rope_theta = 1.0: Input should be greater than 1"),
    ],
)
def test_a_file_that_we_would_refuse_is_not_written(
    fields: dict[str, Any], said: str, bpe: Tokenizer, tmp_path: Path
) -> None:
    config, params = build(LLAMA | fields, bpe)
    with pytest.raises(PaperkilnError, match=said) as caught:
        write_gguf(tmp_path / "m.gguf", config, params, bpe)
    assert str(caught.value).startswith(f"{tmp_path / 'm.gguf'}: GGUF cannot hold this model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("change", [{"context_length": 77}, {"norm_eps": 1e-3}, {"bias": True}])
def test_a_file_that_would_be_read_as_another_model_is_not_written(
    change: dict[str, Any], bpe: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, params = build(LLAMA, bpe)
    other = config.model_copy(update=change)
    monkeypatch.setattr("paperkiln.formats.gguf_writer.from_metadata", lambda *_: other)
    with pytest.raises(PaperkilnError, match=r"cannot hold this model .*would be read"):
        write_gguf(tmp_path / "m.gguf", config, params, bpe)
    assert not list(tmp_path.iterdir())


def test_equal_input_gives_equal_bytes(bpe: Tokenizer, tmp_path: Path) -> None:
    config, params = build(LLAMA, bpe)
    for name in ("a", "b"):
        write_gguf(tmp_path / name, config, params, bpe, dtype="q8_0")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


def test_rotary_pairs_move_and_move_back() -> None:
    rows = np.arange(2 * 6 * 3).reshape(12, 3)
    there = swap_rotary_pairs(rows, 2, "half")
    assert (there[:6] == rows[[0, 3, 1, 4, 2, 5]]).all()  # pair m, m + 3 -> 2m, 2m + 1
    assert (swap_rotary_pairs(there, 2, "interleaved") == rows).all()
    assert swap_rotary_pairs(rows[:, 0], 2, "half").shape == (12,)  # biases too


def put(path: Path, metadata: dict[str, Any], **tensors: np.ndarray) -> Path:
    writer = gguf.GGUFWriter(path, metadata.pop("general.architecture"))
    for key, value in metadata.items():
        kind = {int: "uint32", float: "float64", str: "string", list: "array"}[type(value)]
        getattr(writer, f"add_{kind}")(key, value)
    for name, array in tensors.items():
        writer.add_tensor(name.replace("__", "."), array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


LLAMA_KEYS: dict[str, Any] = {
    "general.architecture": "llama", "llama.attention.head_count": 2, "llama.block_count": 1,
    "llama.embedding_length": 8, "llama.feed_forward_length": 8, "llama.context_length": 8,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"general.architecture": "mamba"}, "'mamba' is not one of llama, gpt2"),
        ({"llama.block_count": None}, "llama.block_count is missing"),
        ({"llama.rope.scaling.type": "yarn"}, "yarn"),
        ({"llama.rope.dimension_count": 2}, "rotated in part"),
        ({"llama.attention.head_count": [2, 2]}, r"attention.head_count is \[2, 2\]"),
        ({"llama.attention.head_count": 0}, "llama.attention.head_count is 0, not a number of"),
        ({"llama.block_count": 5000}, "n_layers = 5000: Input should be less"),
        ({"llama.embedding_length": 7}, "describes no decoder|are missing"),
        ({"llama.attention.layer_norm_rms_epsilon": 1e300}, "describes no decoder"),
        ({"llama.block_count": 900}, "are missing: blk.0.attn_norm.weight"),
        ({}, "are missing: blk.0.attn_norm.weight"),
        ({"general.architecture": "paperkiln"}, "vocab_size is missing"),
        (
            {"general.architecture": "paperkiln", "paperkiln.vocab_size": 9, "paperkiln.moe": 1},
            "moe: unknown name",
        ),
    ],
)
def test_models_that_are_not_ours_are_refused(
    changed: dict[str, Any], said: str, tmp_path: Path
) -> None:
    keys = {k: v for k, v in (LLAMA_KEYS | changed).items() if v is not None}
    path = put(tmp_path / "m.gguf", keys, token_embd__weight=np.ones((9, 8), "f4"))
    with pytest.raises(PaperkilnError, match=said) as caught:
        load_gguf(path)
    assert str(path) in str(caught.value)


def test_a_shape_that_does_not_fit_is_refused_before_memory_is_taken(tmp_path: Path) -> None:
    keys = {"general.architecture": "paperkiln", "paperkiln.vocab_size": 2_000_000}
    keys |= {"paperkiln.d_model": 65536, "paperkiln.n_heads": 1, "paperkiln.n_layers": 1}
    config = ModelConfig(d_model=65536, n_heads=1, n_layers=1, vocab_size=2_000_000)
    tensors = {name.replace(".", "__"): np.ones(1, "f4") for name in parameter_shapes(config)}
    with pytest.raises(PaperkilnError, match="different models"):
        load_gguf(put(tmp_path / "m.gguf", keys, **tensors))


def test_what_cannot_be_written_is_refused(bpe: Tokenizer, tmp_path: Path) -> None:
    config, params = build(LLAMA, bpe)
    with pytest.raises(PaperkilnError, match="use f32, f16, q8_0"):
        write_gguf(tmp_path / "m.gguf", config, params, bpe, dtype="q4_k")  # type: ignore[arg-type]
    small, few = build(LLAMA | {"vocab_size": 300}, bpe)
    with pytest.raises(PaperkilnError, match="320 tokens and the model 300"):
        write_gguf(tmp_path / "m.gguf", small, few, bpe)
    (tmp_path / "file").touch()
    with pytest.raises(PaperkilnError, match="could not be written"):
        write_gguf(tmp_path / "file" / "m.gguf", config, params, bpe)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_full_disk_leaves_the_old_file(bpe: Tokenizer, tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    config, params = build(LLAMA, bpe)
    write_gguf(tmp_path / "m.gguf", config, params, bpe)
    before = (tmp_path / "m.gguf").read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:  # the kernel then refuses to write on, as it does on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        with pytest.raises(PaperkilnError, match="free some space"):
            write_gguf(tmp_path / "m.gguf", config, params, bpe, name="another")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [p.name for p in tmp_path.iterdir()] == ["m.gguf"]
    assert (tmp_path / "m.gguf").read_bytes() == before


def test_a_weight_too_large_for_f16_stays_f32(bpe: Tokenizer, tmp_path: Path) -> None:
    config, params = build(LLAMA, bpe)
    params["blocks.1.ffn.out.weight"][0, 0] = 7e4
    report = write_gguf(tmp_path / "m.gguf", config, params, bpe, dtype="f16")
    assert report.notes == [
        "blk.1.ffn_down.weight is kept as f32: it holds values beyond 65504, the largest of f16"
    ]
    assert load_gguf(tmp_path / "m.gguf")[1]["blocks.1.ffn.out.weight"][0, 0] == np.float32(7e4)
