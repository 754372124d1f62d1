"""Effects with their intervals: of one finding, and of all terms of a study."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from svg import ACCENT, EDGE, PAPER, SOFT, WASH, drawing

from paperkiln.atlas.estimate import Estimate


def interval_plot(
    effect: float,
    interval: tuple[float, float],
    *,
    seeds: Sequence[float] = (),
    margin: float | None = None,
    label: str,
    axis: str,
) -> str:
    """Return the drawing: the effect and its interval, zero, a margin, and a dot for each seed."""

    def paint(axes: Axes) -> None:
        if margin is not None:
            axes.axvspan(-margin, margin, color=WASH, linewidth=0)
        _bar(axes, 1, effect, interval, ACCENT)
        axes.plot(seeds, [0] * len(seeds), "o", markerfacecolor="none", markeredgecolor=SOFT)
        _rows(axes, ["each seed", "all"] if seeds else ["all"], 0 if seeds else 1)
        axes.set_xlabel(axis)

    return drawing("interval", "Effect and interval", label, (5, 1.6 if seeds else 1.2), paint)


def effects_plot(effects: Sequence[Estimate], alpha: float, description: str, axis: str) -> str:
    """Return the drawing of many effects, the first on top; those beyond chance are filled."""

    def paint(axes: Axes) -> None:
        for row, found in enumerate(reversed(effects)):
            clear = (found.p if found.p_holm is None else found.p_holm) < alpha
            _bar(axes, row, found.effect, found.ci, ACCENT if clear else SOFT, filled=clear)
        _rows(axes, [found.term for found in reversed(effects)])
        axes.set_xlabel(axis)

    height = 0.7 + 0.27 * len(effects)
    return drawing("effects", "Effects and intervals", description, (5, height), paint)


def _bar(
    axes: Axes,
    row: int,
    effect: float,
    interval: tuple[float, float],
    colour: str,
    filled: bool = True,
) -> None:
    axes.plot(interval, [row, row], color=colour, linewidth=2, solid_capstyle="butt")
    axes.plot([*interval], [row, row], "|", color=colour, markersize=9, markeredgewidth=2)
    inside = colour if filled else PAPER
    axes.plot([effect], [row], "o", color=colour, markerfacecolor=inside, markersize=6)


def _rows(axes: Axes, names: Sequence[str], first: int = 0) -> None:
    """Name the rows and draw zero; no axis is needed on the left."""
    axes.axvline(0, color=EDGE, linewidth=1, zorder=0)
    axes.set_yticks(range(first, first + len(names)), names)
    axes.set_ylim(first - 0.6, first + len(names) - 0.4)
    axes.margins(x=0.08)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
