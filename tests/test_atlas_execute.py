"""Sweeps that run: killed, interrupted, diverging and broken, and what is on disk afterwards."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import filelock
import pytest
from made_sweep import sweep_values

from paperkiln.atlas import worker
from paperkiln.atlas.backends import dask
from paperkiln.atlas.execute import Progress, run_sweep, status
from paperkiln.atlas.records import ledger_problems, read_records
from paperkiln.atlas.rows import read_rows, rows_of, rows_text
from paperkiln.atlas.sweep import SweepSpec, parse_sweep, read_sweep
from paperkiln.errors import PaperkilnError
from paperkiln.train.events import Resume, read_events
from paperkiln.train.loop import CHECKPOINT

DRIVER = Path(__file__).with_name("made_sweep.py")
LR = {"lr": {"path": "train.lr", "levels": [0.001, 0.003]}}
ONE: dict[str, Any] = {"factors": LR, "seeds": [1]}  # two runs
OPTIMIZER = {"optimizer": {"path": "train.optimizer", "levels": ["adamw", "muon"]}}
FOUR = sweep_values(factors=OPTIMIZER)  # two cells, two seeds
posix_only = pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")


class Place:
    """An atlas and a scratch folder of a test."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.atlas, self.scratch = folder, folder / "atlas", folder / "scratch"
        self.study = self.atlas / "studies" / "tiny"

    def run(self, sweep: SweepSpec, **options: Any) -> dict[str, Any]:
        return run_sweep(sweep, self.study, self.scratch, **options)

    def drive(self, values: dict[str, Any], jobs: int = 2) -> subprocess.Popen[str]:
        """Run the sweep in a process of its own."""
        path = self.folder / "sweep.json"
        path.write_text(json.dumps(values))
        words = [sys.executable, DRIVER, path, self.atlas, self.scratch, jobs]
        return subprocess.Popen(list(map(str, words)), stderr=subprocess.PIPE, text=True)

    def steps(self, run: str) -> int:
        """Count the steps that a run has taken."""
        log = self.scratch / run / "events.jsonl"
        return log.read_bytes().count(b'"event":"step"') if log.exists() else 0

    def results(self) -> dict[str, Any]:
        """Return what must not depend on how often the sweep was killed."""
        return {
            r["run"]: (r["curve"], r["fingerprint"], r["spec"], r["structure"], r["corpus"])
            for r in read_records(self.study)
        }

    def check(self, n: int) -> None:
        """Everything of `n` runs is there, agrees, and is small."""
        assert ledger_problems(self.atlas) == []
        records = read_records(self.study)
        assert len(records) == len({r["run"] for r in records}) == n
        assert (self.study / "rows.jsonl").read_bytes() == rows_text(rows_of(self.study)).encode()
        kept = {path.name for path in self.scratch.glob("*/*")}
        assert kept <= {"spec.json", "events.jsonl", "record.json"}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str] | None = None) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert process is None or process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


# --- A sweep that nothing happens to --------------------------------------------------------------


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Place, list[Progress]]:
    """The tiny sweep, run; do not write to it."""
    place, seen = Place(tmp_path_factory.mktemp("sweep")), []
    result = place.run(parse_sweep(FOUR), jobs=2, listen=seen.append)
    assert (result["done"], result["left"], result["broken"]) == (4, 0, {})
    return place, seen


def test_all_runs_are_recorded_and_their_weights_deleted(finished: Any) -> None:
    place, seen = finished
    place.check(4)
    assert [p.done for p in seen] == list(range(1, 5))
    assert seen[0].seconds_left > 0
    assert seen[-1].seconds_left == 0
    assert read_sweep(place.study / "sweep.json") == parse_sweep(FOUR)


def test_a_record_says_what_was_run_and_not_where_or_when(finished: Any) -> None:
    place, _ = finished
    (record,) = (r for r in read_records(place.study) if r["run"] == "cell-01-seed-2")
    assert (record["seed"], record["spec"]["train"]["seed"]) == (2, 2)
    assert len(record["curve"]["loss"]) == len(record["curve"]["grad_norm"]) == 4
    assert [point[0] for point in record["curve"]["val"]] == [2, 4]
    assert record["structure"]["tokens"] == 4 * 4 * 32
    assert record["structure"]["parameters"] > 0
    assert record["fingerprint"].startswith("paperkiln-weights/1:")
    assert record["tokens_per_second"] > 0
    text = (place.study / "records.jsonl").read_text()
    for secret in (str(place.folder), os.uname().nodename if hasattr(os, "uname") else "\0"):
        assert f'"{secret}' not in text


def test_a_row_agrees_with_the_record(finished: Any) -> None:
    place, _ = finished
    rows = read_rows(place.study / "rows.jsonl")
    for row, record in zip(rows, read_records(place.study), strict=True):
        assert row["best_val"] == pytest.approx(record["metrics"]["best_val"], rel=1e-6)
        assert row["best_step"] == record["metrics"]["best_step"]
        assert row["factor.optimizer"] == record["spec"]["train"]["optimizer"]


def test_a_second_call_runs_nothing(finished: Any) -> None:
    place, _ = finished
    before, seen = (place.study / "records.jsonl").read_bytes(), []
    assert place.run(parse_sweep(FOUR), listen=seen.append)["done"] == 4
    assert seen == []
    assert (place.study / "records.jsonl").read_bytes() == before


def test_the_status(finished: Any, tmp_path: Path) -> None:
    place, _ = finished
    sweep = parse_sweep(FOUR)
    now = status(sweep, place.study, place.scratch)
    assert 0 < now.pop("disk_bytes") < 200_000
    assert now == {"total": 4, "done": 4, "failed": 0, "begun": 0, "running": 0, "left": 0}
    never = status(sweep, tmp_path / "studies" / "tiny", tmp_path / "none")
    assert (never["left"], never["disk_bytes"]) == (4, 0)


# --- Kills and interrupts -------------------------------------------------------------------------

LONG = sweep_values(base={"train": {"steps": 300, "eval_every": 150, "checkpoint_every": 5}}, **ONE)


@pytest.fixture(scope="session")
def long_results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    place = Place(tmp_path_factory.mktemp("long"))
    place.run(parse_sweep(LONG))
    return place.results()


@posix_only
def test_a_sweep_killed_in_the_middle_goes_on_from_the_checkpoints(
    place: Place, long_results: dict[str, Any]
) -> None:
    for goal in (20, 60):
        process = place.drive(LONG)
        wait_for(lambda goal=goal: place.steps("cell-01-seed-1") >= goal, process)
        kill(process)
    # The workers saw their parent go; the next sweep waits for them to leave the folders.
    assert place.run(parse_sweep(LONG))["done"] == 2
    place.check(2)
    assert place.results() == long_results
    events = read_events(place.scratch / "cell-01-seed-1" / "events.jsonl")
    assert any(isinstance(event, Resume) for event in events)


@posix_only
def test_killed_between_runs_and_between_the_writes(place: Place, finished: Any) -> None:
    reference, _ = finished
    for n in (1, 3):
        process = place.drive(FOUR)
        path = place.study / "records.jsonl"
        wait_for(lambda n=n, p=path: p.exists() and p.read_bytes().count(b"\n") >= n, process)
        kill(process)
    assert place.run(parse_sweep(FOUR))["done"] == 4
    place.check(4)
    assert place.results() == reference.results()


@posix_only
def test_an_interrupt_saves_every_run(place: Place, long_results: dict[str, Any]) -> None:
    values = sweep_values(
        base={"train": {"steps": 300, "eval_every": 150, "checkpoint_every": 300}}, **ONE
    )
    process = place.drive(values)
    wait_for(lambda: all(place.steps(f"cell-0{i}-seed-1") >= 10 for i in (1, 2)), process)
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate(timeout=60)[1]
    for i in (1, 2):
        assert (place.scratch / f"cell-0{i}-seed-1" / CHECKPOINT).exists()
    sweep = parse_sweep(values)
    now = status(sweep, place.study, place.scratch)
    assert (now["done"], now["begun"], now["running"]) == (0, 2, 0)
    assert place.run(sweep)["done"] == 2
    curves = {run: result[0] for run, result in place.results().items()}
    assert curves == {run: result[0] for run, result in long_results.items()}


def test_a_run_that_ended_before_it_was_recorded_is_not_run_again(
    place: Place, finished: Any
) -> None:
    reference, _ = finished
    shutil.copytree(reference.scratch, place.scratch)
    started = time.monotonic()
    assert place.run(parse_sweep(FOUR))["done"] == 4
    assert time.monotonic() - started < 5, "no process was started"
    place.check(4)
    assert place.results() == reference.results()


def test_a_record_names_the_machine_that_trained_not_the_one_that_wrote_it_down(
    place: Place, finished: Any
) -> None:
    reference, _ = finished
    shutil.copytree(reference.scratch, place.scratch)
    for path in place.scratch.glob("*/record.json"):
        there = {"packages": {"numpy": "1.0"}, "machine": {"cores": 96}, "paperkiln": "0.0.9"}
        path.write_text(json.dumps(json.loads(path.read_text()) | there))
    place.run(parse_sweep(FOUR))
    for record in read_records(place.study):
        assert {name: record[name] for name in there} == there


def test_a_folder_of_another_sweep_is_not_taken_for_this_one_s(place: Place, finished: Any) -> None:
    reference, _ = finished
    shutil.copytree(reference.scratch, place.scratch)
    place.run(parse_sweep(sweep_values(base={"train": {"steps": 3}}, **ONE)))
    assert {len(r["curve"]["loss"]) for r in read_records(place.study)} == {3}


def test_two_processes_do_not_run_one_sweep(place: Place) -> None:
    place.scratch.mkdir()
    sweep = parse_sweep(FOUR)
    with (
        filelock.FileLock(place.scratch / ".lock"),
        pytest.raises(PaperkilnError, match="another process is running this sweep"),
    ):
        place.run(sweep)
    assert status(sweep, place.study, place.scratch)["running"] == 0


# --- Runs that fail -------------------------------------------------------------------------------


def test_a_run_that_diverges_is_a_result_and_the_others_go_on(place: Place) -> None:
    lr = {"path": "train.lr", "levels": [0.001, 100.0]}
    base = {"train": {"optimizer": "sgd", "clip": 0, "steps": 30, "warmup_steps": 0}}
    seen: list[Progress] = []
    result = place.run(parse_sweep(sweep_values(base=base, factors={"lr": lr})), listen=seen.append)
    assert (result["done"], result["failed"], result["left"]) == (2, 2, 0)
    place.check(4)
    failed = [r for r in read_records(place.study) if r["status"] == "failed"]
    assert {r["cell"]["lr"] for r in failed} == {"100.0"}
    assert all("first not finite in" in r["reason"] for r in failed)
    assert sum("first not finite in" in p.reason for p in seen) == 2
    rows = {r["run"]: r for r in read_rows(place.study / "rows.jsonl")}
    assert rows[failed[0]["run"]]["complete"] is False
    assert rows[failed[0]["run"]]["best_val"] is None


def test_a_run_that_breaks_is_left_for_the_next_call(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep, run_task = parse_sweep(sweep_values(**ONE)), worker.run_task

    def out_of_memory(task: dict[str, Any]) -> dict[str, Any]:
        if task["spec"]["name"] == "cell-01-seed-1":
            return {"status": "broken", "reason": "ended with -9: "}
        return run_task(task)

    with monkeypatch.context() as patch:
        patch.setattr(worker, "run_task", out_of_memory)
        result = place.run(sweep, jobs=1)
    assert (result["done"], result["left"]) == (1, 1)
    assert result["broken"] == {"cell-01-seed-1": "ended with -9: "}
    assert place.run(sweep)["done"] == 2
    place.check(2)


def test_an_engine_that_loses_a_run_does_not_lose_the_others(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_task = worker.run_task

    def lose(task: dict[str, Any]) -> dict[str, Any]:
        if task["spec"]["name"] == "cell-01-seed-1":
            raise RuntimeError("worker lost")
        return run_task(task)

    monkeypatch.setattr(worker, "run_task", lose)
    result = place.run(parse_sweep(sweep_values(**ONE)), jobs=1)
    assert (result["done"], result["broken"]) == (
        1,
        {"cell-01-seed-1": "RuntimeError: worker lost"},
    )


def test_a_text_that_changes_while_it_runs_gives_no_record(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, run_task = tmp_path / "text.txt", worker.run_task
    line = "All work and no play makes a dull corpus.\n"
    text.write_text(line * 40)
    sweep = parse_sweep(sweep_values(base={"data": {"corpus": str(text)}}, **ONE))

    def change(task: dict[str, Any]) -> dict[str, Any]:
        text.write_text(line * 41)
        return run_task(task)

    with monkeypatch.context() as patch:
        patch.setattr(worker, "run_task", change)
        assert place.run(sweep)["broken"] == dict.fromkeys(
            ("cell-01-seed-1", "cell-02-seed-1"), "the text changed while it ran"
        )
    text.write_text(line * 40)
    assert place.run(sweep)["done"] == 2


def test_a_worker_that_dies_or_cannot_begin_says_why(tmp_path: Path) -> None:
    spec = sweep_values()["base"] | {"out_dir": str(tmp_path / "r")}
    task = {"what": "train", "spec": spec | {"data": {"corpus": "/none.txt"}}, "energy": False}
    worker.allow()
    outcome = worker.run_task(task)
    assert outcome["status"] == "broken"
    assert "/none.txt: no such file" in outcome["reason"]
    outcome = worker.run_task({"what": "train"})
    assert outcome["reason"] == "ended with 1: KeyError: 'spec'"


# --- What is refused before any run ---------------------------------------------------------------


def test_a_study_is_one_experiment(place: Place, finished: Any) -> None:
    reference, _ = finished
    shutil.copytree(reference.atlas, place.atlas)
    with pytest.raises(PaperkilnError, match="is another sweep: a study is one experiment"):
        place.run(parse_sweep(sweep_values(seeds=[1, 2, 3])))
    with pytest.raises(PaperkilnError, match="the folder of tiny is ATLAS/studies/tiny"):
        run_sweep(parse_sweep(FOUR), place.atlas / "tiny", place.scratch)


def test_a_text_that_changed_is_refused(place: Place, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("All work and no play makes a dull corpus.\n" * 40)
    base = {"data": {"corpus": str(text), "val_fraction": 0.3}}
    place.run(parse_sweep(sweep_values(base=base, **ONE)))
    lines = (place.study / "records.jsonl").read_bytes().splitlines(keepends=True)
    ledger = (place.atlas / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    (place.study / "records.jsonl").write_bytes(lines[0])
    (place.atlas / "ledger.jsonl").write_bytes(ledger[0])
    text.write_text(text.read_text() + "More.\n")
    with pytest.raises(PaperkilnError, match="is not the text that the records in"):
        place.run(parse_sweep(sweep_values(base=base, **ONE)))


def test_a_tokenizer_that_learns_less_than_was_counted(place: Place, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("to be or not to be\n" * 40)
    base = {"data": {"corpus": str(text), "tokenizer": "word", "val_fraction": 0.3}}
    with pytest.raises(PaperkilnError, match=r"learns \d+ tokens from .*set data\.vocab_size to"):
        place.run(parse_sweep(sweep_values(base=base, **ONE)))


def test_the_home_of_a_user_is_in_no_record(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "text.txt").write_text("All work and no play makes a dull corpus.\n" * 40)
    base = {"data": {"corpus": "~/text.txt", "val_fraction": 0.3}}
    place.run(parse_sweep(sweep_values(base=base, **ONE)))
    record = read_records(place.study)[0]
    assert record["spec"]["data"]["corpus"] == "~/text.txt"
    assert record["corpus"]["split"].endswith("of ~/text.txt")
    assert str(tmp_path) not in json.dumps(record)


# --- Energy ---------------------------------------------------------------------------------------


def test_energy_is_read_from_the_packages(tmp_path: Path) -> None:
    for name, value in (("intel-rapl:0", 5), ("intel-rapl:1", 90), ("intel-rapl:0:0", 1)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "energy_uj").write_text(f"{value}000000\n")
        (tmp_path / name / "max_energy_range_uj").write_text("100000000\n")
    meter = worker.EnergyMeter(tmp_path)
    (tmp_path / "intel-rapl:0" / "energy_uj").write_text("7500000\n")
    (tmp_path / "intel-rapl:1" / "energy_uj").write_text("10000000\n")  # it wrapped
    assert meter.joules() == 2.5 + 20
    (tmp_path / "intel-rapl:1" / "energy_uj").unlink()
    assert meter.joules() is None
    assert worker.EnergyMeter(tmp_path / "none").joules() is None


# --- Another engine -------------------------------------------------------------------------------


def test_the_same_sweep_on_dask_s_local_cluster(place: Place, finished: Any) -> None:
    pytest.importorskip("distributed")
    reference, _ = finished
    assert place.run(parse_sweep(FOUR), jobs=2, backend=dask)["done"] == 4
    place.check(4)
    assert place.results() == reference.results()


def test_no_dask_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("paperkiln.atlas.backends.ANSWERS_WITHIN", 1)
    with (
        pytest.raises(PaperkilnError, match=r"tcp://127\.0\.0\.1:1: no dask scheduler answers"),
        dask(1, "tcp://127.0.0.1:1"),
    ):
        pass
