"""The studies of the atlas folder: what each asked, which runs it has, and who repeats whom."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paperkiln.atlas.designs import Design, make_design
from paperkiln.atlas.findings import (
    Preregistration,
    preregistration_path,
    read_preregistration,
)
from paperkiln.atlas.preregister import levels_of, study_sweep
from paperkiln.atlas.rows import ROWS, read_rows
from paperkiln.atlas.sweep import SweepSpec

_REPLICATION = re.compile(r"(.+)-replication-(\d+)")  # as `atlas reproduce --record` names them


@dataclass(frozen=True)
class Study:
    """A sweep with the rows of its runs, in the order of its records."""

    name: str
    sweep: SweepSpec
    design: Design
    rows: list[dict[str, Any]]
    plans: tuple[Preregistration, ...]

    @property
    def levels(self) -> dict[str, list[str]]:
        """The labels of each factor, the low one first."""
        return levels_of(self.sweep)

    @property
    def planned(self) -> int:
        """The number of runs of the design."""
        return len(self.design.matrix) * len(self.sweep.seeds)

    @property
    def finished(self) -> bool:
        """Whether every run ended, complete or failed: before that no result is looked at."""
        return len(self.rows) >= self.planned

    @property
    def complete(self) -> list[dict[str, Any]]:
        """The rows of the runs that did not fail."""
        return [row for row in self.rows if row["complete"] is True]

    @property
    def folder(self) -> str:
        """Where it lies below the atlas folder."""
        return f"studies/{self.name}"

    @property
    def files(self) -> list[str]:
        """What readers can take of it, below the atlas folder; of an unfinished one the plan."""
        names = ["sweep.json", *(["rows.jsonl", "records.jsonl"] if self.finished else [])]
        plans = [preregistration_path(plan.id) for plan in self.plans]
        return [*(f"{self.folder}/{name}" for name in names), *plans]

    @property
    def original(self) -> str | None:
        """The name of the study that this one repeats."""
        match = _REPLICATION.fullmatch(self.name)
        return match and match[1]

    @property
    def title(self) -> str:
        """Its name for a reader."""
        match = _REPLICATION.fullmatch(self.name)
        return f"{match[1]}, replication {match[2]}" if match else self.name


def read_studies(atlas: Path) -> list[Study]:
    """Return the studies of an atlas folder, each followed by its replications."""
    folder = atlas / "preregistrations"
    plans = [read_preregistration(atlas, path.stem) for path in sorted(folder.glob("*.json"))]
    found = [_read(path.parent, plans) for path in sorted(atlas.glob("studies/*/sweep.json"))]
    return sorted(found, key=lambda s: (s.original or s.name, s.original is not None))


def _read(folder: Path, plans: Iterable[Preregistration]) -> Study:
    sweep = study_sweep(folder)
    design = make_design(sweep.design.model_dump(exclude_none=True), levels_of(sweep))
    path = folder / ROWS
    rows = read_rows(path) if path.is_file() and path.stat().st_size else []
    its = tuple(plan for plan in plans if plan.study == folder.name)
    return Study(folder.name, sweep, design, rows, its)
