"""The events of events.jsonl: the contract between the trainer and everyone who reads a run.

One JSON object a line, in order: start, model, data, [resume], step ..., eval ..., export ...,
done. A resumed run appends a new segment from start on, after what followed its checkpoint was
dropped, so no step is there twice. Numbers are JSON numbers and finite.
Readers ignore keys and events they do not know, and a last line that was cut short.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from paperkiln.errors import PaperkilnError
from paperkiln.formats.atomic import new_file
from paperkiln.spec import explain


class _Event(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class Start(_Event):
    """A run begins."""

    event: Literal["start"] = "start"
    name: str
    steps: int
    version: str = Field(description="Of paperkiln.")
    device: str


class Model(_Event):
    """The model as it was built, every choice resolved."""

    event: Literal["model"] = "model"
    arch: dict[str, Any]
    parameters: int


class Data(_Event):
    """The tokens that are trained and validated on."""

    event: Literal["data"] = "data"
    train_tokens: int
    val_tokens: int
    vocab_size: int
    corpus_sha256: str


class Resume(_Event):
    """Training goes on from a checkpoint taken after `step`."""

    event: Literal["resume"] = "resume"
    step: int


class Step(_Event):
    """One optimiser update: mean loss in nats, gradient norm before clipping."""

    event: Literal["step"] = "step"
    step: int = Field(ge=1)
    loss: float
    grad_norm: float
    lr: float
    tokens_per_second: float
    grads: dict[str, float] | None = Field(None, description="Gradient norm of each module.")


class Eval(_Event):
    """The whole validation split after `step` updates."""

    event: Literal["eval"] = "eval"
    step: int = Field(ge=0)
    val_loss: float = Field(description="Mean nats per token.")
    bits_per_byte: float


class EarlyStop(_Event):
    """The validation loss stopped falling."""

    event: Literal["early_stop"] = "early_stop"
    step: int
    best_val: float


class Failed(_Event):
    """Training stopped at a loss or gradient that is not finite."""

    event: Literal["failed"] = "failed"
    step: int
    reason: str


class Export(_Event):
    """A file was written."""

    event: Literal["export"] = "export"
    format: str
    path: str
    note: str | None = None


class ExportSkipped(_Event):
    """A file was not written, and why."""

    event: Literal["export_skipped"] = "export_skipped"
    format: str
    reason: str


class Done(_Event):
    """The run is finished; best_val is the lowest validation loss seen."""

    event: Literal["done"] = "done"
    final_step: int
    best_val: float
    early_stopped: bool
    wall_seconds: float = Field(description="Of training, all segments together.")


Event = (
    Start | Model | Data | Resume | Step | Eval | EarlyStop | Failed | Export | ExportSkipped | Done
)
_adapter: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="event")])
_ENDS = {"export", "export_skipped", "done", "failed"}  # a segment's last words
_KNOWN = {e.model_fields["event"].default for e in Event.__args__}


def _line(event: Event) -> bytes:
    return event.model_dump_json(exclude_none=True).encode() + b"\n"


class EventLog:
    """Appends events to a file, a whole line at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 (closed by close)

    def append(self, event: Event) -> None:
        """Write one line, in one system call unless the disk takes only a part of it.

        Raises PaperkilnError when the disk takes nothing.
        """
        rest = _line(event)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise PaperkilnError(
                f"{self.path} could not be written ({error.strerror or error}); free some space "
                "and go on with --resume"
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_events(path: Path) -> Iterator[Event]:
    """Yield the events of a run; unknown ones are passed over, as is a torn last line.

    Raises PaperkilnError at a line before the last that is not a valid event.
    """
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return  # torn: the writer was killed inside this line
            values = _parse(line, f"{path}:{number}")
            try:
                if values["event"] in _KNOWN:
                    yield _adapter.validate_python(values)
            except ValidationError as error:
                what = explain(error, _Event)
                raise PaperkilnError(f"{path}:{number}: not an event ({what})") from None


def rewind(path: Path, step: int) -> None:
    """Drop what happened after `step`, so that a resumed curve has no step twice.

    Also drops a torn last line. Lines that stay are not touched, known or not. The file is
    written aside and renamed.
    """
    with open(path, "rb") as file, new_file(path) as aside, open(aside, "wb") as kept:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                break
            values = _parse(line, f"{path}:{number}")
            at = values.get("step", 0)
            if values["event"] not in _ENDS and isinstance(at, int) and at <= step:
                kept.write(line)


def _parse(line: bytes, where: str) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise PaperkilnError(f"{where}: not an event (a JSON object on one line)")
    name = values.setdefault("event", "")
    if not isinstance(name, str):
        shown = json.dumps(name)[:40]
        raise PaperkilnError(f"{where}: not an event (event is {shown}, no name)")
    return values
