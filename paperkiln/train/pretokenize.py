r"""Cut text into pieces before the vocabulary is looked at: one regular expression for each kind.

Standard library only: the browser runs this file. Python's `re` has no \p{L}, so a character
beyond ASCII is first replaced by one that stands for its class: a letter (\p{L}, Unicode's general
categories L*), a number (\p{N}), punctuation (\p{P}), whitespace (White_Space, not Python's own \s,
which also takes \x1c-\x1f) or a symbol, which is all the rest. The pattern cuts that text, and the
cuts are carried over. Classes are those of Python's Unicode table: a character newer than it counts
as a symbol here, and may count as a letter in a library with a newer table; its neighbours are then
cut differently, and no text is lost.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

# The patterns of others, as a tokenizer.json spells them:
# GPT-2's (Radford et al. 2019, released code);
GPT2_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# Llama 3's (Meta 2024, released code), with its \p{N}{1,3}, and Qwen2's, with \p{N}.
_LLAMA3_LIKE = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|{NUMBER}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA3_PATTERN = _LLAMA3_LIKE.replace("{NUMBER}", r"\p{N}{1,3}")
QWEN2_PATTERN = _LLAMA3_LIKE.replace("{NUMBER}", r"\p{N}")
# `word`: a word or one symbol, each with the one space before it; any other whitespace alone.
WORD_PATTERN = r" ?[\p{L}\p{N}']+| ?[^\s\p{L}\p{N}']|\s"

# What stands for a class beyond ASCII: a letter, a number, punctuation, whitespace, a symbol.
_LETTER, _NUMBER, _PUNCTUATION, _SPACE, _SYMBOL = "\xaa\xb2\xa7\xa0\xa6"
_CLASSES = {
    r"\p{L}": f"A-Za-z{_LETTER}", r"\p{N}": f"0-9{_NUMBER}", r"\s": f"\t-\r {_SPACE}",
    r"\p{P}": rf"!-#%-*,-/:;?@\[-\]_{{}}{_PUNCTUATION}",
}  # fmt: skip
_STANDS_FOR = {"L": _LETTER, "N": _NUMBER, "P": _PUNCTUATION}
_WHITE_SPACE = "\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_SAFE_CUT = re.compile(f"(?<=[^\t-\r {_WHITE_SPACE}])[\t-\r {_WHITE_SPACE}]")


class Cut(NamedTuple):
    """How a byte-level BPE cuts its text, and what llama.cpp makes of a file that says so."""

    pattern: str
    ignores_merges: bool = False  # a piece that is a token is taken as it is
    begins: bool = False  # a text begins with the file's BOS unless the file says otherwise


# SmolLM cuts every number off, then by GPT-2's pattern: a space before a number stands alone.
_SMOLLM = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?![^\s\p{N}])|\s+"
# llama.cpp's for a file that names none: runs of punctuation are cut off first, then by GPT-2's
# pattern, then numbers by three digits (src/llama-vocab.cpp, which the names are from too).
_MARKS = r"\p{P}$+<=>^~|"
_DEFAULT = (
    rf"[{_MARKS}]+| ?\p{{L}}+|[0-9]{{3}}|(?:(?![0-9]{{3}})\p{{N}})+| ?[^\s\p{{L}}\p{{N}}{_MARKS}]+"
    rf"|\s+(?![^\s{_MARKS}])|\s+"
)
CUTS = {
    "gpt-2": Cut(GPT2_PATTERN),
    "smollm": Cut(_SMOLLM),
    "llama-bpe": Cut(LLAMA3_PATTERN, ignores_merges=True, begins=True),
    "smaug-bpe": Cut(LLAMA3_PATTERN),
    "qwen2": Cut(QWEN2_PATTERN),
    "default": Cut(_DEFAULT),
}
_SAME = {
    "gpt-2": "mellum trillion", "smollm": "refact starcoder minerva-7b",
    "llama-bpe": "llama3 llama-v3 falcon3 midm-2.0", "qwen2": "megrez deepseek-r1-qwen",
}  # fmt: skip
CUTS |= {name: CUTS[known] for known, names in _SAME.items() for name in names.split()}


class _Kinds(dict):
    """Maps a character's number to that of the one that stands for its class, as it is met."""

    def __missing__(self, number: int) -> int:
        character = chr(number)
        if number < 128:
            found = character
        elif re.fullmatch(f"[{_WHITE_SPACE}]", character):
            found = _SPACE
        else:
            found = _STANDS_FOR.get(unicodedata.category(character)[0], _SYMBOL)
        self[number] = ord(found)
        return self[number]


_KINDS = _Kinds()


def bpe_pieces(text: str, name: str = "gpt-2") -> list[str]:
    """Cut text as the byte-level BPE of that name does; the pieces joined are the text."""
    return _pieces(CUTS[name].pattern, text)


def word_pieces(text: str) -> list[str]:
    """Cut text into words and symbols, each carrying its leading space; joined, they are it."""
    return _pieces(WORD_PATTERN, text)


def _pieces(pattern: str, text: str) -> list[str]:
    find = _compiled(pattern).findall
    if text.isascii():
        return find(text)
    pieces, start = [], 0
    for piece in find(text.translate(_KINDS)):
        end = start + len(piece)
        pieces.append(text[start:end])
        start = end
    return pieces


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Spell the classes out, inside brackets and where they stand alone."""
    parts = re.split(r"(\[\^?|\]|\\p\{.\}|\\[sS])", pattern)
    spelled, inside = "", False
    for part in parts:
        characters = _CLASSES.get(part, part)
        if part == r"\S":
            characters = f"[^{_CLASSES[chr(92) + 's']}]"
        elif part in _CLASSES and not inside:
            characters = f"[{characters}]"
        inside = part.startswith("[") or (inside and part != "]")
        spelled += characters
    return re.compile(spelled)


def blocks(text: str, size: int = 1 << 20) -> Iterator[str]:
    """Cut text into blocks of about `size` characters, only where GPT-2 and `word` cut anyway.

    That is before whitespace that follows a character which is none: so the pieces of the blocks
    are the pieces of the text, and a special token without whitespace is never cut.
    """
    start = 0
    while cut := _SAFE_CUT.search(text, start + size):
        yield text[start : cut.start()]
        start = cut.start()
    if start < len(text):
        yield text[start:]


def byte_alphabet() -> dict[int, str]:
    """Map each byte to the printable character that stands for it in GPT-2's vocabulary files.

    Printable Latin-1 bytes stand for themselves; the others, in order, for U+0100 onwards. In this
    order of the keys the characters ascend, which is the order of the byte tokens' ids.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {b: chr(b) for b in printable} | {b: chr(0x100 + i) for i, b in enumerate(others)}
