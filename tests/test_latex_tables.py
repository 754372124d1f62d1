"""Tables: cells, spans, rules, and the captions of their floats."""

from __future__ import annotations

import pytest
from latex_document import cells, check_origin, read, said, texts

TABLES = {
    "plain": (r"\begin{tabular}{lr} a & b \\ c & d \end{tabular}", [["a", "b"], ["c", "d"]]),
    "booktabs": (
        r"\begin{tabular}{l}\toprule a\\ \cmidrule(lr){1-1}\midrule[1pt] b\\ \bottomrule"
        r"\end{tabular}",
        [["a"], ["b"]],
    ),
    "lines": (r"\begin{tabular}{|c|}\hline a \\\hline b \\[2pt] \cline{1-1} c \\* \end{tabular}",
              [["a"], ["b"], ["c"]]),
    "column types": (r"\begin{tabular}{@{}l*{2}{>{\bfseries}c}p{3cm}@{}} a & b \end{tabular}",
                     [["a", "b"]]),
    "tabularx": (r"\begin{tabularx}{\textwidth}{lX} a & b \end{tabularx}", [["a", "b"]]),
    "tabular with a width": (r"\begin{tabular*}{3cm}[t]{ll} a & b \end{tabular*}", [["a", "b"]]),
    "position": (r"\begin{tabular}[t]{ll} a & b \end{tabular}", [["a", "b"]]),
    "escaped ampersand": (r"\begin{tabular}{l} R\&D & 50\% \end{tabular}", [["R&D", "50%"]]),
    "empty cells": (r"\begin{tabular}{lll} & a & \\ b && \end{tabular}",
                    [["", "a", ""], ["b", "", ""]]),
    "tabularnewline": (r"\begin{tabular}{l} a \tabularnewline b \end{tabular}", [["a"], ["b"]]),
    "math": (r"\begin{tabular}{l} $d_{\text{model}}$ & $3\times10^{-4}$ \end{tabular}",
             [["d_model", "3×10^-4"]]),
    "makecell": (r"\begin{tabular}{l} \makecell[l]{a \\ b} & c \\ d \end{tabular}",
                 [["a b", "c"], ["d"]]),
    "table in a cell": (
        r"\begin{tabular}{l} \begin{tabular}{@{}c@{}} a \\ b & c \end{tabular} & d \\ e"
        r"\end{tabular}",
        [["a b c", "d"], ["e"]],
    ),
    "minipage and list in a cell": (
        r"\begin{tabular}{l} a & \begin{minipage}{3cm} b \\ \begin{itemize}\item c\end{itemize}"
        "\n\n" r"d\end{minipage} \\ e \end{tabular}",
        [["a", "b c d"], ["e"]],
    ),
    "newline in a cell": (r"\begin{tabular}{l} a\newline b & c \end{tabular}", [["a b", "c"]]),
    "aligned math in a cell": (
        r"\begin{tabular}{l} $\begin{array}{c} a & b \\ c \end{array}$ & d \end{tabular}",
        [["a b c", "d"]],
    ),
    "inside a box": (r"\resizebox{\linewidth}{!}{\begin{tabular}{l} a & b \end{tabular}}",
                     [["a", "b"]]),
    "from a macro": (r"\newcommand{\bt}{\begin{tabular}{l}}\bt a & b \end{tabular}", [["a", "b"]]),
    "row from a macro": (
        r"\newcommand{\r}[2]{#1 & #2 \\}\begin{tabular}{l}\r{a}{b}\r{c}{d}\end{tabular}",
        [["a", "b"], ["c", "d"]],
    ),
    "commented row": ("\\begin{tabular}{l} a \\\\\n% b \\\\\nc \\end{tabular}", [["a"], ["c"]]),
    "colours": (r"\begin{tabular}{l}\rowcolor[gray]{.9} a & \cellcolor{red!20}512 \end{tabular}",
                [["a", "512"]]),
    "footnote in a cell": (r"\begin{tabular}{l} a\footnote{no} & b \end{tabular}", [["a", "b"]]),
    "unended": (r"\begin{table}\begin{tabular}{l} a & b \\ \end{table} c", [["a", "b"]]),
    "unended at a heading": (r"\begin{tabular}{l} a & b \section{c}", [["a", "b"]]),
    "repeated heads": (
        r"\begin{longtable}{l} h \\ \endfirsthead h (continued) \\ \endhead more \\ \endfoot"
        r" \endlastfoot a \\ b \end{longtable}",
        [["h"], ["a"], ["b"]],
    ),
    "one head": (r"\begin{longtable}{l} h \\ \endhead a \\ \end{longtable}", [["h"], ["a"]]),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_cells(name: str) -> None:
    source, expected = TABLES[name]
    document = read(source)
    (table,) = document.tables
    assert cells(table) == expected
    for i, row in enumerate(table.rows):
        assert [(cell.row, cell.column) for cell in row] == [(i, k) for k in range(len(row))]
    for text in texts(document):
        check_origin(text, document.files)


def test_spans() -> None:
    (table,) = read(
        r"\begin{tabular}{lll} \multirow{2}{*}{M} & \multicolumn{2}{c}{Sizes} \\"
        r" & base & large \\ \multirow[t]{-2}{*}[3pt]{x} & \multicolumn{1}{r}{512} & 768"
        r"\end{tabular}"
    ).tables
    found = [
        [(c.text.string.strip(), c.column, c.rows, c.columns) for c in row] for row in table.rows
    ]
    assert found == [
        [("M", 0, 2, 1), ("Sizes", 1, 1, 2)],
        [("", 0, 1, 1), ("base", 1, 1, 1), ("large", 2, 1, 1)],
        [("x", 0, 1, 1), ("512", 1, 1, 1), ("768", 2, 1, 1)],
    ]


def test_rules_stand_before_the_rows_they_are_drawn_above() -> None:
    (table,) = read(
        r"\begin{tabular}{l}\toprule a \\ \midrule\midrule \\ b \\ c \\ \hline d \\ \bottomrule"
        r"\end{tabular}"
    ).tables
    assert cells(table) == [["a"], ["b"], ["c"], ["d"]]
    assert table.rules == [0, 1, 3, 4]


CELL = r"\begin{tabular}{l} %s \end{tabular}"
A, B = CELL % "a", CELL % "b"
CAPTIONS = {
    "above": (r"\begin{table}\caption{C}" + A + r"\end{table}", ["C"]),
    "below": (r"\begin{table}" + A + r"\caption{C}\end{table}", ["C"]),
    "wide": (r"\begin{table*}[t]" + A + r"\caption{C}\end{table*}", ["C"]),
    "threeparttable": (
        r"\begin{table}\begin{threeparttable}" + A + r"\end{threeparttable}\caption{C}\end{table}",
        ["C"],
    ),
    "longtable": (r"\begin{longtable}{l}\caption{C}\\ a \end{longtable}", ["C"]),
    "one for two": (r"\begin{table}" + A + B + r"\caption{C}\end{table}", ["C", "C"]),
    "one each": (r"\begin{table}\caption{C}" + A + r"\caption{D}" + B + r"\end{table}", ["C", "D"]),
    "side by side": (
        r"\begin{table}\begin{minipage}{3cm}" + A + r"\caption{C}\end{minipage}"
        r"\begin{minipage}{3cm}\caption{D}" + B + r"\end{minipage}\end{table}",
        ["C", "D"],
    ),
    "boxes without captions": (
        r"\begin{table}\begin{minipage}{3cm}" + A + r"\end{minipage}\begin{minipage}{3cm}" + B
        + r"\end{minipage}\caption{C}\end{table}",
        ["C", "C"],
    ),
    "subtables": (
        r"\begin{table}\begin{subtable}{3cm}" + A + r"\caption{C}\end{subtable}\subfloat[D]{" + B
        + r"}\caption{E}\end{table}",
        ["C", "D"],
    ),
    "wraptable": (r"\begin{wraptable}{r}{3cm}" + A + r"\caption{C}\end{wraptable}", ["C"]),
    "captionof": (r"\begin{minipage}{3cm}\captionof{table}{C}" + A + r"\end{minipage}", ["C"]),
    "next float's": (
        r"\begin{table}\caption{C}" + A + r"\end{table}"
        r"\begin{table}" + B + r"\caption{D}\end{table}",
        ["C", "D"],
    ),
    "none": (A + r"\begin{figure}\caption{C}\end{figure}", [""]),
}  # fmt: skip


@pytest.mark.parametrize("name", CAPTIONS)
def test_captions(name: str) -> None:
    source, expected = CAPTIONS[name]
    assert [table.caption.string for table in read(source).tables] == expected


def test_table_and_text_in_reading_order() -> None:
    document = read(r"\section{Model} before " + A + r" after \footnote{n}")
    assert [type(block).__name__ for block in document.blocks] == [
        "Block", "Block", "Table", "Block", "Block",
    ]  # fmt: skip
    assert said(document) == ["heading: Model", "before", "footnote: n", "after"]
    assert next(iter(document.tables)).section.path == "Model"
