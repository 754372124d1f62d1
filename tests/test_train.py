"""The training loop: sums that do not depend on how they are cut, and what it does when they end.

Small runs of a tenth of a second: d16, one layer, bytes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paperkiln.engine import device
from paperkiln.engine.device import pick_engine
from paperkiln.errors import PaperkilnError
from paperkiln.formats.safetensors_io import load_tensors
from paperkiln.lab.evaluate import Evaluation
from paperkiln.spec import parse_spec
from paperkiln.train.data import batch
from paperkiln.train.events import Done, EarlyStop, Eval, Event, Failed, Step, read_events
from paperkiln.train.loop import BEST, CHECKPOINT, Interrupted, Trainer
from paperkiln.train.run import prepare, run

Make = Callable[..., Trainer]


@pytest.fixture
def trainer(tiny: Callable[..., dict[str, Any]], tmp_path: Path) -> Make:
    """Return `trainer(events, **changes of the spec)`, ready to train in tmp_path."""

    def make(events: list[Event] | None = None, **changes: Any) -> Trainer:
        prepared = prepare(parse_spec(tiny(tmp_path, **changes)))
        spec = prepared.spec
        emit = (lambda event: None) if events is None else events.append
        engine = pick_engine(spec.train.device)
        return Trainer(spec, prepared.tokens, engine, tmp_path, emit)

    return make


def flat(t: Trainer) -> np.ndarray:
    """A copy of the parameters, whatever the engine keeps them in."""
    return t.engine.arrays(t.parameters.flat).copy()


def losses(trainer: Trainer, n: int) -> list[float]:
    return [trainer.step(update).loss for update in range(1, n + 1)]


def relative(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max() / np.abs(b).max())


# --- gradients do not depend on how a batch is cut ---------------------------------------------


def test_two_micro_batches_are_one_batch_of_twice_the_rows(trainer: Make) -> None:
    whole, parts = trainer(train={"batch": 8}), trainer(train={"batch": 4, "accum": 2})
    ids, targets = batch(whole.tokens.train, 0, 1, 8, 32)
    loss = whole._loss_and_grad(ids, targets, (0,), accumulate=False)
    summed = parts._loss_and_grad(ids[:4], targets[:4], (0,), accumulate=False)
    summed += parts._loss_and_grad(ids[4:], targets[4:], (0,), accumulate=True)
    assert summed == pytest.approx(loss, rel=1e-6)
    assert relative(*(t.engine.arrays(t.parameters.grad) for t in (parts, whole))) < 1e-5


def test_every_micro_batch_of_every_step_is_another(
    trainer: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    t = trainer(train={"accum": 3})
    monkeypatch.setattr(
        t, "_loss_and_grad", lambda ids, _, seed, add: drawn.append((ids.tobytes(), seed, add)) or 1
    )
    for update in range(1, 9):
        t.step(update)
    assert len({ids for ids, _, _ in drawn}) == 24
    assert len({seed for _, seed, _ in drawn}) == 24, "nor do two share their dropout"
    assert [add for *_, add in drawn] == [False, True, True] * 8, "each update starts from zero"


@pytest.mark.parametrize("shards", [2, 3, 4, 99])
@pytest.mark.parametrize("name", ["cpu", "torch-cpu"])
def test_shards_change_rounding_only(trainer: Make, shards: int, name: str) -> None:
    if name != "cpu":
        pytest.importorskip("torch")
    one, many = (trainer(train={"shards": n, "device": name}) for n in (1, shards))
    ids, targets = batch(one.tokens.train, 0, 1, 4, 32)
    a, b = (t._loss_and_grad(ids, targets, (0,), accumulate=False) for t in (one, many))
    assert a == pytest.approx(b, rel=1e-6)
    grads = [t.engine.arrays(t.parameters.grad) for t in (many, one)]
    assert relative(*grads) < 1e-5


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_the_number_of_worker_threads_changes_no_bit(
    trainer: Make, monkeypatch: pytest.MonkeyPatch, optimizer: str
) -> None:
    seen = []
    for cores in (1, 2, 5):
        monkeypatch.setattr(device.os, "cpu_count", lambda cores=cores: cores)
        changes = {"shards": 3, "optimizer": optimizer, "device": "cpu"}
        t = trainer(arch={"dropout": 0.1}, train=changes)
        assert t.engine.workers == cores
        seen.append((losses(t, 6), flat(t).tobytes()))
    assert seen[0] == seen[1] == seen[2]


def test_recomputing_activations_changes_no_bit(trainer: Make) -> None:
    kept, recomputed = (
        trainer(arch={"dropout": 0.2}, train={"checkpoint_activations": on}) for on in (0, 1)
    )
    assert losses(kept, 5) == losses(recomputed, 5)
    assert flat(kept).tobytes() == flat(recomputed).tobytes()


@pytest.mark.parametrize("other", ["torch-cpu", "cpu-fast"])
@pytest.mark.parametrize("optimizer", ["adamw", "sgd", "muon"])
def test_the_engines_train_along_the_same_curve(trainer: Make, optimizer: str, other: str) -> None:
    if reason := device.unavailable(other):
        pytest.skip(reason)
    lr = {"adamw": 3e-3, "sgd": 0.1, "muon": 3e-3}[optimizer]
    changes = {"optimizer": optimizer, "lr": lr, "accum": 2}
    tape, second = (trainer(train=changes | {"device": name}) for name in ("cpu", other))
    curve, theirs = losses(tape, 20), losses(second, 20)
    np.testing.assert_allclose(theirs, curve, atol=1e-4)
    assert curve[-1] < curve[0] - 0.1, "it learned something"
    assert tape.evaluate().loss == pytest.approx(second.evaluate().loss, abs=1e-4)


def test_dropout_is_of_the_step_and_not_of_evaluation(trainer: Make) -> None:
    t = trainer(arch={"dropout": 0.5})
    ids, targets = batch(t.tokens.train, 0, 1, 4, 32)
    loss = lambda *seed: t._loss_and_grad(ids, targets, seed, False)  # noqa: E731
    assert loss(7, 1, 0) == loss(7, 1, 0)
    assert len({loss(7, 1, 0), loss(7, 2, 0), loss(7, 1, 1), loss(8, 1, 0)}) == 4
    plain = trainer()
    assert t.evaluate() == plain.evaluate()


@pytest.mark.parametrize("clip", [0.0, 0.1, 1e9])
def test_clipping_is_by_the_global_norm(trainer: Make, clip: float) -> None:
    changes = {"optimizer": "sgd", "momentum": 0, "weight_decay": 0, "lr": 1, "warmup_steps": 0}
    t = trainer(train=changes | {"clip": clip, "schedule": "constant"})
    before = flat(t)
    norm = t.step(1).grad_norm
    moved = float(np.linalg.norm(flat(t) - before))
    assert norm > 0.1
    assert moved == pytest.approx(0.1 if clip == 0.1 else norm, rel=1e-4)


# --- what is saved, and when it ends --------------------------------------------------------------


def test_the_best_weights_are_those_of_the_lowest_loss(
    trainer: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[Event] = []
    t = trainer(events)
    script, weights = iter([3.0, 2.0, 4.0, 2.5]), []

    def evaluate() -> Evaluation:
        weights.append({name: array.copy() for name, array in t.weights().items()})
        return Evaluation(next(script), 1, 1, 1.0)

    monkeypatch.setattr(t, "evaluate", evaluate)
    progress = t.train()
    assert (progress.best_val, progress.best_step, progress.step) == (2.0, 10, 20)
    assert [e.val_loss for e in events if isinstance(e, Eval)] == [3.0, 2.0, 4.0, 2.5]
    best = t.best_weights()
    assert all((best[name] == weights[1][name]).all() for name in best)
    assert any((best[name] != t.weights()[name]).any() for name in best)


@pytest.mark.parametrize("which", ["best", "last"])
def test_the_spec_says_which_weights_are_exported(
    tiny: Callable[..., dict[str, Any]], tmp_path: Path, which: str
) -> None:
    values = tiny(tmp_path / "r", export={"weights": which, "gguf": None})
    folder = run(parse_spec(values))
    saved = load_tensors(folder / "model.safetensors").tensors
    checkpoint = load_tensors(folder / CHECKPOINT).tensors
    best = load_tensors(folder / BEST).tensors
    source = best if which == "best" else {
        n.removeprefix("param/"): a for n, a in checkpoint.items() if n.startswith("param/")
    }  # fmt: skip
    assert any((a == source["embed.weight"]).all() for a in saved.values() if a.shape == (259, 16))
    assert not (folder / "model.gguf").exists()


def test_training_stops_when_it_is_flat(
    tiny: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    stopping = {"early_stopping": {"patience": 2, "min_delta": 10.0}, "checkpoint_every": 100}
    folder = run(parse_spec(tiny(tmp_path / "r", train=stopping)))
    events = list(read_events(folder / "events.jsonl"))
    # The first evaluation is a fall from nothing; the second and third are flat.
    assert [e.step for e in events if isinstance(e, Step)] == list(range(1, 16))
    values = [e.val_loss for e in events if isinstance(e, Eval)]
    (stop,) = (e for e in events if isinstance(e, EarlyStop))
    (done,) = (e for e in events if isinstance(e, Done))
    assert stop.step == done.final_step == 15
    assert done.early_stopped
    assert stop.best_val == done.best_val == min(values), "the true minimum, whatever min_delta"
    assert (folder / "model.gguf").exists()
    progress = json.loads(load_tensors(folder / CHECKPOINT).metadata["progress"])
    assert (progress["step"], progress["evals_flat"]) == (15, 2), "the end is saved"


def test_a_stop_request_ends_after_the_step_with_a_checkpoint(trainer: Make) -> None:
    events: list[Event] = []
    t = trainer(events)
    t.emit = lambda e: (events.append(e), setattr(t, "stop_requested", getattr(e, "step", 0) == 7))
    with pytest.raises(Interrupted) as stopped:
        t.train()
    assert stopped.value.step == 7
    assert json.loads(load_tensors(t.folder / CHECKPOINT).metadata["progress"])["step"] == 7


# --- numbers that are not finite ----------------------------------------------------------------


@pytest.mark.parametrize("shards", [1, 2])  # in the main thread, and in threads
def test_an_exploding_run_stops_and_says_where(
    tiny: Callable[..., dict[str, Any]], refused: Callable[..., str], tmp_path: Path, shards: int
) -> None:
    changes = {
        "device": "cpu",  # torch explodes at another step
        "shards": shards,
        "lr": 100,
        "clip": 0,
        "schedule": "constant",
        "steps": 60,
        "warmup_steps": 0,
    }
    spec = tmp_path / "s.json"
    spec.write_text(json.dumps(tiny(tmp_path / "r", train=changes)))
    line = refused("run", spec)
    (failed,) = (e for e in read_events(tmp_path / "r/events.jsonl") if isinstance(e, Failed))
    assert line.startswith(f"loss nan at step {failed.step}, first not finite in ")
    assert re.search(r"first not finite in the (output of|weights of|gradient of) \S+;", line)
    assert "last good checkpoint is" in line
    assert "lower train.lr" in line
    text = (tmp_path / "r/events.jsonl").read_text()
    assert "NaN" not in text
    assert "Infinity" not in text
    checkpoint = load_tensors(tmp_path / "r" / CHECKPOINT)
    assert all(np.isfinite(a).all() for a in checkpoint.tensors.values())
    kept = json.loads(checkpoint.metadata["progress"])["step"]
    assert 0 < kept < failed.step
    # It says the same when it is resumed, from the checkpoint on.
    again = refused("run", tmp_path / "r", "--resume")
    assert again == line


def test_the_module_where_it_starts_is_named_not_the_first_one(trainer: Make) -> None:
    """A weight that is finite but huge: its block overflows, and every gradient is NaN."""
    t = trainer(arch={"n_layers": 4})
    t.parameters.view("blocks.2.ffn.in.weight")[...] = 1e30
    with (
        pytest.raises(PaperkilnError, match=r"the output of blocks\.2;"),
        np.errstate(all="ignore"),
    ):
        t.step(1)


def test_logits_that_overflow_are_the_head_s(trainer: Make) -> None:
    t = trainer()
    t.parameters.view("norm.weight")[...] = 3e38
    t.parameters.view("embed.weight")[...] *= 1e3
    with (
        np.errstate(all="ignore"),
        pytest.raises(PaperkilnError, match=r"output of (the head|norm)"),
    ):
        t.step(1)


@pytest.mark.parametrize(
    ("name", "where"),
    [("embed.weight", "embed.weight"), ("blocks.0.ffn.out.weight", "blocks.0.ffn.out.weight")],
)
def test_broken_weights_are_named_and_never_saved(trainer: Make, name: str, where: str) -> None:
    events: list[Event] = []
    t = trainer(events)
    t.spec = t.spec.model_copy(update={"train": t.spec.train.model_copy(update={"steps": 5})})
    t.train()
    good = (t.folder / CHECKPOINT).read_bytes()
    t.parameters.view(name)[1, 1] = math.nan
    for attempt in (t._save, lambda: t.step(6), t._evaluate):
        with np.errstate(invalid="ignore"), pytest.raises(PaperkilnError, match=where):
            attempt()
        assert isinstance(events[-1], Failed)
        assert (t.folder / CHECKPOINT).read_bytes() == good


def test_a_broken_gradient_is_named_before_it_reaches_the_weights(
    trainer: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    t = trainer()
    inner = t._loss_and_grad

    def poisoned(*arguments: Any) -> float:
        loss = inner(*arguments)
        t.parameters.grad_view("blocks.0.attn.qkv.weight")[0, 0] = math.inf
        return loss

    monkeypatch.setattr(t, "_loss_and_grad", poisoned)
    before = flat(t)
    with pytest.raises(PaperkilnError, match=r"step 1, .* in the gradient of blocks\.0\.attn\.qkv"):
        t.step(1)
    assert (flat(t) == before).all()
