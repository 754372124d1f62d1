"""What is inside a stranger's archive, in memory: told by content, bounded, nothing on disk.

The tar reader is our own because tarfile has been made to hang and to backtrack by crafted
headers, which no limit around it prevents; only regular files are ever looked into.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

from paperkiln.errors import PaperkilnError

MAX_MEMBERS = 20_000
MAX_FILE = 16 << 20  # bytes of one kept file; the longest papers have 2 MB
MAX_KEPT = 64 << 20  # bytes of all kept files
MAX_UNPACKED = 1 << 30  # bytes of an unpacked archive, with figures
MAX_RATIO = 200  # of unpacked to packed bytes, once FREE_BYTES are exceeded
FREE_BYTES = 32 << 20
MAX_NAME = 1024  # characters
MAX_DEPTH = 32  # folders
MAX_LAYERS = 3  # a gzipped gzipped tar is seen in the wild

HEAD = 1024  # bytes by which a kind is told
_BLOCK = 512
_MAX_HEADER = 1 << 16  # bytes of a long name or an extended header
_CHUNK = 1 << 16

_MAGIC = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),  # an empty one
    (b"%PDF-", "pdf"),
    (b"%!PS", "postscript"),
    (b"\x89PNG", "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"Rar!\x1a\x07", "rar"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x1f\x9d", "compress"),
)
_HTML = re.compile(rb"\s*<(?:!doctype\s+html|html|head|body|\?xml)\b", re.IGNORECASE)
_PDF_LATER = re.compile(rb"\s*%PDF-")  # after a byte order mark or blank lines

Keep = Callable[[str], int]
"""Of a member's name: how many of its bytes are wanted at most; 0 passes over it."""


def kind_of(head: bytes) -> str:
    """Return what the first HEAD bytes of a file show it to be: 'gzip', 'pdf', … or ''."""
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    if len(head) >= _BLOCK and _checks(head[:_BLOCK]):
        return "tar"
    text = head.removeprefix(b"\xef\xbb\xbf")
    return "html" if _HTML.match(text) else "pdf" if _PDF_LATER.match(text) else ""


def unpack(data: bytes, name: str, keep: Keep) -> dict[str, bytes]:
    """Return the wanted members of an archive by name; a lone file, packed or not, is under ''.

    A member longer than `keep` allows comes cut to one byte more than that.
    Raises PaperkilnError for one that is cut short, corrupt, encrypted, out of all proportion,
    or that holds names leading outside it.
    """
    limit = min(MAX_UNPACKED, max(FREE_BYTES, MAX_RATIO * len(data)))
    with _told(name):
        stream: io.BufferedIOBase = _bounded(io.BytesIO(data), limit, name)
        for _ in range(MAX_LAYERS + 1):
            kind = kind_of(stream.peek(HEAD)[:HEAD])  # type: ignore[attr-defined]
            if kind not in _OPENERS:
                break
            stream = _bounded(_OPENERS[kind](stream), limit, name)
        else:
            raise PaperkilnError(
                f"{name} is packed more than {MAX_LAYERS} times over; unpack it and name the .tex"
            )
        if kind not in _READERS:
            return {"": stream.read(MAX_FILE + 1)}
        return _collect(_READERS[kind](stream, name, keep), name)


def _collect(members: Iterator[tuple[str, bytes]], name: str) -> dict[str, bytes]:
    """Return the members by safe name, as long as they stay within MAX_KEPT."""
    kept: dict[str, bytes] = {}
    total = 0
    for member, content in members:
        total += len(content)
        if total > MAX_KEPT:
            raise PaperkilnError(
                f"{name} holds more than {MAX_KEPT >> 20} MiB of text; unpack it and name the .tex"
            )
        kept[member] = content  # of two with one name the later one counts, as when unpacking
    return kept


# --- streams ------------------------------------------------------------------------------------


class _Bounded(io.RawIOBase):
    """A stream that refuses to give more than `limit` bytes."""

    def __init__(self, inner: Any, limit: int, name: str) -> None:
        self._inner, self._left, self._name = inner, limit, name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self._inner.read(len(buffer))
        self._left -= len(chunk)
        if self._left < 0:
            raise PaperkilnError(
                f"{self._name} unpacks to far more than a paper has (over {MAX_RATIO} times its "
                f"size, or {MAX_UNPACKED >> 20} MiB); unpack it yourself and name the .tex"
            )
        buffer[: len(chunk)] = chunk
        return len(chunk)


def _bounded(inner: Any, limit: int, name: str) -> io.BufferedReader:
    return io.BufferedReader(_Bounded(inner, limit, name), _CHUNK)


def _open_bzip2(stream: io.BufferedIOBase) -> Any:
    import bz2  # not in every Python

    return bz2.BZ2File(stream)  # type: ignore[arg-type]


def _open_xz(stream: io.BufferedIOBase) -> Any:
    import lzma  # not in every Python: Pyodide loads it on its own

    return lzma.LZMAFile(stream)  # type: ignore[arg-type]


_OPENERS: dict[str, Callable[[Any], Any]] = {
    "gzip": lambda stream: gzip.GzipFile(fileobj=stream),
    "bzip2": _open_bzip2,
    "xz": _open_xz,
}


@contextlib.contextmanager
def _told(name: str) -> Iterator[None]:
    """Turn what the standard library raises for bad archives into one clear line."""
    try:
        yield
    except PaperkilnError:
        raise
    except EOFError:
        raise PaperkilnError(f"{name} is cut short; fetch it again") from None
    except ImportError as error:
        raise PaperkilnError(
            f"{name} needs Python's module {error.name} to unpack; repack it as .tar.gz"
        ) from None
    except Exception as error:  # zlib.error, LZMAError, BadZipFile, struct.error, …
        if type(error).__name__ == "LZMAError" and "end-of-stream" in str(error):
            raise PaperkilnError(f"{name} is cut short; fetch it again") from None
        raise PaperkilnError(f"{name} is corrupt and cannot be unpacked; fetch it again") from None


# --- names --------------------------------------------------------------------------------------


def _safe(member: str, name: str) -> str:
    """Return a member's name with forward slashes and no `.`; refuse one that leads outside."""
    path = member.replace("\\", "/")
    parts = path.split("/")
    if len(path) > MAX_NAME or len(parts) > MAX_DEPTH:
        raise PaperkilnError(f"{name} holds a name of {len(path):,} characters; it is corrupt")
    if path.startswith("/") or ".." in parts or re.match(r"[A-Za-z]:", path):
        raise PaperkilnError(
            f"{name} holds {member[:80]!a}, a name that leads outside it; such an archive "
            "is not opened: name the .tex instead"
        )
    normal = posixpath.normpath(path) if path else ""
    return "".join(c if c.isprintable() else "\ufffd" for c in normal)


def _too_many(name: str) -> PaperkilnError:
    return PaperkilnError(f"{name} holds more than {MAX_MEMBERS:,} files; name the .tex instead")


# --- zip ----------------------------------------------------------------------------------------


def _unzip(stream: io.BufferedIOBase, name: str, keep: Keep) -> Iterator[tuple[str, bytes]]:
    data = stream.read()
    if data.count(b"PK\x01\x02") > MAX_MEMBERS:  # before a list of them is made
        raise _too_many(name)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            mode = info.external_attr >> 16 & 0o170000
            regular = mode in (0, 0o100000) and not info.is_dir()
            member = _safe(info.filename, name)
            wanted = keep(member) if regular else 0
            if not wanted:
                continue
            if info.flag_bits & 1:
                raise PaperkilnError(
                    f"{name} is encrypted; unpack it with its password and name the folder"
                )
            with archive.open(info) as file:
                yield member, file.read(wanted + 1)


# --- tar ----------------------------------------------------------------------------------------


def _untar(stream: io.BufferedIOBase, name: str, keep: Keep) -> Iterator[tuple[str, bytes]]:
    """Yield the wanted regular files of a tar: ustar, GNU and pax."""
    long_name = ""
    for _ in range(MAX_MEMBERS + 1):
        header = stream.read(_BLOCK)
        if not header.strip(b"\0"):  # two such blocks end a tar, or it just ends
            break
        if len(header) < _BLOCK:
            raise EOFError
        if not _checks(header):
            raise ValueError("checksum")
        size, kind = _number(header[124:136]), header[156:157]
        if kind in b"LxX":  # the name of the next member, when it is long or not ASCII
            body = _take(stream, size, _MAX_HEADER)
            long_name = _text(body) if kind == b"L" else _pax_path(body) or long_name
            continue
        if kind in b"123456":  # links, devices, folders: a header and no content
            size = 0
        elif kind == b"S":
            raise ValueError("sparse file")
        if kind != b"g" and kind != b"K":
            member = _safe(long_name or _name(header), name)
            long_name = ""
            wanted = keep(member) if kind in b"0\x007" else 0
            if wanted:
                yield member, _take(stream, size, wanted)
                continue
        _take(stream, size, 0)
    else:
        raise _too_many(name)
    while stream.read(_CHUNK):  # to the end, where gzip's check sum stands
        pass


def _checks(header: bytes) -> bool:
    """Whether a block is a tar header: its check sum counts its own field as spaces."""
    stated = _octal(header[148:156])
    return stated is not None and stated == sum(header[:148]) + 8 * 32 + sum(header[156:])


def _octal(field: bytes) -> int | None:
    digits = field.strip(b" \0")
    return int(digits, 8) if re.fullmatch(rb"[0-7]{1,12}", digits) else None


def _number(field: bytes) -> int:
    """Return a size: octal digits, or binary when the first bit is set."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    size = _octal(field) if field.strip(b" \0") else 0
    if size is None:
        raise ValueError("size")
    return size


def _take(stream: io.BufferedIOBase, size: int, wanted: int) -> bytes:
    """Read past a member's content and padding; return its first `wanted` + 1 bytes."""
    kept = stream.read(min(size, wanted + 1))
    left = size - len(kept) + -size % _BLOCK
    while left > 0:
        chunk = stream.read(min(left, _CHUNK))
        if not chunk:
            raise EOFError
        left -= len(chunk)
    return kept


def _name(header: bytes) -> str:
    name = header[:100].partition(b"\0")[0]
    prefix = header[345:500].partition(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return _text(prefix + b"/" + name if prefix else name)


def _text(name: bytes) -> str:
    name = name.partition(b"\0")[0]
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        return name.decode("latin-1")


def _pax_path(body: bytes) -> str:
    """Return the path of an extended header, records of the form b'<length> <key>=<value>\\n'."""
    at, path = 0, ""
    while match := re.compile(rb"([0-9]{1,6}) ([^=\n]{1,100})=").match(body, at):
        end = at + int(match[1])
        if end <= match.end():
            break
        if match[2] == b"path":
            path = _text(body[match.end() : end - 1])
        at = end
    return path


_READERS = {"zip": _unzip, "tar": _untar}
