"""The half-normal plot: which effects stand out of the noise, without an error term."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from xml.sax.saxutils import escape

import numpy as np

from paperkiln.atlas.blocks import Row, blocks
from paperkiln.atlas.contrasts import model
from paperkiln.atlas.effects import Levels
from paperkiln.errors import PaperkilnError
from paperkiln.output import printable

_INK = {"light": "#1a1a1a", "dark": "#e8e8e8"}
_STANDS_OUT = {"light": "#B34700", "dark": "#FFA05C"}  # vermilion, at 4.5:1 on either page


@dataclass(frozen=True)
class HalfNormal:
    """The sizes of the effects in rising order beside what noise alone would give."""

    metric: str
    terms: tuple[str, ...]
    sizes: tuple[float, ...]  # |effect|
    quantiles: tuple[float, ...]  # of the half-normal distribution
    pse: float  # Lenth's pseudo standard error of an effect
    margin: float  # an effect beyond it is not noise, at 95 % for one effect

    @property
    def outstanding(self) -> tuple[str, ...]:
        """The terms beyond the margin."""
        return tuple(t for t, s in zip(self.terms, self.sizes, strict=True) if s > self.margin)


def half_normal(rows: Sequence[Row], metric: str, levels: Levels | None = None) -> HalfNormal:
    """Return the half-normal data of a study of two-level factors.

    Quantiles are those of (i - 1/2) / m (Daniel, Technometrics 1 (1959) 311); the margin is
    Lenth's (Technometrics 31 (1989) 469): 1.5 times the median of the sizes below 2.5 s0, where
    s0 is 1.5 times the median of all, times t with m / 3 degrees of freedom.
    Raises PaperkilnError where fewer than three effects can be told apart.
    """
    from scipy import stats

    table = blocks(rows, metric, levels)
    seeds = table.common_seeds
    means = np.array([np.mean([v[s] for s in seeds or v]) for v in table.values])
    terms = [term for term in model(table).terms if "[" not in term.name]
    if len(terms) < 3:
        raise PaperkilnError(f"{len(terms)} effect(s) of two-level factors; a half-normal plot "
                             "needs three or more")  # fmt: skip
    sized = sorted((abs(float(term.weights @ means)), term.name) for term in terms)
    m = len(sized)
    pse, margin = lenth([size for size, _ in sized])
    quantiles = stats.halfnorm.ppf((np.arange(m) + 0.5) / m)
    return HalfNormal(metric, tuple(n for _, n in sized), tuple(s for s, _ in sized),
                      tuple(map(float, quantiles)), pse, margin)  # fmt: skip


def lenth(effects: Sequence[float]) -> tuple[float, float]:
    """Return the pseudo standard error of effects that are mostly noise, and its 95 % margin."""
    from scipy import stats

    sizes = np.abs(effects)
    s0 = 1.5 * np.median(sizes)
    pse = 1.5 * float(np.median(sizes[sizes < 2.5 * s0])) if s0 > 0 else 0.0
    return pse, pse * float(stats.t.ppf(0.975, len(sizes) / 3))


def half_normal_svg(data: HalfNormal, theme: Literal["light", "dark"] = "light") -> str:
    """Return the plot as SVG on a clear ground, with a title and a description for readers.

    Raises PaperkilnError where matplotlib is missing.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise PaperkilnError("figures need matplotlib: pip install 'paperkiln[docs]'")
    import matplotlib
    from matplotlib.figure import Figure

    # The same effects give the same bytes; text stays text; a $ in a name is no formula.
    settings = {"svg.hashsalt": "paperkiln", "svg.fonttype": "none", "text.parse_math": False}
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(6, 4), layout="constrained")
        _draw(figure.add_subplot(), data, _INK[theme], _STANDS_OUT[theme])
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return _described(out.getvalue(), f"Half-normal plot of the effects on {data.metric}",
                      _description(data), f"half-normal-{theme}")  # fmt: skip


def _draw(axes, data: HalfNormal, ink: str, accent: str) -> None:
    colours = [accent if t in data.outstanding else ink for t in data.terms]
    axes.scatter(data.sizes, data.quantiles, c=colours, s=22, zorder=3)
    top = data.quantiles[-1] * 1.08
    axes.plot([0, top * data.pse], [0, top], color=ink, linewidth=1, alpha=0.5)
    axes.axvline(data.margin, color=ink, linewidth=1, linestyle="--", alpha=0.5)
    for term, x, y in zip(data.terms, data.sizes, data.quantiles, strict=True):
        if term in data.outstanding:
            axes.annotate(printable(term), (x, y), xytext=(-6, 3), textcoords="offset points",
                          ha="right", color=accent)  # fmt: skip
    axes.set_xlim(0, max(*data.sizes, data.margin) * 1.08 or 1)
    axes.set_ylim(0, top)
    axes.set_xlabel(f"size of the effect on {printable(data.metric)}", color=ink)
    axes.set_ylabel("half-normal quantile", color=ink)
    axes.tick_params(colors=ink)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(ink)


def _description(data: HalfNormal) -> str:
    sized = dict(zip(data.terms, data.sizes, strict=True))
    beyond = ", ".join(f"{t} {sized[t]:.4g}" for t in reversed(data.outstanding)) or "none"
    return (
        f"{len(data.terms)} effects by size against what noise alone would give. The line is "
        f"noise with a standard error of {data.pse:.4g}; beyond the dashed margin of "
        f"{data.margin:.4g}: {beyond}."
    )


def _described(svg: str, title: str, description: str, name: str) -> str:
    """Return the SVG as an image with a name and a description."""
    head, opening, rest = svg.partition("<svg ")
    attributes, _, body = rest.partition(">")
    return (
        f'{head}{opening}role="img" aria-labelledby="{name}-title {name}-desc" {attributes}>'
        f'\n <title id="{name}-title">{escape(printable(title))}</title>'
        f'\n <desc id="{name}-desc">{escape(printable(description))}</desc>{body}'
    )
