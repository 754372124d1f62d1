"""The letters that a paper gives to its dimensions: "hidden size D", "N = 6 identical layers"."""

from __future__ import annotations

import re
from bisect import insort
from collections.abc import Iterator

from paperkiln.papers.document import Document, Text
from paperkiln.papers.numbers.fields import Term, terms

# How much is read, in characters: of a sentence, of a paragraph and of a paper. No real one is
# longer; what is written to take long takes no longer than that.
MAX_SENTENCE, MAX_BLOCK, MAX_PROSE = 2000, 200_000, 1_000_000

# What a letter means beside d_model = 1024 when the paper does not say.
_CUSTOMARY = {"L": "n_layers", "d": "d_model", "D": "d_model", "h": "n_heads"}

_LETTER = r"(\|?[A-Za-zα-ω](?:_\w+)?\|?)"
_AFTER = re.compile(  # "hidden size (D)", "number of layers as L", "hidden size D,"
    rf"\s*(?:(?:as|by|denoted\s+(?:as|by)|is|,)\s*)?[(\s]\s*{_LETTER}(?=\s*(?:[),=.;]|to\b|is\b|and\b|$))"
)
_BEFORE = re.compile(  # "D denotes the hidden size", "D is the hidden size"
    rf"(?<![\w^]){_LETTER}(?:\s*=\s*[\d.,^]+)?\s*"
    r"(?:(?:denotes?|is|be|represents?|stands\s+for|as|:)\s+(?:(?:the|a|its|our)\s+)?|\s(?:the|its|our)\s+)$"
)
_COUNTED = re.compile(  # "N = 6 identical layers"
    r"(?<![\w^/])([A-Za-z])\s*=\s*\d+\s+(?:(?!(?:and|or|with|a|an|the|of)\b)[a-z-]+\s+){0,2}$"
)
_NUMBERED = re.compile(r"\d[\s-]+$")  # "16 heads, D = 128" gives D to something else
_ASSIGNED = re.compile(rf"(?<![\w^.{{/·×]){_LETTER}\s*(?==\s*\d)")
_ALONE = re.compile(rf"(?<![\w^]){_LETTER}(?<![aI])(?!\w)")
_WORDS = frozenset({"a", "i", "I", "is", "as"})
_ROTARY = re.compile(r"\brope\b|\brotary\b", re.IGNORECASE)
_NEAR = 40  # characters between a letter and what it stands for


def bounded(text: Text) -> Text:
    """Return as much of a paragraph as is read: nearly always all of it."""
    return text.slice(0, MAX_BLOCK) if len(text.string) > MAX_BLOCK else text


def defined_symbols(document: Document) -> dict[str, str]:
    """Return the symbols that the paper defines as a field of ours; the first definition holds."""
    symbols: dict[str, str] = {}
    left = MAX_PROSE
    for block in document.prose:
        if left < 0:
            break
        text = bounded(block.text)
        left -= len(text.string)
        for start, end in text.sentences:
            sentence = text.string[start : min(end, start + MAX_SENTENCE)]
            if _ALONE.search(sentence):
                for symbol, field in _definitions(sentence):
                    symbols.setdefault(symbol, field)
    return symbols


def _definitions(string: str) -> Iterator[tuple[str, str]]:
    for term in terms(string):
        if term.field == "n_parameters" or term.strength < 1:
            continue
        before = string[max(term.start - _NEAR, 0) : term.start]
        after = string[term.end : term.end + _NEAR]
        named = None if _NUMBERED.search(before) else _AFTER.match(after)
        for match in (named, _BEFORE.search(before), _COUNTED.search(before)):
            if match and match[1] not in _WORDS and not terms(match[1]):
                yield match[1], term.field


def with_symbols(sentence: str, named: list[Term], symbols: dict[str, str]) -> list[Term]:
    """Return the terms of a sentence with the assignments to symbols among them: L = 24.

    A letter that the paper does not define counts by custom, but only beside other dimensions.
    """
    found = list(named)
    customary = []
    for match in _ASSIGNED.finditer(sentence):
        start, end = match.span(1)
        if any(term.start < end and start < term.end for term in named):
            continue
        if match[1] in symbols:
            insort(found, Term(symbols[match[1]], "size", 1.0, start, end), key=lambda t: t.start)
        elif match[1] == "θ" and _ROTARY.search(sentence):
            insort(found, Term("rope_theta", "size", 1.0, start, end), key=lambda t: t.start)
        elif match[1] in _CUSTOMARY:
            customary.append(Term(_CUSTOMARY[match[1]], "size", 0.0, start, end))
    present = {term.field for term in found}
    if present or len(customary) > 1:
        found += [term for term in customary if term.field not in present]
    return sorted(found, key=lambda term: term.start)
