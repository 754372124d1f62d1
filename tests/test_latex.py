"""The LaTeX reader: what stands on the page, in which order, as which kind of block."""

from __future__ import annotations

import pytest
from latex_document import read, said

from paperkiln.papers.document import Text, section_kind

FLOW = {
    "paragraphs": ("One.\n\nTwo\nlines.\n  \nThree.", ["One.", "Two lines.", "Three."]),
    "par": (r"One.\par Two.", ["One.", "Two."]),
    "comments": ("20\\% of $d$ % not this\nrest", ["20% of d rest"]),
    "line end, then comment": ("One\\\\% not this\nTwo", ["One Two"]),
    "comment joins lines": ("un%\n  joined", ["unjoined"]),
    "blank line after a comment": ("One. % a\n\nTwo.", ["One.", "Two."]),
    "comment environment": ("a \\begin{comment} b % \\end{comment} c", ["a c"]),
    "verbatim": (
        "a\n\\begin{verbatim}\nx = 5 % kept\n\\end{verbatim}\nb",
        ["a", "code: x = 5 % kept", "b"],
    ),
    "listing": ("\\begin{lstlisting}\n# 5 % kept {\n\\end{lstlisting}", ["code: # 5 % kept {"]),
    "verb": (r"uses \verb|a_b %| and \lstinline!x{! here", ["uses a_b % and x{ here"]),
    "footnote in mid-sentence": (
        r"We use\footnote{As \textbf{others} do.} eight heads.",
        ["footnote: As others do.", "We use eight heads."],
    ),
    "footnote of two paragraphs": ("a\\footnote{b\n\nc} d", ["footnote: b c", "a d"]),
    "thanks": (r"\thanks{NSF} text", ["text"]),
    "heading": (r"\section*{A \emph{B}}\label{s}text", ["heading: A B", "text"]),
    "paragraph heading": (r"\paragraph{Optimizer.} Adam.", ["heading: Optimizer.", "Adam."]),
    "paragraph without braces": (r"\paragraph Optimizer", ["Optimizer"]),
    "texorpdfstring": (r"\section{\texorpdfstring{$d$}{dd} wide}", ["heading: d wide"]),
    "list": (
        r"a \begin{itemize}[leftmargin=1em] \item b \item c \end{itemize} d",
        ["a", "item: b", "item: c", "d"],
    ),
    "nested list": (
        r"\begin{enumerate}\item a \begin{itemize}\item b\end{itemize} c \item d\end{enumerate}",
        ["item: a", "item: b", "item: c", "item: d"],
    ),
    "description": (
        r"\begin{description}\item[Layers] 12\item[\textbf{Heads}:] 8\end{description}",
        ["item: Layers: 12", "item: Heads: 8"],
    ),
    "caption": (
        r"\begin{figure}[t]\includegraphics[width=1cm]{x}\caption[short]{Long.}\end{figure}",
        ["caption: Long."],
    ),
    "captionof": (r"\captionof{table}{Sizes.}", ["caption: Sizes."]),
    "subfigure captions": (
        r"\begin{figure}\subfloat[Left]{\label{x}}\subfigure[Right]{}\caption{Both}\end{figure}",
        ["caption: Left", "caption: Right", "caption: Both"],
    ),
    "theorem": (r"a \begin{theorem}[name] b \end{theorem} c", ["a", "b", "c"]),
    "algorithm": (
        r"\begin{algorithm}\caption{Go}\begin{algorithmic}[1]\State a\For{b}\State c\EndFor"
        r"\end{algorithmic}\end{algorithm}",
        ["caption: Go", "a b c"],
    ),
    "two columns": ("\\twocolumn[{\\begin{center}a\n\nb\\end{center}}] c", ["a", "b", "c"]),
    "multicols": (r"\begin{multicols}{2} a \end{multicols}", ["a"]),
    "textsuperscript": (r"19\textsuperscript{th}", ["19^th"]),
    "href": (r"see \href{http://a.b/50%}{our code}", ["see our code"]),
    "colour": (r"\textcolor[rgb]{0,0,1}{blue} {\color{red} red}", ["blue red"]),
    "boxes": (r"\resizebox{\linewidth}{!}{wide} \makebox[3cm][l]{m}", ["wide m"]),
    "lengths": (
        r"\itemsep0em \topsep -2pt a \vskip 0.15in b \hskip1em plus 2pt minus 1pt c \parskip=2pt d",
        ["a b c d"],
    ),
    "a macro called so": (r"the \hiddenwidth is \modelwidth=5", ["the hiddenwidth is"]),
    "bigskip takes no length": (r"\bigskip 5 in all", ["5 in all"]),
    "address": ("\\url{http://a.b/c%20d} and \\href{u%20}{e}", ["and e"]),
    "hyphenation": (r"trans\-former", ["transformer"]),
    "accents": (r"Fr\'echet, Poincar\'{e}, \v{S}i, na\"{\i}ve", ["Fréchet, Poincaré, Ši, naïve"]),
    "old font commands": (r"{\bf bold} {\it it}", ["bold it"]),
    "author's unknown macro": (r"width \dmodel", ["width dmodel"]),
    "citations": (r"as in~\citep[p.~5]{a,b} by \citet{c}", ["as in by c"]),
    "references": (r"Table~\ref{t} and \cref{u}", ["Table and"]),
    "units": (r"\SI{80}{\giga\byte}, \num{3e-4}, \qty{5}{\percent}", ["80 GB, 3e-4, 5 %"]),
    "TikZ nodes": (
        r"\begin{tikzpicture}[scale=2]\node[draw, text={red}] (a) at (0,1) {GELU \\ 3072};"
        r"\draw (a) -- node[above] {$d$} (b); \fill (0,0);\end{tikzpicture} after",
        ["figure: GELU 3072", "figure: d", "after"],
    ),
    "minipage in a node": (
        r"\begin{tikzpicture}\node {\begin{minipage}{3cm}a\end{minipage}};\end{tikzpicture}",
        ["figure: a"],
    ),
    "beamer": (r"\begin{frame}\frametitle{T} a \end{frame} b", ["heading: T", "a", "b"]),
    "dingbats": (r"\ding{51} \ding{55}", ["✓ ✗"]),
}


@pytest.mark.parametrize("name", FLOW)
def test_flow(name: str) -> None:
    body, expected = FLOW[name]
    assert said(read(f"\\begin{{document}}{body}\\end{{document}}")) == expected


MATH = {
    r"d_{\text{model}}=512": "d_model=512",
    r"\text{d}_{model}": "d_model",
    r"d_\mathrm{ff}": "d_ff",
    r"\mathbf{W}^{(i)}": "W^(i)",
    r"10^{-4}": "10^-4",
    r"3\times10^{-4}": "3×10^-4",
    r"2^{15}": "2^15",
    r"151{,}936": "151,936",
    r"128\,\text{K}": "128\u2009K",
    r"128\,000": "128\u2009000",
    r"4\cdot d": "4· d",
    r"\frac{8}{3}d": "8/3d",
    r"\dfrac{d_{\text{model}}}{h}": "d_model/h",
    r"\frac{1}{n-1}": "1/(n-1)",
    r"\frac{-1}{n}": "-1/n",
    r"\frac 1 2": "1/2",
    r"\sqrt{d_k}": "√d_k",
    r"\sqrt{a + b}": "√(a + b)",
    r"\theta = 10{,}000": "θ = 10,000",
    r"\beta_1 = 0.9": "β_1 = 0.9",
    r"\left[0, 1\right)": "[0, 1)",
    r"\{1, \dots, n\}": "{1, …, n}",
    r"a \leq b \approx c": "a ≤ b ≈ c",
    r"\operatorname*{argmax}_x": "argmax_x",
    r"50\%": "50%",
    r"\mathcal{O}(n\log n)": "O(nlog n)",
}


@pytest.mark.parametrize("formula", MATH)
def test_math(formula: str) -> None:
    for mark in ("${}$", "$${}$$", r"\({}\)"):
        (block,) = read(mark.replace("{}", formula)).prose
        assert block.text.string == MATH[formula]


@pytest.mark.parametrize("name", ["equation", "align*", "gather", "eqnarray"])
def test_displayed_math_stays_in_its_paragraph(name: str) -> None:
    body = f"We set\n\\begin{{{name}}}\nd &= 512, \\\\ h &= 8\n\\end{{{name}}}\nfor all."
    assert said(read(body)) == ["We set d = 512, h = 8 for all."]


def test_preamble_and_what_follows_the_document() -> None:
    document = read(
        "\\documentclass{article}\\title{A \\\\ Title\\thanks{x}}\\author{N. N.\\footnote{n}}\n"
        "stray 512\n\n\\begin{document}\\maketitle body\\end{document} d_model = 64"
    )
    assert document.title.string.split() == ["A", "Title"]
    assert said(document) == ["body"]


@pytest.mark.parametrize(
    "source",
    [
        r"\begin{document}\begin{abstract}Short.\end{abstract}\section{Introduction}Long.",
        r"\begin{abstract}Short.\end{abstract}\begin{document}\section{Introduction}Long.",
        r"stray \abstract{Short.} stray \begin{document}\section{Introduction}Long.",
    ],
)
def test_abstract(source: str) -> None:
    found = [(block.text.string, block.section.kind) for block in read(source).prose]
    assert found == [
        ("Short.", "abstract"), ("Introduction", "introduction"), ("Long.", "introduction"),
    ]  # fmt: skip


def test_plain_tex_and_excerpts_are_all_body() -> None:
    assert said(read("{\\bf Model.} We use\n12 layers.\n\nMore.\\bye")) == [
        "Model. We use 12 layers.", "More.",
    ]  # fmt: skip


def test_outline() -> None:
    document = read(
        r"\section{Our Model}\subsection{Blocks}a\section{Experiments}\subsubsection{Sizes}b"
        r"\appendix\section{More}c"
    )
    places = {block.text.string: block.section for block in document.prose}
    assert places["a"].path == "Our Model › Blocks"
    assert places["a"].kind == "method"
    assert places["b"].path == "Experiments › Sizes"
    assert places["b"].kind == "experiments", "a heading that says nothing has its parent's kind"
    assert not places["b"].appendix
    assert places["c"].appendix
    assert [section.level for section in places["b"].ancestors()] == [3, 1, 0]


def test_chapters() -> None:
    document = read(
        "\\begin{document}\\include{one}\\end{document}",
        one_tex=r"\chapter{The Model}\section{Width}text",
    )
    assert [block.section.path for block in document.prose][-1] == "The Model › Width"


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("Introduction", "introduction"), ("Background and Related Work", "related"),
        ("Model Architecture", "method"), ("Pre-Training", "training"),
        ("Hyperparameters", "training"),
        ("Ablations", "ablation"), ("Main Results", "experiments"), ("Conclusion", "conclusion"),
        ("Limitations and Future Work", "future"), ("Safety", "other"), ("", "other"),
    ],
)  # fmt: skip
def test_section_kind(title: str, kind: str) -> None:
    assert section_kind(title) == kind


def test_labels_of_items_and_captions() -> None:
    document = read(
        r"\begin{description}\item[Layer norm] before\item[] x\end{description}"
        r"\begin{table*}\caption{Sizes}\end{table*}"
    )
    assert [(block.kind, block.label) for block in document.prose] == [
        ("item", "Layer norm"), ("item", ""), ("caption", "table*"),
    ]  # fmt: skip


def test_citations_stand_at_their_place() -> None:
    (block,) = read(r"We use Adam \cite[p. 5]{kingma, ba} here, as \citet{x} did.").prose
    places = [(block.text.string[:at].strip(), keys) for at, keys in block.text.citations]
    assert places == [("We use Adam", "kingma, ba"), ("We use Adam  here, as", "x")]


SENTENCES = [
    ("One. Two! Three?", 3),
    ("It has 0.5 of it, e.g. this, i.e. that, cf. Vaswani et al. 2017.", 1),
    ("See Fig. 3 and Eq. 4. Then stop.", 2),
    ("As in Sec. 2, Table. It ends.", 2),
    ('He said "stop." Then he left.', 2),
    ("D. E. Knuth wrote it.", 1),
    ("There are N. We count them.", 2),
    ("Version 4.5 has 1.2B parameters (see Tab. 1). Next.", 2),
    ("first line\n\nsecond line", 2),
    ("no full stop", 1),
    ("", 0),
]


@pytest.mark.parametrize(("string", "count"), SENTENCES)
def test_sentences(string: str, count: int) -> None:
    found = Text(string).sentences
    assert len(found) == count
    assert "".join(string[a:b] for a, b in found).split() == string.split()


BROKEN = {
    "unclosed footnote": (
        r"a\footnote{b \section{Next} c", ["footnote: b", "a", "heading: Next", "c"],
    ),
    "unclosed heading": (r"\section{One \section{Two} c", ["heading: One", "heading: Two", "c"]),
    "unclosed math": ("$a\n\n b\\'e", ["a", "bé"]),
    "unclosed picture": (
        r"\begin{figure}\begin{tikzpicture}\node {a};\end{figure} b", ["figure: a", "b"],
    ),
    "unclosed option": (r"\begin{figure}[t b" "\n\nc", ["[t b", "c"]),
    "broken end": (r"\begin{table>\caption{a}\end{table> b", ["caption: a", "b"]),
    "stray closers": (r"a } b \end{table} \end{itemize} ] c", ["a b", "] c"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_broken_source(name: str) -> None:
    body, expected = BROKEN[name]
    assert said(read(body)) == expected
