"""MkDocs hooks: what the site holds beside the pages in site/.

on_files            reference/cli.md from the real --help, reference/spec.md from the schema,
                    the atlas's studies, findings and data (atlas.py)
on_nav              the pages of the app, which another build puts under app/
on_page_markdown    <!-- source: module:name --> becomes that function's text, always current;
                    <!-- atlas: registry --> the table of findings, studies their list;
                    <!-- finding: ID --> its effect, with a link
on_page_content     drawings move into the page, so that they follow its light or dark;
                    links to app: become relative; options stay in one line;
                    each live element brings its module
on_post_page        a name for the search dialog
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
import sys
import textwrap
from html import escape
from pathlib import Path
from typing import Any
from unittest import mock

from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Link, Navigation, Section
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import atlas  # noqa: E402  (beside this file: MkDocs has put our folder on the path)
import paperkiln  # noqa: E402
from paperkiln import cli  # noqa: E402
from paperkiln.arguments import build_parser  # noqa: E402
from paperkiln.models.config import PRESETS  # noqa: E402
from paperkiln.spec import json_schema  # noqa: E402

HELP_WIDTH = "78"  # columns: what a page shows without scrolling
APP_PAGES = {"Chat": "chat.html", "Spec builder": "spec.html", "Paper reader": "paper.html"}
# app:wheel in a page is our wheel, which the build puts beside the pages.
APP_NAMES = {"wheel": f"wheels/paperkiln-{paperkiln.__version__}-py3-none-any.whl"}
# The module that defines an element, below app/.
ELEMENTS = {
    "paperkiln-chat": "elements/chat.js",
    "paperkiln-spec": "elements/spec.js",
    "paperkiln-paper": "elements/paper.js",
    "paperkiln-rope": "demos/rope.js",
    "paperkiln-softmax": "demos/softmax.js",
    "paperkiln-gradcheck": "demos/gradcheck.js",
    "paperkiln-registry": "atlas/registry.js",
    "paperkiln-atlas": "atlas/explorer.js",
}


# --- events, in MkDocs' order -------------------------------------------------------------------


def on_files(files: Files, *, config: Any) -> Files:
    """Add the generated pages, the atlas's data and the icon."""
    atlas.add_pages(files, config)
    files.append(File.generated(config, "reference/cli.md", content=cli_page()))
    files.append(File.generated(config, "reference/spec.md", content=spec_page()))
    files.append(File.generated(config, "icon.svg", abs_src_path=str(ROOT / "web" / "icon.svg")))
    return files


def on_nav(nav: Navigation, *, config: Any, files: Files) -> Navigation:
    """Add the app's pages, of which MkDocs knows nothing, as the last section."""
    links = [Link(title, f"app/{page}") for title, page in APP_PAGES.items()]
    section = Section("In your browser", links)
    for link in links:
        link.parent = section
    nav.items.append(section)
    return nav


def on_page_markdown(markdown: str, *, page: Page, config: Any, files: Files) -> str:
    """Put the text of functions, and the atlas's table and list, where a page asks for them."""
    folder = Path(config["extra"]["atlas"])
    for name, made in {"registry": atlas.registry, "studies": atlas.study_list}.items():
        if f"<!-- atlas: {name} -->" in markdown:
            markdown = markdown.replace(f"<!-- atlas: {name} -->", made(folder))
    if "<!-- finding: " in markdown:
        markdown = atlas.cite(markdown, folder)
    return re.sub(r"<!-- source: ([\w.]+):([\w.]+) -->", lambda m: excerpt(*m.groups()), markdown)


def on_page_content(html: str, *, page: Page, config: Any, files: Files) -> str:
    """Move drawings into the page, resolve links to the app, and list the page's modules."""
    docs, here = Path(config["docs_dir"]), page.file
    html = re.sub(
        r'<img alt="([^"]*)" src="([^":]*\.svg)" ?/?>',
        lambda m: drawing(docs, here, m[2], m[1]) or m[0],
        html,
    )
    html = re.sub(
        r'href="app:([^"]*)"',
        lambda m: f'href="{get_relative_url(f"app/{APP_NAMES.get(m[1], m[1])}", page.url)}"',
        html,
    )
    html = re.sub(r"<code>[^<]*</code>", lambda m: whole_options(m[0]), html)
    used = [path for name, path in ELEMENTS.items() if re.search(rf"<{name}[\s>]", html)]
    page.meta["modules"] = [f"app/{path}" for path in used]
    return html


def on_post_page(output: str, *, page: Page, config: Any) -> str:
    """Name the search dialog, which Material leaves without one, for screen readers."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"', 1)


# --- the command line ---------------------------------------------------------------------------


def cli_page() -> str:
    """Return the page of every verb, each with its real --help."""
    with mock.patch.dict("os.environ", COLUMNS=HELP_WIDTH, NO_COLOR="1"):
        verbs = [verb for verb in _verbs(build_parser(cli)) if verb[0]]
    lines = [
        "# The command line",
        "",
        "`python -m paperkiln VERB`, or `paperkiln VERB` once the package is on your path. This",
        "page is made from the program's own `--help`.",
        "",
        "| verb | does |",
        "| --- | --- |",
        *(f"| [`{name}`](#{name.replace(' ', '-')}) | {short} |" for name, short, _ in verbs),
        "",
        "What a program would read goes to standard output, the rest to standard error.",
        "Exit codes: 0 done; 1 a check failed; 2 wrong input, said in one line; 130 stopped.",
    ]
    for name, _, text in verbs:
        lines += ["", f"## {name} {{ #{name.replace(' ', '-')} }}", "", "```text", text, "```"]
    return "\n".join(lines) + "\n"


def _verbs(parser: argparse.ArgumentParser, name: str = "") -> list[tuple[str, str, str]]:
    """Return (name, what it does, help) of a parser and of all below it."""
    description = (parser.description or "").strip()
    found = [(name, description, parser.format_help().rstrip())]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb, below in action.choices.items():
                found += _verbs(below, f"{name} {verb}".strip())
    return found


# --- the run spec -------------------------------------------------------------------------------


def spec_page() -> str:
    """Return the page of every field of a run spec."""
    schema = json_schema()
    sections = [*_sections(schema, schema["$defs"], "")]
    lines = [
        "---",
        "search: {boost: 2}",  # who looks for a field's name wants its explanation first
        "---",
        "",
        "# The run spec",
        "",
        "A run is one JSON file. Every field has a default, so `{}` is a valid spec; an unknown",
        "name is an error, with the nearest known one. This page is made from the spec's JSON",
        "Schema, which `paperkiln plan --schema` prints. The [spec builder](app:spec.html) is a",
        "form for it.",
        "",
        "```json",
        '{"name": "my-run", "arch": {"d_model": 192, "n_layers": 4, "n_heads": 6},',
        ' "data": {"corpus": "my-book.txt"}, "train": {"steps": 1500, "lr": 2e-3}}',
        "```",
        "",
        "On the command line a field is set with its path: `--set train.lr=1e-3`.",
    ]
    for path, section in sections:
        lines += ["", f"## {path or 'The run itself'} {{ #{path or 'run'} }}", ""]
        lines += [section.get("description", ""), ""]
        lines += ['<div class="fields" markdown>', ""]
        lines += ["| field | values | default | meaning |", "| --- | --- | --- | --- |"]
        for name, field in section["properties"].items():
            if _target(field) is None:
                lines.append(_row(f"{path}.{name}".strip("."), name, field))
        lines += ["", "</div>"]
        if path == "arch":
            lines += ["", *_presets()]
    return "\n".join(lines) + "\n"


def _sections(schema: dict[str, Any], defs: dict[str, Any], path: str) -> Any:
    """Yield (path, schema) of an object and of the objects among its fields."""
    yield path, schema
    for name, field in schema["properties"].items():
        if target := _target(field):
            yield from _sections(defs[target], defs, f"{path}.{name}".strip("."))


def _target(field: dict[str, Any]) -> str | None:
    return field["$ref"].rsplit("/", 1)[-1] if "$ref" in field else None


def _row(path: str, name: str, field: dict[str, Any]) -> str:
    values = " or ".join(_values(part) for part in field.get("anyOf", [field]))
    default = field.get("default")
    shown = "none" if default is None else f"`{_number(default)}`"
    description = escape(field["description"], quote=False).replace("|", "\\|")
    return f"| `{name}`{{ #{path} }} | {values} | {shown} | {description} |"


def _values(schema: dict[str, Any]) -> str:
    """Return a type and its range in words."""
    if "enum" in schema:
        return " ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    kind = schema["type"]
    if kind == "array":
        return f"list of {_values(schema['items'])}, at most {schema['maxItems']}"
    words = {
        "integer": "integer", "number": "number", "string": "text", "boolean": "`true` `false`",
        "null": "`null`",
    }[kind]  # fmt: skip
    if {"minimum", "maximum"} <= schema.keys():
        return f"{words}, {_number(schema['minimum'])} to {_number(schema['maximum'])}"
    bounds = {
        "minimum": "from {}", "exclusiveMinimum": "above {}", "maximum": "at most {}",
        "exclusiveMaximum": "below {}",
    }  # fmt: skip
    limits = [text.format(_number(schema[key])) for key, text in bounds.items() if key in schema]
    return ", ".join([words, *limits])


def _number(value: Any) -> str:
    """Return a JSON value, long whole numbers as powers where they are."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return {True: "true", False: "false"}.get(value, str(value)) if value != [] else "[]"
    if isinstance(value, int) and value > 10**9:
        power = value.bit_length() - 1
        return f"2^{power}" if value == 1 << power else f"{value:.0e}".replace("e+", "e")
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _presets() -> list[str]:
    lines = [
        "### Presets { #presets }",
        "",
        "`arch.preset` starts from one of these; what they leave open is the default above.",
        "",
        "| preset | sets |",
        "| --- | --- |",
    ]
    for name, fields in PRESETS.items():
        what = " ".join(f"`{key}={_number(value)}`" for key, value in fields.items())
        lines.append(f"| `{name}` | {what} |")
    return lines


# --- pieces of pages ----------------------------------------------------------------------------


def excerpt(module: str, name: str) -> str:
    """Return a function's or class's source as a block of code, with the place it is from."""
    thing: Any = importlib.import_module(module)
    for part in name.split("."):
        thing = getattr(thing, part)
    text = textwrap.dedent(inspect.getsource(thing)).rstrip()
    text = re.sub(r"  # noqa: .*", "", text)
    path = f"{module.replace('.', '/')}.py"
    code = f'```python title="{path}"\n{text}\n```'
    return (
        f'<div data-search-exclude markdown="1">\n\n{code}\n\n</div>'  # pages explain, code repeats
    )


def whole_options(code: str) -> str:
    """Return code whose options, such as --strict, are not broken at their hyphens."""
    return re.sub(r"(?<=[>\s])--?[a-z][\w-]*", r'<span class="option">\g<0></span>', code)


def drawing(docs: Path, here: File, src: str, alt: str) -> str | None:
    """Return a hand-made drawing as markup of the page, or None for another image."""
    target = (docs / here.dest_uri).parent / src  # the link is already relative to the page
    path = docs / Path(str(target)).resolve().relative_to(docs.resolve())
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if 'class="drawing' not in text:
        return None
    text = text[text.index("<svg") :].strip()
    text = re.sub(r'aria-label="[^"]*"', lambda m: f'aria-label="{alt}"', text, count=1)
    text = re.sub(r"\n\s*", " ", text)
    if 'class="drawing wide"' in text:  # on a phone it scrolls by itself, also by keyboard
        named = 'role="group" aria-label="Drawing" tabindex="0"'
        return f'<span class="drawing-scroll" {named}>{text}</span>'
    return text
