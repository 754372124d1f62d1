"""Turn the records of a pre-registered study into findings, and correct findings later.

What is claimed was written before the data: the decision rule only picks the sentence. Lines are
appended, never changed.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paperkiln.atlas import history
from paperkiln.atlas.findings import (
    CORRECTED,
    FINDINGS,
    Event,
    Finding,
    Hypothesis,
    Preregistration,
    analysis_of,
    find,
    line_of,
    preregistration_path,
    read_bytes,
    read_findings,
    read_preregistration,
    sha256,
    validated,
)
from paperkiln.atlas.preregister import levels_of, study_sweep
from paperkiln.atlas.records import LEDGER, ledger_problems, locked, read_ledger, read_records
from paperkiln.atlas.rows import ROWS, rows_of, rows_text
from paperkiln.atlas.sweep import SweepSpec
from paperkiln.errors import PaperkilnError
from paperkiln.formats.atomic import new_file
from paperkiln.spec import DataSpec, RunSpec, parse_spec

if TYPE_CHECKING:
    from paperkiln.atlas.estimate import Estimate

Row = dict[str, Any]


def register(prereg_id: str, atlas: Path, date: str | None = None) -> list[Finding]:
    """Append one finding per hypothesis of a pre-registration and return them.

    Raises PaperkilnError where the pre-registration is not committed, was changed or is not older
    than the records, where a run has no record, or where the records are not what the ledger has.
    """
    prereg = read_preregistration(atlas, prereg_id)
    known = {f.id for f in read_findings(atlas)}
    for hypothesis in prereg.hypotheses:
        if hypothesis.id in known:
            raise PaperkilnError(f"{hypothesis.id} is registered already; a finding is not redone")
    commit = pledged(atlas, prereg_id)
    check_order(atlas, commit, prereg.study)
    if problems := ledger_problems(atlas):
        raise PaperkilnError(f"{problems[0]}; see atlas verify")
    study = atlas / "studies" / prereg.study
    rows = rows_of(study)
    check_receipts(prereg, study, rows)
    findings = evaluate(atlas, prereg, rows, commit, date or today())
    append(atlas, findings)
    return findings


def retract(finding_id: str, note: str, atlas: Path, date: str | None = None) -> Finding:
    """Append the line that withdraws a finding; the note says why. Returns the new state."""
    if not note.strip():
        raise PaperkilnError("say why, in one sentence: a retraction explains itself")
    finding = find(read_findings(atlas), finding_id)
    if finding.status == "retracted":
        raise PaperkilnError(f"{finding_id} is retracted already: {finding.note}")
    return amend(atlas, finding, {"status": "retracted", "note": note}, date, note=note)


def supersede(finding_id: str, by: str, note: str, atlas: Path, date: str | None = None) -> Finding:
    """Append the line that a better finding takes its place. Returns the new state."""
    findings = read_findings(atlas)
    finding, better = find(findings, finding_id), find(findings, by)
    if finding.status in CORRECTED:
        raise PaperkilnError(f"{finding_id} is {finding.status} already")
    if better.id == finding.id:
        raise PaperkilnError(f"{finding_id} cannot supersede itself")
    if better.status in CORRECTED:
        raise PaperkilnError(f"{by} is {better.status}: it cannot stand in for {finding_id}")
    if not set(better.factors) & set(finding.factors):
        raise PaperkilnError(f"{by} is about {', '.join(better.factors)}, not what {finding_id} is")
    event = {"status": "superseded", "note": note}
    return amend(atlas, finding, event, date, note=note, superseded_by=by)


def amend(
    atlas: Path, finding: Finding, event: dict[str, Any], date: str | None, **changes: Any
) -> Finding:
    """Append a new state of a finding, after an event with its status and note; return it."""
    step = validated(Event, {"date": date or today()} | event, finding.id)
    values = finding.model_dump(by_alias=True) | changes | {"status": step.status}
    amended = validated(Finding, values | {"history": [*finding.history, step]}, finding.id)
    append(atlas, [amended])
    return amended


def append(atlas: Path, findings: Sequence[Finding]) -> None:
    """Add lines to findings.jsonl, all of them or none."""
    path = atlas / FINDINGS
    with locked(atlas):
        before = read_bytes(path) if path.exists() else b""
        if before and not before.endswith(b"\n"):
            raise PaperkilnError(f"{path}: its last line has no end; bring back the committed file")
        with new_file(path) as aside:
            aside.write_bytes(before + "".join(map(line_of, findings)).encode())


def today() -> str:
    """Return the date as YYYY-MM-DD."""
    return datetime.date.today().isoformat()


# --- what must hold before a finding is registered -------------------------------------------


def pledged(atlas: Path, prereg_id: str) -> str:
    """Return the commit that added a pre-registration which nobody has touched since.

    Raises PaperkilnError where there is none.
    """
    path = preregistration_path(prereg_id)
    depth = history.depth(atlas)
    if depth == "none":
        raise PaperkilnError(f"{atlas} is in no git repository: nothing shows what came first")
    if depth == "shallow":
        raise PaperkilnError("this is a shallow clone; get its history: git fetch --unshallow")
    commits = history.commits_of(atlas, path)
    if not commits:
        raise PaperkilnError(f"{atlas / path} is not committed; git add and commit it first")
    if len(commits) > 1 or history.content_at(atlas, commits[0], path) != read_bytes(atlas / path):
        raise PaperkilnError(
            f"{atlas / path} was changed after commit {commits[0][:10]}; "
            "a new question is a new pre-registration"
        )
    return commits[0]


def unpledged(atlas: Path, study: str) -> list[str]:
    """Return, for each pre-registration of a study that does not count yet, what to do."""
    notes = []
    for path in sorted((atlas / preregistration_path("x")).parent.glob("*.json")):
        if read_preregistration(atlas, path.stem).study == study:
            try:
                pledged(atlas, path.stem)
            except PaperkilnError as error:
                notes.append(f"{error} (runs made before cannot be registered)")
    return notes


def check_order(atlas: Path, commit: str, study: str) -> None:
    """Raise PaperkilnError unless the pre-registration was committed before any record.

    In a history with branches the first commit by date need not be the first one: all are checked.
    """
    for added in history.commits_of(atlas, f"studies/{study}/records.jsonl"):
        if not history.is_older(atlas, commit, added):
            raise PaperkilnError(
                f"the records of {study} (commit {added[:10]}) are not younger than the "
                f"pre-registration (commit {commit[:10]}); only runs made after it count"
            )


def check_receipts(prereg: Preregistration, study: Path, rows: Sequence[Row]) -> None:
    """Raise PaperkilnError unless every run has its record, of the sweep as pre-registered."""
    sweep = study_sweep(study)
    if sweep.sha256 != prereg.sweep_sha256:
        raise PaperkilnError(
            f"{study / 'sweep.json'} is not the sweep that {prereg.id} was written for; "
            "bring back the committed file"
        )
    check_runs(sweep, study, rows)


def check_runs(sweep: SweepSpec, study: Path, rows: Sequence[Row]) -> None:
    """Raise PaperkilnError unless the records and rows are those of all runs of a sweep.

    All runs of the same data section must have read the same text.
    """
    from paperkiln.atlas.cells import resolve, runs_of

    expected = {run.name: run for run in runs_of(sweep, resolve(sweep))}
    records = {record["run"]: record for record in read_records(study)}
    missing = [name for name in expected if name not in records]
    if missing:
        raise PaperkilnError(
            f"{len(missing)} of {len(expected)} runs of {sweep.name} have no record (first: "
            f"{missing[0]}); finish them with atlas run"
        )
    texts: dict[DataSpec, str] = {}
    for name, record in records.items():
        run = expected.get(name)
        if run is None or record["cell"] != run.cell.levels or _spec(record) != run.spec:
            raise PaperkilnError(f"{study}: the record of {name} is of no run of this sweep")
        text = record["corpus"]["sha256"]
        if texts.setdefault(run.spec.data, text) != text:
            raise PaperkilnError(f"{study}: {name} was trained on another text than the others")
    path = study / ROWS
    if not path.exists() or read_bytes(path) != rows_text(list(rows)).encode():
        raise PaperkilnError(f"{path} is not what the records give; write it again: atlas run")


def _spec(record: dict[str, Any]) -> RunSpec:
    """Return the spec of a record; the seed that it states is the one it ran with."""
    spec = parse_spec(record["spec"], source=str(record["run"]))
    if record["seed"] != spec.train.seed:
        raise PaperkilnError(f"{record['run']}: its seed is not that of its spec")
    return spec


def _labels(row: Row) -> dict[str, str]:
    return {k.removeprefix("factor."): v for k, v in row.items() if k.startswith("factor.")}


# --- from rows to findings --------------------------------------------------------------------


def evaluate(
    atlas: Path, prereg: Preregistration, rows: Sequence[Row], commit: str, date: str
) -> list[Finding]:
    """Return the findings that the rows give; the same rows always give the same ones."""
    from paperkiln.atlas.analyze import decide, estimate_family

    study = f"studies/{prereg.study}"
    sweep = study_sweep(atlas / study)
    analyses = [analysis_of(hypothesis) for hypothesis in prereg.hypotheses]
    estimates = estimate_family(rows, analyses, levels_of(sweep))
    lines = [entry["seq"] for entry in read_ledger(atlas) if entry["study"] == prereg.study]
    if not lines:
        raise PaperkilnError(f"{atlas / LEDGER} has no line of {prereg.study}")
    path = preregistration_path(prereg.id)
    shared = {
        "date": date,
        "receipts": [f"{study}/records.jsonl", f"{study}/{ROWS}"],
        "ledger": [min(lines), max(lines)],
        "preregistration": {
            "path": path, "sha256": sha256(read_bytes(atlas / path)), "commit": commit,
        },
    }  # fmt: skip
    findings = []
    for hypothesis, found in zip(prereg.hypotheses, estimates, strict=True):
        outcome = decide(found, prereg.alpha, hypothesis.margin)
        values = shared | _numbers(found) | _words(hypothesis, prereg.alpha, outcome, date)
        values["design"] = describe(sweep, rows, found)
        findings.append(validated(Finding, values, hypothesis.id))
    return findings


def _numbers(found: Estimate) -> dict[str, Any]:
    names = ("metric", "effect", "se", "t", "p", "p_holm", "df", "ci", "relative")
    values = {name: getattr(found, name) for name in names}
    return values | {"runs": found.n_runs, "seeds": found.n_seeds}


def _words(hypothesis: Hypothesis, alpha: float, outcome: str, date: str) -> dict[str, Any]:
    status = "pending" if outcome == "unresolved" else "supported"
    return {
        "id": hypothesis.id,
        "claim": hypothesis.claims[outcome],
        "scope": hypothesis.scope,
        "status": status,
        "outcome": outcome,
        "analysis": hypothesis.analysis,
        "check": {"outcome": outcome, "alpha": alpha, "margin": hypothesis.margin},
        "factors": hypothesis.analysis.factors,
        "replicates": hypothesis.replicates,
        "history": [{"date": date, "status": status, "note": "registered"}],
    }


def describe(sweep: SweepSpec, rows: Sequence[Row], found: Estimate) -> str:
    """Return design, contrast and pairing in words, of this file only: verify compares them."""
    design = sweep.design
    kind = {
        "factorial": "full factorial", "fractional": "fractional factorial",
        "plackett-burman": "Plackett-Burman screen",
    }[design.kind]  # fmt: skip
    if getattr(design, "foldover", False):
        kind += " with fold-over"
    cells = len({tuple(sorted(_labels(row).items())) for row in rows})
    seeds = len({row["seed"] for row in rows})
    failed = sum(row["complete"] is not True for row in rows)
    interaction = ":" in found.term
    parts = [
        f"{kind} of {len(sweep.factors)} factor{'s'[: len(sweep.factors) - 1]}",
        f"{cells} cells x {seeds} seeds",
        "half the difference of the differences" if interaction else f"{found.high} - {found.low}",
        "paired by seed" if found.per_seed else "not paired",
    ]
    if found.aliases:
        parts.append(f"aliased with {', '.join(found.aliases)}")
    if failed:
        parts.append(f"{failed} of {len(rows)} runs failed and are left out")
    return "; ".join(parts)
