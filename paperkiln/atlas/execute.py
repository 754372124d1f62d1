"""Runs a sweep: every run a process of its own, every result on disk as soon as it is there.

Killed at any moment, the same call goes on: a run that has a record is skipped, a finished run
folder is recorded, a half run goes on from its checkpoint. A run that diverges is a result, and
recorded as failed; one that broke for another reason (no disk, no memory) is left for the next
call. A run's weights are deleted once its record is written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock

from paperkiln.atlas import worker
from paperkiln.atlas.backends import local
from paperkiln.atlas.canonical import canonical
from paperkiln.atlas.cells import Run, resolve, runs_of, vocabulary
from paperkiln.atlas.records import append_record, mend, read_records, study_record
from paperkiln.atlas.rows import write_rows
from paperkiln.atlas.sweep import SweepSpec, read_sweep
from paperkiln.errors import PaperkilnError
from paperkiln.formats.atomic import new_file
from paperkiln.train.run import prepare

KEPT = frozenset({"spec.json", "events.jsonl", "record.json"})  # of a run folder, once recorded
SWEEP = "sweep.json"
Backend = Callable[[int], AbstractContextManager[Executor]]


@dataclass(frozen=True)
class Progress:
    """Where a sweep stands; `seconds_left` is None until a first run gave its speed."""

    done: int
    total: int
    failed: int
    seconds_left: float | None
    last: str = ""  # the run that ended
    reason: str = ""  # why it has no result, where it has none


Listener = Callable[[Progress], None]


def run_sweep(
    sweep: SweepSpec, study: Path, scratch: Path, *, jobs: int = 2,
    backend: Backend = local, listen: Listener = lambda progress: None,
) -> dict[str, Any]:  # fmt: skip
    """Run what is left of a sweep and return its status, with what broke.

    `study` is atlas/studies/NAME, which receives sweep.json, records.jsonl and rows.jsonl;
    `scratch` holds the run folders. Raises PaperkilnError for a sweep that must not be run, and
    KeyboardInterrupt after Ctrl-C, when every running process has saved its checkpoint.
    """
    if study.name != sweep.name or study.parent.name != "studies":
        raise PaperkilnError(f"{study}: the folder of {sweep.name} is ATLAS/studies/{sweep.name}")
    runs = runs_of(sweep, resolve(sweep))
    with _held(scratch):
        _keep_sweep(sweep, study)
        mend(study.parent.parent, study)
        recorded = {record["run"] for record in read_records(study)}
        for name in recorded:  # a kill may have come between the record and this
            drop_weights(scratch / name)
        left = [run for run in runs if run.name not in recorded]
        session = _Session(sweep, study, scratch, jobs, len(runs), listen)
        broken = session.run(left, backend) if left else {}
        write_rows(study)
    return status(sweep, study, scratch) | {"broken": broken}


class _Session:
    """The runs that are left of a sweep, in progress."""

    def __init__(
        self, sweep: SweepSpec, study: Path, scratch: Path, jobs: int, total: int, listen: Listener
    ) -> None:  # fmt: skip
        self.sweep, self.study, self.scratch, self.jobs = sweep, study, scratch, jobs
        self.total, self.listen = total, listen
        self.broken: dict[str, str] = {}
        self.spent_seconds, self.spent_flops = 0.0, 0

    def run(self, left: list[Run], backend: Backend) -> dict[str, str]:
        """Run them all; return what broke and why."""
        self.corpora = prepare_data(left, self.study)
        self.done = self.total - len(left)
        self.failed = sum(r["status"] == "failed" for r in read_records(self.study))
        self.flops_left = sum(run.cell.flops for run in left)
        ended = {r.name for r in left if worker.finished(self._folder(r), self._spec(r))}
        for run in left:  # those of a sweep that was killed before it could record them
            if run.name in ended:
                self._take(run, {"status": "ended"})
        with backend(self.jobs) as executor:
            futures = {
                executor.submit(worker.run_task, self._task(run)): run
                for run in left if run.name not in ended
            }  # fmt: skip
            waiting = set(futures)
            while waiting:
                # The time limit lets Ctrl-C through on Windows too.
                done, waiting = wait(waiting, timeout=1, return_when=FIRST_COMPLETED)
                for future in done:
                    self._take(futures[future], _outcome(future))
        return self.broken

    def _folder(self, run: Run) -> Path:
        return self.scratch / run.name

    def _spec(self, run: Run) -> dict[str, Any]:
        spec = run.spec.model_copy(update={"out_dir": str(self._folder(run))})
        return spec.model_dump(mode="json")

    def _task(self, run: Run) -> dict[str, Any]:
        # RAPL counts the whole processor: of two runs at once, neither's part is known.
        return {"what": "train", "spec": self._spec(run), "energy": self.jobs == 1}

    def _take(self, run: Run, outcome: dict[str, Any]) -> None:
        """Record a run that ended, delete its weights, and tell where the sweep stands."""
        reason, record = outcome.get("reason", "it was told to stop"), None
        if outcome["status"] not in ("broken", "stopped"):
            record = self._record(run, outcome.get("energy_joules"))
            if record["corpus"] != self.corpora[_data_key(run)]:
                (self._folder(run) / "spec.json").unlink()  # so that it begins anew
                record, reason = None, "the text changed while it ran"
        if record is None:
            self.broken[run.name] = reason
        else:
            append_record(self.study.parent.parent, record)
            write_rows(self.study)
            drop_weights(self._folder(run))
            reason = record.get("reason", "")
            self.done += 1
            self.failed += record["status"] == "failed"
        self.flops_left -= run.cell.flops
        if "seconds" in outcome and not reason:
            self.spent_seconds += outcome["seconds"]
            self.spent_flops += run.cell.flops
        left = None
        if self.spent_flops:
            left = self.flops_left * self.spent_seconds / self.spent_flops / self.jobs
        self.listen(Progress(self.done, self.total, self.failed, left, run.name, reason))

    def _record(self, run: Run, energy_joules: float | None) -> dict[str, Any]:
        spec = run.spec.model_dump(mode="json") | {"data": _shown_data(run)}
        split = self.corpora[_data_key(run)]["split"]
        return study_record(
            self._folder(run), self.sweep.name, run.name, run.cell.levels, spec,
            split, energy_joules,
        )  # fmt: skip


def _outcome(future: Future[dict[str, Any]]) -> dict[str, Any]:
    """Return what became of a task; an engine's own failure is a broken run, not a lost sweep."""
    try:
        return future.result()
    except Exception as error:
        return {"status": "broken", "reason": f"{type(error).__name__}: {error}"}


def prepare_data(runs: list[Run], study: Path) -> dict[str, dict[str, str]]:
    """Read and encode each distinct text once; return each hash and split, by its data section.

    The tokens go to the cache that every run reads. Raises PaperkilnError where a tokenizer learns
    fewer tokens than the parameters were counted with, or the text is not that of earlier records.
    """
    known = {canonical(r["spec"]["data"]): r["corpus"]["sha256"] for r in read_records(study)}
    longest: dict[str, Run] = {}
    for run in runs:
        key = _data_key(run)
        other = longest.setdefault(key, run)
        if run.spec.arch.context_length > other.spec.arch.context_length:
            longest[key] = run
    corpora = {}
    for key, run in longest.items():
        prepared = prepare(run.spec)
        size, counted = prepared.tokenizer.vocab_size, vocabulary(run.spec.data)
        if size < counted == run.spec.arch.vocab_size:
            raise PaperkilnError(
                f"the tokenizer learns {size} tokens from {run.spec.data.corpus}, the parameters "
                f"were counted with {counted}; set data.vocab_size to {size}"
            )
        data, sha256, split = run.spec.data, prepared.tokens.corpus_sha256, prepared.split
        if known.get(canonical(_shown_data(run)), sha256) != sha256:
            raise PaperkilnError(
                f"{data.corpus} is not the text that the records in {study} were trained on; "
                "bring it back, or give the sweep another name"
            )
        for path in filter(None, (data.corpus, data.validation)):
            split = split.replace(path, _without_home(path))
        corpora[key] = {"sha256": sha256, "split": split}
    return corpora


def _data_key(run: Run) -> str:
    return canonical(run.spec.data.model_dump(mode="json"))


def _shown_data(run: Run) -> dict[str, Any]:
    """Return the data section as records hold it."""
    data = run.spec.data.model_dump(mode="json")
    return data | {f: _without_home(data[f]) for f in ("corpus", "validation") if data[f]}


def _without_home(path: str) -> str:
    """Return the path with ~ for the user's folder, which RunSpec wrote out."""
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if path.startswith(home + os.sep) else path


def drop_weights(folder: Path) -> None:
    """Delete what a recorded run does not need: all but its spec, events and record."""
    if folder.is_dir():
        for path in folder.iterdir():
            if path.name not in KEPT and (path.is_symlink() or not path.is_dir()):
                path.unlink(missing_ok=True)


def status(sweep: SweepSpec, study: Path, scratch: Path) -> dict[str, Any]:
    """Return how many runs are done, failed, begun, running or left, and the scratch's bytes.

    Begun runs have a folder and no record; they are running while a process holds the sweep.
    """
    recorded = {record["run"]: record["status"] for record in read_records(study)}
    runs = [run.name for run in runs_of(sweep, resolve(sweep))]
    begun = [r for r in runs if r not in recorded and (scratch / r / "events.jsonl").exists()]
    done = sum(recorded.get(run) == "complete" for run in runs)
    failed = sum(recorded.get(run) == "failed" for run in runs)
    files = [path for path in scratch.rglob("*") if path.is_file()] if scratch.is_dir() else []
    return {
        "total": len(runs),
        "done": done,
        "failed": failed,
        "begun": len(begun),
        "running": len(begun) if _is_held(scratch) else 0,
        "left": len(runs) - done - failed,
        "disk_bytes": sum(path.stat().st_size for path in files),
    }


def _keep_sweep(sweep: SweepSpec, study: Path) -> None:
    """Write the study's sweep.json; refuse if it is another sweep's."""
    path = study / SWEEP
    if path.exists():
        if read_sweep(path) != sweep:
            raise PaperkilnError(
                f"{path} is another sweep: a study is one experiment; give this one another name"
            )
        return
    text = json.dumps(sweep.model_dump(mode="json"), indent=2, ensure_ascii=False)
    with new_file(path) as aside:
        aside.write_text(text + "\n", encoding="utf-8")


@contextmanager
def _held(scratch: Path) -> Iterator[None]:
    """Hold the sweep for this process."""
    try:
        scratch.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(scratch / ".lock", timeout=1):
            yield
    except filelock.Timeout:
        raise PaperkilnError(f"{scratch}: another process is running this sweep") from None


def _is_held(scratch: Path) -> bool:
    if not (scratch / ".lock").exists():
        return False
    try:
        with filelock.FileLock(scratch / ".lock", timeout=0):
            return False
    except filelock.Timeout:
        return True
