"""The registry: what was pre-registered, what was found, and where each claim stands now.

findings.jsonl only grows. The last line of an id is its state; the earlier ones are how it got
there. Standard library and pydantic only: the browser reads the registry with this file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import BaseModel, Field, ValidationError, model_validator

from paperkiln.atlas.analyses import (
    PRINTABLE,
    Analysis,
    Date,
    Id,
    Measure,
    Name,
    Receipt,
    Sha256,
    Strict,
    Text,
)
from paperkiln.atlas.canonical import canonical
from paperkiln.errors import PaperkilnError

Outcome = Literal["lower", "higher", "equivalent", "unresolved"]
Status = Literal["supported", "replicated", "pending", "superseded", "retracted"]
Verdict = Literal["REPLICATED", "DID NOT REPLICATE", "UNDERPOWERED"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
STATUSES: tuple[Status, ...] = get_args(Status)
LIVE = ("supported", "replicated")
CORRECTED = ("superseded", "retracted")

FINDINGS = "findings.jsonl"
_MAX_BYTES = 64 << 20
_MAX_LINES = 100_000
# What a later line of an id may change; everything else of a finding is as it was registered.
MUTABLE = frozenset({"status", "note", "superseded_by", "replicated_by", "history"})


class Hypothesis(Strict):
    """One question to the data, with the sentence for each answer written before the data."""

    id: Id
    analysis: Analysis
    margin: float | None = Field(
        gt=0, description="Effects within ± margin (units of the metric) count as none."
    )
    expected: Outcome = Field(description="What the author expected; it decides nothing.")
    claims: dict[Outcome, Text] = Field(description="The claim that is registered, per outcome.")
    scope: Text = Field(description="What it holds for: model size, data, budget.")
    replicates: Id | None = Field(None, description="An earlier finding that it asks again.")

    @model_validator(mode="after")
    def _every_outcome_has_its_claim(self) -> Hypothesis:
        possible = [o for o in OUTCOMES if self.margin or o != "equivalent"]
        missing = [o for o in possible if o not in self.claims]
        if missing:
            raise ValueError(f"{self.id}: claims lacks a sentence for {', '.join(missing)}")
        if self.expected not in possible:
            raise ValueError(f"{self.id}: {self.expected} cannot come out without a margin")
        return self


class Preregistration(Strict):
    """The decision rules of a study, fixed before any run of it exists."""

    id: Id
    date: Date
    study: Name
    sweep_sha256: Sha256 = Field(description="Of the bytes of studies/STUDY/sweep.json.")
    why: Text
    alpha: float = Field(0.05, gt=0, lt=0.5, description="After Holm's correction.")
    exclusions: Text = Field(description="Which runs are left out, and when, in words.")
    hypotheses: tuple[Hypothesis, ...] = Field(min_length=1, max_length=100)

    @model_validator(mode="after")
    def _ids_are_unique(self) -> Preregistration:
        ids = [h.id for h in self.hypotheses]
        if len(set(ids)) < len(ids):
            raise ValueError(f"{next(i for i in ids if ids.count(i) > 1)} stands there twice")
        return self


class Pledge(Strict):
    """Which pre-registration a finding comes from; the commit is the one that added it."""

    path: Receipt
    sha256: Sha256
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]


class Check(Strict):
    """The decision rule: what must come out again for the claim to hold."""

    outcome: Outcome
    alpha: float = Field(gt=0, lt=0.5)
    margin: float | None = Field(gt=0)


class Event(Strict):
    """One step in the life of a finding; a replication brings its verdict and its records."""

    date: Date
    status: Status
    note: Annotated[str, Field(max_length=2000), PRINTABLE]
    verdict: Verdict | None = None
    receipt: Receipt | None = None


class Finding(Strict):
    """A claim with the numbers, the design and the receipts behind it."""

    id: Id
    date: Date
    claim: Text
    metric: Measure
    effect: float = Field(description="High minus low level, in units of the metric.")
    se: float = Field(ge=0, description="Standard error of the effect.")
    t: float
    p: float = Field(ge=0, le=1)
    p_holm: float | None = Field(ge=0, le=1, description="Over the hypotheses of its file.")
    df: float = Field(gt=0)
    ci: tuple[float, float] = Field(description="95 %, not corrected.")
    relative: float | None = Field(description="Effect by the mean at the low level.")
    design: Text
    runs: int = Field(ge=1)
    seeds: int = Field(ge=1)
    scope: Text
    status: Status
    outcome: Outcome
    preregistration: Pledge
    receipts: tuple[Receipt, ...] = Field(min_length=1, max_length=100)
    ledger: tuple[int, int] = Field(description="First and last line of its records, from 0.")
    analysis: Analysis
    check: Check
    factors: tuple[Name, ...] = Field(min_length=1)
    note: Annotated[str, Field(max_length=2000), PRINTABLE] = ""
    superseded_by: Id | None = None
    replicates: Id | None = None
    replicated_by: tuple[Receipt | Id, ...] = Field(
        (), description="Records of a replication, or a finding that replicates this one."
    )
    history: tuple[Event, ...] = ()

    @model_validator(mode="after")
    def _status_says_what_happened(self) -> Finding:
        needs = {
            "superseded": (self.superseded_by, "superseded_by"),
            "retracted": (self.note, "a note that says why"),
            "replicated": (self.replicated_by, "replicated_by"),
        }
        given, name = needs.get(self.status, (True, ""))
        if not given:
            raise ValueError(f"{self.status} needs {name}")
        if self.status == "pending" and self.outcome != "unresolved":
            raise ValueError(f"{self.outcome} was decided; pending is what is unresolved")
        if self.status in LIVE and self.outcome == "unresolved":
            raise ValueError("an unresolved finding is pending")
        if self.check.outcome != self.outcome:
            raise ValueError(f"the check tests {self.check.outcome}, the outcome is {self.outcome}")
        if self.history and self.history[-1].status != self.status:
            raise ValueError(
                f"status {self.status}, but its history ends {self.history[-1].status}"
            )
        return self

    @property
    def study(self) -> str:
        """The study whose records it comes from."""
        return self.receipts[0].split("/")[1]

    @property
    def live(self) -> bool:
        """Whether it can be cited: neither open nor corrected."""
        return self.status in LIVE


def analysis_of(registered: Hypothesis | Finding) -> dict[str, Any]:
    """Return the analysis as paperkiln.atlas.analyze takes it."""
    return registered.analysis.model_dump(mode="json", by_alias=True)


# --- reading -------------------------------------------------------------------------------

M = TypeVar("M", bound=BaseModel)


def finding_schema() -> dict[str, Any]:
    """Return the JSON Schema of a finding, as kept in specs/finding.schema.json."""
    return _schema(Finding)


def preregistration_schema() -> dict[str, Any]:
    """Return the JSON Schema of a pre-registration, as kept in specs/."""
    return _schema(Preregistration)


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | model.model_json_schema()


def line_of(finding: Finding) -> str:
    """Return the finding as its line of findings.jsonl, with the newline."""
    return canonical(finding.model_dump(mode="json", by_alias=True)) + "\n"


def validated(model: type[M], values: Any, where: str) -> M:
    """Return `values` as a `model`; PaperkilnError begins with `where`."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise PaperkilnError(f"{where}: {'; '.join(map(_explain, error.errors()))}") from None


def _explain(error: Any) -> str:
    path = ".".join(str(part) for part in error["loc"])
    message = error["msg"].removeprefix("Value error, ")
    return f"{path}: {message}" if path else message


def read_json(path: Path) -> Any:
    """Return what a JSON file of at most 64 MiB holds; PaperkilnError names the path."""
    return _parsed(read_bytes(path), str(path))


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file of at most 64 MiB; PaperkilnError names the path."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise PaperkilnError(f"{path}: {path.stat().st_size:,} bytes is more than is read here")
        return path.read_bytes()
    except OSError as error:
        raise PaperkilnError(f"{path}: cannot be read ({error.strerror or error})") from None


def _parsed(text: bytes | str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PaperkilnError(f"{where}: not JSON ({error})") from None


def sha256(data: bytes) -> str:
    """Return the SHA-256 of bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def parse_lines(text: str, source: str = FINDINGS) -> Iterator[Finding]:
    """Yield every line as a finding, in order, earlier states included."""
    lines = text.split("\n")
    if len(lines) > _MAX_LINES:
        raise PaperkilnError(f"{source}: {len(lines):,} lines is more than is read here")
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield validated(Finding, _parsed(line, f"{source}:{number}"), f"{source}:{number}")


def read_lines(atlas: Path) -> list[Finding]:
    """Return every line of the registry; none where there is no registry yet."""
    path = atlas / FINDINGS
    if not path.exists():
        return []
    try:
        return list(parse_lines(read_bytes(path).decode(), str(path)))
    except UnicodeDecodeError as error:
        raise PaperkilnError(f"{path}: not UTF-8 ({error.reason})") from None


def current(lines: Iterable[Finding]) -> list[Finding]:
    """Return the last line of each id, in the order in which the ids first appeared."""
    state: dict[str, Finding] = {}
    for finding in lines:
        state[finding.id] = finding
    return list(state.values())


def registry(atlas: Path) -> Path:
    """Return `atlas`; PaperkilnError where it is no folder, as "no findings" would mislead."""
    if not atlas.is_dir():
        raise PaperkilnError(f"{atlas}: no atlas here; name its folder with --atlas")
    return atlas


def read_findings(atlas: Path) -> list[Finding]:
    """Return the current state of every finding of an atlas folder."""
    return current(read_lines(atlas))


def find(findings: Sequence[Finding], finding_id: str) -> Finding:
    """Return the finding of that id; PaperkilnError names the ids that exist."""
    import difflib

    for finding in findings:
        if finding.id == finding_id:
            return finding
    ids = [f.id for f in findings]
    near = difflib.get_close_matches(finding_id, ids, n=1)
    mend = f"did you mean {near[0]}?" if near else f"known: {', '.join(ids) or 'none yet'}"
    raise PaperkilnError(f"no finding {finding_id!r}; {mend}")


def preregistration_path(prereg_id: str) -> str:
    """Return where the pre-registration lies below the atlas folder."""
    return f"preregistrations/{prereg_id}.json"


def read_preregistration(atlas: Path, prereg_id: str) -> Preregistration:
    """Return the pre-registration of that id; PaperkilnError says what is wrong with it."""
    path = atlas / preregistration_path(prereg_id)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", prereg_id) or not path.is_file():
        folder = atlas / "preregistrations"
        known = ", ".join(sorted(p.stem for p in folder.glob("*.json"))) or "none yet"
        raise PaperkilnError(f"no pre-registration {prereg_id!r} in {folder}; known: {known}")
    prereg = validated(Preregistration, read_json(path), str(path))
    if prereg.id != prereg_id:
        raise PaperkilnError(f"{path}: its id is {prereg.id}; a file is named after its id")
    return prereg
