"""A conversation cut to the context; standard library only, since the browser runs it too."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from paperkiln.errors import PaperkilnError
from paperkiln.infer.chat_template import Message, encode_chat, encode_frame, template_of
from paperkiln.infer.stream import Piece
from paperkiln.train.tokenizers import Tokenizer


def room_for_prompt(context_length: int, max_new_tokens: int) -> int:
    """Return how many tokens a prompt may take.

    A quarter of the context at least is the reply's, so that the window need not move in it.
    """
    return context_length - min(max_new_tokens, context_length // 4)


def fit_history(
    tokenizer: Tokenizer, history: Sequence[Message], text: str, room: int, system: str = ""
) -> tuple[list[int], int, int]:
    """Return (prompt ids, history messages dropped, tokens of `text` cut) for at most `room` ids.

    Whole question-and-answer pairs go, the oldest first; a message that is too long alone keeps
    its end. The system message stays whole: raises PaperkilnError where it leaves no room.
    """

    def encoded(dropped: int) -> list[int]:
        messages = [*history[dropped:], ("user", text)]
        return encode_chat(tokenizer, messages, system=system, add_generation_prompt=True)

    if len(ids := encoded(0)) <= room:
        return ids, 0, 0
    # The more goes, the shorter it is: few tries, since each reads what may be a megabyte.
    fewer = range(2, len(history) + 1, 2)
    at = bisect_left(fewer, True, key=lambda dropped: len(encoded(dropped)) <= room)
    if at < len(fewer):
        return encoded(fewer[at]), fewer[at], 0
    before, after = encode_frame(tokenizer, system)  # the text alone, the history gone
    if system and len(before) + len(after) >= room:
        raise PaperkilnError(
            f"the system message leaves no room in the context: it and its turn take "
            f"{len(before) + len(after)} tokens of {room}; shorten it"
        )
    message = tokenizer.encode(text)
    n_cut = len(message) - max(0, room - len(before) - len(after))
    return before + message[n_cut:] + after, len(history), n_cut


def describe(tokenizer: Tokenizer, text: str, n_cut: int, *, is_first: bool = False) -> str:
    """Return what a user should know about a message: cut off, or not known to the model.

    With the first of a chat comes a word on its template, if there is one to say.
    """
    template = template_of(tokenizer) if is_first else None
    notes = [template.note] if template and template.note else []
    if n_cut:
        notes.append(f"your message is longer than the context: its first {n_cut} tokens are cut")
    if unknown := tokenizer.unknown_pieces(text):
        shown = " ".join(dict.fromkeys(piece.strip() or repr(piece) for piece in unknown))
        notes.append(f"the model has no token for: {shown}")
    return "; ".join(notes)


def trimmed(tokenizer: Tokenizer, pieces: Iterator[Piece]) -> Iterator[Piece]:
    """Yield a reply without the whitespace it begins with, where the template leaves that out."""
    template = template_of(tokenizer)
    begun = not (template and template.trims)
    try:
        for text, result in pieces:
            shown = text if begun else text.lstrip()
            begun = begun or bool(shown)
            yield Piece(shown, result)
    finally:
        pieces.close()
