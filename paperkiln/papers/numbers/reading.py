"""Reading: one number that the paper states for one field at one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from paperkiln.papers.architecture import Evidence
from paperkiln.papers.document import Text
from paperkiln.papers.evidence import evidence, row_evidence
from paperkiln.papers.stated import Stated


@dataclass(frozen=True, kw_only=True)
class Reading(Stated):
    """A number that the paper states for a field of the model."""

    value: int | float = field(kw_only=False)
    named: str = ""
    """How the paper names the field here."""
    formula: tuple[float, str] | None = None
    """(factor, field): the value is factor × field, once that is known."""
    row: Text | None = None
    """Of a table cell: the first cell of its row, where a quote begins."""
    head: Text | None = None
    """Of a table cell under a header: the header, quoted beside the row."""

    def computed(self, *known: Mapping[str, Reading]) -> int | float | None:
        """Return the value: of a formula with what is known first of its field, else None."""
        if self.formula is None:
            return self.value
        factor, name = self.formula
        part = next((readings[name] for readings in known if name in readings), None)
        return None if part is None or part.formula else round(factor * part.value)

    def evidence(self) -> list[Evidence]:
        """Return the quote that shows the value; for a cell the row up to it, and its header."""
        if self.row is None:
            return [evidence(self.text, self.start, self.end, self.section)]
        head = self.head.string if self.head else ""
        quotes = [row_evidence(self.row, self.text, self.section, head)]
        if self.head:
            quotes.append(evidence(self.head, 0, len(self.head.string), self.section))
        return quotes
