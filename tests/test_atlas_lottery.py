"""The seed lottery: pairing, verdicts, and an estimate whose bias and coverage are computed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measured_rows import curve_rows, factorial, rows_of
from scipy import stats

from paperkiln.atlas.lottery import as_text, clash, deltas, lottery, shared_budgets
from paperkiln.errors import PaperkilnError

BUDGETS = [100, 200, 300]
PAIR = ("exact", "window")


def study(seeds=6, effect=(-0.1, 0.0, 0.1), spread=0.05, seed=0):
    """Curves that fall, so that the running best is the last value; luck is shared by seed."""
    rng = np.random.default_rng(seed)
    exact = 4 - np.array([0, 1, 2]) + rng.normal(0, 0.2, (seeds, 1))
    window = exact + np.array(effect) + rng.normal(0, spread, (seeds, 3))
    return exact, window, curve_rows({"exact": exact, "window": window}, BUDGETS)


def test_the_table_is_that_of_the_paired_differences():
    exact, window, rows = study()
    table = lottery(rows, "attention", PAIR, BUDGETS)
    want = window - exact
    assert table.deltas.values == pytest.approx(want)
    assert table.deltas.seeds == (1, 2, 3, 4, 5, 6)
    for row, d in zip(table.rows, want.T, strict=True):
        test = stats.ttest_1samp(d, 0)
        assert (row.mean, row.sd) == pytest.approx((d.mean(), d.std(ddof=1)))
        assert (row.estimate.t, row.estimate.p) == pytest.approx((test.statistic, test.pvalue))
        assert (row.first_better, row.second_better) == ((d > 0).sum(), (d < 0).sum())
        assert row.clash == clash(row.first_better, row.second_better)
    assert [row.verdict for row in table.rows] == ["lower", "unresolved", "higher"]
    p = [row.estimate.p for row in table.rows]
    assert table.rows[1].estimate.p_holm == pytest.approx(p[1])  # the largest is not multiplied


def test_val_at_is_the_running_best_of_each_run():
    rows = curve_rows({"exact": [[3, 2, 9], [3, 2, 9]], "window": [[4, 1, 5], [4, 3, 1]]}, BUDGETS)
    assert deltas(rows, "attention", PAIR, BUDGETS).values.tolist() == [[1, -1, -1], [1, 1, -1]]


def test_plug_in_of_the_published_counts():
    """1 of 5 gives 32 %, 3 of 5 gives 48 %; both are too small on average."""
    assert clash(1, 4).plug_in == pytest.approx(0.32)
    assert clash(3, 2).plug_in == pytest.approx(0.48)
    assert clash(1, 4).unbiased == pytest.approx(4 / 10)  # 4 of the 10 pairs disagree
    assert clash(0, 5).unbiased == 0
    assert clash(0, 5).ci[0] == 0
    assert clash(0, 5).ci[1] > 0.3  # five seeds that agree do not rule clashes out
    assert clash(0, 0).unbiased is None
    assert clash(1, 0).unbiased is None


@given(st.integers(2, 30), st.floats(1e-6, 1))  # scipy overflows at the smallest of all p
def test_the_unbiased_estimate_is_unbiased_and_the_plug_in_is_not(n, p):
    weight = stats.binom.pmf(np.arange(n + 1), n, p)
    cases = [clash(k, n - k) for k in range(n + 1)]
    truth = 2 * p * (1 - p)
    assert weight @ [c.unbiased for c in cases] == pytest.approx(truth, abs=1e-9)
    assert weight @ [c.plug_in for c in cases] == pytest.approx(truth * (n - 1) / n, abs=1e-9)


@pytest.mark.parametrize("n", [3, 5, 10, 20])
def test_the_interval_covers_as_often_as_it_says(n):
    """Coverage by summing over all outcomes; on average over p it is 95 % or more."""
    cases = [clash(k, n - k).ci for k in range(n + 1)]
    covered = []
    for p in np.linspace(0.005, 0.5, 100):
        truth = 2 * p * (1 - p)
        weight = stats.binom.pmf(np.arange(n + 1), n, p)
        covered.append(weight @ [low - 1e-12 <= truth <= high + 1e-12 for low, high in cases])
    assert np.mean(covered) >= 0.95
    assert min(covered) >= 0.85  # Jeffreys' interval dips for some p, as all exact counts do


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_swapping_the_levels_flips_every_sign(seed):
    _, _, rows = study(seed=seed)
    one = lottery(rows, "attention", PAIR, BUDGETS)
    other = lottery(rows[::-1], "attention", PAIR[::-1], BUDGETS[::-1])
    flip = {"lower": "higher", "higher": "lower"}
    for a, b in zip(one.rows, other.rows, strict=True):
        assert (a.mean, a.sd) == pytest.approx((-b.mean, b.sd))
        assert (a.first_better, a.second_better) == (b.second_better, b.first_better)
        assert a.clash.unbiased == b.clash.unbiased
        assert flip.get(a.verdict, a.verdict) == b.verdict


def test_a_seed_without_its_pair_is_left_out_and_said():
    _, _, rows = study()
    rows[1]["complete"] = False
    table = lottery(rows, "attention", PAIR, BUDGETS)
    assert table.deltas.seeds == (1, 3, 4, 5, 6)
    assert "exact-seed-2" in as_text(table)
    assert "left out, without its pair: seed 2" in as_text(table)
    assert table.rows[0].estimate.n_seeds == 5


def test_other_factors_are_fixed_or_refused():
    cells = factorial(attention=PAIR, lr=("1", "2"))
    rows = rows_of(cells, np.random.default_rng(0).normal(3, 1, (4, 3)))
    rows = [r | {"val": [[100, r["best_val"]]]} for r in rows]
    with pytest.raises(PaperkilnError, match="lr vary too"):
        lottery(rows, "attention", PAIR, [100])
    fixed = lottery(rows, "attention", PAIR, [100], given={"lr": "2"})
    value = {r["run"]: r["best_val"] for r in rows}
    want = [value[f"cell-03-seed-{s}"] - value[f"cell-02-seed-{s}"] for s in (1, 2, 3)]
    assert fixed.deltas.values[:, 0] == pytest.approx(want)
    assert fixed.rows[0].estimate.effect == pytest.approx(np.mean(want))


def test_what_cannot_be_compared_is_refused():
    _, _, rows = study()
    with pytest.raises(PaperkilnError, match="step 100 to 300"):
        lottery(rows, "attention", PAIR, [400])
    with pytest.raises(PaperkilnError, match="two or more"):
        lottery([r for r in rows if r["seed"] == 1], "attention", PAIR, BUDGETS)
    with pytest.raises(PaperkilnError, match="do not fit"):
        lottery(rows, "attention", ("exact", "none"), BUDGETS)
    with pytest.raises(PaperkilnError, match="no factor"):
        lottery(rows, "depth", PAIR, BUDGETS)
    with pytest.raises(PaperkilnError, match="budgets"):
        lottery(rows, "attention", PAIR, [])


def test_equal_variants_name_no_winner():
    exact, _, _ = study()
    table = lottery(curve_rows({"exact": exact, "window": exact}, BUDGETS),
                    "attention", PAIR, BUDGETS, margin=0.01)  # fmt: skip
    assert [row.ties for row in table.rows] == [6, 6, 6]
    assert [row.verdict for row in table.rows] == ["equivalent"] * 3
    assert "equivalent" in as_text(table)


def test_the_text_shows_both_estimates():
    text = as_text(lottery(study()[2], "attention", PAIR, BUDGETS))
    for said in ("window - exact", "plug-in", "p Holm", "window lower", "window higher"):
        assert said in text


def test_budgets_by_default_are_those_that_every_run_answers():
    rows = curve_rows({"exact": [[4, 3, 2]], "swa": [[4, 3, 2]]}, [50, 100, 150])
    slow = curve_rows({"exact": [[4, 3]], "swa": [[4, 3]]}, [100, 200])
    rows = [row | {"factor.batch": "16"} for row in rows]
    rows += [row | {"factor.batch": "8"} for row in slow]
    assert shared_budgets(rows, {}) == [100, 150]
    assert shared_budgets(rows, {"batch": "8"}) == [100, 200]
    assert shared_budgets([row | {"complete": False} for row in rows], {}) == []
    with pytest.raises(PaperkilnError, match="no list of"):
        shared_budgets([rows[0] | {"val": [7]}], {})
