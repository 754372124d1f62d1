"""A registry of made-up findings on the factors that people ask about."""

from __future__ import annotations

from typing import Any

from paperkiln.atlas.findings import Finding

SCOPE = "0.2 M parameters, TinyChat, 300 steps, two CPU cores; nothing is known of other sizes"


def finding(name: str = "F-muon", **changes: Any) -> Finding:
    """A finding with every field in order, but for the changes."""
    analysis = changes.pop("analysis", None) or {
        "kind": "effect", "metric": changes.get("metric", "best_val"),
        "term": ":".join(changes.get("factors", ["optimizer"])),
    }  # fmt: skip
    outcome = changes.get("outcome", "lower")
    status = changes.get("status", "pending" if outcome == "unresolved" else "supported")
    values = {
        "id": name, "date": "2026-01-02", "metric": "best_val",
        "claim": "Muon ends at a lower validation loss than AdamW.",
        "effect": -0.31, "se": 0.02, "t": -15.5, "p": 1e-9, "p_holm": 4e-9, "df": 22,
        "ci": [-0.35, -0.27], "relative": -0.12, "design": "screen, 12 cells x 3 seeds",
        "runs": 36, "seeds": 3, "scope": SCOPE, "status": status, "outcome": outcome,
        "preregistration": {
            "path": "preregistrations/screen.json", "sha256": "0" * 64, "commit": "0" * 40,
        },
        "receipts": ["studies/screen/records.jsonl"], "ledger": [1, 36], "analysis": analysis,
        "check": {"outcome": outcome, "alpha": 0.05, "margin": 0.02}, "factors": ["optimizer"],
    }  # fmt: skip
    return Finding.model_validate(values | changes)


REGISTRY = [
    finding("F-muon"),
    finding(
        "F-muon-speed", metric="tokens_per_second",
        claim="Muon sees fewer tokens per second than AdamW.",
    ),
    finding(
        "F-lr", factors=["lr"], status="superseded", superseded_by="F-lr-optimizer",
        note="It depends on the optimizer.", claim="A learning rate of 0.003 beats 0.001.",
    ),
    finding(
        "F-lr-optimizer", factors=["lr", "optimizer"],
        claim="The higher learning rate gains more under Muon than under AdamW.",
    ),
    finding("F-pre-norm", factors=["norm_placement"], claim="Pre-norm ends lower than post-norm."),
    finding(
        "F-swiglu", factors=["activation"], outcome="equivalent",
        claim="SwiGLU and GELU end within 0.02 nats at equal parameters.",
    ),
    finding(
        "F-rope", factors=["positional"], outcome="unresolved",
        claim="RoPE and learned positions are not told apart.",
    ),
    finding("F-deep", factors=["depth"], outcome="higher", claim="Deeper ends higher than wider."),
    finding("F-batch", factors=["batch"], claim="A batch of 16 ends lower than a batch of 8."),
    finding(
        "F-batch-spikes", factors=["batch"], metric="spike_rate", status="retracted",
        note="An artefact of the first steps.", claim="A batch of 16 spikes more than one of 8.",
    ),
    finding(
        "F-window", factors=["attention"], metric="val@1600 - val@400", outcome="higher",
        analysis={"kind": "change", "term": "attention", "from": 400, "to": 1600},
        claim="From step 400 to 1600 the sliding window loses ground to exact attention.",
    ),
]  # fmt: skip
