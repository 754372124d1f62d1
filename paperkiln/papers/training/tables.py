"""Training settings in tables: down the side with models as columns, or along the top."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from paperkiln.papers.document import Cell, Document, Table
from paperkiln.papers.matrix import Matrix, heading_of, matrices, string_of
from paperkiln.papers.scope import Scope
from paperkiln.papers.training.cells import Label, label, read_cell
from paperkiln.papers.training.setting import SECTION_SCORES, SKIPPED, Setting
from paperkiln.papers.training.stage import PRETRAINING, Stages, is_first

_ABOUT = re.compile(
    r"hyper-?\s?param|training|recipe|config|optimi[sz]|setting|set-?up|implementation|details",
    re.I,
)
_VARIED = re.compile(
    r"ablat|sweep|sensitiv|effect of|impact of|grid|search|comparison|recommend|guide|decision",
    re.I,
)
_RESULTS = re.compile(
    r"accuracy|perplexity|\bppl\b|bleu|loss\b|score|latency|throughput|fps|\bf1\b|\bauc\b|mmlu|"
    r"memory|tok/s|speed|time\b|vram",
    re.I,
)


@dataclass(frozen=True, slots=True)
class _Head:
    """What the column or row of a value says of it."""

    name: str
    stage: str
    owner: str
    record: int
    aside: bool
    """Whether the main training stands in another column or row."""


def read_training_tables(document: Document, scope: Scope, stages: Stages) -> list[Setting]:
    """Return every training setting that a table states, in reading order."""
    settings: list[Setting] = []
    for order, table, matrix in matrices(document):
        if table.section.kind not in SKIPPED:
            settings += _read_table(table, matrix, order, scope, stages)
    return settings


def _read_table(
    table: Table, matrix: Matrix, order: int, scope: Scope, stages: Stages
) -> Iterator[Setting]:
    about = f"{table.caption.string[:300]} {table.section.title.string[:300]}"
    down = list(_labels_down(matrix))
    header, along = _labels_along(matrix)
    fields_down = {named.field for *_, named in down}
    fields_along = {named.field for _, named in along}
    if len(fields_along) >= max(2, len(fields_down)):
        values = _by_row(matrix, header, along, scope, stages)
    elif len(fields_down) >= 2 or (down and _ABOUT.search(about)):
        values = _by_column(matrix, down, scope, stages)
    else:
        return
    settings = [
        setting
        for cell, named, head in values
        for setting in _settings(table, order, cell, named, head)
    ]
    title = re.split(r"[.;]\s", table.caption.string[:300])[0]
    stage = stages.of_title(title) or stages.of_section(table.section)
    part = stages.part(about)
    heads = " ".join(string_of(cell) for row in matrix[:1] for cell in row)
    for setting in settings:
        owner = setting.owner or ("" if setting.variant else part)
        setting = replace(setting, stage=setting.stage or stage, owner=owner)
        yield _weigh(setting, table, about, heads, len({s.field for s in settings}))


def _labels_down(matrix: Matrix) -> Iterator[tuple[int, int, Label]]:
    """Yield the (row, column, label) of each row's label, in its first or second column."""
    for i, row in enumerate(matrix):
        for j in range(min(2, len(row) - 1)):
            if named := label(string_of(row[j])):
                yield i, j, named
                break


def _labels_along(matrix: Matrix) -> tuple[int, list[tuple[int, Label]]]:
    """Return the header row that names the most fields, and its (column, label) pairs."""
    best: tuple[int, list[tuple[int, Label]]] = (0, [])
    for i in range(min(3, len(matrix) - 1)):
        found = [
            (j, named) for j, cell in enumerate(matrix[i]) if (named := label(string_of(cell)))
        ]
        if len({named.field for _, named in found}) > len({named.field for _, named in best[1]}):
            best = (i, found)
    return best


def _by_column(
    matrix: Matrix, down: list[tuple[int, int, Label]], scope: Scope, stages: Stages
) -> Iterator[tuple[Cell, Label, _Head]]:
    """Yield the cells beside the labels: each column is a training, or pairs stand in a row."""
    heads = [
        " ".join(dict.fromkeys(s for row in matrix[: down[0][0]] if (s := string_of(row[j]))))
        for j in range(len(matrix[0]))
    ]
    main = _main_column(heads, min(j for _, j, _ in down) + 1, scope, stages)
    at = {i: (j, named) for i, j, named in down}
    group = ""
    for i, row in enumerate(matrix):
        if i not in at:
            group = (heading_of(row) if i else "") or group
            continue
        first, named = at[i]
        for column in range(first + 1, len(row)):
            cell = row[column]
            if cell is None or cell.column != column or cell.row != i:
                continue
            if column > first + 1 and (following := label(string_of(cell))):
                named = following  # pairs side by side
                continue
            name = heads[column] if len(row) > first + 2 else ""
            yield cell, named, _Head(
                name,
                stages.of_title(name) or stages.of_title(group) or stages.of_title(named.note),
                stages.part(group) or scope.header(name),
                column if name else 0,
                bool(name) and not column <= main < column + cell.columns,
            )  # fmt: skip


def _main_column(heads: list[str], first: int, scope: Scope, stages: Stages) -> int:
    """Return the first column of the paper's own first training."""
    own = [c for c in range(first, len(heads)) if not scope.header(heads[c])]
    early = [c for c in own if stages.of_title(heads[c]) in ("", PRETRAINING)]
    return next(iter([*(c for c in early if scope.clearly_own(heads[c])), *early, *own, first]))


def _by_row(
    matrix: Matrix, header: int, along: list[tuple[int, Label]], scope: Scope, stages: Stages
) -> Iterator[tuple[Cell, Label, _Head]]:
    """Yield the cells below the labels: each row is a training."""
    first = min(j for j, _ in along)
    seen = False
    for i, row in enumerate(matrix[header + 1 :], header + 1):
        name = " ".join(dict.fromkeys(string_of(c) for c in row[:first] if c and c.text))
        head = _Head(name, stages.of_title(name), scope.header(name), i, seen)
        cells = [(c, named) for j, named in along if (c := row[j]) is not None and c.column == j]
        yield from ((cell, named, head) for cell, named in cells)
        seen = seen or (not head.owner and any(read_cell(n, c.text.string) for c, n in cells))


def _settings(table: Table, order: int, cell: Cell, named: Label, head: _Head) -> Iterator[Setting]:
    score = SECTION_SCORES.get(table.section.kind, 0.5) + 1.5
    for field, value, start, end in read_cell(named, cell.text.string):
        setting = Setting(
            field, value, cell.text, start, end, table.section, order, score,
            ("table row or column",), stage=head.stage, owner=head.owner, variant=head.name,
            record=(order, head.record),
        )  # fmt: skip
        if head.aside:
            setting = setting.weighed(-2.0, f"another column or row: {head.name[:40]!r}")
        yield setting


def _weigh(setting: Setting, table: Table, about: str, heads: str, fields: int) -> Setting:
    if table.section.appendix:
        setting = setting.weighed(-0.25, "appendix")
    if _ABOUT.search(about):
        setting = setting.weighed(0.5, "a table of settings")
    if fields >= 3:
        setting = setting.weighed(0.5, f"{fields} settings in one table")
    if _VARIED.search(about) or table.section.kind == "ablation":
        setting = setting.weighed(-3.0, "a table of variations")
    if _RESULTS.search(heads):
        setting = setting.weighed(-2.0, "a table of results")
    if is_first(f"{about} {setting.variant}"):
        setting = setting.weighed(0.75, "the first stage")
    return setting
