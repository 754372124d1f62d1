"""Checkpoints: everything a run needs to go on bitwise, in one file that is replaced whole.

The file is safetensors: each parameter, each of the optimiser's buffers, and in the metadata
the step, the early-stopping state and the fingerprints of the spec and the data. Schedules,
batches and dropout are functions of (seed, step), so there is no other state.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from paperkiln.engine.parameters import Parameters
from paperkiln.errors import PaperkilnError
from paperkiln.formats.safetensors_io import load_tensors, save_tensors
from paperkiln.models.config import parameter_shapes
from paperkiln.spec import RunSpec

FORMAT = "paperkiln-checkpoint/1"


@dataclass
class Progress:
    """Where training stands, apart from the arrays."""

    step: int = 0
    best_val: float | None = None  # the true minimum so far
    best_step: int = 0
    reference_val: float | None = None  # what min_delta is measured from
    evals_flat: int = 0  # evaluations in a row that were no improvement
    seconds: float = 0.0  # of training, in all segments


def save_checkpoint(
    path: Path,
    spec: RunSpec,
    corpus_sha256: str,
    progress: Progress,
    parameters: Parameters,
    optimizer_state: dict[str, Any],
    engine: Any,
) -> None:
    """Replace the checkpoint at `path` by the present state, all of it or nothing."""
    flat = engine.arrays(parameters.flat)
    tensors = {f"param/{n}": parameters.shaped(flat, n) for n in parameters.shapes}
    tensors |= {f"optim/{n}": engine.arrays(buffer) for n, buffer in optimizer_state.items()}
    metadata = {
        "format": FORMAT,
        "progress": json.dumps(asdict(progress)),
        "trains": json.dumps(_what_is_trained(spec), sort_keys=True),
        "corpus_sha256": corpus_sha256,
    }
    save_tensors(path, tensors, metadata)


def load_checkpoint(
    path: Path, spec: RunSpec, corpus_sha256: str
) -> tuple[Progress, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return (progress, parameters by name, optimiser buffers by name).

    Raises PaperkilnError when the checkpoint was made by another spec or corpus: going on
    would be a run that no spec describes.
    """
    file = load_tensors(path)
    if file.metadata.get("format") != FORMAT:
        found = file.metadata.get("format", "no format")
        raise PaperkilnError(f"{path}: {found}, but this version of paperkiln reads {FORMAT}")
    try:
        progress = Progress(**json.loads(file.metadata["progress"]))
        before = json.loads(file.metadata["trains"])
        corpus_before = file.metadata["corpus_sha256"]
    except (KeyError, TypeError, ValueError):
        raise PaperkilnError(f"{path}: its metadata is damaged; start the run over") from None
    changed = _differences(before, _what_is_trained(spec))
    if changed:
        raise PaperkilnError(
            f"{path}: the spec changed since this checkpoint ({'; '.join(changed)}); "
            "restore it, or start a new run with another name"
        )
    if corpus_before != corpus_sha256:
        raise PaperkilnError(
            f"{path}: the corpus is not the one this checkpoint was trained on; restore it, "
            "or start a new run with another name"
        )
    parameters, optimizer = (
        {n.removeprefix(kind): a for n, a in file.tensors.items() if n.startswith(kind)}
        for kind in ("param/", "optim/")
    )
    if {n: a.shape for n, a in parameters.items()} != parameter_shapes(spec.arch):
        raise PaperkilnError(f"{path}: its parameters are not those of the model; it is damaged")
    return progress, parameters, optimizer


def _what_is_trained(spec: RunSpec) -> dict[str, Any]:
    """Return the part of the spec that the weights depend on.

    How often to save and what to export may change between segments, and files may move (their
    content is compared). More steps may not: the learning rate of the steps already taken
    depended on their number.
    """
    values = spec.model_dump(mode="json", include={"arch", "data", "train"})
    for free in ("checkpoint_every", "gradmap_every"):
        del values["train"][free]
    for moved in ("corpus", "validation"):
        del values["data"][moved]
    return values


def _differences(before: Any, now: Any, path: str = "") -> list[str]:
    """List `path: old -> new` for every leaf that differs."""
    if isinstance(before, dict) and isinstance(now, dict):
        return [
            line
            for key in sorted(before.keys() | now.keys())
            for line in _differences(before.get(key), now.get(key), f"{path}.{key}".lstrip("."))
        ]
    return [] if before == now else [f"{path}: {json.dumps(before)} -> {json.dumps(now)}"]
