"""The authors' files as HTML: numbered lines, every quote a link back to its value."""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from paperkiln.papers.architecture import Evidence
from paperkiln.papers.document import SourceFile

_WHOLE = 400_000  # characters of source that are shown whole; of more, what surrounds the quotes
_MOST = 1_000_000  # characters that are shown at most
_AROUND, _FOLD = 6, 12  # lines shown around a quote; lines between two that are folded up
_LONG_LINE, _IN_LINE = 4_000, 500  # characters of a line shown whole; else around its quotes
_MAX_QUOTES = 1_000
_UNSEEN = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HEADING = re.compile(r"\s*\\(?:part|chapter|(?:sub){0,2}section)\b")


@dataclass(eq=False)
class Quote:
    """A stretch of a file that is evidence; `rows` are the values it speaks for."""

    number: int
    start: int
    end: int
    rows: list[int] = field(default_factory=list)
    placed: bool = False
    """Whether the listing shows it, so that a link to it leads somewhere."""

    @property
    def name(self) -> str:
        """The id of its element."""
        return f"q{self.number}"


@dataclass
class Quotes:
    """All evidence of a page, each stretch once."""

    files: dict[str, SourceFile]
    by_file: dict[str, dict[tuple[int, int], Quote]] = field(default_factory=dict)
    count: int = 0

    def add(self, evidence: Evidence, row: int) -> Quote | None:
        """Return the quote at the stated place, or None where the files do not hold it."""
        source = self.files.get(evidence.file)
        span = (evidence.start, evidence.end)
        if source is None or not evidence.quote or source.text[slice(*span)] != evidence.quote:
            return None
        here = self.by_file.setdefault(evidence.file, {})
        if span not in here:
            if self.count >= _MAX_QUOTES:
                return None
            self.count += 1
            here[span] = Quote(self.count, *span)
        if row not in here[span].rows:
            here[span].rows.append(row)
        return here[span]


def escaped(text: str) -> str:
    """Return text for HTML, between tags or in quotes; characters that none may hold are �."""
    return html.escape(_UNSEEN.sub("\ufffd", text))


def listing(files: Iterable[str], quotes: Quotes, names: dict[int, str]) -> str:
    """Return the files in reading order as sections of numbered lines.

    `names` says what each row is, for the quotes' titles.
    """
    sources = [quotes.files[name] for name in files if name in quotes.files]
    whole = sum(len(source.text) for source in sources) <= _WHOLE
    room, parts = _MOST, []
    for source in sources:
        marks = sorted(
            quotes.by_file.get(source.name, {}).values(), key=lambda q: (q.start, -q.end)
        )
        if room < 0 or not (whole or marks):
            continue
        lines = []
        for line in _lines(source, marks, whole, names):
            room -= len(line)
            lines.append(line)
            if room < 0:
                lines.append(_gap("the rest is"))
                break
        name, content = escaped(source.name), f'<div class="lines">{"".join(lines)}</div>'
        if marks:
            parts.append(f"<section><h3>{name}</h3>{content}</section>")
        else:
            parts.append(f'<details class="file"><summary>{name}</summary>{content}</details>')
    return "\n".join(parts)


def _lines(
    source: SourceFile, marks: list[Quote], whole: bool, names: dict[int, str]
) -> Iterator[str]:
    """Yield the HTML of every line, those far from any quote folded up or left out."""
    text = source.text
    ends = [m.span() for m in re.finditer(r"\r\n|\r|\n|\Z", text)]
    starts = [0, *(end for _, end in ends[:-1])]
    on_line: dict[int, list[Quote]] = {}
    for quote in marks:
        last = bisect_right(starts, max(quote.end - 1, quote.start)) - 1
        for number in range(bisect_right(starts, quote.start) - 1, last + 1):
            on_line.setdefault(number, []).append(quote)

    def line(number: int) -> str:
        start, end = starts[number], ends[number][0]
        content = _line(text, start, end, on_line.get(number, []), names)
        kind = _kind_of_line(text[start : start + 80])
        return f'<div class="l{kind}"><span>{number + 1}</span><code>{content}</code></div>'

    for near, numbers in _stretches(on_line, len(starts)):
        if near or (whole and not marks):
            yield from map(line, numbers)
        elif whole:
            title = f"lines {numbers[0] + 1:,} to {numbers[-1] + 1:,}"
            yield f"<details><summary>{title}</summary>{''.join(map(line, numbers))}</details>"
        else:
            yield _gap(f"{len(numbers):,} lines")


def _stretches(on_line: Iterable[int], n_lines: int) -> Iterator[tuple[bool, range]]:
    """Yield the lines in order, as stretches that are near quotes and stretches that are not."""
    after = 0  # the first line that is in no stretch yet
    for at in [*sorted(on_line), n_lines + _AROUND]:
        first = max(after, at - _AROUND)
        if first - after > _FOLD:
            yield False, range(after, min(first, n_lines))
        else:
            first = after
        end = min(at + _AROUND + 1, n_lines)
        if first < end:
            yield True, range(first, end)
        after = max(after, end)


def _kind_of_line(beginning: str) -> str:
    if beginning.lstrip().startswith("%"):
        return " remark"
    return " heading" if _HEADING.match(beginning) else ""


def _gap(what: str) -> str:
    return f'<div class="gap">{what} not shown</div>'


def _line(text: str, start: int, end: int, marks: list[Quote], names: dict[int, str]) -> str:
    """Return text[start:end] with its quotes marked; of a very long line, what is near them."""
    if not marks and end - start <= _LONG_LINE:
        return escaped(text[start:end])
    cuts = {start, end, *(q.start for q in marks), *(q.end for q in marks)}
    kept = [(start, end)]
    if end - start > _LONG_LINE:
        kept = _merged([(q.start - _IN_LINE, q.end + _IN_LINE) for q in marks]
                       or [(start, start + _IN_LINE)], start, end)  # fmt: skip
        cuts |= {edge for span in kept for edge in span}
    points = sorted(cut for cut in cuts if start <= cut <= end)
    parts = []
    for low, high in pairwise(points):
        if not any(a <= low and high <= b for a, b in kept):
            parts.append(f'<span class="gap">{high - low:,} characters not shown</span>')
            continue
        covering = [q for q in marks if q.start <= low and high <= q.end]
        parts.append(_marked(text[low:high], covering, names))
    return "".join(parts)


def _merged(spans: list[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    """Return the spans clipped to [start, end), those that touch made one."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted((max(start, a), min(end, b)) for a, b in spans):
        if merged and low <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return merged


def _marked(piece: str, covering: list[Quote], names: dict[int, str]) -> str:
    """Return a piece of a line as a link to the value that its shortest quote speaks for."""
    if not covering:
        return escaped(piece)
    shortest = min(covering, key=lambda quote: quote.end - quote.start)
    rows = list(dict.fromkeys(row for quote in covering for row in quote.rows))
    new = [quote for quote in covering if not quote.placed]
    for quote in new:
        quote.placed = True
    anchors = "".join(f'<span id="{q.name}"></span>' for q in new if q is not shortest)
    # Of a quote in several pieces, only the first is a stop of the Tab key.
    name = f' id="{shortest.name}"' if shortest in new else ' tabindex="-1"'
    title = "; ".join(names[row] for row in rows[:4])
    return (
        f'{anchors}<a class="q"{name} href="#v{shortest.rows[0]}" '
        f'data-of="{" ".join(f"v{row}" for row in rows)}" title="{escaped(title)}">'
        f"{escaped(piece)}</a>"
    )
