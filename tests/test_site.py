"""The site: it builds strictly, its links lead somewhere, it loads nothing from elsewhere."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from paperkiln.spec import json_schema

pytest.importorskip("material", reason="mkdocs-material is not installed: pip install -e '.[docs]'")

ROOT = Path(__file__).resolve().parents[1]
# What web/build.py makes of other files, or under another name.
MADE = re.compile(r"wheels/paperkiln-[\w.]+-py3-none-any\.whl|example\.tex")
LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src"),
          ("video", "src"), ("audio", "src"), ("object", "data"), ("use", "href")}  # fmt: skip


class Page(HTMLParser):
    """Everything that a page links to, loads, and can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name"):
                self.ids.add(value or "")
            if (tag, name) in LOADED:
                self.loaded.append(value or "")
            elif name == "href":
                self.links.append(value or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return out


@cache
def read(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def pages(site: Path) -> list[Path]:
    """Every page but the 404, which has no place of its own."""
    found = [path for path in site.rglob("*.html") if path.name != "404.html"]
    assert len(found) > 15
    return found


def test_every_link_and_anchor_leads_somewhere(site: Path) -> None:
    dead = []
    for page in pages(site):
        for link in [*read(page).links, *read(page).loaded]:
            url = urlsplit(link)
            if url.scheme or url.netloc:
                continue
            target = (page.parent / unquote(url.path)).resolve() if url.path else page
            target = target / "index.html" if target.is_dir() else target
            if not target.is_relative_to(site) or not _exists(target, site):
                dead.append(f"{page.relative_to(site)}: {link}")
            elif url.fragment and not _has_anchor(target, unquote(url.fragment)):
                dead.append(f"{page.relative_to(site)}: {link} (no such anchor)")
    assert not dead, "\n".join(sorted(dead))


def _exists(target: Path, site: Path) -> bool:
    """Whether a file is there, or is one of those that web/build.py puts under app/."""
    if target.is_relative_to(site / "app"):
        name = target.relative_to(site / "app").as_posix()
        return (ROOT / "web" / name).exists() or bool(MADE.fullmatch(name))
    return target.exists()


def _has_anchor(target: Path, name: str) -> bool:
    return not target.exists() or target.suffix != ".html" or name in read(target).ids


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    for page in pages(site):
        outside = [url for url in read(page).loaded if urlsplit(url).netloc or url[:1] == "/"]
        assert not outside, page
        assert "default-src 'self'" in page.read_text(encoding="utf-8")
    for style in site.rglob("*.css"):
        for url in re.findall(r"url\(([^)]*)\)", style.read_text(encoding="utf-8")):
            assert not re.match(r"[\"']?(https?:)?//", url), style


def test_the_404_page_needs_no_other_file(site: Path) -> None:
    assert read(site / "404.html").loaded == []


def test_each_live_element_brings_its_module(site: Path) -> None:
    used = {}
    for page in pages(site):
        text = page.read_text(encoding="utf-8")
        for name in set(re.findall(r"<paperkiln-(\w+)", text)):
            depth = "../" * (len(page.relative_to(site).parts) - 1)
            script = {"atlas": "atlas/explorer", "registry": "atlas/registry"}.get(name)
            folder = "elements" if name in ("chat", "spec", "paper") else "demos"
            script = script or f"{folder}/{name}"
            assert f'<script type="module" src="{depth}app/{script}.js">' in text
            used[name] = page
    assert {"chat", "rope", "softmax", "gradcheck"} <= used.keys()


def test_drawings_are_part_of_their_pages(site: Path) -> None:
    """An image would follow the system's light or dark, not the reader's choice."""
    for path in (ROOT / "site" / "figures").glob("*.svg"):
        if 'class="drawing' not in path.read_text(encoding="utf-8"):
            continue
        asking = [p for p in (ROOT / "site").rglob("*.md") if f"/{path.name})" in p.read_text()]
        assert asking, f"nobody shows {path}"
        assert not any(src.endswith(path.name) for p in pages(site) for src in read(p).loaded)


def test_the_command_line_page_holds_the_help_of_every_verb(site: Path) -> None:
    page = text_of(site / "reference" / "cli" / "index.html")
    listed = subprocess.run(
        [sys.executable, "-m", "paperkiln", "--help"], capture_output=True, text=True, check=True
    ).stdout
    verbs = re.findall(r"^    ([a-z-]+) ", listed, re.MULTILINE)
    assert {"paper", "run", "chat", "export", "data", "bench"} <= set(verbs)
    environment = os.environ | {"COLUMNS": "78", "NO_COLOR": "1"}
    for verb in [*(v.split() for v in verbs), ["data", "prepare"], ["bench", "train"]]:
        command = [sys.executable, "-m", "paperkiln", *verb, "--help"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        assert done.stdout.strip() in page, verb


def test_the_spec_page_holds_every_field(site: Path) -> None:
    page = site / "reference" / "spec" / "index.html"
    text, schema = text_of(page), json_schema()

    def check(section: dict, path: str) -> None:
        for name, field in section["properties"].items():
            where = f"{path}.{name}".strip(".")
            if "$ref" in field:
                check(schema["$defs"][field["$ref"].rsplit("/", 1)[-1]], where)
            assert where in read(page).ids, where
            if "$ref" not in field:
                assert field["description"] in text, where

    check(schema, "")


def test_every_troubleshooting_heading_is_a_message_of_the_code() -> None:
    said = messages()
    page = (ROOT / "site" / "troubleshooting.md").read_text(encoding="utf-8")
    headings = re.findall(r"^### `(.*)`", page, re.MULTILINE)
    assert len(headings) > 30
    for heading in headings:
        parts = [part.strip(" ;:,(") for part in heading.split("…")]
        parts = [part for part in parts if re.search(r"\w{2}", part)]
        assert not parts or all(any(p in m for m in said) for p in parts), heading


def messages() -> list[str]:
    """Every text in the code: a Python string with its parts joined, or a line elsewhere."""
    found = []
    for path in (ROOT / "paperkiln").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    scripts = [path for name in ("*.js", "elements/*.js") for path in (ROOT / "web").glob(name)]
    for path in [ROOT / "Makefile", *scripts]:
        found += path.read_text(encoding="utf-8").splitlines()
    return found


def test_the_worked_backward_runs_and_prints_what_it_says() -> None:
    page = (ROOT / "site" / "concepts" / "tape.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    promised = re.findall(r"print\(.*\)  # (.*)", code)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == promised


def test_the_pages_are_not_ignored() -> None:
    """A common .gitignore for Python leaves out /site, where MkDocs writes by default."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    done = subprocess.run(["git", "check-ignore", "site/index.md"], cwd=ROOT, capture_output=True)
    assert done.returncode == 1


def text_of(path: Path) -> str:
    """Return a page's text without its tags."""
    return unescape(re.sub(r"<[^>]+>", "", path.read_text(encoding="utf-8")))
