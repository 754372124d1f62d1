"""The benchmark measures equal models only, says what is missing, and gives complete rows."""

from __future__ import annotations

import math
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from paperkiln.errors import PaperkilnError
from paperkiln.lab import bench, bench_rounds, bench_worker
from paperkiln.lab.bench_rounds import Slice, Worker, start

MINI = bench.Preset(bench._llama(32, 1, 2, 64, V=259, T=64), batch=2)
ROW_KEYS = {
    "preset", "engine", "tokens_per_s", "gflops", "fraction_of_peak", "peak_rss_mb",
    "tokens_per_s_min", "tokens_per_s_max", "rss_after_imports_mb",
}  # fmt: skip


@pytest.fixture
def mini(monkeypatch: pytest.MonkeyPatch) -> None:
    """One tiny preset, slices of one unit, one thread."""
    monkeypatch.setattr(bench, "PRESETS", {"mini": MINI})
    monkeypatch.setattr(bench, "_TRAIN_SECONDS", 0.0001)
    monkeypatch.setattr(bench, "_GENERATE_SECONDS", 0.0001)
    monkeypatch.setattr(bench.os, "cpu_count", lambda: 1)


def replace_torch(monkeypatch: pytest.MonkeyPatch, folder: Path, code: str) -> None:
    """Give the workers another module of that name."""
    (folder / "torch.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(folder))


def check_row(row: dict[str, Any]) -> None:
    assert row["preset"] == "mini"
    assert 0 < row["tokens_per_s_min"] <= row["tokens_per_s"] <= row["tokens_per_s_max"]
    assert 0 < row["fraction_of_peak"] < 1
    assert 10 < row["rss_after_imports_mb"] <= row["peak_rss_mb"]


def test_training_rows_are_complete(mini: None, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="torch is not installed (the extra `torch`)")
    rows = bench.bench_train(None, ["torch-eager", "tape"], rounds=2)
    assert [row["engine"] for row in rows] == ["tape", "torch-eager"]
    for row in rows:
        assert row.keys() == ROW_KEYS | {"ratio_to_eager"}
        check_row(row)
    ours, eager = rows
    assert eager["ratio_to_eager"] == 1
    ratio = ours["tokens_per_s"] / eager["tokens_per_s"]
    assert ours["ratio_to_eager"] == pytest.approx(ratio, rel=0.01, abs=0.001)
    flops = bench.train_flops_per_token(bench.ModelConfig(**MINI.arch))
    assert ours["gflops"] == pytest.approx(ours["tokens_per_s"] * flops / 1e9, abs=0.01)
    told = capsys.readouterr()
    assert "round 2 of 2" in told.err
    assert not told.out
    table = bench.train_table(rows)
    assert "torch-eager" in table
    assert "BLAS" in table


def test_decoding_rows_are_complete(mini: None, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="torch is not installed (the extra `torch`)")
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed (the extra `test`)")
    few = {e: v for e, v in bench.GENERATE_ENGINES.items() if e != "llama.cpp-f32"}
    monkeypatch.setattr(bench, "GENERATE_ENGINES", few)
    rows = bench.bench_generate(None, rounds=1)
    assert [row["engine"] for row in rows] == ["numpy", "torch", "llama.cpp-q8_0"]
    for row in rows:
        assert row.keys() == ROW_KEYS | {"ratio_to_torch", "threads"}
        check_row(row)
    assert "threads" in bench.generate_table(rows)


def test_different_models_are_not_compared(mini: None, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="torch is not installed (the extra `torch`)")
    job = bench._job

    def other_model_for_torch(engine: str, config: Any, **more: Any) -> dict[str, Any]:
        other = {"norm_eps": 0.05} if engine == "torch-eager" else {}
        return job(engine, config.model_copy(update=other), **more)

    monkeypatch.setattr(bench, "_job", other_model_for_torch)
    with pytest.raises(PaperkilnError, match=r"torch-eager differ by .*not train the same model"):
        bench.bench_train(None, ["tape", "torch-eager"], rounds=1)


@pytest.mark.parametrize("last", [2.0, math.nan])
def test_losses_of_later_steps_count(last: float) -> None:
    def worker(name: str, *losses: float) -> Any:
        return SimpleNamespace(name=name, facts={"losses": losses})

    bench.check_losses([worker("a", 5, 4), worker("b", 5.0005, 4)])
    with pytest.raises(PaperkilnError, match="losses of b"):
        bench.check_losses([worker("a", 5, 4), worker("b", 5, last)])


def test_probabilities_of_another_model_are_refused() -> None:
    def worker(name: str, *log_p: float) -> Any:
        return SimpleNamespace(name=name, facts={"log_p": log_p})

    ours = worker("numpy, 1 threads", -1.0, -2.0)
    bench.check_probabilities([ours, worker("llama.cpp-q8_0, 1 threads", -1.1, -2.0)])
    for name in ("torch, 1 threads", "numpy, 2 threads"):
        with pytest.raises(PaperkilnError, match=name):
            bench.check_probabilities([ours, worker(name, -1.1, -2.0)])


def test_a_missing_engine_is_told_and_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replace_torch(monkeypatch, tmp_path, "raise ImportError('torch is not here')")
    jobs = [("torch-eager", bench._job("torch-eager", bench.ModelConfig(**MINI.arch)), None)]
    with ExitStack() as stack:
        assert start(stack, jobs, required=False) == []
        assert "torch-eager is left out: torch is not here" in capsys.readouterr().err
        with pytest.raises(PaperkilnError, match="torch-eager: torch is not here"):
            start(stack, jobs, required=True)


def test_a_worker_that_dies_says_its_last_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    replace_torch(monkeypatch, tmp_path, "import os\nprint('out of luck', flush=True)\nos._exit(3)")
    with Worker("torch", {"engine": "torch-eager"}) as worker:
        with pytest.raises(PaperkilnError, match="engine torch: it ended: out of luck"):
            worker.ready()
        process = worker._process
    assert process.returncode == 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bench.bench_train(["huge"], None, 1), "preset 'huge': known are quick"),
        (lambda: bench.bench_train(None, ["jax"], 1), "engine 'jax': known are tape"),
        (lambda: bench.bench_generate(["medium"], 1), "preset 'medium': known are quick, small"),
        (lambda: bench.bench_train(None, None, 0), "--rounds 0: at least 1"),
    ],
)
def test_wrong_arguments_are_refused(call: Any, message: str) -> None:
    with pytest.raises(PaperkilnError, match=message):
        call()


def test_the_warm_up_round_is_dropped_and_turns_are_taken(
    capsys: pytest.CaptureFixture[str],
) -> None:
    turns = []

    def worker(name: str, idle: float) -> Any:
        def run(seconds: float) -> Slice:
            turns.append(name)
            return Slice(float(len(turns)), 1.0, 1.0, idle)

        return SimpleNamespace(name=name, run=run)

    slices = bench_rounds.interleave([worker("a", 0.0), worker("b", 0.9)], 2, 1.0, "x")
    assert turns == ["a", "b"] * 3
    assert [s.rate for s in slices["a"]] == [3, 5]
    told = capsys.readouterr().err
    assert "b used 90% of a core while others were measured" in told
    assert "a used" not in told.replace("b used 90% of a core", "")


def test_a_slice_is_the_mean_rate_of_its_units() -> None:
    units = iter([(10, 1.0), (10, 3.0), (10, 1.0)])
    measured = bench_worker.run_slice(lambda: next(units), 3.5)
    assert (measured["rate"], measured["best"]) == (5.0, 10.0)


def test_fewer_threads_win_when_they_are_faster() -> None:
    rows = [
        {"engine": "numpy, 1 threads", "tokens_per_s": 9.0},
        {"engine": "numpy, 2 threads", "tokens_per_s": 5.0},
        {"engine": "torch, 1 threads", "tokens_per_s": 1.0},
        {"engine": "torch, 2 threads", "tokens_per_s": 2.0},
    ]
    best = [(row["engine"], row["threads"]) for row in bench._best_of_threads(rows)]
    assert best == [("numpy", 1), ("torch", 2)]
