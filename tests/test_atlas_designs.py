"""Designs: textbook alias structures, orthogonality, and power against statsmodels."""

import itertools
import math

import numpy as np
import pydoe
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperkiln.atlas.aliases import alias_structure, check_orthogonality
from paperkiln.atlas.describe import describe
from paperkiln.atlas.designs import (
    LETTERS,
    Design,
    available,
    cells,
    design,
    fold_over,
    fractional,
    make_design,
    plackett_burman,
)
from paperkiln.atlas.power import power, seeds_needed, smallest_effect, smallest_paired_effect
from paperkiln.errors import PaperkilnError

SCREEN = ("optimizer", "lr", "norm", "activation", "positional", "depth", "batch")


def two_level(names):
    return {name: ["low", "high"] for name in names}


def letters(design):
    """Return the aliases in the textbooks' letters, without the notes in brackets."""
    return [line.replace(":", "") for line in alias_structure(design)]


def row(signs):
    return [1 if sign == "+" else -1 for sign in signs]


# Full factorials


def test_a_full_factorial_is_in_standard_order():
    built = make_design({"kind": "factorial"}, two_level("AB"))
    assert built.matrix.tolist() == [[-1, -1], [1, -1], [-1, 1], [1, 1]]
    assert cells(built)[1] == {"A": "high", "B": "low"}
    assert built.resolution is None
    assert alias_structure(built) == []


@given(st.lists(st.integers(2, 4), min_size=1, max_size=4))
@settings(max_examples=30, deadline=None)
def test_a_full_factorial_holds_every_cell_once(sizes):
    factors = {LETTERS[i]: [str(level) for level in range(n)] for i, n in enumerate(sizes)}
    built = make_design({"kind": "factorial"}, factors)
    found = {tuple(cell.values()) for cell in cells(built)}
    assert found == set(itertools.product(*factors.values()))
    assert len(built.matrix) == math.prod(sizes)
    assert check_orthogonality(built) == []


# Regular fractions


# Montgomery, Design and Analysis of Experiments (8th ed.), table 8.14 for the generators and
# the appendix's alias relationships for the words and aliases, to two-way interactions.
TEXTBOOK = {
    "2^(5-2)": (
        ["D=AB", "E=AC"],
        "ABCDE",
        ["A:B:D", "A:C:E", "B:C:D:E"],
        3,
        [
            "A + BD + CE",
            "B + AD",
            "C + AE",
            "D + AB",
            "E + AC",
            "BC + DE",
            "BE + CD",
        ],
    ),
    "2^(4-1)": (
        ["D=ABC"],
        "ABCD",
        ["A:B:C:D"],
        4,
        [
            *(f"{name} (clear of two-way interactions)" for name in "ABCD"),
            "AB + CD",
            "AC + BD",
            "AD + BC",
        ],
    ),
    "2^(3-1), the other half": (
        ["C=-AB"],
        "ABC",
        ["-A:B:C"],
        3,
        ["A - BC", "B - AC", "C - AB"],
    ),
}


@pytest.mark.parametrize(
    ("generators", "names", "words", "resolution", "aliases"), TEXTBOOK.values(), ids=TEXTBOOK
)
def test_textbook_fractions(generators, names, words, resolution, aliases):
    built = fractional(two_level(names), generators)
    assert list(built.words) == words
    assert built.resolution == resolution
    assert letters(built) == aliases
    assert check_orthogonality(built) == []


def test_the_saturated_design_of_seven_factors_in_eight_runs():
    built = design(n_factors=7, runs=8)
    assert built.matrix.shape == (8, 7)
    assert built.resolution == 3
    # Montgomery (8th ed.), chapter 8, on resolution III designs; also Box, Hunter & Hunter.
    assert letters(built) == [
        "A + BD + CE + FG",
        "B + AD + CF + EG",
        "C + AE + BF + DG",
        "D + AB + CG + EF",
        "E + AC + BG + DF",
        "F + AG + BC + DE",
        "G + AF + BE + CD",
    ]
    assert "A + B:D + C:E + F:G" in str(built)


def test_generators_with_factor_names():
    named = fractional(two_level(SCREEN[:4]), ["activation=optimizer:lr:norm"])
    assert (named.matrix == fractional(two_level(SCREEN[:4]), ["D=ABC"]).matrix).all()
    assert "optimizer:lr + norm:activation" in alias_structure(named)


def test_a_factor_named_by_a_letter_is_meant_by_it():
    built = fractional(two_level("BAC"), ["C=AB"])
    assert built.words == ("B:A:C",)
    with pytest.raises(PaperkilnError, match="is not one factor"):
        fractional(two_level(["B", "lr", "norm"]), ["C=AB"])


@pytest.mark.parametrize(
    ("generators", "message"),
    [
        ([], "0 generators"),
        (["D=A"], "product of two or more"),
        (["D=AA"], "product of two or more"),
        (["D=ABD"], "product of two or more"),
        (["D=AZ"], "product of two or more"),
        (["D"], "product of two or more"),
        (["D=ABC", "D=AB"], "generated twice"),
        (["D=AB", "C=AB"], "share a column"),
        (["D=AB", "C=-AB"], "share a column"),
        (["D=AC", "C=AB"], "generated itself"),
    ],
)
def test_generators_that_make_no_design(generators, message):
    with pytest.raises(PaperkilnError, match=message) as raised:
        fractional(two_level("ABCD"), generators)
    assert "\n" not in str(raised.value)


@given(st.lists(st.text("ABCDEFGHJ=-: ", max_size=8), max_size=6), st.integers(1, 9))
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_generator_or_refused_in_one_line(generators, n_factors):
    try:
        fractional(two_level(LETTERS[:n_factors]), generators)
    except PaperkilnError as error:
        message = str(error)
    else:
        message = ""
    assert "\n" not in message


@st.composite
def fractions(draw):
    """Draw p generators, with signs, each of its own subset of up to five base factors."""
    n_base = draw(st.integers(2, 5))
    subsets = [
        "".join(subset)
        for size in range(2, n_base + 1)
        for subset in itertools.combinations(LETTERS[:n_base], size)
    ]
    products = draw(st.lists(st.sampled_from(subsets), min_size=1, max_size=5, unique=True))
    signs = draw(st.lists(st.sampled_from(["", "-"]), min_size=5, max_size=5))
    names = LETTERS[: n_base + len(products)]
    made = zip(names[n_base:], signs, products, strict=False)
    return names, [f"{name}={sign}{product}" for name, sign, product in made]


@given(fractions())
@settings(max_examples=50, deadline=None)
def test_fractions_are_orthogonal_and_their_words_true(drawn):
    names, generators = drawn
    built = fractional(two_level(names), generators)
    assert len(built.matrix) == 2 ** (len(names) - len(generators))
    assert len(built.words) == 2 ** len(generators) - 1
    assert check_orthogonality(built) == []
    check_words(built)


def check_words(built: Design):
    """Assert that each word is constant over the runs, and that no shorter product is."""
    columns = dict(zip(built.factors, built.matrix.T, strict=True))
    for word in built.words:
        product = np.prod([columns[name] for name in word.lstrip("-").split(":")], axis=0)
        assert set(product.tolist()) == {-1 if word.startswith("-") else 1}
    shorter = range(1, built.resolution or len(columns) + 1)
    for names in itertools.chain(*(itertools.combinations(columns, size) for size in shorter)):
        assert len(set(np.prod([columns[name] for name in names], axis=0).tolist())) == 2


# The catalogue


@pytest.mark.parametrize("n_factors", range(3, 16))
def test_the_catalogue_reaches_the_highest_resolution(n_factors):
    """Judged by pyDOE's search for the fewest runs at a resolution."""
    for runs, reached, spec in available(n_factors):
        if spec["kind"] == "fractional":
            built = make_design(spec, two_level(LETTERS[:n_factors]))
            check_words(built)
            assert len(pydoe.fracfact_by_res(n_factors, int(reached))) <= runs
            assert len(pydoe.fracfact_by_res(n_factors, int(reached) + 1)) > runs


def test_the_catalogue_has_the_fewest_shortest_words():
    """The minimum aberration designs: Chen, Sun & Wu (1993), Int. Stat. Review 61, 131-145."""
    fewest = {
        8: {4: 1, 5: 2, 6: 4, 7: 7},
        16: {5: 1, 6: 3, 7: 7, 8: 14, 9: 4, 10: 8, 11: 12, 12: 16, 13: 22, 14: 28, 15: 35},
        32: {6: 1, 7: 1, 8: 3, 9: 6, 10: 10, 11: 25},
        64: {7: 1, 8: 2},
    }
    for runs, by_factors in fewest.items():
        for n_factors, count in by_factors.items():
            spec = {"kind": "fractional", "runs": runs}
            built = make_design(spec, two_level(LETTERS[:n_factors]))
            lengths = [len(word.split(":")) for word in built.words]
            assert lengths.count(built.resolution) == count, (runs, n_factors)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"n_factors": 7, "runs": 10}, r"7 factors in 10 runs: no such design; .*8 \(III\)"),
        ({"n_factors": 7, "runs": 8, "resolution": 4}, r"at resolution IV: .*16 \(IV\)"),
        ({"n_factors": 6, "resolution": 8}, r"resolution VIII: .*32 \(VI\), .*64 \(full\)"),
        ({"n_factors": 6, "resolution": 2}, "no such design"),
        ({"n_factors": 99}, "1 to 23"),
    ],
)
def test_an_impossible_design_says_which_exist(wanted, message):
    with pytest.raises(PaperkilnError, match=message) as raised:
        design(**wanted)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("n_factors", "resolution", "runs"),
    # Montgomery (8th ed.), table 8.14.
    [(5, 5, 16), (6, 4, 16), (6, 6, 32), (8, 4, 16), (7, 7, 64), (11, 4, 24), (15, 3, 16)],
)
def test_the_smallest_design_of_a_resolution(n_factors, resolution, runs):
    built = design(n_factors, resolution=resolution)
    assert (len(built.matrix), built.resolution) == (runs, resolution)


# Plackett-Burman


def test_the_published_rows_of_twelve_runs():
    built = plackett_burman(two_level(LETTERS[:11]), 12)
    assert built.matrix[0].tolist() == row("++-+++---+-")
    assert built.matrix[1].tolist() == row("-++-+++---+")
    assert built.matrix[-1].tolist() == row("-" * 11)


@pytest.mark.parametrize("runs", [12, 20])
def test_plackett_burman_is_pydoes_up_to_order(runs):
    ours = {tuple(line) for line in design_matrix(runs, runs - 1)}
    theirs = pydoe.pbdesign(runs - 1).astype(int)
    assert any(
        {tuple(np.roll(line, shift).tolist()) for line in sign * theirs[:, ::step]} == ours
        for sign in (1, -1)
        for step in (1, -1)
        for shift in range(runs - 1)
    )


def design_matrix(runs, n_factors, foldover=False):
    return plackett_burman(two_level(LETTERS[:n_factors]), runs, foldover).matrix.tolist()


@given(st.sampled_from([12, 20, 24]), st.integers(6, 23), st.booleans())
@settings(max_examples=60, deadline=None)
def test_plackett_burman_is_orthogonal_and_repeats_no_cell(runs, n_factors, foldover):
    factors = two_level(f"f{i}" for i in range(n_factors))
    spec = {"kind": "plackett-burman", "runs": runs, "foldover": foldover}
    if n_factors > runs - 1:
        with pytest.raises(PaperkilnError, match=r"do not fit|drop some"):
            make_design(spec, factors)
        return
    built = make_design(spec, factors)
    assert len(built.matrix) == runs * (1 + foldover)
    assert len({tuple(line) for line in built.matrix.tolist()}) == len(built.matrix)
    assert check_orthogonality(built) == []


def test_partial_aliases_are_thirds():
    """In 12 runs each main effect takes in +-1/3 of each interaction of the other factors.

    Montgomery (8th ed.), chapter 8, on Plackett-Burman designs.
    """
    built = plackett_burman(two_level(SCREEN), 12)
    lines = alias_structure(built)
    for name, line in zip(SCREEN, lines[:7], strict=True):
        assert line.startswith(f"{name} + 1/3 (")
        assert " - 1/3 (" in line
        assert line.count(":") == 15  # of the six other factors
        assert f"{name}:" not in line
        assert f":{name}" not in line


def test_a_partial_alias_is_what_an_interaction_adds_to_the_estimate():
    built = plackett_burman(two_level("ABCDE"), 12)
    y = built.matrix[:, 1] * built.matrix[:, 2]  # B:C has the effect 2, high minus low
    a = built.matrix[:, 0]
    seen = y[a > 0].mean() - y[a < 0].mean()
    (line,) = (line for line in alias_structure(built) if line.startswith("A "))
    plus, minus = line.split(" - 1/3 ")
    assert seen == pytest.approx(2 / 3 if "B:C" in plus else -2 / 3)
    assert ("B:C" in plus) != ("B:C" in minus)


@pytest.mark.parametrize("runs", [12, 20, 24])
def test_fold_over_clears_main_effects_of_two_way_interactions(runs):
    matrix = np.array(design_matrix(runs, 9, foldover=True))
    assert (matrix[runs:] == -matrix[:runs]).all()
    for i, j in itertools.combinations(range(9), 2):
        assert not (matrix.T @ (matrix[:, i] * matrix[:, j])).any()


def test_fold_over_of_a_fraction():
    folded = fold_over(fractional(two_level("ABCDE"), ["D=AB", "E=AC"]))
    assert folded.words == ("B:C:D:E",)
    assert folded.resolution == 4
    check_words(folded)
    assert (
        make_design(
            {"kind": "fractional", "generators": ["C=AB"], "foldover": True}, two_level("ABC")
        ).words
        == ()
    )
    with pytest.raises(PaperkilnError, match="clear already"):
        fold_over(folded)


def test_sixteen_runs_are_a_regular_fraction():
    built = make_design({"kind": "plackett-burman", "runs": 16}, two_level(SCREEN))
    assert built.kind == "fractional"
    assert "regular fraction" in describe(built)


@pytest.mark.parametrize(
    ("spec", "factors", "message"),
    [
        ({"kind": "plackett-burman", "runs": 12}, two_level("ABCD"), "cells would repeat"),
        ({"kind": "plackett-burman", "runs": 28}, two_level(SCREEN), "12, 20, 24"),
        ({"kind": "plackett-burman", "runs": "12"}, two_level(SCREEN), "whole number"),
        ({"kind": "fractional"}, two_level(SCREEN), "one of the two"),
        ({"kind": "fractional", "runs": 4}, two_level(SCREEN), "there are 8, 16, 32, 64 runs"),
        ({"kind": "latin"}, two_level("AB"), "design.kind"),
        ({"kind": "factorial", "runs": 4}, two_level("AB"), "design.runs"),
        ({"kind": "factorial"}, two_level(SCREEN + tuple("ABCD")), "2,048 cells"),
        ({"kind": "factorial"}, {"A": ["one"]}, "two or more levels"),
        ({"kind": "factorial"}, {"A": ["x", "x"]}, "its own label"),
        ({"kind": "factorial"}, {"A:B": ["x", "y"]}, "no name of a factor"),
        ({"kind": "factorial"}, {"A": ["x", "\x1b[2J"]}, "printable"),
        ({"kind": "factorial"}, {}, "at least one"),
        ({"kind": "fractional", "runs": 4}, {"A": ["x", "y", "z"]}, "factor A has 3 levels"),
    ],
)
def test_what_is_refused(spec, factors, message):
    with pytest.raises(PaperkilnError, match=message) as raised:
        make_design(spec, factors)
    assert "\n" not in str(raised.value)


def test_a_design_that_is_not_orthogonal_says_where():
    matrix = np.array([[-1, -1], [1, 1], [1, 1], [-1, -1], [1, -1], [1, 1]])
    levels = (("low", "high"),) * 2
    faults = check_orthogonality(Design(("lr", "norm"), levels, matrix, "factorial"))
    assert faults == ["lr: its levels occur 2, 4 times", "lr and norm are correlated"]


# Power


@pytest.mark.parametrize("n_seeds", [2, 3, 5, 10, 30])
@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_two_cells_are_the_paired_t_test_of_statsmodels(n_seeds, alpha):
    TTestPower = pytest.importorskip("statsmodels.stats.power").TTestPower
    found = smallest_paired_effect(n_seeds, sd_difference=0.03, alpha=alpha)
    chance = TTestPower().power(found / 0.03, n_seeds, alpha, alternative="two-sided")
    assert chance == pytest.approx(0.8, abs=1e-8)
    assert smallest_effect(2, n_seeds, 0.03 / math.sqrt(2), alpha) == found


@pytest.mark.parametrize("effect", [0.3, 0.5, 1.0, 2.0])
def test_seeds_needed_are_the_pairs_of_statsmodels(effect):
    TTestPower = pytest.importorskip("statsmodels.stats.power").TTestPower
    pairs = TTestPower().solve_power(effect, alpha=0.05, power=0.8, alternative="two-sided")
    assert seeds_needed(effect, sd=1 / math.sqrt(2)) == math.ceil(pairs)


def test_two_of_three_levels_are_compared_over_a_third_of_the_runs_each():
    assert smallest_effect(6, 4, 1.0, levels=3) == pytest.approx(
        smallest_effect(6, 4, 1.0) * math.sqrt(3 / 2)
    )


def test_power_is_what_simulated_block_designs_show():
    n_cells, n_seeds, sd, draws = 8, 3, 0.02, 20_000
    effect = smallest_effect(n_cells, n_seeds, sd)
    high = np.arange(n_cells) < n_cells // 2
    rng = np.random.default_rng(0)
    y = rng.normal(0, sd, (draws, n_cells, n_seeds)) + effect * high[:, None]
    y += rng.normal(0, 1, (draws, 1, n_seeds))  # blocks: seeds differ far more than cells
    residual = (
        y - y.mean(1, keepdims=True) - y.mean(2, keepdims=True) + y.mean((1, 2))[:, None, None]
    )
    df = (n_cells - 1) * (n_seeds - 1)
    error = np.sqrt((residual**2).sum((1, 2)) / df * 4 / (n_cells * n_seeds))
    t = (y[:, high].mean((1, 2)) - y[:, ~high].mean((1, 2))) / error
    critical = 2.144787  # of t with 14 degrees of freedom
    assert (np.abs(t) > critical).mean() == pytest.approx(0.8, abs=0.01)


@given(
    st.integers(2, 48), st.integers(2, 12), st.floats(1e-4, 10), st.integers(1, 20),
    st.sampled_from([0.05, 0.01]),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_power_and_its_inverses_agree(n_cells, n_seeds, sd, n_hypotheses, alpha):
    effect = smallest_effect(n_cells, n_seeds, sd, alpha, 0.8, n_hypotheses)
    chance = power(effect, n_cells, n_seeds, sd, alpha=alpha, n_hypotheses=n_hypotheses)
    assert chance == pytest.approx(0.8, abs=1e-6)
    asked = {"alpha": alpha, "n_hypotheses": n_hypotheses}
    assert seeds_needed(effect * 1.000001, sd, n_cells, **asked) == n_seeds
    assert smallest_effect(n_cells, n_seeds + 1, sd, alpha, 0.8, n_hypotheses) < effect


def test_no_effect_is_found_with_the_chance_alpha():
    assert power(0, 8, 3, 1.0) == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: smallest_effect(12, 1, 0.1), "1 seed leaves no residual"),
        (lambda: smallest_effect(1, 3, 0.1), "cannot hold 2 levels"),
        (lambda: smallest_effect(12, 3, 0.0), "positive"),
        (lambda: smallest_effect(12, 3, math.nan), "positive"),
        (lambda: smallest_effect(12, 3, 0.1, alpha=1.5), "no test level"),
        (lambda: smallest_effect(12, 3, 0.1, power=0.01), "between alpha and 1"),
        (lambda: seeds_needed(0.0, 0.1), "no number of seeds"),
        (lambda: seeds_needed(1e-9, 0.1), "more than 10,000 seeds"),
    ],
)
def test_power_of_nothing(call, message):
    with pytest.raises(PaperkilnError, match=message):
        call()


# In words


def test_the_description_of_a_screen():
    text = describe(plackett_burman(two_level(SCREEN), 12), sd=0.02, seeds=(1, 3))
    assert text.startswith("7 factors in 12 cells, plackett-burman, resolution III\n")
    assert "orthogonal: every pair" in text
    assert "optimizer + 1/3 (lr:depth" in text
    assert "4 of 11 columns have no factor" in text
    assert "at a residual sd of 0.02" in text
    assert "    3    36  22      0.0195       0.0257\n" in text + "\n"
    assert max(map(len, text.splitlines())) <= 100


def test_many_partial_aliases_are_counted():
    text = describe(plackett_burman(two_level(f"f{i}" for i in range(11)), 12))
    assert "interactions) - 1/3 (" in text
    assert len(text.splitlines()) < 50


def test_a_long_table_is_cut():
    assert "... and 64 more" in describe(make_design({"kind": "factorial"}, two_level("ABCDEFG")))
