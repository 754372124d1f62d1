"""A paper as a document: sections, paragraphs, tables, and text that knows where it came from.

Every piece of text keeps its origin, so whatever is read from a paper can be quoted verbatim
from the author's own file, macros unexpanded.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

_CONTROLS = {c: " " for c in (*range(32), *range(127, 160)) if chr(c) not in "\t\n"}
_BODY = re.compile(r"^[^%\n]*\\begin\s*\{document\}", re.MULTILINE)


@dataclass(eq=False)
class SourceFile:
    """One file of the paper's source; `text` is decoded, line ends as they were."""

    name: str
    text: str
    encoding: str = "utf-8"

    @cached_property
    def plain(self) -> str:
        """The text with one kind of line end and no other control character.

        Every character stays at its offset. What drives a terminal is a blank.
        """
        return self.text.replace("\r\n", " \n").replace("\r", "\n").translate(_CONTROLS)

    @cached_property
    def body(self) -> int:
        """The offset at which the document begins, 0 if no \\begin{document} stands in it."""
        found = _BODY.search(self.plain)
        return found.end() if found else 0

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(m.end() for m in re.finditer(r"\r\n|\r|\n", self.text))]

    def line(self, offset: int) -> int:
        """Return the 1-based line that holds the character at `offset`."""
        return bisect_right(self._line_starts, offset)


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of an author's file: characters [start, end) of its decoded text."""

    file: str
    line: int
    start: int
    end: int
    quote: str


class Run(NamedTuple):
    """Characters of a Text from `at` to the next run, and the source they came from.

    An exact run is a copy of source.plain[start:end]; any other was made by it (`\\,`, a macro).
    """

    at: int
    source: SourceFile
    start: int
    end: int
    exact: bool


@dataclass(frozen=True)
class Text:
    """What a reader sees: macros expanded, markup gone; `place` leads back to the source."""

    string: str
    runs: tuple[Run, ...] = field(default=(), repr=False)
    citations: tuple[tuple[int, str], ...] = field(default=(), repr=False)
    """Offsets in `string` where a citation stood, with its keys."""
    expanded: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    """Stretches of `string` that a macro of the author produced."""

    def __bool__(self) -> bool:
        return bool(self.string.strip())

    @cached_property
    def _starts(self) -> list[int]:
        return [run.at for run in self.runs]

    @cached_property
    def _expanded_ends(self) -> list[int]:
        return [end for _, end in self.expanded]

    def place(self, start: int = 0, end: int | None = None) -> Place:
        """Return where string[start:end] stands in the source; it must not be empty.

        Text that spans two files (an \\input in mid-sentence) is clipped to the first one.
        """
        end = len(self.string) if end is None else end
        first = max(bisect_right(self._starts, start) - 1, 0)
        last = max(bisect_right(self._starts, max(end - 1, start)) - 1, first)
        source = self.runs[first].source
        low, high = [], []
        for i in range(first, last + 1):
            run = self.runs[i]
            if run.source is not source:
                continue
            low.append(run.start + max(start - run.at, 0) if run.exact else run.start)
            high.append(min(run.start + end - run.at, run.end) if run.exact else run.end)
        begin, stop = min(low), max(high)
        return Place(source.name, source.line(begin), begin, stop, source.text[begin:stop])

    def slice(self, start: int, end: int) -> Text:
        """Return the text of string[start:end], with its origins."""
        first = max(bisect_right(self._starts, start) - 1, 0)
        last = bisect_left(self._starts, end, first)
        runs = []
        for run in self.runs[first:last]:
            begin, stop = run.start, run.end
            if run.exact:
                begin += max(start - run.at, 0)
                stop = min(run.start + end - run.at, stop)
            runs.append(Run(max(run.at - start, 0), run.source, begin, stop, run.exact))
        cites, made = self.citations, self.expanded
        cites = cites[bisect_left(cites, (start,)) : bisect_left(cites, (end + 1,))]
        made = made[bisect_right(self._expanded_ends, start) : bisect_left(made, (end,))]
        return Text(
            self.string[start:end],
            tuple(runs),
            tuple((at - start, keys) for at, keys in cites),
            tuple((max(a - start, 0), min(b, end) - start) for a, b in made),
        )

    @cached_property
    def sentences(self) -> tuple[tuple[int, int], ...]:
        """The [start, end) of each sentence of `string`."""
        return tuple(_sentences(self.string))


@dataclass(eq=False)
class Section:
    """A heading with its place in the outline; `kind` is what such a section usually holds."""

    title: Text
    level: int
    kind: str
    parent: Section | None = None
    appendix: bool = False

    @property
    def path(self) -> str:
        """The headings from the outermost to this one."""
        above = f"{self.parent.path} › " if self.parent and self.parent.path else ""
        return above + " ".join(self.title.string.split())

    def ancestors(self) -> Iterator[Section]:
        """Yield this section and those that hold it, innermost first."""
        section: Section | None = self
        while section:
            yield section
            section = section.parent


@dataclass(eq=False)
class Block:
    """A paragraph, item, caption, footnote, figure text or code; `kind` says which."""

    kind: str
    text: Text
    section: Section
    label: str = ""
    """An item's own label, or the float that a caption belongs to."""


@dataclass(eq=False)
class Cell:
    """One table cell; a spanning cell stands once, at its first row and column."""

    text: Text
    row: int
    column: int
    rows: int = 1
    columns: int = 1


@dataclass(eq=False)
class Table:
    """A tabular: its cells by row, and the caption of its float."""

    rows: list[list[Cell]]
    section: Section
    caption: Text = field(default_factory=lambda: Text(""))
    rules: list[int] = field(default_factory=list)
    """Row numbers before which a rule is drawn."""


@dataclass(eq=False)
class Document:
    """A paper in reading order."""

    title: Text
    blocks: list[Block | Table]
    files: dict[str, SourceFile]
    main: str
    notes: list[str] = field(default_factory=list)
    """What the reader of the paper should know: missing files, limits reached, encodings."""

    @property
    def prose(self) -> Iterator[Block]:
        """Every block that is not a table."""
        return (block for block in self.blocks if isinstance(block, Block))

    @property
    def tables(self) -> Iterator[Table]:
        """Every table."""
        return (block for block in self.blocks if isinstance(block, Table))


_KINDS = (  # of sections, by the words of their titles; the first that fits
    ("related", r"related|prior work|previous work|background|preliminar|literature|"
                r"comparison with"),
    ("future", r"future|limitation|outlook"),
    ("ablation", r"ablat|sensitivity"),
    ("conclusion", r"conclu|summary|broader impact|acknowledg|ethic"),
    ("introduction", r"introduc|motivation|overview of contributions"),
    ("training", r"train|optimi[sz]|hyper-?param|implementation|set-?up|setting|configuration|"
                 r"recipe"),
    ("method", r"method|model|architect|approach|design|network|encoder|decoder|attention|layer|"
               r"embedding|backbone|feed|transformer|expert|norm|activation|tokeni[sz]|positional"),
    ("experiments", r"experiment|result|evaluat|benchmark|analysis|discussion|comparison"),
)  # fmt: skip


def section_kind(title: str) -> str:
    """Return what a section with such a title usually holds."""
    for kind, words in _KINDS:
        if re.search(words, title, re.IGNORECASE):
            return kind
    return "other"


_END = re.compile(r"[.!?][\"”’')\]]*(?=\s)|\n\s*\n")
# A full stop after these ends no sentence.
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|et al|cf|vs|resp|approx|no|fig|figs|eq|eqs|eqn|sec|secs|tab|tbl|app|"
    r"appx|ref|refs|alg|thm|dr|prof|mr|ms|st|w\.r\.t|i\.i\.d|a\.k\.a|std|avg|dim|dims|max|min|"
    r"hyper-?params?|params?)|\b[A-Za-z])\.$",
    re.IGNORECASE,
)


def _sentences(string: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in _END.finditer(string):
        end = match.end()
        if match[0][0] == ".":
            follows = string[end : end + 40].lstrip()[:1]
            short = _ABBREVIATION.search(string[max(start, match.start() - 14) : match.start() + 1])
            single = short and re.search(r"\b[A-Z]\.$", short[0])  # of a name, or ending one: "N."
            if follows.islower() or (short and not (single and _opens(string[end : end + 40]))):
                continue
        if string[start:end].strip():
            yield start, end
        start = end
    if string[start:].strip():
        yield start, len(string)


def _opens(rest: str) -> bool:
    return bool(re.match(r"\s+(?:The|We|In|For|All|This|Our|It|Each)\b", rest))
