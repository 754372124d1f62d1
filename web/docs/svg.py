"""Drawings as SVG in the colours of the page that they become part of."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from html import escape

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

# matplotlib wants colours, the page's palette has names: these stand for them until the end.
INK, SOFT, EDGE = "#000001", "#000002", "#000003"
ACCENT, WASH, PAPER = "#000004", "#000005", "#000006"
_NAMES = {
    INK: "ink", SOFT: "soft", EDGE: "edge", ACCENT: "accent", WASH: "wash", PAPER: "paper",
}  # fmt: skip
_STYLE = {
    "svg.fonttype": "none",  # text stays text: selectable, and in the page's own font
    "svg.hashsalt": "paperkiln",  # the same numbers, the same bytes
    "text.parse_math": False,  # a $ in a name is no formula
    "font.size": 10.5,
}


def drawing(
    name: str,
    title: str,
    description: str,
    size: tuple[float, float],
    paint: Callable[[Axes], None],
) -> str:
    """Return what `paint` draws as markup. `size` is in inches; `name` is its own on the page."""
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(figsize=size, layout="constrained")
        axes.tick_params(color=EDGE, labelcolor=INK, length=3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(EDGE)
        axes.patch.set_visible(False)
        figure.patch.set_visible(False)
        paint(axes)
        axes.xaxis.label.set_color(SOFT)
        axes.yaxis.label.set_color(SOFT)
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
        plt.close(figure)
    return _into_the_page(written.getvalue(), name, title, description)


def _into_the_page(text: str, name: str, title: str, description: str) -> str:
    """Return an SVG file as markup: no global style, ids of its own, the palette's names."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<!--.*?-->", "", text,
                  flags=re.DOTALL)  # fmt: skip
    for colour, variable in _NAMES.items():
        text = text.replace(colour, f"var(--{variable})")
    text = re.sub(r"font-family: [^;\"]*; ?", "", text)
    text = re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{name}-", text)  # other drawings have the same
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text)
    opening, _, rest = text.partition(">")
    named = f'class="interval" role="img" aria-labelledby="{name}-title {name}-desc"'
    said = (
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-desc">{escape(description)}</desc>'
    )
    text = opening.replace("<svg", f"<svg {named}", 1) + ">" + said + rest
    return re.sub(r"\s*\n\s*", " ", text).strip()
