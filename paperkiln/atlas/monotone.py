"""Is a mean curve monotone? A monotone fit, and an exact test against it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_ALL_FLIPS_UP_TO = 12  # seeds: 4096 of them
_RANDOM_FLIPS = 4999
_CHUNK = 256


def rising_fit(means: Array) -> Array:
    """Return the non-decreasing curve nearest to the means, in least squares."""
    from scipy.optimize import isotonic_regression

    return isotonic_regression(means).x


def not_rising(curves: Array, seed: int = 0) -> float:
    """Return the p of the hypothesis that the mean of the curves never falls.

    `curves` is seeds x budgets. The statistic is the largest paired t of a fall, over all pairs of
    budgets b < b': the fall within a seed is curve(b) - curve(b'). Its null distribution comes
    from flipping the signs of all increments of a seed together, which keeps the strong
    correlation between budgets as it is and needs no estimate of it. (A likelihood-ratio test
    against the chi-bar-square distribution needs the covariance of the budgets, which few seeds
    cannot give: with n seeds and more budgets than that it has no inverse.)

    A flat mean is the least favourable case of the hypothesis: there the test is exact, for any
    number of seeds, if increments are symmetric about their mean; a rising mean makes falls rarer
    and the test conservative. Up to 12 seeds all 2^n flips are taken, so p is at least 2^-n
    (`smallest_p`): four seeds or fewer can never reject at 5 %. Beyond, 4999 random flips.
    """
    n, budgets = curves.shape
    early, late = np.triu_indices(budgets, 1)
    if not len(early):
        return 1.0
    falls = curves[:, early] - curves[:, late]
    squares = (falls**2).sum(axis=0)
    squares[squares <= 1e-24 * max(1e-300, float((curves**2).max()))] = 0  # equal numbers
    observed = float(_largest_t(np.ones((1, n)), falls, squares)[0])
    total = beyond = 0
    for signs in _flips(n, seed):
        largest = _largest_t(signs, falls, squares)
        beyond += int((largest >= observed - 1e-9 * abs(observed)).sum())
        total += len(signs)
    return beyond / total


def smallest_p(seeds: int) -> float:
    """Return the smallest p that `not_rising` can give with so many seeds."""
    return 1 / (2**seeds if seeds <= _ALL_FLIPS_UP_TO else _RANDOM_FLIPS + 1)


def _largest_t(signs: Array, falls: Array, squares: Array) -> Array:
    """Return, for each row of signs, the largest one-sample t of the flipped falls."""
    n = len(falls)
    means = signs @ falls / n
    variance = np.maximum(squares - n * means**2, 1e-12 * squares) / (n - 1)
    t = np.divide(means, np.sqrt(variance / n), where=variance > 0, out=np.zeros_like(means))
    return t.max(axis=1)


def _flips(n: int, seed: int) -> Iterator[Array]:
    """Yield rows of signs, the one without a flip among them."""
    if n <= _ALL_FLIPS_UP_TO:
        rows = itertools.product((1.0, -1.0), repeat=n)
        while chunk := list(itertools.islice(rows, _CHUNK)):
            yield np.array(chunk)
        return
    yield np.ones((1, n))
    rng = np.random.default_rng(seed)
    for start in range(0, _RANDOM_FLIPS, _CHUNK):
        yield rng.choice((-1.0, 1.0), size=(min(_CHUNK, _RANDOM_FLIPS - start), n))
