"""Figures over outcomes and candidates: counts, rates, AUROC, leave-one-out.

`groups` maps each paper to its template, a paper that shares none to itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain
from operator import attrgetter
from typing import Any

from paperkiln.papers.bench.auroc import auroc, bootstrap, weighted_mean
from paperkiln.papers.bench.judge import FLAVORS, Candidate, Outcome

COUNTED = ("stated", "right", "wrong", "missed", "asserted_on_null")
_GOOD = ("right", "abstained", "alternative")

Groups = Mapping[str, str]
Weights = Mapping[str, float]
Scored = Callable[[Candidate], float]
OWN: Scored = attrgetter("score")
NAIVE: Scored = attrgetter("naive")


def tally(outcomes: Iterable[Outcome], weights: Weights | None = None) -> dict[str, float]:
    """Return the counts named in COUNTED; with `weights` each paper's outcomes count so much."""
    counts = dict.fromkeys(COUNTED, 0.0 if weights else 0)
    for outcome in outcomes:
        weight = weights[outcome.paper] if weights else 1
        if outcome.kind in counts:
            counts[outcome.kind] += weight
        if outcome.kind in ("right", "wrong", "missed"):
            counts["stated"] += weight
    return counts


def rates(counts: Mapping[str, float]) -> dict[str, float | None]:
    """Return precision, recall and F1, their harmonic mean; None where nothing was counted."""
    stated, right = counts["stated"], counts["right"]
    asserted = right + counts["wrong"] + counts["asserted_on_null"]
    return {
        "precision": right / asserted if asserted else None,
        "recall": right / stated if stated else None,
        "f1": 2 * right / (asserted + stated) if asserted + stated else None,
    }


def counts_and_rates(
    outcomes: Iterable[Outcome], weights: Weights | None = None
) -> dict[str, float | None]:
    """Return what `tally` and `rates` return, in one."""
    counts = tally(outcomes, weights)
    return {**counts, **rates(counts)}


def verdict_accuracy(outcomes: Collection[Outcome]) -> dict[str, int]:
    """Count the fields that are as they should be: right, or rightly left open."""
    return {"correct": sum(o.kind in _GOOD for o in outcomes), "of": len(outcomes)}


def template_weights(groups: Groups) -> dict[str, float]:
    """Return each paper's weight, with which every template counts as one paper."""
    sizes = Counter(groups.values())
    return {paper: 1 / sizes[group] for paper, group in groups.items()}


def leave_one_out(outcomes: Collection[Outcome], groups: Groups) -> dict[str, Any]:
    """Return, by template, the F1 over the papers of all the others, and its extremes."""
    without = {
        left: rates(tally(o for o in outcomes if o.group != left))["f1"]
        for left in dict.fromkeys(groups.values())
    }
    defined = [f1 for f1 in without.values() if f1 is not None]
    return {
        "min": min(defined, default=None),
        "max": max(defined, default=None),
        "f1_without": without,
    }


def pooled(candidates: Iterable[Candidate], by: Scored) -> float | None:
    """Return the AUROC over the candidates of all papers and fields together."""
    return auroc((by(c), c.true) for c in candidates)


Unit = list[tuple[float, float]]
"""The (AUROC, weight) of each field of one paper, or of one template."""


def grouped(
    candidates: Iterable[Candidate], groups: Groups, by: Scored, weights: Weights | None = None
) -> float | None:
    """Return the mean AUROC over each paper's each field, where it is defined.

    It measures the deployed decision: which of the values named for a field is the paper's own.
    """
    return _mean(_units(candidates, groups, by, weights))


def aurocs(candidates: Collection[Candidate], groups: Groups) -> dict[str, dict[str, Any]]:
    """Return `auroc` and `auroc_detail` of the report; intervals resample papers or templates."""
    weights = template_weights(groups)
    papers = [[c for c in candidates if c.paper == paper] for paper in groups]
    return {
        "auroc": {
            "grouped": grouped(candidates, groups, OWN),
            "grouped_ci": bootstrap(_units(candidates, groups, OWN), _mean),
            "pooled": pooled(candidates, OWN),
            "naive_grouped": grouped(candidates, groups, NAIVE),
        },
        "auroc_detail": {
            "pooled_ci": bootstrap(papers, lambda drawn: pooled(chain.from_iterable(drawn), OWN)),
            "pooled_post_veto": pooled((c for c in candidates if not c.vetoed), OWN),
            "naive_pooled": pooled(candidates, NAIVE),
            "by_template": grouped(candidates, groups, OWN, weights),
            "by_template_ci": bootstrap(_units(candidates, groups, OWN, weights), _mean),
            "naive_by_template": grouped(candidates, groups, NAIVE, weights),
        },
    }


def _units(
    candidates: Iterable[Candidate], groups: Groups, by: Scored, weights: Weights | None = None
) -> list[Unit]:
    fields: dict[tuple[str, str], list[Candidate]] = {}
    for candidate in candidates:
        fields.setdefault((candidate.paper, candidate.field), []).append(candidate)
    units: dict[str, Unit] = {}
    for paper, group in groups.items():
        unit = units.setdefault(group if weights else paper, [])
        for name in FLAVORS:
            if (value := pooled(fields.get((paper, name), ()), by)) is not None:
                unit.append((value, weights[paper] if weights else 1.0))
    return list(units.values())


def _mean(units: Iterable[Unit]) -> float | None:
    return weighted_mean(item for unit in units for item in unit)
