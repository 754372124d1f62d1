"""Measures ember: `python web/engine/bench.py [FOLDER]` prints tokens per second in node's V8.

Random models of three sizes are written into the folder (build/engine/bench). What the Python host
says to the engine is recorded under wasmtime and played back in node, which so needs no Python.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

from ember_host import Wasmtime, load_build  # noqa: E402

from paperkiln.formats.gguf_writer import write_gguf  # noqa: E402
from paperkiln.infer.ember import Ember  # noqa: E402
from paperkiln.infer.sampling import GREEDY, Sampling  # noqa: E402
from paperkiln.models.config import ModelConfig  # noqa: E402
from paperkiln.models.init import init_parameters  # noqa: E402
from paperkiln.train.tokenizers import Tokenizer, byte_tokenizer  # noqa: E402

MODELS: dict[str, dict[str, Any]] = {
    "quick": {"d_model": 128, "n_layers": 2, "n_heads": 4, "d_ff": 352, "vocab_size": 1024},
    "small": {"d_model": 256, "n_layers": 4, "n_heads": 8, "d_ff": 704, "vocab_size": 4096},
    "15M": {"d_model": 288, "n_layers": 6, "n_heads": 6, "d_ff": 768, "vocab_size": 32000},
}
SAMPLINGS = {"greedy": GREEDY, "top-k 40": Sampling(seed=1)}


def tokenizer_of(vocab_size: int) -> Tokenizer:
    """Return a byte-level BPE of that many tokens: the bytes, then pairs and triples of ASCII."""
    base = byte_tokenizer().tokens
    letters = [c for c in base if is_letter(c)]
    pairs = [(a, b) for a in letters for b in letters]
    triples = [(a + b, c) for a, b in pairs for c in letters[:3]]
    merges = (pairs + triples)[: vocab_size - len(base)]
    return Tokenizer("bpe", base + [a + b for a, b in merges], merges)


def is_letter(token: str) -> bool:
    """Return whether a token of one byte is a whole character, and one to see."""
    return len(token) == 1 and "!" <= token <= "~"


def write_models(folder: Path) -> list[Path]:
    """Write each model in f32 and q8_0, unless it is there."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, fields in MODELS.items():
        config = ModelConfig(**fields, context_length=256, init_std=0.1)
        for dtype in ("f32", "q8_0"):
            path = folder / f"{name}-{dtype}.gguf"
            if not path.exists():
                params = init_parameters(config, 1)
                tokens = enumerate(byte_tokenizer().tokens)
                # Never said: half a character, and the end.
                params["embed.weight"][[i for i, t in tokens if not is_letter(t)]] = 0
                write_gguf(path, config, params, tokenizer_of(config.vocab_size), dtype=dtype)
            paths.append(path)
    return paths


class Recorder:
    """A `Machine` that keeps what it was told after the file was put in its place."""

    def __init__(self, machine: Wasmtime) -> None:
        self.machine, self.steps = machine, []
        self.read = machine.read

    def call(self, name: str, *arguments: int) -> int:
        """Call an export."""
        self.steps.append({"call": name, "arguments": arguments})
        return self.machine.call(name, *arguments)

    def write(self, address: int, data: bytes) -> None:
        """Put bytes into the memory."""
        self.steps.append({"write": address, "base64": base64.b64encode(data).decode()})
        self.machine.write(address, data)


def record(module: Path, gguf: Path) -> dict[str, Any]:
    """Return how the host opens a model in a module, for bench.mjs."""
    data = gguf.read_bytes()
    machine = Wasmtime(module)
    file = machine.call("ember_reserve", len(data))
    machine.write(file, data)
    recorder = Recorder(machine)
    model = Ember(recorder, file, len(data))
    opening, samplings = recorder.steps, {}
    for name, sampling in SAMPLINGS.items():
        recorder.steps = []
        model.prepare(sampling, ())
        samplings[name] = recorder.steps
    config = machine.call("ember_config")
    return {
        "module": str(module), "gguf": str(gguf), "steps": opening, "samplings": samplings,
        "context": model.shape.context_length, "tokens": model.addresses.tokens,
        "uniforms": model.addresses.uniforms, "n_tokens": model.shape.vocab_size, "config": config,
    }  # fmt: skip


def flags() -> list[str]:
    """Return what node needs for relaxed SIMD, which newer ones have without asking."""
    flag = "--experimental-wasm-relaxed-simd"
    known = subprocess.run(["node", flag, "-e", "0"], capture_output=True, check=False)
    return [] if known.returncode else [flag]


def main() -> None:
    """Build, record, and let node measure."""
    arguments = sys.argv[1:]
    folder = Path(arguments[0]) if arguments else HERE.parents[1] / "build" / "engine" / "bench"
    plain, relaxed = load_build().build(folder)
    for module in (plain, relaxed):
        for gguf in write_models(folder):
            (folder / f"{gguf.stem}.json").write_text(json.dumps(record(module, gguf)))
            script, log = str(HERE / "bench.mjs"), str(folder / f"{gguf.stem}.json")
            subprocess.run(["node", *flags(), "--no-warnings", script, log], check=True)


if __name__ == "__main__":
    main()
