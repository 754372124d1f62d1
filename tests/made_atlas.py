"""A small atlas made from a seed: three studies and findings of every status."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from paperkiln.atlas.analyze import Estimate, decide, estimate_family

Row = dict[str, Any]
Cell = dict[str, str]

STEPS = (100, 200, 300, 400)
_PB12 = "++-+++---+-"  # the first row of Plackett and Burman's design of 12 runs
_FACTORS = {
    "optimizer": ("adamw", "muon"),
    "lr": ("0.001", "0.003"),
    "norm": ("pre", "post"),
    "activation": ("gelu", "swiglu"),
    "position": ("learned", "rope"),
    "shape": ("deep", "wide"),
    "batch": ("8", "16"),
}
_PULL = {"optimizer": -0.15, "lr": -0.06, "norm": 0.04}  # what a high level adds to the loss


def screen_cells() -> list[Cell]:
    """Seven factors in the 12 runs of Plackett and Burman."""
    rows = [_PB12[-i:] + _PB12[:-i] for i in range(11)] + ["-" * 11]
    return [
        {name: levels[sign == "+"] for (name, levels), sign in zip(_FACTORS.items(), row)}  # noqa: B905
        for row in rows
    ]


def factorial_cells() -> list[Cell]:
    """The 2^4 of the first four factors."""
    names = list(_FACTORS)[:4]
    return [
        dict(zip(names, labels, strict=True))
        for labels in itertools.product(*(_FACTORS[name] for name in names))
    ]


def rows(study: str, cells: list[Cell], seeds: int, pull: dict[str, float]) -> list[Row]:
    """Rows of every cell with every seed; a seed's luck is shared by all cells."""
    chance = random.Random(study)
    luck = [chance.gauss(0, 0.05) for _ in range(seeds)]
    made = []
    for index, cell in enumerate(cells):
        shift = sum(pull.get(name, 0) * (_high(name, label)) for name, label in cell.items())
        if study == "factorial" and (cell["optimizer"], cell["lr"]) == ("muon", "0.003"):
            shift -= 0.1  # an interaction
        for seed in range(1, seeds + 1):
            made.append(_row(study, index, cell, seed, 2.5 + shift + luck[seed - 1], chance))
    return made


def _high(name: str, label: str) -> int:
    return _FACTORS.get(name, ("exact", "window")).index(label)


def _row(study: str, index: int, cell: Cell, seed: int, level: float, chance: random.Random) -> Row:
    # A window learns faster and ends higher, so that the curves of the pair cross.
    fast = 0.12 if cell.get("attention") == "window" else 0.0
    val = [
        [step, round(level + 60 / step * (0.3 - fast) + chance.gauss(0, 0.006), 7)]
        for step in STEPS
    ]
    losses = [loss for _, loss in val]
    run = f"cell-{index:02}-seed-{seed}"
    row = {"study": study, "run": run, "seed": seed, "complete": True}
    row |= {f"factor.{name}": label for name, label in cell.items()}
    row |= {
        "parameters": 200_000, "flops_per_token": 1_200_000, "tokens": 409_600,
        "best_val": min(losses), "final_val": losses[-1],
        "best_step": STEPS[losses.index(min(losses))],
        "final_train_loss": round(losses[-1] - 0.05 + chance.gauss(0, 0.01), 7),
        "loss_auc": round(0.6 + chance.gauss(0, 0.01), 7), "half_gap_step": 30 + seed,
        "loss_tail_std": 0.02, "spikes": chance.randrange(3), "spike_rate": 2.5,
        "grad_norm_mean": 0.8, "grad_norm_max": 2.5, "init_transient": 1.7,
        "tokens_per_second": 30_000 + chance.randrange(2000), "wall_seconds": 14.0,
        "energy_joules": None, "val": val,
    }  # fmt: skip
    return row | {"sha256": hashlib.sha256(run.encode()).hexdigest()}


STUDIES = {
    "screen": (screen_cells(), 3, _PULL, "Which of seven choices move the loss?"),
    "factorial": (factorial_cells(), 3, _PULL, "Do the survivors act alone or together?"),
    "window": (
        [{"attention": "exact"}, {"attention": "window"}], 10, {"attention": 0.03},
        "Where does exact attention overtake a window?",
    ),
}  # fmt: skip


def make_atlas(folder: Path) -> Path:
    """Write the atlas into a folder and return it."""
    for name, (cells, seeds, pull, question) in STUDIES.items():
        study = folder / "studies" / name
        study.mkdir(parents=True)
        _write_lines(study / "rows.jsonl", rows(name, cells, seeds, pull))
        _write_lines(study / "records.jsonl", [{"study": name, "note": "stands in for records"}])
        (study / "sweep.json").write_text(_json(_sweep(name, cells, seeds, question)))
        plan = folder / "preregistrations" / f"{name}.json"
        plan.parent.mkdir(exist_ok=True)
        plan.write_text(_json(_preregistration(name)))
    _write_lines(folder / "ledger.jsonl", [{"seq": seq, "study": "screen"} for seq in range(94)])
    _write_lines(folder / "findings.jsonl", list(findings(folder)))
    return folder


def _sweep(name: str, cells: list[Cell], seeds: int, question: str) -> dict[str, Any]:
    labels = {key: list(dict.fromkeys(sorted(c[key] for c in cells))) for key in cells[0]}
    factors = {
        key: {"levels": {label: {f"train.{key}": label} for label in _FACTORS.get(key, found)}}
        for key, found in labels.items()
    }
    kind = "plackett-burman" if name == "screen" else "factorial"
    return {"version": 1, "name": name, "question": question, "base": {}, "factors": factors,
            "design": {"kind": kind}, "seeds": list(range(1, seeds + 1))}  # fmt: skip


_HYPOTHESES: dict[str, list[tuple[str, dict[str, Any], float | None]]] = {
    "screen": [
        ("F-optimizer", {"kind": "effect", "metric": "best_val", "term": "optimizer"}, None),
        ("F-lr", {"kind": "effect", "metric": "best_val", "term": "lr"}, None),
        ("F-batch", {"kind": "effect", "metric": "best_val", "term": "batch"}, 0.02),
        ("F-shape", {"kind": "effect", "metric": "best_val", "term": "shape"}, None),
    ],
    "factorial": [
        ("F-lr-with-muon", {"kind": "effect", "metric": "best_val", "term": "lr:optimizer"}, None),
        ("F-muon-again", {"kind": "effect", "metric": "best_val", "term": "optimizer"}, None),
    ],
    "window": [
        ("F-window-turns", {"kind": "change", "term": "attention", "from": 100, "to": 400}, None),
    ],
}  # fmt: skip


def _preregistration(study: str) -> dict[str, Any]:
    hypotheses = [
        {"id": key, "analysis": analysis, "margin": margin, "expected": "lower",
         "claims": {outcome: _claim(key, outcome)
                    for outcome in ("lower", "higher", "equivalent", "unresolved")
                    if margin or outcome != "equivalent"},
         "scope": "0.2 M parameters, 400 steps"}
        for key, analysis, margin in _HYPOTHESES[study]
    ]  # fmt: skip
    return {"id": study, "date": "2026-01-02", "study": study, "sweep_sha256": "0" * 64,
            "why": "Others say so; does it hold at this size?", "alpha": 0.05,
            "exclusions": "Runs that fail are run again once.",
            "hypotheses": hypotheses}  # fmt: skip


def _claim(key: str, outcome: str) -> str:
    said = {"lower": "lowers", "higher": "raises", "equivalent": "does not move",
            "unresolved": "may or may not move"}[outcome]  # fmt: skip
    return f"{key.removeprefix('F-').replace('-', ' ').capitalize()} {said} the loss & <all> else."


def findings(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield every line of the registry: first all as they came, then what became of them."""
    made = {}
    for study, hypotheses in _HYPOTHESES.items():
        cells, seeds, pull, _ = STUDIES[study]
        order = {name: list(labels) for name, labels in _FACTORS.items() if name in cells[0]}
        found = estimate_family(
            rows(study, cells, seeds, pull), [analysis for _, analysis, _ in hypotheses], order
        )
        for (key, analysis, margin), one in zip(hypotheses, found, strict=True):
            made[key] = _finding(folder, study, key, analysis, margin, one)
            yield made[key]

    def later(key: str, why: str, **changes: Any) -> dict[str, Any]:
        event = {"date": "2026-01-05", "status": changes["status"], "note": why}
        return made[key] | {"history": [*made[key]["history"], event]} | changes

    yield later("F-optimizer", status="replicated", why="fresh seeds gave the same",
                replicated_by=["studies/factorial/records.jsonl"])  # fmt: skip
    yield later("F-lr", status="superseded", superseded_by="F-lr-with-muon",
                note="It depends on the optimizer.", why="an interaction was found")  # fmt: skip
    yield later("F-window-turns", status="retracted", note="The seeds were not paired.",
                why="the seeds were not paired")  # fmt: skip


def _finding(
    folder: Path,
    study: str,
    key: str,
    analysis: dict[str, Any],
    margin: float | None,
    one: Estimate,
) -> dict[str, Any]:
    outcome = decide(one, 0.05, margin)
    status = "pending" if outcome == "unresolved" else "supported"
    plan = folder / "preregistrations" / f"{study}.json"
    numbers = ("metric", "effect", "se", "t", "p", "p_holm", "df", "relative")
    return {name: getattr(one, name) for name in numbers} | {
        "id": key, "date": "2026-01-03", "claim": _claim(key, outcome), "ci": list(one.ci),
        "design": f"made of {len(STUDIES[study][0])} cells x {one.n_seeds} seeds; {one.method}",
        "runs": one.n_runs, "seeds": one.n_seeds,
        "scope": "0.2 M parameters, 400 steps, two cores", "status": status, "outcome": outcome,
        "preregistration": {
            "path": f"preregistrations/{study}.json",
            "sha256": hashlib.sha256(plan.read_bytes()).hexdigest(), "commit": "0123abc" + "0" * 33,
        },
        "receipts": [f"studies/{study}/records.jsonl", f"studies/{study}/rows.jsonl"],
        "ledger": [0, 35], "analysis": analysis,
        "check": {"outcome": outcome, "alpha": 0.05, "margin": margin},
        "factors": analysis["term"].split(":"), "note": "", "superseded_by": None,
        "replicates": None, "replicated_by": [],
        "history": [{"date": "2026-01-03", "status": status, "note": "registered"}],
    }  # fmt: skip


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _write_lines(path: Path, lines: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(line, sort_keys=True, separators=(",", ":")) + "\n" for line in lines)
    path.write_text(text, encoding="utf-8")
