"""A training setting as a paper states it at one place."""

from __future__ import annotations

from dataclasses import dataclass, replace

from paperkiln.papers.architecture import Scalar
from paperkiln.papers.document import Section, Text

# What a section of that kind says by itself for the paper's own training.
SECTION_SCORES = {
    "training": 1.5, "method": 1.0, "experiments": 0.75, "abstract": 0.75, "introduction": 0.5,
    "other": 0.5, "": 0.5, "ablation": -0.5, "conclusion": 0.0,
}  # fmt: skip
SKIPPED = ("related", "future")  # sections that speak of others' work, or of none yet


@dataclass(frozen=True)
class Setting:
    """A value that the paper states for a training field at text[start:end)."""

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
    stage: str = ""
    """The stage of training it belongs to, when the paper names one."""
    owner: str = ""
    """Whose training: "" for the paper's own."""
    variant: str = ""
    """The size, data set or parameter group it belongs to."""
    record: tuple[int, ...] = ()
    """Settings of one record describe one training together."""

    def weighed(self, by: float, cue: str) -> Setting:
        """Return the setting with its score changed, and why."""
        return replace(self, score=self.score + by, cues=(*self.cues, f"{by:+g} {cue}"))
