"""Papers of a few lines, and what is read from them."""

from paperkiln.papers.document import Document, SourceFile
from paperkiln.papers.latex.reader import read_latex
from paperkiln.papers.names import own_names
from paperkiln.papers.numbers.numbers import Numbers, read_numbers
from paperkiln.papers.scope import Scope


def paper(body: str, title: str = "A Small Model") -> Document:
    """Return a paper of one body; without a heading it stands under "Model Architecture"."""
    if "\\section" not in body:
        body = "\\section{Model Architecture}\n" + body
    source = (
        f"\\documentclass{{article}}\\title{{{title}}}\\begin{{document}}\\maketitle\n"
        f"{body}\n\\end{{document}}\n"
    )
    return read_latex({"main.tex": SourceFile("main.tex", source)}, "main.tex")


def numbers(body: str, title: str = "A Small Model", size: str | None = None) -> Numbers:
    document = paper(body, title)
    return read_numbers(document, Scope(document, own_names(document)), size)


def asserted(found: Numbers) -> dict[str, object]:
    """Return the values that may be applied."""
    return {name: v.value for name, v in found.values.items() if v.verdict != "contested"}


def table(caption: str, *rows: str) -> str:
    width = max(row.count("&") for row in rows) + 1
    body = " \\\\\n".join(rows)
    return (
        f"\\begin{{table}}\\caption{{{caption}}}\\begin{{tabular}}{{{'l' * width}}}\n{body} \\\\\n"
        "\\end{tabular}\\end{table}\n"
    )


def section(title: str, body: str) -> str:
    return f"\\section{{{title}}}\n{body}\n"
