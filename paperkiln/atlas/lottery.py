"""The seed lottery: how often two labs with one seed each would contradict each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paperkiln.atlas.blocks import Row, blocks, validations
from paperkiln.atlas.effects import effects
from paperkiln.atlas.estimate import Estimate, Outcome, decide, holm
from paperkiln.atlas.text_table import probability, text_table
from paperkiln.errors import PaperkilnError
from paperkiln.output import printable

_MOST_BUDGETS = 200


@dataclass(frozen=True)
class Deltas:
    """Delta_s(b) = val@b of the second level less that of the first, within seed s."""

    factor: str
    first: str
    second: str
    budgets: tuple[int, ...]  # steps, rising
    seeds: tuple[int, ...]
    values: NDArray[np.float64]  # seeds x budgets, nats per token; negative: the second is better
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Clash:
    """The chance that two one-seed labs name different winners."""

    p: float | None  # of a seed in which the first level is better, among those that differ
    plug_in: float | None  # 2 p (1 - p)
    unbiased: float | None  # the share of pairs of seeds that disagree
    ci: tuple[float, float] | None  # 95 %


@dataclass(frozen=True)
class LotteryRow:
    """One budget: what each seed says, and what all of them say together."""

    budget: int  # steps
    mean: float
    sd: float
    first_better: int  # seeds
    second_better: int
    ties: int
    clash: Clash
    estimate: Estimate
    verdict: Outcome  # about the second level's loss: lower, higher, equivalent or unresolved


@dataclass(frozen=True)
class Lottery:
    """The table over budgets."""

    deltas: Deltas
    rows: tuple[LotteryRow, ...]
    alpha: float


def deltas(
    rows: Sequence[Row],
    factor: str,
    levels: tuple[str, str],
    budgets: Sequence[int],
    given: Mapping[str, str] | None = None,
) -> Deltas:
    """Return the differences between two levels over budgets, paired by seed.

    `given` fixes the labels of other factors. val@b is the lowest validation loss up to step b.
    Raises PaperkilnError where other factors vary, or fewer than two seeds have both levels.
    """
    steps = tuple(sorted(set(budgets)))
    if not 1 <= len(steps) <= _MOST_BUDGETS or len(levels) != 2:
        raise PaperkilnError(f"give two levels and 1 to {_MOST_BUDGETS} budgets, in steps")
    tables = [blocks(rows, f"val@{b}", _chosen(factor, levels, given)) for b in steps]
    others = [name for name in tables[0].factors if name != factor]
    if others:
        raise PaperkilnError(f"{', '.join(others)} vary too; say at which level: "
                             f"given {others[0]} = {tables[0].factors[others[0]][0]}")  # fmt: skip
    if len(tables[0].cells) != 2:
        raise PaperkilnError(f"{factor} is no factor of these rows")
    seeds = sorted(set.intersection(*(set(t.common_seeds) for t in tables)))
    if len(seeds) < 2:
        raise PaperkilnError(f"{len(seeds)} seed(s) ran with both {' and '.join(levels)}; "
                             "a comparison by seed needs two or more")  # fmt: skip
    values = [[t.values[1][s] - t.values[0][s] for t in tables] for s in seeds]
    notes = dict.fromkeys(note for table in tables for note in table.notes)
    left_out = sorted(set().union(*tables[0].values) - set(seeds))
    if left_out:
        notes[f"left out, without its pair: seed {', '.join(map(str, left_out))}"] = None
    return Deltas(factor, *levels, steps, tuple(seeds), np.array(values), tuple(notes))


def lottery(
    rows: Sequence[Row],
    factor: str,
    levels: tuple[str, str],
    budgets: Sequence[int],
    given: Mapping[str, str] | None = None,
    alpha: float = 0.05,
    margin: float | None = None,
) -> Lottery:
    """Return, for each budget, what one seed would say and what all seeds say.

    The verdicts are of the paired t test, with Holm's correction over the budgets (and of the
    equivalence test, where a margin in nats per token is given).
    Raises PaperkilnError as `deltas` does.
    """
    paired = deltas(rows, factor, levels, budgets, given)
    kept = [row for row in rows if row.get("seed") in paired.seeds]
    chosen = _chosen(factor, levels, given)
    tests = holm([effects(kept, f"val@{b}", levels=chosen)[0] for b in paired.budgets])
    table = []
    for budget, values, test in zip(paired.budgets, paired.values.T, tests, strict=True):
        plus, minus = int((values > 0).sum()), int((values < 0).sum())
        table.append(LotteryRow(
            budget, float(values.mean()), float(values.std(ddof=1)), plus, minus,
            len(values) - plus - minus, clash(plus, minus), test, decide(test, alpha, margin),
        ))  # fmt: skip
    return Lottery(paired, tuple(table), alpha)


def shared_budgets(rows: Sequence[Row], given: Mapping[str, str]) -> list[int]:
    """Return the steps at which every complete run with these labels has an answer.

    A run with fewer steps, or whose first evaluation comes later, has none at those of the others.
    """
    chosen = [
        row for row in rows
        if row.get("complete") is True
        and all(str(row.get(f"factor.{name}")) == label for name, label in given.items())
    ]  # fmt: skip
    curves = [steps for row in chosen if (steps := [step for step, _ in validations(row)])]
    if not curves:
        return []
    low, high = max(map(min, curves)), min(map(max, curves))
    return sorted({step for steps in curves for step in steps if low <= step <= high})


def clash(first_better: int, second_better: int) -> Clash:
    """Return the probability that two labs, one independent seed each, contradict each other.

    Let p be the probability that a seed favours the first level. Two labs disagree with
    probability p (1 - p) + (1 - p) p = 2 p (1 - p). Of n seeds, k favour the first.

    The plug-in 2 (k/n)(1 - k/n) is too small: E[k (n - k)] = n E[k] - E[k^2] = n (n - 1) p (1 - p),
    so its mean is 2 p (1 - p) (n - 1)/n. Hence k (n - k) / C(n, 2), the share of the pairs of
    seeds that disagree, has the mean 2 p (1 - p) exactly: the unbiased estimate. It can exceed
    1/2, which the probability itself cannot.

    The interval maps Jeffreys' interval of p (Brown, Cai & DasGupta, Statistical Science 16
    (2001) 101; closed at 0 and 1 where k is 0 or n) through 2 p (1 - p): whenever that covers p,
    this covers the clash. Seeds that see no difference at all name no winner and are left out.
    """
    from scipy import stats

    k, n = first_better, first_better + second_better
    if n == 0:
        return Clash(None, None, None, None)
    low = float(stats.beta.ppf(0.025, k + 0.5, n - k + 0.5)) if k > 0 else 0.0
    high = float(stats.beta.ppf(0.975, k + 0.5, n - k + 0.5)) if k < n else 1.0
    ends = (2 * low * (1 - low), 2 * high * (1 - high))
    top = 0.5 if low <= 0.5 <= high else max(ends)
    unbiased = 2 * k * (n - k) / (n * (n - 1)) if n > 1 else None
    return Clash(k / n, 2 * (k / n) * (1 - k / n), unbiased, (min(ends), top))


def as_text(result: Lottery) -> str:
    """Return the table with what it means."""
    d = result.deltas
    header = ("budget", "mean", "SD", f"{d.first} better", f"{d.second} better", "ties", "clash",
              "plug-in", "95 % CI", "t", "p", "p Holm", "verdict")  # fmt: skip
    lines = [
        f"{d.second} - {d.first} in the lowest validation loss up to each budget (steps), "
        f"nats per token, {len(d.seeds)} seeds",
        "",
        text_table(header, [_line(row, d.second) for row in result.rows]),
        "",
        "clash: the chance that two labs with one seed each contradict each other (unbiased)",
        f"verdict: paired t test over the seeds, Holm over {len(result.rows)} budgets, "
        f"alpha {result.alpha:g}; {d.second} is lower or higher in loss, or it is unresolved",
        *(f"note: {note}" for note in d.notes),
    ]
    return printable("\n".join(lines))


def _line(row: LotteryRow, second: str) -> tuple[str, ...]:
    c, e = row.clash, row.estimate
    verdict = f"{second} {row.verdict}" if row.verdict in ("lower", "higher") else row.verdict
    return (
        str(row.budget), f"{row.mean:+.4f}", f"{row.sd:.4f}", str(row.first_better),
        str(row.second_better), str(row.ties), _percent(c.unbiased), _percent(c.plug_in),
        "-" if c.ci is None else f"{c.ci[0]:.0%} to {c.ci[1]:.0%}", f"{e.t:+.2f}",
        probability(e.p), probability(e.p_holm), verdict,
    )  # fmt: skip


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _chosen(
    factor: str, levels: tuple[str, str], given: Mapping[str, str] | None
) -> dict[str, list[str]]:
    return {factor: list(levels), **{name: [label] for name, label in (given or {}).items()}}
