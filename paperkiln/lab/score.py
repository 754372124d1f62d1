"""Scores of a stored model, the verb `evaluate`: its validation split, a text, or the probe.

How tokens are scored is `lab/evaluate.py`, which the training loop shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from paperkiln.engine.device import pick_engine
from paperkiln.errors import PaperkilnError
from paperkiln.infer.chat import ChatSession
from paperkiln.infer.decode import NumpyDecoder
from paperkiln.infer.generate import few_blas_threads
from paperkiln.infer.load import LoadedModel, load_run
from paperkiln.infer.sampling import GREEDY
from paperkiln.lab.evaluate import evaluate, scored_bytes
from paperkiln.lab.records import read_record
from paperkiln.models.config import ROPE_FACTORS
from paperkiln.models.decoder import Decoder
from paperkiln.spec import parse_spec
from paperkiln.train.data import read_text
from paperkiln.train.run import prepare
from paperkiln.train.tinychat import PROBE, ProbeScore
from paperkiln.train.tinychat import score as score_answers
from paperkiln.train.tokenizers import Tokenizer


def score_text(model_path: str, text_path: str | None, device: str = "cpu") -> dict[str, Any]:
    """Return loss, perplexity and bits per byte of a text under the model.

    Without a text the run's own validation split is read again from its spec.
    """
    model = load_run(model_path)
    if text_path is not None:
        text, source = read_text(Path(text_path)), text_path
        tokens, n_bytes = _encoded(text, model.tokenizer)
    else:
        tokens, n_bytes, source = _validation_split(model, model_path)
    if len(tokens) < 2:
        raise PaperkilnError(f"{source}: {len(tokens)} tokens; at least 2 are needed to score one")
    engine = pick_engine(device)
    params = dict(model.params)
    factors = params.pop(ROPE_FACTORS, None)
    decoder = Decoder(
        model.config,
        engine.leaves(engine.parameters(params)),
        engine.F,
        rope_factors=None if factors is None else tuple(factors.tolist()),
    )
    result = evaluate(decoder, engine, tokens, n_bytes)
    scores = asdict(result) | {"perplexity": result.perplexity}
    return {"text": source, **scores, "notes": model.notes}


def _encoded(text: str, tokenizer: Tokenizer) -> tuple[np.ndarray, int]:
    """Return a text's tokens, and the bytes of those that are scored: all but the first."""
    ids = tokenizer.encode(text, specials=True)
    if tokenizer.begin_ids:  # of another's model: they are no text, so all of the text is scored
        return np.array([*tokenizer.begin_ids, *ids]), max(1, len(text.encode()))
    tokens = np.array(ids)
    return tokens, scored_bytes(text, tokens, tokenizer)


def _validation_split(model: LoadedModel, path: str) -> tuple[np.ndarray, int, str]:
    if "data" not in model.spec:
        raise PaperkilnError(f"{path}: no run folder, so it has no validation split; give --text")
    prepared = prepare(parse_spec(model.spec, path), model.tokenizer)
    record = read_record(Path(path))
    if record and record["corpus"]["sha256"] != prepared.tokens.corpus_sha256:
        raise PaperkilnError(f"{path}: its corpus changed since; restore it or give --text")
    return prepared.tokens.validation, prepared.tokens.validation_bytes, prepared.split


def score_probe(model_path: str) -> dict[str, Any]:
    """Return the share of held-out TinyChat questions answered in kind."""
    model = load_run(model_path)
    result = probe(model.decoder, model.tokenizer)
    return {"questions": len(PROBE), **asdict(result), "notes": model.notes}


def answer(
    model: NumpyDecoder, tokenizer: Tokenizer, questions: Sequence[str], max_tokens: int = 40
) -> list[str]:
    """Return the greedy answer to each question, every one the start of a fresh chat."""
    answers = []
    with few_blas_threads(model):
        for question in questions:
            session = ChatSession(model, tokenizer, GREEDY, max_new_tokens=max_tokens)
            answers.append("".join(session.reply(question)).strip())
    return answers


def probe(model: NumpyDecoder, tokenizer: Tokenizer) -> ProbeScore:
    """Ask every held-out question and score the answers by kind."""
    return score_answers(answer(model, tokenizer, [p.question for p in PROBE]))


def score_as_text(score: dict[str, Any]) -> str:
    """Return a score for a person."""
    if "questions" in score:
        kinds = ", ".join(f"{kind} {value:.0%}" for kind, value in score["per_kind"].items())
        return (
            f"probe: {score['overall']:.1%} of {score['questions']} held-out questions answered in "
            f"kind (shuffled answers: {score['chance']:.1%})\n  {kinds}"
        )
    return (
        f"{score['text']}: {score['n_targets']:,} tokens scored\n"
        f"loss          {score['loss']:.4f} nats per token\n"
        f"perplexity    {score['perplexity']:.2f}\n"
        f"bits per byte {score['bits_per_byte']:.4f}"
    )
