"""Hostile sources end soon: the work is bounded by count, so these tests hold on any machine."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from latex_document import read, said

from paperkiln.papers.document import SourceFile, Text
from paperkiln.papers.latex import stream
from paperkiln.papers.latex.reader import Reader, read_latex
from paperkiln.papers.matrix import matrices

N = 3_000
HOSTILE = {
    "open braces": "{" * N,
    "closed braces": "}" * N,
    "open braces and paragraphs": "{" * N + "x\n\n" * N,
    "nested braces": "{" * N + "x" + "}" * N,
    "footnotes": "x\\footnote{" * N,
    "fractions": "$" + "\\frac" * N,
    "nested fractions": "$" + "\\frac{1}{" * N,
    "labels": "\\label{" * N,
    "links": "\\href{" * N,
    "options": "\\item[" * N,
    "line ends": "\\\\[" * N,
    "environments": "\\begin{foo}" * N,
    "floats": "\\begin{table}" * N + "\\end{figure}" * N,
    "tables": "\\begin{tabular}{l} a & b \\\\" * N,
    "boxes": "\\begin{minipage}{1}\\caption{x}" * N + "\\end{minipage}" * N,
    "rules": "\\begin{tabular}{l}" + "\\hline \\\\" * N,
    "cells": "\\begin{tabular}{l}" + "&" * 10 * N,
    "conditionals": "\\if0" * N + "\\fi" * N,
    "choices": "\\ifthenelse{a}{" * N,
    "definitions": "\\newcommand{" * N,
    "missing bodies": "\\def\\a" * N,
    "missing files": "".join(f"\\input{{f{i}}}" for i in range(N)),
    "accents": "\\'{" * N,
    "blank comments": "%\n \n" * N,
    "pictures": "\\begin{tikzpicture}" * N + "\\node {" * N,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_work_is_in_proportion_to_the_source(name: str) -> None:
    """Twice the source is at most some twice the work, or it stops at a limit and says so."""
    counts = []
    for source in (HOSTILE[name], HOSTILE[name] * 2):
        reader = Reader({"main.tex": SourceFile("main.tex", source)}, "main.tex")
        reader.read()
        counts.append(reader.stream.work)
    stopped = any("reading stopped" in note for note in reader.stream.notes)
    assert stopped or counts[1] < 2.5 * counts[0] + 1000
    assert counts[1] <= stream.MAX_WORK + 1000


_NAMES = [rf"\{letter}" for letter in "bcdefghijklm"]
ENDLESS = {
    "itself": r"\def\a{\a\a}",
    "its tail": r"\def\a{x\a}",
    "each other": r"\newcommand{\a}[1]{\b{#1}{#1}}\newcommand{\b}[2]{\a{#1#2}}",
    "its own definition": r"\newcommand{\a}{\newcommand{\a}{\a}\a}",
    "let": r"\let\a\b\let\b\a",
    "laughs": r"\def\b{lol}"
    + "".join(rf"\def{after}{{{before * 10}}}" for before, after in pairwise(_NAMES))
    + r"\def\a{\m}",
    "doubling": r"\newcommand{\d}[1]{#1#1}\def\a{" + r"\d{" * 40 + "x" + "}" * 40 + "}",
    "environments": r"\newenvironment{e}{\begin{f}}{}\newenvironment{f}{\begin{e}}{}"
    r"\def\a{\begin{e}}",
    "acronyms": r"\newacronym{a}{\gls{a}}{x}\def\a{\gls{a}}",
}


@pytest.mark.parametrize("name", ENDLESS)
def test_macros_without_end(name: str) -> None:
    document = read(f"before\n\n{ENDLESS[name]}\\a{{y}}\n\nafter")
    assert said(document)[0] == "before"
    assert document.notes or name == "acronyms"


def test_a_macro_without_end_does_not_swallow_the_paper() -> None:
    document = read("\\def\\a{x\\a}\\a\n\nafter")
    assert said(document)[-1] == "after"
    assert document.notes == ["\\a expands without end and was left out near main.tex:1"]


def test_many_files_take_linear_time() -> None:
    main = "".join(f"\\input{{f{i}}}" for i in range(19_000))
    files = {f"f{i}.tex": SourceFile(f"f{i}.tex", "x\n") for i in range(19_000)}
    files["main.tex"] = SourceFile("main.tex", f"\\begin{{document}}{main}")
    start = time.process_time()
    assert len(read_latex(files, "main.tex").files) == 19_001
    assert time.process_time() - start < 30


def test_what_drives_a_terminal_is_a_blank() -> None:
    source = "A \x1b[31mred\x9b2J word.\x07 \\input{a\x1b[2J}"
    document = read_latex({"main.tex": SourceFile("main.tex", source)}, "main.tex")
    (block,) = document.blocks
    place = block.text.place()
    assert source[place.start : place.end] == place.quote
    assert "".join([block.text.string, *document.notes]).isprintable()


def test_spanning_cells_are_bounded() -> None:
    cell = "\\multirow{99}{*}{a}\\multicolumn{64}{c}{b}\\\\"
    table = f"\\begin{{tabular}}{{c}}{cell * 2000}\\end{{tabular}}"
    document = read_latex({"main.tex": SourceFile("main.tex", table)}, "main.tex")
    assert len(list(document.tables)) == 1
    assert not list(matrices(document))


def test_files_that_multiply() -> None:
    files = {
        f"{i}.tex": SourceFile(f"{i}.tex", f"x \\input{{{i + 1}}} \\input{{{i + 1}}}")
        for i in range(60)
    }
    document = read_latex(files, "0.tex")
    assert any("reading stopped" in note for note in document.notes)


def test_long_text_counts_as_work() -> None:
    """A macro of a megabyte, called often, is cut short before the memory is full."""
    source = f"\\def\\a{{{'x' * 1_000_000}}}" + "\\a\n" * 1000
    (block,) = read(source).prose
    assert len(block.text.string) <= stream.MAX_WORK * stream.PIECE


LONG = {
    "letters": "a" * 500_000,
    "blanks": " " * 500_000,
    "full stops": "." * 500_000,
    "closing marks": "." + ")" * 500_000,
    "initials": "B. " * 100_000,
    "line ends": "\n" * 300_000 + "x",
    "comments": "%" * 500_000,
    "backslashes": "\\" * 100_001,
    "sentences": "Ab cd. " * 50_000,
}


@pytest.mark.parametrize("name", LONG)
def test_long_lines(name: str) -> None:
    """Quadratic time would keep this test for minutes."""
    for block in read(LONG[name]).prose:
        for start, end in block.text.sentences:
            block.text.place(start, end)
            block.text.slice(start, end)


def test_slices_of_a_text_of_many_runs() -> None:
    source = SourceFile("a", "Ab\\,cd. " * 30_000)
    (block,) = read_latex({"a": source}, "a").prose
    text: Text = block.text
    assert len(text.runs) > 50_000
    assert len(text.sentences) == 30_000
    assert all(text.slice(start, end).place() for start, end in text.sentences)
