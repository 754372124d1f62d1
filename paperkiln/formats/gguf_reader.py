"""The header of a GGUF file: metadata and where each tensor lies.

Standard library only: this file also runs in the browser, on bytes a visitor dropped on the page.
So it trusts nothing: every count and length is checked against the bytes that are really there
before anything is allocated.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3).
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any, NamedTuple

from paperkiln.errors import PaperkilnError

# ggml's type number -> (name, elements in a block, bytes of a block). Types 9 and 15 (q8_1, q8_k)
# exist only while ggml multiplies, never in a file.
GGML_TYPES: dict[int, tuple[str, int, int]] = {
    0: ("f32", 1, 4), 1: ("f16", 1, 2), 2: ("q4_0", 32, 18), 3: ("q4_1", 32, 20),
    6: ("q5_0", 32, 22), 7: ("q5_1", 32, 24), 8: ("q8_0", 32, 34),
    10: ("q2_k", 256, 84), 11: ("q3_k", 256, 110), 12: ("q4_k", 256, 144),
    13: ("q5_k", 256, 176), 14: ("q6_k", 256, 210),
    16: ("iq2_xxs", 256, 66), 17: ("iq2_xs", 256, 74), 18: ("iq3_xxs", 256, 98),
    19: ("iq1_s", 256, 50), 20: ("iq4_nl", 32, 18), 21: ("iq3_s", 256, 110),
    22: ("iq2_s", 256, 82), 23: ("iq4_xs", 256, 136), 24: ("i8", 1, 1), 25: ("i16", 1, 2),
    26: ("i32", 1, 4), 27: ("i64", 1, 8), 28: ("f64", 1, 8), 29: ("iq1_m", 256, 56),
    30: ("bf16", 1, 2), 34: ("tq1_0", 256, 54), 35: ("tq2_0", 256, 66), 39: ("mxfp4", 32, 17),
    40: ("nvfp4", 64, 36), 41: ("q1_0", 128, 18),
}  # fmt: skip

# Metadata value type -> struct format; 8 is a string and 9 an array.
_SCALARS = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip
_STRING, _ARRAY = 8, 9

MAX_DIMENSIONS = 4  # ggml's own limit
MAX_ENTRIES = 1 << 16  # keys, and tensors; the largest known models have some thousands
MAX_HEADER = 1 << 26  # bytes; the largest known vocabularies take 2^24
MAX_ARRAY = 1 << 22  # elements of one metadata array; the largest known vocabularies have 2^18
_LONGEST_LABEL = 160  # characters of the file's name in an error; of names inside it, 60
_MEND = "download or export it again"


class TensorInfo(NamedTuple):
    """One tensor of the file; `shape` is in numpy's order, the reverse of GGUF's `ne`."""

    name: str
    shape: tuple[int, ...]
    ggml_type: str  # "f32", "f16", "q8_0" ...
    offset: int  # bytes from the start of the file
    n_bytes: int


class GgufFile(NamedTuple):
    """What a GGUF file says before its weights begin."""

    version: int
    metadata: dict[str, Any]
    tensors: dict[str, TensorInfo]
    alignment: int
    data_offset: int  # where tensor data begins, bytes from the start of the file


def read_header(source: str | os.PathLike[str] | bytes) -> GgufFile:
    """Read the metadata and the tensor table of a GGUF file, given as a path or as its bytes.

    Raises PaperkilnError if it is not a complete, well-formed GGUF file.
    """
    with open_buffer(source) as (buffer, label):
        return _parse(_Cursor(buffer, len(buffer), label))


def read_beginning(beginning: bytes, size: int, label: str) -> GgufFile | None:
    """Read the header from the first bytes of a file of `size` bytes; None if it is longer.

    Raises PaperkilnError as `read_header` does.
    """
    try:
        return _parse(_Cursor(beginning, size, label))
    except _MoreNeeded:
        return None


@contextmanager
def open_buffer(
    source: str | os.PathLike[str] | bytes,
) -> Iterator[tuple[bytes | mmap.mmap, str]]:
    """Yield a path's bytes, mapped and not loaded (or the given bytes), and a label for errors."""
    if isinstance(source, bytes | bytearray | memoryview):
        yield bytes(source), "the GGUF bytes"
        return
    try:
        with open(source, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size == 0:  # mmap refuses an empty file
                yield b"", str(source)
                return
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as buffer:
                yield buffer, str(source)
    except OSError as error:
        raise PaperkilnError(
            f"{source} cannot be read ({error.strerror or error}); check the path"
        ) from error


class _MoreNeeded(Exception):
    """The header goes on after the bytes at hand, and the file does too."""


class _Cursor:
    """A position in untrusted bytes, the first of a file of `size`; every read is checked first."""

    def __init__(self, buffer: bytes | mmap.mmap, size: int, label: str) -> None:
        self.buffer, self.size, self.at = buffer, size, 0
        self.label = label if len(label) <= _LONGEST_LABEL else f"…{label[-_LONGEST_LABEL:]}"

    def fail(self, what: str, mend: str = _MEND) -> PaperkilnError:
        return PaperkilnError(f"{self.label}: {what}; {mend}")

    def take(self, n: int, what: str) -> int:
        """Advance by n bytes and return where they begin."""
        if n > self.size - self.at:
            raise self.fail(
                f"{what} needs {n:,} bytes at {self.at:,}, but the file ends at {self.size:,}"
            )
        start, self.at = self.at, self.at + n
        if self.at > MAX_HEADER:  # lists take many times the bytes they are read from
            raise self.fail(f"its header is longer than {MAX_HEADER:,} bytes", "open it elsewhere")
        if self.at > len(self.buffer):
            raise _MoreNeeded
        return start

    def scalar(self, code: str, what: str) -> Any:
        (value,) = struct.unpack_from(
            "<" + code, self.buffer, self.take(struct.calcsize(code), what)
        )
        return value

    def count(self, least: int, what: str, limit: int = 1 << 64) -> int:
        """Read a uint64 that counts things of at least `least` bytes each."""
        n = self.scalar("Q", what)
        if n * least > self.size - self.at:
            raise self.fail(f"{what} is {n:,}, more than the file can hold")
        if n > limit:
            raise self.fail(f"{what} is {n:,}, and at most {limit:,} are read", "open it elsewhere")
        return n

    def string(self, what: str) -> str:
        n = self.count(1, f"the length of {what}")
        start = self.take(n, what)
        # Some published vocabularies hold bytes that are not UTF-8; llama.cpp reads them.
        return self.buffer[start : start + n].decode("utf-8", "replace")

    def value(self, kind: int, what: str, depth: int = 0) -> Any:
        if kind in _SCALARS:
            return self.scalar(_SCALARS[kind], what)
        if kind == _STRING:
            return self.string(what)
        if kind != _ARRAY or depth > 2:
            raise self.fail(f"{what} has the unknown value type {kind}")
        inner = self.scalar("I", what)
        if inner in _SCALARS:
            width = struct.calcsize(_SCALARS[inner])
            n = self.count(width, f"the length of {what}", MAX_ARRAY)
            start = self.take(n * width, what)
            return list(struct.unpack_from(f"<{n}{_SCALARS[inner]}", self.buffer, start))
        n = self.count(8, f"the length of {what}", MAX_ARRAY)
        return [self.value(inner, what, depth + 1) for _ in range(n)]


def _parse(cursor: _Cursor) -> GgufFile:
    version = _check_magic(cursor)
    # A tensor: name length, n_dims, one ne, type, offset. A pair: key length, type, one byte.
    n_tensors = cursor.count(32, "the tensor count", MAX_ENTRIES)
    n_pairs = cursor.count(13, "the metadata count", MAX_ENTRIES)
    metadata: dict[str, Any] = {}
    for i in range(n_pairs):
        key = cursor.string(f"metadata key {i}")
        if key in metadata:
            raise cursor.fail(f"metadata key {key!r:.60} appears twice")
        metadata[key] = cursor.value(cursor.scalar("I", key), f"metadata {key!r:.60}")
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise cursor.fail(f"general.alignment is {alignment!r:.60}, not a power of two")

    entries = [_tensor_entry(cursor, i) for i in range(n_tensors)]
    data_offset = -(-cursor.at // alignment) * alignment
    tensors: dict[str, TensorInfo] = {}
    for name, shape, kind, offset in entries:
        if name in tensors:
            raise cursor.fail(f"tensor {name!r:.60} appears twice")
        tensors[name] = _place(cursor, name, shape, kind, offset, data_offset, alignment)
    _check_apart(cursor, tensors)
    return GgufFile(version, metadata, tensors, alignment, data_offset)


def _check_magic(cursor: _Cursor) -> int:
    magic = cursor.buffer[:4]
    if magic != b"GGUF":
        what = "is empty" if not magic else f"begins with {magic!r:.60}, not b'GGUF'"
        raise cursor.fail(f"the file {what}", "give a .gguf file")
    cursor.take(4, "the magic")
    version = cursor.scalar("I", "the version")
    if version not in (2, 3):
        if version in (2 << 24, 3 << 24):
            raise cursor.fail("the file is big-endian", "convert it to little-endian")
        raise cursor.fail(f"GGUF version {version} is not 2 or 3", "convert it with llama.cpp")
    return version


def _tensor_entry(cursor: _Cursor, i: int) -> tuple[str, tuple[int, ...], int, int]:
    name = cursor.string(f"the name of tensor {i}")
    n_dims = cursor.scalar("I", f"tensor {name!r:.60}")
    if not 1 <= n_dims <= MAX_DIMENSIONS:
        raise cursor.fail(f"tensor {name!r:.60} has {n_dims} dimensions, not 1 to {MAX_DIMENSIONS}")
    ne = [cursor.scalar("Q", f"tensor {name!r:.60}") for _ in range(n_dims)]
    kind = cursor.scalar("I", f"tensor {name!r:.60}")
    return name, tuple(reversed(ne)), kind, cursor.scalar("Q", f"tensor {name!r:.60}")


def _place(
    cursor: _Cursor,
    name: str,
    shape: tuple[int, ...],
    kind: int,
    offset: int,
    data_offset: int,
    alignment: int,
) -> TensorInfo:
    """Turn an entry into a TensorInfo whose bytes are known to lie inside the file."""
    if kind not in GGML_TYPES:
        raise cursor.fail(
            f"tensor {name!r:.60} has the unknown type {kind}", "export it as f32, f16 or q8_0"
        )
    type_name, block, block_bytes = GGML_TYPES[kind]
    if min(shape) < 1 or shape[-1] % block:
        raise cursor.fail(
            f"tensor {name!r:.60} has shape {shape}; {type_name} needs rows that are a positive "
            f"multiple of {block}"
        )
    if offset % alignment:
        raise cursor.fail(f"tensor {name!r:.60} is not aligned to {alignment} bytes")
    start, n_bytes = data_offset + offset, prod(shape) // block * block_bytes
    if start + n_bytes > cursor.size:
        raise cursor.fail(
            f"tensor {name!r:.60} ends at byte {start + n_bytes:,}, but the file ends at "
            f"{cursor.size:,}: it is cut off"
        )
    return TensorInfo(name, shape, type_name, start, n_bytes)


def _check_apart(cursor: _Cursor, tensors: dict[str, TensorInfo]) -> None:
    end, before = 0, ""
    for info in sorted(tensors.values(), key=lambda info: info.offset):
        if info.offset < end:
            raise cursor.fail(f"tensors {before!r:.60} and {info.name!r:.60} overlap")
        end, before = info.offset + info.n_bytes, info.name
