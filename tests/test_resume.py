"""A run that is killed, whenever it is killed, ends bitwise as if nothing had happened."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kill_run import curve, difference

from paperkiln.engine.device import unavailable
from paperkiln.errors import PaperkilnError
from paperkiln.formats.safetensors_io import load_tensors, save_tensors
from paperkiln.spec import parse_spec
from paperkiln.train.events import Resume, Start, Step, read_events
from paperkiln.train.loop import CHECKPOINT, Interrupted
from paperkiln.train.run import STOP_SIGNALS, run

KILLER = Path(__file__).with_name("kill_run.py")
SHORT = {"steps": 6, "checkpoint_every": 2, "eval_every": 3, "gradmap_every": 4, "batch": 2}
# Stops at step 4 of 20, with dropout and accumulation: all that a checkpoint must hold.
FLAT = SHORT | {
    "steps": 20, "eval_every": 2, "early_stopping": {"patience": 1, "min_delta": 9}, "accum": 2,
}  # fmt: skip

Make = Callable[..., dict[str, Any]]


def kill(tiny: Make, tmp_path: Path, train: dict, *mode: object) -> dict[str, Any]:
    """Make the uninterrupted run and let kill_run.py work against it."""
    values = tiny(tmp_path / "reference", train=train, arch={"dropout": 0.1})
    run(parse_spec(values))
    spec = tmp_path / "s.json"
    spec.write_text(json.dumps(values))
    words = [sys.executable, KILLER, spec, tmp_path / "killed", tmp_path / "reference", *mode]
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


fork_only = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")


@fork_only
def test_killed_at_every_touch_of_the_disk(tiny: Make, tmp_path: Path) -> None:
    result = kill(tiny, tmp_path, FLAT, "points", 0, 1)
    assert result["failures"] == []
    assert result["tried"] > 60, "every write was counted"


@fork_only
@pytest.mark.parametrize(("optimizer", "first"), [("sgd", 3), ("muon", 1)])
def test_the_other_optimisers_killed_here_and_there(
    tiny: Make, tmp_path: Path, optimizer: str, first: int
) -> None:
    result = kill(tiny, tmp_path, SHORT | {"optimizer": optimizer}, "points", first, 7)
    assert result["failures"] == []
    assert result["tried"] > 8


@fork_only
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_killed_again_and_again_at_any_time(tiny: Make, tmp_path: Path, optimizer: str) -> None:
    train = SHORT | {"optimizer": optimizer, "steps": 12}
    assert kill(tiny, tmp_path, train, "random", 4) == {"tried": 4, "failures": []}


class Crash(Exception):
    """What no code of ours knows."""


@pytest.mark.parametrize("device", ["cpu", "cpu-fast", "torch-cpu"])
@pytest.mark.parametrize("checkpoint_every", [5, 10, 100])
def test_a_crash_at_step_15_goes_on_from_the_checkpoint_before(
    tiny: Make, tmp_path: Path, device: str, checkpoint_every: int
) -> None:
    if reason := unavailable(device):
        pytest.skip(reason)
    train = {"device": device, "checkpoint_every": checkpoint_every}
    run(parse_spec(tiny(tmp_path / "reference", train=train, arch={"dropout": 0.1})))
    spec = parse_spec(tiny(tmp_path / "r", train=train, arch={"dropout": 0.1}))

    def crash(event: object) -> None:
        if isinstance(event, Step) and event.step == 15:
            raise Crash

    with pytest.raises(Crash):
        run(spec, listen=crash)
    seen: list[object] = []
    run(spec, resume=True, listen=seen.append)
    first = next(e.step for e in seen if isinstance(e, Step))
    assert first == {5: 11, 10: 11, 100: 1}[checkpoint_every]
    assert difference(tmp_path / "r", tmp_path / "reference") is None


# --- Ctrl-C ---------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_an_interrupt_saves_says_how_to_go_on_and_is_gone_on_with(
    tiny: Make, tmp_path: Path, number: signal.Signals
) -> None:
    train = {"steps": 400, "eval_every": 200, "checkpoint_every": 1000, "batch": 32}
    run(parse_spec(tiny(tmp_path / "reference", train=train)))
    spec = tmp_path / "s.json"
    spec.write_text(json.dumps(tiny(tmp_path / "r", train=train)))
    words = [sys.executable, "-m", "paperkiln", "run"]
    process = subprocess.Popen(
        [*words, spec], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    log = tmp_path / "r" / "events.jsonl"
    deadline = time.monotonic() + 60
    while not (log.exists() and b'"event":"step"' in log.read_bytes()):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, ""), err
    last = err.splitlines()[-1]
    assert "saved" in last
    assert f"python -m paperkiln run {tmp_path / 'r'} --resume" in last
    assert "Traceback" not in err
    (*_, stopped) = (e.step for e in read_events(log) if isinstance(e, Step))
    assert stopped < 400
    progress = json.loads(load_tensors(tmp_path / "r" / CHECKPOINT).metadata["progress"])
    assert progress["step"] == stopped, "no step is lost"
    done = subprocess.run(
        [*words, tmp_path / "r", "--resume"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"resumed after step {stopped}" in done.stderr
    assert difference(tmp_path / "r", tmp_path / "reference") is None


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs SIGHUP")
def test_a_terminal_that_closes_may_say_so_twice(tiny: Make, tmp_path: Path) -> None:
    def hang_up(event: object) -> None:
        if isinstance(event, Step) and event.step == 7:
            signal.raise_signal(signal.SIGHUP)
            signal.raise_signal(signal.SIGHUP)

    train = {"checkpoint_every": 100}
    with pytest.raises(Interrupted):
        run(parse_spec(tiny(tmp_path / "r", train=train)), listen=hang_up)
    assert (tmp_path / "r" / CHECKPOINT).exists()


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs SIGHUP")
def test_what_nohup_ignores_stays_ignored(tiny: Make, tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        seen = []
        hang_up = lambda event: seen.append(signal.raise_signal(signal.SIGHUP))  # noqa: E731
        run(parse_spec(tiny(tmp_path / "r")), listen=hang_up)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert len(seen) > 20, "it went on to the end"


# --- what may and may not change between the parts ------------------------------------------------


@pytest.fixture
def half(tiny: Make, tiny_run: Path, tmp_path: Path) -> dict[str, Any]:
    """A copy of the finished tiny run, as values of a spec that names it."""
    shutil.copytree(tiny_run, tmp_path / "r")
    return tiny(tmp_path / "r")


def snapshot(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_resuming_a_finished_run_is_harmless(half: dict[str, Any], tiny_run: Path) -> None:
    folder = Path(half["out_dir"])
    for _ in range(2):
        run(parse_spec(half), resume=True)
        assert difference(folder, tiny_run) is None
    assert [e.step for e in read_events(folder / "events.jsonl") if isinstance(e, Resume)] == [
        20,
        20,
    ]


CHANGES = [
    ({"train": {"lr": 0.5}}, "train.lr: 0.003 -> 0.5"),
    ({"train": {"steps": 21}}, "train.steps: 20 -> 21"),
    ({"train": {"optimizer": "sgd"}}, 'train.optimizer: "adamw" -> "sgd"'),
    ({"train": {"seed": 1}}, "train.seed: 7 -> 1"),
    ({"train": {"shards": 1}}, "train.shards: 2 -> 1"),
    ({"train": {"early_stopping": {"patience": 1}}}, "train.early_stopping.patience: 0 -> 1"),
    ({"arch": {"n_layers": 2}}, "arch.n_layers: 1 -> 2"),
    ({"arch": {"context_length": 30}}, "arch.context_length: 32 -> 30"),
    ({"data": {"val_fraction": 0.5}}, "data.val_fraction: 0.05 -> 0.5"),
    ({"data": {"tokenizer": "bpe"}}, 'data.tokenizer: "byte" -> "bpe"'),
]


@pytest.mark.parametrize(("change", "part"), CHANGES, ids=[part for _, part in CHANGES])
def test_a_changed_spec_is_refused_and_nothing_is_touched(
    half: dict[str, Any], change: dict[str, Any], part: str
) -> None:
    folder = Path(half["out_dir"])
    before = snapshot(folder)
    ((section, values),) = change.items()
    half[section] = half[section] | values
    with pytest.raises(PaperkilnError, match="the spec changed") as error:
        run(parse_spec(half), resume=True)
    assert part in str(error.value)
    assert snapshot(folder) == before


def test_a_changed_corpus_is_refused_and_nothing_is_touched(
    half: dict[str, Any], corpus: Path, tmp_path: Path
) -> None:
    folder = Path(half["out_dir"])
    before = snapshot(folder)
    (tmp_path / "c.txt").write_bytes(corpus.read_bytes().replace(b"Pip", b"Pop", 1))
    half["data"]["corpus"] = str(tmp_path / "c.txt")
    with pytest.raises(PaperkilnError, match="the corpus is not the one"):
        run(parse_spec(half), resume=True)
    assert snapshot(folder) == before
    (tmp_path / "c.txt").write_bytes(corpus.read_bytes())  # the same text in another place will do
    run(parse_spec(half), resume=True)


def test_how_often_to_save_may_change(half: dict[str, Any], tiny_run: Path) -> None:
    half["train"] |= {"checkpoint_every": 3, "gradmap_every": 0}
    half["export"] = {"gguf": "f32", "weights": "last"}
    run(parse_spec(half), resume=True)
    assert curve(Path(half["out_dir"])) == curve(tiny_run)


def test_without_a_checkpoint_it_starts_over(half: dict[str, Any], tiny_run: Path) -> None:
    folder = Path(half["out_dir"])
    (folder / CHECKPOINT).unlink()
    before = snapshot(folder)
    with pytest.raises(PaperkilnError, match="holds a finished model but no checkpoint"):
        run(parse_spec(half), resume=True)
    assert snapshot(folder) == before
    (folder / "model.safetensors").unlink()
    run(parse_spec(half), resume=True)
    events = list(read_events(folder / "events.jsonl"))
    assert sum(isinstance(e, Start) for e in events) == 1
    assert not any(isinstance(e, Resume) for e in events)
    assert difference(folder, tiny_run) is None


def test_nothing_of_an_earlier_attempt_is_left_in_a_new_start(
    half: dict[str, Any], tiny_run: Path
) -> None:
    folder = Path(half["out_dir"])
    for name in (CHECKPOINT, "model.safetensors"):
        (folder / name).unlink()
    (folder / ".hf.1-1.partial").mkdir()  # an export that was killed
    (folder / "best.safetensors").write_bytes(b"of another tokenizer")

    def stop(event: object) -> None:
        if isinstance(event, Step):
            raise Interrupted(1)

    with pytest.raises(Interrupted):
        run(parse_spec(half), resume=True, listen=stop)
    present = {path.name for path in folder.iterdir()}
    assert present == {".lock", "spec.json", "tokenizer.json", "events.jsonl"}
    run(parse_spec(half), resume=True)
    assert difference(folder, tiny_run) is None


def test_resume_of_nothing_is_a_new_run(tiny: Make, tiny_run: Path, tmp_path: Path) -> None:
    folder = run(parse_spec(tiny(tmp_path / "new")), resume=True)
    assert difference(folder, tiny_run) is None


def test_a_folder_that_holds_a_run_is_not_overwritten_by_mistake(
    half: dict[str, Any], tiny_run: Path
) -> None:
    folder = Path(half["out_dir"])
    before = snapshot(folder)
    with pytest.raises(PaperkilnError, match=r"already holds a run .*--resume.*--overwrite"):
        run(parse_spec(half))
    assert snapshot(folder) == before
    (folder / "notes.txt").write_text("mine")
    half["train"]["steps"] = 5
    run(parse_spec(half), overwrite=True)
    assert [e.step for e in read_events(folder / "events.jsonl") if isinstance(e, Step)][-1] == 5
    assert (folder / "notes.txt").read_text() == "mine", "only the run's own files are deleted"


def test_a_moved_folder_goes_on_where_it_is_now(
    half: dict[str, Any], tiny_run: Path, tmp_path: Path, cli: Callable, monkeypatch
) -> None:
    (tmp_path / "r").rename(tmp_path / "moved")
    code, out, _ = cli("run", tmp_path / "moved", "--resume")
    assert (code, out.strip()) == (0, str(tmp_path / "moved"))
    assert not (tmp_path / "r").exists(), "no second run was started in the old place"


@pytest.mark.parametrize("damage", ["cut", "foreign", "text", "unnamed"])
def test_a_damaged_checkpoint_is_named(half: dict[str, Any], damage: str) -> None:
    path = Path(half["out_dir"]) / CHECKPOINT
    match damage:
        case "cut":
            path.write_bytes(path.read_bytes()[:-100])
        case "foreign":
            save_tensors(path, load_tensors(path).tensors, {"progress": "{}"})
        case "text":
            path.write_text("not a checkpoint")
        case "unnamed":
            file = load_tensors(path)
            save_tensors(path, {"odd/tensor": next(iter(file.tensors.values()))}, file.metadata)
    before = snapshot(path.parent)
    with pytest.raises(PaperkilnError, match=CHECKPOINT):
        run(parse_spec(half), resume=True)
    assert snapshot(path.parent) == before
