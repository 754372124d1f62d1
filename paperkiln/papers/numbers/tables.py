"""Numbers in tables: fields down the side and models across, or the other way round."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from paperkiln.papers.document import Cell, Document, Table
from paperkiln.papers.matrix import Matrix, heading_of, matrices, string_of
from paperkiln.papers.numbers.fields import value_of
from paperkiln.papers.numbers.labels import Label, label, name_of
from paperkiln.papers.numbers.quantities import Quantity, quantities
from paperkiln.papers.numbers.reading import Reading
from paperkiln.papers.numbers.statements import APPENDIX, MAX_READINGS, SECTION_SCORES
from paperkiln.papers.phrases import phrases
from paperkiln.papers.scope import Scope

_CONFIGURATION = phrases(
    "config*|architect*|hyperparam*|hyper param*|specification*|model size*|model detail*|"
    "model dimension*|model variant*|model parameter*|setting*|setup*|set up|dimensions"
)
_RESULTS = phrases(
    "accuracy|perplexity|ppl|bleu|loss|score*|latency|throughput|speed|fid|f1|%|auc|mmlu|error*|wer|"
    "rmse|bpb|val|test|tokens/s"
)
_VARIED = phrases("ablat*|sweep*|variant*|variation*|sensitiv*|effect of|impact of|scale|scaling")
_BASE = phrases("base|default|main|final|full")
_UNNAMED = re.compile(r"(?:values?|settings?|)", re.IGNORECASE)  # a column of one model
_SHAPE = frozenset({"n_layers", "n_heads", "n_kv_heads", "d_ff"})
_CORE = frozenset({"d_model", "n_layers", "n_heads", "d_ff"})
_CELL_SCORE = 2.0  # of a labelled cell: it says nothing else
_MAX_CELL = 120  # characters of a cell that is a value


@dataclass(frozen=True)
class _Grid:
    """A table as rows and columns, with what its readings need to know."""

    table: Table
    matrix: Matrix
    order: int
    scope: Scope
    symbols: dict[str, str]

    def labels(self, cell: Cell | None) -> list[Label]:
        return label(string_of(cell), self.symbols)

    @cached_property
    def of_caption(self) -> str:
        """The component, teacher or baseline that the caption names, else ""."""
        return self.scope.part(self.table.caption.string)

    @cached_property
    def cues(self) -> list[tuple[float, str]]:
        """What the table as a whole says about its numbers."""
        caption, section = self.table.caption.string, self.table.section
        head = " ".join(string_of(cell) for row in self.matrix[:2] for cell in row)
        said = (
            (section.appendix, APPENDIX, "appendix"),
            (_CONFIGURATION.search(f"{caption}; {section.title.string}"), 0.5,
             "a table of configurations"),
            (section.kind == "ablation" or _VARIED.search(caption), -0.75,
             "a table of variations"),
            (_RESULTS.search(head), -0.75, "a table of results"),
        )  # fmt: skip
        return [(weight, cue) for true, weight, cue in said if true]


def read_tables(document: Document, scope: Scope, symbols: dict[str, str]) -> list[Reading]:
    """Return every number that a table states for a field, in reading order."""
    return list(islice(_read_all(document, scope, symbols), MAX_READINGS))


def _read_all(document: Document, scope: Scope, symbols: dict[str, str]) -> Iterator[Reading]:
    for order, table, matrix in matrices(document):
        grid = _Grid(table, matrix, order, scope, symbols)
        yield from (_weigh(reading, grid) for reading in _read_grid(grid))


def _read_grid(grid: _Grid) -> Iterator[Reading]:
    down = _labelled_rows(grid)
    header, across = _header(grid)
    named = [found for _, labels in down.values() for found in labels]
    named += [found for labels in across.values() for found in labels]
    if any(found.bare for found in named) and not _SHAPE & {found.field for found in named}:
        return iter(())  # "Dim" and "Size" of a data set
    if len(_fields(across)) >= max(2, len({found[0].field for _, found in down.values()})):
        return _read_rows(grid, header, across)
    title = f"{grid.table.caption.string} {grid.table.section.title.string}"
    if len(down) > 1 or (down and _CONFIGURATION.search(title)):
        return _read_columns(grid, down)
    return iter(())


# Fields down the side


def _labelled_rows(grid: _Grid) -> dict[int, tuple[int, list[Label]]]:
    """Return for each row with a label its column, the first or the second, and what it names."""
    rows: dict[int, tuple[int, list[Label]]] = {}
    for i, row in enumerate(grid.matrix):
        for j in (0, 1):
            if j < len(row) - 1 and (found := grid.labels(row[j])):
                rows.setdefault(i, (j, found))
    return rows


def _read_columns(grid: _Grid, down: dict[int, tuple[int, list[Label]]]) -> Iterator[Reading]:
    names = grid.matrix[0] if 0 not in down else []
    whole = _whole_model([found[0] for _, found in down.values()])
    own_named = any(grid.scope.names_own(string_of(cell)) for cell in names)
    group = ""
    for i, row in enumerate(grid.matrix):
        if i not in down:
            group = heading_of(row) if i else ""
            continue
        first, found = down[i]
        of_group = grid.scope.part(string_of(row[0]) if first else group)
        of_group = of_group or (found[0].part if found[0].part != whole else "")
        for j in range(first + 1, len(row)):
            cell = row[j]
            if j > first + 1 and (next_label := grid.labels(cell)):
                found = next_label  # label and value, label and value, side by side
            elif cell is not None:
                head = names[j] if j < len(names) and len(row) > first + 2 else None
                name = string_of(head)
                owner = of_group or grid.scope.header(name, own_named)
                for reading in _read_cell(grid, cell, found):
                    yield replace(
                        reading, owner=owner, variant=_variant(name), record=(grid.order, 0, j),
                        row=row[first].text, head=head.text if head else None,
                    )  # type: ignore[union-attr]  # fmt: skip


def _whole_model(labels: list[Label]) -> str:
    """Return the part whose labels are the model's: none, or the first where all have one.

    In "Denoiser blocks, denoiser width, attention heads, prompt blocks" it is the denoiser.
    """
    if len({named.field for named in labels if not named.part} & _CORE) > 1:
        return ""
    return next((named.part for named in labels if named.part), "")


# Fields along the top


def _header(grid: _Grid) -> tuple[int, dict[int, list[Label]]]:
    """Return the row that names most fields, and what each of its columns names."""
    best: tuple[int, dict[int, list[Label]]] = (0, {})
    for i in range(min(3, len(grid.matrix) - 1)):
        found: dict[int, list[Label]] = {}
        for j, cell in enumerate(grid.matrix[i]):
            own = string_of(cell)
            over = grid.matrix[i - 1][j] if i else None
            labels = grid.labels(cell)
            if not labels and over is not None and over is not cell:
                labels = label(f"{string_of(over)} {own}")
            if labels and not re.fullmatch(r"[\d.,]+", own):
                found[j] = labels
        if len(_fields(found)) > len(_fields(best[1])):
            best = (i, found)
    return best


def _fields(named: dict[int, list[Label]]) -> set[str]:
    return {next(found.field for found in labels if found.field) for labels in named.values()}


def _read_rows(grid: _Grid, header: int, across: dict[int, list[Label]]) -> Iterator[Reading]:
    # A header may go on below, with units: down to the first rule.
    last = next((r - 1 for r in grid.table.rules if header < r <= header + 2), header)
    titles = {j: grid.matrix[header][j] for j in across}
    across = {
        j: [_with_unit(grid, f, header, last, j) for f in found] for j, found in across.items()
    }
    first = min(titles)
    own_named = any(
        grid.scope.names_own(string_of(c)) for row in grid.matrix for c in row[: max(first, 1)]
    )
    groups, of_groups = _header_groups(grid, header, across)
    group = ""
    for i, row in enumerate(grid.matrix[last + 1 :], last + 1):
        if heading := heading_of(row):
            group = heading
            continue
        name = " ".join(dict.fromkeys(string_of(c) for c in row[:first] if c and c.text))
        owner = grid.scope.part(group) or grid.scope.header(name, own_named)
        name = name or string_of(row[first]) * (across[first][0].field == "n_parameters")
        begin = next((c.text for c in row if c and c.text and c.row == i), None)
        for j, found in across.items():
            cell, title, k = row[j], titles[j], groups.get(j, 0)
            if cell is not None:
                for reading in _read_cell(grid, cell, found):
                    yield replace(
                        reading, owner=owner or of_groups[k], variant=_variant(name),
                        record=(grid.order, i, k), row=begin, head=title.text if title else None,
                    )  # fmt: skip


def _header_groups(
    grid: _Grid, header: int, across: dict[int, list[Label]]
) -> tuple[dict[int, int], list[str]]:
    """Return the group of each column, and whose each group is: "Image encoder" over three.

    Group 0 is no group. Where all groups are parts, the model is made of them: the first is it.
    """
    over: dict[int, Cell] = {}
    for j in across:
        for row in grid.matrix[:header]:
            cell = row[j]
            if cell is not None and cell.columns > 1 and cell.text:
                over[j] = cell
    cells = list({id(cell): cell for cell in over.values()}.values())
    shaped = [
        cell for cell in cells
        if len({across[j][0].field for j, c in over.items() if c is cell} & _CORE) > 1
    ]  # fmt: skip
    if len(shaped) < 2:
        return {}, [""]
    parts = [grid.scope.part(string_of(cell)) for cell in shaped]
    if all(parts):
        parts[0] = ""
    numbers = {id(cell): k for k, cell in enumerate(shaped, 1)}
    return {j: numbers[id(c)] for j, c in over.items() if id(c) in numbers}, ["", *parts]


def _with_unit(grid: _Grid, found: Label, header: int, last: int, column: int) -> Label:
    """Add the unit that stands in a lower row of the header: "params" over "×10^6"."""
    below = [string_of(row[column]) for row in grid.matrix[header + 1 : last + 1]]
    unit = name_of(f"params {' '.join(below)}") if below else None
    return replace(found, factor=unit.factor) if unit and found.factor == 1 else found


# Cells


def _variant(name: str) -> str:
    return "" if _UNNAMED.fullmatch(name.strip()) else name


def _read_cell(grid: _Grid, cell: Cell, labels: list[Label]) -> Iterator[Reading]:
    """Yield what a cell states for its label, or for each of "width / state" in "192 / 16"."""
    string = cell.text.string
    if len(string) > _MAX_CELL:
        return
    found = [q for q in quantities(string) if not _in_aside(string, q)]
    if not found:
        return
    paired = len(labels) > 1 and len(found) == len(labels)
    for named, quantity in zip(labels if paired else labels[:1], found, strict=False):
        after = string[quantity.end : quantity.end + 12]
        multiple = not paired and re.match(r"\s*[·×]?\s*d(?:_model)?\b", after)
        value = value_of(named.field, quantity, named.factor) if named.field else None
        if not named.field or (value is None and not multiple):
            continue
        section = grid.table.section
        reading = Reading(
            named.field, value or 0, cell.text, quantity.start, quantity.end, section, grid.order,
            SECTION_SCORES.get(section.kind, 0.5) + _CELL_SCORE - 0.5 * named.symbol,
            ("table cell",), named=named.text,
            formula=(float(quantity.value), "d_model") if multiple else None,
        )  # fmt: skip
        if named.second:
            reading = reading.weighed(-1.0, "extended, not trained")
        if not paired and _lists_values(string, found):
            reading = reading.weighed(-3.0, "several numbers in the cell")
        yield reading


def _in_aside(string: str, quantity: Quantity) -> bool:
    before = string[: quantity.start]
    return before.count("(") > before.count(")")


def _lists_values(string: str, found: list[Quantity]) -> bool:
    return len(found) > 1 and bool(
        re.search(r"[/,→–-]|\bor\b|\band\b", string[found[0].end : found[1].start])
    )


def _weigh(reading: Reading, grid: _Grid) -> Reading:
    """Add what the table as a whole, and its name in it, say about the reading."""
    scope = grid.scope
    if not reading.owner:
        owner = scope.section(grid.table.section) or ("" if reading.variant else grid.of_caption)
        reading = replace(reading, owner=owner)
    for weight, cue in grid.cues:
        reading = reading.weighed(weight, cue)
    if reading.variant and scope.clearly_own(reading.variant):
        reading = reading.weighed(1.0, f"its own: “{reading.variant}”")
    elif _BASE.search(reading.variant):
        reading = reading.weighed(0.5, f"the one called “{reading.variant}”")
    return reading
