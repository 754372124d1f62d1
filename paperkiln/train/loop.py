"""The training loop, one screen; and the few decisions it takes, below it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from paperkiln.engine.parameters import Parameters
from paperkiln.errors import PaperkilnError
from paperkiln.formats.safetensors_io import load_tensors, save_tensors
from paperkiln.lab.evaluate import Evaluation, evaluate
from paperkiln.models.config import parameter_shapes
from paperkiln.models.decoder import Decoder
from paperkiln.models.init import init_parameters
from paperkiln.spec import EarlyStopping, RunSpec
from paperkiln.train.checkpoint import Progress, load_checkpoint, save_checkpoint
from paperkiln.train.data import batch
from paperkiln.train.events import EarlyStop, Eval, Event, Failed, Step
from paperkiln.train.optim import decayed_names, grad_norm, make_optimizer
from paperkiln.train.schedule import lr_scale

CHECKPOINT, BEST = "checkpoint.safetensors", "best.safetensors"


class Interrupted(Exception):
    """Training was asked to stop; a checkpoint of `step` is on disk."""

    def __init__(self, step: int) -> None:
        super().__init__(f"stopped after step {step}")
        self.step = step


@dataclass(frozen=True)
class Tokens:
    """What is trained and validated on: token ids (N,), and the bytes the targets spell."""

    train: np.ndarray
    validation: np.ndarray
    validation_bytes: int
    corpus_sha256: str


class Trainer:
    """One run in progress: `train()` goes to the end, or raises Interrupted."""

    def __init__(
        self, spec: RunSpec, tokens: Tokens, engine: Any, folder: Path,
        emit: Callable[[Event], None],
    ) -> None:  # fmt: skip
        """`spec.arch` has its vocab_size; `emit` receives every event."""
        self.spec, self.config, self.tokens = spec, spec.arch, tokens
        self.engine, self.folder, self.emit = engine, folder, emit
        arrays = init_parameters(self.config, spec.train.seed)
        self.parameters: Parameters = engine.parameters(
            arrays, decayed_names(self.config, spec.train.decay_all)
        )
        self.optimizer = make_optimizer(self.parameters, engine, spec.train, self.config)
        self.progress = Progress()
        self.stop_requested = False  # set by a signal handler, read between steps

    def resume(self) -> None:
        """Take up the run folder's checkpoint; PaperkilnError if another spec or corpus made it."""
        path = self.folder / CHECKPOINT
        self.progress, arrays, state = load_checkpoint(path, self.spec, self.tokens.corpus_sha256)
        for name, array in arrays.items():
            self.parameters.view(name)[...] = self.engine.from_numpy(array)
        for name, buffer in state.items():
            self.optimizer.state[name][...] = self.engine.from_numpy(buffer)

    def train(self) -> Progress:
        """Run the steps that are left and return where training ended."""
        with np.errstate(over="ignore", invalid="ignore"):  # _fail says it, once
            return self._train()

    def _train(self) -> Progress:
        t, progress = self.spec.train, self.progress
        while progress.step < t.steps and not _is_flat(progress, t.early_stopping):
            started = time.perf_counter()
            event = self.step(progress.step + 1)
            progress.step += 1
            progress.seconds += time.perf_counter() - started
            self.emit(event)
            last = progress.step == t.steps
            if last or progress.step % t.eval_every == 0:
                self._evaluate()
            flat = _is_flat(progress, t.early_stopping)
            if flat:
                self.emit(EarlyStop(step=progress.step, best_val=progress.best_val))
            if last or flat or self.stop_requested or progress.step % t.checkpoint_every == 0:
                self._save()
            if self.stop_requested and not (last or flat):
                raise Interrupted(progress.step)
        return progress

    def step(self, update: int) -> Step:
        """Take one optimiser update and return what is told about it."""
        t, T = self.spec.train, self.config.context_length
        started = time.perf_counter()
        loss = 0.0
        for micro in range(t.accum):
            ids, targets = self._batch(update, micro)
            loss += self._loss_and_grad(ids, targets, (t.seed, update, micro), micro > 0)
        norm = grad_norm(self.parameters)
        if not (math.isfinite(loss) and math.isfinite(norm)):
            self._fail(update, loss, self._first_not_finite(update))
        scale = lr_scale(t, update)
        clip = min(1.0, t.clip / norm) if t.clip and norm > 0 else 1.0
        grads = None
        if t.gradmap_every and update % t.gradmap_every == 0:
            grads = self.parameters.grad_norms()
        self.optimizer.step(update, scale, clip)
        seconds = time.perf_counter() - started
        return Step(
            step=update, loss=loss, grad_norm=norm, lr=t.lr * scale, grads=grads,
            tokens_per_second=round(t.accum * t.batch * T / seconds, 1),
        )  # fmt: skip

    def _batch(self, update: int, micro: int) -> tuple[np.ndarray, np.ndarray]:
        t, number = self.spec.train, update * self.spec.train.accum + micro
        return batch(self.tokens.train, t.seed, number, t.batch, self.config.context_length)

    def _loss_and_grad(
        self, ids: np.ndarray, targets: np.ndarray, seed: tuple[int, ...], accumulate: bool
    ) -> float:
        t = self.spec.train
        n_shards = self.engine.n_shards(t.shards, t.batch)
        divisor = ids.size * t.accum
        rows = np.array_split(np.arange(t.batch), n_shards)

        def loss_of(tensors: dict[str, Any], shard: int) -> Any:
            model = Decoder(self.config, tensors, self.engine.F, t.checkpoint_activations)
            part = rows[shard]
            return model.loss(ids[part], targets[part], (*seed, shard), divisor)

        return self.engine.value_and_grad(self.parameters, loss_of, n_shards, accumulate)

    def evaluate(self) -> Evaluation:
        """Score the whole validation split with the present weights."""
        leaves = self.engine.leaves(self.parameters)
        model = Decoder(self.config, leaves, self.engine.F)
        tokens = self.tokens
        return evaluate(model, self.engine, tokens.validation, tokens.validation_bytes)

    def _evaluate(self) -> None:
        progress, result = self.progress, self.evaluate()
        if not math.isfinite(result.loss):
            where = self._broken_weights() or "the validation loss"
            self._fail(progress.step, result.loss, where)
        self.emit(
            Eval(step=progress.step, val_loss=result.loss, bits_per_byte=result.bits_per_byte)
        )
        if note_evaluation(progress, result.loss, self.spec.train.early_stopping):
            save_tensors(self.folder / BEST, self.weights(), {"step": str(progress.step)})

    def weights(self) -> dict[str, np.ndarray]:
        """Return the present parameters as numpy arrays by name."""
        flat = self.engine.arrays(self.parameters.flat)
        return {name: self.parameters.shaped(flat, name) for name in self.parameters.shapes}

    def best_weights(self) -> dict[str, np.ndarray]:
        """Return the parameters of the lowest validation loss."""
        return load_tensors(self.folder / BEST).tensors

    def _save(self) -> None:
        """Write a checkpoint, unless the weights are broken: the last good one stays."""
        if broken := self._broken_weights():
            self._fail(self.progress.step, math.nan, broken)
        save_checkpoint(
            self.folder / CHECKPOINT, self.spec, self.tokens.corpus_sha256, self.progress,
            self.parameters, self.optimizer.state, self.engine,
        )  # fmt: skip

    def _fail(self, step: int, loss: float, where: str) -> None:
        """Stop at a number that is not finite, naming the first place that holds one."""
        reason = f"loss {loss} at step {step}, first not finite in {where}"
        self.emit(Failed(step=step, reason=reason))
        kept = self.folder / CHECKPOINT
        state = f"the last good checkpoint is {kept}" if kept.exists() else "no checkpoint was due"
        raise PaperkilnError(f"{reason}; {state}; lower train.lr or set train.clip")

    def _broken_weights(self) -> str | None:
        """Return the first parameter that holds a number that is not finite, if any does."""
        values = self.engine.arrays(self.parameters.flat)
        for name in parameter_shapes(self.config):
            if not np.isfinite(values[self.parameters.place(name)]).all():
                return f"the weights of {name}"
        return None

    def _first_not_finite(self, step: int) -> str:
        """Return where the step's first number that is not finite arises.

        In the order of cause: the weights, a module's output on the way forward (the step's
        batches are run again), a gradient on the way back.
        """
        if broken := self._broken_weights():
            return broken
        t, F, p = self.spec.train, self.engine.F, self.parameters
        finite = lambda x: bool(np.isfinite(F.to_numpy(x)).all())  # noqa: E731
        model = Decoder(self.config, self.engine.leaves(p), F)
        with F.no_grad():
            for micro in range(t.accum):
                ids, _ = self._batch(step, micro)
                for module, x in model.stages(ids):
                    if not finite(x):
                        return f"the output of {module}"
                # The logits of one sequence at a time: of all of them there may be no room.
                if not all(finite(model.logits(row[None])) for row in ids):
                    return "the output of the head"
        grads = self.engine.arrays(p.grad)
        for name in reversed(parameter_shapes(self.config)):
            if not np.isfinite(grads[p.place(name)]).all():
                return f"the gradient of {name}"
        return "the global gradient norm"  # every part of it is finite, its square is not


def note_evaluation(progress: Progress, val_loss: float, stopping: EarlyStopping) -> bool:
    """Record a validation loss; return whether it is the lowest so far.

    Stopping asks for a fall of min_delta since the last one counted; best_val does not.
    """
    if progress.reference_val is None or val_loss < progress.reference_val - stopping.min_delta:
        progress.reference_val, progress.evals_flat = val_loss, 0
    else:
        progress.evals_flat += 1
    if progress.best_val is None or val_loss < progress.best_val:
        progress.best_val, progress.best_step = val_loss, progress.step
        return True
    return False


def _is_flat(progress: Progress, stopping: EarlyStopping) -> bool:
    return 0 < stopping.patience <= progress.evals_flat
