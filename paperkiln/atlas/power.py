"""Power before running: the effect that a number of cells and seeds can see.

Every cell runs with every seed, so cells x seeds is a randomised complete block design: the
residual is cell:seed, with (cells - 1)(seeds - 1) degrees of freedom, and the difference of two
levels has the standard error sd sqrt(2 levels / (cells seeds)), where `sd` is the residual's
standard deviation in the unit of the metric. With two cells this is the paired t test. An effect d
is found (two-sided) with the probability that |T| exceeds the critical value, T non-central t with
the non-centrality d / standard error (Cohen 1988, Statistical Power Analysis, chapter 2).
An interaction defined as half the difference of differences has the same standard error.
"""

from __future__ import annotations

import math

from paperkiln.errors import PaperkilnError

MAX_SEEDS = 10_000


def power(
    effect: float,
    n_cells: int,
    n_seeds: int,
    sd: float,
    *,
    alpha: float = 0.05,
    n_hypotheses: int = 1,
    levels: int = 2,
) -> float:
    """Return the probability that a true difference of `effect` between two levels is found.

    With several hypotheses each is held to alpha / n_hypotheses, the strictest step of Holm.
    Raises PaperkilnError for numbers out of range, and for one seed: it leaves no residual.
    """
    _check(n_cells, sd, alpha, n_hypotheses, levels)
    df = _degrees(n_cells, n_seeds)
    error = sd * math.sqrt(2 * levels / (n_cells * n_seeds))
    return _power_at(abs(effect) / error, df, alpha / n_hypotheses)


def smallest_effect(
    n_cells: int,
    n_seeds: int,
    sd: float,
    alpha: float = 0.05,
    power: float = 0.8,
    n_hypotheses: int = 1,
    levels: int = 2,
) -> float:
    """Return the smallest difference between two levels that is found with this power.

    In the unit of `sd`, the residual standard deviation. Raises PaperkilnError as `power` does.
    """
    from scipy.optimize import brentq

    _check(n_cells, sd, alpha, n_hypotheses, levels)
    df, strict = _degrees(n_cells, n_seeds), alpha / n_hypotheses
    if not strict < power < 1:
        raise PaperkilnError(f"power is {power}; it lies between alpha and 1")
    high = 1.0
    while _power_at(high, df, strict) < power:
        high *= 2
    ratio = brentq(lambda ncp: _power_at(ncp, df, strict) - power, 0.0, high, xtol=1e-10)
    return ratio * sd * math.sqrt(2 * levels / (n_cells * n_seeds))


def smallest_paired_effect(
    n_seeds: int,
    sd_difference: float,
    alpha: float = 0.05,
    power: float = 0.8,
    n_hypotheses: int = 1,
) -> float:
    """Return the smallest mean difference that a paired t test of two arms finds.

    `sd_difference` is the standard deviation of the differences by seed, sqrt(2) times the
    residual's. Raises PaperkilnError as `power` does.
    """
    return smallest_effect(2, n_seeds, sd_difference / math.sqrt(2), alpha, power, n_hypotheses)


def seeds_needed(
    effect: float,
    sd: float,
    n_cells: int = 2,
    alpha: float = 0.05,
    power: float = 0.8,
    n_hypotheses: int = 1,
    levels: int = 2,
) -> int:
    """Return the fewest seeds with which a difference of `effect` is found with this power.

    Raises PaperkilnError as `power` does, and where it would take more than 10,000 seeds.
    """
    if not (math.isfinite(effect) and effect):
        raise PaperkilnError(f"effect is {effect}; no number of seeds can see that")

    def enough(seeds: int) -> bool:
        return smallest_effect(n_cells, seeds, sd, alpha, power, n_hypotheses, levels) <= abs(
            effect
        )

    low, high = 1, 2
    while not enough(high):
        low, high = high, 2 * high
        if high > 2 * MAX_SEEDS:
            raise PaperkilnError(
                f"an effect of {effect:g} at sd {sd:g} needs more than {MAX_SEEDS:,} seeds"
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _power_at(noncentrality: float, df: int, alpha: float) -> float:
    """Return P(|T| > critical value). Both tails as upper ones: the lower may come out as nan."""
    from scipy.stats import nct, t

    critical = t.isf(alpha / 2, df)
    return float(nct.sf(critical, df, noncentrality) + nct.sf(critical, df, -noncentrality))


def _degrees(n_cells: int, n_seeds: int) -> int:
    if n_seeds < 2:
        raise PaperkilnError(f"{n_seeds} seed leaves no residual to judge an effect by; take 2 up")
    return (n_cells - 1) * (n_seeds - 1)


def _check(n_cells: int, sd: float, alpha: float, n_hypotheses: int, levels: int) -> None:
    if n_cells < levels or levels < 2:
        raise PaperkilnError(f"{n_cells} cells cannot hold {levels} levels to compare")
    if not (math.isfinite(sd) and sd > 0):
        raise PaperkilnError(f"sd is {sd}; it is a positive number")
    if not 0 < alpha < 1 or n_hypotheses < 1:
        raise PaperkilnError(f"alpha {alpha} over {n_hypotheses} hypotheses is no test level")
