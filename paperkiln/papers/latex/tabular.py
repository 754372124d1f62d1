"""A table in the making: from & and \\\\ to rows of cells."""

from __future__ import annotations

from dataclasses import dataclass, field

from paperkiln.papers.document import Cell, Section, Table, Text
from paperkiln.papers.latex.writer import Writer


@dataclass
class Grid:
    """Where the cells of one tabular begin, and how deep in groups they lie."""

    depth: int
    outer: Writer
    """What was being written when the table began."""
    rows: list[list[Cell]] = field(default_factory=lambda: [[]])
    rules: list[int] = field(default_factory=list)
    column: int = 0
    spans: tuple[int, int] = (1, 1)
    """Rows and columns of the cell that is being read."""
    nested: int = 0
    """Open environments in the cell in which an & or a line end is not this table's."""
    _first_head: bool = False
    _part: int = 0

    def end_cell(self, text: Text) -> None:
        """Add a cell to the row."""
        rows, columns = self.spans
        self.rows[-1].append(Cell(text, len(self.rows) - 1, self.column, rows, columns))
        self.column += columns
        self.spans = (1, 1)

    def end_row(self) -> None:
        """Begin the next row."""
        self.rows.append([])
        self.column = 0

    def rule(self) -> None:
        """Draw a rule before the row that comes."""
        if self.rules[-1:] != [len(self.rows) - 1]:
            self.rules.append(len(self.rows) - 1)

    def end_part(self, command: str) -> None:
        """Leave out the heads and feet that a longtable repeats on its other pages."""
        if command != "endfirsthead" and (self._first_head or command != "endhead"):
            del self.rows[self._part : -1]
            self.rules = [rule for rule in self.rules if rule <= self._part]
        self._first_head = self._first_head or command == "endfirsthead"
        self._part = len(self.rows) - 1

    def table(self, section: Section) -> Table | None:
        """Return the table without its empty rows, if anything stands in it."""
        rows: list[list[Cell]] = []
        now: list[int] = []  # the number that each row has among those that stay
        for row in self.rows:
            now.append(len(rows))
            if any(cell.text for cell in row):
                for cell in row:
                    cell.row = len(rows)
                rows.append(row)
        if not rows:
            return None
        return Table(rows, section, rules=sorted({now[rule] for rule in self.rules}))


@dataclass
class Float:
    """An open table or figure environment, with what it holds so far."""

    name: str
    tables: list[Table] = field(default_factory=list)
    captions: list[Text] = field(default_factory=list)

    def pair(self) -> None:
        """Give each table its caption; with fewer captions than tables, the last one is shared."""
        if self.tables and self.captions:
            for i, table in enumerate(self.tables):
                table.caption = self.captions[min(i, len(self.captions) - 1)]
            self.tables, self.captions = [], []
