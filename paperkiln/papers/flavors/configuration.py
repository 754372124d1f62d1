"""Flavours in tables: a row that names the field, or a column of it with a model in each row."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from paperkiln.papers.document import Cell, Table
from paperkiln.papers.flavors.cues import SECTIONS, Statement, section_kind
from paperkiln.papers.flavors.lexicon import Hit, answer, find, label_of
from paperkiln.papers.scope import Scope

CONFIGURED = 5.0  # of a value that stands in the row or column of its field
NAMED = 0.5  # of one that only stands in some cell
_RESULTS = re.compile(
    r"\b(?:ablat|result|accura|perplexit|performance|comparison|compar|effect of|varia|score|loss)",
    re.IGNORECASE,
)
_SETTING = re.compile(r"\W{0,2}(?:eps(?:ilon)?|base|theta|\\theta|θ|width|window)\b", re.IGNORECASE)
_CONFIG = re.compile(r"\b(?:config|architect|hyper-?param|specification|setting|detail)", re.I)


@dataclass(frozen=True)
class _Entry:
    """A cell that holds a field's value, and the names of its row and column."""

    field: str
    cell: Cell
    names: tuple[str, ...]
    rank: int
    """0 for the first model of the table."""


def statements_in(
    table: Table, scope: Scope, fields: tuple[str, ...]
) -> Iterator[tuple[str, Statement]]:
    """Yield (field, statement) for every value that the table names."""
    entries = {(e.field, id(e.cell)): e for e in _entries(table)}
    for row in table.rows:
        for cell in row:
            if not cell.text.string.strip():
                continue
            for name in fields:
                entry = entries.get((name, id(cell)))
                yield from _read(table, name, cell, entry, scope)


def _entries(table: Table) -> Iterator[_Entry]:
    """Yield the cells that stand in the row or the column of a field's label."""
    taken: set[tuple[str, int]] = set()
    columns: dict[int, list[Cell]] = defaultdict(list)
    for cell in chain.from_iterable(table.rows):
        columns[cell.column].append(cell)
    head = {c.column: c.text.string for c in table.rows[0]} if table.rows else {}
    for number, row in enumerate(table.rows):
        for i, cell in enumerate(row):
            name = label_of(cell.text.string)
            if not name:
                continue
            beside = _beside(row, i, number, name)
            cells = beside or _below(columns[cell.column], number)
            for rank, other in enumerate(cells):
                above = head.get(other.column, "") if beside and number else ""
                first = table.rows[other.row][0].text.string if not beside else ""
                if (name, id(other)) not in taken:
                    taken.add((name, id(other)))
                    yield _Entry(name, other, (above, first), rank)


def _beside(row: list[Cell], i: int, number: int, name: str) -> list[Cell]:
    """Return the value cells to the right of a label, up to the next label."""
    cells = []
    for k in range(i + 1, len(row)):
        if label_of(row[k].text.string) or (i > 0 and cells):
            break
        cells.append(row[k])
    held = any(find(name, c.text.string) or answer(name, c.text.string) is not None for c in cells)
    return cells if held and (number > 0 or i == 0) else []


def _below(column: list[Cell], number: int) -> list[Cell]:
    """Return the cells of a column under its label in row `number`, in the head of a table."""
    return [cell for cell in column if cell.row > number] if number <= 1 else []


def _read(
    table: Table, name: str, cell: Cell, entry: _Entry | None, scope: Scope
) -> Iterator[tuple[str, Statement]]:
    """Yield what one cell says of one field."""
    string = cell.text.string
    hits = find(name, string)
    if entry and not hits and (said := answer(name, string)) is not None:
        hits = [Hit(said, 0, len(string))]
    if hits and entry is None and label_of(string):
        return  # "Layer normalization" in a label names the field
    for rank, hit in enumerate(hits):
        score, words, part = _weigh(table, entry, scope)
        if rank and hit.value != hits[0].value:
            score, words = score - 1.5, [*words, "-1.5 not the first in its cell"]
        if entry is None and _SETTING.match(string[hit.end :]):
            score, words = score + 2, [*words, "+2 a setting of it is given"]
        used = entry is not None and score >= CONFIGURED - 2 and not part
        yield name, Statement(
            hit.value, cell.text, hit.start, hit.end, table.section, score, tuple(words), "",
            part, used,
        )  # fmt: skip


def _weigh(table: Table, entry: _Entry | None, scope: Scope) -> tuple[float, list[str], str]:
    """Return the weight of a cell, in words why, and the other model whose cell it is."""
    caption, kind = table.caption.string, section_kind(table.section)
    score, where = (CONFIGURED, "the row or column of its field") if entry else (NAMED, "a table")
    words = [f"{score:+g} in {where}"]
    place = min(SECTIONS.get(kind, 0.5), 0.5)
    if place:
        score, words = score + place, [*words, f"{place:+g} in a section of {kind or 'no'} kind"]
    if _RESULTS.search(caption) and not _CONFIG.search(caption):
        score, words = score - 2, [*words, "-2 a table of results"]
    part = scope.section(table.section)
    if entry:
        part = next((p for n in entry.names if n and (p := scope.header(n))), part)
        if not part and entry.rank:
            score, words = score - min(entry.rank, 3), [*words, "not the table's first model"]
    if part:
        score, words = score - 4, [*words, f"-4 of the {part}"]
    return score, words, part
