"""Reading: one number that the paper states for one field at one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from paperkiln.papers.architecture import Evidence
from paperkiln.papers.document import Section, Text
from paperkiln.papers.evidence import evidence, row_evidence


@dataclass(frozen=True)
class Reading:
    """A value for `field` read from text[start:end].

    `owner` names whose value it is: "" for the paper's own model, else a component, a teacher,
    a baseline or another paper's model. `variant` is the size it belongs to ("base", "1.4B").
    Readings of one `record` (a sentence, a table row or column) describe one model together.
    """

    field: str
    value: int | float
    text: Text
    start: int
    end: int
    section: Section
    order: int
    """Position in the paper."""
    score: float
    cues: tuple[str, ...] = ()
    named: str = ""
    """How the paper names the field here."""
    owner: str = ""
    variant: str = ""
    record: tuple[int, ...] = ()
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

    def weighed(self, by: float, cue: str) -> Reading:
        """Return the reading with its score changed, and why."""
        return replace(self, score=self.score + by, cues=(*self.cues, f"{by:+g} {cue}"))

    def evidence(self) -> list[Evidence]:
        """Return the quote that shows the value; for a cell the row up to it, and its header."""
        if self.row is None:
            return [evidence(self.text, self.start, self.end, self.section)]
        head = self.head.string if self.head else ""
        quotes = [row_evidence(self.row, self.text, self.section, head)]
        if self.head:
            quotes.append(evidence(self.head, 0, len(self.head.string), self.section))
        return quotes
