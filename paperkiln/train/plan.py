"""What a spec would do, before it does it."""

from __future__ import annotations

import json
from typing import Any

from paperkiln.output import duration
from paperkiln.spec import RunSpec
from paperkiln.train.estimate import estimate
from paperkiln.train.run import Prepared, before_training


def make_plan(spec: RunSpec) -> dict[str, Any]:
    """Return the resolved spec, its costs, and what to know before spending them.

    The vocabulary is the spec's, or the most that its tokenizer may learn: no data is read.
    """
    return {
        "spec": spec.model_dump(mode="json"),
        "folder": str(spec.folder),
        **estimate(spec),
        "notes": before_training(spec),
    }


def plan_as_text(plan: dict[str, Any]) -> str:
    """Return the plan for a person."""
    source = "measured on two cores" if plan["measured"] else "a guess for this device"
    lines = [
        json.dumps(plan["spec"], indent=2, ensure_ascii=False),
        f"run folder   {plan['folder']}",
        f"parameters   {plan['parameters']:,}",
        f"tokens       {plan['tokens']:,} ({plan['tokens_per_step']:,} a step)",
        f"arithmetic   {plan['flops'] / 1e12:,.1f} TFLOP ({plan['flops_per_token']:,} a token)",
        f"memory       about {plan['memory_bytes'] / 1e6:,.0f} MB while training",
        f"time         {duration(plan['seconds'])} at {plan['gflops']:,.0f} GFLOP/s, {source}",
    ]
    return "\n".join(lines + [f"note         {note}" for note in plan["notes"]])


def describe_data(prepared: Prepared) -> dict[str, Any]:
    """Return what a spec's data is once it is read and encoded."""
    tokens = prepared.tokens
    return {
        "split": prepared.split,
        "corpus_sha256": tokens.corpus_sha256,
        "tokenizer": prepared.tokenizer.kind,
        "vocab_size": prepared.tokenizer.vocab_size,
        "train_tokens": len(tokens.train),
        "val_tokens": len(tokens.validation),
        "val_bytes": tokens.validation_bytes,
        "bytes_per_token": round(tokens.validation_bytes / max(1, len(tokens.validation) - 1), 3),
    }
