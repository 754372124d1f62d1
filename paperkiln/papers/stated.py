"""Stated: one value that the paper states for one field at one place, and how much that counts."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Self

from paperkiln.papers.architecture import Scalar
from paperkiln.papers.document import Section, Text


@dataclass(frozen=True)
class Stated:
    """A value for `field` read from text[start:end)."""

    field: str
    value: Scalar
    text: Text
    start: int
    end: int
    section: Section
    order: int
    """Position in the paper."""
    score: float
    cues: tuple[str, ...] = ()
    _: KW_ONLY
    owner: str = ""
    """Whose value: "" for the paper's own model, else a part, a baseline or another model."""
    variant: str = ""
    """The size, data set or parameter group it belongs to: "base", "1.4B"."""
    record: tuple[int, ...] = ()
    """What has one record (a sentence, a table row or column) describes one model together."""

    def weighed(self, by: float, cue: str) -> Self:
        """Return it with its score changed, and why."""
        return replace(self, score=self.score + by, cues=(*self.cues, f"{by:+g} {cue}"))
