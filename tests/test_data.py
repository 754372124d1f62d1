"""Corpora: reading, splitting, encoding once, and batches that are a function of the step."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperkiln.cache import cache_folder
from paperkiln.errors import PaperkilnError
from paperkiln.spec import DataSpec, parse_spec
from paperkiln.train import data
from paperkiln.train.data import (
    batch,
    check_lengths,
    encode_corpus,
    load_corpus,
    read_text,
    train_tokenizer,
)
from paperkiln.train.run import prepare
from paperkiln.train.tokenizers import Tokenizer, byte_tokenizer

LINE = "A line of about thirty letters.\n"


@given(
    n=st.integers(3, 400), T=st.integers(1, 64), rows=st.integers(1, 9),
    seed=st.integers(0, 2**63 - 1), step=st.integers(1, 10**9),
)  # fmt: skip
@settings(max_examples=200)
def test_a_batch_is_a_pure_function_and_stays_in_bounds(
    n: int, T: int, rows: int, seed: int, step: int
) -> None:
    T = min(T, n - 1)
    tokens = np.arange(n, dtype=np.uint16)
    ids, targets = batch(tokens, seed, step, rows, T)
    assert ids.shape == targets.shape == (rows, T)
    assert ids.dtype == targets.dtype == np.int64
    assert (targets == ids + 1).all(), "the target is the next token, rows are contiguous"
    assert (np.diff(ids, axis=1) == 1).all()
    assert ids.min() >= 0
    assert targets.max() <= n - 1
    again = batch(tokens, seed, step, rows, T)
    assert all((a == b).all() for a, b in zip((ids, targets), again, strict=True))


def test_every_window_can_be_drawn_the_first_and_the_last_too() -> None:
    starts = {int(i) for step in range(60) for i in batch(np.arange(9), 0, step, 8, 4)[0][:, 0]}
    assert starts == {0, 1, 2, 3, 4}


def test_steps_and_seeds_draw_different_batches() -> None:
    tokens = np.arange(10_000)
    drawn = [batch(tokens, seed, step, 4, 8)[0] for seed in range(3) for step in range(20)]
    assert len({ids.tobytes() for ids in drawn}) == len(drawn)


@given(
    text=st.text(st.sampled_from("ab\n"), min_size=1, max_size=300),
    fraction=st.floats(0.001, 0.999),
)
@settings(max_examples=200)
def test_a_split_loses_and_doubles_nothing(
    tmp_path_factory: pytest.TempPathFactory, text: str, fraction: float
) -> None:
    path = tmp_path_factory.getbasetemp() / "split.txt"
    text = "x" + text
    path.write_bytes(text.encode())
    parts = load_corpus(DataSpec(corpus=str(path), val_fraction=fraction))
    assert parts.train + parts.validation == text
    assert parts.validation
    held = 1 - int(len(text) * (1 - fraction)) / len(text)
    share = len(parts.validation) / len(text)
    assert held - 1e-9 <= share <= 2 * held + 1e-9


def test_the_split_is_at_a_line_s_end_and_is_stated(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(LINE * 1000)
    parts = load_corpus(DataSpec(corpus=str(path)))
    assert (parts.train, parts.validation) == (LINE * 950, LINE * 50)
    assert parts.split == f"last 5.0 % of {path}"
    parts = load_corpus(DataSpec(corpus=str(path), val_fraction=0.5))
    assert parts.train == LINE * 500


def test_a_text_without_lines_is_split_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for head in ("", "Title\n"):
        path.write_text(head + "x" * 1000)
        parts = load_corpus(DataSpec(corpus=str(path)))
        assert 50 <= len(parts.validation) <= 51, "not nearly everything"


def test_a_validation_file_is_kept_apart(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("train " * 100)
    (tmp_path / "v.txt").write_text("validation " * 50)
    spec = DataSpec(corpus=str(tmp_path / "t.txt"), validation=str(tmp_path / "v.txt"))
    parts = load_corpus(spec)
    assert (parts.train, parts.validation) == ("train " * 100, "validation " * 50)
    assert "v.txt" in parts.split
    words = train_tokenizer(spec.model_copy(update={"tokenizer": "word"}), parts.train)
    assert words.unknown_pieces("validation"), "the tokenizer never saw the held-out text"
    assert not words.unknown_pieces("train")


def test_the_hash_tells_where_the_split_is(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(LINE * 100)
    one, two = (
        load_corpus(DataSpec(corpus=str(tmp_path / "a.txt"), val_fraction=f)) for f in (0.1, 0.2)
    )
    assert one.sha256 != two.sha256
    assert (one.train + one.validation) == (two.train + two.validation)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"one\r\ntwo\r\n", "one\ntwo\n"),
        (b"one\rtwo", "one\ntwo"),
        (b"\xef\xbb\xbfbom", "bom"),
        ("żółć 🦙 日本\r\n".encode(), "żółć 🦙 日本\n"),
        (b"a" * (1 << 16) + "é".encode(), "a" * (1 << 16) + "é"),
        (b"tab\tand\x0bodd\x0c", "tab\tand\x0bodd\x0c"),
    ],
)
def test_text_is_read_as_utf8_with_plain_newlines(tmp_path: Path, data: bytes, text: str) -> None:
    (tmp_path / "a.txt").write_bytes(data)
    assert read_text(tmp_path / "a.txt") == text


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (None, "no such file"),
        (b"", "empty"),
        (b" \n\t\n", "empty"),
        (b"\x7fELF\x00\x00", "binary"),
        (b"caf\xe9 au lait", "not UTF-8 at byte 3"),
        ("é".encode("utf-16"), "UTF-16"),
        (b"\xef\xbb\xbf\r\n", "empty"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path: Path, data: bytes | None, part: str) -> None:
    path = tmp_path / "a.txt"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(PaperkilnError, match=part) as error:
        read_text(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_an_endless_device_is_refused() -> None:
    with pytest.raises(PaperkilnError, match="has no end"):
        read_text(Path("/dev/zero"))


def test_a_folder_is_its_text_files_in_name_order(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name, text in {"b.txt": "B", "a.txt": "A\r\n", "sub/c.txt": "C", "d.bin": "\0"}.items():
        (tmp_path / name).write_bytes(text.encode())
    assert read_text(tmp_path) == "A\n\nB\nC"
    (tmp_path / "empty").mkdir()
    with pytest.raises(PaperkilnError, match=r"no \.txt files"):
        read_text(tmp_path / "empty")


def test_tinychat_is_generated_the_same_each_time() -> None:
    spec = DataSpec(dialogues=50)
    one, two = load_corpus(spec), load_corpus(spec)
    assert one == two
    assert one.train.count("<|user|>") >= 40
    assert load_corpus(spec.model_copy(update={"seed": 2})).sha256 != one.sha256


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PAPERKILN_CACHE", str(tmp_path / "cache"))
    assert cache_folder() == tmp_path / "cache"
    return tmp_path / "cache"


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record every text that is really encoded."""
    texts: list[str] = []
    encode = Tokenizer.encode

    def spy(self: Tokenizer, text: str, **options: bool) -> list[int]:
        texts.append(text)
        return encode(self, text, **options)

    monkeypatch.setattr(Tokenizer, "encode", spy)
    return texts


def test_a_text_is_encoded_once_and_then_mapped(cache: Path, encoded: list[str]) -> None:
    tokenizer = byte_tokenizer()
    expected = [*tokenizer.encode("one"), 0]
    encoded.clear()
    for _ in range(3):
        ids = encode_corpus("one<|endoftext|>", tokenizer)
        assert ids.tolist() == expected
        assert isinstance(ids, np.memmap)
        assert ids.dtype == np.uint16
    assert encoded == ["one<|endoftext|>"]
    encode_corpus("other", tokenizer)
    assert encoded == ["one<|endoftext|>", "other"], "another text is another file"
    encode_corpus("other", train_tokenizer(DataSpec(tokenizer="word"), "other"))
    assert len(encoded) == 3, "another tokenizer is another file"
    assert len(list((cache / "tokens").iterdir())) == 3


@pytest.mark.parametrize("damage", [b"", b"\x93NUMPY\x01\x00", b"no array at all"])
def test_a_damaged_token_file_is_made_again(cache: Path, encoded: list[str], damage: bytes) -> None:
    ids = encode_corpus(LINE * 9, byte_tokenizer()).tolist()
    (path,) = (cache / "tokens").iterdir()
    whole = path.read_bytes()
    path.write_bytes(damage)
    assert encode_corpus(LINE * 9, byte_tokenizer()).tolist() == ids
    path.write_bytes(whole[:-5])
    assert encode_corpus(LINE * 9, byte_tokenizer()).tolist() == ids
    assert path.read_bytes() == whole
    assert len(encoded) == 3


def test_a_cache_that_cannot_be_written_is_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("PAPERKILN_CACHE", str(tmp_path / "file"))
    assert encode_corpus("abc", byte_tokenizer()).tolist() == byte_tokenizer().encode("abc")
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_large_vocabulary_needs_four_bytes(cache: Path) -> None:
    class Large:
        vocab_size = 65_537

        def to_json(self) -> dict[str, int]:
            return {"v": 1}

        def encode(self, text: str, specials: bool) -> list[int]:
            return [65_536]

    assert encode_corpus("x", Large()).tolist() == [65_536]


@pytest.mark.parametrize(
    ("n_train", "n_validation", "part"),
    [(9, 2, None), (8, 2, "context_length"), (0, 2, "0 tokens"), (9, 1, "val_fraction"),
     (9, 0, "val_fraction")],
)  # fmt: skip
def test_both_parts_must_hold_a_window(n_train: int, n_validation: int, part: str | None) -> None:
    arguments = np.zeros(n_train), np.zeros(n_validation), 8
    if part is None:
        check_lengths(*arguments)
    else:
        with pytest.raises(PaperkilnError, match=part):
            check_lengths(*arguments)


@pytest.mark.parametrize("tokenizer", ["byte", "bpe", "word"])
def test_the_bytes_of_the_validation_text_are_counted_in_the_text(
    tmp_path: Path, tokenizer: str
) -> None:
    (tmp_path / "t.txt").write_text("some plain words are here. " * 40)
    text = "some unseen żółć words<|endoftext|> are here."
    (tmp_path / "v.txt").write_text(text, encoding="utf-8")
    data = {"corpus": str(tmp_path / "t.txt"), "validation": str(tmp_path / "v.txt")}
    spec = parse_spec({"arch": {"context_length": 8}, "data": data | {"tokenizer": tokenizer}})
    prepared = prepare(spec)
    first = prepared.tokenizer.decode_bytes([int(prepared.tokens.validation[0])])
    assert text.encode().startswith(first)
    assert prepared.tokens.validation_bytes == len(text.encode()) - len(first)


def test_a_vocabulary_may_be_padded_but_not_cut(corpus: Path) -> None:
    values = {"arch": {"vocab_size": 258}, "data": {"corpus": str(corpus), "tokenizer": "byte"}}
    with pytest.raises(PaperkilnError, match=r"258 is smaller than the tokenizer's 259"):
        prepare(parse_spec(values))
    values["arch"]["vocab_size"] = 320
    assert prepare(parse_spec(values)).spec.arch.vocab_size == 320


@pytest.mark.parametrize("kind", ["bpe", "word"])
def test_a_tokenizer_is_learned_once(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "to be or not to be, that is the question\n" * 20
    spec = DataSpec(tokenizer=kind, vocab_size=280)
    learned = train_tokenizer(spec, text)
    (kept,) = (p for p in (cache_folder() / "tokenizers").iterdir()
               if json.loads(p.read_text()) == learned.to_json())  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr(data, f"train_{kind}", None)
        assert train_tokenizer(spec, text).to_json() == learned.to_json()
    kept.write_text("{")
    assert train_tokenizer(spec, text).to_json() == learned.to_json()
    assert json.loads(kept.read_text()) == learned.to_json()
    other = train_tokenizer(spec, text.replace("be", "do"))
    assert other.to_json() != learned.to_json()
