"""The spec builder's side in Python: the schema, the checks, and what a spec would cost."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from paperkiln.errors import PaperkilnError
from paperkiln.models.config import PRESETS, ModelConfig
from paperkiln.spec import RunSpec, json_schema
from paperkiln.train.estimate import estimate, remarks, with_vocabulary
from paperkiln.web.diagram import draw

SLOWEST, FASTEST = 1e-6, 1e12  # GFLOP/s that a person may put in; beyond, a time is no JSON


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a spec and the presets of the model."""
    return {"schema": json_schema(), "presets": PRESETS}


def check(values: Any, gflops: float | None = None) -> dict[str, Any]:
    """Return a spec resolved, its cost and its picture; or what is wrong with it, by field."""
    if not isinstance(values, dict):
        raise PaperkilnError("a spec is a JSON object, with names in braces")
    if gflops is not None and not SLOWEST <= gflops <= FASTEST:
        raise PaperkilnError(
            f"{gflops:g} GFLOP/s is no machine's rate; give {SLOWEST:g} to {FASTEST:g}, or nothing"
        )
    try:
        spec = RunSpec.model_validate(values)
    except ValidationError as error:
        return {"errors": [_place(e, values) for e in error.errors()]}
    return {
        "errors": [],
        "spec": spec.model_dump(mode="json"),
        "folder": str(spec.folder),
        "estimate": estimate(spec, gflops),
        "notes": remarks(spec),
        **draw(with_vocabulary(spec)),
    }


def _place(error: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Return where an error belongs in the form, and its sentence."""
    path = [str(part) for part in error["loc"]]
    message = error["msg"].removeprefix("Value error, ").partition(", unable to parse")[0]
    if error["type"] == "extra_forbidden":
        message = "There is no field of this name."
    # A rule over several fields is shown at the first one that it names.
    if path == ["arch"]:
        words = message.replace(":", " ").replace(";", " ").split()
        named = [word for word in words if word in ModelConfig.model_fields]
        set_here = values.get("arch")
        set_here = set_here if isinstance(set_here, dict) else {}
        path += sorted(named, key=lambda name: name not in set_here)[:1]
        if "unknown preset" in message:
            path = ["arch", "preset"]
    starts_with_name = message.split()[0] in ModelConfig.model_fields
    return {
        "path": path,
        "message": message if starts_with_name else message[:1].upper() + message[1:],
    }
