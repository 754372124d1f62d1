"""A sweep: one base run, the factors that vary it, a design, and seeds.

A cell is one combination of levels; every cell runs with every seed, so that all comparisons are
paired by seed. What a sweep resolves to is in cells.py.
"""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    model_validator,
)

from paperkiln.atlas.canonical import canonical, digest
from paperkiln.errors import PaperkilnError
from paperkiln.spec import json_schema

MAX_SWEEP_BYTES = 1 << 20

Quantity = Literal["tokens", "parameters", "flops"]
_SHOWN = 100  # characters of a wrong value that a message repeats

FactorName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,39}$")]
Label = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]{1,60}$")]
FieldPath = Annotated[str, Field(pattern=r"^[a-z0-9_]+(\.[a-z0-9_]+){0,3}$")]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Factor(_Section):
    """What is varied: two or more levels, each a label and the fields it sets."""

    levels: dict[Label, dict[FieldPath, Any]] = Field(
        min_length=2, max_length=16,
        description="Label to fields, as {'muon': {'train.optimizer': 'muon'}}; first is low (-1).",
    )  # fmt: skip
    note: str = Field("", max_length=2000, description="Why these levels.")

    @property
    def paths(self) -> list[str]:
        """The fields that any level sets."""
        return sorted({path for fields in self.levels.values() for path in fields})


class PathFactor(_Section):
    """Shorthand of a factor: one field and its values."""

    path: FieldPath = Field(description="The field, as train.lr.")
    levels: list[str | bool | int | float | None] = Field(
        min_length=2, max_length=16, description="Its values; the first is low (-1)."
    )
    note: str = Field("", max_length=2000, description="Why these levels.")

    def normal(self) -> Factor:
        """Return the factor in the long form; labels are the values as JSON, strings bare."""
        values = {v if isinstance(v, str) else json.dumps(v): v for v in self.levels}
        if len(values) < len(self.levels):
            raise ValueError(f"two levels of {self.path} have the same label")
        levels = {label: {self.path: value} for label, value in values.items()}
        return Factor(levels=levels, note=self.note)


def _form(factor: Any) -> str:
    """Return which form a factor is written in."""
    shorthand = isinstance(factor, PathFactor) or (isinstance(factor, dict) and "path" in factor)
    return "path" if shorthand else "levels"


_AnyFactor = Annotated[
    Annotated[Factor, Tag("levels")] | Annotated[PathFactor, Tag("path")], Discriminator(_form)
]


class Factorial(_Section):
    """Every combination of the levels."""

    kind: Literal["factorial"] = "factorial"


class Fractional(_Section):
    """A regular fraction of the two-level factorial, 2^(k-p)."""

    kind: Literal["fractional"] = "fractional"
    generators: list[Annotated[str, Field(max_length=60)]] | None = Field(
        None, min_length=1, max_length=20, description="As E=ABCD; letters are factors in order."
    )
    runs: int | None = Field(
        None, ge=4, le=1024, description="Cells, where the generators are the published ones."
    )
    foldover: bool = Field(False, description="Add the mirror image: twice the cells.")


class PlackettBurman(_Section):
    """A two-level screen of up to runs - 1 factors."""

    kind: Literal["plackett-burman"] = "plackett-burman"
    runs: int = Field(12, ge=4, le=1024, description="Cells.")
    foldover: bool = Field(False, description="Add the mirror image: twice the cells.")


class Match(_Section):
    """Give every cell the base's parameter count."""

    parameters: Literal["arch.d_ff"] = Field("arch.d_ff", description="The field that is solved.")
    multiple_of: int = Field(1, ge=1, le=1024, description="Round the field to this.")


def _check_seeds(seeds: list[int]) -> list[int]:
    if len(set(seeds)) < len(seeds):
        raise ValueError("a seed is there twice: the same run again is no evidence")
    return seeds


class SweepSpec(_Section):
    """A designed experiment: what question, what runs."""

    version: Literal[1] = Field(1, description="Of this file's format.")
    name: str = Field(
        pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$", description="Of the study; also its folder."
    )
    question: str = Field("", max_length=2000, description="What it should answer, in a sentence.")
    base: dict[str, Any] = Field(description="A run spec; the levels set fields in it.")
    factors: dict[FactorName, _AnyFactor] = Field(min_length=1, max_length=24)
    design: Annotated[Factorial | Fractional | PlackettBurman, Field(discriminator="kind")] = Field(
        Factorial(), description="Which combinations of levels are run."
    )
    seeds: Annotated[list[Annotated[int, Field(ge=0, lt=2**63)]], AfterValidator(_check_seeds)] = (
        Field(min_length=1, max_length=1000, description="Blocks: every cell runs with each.")
    )
    match: Match | None = Field(None, description="Match the cells' parameter counts.")
    acknowledge: dict[str, list[Quantity]] = Field(
        {}, description="What a factor is known to change besides itself, as {'depth': ['flops']}."
    )

    @model_validator(mode="after")
    def _normalise(self) -> SweepSpec:
        factors = {
            name: factor.normal() if isinstance(factor, PathFactor) else factor
            for name, factor in self.factors.items()
        }
        object.__setattr__(self, "factors", factors)
        unknown = sorted(set(self.acknowledge) - set(factors))
        if unknown:
            raise ValueError(f"acknowledge names {unknown[0]}, which is no factor")
        return self

    @property
    def sha256(self) -> str:
        """The hash of the spec in its long form: what a pre-registration refers to."""
        return digest(self.model_dump(mode="json"))


def read_sweep(path: Path) -> SweepSpec:
    """Return the sweep in a JSON file. Raises PaperkilnError with what is wrong and where."""
    try:
        if path.stat().st_size > MAX_SWEEP_BYTES:
            raise PaperkilnError(f"{path}: {path.stat().st_size:,} bytes is no sweep")
        values = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise PaperkilnError(f"{path}: no such sweep file") from None
    except (OSError, ValueError, RecursionError) as error:
        raise PaperkilnError(f"{path}: cannot be read as a sweep ({error})") from None
    return parse_sweep(values, source=str(path))


def parse_sweep(values: Any, source: str = "sweep") -> SweepSpec:
    """Return the validated sweep; `source` begins the error message."""
    try:
        canonical(values).encode()
    except (ValueError, RecursionError) as error:  # NaN, half a surrogate pair: it has no hash
        raise PaperkilnError(f"{source}: cannot be written as JSON ({error})") from None
    try:
        return SweepSpec.model_validate(values)
    except ValidationError as error:
        raise PaperkilnError(f"{source}: {'; '.join(map(_explain, error.errors()))}") from None


def _explain(error: Any) -> str:
    """Return what is wrong with one value, as path, value and reason."""
    location = [str(part) for part in error["loc"]]
    if location[:1] == ["factors"]:
        del location[2:3]  # which form the factor is written in
    path, message = ".".join(location), error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        near = difflib.get_close_matches(location[-1], SweepSpec.model_fields, n=1)
        return f"{path}: unknown name" + (f", did you mean {near[0]}?" if near else "")
    if error["type"] == "missing" or isinstance(error["input"], dict):
        return f"{path}: {message}" if path else message
    shown = json.dumps(error["input"], default=str)
    return f"{path} = {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '…'}: {message}"


def sweep_schema() -> dict[str, Any]:
    """Return the JSON Schema of a sweep, as kept in specs/sweep.schema.json."""
    run, sweep = json_schema(), SweepSpec.model_json_schema()
    defs = run.pop("$defs") | sweep.pop("$defs")
    defs["RunSpec"] = {key: value for key, value in run.items() if key != "$schema"}
    sweep["properties"]["base"] = {"$ref": "#/$defs/RunSpec"}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | sweep | {"$defs": defs}
