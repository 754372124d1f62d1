"""The records of studies, and the ledger that shows when one of them was touched.

A study's records.jsonl has one canonical JSON line a run and is only ever appended to. The atlas'
ledger.jsonl has one line a record, of all studies: the SHA-256 of the record's line, and a hash
over the line itself and the one before, so that no record can be edited, dropped or put elsewhere
without the chain saying so. The record is written first: a kill between the two leaves one record
without a ledger line, which the next append adds.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import filelock

from paperkiln.atlas.canonical import canonical, digest
from paperkiln.errors import PaperkilnError
from paperkiln.lab.records import make_record, read_record
from paperkiln.models.config import ModelConfig
from paperkiln.models.cost import train_flops_per_token
from paperkiln.train.events import Data, Done, Eval, Failed, Model, Start, Step, read_events

RECORDS, LEDGER = "records.jsonl", "ledger.jsonl"
NO_HASH = "0" * 64  # what the first line of a ledger follows
DIGITS = 7  # significant digits of a curve's numbers: float32 has no more
_STUDY = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")  # as the name of a sweep
_MAX_FILE_BYTES = 1 << 30
_MAX_LINE_BYTES = 64 << 20
_LEDGER_FIELDS = {"seq": int, "study": str, "run": str, "sha256": str, "previous": str, "hash": str}


def study_record(
    folder: Path, study: str, run: str, cell: dict[str, str], spec: dict[str, Any],
    split: str, energy_joules: float | None,
) -> dict[str, Any]:  # fmt: skip
    """Return the record of a run that ended, complete or failed, from its run folder.

    `spec` and `split` name files as the sweep does: no path of this machine enters, no time and
    no host.
    """
    events = list(read_events(folder / "events.jsonl"))
    last = lambda kind: next((e for e in reversed(events) if isinstance(e, kind)), None)  # noqa: E731
    steps = [e for e in events if isinstance(e, Step)]
    failed, done, model = last(Failed), last(Done), last(Model)
    complete = done is not None and failed is None
    found = (read_record(folder) if complete else None) or {}
    record = make_record(
        spec, {"sha256": last(Data).corpus_sha256, "split": split},
        found.get("fingerprint"), found.get("metrics", {}), last(Start).device,
    )  # fmt: skip
    # Of the process that trained: on an engine, or after an upgrade, that is not this one.
    record |= {name: found[name] for name in ("paperkiln", "packages", "machine") if name in found}
    config = ModelConfig(**model.arch)
    train = spec["train"]
    tokens = len(steps) * train["batch"] * train["accum"] * config.context_length
    return record | {
        "study": study,
        "run": run,
        "cell": cell,
        "status": "complete" if complete else "failed",
        **({} if complete else {"reason": failed.reason if failed else "it did not end"}),
        "structure": {
            "arch": model.arch, "parameters": model.parameters,
            "flops_per_token": train_flops_per_token(config), "tokens": tokens,
        },
        "curve": {
            "loss": [_rounded(e.loss) for e in steps],
            "grad_norm": [_rounded(e.grad_norm) for e in steps],
            "val": [
                [e.step, _rounded(e.val_loss), _rounded(e.bits_per_byte)]
                for e in events if isinstance(e, Eval)
            ],
        },
        "tokens_per_second": (
            round(statistics.median(e.tokens_per_second for e in steps), 1) if steps else None
        ),
        "wall_seconds": round(done.wall_seconds, 2) if complete else None,
        "energy_joules": energy_joules,
    }  # fmt: skip


def _rounded(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")


# --- Reading --------------------------------------------------------------------------------------


def read_records(study: Path) -> list[dict[str, Any]]:
    """Return the records in a study's folder, in the order they were written; none is none.

    Raises PaperkilnError for a line that is no record. A torn last line is passed over.
    """
    path = study / RECORDS
    records = []
    for number, line in enumerate(_lines(path), 1):
        record = _object(line, f"{path}:{number}")
        if not isinstance(record.get("run"), str) or not isinstance(record.get("study"), str):
            raise PaperkilnError(f"{path}:{number}: not the record of a run")
        records.append(record)
    return records


def read_ledger(atlas: Path) -> list[dict[str, Any]]:
    """Return the lines of the atlas' ledger, unchecked beyond their form."""
    path = atlas / LEDGER
    entries = []
    for number, line in enumerate(_lines(path), 1):
        entry = _object(line, f"{path}:{number}")
        if {key: type(value) for key, value in entry.items()} != _LEDGER_FIELDS:
            raise PaperkilnError(f"{path}:{number}: not a line of a ledger")
        if not _STUDY.fullmatch(entry["study"]):
            raise PaperkilnError(f"{path}:{number}: not the name of a study")
        entries.append(entry)
    return entries


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the whole lines of a file, without their ends; no file has none."""
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise PaperkilnError(f"{path}: {path.stat().st_size:,} bytes are too many to read")
        with open(path, "rb") as file:
            while line := file.readline(_MAX_LINE_BYTES):
                if not line.endswith(b"\n"):
                    if len(line) == _MAX_LINE_BYTES:
                        raise PaperkilnError(f"{path}: a line is longer than any record")
                    return  # torn: the writer was killed inside this line
                yield line[:-1]
    except FileNotFoundError:
        return
    except OSError as error:
        raise PaperkilnError(f"{path}: cannot be read ({error.strerror or error})") from None


def _object(line: bytes, where: str) -> dict[str, Any]:
    try:
        value = json.loads(line.decode())
        canonical(value).encode()  # NaN, or half a surrogate pair, has no hash
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise PaperkilnError(f"{where}: not a JSON object on one line")
    return value


# --- Appending ------------------------------------------------------------------------------------


def append_record(atlas: Path, record: dict[str, Any]) -> None:
    """Append a record to its study and its line to the ledger; both are on disk on return.

    Raises PaperkilnError if the study has a record of the run, or if the disk takes nothing.
    """
    study = atlas / "studies" / record["study"]
    with locked(atlas):
        _mend(atlas, study)
        if any(r["run"] == record["run"] for r in read_records(study)):
            raise PaperkilnError(f"{study / RECORDS} has a record of {record['run']} already")
        _append(study / RECORDS, canonical(record))
        _append_entry(atlas, record["study"], record["run"], digest(record))


def mend(atlas: Path, study: Path) -> None:
    """Undo what a kill left: torn last lines, and a last record without its ledger line.

    Raises PaperkilnError where more than that is wrong.
    """
    with locked(atlas):
        _mend(atlas, study)


def _mend(atlas: Path, study: Path) -> None:
    for path in (study / RECORDS, atlas / LEDGER):
        _drop_torn_line(path)
    lines = list(_lines(study / RECORDS))
    known = [e for e in read_ledger(atlas) if e["study"] == study.name]
    if len(lines) == len(known) + 1:
        record = _object(lines[-1], f"{study / RECORDS}:{len(lines)}")
        sha256 = hashlib.sha256(lines[-1]).hexdigest()
        _append_entry(atlas, study.name, str(record.get("run")), sha256)
    elif len(lines) != len(known):
        raise PaperkilnError(
            f"{study / RECORDS} has {len(lines)} records, {atlas / LEDGER} has {len(known)} of "
            "them; bring back the file that is not the original"
        )


def _append_entry(atlas: Path, study: str, run: str, sha256: str) -> None:
    entries = read_ledger(atlas)
    previous = entries[-1]["hash"] if entries else NO_HASH
    entry = {
        "seq": len(entries) + 1, "study": study, "run": run,
        "sha256": sha256, "previous": previous,
    }  # fmt: skip
    _append(atlas / LEDGER, canonical(entry | {"hash": digest(entry)}))


def _append(path: Path, line: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "ab") as file:
            file.write(line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise PaperkilnError(
            f"{path} could not be written ({error.strerror or error}); free some space and run "
            "the sweep again: it goes on where it was"
        ) from None


def _drop_torn_line(path: Path) -> None:
    """Cut off what follows the last newline: a line that its writer did not finish."""
    if not path.exists():
        return
    with open(path, "rb+") as file:
        size = position = file.seek(0, os.SEEK_END)
        while position:
            start = max(0, position - (1 << 16))
            file.seek(start)
            newline = file.read(position - start).rfind(b"\n")
            if newline >= 0:
                position = start + newline + 1
                break
            position = start
        if position < size:
            file.truncate(position)


def locked(atlas: Path) -> filelock.BaseFileLock:
    """Return the lock of the ledger: two sweeps may write to one atlas."""
    try:
        atlas.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PaperkilnError(f"{atlas}: cannot be written ({error.strerror or error})") from None
    return filelock.FileLock(atlas / ".lock", timeout=60)


# --- Checking -------------------------------------------------------------------------------------


def ledger_problems(atlas: Path) -> list[str]:
    """Return what is wrong between the ledger and the records: edited, missing, moved, added."""
    problems = [
        f"{path.relative_to(atlas)}: the last line is torn"
        for path in (atlas / LEDGER, *sorted(atlas.glob(f"studies/*/{RECORDS}")))
        if path.exists() and not _ends_whole(path)
    ]
    try:
        entries = read_ledger(atlas)
    except PaperkilnError as error:
        return [*problems, str(error)]
    problems += _chain_problems(entries)
    studies = {e["study"] for e in entries}
    studies |= {path.parent.name for path in atlas.glob(f"studies/*/{RECORDS}")}
    for study in sorted(studies):
        expected = [(e["run"], e["sha256"]) for e in entries if e["study"] == study]
        problems += _study_problems(atlas / "studies" / study / RECORDS, expected)
    return problems


def _chain_problems(entries: list[dict[str, Any]]) -> list[str]:
    problems, previous = [], NO_HASH
    for number, entry in enumerate(entries, 1):
        where = f"{LEDGER}:{number} ({entry['study']}/{entry['run']})"
        if entry["seq"] != number:
            problems.append(f"{where}: seq is {entry['seq']}: lines were taken out or moved")
        if entry["previous"] != previous:
            problems.append(f"{where}: the chain is broken: it does not follow the line before")
        if entry["hash"] != digest({k: v for k, v in entry.items() if k != "hash"}):
            problems.append(f"{where}: the line was edited: its hash is not its own")
        previous = entry["hash"]
    return problems


def _study_problems(path: Path, expected: list[tuple[str, str]]) -> list[str]:
    """Return how a study's records differ from what the ledger says, (run, sha256) in order."""
    where = f"studies/{path.parent.name}/{RECORDS}"
    try:
        runs = [record["run"] for record in read_records(path.parent)]
    except PaperkilnError as error:
        return [str(error)]
    found = list(
        zip(runs, (hashlib.sha256(line).hexdigest() for line in _lines(path)), strict=True)
    )
    ledger, records = dict(expected), dict(found)
    problems = [
        f"{where}: {run} has two records" for run in sorted(set(runs)) if runs.count(run) > 1
    ]
    problems += [f"{where}: the record of {run} is missing" for run in ledger if run not in records]
    problems += [f"{where}: {run} has no ledger line" for run in records if run not in ledger]
    problems += [
        f"{where}: the record of {run} was edited: it is not what the ledger has the hash of"
        for run in records if run in ledger and records[run] != ledger[run]
    ]  # fmt: skip
    if not problems and found != expected:
        problems.append(f"{where}: the records are in another order than in the ledger")
    return problems


def _ends_whole(path: Path) -> bool:
    with open(path, "rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
