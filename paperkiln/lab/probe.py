"""The TinyChat probe: held-out questions, and whether the answers are of the right kind."""

from __future__ import annotations

from collections.abc import Sequence

from paperkiln.infer.chat import ChatSession
from paperkiln.infer.decode import NumpyDecoder
from paperkiln.infer.generate import few_blas_threads
from paperkiln.infer.sampling import GREEDY
from paperkiln.train.tinychat import PROBE, ProbeScore, score
from paperkiln.train.tokenizers import Tokenizer


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
    return score(answer(model, tokenizer, [p.question for p in PROBE]))
