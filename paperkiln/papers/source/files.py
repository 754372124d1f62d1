"""A paper's source as decoded files: from an archive's bytes, a file or a folder."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from paperkiln.errors import PaperkilnError
from paperkiln.papers.document import SourceFile
from paperkiln.papers.source.archive import HEAD, MAX_FILE, MAX_KEPT, MAX_MEMBERS, kind_of, unpack
from paperkiln.papers.source.main_file import inputs, live, spellings

# How many bytes of a file are looked at, by the end of its name. Figures and data are not.
_SMALL = 1 << 18
_LIMITS = {
    ".tex": MAX_FILE, ".ltx": MAX_FILE, ".latex": MAX_FILE, ".bbl": 1 << 22, ".tikz": 1 << 20,
    ".pgf": 1 << 20, ".pdf_tex": _SMALL, ".sty": _SMALL, ".cls": _SMALL, ".clo": _SMALL,
    ".def": _SMALL, ".cfg": _SMALL,
}  # fmt: skip
_PAPER = (".tex", ".ltx", ".latex")
_UNNAMED = ("", ".txt")  # of the paper if it looks like TeX
_MAX_ARCHIVE = 1 << 28  # bytes on disk

# Words that plain text does not hold, of LaTeX and of plain TeX.
_TEX = re.compile(
    r"\\(?:document(?:class|style)|begin\s?\{|section\b|input\b|def\b|magnification\b|bye\b|"
    r"(?:emph|cite|ref|text[a-z]{2,4}|math[a-z]{2,4}|frac)\s?\{|noindent\b|centerline\b|hbox\b)"
)

_PACKAGES = re.compile(r"\\(?:usepackage|RequirePackage)\s?(?:\[[^\]]{0,300}\])?\{([^{}]{1,300})\}")

# What is not LaTeX, and the way on.
_REFUSED = {
    "pdf": "is a PDF; paperkiln reads the LaTeX source, which arXiv gives out for most papers",
    "html": "is a web page, not the source of a paper; fetch the source itself",
    "postscript": "is PostScript; paperkiln reads the LaTeX source",
    "png": "is an image; paperkiln reads the LaTeX source",
    "jpeg": "is an image; paperkiln reads the LaTeX source",
    "7z": "is a 7z archive; repack it as .zip or .tar.gz",
    "rar": "is a RAR archive; repack it as .zip or .tar.gz",
    "zstd": "is packed with zstd; repack it as .zip or .tar.gz",
    "compress": "is packed with compress (.Z); repack it as .zip or .tar.gz",
}
_BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)


def open_source(data: bytes, name: str) -> dict[str, SourceFile]:
    """Return the text files of a paper by name: data is a .tex, a tar or zip, or one gzipped.

    What it is shows in its content; `name` serves in messages and names a lone file.
    Raises PaperkilnError if it is unsafe, unreadable, or holds no LaTeX.
    """
    if not data.strip(b"\0\t\n\r "):
        raise PaperkilnError(f"{name} is empty")
    seen: list[str] = []

    def keep(member: str) -> int:
        seen.append(member)
        return _limit(member)

    members = unpack(data, name, keep)
    if "" in members:
        file = _lone(members[""], name)
        return {file.name: file}
    found = (_member(member, content, name) for member, content in members.items())
    files = {file.name: file for file in found if file}
    if not any(_may_be_paper(member) for member in files):
        raise PaperkilnError(f"{name} holds no LaTeX; {_what(seen)}")
    return files


def open_path(path: str | os.PathLike[str]) -> dict[str, SourceFile]:
    """Return the text files of a paper on disk: an archive, a folder, or a .tex and its inputs.

    Raises PaperkilnError if it cannot be read, is unsafe, or holds no LaTeX.
    """
    path = Path(path)
    if os.path.isdir(path):  # unlike Path.is_dir, never raises
        return _open_folder(path)
    data = _read(path, _MAX_ARCHIVE)
    if len(data) > _MAX_ARCHIVE:
        raise PaperkilnError(f"{path} is larger than {_MAX_ARCHIVE >> 20} MiB; unpack it first")
    files = open_source(data, path.name)
    if kind_of(data[:HEAD]) == "":
        _follow(path.parent, files)
    return files


# --- one file -----------------------------------------------------------------------------------


def decode(data: bytes) -> tuple[str, str]:
    """Return the text and its encoding: as a byte order mark says, UTF-8, or else cp1252.

    cp1252 is Latin-1 with letters where that has control characters. A UTF-8 file in which a few
    bytes are not (two authors, two editors) keeps its UTF-8.
    """
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data.removeprefix(mark).decode(encoding, "replace"), encoding
    text = data.decode("utf-8", "surrogateescape")
    strays = len(re.findall("[\udc80-\udcff]", text))
    if not strays:
        return text, "utf-8"
    letters = len(re.findall("[^\0-\x7f\udc80-\udcff]", text))
    if letters > strays:
        mixed = re.sub("[\udc80-\udcff]", lambda m: _western(bytes([ord(m[0]) - 0xDC00]))[0], text)
        return mixed, "mixed utf-8 and cp1252"
    return _western(data)


def _western(data: bytes) -> tuple[str, str]:
    try:
        return data.decode("cp1252"), "cp1252"
    except UnicodeDecodeError:  # it leaves five bytes undefined
        return data.decode("latin-1"), "latin-1"


def _lone(data: bytes, name: str) -> SourceFile:
    """Return the one file that `data` is, if it is TeX."""
    if not data.strip(b"\0\t\n\r "):
        raise PaperkilnError(f"{name} is empty")
    if refusal := _REFUSED.get(kind_of(data[:HEAD])):
        raise PaperkilnError(f"{name} {refusal}")
    if len(data) > MAX_FILE:
        raise _too_long(name)
    text, encoding = decode(data)
    if _is_binary(data, text):
        raise PaperkilnError(f"{name} is binary, not the LaTeX source of a paper")
    inner = posixpath.basename(name.replace("\\", "/"))
    inner = re.sub(r"\.(?:gz|bz2|xz|tgz)$", "", inner, flags=re.IGNORECASE)
    if not inner.lower().endswith(_PAPER):
        if not _TEX.search(text):
            raise PaperkilnError(f"{name} is text, but holds no LaTeX")
        inner = f"{inner or 'paper'}.tex"
    return SourceFile(inner, text, encoding)


def _member(member: str, data: bytes, name: str) -> SourceFile | None:
    """Return a file of an archive or folder, or None if it turns out to be of no use."""
    suffix = _suffix(member)
    if len(data) > _limit(member):
        if suffix in _PAPER:
            raise _too_long(f"{member} in {name}")
        return None
    text, encoding = decode(data)
    if _is_binary(data, text) or not (suffix in _LIMITS or _is_readme(member) or _TEX.search(text)):
        return None
    return SourceFile(member, text, encoding)


def _is_binary(data: bytes, text: str) -> bool:
    controls = len(re.findall(r"[\0-\x08\x0e-\x1f\x7f]", text))
    return kind_of(data[:HEAD]) != "" or "\0" in text or controls > len(text) / 100


def _too_long(name: str) -> PaperkilnError:
    return PaperkilnError(f"{name} is longer than {MAX_FILE >> 20} MiB; no paper is: leave it out")


# --- which files --------------------------------------------------------------------------------


def _limit(member: str) -> int:
    """Return how many bytes of a file are wanted: 0 for figures, data and hidden files."""
    base = posixpath.basename(member)
    hidden = base.startswith(".") or member.startswith("__MACOSX/")
    if hidden or not base or not base.isprintable():
        return 0
    if _suffix(member) in _LIMITS:
        return _LIMITS[_suffix(member)]
    return 1 << 21 if _suffix(member) in _UNNAMED or _is_readme(member) else 0


def _suffix(member: str) -> str:
    """Return the end of a name that tells its kind; that of 0808.1725 tells none."""
    suffix = posixpath.splitext(member)[1].lower()
    return "" if suffix[1:].isdigit() else suffix


def _is_readme(member: str) -> bool:
    return posixpath.basename(member).lower().startswith("00readme")


def _may_be_paper(member: str) -> bool:
    return _suffix(member) in _PAPER + _UNNAMED and not _is_readme(member)


def _what(seen: list[str]) -> str:
    """Say what there is instead of LaTeX."""
    if not seen:
        return "it has no files"
    if any(member.lower().endswith(".pdf") for member in seen):
        return "it was made as a PDF only"
    more = f" and {len(seen) - 3} more" if len(seen) > 3 else ""
    return f"its files are {', '.join(seen[:3])}{more}"


# --- on disk ------------------------------------------------------------------------------------


def _read(path: Path, limit: int) -> bytes:
    """Return a regular file's first `limit` + 1 bytes."""
    try:
        if not path.is_file():
            what = "is not a regular file" if path.exists() else "does not exist"
            raise PaperkilnError(f"{str(path)!a} {what}; name a .tex, a folder or an archive")
        with path.open("rb") as file:
            return file.read(limit + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PaperkilnError(f"{str(path)!a} cannot be read ({reason})") from None


def _open_folder(folder: Path) -> dict[str, SourceFile]:
    files: dict[str, SourceFile] = {}
    seen: list[str] = []
    total = 0
    for name in _walk(folder):
        seen.append(name)
        if len(seen) > MAX_MEMBERS:
            raise PaperkilnError(f"{folder} holds more than {MAX_MEMBERS:,} files; name the .tex")
        limit = _limit(name)
        if not limit or not _inside(folder, name):
            continue
        data = _read(folder / name, limit)
        total += len(data)
        if total > MAX_KEPT:
            raise PaperkilnError(
                f"{folder} holds more than {MAX_KEPT >> 20} MiB of text; name the .tex"
            )
        if file := _member(name, data, str(folder)):
            files[name] = file
    if not any(_may_be_paper(name) for name in files):
        raise PaperkilnError(f"{folder} holds no LaTeX; {_what(seen)}")
    return files


def _walk(folder: Path) -> Iterator[str]:
    """Yield the files below a folder, sorted, hidden folders left out."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            yield Path(place, name).relative_to(folder).as_posix()


def _inside(folder: Path, name: str) -> bool:
    """Whether a name is a regular file of the folder: a link may lead to others of the folder."""
    path = folder / name
    return os.path.isfile(path) and path.resolve().is_relative_to(folder.resolve())


def _follow(folder: Path, files: dict[str, SourceFile]) -> None:
    """Add what a lone .tex takes in from its folder, and not the other papers that lie there."""
    queue = list(files)
    total = 0
    while queue and len(files) < MAX_MEMBERS:
        name = queue.pop()
        for target in _wants(files[name].text):
            for path in spellings(target, name):
                if path in files:
                    break
                if _limit(path) and _inside(folder, path):
                    data = _read(folder / path, _limit(path))
                    total += len(data)
                    if total <= MAX_KEPT and (file := _member(path, data, str(folder))):
                        files[path] = file
                        queue.append(path)
                    break


def _wants(text: str) -> Iterator[str]:
    yield from inputs(live(text))
    for match in _PACKAGES.finditer(text):
        yield from (f"{package.strip()}.sty" for package in match[1].split(","))
