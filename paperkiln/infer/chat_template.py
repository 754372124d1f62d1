"""Chat templates: ours as text for corpora and as Jinja for other programs; any as ids for a model.

In ours a user turn is `<|user|>TEXT`, an assistant turn `<|assistant|>TEXT<|endoftext|>`, nothing
between them; the model answers after a final `<|assistant|>`. Other people's files carry theirs as
Jinja, a program: it is never run, only recognised. Standard library only: the browser runs this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import NamedTuple

from paperkiln.errors import PaperkilnError
from paperkiln.train.tokenizers import ASSISTANT, END_OF_TEXT, USER, Tokenizer

Message = tuple[str, str]  # role, text

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


class ChatTemplate(NamedTuple):
    """How the turns of a chat are written.

    In `system`, `user`, `assistant` and `reply`, {bos} and {eos} are the tokens that begin and end
    a text, and the name of a special token is that token where the tokenizer has it, else plain
    text.
    """

    name: str
    marks: tuple[str, ...]  # a Jinja template that holds all of them is this one
    user: tuple[str, str]  # before and after the text
    assistant: tuple[str, str]
    reply: str  # what the model answers after
    system: tuple[str, str] | None = None  # before and after a system message, if it takes one
    preset: str | None = None  # the system message that it writes where a chat has none
    stops: tuple[str, ...] = ()  # what ends a reply, beside the end of the text
    trims: bool = False  # whitespace around a text is left out
    note: str = ""  # for the user

    def parts(self, role: str, text: str) -> list[tuple[str, bool]]:
        """Return a message as texts, each with whether it is the template's own.

        Raises PaperkilnError for another role than user and assistant.
        """
        if role not in ("user", "assistant"):
            raise PaperkilnError(f"chat role {role!r} is not known: use user or assistant")
        return self._around(text, *(self.user if role == "user" else self.assistant))

    def opening(self, system: str) -> list[tuple[str, bool]]:
        """Return what stands before the first turn: a system message, given or the preset one.

        Raises PaperkilnError where one is given and the template has no place for it.
        """
        text = system or self.preset
        if text is None:
            return []
        if self.system is None:
            raise PaperkilnError(
                f"this model's chat template ({self.name}) has no place for a system message; "
                "leave it empty"
            )
        return self._around(text, *self.system)

    def _around(self, text: str, before: str, after: str) -> list[tuple[str, bool]]:
        return [(before, True), (text.strip() if self.trims else text, False), (after, True)]


OURS = ChatTemplate(
    "paperkiln", ("'<|user|>' + message['content'] -}}", "<|endoftext|>"), (USER, ""),
    (ASSISTANT, END_OF_TEXT), ASSISTANT, stops=(USER, ASSISTANT, END_OF_TEXT),
)  # fmt: skip
PLAIN = ChatTemplate(
    "plain", (), ("User: ", "\n"), ("Assistant: ", "\n"), "Assistant:", stops=("\nUser:",),
    trims=True, note="paperkiln does not know this model's chat template and writes the turns as "
    "User: and Assistant:",
)  # fmt: skip
_KNOWLEDGE = "Cutting Knowledge Date: December 2023"
# The first whose marks are found counts; PLAIN where none is. A newline is written "\\n" in them.
TEMPLATES = (
    OURS,
    ChatTemplate(  # TinyLlama-Chat too
        "zephyr", ("<|user|>\\n", "eos_token"), ("<|user|>\n", "{eos}\n"),
        ("<|assistant|>\n", "{eos}\n"), "<|assistant|>\n", ("<|system|>\n", "{eos}\n"),
        stops=("<|user|>", "<|assistant|>"),
    ),
    ChatTemplate(  # Qwen, SmolLM
        "chatml", ("<|im_start|>",), ("<|im_start|>user\n", "<|im_end|>\n"),
        ("<|im_start|>assistant\n", "<|im_end|>\n"), "<|im_start|>assistant\n",
        ("<|im_start|>system\n", "<|im_end|>\n"),
        stops=("<|im_end|>", "<|im_start|>", "<|endoftext|>"),
    ),
    ChatTemplate(
        "llama-3", ("<|start_header_id|>", "<|eot_id|>"),
        ("<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>"),
        ("<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"),
        "<|start_header_id|>assistant<|end_header_id|>\n\n",
        ("<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>"),
        stops=("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|start_header_id|>"), trims=True,
    ),
    ChatTemplate(
        "llama-2", ("bos_token + '[INST] '",), ("{bos}[INST] ", " [/INST]"), (" ", " {eos}"),
        "", stops=("[INST]",), trims=True,
    ),
    ChatTemplate(
        "mistral", ("[INST]",), ("[INST] ", " [/INST]"), ("", "{eos}"), "", stops=("[INST]",),
        trims=True,
    ),
)  # fmt: skip


def template_of(tokenizer: Tokenizer) -> ChatTemplate | None:
    """Return the template a tokenizer's model was made for, or None if it was made for no chat."""
    if jinja := tokenizer.chat_template.replace("\n", "\\n"):
        found = next((t for t in TEMPLATES if all(mark in jinja for mark in t.marks)), PLAIN)
        return _with_preset(found, jinja)
    return OURS if tokenizer.specials.keys() >= set(OURS.stops) else None


def _with_preset(template: ChatTemplate, jinja: str) -> ChatTemplate:
    """Return a template with the system message that its text writes by itself."""
    if template.name == "chatml":  # SmolLM2 and Qwen2 hold theirs as one piece of text
        for part in jinja.split("<|im_start|>system\\n")[1:]:
            preset, end, _ = part.partition("<|im_end|>")
            if end and not set(preset) & set("'\"{}"):
                return template._replace(preset=preset.replace("\\n", "\n"))
    if template.name == "llama-3" and _KNOWLEDGE in jinja:  # 3.1 and later, system message or not
        before, after = template.system
        lead = f"{_KNOWLEDGE}\nToday Date: {date.today():%d %b %Y}\n\n"  # as llama.cpp has it
        return template._replace(system=(before + lead, after), preset="")
    return template


def render_chat(messages: Iterable[Message], *, add_generation_prompt: bool = False) -> str:
    """The conversation as one text of our template, to be encoded with specials=True.

    Raises PaperkilnError for another role than user and assistant.
    """
    turns = "".join(text for message in messages for text, _ in OURS.parts(*message))
    return turns + (ASSISTANT if add_generation_prompt else "")


def encode_chat(
    tokenizer: Tokenizer,
    messages: Iterable[Message],
    *,
    system: str = "",
    add_generation_prompt: bool = False,
) -> list[int]:
    """The conversation as ids; a special string inside a text stays text and opens no turn.

    Raises PaperkilnError for another role than user and assistant, for a system message that the
    template has no place for, and for a tokenizer that has neither a template nor our special
    tokens of chat.
    """
    template = _template_needed(tokenizer)
    parts = template.opening(system)
    parts += [part for message in messages for part in template.parts(*message)]
    parts += [(template.reply, True)] if add_generation_prompt else []
    return tokenizer.begin(_encode(tokenizer, parts))


def encode_frame(tokenizer: Tokenizer, system: str = "") -> tuple[list[int], list[int]]:
    """Return the ids before and after the text of a lone question that waits for its reply."""
    template = _template_needed(tokenizer)
    before, after = template.user
    begins, ends = (
        [*template.opening(system), (before, True)],
        [(after, True), (template.reply, True)],
    )
    return tokenizer.begin(_encode(tokenizer, begins)), _encode(tokenizer, ends)


def reply_ends(tokenizer: Tokenizer) -> tuple[set[int], list[str]]:
    """Return the ids that end a reply, and the texts that do."""
    stops = _template_needed(tokenizer).stops
    ids = {tokenizer.specials[name] for name in stops if name in tokenizer.specials}
    return ids | set(tokenizer.end_ids), [s for s in stops if s not in tokenizer.specials]


def _template_needed(tokenizer: Tokenizer) -> ChatTemplate:
    if template := template_of(tokenizer):
        return template
    missing = next(name for name in OURS.stops if name not in tokenizer.specials)
    raise PaperkilnError(f"this tokenizer has no {missing} token: it cannot chat, only sample")


def _encode(tokenizer: Tokenizer, parts: Iterable[tuple[str, bool]]) -> list[int]:
    """Ids of parts. Text between two special tokens is encoded as one, whoever wrote it."""
    ids: list[int] = []
    text = ""
    for part, special in _split(tokenizer, parts):
        if special:
            ids += [*tokenizer.encode(text), tokenizer.specials[part]]
            text = ""
        else:
            text += part
    return ids + tokenizer.encode(text)


def _split(tokenizer: Tokenizer, parts: Iterable[tuple[str, bool]]) -> Iterator[tuple[str, bool]]:
    """Cut what is the template's own at special tokens; give each part and whether it is one."""
    name = lambda ids: tokenizer.tokens[ids[0]] if ids else ""  # noqa: E731
    bos, eos = name(tokenizer.begin_ids), name(tokenizer.end_ids)
    for text, is_own in parts:
        if not is_own:
            yield text, False
            continue
        text = text.replace("{bos}", bos).replace("{eos}", eos)
        for i, part in enumerate(tokenizer.split_at_specials(text)):
            yield part, i % 2 == 1
