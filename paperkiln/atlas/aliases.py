"""What a design can tell apart: orthogonality, and the alias structure in words."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np

from paperkiln.atlas.designs import Design


def check_orthogonality(design: Design) -> list[str]:
    """Return what is not orthogonal, in words; nothing when the design is.

    A factor is balanced when its levels occur equally often, and two factors are orthogonal when
    each pair of their levels does: then the estimate of one is free of the effect of the other.
    """
    columns = design.matrix.T
    counts = [np.unique(column, return_counts=True)[1] for column in columns]
    faults = [
        f"{name}: its levels occur {', '.join(map(str, seen))} times"
        for name, seen in zip(design.factors, counts, strict=True)
        if len(set(seen.tolist())) > 1
    ]
    for i, j in itertools.combinations(range(len(columns)), 2):
        pairs = np.unique(columns[[i, j]], axis=1, return_counts=True)[1]
        if len(pairs) < len(counts[i]) * len(counts[j]) or len(set(pairs.tolist())) > 1:
            faults.append(f"{design.factors[i]} and {design.factors[j]} are correlated")
    return faults


def alias_structure(design: Design, shown: int | None = None) -> list[str]:
    """Return what is estimated together, among main effects and two-way interactions.

    "optimizer + lr:norm" is one estimate, the sum of two effects; in a Plackett-Burman design
    "optimizer + 1/3 (lr:norm + ...) - 1/3 (...)" is the main effect and a third of each of those.
    There, more than `shown` interactions of one coefficient are only counted. Interactions of three
    and more factors are left out. Empty where every such effect has an estimate of its own.
    """
    if design.resolution is None:
        return []
    indices = range(len(design.factors))
    terms = [(i,) for i in indices] + list(itertools.combinations(indices, 2))
    names = [":".join(design.factors[i] for i in term) for term in terms]
    columns = np.stack([design.matrix[:, term].prod(axis=1) for term in terms])
    shared = columns @ columns.T  # runs x correlation, exact: the entries are integers
    runs, n = len(design.matrix), len(design.factors)
    if design.kind == "fractional":
        return _whole_aliases(names, shared // runs, n)
    return _partial_aliases(names, shared, runs, n, shown or len(names))


def _whole_aliases(names: list[str], sign: np.ndarray, n_main: int) -> list[str]:
    """Return a line for each main effect and each string of interactions."""
    lines, alone, seen = [], [], set()
    for i, name in enumerate(names):
        if i in seen:
            continue
        others = [j for j in np.flatnonzero(sign[i]).tolist() if j != i]
        seen.update(others)
        if others:
            lines.append(name + "".join(f" {_sign(sign[i, j])} {names[j]}" for j in others))
        elif i < n_main:
            lines.append(f"{name} (clear of two-way interactions)")
        else:
            alone.append(name)
    if alone:
        lines.append(f"clear of each other: {', '.join(alone)}")
    return lines


def _partial_aliases(
    names: list[str], shared: np.ndarray, runs: int, n_main: int, shown: int
) -> list[str]:
    """Return a line for each main effect, and one on the interactions among themselves."""
    lines = []
    for i, name in enumerate(names[:n_main]):
        groups: dict[int, list[str]] = {}
        for j in range(n_main, len(names)):
            groups.setdefault(int(shared[i, j]), []).append(names[j])
        groups.pop(0, None)
        line = "".join(
            f" {_sign(size)} {Fraction(abs(size), runs)} ({_listed(groups[size], shown)})"
            for size in sorted(groups, key=lambda size: (-abs(size), -size))
        )
        lines.append(name + (line or " (clear of two-way interactions)"))
    among = np.abs(shared[n_main:, n_main:] - runs * np.eye(len(names) - n_main, dtype=int))
    if among.size and among.max():
        largest = Fraction(int(among.max()), runs)
        lines.append(f"two-way interactions are aliased with each other by up to {largest}")
    return lines


def _listed(names: list[str], shown: int) -> str:
    return " + ".join(names) if len(names) <= shown else f"{len(names)} interactions"


def _sign(value: float) -> str:
    return "-" if value < 0 else "+"
