"""Recompute the registry from its records, and say where the two do not agree.

Every problem is a line with its mend. What cannot be checked here is said, and is not passed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paperkiln.atlas import history
from paperkiln.atlas.findings import (
    CORRECTED,
    FINDINGS,
    MUTABLE,
    STATUSES,
    Finding,
    Preregistration,
    current,
    preregistration_path,
    read_bytes,
    read_lines,
    read_preregistration,
    registry,
    sha256,
)
from paperkiln.atlas.preregister import study_sweep
from paperkiln.atlas.records import LEDGER, RECORDS, ledger_problems
from paperkiln.atlas.register import check_order, check_receipts, check_runs, evaluate, pledged
from paperkiln.atlas.rows import ROWS, rows_of, rows_text
from paperkiln.atlas.sweep import SweepSpec
from paperkiln.errors import PaperkilnError

_TOLERANCE = 1e-9  # relative; two versions of scipy differ by less
_RESTORE = "bring back the committed file"
_AFTER = {"retracted": ("retracted",), "superseded": CORRECTED}  # what a status may become


@dataclass
class Verification:
    """What was checked, what is wrong, and what could not be checked."""

    checked: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """0 only if everything that was asked for was checked and holds."""
        return 1 if self.problems or self.unchecked else 0

    def lines(self) -> list[str]:
        """Return the result as text."""
        return [
            *(f"ok: {line}" for line in self.checked),
            *(f"NOT CHECKED: {line}" for line in self.unchecked),
            *(f"PROBLEM: {line}" for line in self.problems),
        ]


@dataclass
class _Atlas:
    """What the checks share; a file that cannot be read is a problem and then left out."""

    folder: Path
    lines: list[Finding]
    preregistrations: dict[str, Preregistration]
    rows: dict[str, list[dict[str, Any]]]  # by study

    @property
    def findings(self) -> list[Finding]:
        return current(self.lines)

    def of(self, prereg: Preregistration) -> list[Finding]:
        path = preregistration_path(prereg.id)
        return [f for f in self.findings if f.preregistration.path == path]

    @property
    def replications(self) -> set[str]:
        """The studies that a finding's history names as its replication."""
        events = (event for f in self.findings for event in f.history)
        return {event.receipt.split("/")[1] for event in events if event.receipt}


def verify(atlas: Path, strict: bool = False) -> Verification:
    """Check an atlas folder against itself and, if strict, against its git history.

    Raises PaperkilnError where there is no atlas.
    """
    result = Verification()
    problems = [f"{line}; {_RESTORE}" for line in ledger_problems(registry(atlas))]
    _note(result, problems, "the ledger is whole and every record is as it was written")
    state, problems = _read(atlas)
    count = sum(map(len, state.rows.values()))
    _note(result, problems, f"{count} rows of {len(state.rows)} studies follow from their records")
    checks: list[tuple[Callable[[_Atlas], Iterable[str]], str]] = [
        (_growth, "corrected findings differ from what was registered only in what became of them"),
        (_links, "every receipt and every link leads somewhere"),
        (_numbers, f"the numbers and claims of {len(state.findings)} findings come out again"),
        (_replications, "every verdict of a replication comes out again"),
    ]
    if strict:
        checks.append((_orphans, "every study was pre-registered and its findings are all here"))
    for check, words in checks:
        _note(result, list(check(state)), words)
    if strict:
        _check_history(state, result)
    return result


def _note(result: Verification, problems: Sequence[str], words: str) -> None:
    result.problems += problems
    if not problems:
        result.checked.append(words)


def _read(atlas: Path) -> tuple[_Atlas, list[str]]:
    """Read everything; return it with what could not be read or does not fit."""
    state, problems = _Atlas(atlas, [], {}, {}), []
    for study in sorted(path.parent for path in atlas.glob(f"studies/*/{RECORDS}")):
        rows, found = _study(study)
        problems += found
        if rows is not None:
            state.rows[study.name] = rows
    for path in sorted(atlas.glob("preregistrations/*.json")):
        try:
            prereg = state.preregistrations[path.stem] = read_preregistration(atlas, path.stem)
            if study_sweep(atlas / "studies" / prereg.study).sha256 != prereg.sweep_sha256:
                problems.append(
                    f"{path}: studies/{prereg.study}/sweep.json is not the sweep it was written "
                    f"for; {_RESTORE}"
                )
        except PaperkilnError as error:
            problems.append(f"{error}; {_RESTORE}")
    try:
        state.lines = read_lines(atlas)
    except PaperkilnError as error:
        problems.append(f"{error}; {_RESTORE}")
    return state, problems


def _study(study: Path) -> tuple[list[dict[str, Any]] | None, list[str]]:
    """Return the rows that a study's records give, and whether its files say the same."""
    try:
        rows = rows_of(study)
        text = rows_text(rows).encode()
    except PaperkilnError as error:
        return None, [f"{error}; {_RESTORE}"]
    path = study / ROWS
    if not path.exists() or read_bytes(path) != text:
        return rows, [f"{path}: not what the records give; write it again with atlas run"]
    return rows, []


# --- the registry against itself ---------------------------------------------------------------


def _growth(state: _Atlas) -> Iterator[str]:
    """A later line of an id changes its fate only, and adds to its history."""
    before: dict[str, Finding] = {}
    for finding in state.lines:
        earlier = before.get(finding.id)
        before[finding.id] = finding
        if earlier is None:
            if len(finding.history) > 1 or finding.status not in ("supported", "pending"):
                yield f"{FINDINGS}: {finding.id} does not begin as registered; {_RESTORE}"
            continue
        for name in sorted(set(Finding.model_fields) - MUTABLE):
            if getattr(finding, name) != getattr(earlier, name):
                yield f"{FINDINGS}: a later line of {finding.id} changes its {name}; {_RESTORE}"
        if finding.status not in _AFTER.get(earlier.status, STATUSES):
            yield f"{FINDINGS}: {finding.id} was {earlier.status}, which is final; {_RESTORE}"
        kept = finding.history[: len(earlier.history)] == earlier.history
        if not kept or len(finding.history) != len(earlier.history) + 1:
            yield f"{FINDINGS}: {finding.id} loses or skips a part of its history; {_RESTORE}"


def _links(state: _Atlas) -> Iterator[str]:
    ids = {f.id for f in state.findings}
    for finding in state.findings:
        events = [event.receipt for event in finding.history if event.receipt]
        receipts = [*finding.receipts, finding.preregistration.path, *events]
        links = [finding.superseded_by, finding.replicates]
        for by in finding.replicated_by:
            (receipts if "/" in by else links).append(by)
        for path in receipts:
            if not (state.folder / path).is_file():
                yield f"{finding.id}: {path} is missing; get the whole atlas"
        for link in links:
            if link is not None and link not in ids:
                yield f"{finding.id}: it names {link}, which is no finding; {_RESTORE}"


def _numbers(state: _Atlas) -> Iterator[str]:
    """Every finding is what its pre-registration and its records give."""
    known = set()
    for prereg in state.preregistrations.values():
        findings = state.of(prereg)
        known |= {f.id for f in findings}
        if findings:
            yield from _compare(state, prereg, {f.id: f for f in findings})
    for finding in state.findings:
        if finding.id not in known:
            yield f"{finding.id}: {finding.preregistration.path} is missing; get the whole atlas"


def _compare(state: _Atlas, prereg: Preregistration, findings: dict[str, Finding]) -> Iterator[str]:
    rows = state.rows.get(prereg.study)
    if rows is None:
        yield f"{prereg.id}: the records of {prereg.study} are missing; get the whole atlas"
        return
    one = next(iter(findings.values()))
    try:
        check_receipts(prereg, state.folder / "studies" / prereg.study, rows)
        expected = {
            f.id: f
            for f in evaluate(state.folder, prereg, rows, one.preregistration.commit, one.date)
        }
    except PaperkilnError as error:
        yield f"{prereg.id}: its findings cannot be computed again: {error}"
        return
    for name in expected.keys() - findings.keys():
        yield f"{prereg.id}: {name} was not registered: all its findings count; {_RESTORE}"
    for name, finding in findings.items():
        if name not in expected:
            yield f"{name}: {prereg.id} does not announce it; {_RESTORE}"
            continue
        for key in sorted(set(Finding.model_fields) - MUTABLE):
            found, wanted = getattr(finding, key), getattr(expected[name], key)
            if not _same(found, wanted):
                yield (
                    f"{FINDINGS}: {name}: {key} is {_short(found)}, records and pre-registration "
                    f"give {_short(wanted)}; {_RESTORE}"
                )


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=_TOLERANCE, abs_tol=1e-12)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return a == b


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _replications(state: _Atlas) -> Iterator[str]:
    from paperkiln.atlas.reproduce import estimate_again, judge

    for finding in state.findings:
        confirmed = {f.id for f in state.findings if _confirms(f, finding)}
        for event in finding.history:
            if event.verdict is None or event.receipt is None:
                continue
            name = event.receipt.split("/")[1]
            study = state.folder / "studies" / name
            if name not in state.rows:
                yield f"{finding.id}: the records of {name} are missing; get the whole atlas"
                continue
            try:
                original = study_sweep(state.folder / "studies" / finding.study)
                again = study_sweep(study)
                if _but_for_seeds(original) != _but_for_seeds(again):
                    yield f"{finding.id}: {name} is another experiment than {finding.study}; " + (
                        _RESTORE
                    )
                check_runs(again, study, state.rows[name])
                verdict, _ = judge(finding, estimate_again(finding, study))
            except PaperkilnError as error:
                yield f"{finding.id}: {name} cannot be judged again: {error}"
                continue
            if verdict != event.verdict:
                yield f"{finding.id}: {event.verdict}, but {name} says {verdict}; {_RESTORE}"
            elif verdict == "REPLICATED" and not set(original.seeds) & set(again.seeds):
                confirmed.add(event.receipt)
        for by in set(finding.replicated_by) - confirmed:
            yield f"{finding.id}: {by} did not replicate it; {_RESTORE}"


def _but_for_seeds(sweep: SweepSpec) -> dict[str, Any]:
    return sweep.model_dump(exclude={"name", "seeds"})


def _confirms(finding: Finding, earlier: Finding) -> bool:
    """Return whether a finding that asks an earlier one again, of other runs, gave its answer."""
    from paperkiln.atlas.reproduce import judge

    return (
        finding.replicates == earlier.id
        and finding.status not in CORRECTED
        and finding.study != earlier.study
        and (finding.metric, finding.factors) == (earlier.metric, earlier.factors)
        and judge(earlier, finding)[0] == "REPLICATED"
    )


def _orphans(state: _Atlas) -> Iterator[str]:
    announced = [prereg.study for prereg in state.preregistrations.values()]
    for study in sorted({name for name in announced if announced.count(name) > 1}):
        yield f"studies/{study}: two pre-registrations split what Holm corrects together; keep one"
    for study in sorted({path.name for path in state.folder.glob("studies/*")}):
        if study not in state.replications.union(announced):
            yield f"studies/{study}: no pre-registration announces it; take it out of the atlas"
    for prereg in state.preregistrations.values():
        if prereg.study in state.rows and not state.of(prereg):
            yield f"{prereg.id}: it was run and has no findings; atlas register {prereg.id}"


# --- the registry against its history ------------------------------------------------------------


def _check_history(state: _Atlas, result: Verification) -> None:
    order = "pre-registrations were committed before the records and not touched since"
    grown = "the findings, the ledger and the records only grew"
    depth = history.depth(state.folder)
    if depth == "full":
        _note(result, list(_order(state)), order)
        _note(result, list(_only_grown(state)), grown)
        return
    why = "this is a shallow clone: git fetch --unshallow"
    if depth == "none":
        why = "there is no git history here: clone the repository"
    result.unchecked += [f"whether {words} ({why})" for words in (order, grown)]


def _order(state: _Atlas) -> Iterator[str]:
    for path in history.ever_added(state.folder, "preregistrations"):
        if not (state.folder / path).exists():
            yield f"{path}: it was committed once and is gone; {_RESTORE}"
    for prereg in state.preregistrations.values():
        path = preregistration_path(prereg.id)
        digest = sha256(read_bytes(state.folder / path))
        try:
            commit = pledged(state.folder, prereg.id)
            check_order(state.folder, commit, prereg.study)
        except PaperkilnError as error:
            yield str(error)
            continue
        for finding in state.of(prereg):
            pledge = finding.preregistration
            if (pledge.commit, pledge.sha256) != (commit, digest):
                yield f"{finding.id}: {path} was added by commit {commit[:10]}, not by " + (
                    f"{pledge.commit[:10]}; {_RESTORE}"
                )


def _only_grown(state: _Atlas) -> Iterator[str]:
    """Every version that was ever committed is how the file begins today."""
    atlas = state.folder
    here = {f"studies/{p.parent.name}/{RECORDS}" for p in atlas.glob(f"studies/*/{RECORDS}")}
    once = {p for p in history.ever_added(atlas, "studies") if p.endswith(f"/{RECORDS}")}
    for path in (FINDINGS, LEDGER, *sorted(here | once)):
        if not (atlas / path).exists():
            if history.commits_of(atlas, path):
                yield f"{path}: it was deleted; {_RESTORE}"
            continue
        now = read_bytes(atlas / path)
        if history.content_at(atlas, "HEAD", path) != now:
            yield f"{path}: what is here is not committed; commit it"
        for commit in history.commits_of(atlas, path):
            if not now.startswith(history.content_at(atlas, commit, path)):
                yield f"{path}: it does not begin as in commit {commit[:10]}; lines were changed"
