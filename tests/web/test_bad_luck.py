"""Visitors with bad luck: a browser that keeps nothing, strangers' links, files that go away."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from visitors import IMAGE, PAGES, TAKE_IMAGE, Visit, use

from paperkiln.formats.gguf_reader import read_header

Visitor = Callable[..., Visit]
REFUSES_STORAGE = """
for (const name of ["sessionStorage", "localStorage", "indexedDB", "caches"])
  Object.defineProperty(window, name, {
    get() { throw new DOMException("refused", "SecurityError"); },
  });
"""


def test_a_browser_that_keeps_nothing_still_chats(visit: Visitor) -> None:
    visitor = visit()
    visitor.context.add_init_script(REFUSES_STORAGE)
    tab = visitor.context.new_page()
    tab.goto(visitor.host.url + "chat.html")
    use(tab, "chat.html")


@pytest.mark.parametrize("page", PAGES)
def test_a_worker_that_cannot_start_is_not_started_for_ever(visit: Visitor, page: str) -> None:
    visitor = visit()
    visitor.expected += ["Failed to load resource"]
    tab = visitor.context.new_page()
    asked: list[str] = []

    def refuse(route: Any) -> None:
        asked.append(route.request.url)
        route.abort()

    tab.route("**/worker.js", refuse)
    tab.goto(visitor.host.url + page)
    alert = tab.get_by_role("alert").filter(has_text="Python did not start")
    alert.get_by_role("button", name="Try again").wait_for()
    tab.wait_for_timeout(500)
    assert len(asked) == 1


def test_python_that_breaks_for_good_is_started_anew(visit: Visitor) -> None:
    visitor = visit()
    tab = visitor.context.new_page()
    broken: list[str] = []

    def break_once(route: Any) -> None:
        body = route.fetch().text()
        if not broken:
            broken.append(route.request.url)
            body += """
            HANDLERS["chat.send"] = async () => {
              throw Object.assign(new Error("memory access out of bounds"),
                                  { pyodide_fatal_error: true });
            };"""
        route.fulfill(body=body, content_type="text/javascript")

    tab.route("**/worker.js", break_once)
    tab.goto(visitor.host.url + "chat.html")
    tab.get_by_label("Your message").fill("hello")
    tab.get_by_label("Your message").press("Enter")
    tab.get_by_role("alert").filter(has_text="starts again by itself").wait_for()
    tab.get_by_role("button", name="Answer again").click()
    tab.locator(".turn.assistant .figures").wait_for()
    assert tab.locator(".turn.user .said").all_inner_texts() == ["hello"]


def test_a_model_that_breaks_each_worker_is_not_opened_for_ever(visit: Visitor) -> None:
    """Though another element of the page goes on well with each new one."""
    visitor = visit()
    visitor.expected += ["crash"]
    tab = visitor.context.new_page()
    script = """
    onmessage = ({ data: { id, kind } }) => {
      if (kind === "boot") postMessage({ id, done: {} });
      if (kind === "chat.load") setTimeout(() => { throw new Error("crash"); }, 100);
    };"""
    asked: list[str] = []

    def answer(route: Any) -> None:
        asked.append(route.request.url)
        route.fulfill(body=script, content_type="text/javascript")

    tab.route("**/worker.js", answer)
    tab.add_init_script(
        """customElements.whenDefined("paperkiln-chat").then(async () => {
          const { client } = await import("./client.js");
          const boot = () => client().request("boot").catch(() => {});
          client().onRestart.add(boot);
          boot();
        });"""
    )
    tab.goto(visitor.host.url + "chat.html")
    tab.get_by_role("alert").get_by_role("button", name="Try again").wait_for(timeout=20_000)
    tab.wait_for_timeout(1000)
    assert len(asked) <= 3


def link(text: str) -> str:
    packed = zlib.compressobj(wbits=-15)
    data = packed.compress(text.encode()) + packed.flush()
    return "#spec=" + base64.urlsafe_b64encode(data).decode().rstrip("=")


DAMAGED, CHECKED = "The link is damaged", "to mend"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"arch": {"x": ' + "[" * 90_000 + "]" * 90_000 + "}}", DAMAGED),
        ('{"name": {"toString": 1}, "notes": {"valueOf": 2, "toString": 3}}', CHECKED),
        ('{"arch": {"norm": {"toString": 1}, "n_layers": {"a": 1}}}', CHECKED),
        ('{"arch": "abc", "data": 5, "train": [1, 2], "export": null}', CHECKED),
        ('{"__proto__": {"x": 1}, "constructor": {"prototype": {"y": 1}}}', CHECKED),
        ('{"name": "<img src=x onerror=alert(1)>", "notes": "\\u202e\\ud800\\u0000"}', CHECKED),
        ("{" + ",".join(f'"f{i}":1' for i in range(9000)) + "}", CHECKED),
    ],
    ids=["deep", "objects", "leaves", "sections", "prototypes", "markup", "many"],
)
def test_links_from_a_stranger(visit: Visitor, text: str, said: str) -> None:
    visitor = visit()
    tab = visitor.context.new_page()
    visitor.open_nothing(tab)
    tab.evaluate(TAKE_IMAGE, IMAGE)
    tab.goto(f"{visitor.host.url}spec.html{link(text)}")
    tab.get_by_text(said).first.wait_for()
    assert len(tab.locator("form > .error").inner_text()) < 600
    tab.locator("#arch-n_layers").fill("3")
    tab.get_by_role("button", name="defaults").click()
    tab.get_by_text("Checked, as the trainer checks it.").wait_for()
    assert json.loads(tab.get_by_label("spec.json", exact=True).text_content()) == {}


def test_a_model_file_that_was_changed_meanwhile(visit: Visitor, gguf: Callable[..., Path]) -> None:
    tab = visit().open("chat.html")
    path = gguf("mine", d_model=32, n_layers=1, n_heads=2, context_length=64)
    tab.get_by_label("Open a GGUF file").set_input_files(path)
    tab.get_by_text("context 64").wait_for()
    path.write_bytes(b"another file")
    tab.evaluate("document.querySelector('paperkiln-chat').client.restart(new Error('crash'))")
    alert = tab.get_by_role("alert").filter(has_text="The file cannot be read")
    alert.get_by_role("button", name="Use the shipped model").click()
    use(tab, "chat.html")


def test_a_folder_dropped_on_the_paper_reader(visit: Visitor) -> None:
    tab = visit().open("paper.html")
    tab.evaluate(
        """() => {
          const refuse = () => Promise.reject(new DOMException("a folder", "NotFoundError"));
          const folder = Object.assign(new File([], "folder"), { arrayBuffer: refuse });
          document.querySelector("paperkiln-paper").take(folder);
        }"""
    )
    tab.get_by_role("alert").filter(has_text="it is a folder").wait_for()
    use(tab, "paper.html")


def test_weights_that_are_no_numbers_lead_back_to_the_shipped_model(
    visit: Visitor, gguf: Callable[..., Path]
) -> None:
    path = gguf("bad", d_model=32, n_layers=1, n_heads=2)
    data = bytearray(path.read_bytes())
    info = read_header(bytes(data)).tensors["output_norm.weight"]
    values = np.full(info.shape, np.nan, np.float32)
    data[info.offset : info.offset + info.n_bytes] = values.tobytes()
    path.write_bytes(data)
    tab = visit().open("chat.html")
    tab.get_by_label("Open a GGUF file").set_input_files(path)
    tab.get_by_text("bad").first.wait_for()
    tab.get_by_label("Your message").fill("hello")
    tab.get_by_label("Your message").press("Enter")
    alert = tab.get_by_role("alert").filter(has_text="not finite")
    alert.get_by_role("button", name="Use the shipped model").click()
    tab.get_by_text("stand-in").first.wait_for()
    tab.get_by_role("button", name="Again").click()
    tab.locator(".turn.assistant .figures").wait_for()


def test_enter_twice_before_the_page_is_ready(visit: Visitor) -> None:
    tab = visit().open("chat.html", ready=False)
    tab.evaluate(
        """() => {
          const field = document.querySelector("paperkiln-chat").input;
          field.value = "early";
          for (let i = 0; i < 3; i++)
            field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", cancelable: true }));
        }"""
    )
    tab.locator(".turn.assistant .figures").wait_for()
    assert tab.locator(".turn.user .said").all_inner_texts() == ["early"]


def test_a_reload_waits_for_the_page_that_it_replaces(visit: Visitor) -> None:
    """Which may let go late: the visitor would find another conversation, or none."""
    visitor = visit()
    tab = visitor.open("chat.html")
    use(tab, "chat.html")
    other = visitor.context.new_page()
    visitor.open_nothing(other)
    other.evaluate(
        """(id) => {
          const late = () => new Promise((letGo) => setTimeout(letGo, 1200));
          navigator.locks.request(`paperkiln conversation ${id}`, late);
        }""",
        tab.evaluate("sessionStorage.getItem('paperkiln conversation')"),
    )
    tab.reload()
    tab.wait_for_selector("paperkiln-chat[data-ready]")
    tab.locator(".turn").nth(1).wait_for(timeout=10_000)


def test_a_service_worker_whose_storage_fails_lets_the_page_through(visit: Visitor) -> None:
    visitor = visit(keeps=True)
    tab = visitor.open("paper.html")
    tab.wait_for_selector("html[data-offline=ready]")
    (worker,) = visitor.context.service_workers
    worker.evaluate(
        """() => {
          const fail = () => Promise.reject(new DOMException("broken", "UnknownError"));
          caches.open = caches.match = fail;
        }"""
    )
    tab.reload()
    tab.wait_for_selector("paperkiln-paper[data-ready]")


@pytest.mark.parametrize("part", ["manifest.json", "wheels/paperkiln"])
def test_what_did_not_come_is_asked_for_again(visit: Visitor, part: str) -> None:
    visitor = visit(first=True)
    visitor.expected += ["Failed to load resource"]
    tab = visitor.context.new_page()
    refuse = lambda route: route.abort()  # noqa: E731
    tab.route(f"**/{part}*", refuse)
    tab.goto(visitor.host.url + "spec.html")
    alert = tab.get_by_role("alert").filter(has_text="Check the connection")
    alert.wait_for()
    tab.unroute(f"**/{part}*", refuse)
    alert.get_by_role("button", name="Try again").click()
    tab.get_by_text("Checked, as the trainer checks it.").wait_for()
