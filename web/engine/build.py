"""Compiles ember to WebAssembly with the `ziglang` wheel: `python web/engine/build.py [FOLDER]`.

Two modules come out. ember.wasm runs wherever WebAssembly has SIMD; ember-relaxed.wasm also wants
relaxed SIMD, for its fused multiply-add. ember.js chooses between them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILDS = {"ember.wasm": [], "ember-relaxed.wasm": ["-mrelaxed-simd"]}
# No strict aliasing: bytes of a file are read as what the host says they are.
# No contraction: only multiply_add may fuse, and the same sum has the same bits everywhere in C.
_FLAGS = (
    "--target=wasm32-freestanding", "-O3", "-msimd128", "-mbulk-memory", "-mnontrapping-fptoint",
    "-ffreestanding", "-nostdlib", "-ffp-contract=off", "-fno-strict-aliasing", "-fno-sanitize=all",
    "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror", "-s",
    "-Wl,--no-entry", "-Wl,-z,stack-size=65536",
)  # fmt: skip


def build(out: Path) -> list[Path]:
    """Compile both modules into the folder and return their paths.

    Raises RuntimeError with the compiler's first complaint.
    """
    out.mkdir(parents=True, exist_ok=True)
    sources = [str(HERE / name) for name in ("ember.c", "linear.c", "weights.c")]
    made = []
    for name, flags in BUILDS.items():
        target = out / name
        compiler = [sys.executable, "-m", "ziglang", "cc"]
        command = [*compiler, *_FLAGS, *flags, "-o", str(target), *sources]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["no message"]
            problem = next((line for line in lines if "error" in line), lines[0])
            raise RuntimeError(f"ember did not compile: {problem}")
        made.append(target)
    return made


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parents[1] / "build" / "engine"
    for path in build(folder):
        print(f"{path} {path.stat().st_size:,} bytes")
