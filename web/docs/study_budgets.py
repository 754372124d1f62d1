"""A comparison of two levels over budgets: the lottery of seeds, and where the sign turns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from html import escape, unescape

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from studies import Study
from svg import ACCENT, EDGE, INK, SOFT, WASH, drawing
from words import details, figure, grid, minus, p_is, p_value, percent, signed, table

from paperkiln.atlas.crossing import Crossing, crossing
from paperkiln.atlas.lottery import Clash, Lottery, lottery
from paperkiln.errors import PaperkilnError

_MOST_BUDGETS = 200  # as many as `deltas` takes


def budgets_of(study: Study) -> list[int]:
    """Return the steps at which all complete runs of a comparison of two levels were validated.

    None where the study has more than one factor or level, or no curves.
    """
    curves = [row["val"] for row in study.complete]
    if [len(labels) for labels in study.levels.values()] != [2] or not all(curves) or not curves:
        return []
    first = max(curve[0][0] for curve in curves)
    last = min(curve[-1][0] for curve in curves)
    steps = sorted({step for curve in curves for step, _ in curve if first <= step <= last})
    return steps[:: math.ceil(len(steps) / _MOST_BUDGETS)]


def _asked(study: Study) -> tuple[list[dict], str, tuple[str, str], list[int]]:
    """Return what `lottery` and `crossing` take, in order."""
    ((factor, labels),) = study.levels.items()
    return study.rows, factor, (labels[0], labels[1]), budgets_of(study)


# --- the lottery --------------------------------------------------------------------------------


def lottery_section(study: Study) -> str:
    """Return what one seed would say at each budget, or nothing for other studies."""
    if not budgets_of(study):
        return ""
    try:
        found = lottery(*_asked(study))
    except PaperkilnError as error:
        return f"<p>There is none: {escape(str(error))}.</p>"
    d = found.deltas
    first, second = escape(d.first), escape(d.second)
    heads = ("Steps", "Mean", "SD", f"{first} better", f"{second} better",
             "Clash, 95 % interval", "p", "p, Holm", "Verdict of all seeds")  # fmt: skip
    return (
        f"<p>{second} − {first} in the lowest validation loss up to each budget, in nats per "
        f"token, {len(d.seeds)} seeds. <b>Clash</b> is the chance that two labs with one seed each "
        f"name different winners. {_worst(found)}</p>"
        + grid(heads, _lottery_rows(found), "The lottery of seeds")
        + f"<p>The verdict is that of the paired t test over the seeds, after Holm's correction "
        f"over {len(found.rows)} budgets, α = {found.alpha:g}. It describes; what was asked before "
        'the runs is under Findings. <a href="../../method/#budgets">More on it.</a></p>'
    )


def _worst(found: Lottery) -> str:
    known = [row for row in found.rows if row.clash.unbiased is not None]
    if not known:
        return ""
    worst = max(known, key=lambda row: row.clash.unbiased)
    return f"It is largest at {worst.budget:,} steps: {percent(worst.clash.unbiased)}."


def _lottery_rows(found: Lottery) -> Iterator[tuple[str, ...]]:
    d = found.deltas
    for row in found.rows:
        se = row.sd / len(d.seeds) ** 0.5
        ties = f" ({row.ties} tied)" if row.ties else ""
        directed = row.verdict in ("lower", "higher")
        verdict = f"{escape(d.second)} {row.verdict}" if directed else row.verdict
        yield (
            f"{row.budget:,}", signed(row.mean, se), f"{row.sd:.4f}",
            f"{row.first_better}{ties}", f"{row.second_better}", _clash(row.clash),
            p_value(row.estimate.p), p_value(row.estimate.p_holm), verdict,
        )  # fmt: skip


def _clash(clash: Clash) -> str:
    if clash.ci is None or clash.unbiased is None:
        return "—"
    return (
        f"{percent(clash.unbiased)}<small> {percent(clash.ci[0])} to {percent(clash.ci[1])}</small>"
    )


# --- the crossing -------------------------------------------------------------------------------


def crossing_section(study: Study) -> str:
    """Return where the difference turns its sign, or nothing for other studies."""
    if not budgets_of(study):
        return ""
    try:
        found = crossing(*_asked(study))
    except PaperkilnError as error:
        return f"<p>There is none to look for: {escape(str(error))}.</p>"
    d = found.deltas
    plot = drawing("crossing", "The difference over budgets", _described(found), (5, 3.2),
                   partial(_paint, found=found))  # fmt: skip
    caption = (
        f"{escape(d.second)} − {escape(d.first)}: below zero {escape(d.second)} is ahead. Dots and "
        f"band: the mean with its {percent(1 - found.alpha)} interval; thin lines: each seed; "
        "dashed: the monotone fit." + _marks(found)
    )
    return (
        f"<p>{_status(found)}</p>"
        + figure(plot, caption)
        + details("In numbers", _curve(found))
        + table(_facts(found), "The crossing")
        + '<p><a href="../../method/#budgets">How this is computed.</a></p>'
    )


def _status(found: Crossing) -> str:
    """Return in words whether and where the order turns."""
    d, zone = found.deltas, found.zone
    first, last = d.budgets[0], d.budgets[-1]
    if found.monotone_p < found.alpha:
        return (
            "The difference does not move one way only "
            f"({p_is(found.monotone_p)}): read no single crossing from it."
        )
    if found.status == "none":
        side = escape(d.second if found.fit[0] + found.fit[-1] < 0 else d.first)
        return f"No crossing: the fit has {side} ahead from {first:,} to {last:,} steps."
    said = f"The order turns at {found.budget:,.0f} steps."
    if found.status == "possible":
        said = (
            f"The order may turn at {found.budget:,.0f} steps, but the differences at {first:,} "
            f"and {last:,} steps are not both resolved: it may be noise."
        )
    if zone is None:
        return said
    return (
        f"{said} In a zone of {zone.width:,.0f} steps around it no experiment with "
        f"{len(d.seeds)} seeds can say which level is better."
    )


def _facts(found: Crossing) -> Iterator[tuple[str, str]]:
    d, zone, n = found.deltas, found.zone, len(found.deltas.seeds)
    if found.budget is not None:
        low, high = found.interval or (None, None)
        start = f"before {d.budgets[0]:,}" if low is None else f"{low:,.0f}"
        end = f"beyond {d.budgets[-1]:,}" if high is None else f"{high:,.0f}"
        few = "; with fewer than 5 seeds it is too narrow" if n < 5 else ""
        yield "Crossing", f"{found.budget:,.0f} steps"
        yield "95 % interval", f"{start} to {end} steps, by bootstrap over the seeds{few}"
    yield "Resampled seeds that cross", percent(found.share_crossing)
    yield "Budgets left unresolved", ", ".join(f"{b:,}" for b in found.unresolved) or "none"
    if zone is not None:
        ends = " to ".join(minus(f"{end:,.0f}") for end in zone.ends)
        yield f"Zone that {n} seeds cannot answer", f"{zone.width:,.0f} steps wide, {ends}"
        yield "Slope there", f"{minus(f'{zone.slope:+.2e}')} nats per token and step"
        yield "SD over seeds there", f"{zone.sd:.4f} nats per token"
        yield "Seeds that halve the zone", _halving(found, zone.width)
    elif found.budget is not None:
        yield "Zone", "none to give: the mean does not move one way around the crossing"
    least = found.monotone_smallest_p
    never = ": it can never reject" if least >= found.alpha else ""
    yield (
        f"Monotone, {found.direction}",
        f"{p_is(found.monotone_p)}; {n} seeds can give {least:.2g} at the smallest{never}",
    )
    yield (
        "Difference in the limit",
        f"{signed(found.limit, found.half_widths[-1] / 2)}, as far as it is seen: the fit at "
        f"{d.budgets[-1]:,} steps",
    )


def _halving(found: Crossing, width: float) -> str:
    try:
        return f"{found.seeds_to_close(width / 2):,}"
    except PaperkilnError as error:
        return escape(str(error))


def _curve(found: Crossing) -> str:
    means = found.deltas.values.mean(axis=0)
    rows = [
        (f"{budget:,}", signed(mean, half / 2), f"± {half:.4f}", signed(fit, half / 2),
         signed(decay, half / 2))
        for budget, mean, half, fit, decay in zip(
            found.deltas.budgets, means, found.half_widths, found.fit, found.decay, strict=True
        )
    ]  # fmt: skip
    heads = ("Steps", "Mean difference", "95 % interval", "Monotone fit", "Limit − fit")
    return grid(heads, rows, "The difference over budgets")


def _described(found: Crossing) -> str:
    d, means = found.deltas, found.deltas.values.mean(axis=0)
    ends = ", ".join(
        f"{signed(means[i], found.half_widths[i] / 2)} at {d.budgets[i]:,} steps" for i in (0, -1)
    )
    return f"{d.second} minus {d.first}, nats per token: {ends}. {unescape(_status(found))}"


def _marks(found: Crossing) -> str:
    if found.budget is None:
        return ""
    zone = "; the upright band: the zone" if found.zone else ""
    return f" Dotted: the crossing{zone}."


def _paint(axes: Axes, found: Crossing) -> None:
    d, means = found.deltas, found.deltas.values.mean(axis=0)
    axes.axhline(0, color=EDGE, linewidth=1)
    if found.zone is not None:
        axes.axvspan(*found.zone.ends, color=WASH, linewidth=0, zorder=0)
    for curve in d.values:
        axes.plot(d.budgets, curve, color=SOFT, linewidth=0.6, alpha=0.5)
    low, high = means - found.half_widths, means + found.half_widths
    axes.fill_between(d.budgets, low, high, color=ACCENT, alpha=0.22, linewidth=0)
    axes.plot(d.budgets, means, "o-", color=ACCENT, linewidth=1.2, markersize=3.5)
    axes.plot(d.budgets, found.fit, color=INK, linewidth=1.5, linestyle="--")
    if found.budget is not None:
        axes.axvline(found.budget, color=INK, linewidth=1, linestyle=":")
    axes.set_xlim(d.budgets[0], d.budgets[-1])
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.set_xlabel("steps")
    axes.set_ylabel(f"{d.second} − {d.first}, nats per token")
