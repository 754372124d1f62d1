"""What a decoder is built from: a paper's values where it asserts them, named defaults elsewhere.

Every way out of a paper (spec, config.json, script) starts from the same choices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from paperkiln.papers.architecture import Architecture, Evidence, Scalar, Value

GATED = frozenset({"swiglu", "geglu", "reglu", "gated-glu"})


@dataclass(frozen=True)
class Choice:
    """One field's value; `evidence` is where the paper asserts it, None for a default."""

    value: Scalar
    evidence: Evidence | None = None
    remark: str = ""
    """What a reader must know: why a default stands here, or what became of the paper's value."""
    before: Scalar | None = None
    """The value at the paper's size, where a fit changed it."""


@dataclass
class Choices:
    """A decoder and its training, field by field."""

    model: dict[str, Choice] = field(default_factory=dict)
    """By the names of ModelConfig; vocab_size too, although the tokenizer decides it."""
    training: dict[str, Choice] = field(default_factory=dict)
    """By the names of TrainSpec."""
    not_built: list[str] = field(default_factory=list)
    """What the paper asserts and no field can say, in words."""

    @property
    def notes(self) -> list[str]:
        """A line for everything that is not simply the paper's own value."""
        unstated, lines, fitted = [], [], []
        for name, choice in (self.model | self.training).items():
            value = choice.value if choice.before is None else choice.before
            if choice.remark == NOT_STATED and name in self.training:
                unstated.append(f"{name} {shown(value)}")
            elif choice.remark:
                lines.append(f"{name} {shown(value)}: {choice.remark}")
            if choice.before is not None:
                fitted.append(f"{name} {shown(value)} -> {shown(choice.value)} (fit)")
        if unstated:
            lines.append(f"training defaults, not stated in the paper: {', '.join(unstated)}")
        return lines + fitted + [f"not built: {what}" for what in self.not_built]


@dataclass(frozen=True)
class Limits:
    """What a numeric field accepts, both ends included."""

    low: float
    high: float
    integer: bool = True


# What ModelConfig and TrainSpec accept and default to, repeated here because this file runs
# without pydantic; a test holds the two together.
MODEL_LIMITS = {
    "d_model": Limits(1, 65536), "n_layers": Limits(1, 1000), "n_heads": Limits(1, 1024),
    "n_kv_heads": Limits(1, 1024), "head_dim": Limits(1, 4096), "d_ff": Limits(1, 1 << 20),
    "vocab_size": Limits(260, 1_000_000), "context_length": Limits(2, 1 << 24),
    "window": Limits(1, 1 << 24), "rope_theta": Limits(2, 1e12, integer=False),
    "dropout": Limits(0, 0.99, integer=False),
}  # fmt: skip
TRAINING_LIMITS = {
    "lr": Limits(1e-12, 100, integer=False), "beta1": Limits(0, 1 - 1e-9, integer=False),
    "beta2": Limits(0, 1 - 1e-9, integer=False), "weight_decay": Limits(0, 1e6, integer=False),
    "clip": Limits(0, 1e9, integer=False), "batch": Limits(1, 65536),
    "steps": Limits(1, 10**12), "warmup_steps": Limits(0, 10**12),
}  # fmt: skip
# The paper's word -> ours. Words that are not here cannot be built.
FLAVORS: dict[str, dict[Scalar, Scalar]] = {
    "norm": {"layernorm": "layernorm", "rmsnorm": "rmsnorm"},
    "norm_placement": {"pre": "pre", "post": "post"},
    "activation": {
        name: name for name in
        ("relu", "gelu", "gelu_tanh", "silu", "squared_relu", "swiglu", "geglu", "reglu")
    } | {"gated-glu": "swiglu"},
    "positional": {n: n for n in ("learned", "sinusoidal", "rope", "alibi", "none")},
    "attention": {"exact": "exact", "swa": "swa"},
    "bias": {True: True, False: False},
    "tied_embeddings": {True: True, False: False},
}  # fmt: skip
TRAINING_FLAVORS: dict[str, dict[Scalar, Scalar]] = {
    "optimizer": {"adamw": "adamw", "adam": "adamw", "sgd": "sgd", "muon": "muon"},
    "schedule": {"cosine": "cosine", "constant": "constant", "step": "step"},
}

_PLAIN_RESIDUAL = frozenset({"standard", "residual"})  # x + f(x), which every decoder here has

NOT_STATED = "default, the paper does not state it"
SMALL: dict[str, int] = {
    "d_model": 128, "n_layers": 2, "n_heads": 4, "vocab_size": 1024, "context_length": 128,
    "window": 64,
}  # fmt: skip
TRAINING: dict[str, Scalar] = {
    "optimizer": "adamw", "lr": 3e-3, "beta1": 0.9, "beta2": 0.95, "weight_decay": 0.1,
    "clip": 1.0, "schedule": "cosine", "batch": 16, "steps": 500, "warmup_steps": 50,
}  # fmt: skip
# What is left open goes with what is stated: the habits of the two families that most follow.
FAMILIES: dict[str, dict[str, Scalar]] = {
    "llama": {"norm": "rmsnorm", "activation": "swiglu", "positional": "rope", "bias": False},
    "gpt2": {"norm": "layernorm", "activation": "gelu_tanh", "positional": "learned", "bias": True},
}
_COMMON: dict[str, Scalar] = {
    "norm_placement": "pre", "attention": "exact", "tied_embeddings": True, "dropout": 0.0,
    "rope_theta": 10000.0,
}  # fmt: skip
_HEAD_DIM = 64  # of most published models, where only the width is stated


def choose(
    architecture: Architecture,
    sizes: Mapping[str, int] = SMALL,
    habits: Mapping[str, Scalar] | None = None,
) -> Choices:
    """Return the decoder that a paper describes.

    `sizes` are the defaults of its dimensions, `habits` those of its flavours; without them the
    family that agrees best with what is stated gives its own.
    """
    choices = Choices(not_built=_not_built(architecture))
    _choose_flavors(choices.model, architecture, habits or FAMILIES[family_of(architecture)])
    _choose_sizes(choices.model, architecture, sizes)
    _mend(choices.model)
    choices.model = {k: choices.model[k] for k in MODEL_ORDER if k in choices.model}
    _choose_training(choices, architecture)
    return choices


MODEL_ORDER = (
    "d_model", "n_layers", "n_heads", "n_kv_heads", "head_dim", "d_ff", "vocab_size",
    "context_length", "norm", "norm_placement", "activation", "positional", "rope_theta",
    "attention", "window", "bias", "tied_embeddings", "dropout",
)  # fmt: skip


def family_of(architecture: Architecture) -> str:
    """Return the family whose flavours agree best with the stated ones; Llama's on a tie."""

    def agreement(family: dict[str, Scalar]) -> int:
        votes = 0
        for name, habit in family.items():
            stated = architecture.asserted(name)
            alike = (stated in GATED) == (habit in GATED) if name == "activation" else None
            votes += stated is not None and (alike if alike is not None else stated == habit)
        return votes

    return max(FAMILIES, key=lambda name: agreement(FAMILIES[name]))


def shown(value: Scalar) -> str:
    """Return a value as JSON shows it, words without quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


# --- one field ------------------------------------------------------------------------------


def find(architecture: Architecture, name: str) -> Value | None:
    """Return what is known of a field, model or training, asserted or not."""
    return architecture.values.get(name) or architecture.training.get(name)


def asserted(architecture: Architecture, name: str) -> Value | None:
    """Return a field's value if it may be applied."""
    return find(architecture, name) if architecture.asserted(name) is not None else None


def why_open(architecture: Architecture, name: str) -> str:
    """Return why a field takes its default."""
    value = find(architecture, name)
    if value and value.verdict == "contested":
        rival = f" or {shown(value.runner_up.value)}" if value.runner_up else ""
        return f"default, the paper leaves it contested ({shown(value.value)}{rival})"
    reason = architecture.unresolved.get(name, "")
    return f"default, {reason}" if reason not in ("", "not stated") else NOT_STATED


def _number(architecture: Architecture, name: str, limits: Limits) -> Choice | None:
    """Return the asserted number within its limits, or None."""
    value = asserted(architecture, name)
    return _limited(value.value, limits, _first(value)) if value else None


def _limited(
    number: Scalar, limits: Limits, evidence: Evidence | None, remark: str = ""
) -> Choice | None:
    """Return a number as the field takes it: whole, within limits; None if it is no number."""
    if not _is_number(number):
        return None
    if limits.integer and number != int(number):
        return None
    within = min(max(number, limits.low), limits.high)
    if within != number:
        remark = f"the paper's {shown(number)} is outside {limits.low:g} to {limits.high:g}"
    return Choice(int(within) if limits.integer else float(within), evidence, remark)


def _flavor(
    architecture: Architecture, name: str, known: Mapping[Scalar, Scalar], default: Scalar
) -> Choice:
    """Return the asserted flavour in our words, else the default with the reason."""
    value = asserted(architecture, name)
    if value is None:
        return Choice(default, None, why_open(architecture, name))
    if value.value not in known:
        return Choice(default, None, f"default, {shown(value.value)} is not supported")
    ours = known[value.value]
    remark = "" if ours == value.value else f"for the paper's {shown(value.value)}"
    return Choice(ours, _first(value), remark)


def _is_number(value: Scalar) -> bool:
    """Whether a value is a finite number; a truth value is none."""
    return type(value) is int or (isinstance(value, float) and math.isfinite(value))


def _first(value: Value) -> Evidence | None:
    return value.evidence[0] if value.evidence else None


# --- the model ------------------------------------------------------------------------------


def _choose_flavors(
    model: dict[str, Choice], architecture: Architecture, habits: Mapping[str, Scalar]
) -> None:
    defaults = {**_COMMON, **habits}
    for name, known in FLAVORS.items():
        model[name] = _flavor(architecture, name, known, defaults[name])
    for name in ("dropout", "rope_theta"):
        model[name] = _number(architecture, name, MODEL_LIMITS[name]) or Choice(
            defaults[name], None, why_open(architecture, name)
        )
    if model["positional"].value != "rope":
        del model["rope_theta"]


def _choose_sizes(
    model: dict[str, Choice], architecture: Architecture, sizes: Mapping[str, int]
) -> None:
    def number(name: str) -> Choice | None:
        return _number(architecture, name, MODEL_LIMITS[name])

    def or_default(name: str, value: int, remark: str = "") -> None:
        why = why_open(architecture, name) + (f"; {remark}" if remark else "")
        model[name] = number(name) or Choice(value, None, why)

    for name in ("d_model", "n_layers", "vocab_size", "context_length"):
        or_default(name, sizes[name])
    d_model = _int(model, "d_model")
    if head_dim := number("head_dim"):
        model["head_dim"] = head_dim
    heads, remark = _usual_heads(d_model, model.get("head_dim"), sizes["n_heads"])
    or_default("n_heads", heads, remark)
    or_default("n_kv_heads", _int(model, "n_heads"), "as many as n_heads")
    or_default("d_ff", *_usual_d_ff(architecture, d_model))
    if model["attention"].value == "swa":
        or_default("window", min(sizes["window"], _int(model, "context_length")))


def _usual_heads(d_model: int, head_dim: Choice | None, fallback: int) -> tuple[int, str]:
    """Return how many heads to take where the paper does not say, and in words why."""
    width = int(head_dim.value) if head_dim else _HEAD_DIM
    if d_model % width == 0 and (head_dim or d_model >= 4 * _HEAD_DIM):
        return min(d_model // width, 1024), f"each {width} wide"
    return next(n for n in (fallback, 4, 2, 1) if d_model % n == 0), ""


def _usual_d_ff(architecture: Architecture, d_model: int) -> tuple[int, str]:
    """Return the inner width where the paper does not state that of a dense feed-forward."""
    width, active, shared = (
        asserted(architecture, n) for n in ("expert_d_ff", "n_experts_active", "n_experts_shared")
    )
    if width and active and isinstance(width.value, int) and isinstance(active.value, int):
        n = active.value + (int(shared.value) if shared else 0)
        if 1 <= n * width.value <= MODEL_LIMITS["d_ff"].high:
            return n * width.value, f"as wide as the {n} experts of {width.value} a token sees"
    return min(4 * d_model, 1 << 20), "4 d_model"


def _mend(model: dict[str, Choice]) -> None:
    """Change what no decoder can be: head counts that do not divide, odd rotary widths."""
    d_model, heads, kv = (_int(model, n) for n in ("d_model", "n_heads", "n_kv_heads"))
    if heads % kv:
        model["n_kv_heads"] = Choice(
            heads, None, f"the paper's {kv} does not divide n_heads {heads}; as many as n_heads"
        )
    if "head_dim" not in model and d_model % heads:
        width = min(max(2, d_model // heads // 2 * 2), int(MODEL_LIMITS["head_dim"].high))
        model["head_dim"] = Choice(
            width, None, f"d_model {d_model} is not divisible by n_heads {heads}"
        )
    width = _int(model, "head_dim") if "head_dim" in model else d_model // heads
    if model["positional"].value == "rope" and width % 2:
        evidence = model["head_dim"].evidence if "head_dim" in model else None
        remark = f"rope rotates pairs, and heads of {width} are odd"
        even = min(width + 1, int(MODEL_LIMITS["head_dim"].high))
        model["head_dim"] = Choice(even, evidence, remark)


def _int(model: Mapping[str, Choice], name: str) -> int:
    return int(model[name].value)


def _not_built(architecture: Architecture) -> list[str]:
    """Name every asserted value that no field of ours expresses."""
    known = {*MODEL_LIMITS, *FLAVORS, "n_parameters"}
    lost = [
        f"{name} {shown(value.value)}"
        for name in architecture.values
        if name not in known and (value := asserted(architecture, name))
        and not (name == "residual" and value.value in _PLAIN_RESIDUAL)
    ]  # fmt: skip
    for name, words in FLAVORS.items():
        value = asserted(architecture, name)
        if value and value.value not in words:
            lost.append(f"{name} {shown(value.value)}")
    window = asserted(architecture, "window")
    if window and architecture.asserted("attention") != "swa":
        lost.append(f"window {shown(window.value)}, as sliding-window attention is not asserted")
    theta, positional = asserted(architecture, "rope_theta"), architecture.asserted("positional")
    if theta and positional not in (None, "rope"):
        lost.append(f"rope_theta {shown(theta.value)}, as positions are {positional}")
    return lost


# --- the training ---------------------------------------------------------------------------


def _choose_training(choices: Choices, architecture: Architecture) -> None:
    training = choices.training
    defaults = dict(TRAINING)
    for name, words in TRAINING_FLAVORS.items():
        training[name] = _flavor(architecture, name, words, defaults[name])
    if architecture.asserted("optimizer") == "adam":
        defaults["weight_decay"] = 0.0  # AdamW without decay is Adam
    per_sequence = _int(choices.model, "context_length")
    batch = _counted(architecture, "batch", "batch_sequences", "batch_tokens", per_sequence)
    training["batch"] = batch or _open(architecture, "batch_sequences", defaults["batch"])
    per_step = per_sequence * _int(training, "batch")
    for name, tokens in (("steps", "tokens"), ("warmup_steps", "warmup_tokens")):
        counted = _counted(architecture, name, name, tokens, per_step)
        training[name] = counted or _open(architecture, name, defaults[name])
    for name in ("lr", "beta1", "beta2", "weight_decay", "clip"):
        number = _number(architecture, name, TRAINING_LIMITS[name])
        training[name] = number or _open(architecture, name, defaults[name])
    choices.training = {name: training[name] for name in TRAINING}
    if eps := _number(architecture, "eps", Limits(1e-12, 1e-2)):
        choices.training["eps"] = eps
    low, peak = asserted(architecture, "min_lr"), choices.training["lr"]
    if low and peak.evidence and _is_number(low.value) and 0 <= low.value <= peak.value:
        ratio = round(float(low.value) / float(peak.value), 6)
        choices.training["min_lr_ratio"] = Choice(ratio, _first(low))


def _open(architecture: Architecture, name: str, value: Scalar) -> Choice:
    return Choice(value, None, why_open(architecture, name))


def _counted(
    architecture: Architecture, name: str, direct: str, in_tokens: str, tokens_each: int
) -> Choice | None:
    """Return a count that the paper states, or states in tokens."""
    if stated := _number(architecture, direct, TRAINING_LIMITS[name]):
        return stated
    tokens = asserted(architecture, in_tokens)
    if not tokens or not _is_number(tokens.value):
        return None
    count = max(1, (int(tokens.value) + tokens_each // 2) // tokens_each)
    remark = f"the paper's {shown(tokens.value)} tokens, {tokens_each:,} each"
    return _limited(count, TRAINING_LIMITS[name], _first(tokens), remark)
