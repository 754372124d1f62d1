"""A run from its spec to its folder: lock, data, training, exports, record, card."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock

import paperkiln
from paperkiln.engine.device import pick_engine
from paperkiln.errors import PaperkilnError
from paperkiln.formats.atomic import new_file
from paperkiln.formats.gguf_io import why_not_llama_cpp
from paperkiln.formats.gguf_writer import write_gguf
from paperkiln.formats.hf import model_tensors
from paperkiln.formats.safetensors_io import save_tensors
from paperkiln.lab.evaluate import scored_bytes
from paperkiln.lab.fingerprint import fingerprint
from paperkiln.lab.records import make_record
from paperkiln.models.config import count_parameters
from paperkiln.spec import RunSpec
from paperkiln.train import data, events
from paperkiln.train.card import model_card
from paperkiln.train.estimate import remarks
from paperkiln.train.events import Event, EventLog
from paperkiln.train.loop import BEST, CHECKPOINT, Tokens, Trainer
from paperkiln.train.tokenizers import Tokenizer

FILES = (
    "spec.json", "events.jsonl", "tokenizer.json", "model.safetensors", "model.gguf",
    "record.json", "card.md", CHECKPOINT, BEST,
)  # fmt: skip
# Ctrl-C, a polite kill, and a terminal that was closed (which Windows does not signal).
STOP_SIGNALS = [signal.SIGINT, signal.SIGTERM, *filter(None, [getattr(signal, "SIGHUP", None)])]
Listener = Callable[[Event], None]


@dataclass(frozen=True)
class Prepared:
    """A spec with its data read and its vocabulary known."""

    spec: RunSpec
    tokenizer: Tokenizer
    tokens: Tokens
    split: str


def prepare(spec: RunSpec, tokenizer: Tokenizer | None = None) -> Prepared:
    """Read or generate the corpus, learn the tokenizer unless given, and encode.

    Raises PaperkilnError where the data cannot serve the model.
    """
    corpus = data.load_corpus(spec.data)
    tokenizer = tokenizer or data.train_tokenizer(spec.data, corpus.train)
    wanted = spec.arch.vocab_size
    if wanted is not None and wanted < tokenizer.vocab_size:
        raise PaperkilnError(
            f"arch.vocab_size {wanted} is smaller than the tokenizer's {tokenizer.vocab_size}; "
            "leave it unset, or lower data.vocab_size"
        )
    arch = spec.arch.model_copy(update={"vocab_size": wanted or tokenizer.vocab_size})
    train = data.encode_corpus(corpus.train, tokenizer)
    validation = data.encode_corpus(corpus.validation, tokenizer)
    data.check_lengths(train, validation, arch.context_length)
    n_bytes = scored_bytes(corpus.validation, validation, tokenizer)
    tokens = Tokens(train, validation, n_bytes, corpus.sha256)
    return Prepared(spec.model_copy(update={"arch": arch}), tokenizer, tokens, corpus.split)


def run(spec: RunSpec, *, resume: bool = False, overwrite: bool = False,
        listen: Listener = lambda event: None) -> Path:  # fmt: skip
    """Train the spec's model and write its run folder; return the folder.

    A folder that holds a run already is taken up with `resume`, emptied with `overwrite` (once
    the spec, the data and the device are known to be good), and refused otherwise. Raises
    PaperkilnError, or loop.Interrupted after Ctrl-C with a checkpoint on disk.
    """
    if resume and overwrite:
        raise PaperkilnError("--resume goes on and --overwrite starts over: choose one")
    folder = spec.folder
    with _locked(folder):
        _refuse_what_is_there(folder, resume or overwrite)
        going_on = resume and _can_resume(folder)
        if resume and not going_on and (folder / "model.safetensors").exists():
            raise PaperkilnError(
                f"{folder} holds a finished model but no {CHECKPOINT} to go on from; use it as it "
                "is, or start over with --overwrite"
            )
        prepared = prepare(spec, Tokenizer.load(folder / "tokenizer.json") if going_on else None)
        engine = pick_engine(spec.train.device)

        def emit(event: Event) -> None:
            log.append(event)
            listen(event)

        trainer = Trainer(prepared.spec, prepared.tokens, engine, folder, emit)
        log_path = folder / "events.jsonl"
        if not going_on:  # nothing of an earlier attempt may be taken for this one's
            _empty(folder)
        else:  # refused, if it is another run's, before anything is written
            trainer.resume()
            if log_path.exists():
                events.rewind(log_path, trainer.progress.step)
        log = EventLog(log_path)
        try:
            _train_and_export(prepared, trainer, going_on)
        finally:
            log.close()
    return folder


def _train_and_export(prepared: Prepared, trainer: Trainer, going_on: bool) -> None:
    spec, tokens, folder, emit = prepared.spec, prepared.tokens, trainer.folder, trainer.emit
    device = f"{trainer.engine.device} ({trainer.engine.reason})"
    _write_json(folder / "spec.json", spec.model_dump(mode="json"))
    if not going_on:
        prepared.tokenizer.save(folder / "tokenizer.json")
    emit(
        events.Start(
            name=spec.name, steps=spec.train.steps, version=paperkiln.__version__, device=device
        )
    )
    emit(events.Model(arch=spec.arch.model_dump(), parameters=count_parameters(spec.arch)))
    emit(
        events.Data(
            train_tokens=len(tokens.train), val_tokens=len(tokens.validation),
            vocab_size=prepared.tokenizer.vocab_size, corpus_sha256=tokens.corpus_sha256,
        )
    )  # fmt: skip
    if going_on:
        emit(events.Resume(step=trainer.progress.step))
    with _stop_on_signal(trainer):
        progress = trainer.train()
    export(prepared, trainer)
    emit(
        events.Done(
            final_step=progress.step, best_val=progress.best_val,
            early_stopped=progress.step < spec.train.steps, wall_seconds=progress.seconds,
        )
    )  # fmt: skip


def export(prepared: Prepared, trainer: Trainer) -> None:
    """Write model.safetensors, model.gguf, record.json and card.md into the run folder."""
    spec, tokenizer, progress = prepared.spec, prepared.tokenizer, trainer.progress
    folder, emit = trainer.folder, trainer.emit
    best = spec.export.weights == "best"
    weights = trainer.best_weights() if best else trainer.weights()
    save_tensors(folder / "model.safetensors", model_tensors(spec.arch, weights))
    emit(events.Export(format="safetensors", path=str(folder / "model.safetensors")))
    if spec.export.gguf:
        report = write_gguf(
            folder / "model.gguf", spec.arch, weights, tokenizer,
            dtype=spec.export.gguf, name=spec.name,
        )  # fmt: skip
        note = "; ".join(report.notes) or None
        emit(events.Export(format="gguf", path=str(folder / "model.gguf"), note=note))
    else:
        emit(events.ExportSkipped(format="gguf", reason="export.gguf is null in the spec"))
    record = make_record(
        spec.model_dump(mode="json"),
        {"sha256": prepared.tokens.corpus_sha256, "split": prepared.split},
        fingerprint(weights),
        {
            "final_step": progress.step, "best_val": progress.best_val,
            "best_step": progress.best_step, "wall_seconds": round(progress.seconds, 2),
            "train_tokens": len(prepared.tokens.train),
            "val_tokens": len(prepared.tokens.validation),
            "val_bytes": prepared.tokens.validation_bytes,
        },
        f"{trainer.engine.device} ({trainer.engine.reason})",
    )  # fmt: skip
    _write_json(folder / "record.json", record)
    with new_file(folder / "card.md") as aside:
        card = model_card(record, count_parameters(spec.arch), where_gguf_opens(spec))
        aside.write_text(card, encoding="utf-8")


def where_gguf_opens(spec: RunSpec) -> str:
    """Return a sentence on model.gguf, or nothing where the spec writes none."""
    if spec.export.gguf is None:
        return ""
    if why_not_llama_cpp(spec.arch, spec.data.tokenizer):
        return "`model.gguf` is for paperkiln's own engines."
    return "`model.gguf` opens in llama.cpp, Ollama and LM Studio."


def before_training(spec: RunSpec) -> list[str]:
    """Return what a user should know before the compute is spent."""
    notes = [
        f"{path} is not there yet; name the text with --set data.{field}=PATH"
        for field, path in (("corpus", spec.data.corpus), ("validation", spec.data.validation))
        if path not in (None, "tinychat") and not Path(path).exists()
    ]
    notes += remarks(spec)
    cores, shards = os.cpu_count() or 1, min(spec.train.shards, spec.train.batch)
    if spec.train.device.startswith("cpu") and shards < cores <= spec.train.batch:
        notes.append(
            f"{shards} of {cores} cores will work; --set train.shards={cores} uses them all "
            "(sums run in another order, so it is another run)"
        )
    return notes


def _can_resume(folder: Path) -> bool:
    return (folder / CHECKPOINT).exists() and (folder / "tokenizer.json").exists()


def _refuse_what_is_there(folder: Path, allowed: bool) -> None:
    """Raise PaperkilnError if the folder holds a run, unless that is `allowed`."""
    for left_over in (*folder.glob(".*.partial"), *folder.glob(".*.old")):  # of a killed process
        if left_over.is_dir():
            shutil.rmtree(left_over, ignore_errors=True)
        else:
            left_over.unlink(missing_ok=True)
    present = [name for name in FILES if (folder / name).exists()]
    if present and not allowed:
        raise PaperkilnError(
            f"{folder} already holds a run ({', '.join(present[:3])}); go on with --resume, "
            "start over with --overwrite, or choose another name"
        )


def _empty(folder: Path) -> None:
    """Delete the run's files; the checkpoint first, so that no half of a run can be resumed.

    spec.json stays: it is replaced whole a moment later, and may be the only copy.
    """
    exports = sorted(path.name for path in folder.glob("model-*.gguf"))
    for name in (CHECKPOINT, *FILES, *exports):
        if name != "spec.json":
            (folder / name).unlink(missing_ok=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the run folder for this process; the lock goes with the process, however it ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(folder / ".lock")
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise PaperkilnError(
            f"{folder}: another process is training here; wait for it or choose another name"
        ) from None
    except OSError as error:
        raise PaperkilnError(
            f"{folder}: cannot be written ({error.strerror or error}); choose another out_dir"
        ) from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _stop_on_signal(trainer: Trainer) -> Iterator[None]:
    """Let the first Ctrl-C finish the step and save; a second one stops at once."""

    def request(number: int, frame: Any) -> None:
        trainer.stop_requested = True
        # A terminal that closes may say so twice, and nobody is there to press Ctrl-C again.
        hung_up = number == getattr(signal, "SIGHUP", None)
        signal.signal(number, signal.SIG_IGN if hung_up else before[number])

    before: dict[int, Any] = {}
    try:
        for number in STOP_SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup asks to outlive the terminal
                before[number] = signal.signal(number, request)
    except ValueError:  # not the main thread: nobody can press Ctrl-C here
        pass
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _write_json(path: Path, values: dict[str, Any]) -> None:
    with new_file(path) as aside:
        aside.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
