"""The one chat template: as text for corpora, as ids for the model, as Jinja for other programs.

A user turn is `<|user|>TEXT`, an assistant turn `<|assistant|>TEXT<|endoftext|>`, nothing between
them; the model answers after a final `<|assistant|>`. Standard library only: the browser runs it.
"""

from __future__ import annotations

from collections.abc import Iterable

from paperkiln.errors import PaperkilnError
from paperkiln.train.tokenizers import ASSISTANT, END_OF_TEXT, USER, Tokenizer

Message = tuple[str, str]  # role, text

# Before and after the text of each role.
_FRAMES = {"user": (USER, ""), "assistant": (ASSISTANT, END_OF_TEXT)}

# Other roles are left out here, not refused: many programs send a system message of their own.
CHAT_TEMPLATE_JINJA = (
    "{%- for message in messages -%}"
    "{%- if message['role'] == 'user' -%}{{- '<|user|>' + message['content'] -}}"
    "{%- elif message['role'] == 'assistant' -%}"
    "{{- '<|assistant|>' + message['content'] + '<|endoftext|>' -}}"
    "{%- endif -%}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}"
)


def render_chat(messages: Iterable[Message], *, add_generation_prompt: bool = False) -> str:
    """The conversation as one text, to be encoded with specials=True. Raises PaperkilnError."""
    turns = [f"{before}{text}{after}" for before, text, after in _framed(messages)]
    return "".join(turns) + (ASSISTANT if add_generation_prompt else "")


def encode_chat(
    tokenizer: Tokenizer, messages: Iterable[Message], *, add_generation_prompt: bool = False
) -> list[int]:
    """The conversation as ids; a special string inside a text stays text and opens no turn.

    Raises PaperkilnError for another role than user and assistant, and for a tokenizer without the
    special tokens of chat.
    """
    for name in (USER, ASSISTANT, END_OF_TEXT):
        if name not in tokenizer.specials:
            raise PaperkilnError(f"this tokenizer has no {name} token: it cannot chat, only sample")
    ids: list[int] = []
    for before, text, after in _framed(messages):
        ids += [tokenizer.specials[before], *tokenizer.encode(text)]
        ids += [tokenizer.specials[after]] if after else []
    return ids + ([tokenizer.specials[ASSISTANT]] if add_generation_prompt else [])


def _framed(messages: Iterable[Message]) -> Iterable[tuple[str, str, str]]:
    for role, text in messages:
        if role not in _FRAMES:
            raise PaperkilnError(f"chat role {role!r} is not known: use user or assistant")
        before, after = _FRAMES[role]
        yield before, text, after
