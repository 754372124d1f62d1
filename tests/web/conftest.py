"""The pages under test: built once, served as a static host would, opened in Chromium.

Debian's Chromium is driven, or Playwright's own where that is installed. Every page of every test
is watched: no request may leave the origin, and nothing may fail unseen.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from visitors import BASE, IMAGE, MAKE_IMAGE, ROOT, Handler, Visit, make_model

playwright = pytest.importorskip("playwright.sync_api")

_CACHE = os.environ.get("PAPERKILN_CACHE")  # before the tests get one of their own


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one small random model, in the place of the shipped ones."""
    folder = tmp_path_factory.mktemp("models")
    make_model(folder / "stand-in" / "model.gguf", d_model=64, n_layers=2, n_heads=4)
    (folder / "stand-in" / "card.md").write_text("# stand-in\n\n| | |\n| --- | --- |\n| a | b |\n")
    (folder / "stand-in" / "record.json").write_text('{"format": "paperkiln-record/1"}\n')
    return folder


@pytest.fixture(scope="session")
def slow_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that takes seconds for a reply."""
    path = tmp_path_factory.mktemp("slow") / "slow.gguf"
    return make_model(path, "q8_0", "slow", d_model=512, n_layers=8, n_heads=8, d_ff=2048,
                      context_length=2048)  # fmt: skip


Once = Callable[[str, Callable[[Path], None]], Path]


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Return what makes a folder, or finds that another worker of pytest made it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def find(name: str, make: Callable[[Path], None]) -> Path:
        out, done = shared / name, shared / f"{name}.done"
        with FileLock(shared / f"{name}.lock"):
            if not done.exists():
                make(out)
                done.touch()
        return out

    return find


@pytest.fixture(scope="session")
def site(once: Once, models: Path) -> Path:
    """The built pages."""
    environment = {k: v for k, v in os.environ.items() if k != "PAPERKILN_CACHE"}
    environment |= {"PAPERKILN_CACHE": _CACHE} if _CACHE else {}

    def make(out: Path) -> None:
        command = [sys.executable, ROOT / "web" / "build.py", out, "--models", models]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr

    return once("site", make)


@pytest.fixture(scope="session")
def build_docs(once: Once, site: Path) -> Callable[..., Path]:
    """Return what builds the whole site, as `make site` leaves it."""

    def build(name: str, **environment: str) -> Path:
        def make(out: Path) -> None:
            command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
            settings = os.environ | {"NO_MKDOCS_2_WARNING": "1"} | environment
            subprocess.run(command, cwd=ROOT, check=True, capture_output=True, env=settings)
            shutil.copytree(site / "app", out / "app")

        return once(name, make)

    return build


@pytest.fixture(scope="session")
def image(browser: Any, once: Once, site: Path) -> Path:
    """An image of Python that has started, as boot.js keeps it."""

    def make(out: Path) -> None:
        with serve(site) as host:
            visitor = Visit(browser, host)
            tab = visitor.context.new_page()
            visitor.open_nothing(tab)
            with tab.expect_download() as waiting:
                tab.evaluate(MAKE_IMAGE, IMAGE)
            waiting.value.save_as(out)
            visitor.context.close()
            visitor.check()

    return once("image", make)


@pytest.fixture
def host(site: Path) -> Iterator[type[Handler]]:
    """A server of its own for each test, so that none has another's service worker."""
    with serve(site) as handler:
        yield handler


@contextlib.contextmanager
def serve(site: Path) -> Iterator[type[Handler]]:
    """Serve a built site."""
    handler = type("TestHandler", (Handler,), {})
    make = functools.partial(handler, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), make)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    handler.origin = f"http://127.0.0.1:{server.server_port}"
    handler.url = f"{handler.origin}{BASE}app/"
    handler.stop = server.shutdown
    yield handler
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium."""
    with playwright.sync_playwright() as driver:
        path = shutil.which("chromium") or shutil.which("google-chrome")
        try:
            launched = driver.chromium.launch(
                executable_path=path, args=["--no-sandbox", "--disable-gpu"]
            )
        except playwright.Error as error:
            pytest.skip(f"no Chromium: {str(error).splitlines()[0]}")
        yield launched
        launched.close()


@pytest.fixture
def visit(
    browser: Any, host: type[Handler], request: pytest.FixtureRequest
) -> Iterator[Callable[..., Visit]]:
    """Return a maker of visitors; each is checked when the test is over.

    They have been here before, and so start quickly; `first=True` makes one that has not.
    """
    visitors: list[Visit] = []

    def make(first: bool = False, **options: Any) -> Visit:
        if not first:
            host.image = str(request.getfixturevalue("image"))
        visitors.append(Visit(browser, host, has_image=not first, **options))
        return visitors[-1]

    yield make
    for visitor in visitors:
        visitor.context.close()
    for visitor in visitors:
        visitor.check()


@pytest.fixture
def gguf(tmp_path: Path) -> Callable[..., Path]:
    """Return a maker of model files."""
    return lambda name="other", **fields: make_model(tmp_path / f"{name}.gguf", name=name, **fields)
