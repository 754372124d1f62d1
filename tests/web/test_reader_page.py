"""The paper reader, as a visitor uses it."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import TimeoutError
from visitors import ROOT, Visit

Visitor = Callable[..., Visit]
NOTE = (ROOT / "specs" / "tinychat-quick.tex").read_bytes()


def give(tab: Any, name: str, data: bytes) -> None:
    file = {"name": name, "mimeType": "application/octet-stream", "buffer": data}
    tab.get_by_label("Choose a source file").set_input_files(file)


def evidence(tab: Any) -> Any:
    frame = tab.frame_locator("iframe.evidence")
    frame.get_by_role("heading", level=1).wait_for()
    return frame


def follow(link: Any, target: Any) -> None:
    """Click on a link in a frame, again if need be: right after it appears a click may be lost."""
    for _ in range(10):
        link.click()
        with contextlib.suppress(TimeoutError):
            return target.wait_for(timeout=3000)
    raise AssertionError("the link leads nowhere")


def as_tar(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def as_zip(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def test_a_source_is_read_however_it_is_packed(visit: Visitor) -> None:
    tab = visit().open("paper.html")
    sources = {
        "note.tex": NOTE,
        "2401.00001": gzip.compress(NOTE),
        "arXiv-2401.00001v2.tar.gz": as_tar({"main.tex": NOTE}),
        "note.zip": as_zip({"paper/main.tex": NOTE}),
    }
    for name, data in sources.items():
        give(tab, name, data)
        frame = evidence(tab)
        assert "TinyChat-Quick" in frame.get_by_role("heading", level=1).inner_text()
        width = frame.locator(".v").filter(has_text="d_model").first
        assert width.locator(".value").inner_text() == "128"
        follow(width.locator(".go").first, frame.locator(".q:target"))  # to the authors' words
        assert tab.url.endswith("paper.html")
        tab.get_by_role("button", name="Another paper").click()
        tab.get_by_text("Drop a source here").wait_for()


def test_from_paper_to_spec_builder(visit: Visitor) -> None:
    visitor = visit()
    tab = visitor.open("paper.html")
    tab.get_by_role("button", name="or read a short example").click()
    evidence(tab)
    tab.get_by_role("link", name="Open in spec builder").click()
    tab.wait_for_selector("paperkiln-spec[data-ready]")
    spec = json.loads(tab.get_by_label("spec.json", exact=True).text_content())
    assert spec["arch"]["d_ff"] == 352
    tab.locator(".figure svg[aria-label*='SwiGLU']").wait_for()


def test_downloads_and_another_size(visit: Visitor) -> None:
    tab = visit().open("paper.html")
    give(tab, "note.tex", NOTE)
    evidence(tab)

    def take(button: str) -> tuple[str, str]:
        with tab.expect_download() as waiting:
            tab.get_by_role("button", name=button, exact=True).click()
        return waiting.value.suggested_filename, Path(waiting.value.path()).read_text("utf-8")

    name, text = take("Spec")
    assert name == "spec.json"
    assert json.loads(text)["arch"]["d_model"] == 128
    assert json.loads(take("HF config")[1])["model_type"] == "llama"
    assert "RunSpec" in take("Python")[1]
    assert "<html" in take("Evidence")[1]
    link = tab.get_by_role("link", name="Open in spec builder")
    before = link.get_attribute("href")
    tab.get_by_label("Build at").select_option("300k")
    tab.wait_for_function(
        "before => document.querySelector('paperkiln-paper').shadowRoot"
        ".querySelector('a.primary').href !== before",
        arg=before,
    )
    assert json.loads(take("Spec")[1])["arch"]["d_model"] < 128


def test_wrong_archives_are_told(visit: Visitor) -> None:
    tab = visit().open("paper.html")
    wrong = [
        ("paper.pdf", b"%PDF-1.5\n" + b"x" * 200, "is a PDF"),
        ("page.html", b"<!doctype html><html></html>", "is a web page"),
        ("cut.tar.gz", as_tar({"main.tex": NOTE * 50})[:700], "cut.tar.gz"),
        ("empty.zip", as_zip({}), "holds no LaTeX"),
        ("nothing.tex", b"", "is empty"),
        ("up.tar.gz", as_tar({"../../main.tex": NOTE}), "up.tar.gz"),
        ("bomb.gz", gzip.compress(b"a" * (200 << 20)), "bomb.gz"),
    ]
    give(tab, "note.tex", NOTE)
    evidence(tab)
    for name, data, expected in wrong:
        give(tab, name, data)
        alert = tab.get_by_role("alert").filter(has_text=expected)
        alert.wait_for()
        assert "Traceback" not in alert.inner_text()
    give(tab, "note.tex", NOTE)  # and the page goes on
    evidence(tab)


def test_reading_can_be_stopped(visit: Visitor) -> None:
    visitor = visit()
    tab = visitor.context.new_page()
    endless = """onmessage = ({ data: { id, kind } }) => {
      if (kind === "boot") postMessage({ id, done: {} });
      if (kind === "paper.read") for (;;);
    };"""
    tab.route("**/worker.js", lambda r: r.fulfill(body=endless, content_type="text/javascript"))
    tab.goto(visitor.host.url + "paper.html")
    tab.wait_for_selector("paperkiln-paper[data-ready]")
    stop = tab.get_by_role("button", name="Stop reading")
    assert not stop.is_visible()
    give(tab, "note.tex", NOTE)
    stop.click()
    tab.get_by_text("Stopped.").wait_for()
    assert not stop.is_visible()
    assert not tab.get_by_role("alert").count()
    tab.unroute("**/worker.js")
    give(tab, "note.tex", NOTE)  # with another worker
    evidence(tab)


def test_pasted_latex(visit: Visitor) -> None:
    tab = visit().open("paper.html")
    tab.get_by_label("LaTeX source").fill(NOTE.decode())
    tab.get_by_role("button", name="Read it").click()
    evidence(tab)


def test_markup_in_a_paper_stays_text(visit: Visitor) -> None:
    tab = visit().open("paper.html")
    hostile = NOTE.replace(
        b"\\section{Introduction}",
        b"\\section{Introduction} <script>parent.hacked = 1</script><img src=x onerror=alert(1)> ",
    ).replace(b"\\title{", b"\\title{<b>bold</b> ")
    give(tab, "<img src=x onerror=alert(1)>.tex", hostile)
    frame = evidence(tab)
    assert frame.locator("img, section script, h1 b").count() == 0
    assert tab.evaluate("window.hacked") is None


def test_an_id_leads_to_its_source(visit: Visitor) -> None:
    tab = visit().open("paper.html")
    tab.get_by_label("The paper’s id").fill("https://arxiv.org/pdf/1706.03762v5.pdf")
    tab.get_by_role("button", name="Find").click()
    link = tab.get_by_role("link", name="Download the source of 1706.03762v5")
    assert link.get_attribute("href") == "https://arxiv.org/src/1706.03762v5"
    tab.get_by_text("it sends no CORS header").wait_for()
    tab.get_by_label("The paper’s id").fill("https://example.com/1706.03762")
    tab.get_by_role("button", name="Find").click()
    tab.get_by_role("alert").filter(has_text="arXiv id").wait_for()


def test_a_configured_proxy_comes_first(visit: Visitor) -> None:
    visitor = visit()
    tab = visitor.context.new_page()
    proxy = visitor.host.url + "proxy"
    config = json.dumps({"paperProxy": proxy})
    tab.route("**/config.json", lambda r: r.fulfill(body=config, content_type="application/json"))
    tab.route("**/proxy/src/*", lambda r: r.fulfill(body=gzip.compress(NOTE)))
    tab.goto(visitor.host.url + "paper.html")
    tab.get_by_label("The paper’s id").fill("1706.03762")
    tab.get_by_role("button", name="Find").click()
    evidence(tab)


def test_the_paper_page_does_not_wait_for_pydantic(visit: Visitor) -> None:
    visitor = visit()
    tab = visitor.open("paper.html")
    give(tab, "note.tex", NOTE)
    evidence(tab)
    assert not any("pydantic" in url or ".gguf" in url for url in visitor.requests)
