"""Any source is read without an error, and every word that comes of it leads back to the source."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from latex_document import check_origin, papers, read, read_paper_files, texts

from paperkiln.papers.document import Run, SourceFile, Text
from paperkiln.papers.latex.reader import read_latex

FRAGMENTS = [
    *(
        r"\begin{document} \end{document} \input{main} \input{b} \include b \section{ \paragraph "
        r"\footnote{ \caption{ \item \item[ \begin{itemize} \end{itemize} \begin{table} "
        r"\end{table} \end{table> \begin{tabular}{ll} \begin{longtable} \end{tabular} \endhead "
        r"\endfirsthead & \\ \\[ \multicolumn{2}{c}{ \multirow{2}{*}{ \hline "
        r"\begin{minipage}{3cm} \end{minipage} \frac \sqrt ^ _ ~ $ $$ \( \) \[ \] { } [ ] % # #1 "
        r"## \text{ \times \, \% \& \' \verb| | \verb \begin{verbatim} \end{verbatim} "
        r"\begin{comment} \end{comment} \newcommand{\a}{ \newcommand \newcommand\b[2][x]{ "
        r"\def\a#1 \def \a \b{ \let\a\b \let \newif\ifx \iffalse \iftrue \ifx \if \ifnum \else "
        r"\fi \or \ifthenelse \newenvironment{e}{ \begin{e} \end{e} \begin \end \gls{ "
        r"\newacronym{g}{ \cite{ \citet[ \label{ \vskip \SI{ \title{ \abstract{ \twocolumn[ "
        r"\appendix \begin{tikzpicture} \end{tikzpicture} \node ; \begin{align} \end{align} "
        r"\href{ \url{ \makeatletter \subfloat[ \ding{ \hspace \par \ d_{model} 512 word . "
        r"\NewDocumentCommand \import{ \usepackage{b} \endinput \bye \cmidrule( "
        r"\DeclareMathOperator \begin{abstract}"
    ).split(),
    *("\n", "\n\n", "\r\n", "\r", " ", "\\", "é", "\x00", "\ud800", "\u2028"),
]

LATEX = st.lists(st.sampled_from(FRAGMENTS), max_size=60).map("".join)
SPACED = st.lists(st.sampled_from(FRAGMENTS), max_size=60).map(" ".join)


@given(st.one_of(LATEX, SPACED, st.text()), LATEX)
def test_any_source_is_read_and_knows_its_origin(main: str, other: str) -> None:
    document = read(main, b_tex=other)
    for text in texts(document):
        check_origin(text, document.files)


@given(st.lists(st.tuples(st.sampled_from("abc "), st.booleans(), st.booleans()), max_size=12))
def test_slices_of_slices(pieces: list[tuple[str, bool, bool]]) -> None:
    source = SourceFile("a", "abc " * 12)
    runs = [
        Run(i, source, source.text.index(letter, 4 * i % 40), 0, exact)
        for i, (letter, exact, _) in enumerate(pieces)
    ]
    text = Text(
        "".join(letter for letter, _, _ in pieces),
        tuple(Run(run.at, source, run.start, run.start + 1, run.exact) for run in runs),
        tuple((i, f"key {i}") for i, (_, _, cited) in enumerate(pieces) if cited),
        tuple((i, i + 1) for i, (_, exact, _) in enumerate(pieces) if not exact),
    )
    n = len(pieces)
    for start in range(n):
        for end in range(start + 1, n + 1):
            part = text.slice(start, end)
            assert part.place() == text.place(start, end)
            assert part.citations == tuple(
                (at - start, key) for at, key in text.citations if start <= at <= end
            )
            assert part.expanded == tuple(
                (a - start, b - start) for a, b in text.expanded if start <= a and b <= end
            )
            assert part.slice(0, end - start) == part


@pytest.fixture(scope="module")
def folders() -> list[Path]:
    return sorted(path for path in papers().iterdir() if path.is_dir())


def test_every_word_of_the_real_papers(folders: list[Path]) -> None:
    assert len(folders) >= 20
    for folder in folders:
        files, main = read_paper_files(folder)
        document = read_latex(files, main)
        assert main in document.files
        assert len(list(document.prose)) > 2, folder.name
        for text in texts(document):
            check_origin(text, files)


def test_mutilated_papers(folders: list[Path]) -> None:
    chance = random.Random(5)
    for folder in folders:
        files, main = read_paper_files(folder)
        text = files[main].text
        for _ in range(2):
            at = chance.randrange(len(text))
            length = chance.randrange(1, 40)
            moved = chance.randrange(len(text))
            broken = text[:at] + text[moved : moved + length] + text[at + length :]
            for mutilated in (broken, text[:at], text[at:]):
                files[main] = SourceFile(main, mutilated)
                document = read_latex(files, main)
                for piece in list(texts(document))[::7]:
                    check_origin(piece, files)
