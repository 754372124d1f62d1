"""The byte-level BPEs of other people's files: the ids of llama.cpp and of `tokenizers`."""

from __future__ import annotations

import json
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import tokenizers as hf
from bpe_files import LLAMA3_TOKENS, SPLITS, TEXT, bpe_keys, train_bpe
from corpora import beginnings
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_cpp import same_ids_there
from sentencepiece_files import write_llama

from paperkiln.errors import PaperkilnError
from paperkiln.formats.gguf_tokenizer import read_tokenizer, tokenizer_metadata, why_none
from paperkiln.train.pretokenize import CUTS, bpe_pieces
from paperkiln.train.tokenizers import Tokenizer

ODD_TEXTS = [
    "", " ", "   ", "\n", "\r\n\r\n", "  \t\n  x", "a\r\n\r\n b", "!\n\n\nx", " !\r\n \r\n  y",
    "don't WE'LL 'tis 'S '' 'Re", "can't1 'll2", "1", "12", "1234567", " 1  22   333", "3.14159",
    "½٣²Ⅷ12345", "1½234", "日本語 テスト、はい。", "e\u0301 é \u0301x \u0301", "🦙👩‍👩‍👧‍👦🏳️‍🌈 🦙",
    "का खि", "a\u00a0b\u3000c\u2028d\u0085e", "a\x1cb\x1d c\x01", "x\u200dy\u180ez\ufeff",
    "$1 `x` <a|b> ^~+ a_b", " \u00a0\n\u3000\n x", "\u0627\u0644\u0633\u0644\u0627\u0645 12",
    "\U0010ffff\ue000", " unmerged unmerged", "<|im_start|>", "x<tool▁call> y<tool▁call>",
    "a" * 300, " " * 50 + "end" + " " * 9, "=" * 40 + "\n" * 9, "0" * 50,
]  # fmt: skip
ALPHABET = "aZsdtT'ʼ  \t\r\n\x1c\x85\u00a0\u3000123٣½²é日e\u0301🦙\u200d!?.$+`|<_-#ªº§¦"
any_text = st.text(max_size=40) | st.text(st.sampled_from(ALPHABET), max_size=40)
# `tokenizers` folds U+017F to s, so that 'ſ is a contraction there; llama.cpp does not.
folded = "\u017f"


@cache
def theirs(cut: str) -> hf.Tokenizer:
    return train_bpe(cut)


@cache
def ours(cut: str) -> Tokenizer:
    tokenizer = read_tokenizer(bpe_keys(theirs(cut), cut))
    assert tokenizer is not None
    return tokenizer


def ids_of(library: hf.Tokenizer, text: str) -> list[int]:
    library.encode_special_tokens = True  # a special string stays text
    return library.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("cut", SPLITS)
class TestLibrary:
    @pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
    def test_odd_texts(self, cut: str, text: str) -> None:
        ids = ours(cut).encode(text)
        assert ids == ids_of(theirs(cut), text)
        assert ours(cut).decode(ids) == text

    @settings(max_examples=300)
    @given(text=any_text)
    def test_any_text(self, cut: str, text: str) -> None:
        text = "".join(c for c in text if c != folded and unicodedata.category(c) != "Cn")
        assert ours(cut).encode(text) == ids_of(theirs(cut), text)

    def test_every_assigned_character(self, cut: str) -> None:
        chain = hf.pre_tokenizers.Sequence(
            [hf.pre_tokenizers.Split(hf.Regex(split), "isolated") for split in SPLITS[cut]]
        )
        unassigned = ("Cn", "Co", "Cs")
        every = [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) not in unassigned]
        for start in range(0, len(every), 4000):
            # Beside letters, digits, symbols and spaces a character shows its class.
            text = "".join(
                f"a{c}1{c}!  {c} '{c}" for c in every[start : start + 4000] if c != folded
            )
            assert bpe_pieces(text, cut) == [piece for piece, _ in chain.pre_tokenize_str(text)]

    def test_real_text(self, cut: str) -> None:
        texts = beginnings(40_000)
        library = train_bpe(cut, 2000, texts[0])
        tokenizer = read_tokenizer(bpe_keys(library, cut))
        for text in (*texts, TEXT):
            assert tokenizer.encode(text) == ids_of(library, text)
            assert tokenizer.decode(tokenizer.encode(text)) == text

    def test_as_a_tokenizer_json_and_back(self, cut: str) -> None:
        if cut == "default":
            with pytest.raises(PaperkilnError, match="export the model as gguf"):
                ours(cut).to_json()
            return
        data = ours(cut).to_json()
        library = hf.Tokenizer.from_str(json.dumps(data))
        again = Tokenizer.from_json(data)
        assert CUTS[again.cut] == CUTS[cut]
        assert again.begin_ids == ours(cut).begin_ids
        for text in (*ODD_TEXTS, TEXT):
            assert ids_of(library, text) == ours(cut).encode(text)
            begun = library.encode(text).ids
            assert (begun or [2]) == ours(cut).begin(ours(cut).encode(text))
            assert again.encode(text) == ours(cut).encode(text)
        assert (again.specials, again.user_defined) == (ours(cut).specials, ours(cut).user_defined)

    def test_as_gguf_and_back(self, cut: str) -> None:
        keys = tokenizer_metadata(ours(cut), 700)
        again = read_tokenizer(keys)
        assert keys["tokenizer.ggml.pre"] == cut
        assert vars(again).keys() == vars(ours(cut)).keys()
        for text in (*ODD_TEXTS, TEXT):
            assert again.encode(text) == ours(cut).encode(text)
        assert again.begin_ids == ours(cut).begin_ids == ((0,) if cut == "llama-bpe" else ())


# ---- llama.cpp


def as_there(keys: dict[str, Any], texts: list[str], path: Path) -> None:
    """Every text has the ids of llama.cpp, alone and with the tokens that begin a prompt."""
    tokenizer = read_tokenizer(keys)
    assert tokenizer is not None
    same_ids_there(tokenizer, texts, write_llama(path, keys, D=32, L=1, H=2, K=2, F=32))


SPECIAL_TEXTS = [
    "<|im_start|>user\nhi there<|im_end|>\n", "a <|im_end|><|im_end|> b<|im_start|", "<tool▁call>",
    TEXT[:400],
]  # fmt: skip


@pytest.mark.parametrize("cut", SPLITS)
def test_ids_are_llama_cpps(cut: str, tmp_path: Path) -> None:
    as_there(bpe_keys(theirs(cut), cut), [*ODD_TEXTS, *SPECIAL_TEXTS], tmp_path / "m.gguf")


@pytest.mark.parametrize("name", sorted(CUTS.keys() - SPLITS.keys()))
def test_other_names_mean_what_they_mean_there(name: str, tmp_path: Path) -> None:
    texts = ["Don't  1234567\r\n\r\n 'S unmerged!\n\n", " \u00a0x½٣²日本"]
    as_there(bpe_keys(theirs("gpt-2"), name), texts, tmp_path / "m.gguf")


@pytest.mark.parametrize(
    ("pre", "changes"),
    [
        (None, {}),
        ("llama-bpe", {"tokenizer.ggml.add_bos_token": False}),
        ("smollm", {"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.bos_token_id": 1}),
    ],
    ids=["none named", "no BOS", "a BOS"],
)
def test_what_a_file_says_beside_its_cut(
    pre: str | None, changes: dict[str, Any], tmp_path: Path
) -> None:
    library = train_bpe("llama-bpe", specials=LLAMA3_TOKENS)
    texts = ["It's 1234567!!\n\n unmerged", "<|begin_of_text|>x<|eot_id|>"]
    as_there(bpe_keys(library, pre, **changes), texts, tmp_path / "m.gguf")


# ---- the rest


def test_a_token_beyond_merges() -> None:
    keys = bpe_keys(theirs("llama-bpe"), "llama-bpe")
    unmerged = keys["tokenizer.ggml.tokens"].index("Ġunmerged")
    assert ours("llama-bpe").encode("an unmerged") != ours("smaug-bpe").encode("an unmerged")
    assert ours("llama-bpe").encode(" unmerged") == [unmerged]
    assert unmerged not in ours("smaug-bpe").encode(" unmerged")


def test_a_lone_surrogate_is_a_question_mark() -> None:
    for cut in SPLITS:
        assert ours(cut).decode(ours(cut).encode("a\ud800b")) == "a?b"


@pytest.mark.parametrize("text", ["ab" * 200_000, " " * 400_000, "1" * 400_000, "é" * 400_000])
def test_long_runs_are_not_quadratic(text: str) -> None:
    for cut in SPLITS:
        assert "".join(bpe_pieces(text, cut)) == text


@pytest.mark.parametrize("pre", ["deepseek-v3", "GPT-2", "", 7])
def test_a_cut_that_is_not_known(pre: Any) -> None:
    keys = bpe_keys(theirs("gpt-2"), pre)
    if pre == "":  # as llama.cpp reads it
        assert read_tokenizer(keys).cut == "default"
        return
    assert read_tokenizer(keys) is None
    assert f"'gpt2', cut as '{pre}'" in why_none(keys)
    assert "llama-bpe" in why_none(keys)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("merges", ["a"]), ("merges", ["a b c"]), ("merges", [1]), ("merges", ["zzz q"]),
        ("token_type", [9] * 3), ("token_type", ["x"] * 600), ("token_type", None),
        ("tokens", ["a"] * 600), ("tokens", 5), ("bos_token_id", 600), ("bos_token_id", None),
        ("bos_token_id", "0"),
    ],
)  # fmt: skip
def test_damaged_ones_are_none(key: str, value: Any) -> None:
    keys = bpe_keys(theirs("llama-bpe"), "llama-bpe") | {f"tokenizer.ggml.{key}": value}
    assert read_tokenizer({k: v for k, v in keys.items() if v is not None}) is None
