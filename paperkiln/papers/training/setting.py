"""A training setting as a paper states it at one place."""

from __future__ import annotations

from dataclasses import dataclass

from paperkiln.papers.stated import Stated

# What a section of that kind says by itself for the paper's own training.
SECTION_SCORES = {
    "training": 1.5, "method": 1.0, "experiments": 0.75, "abstract": 0.75, "introduction": 0.5,
    "other": 0.5, "": 0.5, "ablation": -0.5, "conclusion": 0.0,
}  # fmt: skip
SKIPPED = ("related", "future")  # sections that speak of others' work, or of none yet


@dataclass(frozen=True, kw_only=True)
class Setting(Stated):
    """A value that the paper states for a training field."""

    stage: str = ""
    """The stage of training it belongs to, when the paper names one."""
