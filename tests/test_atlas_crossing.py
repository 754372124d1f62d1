"""The crossing: found where there is one, never invented, and a test of the size it claims."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measured_rows import curve_rows

from paperkiln.atlas.crossing import as_text, crossing, seeds_to_close, zone_width
from paperkiln.atlas.monotone import not_rising, rising_fit, smallest_p
from paperkiln.errors import PaperkilnError

BUDGETS = [400 * i for i in range(1, 10)]
PAIR = ("exact", "window")
RISE = np.array([-0.08, -0.06, -0.04, -0.02, 0.0, 0.02, 0.04, 0.06, 0.08])  # crosses at 2000


def rows_with(delta):
    """Rows whose Delta_s(b) is this; both curves fall, so the running best is the curve."""
    base = np.broadcast_to(9.0 - np.arange(delta.shape[1]), delta.shape)
    return curve_rows({"exact": base, "window": base + delta}, BUDGETS[: delta.shape[1]])


def noise(rng, n, budgets=9, shared=0.02, walk=0.008):
    """What differs between seeds: an offset and a random walk, so budgets are correlated."""
    steps = rng.normal(0, walk, (n, budgets))
    return rng.normal(0, shared, (n, 1)) + np.cumsum(steps, axis=1)


def find(mean, n=10, seed=0, **more):
    delta = np.asarray(mean) + noise(np.random.default_rng(seed), n)
    return crossing(rows_with(delta), "attention", PAIR, BUDGETS, **more)


def test_a_planted_crossing_is_found_with_its_zone():
    c = find(RISE, n=15)
    assert c.status == "crossing"
    assert c.direction == "rising"
    assert c.budget == pytest.approx(2000, abs=400)
    assert c.interval[0] < 2000 < c.interval[1]
    assert c.zone.slope == pytest.approx(5e-5, rel=0.25)
    assert c.zone.width == pytest.approx(zone_width(c.zone.sd, c.zone.slope, 15))
    assert c.share_crossing == 1
    assert c.monotone_p > 0.05
    assert c.limit == c.fit[-1]
    assert np.array(c.fit) == pytest.approx(c.limit - np.array(c.decay))
    assert list(c.decay) == sorted(c.decay, reverse=True)
    inside = [b for b in BUDGETS if c.zone.ends[0] < b < c.zone.ends[1]]
    assert set(inside) & set(c.unresolved)


def test_no_crossing_is_invented():
    c = find(RISE - 0.3)
    assert (c.status, c.budget, c.interval, c.zone) == ("none", None, None, None)
    assert "no crossing: the fit is below 0" in as_text(c)
    with pytest.raises(PaperkilnError, match="no zone to close"):
        c.seeds_to_close(100)
    assert "above 0" in as_text(find(RISE + 0.3))


def test_noise_around_zero_is_no_crossing():
    """A fit through noise changes its sign easily; only resolved ends make a crossing."""
    found = [find(np.zeros(9), n=6, seed=seed).status for seed in range(60)]
    assert found.count("crossing") <= 2
    assert "possible" in found
    c = next(c for c in (find(np.zeros(9), n=6, seed=s) for s in range(60)) if c.budget)
    assert "may be noise" in as_text(c)


def test_an_interval_that_leaves_the_budgets_is_open():
    c = find(RISE - 0.07, n=6, seed=3)
    assert c.interval is None or c.interval[1] is None
    c = find(RISE - 0.06, n=10, seed=1)
    assert c.interval[1] is None
    assert "beyond 3600" in as_text(c)


def test_the_bootstrap_interval_covers():
    """The crossing of the true mean lies in 95 % of the intervals, or nearly, with ten seeds."""
    covered = 0
    for seed in range(60):
        low, high = find(RISE, n=10, seed=seed).interval or (None, None)
        covered += (low or 0) <= 2000 <= (high or math.inf)
    assert covered >= 52


def test_the_same_rows_give_the_same_answer_in_any_order():
    delta = RISE + noise(np.random.default_rng(0), 13)
    rows = rows_with(delta)
    one = crossing(rows, "attention", PAIR, BUDGETS)
    again = crossing(rows[::-1], "attention", PAIR, BUDGETS[::-1])
    assert as_text(one) == as_text(again)
    swapped = crossing(rows, "attention", PAIR[::-1], BUDGETS)
    assert swapped.direction == "falling"
    assert swapped.budget == pytest.approx(one.budget)
    assert swapped.interval == pytest.approx(one.interval)
    assert swapped.zone.slope == pytest.approx(-one.zone.slope)
    assert swapped.monotone_p == one.monotone_p
    assert np.array(swapped.fit) == pytest.approx(-np.array(one.fit))


def test_a_stated_direction_is_tested_alone():
    either, falling = find(RISE), find(RISE, direction="falling")
    assert either.monotone_p > 0.05 > falling.monotone_p
    assert falling.status == "none"
    assert "not monotone" in as_text(falling)


def test_few_seeds_say_that_they_cannot_reject():
    c = find(RISE, n=3)
    assert c.monotone_smallest_p == 0.125
    assert "can never reject" in as_text(c)
    assert "too narrow" in as_text(c)


def test_fewer_than_three_budgets_are_refused():
    rows = rows_with(RISE[:2] + noise(np.random.default_rng(0), 4, 2))
    with pytest.raises(PaperkilnError, match="three budgets"):
        crossing(rows, "attention", PAIR, BUDGETS[:2])


def test_equal_variants_do_not_cross():
    c = crossing(rows_with(np.zeros((5, 4))), "attention", PAIR, BUDGETS[:4])
    assert c.status == "none"
    assert c.monotone_p == 1


# --- the monotone fit and its test


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=12))
def test_the_fit_rises_and_is_the_nearest(means):
    fit = rising_fit(np.array(means))
    assert all(np.diff(fit) >= -1e-12)
    assert fit.mean() == pytest.approx(np.mean(means), abs=1e-9)
    # Stationary: any rising curve is at least as far away.
    rng = np.random.default_rng(0)
    for _ in range(5):
        other = np.sort(rng.uniform(-5, 5, len(means)))
        assert ((fit - means) ** 2).sum() <= ((other - means) ** 2).sum() + 1e-9


def test_the_test_by_hand():
    """Two seeds, two budgets: falls of 1 and 2; of the four flips only none gives so large a t."""
    assert not_rising(np.array([[1.0, 0.0], [2.0, 0.0]])) == 0.25
    assert not_rising(np.array([[0.0, 1.0], [0.0, 2.0]])) == 1.0
    assert not_rising(np.zeros((3, 4))) == 1.0
    assert smallest_p(5) == 1 / 32
    assert smallest_p(20) == 1 / 5000


def rejections(mean, n, trials=300, seed=0, **scale):
    rng = np.random.default_rng(seed)
    budgets = len(mean)
    p = [not_rising(mean + noise(rng, n, budgets, **scale)) for _ in range(trials)]
    return np.mean(np.array(p) <= 0.05)


@pytest.mark.parametrize("n", [6, 9])
def test_size_under_a_monotone_truth(n):
    """5 % at the least favourable truth, which is flat; 300 trials err by 2.5 points at 2 SD."""
    assert 0.02 <= rejections(np.zeros(6), n) <= 0.075
    assert rejections(np.linspace(0, 0.02, 6), n) <= 0.05
    assert rejections(np.array([0, 0, 0.05, 0.05, 0.05, 0.1]), n) <= 0.075
    assert rejections(np.linspace(0, 1, 6), n) == 0


def test_size_with_heavy_tails():
    rng = np.random.default_rng(1)
    p = [not_rising(np.cumsum(rng.standard_t(2, (8, 6)), axis=1)) for _ in range(300)]
    assert np.mean(np.array(p) <= 0.05) <= 0.075


def test_power_under_a_truth_that_turns():
    hump = np.array([-0.05, 0.0, 0.05, 0.05, 0.0, -0.05])
    assert rejections(hump, 9, trials=100) > 0.95
    assert rejections(hump / 5, 9, trials=100) < rejections(hump / 2, 9, trials=100)


# --- how many seeds


def test_zone_width_of_the_published_example():
    """SD .035, slope 2.6e-5 a step, 15 seeds (t = 2.145): about 1500 steps."""
    assert zone_width(0.035, 2.6e-5, 15) == pytest.approx(1491, abs=1)
    assert 2 * 2.145 * 0.035 / (math.sqrt(15) * 2.6e-5) == pytest.approx(1491, abs=1)


@settings(max_examples=100)
@given(st.floats(1e-3, 1), st.floats(1e-6, 1e-3), st.floats(0.02, 100))
def test_the_fewest_seeds_that_close_the_zone(sd, slope, ratio):
    width = ratio * sd / slope
    n = seeds_to_close(width, sd, -slope)
    assert zone_width(sd, slope, n) <= width
    assert n == 2 or zone_width(sd, slope, n - 1) > width


def test_the_seeds_of_a_found_zone():
    c = find(RISE, n=15)
    assert c.seeds_to_close(c.zone.width) == 15
    assert c.seeds_to_close(c.zone.width / 2) > 45
    with pytest.raises(PaperkilnError, match="positive width"):
        c.seeds_to_close(0)
    with pytest.raises(PaperkilnError, match="more than"):
        c.seeds_to_close(1e-6)
