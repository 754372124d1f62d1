"""Rows: each metric by table, and a row as a pure function of its record."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from paperkiln.atlas.rows import (
    gradient_metrics,
    loss_metrics,
    read_rows,
    row_of,
    rows_text,
    validation_metrics,
)
from paperkiln.errors import PaperkilnError

RECORD: dict[str, Any] = {
    "study": "s", "run": "cell-01-seed-2", "seed": 2, "status": "complete",
    "cell": {"lr": "0.1"}, "spec": {"train": {"warmup_steps": 1}},
    "structure": {"parameters": 10, "flops_per_token": 60, "tokens": 400, "arch": {}},
    "curve": {"loss": [4.0, 3.0, 2.0, 2.0], "grad_norm": [5.0, 1.0, 1.0, 1.0],
              "val": [[2, 3.5, 1.0], [4, 3.0, 0.9]]},
    "tokens_per_second": 100.0, "wall_seconds": 4.0, "energy_joules": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("curve", "best", "final", "step"),
    [
        ([], None, None, None),
        ([[5, 2.0, 1.0]], 2.0, 2.0, 5),
        ([[5, 2.0, 1.0], [10, 1.0, 1.0], [15, 1.5, 1.0]], 1.0, 1.5, 10),
        ([[5, 2.0, 1.0], [10, 2.0, 1.0]], 2.0, 2.0, 5),
    ],
)
def test_validation(curve: list[Any], best: Any, final: Any, step: Any) -> None:
    assert validation_metrics(curve) == {"best_val": best, "final_val": final, "best_step": step}


@pytest.mark.parametrize(
    ("losses", "final", "auc", "half", "tail"),
    [
        ([], None, None, None, None),
        ([3.0], 3.0, 1.0, None, 0.0),
        ([2.0] * 20, 2.0, 1.0, None, 0.0),
        ([1.0, 2.0], 2.0, 1.5, None, 0.0),  # it rose: there is no gap to halve
        ([4.0, 3.0, 2.0, 2.0], 2.0, 2.75 / 4, 2, 0.0),
        ([4.0] + [2.0] * 17 + [1.0, 3.0], 2.0, 2.1 / 4, 2, math.sqrt(0.5)),
        ([0.0, 0.0], 0.0, None, None, 0.0),
    ],
)
def test_losses(losses: list[float], final: Any, auc: Any, half: Any, tail: Any) -> None:
    found = loss_metrics(losses)
    assert found["final_train_loss"] == final
    assert found["loss_auc"] == (None if auc is None else pytest.approx(auc))
    assert found["half_gap_step"] == half
    assert found["loss_tail_std"] == (None if tail is None else pytest.approx(tail))


@pytest.mark.parametrize(
    ("norms", "warmup", "spikes", "rate", "transient"),
    [
        ([], 5, None, None, None),
        ([2.0], 5, 0, 0.0, None),
        ([1.0] * 40, 0, 0, 0.0, 1.0),
        ([9.0] * 2 + [1.0] * 38, 0, 0, 0.0, 9.0),  # 5 % of 40 steps are warm-up
        ([9.0] * 3 + [1.0] * 37, 0, 1, 1000 / 38, 9.0),
        ([9.0] * 10 + [1.0] * 30, 10, 0, 0.0, 9.0),
        ([1.0] * 30 + [3.0] + [3.1] * 2 + [1.0] * 7, 0, 2, 2000 / 38, 1.0),
        ([9.0] * 5 + [1.0] * 5, 1000, 0, 0.0, 9.0),  # never more than half of the run
        ([0.0] * 4, 0, 0, 0.0, None),
    ],
)
def test_gradients(norms: list[float], warmup: int, spikes: Any, rate: Any, transient: Any) -> None:
    found = gradient_metrics(norms, warmup)
    assert (found["spikes"], found["init_transient"]) == (spikes, transient)
    assert found["spike_rate"] == (None if rate is None else pytest.approx(rate))
    assert found["grad_norm_max"] == (max(norms) if norms else None)


def test_a_row_is_flat_and_a_function_of_its_record() -> None:
    row = row_of(RECORD)
    assert row == row_of(json.loads(json.dumps(RECORD)))
    assert row | {"sha256": ""} == {
        "study": "s", "run": "cell-01-seed-2", "seed": 2, "complete": True, "factor.lr": "0.1",
        "parameters": 10, "flops_per_token": 60, "tokens": 400,
        "best_val": 3.0, "final_val": 3.0, "best_step": 4,
        "final_train_loss": 2.0, "loss_auc": 2.75 / 4, "half_gap_step": 2, "loss_tail_std": 0.0,
        "spikes": 0, "spike_rate": 0.0, "grad_norm_mean": 2.0, "grad_norm_max": 5.0,
        "init_transient": 5.0,
        "tokens_per_second": 100.0, "wall_seconds": 4.0, "energy_joules": None,
        "val": [[2, 3.5], [4, 3.0]], "sha256": "",
    }  # fmt: skip
    edited = RECORD | {"wall_seconds": 5.0}
    assert row_of(edited)["sha256"] != row["sha256"]


def test_a_failed_run_has_structure_and_no_metrics() -> None:
    row = row_of(RECORD | {"status": "failed", "reason": "nan"})
    assert row["complete"] is False
    assert (row["parameters"], row["val"]) == (10, [[2, 3.5], [4, 3.0]])
    assert {row[m] for m in ("best_val", "loss_auc", "spikes", "wall_seconds")} == {None}
    assert set(row) == set(row_of(RECORD))


def test_rows_are_read_as_written(tmp_path: Path) -> None:
    rows = [row_of(RECORD | {"cell": {"lr": "a\u2028b"}}), row_of(RECORD | {"run": "x"})]
    path = tmp_path / "rows.jsonl"
    path.write_bytes(rows_text(rows).encode())
    assert read_rows(path) == rows


@pytest.mark.parametrize("text", ["{}\n", "[]\n", "x\n", '{"run": 1}\n', "\xff"])
def test_what_is_no_table_of_rows(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(text.encode("latin1"))
    with pytest.raises(PaperkilnError, match=r"rows\.jsonl"):
        read_rows(path)
    with pytest.raises(PaperkilnError, match="run the sweep first"):
        read_rows(tmp_path / "none.jsonl")
