"""The interval plot of a finding, as SVG in the colours of the page it becomes part of."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from html import escape

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.ticker import MaxNLocator

# matplotlib wants colours, the page's palette has names: these stand for them until the end.
_INK, _SOFT, _EDGE, _ACCENT, _WASH = "#000001", "#000002", "#000003", "#000004", "#000005"
_NAMES = {_INK: "ink", _SOFT: "soft", _EDGE: "edge", _ACCENT: "accent", _WASH: "wash"}
_STYLE = {
    "svg.fonttype": "none",  # text stays text: selectable, and in the page's own font
    "svg.hashsalt": "paperkiln",  # the same finding, the same bytes
    "font.size": 10.5,
}


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
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(figsize=(5, 1.6 if seeds else 1.2), layout="constrained")
        axes.axvline(0, color=_EDGE, linewidth=1)
        if margin is not None:
            axes.axvspan(-margin, margin, color=_WASH, linewidth=0)
        axes.plot(interval, [1, 1], color=_ACCENT, linewidth=2, solid_capstyle="butt")
        axes.plot([*interval], [1, 1], "|", color=_ACCENT, markersize=9, markeredgewidth=2)
        axes.plot([effect], [1], "o", color=_ACCENT, markersize=6)
        axes.plot(seeds, [0] * len(seeds), "o", markerfacecolor="none", markeredgecolor=_SOFT)
        rows = [(1, "all")] + ([(0, "each seed")] if seeds else [])
        axes.set_yticks([y for y, _ in rows], [name for _, name in rows])
        axes.set_ylim(-0.6 if seeds else 0.4, 1.6)
        axes.margins(x=0.08)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.set_xlabel(axis, color=_SOFT)
        axes.tick_params(color=_EDGE, labelcolor=_INK, length=3)
        axes.tick_params(axis="y", length=0)
        axes.spines[["top", "left", "right"]].set_visible(False)
        axes.spines["bottom"].set_color(_EDGE)
        axes.patch.set_visible(False)
        figure.patch.set_visible(False)
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
        plt.close(figure)
    return _into_the_page(written.getvalue(), label)


def _into_the_page(text: str, label: str) -> str:
    """Return an SVG file as markup: no global style, ids of its own, the palette's names."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<!--.*?-->", "", text,
                  flags=re.DOTALL)  # fmt: skip
    for colour, name in _NAMES.items():
        text = text.replace(colour, f"var(--{name})")
    text = re.sub(r"font-family: [^;\"]*; ?", "", text)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text)
    named = f'class="interval" role="img" aria-label="{escape(label)}"'
    return re.sub(r"\s*\n\s*", " ", text.replace("<svg", f"<svg {named}", 1)).strip()
