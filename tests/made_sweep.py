"""A sweep of tiny runs, and a driver that a test can kill.

python made_sweep.py SWEEP.json ATLAS SCRATCH JOBS
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

TINY: dict[str, Any] = {
    "name": "tiny",
    "question": "Does it run?",
    "base": {
        "arch": {
            "d_model": 16, "n_layers": 1, "n_heads": 2, "n_kv_heads": 1, "context_length": 32,
        },
        "data": {"tokenizer": "byte", "dialogues": 30},
        "train": {
            "steps": 4, "batch": 4, "eval_every": 2, "checkpoint_every": 2, "warmup_steps": 2,
            "shards": 1,
        },
    },
    "factors": {
        "optimizer": {
            "levels": {"adamw": {"train.optimizer": "adamw"}, "muon": {"train.optimizer": "muon"}}
        },
        "lr": {"path": "train.lr", "levels": [0.001, 0.003]},
    },
    "seeds": [1, 2],
}  # fmt: skip


def sweep_values(base: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Return the tiny sweep's values: `base` changes sections of its base, the rest its fields."""
    sections = dict(TINY["base"])
    for section, fields in (base or {}).items():
        sections[section] = sections.get(section, {}) | fields
    return TINY | {"base": sections} | changes


def main(sweep: str, atlas: str, scratch: str, jobs: str) -> None:
    from paperkiln.atlas.execute import run_sweep
    from paperkiln.atlas.sweep import read_sweep

    spec = read_sweep(Path(sweep))
    run_sweep(spec, Path(atlas) / "studies" / spec.name, Path(scratch), jobs=int(jobs))


if __name__ == "__main__":
    main(*sys.argv[1:])
