"""The card of a trained model: what it is, in words a stranger can check."""

from __future__ import annotations

import math
from typing import Any


def model_card(record: dict[str, Any], n_parameters: int, gguf_note: str = "") -> str:
    """Return card.md: the model, its data, its score and its limits, all from the record.

    `gguf_note` says where model.gguf opens, if there is one.
    """
    spec, metrics, arch = record["spec"], record["metrics"], record["spec"]["arch"]
    attention = "exact"
    if arch["attention"] == "swa":
        attention = f"sliding window of {arch['window']} with {arch['sinks']} sinks"
    train = spec["train"]
    tokens_seen = metrics["final_step"] * train["batch"] * train["accum"] * arch["context_length"]
    heads = f"{arch['n_heads']} query, {arch['n_kv_heads']} key/value, {arch['head_dim']} wide"
    rows = {
        "parameters": f"{n_parameters:,}",
        "layers, width, feed-forward": f"{arch['n_layers']}, {arch['d_model']}, {arch['d_ff']}",
        "heads": heads,
        "norm": f"{arch['norm']}, {arch['norm_placement']}",
        "activation, positions": f"{arch['activation']}, {arch['positional']}",
        "attention": attention,
        "vocabulary, context": f"{arch['vocab_size']:,}, {arch['context_length']:,} tokens",
        "held out": record["corpus"]["split"],
        "trained on": f"{tokens_seen:,} tokens in {metrics['final_step']:,} steps "
        f"({train['optimizer']}, peak lr {train['lr']:g}, seed {train['seed']})",
        "validation loss": f"{metrics['best_val']:.4f} nats per token "
        f"(perplexity {math.exp(min(700, metrics['best_val'])):.2f}) at step "
        f"{metrics['best_step']:,}",
        "time": f"{metrics['wall_seconds']:.0f} s, {record['engine']}",
        "fingerprint": f"`{record['fingerprint']}`",
    }
    elsewhere = f" {gguf_note}" if gguf_note else ""
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
    return f"""# {spec["name"]}

A decoder-only language model trained from scratch with paperkiln {record["paperkiln"]}.

| | |
| --- | --- |
{table}

Chat with it: `python -m paperkiln chat FOLDER`.{elsewhere}

It is small and knows only the text it was trained on: use it to study training, not for facts.
Everything above is computed from `record.json`; `spec.json` trains it again.
"""
