"""What both benches share: the built pages, a plain static server, and Chromium."""

from __future__ import annotations

import contextlib
import functools
import http.server
import importlib.util
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from playwright.sync_api import sync_playwright  # noqa: E402


def load(path: Path) -> ModuleType:
    """Import a file that is part of no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build = load(ROOT / "web" / "build.py")


class Handler(http.server.SimpleHTTPRequestHandler):
    """A plain static host that keeps connections open, and counts: /sent says how many bytes."""

    protocol_version = "HTTP/1.1"
    sent = 0

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Send a file, or how many bytes of files were sent."""
        if self.path != "/sent":
            return super().do_GET()
        said = str(Handler.sent).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def copyfile(self, source: Any, outputfile: Any) -> None:
        """Send a file's content."""
        data = source.read()
        Handler.sent += len(data)
        outputfile.write(data)


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine; the value is its address."""
    make = functools.partial(Handler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), make)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def chromium() -> Iterator[Callable[[], contextlib.AbstractContextManager[Any]]]:
    """Debian's Chromium, or Playwright's own: what opens a profile that was never used."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    options = {"executable_path": path, "args": ["--no-sandbox", "--disable-gpu"]}

    @contextlib.contextmanager
    def fresh() -> Iterator[Any]:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            profile = driver.chromium.launch_persistent_context(folder, **options)
            yield profile
            profile.close()

    with sync_playwright() as driver:
        yield fresh
