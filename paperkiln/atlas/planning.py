"""What a sweep would do and cost, before it does it."""

from __future__ import annotations

import math
import os
import statistics
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from paperkiln.atlas import worker
from paperkiln.atlas.cells import Cell, aliases, resolve, runs_of
from paperkiln.atlas.sweep import SweepSpec
from paperkiln.atlas.text_table import text_table
from paperkiln.errors import PaperkilnError

TIMED_STEPS = 4  # of each calibrated cell, besides the one that warms up
FEW_SEEDS = 3  # below this, seeds say next to nothing about noise
_WORDS = {"tokens": "tokens seen", "parameters": "parameters", "flops": "FLOPs"}


def plan(
    sweep: SweepSpec, jobs: int = 2, seconds: dict[int, float] | None = None
) -> dict[str, Any]:
    """Return the cells and runs, what they cost, and what to know before spending it.

    `seconds` is what `calibrate` measured; without it the cost in minutes is None.
    Raises PaperkilnError for a sweep that must not be run.
    """
    cells = resolve(sweep)
    n_seeds = len(sweep.seeds)
    one_by_one = n_seeds * sum(seconds[c.number] for c in cells) if seconds else None
    return {
        "name": sweep.name,
        "question": sweep.question,
        "sweep_sha256": sweep.sha256,
        "cells": [
            {
                "cell": c.number, "levels": c.levels, "parameters": c.parameters,
                "d_ff": c.spec.arch.d_ff, "tokens": c.tokens, "flops": c.flops,
                "seconds": round(seconds[c.number], 1) if seconds else None,
            }
            for c in cells
        ],
        "seeds": sweep.seeds,
        "runs": len(runs_of(sweep, cells)),
        "tokens": n_seeds * sum(c.tokens for c in cells),
        "flops": n_seeds * sum(c.flops for c in cells),
        "jobs": jobs,
        "minutes": round(one_by_one / jobs / 60, 1) if seconds else None,
        "advisories": advisories(sweep, cells, jobs),
    }  # fmt: skip


def advisories(sweep: SweepSpec, cells: list[Cell], jobs: int) -> list[str]:
    """Return what is allowed, and should be known."""
    notes = [
        f"{name} also changes the {_WORDS[quantity]} by {difference:.1%} (acknowledged): its "
        "effect is of both together"
        for name, changed in aliases(sweep, cells).items()
        for quantity, difference in changed.items()
    ]
    if len(sweep.seeds) < FEW_SEEDS:
        notes.append(f"{len(sweep.seeds)} seed(s): fewer than {FEW_SEEDS} show hardly any noise")
    if any(c.spec.train.early_stopping.patience for c in cells):
        notes.append("early stopping is on: runs that stop early see fewer tokens")
    cores, shards = os.cpu_count() or 1, max(c.spec.train.shards for c in cells)
    if jobs * shards > cores:
        notes.append(
            f"{jobs} jobs x {shards} shards are more threads than {cores} cores: set "
            f"train.shards to {max(1, cores // jobs)} in the base, or lower the jobs"
        )
    return notes


def plan_as_text(plan: dict[str, Any]) -> str:
    """Return the plan for a person."""
    factors = list(plan["cells"][0]["levels"])
    rows = [
        [
            str(c["cell"]), *(c["levels"][name] for name in factors), f"{c['parameters']:,}",
            f"{c['tokens']:,}", f"{c['flops'] / 1e12:,.2f}",
            "-" if c["seconds"] is None else f"{c['seconds']:,.0f}",
        ]
        for c in plan["cells"]
    ]  # fmt: skip
    header = ["cell", *factors, "parameters", "tokens", "TFLOP", "seconds"]
    cost = "not calibrated"
    if plan["minutes"] is not None:
        minutes = max(1, round(plan["minutes"]))
        cost = f"about {minutes:,} min of this machine at {plan['jobs']} jobs"
    return "\n".join(
        [
            f"{plan['name']}: {plan['question']}".removesuffix(": "),
            text_table(header, rows, left=1 + len(factors)),
            f"runs     {plan['runs']} ({len(plan['cells'])} cells x {len(plan['seeds'])} seeds)",
            f"tokens   {plan['tokens']:,} trained on, {plan['flops'] / 1e12:,.1f} TFLOP",
            f"cost     {cost}",
            *(f"note     {note}" for note in plan["advisories"]),
        ]
    )


# --- Calibration ----------------------------------------------------------------------------------


def calibrate(sweep: SweepSpec, jobs: int = 2) -> dict[int, float]:
    """Return the seconds that one run of each cell takes, by the cell's number.

    A few steps and one evaluation are timed of the cells with the fewest and the most FLOPs a step,
    for each optimizer and device, `jobs` at a time as in the sweep; the others lie on the line
    between. Raises PaperkilnError where a timed run breaks.
    """
    cells = resolve(sweep)
    classes: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        train = cell.spec.train
        classes.setdefault((train.optimizer, train.device), []).append(cell)
    ends = {kind: [f(members, key=_work) for f in (min, max)] for kind, members in classes.items()}
    timed = list({cell.number: cell for pair in ends.values() for cell in pair}.values())
    times = dict(zip([c.number for c in timed], _time(timed, jobs), strict=True))
    return {
        cell.number: _interpolate(cell, *((end, times[end.number]) for end in ends[kind]))
        for kind, members in classes.items()
        for cell in members
    }


def _work(cell: Cell) -> float:
    """Return the FLOPs of a step."""
    return cell.flops / cell.spec.train.steps


def _time(cells: list[Cell], jobs: int) -> list[dict[str, float]]:
    """Time the cells, `jobs` processes at a time, each cell as often as that keeps all busy."""
    tasks = [
        {"what": "time", "spec": cell.spec.model_dump(mode="json"), "steps": TIMED_STEPS + 1}
        for cell in cells
    ]
    worker.allow()
    worker.run_task(tasks[0] | {"steps": 1})  # the text is prepared, kernels are compiled
    with ThreadPoolExecutor(jobs) as pool:
        outcomes = list(pool.map(worker.run_task, [task for task in tasks for _ in range(jobs)]))
    for outcome in outcomes:
        if outcome["status"] != "complete":
            raise PaperkilnError(
                f"the calibration broke: {outcome.get('reason', 'it was stopped')}"
            )
    groups = [outcomes[i : i + jobs] for i in range(0, len(outcomes), jobs)]
    return [_medians(group) for group in groups]


def _medians(outcomes: list[dict[str, Any]]) -> dict[str, float]:
    """Return the seconds of a step, of an evaluation, and of all that a run does but once."""
    step = statistics.median(o["step_seconds"] for o in outcomes)
    evaluation = statistics.median(o["eval_seconds"] for o in outcomes)
    total = statistics.median(o["seconds"] for o in outcomes)
    once = max(0.0, total - (TIMED_STEPS + 1) * step - evaluation)
    return {"step": step, "eval": evaluation, "once": once}


def _interpolate(
    cell: Cell, low: tuple[Cell, dict[str, float]], high: tuple[Cell, dict[str, float]]
) -> float:
    """Return the seconds of a whole run of `cell`, from two cells that were timed."""
    (cheapest, least), (costliest, most) = low, high
    span = _work(costliest) - _work(cheapest)
    share = (_work(cell) - _work(cheapest)) / span if span else 1.0
    part = {name: least[name] + share * (most[name] - least[name]) for name in least}
    train = cell.spec.train
    evaluations = math.ceil(train.steps / train.eval_every)
    return part["once"] + train.steps * part["step"] + evaluations * part["eval"]
