"""Compiles kernels.c for this machine, once, and calls its functions on numpy arrays.

Nothing is compiled at import: the first run on `cpu-fast` builds a shared library with the
`ziglang` wheel into the user's cache, under the hash of the source, the compiler and the
processor.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import importlib.util
import platform
import subprocess
import sys
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from paperkiln.cache import cache_folder
from paperkiln.errors import PaperkilnError
from paperkiln.formats.atomic import new_file

_lock = threading.Lock()
_SOURCE = Path(__file__).with_name("kernels.c")
# Sums may be reordered, so that they use all vector lanes; NaN and infinity keep their meaning,
# so that a diverging run is still seen to diverge.
_FLAGS = (
    "-O3", "-march=native", "-shared", "-fPIC", "-fvisibility=hidden",
    "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math",
    "-freciprocal-math", "-ffp-contract=fast", "-fno-sanitize=all", "-mprefer-vector-width=512",
)  # fmt: skip


def unavailable() -> str | None:
    """Return why the kernels cannot be used here, with the mend, or None when they can."""
    if importlib.util.find_spec("ziglang") is None:
        return "the compiler is not installed; pip install 'paperkiln[fast]'"
    if sys.byteorder != "little" or sys.maxsize < 1 << 32:
        return "the kernels are for 64-bit little-endian machines; use cpu"
    return None


def call(name: str, *arguments: Any) -> Any:
    """Call the C function on arrays (contiguous unless it takes strides), ints and floats.

    Integers are passed as int64 unless wrapped; the global lock is released meanwhile.
    """
    return _function(name)(*[_as_c(a) for a in arguments])


def _as_c(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.__array_interface__["data"][0])
    if isinstance(value, float):
        return ctypes.c_float(value)
    if isinstance(value, int):
        return ctypes.c_int64(value)
    return value  # None is NULL; ctypes values pass


def load() -> None:
    """Compile the kernels, unless that was done before, and load them.

    Raises PaperkilnError when they do not compile.
    """
    with _lock:
        _loaded()


@lru_cache
def _function(name: str) -> Any:
    with _lock:  # two shards may be the first to call
        function = getattr(_loaded(), name)
    function.restype = ctypes.c_double if name == "cross_entropy" else None
    return function


@lru_cache
def _loaded() -> ctypes.CDLL:
    """Return the compiled library, compiling it unless it is in the cache."""
    compiler = importlib.metadata.version("ziglang")
    key = hashlib.sha256(
        b"\0".join(
            part.encode()
            for part in (_SOURCE.read_text(), compiler, " ".join(_FLAGS), platform.machine(),
                         _processor_features())
        )
    ).hexdigest()[:24]  # fmt: skip
    suffix = {"Windows": ".dll", "Darwin": ".dylib"}.get(platform.system(), ".so")
    path = cache_folder() / "kernels" / f"{key}{suffix}"
    if not path.exists():
        with new_file(path) as aside:
            _compile(aside)
    return ctypes.CDLL(str(path))


def _processor_features() -> str:
    """Return what distinguishes processors that share a cache folder."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def _compile(target: Path) -> None:
    flags = list(_FLAGS)
    if platform.system() == "Linux":
        flags.append("-nostdlib")  # nothing to link but memset, which Python's process has
    if platform.machine() not in ("x86_64", "AMD64"):
        flags.remove("-mprefer-vector-width=512")
    command = [sys.executable, "-m", "ziglang", "cc", *flags, "-o", str(target), str(_SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        problem = (done.stderr.strip().splitlines() or ["no message"])[0]
        raise PaperkilnError(f"kernels.c did not compile ({problem}); train with --device cpu")
