"""The effects of a study, each with the error term that its design gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from paperkiln.atlas.blocks import Blocks, Row, blocks, listed
from paperkiln.atlas.contrasts import Model, Term, model, simple_effect, two_levels
from paperkiln.atlas.error_term import Array, ErrorTerm, error_term
from paperkiln.atlas.estimate import (
    Estimate,
    half_width,
    holm,
    is_rounding,
    t_test,
)
from paperkiln.errors import PaperkilnError

Levels = Mapping[str, Sequence[str]]

_KEYS = {
    "effect": {"kind", "metric", "term", "levels"},
    "simple": {"kind", "metric", "term", "levels", "given"},
    "change": {"kind", "metric", "term", "levels", "given", "from", "to"},
}


def effects(
    rows: Sequence[Row],
    metric: str,
    interactions: bool | None = None,
    levels: Levels | None = None,
) -> list[Estimate]:
    """Return the main effects and two-way interactions of a study on a metric.

    `interactions`: None takes those that the design can tell apart, True insists on them, False
    leaves them out. `levels` gives the order of a factor's labels, the low one first (default:
    natural order). `p_holm` is over all terms that are returned.
    Raises PaperkilnError where the rows give no error term, or where interactions are insisted
    on and partially aliased with other terms, as in a Plackett-Burman screen.
    """
    table = blocks(rows, metric, levels)
    terms = model(table)
    if interactions and terms.refusal:
        raise PaperkilnError(terms.refusal)
    kept = [t for t in terms.terms if ":" not in t.name or interactions is not False]
    if not kept:
        raise PaperkilnError("no factor varies in these rows")
    error = error_term(table, terms)
    return holm([_estimate(table, error, term) for term in kept])


def estimate(
    rows: Sequence[Row], analysis: Mapping[str, Any], levels: Levels | None = None
) -> Estimate:
    """Return the one estimate that an analysis asks for.

    {"kind": "effect", "metric", "term"}: high - low; for a term "a:b" half the difference of the
    differences. {"kind": "simple", "metric", "term", "given": {factor: label}}: high - low among
    the cells with those labels, tested with the error of the whole design.
    {"kind": "change", "term", "from", "to"}: effect on val@to less the effect on val@from.
    Each may have "levels": {factor: [low, high]}.
    Raises PaperkilnError for an analysis that says something else, or that the rows cannot answer.
    """
    kind, term, given, metric = _checked(analysis)
    order = {**(levels or {}), **analysis.get("levels", {})}
    table = blocks(rows, metric, order)
    design = model(table)
    error = error_term(table, design)
    chosen = simple_effect(table, term, given) if given else _find(design, table, term)
    found = _estimate(table, error, chosen)
    if kind == "change":  # relative to the loss at the end, not to how far it fell
        end = error_term(blocks(rows, f"val@{analysis['to']}", order), design)
        found = replace(found, relative=_ratio(found.effect, end.means[chosen.is_low].mean()))
    return found


def estimate_family(
    rows: Sequence[Row], analyses: Sequence[Mapping[str, Any]], levels: Levels | None = None
) -> list[Estimate]:
    """Return the estimates of several analyses, with Holm's p over all of them."""
    return holm([estimate(rows, analysis, levels) for analysis in analyses])


def _checked(analysis: Mapping[str, Any]) -> tuple[str, str, dict[str, str], str]:
    """Return kind, term, given and metric of an analysis that says what it should."""
    kind, term, given = analysis.get("kind"), analysis.get("term"), analysis.get("given", {})
    if kind not in _KEYS:
        raise PaperkilnError(f"an analysis is of the kind {', '.join(_KEYS)}, not {kind!r}")
    unknown = sorted(set(analysis) - _KEYS[kind])
    if unknown:
        raise PaperkilnError(f"an analysis of the kind {kind} has no {listed(unknown)}")
    if not isinstance(term, str) or not term:
        raise PaperkilnError("an analysis needs a term: the name of a factor")
    if not isinstance(given, Mapping) or (kind == "simple" and not given):
        raise PaperkilnError('a simple effect needs "given": {factor: label}')
    if not isinstance(analysis.get("levels", {}), Mapping):
        raise PaperkilnError('"levels" is {factor: [low, high]}')
    metric = analysis.get("metric", "best_val" if kind == "change" else None)
    if not isinstance(metric, str):
        raise PaperkilnError(f"the analysis of {term} needs a metric, such as best_val")
    if kind == "change":
        start, end = analysis.get("from"), analysis.get("to")
        if metric != "best_val" or not all(type(s) is int for s in (start, end)) or start >= end:
            raise PaperkilnError('a change is one of best_val, "from" a step "to" a later one')
        metric = f"val@{end} - val@{start}"
    return kind, term, {str(k): str(v) for k, v in given.items()}, metric


def _find(design: Model, table: Blocks, name: str) -> Term:
    """Return the term of this name, its factors in either order, or the one it is aliased with."""
    parts = name.split(":")
    if len(parts) == 1:
        two_levels(table, name)
    elif len(parts) > 2 or len(set(parts)) < 2:
        raise PaperkilnError(f"{name!r}: an interaction is of two factors, written a:b")
    else:
        for part in parts:
            two_levels(table, part)
        if design.refusal:
            raise PaperkilnError(design.refusal)
    spellings = {name, ":".join(reversed(parts))}
    for term in design.terms:
        if term.name in spellings:
            return term
        for alias in term.aliases:
            if alias.lstrip("-") not in spellings:
                continue
            if ":" not in term.name:
                raise PaperkilnError(f"{name} is aliased with the main effect of {term.name}: "
                                     "this design cannot tell them apart")  # fmt: skip
            sign = -1.0 if alias.startswith("-") else 1.0
            others = (term.name, *(a for a in term.aliases if a != alias))
            return replace(term, name=name, weights=sign * term.weights, aliases=others)
    raise PaperkilnError(f"this design has no term {name}")


def _estimate(table: Blocks, error: ErrorTerm, term: Term) -> Estimate:
    scale = float(np.abs(error.means).max())
    se, df = error.of(term.weights)
    effect, se = _rounded(float(term.weights @ error.means), se, scale)
    t, p = t_test(effect, se, df)
    half = half_width(se, df)
    per_seed, p_per_seed = _within_seeds(error, term.weights)
    used = np.abs(term.weights) > 1e-12
    runs = sum(n for n, u in zip(error.counts, used, strict=True) if u)
    return Estimate(
        term=term.name, metric=table.metric, effect=effect, se=se, df=df, t=t, p=p, p_holm=None,
        ci=(effect - half, effect + half),
        relative=_ratio(effect, error.means[term.is_low].mean()),
        n_runs=runs, n_seeds=len(error.seeds), error_term=error.words,
        method=_method(table, error, term, int(used.sum())),
        low=term.low, high=term.high, aliases=term.aliases,
        per_seed=per_seed, p_per_seed=p_per_seed,
    )  # fmt: skip


def _within_seeds(
    error: ErrorTerm, weights: Array
) -> tuple[tuple[tuple[int, float], ...], float | None]:
    """Return the contrast of every seed, and the p of their own t test.

    It does not assume that the cells vary alike, and has fewer degrees of freedom for it.
    """
    if error.paired is None:
        return (), None
    effects = weights @ error.paired
    n, scale = len(effects), float(np.abs(error.paired).max())
    mean, se = _rounded(float(effects.mean()), float(effects.std(ddof=1)) / n**0.5, scale)
    p = t_test(mean, se, n - 1)[1] if se or not mean else None
    return tuple(zip(error.seeds, map(float, effects), strict=True)), p


def _method(table: Blocks, error: ErrorTerm, term: Term, cells: int) -> str:
    """Say what was compared with what, and what is missing."""
    if ":" in term.name:
        what = f"half the difference of the differences, over {cells} cells; relative to the mean"
    else:
        what = f"{term.high} - {term.low}, means of {cells} cells"
    aliased = [f"aliased with {', '.join(term.aliases)}"] if term.aliases else []
    return "; ".join([what, *aliased, *error.notes, *table.notes])


def _rounded(effect: float, se: float, scale: float) -> tuple[float, float]:
    """Return effect and standard error, as zeros where they are the rounding of equal numbers."""
    return 0.0 if is_rounding(effect, scale) else effect, 0.0 if is_rounding(se, scale) else se


def _ratio(effect: float, base: float) -> float | None:
    return float(effect / base) if base else None
