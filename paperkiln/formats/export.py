"""Write a stored model in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paperkiln.errors import PaperkilnError
from paperkiln.formats.gguf_writer import write_gguf
from paperkiln.formats.hf import WEIGHTS, export_hf, model_tensors
from paperkiln.formats.safetensors_io import save_tensors
from paperkiln.infer.load import load_run


def export_model(source: Path, form: str, dtype: str, out: str | None) -> dict[str, Any]:
    """Write the model at `source` as gguf, safetensors or hf; return `{path, format, notes}`.

    Raises PaperkilnError where the format cannot hold the model, the target is the source, or a
    target that was not named would replace a file.
    """
    model = load_run(source)
    beside = source if source.is_dir() else source.parent
    suffix = "" if dtype == "f32" else f"-{dtype}"
    default = {"gguf": f"model{suffix}.gguf", "safetensors": "model.safetensors", "hf": "hf"}[form]
    path = Path(out) if out else beside / default
    # The weights of a sharded folder are the model too: a whole file beside them would win.
    if path.resolve() in (source.resolve(), (source / WEIGHTS).resolve()):
        raise PaperkilnError(f"{path} is the model itself; choose another --out")
    if form != "gguf" and dtype != "f32":
        raise PaperkilnError(f"--dtype {dtype} is for gguf; {form} is written in f32")
    # Only in a run folder is a file of that name surely an earlier export, which may be replaced;
    # model.gguf is the run's own.
    exported = (source / "spec.json").exists() and path.name != "model.gguf"
    if not out and path.exists() and not exported:
        raise PaperkilnError(f"{path} is there already; name the file to write with --out")
    name = model.spec.get("name") or source.stem
    notes = list(model.notes)
    if form == "gguf":
        report = write_gguf(
            path, model.config, model.params, model.tokenizer, dtype=dtype, name=name
        )
        notes += report.notes
    elif form == "safetensors":
        save_tensors(path, model_tensors(model.config, model.params))
    else:
        export_hf(path, model.config, model.params, model.tokenizer)
    return {"path": str(path), "format": form, "notes": notes}
