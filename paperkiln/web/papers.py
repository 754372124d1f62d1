"""A paper's source in, its evidence page and everything that is made from it out."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from paperkiln.papers.architecture import Architecture
from paperkiln.papers.document import Document
from paperkiln.papers.emit import to_hf, to_python, to_spec
from paperkiln.papers.emit.page import to_html
from paperkiln.papers.extract import extract, read_document
from paperkiln.papers.source.files import open_source
from paperkiln.papers.source.reference import from_file_name, parse_reference

_MOST_NAMES = 50  # models of a paper that the page lets one choose from
_PACKED = re.compile(r"(\.(tar|tgz|gz|zip|tex|txt|bz2|xz))+$", re.IGNORECASE)


def link(text: str) -> dict[str, Any]:
    """Return where the paper that `text` names is: its id, its page and its source.

    Raises PaperkilnError, which says what is accepted, for text that names none.
    """
    reference = parse_reference(text)
    source = f"https://arxiv.org/src/{reference.canonical}"  # the host for people, not programs
    return {"id": reference.canonical, "page": reference.abs_url, "source": source}


def read(data: bytes, name: str, size: str | None = None) -> dict[str, Any]:
    """Return what a source says of its model, as a page and as what can be made of it.

    `size` names the model, if the paper has several. Raises PaperkilnError for anything that is
    no LaTeX source, or that is unsafe to unpack.
    """
    document, architecture = _read(data, name, size)
    known = [variant.name for variant in architecture.variants]
    return {
        "title": architecture.title or name,
        "id": architecture.paper_id,
        "model": architecture.model or "",
        "models": list(dict.fromkeys(known))[:_MOST_NAMES],
        "size": size,
        "html": to_html(architecture, document),
        **_made(architecture, None),
    }


def emit(
    data: bytes, name: str, size: str | None = None, fit: str | None = None
) -> dict[str, Any]:  # fmt: skip
    """Return the spec, the Hugging Face config and the Python of a paper, fitted to a size."""
    return _made(_read(data, name, size)[1], fit or None)


def _made(architecture: Architecture, fit: str | None) -> dict[str, Any]:
    """Return each form that a paper is given out in."""
    spec, notes = to_spec(architecture, fit)
    config, _ = to_hf(architecture)  # always at the paper's own size
    return {
        "spec": spec,
        "notes": notes,
        "hf": json.dumps(config, indent=2, ensure_ascii=False) + "\n",
        "python": to_python(architecture, fit),
    }


@lru_cache(maxsize=2)  # the page asks again for the same paper, with other wishes
def _read(data: bytes, name: str, size: str | None) -> tuple[Document, Architecture]:
    document = _document(data, name)
    reference = from_file_name(_PACKED.sub("", name).removeprefix("arXiv-"))
    return document, extract(document, size or None, reference.canonical if reference else "")


@lru_cache(maxsize=1)
def _document(data: bytes, name: str) -> Document:
    return read_document(open_source(data, name))
