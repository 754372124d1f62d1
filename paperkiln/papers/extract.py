"""From a document to its Architecture: numbers, flavours, lineage, and whether they fit."""

from __future__ import annotations

from dataclasses import replace

from paperkiln.errors import PaperkilnError
from paperkiln.papers.architecture import (
    ASSERTED,
    FLAVORS,
    NUMBERS,
    Architecture,
    Inheritance,
    Value,
)
from paperkiln.papers.consistency import check, trust
from paperkiln.papers.document import Document, SourceFile
from paperkiln.papers.evidence import evidence
from paperkiln.papers.flavors.flavors import read_flavors
from paperkiln.papers.latex.reader import read_latex
from paperkiln.papers.lineage.ancestors import ANCESTORS
from paperkiln.papers.lineage.lineage import find_lineage
from paperkiln.papers.names import own_names
from paperkiln.papers.numbers.numbers import read_numbers
from paperkiln.papers.scope import Scope
from paperkiln.papers.source.main_file import choose_main
from paperkiln.papers.training.training import read_training


def read_paper(
    files: dict[str, SourceFile], main: str | None = None, size: str | None = None,
    paper_id: str = "",
) -> Architecture:  # fmt: skip
    """Return the architecture of the paper whose source is `files`.

    Raises PaperkilnError when no main file can be found, or no model is called `size`.
    """
    return extract(read_document(files, main), size, paper_id)


def read_document(files: dict[str, SourceFile], main: str | None = None) -> Document:
    """Return the paper that `files` hold, read from its main file.

    Raises PaperkilnError when no main file can be found, or the paper has no text.
    """
    name, reason = choose_main(files, main)
    document = read_latex(files, name)
    if not document.blocks:
        missing = "; ".join(document.notes[:3])
        raise PaperkilnError(
            f"{name} holds no text{f' ({missing})' if missing else ''}; "
            "give the .tex file that holds the paper"
        )
    document.notes.insert(0, f"main file {name}: {reason}")
    return document


def extract(document: Document, size: str | None = None, paper_id: str = "") -> Architecture:
    """Return what the document says of its own model, the one called `size` if it has several.

    Raises PaperkilnError when no model is called `size`.
    """
    names = own_names(document)
    scope = Scope(document, names)
    numbers = read_numbers(document, scope, size)
    architecture = Architecture(
        title=" ".join(document.title.string.split()),
        paper_id=paper_id,
        main_file=document.main,
        model=numbers.model,
        values=dict(numbers.values),
        mentions=dict(numbers.mentions),
        training=read_training(document, scope),
        variants=numbers.variants,
        notes=[*document.notes, *numbers.notes],
        files=list(document.files),
    )
    for name, reading in read_flavors(document, scope).items():
        architecture.mentions[name] = reading.mentions
        if reading.value:
            architecture.values[name] = reading.value
        else:
            architecture.unresolved[name] = reading.reason
    _inherit(architecture, document, names)
    for name in (*NUMBERS, *FLAVORS):
        if name not in architecture.values:
            architecture.unresolved.setdefault(name, numbers.reasons.get(name, "not stated"))
    if "expert_d_ff" in architecture.values and "d_ff" in architecture.unresolved:
        architecture.unresolved["d_ff"] = "stated per expert only, see expert_d_ff"
    _check(architecture)
    return architecture


def _inherit(architecture: Architecture, document: Document, names: frozenset[str]) -> None:
    claim = find_lineage(document, names)
    if claim is None:
        return
    quote = evidence(claim.block.text, claim.start, claim.end, claim.section, around=200)
    paper = ANCESTORS[claim.ancestor].paper
    architecture.inherits = Inheritance(claim.ancestor, paper, quote)
    for name, value in claim.values().items():
        # The paper's own words win, and where it names two, it is not for us to choose.
        if name not in architecture.values:
            architecture.values[name] = Value(
                value, "inherited", (quote,), claim.score, claim.cues,
                note=f"as in {claim.ancestor} ({paper})",
            )  # fmt: skip
            architecture.unresolved.pop(name, None)


def _check(architecture: Architecture) -> None:
    """Hold the values against each other; a field that does not fit is trusted less."""
    known = {n: v.value for n, v in architecture.values.items() if v.verdict in ASSERTED}
    derived = [n for n, v in architecture.values.items() if v.verdict == "derived"]
    architecture.checks = check(known, derived=derived)
    for name, factor in trust(architecture.checks).items():
        value = architecture.values.get(name)
        if value is not None and value.verdict in ASSERTED:
            note = f"{value.note}; doubtful, see the checks".strip("; ")
            score = round(value.score * factor, 2)
            architecture.values[name] = replace(value, score=score, note=note)
