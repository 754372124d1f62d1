"""Other people's Llama files in the chat page: SentencePiece, packed weights, their templates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bpe_files import bpe_keys, train_bpe
from sentencepiece_files import train_vocabulary, vocabulary_keys, write_llama
from visitors import Visit

from paperkiln.train.tinychat import corpus_text

Visitor = Callable[..., Visit]
ZEPHYR = "{{ '<|user|>\n' + message['content'] + eos_token }}{{ '<|assistant|>\n' }}"
SMOLLM2 = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful AI assistant<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
UNKNOWN = "{{ '### ' + message['content'] }}"
# Types of most weights, of the values' projection, of the head.
FILES = {
    "Q4_K_M": ("Q4_K", "Q6_K", "Q6_K"),
    "Q3_K_M": ("Q3_K", "Q5_K", "Q6_K"),
    "Q2_K": ("Q2_K", "Q4_1", "Q5_1"),
    "IQ4_NL": ("IQ4_NL", "Q5_0", "Q4_0"),
}


@pytest.fixture(scope="module")
def vocabulary() -> Any:
    return train_vocabulary(corpus_text(300, 1), 600)


def ask(tab: Any, text: str) -> None:
    box = tab.get_by_label("Your message")
    box.fill(text)
    box.press("Enter")


@pytest.mark.parametrize(
    ("template", "file"),
    [(ZEPHYR, "Q4_K_M"), (UNKNOWN, "Q3_K_M"), ("", "Q2_K"), (ZEPHYR, "IQ4_NL")],
    ids=list(FILES),
)
def test_a_file_like_tinyllama_chats(
    template: str, file: str, visit: Visitor, vocabulary: Any, tmp_path: Path
) -> None:
    most, values, head = FILES[file]
    kinds = {"attn_v.weight": values, "output.weight": head, "": most}
    keys = vocabulary_keys(vocabulary, template) | {"general.name": "Tiny Llama"}
    path = write_llama(tmp_path / f"tiny.{file}.gguf", keys, kinds)
    tab = visit().open("chat.html")
    tab.get_by_label("Open a GGUF file").set_input_files(path)
    tab.get_by_text("600 tokens").wait_for()
    assert tab.get_by_text("Tiny Llama").count()
    ask(tab, "Good morning! What is this?")
    tab.locator(".turn.assistant .figures").first.wait_for()
    assert tab.locator(".turn.assistant .said").inner_text().strip()
    said = tab.get_by_text("does not know this model's chat template").count()
    assert said == (template == UNKNOWN)


def test_a_file_like_smollm2_chats(visit: Visitor, tmp_path: Path) -> None:
    """Byte-level BPE, ChatML with a preset system message, scaled rotary positions."""
    keys = bpe_keys(train_bpe("smollm"), "smollm") | {
        "general.name": "Smol", "tokenizer.chat_template": SMOLLM2,
    }  # fmt: skip
    path = write_llama(tmp_path / "smol.gguf", keys, "Q8_0", rope_freqs=np.full(16, 4.0))
    tab = visit().open("chat.html")
    tab.get_by_label("Open a GGUF file").set_input_files(path)
    tab.get_by_text(f"{len(keys['tokenizer.ggml.tokens'])} tokens").wait_for()
    assert tab.get_by_text("Smol", exact=True).count()
    ask(tab, "Grüße! 12 日本 🦙")
    tab.locator(".turn.assistant .figures").first.wait_for()
    assert tab.locator(".turn.assistant .said").inner_text().strip()
    assert not tab.get_by_text("does not know this model's chat template").count()
    tab.get_by_role("button", name="Settings").click()
    tab.get_by_label("System message").fill("Be brief.")
    tab.keyboard.press("Escape")
    ask(tab, "And now?")
    tab.locator(".turn.assistant .figures").nth(1).wait_for()
    assert not tab.get_by_role("alert").count()
    tab.get_by_role("button", name="Settings").click()
    tab.get_by_label("System message").fill("word " * 200)
    tab.keyboard.press("Escape")
    ask(tab, "Too long?")
    tab.get_by_role("alert").filter(has_text="leaves no room in the context").wait_for()


def test_a_file_is_kept_until_it_is_forgotten(
    visit: Visitor, vocabulary: Any, tmp_path: Path
) -> None:
    tab = visit().open("chat.html")
    keys = vocabulary_keys(vocabulary) | {"general.name": "Tiny Llama"}
    path = write_llama(tmp_path / "tiny.gguf", keys, "Q8_0")
    tab.get_by_label("Open a GGUF file").set_input_files(path)
    tab.get_by_text("kept here").wait_for()
    path.unlink()
    tab.evaluate("document.querySelector('paperkiln-chat').client.restart(new Error('crash'))")
    tab.get_by_text("kept here").wait_for()
    ask(tab, "are you there?")
    tab.locator(".turn.assistant .figures").first.wait_for()
    tab.reload()
    tab.get_by_text("kept here").wait_for()
    assert tab.get_by_text("Tiny Llama").count()
    ask(tab, "hello")
    tab.locator(".turn.assistant .figures").first.wait_for()
    tab.get_by_role("button", name="Card").click()
    tab.get_by_role("button", name="Forget this file").click()
    tab.get_by_text("stand-in").first.wait_for()
    tab.reload()
    tab.get_by_text("stand-in").first.wait_for()
    assert tab.get_by_text("Tiny Llama").count() == 0


def test_a_kept_file_that_cannot_be_opened_is_let_go(visit: Visitor) -> None:
    tab = visit().open("chat.html")
    tab.evaluate(
        """async () => {
          const { keepFile } = await import("./elements/kept-file.js");
          if (!await keepFile(new File(["no model"], "broken.gguf"))) throw new Error("not kept");
        }"""
    )
    tab.reload()
    tab.get_by_role("alert").filter(has_text="broken.gguf is no GGUF file").wait_for()
    tab.reload()
    tab.get_by_text("stand-in").first.wait_for()


def test_a_worker_that_did_not_come_costs_no_kept_file(
    visit: Visitor, vocabulary: Any, tmp_path: Path
) -> None:
    visitor = visit()
    visitor.expected += ["Failed to load resource"]
    tab = visitor.open("chat.html")
    path = write_llama(tmp_path / "tiny.gguf", vocabulary_keys(vocabulary), "Q8_0")
    tab.get_by_label("Open a GGUF file").set_input_files(path)
    tab.get_by_text("kept here").wait_for()
    refuse = lambda route: route.abort()  # noqa: E731
    tab.route("**/worker.js", refuse)
    tab.reload()
    tab.get_by_role("alert").filter(has_text="Check the connection").wait_for()
    tab.unroute("**/worker.js", refuse)
    tab.reload()
    tab.get_by_text("kept here").wait_for(timeout=20_000)


def test_the_file_that_was_opened_last_counts(
    visit: Visitor, vocabulary: Any, slow_model: Path, tmp_path: Path
) -> None:
    tab = visit().open("chat.html")
    path = write_llama(tmp_path / "tiny.gguf", vocabulary_keys(vocabulary), "Q4_K")
    choose = tab.get_by_label("Open a GGUF file")
    said = set()
    for files in ([path], [slow_model, path], [path, slow_model, path], [slow_model, path] * 3):
        for file in files:
            choose.set_input_files(file)
        tab.get_by_text("600 tokens").wait_for()
        tab.wait_for_timeout(500)
        assert tab.get_by_text("600 tokens").count()
        ask(tab, "hello")
        tab.locator(".turn.assistant .figures").last.wait_for()
        tab.get_by_role("button", name="Send").wait_for()
        said.add(tab.locator(".turn.assistant .said").last.inner_text().strip())
        tab.evaluate("document.querySelector('paperkiln-chat').clear()")
    assert len(said) == 1, "another model answered"
    assert said != {""}
    assert not tab.get_by_role("alert").count()


def test_a_model_that_comes_late_does_not_answer(
    visit: Visitor, vocabulary: Any, slow_model: Path, tmp_path: Path
) -> None:
    tab = visit().open("chat.html")
    held: list[Any] = []
    tab.route("**/late.gguf", lambda route: held.append(route))
    with tab.expect_request("**/late.gguf"):
        tab.evaluate(
            "(size) => void document.querySelector('paperkiln-chat')"
            ".load({ name: 'late', url: 'late.gguf', size })",
            slow_model.stat().st_size,
        )
    path = write_llama(tmp_path / "tiny.gguf", vocabulary_keys(vocabulary), "Q8_0")
    tab.get_by_label("Open a GGUF file").set_input_files(path)
    tab.get_by_text("600 tokens").wait_for()
    said = []
    for _ in range(2):
        ask(tab, "hello")
        tab.locator(".turn.assistant .figures").wait_for()
        said.append(tab.locator(".turn.assistant .said").inner_text())
        tab.evaluate("document.querySelector('paperkiln-chat').clear()")
        if held:
            held.pop().fulfill(path=slow_model)
            tab.wait_for_timeout(1000)
    assert said[0] == said[1] != ""
