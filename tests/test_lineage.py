"""Whose architecture a paper takes over: hand-written sentences, and the table of families."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperkiln.papers.architecture import FLAVORS
from paperkiln.papers.document import Block, Document, Section, Text
from paperkiln.papers.lineage.ancestors import ANCESTORS, GENERIC, inherited
from paperkiln.papers.lineage.lineage import Claim, find_lineage

OWN = frozenset({"Foo", "Foo-1B"})


def paper(
    *texts: str, kind: str = "method", block: str = "paragraph", title: str = "A study"
) -> Document:
    section = Section(Text("Section"), 1, kind)
    blocks = [Block(block, Text(text), section) for text in texts]
    return Document(Text(title), list(blocks), {}, "main.tex")


def lineage(sentence: str, **kwargs: str) -> Claim | None:
    return find_lineage(paper(sentence, **kwargs), OWN)


def summary(claim: Claim | None) -> str:
    """Return 'family', with '!' for weights and '+other' for families beside it."""
    if claim is None:
        return ""
    weights = "!" if claim.kind == "initialised" else ""
    return "+".join((claim.ancestor + weights, *claim.others))


CLAIMS = """
gpt-2 | We use the same model and architecture as GPT-2, including the modified initialization.
gpt-2 | The model is a GPT-2 style decoder.
gpt-2 | We use a GPT-2 model with 12 layers.
gpt-2 | We train GPT-2 models from scratch on OpenWebText.
gpt-2 | We pretrain GPT-2 Small, Medium, and Large models on a single GPU.
gpt-2 | We train a family of GPT-2 models of increasing size.
gpt-2 | Foo employs a 12-layer GPT-2-like Transformer decoder.
gpt-2 | Our model is a decoder-only transformer based on GPT-2.
gpt-2 | Our GPT-2-style model has 12 layers.
gpt-2 | As in prior work, our language model has a GPT-2 architecture with 124M parameters.
nanogpt | We train a nanoGPT model with 6 layers.
gpt-3 | Our model architecture largely follows that of GPT-3, with a few deviations described below.
gpt-3 | Foo models have a GPT-3-like architecture, an autoregressive transformer decoder.
gpt-neox | Foo models follow the GPT-NeoX architecture.
gpt-neox | We base our architecture on GPT-NeoX.
qwen | The base model is an eight-layer, 512-wide Qwen-style decoder-only transformer (33.6M).
qwen3 | We build upon the Qwen3 architecture, specifically optimized for our 4B configuration.
qwen3 | Our Foo model is built upon the Qwen3-4B-Instruct-2507 architecture.
llama | All models use the Llama architecture.
llama | Our architecture closely follows LLaMA (Touvron et al., 2023), except that we untie.
llama | Following prior work, we adopt the LLaMA architecture.
llama | The network architecture is identical to that of LLaMA.
llama | Based on the LLaMA architecture, we train models from 125M to 7B parameters.
llama | The micro design of Foo largely follows the design of LLaMA, adopting a Pre-Norm structure.
llama | We choose to adhere to the structural design principles of LLaMA.
llama | Foo-1B shares its architecture with LLaMA: 22 layers and a width of 2048.
llama | Models are trained from scratch with the LLaMA architecture at 60M and 130M.
llama | Architecture: LLaMA-style decoder with RMSNorm.
llama | We adopt most of the pretraining setting and model architecture from Llama 1.
llama+palm | We use the same architecture as LLaMA and PaLM.
llama-2 | In this work we train a model that follows the LLaMA\u00a02 architecture.
llama-2 | We adopt the exact same architecture and tokenizer as Llama\u20092.
llama-3 | Foo is built on Llama 3.
llama-3 | The architecture is the same as Llama 3.2, but with untied embeddings.
mistral | Our 7B model adopts the Mistral architecture, with sliding window attention.
mixtral | Foo-1B is a scaled-down version of Mixtral.
bert | Our model architecture is similar to BERT.
bert | We use a BERT-style encoder with 12 layers.
bert | The backbone of Foo is similar to BERT in that it uses a transformer encoder.
t5 | Foo follows the encoder-decoder architecture of T5.
t5-v1.1 | Our architecture is the same as T5 v1.1.
palm | The architecture we use is the same as PaLM except that we use multi-head attention.
bloom | We train our 1.1B model with an architecture identical to that of BLOOM-1b1.
opt | Our decoder follows the OPT architecture.
deepseek-v3 | Our MoE follows the DeepSeek-V3 architecture with latent attention.
mamba-2 | The language model is built from Mamba-2 blocks.
rwkv | Foo is based on the RWKV-6 architecture.
gpt | We use a GPT-style decoder-only transformer.
transformer | Foo follows the standard Transformer architecture with MoE layers.
mistral-v0.2! | We initialize our model from the Mistral-7B-v0.2 checkpoint.
qwen2.5! | We initialize our model from Qwen-2.5-7B-Instruct for its strong capabilities.
qwen2.5! | Foo-1B is fine-tuned from Qwen2.5-7B.
llama-2! | We use Llama-2-7B as our backbone.
llama-2! | We fine-tune Llama-2-7B with LoRA on our dataset.
llama-3! | The student is initialized from Llama-3.2-1B weights.
qwen3! | Starting from a 4B Qwen3 base model, we employ low-rank adaptation.
gemma-2! | Our base model is Gemma-2-2B.
roberta! | We pretrain Foo starting from the RoBERTa released checkpoint.
opt! | Foo is initialized with the weights of OPT-1.3B and further trained on code.
"""

NO_CLAIMS = """
We use the GPT-2 tokenizer with a vocabulary of 50257 tokens.
We follow the training setup of GPT-3.
Following GPT-3, we use Adam with a decay of 0.1.
Following RoBERTa, we remove the next sentence prediction objective.
We use the same hyperparameters as GPT-3.
We use the same training configuration as GPT-3.
Our training configuration follows GPT-3.
Our models are trained with the same data as Pythia.
We inherit the vocabulary of Llama 2.
Our code is based on the GPT-NeoX library.
Our implementation is based on nanoGPT.
This follows the GPT-2 initialization scheme.
We follow the LLaMA-2 conversation template design.
We evaluate on Llama-2-7B and Mistral-7B.
We evaluate our method on the GPT-2 architecture.
We conduct experiments on three model families: Llama, Qwen and Mistral.
In our experiments, we use Llama-3.1-8B-Instruct.
Claims are scoped to Llama-3.2-1B, WikiText-2, recency window 64.
Our method reduces the KV cache of LLaMA-2-7B by 4x.
We fine-tune Llama-2-7B, Mistral-7B and Gemma-2B on the task.
We analyze a GPT-2 model.
We train sparse autoencoders on GPT-2 small.
GPT-2 and BERT are based on the Transformer architecture.
OPT uses the same architecture as GPT-3.
We note that OPT uses the same architecture as GPT-3.
Notice that the latest Llama-3 model shares the same architecture as Llama-2.
The prior GPT-3 model follows the GPT-2 architecture, which we do not use.
Many language models follow the Llama architecture.
Recent models are based on the Llama architecture.
Our model outperforms models that use the Llama architecture.
We compare Foo with the BERT architecture.
We also train a GPT-2 baseline.
As a baseline, we trained a standard GPT-2 model without the adapter on each dataset.
The teacher model is based on the Llama 2 architecture.
We distill Llama-3-8B into a smaller model.
Unlike GPT-2, we use rotary embeddings.
Like GPT-3, our model is trained on web text.
Our 7B model matches Llama-2-13B on MMLU.
Our model is similar to BERT in accuracy.
The model size matches that of GPT-3.
We generate the data by leveraging an internal DeepSeek-R1 model.
We use Llama-2-7B-chat to generate the answers.
We use Llama-2-7b as the victim model and select suspect models.
We use T5 text encoder embeddings for conditioning.
We use a BERT-based classifier to filter the web pages.
We opt for the simplest architecture, and bloom where we are planted.
We use a LLaMA-Adapter model, and a Llama 4 model.
Each decoder layer follows a Pre-LN residual pattern matching Qwen3/LLaMA:
The type embedding was inspired by BERT's segment embeddings.
Our method can be applied to the Llama architecture.
In the appendix we repeat this with the Mamba architecture as an ablation.
We find that the GPT-2 architecture is not stable at this depth.
"""


@pytest.mark.parametrize("line", CLAIMS.strip().splitlines())
def test_a_claim_is_found(line: str) -> None:
    expected, sentence = line.split(" | ", 1)
    claim = lineage(sentence)
    assert summary(claim) == expected
    assert claim is not None
    assert claim.text == sentence
    assert claim.cues


@pytest.mark.parametrize("sentence", NO_CLAIMS.strip().splitlines())
def test_what_is_no_claim(sentence: str) -> None:
    assert lineage(sentence) is None


@pytest.mark.parametrize("kind", ["related", "future"])
def test_other_peoples_sections_do_not_count(kind: str) -> None:
    assert lineage("We use the Llama architecture.", kind=kind) is None


def test_a_subsection_of_related_work_does_not_count() -> None:
    above = Section(Text("Related work"), 1, "related")
    inner = Section(Text("Models"), 2, "method", above)
    block = Block("paragraph", Text("We use the Llama architecture."), inner)
    assert find_lineage(Document(Text("T"), [block], {}, "m.tex")) is None


def test_an_introduction_must_name_its_authors() -> None:
    assert lineage("The model is based on the BERT architecture.", kind="introduction") is None
    assert lineage("Our model is based on the BERT architecture.", kind="introduction")


@pytest.mark.parametrize("block", ["caption", "figure", "code", "title", "heading"])
def test_only_running_text_claims(block: str) -> None:
    assert lineage("We use the Llama architecture.", block=block) is None


def test_an_item_label_may_be_the_subject() -> None:
    section = Section(Text("Setup"), 1, "training")
    item = Block("item", Text("a LLaMA-style decoder"), section, label="Architecture")
    assert summary(find_lineage(Document(Text("T"), [item], {}, "m.tex"))) == "llama"


def test_a_paper_is_not_its_own_ancestor() -> None:
    own = frozenset({"DeepSeek-V3"})
    document = paper("We train DeepSeek-V3 on 14.8T tokens.", title="DeepSeek-V3 Technical Report")
    assert find_lineage(document, own) is None
    document = paper("We train GPT-2 on OpenWebText.", title="A new optimizer")
    assert summary(find_lineage(document, frozenset({"GPT-2"}))) == "gpt-2"


def test_own_names_hide_the_families_within_them() -> None:
    document = paper("We use the Video LLaMA architecture.")
    assert find_lineage(document, frozenset({"Video LLaMA"})) is None


def test_the_method_goes_before_the_abstract_and_a_family_before_the_transformer() -> None:
    method = Section(Text("Model"), 1, "method")
    abstract = Section(Text(""), 0, "abstract")
    document = Document(
        Text("T"),
        [
            Block("abstract", Text("We follow the Transformer architecture."), abstract),
            Block("abstract", Text("We fine-tune BERT on our data."), abstract),
            Block("paragraph", Text("Our model follows the Llama architecture."), method),
        ],
        {},
        "m.tex",
    )
    assert summary(find_lineage(document)) == "llama"


def test_two_claims_as_strong_give_what_they_share() -> None:
    claim = find_lineage(
        paper("We train models with the GPT-2 architecture.", "We use the Llama architecture.")
    )
    assert summary(claim) == "gpt-2+llama"
    assert claim is not None
    assert claim.values() == {"norm_placement": "pre", "attention": "exact"}


def test_an_image_family_is_no_ancestor_of_a_language_model() -> None:
    claim = "We use a ViT-style architecture."
    assert find_lineage(paper(claim, "Tokens of text for language models.")) is None
    assert summary(find_lineage(paper(claim, "Patches of images."))) == "vit"


def test_exceptions_are_kept_and_not_inherited() -> None:
    claim = lineage(
        "We use the Llama architecture, except that we use LayerNorm and tied embeddings."
    )
    assert claim is not None
    assert claim.exceptions == ("we use LayerNorm and tied embeddings",)
    assert claim.excepted == {"norm", "norm_placement", "tied_embeddings"}
    assert claim.values() == {
        "activation": "swiglu", "positional": "rope", "attention": "exact", "bias": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "excepted"),
    [
        ("We use the Llama architecture with ReLU instead of SwiGLU.", {"activation"}),
        ("We use the GPT-2 architecture. Unlike it, we use rotary embeddings.", {"positional"}),
        ("We use the GPT-2 architecture, but without biases.", {"bias"}),
        ("We use the Llama architecture, except for the vocabulary size.", set()),
        ("We use the Llama architecture, including RMSNorm and SwiGLU.", set()),
    ],
)
def test_what_an_exception_speaks_of(text: str, excepted: set[str]) -> None:
    claim = lineage(text)
    assert claim is not None
    assert claim.excepted == excepted


def test_a_list_of_changes_is_read() -> None:
    section = Section(Text("Model"), 1, "method")
    blocks = [
        Block("paragraph", Text("We use the GPT-2 architecture with these changes:"), section),
        Block("item", Text("rotary position embeddings;"), section),
        Block("item", Text("RMSNorm."), section, label="Norm"),
        Block("paragraph", Text("Attention is as usual."), section),
    ]
    claim = find_lineage(Document(Text("T"), list(blocks), {}, "m.tex"))
    assert claim is not None
    assert claim.exceptions[1:] == ("rotary position embeddings;", "Norm RMSNorm.")
    assert claim.excepted == {"positional", "norm", "norm_placement"}


@pytest.mark.parametrize("citet", [True, False])
def test_a_family_may_be_named_by_its_citation_alone(citet: bool) -> None:
    start = "We follow the architecture of "
    string = f"{start}touvron2023llama." if citet else f"{start}."
    text = Text(string, citations=((len(start), "touvron2023llama"),))
    section = Section(Text("Model"), 1, "method")
    document = Document(Text("T"), [Block("paragraph", text, section)], {}, "m.tex")
    assert summary(find_lineage(document)) == "llama"


def test_the_transformer_fills_no_fields() -> None:
    claim = lineage("Foo follows the original Transformer architecture.")
    assert claim is not None
    assert claim.ancestor in GENERIC
    assert claim.values() == {}


@pytest.mark.parametrize("name", ANCESTORS)
def test_rows_name_their_paper_and_only_flavours(name: str) -> None:
    row = ANCESTORS[name]
    assert row.paper
    assert row.aliases
    assert set(row.values) <= set(FLAVORS)
    assert inherited(name) == ({} if name in GENERIC else row.values)


@pytest.mark.parametrize("name", sorted(set(ANCESTORS) - {"transformer"}))
def test_every_alias_finds_its_family(name: str) -> None:
    for alias in ANCESTORS[name].aliases:
        claim = find_lineage(paper(f"Foo uses the {alias} architecture.", "image " * 9), OWN)
        assert summary(claim) == name, alias


# The truth table of published papers: what a family's row says is what its paper says.
@pytest.mark.parametrize(
    ("name", "norm", "activation", "positional"),
    [
        ("llama", "rmsnorm", "swiglu", "rope"),
        ("bloom", "layernorm", "gelu", "alibi"),
        ("gpt-neox", "layernorm", "gelu", "rope"),
        ("t5", "rmsnorm", "relu", "relative"),
        ("bert", "layernorm", "gelu", "learned"),
        ("opt", "layernorm", "relu", "learned"),
        ("gemma", "rmsnorm", "geglu", "rope"),
        ("olmo", "layernorm", "swiglu", "rope"),
        ("falcon", "layernorm", "gelu", "rope"),
        ("qwen2", "rmsnorm", "swiglu", "rope"),
        ("palm", "layernorm", "swiglu", "rope"),
    ],
)
def test_rows_agree_with_published_papers(
    name: str, norm: str, activation: str, positional: str
) -> None:
    values = ANCESTORS[name].values
    assert (values["norm"], values["activation"]) == (norm, activation)
    assert values["positional"] == positional


WORDS = st.sampled_from(
    (
        "we our the model architecture same as follows based on built GPT-2 Llama 3 BERT T5 , . : "
        "( ) that which except for a style -like initialized from weights OPT Foo é İ ' - ~"
    ).split()
)


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.text(max_size=200), st.lists(WORDS, max_size=40).map(" ".join)))
def test_no_text_is_too_odd(string: str) -> None:
    claim = find_lineage(paper(string), OWN)
    if claim:
        assert claim.text
        assert claim.values() is not None


@pytest.mark.parametrize(
    "unit",
    [
        "we use the Llama architecture. ",
        "we use the same model and architecture and model as ",
        "GPT-2 ",
        "based on (",
        "a, ",
        "Llama-",
    ],
)
def test_time_is_bounded(unit: str) -> None:
    start = time.process_time()
    find_lineage(paper(unit * (400_000 // len(unit))), OWN)
    assert time.process_time() - start < 60
