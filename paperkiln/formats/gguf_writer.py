"""Write GGUF through the `gguf` package: f32, f16 or q8_0, with the tokenizer inside.

The file is written aside, opened again with our own reader and compared byte by byte before it
takes its name, its configuration too: a reported success is a file that opens.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from paperkiln.errors import PaperkilnError
from paperkiln.formats.atomic import new_file
from paperkiln.formats.gguf_io import (
    LAYOUTS,
    Architecture,
    architecture_of,
    from_metadata,
    to_metadata,
    why_not_llama_cpp,
)  # fmt: skip
from paperkiln.formats.gguf_reader import open_buffer, read_header
from paperkiln.formats.gguf_tokenizer import tokenizer_metadata
from paperkiln.formats.layout import to_layout
from paperkiln.models.config import ModelConfig, parameter_shapes

if TYPE_CHECKING:
    import gguf

    from paperkiln.train.tokenizers import Tokenizer

Dtype = Literal["f32", "f16", "q8_0"]
_FILE_TYPES = {"f32": 0, "f16": 1, "q8_0": 7}  # llama.cpp's general.file_type
_BLOCK = 32  # q8_0: this many weights of a row share one scale
_F16_MAX = 65504.0
# llama.cpp adds these rows to the activations as they are, so they stay f32, like every vector.
_KEEP_F32 = frozenset({"position_embd.weight", "pos.weight"})


class GgufReport(NamedTuple):
    """What was written; `notes` are lines to show the user."""

    path: Path
    architecture: str
    dtype: str
    n_tensors: int
    n_bytes: int
    notes: list[str]


def write_gguf(
    path: str | os.PathLike[str],
    config: ModelConfig,
    params: Mapping[str, np.ndarray],
    tokenizer: Tokenizer,
    *,
    dtype: Dtype = "f32",
    name: str = "paperkiln",
) -> GgufReport:
    """Write a model as GGUF, atomically; equal input gives equal bytes.

    Raises PaperkilnError if dtype is unknown, the tokenizer is larger than the vocabulary, or
    the file cannot be written.
    """
    if dtype not in _FILE_TYPES:
        raise PaperkilnError(f"GGUF dtype {dtype!r} is unknown; use {', '.join(_FILE_TYPES)}")
    architecture = architecture_of(config, tokenizer.kind)
    reason = why_not_llama_cpp(config, tokenizer.kind)
    notes = [f"written for paperkiln's own engines only: {reason}"] if reason else []

    metadata: dict[str, Any] = {"general.name": name, "general.file_type": _FILE_TYPES[dtype]}
    if dtype == "q8_0":
        metadata["general.quantization_version"] = 2
    metadata |= to_metadata(config, architecture)
    metadata |= tokenizer_metadata(tokenizer, config.vocab_size)

    encoded = {}
    for tensor_name, array in to_layout(config, params, LAYOUTS[architecture]).items():
        kind, why = storage_type(tensor_name, array, dtype)
        if why:
            notes.append(f"{tensor_name} is kept as {kind}: {why}")
        encoded[tensor_name] = (kind, _encode(array, kind))

    with new_file(path) as aside:
        try:
            _write(aside, architecture, metadata, encoded)
            _check_config(aside, config, architecture)
        except (struct.error, OverflowError, PaperkilnError) as error:
            raise PaperkilnError(f"{path}: GGUF cannot hold this model ({error})") from error
        _check(aside, metadata, encoded)
        n_bytes = aside.stat().st_size
    return GgufReport(Path(path), architecture, dtype, len(encoded), n_bytes, notes)


def storage_type(name: str, array: np.ndarray, wanted: Dtype) -> tuple[Dtype, str]:
    """Return the type a tensor is stored in and, where it is not the wanted one, why.

    Vectors (norms, biases) and learned positions are f32 by rule, which needs no word.
    """
    if wanted == "f32" or array.ndim == 1 or name in _KEEP_F32:
        return "f32", ""
    kind, why = wanted, ""
    if kind == "q8_0" and array.shape[1] % _BLOCK:
        kind, why = "f16", f"q8_0 needs rows of a multiple of {_BLOCK}, these have {array.shape[1]}"
    if kind == "f16" and np.abs(array).max() > _F16_MAX:
        kind, why = "f32", f"it holds values beyond {_F16_MAX:.0f}, the largest of f16"
    return kind, why


def _encode(array: np.ndarray, kind: Dtype) -> np.ndarray:
    """Return the array as stored; q8_0 gives bytes, (rows, row bytes)."""
    import gguf

    array = np.ascontiguousarray(array, np.float32)
    return gguf.quants.quantize(array, gguf.GGMLQuantizationType[kind.upper()])


def add_value(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    """Add metadata in the type that a file of others has it: 32-bit numbers, strings, arrays."""
    match value:
        case bool():
            writer.add_bool(key, value)
        case int():
            writer.add_uint32(key, value)
        case float():
            writer.add_float32(key, value)
        case str():
            writer.add_string(key, value)
        case _:
            writer.add_array(key, value)


def _write(
    path: Path,
    architecture: str,
    metadata: Mapping[str, Any],
    encoded: Mapping[str, tuple[Dtype, np.ndarray]],
) -> None:
    import gguf

    writer = gguf.GGUFWriter(path, architecture)
    try:
        for key, value in metadata.items():
            add_value(writer, key, value)
        for name, (kind, array) in encoded.items():
            writer.add_tensor(name, array, raw_dtype=gguf.GGMLQuantizationType[kind.upper()])
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    finally:
        writer.close()


def _check_config(path: Path, config: ModelConfig, architecture: Architecture) -> None:
    """Raise PaperkilnError unless the file describes the model, as far as its keys say."""
    rebuilt = from_metadata(read_header(path), "the file")
    meant, found = (_stored(to_metadata(c, architecture)) for c in (config, rebuilt))
    for key, value in meant.items():
        if found.get(key) != value:
            raise PaperkilnError(f"{key} {value} would be read as {found.get(key)}")
    if parameter_shapes(rebuilt) != parameter_shapes(config):
        raise PaperkilnError("its parameters would be read with other names or shapes")


def _stored(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as the file holds them: floats in float32."""
    return {k: float(np.float32(v)) if isinstance(v, float) else v for k, v in metadata.items()}


def _check(
    path: Path, metadata: Mapping[str, Any], encoded: Mapping[str, tuple[Dtype, np.ndarray]]
) -> None:
    """Raise PaperkilnError unless the file on disk is what was meant."""
    header = read_header(path)
    said = set(header.metadata) - {"general.architecture"} == {
        key
        for key, value in metadata.items()
        if value != []  # the package drops empty arrays
    }
    with open_buffer(path) as (buffer, _):
        held = list(header.tensors) == list(encoded) and all(
            info.ggml_type == encoded[info.name][0]
            and buffer[info.offset : info.offset + info.n_bytes] == encoded[info.name][1].tobytes()
            for info in header.tensors.values()
        )
    if not (said and held):
        raise PaperkilnError(f"{path} does not read back as written; check the disk and try again")
