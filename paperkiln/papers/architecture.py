"""Architecture: what a paper says its model is, each value with its verdict and evidence."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

FORMAT_VERSION = 1  # of the JSON; raised when an older reader would misread a newer file

Verdict = Literal["used", "derived", "family", "inherited", "contested"]
ASSERTED = frozenset({"used", "derived", "family", "inherited"})  # contested is never applied

NUMBERS = (
    "d_model", "n_layers", "n_heads", "n_kv_heads", "head_dim", "d_ff", "vocab_size",
    "context_length", "window", "rope_theta", "dropout", "n_experts", "n_experts_active",
    "n_experts_shared", "expert_d_ff", "n_parameters",
)  # fmt: skip
FLAVORS = (
    "norm", "norm_placement", "activation", "positional", "attention", "bias", "tied_embeddings",
    "residual",
)  # fmt: skip
TRAINING = (
    "optimizer", "beta1", "beta2", "eps", "lr", "min_lr", "schedule", "warmup_steps",
    "warmup_tokens", "weight_decay", "clip", "batch_sequences", "batch_tokens", "steps", "tokens",
)  # fmt: skip

Scalar = int | float | str | bool


@dataclass(frozen=True)
class Evidence:
    """A quote found verbatim in `file` at characters [start, end), and how it reads expanded."""

    file: str
    line: int
    start: int
    end: int
    quote: str
    reads: str
    section: str


@dataclass(frozen=True)
class Mention:
    """A value that the paper names for a field, whether or not it is the one used."""

    value: Scalar
    score: float
    evidence: Evidence
    cues: tuple[str, ...] = ()
    vetoed: str = ""
    """Why it may not be asserted ('rejected: we found no gains'), else empty."""


@dataclass(frozen=True)
class Value:
    """One field's value; `verdict` says how it is known."""

    value: Scalar
    verdict: Verdict
    evidence: tuple[Evidence, ...]
    score: float = 0.0
    cues: tuple[str, ...] = ()
    """In words, what spoke for it."""
    runner_up: Mention | None = None
    note: str = ""
    """For derived values the formula; for inherited ones the ancestor and its paper."""


@dataclass(frozen=True)
class Variant:
    """Another size of the same model, named as the paper names it."""

    name: str
    values: dict[str, Scalar]
    evidence: Evidence


@dataclass(frozen=True)
class Inheritance:
    """The ancestor whose architecture the paper says it takes over."""

    ancestor: str
    paper: str
    evidence: Evidence


@dataclass(frozen=True)
class Check:
    """A consistency check: `ok` None means that it could not be made, and `message` says why."""

    name: str
    ok: bool | None
    message: str


@dataclass
class Architecture:
    """Everything that `extract` learned of a paper's model."""

    title: str
    paper_id: str = ""
    main_file: str = ""
    model: str = ""
    """The paper's own name of the main model, when it has one ('base', '1.4B')."""
    values: dict[str, Value] = field(default_factory=dict)
    training: dict[str, Value] = field(default_factory=dict)
    unresolved: dict[str, str] = field(default_factory=dict)
    """Field -> why it stays open."""
    mentions: dict[str, list[Mention]] = field(default_factory=dict)
    """Of each flavour field, every value that the text names, best first."""
    inherits: Inheritance | None = None
    variants: list[Variant] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    """The files that make up the paper, in reading order."""

    def asserted(self, name: str) -> Scalar | None:
        """Return the value of a field that may be applied, else None."""
        value = self.values.get(name) or self.training.get(name)
        return value.value if value and value.verdict in ASSERTED else None

    def to_json(self) -> dict[str, Any]:
        """Return the versioned JSON form, as `paper --json` prints it."""
        return {"format": "paperkiln-architecture", "version": FORMAT_VERSION, **asdict(self)}
