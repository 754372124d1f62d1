"""One metric of a study as a table of cells by seeds, from its rows."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paperkiln.errors import PaperkilnError

Row = Mapping[str, Any]
Cell = tuple[str, ...]

_MOST_ROWS = 100_000
_MOST_FACTORS = 64
_PREFIX = "factor."
_NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,79}"


@dataclass(frozen=True)
class Blocks:
    """What the complete runs of a study measured; every run of one seed is one block."""

    metric: str
    factors: dict[str, tuple[str, ...]]  # name -> levels, the low one first; those that vary
    cells: tuple[Cell, ...]  # a label of each factor
    values: tuple[dict[int, float], ...]  # of each cell: seed -> value
    runs: tuple[dict[int, str], ...]  # of each cell: seed -> name of the run
    notes: tuple[str, ...]  # what is missing, in words

    @property
    def common_seeds(self) -> list[int]:
        """Return the seeds that every cell has."""
        return sorted(set.intersection(*(set(v) for v in self.values)))

    def where(self, labels: Mapping[str, str]) -> list[int]:
        """Return the cells with these labels, as indices.

        Raises PaperkilnError for a factor or label that the rows do not have.
        """
        names = list(self.factors)
        for name, label in labels.items():
            if label not in levels_of(self.factors, name):
                known = ", ".join(self.factors[name])
                raise PaperkilnError(f"{name} has no level {label!r}; it has {known}")
        return [
            i
            for i, cell in enumerate(self.cells)
            if all(cell[names.index(name)] == label for name, label in labels.items())
        ]


def levels_of(factors: Mapping[str, tuple[str, ...]], name: str) -> tuple[str, ...]:
    """Return the levels of a factor; raises PaperkilnError where no such factor varies."""
    if name not in factors:
        raise PaperkilnError(
            f"{name!r} is no factor of these rows; they vary {', '.join(factors) or 'none'}"
        )
    return factors[name]


def blocks(
    rows: Sequence[Row], metric: str, levels: Mapping[str, Sequence[str]] | None = None
) -> Blocks:
    """Return the table of a metric.

    `levels` says which labels of a factor count and in which order (low first); a factor that it
    does not name takes its labels in natural order (8 before 16, adamw before muon). The metric
    is a field of the rows, `val@STEP` (the lowest validation loss up to that step), or the
    difference of two, written `val@1600 - val@400`.
    Raises PaperkilnError where the rows are of several studies, repeat a run, or hold nothing.
    """
    rows, factors = _varied(rows, dict(levels or {}))
    values: dict[Cell, dict[int, float]] = {}
    runs: dict[Cell, dict[int, str]] = {}
    missing: list[str] = []
    for row in rows:
        cell = tuple(str(row[_PREFIX + name]) for name in factors)
        seed, name = _seed(row), _name(row)
        if seed in runs.setdefault(cell, {}):
            raise PaperkilnError(f"{name} and {runs[cell][seed]} are the same cell and seed; "
                                 "the rows hold a run twice")  # fmt: skip
        runs[cell][seed] = name
        value = measure(row, metric) if row.get("complete") is True else None
        values.setdefault(cell, {})
        if value is None:
            missing.append(name)
        else:
            values[cell][seed] = value
    place = [{label: i for i, label in enumerate(labels)} for labels in factors.values()]
    order = sorted(values, key=lambda c: [at[x] for at, x in zip(place, c, strict=True)])
    empty = [cell for cell in order if not values[cell]]
    if len(empty) == len(order):
        raise PaperkilnError(f"no complete run has {metric}; {_known_metrics(rows)}")
    if empty:
        raise PaperkilnError(
            f"the cell {', '.join(empty[0])} has no complete run with {metric}; run it again"
        )
    notes = []
    if missing:
        notes.append(f"{len(missing)} of {len(rows)} runs failed, are incomplete or lack {metric}: "
                     + listed(sorted(missing)))  # fmt: skip
    return Blocks(metric, factors, tuple(order), tuple(values[c] for c in order),
                  tuple(runs[c] for c in order), tuple(notes))  # fmt: skip


def measure(row: Row, metric: str) -> float | None:
    """Return the metric of a run, or None where it has none.

    Raises PaperkilnError for a `val@STEP` outside what the run was validated at.
    """
    if " - " in metric:
        parts = [measure(row, part.strip()) for part in metric.split(" - ")]
        if len(parts) != 2 or None in parts:
            return None
        return parts[0] - parts[1]  # type: ignore[operator]
    if metric.startswith("val@"):
        return _best_up_to(row, metric)
    value = row.get(metric)
    return float(value) if _number(value) else None  # type: ignore[arg-type]


def validations(row: Row) -> list[tuple[int, float]]:
    """Return (step, loss) of a run; raises PaperkilnError where the row holds something else."""
    try:
        return [(int(at), float(loss)) for at, loss in row.get("val") or ()]
    except (TypeError, ValueError, OverflowError):
        raise PaperkilnError(f"{_name(row)}: its val is no list of [step, loss]") from None


def listed(names: Sequence[str], most: int = 3) -> str:
    """Return the first few names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def natural(label: str) -> tuple:
    """Return a sort key: numbers by size, also within words, then words by the alphabet."""
    try:
        return (0, float(label), [])
    except ValueError:
        parts = re.split(r"(\d+)", label[:200])
        return (1, 0.0, [(int(p), "") if p.isdecimal() else (-1, p) for p in parts])


def _best_up_to(row: Row, metric: str) -> float | None:
    try:
        step = int(metric.removeprefix("val@"))
    except ValueError:
        raise PaperkilnError(f"{metric!r}: write val@STEP with a whole number") from None
    curve = validations(row)
    steps = [at for at, _ in curve]
    if not curve or not min(steps) <= step <= max(steps):
        seen = f"from step {min(steps)} to {max(steps)}" if curve else "never"
        raise PaperkilnError(f"{metric}: {_name(row)} was validated {seen}; choose a step there")
    losses = [loss for at, loss in curve if at <= step]
    return min(losses) if all(map(math.isfinite, losses)) else None


def _varied(
    rows: Sequence[Row], levels: dict[str, Sequence[str]]
) -> tuple[list[Row], dict[str, tuple[str, ...]]]:
    """Return the rows at the chosen levels, and the levels of the factors that vary."""
    if not rows:
        raise PaperkilnError("there are no rows to analyse; run the study first")
    if len(rows) > _MOST_ROWS:
        raise PaperkilnError(f"{len(rows)} rows; at most {_MOST_ROWS} can be analysed at once")
    studies = sorted({str(row.get("study", "")) for row in rows})
    if len(studies) > 1:
        raise PaperkilnError(f"the rows are of several studies ({listed(studies)}); give one")
    names = sorted(key for key in rows[0] if key.startswith(_PREFIX))
    if any(sorted(k for k in row if k.startswith(_PREFIX)) != names for row in rows):
        raise PaperkilnError("the rows do not all have the same factors; give those of one study")
    if len(names) > _MOST_FACTORS:
        raise PaperkilnError(f"{len(names)} factors; at most {_MOST_FACTORS} can be analysed")
    factors = {}
    for key in names:
        name = key.removeprefix(_PREFIX)
        if not re.fullmatch(_NAME, name):  # a:b is an interaction, a[x] a level
            raise PaperkilnError(f"{name!r} is no name of a factor: letters, digits, . _ and -")
        there = sorted({str(row[key]) for row in rows}, key=natural)
        chosen = [str(label) for label in levels.pop(name, there)]
        absent = [label for label in chosen if label not in there]
        if absent or len(set(chosen)) < len(chosen) or not chosen:
            raise PaperkilnError(f"{name}: levels {', '.join(chosen) or 'none'} do not fit the "
                                 f"rows, which have {', '.join(there)}")  # fmt: skip
        rows = [row for row in rows if str(row[key]) in chosen]
        factors[name] = tuple(chosen)
    if levels:
        raise PaperkilnError(f"{next(iter(levels))!r} is no factor of these rows")
    if not rows:
        raise PaperkilnError("no run has the chosen levels together")
    return list(rows), {name: labels for name, labels in factors.items() if len(labels) > 1}


def _seed(row: Row) -> int:
    seed = row.get("seed")
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise PaperkilnError(f"{_name(row)}: a seed is a whole number, not {seed!r}")
    return seed


def _name(row: Row) -> str:
    return str(row.get("run", "a run without a name"))


def _known_metrics(rows: Sequence[Row]) -> str:
    complete = [row for row in rows if row.get("complete") is True]
    keys = {key for row in complete for key in row} - {"seed"}
    numbers = sorted(key for key in keys if any(_number(row.get(key)) for row in complete))
    return "metrics: " + ", ".join(numbers) if numbers else "no run is complete"


def _number(value: Any) -> bool:
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and abs(value) <= sys.float_info.max
    )
