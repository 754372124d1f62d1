"""Text out of tokens, as they come; standard library only, since the browser runs it too."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from paperkiln.errors import PaperkilnError
from paperkiln.train.tokenizers import Tokenizer

StopReason = Literal["eos", "stop", "length"]


@dataclass(frozen=True)
class Result:
    """A finished generation."""

    text: str  # without the stop string
    ids: list[int]  # every new token read as text: stop string included, end token not
    stop_reason: StopReason  # the model ended it, a stop string did, or the limit
    n_prompt_tokens: int  # read, after the cut
    n_prompt_tokens_cut: int  # from the front of a prompt longer than the context
    tokens_per_second: float  # new tokens over the seconds spent here, reading the prompt included


class Piece(NamedTuple):
    """Some text, ready to show; the last piece, and only it, holds the result."""

    text: str
    result: Result | None = None


class TextStream:
    """Tokens in, text out that may be shown: whole characters, and nothing of a stop string."""

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str] = ()) -> None:
        if not all(stop):
            raise PaperkilnError("a stop string is empty: every text would end at once")
        self.stopped = False
        self._tokenizer, self._stop = tokenizer, tuple(stop)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""  # may be the beginning of a stop string

    def push(self, token: int) -> str:
        """Take a token and return the text that is now safe to show, often none."""
        text = self._decoder.decode(self._tokenizer.decode_bytes([token]))
        return self._release(text) if self._stop else text

    def flush(self) -> str:
        """Return what was held back: nothing follows that could complete it."""
        text = self._release(self._decoder.decode(b"", True))
        text, self._held = ("" if self.stopped else text + self._held), ""
        return text

    def _release(self, text: str) -> str:
        text = self._held + text
        found = [(text.find(s) + len(s), text.find(s)) for s in self._stop if s in text]
        if found:  # The first to be complete: what a reader of single characters would see.
            self.stopped, self._held = True, ""
            return text[: min(found)[1]]
        n_held = max((overlap(text, s) for s in self._stop), default=0)
        self._held = text[len(text) - n_held :]
        return text[: len(text) - n_held]


def overlap(text: str, stop: str) -> int:
    """Return the length of the longest end of `text` that `stop` begins with, but is not."""
    longest = min(len(text), len(stop) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)
