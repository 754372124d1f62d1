"""Speed, side by side in one run: training steps and greedy decoding, ours and other people's.

All engines compute the same model in float32, which the run itself checks: the first losses, or
the next token's probabilities under teacher forcing, must agree, or there is no result.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import inf, isfinite
from statistics import median
from typing import Any

from paperkiln.errors import PaperkilnError
from paperkiln.lab.bench_rounds import Slice, Worker, interleave, say, start
from paperkiln.lab.bench_worker import N_NEW, N_PROMPT
from paperkiln.lab.records import machine, package_versions
from paperkiln.models.config import ModelConfig
from paperkiln.models.cost import matmul_parameters, train_flops_per_token


@dataclass(frozen=True)
class Preset:
    """A model to measure, llama-shaped, and its training batch of whole contexts."""

    arch: dict[str, Any]
    batch: int


def _llama(d_model: int, n_layers: int, n_heads: int, d_ff: int, V: int, T: int) -> dict[str, Any]:
    return {
        "d_model": d_model, "n_layers": n_layers, "n_heads": n_heads, "d_ff": d_ff,
        "vocab_size": V, "context_length": T,
        "norm": "rmsnorm", "activation": "swiglu", "positional": "rope", "bias": False,
    }  # fmt: skip


PRESETS = {
    "quick": Preset(_llama(128, 2, 4, 352, V=259, T=64), batch=16),
    "small": Preset(_llama(256, 4, 8, 688, V=4096, T=256), batch=4),
    "medium": Preset(_llama(512, 6, 8, 2048, V=8192, T=256), batch=4),
}
TRAIN_ENGINES = ("tape", "tape-fast", "torch-eager", "torch-compile")
# How far log p may be from ours. llama.cpp keeps its cache in float16, and q8_0 rounds weights.
GENERATE_ENGINES = {"numpy": 1e-4, "torch": 1e-3, "llama.cpp-f32": 5e-2, "llama.cpp-q8_0": 0.5}
# Random tied weights repeat one token, and small ones make all tokens alike.
_DECODED = {"tied_embeddings": False, "init_std": 0.08}
_PEAK = "sgemm-peak"
_MOST_LOSS_DIFFERENCE = 1e-3
_TRAIN_SECONDS, _GENERATE_SECONDS = 2.0, 0.5  # of a slice


def bench_train(
    presets: Sequence[str] | None, engines: Sequence[str] | None, rounds: int
) -> list[dict[str, Any]]:
    """Measure whole training steps; return one row per preset and engine.

    `peak_rss_mb` is of the engine's own process, `gflops` by `cost.train_flops_per_token`,
    and `fraction_of_peak` of large square products in numpy. None means all. Raises
    PaperkilnError for an unknown name, for an engine asked for that cannot run here, and when
    the engines' losses differ.
    """
    _check_rounds(rounds)
    names = _known("engine", engines, TRAIN_ENGINES)
    rows = []
    for preset in _known("preset", presets, tuple(PRESETS)):
        chosen = PRESETS[preset]
        config = ModelConfig(**chosen.arch)
        jobs = [(e, _job(e, config, batch=chosen.batch), None) for e in names]
        with ExitStack() as stack:
            workers = start(stack, jobs, required=engines is not None)
            check_losses(workers)
            slices = _measure(stack, workers, rounds, _TRAIN_SECONDS, f"train {preset}")
        flops = train_flops_per_token(config)
        rows += _rows(preset, workers, slices, flops, "eager")
    return rows


def bench_generate(presets: Sequence[str] | None, rounds: int) -> list[dict[str, Any]]:
    """Measure greedy decoding at batch 1; return one row per preset and engine.

    A token's time includes its share of reading the prompt. Each engine is measured on one
    thread and on all cores, and the faster is its row. Raises PaperkilnError for an unknown name
    and when the engines' probabilities differ.
    """
    _check_rounds(rounds)
    counts = sorted({1, os.cpu_count() or 1})
    rows = []
    for preset in _known("preset", presets, [n for n in PRESETS if n != "medium"]):
        config = ModelConfig(**PRESETS[preset].arch | _DECODED)
        jobs = [
            (f"{e}, {n} threads", _job(e, config, threads=n), n)
            for e in GENERATE_ENGINES
            for n in counts
        ]
        with ExitStack() as stack:
            workers = start(stack, jobs, required=False)
            check_probabilities(workers)
            slices = _measure(stack, workers, rounds, _GENERATE_SECONDS, f"generate {preset}")
        rows += _best_of_threads(_rows(preset, workers, slices, _decode_flops(config), "torch"))
    return rows


def check_losses(workers: Sequence[Worker]) -> None:
    """Raise PaperkilnError unless the first losses of all workers agree."""
    for worker in workers[1:]:
        first, losses = workers[0].facts["losses"], worker.facts["losses"]
        worst = _largest_difference(first, losses)
        if worst > _MOST_LOSS_DIFFERENCE:
            raise PaperkilnError(
                f"the losses of {worker.name} differ by {worst:.2g} from those of "
                f"{workers[0].name}: they do not train the same model; nothing was measured"
            )
        say(
            f"{worker.name}: the first {len(losses)} losses are {worst:.1g} from the first engine's"
        )


def check_probabilities(workers: Sequence[Worker]) -> None:
    """Raise PaperkilnError unless all workers give the next token the same probabilities."""
    for worker in workers[1:]:
        ours, theirs = workers[0].facts["log_p"], worker.facts["log_p"]
        worst = _largest_difference(ours, theirs)
        allowed = GENERATE_ENGINES[_engine(worker.name)]
        if worst > allowed:
            raise PaperkilnError(
                f"log p of {worker.name} differs by {worst:.2g} from that of {workers[0].name} "
                f"(at most {allowed}): they do not run the same model; nothing was measured"
            )
        say(f"{worker.name}: log p is {worst:.1g} from ours")


def _largest_difference(a: Sequence[float], b: Sequence[float]) -> float:
    differences = [abs(x - y) for x, y in zip(a, b, strict=True)]
    return max(differences) if all(map(isfinite, differences)) else inf


def _known(what: str, wanted: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    for name in wanted or ():
        if name not in known:
            raise PaperkilnError(f"benchmark {what} {name!r}: known are {', '.join(known)}")
    return [name for name in known if wanted is None or name in wanted]


def _check_rounds(rounds: int) -> None:
    if rounds < 1:
        raise PaperkilnError(f"--rounds {rounds}: at least 1 is needed")


def _job(engine: str, config: ModelConfig, **more: Any) -> dict[str, Any]:
    return {"engine": engine, "config": config.model_dump()} | more


def _measure(
    stack: ExitStack, workers: Sequence[Worker], rounds: int, seconds: float, label: str
) -> dict[str, list[Slice]]:
    """Run the rounds, the machine's peak as the last of each."""
    if not workers:
        raise PaperkilnError("no engine of this benchmark can run here")
    peak = start(stack, [(_PEAK, {"engine": _PEAK}, None)], required=True)
    return interleave([*workers, *peak], rounds, seconds, label)


# --- rows ----------------------------------------------------------------------------------------


def _rows(
    preset: str, workers: Sequence[Worker], slices: dict[str, list[Slice]], flops: float, to: str
) -> list[dict[str, Any]]:
    """Return one row per worker; rates are medians over the rounds."""
    rates = {name: [s.rate for s in measured] for name, measured in slices.items()}
    peak = median(s.best for s in slices[_PEAK]) / 1e9
    base = [median(r) for name, r in rates.items() if _engine(name) in ("torch-eager", "torch")]
    rows = []
    for name in (worker.name for worker in workers):
        rate = median(rates[name])
        gflops = rate * flops / 1e9
        rows.append({
            "preset": preset,
            "engine": name,
            "tokens_per_s": round(rate, 1),
            "gflops": round(gflops, 2),
            "fraction_of_peak": round(gflops / peak, 4),
            "peak_rss_mb": _rounded(slices[name][-1].peak_rss_mb),
            f"ratio_to_{to}": round(rate / max(base), 3) if base else None,
            "tokens_per_s_min": round(min(rates[name]), 1),
            "tokens_per_s_max": round(max(rates[name]), 1),
            "rss_after_imports_mb": None,
        })  # fmt: skip
    for row, worker in zip(rows, workers, strict=True):
        row["rss_after_imports_mb"] = _rounded(worker.facts["rss_after_imports_mb"])
    return rows


def _best_of_threads(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each engine the row of the thread count that was fastest, which it names."""
    best: dict[str, dict[str, Any]] = {}
    for row in rows:
        engine, threads = row["engine"].split(", ")
        row = row | {"engine": engine, "threads": int(threads.split()[0])}
        if engine not in best or row["tokens_per_s"] > best[engine]["tokens_per_s"]:
            best[engine] = row
    return list(best.values())


def _engine(worker_name: str) -> str:
    return worker_name.split(",")[0]


def _rounded(mb: float | None) -> float | None:
    return None if mb is None else round(mb, 1)


def _decode_flops(config: ModelConfig) -> float:
    """Return the operations for one new token: 2 per weight, and 4 per key and channel."""
    mean_keys = N_PROMPT + N_NEW / 2
    width = config.n_heads * config.head_dim
    return 2 * matmul_parameters(config) + 4 * config.n_layers * width * mean_keys


# --- tables --------------------------------------------------------------------------------------


def train_table(rows: list[dict[str, Any]]) -> str:
    """Return the rows of `bench_train` for a person."""
    note = "a step is forward, backward, clipping and AdamW, float32; medians over the rounds"
    return "\n".join([*_header(), note, "", *_table(rows, "ratio_to_eager")])


def generate_table(rows: list[dict[str, Any]]) -> str:
    """Return the rows of `bench_generate` for a person."""
    note = (
        f"greedy, batch 1, {N_PROMPT} prompt tokens and {N_NEW} new ones, both in the time; "
        "by the wall clock, llama.cpp by its own timings (without HTTP)"
    )
    return "\n".join([*_header(), note, "", *_table(rows, "ratio_to_torch")])


def _header() -> list[str]:
    from paperkiln.lab.doctor import examine

    m = machine()
    versions = ", ".join(f"{name} {version}" for name, version in package_versions().items())
    return [
        f"{m['processor']}, {m['cores']} cores, {m['system']} {m['architecture']}",
        versions,
        *(f"BLAS {blas}" for blas in examine()["blas"]),
    ]


def _table(rows: list[dict[str, Any]], ratio: str) -> list[str]:
    columns = {
        "preset": "preset", "engine": "engine", "threads": "threads", "tokens_per_s": "tokens/s",
        "tokens_per_s_min": "min", "tokens_per_s_max": "max", ratio: ratio.replace("_", " "),
        "gflops": "GFLOP/s", "fraction_of_peak": "of peak", "peak_rss_mb": "peak MB",
        "rss_after_imports_mb": "imports MB",
    }  # fmt: skip
    columns = {key: title for key, title in columns.items() if rows and key in rows[0]}
    cells = [list(columns.values())]
    cells += [[_cell(key, row[key]) for key in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for line in cells:
        left = [cell.ljust(width) for cell, width in zip(line[:2], widths[:2], strict=True)]
        right = [cell.rjust(width) for cell, width in zip(line[2:], widths[2:], strict=True)]
        lines.append("  ".join(left + right))
    return lines


def _cell(key: str, value: Any) -> str:
    if value is None:
        return "-"
    if key == "fraction_of_peak":
        return f"{value:.1%}"
    if key.startswith("ratio"):
        return f"{value:.2f}"
    return f"{value:,.0f}" if isinstance(value, float) else str(value)
