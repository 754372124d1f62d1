"""The effects of a study: their plot and table, what stands out, and what they rest on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from interval import effects_plot
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from studies import Study
from svg import ACCENT, EDGE, SOFT, drawing
from words import (
    axis_label,
    details,
    figure,
    grid,
    interval,
    items,
    minus,
    p_is,
    p_value,
    relative,
    signed,
    units,
)

from paperkiln.atlas.analyze import (
    Estimate,
    HalfNormal,
    ResidualChecks,
    check_residuals,
    effects,
    half_normal,
)
from paperkiln.atlas.blocks import blocks
from paperkiln.atlas.contrasts import model
from paperkiln.atlas.error_term import error_term
from paperkiln.atlas.records import read_records
from paperkiln.errors import PaperkilnError

ALPHA = 0.05


def effects_section(atlas: Path, study: Study, metric: str) -> str:
    """Return all effects of a study on a metric."""
    failed = _failed(atlas, study)
    try:
        found = sorted(effects(study.rows, metric, levels=study.levels), key=lambda e: -abs(e.t))
    except PaperkilnError as error:
        return f"{failed}<p>The effects cannot be estimated: {escape(str(error))}.</p>"
    table = blocks(study.rows, metric, study.levels)
    notes = [*model(table).notes, *table.notes, *error_term(table, model(table)).notes]
    return (
        failed
        + _drawn(found, metric)
        + _tabled(found, metric)
        + items([_error_words(found[0], len(found)), *map(_sentence, notes)])
        + details("The mean of each cell", _cells(study, metric))
        + (_half_normal(study, metric) if len(found) > 2 else "")
        + "<h3>Residuals</h3>"
        + items(residual_words(check_residuals(study.rows, metric, study.levels)))
    )


def residual_error(study: Study, metric: str) -> tuple[int, int, float]:
    """Return the number of cells and of seeds, and the residual standard deviation.

    Raises PaperkilnError where the study has no error term, or does not pair its seeds.
    """
    table = blocks(study.rows, metric, study.levels)
    error = error_term(table, model(table))
    if error.paired is None:
        raise PaperkilnError("the cells do not share two seeds, so there is no common residual")
    return len(table.cells), len(error.seeds), math.sqrt(error.variance[0] * len(error.seeds))


def _failed(atlas: Path, study: Study) -> str:
    """Name the runs that failed, with the reason that their records give."""
    names = [row["run"] for row in study.rows if row["complete"] is not True]
    if not names:
        return ""
    reasons = {r["run"]: r.get("reason", "") for r in read_records(atlas / study.folder)}
    listed = items(f"<code>{escape(n)}</code> {escape(reasons.get(n, ''))}" for n in names)
    return f"<p>{len(names)} of {len(study.rows)} runs failed and are in no estimate:</p>{listed}"


def _drawn(found: Sequence[Estimate], metric: str) -> str:
    said = "; ".join(f"{e.term} {signed(e.effect, e.se)} ({interval(e)})" for e in found)
    plot = effects_plot(found, ALPHA, f"On {metric}: {said}.", axis_label(metric))
    return figure(
        plot,
        "High minus low level, with 95 % intervals, the clearest on top; the line is zero. "
        f"Filled: p, Holm, is below {ALPHA:g}. For a loss, left is better.",
    )


def _tabled(found: Sequence[Estimate], metric: str) -> str:
    heads = ("Term", "Effect, 95 % interval", "Relative", "SE", "t", "p", "p, Holm", "p by seeds")
    rows = [
        (
            f"{escape(e.term)}<small>{escape(f'{e.high} − {e.low}') if e.low else ''}</small>",
            f"{signed(e.effect, e.se)}<small>{interval(e)}</small>", relative(e.relative),
            f"{e.se:.2g}", minus(f"{e.t:+.2f}"),
            p_value(e.p), p_value(e.p_holm), p_value(e.p_per_seed),
        )
        for e in found
    ]  # fmt: skip
    return grid(heads, rows, f"The effects on {metric}")


def _error_words(some: Estimate, terms: int) -> str:
    over = f"over the {terms} terms of this table" if terms > 1 else "of one term"
    return (
        f"Effects are in {units(some.metric)}; a:b is half the difference of the differences. "
        f"Error term: {escape(some.error_term)}, {some.df:.4g} degrees of freedom. p, Holm, is "
        f"{over}. p by seeds is the t test of the effects within each seed, which does not assume "
        'that all cells vary alike. <a href="../../method/#error">More on it.</a>'
    )


def _sentence(note: str) -> str:
    return f"{escape(note[:1].upper() + note[1:])}."


def _cells(study: Study, metric: str) -> str:
    table = blocks(study.rows, metric, study.levels)
    error = error_term(table, model(table))
    rows = [
        (str(i), *map(escape, cell), f"{mean:.4f}", str(len(values)))
        for i, (cell, mean, values) in enumerate(
            zip(table.cells, error.means, table.values, strict=True), 1
        )
    ]
    heads = ("Cell", *map(escape, table.factors), f"Mean {metric}", "Runs")
    return grid(heads, rows, "The mean of each cell")


# --- the half-normal plot -----------------------------------------------------------------------


def _half_normal(study: Study, metric: str) -> str:
    try:
        data = half_normal(study.rows, metric, study.levels)
    except PaperkilnError as error:
        return f"<h3>What stands out</h3><p>It cannot be told: {escape(str(error))}.</p>"
    beyond = ", ".join(map(escape, reversed(data.outstanding))) or "none"
    words = f"Beyond the margin of {data.margin:.3g}: {beyond}."
    plot = drawing(
        "half-normal", f"Half-normal plot of the effects on {metric}", words, (5, 3.2),
        lambda axes: _paint(axes, data),
    )  # fmt: skip
    caption = (
        f"{words} The sloping line is where {len(data.terms)} effects would lie if all were noise "
        f"with a standard error of {data.pse:.3g}; the dashed line is the margin. Both come from "
        "the effects alone, after Lenth: they take most terms for noise, and are too wide where "
        "most are not."
    )
    rows = [
        (escape(term), f"{size:.4g}", f"{quantile:.2f}", "yes" if size > data.margin else "no")
        for term, size, quantile in zip(data.terms, data.sizes, data.quantiles, strict=True)
    ]
    heads = ("Term", "Size of the effect", "Half-normal quantile", "Beyond the margin")
    listed = grid(heads, reversed(rows), "The half-normal plot in numbers")
    return f"<h3>What stands out</h3>{figure(plot, caption)}" + details("In numbers", listed)


def _paint(axes: Axes, data: HalfNormal) -> None:
    top, right = data.quantiles[-1] * 1.12, max(*data.sizes, data.margin) * 1.08
    axes.plot([0, top * data.pse], [0, top], color=EDGE, linewidth=1)
    axes.axvline(data.margin, color=SOFT, linewidth=1, linestyle="--")
    for term, x, y in zip(data.terms, data.sizes, data.quantiles, strict=True):
        out = x > data.margin
        axes.plot([x], [y], "o" if out else ".", color=ACCENT if out else SOFT, markersize=6)
        if out:
            left = x > right / 2  # the name goes where there is room
            axes.annotate(term, (x, y), xytext=(-7 if left else 7, 0), textcoords="offset points",
                          ha="right" if left else "left", va="center", color=ACCENT)  # fmt: skip
    axes.set_xlim(0, right)
    axes.set_ylim(0, top)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlabel(f"size of the effect on {axis_label(data.metric)}")
    axes.set_ylabel("half-normal quantile")


# --- what the tests assume ----------------------------------------------------------------------


def residual_words(checks: ResidualChecks) -> Iterator[str]:
    """Yield what each check of the residuals says; a small p speaks against the assumption."""
    yield _said(
        checks.normality, "Shapiro–Wilk", "Nothing speaks against normal residuals",
        "The residuals are not normal: the t tests are approximate",
    )  # fmt: skip
    unequal = {n: p for n, p in checks.equal_variance.items() if p is not None and p < ALPHA}
    tested = {n: p for n, p in checks.equal_variance.items() if p is not None}
    if unequal:
        named = ", ".join(f"{escape(name)} ({p_is(p)})" for name, p in unequal.items())
        yield (
            f"Levels do not vary alike, by Brown and Forsythe: {named}. "
            "There the p by seeds is the one to go by."
        )
    elif tested:
        yield _said(
            min(tested.values()), "Brown–Forsythe, the smallest of all factors",
            "The levels of each factor vary alike", "",
        )  # fmt: skip
    yield _said(
        checks.drift, "Drift, by Spearman", "No drift over the order in which the runs ended",
        "The residuals drift over the order in which the runs ended",
    )  # fmt: skip
    yield _said(
        checks.seeds_differ, "F test of the blocks",
        "Seeds do not differ clearly: pairing by seed gained little",
        "Seeds differ, and pairing took that out of every effect",
    )  # fmt: skip
    if checks.lack_of_fit is not None:
        yield _said(
            checks.lack_of_fit, "F test of what the terms leave over",
            "The cells hold no more than these terms",
            f"The cells hold more than these terms: effects of {checks.left_over:.2g} (root mean "
            "square) are left over, which are interactions. The standard errors know nothing of "
            "them: where they are mixed into a main effect, one of about that size shows nothing",
        )  # fmt: skip
    largest = ", ".join(
        f"<code>{escape(run)}</code> {minus(f'{value:+.2f}')}" for run, value in checks.largest
    )
    yield f"The largest residuals, standardised: {largest}."


def _said(p: float | None, test: str, well: str, ill: str) -> str:
    if p is None:
        return f"{test}: this design cannot show it."
    return f"{ill if p < ALPHA else well} ({test}, {p_is(p)})."
