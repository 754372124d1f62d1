"""What the tests of the LaTeX reader share: reading a string, what came of it, and its origin."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from paperkiln.papers.document import Document, SourceFile, Table, Text
from paperkiln.papers.latex.reader import read_latex


def read(text: str, **others: str) -> Document:
    """Read `text` as main.tex, beside other files; a name's __ stands for / and its _ for a dot."""
    named = {name.replace("__", "/").replace("_", "."): other for name, other in others.items()}
    files = {name: SourceFile(name, other) for name, other in {"main.tex": text, **named}.items()}
    return read_latex(files, "main.tex")


def said(document: Document) -> list[str]:
    """Every block as "kind: text" on one line, a paragraph without its kind."""
    lines = []
    for block in document.prose:
        kind = "" if block.kind == "paragraph" else f"{block.kind}: "
        lines.append(kind + " ".join(block.text.string.replace("\u2009", " ").split()))
    return lines


def cells(table: Table) -> list[list[str]]:
    """The strings of a table, line ends as blanks."""
    return [[" ".join(cell.text.string.split()) for cell in row] for row in table.rows]


def texts(document: Document) -> Iterator[Text]:
    """Every text that stands somewhere in the source."""
    found = [document.title, *(block.text for block in document.prose)]
    for table in document.tables:
        found += [table.caption, *(cell.text for row in table.rows for cell in row)]
    yield from (text for text in found if text.string)


def check_origin(text: Text, files: dict[str, SourceFile]) -> None:
    """Assert that `text` knows where it came from, whole and in parts."""
    ends = [run.at for run in text.runs[1:]] + [len(text.string)]
    assert text.runs[0].at == 0
    for run, end in zip(text.runs, ends, strict=True):
        assert run.at < end
        if run.exact:
            assert run.source.plain[run.start : run.end] == text.string[run.at : end]
            _check_place(text, run.at, end, files)
            middle = (run.at + end) // 2
            _check_place(text, run.at, middle + 1, files)
            _check_place(text, middle, end, files)
    for start, end in [(0, len(text.string)), *text.sentences]:
        _check_place(text, start, end, files)


def _check_place(text: Text, start: int, end: int, files: dict[str, SourceFile]) -> None:
    place = text.place(start, end)
    source = files[place.file]
    assert place.quote == source.text[place.start : place.end] != ""
    assert place.line == source.plain.count("\n", 0, place.start) + 1
    part = text.slice(start, end)
    assert part.string == text.string[start:end]
    assert part.place() == place
    quote = source.plain[place.start : place.end]
    ends = [run.at for run in part.runs[1:]] + [len(part.string)]
    for run, stop in zip(part.runs, ends, strict=True):
        if run.exact and run.source is source:
            assert part.string[run.at : stop] in quote


def papers() -> Path:
    """The folder of real papers; skips the test where there is none."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "papers"
    folder = Path(os.environ.get("PAPERKILN_PAPERS", beside))
    if not (folder / "manifest.jsonl").is_file():
        pytest.skip(f"no papers in {folder}; PAPERKILN_PAPERS may name their folder")
    return folder


def read_paper_files(folder: Path) -> tuple[dict[str, SourceFile], str]:
    """Return the TeX files of one paper, and the main one among them."""
    files = {}
    for path in sorted(folder.rglob("*.tex")):
        name = path.relative_to(folder).as_posix()
        files[name] = SourceFile(name, path.read_bytes().decode("utf-8"))
    mains = [name for name, file in files.items() if "\\documentclass" in file.text] or list(files)
    return files, min(mains, key=lambda name: (name != "main.tex", name.count("/"), name))
