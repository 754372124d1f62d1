"""One run in a process of its own: started by execute.py, ends with its parent.

    python -m paperkiln.atlas.worker < PIPE

The first line of standard input is a JSON task; the pipe then stays open. When it closes, because
the sweep was interrupted or its process is gone, the run finishes its step, saves and ends. The
last line of standard output is a JSON outcome.
"""

from __future__ import annotations

import _thread
import contextlib
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PINNED = ("OPENBLAS", "OMP", "MKL", "VECLIB_MAXIMUM", "NUMEXPR")
RAPL = Path("/sys/class/powercap")
_STILL_THERE = 60  # seconds that a worker of a killed sweep may take to save its checkpoint
_open: set[int] = set()  # the pipes of the workers that this process has started
_stopping = threading.Event()


# --- The parent's side ----------------------------------------------------------------------------


def run_task(task: dict[str, Any]) -> dict[str, Any]:
    """Do a task in a process of its own and return its outcome; never raises for a failed run.

    Outcomes have "status": "complete", "failed" (training diverged, "reason"), "stopped" (saved, on
    request) or "broken" (anything else, "reason").
    """
    read_end, write_end = os.pipe()  # not inherited: closing this side is seen at once
    _open.add(write_end)
    started = time.perf_counter()
    environment = os.environ | {f"{name}_NUM_THREADS": "1" for name in PINNED}
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "paperkiln.atlas.worker"],
            stdin=read_end, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment, start_new_session=True,  # the terminal's Ctrl-C is for the parent
        )  # fmt: skip
        os.close(read_end)
        with contextlib.suppress(OSError):
            os.write(write_end, json.dumps(task).encode() + b"\n")
        if _stopping.is_set():
            _close(write_end)
        output, errors = process.communicate()
    finally:
        _close(write_end)
    with contextlib.suppress(ValueError, IndexError):
        return json.loads(output.splitlines()[-1]) | {"seconds": time.perf_counter() - started}
    lines = errors.strip().splitlines() or [""]
    return {"status": "broken", "reason": f"ended with {process.returncode}: {lines[-1]}"}


def stop_all() -> None:
    """Ask every worker of this process to save and end, and those that are just starting."""
    _stopping.set()
    for pipe in list(_open):
        _close(pipe)


def allow() -> None:
    """Let workers start again after stop_all."""
    _stopping.clear()


def _close(pipe: int) -> None:
    if pipe in _open:
        _open.discard(pipe)
        os.close(pipe)


# --- The worker's side ----------------------------------------------------------------------------


def main() -> None:
    """Do the task on standard input."""
    task = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    work = time_steps if task["what"] == "time" else train
    print(json.dumps(work(task)), flush=True)


def _end_with_parent() -> None:
    """Press Ctrl-C here when the pipe closes."""
    sys.stdin.read()
    _thread.interrupt_main()


def train(task: dict[str, Any]) -> dict[str, Any]:
    """Train the task's run, from its checkpoint if it has one; return the outcome."""
    from paperkiln.errors import PaperkilnError
    from paperkiln.spec import parse_spec
    from paperkiln.train.loop import Interrupted
    from paperkiln.train.run import run

    spec = parse_spec(task["spec"])
    going_on = is_of(spec.folder, task["spec"])
    meter = (
        EnergyMeter() if task["energy"] and not (spec.folder / "events.jsonl").exists() else None
    )
    try:
        _wait_for(spec.folder)
        run(spec, resume=going_on, overwrite=not going_on)
    except Interrupted:
        return {"status": "stopped"}
    except PaperkilnError as error:
        if failure(spec.folder) is not None:
            return {"status": "failed"}
        return {"status": "broken", "reason": str(error)}
    return {"status": "complete", "energy_joules": meter.joules() if meter else None}


def _wait_for(folder: Path) -> None:
    """Let a worker of a sweep that was killed leave the run folder."""
    import filelock

    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(filelock.Timeout), filelock.FileLock(folder / ".lock", _STILL_THERE):
        pass


def is_of(folder: Path, spec: dict[str, Any]) -> bool:
    """Return whether a run folder was begun for this very spec."""
    try:
        there = json.loads((folder / "spec.json").read_text(encoding="utf-8"))
        return there | {"out_dir": None} == spec | {"out_dir": None}
    except (OSError, ValueError, TypeError):
        return False


def failure(folder: Path) -> str | None:
    """Return why the run in a folder failed, or None where it did not."""
    from paperkiln.train.events import Failed

    last = _last_event(folder)
    return last.reason if isinstance(last, Failed) else None


def finished(folder: Path, spec: dict[str, Any]) -> bool:
    """Return whether the folder holds this very run, ended: complete, or failed in training."""
    from paperkiln.train.events import Done, Failed

    return is_of(folder, spec) and isinstance(_last_event(folder), Done | Failed)


def _last_event(folder: Path) -> Any:
    from paperkiln.train.events import read_events

    try:
        events = list(read_events(folder / "events.jsonl"))
    except OSError:
        return None
    return events[-1] if events else None


def time_steps(task: dict[str, Any]) -> dict[str, Any]:
    """Return the seconds that this spec's parts take here: preparation, a step, an evaluation."""
    import tempfile

    from paperkiln.engine.device import pick_engine
    from paperkiln.spec import parse_spec
    from paperkiln.train.loop import Trainer
    from paperkiln.train.run import prepare

    spec, started = parse_spec(task["spec"]), time.perf_counter()
    prepared = prepare(spec)
    with tempfile.TemporaryDirectory() as folder:
        engine = pick_engine(spec.train.device)
        trainer = Trainer(prepared.spec, prepared.tokens, engine, Path(folder), lambda event: None)
        prepared_at = time.perf_counter()
        steps = list(_laps(task["steps"], lambda i: trainer.step(i + 1)))
        evaluation = next(_laps(1, lambda i: trainer.evaluate()))
    return {
        "status": "complete",
        "prepare_seconds": prepared_at - started,
        "step_seconds": statistics.median(steps[1:] or steps),  # the first one warms up
        "eval_seconds": evaluation,
    }


def _laps(n: int, act: Any) -> Iterator[float]:
    for i in range(n):
        started = time.perf_counter()
        act(i)
        yield time.perf_counter() - started


class EnergyMeter:
    """The energy of all processor packages since it was made, from RAPL where that is readable."""

    def __init__(self, root: Path = RAPL) -> None:
        self.zones = sorted(root.glob("intel-rapl:[0-9]*")) if root.exists() else []
        self.zones = [zone for zone in self.zones if zone.name.count(":") == 1]  # not their parts
        self.before = self._read()

    def joules(self) -> float | None:
        """Return the joules since, or None; a counter that wrapped once is followed."""
        after = self._read()
        if not self.before or not after:
            return None
        total = 0
        for (start, _), (end, size) in zip(self.before, after, strict=True):
            total += end - start if end >= start else end + size - start
        return round(total / 1e6, 3)

    def _read(self) -> list[tuple[int, int]] | None:
        """Return (counter, its largest value) of each package, in microjoules."""
        names = ("energy_uj", "max_energy_range_uj")
        try:
            return [tuple(int((zone / n).read_text()) for n in names) for zone in self.zones]
        except (OSError, ValueError):
            return None


if __name__ == "__main__":
    main()
