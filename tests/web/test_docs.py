"""The docs with the app inside them, under a base path, as a visitor reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from visitors import BASE, Handler, Visit

pytest.importorskip("material", reason="mkdocs-material is not installed: pip install -e '.[docs]'")


@pytest.fixture(scope="session")
def docs(build_docs: Callable[..., Path]) -> Path:
    return build_docs("docs")


def test_every_page_opens_without_a_problem(
    docs: Path, host: type[Handler], visit: Callable[..., Visit]
) -> None:
    """What `visit` checks for each: nothing leaves the origin, nothing fails unseen."""
    host.root = str(docs)
    pages = [p.parent.relative_to(docs).as_posix() for p in docs.rglob("index.html")]
    # Without motion a page has its new width at once.
    tab = visit(reduced_motion="reduce").context.new_page()
    for page in pages:
        tab.goto(f"{host.origin}{BASE}{page}/".replace("/./", "/"))
        for width in (1280, 390):
            tab.set_viewport_size({"width": width, "height": 844})
            wide = tab.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, (page, width)


def test_the_chat_on_the_first_page_starts_on_a_click_and_follows_the_palette(
    docs: Path, host: type[Handler], visit: Callable[..., Visit]
) -> None:
    host.root = str(docs)
    visitor = visit(color_scheme="light")
    tab = visitor.context.new_page()
    tab.goto(f"{host.origin}{BASE}")
    chat = tab.locator("paperkiln-chat")
    start = chat.get_by_role("button", name="Start the chat")
    start.wait_for()
    assert not any("pyodide" in url for url in visitor.requests)
    start.click()
    tab.wait_for_selector("paperkiln-chat[data-ready]")
    colour = lambda: chat.evaluate("e => getComputedStyle(e).getPropertyValue('--paper')")  # noqa: E731
    light = colour()
    for _ in range(2):  # from the system's choice to light, then to dark
        tab.locator("label[for^=__palette]:visible").click()
    assert tab.evaluate("document.body.dataset.mdColorScheme") == "slate"
    assert colour() != light
