"""Tables as rows and columns of cells, as those who read numbers from them want them."""

from __future__ import annotations

from collections.abc import Iterator

from paperkiln.papers.document import Cell, Document, Table

Row = list[Cell | None]
Matrix = list[Row]

_MAX_PLACES = 60_000  # in all tables together; no paper has as many
_MAX_WIDTH = 64  # columns


def matrices(document: Document) -> Iterator[tuple[int, Table, Matrix]]:
    """Yield each table with its position in the paper and its cells by row and column."""
    left = _MAX_PLACES
    for order, block in enumerate(document.blocks):
        if isinstance(block, Table) and (places := _places(block)) <= left:
            left -= places
            yield order, block, _matrix(block)


def string_of(cell: Cell | None) -> str:
    """Return what stands in a cell, on one line."""
    return " ".join(cell.text.string.split()) if cell else ""


def heading_of(row: Row) -> str:
    """Return the text of a row that only heads the rows below it, else ""."""
    filled = {id(cell): cell for cell in row if cell and cell.text}
    return string_of(next(iter(filled.values()))) if len(filled) == 1 else ""


def _places(table: Table) -> int:
    """Return how many places the cells cover, those that a \\multirow spans among them."""
    n_rows = len(table.rows)
    return sum(
        min(c.rows, n_rows) * min(c.columns, _MAX_WIDTH) for row in table.rows for c in row
    )  # fmt: skip


def _matrix(table: Table) -> Matrix:
    """Return the cells by row and column; spanning cells stand in every place they cover."""
    width = max((c.column + c.columns for row in table.rows for c in row), default=0)
    matrix: Matrix = [[None] * min(width, _MAX_WIDTH) for _ in table.rows]
    for row in table.rows:
        for cell in row:
            for line in matrix[cell.row : cell.row + cell.rows]:
                for j in range(cell.column, min(cell.column + cell.columns, len(line))):
                    # An empty cell under a \multirow belongs to it.
                    there = line[j]
                    if there is None or (cell.text and not there.text):
                        line[j] = cell
    return matrix
