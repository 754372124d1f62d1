"""What is in a model file or a run folder: shapes, parameters, metadata; weights are not read."""

from __future__ import annotations

import json
import math
import os
import struct
from pathlib import Path
from typing import Any

from paperkiln.errors import PaperkilnError
from paperkiln.formats.gguf_reader import read_header
from paperkiln.formats.hf import INDEX, WEIGHTS, read_json, weight_map
from paperkiln.formats.safetensors_io import read_table
from paperkiln.lab.records import read_record
from paperkiln.output import one_line


def describe(path: Path) -> dict[str, Any]:
    """Return `{path, format, parameters, tensors: [{name, shape, dtype}], metadata}`.

    Raises PaperkilnError for what is neither GGUF, safetensors nor a folder that holds one.
    """
    if not path.exists():
        raise PaperkilnError(f"{path}: no such file or folder")
    if path.is_dir():
        return _describe_folder(path)
    with open(path, "rb") as file:
        head = file.read(9)
    if head[:4] == b"GGUF":
        return _describe_gguf(path)
    if len(head) == 9 and head[8:] == b"{" and struct.unpack("<Q", head[:8])[0] < 1 << 32:
        return _describe_safetensors(path)
    raise PaperkilnError(f"{path}: neither GGUF nor safetensors; give a model file or a run folder")


def _describe_folder(folder: Path) -> dict[str, Any]:
    for name in (WEIGHTS, INDEX, "model.gguf"):
        if (folder / name).exists():
            described = _describe_shards(folder) if name == INDEX else describe(folder / name)
            break
    else:
        a_run = (folder / "spec.json").exists()
        mend = "an unfinished run goes on with --resume" if a_run else "give a model's folder"
        raise PaperkilnError(f"{folder}: holds no {WEIGHTS} or model.gguf; {mend}")
    if record := read_record(folder):
        described["record"] = record
    if (folder / "config.json").exists():
        described["config"] = read_json(folder / "config.json")
    return described | {"path": str(folder), "files": sorted(os.listdir(folder))}


def _describe_shards(folder: Path) -> dict[str, Any]:
    """Return the description of all shards of a Hugging Face folder together."""
    names = sorted(set(weight_map(folder).values()))
    shards = [_describe_safetensors(folder / name) for name in names]
    return {
        "path": str(folder),
        "format": f"safetensors in {len(names)} shards",
        "bytes": sum(shard["bytes"] for shard in shards),
        "parameters": sum(shard["parameters"] for shard in shards),
        "tensors": [tensor for shard in shards for tensor in shard["tensors"]],
        "metadata": shards[0]["metadata"] if shards else {},
    }


def _describe_gguf(path: Path) -> dict[str, Any]:
    header = read_header(path)
    tensors = [
        {"name": t.name, "shape": list(t.shape), "dtype": t.ggml_type}
        for t in header.tensors.values()
    ]
    return _summary(path, f"GGUF version {header.version}", tensors, header.metadata)


def _describe_safetensors(path: Path) -> dict[str, Any]:
    places, metadata = read_table(path)
    tensors = [
        {"name": name, "shape": list(shape), "dtype": dtype.lower()}
        for name, (dtype, shape, *_) in places.items()
    ]
    return _summary(path, "safetensors", tensors, metadata)


def _summary(
    path: Path, form: str, tensors: list[dict[str, Any]], metadata: dict[str, Any]
) -> dict[str, Any]:
    return {
        "path": str(path),
        "format": form,
        "bytes": path.stat().st_size,
        "parameters": sum(math.prod(t["shape"]) for t in tensors),
        "tensors": tensors,
        "metadata": metadata,
    }


def as_text(described: dict[str, Any]) -> str:
    """Return the description for a person; long metadata arrays are counted, not printed."""
    lines = [
        f"{described['path']}: {described['format']}, {described['bytes']:,} bytes, "
        f"{described['parameters']:,} parameters in {len(described['tensors'])} tensors"
    ]
    if "files" in described:
        lines.append(f"files: {', '.join(described['files'])}")
    if metrics := described.get("record", {}).get("metrics"):
        lines.append("metrics: " + ", ".join(f"{k} {v}" for k, v in metrics.items()))
    for key, value in described["metadata"].items():
        lines.append(f"  {one_line(key)} = {_short(value)}")
    for t in described["tensors"]:
        name, sizes = one_line(t["name"]), " × ".join(map(str, t["shape"]))
        lines.append(f"  {name:<44} {t['dtype']:<5} {sizes}")
    return "\n".join(lines)


def _short(value: Any, width: int = 80) -> str:
    if isinstance(value, list) and len(value) > 8:
        return f"[{len(value):,} values, first {json.dumps(value[:4], ensure_ascii=False)}]"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= width else f"{text[:width]}… ({len(text):,} characters)"
