"""A benchmark's workers: all alive at once, told to run one slice each, round after round.

What is compared runs within seconds of each other, again and again, so that a machine that slows
down or is shared slows all of them; medians over the rounds are compared.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

from paperkiln.errors import PaperkilnError

# Each engine is measured at its own default; a user's settings for another purpose stay out.
_THREADS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip
# BLAS threads look for more work for some 20 ms before they sleep: not in the next one's time.
_PAUSE_SECONDS = 0.05
_MOST_IDLE_CPU = 0.1


class Slice(NamedTuple):
    """One measurement: the mean and the best rate a second, and memory so far."""

    rate: float
    best: float
    peak_rss_mb: float | None
    idle_cpu: float  # cores used since the slice before


class Worker:
    """A process that holds one engine; a context manager that ends it."""

    def __init__(self, name: str, job: dict[str, Any], threads: int | None = None) -> None:
        """Start the process; with `threads`, its libraries use so many."""
        self.name, self.facts = name, {}
        environment = {k: v for k, v in os.environ.items() if k not in _THREADS}
        if threads is not None:
            environment |= dict.fromkeys(_THREADS, str(threads))
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed by __exit__)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "paperkiln.lab.bench_worker", json.dumps(job)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True,
            env=environment,
        )  # fmt: skip

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._log.close()

    def ready(self) -> str | None:
        """Wait for the setup and keep its facts; return why the engine cannot run, or None."""
        self.facts = self._reply()
        return self.facts.get("unavailable")

    def run(self, seconds: float) -> Slice:
        """Run one slice of about so many seconds."""
        time.sleep(_PAUSE_SECONDS)
        try:
            self._process.stdin.write(f"{seconds}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it died: the reply says so
        return Slice(**self._reply())

    def _reply(self) -> dict[str, Any]:
        line = self._process.stdout.readline()
        reply = json.loads(line) if line else {"failed": f"it ended: {self._last_words()}"}
        if "failed" in reply:
            raise PaperkilnError(f"benchmark engine {self.name}: {reply['failed']}")
        return reply

    def _last_words(self) -> str:
        self._log.seek(0)
        lines = self._log.read().strip().splitlines()
        return lines[-1] if lines else f"exit code {self._process.wait()}"


def start(
    stack: ExitStack, jobs: Sequence[tuple[str, dict[str, Any], int | None]], required: bool
) -> list[Worker]:
    """Start workers one after the other and return those that can run here.

    A missing engine is a line on standard error; raises PaperkilnError when it was `required`.
    """
    workers = []
    for name, job, threads in jobs:
        say(f"setting up {name}")
        worker = stack.enter_context(Worker(name, job, threads))
        if (reason := worker.ready()) is None:
            workers.append(worker)
        elif required:
            raise PaperkilnError(f"benchmark engine {name}: {reason}")
        else:
            say(f"{name} is left out: {reason}")
    return workers


def interleave(
    workers: Sequence[Worker], rounds: int, seconds: float, label: str
) -> dict[str, list[Slice]]:
    """Return the slices of each worker, by name: a warm-up round that is dropped, then `rounds`."""
    slices: dict[str, list[Slice]] = {worker.name: [] for worker in workers}
    for n in range(rounds + 1):
        say(f"{label}: " + (f"round {n} of {rounds}" if n else "warm-up round"))
        for worker in workers:
            measured = worker.run(seconds)
            if n:
                slices[worker.name].append(measured)
    for name, measured in slices.items():
        if (idle := max(s.idle_cpu for s in measured)) > _MOST_IDLE_CPU:
            say(f"note: {name} used {idle:.0%} of a core while others were measured")
    return slices


def say(line: str) -> None:
    """Tell the person who waits."""
    print(f"bench: {line}", file=sys.stderr, flush=True)
