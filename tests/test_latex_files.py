"""Which files are the paper, and that a quote's line is right whatever the line ends are."""

from __future__ import annotations

import pytest
from latex_document import check_origin, read, said, texts

from paperkiln.papers.document import SourceFile
from paperkiln.papers.latex.reader import read_latex

INPUTS = {
    "input": (r"a \input{b} c", "a B c"),
    "with its ending": (r"\input{b.tex}", "B"),
    "without braces": ("\\input b\nc", "B c"),
    "without braces, in a folder": ("\\input sections/a_1 c", "A1 c"),
    "blanks": (r"\input{ sections/a_1 }", "A1"),
    "dots": (r"\input{./sec.1/intro}", "Intro"),
    "include": (r"\include{b}", "B"),
    "subfile": (r"\subfile{sub}", "Sub"),
    "import": (r"\import{sections/}{part}", "Part A1"),
    "import without a slash": (r"\import{sections}{part}", "Part A1"),
    "subimport": (r"\subimport{./}{b}", "B"),
    "commented out": ("%\\input{b}\nc", "c"),
    "hidden": (r"\iffalse\input{b}\fi c", "c"),
    "twice": (r"\input{b} \input{b}", "B B"),
    "in a table": (r"\begin{tabular}{l}\input{b} & x \end{tabular}y", "y"),
    "in mid-word": (r"a\input{b}c", "aBc"),
    "references": (r"x\input{main.bbl}\bibliography{b}", "x"),
    "after its end": (r"\input{ended} c", "before c"),
}


def _files(main: str) -> dict[str, SourceFile]:
    named = {
        "main.tex": f"\\begin{{document}}{main}\\end{{document}}",
        "b.tex": "B",
        "sections/a_1.tex": "A1",
        "sections/part.tex": "Part \\input{a_1}",
        "sec.1/intro.tex": "Intro",
        "sub.tex": "\\documentclass{subfiles}hidden\\begin{document}Sub\\end{document}gone",
        "ended.tex": "before\\endinput after",
        "main.bbl": "references",
        "own.sty": "\\ProvidesPackage{own}\\def\\@in{1}\\newcommand{\\own}{Ember}",
    }
    return {name: SourceFile(name, text) for name, text in named.items()}


@pytest.mark.parametrize("name", INPUTS)
def test_inputs(name: str) -> None:
    main, expected = INPUTS[name]
    document = read_latex(_files(main), "main.tex")
    assert " ".join(" ".join(said(document)).split()) == expected
    for text in texts(document):
        check_origin(text, document.files)


def test_the_paper_is_what_the_main_file_inputs() -> None:
    document = read_latex(_files(r"\input{b}\import{sections/}{part}"), "main.tex")
    assert list(document.files) == ["main.tex", "b.tex", "sections/part.tex", "sections/a_1.tex"]
    assert document.notes == [
        "not part of the paper (never inputted): sec.1/intro.tex, sub.tex, ended.tex"
    ]


def test_macros_of_a_package_that_comes_with_the_paper() -> None:
    files = _files(r"\own")
    main = files["main.tex"].text
    files["main.tex"] = SourceFile("main.tex", f"\\usepackage{{amsmath, own}}{main}")
    assert said(read_latex(files, "main.tex")) == ["Ember"]


def test_main_file_in_a_folder() -> None:
    files = {
        "paper/main.tex": SourceFile("paper/main.tex", r"\input{parts/a}\import{parts/}{b}"),
        "paper/parts/a.tex": SourceFile("paper/parts/a.tex", "A "),
        "paper/parts/b.tex": SourceFile("paper/parts/b.tex", "B"),
    }
    assert said(read_latex(files, "paper/main.tex")) == ["A B"]


def test_body_in_a_file_of_its_own() -> None:
    document = read(
        r"\input{head}\input{body}\end{document} gone",
        head_tex=r"\documentclass{article}\title{T} junk \begin{document}",
        body_tex="text",
    )
    assert document.title.string == "T"
    assert said(document) == ["text"]


def test_missing_files_are_noted_and_passed_over() -> None:
    document = read(r"a \input{gone} \import{x/}{y} b")
    assert said(document) == ["a b"]
    assert document.notes == [
        r"\input{gone}: no such file in the source", r"\import{y}: no such file in the source",
    ]  # fmt: skip


def test_cycles_are_noted_and_end() -> None:
    document = read(r"a \input{main} \input{b}", b_tex=r"b \input{main.tex} \input{b}")
    assert " ".join(said(document)) == "a b"
    assert any("main.tex inputs itself" in note for note in document.notes)
    assert any("b.tex inputs itself" in note for note in document.notes)


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "..", "/", "a" * 5000, "\0"])
def test_names_that_lead_out_of_the_source(name: str) -> None:
    document = read(f"a \\input{{{name}}} b")
    assert said(document) == ["a b"]
    assert list(document.files) == ["main.tex"]


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_line_numbers_with_every_line_end(ends: str) -> None:
    lines = ["\\begin{document}", "one", "", "two % c", "three $d=512$", "", "% x", "", "four"]
    document = read(ends.join(lines))
    assert said(document) == ["one", "two three d=512", "four"]
    assert [block.text.place().line for block in document.prose] == [2, 4, 9]
    two = next(iter(list(document.prose)[1:]))
    at = two.text.string.index("512")
    assert two.text.place(at, at + 3).line == 5
    for text in texts(document):
        check_origin(text, document.files)


def test_decoding_is_noted() -> None:
    file = SourceFile("main.tex", "na\u00efve caf\u00e9", encoding="latin-1")
    document = read_latex({"main.tex": file}, "main.tex")
    assert said(document) == ["na\u00efve caf\u00e9"]
    assert document.notes == ["not UTF-8: main.tex (latin-1)"]


def test_what_is_wrong_many_times_is_noted_once() -> None:
    document = read("".join(f"\\end{{table>\ntext {i}\n\n" for i in range(7)))
    assert document.notes == [
        "a { without its } near main.tex:1, main.tex:4, main.tex:7 … (7 times)"
    ]
