"""Papers with known truth: a folder that holds them with a manifest, or the shipped table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import combinations
from pathlib import Path, PurePosixPath
from typing import Any

from paperkiln.errors import PaperkilnError
from paperkiln.papers.architecture import Scalar

OUTSIDE = "outside"
"""As a truth: the true value has no name among ours, so abstaining is right."""
MANIFESTS = "manifest*.jsonl"
_LARGEST_MANIFEST = 64 << 20  # bytes
_PREAMBLE = 200_000  # characters searched for \begin{document}
_SHARED = 0.3  # of the preambles' lines: one template


@dataclass(frozen=True, eq=False)
class Case:
    """A paper and what its own text states of its main model.

    A field absent from `truth` is not scored; None or OUTSIDE there means that abstaining is
    right. `alternatives` holds other readings that the text allows (None: that it states none),
    `public` what is known of the model but not stated. A paper to be fetched has no `folder`.
    """

    id: str
    title: str = ""
    truth: Mapping[str, Scalar | None] = field(default_factory=dict)
    alternatives: Mapping[str, tuple[Scalar | None, ...]] = field(default_factory=dict)
    public: Mapping[str, Scalar] = field(default_factory=dict)
    folder: Path | None = None
    files: tuple[str, ...] = ()
    template: str = ""
    """The group of papers made from one template; they count as one paper."""

    @property
    def group(self) -> str:
        """The template, or the paper itself when it shares none."""
        return self.template or self.id


def load_folder(path: str | Path) -> list[Case]:
    """Return the cases of every manifest*.jsonl in a folder, one JSON object a line.

    A paper's files lie in the folder named by its id; a paper listed twice with the same truth
    counts once. Papers of one template are those that name the same `template`, and those that
    `template_groups` finds. Raises PaperkilnError for a manifest that cannot be read, for two
    truths of one paper, and for files that are missing or outside the folder.
    """
    root = Path(path)
    manifests = sorted(root.glob(MANIFESTS)) if root.is_dir() else []
    if not manifests:
        what = f"has no {MANIFESTS}" if root.is_dir() else "is no folder"
        raise PaperkilnError(f"{root} {what}; name a folder of papers with their truth")
    found: dict[str, Case] = {}
    for manifest in manifests:
        for where, record in _records(manifest):
            case = _case(where, record, root)
            first = found.setdefault(case.id, case)
            if (case.truth, case.alternatives) != (first.truth, first.alternatives):
                raise PaperkilnError(f"{where}: another truth for {case.id}; keep one line of it")
    if not found:
        raise PaperkilnError(f"{manifests[0]} lists no paper; write one JSON object a line")
    unnamed = {case.id: _preamble(case) for case in found.values() if not case.template}
    groups = template_groups(unnamed)
    return [case if case.template else replace(case, template=groups[case.id])
            for case in found.values()]  # fmt: skip


def load_arxiv_table() -> list[Case]:
    """Return the shipped table of arXiv papers, flavours only; their sources are not shipped."""
    where = "truth_arxiv.json"
    text = files("paperkiln.papers.bench").joinpath(where).read_text("utf-8")
    return [_case(where, record, None) for record in json.loads(text)]


def template_groups(preambles: Mapping[str, frozenset[str]]) -> dict[str, str]:
    """Return the group of each paper, named by the first paper in it.

    Two papers are of one template when their ids begin with the same letters and their preambles
    share three lines in ten (Jaccard), and so is whoever shares a template with either. Preambles
    tell what headings do not: every paper has an Introduction, few the same colours and macros.
    """
    group = {paper: paper for paper in preambles}
    for a, b in combinations(preambles, 2):
        if _letters(a) and _letters(a) == _letters(b):
            shared = len(preambles[a] & preambles[b])
            if shared > _SHARED * len(preambles[a] | preambles[b]):
                new, old = sorted((group[a], group[b]), key=list(preambles).index)
                group = {paper: new if g == old else g for paper, g in group.items()}
    return group


def _letters(paper: str) -> str:
    match = re.match(r"[A-Za-z]+", paper)
    return match[0].lower() if match else ""


def _preamble(case: Case) -> frozenset[str]:
    """The lines before \\begin{document}, of the first file that has them; no comments."""
    assert case.folder
    for name in case.files:
        with (case.folder / name).open(encoding="utf-8", errors="replace") as file:
            head, found, _ = file.read(_PREAMBLE).partition("\\begin{document}")
        if found and "\\documentclass" in head:
            lines = (line.strip() for line in head.splitlines())
            return frozenset(line for line in lines if line and line[0] != "%")
    return frozenset()


def _records(manifest: Path) -> Iterator[tuple[str, Any]]:
    """Yield each line's place in words and its JSON value."""
    try:
        if manifest.stat().st_size > _LARGEST_MANIFEST:
            raise PaperkilnError(f"{manifest} is larger than 64 MiB; split it into several")
        lines = manifest.read_bytes().splitlines()
    except OSError as error:
        raise PaperkilnError(f"{manifest} could not be read ({error.strerror})") from error
    for number, line in enumerate(lines, 1):
        where = f"{manifest.name} line {number}"
        if line.strip():
            try:
                yield where, json.loads(line.decode("utf-8-sig"))
            except (ValueError, RecursionError) as error:
                raise PaperkilnError(f"{where}: not JSON in UTF-8; mend or drop it") from error


_KEYS = (
    ("id", str), ("truth", dict), ("title", str), ("template", str),
    ("truth_alternatives", dict), ("truth_public", dict),
)  # fmt: skip
_NEEDED = ("id", "truth")
_VALUES = (int, float, str, bool, type(None))


def _case(where: str, record: Any, root: Path | None) -> Case:
    if not isinstance(record, dict):
        raise PaperkilnError(f"{where}: not a JSON object; begin it with {{")
    for key, kind in _KEYS:
        if not isinstance(record.get(key, kind()), kind) or (key in _NEEDED and key not in record):
            words = {str: "a text", dict: "an object"}[kind]
            raise PaperkilnError(f"{where}: {key!r} must be {words}; see the folder's README")
    alternatives = record.get("truth_alternatives", {})
    for name, several in alternatives.items():
        if not isinstance(several, list) or not all(isinstance(v, _VALUES) for v in several):
            raise PaperkilnError(f"{where}: the alternatives of {name!r} must be a list of values")
    for name, value in record["truth"].items():
        if not isinstance(value, _VALUES):
            raise PaperkilnError(f"{where}: the truth of {name!r} must be one value or null")
    return Case(
        id=record["id"],
        title=record.get("title", ""),
        truth=record["truth"],
        alternatives={name: tuple(several) for name, several in alternatives.items()},
        public=record.get("truth_public", {}),
        folder=root / _relative(where, record["id"]) if root else None,
        files=_checked_files(where, record, root) if root else (),
        template=record.get("template", ""),
    )


def _checked_files(where: str, record: dict[str, Any], root: Path) -> tuple[str, ...]:
    names = record.get("files")
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        raise PaperkilnError(f"{where}: 'files' must list the paper's files; name at least one")
    folder = root / _relative(where, record["id"])
    for name in names:
        path = folder / _relative(where, name)
        if not path.resolve().is_relative_to(root.resolve()):
            raise PaperkilnError(f"{where}: {name!r} leads out of the folder; copy the file in")
        if not path.is_file():
            raise PaperkilnError(f"{where}: {path} is missing; add it or drop it from 'files'")
    return tuple(names)


def _relative(where: str, name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    bad = not path.parts or path.is_absolute() or ".." in path.parts
    if bad or any(c in name for c in "\\:\0"):
        raise PaperkilnError(f"{where}: {name!r} is no path within the folder; use a/b.tex")
    return path
