"""The chat page's side in Python: a conversation in, pieces of a reply out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Protocol

from paperkiln.errors import PaperkilnError
from paperkiln.formats.gguf_tokenizer import why_none
from paperkiln.infer.chat_template import Message, reply_ends, template_of
from paperkiln.infer.sampling import Sampling
from paperkiln.infer.stream import Piece
from paperkiln.infer.turns import describe, fit_history, room_for_prompt, trimmed
from paperkiln.train.tokenizers import Tokenizer

Generate = Callable[..., Iterator[Piece]]
_LONGEST = 1 << 20  # new tokens of one reply


class Model(Protocol):
    """What a reply needs of a model: `infer.ember.Ember` has it."""

    metadata: dict[str, Any]
    tokenizer: Tokenizer | None
    shape: Any


class Chat:
    """A model that can be talked to. One reply at a time."""

    def __init__(self, model: Model, generate: Generate, name: str = "model") -> None:
        """Raises PaperkilnError when the file has no tokenizer that we know."""
        if model.tokenizer is None:
            raise PaperkilnError(f"{name}: {why_none(model.metadata)}")
        self.model, self.generate, self.name = model, generate, name
        self._pieces: Iterator[Piece] | None = None
        self.template = template_of(model.tokenizer)

    def about(self) -> dict[str, Any]:
        """Return what the page tells of the model."""
        m, tokenizer = self.model, self.model.tokenizer
        return {
            "name": str(m.metadata.get("general.name") or self.name)[:200],
            "architecture": str(m.metadata.get("general.architecture", "")),
            "context_length": m.shape.context_length,
            "vocab_size": tokenizer.vocab_size,
            "tokenizer": tokenizer.kind,
            "talks": self.template is not None,
            "template": self.template.name if self.template else "",
        }

    def begin(self, messages: Sequence[Message], settings: dict[str, Any]) -> dict[str, Any]:
        """Start a reply to the last message; return what to know about how it was read.

        Raises PaperkilnError for settings out of their range.
        """
        self.stop()
        limit = settings.get("length", 256)
        if not isinstance(limit, int) or not 1 <= limit <= _LONGEST:
            raise PaperkilnError(f"length = {limit}: should be a whole number from 1")
        sampling = Sampling(
            temperature=_number(settings, "temperature", 0.8),
            top_k=int(_number(settings, "top_k", 40)),
            top_p=_number(settings, "top_p", 1.0),
            repetition_penalty=_number(settings, "repetition_penalty", 1.0),
            seed=settings.get("seed"),
        )
        *history, (_, text) = messages
        context_length = self.model.shape.context_length
        room = room_for_prompt(context_length, limit)
        tokenizer = self.model.tokenizer
        system = str(settings.get("system") or "").strip()
        if self.template:
            ids, dropped, n_cut = fit_history(tokenizer, history, text, room, system)
            limit = max(1, min(limit, context_length - len(ids)))
            end_ids, stop = reply_ends(tokenizer)
        elif system:
            raise PaperkilnError(
                "this model was made for no chat: it takes no system message; leave it empty"
            )
        else:  # a plain language model goes on with the text as it stands
            ids = tokenizer.encode("".join(text for _, text in messages))
            dropped, n_cut, end_ids, stop = 0, max(0, len(ids) - room), set(tokenizer.end_ids), []
            ids = ids[n_cut:]
        pieces = self.generate(
            self.model, ids, max_new_tokens=limit, sampling=sampling, end_ids=end_ids, stop=stop,
            rng=Random(sampling.seed),
        )  # fmt: skip
        self._pieces = trimmed(tokenizer, pieces)
        note = describe(tokenizer, text, n_cut, is_first=not history)
        return {"note": note, "dropped": dropped, "prompt_tokens": len(ids)}

    def step(self) -> dict[str, Any]:
        """Return the next piece of text, with the figures of the reply when it is the last.

        Comes back about 40 times a second: the worker looks for a Stop in between.
        """
        piece = next(self._pieces, None) if self._pieces else None
        if piece is None:
            return {"text": "", "done": {"reason": "stopped", "tokens": 0, "tokens_per_second": 0}}
        answer: dict[str, Any] = {"text": piece.text}
        if result := piece.result:
            self._pieces = None
            answer["done"] = {
                "reason": result.stop_reason,
                "tokens": len(result.ids),
                "tokens_per_second": result.tokens_per_second,
            }
        return answer

    def stop(self) -> None:
        """Leave the reply where it is."""
        if self._pieces:
            self._pieces.close()
        self._pieces = None


def _number(settings: dict[str, Any], name: str, default: float) -> float:
    value = settings.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PaperkilnError(f"{name} = {value!r}: should be a number")
    return value


def open_ember(ember: Any, name: str) -> Chat:
    """Return a chat with the model whose file lies in the engine of web/engine/ember.js."""
    from paperkiln.infer.ember import Ember, PageMachine, generate

    return Chat(Ember(PageMachine(ember), ember.file, ember.size, where=name), generate, name)
