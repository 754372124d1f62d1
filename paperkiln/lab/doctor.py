"""What is installed here, which BLAS numpy uses, and which devices a model can run on."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
from typing import Any

import paperkiln
from paperkiln.engine.device import DEVICES, unavailable
from paperkiln.lab.records import processor

_REQUIRED = (
    "numpy", "scipy", "pydoe", "pydantic", "tokenizers", "gguf", "filelock", "platformdirs", "rich",
    "threadpoolctl",
)  # fmt: skip
_OPTIONAL = {
    "torch": "devices torch-cpu, cuda and mps: pip install 'paperkiln[torch]'",
    "ziglang": "device cpu-fast: pip install 'paperkiln[fast]'",
    "matplotlib": "figures: pip install 'paperkiln[docs]'",
    "transformers": "opens what `export --format hf` writes: pip install 'paperkiln[hf]'",
    "xllamacpp": "llama.cpp, for the benchmark and the tests: pip install 'paperkiln[test]'",
}


def examine() -> dict[str, Any]:
    """Return the report as plain values; `ok` is whether everything required is here."""
    required = {name: _version(name) for name in _REQUIRED}
    return {
        "ok": all(required.values()),
        "paperkiln": paperkiln.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor(),
        "cores": os.cpu_count(),
        "blas": _blas(),
        "required": required,
        "optional": {name: _version(name) for name in _OPTIONAL},
        "devices": {device: unavailable(device) or "ready" for device in DEVICES},
    }


def as_text(report: dict[str, Any]) -> str:
    """Return the report for a person, each missing part with its mend."""
    lines = [
        f"paperkiln {report['paperkiln']}, Python {report['python']}, {report['system']}",
        f"processor   {report['processor']}, {report['cores']} cores",
    ]
    lines += [f"BLAS        {blas}" for blas in report["blas"]] or ["BLAS        unknown"]
    for name, version in report["required"].items():
        lines.append(f"  {name:<14} {version or 'MISSING: pip install ' + name}")
    for name, version in report["optional"].items():
        lines.append(f"  {name:<14} {version or 'not installed; ' + _OPTIONAL[name]}")
    for device, state in report["devices"].items():
        lines.append(f"device {device:<10} {state}")
    return "\n".join(lines)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _blas() -> list[str]:
    """Return the BLAS libraries that numpy and scipy have loaded, with their kernels."""
    if importlib.util.find_spec("threadpoolctl") is None:
        return []
    import numpy  # noqa: F401 (loads its BLAS, so that it can be seen)
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    return [
        f"{lib['internal_api']} {lib.get('version') or ''} "
        f"({lib.get('architecture', 'unknown kernels')}, {lib['num_threads']} threads), "
        f"{os.path.basename(lib['filepath'])}"
        for lib in threadpool_info()
        if lib["user_api"] == "blas"
    ]
