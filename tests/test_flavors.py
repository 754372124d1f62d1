"""Flavours: what a sentence says of the paper's own model, and what it says of others."""

import pytest

from paperkiln.papers.document import SourceFile
from paperkiln.papers.flavors.flavors import FlavorReading, read_flavors
from paperkiln.papers.latex.reader import read_latex
from paperkiln.papers.names import own_names
from paperkiln.papers.scope import Scope


def read(body: str, title: str = "A Small Model") -> dict[str, FlavorReading]:
    """Read a paper of one body; without a heading it stands under "Model Architecture"."""
    if "\\section" not in body:
        body = "\\section{Model Architecture}\n" + body
    source = (
        f"\\documentclass{{article}}\\title{{{title}}}\\begin{{document}}\\maketitle\n"
        f"{body}\n\\end{{document}}\n"
    )
    document = read_latex({"main.tex": SourceFile("main.tex", source)}, "main.tex")
    return read_flavors(document, Scope(document, own_names(document)))


def asserted(reading: FlavorReading) -> object:
    value = reading.value
    return value.value if value and value.verdict != "contested" else None


# What a sentence of the model section says: the sentence, then field=value of what it asserts;
# None where it must not assert anything.
SENTENCES = [
    # Plain statements.
    ("We use RMSNorm.", {"norm": "rmsnorm"}),
    ("We opt for a decoder that uses RMSNorm in every block.", {"norm": "rmsnorm"}),
    ("Each block applies layer normalization before the attention and feed-forward sub-layers.",
     {"norm": "layernorm", "norm_placement": "pre"}),
    ("Feed-forward layers consist of two linear maps with a ReLU activation in between.",
     {"activation": "relu"}),
    ("$\\mathrm{FFN}(x) = \\max(0, xW_1 + b_1) W_2 + b_2$", {"activation": "relu"}),
    ("Learned positional embeddings are added to the token embeddings.", {"positional": "learned"}),
    ("Positions are encoded with ALiBi.", {"positional": "alibi"}),
    ("We share the input and output embedding matrices.", {"tied_embeddings": True}),
    ("The output head is not tied: we use untied embeddings.", {"tied_embeddings": False}),
    ("No biases were used in any of the dense kernels or layer norms.", {"bias": False}),
    ("No linear layer has a bias, and the vocabulary is small.", {"bias": False}),
    ("We place post-layer normalization after each residual connection.",
     {"norm_placement": "post", "residual": "standard"}),
    ("We alternate blocks that use multi-head latent attention (MLA).", {"attention": "mla"}),
    ("All layers use sliding-window attention with grouped-query attention.", {"attention": "swa"}),
    # One value instead of another.
    ("We use SwiGLU activations for the MLP because they increase quality compared to standard "
     "ReLU, "
     "GeLU, or Swish activations.", {"activation": "swiglu"}),
    ("We use RoPE embeddings rather than standard absolute or relative position embeddings.",
     {"positional": "rope"}),
    ("We use RMSNorm instead of LayerNorm, SwiGLU instead of ReLU, and rotary embeddings instead "
     "of "
     "sinusoidal ones.", {"norm": "rmsnorm", "activation": "swiglu", "positional": "rope"}),
    ("Layer normalization is replaced with Root Mean Square Layer Normalization.",
     {"norm": "rmsnorm"}),
    ("We replace the ReLU non-linearity by the SwiGLU activation function.",
     {"activation": "swiglu"}),
    ("The standard ReLU non-linearity is replaced by the approximated version of the GeGLU "
     "activation "
     "function.", {"activation": "geglu"}),
    ("Instead of ReLU, GELU is used in all layers.", {"activation": "gelu"}),
    ("We use a gelu activation rather than the standard relu, following OpenAI GPT.",
     {"activation": "gelu"}),
    ("Rather than using absolute positional embeddings, we use rotary positional embeddings in "
     "each "
     "layer; we also share embeddings across our inputs and outputs.",
     {"positional": "rope", "tied_embeddings": True}),
    ("We chose rotary embeddings over ALiBi.", {"positional": "rope"}),
    ("We do not use LayerNorm; RMSNorm is applied to the input of every sub-layer.",
     {"norm": "rmsnorm"}),
    # Adoption with attribution.
    ("We follow Qwen with the usage of SwiGLU for activation, Rotary Positional Embeddings "
     "(RoPE) for "
     "positional embedding, QKV bias for attention, RMSNorm and pre-normalization for stability.",
     {"activation": "swiglu", "positional": "rope", "norm": "rmsnorm", "norm_placement": "pre",
      "bias": "qkv"}),
    ("Like LLaMA, PaLM, and others we use the SwiGLU activation function instead of ReLU.",
     {"activation": "swiglu"}),
    ("Following LLaMA, PaLM, and others, we exclude all bias terms from our architecture.",
     {"bias": False}),
    ("Like LLaMA, we replace absolute positional embeddings with rotary positional embeddings.",
     {"positional": "rope"}),
    ("The design largely follows that of LLaMA, adopting a Pre-Norm structure with RMSNorm and "
     "using "
     "SwiGLU as the activation function. It also incorporates Rotary Embedding.",
     {"norm": "rmsnorm", "norm_placement": "pre", "activation": "swiglu", "positional": "rope"}),
    ("Our base is a Qwen-style decoder with SwiGLU feed-forward blocks and rotary position "
     "embeddings.",
     {"activation": "swiglu", "positional": "rope"}),
    # Third parties, contrast.
    ("The original Transformer uses ReLU nonlinearities and sinusoidal position encodings.",
     {"activation": None, "positional": None}),
    ("Our model uses GELU, whereas the original transformer uses ReLU.", {"activation": "gelu"}),
    ("LLaMA uses RMSNorm.", {"norm": None}),
    ("Most recent language models adopt RoPE.", {"positional": None}),
    ("Unlike BERT, which uses learned position embeddings, we use RoPE.", {"positional": "rope"}),
    ("Touvron et al.\\ use RMSNorm, while our blocks use LayerNorm.", {"norm": "layernorm"}),
    # Considered, tried and rejected, put off.
    ("We use the non-parametric formulation of layer norm. It was the fastest compared to the "
     "other "
     "variants we considered: parametric layer norm and RMSNorm.", {"norm": "layernorm"}),
    ("We experimented with ALiBi at smaller scales but did not observe large gains, so we did "
     "not use "
     "it. We use learned positional embeddings.", {"positional": "learned"}),
    ("We use learned position embeddings and leave ALiBi for future work.",
     {"positional": "learned"}),
    ("In future work we plan to replace our embeddings by RoPE.", {"positional": None}),
    ("We tried SwiGLU without improvement.", {"activation": None}),
    ("We also experimented with using learned positional embeddings instead. We chose the "
     "sinusoidal "
     "version, and use sinusoidal encodings throughout.", {"positional": "sinusoidal"}),
    ("Either LayerNorm or RMSNorm can be used.", {"norm": None}),
    # One clause, an assertion and an abstention.
    ("The Transformer has 64 layers, relative attention as described in T5, and gated-GELU "
     "activation "
     "as described in Raffel et al.", {"activation": "geglu", "positional": "relative"}),
    # Outside what a decoder here can be, recognised all the same.
    ("We use squared ReLU activations instead of ReLU.", {"activation": "squared_relu"}),
    ("We use the relative positional encoding scheme of Dai et al.", {"positional": "relative"}),
    ("We use relative positional encodings rather than absolute positional encodings, and RMSNorm "
     "instead of LayerNorm.", {"positional": "relative", "norm": "rmsnorm"}),
    ("We introduce disentangled attention.", {"positional": "relative"}),
    # Components.
    ("The vision encoder uses GELU and learned positional embeddings.",
     {"activation": None, "positional": None}),
    ("The vision encoder uses GELU while the language model uses SwiGLU.",
     {"activation": "swiglu"}),
    ("The classification head is an MLP with ReLU.", {"activation": None}),
    ("Queries, keys and one key/value head are projected, and a SwiGLU MLP follows.",
     {"activation": "swiglu"}),
    ("A GLU gates the convolution. The feed-forward layer is $\\mathrm{ReLU}(W x)$.",
     {"activation": "relu"}),
    ("The bias of the logits is $-\\alpha\\,\\mathrm{ReLU}(E_j - E_i)$, a ReLU in the literature.",
     {"activation": None}),
    # What is taken up as it stands.
    ("We train nanoGPT, which incorporates improvements such as RMSNorm in place of layer "
     "normalization, SwiGLU, and rotary embeddings.",
     {"norm": "rmsnorm", "activation": "swiglu", "positional": "rope"}),
    ("Its backbone is similar to BERT in that it uses GELU nonlinearities.",
     {"activation": "gelu"}),
    ("All runs train a decoder-only transformer (RoPE, RMSNorm, SwiGLU, 12 layers).",
     {"norm": "rmsnorm", "activation": "swiglu", "positional": "rope"}),
    ("Instead of the traditional ReLU, we combine Swish and Gated Linear Unit together.",
     {"activation": "swiglu"}),
    ("We modify ReLU activation functions to GeLUs.", {"activation": "gelu"}),
    ("We opted for untied embeddings instead of tying the weights of the input embedding.",
     {"tied_embeddings": False}),
    ("Squared ReLU is used. It differs from the most commonly used functions: ReLU and Swish.",
     {"activation": "squared_relu"}),
    # Weak uses and lists.
    ("LayerNorm parameters are initialised with weight 1.0.", {"norm": "layernorm"}),
    ("Our model uses modern components such as RMSNorm and RoPE.",
     {"norm": "rmsnorm", "positional": "rope"}),
    ("Common choices are, for example, RMSNorm and RoPE.", {"norm": None, "positional": None}),
    ("$h' = h + \\mathrm{MHA}(\\mathrm{LN}(h))$", {"norm": "layernorm", "norm_placement": "pre"}),
    ("$y = \\mathrm{LayerNorm}(x + \\mathrm{Sublayer}(x))$",
     {"norm": "layernorm", "norm_placement": "post"}),
    ("We use pre-LN blocks whose norm is RMSNorm.", {"norm": "rmsnorm", "norm_placement": "pre"}),
    ("We normalize the input and output of each sub-layer with RMSNorm.",
     {"norm": "rmsnorm", "norm_placement": "sandwich"}),
    ("We use the simplified normalization of T5, removing the Layer Norm bias.", {"bias": None}),
    ("Removing social bias from the data is left to the user.", {"bias": None}),
    ("Our blocks use a SwiGLU, that is $\\mathrm{SiLU}(xW) \\odot xV$.", {"activation": "swiglu"}),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "expected"), SENTENCES, ids=lambda x: str(x)[:40])
def test_sentences(sentence, expected):
    readings = read(sentence)
    assert {name: asserted(readings[name]) for name in expected} == expected


# Whole papers in small: body, expected.
PAPERS = {
    "related work does not count": (
        "\\section{Model}We use LayerNorm.\\section{Related Work}\\subsection{Model designs}"
        "LLaMA employs RMSNorm. We note that RMSNorm is popular, and RMSNorm is used widely.",
        {"norm": "layernorm"},
    ),
    "only related work": (
        "\\section{Model}It is a Transformer.\\section{Related Work}RoPE encodes positions by "
        "rotation.",
        {"positional": None},
    ),
    "the rejected one does not take the one in use with it": (
        "\\section{Architecture}RMSNorm, RMSNorm and again RMSNorm: we tried RMSNorm without "
        "gains. "
        "Our blocks use LayerNorm.",
        {"norm": "layernorm"},
    ),
    "contrast with others": (
        "\\section{Model}Both GPT-2 and BERT use GeLU nonlinearities, whereas the original "
        "transformer uses "
        "ReLU nonlinearities. The block is a GEMM followed by a GeLU: $Y = \\mathrm{GeLU}(XA)$.",
        {"activation": "gelu"},
    ),
    "a configuration table": (
        "\\section{Model}\\begin{tabular}{lc}Layers & 12 \\\\ Normalization & RMSNorm "
        "\\\\ Activation "
        "function & SiLU \\\\ Position encoding & RoPE ($\\theta = 10{,}000$) \\\\ Tied "
        "embeddings & No \\\\"
        "\\end{tabular}",
        {"norm": "rmsnorm", "activation": "silu", "positional": "rope", "tied_embeddings": False},
    ),
    "the table says SiLU, the prose SwiGLU": (
        "\\section{Model}\\begin{tabular}{lc}Layers & 12 \\\\ Activation & "
        "SiLU\\\\\\end{tabular}\n\n"
        "Each layer contains a SwiGLU feed-forward block.",
        {"activation": "swiglu"},
    ),
    "a label is no value": (
        "\\section{Model}\\begin{tabular}{lc}Layers & 12 \\\\ Layer Normalization & RMSNorm\\\\"
        "\\end{tabular}",
        {"norm": "rmsnorm"},
    ),
    "models as rows": (
        "\\section{Model}\\begin{tabular}{lccc}Model & Layers & FFN & Positions\\\\ Ours & 24 & "
        "SwiGLU & "
        "RoPE\\\\ GPT-2 & 12 & GELU & Learned positions\\\\\\end{tabular}",
        {"activation": "swiglu", "positional": "rope"},
    ),
    "another's model in the first row": (
        "\\section{Model}\\begin{tabular}{lcc}Model & Layers & Activation\\\\ GPT-2 & 12 & "
        "GELU\\\\ Ours & 24 & "
        "SwiGLU\\\\\\end{tabular}",
        {"activation": "swiglu"},
    ),
    "the teacher's column": (
        "\\section{Model}\\begin{tabular}{lcc} & Ours & Teacher\\\\ Normalization & RMSNorm & "
        "LayerNorm\\\\"
        "\\end{tabular}",
        {"norm": "rmsnorm"},
    ),
    "an ablation's table": (
        "\\section{Model}We use "
        "GELU.\\section{Ablations}\\begin{table}\\begin{tabular}{lc}Activation & Loss"
        "\\\\ ReLU & 3.1\\\\ SwiGLU & 3.0\\\\ GELU & 2.9\\\\\\end{tabular}\\caption{Ablation "
        "results.}\\end{table}",
        {"activation": "gelu"},
    ),
    "a replacement in an ablation is a trial": (
        "\\section{Model}We use sinusoidal encodings.\\section{Results}In row (E) we replace our "
        "sinusoidal "
        "positional encoding with learned positional embeddings, with nearly identical results.",
        {"positional": "sinusoidal"},
    ),
    "a figure": (
        "\\section{Model}\\begin{figure}\\begin{tikzpicture}\\node (a) {FFN (GELU)};\\node (b) "
        "{LayerNorm};"
        "\\end{tikzpicture}\\caption{The model.}\\end{figure}",
        {"activation": "gelu", "norm": "layernorm"},
    ),
    "a list of the architecture": (
        "\\section{Architecture}\\begin{itemize}\\item Rotary positional embeddings (RoPE)\\item "
        "32 layers with "
        "pre-layer normalization (RMSNorm)\\end{itemize}",
        {"positional": "rope", "norm": "rmsnorm", "norm_placement": "pre"},
    ),
    "the language model of several experiments": (
        "\\section{Experiments}\\subsection{Image classification}All models use SwiGLU and "
        "learned positional "
        "embeddings.\\subsection{Language modeling}We use GeLU activation, RoPE and no bias.",
        {"activation": "gelu", "positional": "rope", "bias": False},
    ),
    "a part described before the model": (
        "\\section{Architecture}\\subsection{Vision Encoder}It uses learned positional "
        "embeddings and GELU."
        "\\subsection{Language Backbone}It uses RoPE and SwiGLU.",
        {"positional": "rope", "activation": "swiglu"},
    ),
    "the part that the title names is the model": (
        "\\section{Architecture}The vision encoder uses GELU and learned positional embeddings.",
        {"activation": "gelu", "positional": "learned"},
    ),
    "the paper's own name": (
        "\\section{Architecture}Minnow employs RMSNorm. Unlike Minnow, Llama 2 uses SwiGLU.",
        {"norm": "rmsnorm", "activation": None},
    ),
    "future work": (
        "\\section{Model}It is a Transformer.\\section{Future Work}We use RoPE next.",
        {"positional": None},
    ),
    "GEGLU and the GELU in its gate": (
        "\\section{Model}We use the GEGLU activation, $\\mathrm{GEGLU}(x) = \\mathrm{GELU}(xW) "
        "\\odot xV$.",
        {"activation": "geglu"},
    ),
    "a setting of the norm in a table": (
        "\\section{Model}\\begin{tabular}{lc}Layers & 12 \\\\ RMSNorm eps & 1e-5\\\\\\end{tabular}",
        {"norm": "rmsnorm"},
    ),
    "another's column": (
        "\\section{Model}\\begin{tabular}{lcc} & Ours & Falcon\\\\ Activation & SwiGLU & GeLU\\\\ "
        "Biases & none & in LN only\\\\ Weight tying & no & no\\\\\\end{tabular}",
        {"activation": "swiglu", "bias": False, "tied_embeddings": False},
    ),
    "the baseline that a paper starts from": (
        "\\section{Setup}\\subsection{Baseline}Dense layers are followed by a ReLU nonlinearity.",
        {"activation": "relu"},
    ),
    "a gated variant that is tried beside the one in use": (
        "\\section{Model}We use GELU in all layers.\\section{Experiments}One run uses GEGLU.",
        {"activation": "gelu"},
    ),
    "two in use": (
        "\\section{Model}Our encoder layers use GELU. Our decoder layers use ReLU.",
        {"activation": None},
    ),
}  # fmt: skip
TITLES = {
    "the part that the title names is the model": "Training a Vision Encoder",
    "the paper's own name": "Minnow: A Small Model",
}


@pytest.mark.parametrize("name", PAPERS)
def test_papers(name):
    body, expected = PAPERS[name]
    readings = read(body, TITLES.get(name, "A Small Model"))
    assert {field: asserted(readings[field]) for field in expected} == expected


def test_silence_has_a_reason():
    readings = read("The weather was fine.")
    assert {r.reason for r in readings.values()} == {"not stated"}
    assert not any(r.mentions for r in readings.values())
    assert "rejected" in read("Our blocks work without LayerNorm.")["norm"].reason
    assert "vision encoder" in read("The vision encoder uses GELU.")["activation"].reason


def test_verdicts_carry_what_they_rest_on():
    reading = read("We use RMSNorm instead of LayerNorm. RMSNorm is applied before each block.")[
        "norm"
    ]
    value = reading.value
    assert (value.value, value.verdict) == ("rmsnorm", "used")
    assert len(value.evidence) == 2
    assert any("use it" in cue for cue in value.cues)
    assert [m.value for m in reading.mentions] == ["rmsnorm", "layernorm"]
    assert reading.mentions[1].vetoed


def test_a_short_margin_is_contested():
    value = read("Our encoder layers use GELU. Our decoder layers use ReLU.")["activation"].value
    assert value.verdict == "contested"
    assert {value.value, value.runner_up.value} == {"gelu", "relu"}


def test_two_gated_units_are_a_family():
    body = "Some of our layers use SwiGLU. Some of our layers use GEGLU."
    value = read(body)["activation"].value
    assert (value.verdict, value.value) == ("family", "gated-glu")
    assert value.runner_up is not None


def test_the_rejected_never_rank_first():
    body = "We use LayerNorm. RMSNorm was tried, and RMSNorm did not improve the loss of RMSNorm."
    mentions = read(body)["norm"].mentions
    assert [m.value for m in mentions] == ["layernorm", "rmsnorm"]
    assert mentions[0].score > mentions[1].score


def test_evidence_is_the_source_verbatim():
    source = (
        "\\documentclass{article}\\newcommand{\\ours}{Minnow}\\begin{document}\\section{Model}\n"
        "Our \\ours{} uses \\textbf{RMSNorm}~\\cite{a} in every layer of its decoder. It ends "
        "here.\n"
        "\\end{document}\n"
    )
    document = read_latex({"m.tex": SourceFile("m.tex", source)}, "m.tex")
    for mention in read_flavors(document, Scope(document, frozenset()))["norm"].mentions:
        quote = mention.evidence
        assert source[quote.start : quote.end] == quote.quote
        assert (quote.line, quote.section) == (2, "Model")
        assert quote.reads.startswith("Our Minnow uses RMSNorm")
        assert "ends" not in quote.reads
