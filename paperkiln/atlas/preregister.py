"""Fix what will be concluded from which numbers, before there are any."""

from __future__ import annotations

import datetime
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paperkiln.atlas.findings import (
    Hypothesis,
    Preregistration,
    analysis_of,
    preregistration_path,
    read_findings,
    read_json,
    read_preregistration,
    validated,
)
from paperkiln.atlas.sweep import SweepSpec, parse_sweep, read_sweep
from paperkiln.errors import PaperkilnError
from paperkiln.formats.atomic import new_file


def preregister(file: Path, atlas: Path, date: str | None = None) -> Path:
    """Write the pre-registration that a draft describes, and the sweep it is about; return it.

    The draft is a pre-registration with `sweep`, the path of the sweep from the draft's folder, in
    place of `study` and `sweep_sha256`; `date` is today where it has none. The pre-registration
    counts from the commit that adds it: commit it before the first run.

    Raises PaperkilnError if the study has runs already, if the id is taken, or if the design
    cannot answer a hypothesis.
    """
    draft = read_json(file)
    if not isinstance(draft, dict) or not isinstance(draft.get("sweep"), str):
        raise PaperkilnError(f'{file}: a draft is a JSON object with "sweep", the path of a sweep')
    sweep = read_sweep(file.parent / draft.pop("sweep"))
    today = date or datetime.date.today().isoformat()
    values = {"date": today} | draft | {"study": sweep.name, "sweep_sha256": sweep.sha256}
    prereg = validated(Preregistration, values, str(file))
    path = atlas / preregistration_path(prereg.id)
    study = atlas / "studies" / sweep.name
    _check_that_it_is_new(prereg, atlas, path, study)
    _keep_sweep(sweep, study)
    rehearse(sweep, prereg.hypotheses)
    study.mkdir(parents=True, exist_ok=True)
    if not (study / "sweep.json").exists():
        _write(study / "sweep.json", sweep.model_dump(mode="json"))
    _write(path, prereg.model_dump(mode="json", by_alias=True))
    return path


def _check_that_it_is_new(prereg: Preregistration, atlas: Path, path: Path, study: Path) -> None:
    if path.exists():
        raise PaperkilnError(f"{path} exists, and a pre-registration is final; choose another id")
    for name in ("records.jsonl", "rows.jsonl"):
        if (study / name).exists() and (study / name).stat().st_size:
            raise PaperkilnError(
                f"{study / name} exists: a decision rule made after the data decides nothing; "
                "give the sweep another name and other seeds"
            )
    taken = {f.id: "findings.jsonl" for f in read_findings(atlas)}
    for file in sorted(path.parent.glob("*.json")):
        other = read_preregistration(atlas, file.stem)
        if other.study == prereg.study:
            raise PaperkilnError(
                f"{file} is about {prereg.study} already: the hypotheses of a study are corrected "
                "together, in one pre-registration; give the sweep another name"
            )
        for hypothesis in other.hypotheses:
            taken[hypothesis.id] = file.name
    for hypothesis in prereg.hypotheses:
        if hypothesis.id in taken:
            raise PaperkilnError(
                f"hypothesis {hypothesis.id} is in {taken[hypothesis.id]} already; "
                "choose another id"
            )


def _keep_sweep(sweep: SweepSpec, study: Path) -> None:
    """Refuse a sweep that has the name of another one that was pre-registered."""
    path = study / "sweep.json"
    if path.exists() and study_sweep(study).sha256 != sweep.sha256:
        raise PaperkilnError(f"{path} is another sweep of this name; give yours another one")


def study_sweep(study: Path) -> SweepSpec:
    """Return the sweep of a study's folder."""
    return parse_sweep(read_json(study / "sweep.json"), source=str(study / "sweep.json"))


def levels_of(sweep: SweepSpec) -> dict[str, list[str]]:
    """Return the labels of each factor as the sweep orders them, the low level first."""
    return {name: list(factor.levels) for name, factor in sweep.factors.items()}


def rehearse(sweep: SweepSpec, hypotheses: Sequence[Hypothesis]) -> None:
    """Run every analysis on made-up rows of this design.

    Raises PaperkilnError where the design cannot answer: an unknown factor or metric, an
    interaction in a screen, a step that no run is validated at.
    """
    from paperkiln.atlas.analyze import estimate

    rows = _made_rows(sweep)
    for hypothesis in hypotheses:
        try:
            estimate(rows, analysis_of(hypothesis), levels_of(sweep))
        except PaperkilnError as error:
            raise PaperkilnError(f"{hypothesis.id}: {error}") from None


def _made_rows(sweep: SweepSpec) -> list[dict[str, Any]]:
    """Return a row for every run, its metrics drawn at random."""
    from paperkiln.atlas.cells import resolve, runs_of
    from paperkiln.atlas.rows import gradient_metrics, loss_metrics, validation_metrics

    names = [*validation_metrics([]), *loss_metrics([]), *gradient_metrics([], 0)]
    names += ["tokens_per_second", "wall_seconds", "energy_joules"]
    chance = random.Random(0)
    rows = []
    for run in runs_of(sweep, resolve(sweep)):
        train = run.spec.train
        steps = {*range(train.eval_every, train.steps + 1, train.eval_every), train.steps}
        row = {"study": sweep.name, "run": run.name, "seed": train.seed, "complete": True}
        row |= {f"factor.{name}": label for name, label in run.cell.levels.items()}
        row |= {name: 1 + chance.random() for name in names}
        rows.append(row | {"val": [[step, 1 + chance.random()] for step in sorted(steps)]})
    return rows


def _write(path: Path, value: dict[str, Any]) -> None:
    with new_file(path) as aside:
        aside.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
