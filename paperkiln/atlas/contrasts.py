"""What a design can estimate: the terms of its model as contrasts of the cells' means."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from paperkiln.atlas.blocks import Blocks, levels_of
from paperkiln.errors import PaperkilnError

_EXACT = 1e-9  # columns hold small whole numbers: what differs more than this, differs


@dataclass(frozen=True)
class Term:
    """A main effect or an interaction; its effect is `weights` times the means of the cells."""

    name: str
    low: str
    high: str
    weights: NDArray[np.float64]
    is_low: NDArray[np.bool_]  # the cells that the effect is relative to
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Model:
    """The terms that a design can tell apart, and what it cannot."""

    terms: tuple[Term, ...]
    matrix: NDArray[np.float64]  # cells x (1 + terms), the first column is the mean
    refusal: str  # why there are no interactions, or ""
    notes: tuple[str, ...]


def model(blocks: Blocks) -> Model:
    """Return the main effects and, where the design has them, the two-way interactions.

    A two-level factor is a column of -1 and +1; its effect is mean(high) - mean(low). An
    interaction is the product of two such columns; its effect is half the difference of the
    differences (Box, Hunter & Hunter, Statistics for Experimenters, 2nd ed., ch. 5). A factor of
    more levels gives one comparison with its first level for each of the others. In a design
    that is not orthogonal the weights are those of least squares.
    Raises PaperkilnError where two factors always change together.
    """
    names = list(blocks.factors)
    columns = {name: [cell[i] for cell in blocks.cells] for i, name in enumerate(names)}
    raw: list[_Column] = []
    for name, labels in blocks.factors.items():
        raw += _main_columns(name, labels, np.array(columns[name]))
    for one, other in combinations(raw, 2):
        if one.factor != other.factor and abs(_correlation(one, other)) > 1 - _EXACT:
            raise PaperkilnError(f"{one.name} and {other.name} change together in every cell: "
                                 "the rows cannot tell them apart")  # fmt: skip
    mains = len(raw)
    two_level = [column for column in raw if column.two_level]
    refusal = _add_interactions(raw, two_level)
    if refusal:
        del raw[mains:]
    matrix = np.column_stack([np.ones(len(blocks.cells)), *(c.values for c in raw)])
    if np.linalg.matrix_rank(matrix) < matrix.shape[1]:
        raise PaperkilnError(f"{len(blocks.cells)} cells cannot tell {len(raw)} terms apart; "
                             "run the cells that are missing, or choose fewer levels")  # fmt: skip
    weights = np.linalg.pinv(matrix)[1:]
    terms = tuple(
        Term(c.name, c.low, c.high, (2 if c.two_level else 1) * w, c.is_low, tuple(c.aliases))
        for c, w in zip(raw, weights, strict=True)
    )
    return Model(terms, matrix, refusal, _notes(raw, mains, two_level, refusal))


def simple_effect(blocks: Blocks, term: str, given: dict[str, str]) -> Term:
    """Return the effect of a factor among the cells with the given labels.

    Raises PaperkilnError where other factors do not balance out among those cells.
    """
    names = list(blocks.factors)
    if term in given:
        raise PaperkilnError(f"{term} cannot be both the term and given")
    low, high = two_levels(blocks, term)
    sign = np.zeros(len(blocks.cells))
    for i in blocks.where(given):
        sign[i] = {low: -1.0, high: 1.0}[blocks.cells[i][names.index(term)]]
    n_low, n_high = int((sign < 0).sum()), int((sign > 0).sum())
    if not n_low or not n_high:
        raise PaperkilnError(f"{term} does not vary where {_words(given)}")
    for name in names:
        for label in blocks.factors[name]:
            at = np.array([cell[names.index(name)] == label for cell in blocks.cells])
            if name != term and (sign[at] < 0).sum() * n_high != (sign[at] > 0).sum() * n_low:
                raise PaperkilnError(
                    f"{term} where {_words(given)} is mixed up with {name} in this design; "
                    "a full factorial could tell them apart"
                )
    weights = np.where(sign > 0, 1 / n_high, np.where(sign < 0, -1 / n_low, 0.0))
    return Term(term, low, high, weights, sign < 0)


def two_levels(blocks: Blocks, name: str) -> tuple[str, str]:
    """Return the low and the high level; raises PaperkilnError where there are more."""
    labels = levels_of(blocks.factors, name)
    if len(labels) != 2:
        raise PaperkilnError(f"{name} has {len(labels)} levels ({', '.join(labels)}); say which "
                             f'two: "levels": {{"{name}": ["low", "high"]}}')  # fmt: skip
    return labels[0], labels[1]


@dataclass
class _Column:
    name: str
    factor: str
    low: str
    high: str
    values: NDArray[np.float64]
    is_low: NDArray[np.bool_]
    two_level: bool
    aliases: list[str]


def _main_columns(name: str, labels: tuple[str, ...], at: NDArray[np.str_]) -> list[_Column]:
    low = labels[0]
    if len(labels) == 2:
        signs = np.where(at == labels[1], 1.0, -1.0)
        return [_Column(name, name, low, labels[1], signs, signs < 0, True, [])]
    return [
        _Column(f"{name}[{label}]", name, low, label, (at == label) * 1.0, at == low, False, [])
        for label in labels[1:]
    ]


def _add_interactions(columns: list[_Column], two_level: list[_Column]) -> str:
    """Append the interactions that are columns of their own; return why they are refused."""
    for one, other in combinations(two_level, 2):
        values = one.values * other.values
        new = _Column(f"{one.name}:{other.name}", "", "", "", values,
                      np.ones(len(values), bool), True, [])  # fmt: skip
        twin = None
        for column in columns:
            r = _correlation(column, new)
            if abs(r) > 1 - _EXACT:
                twin, sign = column, "" if r > 0 else "-"
            elif abs(r) > _EXACT:
                return (f"interactions are refused: in this design {new.name} is partially "
                        f"aliased with {column.name} (r = {r:.2f})")  # fmt: skip
        if twin is not None:
            twin.aliases.append(sign + new.name)
        else:
            columns.append(new)
    return ""


def _correlation(one: _Column, other: _Column) -> float:
    a, b = one.values - one.values.mean(), other.values - other.values.mean()
    scale = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / scale) if scale > 0 else 0.0


def _notes(
    columns: list[_Column], mains: int, two_level: list[_Column], refusal: str
) -> tuple[str, ...]:
    notes = [refusal] if refusal else []
    pairs = [(a, b) for a, b in combinations(columns[:mains], 2) if a.factor != b.factor]
    if any(abs(_correlation(a, b)) > _EXACT for a, b in pairs):
        notes.append("the design is not orthogonal: each effect is adjusted for the others by "
                     "least squares, and is no plain difference of means")  # fmt: skip
    aliased = [f"{c.name} = {' = '.join(c.aliases)}" for c in columns if c.aliases]
    if aliased:
        notes.append("aliased, one number for all of: " + "; ".join(aliased))
    if len(two_level) < mains:
        notes.append("factors of more than two levels: each level against the first; their "
                     "interactions are not tested")  # fmt: skip
    return tuple(notes)


def _words(given: dict[str, str]) -> str:
    return " and ".join(f"{name} is {label}" for name, label in given.items()) or "all cells"
