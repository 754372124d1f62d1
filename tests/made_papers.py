"""Papers made by hand, or drawn, that assert what a test needs."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from paperkiln.papers.architecture import ASSERTED, Architecture, Evidence, Scalar, Value
from paperkiln.papers.emit import to_spec
from paperkiln.papers.emit.choices import MODEL_LIMITS, TRAINING
from paperkiln.spec import RunSpec, parse_spec

QUOTE = Evidence("model.tex", 12, 100, 120, "a width of $512$", "a width of 512", "Model")


def paper(training: dict[str, Scalar] | None = None, **values: Scalar) -> Architecture:
    """Make a paper that asserts these values and nothing else."""
    architecture = Architecture("A Paper", "2401.00001", "main.tex")
    architecture.values = {n: Value(v, "used", (QUOTE,)) for n, v in values.items()}
    architecture.training = {n: Value(v, "used", (QUOTE,)) for n, v in (training or {}).items()}
    return architecture


VASWANI: dict[str, Scalar] = {
    "d_model": 512, "n_layers": 6, "n_heads": 8, "d_ff": 2048, "vocab_size": 37000,
    "norm": "layernorm", "norm_placement": "post", "activation": "relu", "dropout": 0.1,
    "positional": "sinusoidal", "residual": "standard", "n_parameters": 65_000_000,
}  # fmt: skip
LLAMA: dict[str, Scalar] = {
    "d_model": 4096, "n_layers": 32, "n_heads": 32, "n_kv_heads": 8, "d_ff": 14336,
    "vocab_size": 128256, "context_length": 8192, "rope_theta": 500000.0, "norm": "rmsnorm",
    "norm_placement": "pre", "activation": "swiglu", "positional": "rope", "bias": False,
    "tied_embeddings": False,
}  # fmt: skip


WORDS: dict[str, list[Scalar]] = {
    "norm": ["layernorm", "rmsnorm", "batchnorm"], "norm_placement": ["pre", "post", "sandwich"],
    "activation": ["relu", "gelu", "swiglu", "gated-glu", "geglu", "mish"],
    "positional": ["learned", "rope", "alibi", "relative", "sinusoidal", "none"],
    "attention": ["exact", "swa", "mla", "linear"], "bias": [True, False],
    "tied_embeddings": [True, False], "residual": ["standard", "highway"],
}  # fmt: skip
NUMBERS = st.one_of(
    st.integers(-5, 200_000), st.integers(10**300, 10**301), st.floats(), st.sampled_from([64, 512])
)


@st.composite
def papers(draw: st.DrawFn) -> Architecture:
    """Draw a paper that asserts anything whatever."""
    verdicts = st.sampled_from([*ASSERTED, "contested"])
    numbers = st.sampled_from([*MODEL_LIMITS, "n_experts", "n_experts_active", "expert_d_ff"])
    training = st.sampled_from([*TRAINING, "batch_tokens", "tokens", "warmup_tokens"])
    architecture = Architecture(draw(st.text(max_size=30)), draw(st.text(max_size=10)))
    for name in draw(st.sets(numbers)):
        value = draw(NUMBERS if draw(st.booleans()) else st.integers(1, 4000))
        architecture.values[name] = Value(value, draw(verdicts), (QUOTE,))
    for name in draw(st.sets(st.sampled_from([*WORDS]))):
        value = draw(st.sampled_from(WORDS[name]))
        architecture.values[name] = Value(value, draw(verdicts), (QUOTE,))
    for name in draw(st.sets(training)):
        architecture.training[name] = Value(draw(NUMBERS), draw(verdicts), (QUOTE,))
    return architecture


def spec_of(architecture: Architecture, fit: str | int | None = None) -> RunSpec:
    """Emit a spec and read it back from JSON, as `paperkiln run` does."""
    spec = json.loads(json.dumps(to_spec(architecture, fit)[0], allow_nan=False))
    assert spec["notes"] == to_spec(architecture, fit)[1]
    return parse_spec(spec)


def notes_of(architecture: Architecture, fit: str | int | None = None) -> str:
    return "\n".join(to_spec(architecture, fit)[1])
