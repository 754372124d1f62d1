"""Spellings: how papers write each flavour, and the labels of their tables."""

import pytest

from paperkiln.papers.flavors.lexicon import answer, find, label_of

# field, spelling, value
SPELLINGS = [
    ("norm", "RMSNorm", "rmsnorm"), ("norm", "RMS normalization", "rmsnorm"),
    ("norm", "Root-Mean-Square Layer Normalisation", "rmsnorm"), ("norm", "LayerNorm", "layernorm"),
    ("norm", "layer normalisation", "layernorm"), ("norm", "LN", "layernorm"),
    ("norm", "Pre-LayerNormalization", "layernorm"), ("norm", "rms_norm", "rmsnorm"),
    ("norm", "BatchNorm", "batchnorm"), ("norm", "DeepNorm", "deepnorm"),
    ("norm_placement", "Pre-LN", "pre"), ("norm_placement", "prenorm", "pre"),
    ("norm_placement", "post-layer normalization", "post"),
    ("norm_placement", "sandwich norm", "sandwich"),
    ("activation", "GeLU", "gelu"), ("activation", "GELUs", "gelu"), ("activation", "gelu", "gelu"),
    ("activation", "Gaussian Error Linear Unit", "gelu"), ("activation", "Swish", "silu"),
    ("activation", "sigmoid linear unit", "silu"), ("activation", "Swi-GLU", "swiglu"),
    ("activation", "swiglu", "swiglu"), ("activation", "SiLU-gated", "swiglu"),
    ("activation", "gated linear unit (GLU) with a Swish", "swiglu"),
    ("activation", "gated-GELU", "geglu"), ("activation", "GEGLU", "geglu"),
    ("activation", "ReGLU", "reglu"), ("activation", "squared ReLU", "squared_relu"),
    ("activation", "LeakyReLU", "leaky_relu"), ("activation", "max(0, xW_1 + b_1)", "relu"),
    ("activation", "rectified linear units", "relu"),
    ("positional", "rotary position embeddings", "rope"), ("positional", "RoPE", "rope"),
    ("positional", "RoFormer embedding", "rope"), ("positional", "ALiBi", "alibi"),
    ("positional", "sine and cosine functions", "sinusoidal"),
    ("positional", "learnable absolute position embeddings", "learned"),
    ("positional", "trainable positional encodings", "learned"),
    ("positional", "position embeddings are learned", "learned"),
    ("positional", "learned relative position biases", "relative"),
    ("positional", "NoPE", "none"), ("positional", "no positional encoding", "none"),
    ("attention", "sliding-window attention", "swa"), ("attention", "MLA", "mla"),
    ("attention", "state-space models", "ssm"), ("attention", "grouped-query attention", "exact"),
    ("bias", "remove all bias terms", False), ("bias", "QKV bias", "qkv"),
    ("tied_embeddings", "weight tying", True), ("tied_embeddings", "untied embeddings", False),
    ("residual", "highway network", "highway"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "spelling", "value"), SPELLINGS)
def test_spellings(name, spelling, value):
    for text in (spelling, f"with {spelling}.", spelling.replace(" ", "\u00a0")):
        assert [hit.value for hit in find(name, text)] == [value], text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("norm", "the QK-LayerNorm"), ("activation", "a glued regluing"),
        ("activation", "max(0, m - x)"),
        ("bias", "an inductive bias with no bias toward locality"), ("positional", "the rope of "
                                                                                   "a climber"),
        ("bias", "Adam without bias correction"), ("attention", "a linear layer"),
    ],
)  # fmt: skip
def test_what_only_looks_like_a_value(name, text):
    assert find(name, text) == []


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("Normalization", "norm"), ("Activation function", "activation"),
        ("FFN activation", "activation"), ("Positional Encoding", "positional"),
        ("Pos. Emb.", "positional"), ("Tie Embeddings", "tied_embeddings"),
        ("Attention Mechanism", "attention"), ("Bias", "bias"),
        ("Norm placement", "norm_placement"), ("Attention heads", ""),
        ("FFN intermediate dimension", ""), ("Layers", ""), ("", ""),
    ],
)  # fmt: skip
def test_labels(label, name):
    assert label_of(label) == name


@pytest.mark.parametrize(("cell", "said"), [("Yes", True), ("No", False), ("✓", True), ("$", None)])
def test_answers(cell, said):
    assert answer("bias", cell) is said
    assert answer("norm", cell) is None
