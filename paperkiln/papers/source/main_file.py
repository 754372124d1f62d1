"""Which file of a paper's source is the paper, and why: signs in order, the first that differs."""

from __future__ import annotations

import contextlib
import json
import posixpath
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from paperkiln.errors import PaperkilnError
from paperkiln.papers.document import SourceFile

# Files that TeX reads but that are never the paper itself.
PARTS = (".sty", ".cls", ".clo", ".def", ".cfg", ".bbl", ".bib", ".tikz", ".pgf", ".pdf_tex")
_SCRAP = 0.1  # a document this much shorter than the longest one is not the paper
_SHOWN = 8  # names in a message
# More than any paper has; they keep the time linear in hostile sources.
_MAX_INPUTS = 20_000
_MAX_CANDIDATES = 200
_MAX_READMES = 4
_MAX_TOML = 20_000  # characters; the time that tomllib takes for a dotted key is quadratic

_COMMENT = re.compile(r"\\[\\%]|%[^\r\n]*")
_INPUT = re.compile(
    r"\\(?:input|include|subfile|subfileinclude|InputIfFileExists)\s*"
    r"(?:\{([^{}]{1,300})\}|(?<=\s)([^\s{}\\%]{1,300}))"
)
_IMPORT = re.compile(
    r"\\(?:sub)?(?:import|includefrom|inputfrom)\*?\s*\{([^{}]{0,300})\}\s*\{([^{}]{1,300})\}"
)
_CLASS = re.compile(r"\\document(?:class|style)\s*(?:\[[^\]]{0,2000}\]\s*)?\{\s*([\w.-]{1,100})")
_BEGIN = re.compile(r"\\begin\s*\{document\}")
_END = re.compile(r"\\end\s*\{document\}")
_TOPLEVEL = re.compile(r"^[^\S\n]*(\S+)[^\S\n]+(toplevelfile|ignore)\b", re.MULTILINE)
_YAML_KEY = re.compile(
    r"\s*(?:(-)\s*)?[\"']?(usage|filename)[\"']?\s*:\s*[\"']?([^\"'\n]*?)[\"']?\s*$"
)

# What people call a file that stands beside the paper: whole words of its name.
_ASIDE_NAME = re.compile(
    r"(?:^|[^a-z])(?:supp|suppl|suppmat|supplement|supplementary|supplemental|appendix|rebuttal|"
    r"response|reply|cover|poster|slides|talk|diff|latexdiff|old|backup|bak|copy|readme|todo|notes)"
    r"(?:[^a-z]|$)"
)
_ASIDE_CLASS = {"standalone", "subfiles", "beamer", "letter", "minimal", "tikzposter"}
# What publishers call the document that comes with their class.
_TEMPLATE_NAME = re.compile(
    r"^(?:bare_|egpaper|elsarticle-template|mnras_|sn-article|conference_\d|sample-|sample\d*$|"
    r"example_paper|(?:.*[^a-z])?(?:template|example|instructions|guidelines)(?:[^a-z]|$))"
)
_PAPER_NAME = re.compile(r"(?:^|[^a-z])(?:main|ms|paper|article|manuscript|arxiv|root)(?:[^a-z]|$)")


def live(text: str) -> str:
    """Return what TeX reads of a file: no comments, nothing after the document's end."""
    text = _COMMENT.sub(lambda match: match[0] if match[0][0] == "\\" else "", text)
    end = _END.search(text)
    return text[: end.start()] if end else text


def inputs(text: str) -> Iterator[str]:
    """Yield the names of the files that live TeX takes in, as written."""
    for match in _INPUT.finditer(text):
        yield (match[1] or match[2]).strip().strip('"')
    for match in _IMPORT.finditer(text):
        yield posixpath.join(match[1].strip(), match[2].strip())


def spellings(target: str, including: str) -> Iterator[str]:
    """Yield the paths that `target` may mean in the file `including`, nearest folder first.

    TeX looks beside the main file, which lies in one of the folders above the including file.
    """
    folder = posixpath.dirname(including)
    while True:
        path = posixpath.normpath(posixpath.join(folder, target))
        if not path.startswith(("../", "/")):
            yield path
            yield f"{path}.tex"
        if not folder:
            return
        folder = posixpath.dirname(folder)


@dataclass
class _Candidate:
    """A file that may be the paper; everything it takes in counts as its own."""

    name: str
    size: int
    """Characters, comments left out."""
    complete: bool
    """There is a class and a document in it."""
    document_class: str
    has_bibliography: bool
    substantial: bool = True

    @property
    def stem(self) -> str:
        return posixpath.splitext(posixpath.basename(self.name))[0].lower()

    @property
    def aside(self) -> bool:
        return self.document_class in _ASIDE_CLASS or bool(_ASIDE_NAME.search(self.stem))


# What the paper is and other candidates are not, and how that is said. The first sign in which two
# candidates differ decides between them.
_SIGNS: tuple[tuple[Callable[[_Candidate], int], str], ...] = (
    (lambda c: c.complete, "it is the only complete document"),
    (lambda c: not c.aside, "{other} stands beside a paper (a supplement, reply, figure, copy)"),
    (lambda c: c.substantial, "{other} is not a tenth as long"),
    (lambda c: c.has_bibliography, "its bibliography (.bbl) stands beside it"),
    (lambda c: not _TEMPLATE_NAME.search(c.stem), "{other} has the name of a template"),
    (lambda c: bool(_PAPER_NAME.search(c.stem)), "it has the name of a main file, {other} has not"),
    (lambda c: -c.name.count("/"), "{other} lies in a deeper folder"),
    (lambda c: c.size, "it is longer than {other}"),
)


def choose_main(files: dict[str, SourceFile], wanted: str | None = None) -> tuple[str, str]:
    """Return the name of the paper's main file, and in words why it is that one.

    Raises PaperkilnError if `wanted` is not among the files, or none of them may be a paper.
    """
    if wanted:
        return _wanted(files, wanted), "it was asked for"
    names = [n for n in files if not n.lower().endswith(PARTS) and not _is_readme(n)]
    if not names:
        raise PaperkilnError("there is no TeX file that could be the paper")
    for readme in islice(filter(_is_readme, files), _MAX_READMES):
        top, ignored = _directions(files[readme].text)
        for name in (posixpath.join(posixpath.dirname(readme), n) for n in top):
            if name in files:
                return name, f"{readme} names it"
        names = [n for n in names if posixpath.basename(n) not in ignored] or names
    if len(names) == 1:
        return names[0], "it is the only TeX file"
    best, *others = _by_rank(_candidates(files, names))
    if not others:
        return best.name, "it takes in every other TeX file"
    for sign, words in _SIGNS:
        if sign(best) != sign(others[0]):
            return best.name, words.format(other=others[0].name)
    return best.name, f"nothing tells it from {others[0].name}, and it comes first"


def _wanted(files: dict[str, SourceFile], wanted: str) -> str:
    path = posixpath.normpath(wanted.replace("\\", "/"))
    for name in (path, f"{path}.tex"):
        if name in files:
            return name
    ends = [n for n in files if posixpath.basename(n) in (path, f"{path}.tex")]
    if len(ends) == 1:
        return ends[0]
    there = sorted(ends or [n for n in files if not n.lower().endswith(PARTS)])
    more = f" and {len(there) - _SHOWN} more" if len(there) > _SHOWN else ""
    which = "stands for more than one file" if ends else "is not in the source"
    raise PaperkilnError(f"{wanted} {which}; it holds {', '.join(there[:_SHOWN])}{more}")


def _candidates(files: dict[str, SourceFile], names: list[str]) -> list[_Candidate]:
    """Return the files that no other takes in; in a circle of files, all of them."""
    text = {name: live(file.text) for name, file in files.items()}
    takes = _edges(text)
    taken = {part for name in takes for part in takes[name] if part != name}
    roots = [n for n in names if n not in taken] or names
    roots = sorted(roots, key=lambda n: len(text[n]), reverse=True)[:_MAX_CANDIDATES]
    classes = {n: match[1] for n in text if (match := _CLASS.search(text[n]))}
    documents = {n for n in text if _BEGIN.search(text[n])}
    found = []
    for name in sorted(roots):
        parts = _reach(name, takes)
        found.append(
            _Candidate(
                name,
                size=sum(len(text[part]) for part in parts),
                complete=not (classes.keys().isdisjoint(parts) or documents.isdisjoint(parts)),
                document_class=classes.get(name, ""),
                has_bibliography=posixpath.splitext(name)[0] + ".bbl" in files,
            )
        )
    return found


def _edges(text: dict[str, str]) -> dict[str, list[str]]:
    """Return of each file those that it takes in, as far as they are there."""
    takes, budget = {}, _MAX_INPUTS
    for name in text:
        targets = list(islice(dict.fromkeys(inputs(text[name])), budget))
        budget -= len(targets)
        found = (next((p for p in spellings(t, name) if p in text), None) for t in targets)
        takes[name] = [path for path in found if path]
    return takes


def _reach(name: str, takes: dict[str, list[str]]) -> set[str]:
    """Return the file, those that it takes in, and those they take in."""
    reached, queue = {name}, [name]
    while queue:
        for part in takes[queue.pop()]:
            if part not in reached:
                reached.add(part)
                queue.append(part)
    return reached


def _by_rank(candidates: list[_Candidate]) -> list[_Candidate]:
    longest = max((c.size for c in candidates if c.complete and not c.aside), default=0)
    for candidate in candidates:
        candidate.substantial = candidate.size >= _SCRAP * longest
    return sorted(candidates, key=lambda c: [sign(c) for sign, _ in _SIGNS], reverse=True)


# --- arXiv's 00README ---------------------------------------------------------------------------


def _is_readme(name: str) -> bool:
    return posixpath.basename(name).lower().startswith("00readme")


def _directions(text: str) -> tuple[list[str], set[str]]:
    """Return the top-level and the ignored files that a 00README names, in any of its forms."""
    found = _parsed_directions(text) or _yaml_directions(text)
    found = found or [(m[1], m[2]) for m in _TOPLEVEL.finditer(text)]
    top = [name for name, usage in found if usage in ("toplevel", "toplevelfile")]
    return top, {name for name, usage in found if usage == "ignore"}


def _parsed_directions(text: str) -> list[tuple[str, str]]:
    for parse in (json.loads, tomllib.loads)[: 2 if len(text) <= _MAX_TOML else 1]:
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
            sources = parse(text)["sources"]
            return [(str(source["filename"]), str(source.get("usage"))) for source in sources]
    return []


def _yaml_directions(text: str) -> list[tuple[str, str]]:
    """Return (filename, usage) of each item of the list `sources`; no other YAML is needed."""
    items: list[dict[str, str]] = []
    for line in text.splitlines():
        if match := _YAML_KEY.match(line[:500]):
            if match[1] or not items:
                items.append({})
            items[-1][match[2]] = match[3]
    return [(item["filename"], item.get("usage", "")) for item in items if "filename" in item]
