"""A pre-registered study in a git repository, with records made from a seed instead of runs."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

from paperkiln.atlas.cells import resolve, runs_of
from paperkiln.atlas.findings import read_lines
from paperkiln.atlas.preregister import preregister, study_sweep
from paperkiln.atlas.records import append_record
from paperkiln.atlas.rows import write_rows
from paperkiln.lab.records import make_record

DATE = "2026-01-02"
PULL = {"optimizer": -0.3, "lr": -0.1, "batch": 0.0}  # of the high level on the loss
NOISE = 0.01

SWEEP: dict[str, Any] = {
    "version": 1, "name": "trio", "question": "Which of three choices move the loss?",
    "base": {
        "arch": {"d_model": 16, "n_layers": 1, "n_heads": 2, "context_length": 16},
        "data": {"tokenizer": "byte"},
        "train": {"steps": 20, "batch": 4, "eval_every": 5, "warmup_steps": 2},
    },
    "factors": {
        "optimizer": {"path": "train.optimizer", "levels": ["adamw", "muon"]},
        "lr": {"path": "train.lr", "levels": [0.001, 0.003]},
        "batch": {"path": "train.weight_decay", "levels": [0.1, 0.2]},
    },
    "design": {"kind": "factorial"},
    "seeds": [1, 2, 3],
}  # fmt: skip


def hypothesis(name: str, analysis: dict[str, Any], margin: float | None = 0.02) -> dict[str, Any]:
    """A hypothesis whose claims are told apart by their outcome."""
    outcomes = ("lower", "higher", "equivalent", "unresolved")
    return {
        "id": name, "analysis": analysis, "margin": margin, "expected": "lower",
        "claims": {outcome: f"{name} comes out {outcome}." for outcome in outcomes},
        "scope": "16 wide, 20 steps",
    }  # fmt: skip


HYPOTHESES = [
    hypothesis("F-muon", {"kind": "effect", "metric": "best_val", "term": "optimizer"}),
    hypothesis("F-batch", {"kind": "effect", "metric": "best_val", "term": "batch"}),
    hypothesis("F-pair", {"kind": "effect", "metric": "best_val", "term": "lr:optimizer"}, None),
    hypothesis(
        "F-lr-muon",
        {"kind": "simple", "metric": "best_val", "term": "lr", "given": {"optimizer": "muon"}},
    ),
    hypothesis("F-turn", {"kind": "change", "term": "optimizer", "from": 5, "to": 20}),
]
DRAFT: dict[str, Any] = {
    "id": "trio", "sweep": "trio.sweep.json", "why": "To see.", "alpha": 0.05,
    "exclusions": "Runs that diverge are left out.", "hypotheses": HYPOTHESES,
}  # fmt: skip


def git(folder: Path, *words: str) -> str:
    """Run git in a folder, as somebody, whatever the machine's settings are."""
    who = {f"GIT_{role}_{what}": f"{what}@x" for role in ("AUTHOR", "COMMITTER")
           for what in ("NAME", "EMAIL")}  # fmt: skip
    clean = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    done = subprocess.run(
        ["git", "-C", str(folder), "-c", "init.defaultBranch=main", "-c", "commit.gpgSign=false",
         "-c", "protocol.file.allow=always", *words],
        env=clean | who | {"GIT_CONFIG_GLOBAL": os.devnull}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def commit(atlas: Path, note: str = "step") -> str:
    """Commit everything and return the commit."""
    git(atlas, "add", "-A")
    git(atlas, "commit", "-q", "--allow-empty", "-m", note)
    return git(atlas, "rev-parse", "HEAD").strip()


def draft(folder: Path, sweep: dict[str, Any] = SWEEP, **changes: Any) -> Path:
    """Write a sweep and the draft of a pre-registration of it; return the draft."""
    (folder / "trio.sweep.json").write_text(json.dumps(sweep))
    path = folder / "draft.json"
    path.write_text(json.dumps(DRAFT | changes))
    return path


def pledged_atlas(folder: Path, **changes: Any) -> Path:
    """An atlas whose pre-registration is committed and that has no run yet."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q")
    (folder / ".gitignore").write_text(".lock\n")
    atlas = folder / "atlas"
    preregister(draft(folder, **changes), atlas, DATE)
    commit(folder, "pre-register")
    return atlas


def run_made(
    atlas: Path, name: str = "trio", pull: dict[str, float] = PULL, noise: float = NOISE,
    failed: int = 0, luck: int = 0,
) -> None:  # fmt: skip
    """Record every run of a study, its losses drawn from the seed."""
    study = atlas / "studies" / name
    sweep = study_sweep(study)
    for number, run in enumerate(runs_of(sweep, resolve(sweep))):
        seed = run.spec.train.seed
        shared = random.Random(f"{seed}-{luck}").gauss(0, 0.05)
        own = random.Random(f"{run.name}-{luck}").gauss(0, noise)
        labels = {name: list(factor.levels) for name, factor in sweep.factors.items()}
        high = {n: labels[n].index(label) for n, label in run.cell.levels.items()}
        level = 2.5 + shared + own + sum(pull.get(n, 0) * x for n, x in high.items())
        append_record(atlas, record(run, name, level, number >= failed))
    write_rows(study)


def record(run: Any, study: str, level: float, complete: bool = True) -> dict[str, Any]:
    """The record of a run that ended near a loss of `level`."""
    steps = run.spec.train.steps
    slow = 1.5 if run.cell.levels.get("optimizer") == "muon" else 1.0
    loss = [round(level + 3 * slow * 0.8**step, 7) for step in range(1, steps + 1)]
    spec = run.spec.model_dump(mode="json")
    made = make_record(spec, {"sha256": "0" * 64, "split": "x"}, "x:0", {}, "cpu")
    arch = spec["arch"]
    return made | {
        "study": study, "run": run.name, "cell": run.cell.levels,
        "status": "complete" if complete else "failed",
        "structure": {"arch": arch, "parameters": 9000, "flops_per_token": 54000, "tokens": 1280},
        "curve": {
            "loss": loss, "grad_norm": [1.0] * steps,
            "val": [[step, loss[step - 1], loss[step - 1]] for step in range(5, steps + 1, 5)],
        },
        "tokens_per_second": 1000.0, "wall_seconds": 2.0, "energy_joules": None,
    }  # fmt: skip


def texts(atlas: Path) -> list[str]:
    """The claims in the registry, every line."""
    return [finding.claim for finding in read_lines(atlas)]
