"""The docs with the app inside them, under a base path, as a visitor reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from visitors import BASE, PLACE, Handler, Visit, violations

pytest.importorskip("material", reason="mkdocs-material is not installed: pip install -e '.[docs]'")

# Between them they have everything that pages are made of; axe-core needs a second for each.
VARIED = (
    ".", "getting-started", "concepts/decoder", "how-to/embed-a-demo", "reference/spec", "atlas",
    "atlas/explorer", "atlas/findings/factorial-lr", "atlas/studies/factorial",
)  # fmt: skip
AT_REST = "!document.getAnimations().some((each) => each.playState === 'running')"


@pytest.fixture(scope="session")
def docs(build_docs: Callable[..., Path]) -> Path:
    return build_docs("docs")


def test_every_page_opens_without_a_problem(
    docs: Path, host: type[Handler], visit: Callable[..., Visit]
) -> None:
    """What `visit` checks for each: nothing leaves the origin, nothing fails unseen.

    No page is wider than its window, and axe-core objects to none of those with all that the
    pages are made of.
    """
    host.root = str(docs)
    pages = [p.parent.relative_to(docs).as_posix() for p in docs.rglob("index.html")]
    # Without motion a page has its new width at once.
    tab = visit(reduced_motion="reduce").context.new_page()
    for page in pages:
        tab.emulate_media(color_scheme="light")
        tab.goto(f"{host.origin}{BASE}{page}/".replace("/./", "/"))
        for width, scheme, name in ((1280, "light", "default"), (390, "dark", "slate")):
            tab.set_viewport_size({"width": width, "height": 844})
            tab.emulate_media(color_scheme=scheme)
            tab.wait_for_selector(f"body[data-md-color-scheme={name}]")
            tab.wait_for_function(AT_REST)
            wide = tab.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, (page, width)
            if page in VARIED:
                assert violations(tab) == [], (page, width)


def test_what_is_too_wide_is_scrolled_by_keyboard(
    docs: Path, host: type[Handler], visit: Callable[..., Visit]
) -> None:
    host.root = str(docs)
    tab = visit(viewport={"width": 390, "height": 844}).context.new_page()
    tab.goto(f"{host.origin}{BASE}how-to/embed-a-demo/")
    table = tab.get_by_role("group", name="Table")
    table.focus()
    tab.keyboard.press("ArrowRight")
    tab.wait_for_function("() => document.activeElement.scrollLeft > 0")
    tab.wait_for_selector("nav.md-code__nav[role=none]", state="attached")
    assert not tab.locator("nav.md-code__nav:not([role=none])").count()
    tab.set_viewport_size({"width": 1280, "height": 844})
    table.wait_for(state="detached")  # nothing to scroll, nothing to stop at


def test_the_chat_on_the_first_page_starts_on_a_click_and_follows_the_palette(
    docs: Path, host: type[Handler], visit: Callable[..., Visit]
) -> None:
    host.root = str(docs)
    visitor = visit(color_scheme="light")
    tab = visitor.context.new_page()
    held: list[Any] = []
    tab.route("**/elements/chat.js", lambda route: held.append(route))
    with tab.expect_request("**/elements/chat.js"):
        tab.goto(f"{host.origin}{BASE}", wait_until="commit")
    tab.wait_for_function("() => document.readyState === 'interactive'")
    chat = tab.locator("paperkiln-chat")
    empty = chat.evaluate(PLACE)
    held[0].continue_()
    start = chat.get_by_role("button", name="Start the chat")
    start.wait_for()
    assert not any("pyodide" in url for url in visitor.requests)
    closed = chat.evaluate(PLACE)
    assert closed[2:] == empty[2:]  # its place is kept before it loads
    start.click()
    tab.wait_for_selector("paperkiln-chat[data-ready]")
    assert chat.evaluate(PLACE) == closed  # nothing moves
    colour = lambda: chat.evaluate("e => getComputedStyle(e).getPropertyValue('--paper')")  # noqa: E731
    light = colour()
    for _ in range(2):  # from the system's choice to light, then to dark
        tab.locator("label[for^=__palette]:visible").click()
    assert tab.evaluate("document.body.dataset.mdColorScheme") == "slate"
    assert colour() != light


def test_the_copy_button_takes_the_commands_without_prompt_or_output(
    docs: Path, host: type[Handler], visit: Callable[..., Visit]
) -> None:
    host.root = str(docs)
    visitor = visit()
    visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab = visitor.context.new_page()
    tab.goto(f"{host.origin}{BASE}how-to/export/")
    tab.get_by_title("Copy to clipboard").first.click()
    tab.get_by_text("Copied to clipboard").wait_for()
    copied = tab.evaluate("navigator.clipboard.readText()").split("\n")
    assert [line for line in copied if line] == [
        "paperkiln export runs/tinychat-quick --format gguf --dtype q8_0",
        "paperkiln export runs/tinychat-quick --format hf",
    ]
