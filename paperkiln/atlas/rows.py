"""One flat row a run, computed from its record alone: what the analysis reads.

Losses are nats per token. A failed run keeps its structure and has None for every metric, so that
half a curve is never taken for a result.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from paperkiln.atlas.canonical import canonical, digest
from paperkiln.atlas.records import RECORDS, read_records
from paperkiln.errors import PaperkilnError
from paperkiln.formats.atomic import new_file

ROWS = "rows.jsonl"
SPIKE = 3.0  # times the median gradient norm after warm-up
_MAX_BYTES = 1 << 28


def row_of(record: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a study's record."""
    complete = record["status"] == "complete"
    curve, structure = record["curve"], record["structure"]
    metrics = {
        **validation_metrics(curve["val"]),
        **loss_metrics(curve["loss"]),
        **gradient_metrics(curve["grad_norm"], record["spec"]["train"]["warmup_steps"]),
        "tokens_per_second": record["tokens_per_second"],
        "wall_seconds": record["wall_seconds"],
        "energy_joules": record["energy_joules"],
    }
    return {
        "study": record["study"],
        "run": record["run"],
        "seed": record["seed"],
        "complete": complete,
        **{f"factor.{name}": label for name, label in record["cell"].items()},
        "parameters": structure["parameters"],
        "flops_per_token": structure["flops_per_token"],
        "tokens": structure["tokens"],
        **(metrics if complete else dict.fromkeys(metrics)),
        "val": [[step, loss] for step, loss, _ in curve["val"]],
        "sha256": digest(record),
    }


def validation_metrics(curve: list[list[float]]) -> dict[str, Any]:
    """Return the lowest and the last validation loss of [step, loss, ...] points."""
    if not curve:
        return dict.fromkeys(("best_val", "final_val", "best_step"))
    step, best = min(((s, loss) for s, loss, *_ in curve), key=lambda point: point[1])
    return {"best_val": best, "final_val": curve[-1][1], "best_step": step}


def loss_metrics(losses: list[float]) -> dict[str, Any]:
    """Return what a curve of training losses, one a step, says.

    final_train_loss is the mean of the last 10 %; loss_auc the mean loss over the first one;
    half_gap_step the first step that has half of the way from the first loss to the final one
    behind it (None where the loss did not fall); loss_tail_std the population standard deviation
    of the last 20 %.
    """
    if not losses:
        return dict.fromkeys(("final_train_loss", "loss_auc", "half_gap_step", "loss_tail_std"))
    n, first = len(losses), losses[0]
    final = statistics.fmean(losses[-max(1, n // 10) :])
    half = (first + final) / 2
    reached = (step for step, loss in enumerate(losses, 1) if loss <= half)
    return {
        "final_train_loss": final,
        "loss_auc": statistics.fmean(losses) / first if first > 0 else None,
        "half_gap_step": next(reached, None) if final < first else None,
        "loss_tail_std": statistics.pstdev(losses[-max(1, n // 5) :]),
    }


def gradient_metrics(norms: list[float], warmup_steps: int) -> dict[str, Any]:
    """Return what a curve of gradient norms before clipping, one a step, says.

    Warm-up is the first 5 % of the steps, or the learning rate's warm-up where that is longer, but
    never more than half of the run: norms are large there whatever is studied. spikes counts the
    later steps whose norm is over 3 times their median, spike_rate is per 1000 of those steps;
    init_transient is the largest warm-up norm over that median. Mean and maximum are of all steps.
    """
    if not norms:
        names = ("spikes", "spike_rate", "grad_norm_mean", "grad_norm_max", "init_transient")
        return dict.fromkeys(names)
    n = len(norms)
    warm = min(max(1, n // 20, warmup_steps), n // 2)
    early, later = norms[:warm], norms[warm:]
    median = statistics.median(later)
    spikes = sum(norm > SPIKE * median for norm in later)
    return {
        "spikes": spikes,
        "spike_rate": 1000 * spikes / len(later),
        "grad_norm_mean": statistics.fmean(norms),
        "grad_norm_max": max(norms),
        "init_transient": max(early) / median if early and median > 0 else None,
    }


def rows_of(study: Path) -> list[dict[str, Any]]:
    """Return the rows of a study's records, in their order.

    Raises PaperkilnError where a record lacks what a row needs.
    """
    records = read_records(study)
    try:
        return [row_of(record) for record in records]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise PaperkilnError(
            f"{study / RECORDS}: a record lacks what a row needs ({error!r})"
        ) from None


def rows_text(rows: list[dict[str, Any]]) -> str:
    """Return the text of rows.jsonl, one canonical line a row."""
    return "".join(canonical(row) + "\n" for row in rows)


def write_rows(study: Path) -> None:
    """Write rows.jsonl beside records.jsonl, from it."""
    with new_file(study / ROWS) as aside:
        aside.write_bytes(rows_text(rows_of(study)).encode())


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows in a rows.jsonl. Raises PaperkilnError where it is none."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise PaperkilnError(f"{path}: {path.stat().st_size:,} bytes are too many to read")
        text = path.read_bytes().decode()
    except FileNotFoundError:
        raise PaperkilnError(f"{path}: no such file; run the sweep first") from None
    except (OSError, ValueError) as error:
        raise PaperkilnError(f"{path}: cannot be read ({error})") from None
    rows = []
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else [], 1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict) or not isinstance(row.get("run"), str):
            raise PaperkilnError(f"{path}:{number}: not the row of a run")
        rows.append(row)
    return rows
