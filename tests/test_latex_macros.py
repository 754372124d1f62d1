"""The author's macros, and the conditionals that hide text."""

from __future__ import annotations

import pytest
from latex_document import check_origin, read, said, texts

MACROS = {
    "no argument": (r"\newcommand{\dmodel}{512}width \dmodel", "width 512"),
    "without braces": (r"\newcommand\dmodel{512}\dmodel{} wide", "512 wide"),
    "arguments": (r"\newcommand{\m}[2]{#1{\scriptsize #2}}\m{5}{ms}", "5 ms"),
    "one token for an argument": (r"\newcommand{\p}[1]{(#1)}\p5 \p\alpha", "(5) (α)"),
    "default": (r"\newcommand{\w}[2][512]{#1/#2}\w{8} and \w[64]{2}", "512/8 and 64/2"),
    "star": (r"\newcommand*{\a}{x}\a", "x"),
    "renewed": (r"\newcommand{\a}{1}\renewcommand{\a}{2}\a", "2"),
    "provided first": (r"\providecommand{\a}{1}\a", "1"),
    "provided too late": (r"\newcommand{\a}{1}\providecommand{\a}{2}\a", "1"),
    "def": (r"\def\h#1{h_{#1}}$\h{3}$", "h_3"),
    "def with a delimiter": (r"\def\pair#1,#2.{#1 of #2}\pair two, three. x", "two of three x"),
    "def with a word as delimiter": (r"\def\a#1\stop{[#1]}\a b\stop c", "[ b] c"),
    "edef, gdef": (r"\edef\a{1}\gdef\b{2}\a\b", "12"),
    "let": (r"\def\a{1}\let\b\a\let\c=\a\b\c", "11"),
    "let a command": (r"\let\eps\varepsilon $\eps$", "ε"),
    "xspace": (r"\newcommand{\ours}{Ember\xspace}\ours is", "Ember is"),
    "operator": (r"\DeclareMathOperator{\sm}{soft\,max}$\sm(x)$", "soft max(x)"),
    "operator with a star": (r"\DeclareMathOperator*{\am}{argmax}$\am$", "argmax"),
    "xparse": (r"\NewDocumentCommand{\w}{s O{512} m}{#2/#3}\w{8} \w*[64]{2}", "512/8 64/2"),
    "xparse optional": (r"\NewDocumentCommand\w{m o}{#1(#2)}\w{8}[4] \w{8}", "8(4) 8()"),
    "environment opened by a macro": (
        r"\newcommand{\be}{\begin{equation}}\newcommand{\ee}{\end{equation}}a \be x \ee b",
        "a x b",
    ),
    "environment": (r"\newenvironment{note}[1]{Note #1: }{ (end)}\begin{note}{7}a\end{note}",
                    "Note 7: a (end)"),
    "macro in a macro": (r"\newcommand{\a}{\b}\newcommand{\b}{5}\a", "5"),
    "macro that defines": (r"\newcommand{\set}[1]{\def\v{#1}}\set{9}\v", "9"),
    "macro with a nested definition": (
        r"\newcommand{\mk}{\newcommand{\f}[1]{<##1>}}\mk\f{5}", "<5>",
    ),
    "formula inside": (r"\newcommand{\dff}{4\cdot\dmodel}\newcommand{\dmodel}{d}$\dff$", "4·d"),
    "ensuremath": (r"\newcommand{\d}{\ensuremath{d_{\text{model}}}}\d", "d_model"),
    "in a group": (r"{\def\a{1}\a}", "1"),
    "acronym": (
        r"\newacronym{ffn}{FFN}{feed-forward network}the \gls{ffn} (\acrlong{ffn})",
        "the FFN (feed-forward network)",
    ),
    "acronym package": (r"\acro{moe}[MoE]{mixture of experts}\ac{moe}", "MoE"),
    "glossary entry": (r"\newglossaryentry{a}{name={SwiGLU}, description={x}}\gls{a}", "SwiGLU"),
    "unknown acronym": (r"\gls{mlp} x", "mlp x"),
    "makeatletter": (r"\makeatletter\def\@x{1}\newcommand{\y}{\@x}\makeatother a@b \y", "a@b y"),
    "at sign after a macro": (r"\newcommand{\hit}{Hit}\hit@10", "Hit@10"),
    "commands keep their meaning": (r"\renewcommand{\section}[1]{}\section{A}", "heading: A"),
    "before a package's own": (r"\newcommand{\ac}{A}\ac{} b", "A b"),
    "length": (r"\renewcommand{\arraystretch}{1.2}a", "a"),
}  # fmt: skip


@pytest.mark.parametrize("name", MACROS)
def test_macros(name: str) -> None:
    source, expected = MACROS[name]
    document = read(source)
    assert " ".join(said(document)) == expected
    for text in texts(document):
        check_origin(text, document.files)


CONDITIONALS = {
    "iffalse": (r"a \iffalse d_{model}=64 \fi b", "a b"),
    "iffalse with else": (r"\iffalse a \else b \fi", "b"),
    "iftrue": (r"\iftrue a \else b \fi", "a"),
    "nested": (r"\iffalse a \iftrue b \else c \fi d \else e \fi f", "e f"),
    "unknown condition inside": (r"\iffalse a \ifdraft b \fi c \fi d", "d"),
    "if in math is none": (r"\iffalse $a \iff b$ \fi c", "c"),
    "if0": (r"\if0 a \fi\if 0 b \fi\if01 c \fi d", "d"),
    "if 11": (r"\if11 a\else b\fi", "a"),
    "switch": (r"\newif\ifdraft\ifdraft a\else b\fi \drafttrue\ifdraft c\else d\fi", "b c"),
    "undeclared switch": (r"\ifarxiv a\else b\fi c", "a c"),
    "let to a condition": (r"\let\ifdraft\iffalse\ifdraft a\else b\fi", "b"),
    "ifdefined": (r"\ifdefined\a x\else y\fi\def\a{}\ifdefined\a x\else y\fi", "y x"),
    "ifx": (r"\ifx\a\undefined x\else y\fi", "x"),
    "ifnum": (r"\ifnum 1>2 a\else b\fi\ifnum\value{x}>2 c\fi\ifnum\x=1d\else e\fi", "bcd"),
    "ifdim": (r"\ifdim 2pt<3pt a\fi", "a"),
    "ifodd": (r"\ifodd\value{page} a\else b\fi", "b"),
    "ifcase": (r"\ifcase 0 a\or b\else c\fi", "a"),
    "ifthenelse": (r"\ifthenelse{\boolean{x}}{a}{b}\setboolean{x}{false}"
                   r"\ifthenelse{\boolean{x}}{c}{d}", "ad"),
    "toggle": (r"\toggletrue{x}\iftoggle{x}{a}{b}\iftoggle{y}{c}{d}", "ad"),
    "excluded": (r"\excludecomment{hidden}\begin{hidden} % \end{hidden}a", "a"),
    "else in a macro's argument": (r"\newcommand{\i}[1]{#1}\i{\iffalse a\else b\fi}", "b"),
}  # fmt: skip


@pytest.mark.parametrize("name", CONDITIONALS)
def test_conditionals(name: str) -> None:
    source, expected = CONDITIONALS[name]
    assert " ".join(said(read(source))) == expected


def test_unclosed_conditional_is_noted() -> None:
    document = read(r"a \iffalse b")
    assert said(document) == ["a"]
    assert "never closed" in document.notes[0]


def test_evidence_quotes_the_author_and_shows_the_expansion() -> None:
    source = "\\newcommand{\\dmodel}{512}\n\\begin{document}The width is \\dmodel{} here."
    (block,) = read(source).prose
    at = block.text.string.index("512")
    assert block.text.place(at, at + 3).quote == "\\dmodel"
    assert block.text.place(at, at + 3).line == 2
    assert block.text.expanded == ((at, at + 3),)
    assert block.text.place().quote == "The width is \\dmodel{} here."


@pytest.mark.parametrize(
    "definition",
    [r"\newacronym{x}{512}{five}", r"\newcommand{\gls}[2][512]{#1}"],
    ids=["acronym", "default argument"],
)
def test_text_that_a_definition_holds_is_quoted_where_it_is_used(definition: str) -> None:
    (block,) = read(f"{definition}\n\\begin{{document}}before \\gls{{x}} after").prose
    assert block.text.string == "before 512 after"
    assert block.text.place().quote == "before \\gls{x} after"


def test_argument_of_a_macro_is_quoted_itself() -> None:
    (block,) = read(r"\newcommand{\size}[1]{$d=#1$}\begin{document}Width \size{512}.").prose
    at = block.text.string.index("512")
    assert block.text.place(at, at + 3).quote == "512"
    assert block.text.place(at - 2, at + 3).quote == r"\size{512}"
