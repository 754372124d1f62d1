"""A conversation cut to the context; standard library only, since the browser runs it too."""

from __future__ import annotations

from collections.abc import Sequence

from paperkiln.infer.chat_template import Message, encode_chat
from paperkiln.train.tokenizers import Tokenizer


def fit_history(
    tokenizer: Tokenizer, history: Sequence[Message], text: str, room: int
) -> tuple[list[int], int, int]:
    """Return (prompt ids, history messages dropped, tokens of `text` cut) for at most `room` ids.

    Whole question-and-answer pairs go, the oldest first; a message that is too long alone keeps
    its end.
    """
    for dropped in range(0, len(history) + 1, 2):
        messages = [*history[dropped:], ("user", text)]
        ids = encode_chat(tokenizer, messages, add_generation_prompt=True)
        if len(ids) <= room:
            return ids, dropped, 0
    user, *message, assistant = ids  # the text alone, the history gone
    kept = max(0, room - 2)
    return [user, *message[len(message) - kept :], assistant], len(history), len(message) - kept


def describe(tokenizer: Tokenizer, text: str, n_cut: int) -> str:
    """Return what a user should know about a message: cut off, or not known to the model."""
    notes = []
    if n_cut:
        notes.append(f"your message is longer than the context: its first {n_cut} tokens are cut")
    if unknown := tokenizer.unknown_pieces(text):
        shown = " ".join(dict.fromkeys(piece.strip() or repr(piece) for piece in unknown))
        notes.append(f"the model has no token for: {shown}")
    return "; ".join(notes)
