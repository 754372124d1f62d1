"""Run a finding's experiment again and say whether its claim came out again.

The whole sweep is run, whatever the claim: the error term of one effect comes from all cells.
With the same seeds a replication tests the software; only new seeds test the claim.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paperkiln.atlas.findings import (
    CORRECTED,
    LIVE,
    Finding,
    Verdict,
    analysis_of,
    find,
    read_findings,
)
from paperkiln.atlas.preregister import levels_of, study_sweep
from paperkiln.atlas.records import append_record, read_records
from paperkiln.atlas.register import amend
from paperkiln.atlas.rows import rows_of, write_rows
from paperkiln.atlas.sweep import SweepSpec, parse_sweep
from paperkiln.errors import PaperkilnError
from paperkiln.output import duration

if TYPE_CHECKING:
    from paperkiln.atlas.estimate import Estimate

FOLDER = Path("runs") / "reproduce"


@dataclass(frozen=True)
class Plan:
    """What a replication would run, and what that costs."""

    finding: Finding
    sweep: SweepSpec
    folder: Path
    runs: int
    jobs: int
    seconds: float
    new_seeds: bool

    @property
    def tests(self) -> str:
        """What this replication can show, in words."""
        seeds = ", ".join(map(str, self.sweep.seeds))
        if self.new_seeds:
            return f"new seeds {seeds}: tests the claim"
        return f"the same seeds {seeds}: tests the software, not the claim (--seeds for new ones)"

    def lines(self) -> list[str]:
        """Return the plan as text."""
        f = self.finding
        warning = [f"note: {f.id} is {f.status}: {f.note}"] if f.status in CORRECTED else []
        return [
            f"{f.id} ({f.status}): {f.claim}",
            f"  found: {f.outcome}, effect {f.effect:+.4g} ± {f.se:.2g} on {f.metric}",
            *warning,
            f"  runs: {self.runs} of {f.study}, {self.tests}",
            f"  cost: {duration(self.seconds)} with {self.jobs} jobs, by the original receipts",
            f"  folder: {self.folder}",
        ]


@dataclass(frozen=True)
class Reproduction:
    """What came out: the verdict with its reason, and where the records are."""

    plan: Plan
    verdict: Verdict
    reason: str
    estimate: Estimate

    @property
    def exit_code(self) -> int:
        """0 only for a claim that came out again."""
        return 0 if self.verdict == "REPLICATED" else 1

    def lines(self) -> list[str]:
        """Return the verdict as text."""
        old, new = self.plan.finding, self.estimate
        low, high = new.ci
        return [
            f"{old.id}: {self.verdict}: {self.reason}",
            f"  then: {old.effect:+.4g} [{old.ci[0]:+.4g}, {old.ci[1]:+.4g}], {old.outcome}",
            f"  now:  {new.effect:+.4g} [{low:+.4g}, {high:+.4g}], p {new.p:.2g}",
            f"  {self.plan.tests}",
        ]


def make_plan(
    finding_id: str, atlas: Path, *, jobs: int = 2, seeds: Sequence[int] | None = None,
    out: Path | None = None,
) -> Plan:  # fmt: skip
    """Return what a replication would run.

    Raises PaperkilnError for an unknown finding, for seeds that are not all new, or for a folder
    inside the atlas.
    """
    from paperkiln.atlas.cells import resolve

    finding = find(read_findings(atlas), finding_id)
    study = atlas / "studies" / finding.study
    original = study_sweep(study)
    if seeds and set(seeds) & set(original.seeds):
        used = sorted(set(seeds) & set(original.seeds))[0]
        raise PaperkilnError(f"seed {used} is of the original study; give seeds that are all new")
    records = read_records(study)
    if not records:
        raise PaperkilnError(f"{study} has no records to go by; get the whole atlas")
    chosen = list(seeds or original.seeds)
    wall = [r["wall_seconds"] for r in records if isinstance(r.get("wall_seconds"), int | float)]
    runs = len(resolve(original)) * len(chosen)
    folder = out or _free(lambda n: FOLDER / f"{finding_id}-{n}")
    if folder.resolve().is_relative_to(atlas.resolve()):
        raise PaperkilnError(f"{folder} is inside the atlas; choose a folder outside of it")
    name = _free(lambda n: atlas / "studies" / f"{original.name}-replication-{n}").name
    values = original.model_dump(mode="json") | {"name": name, "seeds": chosen}
    return Plan(
        finding, parse_sweep(values, finding_id), folder, runs, jobs,
        seconds=runs * sum(wall) / max(1, len(wall)) / jobs, new_seeds=bool(seeds),
    )  # fmt: skip


def _free(path_of: Callable[[int], Path]) -> Path:
    """Return the first numbered path that does not exist."""
    number = 1
    while path_of(number).exists():
        number += 1
    return path_of(number)


def reproduce(
    plan: Plan, atlas: Path, *, record: bool = False, date: str | None = None, **options: Any
) -> Reproduction:
    """Run the plan and return the verdict; `options` go to `run_sweep` (listen, backend).

    With `record`, the records join the atlas and the verdict the finding's history.
    Raises PaperkilnError where the text of the original is not here, or where a run broke.
    """
    from paperkiln.atlas.execute import run_sweep

    if record and plan.finding.status in CORRECTED:
        raise PaperkilnError(f"{plan.finding.id} is {plan.finding.status}: nothing to record")
    if plan.finding.outcome == "unresolved":
        raise PaperkilnError(
            f"{plan.finding.id} is unresolved: there is no claim to replicate; "
            "pre-register a study with more seeds"
        )
    check_corpora(atlas / "studies" / plan.finding.study)
    study = plan.folder / "atlas" / "studies" / plan.sweep.name
    outcome = run_sweep(plan.sweep, study, plan.folder / "runs", jobs=plan.jobs, **options)
    if outcome["left"]:
        broken = "; ".join(f"{run}: {why}" for run, why in list(outcome["broken"].items())[:1])
        raise PaperkilnError(
            f"{outcome['left']} of {outcome['total']} runs are left ({broken or 'stopped'}); "
            f"go on with --out {plan.folder}"
        )
    found = estimate_again(plan.finding, study)
    verdict, reason = judge(plan.finding, found)
    result = Reproduction(plan, verdict, reason, found)
    if record:
        _keep(result, study, atlas, date)
    return result


def check_corpora(study: Path) -> None:
    """Raise PaperkilnError unless every text that the study was trained on is here, unchanged."""
    from paperkiln.spec import DataSpec
    from paperkiln.train.data import load_corpus

    wanted = {
        DataSpec.model_validate(r["spec"]["data"]): r["corpus"]["sha256"]
        for r in read_records(study)
    }
    for data, sha256 in wanted.items():
        try:
            found = load_corpus(data).sha256
        except PaperkilnError as error:
            reason = str(error).partition("; ")[0]
            raise PaperkilnError(
                f"the text that {study.name} was trained on is not here ({reason}); bring it back"
            ) from None
        if found != sha256:
            raise PaperkilnError(
                f"{data.corpus} is not the text that {study.name} was trained on (sha256 "
                f"{found[:12]}… instead of {sha256[:12]}…); bring that one back"
            )


def estimate_again(finding: Finding, study: Path) -> Estimate:
    """Return the finding's own analysis of the rows of another study."""
    from paperkiln.atlas.analyze import estimate

    return estimate(rows_of(study), analysis_of(finding), levels_of(study_sweep(study)))


def judge(finding: Finding, found: Estimate | Finding) -> tuple[Verdict, str]:
    """Return the verdict on a finding from a new estimate of the same effect, and why.

    A directed claim needs the same direction, and a magnitude that does not differ at 5 % (Welch's
    t of the two effects); a claim of no effect needs the equivalence test again. p is not
    corrected: a replication asks one question.
    """
    from paperkiln.atlas.analyze import decide, equivalence

    check = finding.check
    outcome = decide(found, check.alpha, check.margin)
    if check.outcome == "equivalent":
        if equivalence(found, check.margin) < check.alpha:
            return "REPLICATED", f"again within ± {check.margin:g}"
        if outcome == "unresolved":
            return "UNDERPOWERED", f"neither within ± {check.margin:g} nor clearly outside"
        return "DID NOT REPLICATE", f"now {outcome}, and not within ± {check.margin:g}"
    apart = abs(found.effect - finding.effect)
    allowed = _allowed(finding, found)
    if outcome not in (check.outcome, "unresolved"):
        return "DID NOT REPLICATE", f"{check.outcome} then, {outcome} now"
    if apart > allowed:
        return "DID NOT REPLICATE", (
            f"the effects differ by {apart:.3g}, more than chance allows ({allowed:.3g})"
        )
    if outcome == check.outcome:
        return "REPLICATED", (
            f"{outcome} again; the effects differ by {apart:.3g}, and chance allows {allowed:.3g}"
        )
    return "UNDERPOWERED", "compatible with the claim, and with no effect"


def _allowed(one: Finding, other: Estimate | Finding) -> float:
    """Return by how much two estimates of one effect differ by chance in 95 % of cases (Welch)."""
    from scipy import stats

    variances = [(e.se**2, e.df) for e in (one, other) if e.se > 0]
    total = sum(v for v, _ in variances)
    if not total:
        return 0.0
    df = total**2 / sum(v**2 / df for v, df in variances)
    return float(stats.t.ppf(0.975, df)) * math.sqrt(total)


def _keep(result: Reproduction, study: Path, atlas: Path, date: str | None) -> None:
    """Bring the records into the atlas and the verdict into the finding's history."""
    plan, finding = result.plan, result.plan.finding
    receipt = f"studies/{plan.sweep.name}/records.jsonl"
    target = atlas / "studies" / plan.sweep.name
    if target.exists():
        raise PaperkilnError(f"{target} exists; make the plan again")
    for record in read_records(study):
        append_record(atlas, record)
    shutil.copyfile(study / "sweep.json", target / "sweep.json")
    write_rows(target)
    # The same seeds show that the software still does what it did: no new evidence.
    confirmed = result.verdict == "REPLICATED" and plan.new_seeds and finding.status in LIVE
    by = (*finding.replicated_by, receipt) if confirmed else finding.replicated_by
    event = {
        "status": "replicated" if confirmed else finding.status,
        "note": f"{result.reason}; {plan.tests.partition(' (')[0]}",
        "verdict": result.verdict,
        "receipt": receipt,
    }
    amend(atlas, finding, event, date, replicated_by=by)
