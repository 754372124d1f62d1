"""Evaluation: every target once, the three numbers by hand, and the best loss beside the stop."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperkiln.engine import ops
from paperkiln.engine.device import pick_engine
from paperkiln.lab.evaluate import MOST_TOKENS, Evaluation, blocks, evaluate, scored_bytes
from paperkiln.lab.score import score_text
from paperkiln.models.config import ModelConfig
from paperkiln.models.decoder import Decoder
from paperkiln.models.init import init_parameters
from paperkiln.spec import EarlyStopping
from paperkiln.train.events import Eval, read_events
from paperkiln.train.loop import Progress, note_evaluation
from paperkiln.train.tokenizers import byte_tokenizer

CONFIG = ModelConfig(d_model=16, n_layers=1, n_heads=2, vocab_size=300, context_length=4)


@pytest.fixture(scope="module")
def model() -> Decoder:
    parameters = init_parameters(CONFIG.model_copy(update={"init_std": 0.5}), 0)
    return Decoder(CONFIG, parameters, pick_engine("cpu").F)


def nats(model: Decoder, context: list[int], target: int) -> float:
    """Return -log p(target | context), from the logits, in float64."""
    logits = np.asarray(model.logits(np.array([context])).data[0, -1], np.float64)
    return math.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[target]


def test_eleven_tokens_in_a_context_of_four_are_ten_targets(model: Decoder) -> None:
    tokens = np.array([5, 9, 250, 3, 17, 5, 5, 120, 44, 9, 61], np.uint16)
    expected = 0.0
    for target in range(1, 11):
        first = (target - 1) // 4 * 4  # where the row of this target begins
        expected += nats(model, tokens[first:target].astype(int).tolist(), int(tokens[target]))
    result = evaluate(model, pick_engine("cpu"), tokens, n_bytes=37)
    assert result.n_targets == 10
    assert result.loss == pytest.approx(expected / 10, rel=1e-6)
    assert result.bits_per_byte == pytest.approx(expected / math.log(2) / 37, rel=1e-6)
    assert result.perplexity == pytest.approx(math.exp(expected / 10), rel=1e-5)


@pytest.mark.parametrize("context", [1 << 17, 6000, 64])
def test_no_pass_is_larger_than_memory(context: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another's model may have a context of 131,072 tokens: too many for one pass."""
    model = Decoder(CONFIG.model_copy(update={"context_length": context}), {}, ops)
    seen: list[tuple[int, ...]] = []
    monkeypatch.setattr(model, "loss", lambda ids, _: seen.append(ids.shape) or np.float32(2))
    result = evaluate(model, pick_engine("cpu"), np.zeros(40_001, np.uint16), n_bytes=1)
    assert (result.loss, result.n_targets) == (2, 40_000)
    assert sum(rows * length for rows, length in seen) == 40_000
    assert max(rows * length for rows, length in seen) <= MOST_TOKENS
    assert max(length for _, length in seen) == min(context, MOST_TOKENS)


@given(n=st.integers(2, 60), T=st.integers(1, 9))
def test_every_target_is_in_exactly_one_row(n: int, T: int) -> None:
    rows = blocks(np.arange(n, dtype=np.uint16), T)
    targets = np.concatenate([row[1] for row in rows])
    assert targets.tolist() == list(range(1, n))
    for ids, row_targets in rows:
        assert len(ids) == len(row_targets) <= T
        assert (row_targets == ids + 1).all()
    assert all(len(ids) == T for ids, _ in rows[:-1])


@pytest.mark.parametrize("n", [2, 4, 5, 6, 9, 64, 65, 66, 129])
def test_grouping_does_not_matter(model: Decoder, n: int) -> None:
    tokens = np.random.default_rng(n).integers(0, 300, n)
    results = [evaluate(model, pick_engine("cpu"), tokens, 10, batch) for batch in (1, 3, 16)]
    assert {r.n_targets for r in results} == {n - 1}
    assert np.ptp([r.loss for r in results]) < 1e-6


def test_three_numbers_by_hand() -> None:
    # 3 targets that spell 4 bytes, each predicted with probability 1/8: 3 bits each.
    result = Evaluation(math.log(8), 3, 4, 3 * 3 / 4)
    assert result.perplexity == pytest.approx(8)
    tokens = np.array(byte_tokenizer().encode("aż<|user|>", specials=True))
    assert scored_bytes("aż<|user|>", tokens, byte_tokenizer()) == 2 + 8
    assert Evaluation(1e9, 1, 1, 1.0).perplexity < math.inf


def uniform(model: Decoder) -> Decoder:
    zeros = {name: np.zeros_like(t.data) for name, t in model.parameters.items()}
    return Decoder(CONFIG, zeros, model.F)


def test_a_model_that_knows_nothing_costs_the_logarithm_of_the_vocabulary(model: Decoder) -> None:
    tokens = np.array(byte_tokenizer().encode("twenty bytes of text"))
    result = evaluate(uniform(model), pick_engine("cpu"), tokens, 19)
    assert result.loss == pytest.approx(math.log(300), rel=1e-6)
    assert result.perplexity == pytest.approx(300, rel=1e-4)
    assert result.bits_per_byte == pytest.approx(math.log2(300), rel=1e-6), "one byte a token"


@pytest.mark.parametrize("device", ["cpu", "torch-cpu"])
def test_a_stored_run_scores_what_its_last_evaluation_said(tiny_run: Path, device: str) -> None:
    if device != "cpu":
        pytest.importorskip("torch")
    evals = [e for e in read_events(tiny_run / "events.jsonl") if isinstance(e, Eval)]
    best = min(evals, key=lambda e: e.val_loss)
    score = score_text(str(tiny_run), None, device)
    assert score["loss"] == pytest.approx(best.val_loss, rel=1e-6)
    assert score["bits_per_byte"] == pytest.approx(best.bits_per_byte, rel=1e-6)
    assert score["perplexity"] == pytest.approx(math.exp(best.val_loss), rel=1e-5)


NOTED = [  # losses, min_delta; which were the lowest so far, evals_flat after each
    ([3, 2, 1], 0, [1, 1, 1], [0, 0, 0]),
    ([3, 3, 3], 0, [1, 0, 0], [0, 1, 2]),
    ([3, 4, 2, 5], 0, [1, 0, 1, 0], [0, 1, 0, 1]),
    # Each fall is below min_delta, so none resets the wait, yet each is the best so far.
    ([3.0, 2.95, 2.91, 2.90], 0.2, [1, 1, 1, 1], [0, 1, 2, 3]),
    # A slow fall counts once it adds up since the last one that counted.
    ([3.0, 2.9, 2.85, 2.7, 2.65], 0.25, [1, 1, 1, 1, 1], [0, 1, 2, 0, 1]),
    ([3.0, 2.75], 0.25, [1, 1], [0, 1]),  # exactly min_delta is not more than it
]


@pytest.mark.parametrize(("losses", "min_delta", "lowest", "flat"), NOTED)
def test_best_val_is_the_true_minimum_while_min_delta_waits(
    losses: list[float], min_delta: float, lowest: list[int], flat: list[int]
) -> None:
    progress, stopping = Progress(), EarlyStopping(patience=99, min_delta=min_delta)
    seen = []
    for i, loss in enumerate(losses):
        progress.step = 10 * (i + 1)
        seen.append((int(note_evaluation(progress, loss, stopping)), progress.evals_flat))
        assert progress.best_val == min(losses[: i + 1])
        assert progress.best_step == 10 * (losses.index(progress.best_val) + 1)
    assert seen == list(zip(lowest, flat, strict=True))
