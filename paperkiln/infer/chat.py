"""A conversation: history that fits the context, and the loop in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from random import Random

from paperkiln.infer.chat_template import Message, reply_ends
from paperkiln.infer.decode import NumpyDecoder
from paperkiln.infer.generate import Result, few_blas_threads, generate
from paperkiln.infer.sampling import Sampling
from paperkiln.infer.turns import describe, fit_history, room_for_prompt, trimmed
from paperkiln.output import printable
from paperkiln.train.tokenizers import Tokenizer

HELP = """\
/reset  forget the conversation
/speed  show tokens per second after each reply, or stop showing them
/help   this list
/quit   leave (so does Ctrl-D); Ctrl-C stops a reply
"""


class ChatSession:
    """One conversation with a model; `note` and `result` tell about the last reply."""

    def __init__(
        self,
        model: NumpyDecoder,
        tokenizer: Tokenizer,
        sampling: Sampling | None = None,
        *,
        max_new_tokens: int = 256,
        system: str = "",
    ) -> None:
        """Start an empty conversation, under a system message if one is given.

        Raises PaperkilnError when the tokenizer has no chat tokens, or the template or the context
        no place for the message.
        """
        self._end_ids, self._stop = reply_ends(tokenizer)
        self.system = system.strip()
        self.model, self.tokenizer = model, tokenizer
        self.sampling, self.max_new_tokens = sampling or Sampling(), max_new_tokens
        self.reset()
        self._fit("")  # a system message is refused now, not at the first question

    def reset(self) -> None:
        """Forget the conversation and start the random numbers over."""
        self.history: list[Message] = []
        self.note = ""  # what the user should know about how the message was read
        self.result: Result | None = None
        self._rng = Random(self.sampling.seed)

    def reply(self, text: str) -> Iterator[str]:
        """Return the reply's pieces; `note` is set at once, `result` after the last piece.

        A reply that the caller closes early stays in the history as far as it went.
        """
        ids, dropped, n_cut = self._fit(text)
        messages = [*self.history[dropped:], ("user", text)]
        limit = max(1, min(self.max_new_tokens, self.model.config.context_length - len(ids)))
        self.note = describe(self.tokenizer, text, n_cut, is_first=not self.history)
        self.result = None
        return self._stream(messages, ids, limit)

    def _fit(self, text: str) -> tuple[list[int], int, int]:
        """Return what `fit_history` does, for a message after those of the history."""
        room = room_for_prompt(self.model.config.context_length, self.max_new_tokens)
        return fit_history(self.tokenizer, self.history, text, room, self.system)

    def _stream(self, messages: list[Message], ids: list[int], limit: int) -> Iterator[str]:
        pieces = generate(
            self.model, self.tokenizer, ids, max_new_tokens=limit, sampling=self.sampling,
            end_ids=self._end_ids, stop=self._stop, rng=self._rng,
        )  # fmt: skip
        said: list[str] = []
        try:
            for piece in trimmed(self.tokenizer, pieces):
                self.result = piece.result
                if piece.text:
                    said.append(piece.text)
                    yield piece.text
        finally:
            self.history = [*messages, ("assistant", "".join(said))]


def write_to_terminal(text: str) -> None:
    """Print without a newline, at once, whatever characters the terminal lacks."""
    encoding = sys.stdout.encoding or "utf-8"
    print(printable(text).encode(encoding, "replace").decode(encoding), end="", flush=True)


def repl(
    session: ChatSession,
    *,
    read: Callable[[str], str] = input,
    write: Callable[[str], None] = write_to_terminal,
    show_speed: bool = False,
) -> None:
    """Talk until /quit or Ctrl-D. `read` takes a prompt, `write` shows text as it comes."""
    with few_blas_threads(session.model):
        _talk(session, read, write, show_speed)


def _talk(
    session: ChatSession,
    read: Callable[[str], str],
    write: Callable[[str], None],
    show_speed: bool,
) -> None:
    while True:
        try:
            text = read("you> ").strip()
        except KeyboardInterrupt:
            write("\n(Ctrl-D or /quit leaves)\n")
            continue
        except EOFError:
            write("\n")
            return
        match text:
            case "":
                continue
            case "/quit" | "/exit":
                return
            case "/help":
                write(HELP)
            case "/reset":
                session.reset()
                write("(the conversation is forgotten)\n")
            case "/speed":
                show_speed = not show_speed
                write(f"(tokens per second: {'shown' if show_speed else 'not shown'})\n")
            case _ if text.startswith("/"):
                write(f"(unknown command {text.split()[0]})\n{HELP}")
            case _:
                say(session, text, write, show_speed)


def say(session: ChatSession, text: str, write: Callable[[str], None], show_speed: bool) -> None:
    """Stream one reply; Ctrl-C ends it and keeps what was said."""
    pieces = session.reply(text)
    if session.note:
        write(f"({session.note})\n")
    try:
        for piece in pieces:
            write(piece)
    except KeyboardInterrupt:
        pieces.close()
        write(" (stopped)")
    write("\n")
    if result := session.result:
        if result.stop_reason == "length":
            write(f"(cut at the limit of {len(result.ids)} tokens)\n")
        if show_speed:
            write(f"({len(result.ids)} tokens, {result.tokens_per_second:,.0f} tokens/s)\n")
