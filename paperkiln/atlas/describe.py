"""A design for a terminal: its runs, what it can tell apart, and the power it has."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from paperkiln.atlas.aliases import alias_structure, check_orthogonality
from paperkiln.atlas.designs import ROMAN, Design, cells
from paperkiln.atlas.power import smallest_effect

_WIDTH = 100
_RUNS_SHOWN = 64
_INTERACTIONS_SHOWN = 10  # of one coefficient; more are counted, alias_structure lists them


def describe(
    design: Design,
    sd: float | None = None,
    seeds: Sequence[int] = (2, 3, 5, 10),
    alpha: float = 0.05,
    power: float = 0.8,
) -> str:
    """Return the runs, orthogonality, aliases and power of a design.

    `sd` is the residual (cell:seed) standard deviation in the metric's unit; without it, effects
    are in units of that. Power is for one hypothesis and for Holm over one a factor, where a
    factor has more than two levels for any two of the factor with the most.
    """
    parts = [_headline(design), _runs(design), _orthogonality(design), _aliases(design)]
    return "\n\n".join([*parts, _power(design, sd, seeds, alpha, power)])


def _headline(design: Design) -> str:
    resolution = design.resolution
    words = [f"{len(design.factors)} factors in {len(design.matrix)} cells, {design.kind}"]
    if design.folded:
        words.append("folded over (the second half mirrors the first)")
    if resolution is not None:
        words.append(f"resolution {ROMAN.get(resolution, resolution)}")
    return ", ".join(words) + (f"\n{design.note}" if design.note else "")


def _runs(design: Design) -> str:
    rows = [list(cell.values()) for cell in cells(design)[:_RUNS_SHOWN]]
    lines = table(["cell", *design.factors], [[str(i), *row] for i, row in enumerate(rows, 1)])
    left = len(design.matrix) - len(rows)
    return "\n".join(lines + ([f"... and {left} more"] if left else []))


def _orthogonality(design: Design) -> str:
    faults = check_orthogonality(design)
    if faults:
        return "not orthogonal: " + "; ".join(faults)
    return "orthogonal: every pair of levels of two factors occurs equally often"


def _aliases(design: Design) -> str:
    lines = alias_structure(design, shown=_INTERACTIONS_SHOWN)
    if not lines:
        return "aliases: none, every main effect and two-way interaction has its own estimate"
    title = "aliases: the effects in a line are estimated as one"
    if design.kind == "plackett-burman":
        title = "aliases: what the estimate of each main effect takes in besides"
    wrapped = [
        textwrap.fill(line, _WIDTH, initial_indent="  ", subsequent_indent="      ")
        for line in lines
    ]
    return "\n".join([title, *wrapped, *_left_over(design)])


def _left_over(design: Design) -> list[str]:
    """Return a note on the columns that no factor has."""
    unused = len(design.matrix) - 1 - len(design.factors)
    if design.kind != "plackett-burman" or not unused:
        return []
    note = (
        f"{unused} of {len(design.matrix) - 1} columns have no factor: they estimate mixtures of "
        "interactions, and one that stands out says that there are some"
    )
    return [textwrap.fill(note, _WIDTH)]


def _power(
    design: Design, sd: float | None, seeds: Sequence[int], alpha: float, power: float
) -> str:
    n_cells, n_hypotheses = len(design.matrix), len(design.factors)
    levels = max(map(len, design.levels))
    unit = 1.0 if sd is None else sd
    rows = []
    for n_seeds in seeds:
        if n_seeds < 2:
            rows.append([str(n_seeds), str(n_cells * n_seeds), "0", "none", "none"])
            continue
        df = (n_cells - 1) * (n_seeds - 1)
        seen = [
            f"{smallest_effect(n_cells, n_seeds, unit, alpha, power, count, levels):.3g}"
            for count in (1, n_hypotheses)
        ]
        rows.append([str(n_seeds), str(n_cells * n_seeds), str(df), *seen])
    given = "in units of the residual sd" if sd is None else f"at a residual sd of {sd:g}"
    title = f"power: the smallest main effect found with {power:.0%} chance, {given}"
    names = ["seeds", "runs", "df", f"alpha {alpha:g}", f"Holm over {n_hypotheses}"]
    return "\n".join([title, *table(names, rows)])


def table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a plain table, columns aligned right."""
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (names, *rows)
    ]
