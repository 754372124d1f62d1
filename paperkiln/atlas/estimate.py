"""An estimated effect with its test, and the decision it allows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from paperkiln.errors import PaperkilnError

Outcome = Literal["lower", "higher", "equivalent", "unresolved"]


@dataclass(frozen=True)
class Estimate:
    """A difference of means (high - low), in units of the metric, with its t test.

    For a loss a negative effect means that the high level is better.
    """

    term: str
    metric: str
    effect: float
    se: float
    df: float
    t: float
    p: float  # two-sided
    p_holm: float | None  # over the family that it was tested in
    ci: tuple[float, float]  # 95 %
    relative: float | None  # effect / mean of the low level
    n_runs: int
    n_seeds: int
    error_term: str
    method: str
    low: str = ""
    high: str = ""
    aliases: tuple[str, ...] = ()  # terms that the design cannot tell from this one
    per_seed: tuple[tuple[int, float], ...] = ()  # the effect within each seed
    p_per_seed: float | None = None  # one-sample t test of those, df = seeds - 1


def is_rounding(difference: float, scale: float) -> bool:
    """Say whether a difference of values of this size is no more than their rounding."""
    return abs(difference) <= 1e-12 * scale


def t_test(effect: float, se: float, df: float) -> tuple[float, float]:
    """Return t and the two-sided p of an effect; of equal numbers (se 0) they are 0 and 1.

    Raises PaperkilnError for a difference without any variation, which needs no test.
    """
    from scipy import stats

    if se == 0 and effect == 0:
        return 0.0, 1.0
    if se == 0:
        raise PaperkilnError(
            f"the difference of {effect:g} is the same for every seed (its standard error is 0): "
            "read it from the rows, a test adds nothing"
        )
    t = effect / se
    return t, float(2 * stats.t.sf(abs(t), df))


def half_width(se: float, df: float, confidence: float = 0.95) -> float:
    """Return half the width of the confidence interval of a mean with this standard error."""
    from scipy import stats

    return float(stats.t.ppf(0.5 + confidence / 2, df)) * se


def equivalence(estimate: Estimate, margin: float) -> float:
    """Return the p of two one-sided tests that the effect lies within +- margin.

    Schuirmann, J. Pharmacokinet. Biopharm. 15 (1987) 657: the larger of the two p values. At
    level alpha it says "equivalent" where the 1 - 2 alpha interval lies within the margin.
    Raises PaperkilnError unless the margin is a positive number.
    """
    if not (math.isfinite(margin) and margin > 0):
        raise PaperkilnError(f"a margin of {margin} says nothing; give a positive one, in the "
                             "unit of the metric")  # fmt: skip
    if estimate.se == 0:
        return 0.0 if abs(estimate.effect) < margin else 1.0
    from scipy import stats

    above_the_lower = stats.t.sf((estimate.effect + margin) / estimate.se, estimate.df)
    below_the_upper = stats.t.cdf((estimate.effect - margin) / estimate.se, estimate.df)
    return float(max(above_the_lower, below_the_upper))


def decide(estimate: Estimate, alpha: float = 0.05, margin: float | None = None) -> Outcome:
    """Return what the estimate allows to say.

    The two-sided test, corrected where it was one of a family, gives the direction; without one
    the equivalence test may say "equivalent"; else the question is open. The two null hypotheses
    (no effect; an effect beyond the margin) cannot both be true, so within one question no
    correction is due for asking both.
    """
    if not 0 < alpha < 1:
        raise PaperkilnError(f"alpha is a probability between 0 and 1, not {alpha}")
    p = estimate.p if estimate.p_holm is None else estimate.p_holm
    if p < alpha:
        return "lower" if estimate.effect < 0 else "higher"
    if margin is not None and equivalence(estimate, margin) < alpha:
        return "equivalent"
    return "unresolved"


def holm(estimates: Sequence[Estimate]) -> list[Estimate]:
    """Return the estimates with Holm's adjusted p values over all of them.

    Holm, Scand. J. Statist. 6 (1979) 65: the i-th smallest of m is multiplied by m - i + 1, and
    none is smaller than the one before. Valid under any dependence between the tests.
    """
    m, adjusted = len(estimates), 0.0
    found = list(estimates)
    for rank, i in enumerate(sorted(range(m), key=lambda i: estimates[i].p)):
        adjusted = min(1.0, max(adjusted, (m - rank) * estimates[i].p))
        found[i] = replace(estimates[i], p_holm=adjusted)
    return found
