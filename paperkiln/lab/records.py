"""The record of a run: what was run, on what, and what came out."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from pathlib import Path
from typing import Any

import paperkiln
from paperkiln.errors import PaperkilnError

FORMAT = "paperkiln-record/1"
_PACKAGES = ("numpy", "scipy", "tokenizers", "torch")
_MEND = "move it away, or finish the run again with --resume"


def make_record(
    spec: dict[str, Any],
    corpus: dict[str, Any],
    model_fingerprint: str,
    metrics: dict[str, Any],
    engine: str,
) -> dict[str, Any]:
    """Return the record: spec, data hashes, versions, machine, fingerprint and metrics."""
    return {
        "format": FORMAT,
        "paperkiln": paperkiln.__version__,
        "spec": spec,
        "seed": spec["train"]["seed"],
        "corpus": corpus,
        "engine": engine,
        "packages": package_versions(),
        "machine": machine(),
        "fingerprint": model_fingerprint,
        "metrics": metrics,
    }


def read_record(folder: Path) -> dict[str, Any] | None:
    """Return the record in a run folder, or None where there is none.

    Raises PaperkilnError for a file that is no record of ours.
    """
    path = folder / "record.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise PaperkilnError(f"{path}: cannot be read ({error}); {_MEND}") from None
    sections = isinstance(record, dict) and all(
        isinstance(record.get(name), dict) for name in ("spec", "corpus", "metrics")
    )
    if not sections or not isinstance(record["corpus"].get("sha256"), str):
        raise PaperkilnError(f"{path}: not the record of a run; {_MEND}")
    return record


def package_versions() -> dict[str, str]:
    """Return the versions of the installed packages that a result depends on."""
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def machine() -> dict[str, Any]:
    """Return what kind of machine this is; no host name."""
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "processor": processor(),
        "cores": os.cpu_count(),
    }


def processor() -> str:
    """Return the processor's model name, or what the platform module knows."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
