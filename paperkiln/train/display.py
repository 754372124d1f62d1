"""What a person sees while a run trains: a live line, or plain lines where there is no terminal.

It reads events and nothing else.
"""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from paperkiln.train.events import (
    Data,
    Done,
    EarlyStop,
    Eval,
    Event,
    Export,
    ExportSkipped,
    Model,
    Resume,
    Start,
    Step,
)  # fmt: skip

_PLAIN_SECONDS = 10.0  # between two lines when the output is a file or a pipe


class Display:
    """Shows a run from its events; use as a context manager and call with each event."""

    def __init__(self, console: Console | None = None) -> None:
        """Write to `console`, by default standard error, so that standard output stays clean."""
        self.console = console or Console(stderr=True, highlight=False, soft_wrap=True)
        self._progress = Progress(*_columns(self.console.width), console=self.console)
        self._task = self._progress.add_task("train", loss="–", val="–", speed="", visible=False)
        self._live = self.console.is_terminal and not self.console.is_dumb_terminal
        self._steps = 0
        self._loss: float | None = None
        self._speed: float | None = None
        self._next_line = 0.0
        self._began: tuple[float, int] | None = None

    def __enter__(self) -> Display:
        if self._live:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._progress.stop()

    def __call__(self, event: Event) -> None:
        """Show one event."""
        match event:
            case Start():
                self._steps = event.steps
                self._progress.update(self._task, total=event.steps, visible=True)
                self._say(f"{event.name}: {event.steps:,} steps on {event.device}")
            case Model():
                self._say(f"model: {event.parameters:,} parameters")
            case Data():
                self._say(
                    f"data: {event.train_tokens:,} tokens to train on, {event.val_tokens:,} held "
                    f"out, vocabulary {event.vocab_size:,}"
                )
            case Resume():
                self._say(f"resumed after step {event.step:,}")
                self._progress.update(self._task, completed=event.step)
            case Step():
                self._step(event)
            case Eval():
                self._progress.update(self._task, val=f"{event.val_loss:.3f}")
                if not self._live:
                    self._say(
                        f"step {event.step:,}: validation loss {event.val_loss:.4f}, "
                        f"{event.bits_per_byte:.3f} bits per byte"
                    )
            case EarlyStop():
                self._say(f"stopped early after step {event.step:,}: no longer improving")
            case Export():
                self._say(f"wrote {event.path}" + (f" ({event.note})" if event.note else ""))
            case ExportSkipped():
                self._say(f"no {event.format}: {event.reason}")
            case Done():
                self._say(
                    f"done: best validation loss {event.best_val:.4f}, "
                    f"{event.wall_seconds:.0f} s of training"
                )

    def _step(self, event: Step) -> None:
        # One step's loss and speed jump about; a running mean over about 20 steps is readable.
        smooth = lambda old, new: new if old is None else old + 0.05 * (new - old)  # noqa: E731
        self._loss = smooth(self._loss, event.loss)
        self._speed = smooth(self._speed, event.tokens_per_second)
        self._progress.update(
            self._task, completed=event.step, loss=f"{self._loss:.3f}",
            speed=f"{self._speed:,.0f} tokens/s",
        )  # fmt: skip
        now = time.monotonic()
        if self._began is None:
            self._began = now, event.step
        if not self._live and now >= self._next_line:
            self._next_line = now + _PLAIN_SECONDS
            self._say(
                f"step {event.step:,}/{self._steps:,}  loss {self._loss:.3f}  "
                f"{self._speed:,.0f} tokens/s  ETA {self._eta(now, event.step)}"
            )

    def _eta(self, now: float, step: int) -> str:
        began, first = self._began or (now, step)
        if step == first:
            return "–"
        seconds = int((now - began) / (step - first) * (self._steps - step))
        return f"{seconds // 60}:{seconds % 60:02}"

    def _say(self, line: str) -> None:
        self.console.print(line, markup=False)


def _columns(width: int) -> list[ProgressColumn]:
    """Return what fits a terminal: a narrow one keeps step, loss and time left."""
    numbers = "loss {task.fields[loss]} · val {task.fields[val]}"
    columns = [TextColumn("step"), MofNCompleteColumn()]
    if width >= 100:
        columns.append(BarColumn(bar_width=24))
    columns.append(TextColumn(numbers + " · {task.fields[speed]}" if width >= 72 else numbers))
    return [*columns, TextColumn("· ETA"), TimeRemainingColumn(elapsed_when_finished=True)]
