"""ember against llama.cpp, both in one Chromium: `python web/bench/engines.py [MODEL...]`.

ember runs as the chat page runs it: client.js, the worker, Python in the loop, text that streams
into the page. Beside it, on the same files and in turns, runs wllama (llama.cpp in WebAssembly),
on one thread too. Models are random and written here; MODEL is quick, small or 15M, all by default.

`--json` prints every round. wllama comes from npm, pinned by hash, into the cache folder.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from host import ROOT, build, chromium, load, served

from paperkiln.models.config import ModelConfig, count_parameters

models = load(ROOT / "web" / "engine" / "bench.py")

CONTEXT = 256  # of the models that bench.py writes
SAMPLING = {"temperature": 0.8, "top_k": 40, "top_p": 1.0, "seed": 1}  # the chat page's own
PAGE = """<!doctype html><meta charset="utf-8"><title>Engines</title>
<link rel="icon" href="data:,"><p id="said"></p><script type="module" src="engines.js"></script>
"""


def prepare(folder: Path, names: list[str]) -> dict[str, int]:
    """Put everything into the folder that is served; return the models' sizes by file name."""
    build.build(folder, ROOT / "web" / "models")
    bench = folder / "bench"
    bench.mkdir(exist_ok=True)
    (bench / "index.html").write_text(PAGE, encoding="utf-8")
    shutil.copyfile(Path(__file__).with_name("engines.js"), bench / "engines.js")
    compile_ceiling(bench / "ceiling.wasm")
    with build.npm_package("@wllama/wllama") as package:
        for name in ("index.js", "wasm/wllama.wasm"):
            target = bench / "wllama" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(package.extractfile(f"package/esm/{name}").read())
    paths = models.write_models(bench / "models")
    return {p.name: p.stat().st_size for p in paths if p.stem.rpartition("-")[0] in names}


def compile_ceiling(target: Path) -> None:
    """Compile ceiling.c."""
    flags = ["--target=wasm32-freestanding", "-O3", "-msimd128", "-mrelaxed-simd", "-ffreestanding",
             "-nostdlib", "-Wl,--no-entry"]  # fmt: skip
    source = str(Path(__file__).with_name("ceiling.c"))
    command = [sys.executable, "-m", "ziglang", "cc", *flags, "-o", str(target), source]
    subprocess.run(command, check=True)


def spread(values: list[float]) -> tuple[float, float, float]:
    """Return the median, the lowest and the highest."""
    return statistics.median(values), min(values), max(values)


def summary(found: dict[str, Any]) -> dict[str, Any]:
    """Return medians of an engine's rounds. wllama is given the better of two clocks: the page's,
    and its own, which leaves out its messages to the page."""

    def best(each: dict[str, Any], what: str) -> float:
        return max(each[what], (each.get("inside") or {}).get(what, 0))

    rounds, first = found["rounds"], found["first"]
    return {
        "decode": spread([best(each, "decode") for each in rounds]),
        "prefill": spread([best(each, "prefill") for each in rounds]),
        "first_ms": spread([each["first_ms"] for each in rounds]),
        "cold_decode": best(first, "decode"),
        "cold_prefill": best(first, "prefill"),
        "cold_ms": found["opened_ms"] + first["first_ms"],
        "bytes": found["bytes"],
    }


def report(name: str, results: dict[str, Any]) -> None:
    """Print what was found for one model."""
    ember, wllama = summary(results["ember"]), summary(results["wllama"])

    def line(label: str, what: str, higher_is_better: bool = True) -> None:
        ours, theirs = ember[what], wllama[what]
        if isinstance(ours, tuple):
            shown = [f"{m:,.0f} ({low:,.0f}-{high:,.0f})" for m, low, high in (ours, theirs)]
            ours, theirs = ours[0], theirs[0]
        else:
            shown = [f"{ours:,.0f}", f"{theirs:,.0f}"]
        ratio = ours / theirs if higher_is_better else theirs / ours
        print(f"  {label:32}{shown[0]:>28}{shown[1]:>28}{ratio:>9.2f}")

    print(f"{name:34}{'ember':>28}{'wllama':>28}{'ratio':>9}")
    line("decode, tokens/s", "decode")
    line("prefill, tokens/s", "prefill")
    line("first token, ms", "first_ms", higher_is_better=False)
    line("first use: decode, tokens/s", "cold_decode")
    line("first use: prefill, tokens/s", "cold_prefill")
    line("first use: first token, ms", "cold_ms", higher_is_better=False)
    line("bytes loaded", "bytes", higher_is_better=False)
    best, (all_weights, body) = results["ceiling"], parameters(name.rpartition("-")[0])
    decode, prefill = ember["decode"][0], ember["prefill"][0]
    size = results["size"]
    print(f"  the same greedy text: {results['same']}")
    print(f"  ember's decode: {of(2 * all_weights * decode, best['flops'], 'GFLOP/s')},",
          f"{of(size * decode, best['bytes'], 'GB/s')};",
          f"prefill: {of(2 * body * prefill, best['flops'], 'GFLOP/s')}")  # fmt: skip


def of(found: float, best: float, unit: str) -> str:
    """Say how much of what is possible was reached."""
    return f"{found / 1e9:.1f} of {best / 1e9:.1f} {unit} ({found / best:.0%})"


def parameters(name: str) -> tuple[int, int]:
    """Return how many weights a chosen token multiplies, and a token that is only read."""
    config = ModelConfig(**models.MODELS[name])
    n = count_parameters(config)  # the head is the embedding
    return n, n - config.vocab_size * config.d_model


def main() -> None:
    """Build, serve, and let Chromium measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help="quick, small or 15M")
    parser.add_argument("--greedy", action="store_true", help="temperature 0, not the page's 0.8")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "bench")
    args = parser.parse_args()
    sizes = prepare(args.folder, args.models or list(models.MODELS))
    everything = {}
    with served(args.folder) as address, chromium() as fresh:
        for file, size in sizes.items():
            plan = {
                "model": {"name": file, "url": f"models/{file}", "size": size, "context": CONTEXT},
                "rounds": args.rounds, "turn": 3, "n": 128, "long": 128,
                "sampling": SAMPLING | ({"temperature": 0} if args.greedy else {}),
            }  # fmt: skip
            with fresh() as profile:
                tab = profile.new_page()
                tab.on("console", lambda message: print(message.text))
                tab.goto(f"{address}bench/index.html")
                tab.wait_for_selector("html[data-ready]")
                everything[file] = tab.evaluate("plan => compare(plan)", plan) | {"size": size}
            if not args.json:
                report(file.removesuffix(".gguf"), everything[file])
    if args.json:
        print(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
