"""AUROC and its bootstrap interval: does a higher score mean a truer value?"""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

DRAWS = 2000
T = TypeVar("T")
Interval = tuple[float, float]


def auroc(pairs: Iterable[tuple[float, bool]]) -> float | None:
    """Return the share of (true, false) pairs that the score orders rightly, ties as a half.

    None when either class is missing. This is the Mann-Whitney U divided by its maximum.
    """
    pairs = tuple(pairs)
    positive = [score for score, label in pairs if label]
    negative = sorted(score for score, label in pairs if not label)
    if not positive or not negative:
        return None
    # Below counts twice, a tie once.
    doubled = sum(bisect_left(negative, s) + bisect_right(negative, s) for s in positive)
    return doubled / 2 / (len(positive) * len(negative))


def weighted_mean(items: Iterable[tuple[float, float]]) -> float | None:
    """Return the mean of (value, weight) items; None when they weigh nothing."""
    items = tuple(items)
    total = sum(weight for _, weight in items)
    return sum(value * weight for value, weight in items) / total if total else None


def bootstrap(
    units: Sequence[T], statistic: Callable[[list[T]], float | None], draws: int = DRAWS
) -> Interval | None:
    """Return the 95% percentile interval of `statistic` over units drawn with replacement.

    The draws are those of Random(0), so two runs agree. None when the statistic is undefined in
    more than half of the draws.
    """
    rng = random.Random(0)
    drawn = (statistic(rng.choices(units, k=len(units))) for _ in range(draws if units else 0))
    found = sorted(value for value in drawn if value is not None)
    if not found or 2 * len(found) < draws:
        return None
    return found[int(0.025 * len(found))], found[int(0.975 * len(found))]
