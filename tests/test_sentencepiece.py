"""The SentencePiece tokenizer: its ids against the sentencepiece library and llama.cpp."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from corpora import beginnings
from hypothesis import given
from hypothesis import strategies as st
from llama_cpp import same_ids_there
from sentencepiece_files import train_vocabulary, vocabulary_keys, write_llama

from paperkiln.errors import PaperkilnError
from paperkiln.formats.gguf_tokenizer import read_tokenizer, tokenizer_metadata
from paperkiln.infer.stream import TextStream
from paperkiln.train.sentencepiece import SentencePiece
from paperkiln.train.tinychat import corpus_text

TEXT = "".join(
    f"The {size} {animal} said: \"I'm here, aren't I?\" and it {verb} {n} times.  So\tit goes…\n"
    for size in ("small", "tall", "old", "größte")
    for animal in ("cat", "dog", "llama 🦙", "café owner", "日本の猫")
    for verb in ("ran", "sang", "slept")
    for n in (1, 22, 333)
) + corpus_text(300, 1)
ODD_TEXTS = [
    "", " ", "   ", "a", " a", "a ", "a  b   c", "\n", "\t\r\n\n x", "▁a▁", "<s>", "</s>a<unk>",
    "<0x0A>", "\x00\x01", "日本語の文章です。",
    "🦙👩‍👩‍👧‍👦🏳️‍🌈", 
    "e\u0301 \u00e9 \u212b \ufb01 ﷺ", "a\u00a0b\u2003c\u200bd\ufeff",
    "\u0627\u0644\u0633\u0644\u0627\u0645 \u05e9\u05dc\u05d5\u05dd", "\U0010ffff\ue000", "x" * 300,
    "Don't WE'LL 3.14159 == !!??", "The tall cat said: größte llama 🦙 333",
    " " * 50 + "end" + " " * 9,
]  # fmt: skip


def tokenizer_of(keys: dict[str, Any]) -> SentencePiece:
    found = read_tokenizer(keys)
    assert isinstance(found, SentencePiece)
    return found


@pytest.fixture(scope="module")
def theirs() -> Any:
    return train_vocabulary(TEXT, 480)


@pytest.fixture(scope="module")
def ours(theirs: Any) -> SentencePiece:
    return tokenizer_of(vocabulary_keys(theirs))


class TestIds:
    @pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
    def test_odd_texts(self, text: str, ours: SentencePiece, theirs: Any) -> None:
        ids = ours.encode(text)
        assert ids == theirs.encode(text)
        assert ours.decode(ids) == text.replace("▁", " ")

    @given(st.text(max_size=60) | st.text(st.sampled_from(" ▁aeht.\nlé🦙"), max_size=200))
    def test_any_text(self, ours: SentencePiece, theirs: Any, text: str) -> None:
        assert ours.encode(text) == theirs.encode(text)
        assert ours.decode(ours.encode(text)) == text.replace("▁", " ")

    def test_a_lone_surrogate_is_a_question_mark(self, ours: SentencePiece) -> None:
        assert ours.decode(ours.encode("a\ud800b")) == "a?b"

    def test_real_text(self, ours: SentencePiece, theirs: Any) -> None:
        texts = beginnings(50_000)
        learned = train_vocabulary(texts[0], 2000)
        for tokenizer, library in (
            (ours, theirs),
            (tokenizer_of(vocabulary_keys(learned)), learned),
        ):
            for text in texts:
                ids = tokenizer.encode(text)
                assert ids == library.encode(text)
                assert tokenizer.decode(ids) == text

    @pytest.mark.parametrize(
        "options",
        [
            {"split_by_whitespace": False}, {"byte_fallback": False},
            {"add_dummy_prefix": False}, {"split_digits": True}, {"max_sentencepiece_length": 3},
        ],
        ids=["pieces of several words", "unknown", "no space first", "digits", "short"],
    )  # fmt: skip
    def test_other_vocabularies(self, options: dict[str, Any]) -> None:
        library = train_vocabulary(TEXT, 430, **options)
        space_first = options.get("add_dummy_prefix", True)
        keys = vocabulary_keys(library, **{"tokenizer.ggml.add_space_prefix": space_first})
        tokenizer = tokenizer_of(keys)
        for text in (*ODD_TEXTS, TEXT):
            assert tokenizer.encode(text) == library.encode(text)

    def test_equal_scores_merge_from_the_left(self) -> None:
        tokens = ["<unk>", "<s>", "</s>", "a", "aa", "▁"]
        tokenizer = SentencePiece(tokens, [0, 0, 0, -1, -1, -1], [2, 3, 3, 1, 1, 1], ends=[2])
        assert tokenizer.encode("aaa") == [5, 4, 3]

    def test_as_llama_cpp_gives_them(self, tmp_path: Path) -> None:
        user_defined = ["<|sep|>", "@@", "@@@"]
        library = train_vocabulary(TEXT, 480, user_defined_symbols=user_defined)
        keys = vocabulary_keys(library, user_defined=user_defined)
        tokenizer = tokenizer_of(keys)
        texts = [
            *ODD_TEXTS,
            "x @@ y@@@@<|sep|>hi <|sep|>",
            "a</s>b<s> c</s>",
            "<|sep|><s>",
            TEXT[:900],
        ]
        sent = [text for text in texts if "\x00" not in text]
        same_ids_there(tokenizer, sent, write_llama(tmp_path / "m.gguf", keys))


class TestText:
    def test_bytes_stream_token_by_token(self, ours: SentencePiece) -> None:
        text = "größer 🦙 日 e\u0301"
        stream = TextStream(ours)
        pieces = [stream.push(i) for i in ours.encode(text)] + [stream.flush()]
        assert "".join(pieces) == " " + text  # what follows a prompt keeps its space
        assert not any("\ufffd" in piece for piece in pieces)

    def test_specials_are_hidden_or_kept(self, ours: SentencePiece) -> None:
        ids = ours.begin(ours.encode("a cat</s>", specials=True))
        assert ids[0] == 1
        assert ids[-1] == ours.eos_id == 2
        assert ours.decode(ids) == "a cat"
        assert ours.decode(ids, keep_specials=True) == "<s> a cat</s>"
        assert ours.begin(ids) == ids
        assert ours.begin([]) == [1]

    def test_no_text_becomes_a_control_token(self, ours: SentencePiece) -> None:
        for text in ("</s>", "<s>", "<unk>", "a</s></s>", "<0x00>"):
            assert not {0, 1, 2} & set(ours.encode(text))
            assert ours.decode(ours.encode(text)) == text

    def test_an_id_outside_is_refused(self, ours: SentencePiece) -> None:
        with pytest.raises(PaperkilnError, match="outside the vocabulary of 480"):
            ours.decode([480])

    def test_a_megabyte_without_a_space_is_not_quadratic(self, ours: SentencePiece) -> None:
        text = "the" * 100_000
        assert ours.decode(ours.encode(text)) == text


class TestFiles:
    def test_gguf_metadata_and_back(self, ours: SentencePiece, theirs: Any) -> None:
        keys = tokenizer_metadata(ours, 500)
        again = tokenizer_of(keys)
        assert len(keys["tokenizer.ggml.tokens"]) == len(keys["tokenizer.ggml.scores"]) == 500
        assert vars(again).keys() == vars(ours).keys()
        assert (again.tokens, again.types, again.begin_ids, again.end_ids) == (
            ours.tokens, ours.types, ours.begin_ids, ours.end_ids
        )  # fmt: skip
        assert again.encode(TEXT) == theirs.encode(TEXT)

    def test_it_is_not_written_as_a_tokenizer_json(
        self, ours: SentencePiece, tmp_path: Path
    ) -> None:
        with pytest.raises(PaperkilnError, match="GGUF only"):
            ours.save(tmp_path / "tokenizer.json")
        assert not list(tmp_path.iterdir())

    def test_a_second_end(self, theirs: Any) -> None:
        keys = vocabulary_keys(theirs, **{"tokenizer.ggml.eot_token_id": 300})
        assert tokenizer_of(keys).end_ids == (2, 300)
        keys = vocabulary_keys(theirs, **{"tokenizer.ggml.add_bos_token": False})
        assert tokenizer_of(keys).begin([7]) == [7]

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("tokens", None), ("tokens", "text"), ("tokens", [1, 2]), ("tokens", []),
            ("scores", None), ("scores", [0.0]), ("scores", ["a"] * 480),
            ("scores", [float("nan")] * 480), ("token_type", [3] * 5), ("token_type", [9] * 480),
            ("token_type", ["x"] * 480), ("eos_token_id", 480), ("eos_token_id", -1),
            ("eos_token_id", "2"), ("bos_token_id", 10**9), ("bos_token_id", "1"),
        ],
    )  # fmt: skip
    def test_damaged_ones_are_none(self, key: str, value: Any, theirs: Any) -> None:
        keys = vocabulary_keys(theirs) | {f"tokenizer.ggml.{key}": value}
        assert read_tokenizer({k: v for k, v in keys.items() if v is not None}) is None

    @pytest.mark.parametrize("kind", [1, 3, 4, 5, 6])
    def test_any_type_of_all_tokens(self, kind: int, theirs: Any) -> None:
        keys = vocabulary_keys(theirs) | {"tokenizer.ggml.token_type": [kind] * 480}
        if tokenizer := read_tokenizer(keys):
            tokenizer.decode(tokenizer.encode("any text </s>", specials=True))
