"""The demos of the docs, in Chromium: they compute what the package computes, by mouse and keys."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from visitors import ROOT

from paperkiln.engine import ops
from paperkiln.infer.sampling import Sampling, distribution

pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")

# The policy that site/how-to/embed-a-demo.md recommends.
PAGE = """<!doctype html><html lang="en"><head><title>Demos</title><meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'self'; script-src 'self'
 'wasm-unsafe-eval'; img-src 'self' data: blob:">
<script type="module" src="demos/rope.js"></script>
<script type="module" src="demos/softmax.js"></script>
<script type="module" src="demos/gradcheck.js"></script></head><body><main><h1>Demos</h1>
<paperkiln-rope></paperkiln-rope><paperkiln-softmax></paperkiln-softmax>
<paperkiln-gradcheck></paperkiln-gradcheck></main></body></html>"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: Any) -> None: ...


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("demos")
    shutil.copytree(ROOT / "web" / "demos", folder / "demos")
    (folder / "index.html").write_text(PAGE, encoding="utf-8")
    (folder / "favicon.ico").touch()
    handler = functools.partial(Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(params=[(1200, "light"), (390, "dark")], ids=["desktop", "phone"])
def page(browser: Any, address: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    width, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.set_default_timeout(20_000)
    problems: list[str] = []
    context.on("weberror", lambda error: problems.append(str(error.error)))
    context.on("console", lambda m: m.type in ("error", "warning") and problems.append(m.text))
    tab = context.new_page()
    tab.goto(address)
    tab.wait_for_selector("paperkiln-gradcheck .plot")
    yield tab
    context.close()
    assert problems == []


def test_softmax_has_the_probabilities_of_our_sampling(page: Any) -> None:
    settings = [(1, 0, 1), (0.5, 0, 1), (2.5, 5, 1), (1, 0, 0.7), (0.8, 4, 0.9), (3, 12, 0.05)]
    for temperature, top_k, top_p in settings:
        logits, found = page.evaluate(
            """async ([temperature, topK, topP]) => {
              const { LOGITS, distribution } = await import("./demos/softmax.js");
              const logits = LOGITS.map(([, logit]) => logit);
              return [logits, distribution(logits, { temperature, topK, topP })];
            }""",
            [temperature, top_k, top_p],
        )
        sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p)
        wanted = [p for p, _ in distribution([(x, i) for i, x in enumerate(logits)], sampling)]
        wanted += [0.0] * (len(logits) - len(wanted))
        assert found == pytest.approx(wanted, abs=1e-12)


def test_rope_turns_pairs_as_our_op_does(page: Any) -> None:
    found = page.evaluate(
        """async () => {
          const { frequency } = await import("./demos/rope.js");
          return [0, 1, 2, 3].map((m) => 5 * frequency(m, 10000));
        }"""
    )
    x = np.tile([1.0, 0.0], 4).reshape(1, 1, 1, 8).repeat(6, axis=1)  # pairs along their first axis
    turned = ops.rope(ops.tensor(x), 10000.0, interleaved=True).data[0, 5, 0].reshape(4, 2)
    assert np.cos(found) == pytest.approx(turned[:, 0])
    assert np.sin(found) == pytest.approx(turned[:, 1])


def test_moving_both_tokens_keeps_the_score(page: Any) -> None:
    rope = page.locator("paperkiln-rope")
    before = rope.locator(".says").inner_text()
    rope.get_by_role("button", name="Move both on").click()
    rope.get_by_role("button", name="Move both on").press("Enter")
    assert rope.locator(".value").all_inner_texts() == ["14", "9"]
    assert rope.locator(".says").inner_text() == before
    rope.get_by_label("Query’s position t").press("ArrowRight")
    assert rope.locator(".value").first.inner_text() == "15"
    assert rope.locator(".says").inner_text() != before


def test_softmax_draws_only_what_is_left(page: Any) -> None:
    softmax = page.locator("paperkiln-softmax")
    slider = softmax.get_by_label("Top-k")
    for _ in range(3):
        slider.press("ArrowRight")
    assert "3 of 12 tokens are left" in softmax.locator(".says").inner_text()
    softmax.get_by_role("button", name="Draw 100").click()
    drawn = softmax.locator("tbody td:last-child").all_inner_texts()
    assert sum(int(n or 0) for n in drawn[:3]) == 100
    assert {int(n) for n in drawn[3:]} == {0}
    softmax.get_by_label("Temperature").press("Home")
    assert "1 of 12" in softmax.locator(".says").inner_text()


def test_a_wrong_rule_stays_wrong_at_every_step(page: Any) -> None:
    check = page.locator("paperkiln-gradcheck")
    errors = lambda: page.evaluate(  # noqa: E731
        """() => { const demo = document.querySelector("paperkiln-gradcheck");
          return Array.from({ length: 40 }, (_, i) => demo.error(-i / 4)); }"""
    )
    right = errors()
    assert min(right) < 1e-9 < right[-1]
    check.get_by_label("Compute in float32").check()
    assert min(errors()) > 1e-7
    check.get_by_label("Compute in float32").uncheck()
    check.get_by_label("Use a wrong rule").check()
    assert min(errors()) > 1e-2
    for name in ("SiLU, x·σ(x)", "tanh x", "ln(1 + eˣ)"):
        check.get_by_label("Function").select_option(label=name)
        assert min(errors()) > 1e-2
        check.get_by_label("Use a wrong rule").uncheck()
        assert min(errors()) < 1e-8
        check.get_by_label("Use a wrong rule").check()


def test_the_demos_are_accessible_and_fit_their_width(page: Any) -> None:
    report = axe.Axe().run(page)
    assert [violation["id"] for violation in report.response["violations"]] == []
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0


def test_nothing_moves_while_a_reader_plays(page: Any) -> None:
    heights = lambda: page.evaluate(  # noqa: E731
        "[...document.querySelectorAll('main > *')].map((e) => e.getBoundingClientRect().height)"
    )
    before = heights()
    page.locator("paperkiln-softmax").get_by_role("button", name="Draw 100").click()
    page.locator("paperkiln-softmax").get_by_label("Temperature").press("End")
    page.locator("paperkiln-gradcheck").get_by_label("Step h").press("Home")
    page.locator("paperkiln-rope").get_by_label("Key’s position j").press("End")
    assert heights() == before
