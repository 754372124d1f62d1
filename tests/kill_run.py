"""Kill a run at its n-th touch of the disk, or after a random time, and resume it; for test_resume.

    python kill_run.py SPEC FOLDER REFERENCE points FIRST STEP
    python kill_run.py SPEC FOLDER REFERENCE random ROUNDS

Everything is imported once; each run is a forked child, so a hundred of them take seconds. Touches
are the opening of a file for writing, renames, removals, new folders, fsync, and each event: before
it is written, and halfway through its line. Prints a JSON object: points tried, and what failed.
"""

from __future__ import annotations

import gc
import json
import os
import random
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np

from paperkiln.formats.safetensors_io import load_tensors
from paperkiln.spec import read_spec
from paperkiln.train.events import Done, EarlyStop, Eval, EventLog, Step, _line, read_events
from paperkiln.train.run import run

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def main(spec_path: str, folder: str, reference: str, mode: str, *numbers: str) -> dict:
    """Try every point of the mode."""
    first, *rest = map(int, numbers)
    warm_up(Path(spec_path), Path(folder))
    trials = random_times(first) if mode == "random" else points(first, *rest)
    tried, failures = 0, []
    for name, install, delay in trials:
        tried += 1
        shutil.rmtree(folder, ignore_errors=True)
        kills, problem = 0, None
        while True:
            status = train(Path(spec_path), Path(folder), install, delay() if delay else None)
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
                kills += 1
                problem = problem or readable(Path(folder))
                install = (lambda: None) if mode == "points" else install
                continue
            break
        if status:
            problem = f"the resumed run ended with {status}"
        problem = problem or difference(Path(folder), Path(reference))
        if problem:
            failures.append(f"{name}: {problem}")
        if mode == "points" and kills == 0:
            break  # the run has no n-th touch
    return {"tried": tried, "failures": failures}


def warm_up(spec: Path, folder: Path) -> None:
    """Import all that a run imports, and leave no thread behind: a fork copies only one."""
    run(read_spec(spec, [f"out_dir={json.dumps(str(folder))}"]))
    gc.collect()  # ends the engine's threads
    while threading.active_count() > 1:
        time.sleep(0.001)


def points(first: int, step: int):
    """Yield (name, what to install in the child, delay) for the n-th touch."""
    n = first
    while True:
        yield f"touch {n}", lambda n=n: die_at(n), None
        n += step


def random_times(rounds: int):
    """Yield runs that are killed again and again, 2 to 60 ms after each start."""
    stream = random.Random(5)
    for i in range(rounds):
        ends = iter([stream.uniform(0.002, 0.06) for _ in range(12)])
        yield f"round {i}", lambda: None, lambda ends=ends: next(ends, None)


def train(spec: Path, folder: Path, install: Callable[[], None], delay: float | None) -> int:
    """Run in a child, killed after `delay` seconds; return its wait status."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            install()
            run(read_spec(spec, [f"out_dir={json.dumps(str(folder))}"]), resume=True)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    if delay is not None:
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def die_at(n: int) -> None:
    """Let this process kill itself at its n-th touch."""
    left = n

    def touch() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(event: str, arguments: tuple) -> None:
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING
        if writes or event in ("os.rename", "os.remove", "os.mkdir"):
            touch()

    fsync, append = os.fsync, EventLog.append

    def torn_append(log: EventLog, event: object) -> None:
        nonlocal left
        touch()
        if left == 0:  # the next touch is inside this line
            line = _line(event)
            log._file.write(line[: len(line) // 2])
        touch()
        append(log, event)

    os.fsync = lambda descriptor: (touch(), fsync(descriptor))[1]
    EventLog.append = torn_append
    sys.addaudithook(hook)


def readable(folder: Path) -> str | None:
    """Return what is wrong with a folder right after a kill: whatever is there must be whole."""
    try:
        for name in ("checkpoint.safetensors", "best.safetensors", "model.safetensors"):
            if (folder / name).exists():
                load_tensors(folder / name)
        for name in ("spec.json", "tokenizer.json", "record.json"):
            if (folder / name).exists():
                json.loads((folder / name).read_text())
        if (folder / "events.jsonl").exists():
            list(read_events(folder / "events.jsonl"))
    except Exception as error:
        return f"left {error!r}"
    return None


def difference(folder: Path, reference: Path) -> str | None:
    """Return how a finished folder differs from the uninterrupted one."""
    for name in ("model.safetensors", "model.gguf", "best.safetensors", "tokenizer.json"):
        if (folder / name).read_bytes() != (reference / name).read_bytes():
            return f"{name} differs"
    ours, theirs = (load_tensors(f / "checkpoint.safetensors") for f in (folder, reference))
    for name, array in theirs.tensors.items():
        if not np.array_equal(ours.tensors[name], array):
            return f"checkpoint tensor {name} differs"
    progress = [json.loads(f.metadata["progress"]) | {"seconds": 0} for f in (ours, theirs)]
    if progress[0] != progress[1]:
        return f"progress differs: {progress}"
    if curve(folder) != curve(reference):
        return "the events differ"
    if left := [path.name for path in folder.glob(".*") if path.name != ".lock"]:
        return f"left behind: {left}"
    return None


def curve(folder: Path) -> list[tuple]:
    """Return what the events say about training, without times."""
    found = []
    for event in read_events(folder / "events.jsonl"):
        if isinstance(event, Step):
            found.append(("step", event.step, event.loss, event.grad_norm, event.lr, event.grads))
        elif isinstance(event, Eval):
            found.append(("eval", event.step, event.val_loss, event.bits_per_byte))
        elif isinstance(event, EarlyStop):
            found.append(("stop", event.step, event.best_val))
        elif isinstance(event, Done):
            found.append(("done", event.final_step, event.best_val, event.early_stopped))
    return found


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
