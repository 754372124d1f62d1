"""Designs: which combinations of the factors' levels are run, and what they cannot tell apart.

Matrices hold -1 and +1 where every factor has two levels (first level = -1), else level indices.
Factorial and fractional matrices are pyDOE's, in standard order (the first factor changes fastest).
The Plackett-Burman ones are the published rows, because pyDOE's 24 runs are its 12 doubled: there
some main effects are wholly aliased with an interaction, and 11 factors would run every cell twice.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from paperkiln.errors import PaperkilnError

MAX_CELLS = 1024
MAX_FRACTION_FACTORS = 15  # 2^11 words at most
LETTERS = "ABCDEFGHJKLMNOPQRSTUVWXYZ"  # of the factors, in order; I is the identity
ROMAN = {3: "III", 4: "IV", 5: "V", 6: "VI", 7: "VII", 8: "VIII"}

# First rows of Plackett & Burman (1946), Biometrika 33, 305-325; the others are its cyclic shifts.
_FIRST_ROWS = {12: "++-+++---+-", 20: "++--++++-+-+----++-", 24: "+++++-+-++--++--+-+----"}

# Right-hand sides of the generators, by runs: of the last factors of exactly so many, or (at 0) of
# all others, from the first on. Montgomery, Design and Analysis of Experiments (8th ed.), table
# 8.14, after Box, Hunter & Hunter, Statistics for Experimenters (2nd ed.), chapter 6.
_GENERATORS = {
    4: {0: "AB"},
    8: {4: "ABC", 0: "AB AC BC ABC"},
    16: {5: "ABCD", 0: "ABC BCD ACD ABD ABCD AB AC AD BC BD CD"},
    32: {
        6: "ABCDE",
        7: "ABCD ABDE",
        8: "ABC ABD BCDE",
        9: "BCDE ACDE ABDE ABCE",
        10: "ABCD ABCE ABDE ACDE BCDE",
        11: "ABC BCD CDE ACD ADE BDE",
    },
    64: {7: "ABCDEF", 8: "ABCD ABEF"},
}


@dataclass(frozen=True, eq=False)
class Design:
    """A design: a row of `matrix` is a cell, a column a factor.

    `kind` is factorial, fractional or plackett-burman. `resolution` is the length of the shortest
    word that is aliased with the mean, None where nothing is aliased. `words` is the defining
    relation of a fraction, as "A:B:D" (with a leading "-" where it equals minus the mean).
    """

    factors: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    matrix: np.ndarray
    kind: str
    resolution: int | None = None
    words: tuple[str, ...] = ()
    folded: bool = False
    note: str = ""

    @property
    def two_level(self) -> bool:
        """Whether the matrix is one of -1 and +1."""
        return all(len(labels) == 2 for labels in self.levels)

    def __str__(self) -> str:
        """Return the description for a terminal."""
        from paperkiln.atlas.describe import describe

        return describe(self)


def make_design(kind_spec: dict[str, Any], factors: dict[str, list[str]]) -> Design:
    """Return the design of a sweep spec's "design" field over the factors' labels.

    kind_spec is {"kind": "factorial"}, {"kind": "fractional", "generators": ["E=ABCD"]} or, from
    the catalogue, {"kind": "fractional", "runs": 8}, or {"kind": "plackett-burman", "runs": 12};
    the last two take "foldover": true. Raises PaperkilnError where there is no such design.
    """
    spec = dict(kind_spec)
    kind, foldover = spec.pop("kind", None), spec.pop("foldover", False)
    takes = {"factorial": (), "fractional": ("generators", "runs"), "plackett-burman": ("runs",)}
    if kind not in takes:
        raise PaperkilnError(f"design.kind is {kind!r}; it is one of {', '.join(takes)}")
    unknown = sorted(set(spec) - set(takes[kind]))
    if unknown:
        raise PaperkilnError(f"design.{unknown[0]} is nothing that a {kind} design takes")
    if type(spec.get("runs", 0)) is not int:
        raise PaperkilnError(f"design.runs is {spec['runs']!r}; it is a whole number")
    _check_factors(factors, two_levels=kind != "factorial")
    if kind == "factorial":
        if foldover:
            raise PaperkilnError("design.foldover: a full factorial has every mirror image already")
        return factorial(factors)
    if kind == "plackett-burman":
        return plackett_burman(factors, spec.get("runs", 12), foldover)
    if len(spec) != 1:
        raise PaperkilnError('a fractional design takes "generators" or "runs", one of the two')
    runs = spec.get("runs")
    built = fractional(factors, catalogue(list(factors), runs) if runs else spec["generators"])
    return fold_over(built) if foldover else built


def design(n_factors: int, runs: int | None = None, resolution: int | None = None) -> Design:
    """Return the two-level design of factors A, B, ... in so many runs, to be printed.

    Without `runs` it is the smallest of at least that resolution (default III). Where there is
    none, PaperkilnError says which exist.
    """
    if not 1 <= n_factors <= 23:
        raise PaperkilnError(f"{n_factors} factors: two-level designs are for 1 to 23")
    factors = {letter: ["-", "+"] for letter in LETTERS[:n_factors]}
    known = available(n_factors)
    fits = [
        spec
        for size, reached, spec in known
        if runs in (None, size)
        and (resolution is None or 3 <= resolution <= min(reached, n_factors))
    ]
    if not fits:
        wanted = f"{n_factors} factors" + (f" in {runs} runs" if runs else "")
        wanted += f" at resolution {ROMAN.get(resolution, resolution)}" if resolution else ""
        exist = ", ".join(f"{size} ({_roman(reached)})" for size, reached, _ in known)
        raise PaperkilnError(f"{wanted}: no such design; runs (resolution) that exist: {exist}")
    return make_design(fits[0], factors)


def available(n_factors: int) -> list[tuple[int, float, dict[str, Any]]]:
    """Return (runs, resolution, kind_spec) of the two-level designs of so many factors.

    Sorted by runs, the highest resolution first; the resolution of a full factorial is infinite.
    """
    factors = {letter: ["-", "+"] for letter in LETTERS[:n_factors]}
    specs: list[dict[str, Any]] = [{"kind": "factorial"}]
    specs += [{"kind": "fractional", "runs": runs} for runs in _GENERATORS]
    specs += [
        {"kind": "plackett-burman", "runs": runs, "foldover": foldover}
        for runs in _FIRST_ROWS
        for foldover in (False, True)
    ]
    found = []
    for spec in specs:
        try:
            made = make_design(spec, factors)
        except PaperkilnError:
            continue
        found.append((len(made.matrix), made.resolution or math.inf, spec))
    return sorted(found, key=lambda option: (option[0], -option[1]))


def cells(design: Design) -> list[dict[str, str]]:
    """Return the cells in the order of the runs, each {factor: label}."""
    index = (design.matrix + 1) // 2 if design.two_level else design.matrix
    return [
        {
            name: labels[i]
            for name, labels, i in zip(design.factors, design.levels, row, strict=True)
        }
        for row in index.tolist()
    ]


def factorial(factors: dict[str, list[str]]) -> Design:
    """Return every combination of the levels; any number of levels a factor."""
    sizes = [len(labels) for labels in factors.values()]
    runs = math.prod(sizes)
    if runs > MAX_CELLS:
        raise PaperkilnError(
            f"a full factorial of {len(sizes)} factors has {runs:,} cells, more than "
            f"{MAX_CELLS:,}; use a fractional or plackett-burman design"
        )
    matrix = _pydoe().fullfact(sizes).astype(int)
    if set(sizes) == {2}:
        matrix = 2 * matrix - 1
    return _design(factors, matrix, "factorial", base=range(len(sizes)))


def fractional(factors: dict[str, list[str]], generators: Sequence[str]) -> Design:
    """Return the regular fraction 2^(k-p) of p generators.

    A generator sets one factor to the product of others, as "E=ABCD", "E=-ABCD" or, with names,
    "batch=optimizer:lr". Letters are the factors in order, without I. Raises PaperkilnError for a
    generator that cannot be read, and where two factors would share a column.
    """
    names = list(factors)
    if len(names) > MAX_FRACTION_FACTORS:
        raise PaperkilnError(
            f"{len(names)} factors: fractions are for up to {MAX_FRACTION_FACTORS}; "
            "Plackett-Burman designs in 20 or 24 runs take up to 19 or 23"
        )
    products = _products(names, generators)
    base = [i for i in range(len(names)) if i not in products]
    small = {factor: chr(ord("a") + place) for place, factor in enumerate(base)}
    terms = [small.get(i, "") for i in range(len(names))]
    for made, (sign, used) in products.items():
        wrong = [names[i] for i in used if i not in small]
        if wrong:
            raise PaperkilnError(
                f"generator of {names[made]}: {wrong[0]} is generated itself; use base factors only"
            )
        terms[made] = ("-" if sign < 0 else "") + "".join(sorted(small[i] for i in used))
    columns = defaultdict(list)
    for name, term in zip(names, terms, strict=True):
        columns[term.lstrip("-")].append(name)
    shared = [same for same in columns.values() if len(same) > 1]
    if shared:
        raise PaperkilnError(
            f"generators: {' and '.join(shared[0])} would share a column, never told apart"
        )
    if 2 ** len(base) > MAX_CELLS:
        raise PaperkilnError(f"{2 ** len(base):,} cells, more than {MAX_CELLS:,}; add generators")
    matrix = _pydoe().fracfact(" ".join(terms)).astype(int)
    words = _defining_relation(names, products)
    return _design(factors, matrix, "fractional", base=base, words=words)


def catalogue(names: Sequence[str], runs: int) -> list[str]:
    """Return the generators of the least aliased fraction of these factors in so many runs."""

    def products(size: int) -> list[str]:
        rows, needed = _GENERATORS.get(size, {}), len(names) - size.bit_length() + 1
        found = rows.get(len(names), rows.get(0, "")).split()
        return found[:needed] if 0 < needed <= len(found) else []

    found = products(runs)
    if not found:
        sizes = ", ".join(str(size) for size in _GENERATORS if products(size))
        raise PaperkilnError(
            f"no fraction of {len(names)} factors in {runs} runs is in the catalogue; "
            + (f"there are {sizes} runs" if sizes else "use a full factorial")
        )
    place = dict(zip(LETTERS, names, strict=False))
    made = names[len(names) - len(found) :]
    return [
        f"{name}={':'.join(place[letter] for letter in product)}"
        for name, product in zip(made, found, strict=True)
    ]


def plackett_burman(factors: dict[str, list[str]], runs: int, foldover: bool = False) -> Design:
    """Return the Plackett-Burman design, with `foldover` followed by its mirror image.

    The first columns are used, or where they would repeat a cell the first ones that do not: with
    the same seed a repeated cell is the same run. 8 and 16 runs are regular fractions.
    """
    n = len(factors)
    if runs in (8, 16):
        built = fractional(factors, catalogue(list(factors), runs))
        built = fold_over(built) if foldover else built
        note = f"the Plackett-Burman design of {runs} runs is this regular fraction: whole aliases"
        return replace(built, note=note)
    if runs not in _FIRST_ROWS:
        raise PaperkilnError(f"no Plackett-Burman design of {runs} runs here; there are 12, 20, 24")
    if n > runs - 1:
        larger = [str(size) for size in _FIRST_ROWS if size > n]
        mend = f"take {' or '.join(larger)} runs" if larger else "drop some"
        raise PaperkilnError(f"{n} factors do not fit in {runs} runs (at most {runs - 1}); {mend}")
    first = np.array([1 if sign == "+" else -1 for sign in _FIRST_ROWS[runs]])
    full = np.vstack([*(np.roll(first, shift) for shift in range(runs - 1)), -np.ones_like(first)])
    if foldover:
        full = np.vstack([full, -full])
    tries = 3000 if 2**n >= len(full) else 0
    for columns in itertools.islice(itertools.combinations(range(runs - 1), n), tries):
        matrix = full[:, columns]
        if len(np.unique(matrix, axis=0)) == len(matrix):
            built = _design(factors, matrix, "plackett-burman")
            return replace(built, resolution=4 if foldover else 3, folded=foldover)
    raise PaperkilnError(
        f"{n} factors are too few for {len(full)} Plackett-Burman runs: cells would repeat, and "
        "with the same seed that is the same run; use a factorial or fractional design"
    )


def fold_over(design: Design) -> Design:
    """Return a fraction followed by its mirror image: main effects clear of two-way interactions.

    Words of odd length cancel. Raises PaperkilnError where there are none: every run would repeat.
    """
    words = tuple(word for word in design.words if len(_factors_of(word)) % 2 == 0)
    if len(words) == len(design.words):
        raise PaperkilnError(
            "fold-over repeats the runs of this design: its main effects are clear already"
        )
    matrix = np.vstack([design.matrix, -design.matrix])
    shortest = min((len(_factors_of(word)) for word in words), default=None)
    return replace(design, matrix=matrix, words=words, resolution=shortest, folded=True)


def _design(
    factors: dict[str, list[str]],
    matrix: np.ndarray,
    kind: str,
    base: Sequence[int] = (),
    words: tuple[str, ...] = (),
) -> Design:
    """Return the design; runs in standard order of the `base` columns, where some are given.

    Sorted here, as pyDOE's order changed between its versions and a cell's number must not.
    """
    if len(base):
        matrix = matrix[np.lexsort(matrix[:, list(base)].T)]
    shortest = min((len(_factors_of(word)) for word in words), default=None)
    levels = tuple(map(tuple, factors.values()))
    return Design(tuple(factors), levels, matrix, kind, resolution=shortest, words=words)


def _check_factors(factors: dict[str, list[str]], two_levels: bool) -> None:
    if not factors:
        raise PaperkilnError("a design needs at least one factor")
    for name, labels in factors.items():
        if not re.fullmatch(r"[A-Za-z][\w.-]{0,39}", name, re.ASCII):
            raise PaperkilnError(
                f"{name[:60]!r} is no name of a factor: a letter, then a-z 0-9 _ . -"
            )
        if len(set(labels)) < len(labels) or len(labels) < 2:
            raise PaperkilnError(f"factor {name} needs two or more levels, each with its own label")
        if not all(label.isprintable() and 0 < len(label) <= 60 for label in labels):
            raise PaperkilnError(f"factor {name}: a label is 1 to 60 printable characters")
        if two_levels and len(labels) > 2:
            raise PaperkilnError(
                f"factor {name} has {len(labels)} levels; more than two need a factorial design"
            )


def _products(names: list[str], generators: Sequence[str]) -> dict[int, tuple[int, list[int]]]:
    """Return {generated factor: (sign, factors of its product)} of the generator strings."""
    if not 0 < len(generators) < len(names):
        raise PaperkilnError(
            f"{len(generators)} generators for {len(names)} factors; it takes 1 to {len(names) - 1}"
        )
    found: dict[int, tuple[int, list[int]]] = {}
    for text in generators:
        left, equals, right = text.replace(" ", "").partition("=")
        sign = -1 if right.startswith("-") else 1
        made, used = _factor_indices(names, left), _factor_indices(names, right.lstrip("+-"))
        if not equals or len(made) != 1 or len(used) < 2 or len(set(used + made)) <= len(used):
            raise PaperkilnError(
                f"generator {text[:60]!r} is not one factor = a product of two or more others, "
                "as E=ABCD or batch=optimizer:lr"
            )
        if made[0] in found:
            raise PaperkilnError(f"generators: {names[made[0]]} is generated twice")
        found[made[0]] = sign, used
    return found


def _factor_indices(names: list[str], product: str) -> list[int]:
    """Return the factors of "lr:norm" or "ABC"; [] where some part is no factor.

    Names win. Letters count by place, unless a factor is named by the letter of another place.
    """
    index = {name: i for i, name in enumerate(names)}
    letters = {letter: i for i, letter in enumerate(LETTERS[: len(names)])}
    if all(letters.get(name, i) == i for name, i in index.items() if name in LETTERS):
        index = letters | index
    parts = product.split(":")
    if len(parts) == 1 and product not in index:
        parts = list(product)
    return [index[part] for part in parts] if all(part in index for part in parts) else []


def _defining_relation(
    names: list[str], products: dict[int, tuple[int, list[int]]]
) -> tuple[str, ...]:
    """Return every product of the generators' words, shortest first."""
    relation = [(frozenset[int](), 1)]
    for made, (sign, used) in products.items():
        word = frozenset([made, *used])
        relation += [(other ^ word, of * sign) for other, of in relation]
    words = sorted((len(word), sorted(word), sign) for word, sign in relation if word)
    return tuple(
        ("-" if sign < 0 else "") + ":".join(names[i] for i in word) for _, word, sign in words
    )


def _factors_of(word: str) -> list[str]:
    return word.lstrip("-").split(":")


def _roman(resolution: float) -> str:
    return "full" if resolution == math.inf else ROMAN.get(int(resolution), str(resolution))


def _pydoe() -> Any:
    """Return pyDOE, imported on first use: it takes a second."""
    import pydoe

    return pydoe
