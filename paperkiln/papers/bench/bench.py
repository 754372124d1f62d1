"""Extraction measured on papers with known truth.

An asserted value is right when it equals the truth or one of its alternatives, or when it is a
family (gated-glu) that holds one of them. Otherwise it is wrong where the paper states a value,
and asserted on null where abstaining is right; there, a value that equals an alternative counts
neither for nor against, and one that is publicly known but not stated is noted, and counts.
A stated value that is not asserted is missed; contested is not asserted. Where None is among the
alternatives the text may be read as stating nothing, and abstaining is right too.

    precision = right / (right + wrong + asserted on null)      recall = right / stated

No weights are fitted to these papers, so cross-validation is leave-one-out of the papers
themselves: F1 over the rest, whose extremes show whether one paper carries the figure.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paperkiln.errors import PaperkilnError, Unreachable
from paperkiln.papers.architecture import Architecture
from paperkiln.papers.bench.cases import Case, load_arxiv_table, load_folder
from paperkiln.papers.bench.figures import (
    NAIVE,
    OWN,
    aurocs,
    counts_and_rates,
    grouped,
    leave_one_out,
    pooled,
    rates,
    tally,
    template_weights,
    verdict_accuracy,
)
from paperkiln.papers.bench.judge import (
    FIELDS,
    FLAVORS,
    NUMBERS,
    Candidate,
    Outcome,
    all_evidence,
    candidates,
    holds,
    outcomes,
)
from paperkiln.papers.bench.text import lines
from paperkiln.papers.document import SourceFile

__all__ = ["load_arxiv_table", "load_folder", "open_case", "run_case", "score", "verdict"]

KNOWN_WRONG: dict[tuple[str, str], str] = {}
"""(paper, field) -> why it is wrong; an entry that is wrong no longer has to go."""
HALVES = {"numbers": NUMBERS, "flavors": FLAVORS}
Files = Mapping[str, SourceFile]


@dataclass
class Report:
    """The outcomes of all papers; every figure is computed from them."""

    groups: dict[str, str] = field(default_factory=dict)
    """Paper -> its template, for the papers that were read."""
    outcomes: list[Outcome] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    """Paper -> why its source could not be had; not scored."""
    failed: dict[str, str] = field(default_factory=dict)
    """Paper -> the error that extraction ended with; its stated values are missed."""
    quotes_checked: int = 0
    false_quotes: list[str] = field(default_factory=list)
    known_wrong: dict[tuple[str, str], str] = field(default_factory=dict)

    def of(self, names: Iterable[str]) -> list[Outcome]:
        """Return the outcomes of these fields."""
        return [o for o in self.outcomes if o.field in names]

    def kind(self, kind: str) -> list[Outcome]:
        """Return the outcomes of one kind."""
        return [o for o in self.outcomes if o.kind == kind]

    @property
    def stale(self) -> list[tuple[str, str]]:
        """The registered wrong values, of papers read here, that are wrong no longer."""
        wrong = {(o.paper, o.field) for o in self.kind("wrong")}
        return [key for key in self.known_wrong if key[0] in self.groups and key not in wrong]

    def to_json(self) -> dict[str, Any]:
        """Return every figure, as `paper-bench --json` prints it; None is undefined."""
        groups, halves = self.groups, {half: self.of(names) for half, names in HALVES.items()}
        weights = template_weights(groups)
        auroc = aurocs(self.candidates, groups)
        known = self.known_wrong.items()
        return {
            **{half: tally(made) for half, made in halves.items()},
            "auroc": auroc["auroc"],
            "per_field": {name: self._field(name) for name in FIELDS},
            "wrong": [_entry(o, "got", "truth", "quote") for o in self.kind("wrong")],
            "asserted_on_null": [
                _entry(o, "got", "quote", "note") for o in self.kind("asserted_on_null")
            ],
            "missed": [_entry(o, "truth") for o in self.kind("missed")],
            "known_wrong": [
                {"paper": key[0], "field": key[1], "diagnosis": why, "stale": key in self.stale}
                for key, why in known
            ],
            "rates": {half: rates(tally(made)) for half, made in halves.items()},
            "verdict_accuracy": verdict_accuracy(halves["flavors"]),
            "auroc_detail": auroc["auroc_detail"],
            "by_template": {h: counts_and_rates(made, weights) for h, made in halves.items()},
            "leave_one_out": {h: leave_one_out(made, groups) for h, made in halves.items()},
            "quotes_checked": self.quotes_checked,
            "quotes_false": len(self.false_quotes),
            "false_quotes": self.false_quotes,
            "templates": groups,
            "skipped": self.skipped,
            "failed": self.failed,
        }

    def lines(self) -> list[str]:
        """Return the report as lines for a terminal."""
        return lines(self.to_json())

    def _field(self, name: str) -> dict[str, Any]:
        figures: dict[str, Any] = counts_and_rates(self.of([name]))
        if name in FLAVORS:
            figures["auroc"] = pooled((c for c in self.candidates if c.field == name), OWN)
        return figures


def score(
    cases: Sequence[Case],
    extract: Callable[[Case], Architecture],
    sources: Callable[[Case], Files] | None = None,
    known_wrong: Mapping[tuple[str, str], str] = KNOWN_WRONG,
) -> Report:
    """Return what `extract` makes of each case, against its truth.

    With `sources`, every evidence is looked up in the paper's files, and a paper of which they
    cannot be had (PaperkilnError) is skipped; one that `extract` refuses so has failed.
    """
    report = Report(known_wrong=dict(known_wrong))
    for case in cases:
        try:
            files = sources(case) if sources else None
        except PaperkilnError as error:
            report.skipped[case.id] = str(error)
            continue
        report.groups[case.id] = case.group
        try:
            found = extract(case)
        except PaperkilnError as error:
            report.failed[case.id] = str(error)
            found = Architecture(case.title)
        report.outcomes += outcomes(case, found)
        report.candidates += candidates(case, found)
        if files is not None:
            _check_quotes(report, case, found, files)
    return report


def _check_quotes(report: Report, case: Case, found: Architecture, files: Files) -> None:
    for e in all_evidence(found):
        report.quotes_checked += 1
        if not holds(e, files):
            place = f"{e.file} line {e.line}, characters {e.start} to {e.end}"
            report.false_quotes.append(f"{case.id}: {place}: {e.quote!r}")


def bench_folder(path: str) -> Report:
    """Return the report over a folder of papers with a manifest."""
    sources = functools.cache(open_case)
    return score(load_folder(path), lambda case: run_case(case, sources(case)), sources)


def bench_arxiv(offline: bool) -> Report:
    """Return the report over the shipped truth table, its sources from the cache or arXiv."""
    from paperkiln.papers.source.obtain import obtain

    unreachable: list[Unreachable] = []

    @functools.cache
    def sources(case: Case) -> dict[str, SourceFile]:
        if unreachable:  # 40 papers would each wait for the same network
            raise unreachable[0]
        try:
            return obtain(case.id, offline=offline)[0]
        except Unreachable as error:
            unreachable.append(error)
            raise

    return score(load_arxiv_table(), lambda case: run_case(case, sources(case)), sources)


def open_case(case: Case) -> dict[str, SourceFile]:
    """Return the files of a paper that lies in a folder; raises PaperkilnError."""
    if case.folder is None:
        raise PaperkilnError(f"{case.id} lies in no folder; fetch it first")
    from paperkiln.papers.source.files import open_path

    return open_path(case.folder)


def run_case(case: Case, files: Files | None = None) -> Architecture:
    """Return what the extractor reads in a paper, in `files` or else in its folder."""
    from paperkiln.papers.extract import read_paper

    return read_paper(open_case(case) if files is None else dict(files), paper_id=case.id)


def verdict(report: Report) -> tuple[int, list[str]]:
    """Return the exit code, 1 when the bench fails, and the reasons in words."""
    reasons = [] if report.groups else ["no paper could be read"]
    reasons += [f"{paper}: {error}" for paper, error in report.failed.items()]
    reasons += [
        f"{o.paper} {o.field}: wrong, and not in KNOWN_WRONG"
        for o in report.kind("wrong")
        if (o.paper, o.field) not in report.known_wrong
    ]
    reasons += [
        f"{paper} {name}: in KNOWN_WRONG but wrong no longer; delete the entry"
        for paper, name in report.stale
    ]
    reasons += [
        f"{o.paper} {o.field}: asserted where abstaining is right, without a quote"
        for o in report.kind("asserted_on_null")
        if not o.quote
    ]
    if report.false_quotes:
        n = len(report.false_quotes)
        reasons.append(f"{n} of {report.quotes_checked} quotes are not verbatim at their place")
    ours, naive = (grouped(report.candidates, report.groups, by) for by in (OWN, NAIVE))
    if ours is not None and naive is not None and ours < naive:
        reasons.append(f"grouped AUROC {ours:.3f} is below naive first-match, {naive:.3f}")
    return (1 if reasons else 0), reasons


def _entry(outcome: Outcome, *keys: str) -> dict[str, Any]:
    return {key: getattr(outcome, key) for key in ("paper", "field", *keys)}
