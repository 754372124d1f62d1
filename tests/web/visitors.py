"""A static host, and visitors who are watched: what the tests of the pages share."""

from __future__ import annotations

import contextlib
import http.server
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from paperkiln.formats.gguf_writer import write_gguf
from paperkiln.models.config import ModelConfig
from paperkiln.models.init import init_parameters
from paperkiln.train.tokenizers import byte_tokenizer

ROOT = Path(__file__).parents[2]
BASE = "/some/host/under/"  # a static host may serve the site under any path
READY = 120_000  # ms: a cold start where others keep both cores busy
PAGES = ("chat.html", "spec.html", "paper.html")
IMAGE = "image-of-python"
CLIPBOARD = ["clipboard-read", "clipboard-write"]

# Of an element: where it is on the page, however far that is scrolled.
PLACE = """(element) => {
  const { x, y, width, height } = element.getBoundingClientRect();
  return [x + scrollX, y + scrollY, width, height].map(Math.round);
}"""

# In a document of the app's folder: where boot.js keeps its image.
_KEPT = """
  const base = new URL("./", location).href;
  const { version } = await (await fetch("manifest.json")).json();
  const cache = await caches.open(`paperkiln ${base}`);
  const key = `${base}snapshot?${version}`;
"""
# Replies are drawn at random; one that happens to be empty would fail a test now and then.
SEEDED = """try {
  if (!localStorage.getItem("paperkiln sampling"))
    localStorage.setItem("paperkiln sampling", '{"seed": 7}');
} catch { /* an empty page keeps nothing */ }"""
TAKE_IMAGE = f"async (name) => {{ {_KEPT} await cache.put(key, await fetch(name)); }}"
MAKE_IMAGE = f"""async (name) => {{
  const {{ Client, makeWorker }} = await import("./client.js");
  await new Client(makeWorker).request("snapshot");
  {_KEPT}
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await (await cache.match(key)).blob());
  link.download = name;
  link.click();
}}"""


class Handler(http.server.SimpleHTTPRequestHandler):
    """A plain static host, with a wait that a test may set."""

    wait: Callable[[str], None] = staticmethod(lambda path: None)
    root = ""  # another folder than the built site
    image = ""  # of Python: found as IMAGE

    def log_message(self, *arguments: Any) -> None: ...

    def do_GET(self) -> None:
        type(self).wait(self.path)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the page was closed
            super().do_GET()

    def translate_path(self, path: str) -> str:
        path = path.partition("?")[0]
        self.directory = self.root or self.directory
        if path == f"{BASE}app/{IMAGE}":
            return self.image
        if not path.startswith(BASE):
            return "/nowhere"
        return super().translate_path("/" + path.removeprefix(BASE))


class Visit:
    """One visitor: a fresh profile, everything it asked for, everything that went wrong."""

    def __init__(
        self,
        browser: Any,
        host: type[Handler],
        keeps: bool = False,
        has_image: bool = False,
        **options: Any,
    ) -> None:
        """`keeps`: with the service worker, for offline use and a quicker second visit.

        `has_image`: Python starts from the image of an earlier visit, which takes a third of the
        time. The host has it as IMAGE.
        """
        self.host, self.lacks_image = host, has_image
        service_workers = "allow" if keeps else "block"
        self.context = browser.new_context(service_workers=service_workers, **options)
        self.context.set_default_timeout(READY)
        self.context.add_init_script(SEEDED)
        self.requests: list[str] = []
        self.problems: list[str] = []
        # Parts of problems that the tests provoke.
        self.expected = ["Service Worker registration blocked"]
        self.context.on("request", lambda request: self.requests.append(request.url))
        self.context.on("weberror", lambda error: self.problems.append(str(error.error)))
        self.context.on("console", self._on_console)

    def _on_console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(message.text)

    def open(self, page: str, ready: bool = True) -> Any:
        """Open a page of the app, and wait for its element unless told not to."""
        tab = self.context.new_page()
        if self.lacks_image:
            self.lacks_image = False
            self.open_nothing(tab)
            tab.evaluate(TAKE_IMAGE, IMAGE)
        tab.goto(self.host.url + page)
        if ready:
            name = page.partition(".")[0]
            tab.wait_for_selector(f"paperkiln-{name}[data-ready]")
        return tab

    def open_nothing(self, tab: Any) -> None:
        """Open an empty document in the app's folder."""
        empty = "<!doctype html><link rel='icon' href='data:,'>"
        tab.route("**/empty", lambda route: route.fulfill(body=empty, content_type="text/html"))
        tab.goto(self.host.url + "empty")
        tab.unroute("**/empty")

    def check(self) -> None:
        """Assert that nothing left the origin and nothing went wrong unseen."""
        outside = [
            url for url in self.requests
            if not url.startswith((self.host.origin, "blob:", "data:", "about:"))
        ]  # fmt: skip
        assert not outside, outside
        unseen = [p for p in self.problems if not any(part in p for part in self.expected)]
        assert not unseen, unseen


def use(tab: Any, page: str) -> None:
    """Do on a page what it is for."""
    if page == "chat.html":
        box = tab.get_by_label("Your message")
        box.fill("hello")
        box.press("Enter")
        tab.locator(".turn.assistant .figures").first.wait_for()
    elif page == "spec.html":
        tab.locator("#arch-n_layers").fill("3")
        tab.locator(".figure svg[aria-label*='3 blocks']").wait_for()
    else:
        tab.get_by_role("button", name="or read a short example").click()
        tab.frame_locator("iframe.evidence").get_by_role("heading", level=1).wait_for()


def violations(tab: Any) -> list[str]:
    """What axe-core objects to, in the page and in its shadow roots."""
    if not tab.evaluate("'axe' in window"):
        tab.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8"))
    found = tab.evaluate("axe.run(document, { iframes: false })")["violations"]
    return [f"{v['id']}: {[n['html'][:120] for n in v['nodes'][:3]]}" for v in found]


def make_model(path: Path, dtype: str = "f32", name: str = "stand-in", **fields: Any) -> Path:
    """Write a llama-shaped model of random weights that speaks bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    config = ModelConfig(vocab_size=259, **({"context_length": 256} | fields))
    write_gguf(
        path, config, init_parameters(config, seed=5), byte_tokenizer(), dtype=dtype, name=name
    )
    return path


def random_bytes(path: Path, n: int = 4096) -> Path:
    """Write what is no file of any kind."""
    path.write_bytes(np.random.default_rng(0).bytes(n))
    return path
