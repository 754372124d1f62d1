"""Which number of a sentence belongs to which term."""

import pytest

from paperkiln.papers.numbers.binding import bind

# A sentence and its (field, value) pairs, in the order of the numbers.
BOUND = [
    # A count follows its number, a size is followed by it.
    ("8 attention heads", [("n_heads", 8)]),
    ("eight-layer", [("n_layers", 8)]),
    ("12 identical Transformer layers", [("n_layers", 12)]),
    ("a 49,152-token vocabulary", [("vocab_size", 49152)]),
    ("a 512-dimensional hidden state", [("d_model", 512)]),
    ("hidden size of 512", [("d_model", 512)]),
    ("hidden size 512", [("d_model", 512)]),
    ("hidden size (512)", [("d_model", 512)]),
    ("d_model = 512", [("d_model", 512)]),
    ("d_model=512, d_ff=2048", [("d_model", 512), ("d_ff", 2048)]),
    ("a vocabulary of about 37000 tokens", [("vocab_size", 37000)]),
    ("the hidden size is set to 512", [("d_model", 512)]),
    ("the number of layers is 6", [("n_layers", 6)]),
    ("n_layer: 6", [("n_layers", 6)]),
    ('"num_attention_heads": 16', [("n_heads", 16)]),
    ("num_attention_heads 16", [("n_heads", 16)]),
    # In one sentence.
    ("12 layers, 8 heads and a width of 768", [("n_layers", 12), ("n_heads", 8), ("d_model", 768)]),
    ("12 layers with 8 heads", [("n_layers", 12), ("n_heads", 8)]),
    ("32 query heads and 8 key-value heads of dimension 128",
     [("n_heads", 32), ("n_kv_heads", 8), ("head_dim", 128)]),
    ("16 layers of width 512", [("n_layers", 16), ("d_model", 512)]),
    # Lists in step.
    ("the layers, hidden size and heads are 12, 768 and 16",
     [("n_layers", 12), ("d_model", 768), ("n_heads", 16)]),
    ("layers / heads / hidden size of 12 / 16 / 768",
     [("n_layers", 12), ("n_heads", 16), ("d_model", 768)]),
    # Equations.
    ("n_heads = n_kv_heads = 12", [("n_kv_heads", 12), ("n_heads", 12)]),
    ("d_k = d_v = d_model/h = 64", [("head_dim", 64)]),
    ("d_ff = 4 · d_model = 2048", [("d_ff", 2048)]),
    ("d_ff = 4d = 2048", [("d_ff", 2048)]),
    # Experts.
    ("top-2 of 8 experts per token", [("n_experts_active", 2), ("n_experts", 8)]),
    ("6 of the 64 routed experts", [("n_experts_active", 6), ("n_experts", 64)]),
    ("64 experts, 6 of which are activated per token",
     [("n_experts", 64), ("n_experts_active", 6)]),
    # A single one is counted only where that is what is meant.
    ("a single key-value head", [("n_kv_heads", 1)]),
    ("one head may specialise", []),
    ("a single head", []),
    ("a one-layer model", [("n_layers", 1)]),
    # Numbers of something else.
    ("a hidden size that we chose after 3 trials", []),
    ("the hidden size matters, and 512 tokens suffice", []),
    ("layer 6 of the model", []),
    ("the last 4 layers", []),
    ("the first 3 layers and the last 2 layers", []),
    ("more than 12 layers", []),
    ("every 6 layers", []),
    ("a 2-layer MLP", []),
    ("2 fully connected layers", []),
    ("3 convolutional layers", []),
    ("removing 4 heads", []),
    ("4 built and 8 executed layers", []),
    ("every other layer (0, 2, …, 30; 16 layers in all)", []),
    ("2, 4 or 8 layers", []),
    ("a sub-1B parameter model", []),
    ("models of >360M parameters", []),
    ("a vocabulary from 30,000 merges", []),
    ("the hidden size is 512/8", []),
    ("8 GPUs for 12 days", []),
    ("no numbers at all", []),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "pairs"), BOUND)
def test_what_is_bound(sentence, pairs):
    found = bind(sentence, {})
    assert [(b.term.field, b.quantity.value) for b in found] == pairs


# A sentence with a value that is a multiple of the width.
FORMULAS = [
    ("d_ff = 4 · d_model", 4),
    ("d_ff = 4d_model", 4),
    ("the feed-forward dimension is 4d", 4),
    ("an intermediate size of 4 times the hidden size", 4),
    ("a feed-forward dimension of 8/3 d", 8 / 3),
]


@pytest.mark.parametrize(("sentence", "factor"), FORMULAS)
def test_a_multiple_of_the_width(sentence, factor):
    (bound,) = bind(sentence, {})
    assert bound.term.field == "d_ff"
    assert bound.formula == (pytest.approx(factor), "d_model")


@pytest.mark.parametrize("sentence", ["d_model = 4 · d_model", "d_ff = 64 · d_model"])
def test_no_such_multiple(sentence):
    assert [b.formula for b in bind(sentence, {}) if b.formula] == []


def test_letters_count_as_defined():
    found = bind("We set N = 6, M = 512 and K = 3.", {"N": "n_layers", "M": "d_model"})
    assert [(b.term.field, b.quantity.value) for b in found] == [("n_layers", 6), ("d_model", 512)]


def test_letters_count_by_custom_only_beside_other_dimensions():
    assert bind("L = 24", {}) == []
    found = bind("L = 24 and d_model = 512", {})
    assert [(b.term.field, b.quantity.value) for b in found] == [("n_layers", 24), ("d_model", 512)]


def test_words_side_by_side_bind_less_than_words_with_a_link():
    (beside,), (linked,) = bind("hidden size 512", {}), bind("hidden size of 512", {})
    assert beside.strength < linked.strength
