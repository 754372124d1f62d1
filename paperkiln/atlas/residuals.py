"""What the residuals of a study say about the assumptions behind its tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paperkiln.atlas.blocks import Blocks, Row, blocks
from paperkiln.atlas.contrasts import Model, model
from paperkiln.atlas.effects import Levels
from paperkiln.atlas.error_term import Array, ErrorTerm, error_term
from paperkiln.atlas.text_table import probability

_SHAPIRO_MOST = 5000  # scipy's p is not accurate beyond


@dataclass(frozen=True)
class ResidualChecks:
    """The p of each check (None where the design cannot show it), and the runs to look at."""

    normality: float | None  # Shapiro and Wilk
    equal_variance: dict[str, float | None]  # of each factor's levels: Brown and Forsythe
    seeds_differ: float | None  # the F test of the blocks: small means that pairing paid
    drift: float | None  # Spearman's correlation with the order of the rows
    lack_of_fit: float | None  # the F test of what the terms leave over between the cells
    left_over: float | None  # the root mean square of the effects that are left over
    largest: tuple[tuple[str, float], ...]  # run, standardised residual


def check_residuals(
    rows: Sequence[Row], metric: str, levels: Levels | None = None, most: int = 5
) -> ResidualChecks:
    """Return the checks of a study's residuals on a metric.

    Montgomery, Design and Analysis of Experiments, section 3.4. With two paired cells the
    residuals mirror each other: normality is that of the differences, and equal variance is
    nothing that the paired test assumes. The order of the rows is that of the records.
    Raises PaperkilnError where the study has no error term.
    """
    table = blocks(rows, metric, levels)
    design = model(table)
    error = error_term(table, design)
    names = _run_names(table, error)
    order = {str(row.get("run")): i for i, row in enumerate(rows)}
    standard = np.divide(error.residuals, error.residual_sd, where=error.residual_sd > 0,
                         out=np.zeros_like(error.residuals))  # fmt: skip
    mirrored = error.paired is not None and len(table.cells) == 2
    tested = error.residuals[: len(error.seeds)] if mirrored else error.residuals
    cell_of = np.repeat(np.arange(len(table.cells)), error.counts)
    lack_of_fit, left_over = _lack_of_fit(error, design)
    largest = sorted(zip(names, map(float, standard), strict=True), key=lambda x: (-abs(x[1]), x))
    return ResidualChecks(
        normality=_shapiro(tested),
        equal_variance={
            name: None if mirrored else _brown_forsythe(error.residuals, _at(table, i)[cell_of])
            for i, name in enumerate(table.factors)
        },
        seeds_differ=_block_test(error),
        drift=None if mirrored else _spearman(error.residuals, [order[n] for n in names]),
        lack_of_fit=lack_of_fit,
        left_over=left_over,
        largest=tuple(largest[:most]),
    )


def residuals_as_text(checks: ResidualChecks) -> str:
    """Return the checks as lines."""
    spread = ", ".join(f"{n} {probability(p)}" for n, p in checks.equal_variance.items())
    largest = ", ".join(f"{run} {value:+.2f}" for run, value in checks.largest)
    return "\n".join([
        "residuals (a small p speaks against the assumption)",
        f"  normal (Shapiro-Wilk)               p = {probability(checks.normality)}",
        f"  equal variance (Brown-Forsythe)     p = {spread}",
        f"  no drift over the rows (Spearman)   p = {probability(checks.drift)}",
        f"  seeds do not differ (F of blocks)   p = {probability(checks.seeds_differ)}"
        "  (small: pairing paid)",
        f"  cells hold no more than the terms   p = {probability(checks.lack_of_fit)}"
        + ("" if checks.left_over is None else f"  (left over: effects of {checks.left_over:.2g})"),
        f"  largest, standardised               {largest}",
    ])  # fmt: skip


def _run_names(table: Blocks, error: ErrorTerm) -> list[str]:
    kept = set(error.seeds)
    return [
        runs[seed]
        for runs, values in zip(table.runs, table.values, strict=True)
        for seed in sorted(values)
        if seed in kept
    ]


def _at(table: Blocks, factor: int) -> np.ndarray:
    return np.array([cell[factor] for cell in table.cells])


def _varies(values: Array) -> bool:
    return len(values) >= 3 and float(np.ptp(values)) > 1e-12 * float(np.abs(values).max())


def _shapiro(residuals: Array) -> float | None:
    from scipy import stats

    if not _varies(residuals) or len(residuals) > _SHAPIRO_MOST:
        return None
    return float(stats.shapiro(residuals).pvalue)


def _brown_forsythe(residuals: Array, labels: np.ndarray) -> float | None:
    from scipy import stats

    groups = [residuals[labels == label] for label in np.unique(labels)]
    if any(not _varies(group) for group in groups):
        return None
    return float(stats.levene(*groups, center="median").pvalue)


def _block_test(error: ErrorTerm) -> float | None:
    from scipy import stats

    if error.paired is None:
        return None
    cells, n = error.paired.shape
    between = cells * float(error.paired.mean(axis=0).var(ddof=1))
    within = float((error.residuals**2).sum()) / float(error.df)
    return float(stats.f.sf(between / within, n - 1, error.df)) if within > 0 else None


def _lack_of_fit(error: ErrorTerm, design: Model) -> tuple[float | None, float | None]:
    """Return the p of the F test of what the model leaves over, and how large an effect that is.

    In a screen those are the columns without a factor: they hold interactions, of which every main
    effect takes in a part too (Montgomery, section 8.5). The error term knows nothing of it.
    """
    from scipy import stats

    cells, columns = design.matrix.shape
    df = cells - columns
    if error.paired is None or df < 1 or not error.variance[0] > 0:
        return None, None
    rest = error.means - design.matrix @ (np.linalg.pinv(design.matrix) @ error.means)
    square = float(rest @ rest) / df
    p = float(stats.f.sf(square / error.variance[0], df, error.df))
    return p, 2 * (square / cells) ** 0.5


def _spearman(residuals: Array, order: Sequence[int]) -> float | None:
    from scipy import stats

    if not _varies(residuals):
        return None
    return float(stats.spearmanr(order, residuals).pvalue)
