r"""Cut text into pieces before the vocabulary is looked at: the patterns of GPT-2 and of `word`.

Standard library only: the browser runs this file. Python's `re` has no \p{L}, so the classes are
spelled out: \p{L} and \p{N} are the Unicode general categories L* and N*, \s is White_Space (not
Python's own \s, which also takes \x1c-\x1f). They hold for every character that Python's Unicode
table assigns; a character newer than that table counts as a symbol here, and may count as a letter
in a library with a newer table: its neighbours are then cut differently, and no text is lost.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import groupby

# GPT-2's pattern (Radford et al. 2019, released code), as every tokenizer.json spells it.
GPT2_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# `word`: a word or one symbol, each with the one space before it; any other whitespace alone.
WORD_PATTERN = r" ?[\p{L}\p{N}']+| ?[^\s\p{L}\p{N}']|\s"

# The same two patterns for Python's `re`, the classes to be filled in.
_GPT2 = "'(?:[sdmt]|ll|ve|re)| ?[{L}]+| ?[{N}]+| ?[^{s}{L}{N}]+|[{s}]+(?![^{s}])|[{s}]+"
_WORD = " ?[{L}{N}']+| ?[^{s}{L}{N}']|[{s}]"
_SAFE_CUT = "(?<=[^{s}])[{s}]"

_ASCII = {"L": "A-Za-z", "N": "0-9", "s": "\t-\r "}
_WHITE_SPACE = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


def gpt2_pieces(text: str) -> list[str]:
    """Cut text by GPT-2's pattern; the pieces joined are the text."""
    return _compiled(_GPT2, text.isascii()).findall(text)


def word_pieces(text: str) -> list[str]:
    """Cut text into words and symbols, each carrying its leading space; joined, they are it."""
    return _compiled(_WORD, text.isascii()).findall(text)


def blocks(text: str, size: int = 1 << 20) -> Iterator[str]:
    """Cut text into blocks of about `size` characters, only where both patterns cut anyway.

    That is before whitespace that follows a character which is none: so the pieces of the blocks
    are the pieces of the text, and a special token without whitespace is never cut.
    """
    start = 0
    safe_cut = _compiled(_SAFE_CUT, text.isascii())
    while cut := safe_cut.search(text, start + size):
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


@cache
def _compiled(pattern: str, ascii_only: bool) -> re.Pattern[str]:
    return re.compile(pattern.format(**(_ASCII if ascii_only else _unicode_classes())))


@cache
def _unicode_classes() -> dict[str, str]:
    # About a third of a second, once, and only for text beyond ASCII.
    majors = {"L": "", "N": ""}
    kinds = ((chr(c), unicodedata.category(chr(c))[0]) for c in range(0x110000))
    for major, run in groupby(kinds, key=lambda kind: kind[1]):
        if major in majors:
            first, *rest = (character for character, _ in run)
            majors[major] += f"{first}-{rest[-1]}" if rest else first
    return majors | {"s": _WHITE_SPACE}
