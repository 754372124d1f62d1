"""Text from a decoder: the loop of read, choose, show; streamed, stopped, within the context."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import isfinite
from random import Random
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from paperkiln.errors import PaperkilnError
from paperkiln.infer.cache import window
from paperkiln.infer.decode import NumpyDecoder
from paperkiln.infer.sampling import Sampling, choose
from paperkiln.infer.stream import Piece, Result, StopReason, TextStream
from paperkiln.train.tokenizers import Tokenizer

THREADED_WEIGHTS = 32_000_000  # from here on (128 MB) a second core's memory bandwidth pays


def generate(
    model: NumpyDecoder,
    tokenizer: Tokenizer,
    prompt_ids: Sequence[int],
    *,
    max_new_tokens: int = 200,
    sampling: Sampling | None = None,
    stop: Sequence[str] = (),
    end_ids: Collection[int] | None = None,
    cache: bool = True,
    rng: Random | None = None,
) -> Iterator[Piece]:
    """Yield what follows the prompt, piece by piece; no piece holds half a character.

    An empty prompt starts a new text. Of a prompt longer than the context the end is read, and
    later the window moves on (`cache.window`). Generation ends at a token of `end_ids` (the
    tokenizer's own when None), before a `stop` string, or after `max_new_tokens`. `rng`
    goes on from an earlier call; None seeds a new one. Without `cache` every token costs a whole
    pass, and the text is the same. Raises PaperkilnError for an empty stop string.
    """
    sampling = sampling or Sampling()
    rng = rng or Random(sampling.seed)
    end_ids = frozenset(tokenizer.end_ids if end_ids is None else end_ids)
    prompt = tokenizer.begin(prompt_ids)
    new = prompt[-model.config.context_length :]
    n_prompt_tokens, n_cut = len(new), len(prompt) - len(new)
    context, stream = Context(model, cache), TextStream(tokenizer, stop)
    ids: list[int] = []
    texts: list[str] = []
    stop_reason: StopReason = "length"
    started = perf_counter()
    while len(ids) < max_new_tokens:
        logits = context.read(new)[: tokenizer.vocab_size]  # the rows beyond it are padding
        token = next_token(logits, sampling, rng, context.tokens)
        if token in end_ids:
            stop_reason = "eos"
            break
        ids.append(token)
        if text := stream.push(token):
            texts.append(text)
            paused = perf_counter()
            yield Piece(text)
            started += perf_counter() - paused  # the reader's time is not ours
        if stream.stopped:
            stop_reason = "stop"
            break
        new = [token]
    rest = stream.flush()
    speed = len(ids) / max(perf_counter() - started, 1e-9)
    text = "".join([*texts, rest])
    yield Piece(rest, Result(text, ids, stop_reason, n_prompt_tokens, n_cut, speed))


def complete(model: NumpyDecoder, tokenizer: Tokenizer, prompt: str, **options: Any) -> Result:
    """Return the whole generation after a text; options are those of `generate`."""
    with few_blas_threads(model):
        *_, last = generate(model, tokenizer, tokenizer.encode(prompt), **options)
    return last.result


def few_blas_threads(model: NumpyDecoder) -> AbstractContextManager[Any]:
    """Return a context in which BLAS runs on one thread, for a model small enough to gain by it.

    A product of one vector and a small matrix is over before the threads have met; when another
    program holds a core they wait for it at every product, and a token takes ten times as long.
    """
    if model.n_weights > THREADED_WEIGHTS:
        return nullcontext()
    return threadpool_limits(limits=1, user_api="blas")


class Context:
    """The tokens a model has read, never more than its context holds, and their cache."""

    def __init__(self, model: NumpyDecoder, cached: bool = True) -> None:
        self.model, self.cached = model, cached
        self.tokens: list[int] = []
        self._cache = model.new_cache()

    def read(self, new: list[int]) -> np.ndarray:
        """Read more tokens and return the logits (V,) for the next."""
        self.tokens += new
        context_length = self.model.config.context_length
        if self.cached and len(self.tokens) <= context_length:
            if len(new) == 1:
                return self.model.step(new[0], self._cache)
            return self.model.prefill(new, self._cache)
        self.tokens = window(self.tokens, context_length)
        self._cache.clear()
        return self.model.prefill(self.tokens, self._cache)


def next_token(
    logits: np.ndarray, sampling: Sampling, rng: Random, context: Collection[int]
) -> int:
    """Return the next token's id for logits (V,): `sampling.choose`, but fast for large V.

    numpy looks for the few candidates, and the definition chooses among them.
    Raises PaperkilnError when the logits are not finite.
    """
    best = int(logits.argmax())  # the first of equals, and any NaN before all
    if not isfinite(logits[best]):
        raise PaperkilnError("the model's logits are not finite: its weights are damaged")
    penalised = sampling.repetition_penalty != 1
    if sampling.greedy and not penalised:
        return best
    seen = set(context) if penalised else set()
    # A penalty only moves seen tokens: the best k are among the best k + |seen| and the seen.
    n_candidates = (1 if sampling.greedy else sampling.top_k) + len(seen)
    if sampling.greedy or 0 < sampling.top_k:
        ids = largest(logits, n_candidates)
        ids = np.union1d(ids, [i for i in seen if i < logits.size]).astype(np.intp) if seen else ids
    else:
        ids = np.arange(logits.size)
    return choose(logits[ids].tolist(), sampling, rng, ids=ids.tolist(), seen=seen)


def largest(logits: np.ndarray, n: int) -> np.ndarray:
    """Return the ids of the n largest logits and of all that equal the last of them."""
    if n >= logits.size:
        return np.arange(logits.size)
    threshold = np.partition(logits, logits.size - n)[logits.size - n]
    return np.flatnonzero(logits >= threshold)
