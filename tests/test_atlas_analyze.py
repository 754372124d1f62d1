"""The analysis against published answers, against statsmodels, and against its own promises."""

from __future__ import annotations

import random
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measured_rows import curve_rows, factorial, rows_of

from paperkiln.atlas.analyze import (
    analysis_as_text,
    check_residuals,
    decide,
    effects,
    equivalence,
    estimate,
    estimate_family,
    half_normal,
    half_normal_svg,
    holm,
)
from paperkiln.atlas.halfnormal import lenth
from paperkiln.errors import PaperkilnError

# Student, Biometrika 6 (1908) 20, as in R's `sleep`: hours of sleep gained with two drugs.
SLEEP = (
    [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0],
    [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4],
)
# Box, Hunter & Hunter, Statistics for Experimenters (1978), p. 100: wear of two shoe soles.
SHOES = (
    [13.2, 8.2, 10.9, 14.3, 10.7, 6.6, 9.5, 10.8, 8.8, 13.3],
    [14.0, 8.8, 11.2, 14.2, 11.8, 6.4, 9.8, 11.3, 9.3, 13.6],
)
TWO = [{"drug": "1"}, {"drug": "2"}]
LH = ("1", "2")  # low, high


def by_term(found):
    return {e.term: e for e in found}


# --- published answers


def test_paired_t_of_the_boys_shoes():
    """Venables & Ripley, MASS (4th ed.), section 5.4: t = -3.3489, df 9, p = 0.008539."""
    back = {"kind": "effect", "metric": "best_val", "term": "drug", "levels": {"drug": ["2", "1"]}}
    e = estimate(rows_of(TWO, SHOES), back)
    assert (e.t, e.p, e.effect) == pytest.approx((-3.3489, 0.008539, -0.41), abs=5e-5)
    assert e.ci == pytest.approx((-0.6869539, -0.1330461), abs=1e-6)
    assert (e.df, e.n_runs, e.n_seeds, e.low, e.high) == (9, 20, 10, "2", "1")
    assert e.p_per_seed == pytest.approx(e.p)


def test_students_sleep_paired_and_welch():
    """R, ?t.test: paired t = -4.0621, p = 0.002833; Welch t = -1.8608, df = 17.776, p = 0.07939."""
    (paired,) = effects(rows_of(TWO, SLEEP), "best_val")
    (welch,) = effects(rows_of(TWO, SLEEP, paired=False), "best_val")
    assert (paired.t, paired.p) == pytest.approx((4.0621, 0.002833), abs=5e-5)
    assert (welch.t, welch.df, welch.p) == pytest.approx((1.8608, 17.776, 0.07939), abs=5e-4)
    assert welch.ci == pytest.approx((-0.2054832, 3.3654832), abs=1e-6)
    assert "Welch" in welch.error_term
    assert "paired" in paired.error_term
    assert welch.per_seed == ()


def test_chemical_process():
    """Montgomery, Design and Analysis of Experiments (8th ed.), section 6.2, Table 6.1."""
    cells = factorial(A=LH, B=LH)
    values = [[28, 25, 27], [36, 32, 32], [18, 19, 23], [31, 30, 29]]
    e = by_term(effects(rows_of(cells, values, paired=False), "best_val"))
    assert [e[t].effect for t in ("A", "B", "A:B")] == pytest.approx([8.33, -5, 1.67], abs=5e-3)
    # Its table has F = 53.15, 19.13 and 2.13, with MSE rounded to 3.92; F is t squared.
    assert [e[t].t ** 2 for t in ("A", "B", "A:B")] == pytest.approx([53.15, 19.13, 2.13], abs=0.05)
    assert e["A"].effect ** 2 * 3 == pytest.approx(208.33, abs=5e-3)  # its sum of squares


def test_plasma_etch():
    """Montgomery (8th ed.), Example 6.1, Tables 6.4 to 6.6."""
    values = [[550, 604], [669, 650], [633, 601], [642, 635],
              [1037, 1052], [749, 868], [1075, 1063], [729, 860]]  # fmt: skip
    rows = rows_of(factorial(A=LH, B=LH, C=LH), values, paired=False)
    e = by_term(effects(rows, "best_val"))
    published = {"A": -101.625, "B": 7.375, "C": 306.125, "A:B": -24.875, "A:C": -153.625,
                 "B:C": -2.125}  # fmt: skip
    assert {t: e[t].effect for t in published} == pytest.approx(published)
    f = [e[t].t ** 2 for t in ("A", "C", "A:C")]
    assert f == pytest.approx([18.34, 166.41, 41.91], abs=5e-3)


def test_filtration_rate():
    """Montgomery (8th ed.), Example 6.2, Table 6.12; its Lenth's PSE 2.625 and ME 6.748."""
    values = [45, 71, 48, 65, 68, 60, 80, 65, 43, 100, 45, 104, 75, 86, 70, 96]
    rows = rows_of(factorial(A=LH, B=LH, C=LH, D=LH), [[v] for v in values])
    found = by_term(effects(rows, "best_val"))
    published = {"A": 21.625, "B": 3.125, "C": 9.875, "D": 14.625, "A:B": 0.125, "A:C": -18.125,
                 "A:D": 16.625, "B:C": 2.375, "B:D": -0.375, "C:D": -1.125}  # fmt: skip
    assert {t: e.effect for t, e in found.items()} == pytest.approx(published)
    higher = [1.875, 4.125, -1.625, -2.625, 1.375]  # ABC, ABD, ACD, BCD, ABCD
    assert lenth([*published.values(), *higher]) == pytest.approx((2.625, 6.748), abs=5e-4)
    assert "residual" in found["A"].error_term
    assert found["A"].df == 5
    assert found["A"].se ** 2 * 4 == pytest.approx(4 * sum(h**2 for h in higher) / 5)


def test_vascular_graft():
    """Montgomery (8th ed.), Example 4.1, Table 4.4: blocks; MSE 7.33 with 15 df, F 8.11."""
    values = [
        [90.3, 89.2, 98.2, 93.9, 87.4, 97.9], [92.5, 89.5, 90.6, 94.7, 87.0, 95.8],
        [85.5, 90.8, 89.6, 86.2, 88.0, 93.4], [82.5, 89.5, 85.6, 87.4, 78.9, 90.7],
    ]  # fmt: skip
    rows = rows_of([{"psi": p} for p in ("8500", "8700", "8900", "9100")], values)
    found = effects(rows, "best_val")
    assert [e.term for e in found] == ["psi[8700]", "psi[8900]", "psi[9100]"]
    mse = found[0].se ** 2 * 6 / 2
    assert (mse, found[0].df) == pytest.approx((7.33, 15), abs=5e-3)
    means = np.mean(values, axis=1)
    assert [e.effect for e in found] == pytest.approx(list(means[1:] - means[0]))
    assert 6 * means.var(ddof=1) / mse == pytest.approx(8.11, abs=5e-3)
    assert found[0].n_runs == 12
    assert check_residuals(rows, "best_val").seeds_differ == pytest.approx(0.005532, abs=5e-4)


def test_holm_by_hand():
    """Sorted .005 .01 .03 .04, times 4 3 2 1, made non-decreasing: .02 .03 .06 .06."""
    (some,) = effects(rows_of(TWO, SHOES), "best_val")
    family = holm([replace(some, p=p) for p in (0.01, 0.04, 0.03, 0.005)])
    assert [e.p_holm for e in family] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_agrees_with_statsmodels(p):
    import gc

    from statsmodels.stats.multitest import multipletests

    (some,) = effects(rows_of(TWO, SHOES), "best_val")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "collect", lambda: 0)  # it collects on every call: 75 ms
        want = multipletests(p, method="holm")[1]
    assert [e.p_holm for e in holm([replace(some, p=x) for x in p])] == pytest.approx(list(want))


# --- against statsmodels


def made(cells, seeds, rng, interaction=0.0):
    luck = rng.normal(0, 1, seeds)
    values = rng.normal(3, 0.2, (len(cells), seeds)) + luck
    for i, cell in enumerate(cells):
        if interaction and len({cell["A"], cell["B"]}) == 1:
            values[i] += interaction
    return rows_of(cells, values)


@pytest.mark.parametrize("seeds", [2, 3, 7])
def test_block_design_agrees_with_ols(seeds):
    import pandas as pd
    import statsmodels.formula.api as smf

    cells = factorial(a=LH, b=LH, c=LH)
    rows = made(cells, seeds, np.random.default_rng(seeds))
    frame = pd.DataFrame([
        {"y": r["best_val"], "seed": r["seed"], "cell": r["run"][:7],
         **{k: 2 * int(r[f"factor.{k}"]) - 3 for k in "abc"}} for r in rows
    ])  # fmt: skip
    fit = smf.ols("y ~ C(cell, Sum) + C(seed, Sum)", frame).fit()
    of_cells = fit.params[[n for n in fit.params.index if "cell" in n]].to_numpy()
    of_cells = np.append(of_cells, -of_cells.sum())
    full = smf.ols("y ~ a * b * c + C(seed)", frame).fit()
    for e in effects(rows, "best_val"):
        assert e.effect == pytest.approx(2 * full.params[e.term])
        assert e.se == pytest.approx(2 * full.bse[e.term])
        assert e.p == pytest.approx(full.pvalues[e.term])
        assert e.df == full.df_resid == fit.df_resid == 7 * (seeds - 1)
        assert np.array(e.ci) == pytest.approx(2 * full.conf_int().loc[e.term].to_numpy())
    signs = np.array([2 * int(c["a"]) - 3 for c in cells])
    assert by_term(effects(rows, "best_val"))["a"].effect == pytest.approx(signs @ of_cells / 4)


def test_equivalence_agrees_with_statsmodels():
    from statsmodels.stats.weightstats import ttost_ind, ttost_paired

    low, high = map(np.array, SHOES)
    (e,) = effects(rows_of(TWO, SHOES), "best_val")
    for margin in (0.3, 0.6, 1.0):
        assert equivalence(e, margin) == pytest.approx(ttost_paired(high, low, -margin, margin)[0])
    (welch,) = effects(rows_of(TWO, SLEEP, paired=False), "best_val")
    want = ttost_ind(*map(np.array, SLEEP), -2, 2, usevar="unequal")[0]
    assert equivalence(welch, 2) == pytest.approx(want)
    with pytest.raises(PaperkilnError, match="margin"):
        equivalence(e, 0)


# --- designs


def plackett_burman(factors=7):
    first = "++-+++---+-"
    runs = [first[-i:] + first[:-i] for i in range(11)] + ["-" * 11]
    return [{f: "12"[run[i] == "+"] for i, f in enumerate("ABCDEFG"[:factors])} for run in runs]


def test_plackett_burman_gives_main_effects_and_refuses_interactions():
    rows = made(plackett_burman(), 3, np.random.default_rng(0))
    found = by_term(effects(rows, "best_val"))
    assert sorted(found) == list("ABCDEFG")
    for name, e in found.items():
        at = {x: [r["best_val"] for r in rows if r[f"factor.{name}"] == x] for x in "12"}
        assert e.effect == pytest.approx(np.mean(at["2"]) - np.mean(at["1"]))
        assert (e.df, e.n_runs) == (22, 36)
    with pytest.raises(PaperkilnError, match="partially aliased"):
        effects(rows, "best_val", interactions=True)
    with pytest.raises(PaperkilnError, match="partially aliased"):
        estimate(rows, {"kind": "effect", "metric": "best_val", "term": "A:B"})
    with pytest.raises(PaperkilnError, match="mixed up with"):
        estimate(rows, {"kind": "simple", "metric": "best_val", "term": "A", "given": {"B": "1"}})
    assert "interactions are refused" in analysis_as_text(rows, "best_val")


def test_fractional_factorial_names_its_aliases():
    cells = [c for c in factorial(A=LH, B=LH, C=LH, D=LH)
             if sum(map(int, c.values())) % 2 == 0]  # D = ABC  # fmt: skip
    rows = made(cells, 3, np.random.default_rng(1))
    found = by_term(effects(rows, "best_val"))
    assert found["A:B"].aliases == ("C:D",)
    twin = estimate(rows, {"kind": "effect", "metric": "best_val", "term": "D:C"})
    assert twin.effect == pytest.approx(found["A:B"].effect)
    assert twin.aliases == ("A:B",)
    assert "A:B = C:D" in analysis_as_text(rows, "best_val")


def test_resolution_three_does_not_give_an_interaction_a_main_effects_number():
    cells = [c for c in factorial(A=LH, B=LH, C=LH) if sum(map(int, c.values())) % 2 == 0]
    rows = made(cells, 3, np.random.default_rng(1))
    with pytest.raises(PaperkilnError, match="aliased with the main effect of C"):
        estimate(rows, {"kind": "effect", "metric": "best_val", "term": "A:B"})
    assert {e.term: e.aliases[0].lstrip("-") for e in effects(rows, "best_val")} == {
        "A": "B:C", "B": "A:C", "C": "A:B",
    }  # fmt: skip


def test_interaction_is_half_the_difference_of_the_differences():
    cells = factorial(A=LH, B=LH)
    e = by_term(effects(rows_of(cells, [[1, 1.1], [2, 2.2], [3, 3.3], [7, 7.7]]), "best_val"))
    m = [1.05, 2.1, 3.15, 7.35]
    assert e["A:B"].effect == pytest.approx(((m[3] - m[2]) - (m[1] - m[0])) / 2)
    assert e["A:B"].relative == pytest.approx(e["A:B"].effect / np.mean(m))
    assert e["A"].relative == pytest.approx(e["A"].effect / np.mean([m[0], m[2]]))


def test_simple_effect_and_change():
    cells = factorial(lr=("0.001", "0.003"), opt=("adamw", "muon"))
    rng = np.random.default_rng(2)
    rows = made(cells, 4, rng)
    value = {(r["factor.lr"], r["factor.opt"], r["seed"]): r["best_val"] for r in rows}
    simple = {"kind": "simple", "metric": "best_val", "term": "lr", "given": {"opt": "muon"}}
    e = estimate(rows, simple)
    want = [value["0.003", "muon", s] - value["0.001", "muon", s] for s in (1, 2, 3, 4)]
    assert e.effect == pytest.approx(np.mean(want))
    assert [v for _, v in e.per_seed] == pytest.approx(want)
    assert (e.df, e.n_runs) == (9, 8)  # the error of the whole design

    curves = {c: 3 + rng.normal(0, 0.1, (5, 3)) for c in ("exact", "window")}
    best = {c: np.minimum.accumulate(v, axis=1) for c, v in curves.items()}
    change = estimate(curve_rows(curves, [100, 200, 300]),
                      {"kind": "change", "term": "attention", "from": 100, "to": 300})  # fmt: skip
    delta = best["window"] - best["exact"]
    per_seed = delta[:, 2] - delta[:, 0]
    assert change.effect == pytest.approx(per_seed.mean())
    assert change.se == pytest.approx(per_seed.std(ddof=1) / 5**0.5)
    assert change.relative == pytest.approx(change.effect / best["exact"][:, 2].mean())


def test_levels_order_and_choose():
    values = [[3, 3.1, 3.3], [2, 2.2, 2.1], [1, 1.3, 1.2]]
    rows = rows_of([{"size": s} for s in ("small", "medium", "large")], values)
    ask = {"kind": "effect", "metric": "best_val", "term": "size"}
    with pytest.raises(PaperkilnError, match="3 levels"):
        estimate(rows, ask)
    e = estimate(rows, ask, levels={"size": ["small", "large"]})
    assert e.effect == pytest.approx(np.mean(values[2]) - np.mean(values[0]))
    assert (e.low, e.high) == ("small", "large")
    rows = rows_of([{"w": w} for w in ("8", "16", "128")], values)
    assert [e.low for e in effects(rows, "best_val")] == ["8", "8"]  # by size, not by letter


# --- what is missing


def test_failed_runs_are_stated_and_their_seed_left_out():
    rows = made(factorial(A=LH, B=LH), 4, np.random.default_rng(3))
    rows[2] |= {"complete": False, "best_val": None}  # cell 0, seed 3
    whole = by_term(effects([r for r in rows if r["seed"] != 3], "best_val"))
    found = by_term(effects(rows, "best_val"))
    assert found["A"].effect == whole["A"].effect
    assert (found["A"].n_runs, found["A"].n_seeds, found["A"].df) == (12, 3, 6)
    assert "seed 3" in found["A"].method
    assert "cell-00-seed-3" in found["A"].method
    assert "cell-00-seed-3" in analysis_as_text(rows, "best_val")


def test_what_cannot_be_answered_is_refused():
    rows = made(factorial(A=LH, B=LH), 2, np.random.default_rng(4))
    failed = [r | {"complete": r["run"] != "cell-01-seed-2"} for r in rows]
    with pytest.raises(PaperkilnError, match="two seeds that every cell ran with"):
        effects(failed, "best_val")
    empty = [r | {"complete": not r["run"].startswith("cell-01")} for r in rows]
    with pytest.raises(PaperkilnError, match="no complete run"):
        effects(empty, "best_val")
    with pytest.raises(PaperkilnError, match="no complete run has loss; metrics: best_val"):
        effects(rows, "loss")
    with pytest.raises(PaperkilnError, match="no rows"):
        effects([], "best_val")
    with pytest.raises(PaperkilnError, match="a run twice"):
        effects([*rows, rows[0]], "best_val")
    with pytest.raises(PaperkilnError, match="several studies"):
        effects([*rows, rows[0] | {"study": "other"}], "best_val")
    with pytest.raises(PaperkilnError, match="change together"):
        effects([r | {"factor.B": r["factor.A"]} for r in rows if r["seed"] and
                 r["run"][5:7] in ("00", "03")], "best_val")  # fmt: skip
    with pytest.raises(PaperkilnError, match="nothing to measure the error with"):
        effects([r for r in rows if r["seed"] == 1], "best_val")


@pytest.mark.parametrize(
    ("analysis", "said"),
    [
        ({"kind": "guess"}, "kind"),
        ({"kind": "effect", "metric": "best_val"}, "term"),
        ({"kind": "effect", "term": "A"}, "metric"),
        ({"kind": "effect", "metric": "best_val", "term": "Z"}, "no factor"),
        ({"kind": "effect", "metric": "best_val", "term": "A:B:C"}, "two factors"),
        ({"kind": "effect", "metric": "best_val", "term": "A", "given": {}}, "given"),
        ({"kind": "simple", "metric": "best_val", "term": "A"}, "given"),
        (
            {"kind": "simple", "metric": "best_val", "term": "A", "given": {"B": "9"}},
            "no level '9'",
        ),
        ({"kind": "change", "term": "A", "from": 3, "to": 1}, "later"),
        ({"kind": "effect", "metric": "val@soon", "term": "A"}, "whole number"),
        ({"kind": "effect", "metric": "val@100", "term": "A"}, "never"),
    ],
)
def test_an_analysis_that_says_something_else_is_refused(analysis, said):
    rows = made(factorial(A=LH, B=LH), 2, np.random.default_rng(4))
    with pytest.raises(PaperkilnError, match=said):
        estimate(rows, analysis)


def test_val_at_is_the_running_best():
    curves = {"exact": [[3, 2, 5], [3, 2.5, 4]], "window": [[4, 1, 9], [3, 1.7, 1]]}
    rows = curve_rows(curves, [100, 200, 300])
    ask = {"kind": "effect", "term": "attention"}
    assert estimate(rows, ask | {"metric": "val@250"}).effect == pytest.approx(-0.9)
    assert estimate(rows, ask | {"metric": "val@300"}).effect == pytest.approx(-1.25)
    with pytest.raises(PaperkilnError, match="from step 100 to 300"):
        estimate(rows, ask | {"metric": "val@400"})


def test_equal_runs_and_constant_differences():
    same = rows_of(TWO, [[1.1, 2.2, 3.3], [1.1, 2.2, 3.3]])
    (e,) = effects(same, "best_val")
    assert (e.effect, e.t, e.p, e.ci) == (0, 0, 1, (0, 0))
    assert decide(e, 0.05, margin=0.01) == "equivalent"
    with pytest.raises(PaperkilnError, match="the same for every seed"):
        effects(rows_of(TWO, [[1, 2, 3], [2, 3, 4]]), "best_val")


# --- decisions


def test_decisions():
    (e,) = effects(rows_of(TWO, SHOES), "best_val")
    assert decide(e, 0.05) == "higher"
    assert decide(replace(e, effect=-e.effect), 0.05) == "lower"
    assert decide(replace(e, p_holm=0.2), 0.05) == "unresolved"
    assert decide(replace(e, p_holm=0.2), 0.05, margin=1.0) == "equivalent"
    assert decide(replace(e, p_holm=None), 0.001, margin=0.2) == "unresolved"
    with pytest.raises(PaperkilnError, match="alpha"):
        decide(e, 5)


def test_a_family_is_corrected_together():
    rows = made(factorial(A=LH, B=LH), 4, np.random.default_rng(5), interaction=1.0)
    asks = [{"kind": "effect", "metric": "best_val", "term": t} for t in ("A", "B", "B:A")]
    family = estimate_family(rows, asks)
    alone = [estimate(rows, ask) for ask in asks]
    assert [e.p_holm for e in family] == [e.p_holm for e in holm(alone)]
    assert all(e.p_holm is None for e in alone)
    assert decide(family[2]) == "higher"


def test_the_error_rate_is_what_it_says():
    """No effect, seeds that differ a lot: 5 % of the tests reject."""
    rng = np.random.default_rng(6)
    cells = factorial(A=LH, B=LH)
    p = [e.p for _ in range(300) for e in effects(made(cells, 3, rng), "best_val")]
    assert abs(np.mean(np.array(p) < 0.05) - 0.05) < 0.02


# --- properties

values = st.floats(-3, 3).map(lambda v: round(v, 4))
grids = st.lists(st.lists(values, min_size=3, max_size=3), min_size=4, max_size=4)
CELLS = factorial(A=LH, B=LH)


def try_effects(rows, **more):
    try:
        return by_term(effects(rows, "best_val", **more))
    except PaperkilnError:  # a difference that is the same for every seed
        return None


@settings(max_examples=40)
@given(grids, st.integers(-50, 50), st.randoms(use_true_random=False))
def test_shift_swap_and_order(grid, shift, chance: random.Random):
    rows = rows_of(CELLS, grid)
    found = try_effects(rows)
    if found is None or any(0 < e.se < 1e-6 for e in found.values()):
        return
    shuffled = chance.sample(rows, len(rows))
    assert try_effects(shuffled) == found
    moved = try_effects(rows_of(CELLS, [[v + shift for v in row] for row in grid]))
    swapped = try_effects(rows, levels={"A": ["2", "1"]})
    for name, e in found.items():
        assert moved[name].effect == pytest.approx(e.effect, abs=1e-9)
        assert moved[name].p == pytest.approx(e.p, abs=1e-6)
        sign = -1 if "A" in name else 1
        assert swapped[name].effect == pytest.approx(sign * e.effect, abs=1e-12)
        assert swapped[name].p == pytest.approx(e.p, abs=1e-9)
        assert e.ci[0] <= e.effect <= e.ci[1]
        assert (0 < e.ci[0] or e.ci[1] < 0) == (e.p < 0.05) or abs(e.p - 0.05) < 1e-9


@settings(max_examples=30)
@given(st.floats(-1, 1), st.floats(0.01, 1), st.integers(1, 30), st.floats(0.01, 2))
def test_equivalence_is_the_interval_within_the_margin(effect, se, df, margin):
    from scipy import stats

    (some,) = effects(rows_of(TWO, SHOES), "best_val")
    e = replace(some, effect=effect, se=se, df=df)
    half = stats.t.ppf(0.95, df) * se  # the 90 % interval
    distance = min(margin - (effect + half), margin + (effect - half))
    if abs(distance) > 1e-9:
        assert (equivalence(e, margin) < 0.05) == (distance > 0)
    assert equivalence(e, margin) == pytest.approx(equivalence(replace(e, effect=-effect), margin))


# --- checks and pictures


def test_residual_checks_find_what_is_planted():
    rng = np.random.default_rng(7)
    cells = factorial(A=LH, B=LH)
    clean = check_residuals(made(cells, 10, rng), "best_val")
    assert min(clean.normality, clean.drift, *clean.equal_variance.values()) > 0.01
    assert clean.seeds_differ < 0.001  # `made` gives every seed its luck
    noisy = np.where(np.array([c["B"] == "2" for c in cells])[:, None], 1, 0.05)
    uneven = check_residuals(rows_of(cells, rng.normal(0, 1, (4, 10)) * noisy), "best_val")
    assert uneven.equal_variance["B"] < 0.01 < uneven.equal_variance["A"]
    rows = made(cells, 10, rng)
    rows[17]["best_val"] += 5
    odd = check_residuals(rows, "best_val")
    assert odd.normality < 0.001
    assert odd.largest[0][0] == rows[17]["run"]
    assert odd.largest[0][1] > 4
    # The order of the rows matters to the drift alone.
    late = sorted(made(cells, 10, rng), key=lambda r: r["best_val"] - 3)
    assert check_residuals(late, "best_val").seeds_differ is not None


def test_interactions_that_a_screen_hides_show_in_what_its_terms_leave_over():
    # Montgomery, section 8.5: in Plackett and Burman's 12 runs a main effect carries a third of
    # each interaction of two others. Here no main effect is real but A and B.
    rng = np.random.default_rng(10)
    cells = plackett_burman()
    names = list(cells[0])
    sign = {n: np.array([1.0 if c[n] == "2" else -1.0 for c in cells]) for n in names}
    plain = 3 + 0.3 * sign[names[0]] + 0.3 * sign[names[1]]
    luck = rng.normal(0, 0.005, (12, 3))

    clean = rows_of(cells, plain[:, None] + luck)
    checks = check_residuals(clean, "best_val")
    assert checks.lack_of_fit > 0.01
    assert "interactions are there" not in analysis_as_text(clean, "best_val")

    mixed = rows_of(cells, (plain + 0.15 * sign[names[0]] * sign[names[1]])[:, None] + luck)
    spurious = [e for e in effects(mixed, "best_val") if e.term not in names[:2]]
    assert max(e.p_holm for e in spurious) < 1e-6, "that is the trap: all five look certain"
    checks = check_residuals(mixed, "best_val")
    assert checks.lack_of_fit < 1e-9
    assert checks.left_over == pytest.approx(0.1, rel=0.1), "a third of the interaction, 0.3"
    assert "one of about that size shows nothing" in analysis_as_text(mixed, "best_val")


def test_a_full_factorial_with_all_its_terms_leaves_nothing_over():
    checks = check_residuals(made(factorial(A=LH, B=LH), 4, np.random.default_rng(11)), "best_val")
    assert (checks.lack_of_fit, checks.left_over) == (None, None)


def test_drift_is_seen_in_the_order_of_the_rows():
    from paperkiln.atlas.blocks import blocks
    from paperkiln.atlas.contrasts import model
    from paperkiln.atlas.error_term import error_term

    rows = made(factorial(A=LH, B=LH), 6, np.random.default_rng(8))
    table = blocks(rows, "best_val")
    residuals = error_term(table, model(table)).residuals
    names = [name for runs in table.runs for name in runs.values()]
    residual = dict(zip(names, residuals, strict=True))
    drifting = sorted(rows, key=lambda row: residual[row["run"]])
    assert check_residuals(drifting, "best_val").drift < 1e-6


def test_the_half_normal_plot_can_be_read_aloud_in_both_themes():
    rng = np.random.default_rng(9)
    cells = factorial(A=LH, B=LH, C=LH, D=LH)
    rows = [r | {"best_val": r["best_val"] + 2.0 * (r["factor.A"] == "2")}
            for r in made(cells, 2, rng)]  # fmt: skip
    data = half_normal(rows, "best_val")
    assert data.outstanding == ("A",)
    assert list(data.sizes) == sorted(data.sizes)
    light, dark = half_normal_svg(data, "light"), half_normal_svg(data, "dark")
    assert light == half_normal_svg(data, "light")
    for svg in (light, dark):
        root = ElementTree.fromstring(svg)
        name = "{http://www.w3.org/2000/svg}"
        assert root.attrib["role"] == "img"
        assert root.find(f"{name}title").text == "Half-normal plot of the effects on best_val"
        assert "beyond the dashed margin" in root.find(f"{name}desc").text
    assert light != dark


def test_hostile_labels_stay_text():
    odd = ("<b>$x$", "[red]\x1b[31m")
    rows = made(factorial(A=odd, B=odd, C=odd), 3, np.random.default_rng(10))
    text = analysis_as_text(rows, "best_val")
    assert "\x1b" not in text
    assert "[red]" in text
    names = (odd[0], "[red]", *"cdef")
    data = replace(half_normal(rows, "best_val"), metric=odd[0], terms=names, margin=0.0)
    ElementTree.fromstring(half_normal_svg(data))
    with pytest.raises(PaperkilnError, match="no name of a factor"):
        effects(made(factorial(**{"a:b": LH}), 3, np.random.default_rng(10)), "best_val")


def test_the_text_states_error_term_family_and_notes():
    text = analysis_as_text(made(factorial(A=LH, B=LH), 3, np.random.default_rng(11)), "best_val")
    for said in ("error term: cell x seed", "over the 3 terms", "A:B", "95 % CI", "Shapiro"):
        assert said in text
