"""Other people's Llama files in the chat page: SentencePiece, packed weights, their templates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sentencepiece_files import train_vocabulary, vocabulary_keys, write_llama
from visitors import Visit

from paperkiln.train.tinychat import corpus_text

Visitor = Callable[..., Visit]
ZEPHYR = "{{ '<|user|>\n' + message['content'] + eos_token }}{{ '<|assistant|>\n' }}"
UNKNOWN = "{{ '### ' + message['content'] }}"


@pytest.fixture(scope="module")
def vocabulary() -> Any:
    return train_vocabulary(corpus_text(300, 1), 600)


def ask(tab: Any, text: str) -> None:
    box = tab.get_by_label("Your message")
    box.fill(text)
    box.press("Enter")


@pytest.mark.parametrize("template", [ZEPHYR, UNKNOWN, ""], ids=["known", "unknown", "none"])
def test_a_file_like_tinyllama_chats(
    template: str, visit: Visitor, vocabulary: Any, tmp_path: Path
) -> None:
    kinds = {"attn_v.weight": "Q6_K", "output.weight": "Q6_K", "": "Q4_K"}
    keys = vocabulary_keys(vocabulary, template) | {"general.name": "Tiny Llama"}
    path = write_llama(tmp_path / "tiny.Q4_K_M.gguf", keys, kinds)
    tab = visit().open("chat.html")
    tab.get_by_label("Open a GGUF file").set_input_files(path)
    tab.get_by_text("600 tokens").wait_for()
    assert tab.get_by_text("Tiny Llama").count()
    ask(tab, "Good morning! What is this?")
    tab.locator(".turn.assistant .figures").first.wait_for()
    assert tab.locator(".turn.assistant .said").inner_text().strip()
    said = tab.get_by_text("does not know this model's chat template").count()
    assert said == (template == UNKNOWN)
