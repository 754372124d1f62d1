"""safetensors: eight bytes of header length, a JSON header, then the raw little-endian tensors.

Written here and not with the `safetensors` package because a file must be the same bytes each
time it is written from the same weights (the package's metadata order varies), and because bf16
files must open without torch. The package reads our files, and we read its: the tests do both.

Format: https://huggingface.co/docs/safetensors
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np

from paperkiln.errors import PaperkilnError
from paperkiln.formats.atomic import new_file

_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4",
    "I16": "<i2", "I8": "i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip
_NAMES = {np.dtype(code): name for name, code in _DTYPES.items() if name != "BF16"}
MAX_HEADER = 100_000_000  # bytes; the same limit as the safetensors package


class Place(NamedTuple):
    """Where one tensor lies: bytes `start` to `end` of the data, after the header."""

    dtype: str  # as safetensors names it: F32, BF16 ...
    shape: tuple[int, ...]
    start: int
    end: int


class TensorFile(NamedTuple):
    """A safetensors file in memory; `notes` says in words what was converted on the way."""

    tensors: dict[str, np.ndarray]
    metadata: dict[str, str]
    notes: list[str]


def save_tensors(
    path: str | os.PathLike[str],
    tensors: Mapping[str, np.ndarray],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write tensors in the order given, atomically; equal input gives equal bytes.

    Raises PaperkilnError if a dtype has no safetensors name or the file cannot be written.
    """
    # transformers refuses a file whose metadata does not name the framework.
    header: dict[str, Any] = {"__metadata__": {"format": "pt"} | dict(metadata or {})}
    end = 0
    for name, array in tensors.items():
        dtype = np.dtype(array.dtype).newbyteorder("<")
        if dtype not in _NAMES:
            raise PaperkilnError(
                f"{path}: tensor {name!r} is {array.dtype}, which safetensors cannot hold; "
                "convert it to float32"
            )
        start, end = end, end + array.size * dtype.itemsize
        header[name] = {
            "dtype": _NAMES[dtype], "shape": list(array.shape), "data_offsets": [start, end]
        }  # fmt: skip
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # the tensors begin at a multiple of eight
    with new_file(path) as aside, open(aside, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            little = np.ascontiguousarray(array, np.dtype(array.dtype).newbyteorder("<"))
            file.write(little.reshape(-1).view(np.uint8).data)


def load_tensors(path: str | os.PathLike[str]) -> TensorFile:
    """Read every tensor of a safetensors file; bfloat16 becomes float32, the rest keeps its dtype.

    Raises PaperkilnError if the file is missing, truncated or not safetensors.
    """
    try:
        with open(path, "rb") as file:
            places, metadata, data_start = _read_table(file, path)
            tensors = {
                name: _read(file, data_start + start, dtype, shape)
                for name, (dtype, shape, start, _) in places.items()
            }
    except OSError as error:
        raise PaperkilnError(
            f"{path} cannot be read ({error.strerror or error}); check the path"
        ) from error
    n_bf16 = sum(dtype == "BF16" for dtype, *_ in places.values())
    notes = [f"{n_bf16} bfloat16 tensors were widened to float32"] if n_bf16 else []
    return TensorFile(tensors, metadata, notes)


def read_table(path: str | os.PathLike[str]) -> tuple[dict[str, Place], dict[str, str]]:
    """Return each tensor's place and the metadata; no weights are read.

    Raises PaperkilnError if the file is missing, truncated or not safetensors.
    """
    try:
        with open(path, "rb") as file:
            places, metadata, _ = _read_table(file, path)
    except OSError as error:
        raise PaperkilnError(
            f"{path} cannot be read ({error.strerror or error}); check the path"
        ) from error
    return places, metadata


def _read_table(file: Any, path: Any) -> tuple[dict[str, Place], dict[str, str], int]:
    size = os.fstat(file.fileno()).st_size
    header, data_start = _read_header(file, size, path)
    metadata = header.pop("__metadata__", None) or {}
    places = {name: _place(name, entry, path) for name, entry in header.items()}
    _check_layout(places, size - data_start, path)
    return places, metadata, data_start


def _bad(path: Any, what: str, mend: str = "download or export it again") -> PaperkilnError:
    return PaperkilnError(f"{path} is not a usable safetensors file: {what}; {mend}")


def _read_header(file: Any, size: int, path: Any) -> tuple[dict[str, Any], int]:
    if size < 8:
        raise _bad(path, f"it has {size} bytes")
    (length,) = struct.unpack("<Q", file.read(8))
    if length > min(MAX_HEADER, size - 8):
        raise _bad(path, f"its header claims {length:,} bytes and the file has {size:,}")
    try:
        header = json.loads(file.read(length).decode("utf-8"))
    except (ValueError, RecursionError):  # not UTF-8, not JSON, endless integers or nesting
        raise _bad(path, "its header is not JSON") from None
    if not isinstance(header, dict) or not isinstance(header.get("__metadata__") or {}, dict):
        raise _bad(path, "its header is not a table of tensors")
    return header, 8 + length


def _place(name: str, entry: Any, path: Any) -> Place:
    """Return one header entry, checked."""
    try:
        dtype, shape, (start, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        natural = all(type(n) is int and n >= 0 for n in (*shape, start, end))
    except (TypeError, KeyError, ValueError):
        raise _bad(path, f"the entry of {name!r} is malformed") from None
    if dtype not in _DTYPES:
        raise _bad(path, f"{name!r} has dtype {dtype}", "convert it to F32, F16 or BF16")
    if not natural or end - start != prod(shape) * np.dtype(_DTYPES[dtype]).itemsize:
        raise _bad(path, f"{name!r} has shape {shape} but occupies bytes {start} to {end}")
    return Place(dtype, tuple(shape), start, end)


def _check_layout(places: dict[str, Any], n_bytes: int, path: Any) -> None:
    """Tensors must tile the data exactly: no hole, no overlap, nothing cut off."""
    at = 0
    for name, (_, _, start, end) in sorted(places.items(), key=lambda item: item[1][2:]):
        if start != at:
            raise _bad(path, f"{name!r} begins at byte {start:,} of the data instead of {at:,}")
        at = end
    if at != n_bytes:
        raise _bad(path, f"its tensors need {at:,} bytes of data and it holds {n_bytes:,}")


def _read(file: Any, start: int, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    file.seek(start)
    flat = np.fromfile(file, dtype=_DTYPES[dtype], count=prod(shape))
    if dtype == "BF16":  # bfloat16 is the upper half of a float32
        flat = (flat.astype("<u4") << 16).view("<f4")
    return flat.reshape(shape)
