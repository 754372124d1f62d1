"""The chat page's Python, and the door through which the worker asks for everything."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from paperkiln.errors import PaperkilnError
from paperkiln.infer.stream import Piece, Result
from paperkiln.train.tokenizers import ASSISTANT, END_OF_TEXT, USER, Tokenizer, byte_tokenizer
from paperkiln.web import dispatch
from paperkiln.web.chat import Chat

ROOT = Path(__file__).parents[1]


class Parrot:
    """In the place of ember: says what it was asked, one token at a time."""

    def __init__(self, tokenizer: Tokenizer | None = None, context_length: int = 64) -> None:
        self.tokenizer = tokenizer
        self.metadata = {"general.name": "parrot", "general.architecture": "llama"}
        self.shape = SimpleNamespace(context_length=context_length)
        self.asked: list[dict[str, Any]] = []
        self.closed = 0

    def generate(self, model: Any, ids: list[int], **options: Any) -> Iterator[Piece]:
        self.asked.append(options | {"ids": ids})
        said = ids[: options["max_new_tokens"]]
        try:
            for token in said:
                yield Piece(self.tokenizer.decode([token]))
        except GeneratorExit:
            self.closed += 1
            raise
        yield Piece("", Result("", said, "length", len(ids), 0, 100.0))


@pytest.fixture
def parrot() -> Parrot:
    return Parrot(byte_tokenizer())


def finish(chat: Chat) -> tuple[str, dict[str, Any]]:
    text = ""
    while True:
        answer = chat.step()
        text += answer["text"]
        if "done" in answer:
            return text, answer["done"]


def test_a_reply_comes_in_pieces(parrot: Parrot) -> None:
    chat = Chat(parrot, parrot.generate, "file.gguf")
    assert chat.about() == {
        "name": "parrot", "architecture": "llama", "context_length": 64, "vocab_size": 259,
        "tokenizer": "byte", "talks": True, "template": "paperkiln",
    }  # fmt: skip
    begun = chat.begin([["user", "hi"]], {"length": 16, "seed": 1})
    assert begun == {"note": "", "dropped": 0, "prompt_tokens": 4}
    text, done = finish(chat)
    assert "hi" in text
    assert done == {"reason": "length", "tokens": 4, "tokens_per_second": 100.0}
    ends = {parrot.tokenizer.specials[name] for name in (USER, ASSISTANT, END_OF_TEXT)}
    assert parrot.asked[0]["end_ids"] == ends


def test_old_turns_are_dropped_and_long_ones_cut(parrot: Parrot) -> None:
    chat = Chat(parrot, parrot.generate)
    old = [["user", "a" * 20], ["assistant", "b" * 20]]
    assert chat.begin([*old, ["user", "c" * 10]], {"length": 16})["dropped"] == 2
    begun = chat.begin([["user", "d" * 100]], {"length": 16})
    assert "its first" in begun["note"]
    assert begun["prompt_tokens"] <= 48


def test_a_model_without_turns_goes_on_with_the_text() -> None:
    tokens = byte_tokenizer()
    plain = Tokenizer("byte", tokens.tokens, specials={END_OF_TEXT: 0})
    parrot = Parrot(plain)
    chat = Chat(parrot, parrot.generate)
    assert not chat.about()["talks"]
    chat.begin([["user", "once"], ["assistant", " upon"], ["user", " a"]], {"length": 16})
    chat.step()
    assert plain.decode(parrot.asked[0]["ids"]) == "once upon a"


def test_a_stop_closes_the_generator(parrot: Parrot) -> None:
    chat = Chat(parrot, parrot.generate)
    chat.begin([["user", "hello"]], {})
    chat.step()
    chat.stop()
    assert parrot.closed == 1
    assert chat.step()["done"]["reason"] == "stopped"


@pytest.mark.parametrize(
    "settings",
    [{"length": 0}, {"length": "many"}, {"temperature": -1}, {"top_p": 0}, {"top_k": "x"},
     {"temperature": True}],
)  # fmt: skip
def test_settings_out_of_range_are_refused(parrot: Parrot, settings: dict[str, Any]) -> None:
    with pytest.raises(PaperkilnError):
        Chat(parrot, parrot.generate).begin([["user", "x"]], settings)


def test_a_foreign_tokenizer_is_refused_by_name() -> None:
    parrot = Parrot(None)
    parrot.metadata["tokenizer.ggml.model"] = "llama"
    with pytest.raises(PaperkilnError, match=r"x\.gguf: its tokenizer \('llama'\)"):
        Chat(parrot, parrot.generate, "x.gguf")


# --- the door ---------------------------------------------------------------------------------


def test_answers_and_refusals_are_json() -> None:
    done = json.loads(dispatch.answer("spec.check", '{"values": {}}'))
    assert done["done"]["errors"] == []
    link = json.loads(dispatch.answer("paper.link", '{"text": "nothing"}'))
    assert link["error"]["code"] == "input"
    read = json.loads(dispatch.answer("paper.read", '{"name": "x.pdf"}', memoryview(b"%PDF-1.5")))
    assert "is a PDF" in read["error"]["message"]
    assert "No model" in json.loads(dispatch.chat_begin("{}"))["error"]["message"]


def test_a_model_is_let_go(parrot: Parrot, monkeypatch: pytest.MonkeyPatch) -> None:
    chat = Chat(parrot, parrot.generate)
    monkeypatch.setattr(dispatch, "_chat", chat)
    chat.begin([["user", "hello"]], {})
    chat.step()
    assert json.loads(dispatch.chat_close()) == json.loads(dispatch.chat_close()) == {"done": None}
    assert parrot.closed == 1
    assert "No model" in json.loads(dispatch.chat_begin("{}"))["error"]["message"]


BARE = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked}:
            raise ImportError(f"{{name}} is blocked")
sys.meta_path.insert(0, Blocker())
{script}
"""
NEVER = {"numpy", "torch", "scipy", "requests", "rich", "tokenizers", "gguf", "filelock",
         "platformdirs", "threadpoolctl"}  # fmt: skip


@pytest.mark.parametrize(
    ("blocked", "modules"),
    [
        (NEVER, ["spec", "diagram", "papers", "chat", "dispatch"]),
        (NEVER | {"pydantic", "pydantic_core"}, ["papers", "chat", "dispatch"]),
    ],
    ids=["no numpy", "no pydantic either"],
)
def test_the_rooms_import_in_a_bare_interpreter(blocked: set[str], modules: list[str]) -> None:
    script = "\n".join(f"import paperkiln.web.{name}" for name in modules)
    script += "\nimport paperkiln.infer.ember\nimport paperkiln.infer.turns"
    code = BARE.format(blocked=blocked, script=script)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_image_names_modules_that_exist() -> None:
    """web/boot.js imports them into the image of Python; a wrong name would spoil it unseen."""
    source = (ROOT / "web" / "boot.js").read_text(encoding="utf-8")
    image = source.partition("const IMAGE = `")[2].partition("`")[0]
    names = [a.name for node in ast.parse(image).body for a in node.names]
    assert "paperkiln.web.dispatch" in names
    ours = [name for name in names if name.startswith("paperkiln")]
    code = BARE.format(blocked=NEVER | {"pydantic"}, script="\n".join(f"import {n}" for n in ours))
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
