"""How much the pages weigh and how long they take to start: `python web/bench/startup.py`.

Each page is opened in a fresh profile (a first visit) and once more in the same one (a second
visit: the service worker has the files and an image of Python), from a host on this machine, so
that the network's part is in the bytes and not in the times. The chat is sent "hello" as soon as
its field is there. Times count from the moment of opening, in medians of `--rounds`.
"""

from __future__ import annotations

import argparse
import gzip
import statistics
from pathlib import Path
from typing import Any

from host import ROOT, Handler, build, chromium, served

PAGES = ("chat", "spec", "paper")
# What can first be used on each page, and what says that all of it works.
FIELDS = {"chat": "textarea", "spec": "#arch-n_layers", "paper": "textarea"}
WATCH = """
addEventListener("DOMContentLoaded", () => {
  const page = document.querySelector("paperkiln-chat, paperkiln-spec, paperkiln-paper");
  const times = (window.times = {});
  const look = () => {
    const inside = (what) => page.shadowRoot?.querySelector(what);
    const field = inside("%s");
    if (field && !times.usable) {
      times.usable = performance.now();
      if (page.localName === "paperkiln-chat") {
        field.value = "hello";
        const enter = { key: "Enter", bubbles: true, cancelable: true };
        field.dispatchEvent(new KeyboardEvent("keydown", enter));
      }
    }
    if ("ready" in page.dataset) times.ready ??= performance.now();
    const said = inside(".turn.assistant:nth-child(%d) .said");
    if (said?.textContent) times.token ??= performance.now();
    if (!times.ready || (page.localName === "paperkiln-chat" && !times.token)) {
      requestAnimationFrame(look);
    } else times.done = true;
  };
  look();
});
"""


def visit(profile: Any, address: str, page: str, n: int) -> tuple[Any, dict[str, float]]:
    """Open a page; return it, and when it was usable, ready and, for the chat, said something.

    It is the n-th visit: the chat goes on with the conversation of the earlier ones.
    """
    tab = profile.new_page()
    tab.add_init_script(WATCH % (FIELDS[page], 2 * n))
    tab.goto(f"{address}app/{page}.html")
    tab.wait_for_function("() => window.times?.done")
    return tab, tab.evaluate("window.times")


def measure(profile: Any, address: str, page: str) -> dict[str, Any]:
    """Return the figures of a first and of a second visit."""
    before = Handler.sent
    tab, first = visit(profile, address, page, 1)
    loaded = Handler.sent - before
    tab.wait_for_selector("html[data-snapshot=ready]", timeout=120_000)
    kept = Handler.sent - before
    tab.close()
    before = Handler.sent
    _, second = visit(profile, address, page, 2)
    again = Handler.sent - before
    return {"first": first, "second": second, "loaded": loaded, "kept": kept, "again": again}


def weight(files: list[Path]) -> tuple[int, int]:
    """Return the bytes of files, plain and as gzip sends them."""
    data = [file.read_bytes() for file in files]
    return sum(map(len, data)), sum(len(gzip.compress(each, 6)) for each in data)


def main() -> None:
    """Build, serve, and time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "bench")
    args = parser.parse_args()
    app = build.build(args.folder, ROOT / "web" / "models")
    groups = {
        "Python (pyodide/)": list(app.glob("pyodide/*")),
        "our wheel": list(app.glob("wheels/paperkiln*")),
        "pydantic's wheels": [p for p in app.glob("wheels/*") if "paperkiln" not in p.name],
        "ember, one of its two builds": [app / "engine" / "ember-relaxed.wasm"],
        "the model": list(app.glob("models/*/model.gguf")),
        "pages, scripts, style": [
            *app.glob("*.js"), *app.glob("*.css"), *app.glob("*.html"), *app.glob("elements/*"),
        ],
    }  # fmt: skip
    for name, files in groups.items():
        plain, packed = weight(files)
        print(f"{name:32}{plain / 1e6:>8.2f} MB{packed / 1e6:>8.2f} MB with gzip")
    with served(args.folder) as address, chromium() as fresh:
        for page in PAGES:
            runs = []
            for _ in range(args.rounds):
                with fresh() as profile:
                    runs.append(measure(profile, address, page))
            print(f"{page}: {runs[0]['loaded'] / 1e6:.2f} MB until it is ready,",
                  f"{runs[0]['kept'] / 1e6:.2f} MB kept in the end,",
                  f"{runs[0]['again'] / 1e6:.2f} MB on a second visit")  # fmt: skip
            for which in ("first", "second"):
                for what in ("usable", "ready", "token"):
                    values = [run[which][what] for run in runs if what in run[which]]
                    if values:
                        print(f"  {which} visit, {what:6} {statistics.median(values):>7,.0f} ms",
                              f"({min(values):,.0f} to {max(values):,.0f})")  # fmt: skip


if __name__ == "__main__":
    main()
