"""How fields are named, in prose, in cells and by letters, and what values they take."""

import pytest
from mini_paper import paper

from paperkiln.papers.numbers.fields import terms, value_of
from paperkiln.papers.numbers.labels import label
from paperkiln.papers.numbers.quantities import quantities
from paperkiln.papers.numbers.symbols import defined_symbols

# A text and the fields that it names.
TERMS = [
    ("number of layers", ["n_layers"]),
    ("12 layers", ["n_layers"]),
    ("Transformer blocks", ["n_layers"]),
    ("network depth", ["n_layers"]),
    ("attention heads", ["n_heads"]),
    ("number of parallel heads", ["n_heads"]),
    ("query heads", ["n_heads"]),
    ("key-value heads", ["n_kv_heads"]),
    ("KV heads", ["n_kv_heads"]),
    ("query groups", ["n_kv_heads"]),
    ("head dimension", ["head_dim"]),
    ("per-head dimension", ["head_dim"]),
    ("dimension of each head", ["head_dim"]),
    ("hidden size", ["d_model"]),
    ("model dimension", ["d_model"]),
    ("embedding dimension", ["d_model"]),
    ("dimensionality of the hidden states", ["d_model"]),
    ("d_model", ["d_model"]),
    ("n_embd", ["d_model"]),
    ("feed-forward dimension", ["d_ff"]),
    ("FFN hidden size", ["d_ff"]),
    ("MLP hidden dimension", ["d_ff"]),
    ("intermediate size", ["d_ff"]),
    ("hidden dimension of the feed-forward network", ["d_ff"]),
    ("inner-layer dimensionality", ["d_ff"]),
    ("d_ff", ["d_ff"]),
    ("vocabulary", ["vocab_size"]),
    ("BPE vocabulary size", ["vocab_size"]),
    ("context length", ["context_length"]),
    ("maximum sequence length", ["context_length"]),
    ("sequences of length", ["context_length"]),
    ("sequences of 512 tokens", ["context_length"]),
    ("block_size", ["context_length"]),
    ("sliding-window size", ["window"]),
    ("RoPE base frequency", ["rope_theta"]),
    ("dropout rate", ["dropout"]),
    ("routed experts", ["n_experts"]),
    ("shared experts", ["n_experts_shared"]),
    ("experts per token", ["n_experts_active"]),
    ("expert hidden dimension", ["expert_d_ff"]),
    ("hidden dimension of each expert", ["expert_d_ff"]),
    ("trainable parameters", ["n_parameters"]),
    # Words that are no names of a field, though they hold one.
    ("headroom, layered, contextual", []),
    ("overheads", []),
    ("batch size and learning rate", []),
    ("the attention mechanism", []),
]


@pytest.mark.parametrize(("text", "fields"), TERMS)
def test_the_fields_that_a_text_names(text, fields):
    assert [term.field for term in terms(text)] == fields


# The whole of a cell, and the fields that it names.
LABELS = [
    ("Layers", ["n_layers"]),
    ("# Layers", ["n_layers"]),
    ("#Layers", ["n_layers"]),
    ("Num. layers", ["n_layers"]),
    ("Number of hidden layers", ["n_layers"]),
    ("num_hidden_layers", ["n_layers"]),
    ("n_layer", ["n_layers"]),
    ("Layers (L)", ["n_layers"]),
    ("Depth", ["n_layers"]),
    ("# of Heads", ["n_heads"]),
    ("Attention heads h", ["n_heads"]),
    ("num_attention_heads", ["n_heads"]),
    ("n heads", ["n_heads"]),
    ("KV heads", ["n_kv_heads"]),
    ("Key/Value Heads", ["n_kv_heads"]),
    ("num_key_value_heads", ["n_kv_heads"]),
    ("Head dim", ["head_dim"]),
    ("Key/Value size", ["head_dim"]),
    ("d_kv", ["head_dim"]),
    ("Hidden size", ["d_model"]),
    ("Hidden size D", ["d_model"]),
    ("Hidden size (d_model)", ["d_model"]),
    ("Model dim.", ["d_model"]),
    ("Embedding dimension", ["d_model"]),
    ("hidden_size", ["d_model"]),
    ("FFN size", ["d_ff"]),
    ("Feed-forward dimension", ["d_ff"]),
    ("Hidden size (FFN)", ["d_ff"]),
    ("intermediate_size", ["d_ff"]),
    ("d_ff", ["d_ff"]),
    ("Vocabulary", ["vocab_size"]),
    ("Vocab. size", ["vocab_size"]),
    ("Context length", ["context_length"]),
    ("Max. sequence length", ["context_length"]),
    ("max_position_embeddings", ["context_length"]),
    ("Sliding window", ["window"]),
    ("RoPE θ", ["rope_theta"]),
    ("rope_theta", ["rope_theta"]),
    ("Dropout rate", ["dropout"]),
    ("Routed experts", ["n_experts"]),
    ("num_experts_per_tok", ["n_experts_active"]),
    ("Top-k experts", ["n_experts_active"]),
    ("Shared experts", ["n_experts_shared"]),
    ("Expert intermediate dim", ["expert_d_ff"]),
    ("moe_intermediate_size", ["expert_d_ff"]),
    ("Total params", ["n_parameters"]),
    ("# Parameters (M)", ["n_parameters"]),
    ("n_heads / d_head", ["n_heads", "head_dim"]),
    ("Heads (Q / KV)", ["n_heads", "n_kv_heads"]),
    ("# Experts (Total / Activated)", ["n_experts", "n_experts_active"]),
    # Cells that only have such a word in them.
    ("Accuracy per layer", []),
    ("Top-k", []),
    ("Active", []),
    ("Input", []),
    ("Attention head entropy", []),
    ("9 layers, d = 1024", []),
    ("Model", []),
    ("Learning rate", []),
    ("Batch size", []),
    ("", []),
    ("layers " * 20, []),
]


@pytest.mark.parametrize(("cell", "fields"), LABELS)
def test_the_fields_that_a_cell_names(cell, fields):
    assert [found.field for found in label(cell)] == fields


@pytest.mark.parametrize(
    ("cell", "factor"),
    [("Params", 1), ("Params (M)", 1e6), ("Parameters (in billions)", 1e9), ("params ×10^6", 1e6),
     ("Context (K)", 1e3)],
)  # fmt: skip
def test_the_unit_in_a_label(cell, factor):
    assert label(cell)[0].factor == factor


def test_letters_that_the_paper_defines_are_labels():
    assert label("D", {"D": "d_model"})[0].field == "d_model"
    assert label("N") == []


# A field, how its number is written, and what it comes to; None where no model has such a value.
UNITS = [
    ("d_model", "512", 512),
    ("d_model", "1.5K", None),
    ("d_model", "7B", None),
    ("d_model", "3", None),
    ("d_model", "512.5", None),
    ("n_layers", "2020", None),
    ("n_heads", "50%", None),
    ("context_length", "4K", 4096),
    ("context_length", "128k", 131072),
    ("context_length", "1 million", 1_000_000),
    ("window", "16K", 16384),
    ("vocab_size", "128K", 128_000),
    ("vocab_size", "4", None),
    ("dropout", "10%", 0.1),
    ("dropout", "0.1", 0.1),
    ("dropout", "0", 0),
    ("dropout", "300", None),
    ("rope_theta", "10^6", 1_000_000),
    ("n_parameters", "125M", 125_000_000),
    ("n_parameters", "12", None),
    ("n_experts", "64", 64),
]


@pytest.mark.parametrize(("field", "text", "value"), UNITS)
def test_a_value_in_its_unit(field, text, value):
    assert value_of(field, quantities(text)[0]) == value


def test_a_unit_from_the_header():
    assert value_of("n_parameters", quantities("65")[0], 1e6) == 65_000_000
    assert value_of("context_length", quantities("4")[0], 1000) == 4096


# A sentence and the letters that it defines.
SYMBOLS = [
    ("Let $D$ be the hidden size.", {"D": "d_model"}),
    ("The hidden size $D$ is fixed.", {"D": "d_model"}),
    ("The number of layers ($L$) varies.", {"L": "n_layers"}),
    ("We write the number of heads as $A$.", {"A": "n_heads"}),
    ("Here $L$ is the number of layers, $H$ the hidden size.", {"L": "n_layers", "H": "d_model"}),
    ("A stack of $N = 6$ identical layers.", {"N": "n_layers"}),
    ("Here $d = 768$ is the model dimension.", {"d": "d_model"}),
    ("With 16 heads, $D=128$ and a feed-forward size of 256.", {}),
    ("A hidden size is a choice.", {}),
    ("It has layers and is a model.", {}),
]


@pytest.mark.parametrize(("sentence", "symbols"), SYMBOLS)
def test_the_letters_that_a_sentence_defines(sentence, symbols):
    assert defined_symbols(paper(sentence)) == symbols


def test_the_first_definition_holds():
    assert defined_symbols(paper("The hidden size $D$. The number of layers $D$.")) == {
        "D": "d_model"
    }
