"""From a match in what a reader sees to a quote in the author's own file."""

from __future__ import annotations

from bisect import bisect_right

from paperkiln.papers.architecture import Evidence
from paperkiln.papers.document import Place, Section, Text

_MAX_ROW = 600  # characters of a table row that are still a quote


def evidence(text: Text, start: int, end: int, section: Section, around: int = 80) -> Evidence:
    """Return the quote of text[start:end) in its sentence, at most `around` characters each side.

    The quote is the source verbatim, macros unexpanded; `reads` is the same stretch as read.
    """
    low, high = sentence_at(text, start)
    low = _word_start(text.string, max(low, start - around), start)
    high = _word_end(text.string, min(max(high, end), end + around), end)
    low, high = _trim(text.string, low, high)
    place = text.place(low, high)
    reads = " ".join(text.string[low:high].split())
    return Evidence(
        place.file, place.line, place.start, place.end, place.quote, reads, section.path
    )


def row_evidence(first: Text, last: Text, section: Section, head: str = "") -> Evidence:
    """Return the quote of a table row from one cell to another, as the author typed it.

    It reads "base | d_model: 512" under the `head` d_model, "Layers: 12" without one.
    """
    begin, end = (_whole(text) for text in (first, last))
    if begin.file != end.file or not begin.start <= end.start < begin.start + _MAX_ROW:
        begin = end
    quote = _source(last)[begin.start : end.end]
    names = [] if begin.start == end.start else [first.string]
    names = [" ".join(name.split()) for name in (*names, head) if name.strip()]
    reads = ": ".join(
        (" | ".join(names), " ".join(last.string.split())) if names else (last.string,)
    )
    return Evidence(begin.file, begin.line, begin.start, end.end, quote, reads, section.path)


def _whole(text: Text) -> Place:
    low, high = _trim(text.string, 0, len(text.string))
    return text.place(low, high)


def _source(text: Text) -> str:
    """Return the whole source file that a text begins in."""
    return text.runs[0].source.text


def sentence_at(text: Text, at: int) -> tuple[int, int]:
    """Return the [start, end) of the sentence that holds the character at `at`."""
    sentences = text.sentences
    i = max(bisect_right(sentences, (at, len(text.string))) - 1, 0)
    return sentences[i] if sentences else (0, len(text.string))


def _word_start(string: str, low: int, start: int) -> int:
    """Return the first word start in [low, start], so that no word is cut in two."""
    while 0 < low < start and not string[low - 1].isspace():
        low += 1
    return low


def _word_end(string: str, high: int, end: int) -> int:
    """Return the last word end in [end, high]."""
    while end < high < len(string) and not string[high].isspace():
        high -= 1
    return high


def _trim(string: str, low: int, high: int) -> tuple[int, int]:
    """Return [low, high) without the white space at its ends."""
    while low < high - 1 and string[low].isspace():
        low += 1
    while high > low + 1 and string[high - 1].isspace():
        high -= 1
    return low, high
