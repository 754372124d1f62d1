"""The chat, as a visitor uses it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from visitors import CLIPBOARD, ROOT, Visit, random_bytes

Visitor = Callable[..., Visit]
# What a worker tells of its model, in JavaScript.
ABOUT = '{ name: "fake", architecture: "llama", context_length: 64, vocab_size: 9, talks: true }'


def say(tab: Any, text: str) -> None:
    box = tab.get_by_label("Your message")
    box.fill(text)
    box.press("Enter")


def replies(tab: Any) -> list[str]:
    return tab.locator(".turn.assistant .said").all_inner_texts()


def wait_for_replies(tab: Any, n: int) -> None:
    """Wait until n replies are finished."""
    tab.locator(".turn.assistant .figures").nth(n - 1).wait_for()


def test_a_first_conversation(visit: Visitor) -> None:
    tab = visit().open("chat.html")
    say(tab, "hello")
    wait_for_replies(tab, 1)
    assert replies(tab)[0]
    assert "tokens/s" in tab.locator(".turn.assistant .figures").inner_text()
    say(tab, "and again")
    wait_for_replies(tab, 2)
    tab.reload()
    tab.locator(".turn").nth(3).wait_for()
    assert tab.locator(".turn.user .said").all_inner_texts() == ["hello", "and again"]


def test_what_was_said_is_copied(visit: Visitor) -> None:
    tab = visit(permissions=CLIPBOARD).open("chat.html")
    say(tab, "hello")
    wait_for_replies(tab, 1)
    for turn, said in zip(tab.locator(".turn").all(), ["hello", replies(tab)[0]], strict=True):
        button = turn.get_by_role("button", name="Copy")
        button.dblclick()
        turn.get_by_role("button", name="Copied").wait_for()
        assert tab.evaluate("navigator.clipboard.readText()").strip() == said.strip()
        button.wait_for()  # it gets its name back


def test_one_can_write_and_send_before_python_is_there(visit: Visitor) -> None:
    tab = visit(first=True).open("chat.html", ready=False)
    say(tab, "am I early?")
    assert tab.locator(".turn.user .said").inner_text() == "am I early?"
    assert tab.locator("paperkiln-chat[data-ready]").count() == 0
    wait_for_replies(tab, 1)


def test_progress_shows_bytes(visit: Visitor) -> None:
    tab = visit(first=True).open("chat.html", ready=False)
    tab.get_by_text("MB of").first.wait_for()


def test_regenerate_edit_and_clear(visit: Visitor) -> None:
    tab = visit().open("chat.html")
    tab.get_by_role("button", name="Settings").click()
    tab.get_by_label("Seed").fill("")
    tab.get_by_role("button", name="Close").click()
    say(tab, "first")
    wait_for_replies(tab, 1)
    first = replies(tab)[0]
    tab.get_by_role("button", name="Again").click()
    tab.wait_for_function(
        "first => { const said = document.querySelector('paperkiln-chat').shadowRoot"
        ".querySelectorAll('.turn.assistant .said'); return said.length === 1 "
        "&& said[0].innerText !== first && !said[0].classList.contains('writing') }",
        arg=first,
    )
    tab.get_by_role("button", name="Edit").click()
    tab.get_by_label("Edit your message").fill("second")
    tab.get_by_role("button", name="Send again").click()
    wait_for_replies(tab, 1)
    assert tab.locator(".turn.user .said").all_inner_texts() == ["second"]
    tab.get_by_role("button", name="Conversations").click()
    tab.get_by_role("button", name="Clear this one").click()
    tab.get_by_text("A small model, in this page").wait_for()
    assert replies(tab) == []


def test_the_same_seed_gives_the_same_reply(visit: Visitor) -> None:
    tab = visit().open("chat.html")
    tab.get_by_role("button", name="Settings").click()
    tab.get_by_label("Seed").fill("7")
    tab.get_by_label("Length").fill("32")
    tab.get_by_role("button", name="Close").click()
    say(tab, "hello")
    wait_for_replies(tab, 1)
    first = replies(tab)
    assert tab.locator(".figures").inner_text().startswith("32 tokens")
    tab.reload()
    tab.wait_for_selector("paperkiln-chat[data-ready]")
    tab.locator(".turn.assistant").evaluate("turn => (turn.dataset.old = '')")
    tab.get_by_role("button", name="Again").click()
    tab.locator(".turn.assistant:not([data-old]) .figures").wait_for()
    assert replies(tab) == first  # the settings survive a reload too


def test_stop_in_mid_reply_keeps_what_was_said(visit: Visitor, slow_model: Path) -> None:
    tab = visit().open("chat.html")
    tab.get_by_label("Open a GGUF file").set_input_files(slow_model)
    tab.get_by_text("context 2,048").wait_for()
    tab.get_by_role("button", name="Settings").click()
    tab.get_by_label("Temperature").fill("0")  # this model then never ends by itself
    tab.get_by_label("Length").fill("1024")
    tab.get_by_role("button", name="Close").click()
    say(tab, "tell me everything")
    tab.wait_for_function(
        "() => document.querySelector('paperkiln-chat').shadowRoot"
        ".querySelector('.turn.assistant .said')?.textContent.length > 5"
    )
    tab.get_by_role("button", name="Stop").click()
    wait_for_replies(tab, 1)
    assert tab.locator(".figures").inner_text() == "stopped"
    assert len(tab.locator(".turn.assistant .said").text_content()) > 5
    say(tab, "go on")  # the model is still there
    tab.get_by_role("button", name="Stop").click()
    wait_for_replies(tab, 2)


def test_a_worker_that_does_not_answer_is_replaced(visit: Visitor) -> None:
    """A Stop cannot interrupt Python without SharedArrayBuffer: the worker is started anew."""
    visitor = visit()
    tab = visitor.context.new_page()
    script = (
        f"const about = {ABOUT};"
        + """
    onmessage = ({ data: { id, kind } }) => {
      if (kind === "chat.load") postMessage({ id, done: about });
      if (kind === "chat.send") {
        postMessage({ id, event: "text", text: "and then" });
        for (;;);  // as Python in a long prompt
      }
    };"""
    )
    tab.route("**/worker.js", lambda r: r.fulfill(body=script, content_type="text/javascript"))
    tab.goto(visitor.host.url + "chat.html")
    tab.get_by_text("fake").wait_for()
    say(tab, "hello")
    tab.get_by_text("and then").wait_for()
    tab.get_by_role("button", name="Stop").click()
    wait_for_replies(tab, 1)
    assert replies(tab) == ["and then"]
    tab.get_by_text("context 64").wait_for()  # loaded again, in a new worker
    say(tab, "once more")
    tab.get_by_text("and then").nth(1).wait_for()


def test_a_worker_that_crashes_is_replaced(visit: Visitor) -> None:
    visitor = visit()
    visitor.expected += ["crash"]
    tab = visitor.context.new_page()
    script = (
        f"const about = {ABOUT};"
        + """
    onmessage = ({ data: { id, kind } }) => {
      if (kind === "chat.load") postMessage({ id, done: about });
      if (kind === "chat.send") setTimeout(() => { throw new Error("crash"); });
    };"""
    )
    tab.route("**/worker.js", lambda r: r.fulfill(body=script, content_type="text/javascript"))
    tab.goto(visitor.host.url + "chat.html")
    tab.get_by_text("fake").wait_for()
    say(tab, "hello")
    tab.get_by_role("alert").filter(has_text="starts again by itself").wait_for()
    tab.get_by_role("button", name="Answer again").wait_for()
    assert tab.locator(".turn.user .said").all_inner_texts() == ["hello"]


def test_another_model_is_dropped_in(visit: Visitor, gguf: Callable[..., Path]) -> None:
    tab = visit().open("chat.html")
    other = gguf("dropped", d_model=32, n_layers=1, n_heads=2, context_length=64)
    tab.get_by_label("Open a GGUF file").set_input_files(other)
    tab.get_by_text("context 64").wait_for()
    say(tab, "hello")
    wait_for_replies(tab, 1)
    tab.get_by_role("button", name="Card").click()
    tab.get_by_text("brings no card").wait_for()


def test_files_that_are_no_model(visit: Visitor, gguf: Callable[..., Path], tmp_path: Path) -> None:
    tab = visit().open("chat.html")
    good = gguf("good", d_model=32, n_layers=1, n_heads=2).read_bytes()

    def refused(name: str, data: bytes, expected: str) -> None:
        (tmp_path / name).write_bytes(data)
        tab.get_by_label("Open a GGUF file").set_input_files(tmp_path / name)
        alert = tab.get_by_role("alert").filter(has_text=expected)
        alert.wait_for()
        assert "Traceback" not in alert.inner_text()

    refused("short.gguf", good[: len(good) // 2], "short.gguf")
    refused("noise.gguf", random_bytes(tmp_path / "noise").read_bytes(), "is no GGUF file")
    refused("empty.gguf", b"", "is no GGUF file")
    refused("head.gguf", good[:64], "head.gguf")
    with (tmp_path / "huge.gguf").open("wb") as huge:  # sparse: it takes no room on the disk
        huge.write(b"GGUF")
        huge.truncate(5 << 30)
    tab.get_by_label("Open a GGUF file").set_input_files(tmp_path / "huge.gguf")
    tab.get_by_role("alert").filter(
        has_text="huge.gguf has 5.4 GB; a page can hold 4.2 GB"
    ).wait_for()
    foreign = good.replace(b"general.architecture", b"general.architextura", 1)
    refused("foreign.gguf", foreign, "foreign.gguf")
    tab.get_by_role("button", name="Use the shipped model").click()
    tab.get_by_text("stand-in").first.wait_for()
    say(tab, "hello")
    wait_for_replies(tab, 1)


def test_a_wrong_file_leaves_the_model_that_is_open(visit: Visitor, tmp_path: Path) -> None:
    tab = visit().open("chat.html")
    (tmp_path / "README.md").write_text("# no model\n")
    tab.get_by_label("Open a GGUF file").set_input_files(tmp_path / "README.md")
    tab.get_by_role("alert").filter(has_text="README.md is no GGUF file").wait_for()
    assert tab.get_by_text("stand-in").count()
    say(tab, "hello")
    wait_for_replies(tab, 1)
    assert not tab.get_by_role("alert").count()


def test_two_tabs_have_a_conversation_each(visit: Visitor) -> None:
    visitor = visit()
    first = visitor.open("chat.html")
    say(first, "in the first")
    wait_for_replies(first, 1)
    second = visitor.open("chat.html")
    assert replies(second) == []
    say(second, "in the second")
    wait_for_replies(second, 1)
    for tab, text in ((first, "in the first"), (second, "in the second")):
        tab.reload()
        tab.locator(".turn.user .said").get_by_text(text).wait_for()
        assert tab.locator(".turn.user").count() == 1
    second.get_by_role("button", name="Conversations").click()
    second.get_by_role("button", name="in the first").first.click()
    second.get_by_role("alert").filter(has_text="another tab").wait_for()


def test_a_conversation_is_downloaded(visit: Visitor) -> None:
    tab = visit().open("chat.html")
    say(tab, "hello")
    wait_for_replies(tab, 1)
    tab.get_by_role("button", name="Conversations").click()
    with tab.expect_download() as waiting:
        tab.get_by_role("button", name="Download this one").click()
    text = Path(waiting.value.path()).read_text(encoding="utf-8")
    assert "## You\n\nhello" in text


def test_the_card_and_the_record(visit: Visitor) -> None:
    tab = visit().open("chat.html")
    tab.get_by_role("button", name="Card").click()
    tab.get_by_role("cell", name="b", exact=True).wait_for()
    record = tab.locator(".card pre").text_content()
    assert json.loads(record)["format"] == "paperkiln-record/1"


def test_the_golden_string(visit: Visitor) -> None:
    """The text that tests/test_golden.py guards, from the engine and Python in a page."""
    golden = json.loads((ROOT / "tests" / "golden" / "golden.json").read_text("utf-8"))
    visitor = visit()
    tab = visitor.context.new_page()
    visitor.open_nothing(tab)
    tab.route("**/golden.gguf", lambda r: r.fulfill(path=ROOT / "tests/golden/golden.gguf"))
    said = tab.evaluate(
        """async ({ prompt, ids }) => {
          const { startPython } = await import("./boot.js");
          const { loadEmber } = await import("./engine/ember.js");
          const response = await fetch("golden.gguf");
          const ember = await loadEmber(new URL("engine/", location.href));
          const size = (await response.clone().arrayBuffer()).byteLength;
          await ember.receive(response.body, size);
          const python = await startPython(() => {});
          for (const [name, value] of Object.entries({ ember, prompt, n: ids.length }))
            python.globals.set(name, value);
          return python.runPython(`
import json
from paperkiln.infer.ember import GREEDY, Ember, PageMachine, generate
model = Ember(PageMachine(ember), ember.file, ember.size)
ids = model.tokenizer.encode(prompt)
*_, last = generate(model, ids, max_new_tokens=n, sampling=GREEDY)
json.dumps([last.result.ids, last.result.text])`);
        }""",
        golden,
    )
    assert json.loads(said) == [golden["ids"], golden["text"]]


def test_no_simd_is_said(visit: Visitor) -> None:
    visitor = visit()
    tab = visitor.context.new_page()

    def without_simd(route: Any) -> None:
        body = route.fetch().text()
        route.fulfill(
            body="WebAssembly.validate = () => false;\n" + body, content_type="text/javascript"
        )

    tab.route("**/engine/ember.js", without_simd)
    tab.goto(visitor.host.url + "chat.html")
    tab.get_by_role("alert").filter(has_text="no WebAssembly SIMD").wait_for()


def test_an_old_browser_is_told(visit: Visitor) -> None:
    visitor = visit()
    tab = visitor.context.new_page()
    tab.add_init_script("delete window.WebAssembly")
    tab.goto(visitor.host.url + "chat.html")
    tab.get_by_role("alert").filter(has_text="runs no WebAssembly").wait_for()
