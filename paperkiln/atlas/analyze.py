"""The analysis of a study: its effects, what they rest on, and the whole as text.

Input is the rows of a study. Estimates come from `effects`, `estimate` and `estimate_family`,
checks of the assumptions from `check_residuals`, and the plot from `half_normal`.
"""

from __future__ import annotations

from collections.abc import Sequence

from paperkiln.atlas.blocks import Row, blocks
from paperkiln.atlas.contrasts import Model, model
from paperkiln.atlas.effects import Levels, effects, estimate, estimate_family
from paperkiln.atlas.estimate import Estimate, Outcome, decide, equivalence, holm
from paperkiln.atlas.halfnormal import HalfNormal, half_normal, half_normal_svg
from paperkiln.atlas.residuals import ResidualChecks, check_residuals, residuals_as_text
from paperkiln.atlas.text_table import probability, text_table
from paperkiln.output import printable

__all__ = [
    "Estimate",
    "HalfNormal",
    "Outcome",
    "ResidualChecks",
    "analysis_as_text",
    "check_residuals",
    "decide",
    "effects",
    "equivalence",
    "estimate",
    "estimate_family",
    "half_normal",
    "half_normal_svg",
    "holm",
]

_SURE = 0.01  # of interactions that a screen hides
_HEADER = ("term", "low", "high", "effect", "relative", "SE", "df", "t", "p", "p Holm", "95 % CI",
           "p within seeds")  # fmt: skip


def analysis_as_text(rows: Sequence[Row], metric: str, levels: Levels | None = None) -> str:
    """Return the effects on a metric, the largest t first, with what they rest on.

    Raises PaperkilnError as `effects` does.
    """
    found = sorted(effects(rows, metric, levels=levels), key=lambda e: -abs(e.t))
    table = blocks(rows, metric, levels)
    some = found[0]
    cells, design, checks = len(table.cells), model(table), check_residuals(rows, metric, levels)
    notes = [
        "effect: high - low; a:b is half the difference of the differences"
        f"; of {metric}, whose sign says which level is lower",
        f"error term: {some.error_term}",
        f"p Holm: over the {len(found)} terms of this table; p within seeds: the t test of the "
        "effects of each seed, which does not assume that all cells vary alike",
        *design.notes,
        *_hidden_interactions(design, checks),
        *table.notes,
        *(n for n in some.method.split("; ") if n.startswith("left out")),
    ]
    return "\n".join([
        f"{metric}: {cells} cells, {some.n_seeds} seeds",
        "",
        text_table(_HEADER, [_line(e) for e in found], left=3),
        "",
        *(f"note: {printable(note)}" for note in notes),
        "",
        printable(residuals_as_text(checks)),
    ])  # fmt: skip


def _hidden_interactions(design: Model, checks: ResidualChecks) -> list[str]:
    """Return a note where a screen's main effects are mixed with interactions that are there."""
    if not design.refusal or checks.lack_of_fit is None or checks.lack_of_fit >= _SURE:
        return []
    return [
        "interactions are there that this design cannot tell apart: its columns without a factor "
        f"have effects of {checks.left_over:.2g} (p {probability(checks.lack_of_fit)}). Main "
        "effects take in parts of them, which SE and p know nothing of: one of about that size "
        "shows nothing"
    ]


def _line(e: Estimate) -> tuple[str, ...]:
    relative = "-" if e.relative is None else f"{e.relative:+.2%}"
    return (e.term, e.low, e.high, f"{e.effect:+.4g}", relative, f"{e.se:.3g}", f"{e.df:.4g}",
            f"{e.t:+.2f}", probability(e.p), probability(e.p_holm),
            f"{e.ci[0]:+.4g} to {e.ci[1]:+.4g}", probability(e.p_per_seed))  # fmt: skip
