"""What the paper calls its own models."""

import pytest
from mini_paper import paper, section

from paperkiln.papers.names import own_names

# A title and the names in it.
TITLES = [
    ("Ember: A Small Language Model", {"Ember"}),
    ("OLMo 2: Furious Fast Models", {"OLMo 2", "OLMo"}),
    ("TinyChat", {"TinyChat"}),
    ("GreatFormer -- Attention for All", {"GreatFormer"}),
    ("Attention in Small Models That We Trained on Books", set()),
    ("Transformer", set()),
]


@pytest.mark.parametrize(("title", "names"), TITLES)
def test_names_in_a_title(title, names):
    assert own_names(paper("Nothing.", title)) == names


# A sentence of the introduction and the names that it gives.
SENTENCES = [
    ("We introduce EmberLM, a small model.", {"EmberLM"}),
    ("We present the Vision Reader (ViR).", {"Vision Reader", "ViR"}),
    ("We call it GreatNet.", {"GreatNet"}),
    ("We carefully train SmallGPT on books.", {"SmallGPT"}),
    ("Our model, dubbed FastLM-2, is quick.", {"FastLM-2"}),
    ("This paper presents the DeepSea 7B model.", {"DeepSea 7B"}),
    ("MiniLLM (ours) is the best.", {"MiniLLM"}),
    # No names of its own.
    ("We train models with AdamW.", set()),
    ("We introduce a new model.", set()),
    ("BERT is a model of others.", set()),
    ("We present a study of GPT-2.", set()),
    ("We propose Attention.", set()),
]


@pytest.mark.parametrize(("sentence", "names"), SENTENCES)
def test_names_in_its_claims(sentence, names):
    title = "On the many ways of reading"
    assert own_names(paper(section("Introduction", sentence), title)) == names


def test_related_work_names_others():
    body = section("Related Work", "They say: we introduce OtherLM, a model.")
    assert own_names(paper(body, "On the many ways of reading")) == set()


def test_a_title_without_end_gives_no_name_without_end():
    assert all(len(name) <= 300 for name in own_names(paper("Nothing.", "A" * 100_000)))
