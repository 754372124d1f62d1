"""Evaluation: loss, perplexity and bits per byte of a whole split, every target scored once.

The training loop scores its validation split with this; `lab/score.py` scores stored models.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from paperkiln.models.decoder import Decoder
from paperkiln.train.tokenizers import Tokenizer

# Of one pass, so that its activations fit: Llama 3.2's context has 131,072, which take tens of GB.
MOST_TOKENS = 1 << 14


@dataclass(frozen=True)
class Evaluation:
    """The score of a text under a model."""

    loss: float  # mean nats per token
    n_targets: int  # tokens scored: all but the first
    n_bytes: int  # UTF-8 bytes of the scored tokens
    bits_per_byte: float

    @property
    def perplexity(self) -> float:
        """e to the mean nats per token; not comparable between tokenizers."""
        return math.exp(min(self.loss, 700.0))


def blocks(tokens: np.ndarray, context_length: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Cut N tokens into (ids, targets) rows, N - 1 targets in all, each in exactly one row.

    Targets 1 .. N-1 fall into consecutive rows of context_length (the last may be shorter); a
    row's inputs are the same span shifted left by one, so target j of a row sees j + 1 tokens.
    """
    return [
        (tokens[start : start + context_length][: len(tokens) - 1 - start].astype(np.int64),
         tokens[start + 1 : start + 1 + context_length].astype(np.int64))
        for start in range(0, len(tokens) - 1, context_length)
    ]  # fmt: skip


def evaluate(
    model: Decoder, engine: Any, tokens: np.ndarray, n_bytes: int, batch: int = 16
) -> Evaluation:
    """Score tokens (N,), N >= 2, whose targets spell `n_bytes` bytes.

    Rows, of a context or of MOST_TOKENS where that is less, go through the model as many at a time
    as make `batch` or MOST_TOKENS; sums are float64 and in order.
    """
    length = min(model.config.context_length, MOST_TOKENS)
    batch = min(batch, MOST_TOKENS // length)
    rows = blocks(tokens, length)
    ragged = [rows.pop()] if len(rows[-1][0]) < length else []
    groups = [rows[i : i + batch] for i in range(0, len(rows), batch)] + [[r] for r in ragged]

    def nats(group: list[tuple[np.ndarray, np.ndarray]]) -> float:
        ids, targets = (np.stack(part) for part in zip(*group, strict=True))
        with model.F.no_grad():
            # The sum over a group, in float32, has a group's rounding; the mean is per target.
            mean = model.loss(ids, targets).item()
        return mean * targets.size

    n_targets = len(tokens) - 1
    total = math.fsum(engine.map(nats, groups))
    return Evaluation(total / n_targets, n_targets, n_bytes, total / (math.log(2) * n_bytes))


def scored_bytes(text: str, tokens: np.ndarray, tokenizer: Tokenizer) -> int:
    """Return how many UTF-8 bytes of `text` the targets (all tokens but the first) stand for.

    Counted in the text: an unknown word costs its own bytes, not those of `<unk>`.
    """
    first = tokenizer.decode_bytes(tokens[:1].tolist(), keep_specials=True)
    return max(1, len(text.encode()) - len(first))
