"""Rows with given measurements, as a study would have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any


def rows_of(
    cells: Sequence[Mapping[str, str]],
    values: Sequence[Sequence[float]],
    paired: bool = True,
    metric: str = "best_val",
) -> list[dict[str, Any]]:
    """One row a value: cells x seeds; unpaired, no seed is used twice."""
    rows, count = [], 0
    for number, (cell, measured) in enumerate(zip(cells, values, strict=True)):
        for index, value in enumerate(measured):
            count += 1
            seed = index + 1 if paired else count
            rows.append({
                "study": "made", "run": f"cell-{number:02}-seed-{seed}", "seed": seed,
                "complete": True, **{f"factor.{k}": v for k, v in cell.items()}, metric: value,
            })  # fmt: skip
    return rows


def factorial(**factors: Sequence[str]) -> list[dict[str, str]]:
    """Every combination; the first factor changes fastest (Yates' order)."""
    names = list(factors)
    return [
        dict(zip(names, reversed(labels), strict=True))
        for labels in product(*(factors[name] for name in reversed(names)))
    ]


def curve_rows(
    curves: Mapping[str, Sequence[Sequence[float]]], budgets: Sequence[int]
) -> list[dict[str, Any]]:
    """Rows of a factor `attention`: label -> seeds -> validation loss at each budget."""
    return [
        {
            "study": "curves", "run": f"{label}-seed-{seed}", "seed": seed, "complete": True,
            "factor.attention": label,
            "val": [[b, float(v)] for b, v in zip(budgets, losses, strict=True)],
        }
        for label, seeds in curves.items()
        for seed, losses in enumerate(seeds, 1)
    ]  # fmt: skip
