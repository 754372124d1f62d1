"""Whose number it is: the paper's own model's, a part's, a teacher's, a baseline's, another's."""

import pytest
from mini_paper import asserted, numbers, paper, section, table

from paperkiln.papers.names import own_names
from paperkiln.papers.scope import Scope

# A paper and every value of its own main model.
PAPERS = [
    ("\\section{Model}\nThe vision encoder has 24 layers and a hidden size of 1024. The "
     "language model is a decoder with 32 layers, 32 heads and a hidden size of 4096.\n",
     {"n_layers": 32, "n_heads": 32, "d_model": 4096}),
    ("\\section{Model}\nOur vision encoder is a ViT with 24 layers, 16 heads and width "
     "1024.\n",
     {}),
    ("\\section{Vision Encoder}\nIt has 24 layers and a hidden size of "
     "1024.\n\\section{Language Model}\nIt has 32 layers and a hidden size of 4096.\n",
     {"n_layers": 32, "d_model": 4096}),
    ("\\section{Method}\nThe teacher has 24 layers and a hidden size of 1024. The student "
     "has 6 layers and a hidden size of 384.\n",
     {"n_layers": 6, "d_model": 384}),
    ("\\section{Method}\nWe distill a 24-layer teacher model with 16 heads into our model, "
     "which has 6 layers and 12 heads.\n",
     {"n_layers": 6, "n_heads": 12}),
    ("\\section{Experiments}\nAs a baseline we train an LSTM with 2 layers and a hidden size "
     "of 650. Our model has 12 layers and a hidden size of 512.\n",
     {"n_layers": 12, "d_model": 512}),
    ("\\section{Experiments}\nThe baseline is a 12-layer transformer with 8 heads.\n",
     {}),
    ("\\section{Method}\nWe use 6 layers and a model dimension of "
     "512.\n\\section{Experiments}\nThe Transformer baseline has 12 layers and a model "
     "dimension of 768.\n",
     {"n_layers": 6, "d_model": 512}),
    ("\\section{Related Work}\nBERT has 12 layers and a hidden size of 768.\n",
     {}),
    ("\\section{Related Work}\nGPT-3 has 96 layers, 96 heads and a hidden size of "
     "12288.\n\\section{Our Model}\nWe use 8 layers and 8 heads.\n",
     {"n_layers": 8, "n_heads": 8}),
    ("\\section{Future Work}\nWe plan to train a model with 48 layers and a hidden size of "
     "4096.\n",
     {}),
    ("\\section{Method}\nFor example, a model with 12 layers and a hidden size of 768 needs "
     "2GB.\n",
     {}),
    ("\\section{Method}\nSuppose the hidden size is 4096 and there are 32 heads.\n",
     {}),
    ("\\section{Method}\nConsider a transformer with 2 layers and 1 head.\n",
     {}),
    ("\\section{Method}\nUnlike BERT, which has 12 layers, our model uses 6 layers.\n",
     {"n_layers": 6}),
    ("\\section{Method}\nGPT-2 small has 12 layers and 12 heads. We use 4 layers and 4 "
     "heads.\n",
     {"n_layers": 4, "n_heads": 4}),
    ("\\section{Method}\nCompared to RoBERTa's 24 layers, we use only 8 layers.\n",
     {"n_layers": 8}),
    ("\\section{Toy Experiment}\nWe use a 1-layer transformer with hidden size "
     "32.\n\\section{Model}\nOur model has 12 layers and a hidden size of 768.\n",
     {"n_layers": 12, "d_model": 768}),
    ("\\section{Method}\nIn a toy model with 2 layers and a width of 64 the effect is clear. "
     "The full model has 24 layers and a hidden size of 2048.\n",
     {"n_layers": 24, "d_model": 2048}),
    ("\\section{Model}\nThe large model has 24 layers and a hidden size of 1024, and the "
     "base model has 12 layers and a hidden size of 768.\n",
     {"n_layers": 12, "d_model": 768}),
    ("\\section{Model}\nWe train two models: base (12 layers, 768 hidden, 12 heads) and "
     "large (24 layers, 1024 hidden, 16 heads).\n",
     {"n_layers": 12, "d_model": 768, "n_heads": 12}),
    ("\\section{Model}\nSmall uses 6 layers, Medium uses 12 layers and Large uses 24 "
     "layers.\n",
     {"n_layers": 6}),
    ("\\section{Ablation}\nWe vary the number of layers from 2 to 12.\n",
     {}),
    ("\\section{Experiments}\nWe sweep the hidden size over 128, 256 and 512.\n",
     {}),
    ("\\section{Method}\nWe set the number of layers to 8.\n\\section{Ablation}\nWith 4 "
     "layers accuracy drops by 3 points; 16 layers brings no gain.\n",
     {"n_layers": 8}),
    ("\\section{Experiments}\nWe search the number of heads in \\{2, 4, 8\\}.\n",
     {}),
    ("\\section{Method}\nThe first 3 layers are dense and the last 2 layers are frozen.\n",
     {}),
    ("\\section{Method}\nWe insert adapters in the top 6 layers.\n",
     {}),
    ("\\section{Method}\nWe extract features from layer 9.\n",
     {}),
    ("\\section{Method}\nThe classifier is a 2-layer MLP with hidden dimension 256.\n",
     {}),
    ("\\section{Method}\nA two-layer LSTM with 512 hidden units encodes the history.\n",
     {}),
    ("\\section{Method}\nTwo linear layers with a ReLU in between follow; they have 1024 "
     "units.\n",
     {}),
    ("\\section{Method}\nThe convolutional stem has 4 layers with 64 channels.\n",
     {}),
    ("\\section{Method}\nThe projection head has 3 layers.\n",
     {}),
    ("\\section{Method}\nWe use the GPT-2 tokenizer. Our model has 12 layers.\n",
     {"n_layers": 12}),
    ("\\section{Method}\nImages are cut into patches of $16\\times 16$ pixels, and the "
     "encoder has 12 layers.\n",
     {"n_layers": 12}),
    ("\\section{Experiments}\nWe train on 8 A100 GPUs for 100K steps with a batch size of "
     "256.\n",
     {}),
    ("\\section{Experiments}\nFigure 3 shows 12 heads; Table 2 lists 8 layers.\n",
     {}),
    ("\\section{Experiments}\nInference with a context of 128K tokens is 3 times faster.\n",
     {}),
    ("\\section{Training}\nWe train with a sequence length of 4096 and extend the context "
     "window to 128K with YaRN.\n",
     {"context_length": 4096}),
    ("\\section{Method}\nThe hidden size is 512.\n\\section{Analysis}\nWith a hidden size of "
     "1024 the loss is lower.\n",
     {"d_model": 512}),
    ("\\section{Method}\nThe model has 12 layers.\n\\section{Training}\nThe model has 16 "
     "layers.\n",
     {}),
    ("\\section{Method}\nFollowing BERT, we use 12 layers, 12 heads and a hidden size of "
     "768.\n",
     {"n_layers": 12, "n_heads": 12, "d_model": 768}),
    ("\\section{Method}\nWe use the same architecture as GPT-2 small: 12 layers, 12 heads, "
     "and an embedding size of 768.\n",
     {"n_layers": 12, "n_heads": 12, "d_model": 768}),
    ("\\section{Method}\nOur model is based on LLaMA, with 16 layers and a hidden dimension "
     "of 2048.\n",
     {"n_layers": 16, "d_model": 2048}),
    ("\\section{Method}\nWe use 768 embedding dimensions, 3072 hidden dimensions and 12 "
     "heads.\n",
     {"d_model": 768, "d_ff": 3072, "n_heads": 12}),
    ("\\section{Method}\nThe embedding size is 128 and the hidden size is 768.\n",
     {"d_model": 768}),
    ("\\section{Method}\nThe embedding size is 128, the hidden size is 512, and the FFN size "
     "is 2048.\n",
     {"d_model": 512, "d_ff": 2048}),
    ("\\section{Architecture}\\begin{itemize}\\item Layers: 24\\item Hidden size: 2048\\item "
     "Attention heads: 16 (head dimension 128)\\item KV heads: 4\\item FFN intermediate "
     "size: 5632\\item Vocabulary: 64,000 tokens\\item Context length: 4,096\\end{itemize}",
     {"n_layers": 24, "d_model": 2048, "n_heads": 16, "head_dim": 128, "n_kv_heads": 4,
      "d_ff": 5632, "vocab_size": 64000, "context_length": 4096}),
    ("\\section{Architecture}\\begin{description}\\item[Depth] 24 layers\\item[Width] "
     "1024\\item[Heads] 16\\item[Vocabulary] 50257\\end{description}",
     {"n_layers": 24, "d_model": 1024, "n_heads": 16, "vocab_size": 50257}),
    ("\\section{Architecture}\\begin{itemize}\\item \\textbf{Number of layers}: 12\\item "
     "\\textbf{Hidden dimension} ($d$): 768\\item \\textbf{Heads}: 12\\end{itemize}",
     {"n_layers": 12, "d_model": 768, "n_heads": 12}),
    ("\\section{Model}\\begin{verbatim}\nclass Config:\n    n_layer = 12\n    n_head = 12\n  "
     "  n_embd = 768\n    block_size = 1024\n    vocab_size = 50304\n    dropout = "
     "0.0\n\\end{verbatim}",
     {"n_layers": 12, "n_heads": 12, "d_model": 768, "context_length": 1024, "vocab_size": 50304,
      "dropout": 0}),
    ('\\section{Model}\\begin{lstlisting}\n{"hidden_size": 2048, "num_hidden_layers": 24,\n '
     '"num_attention_heads": 16, "intermediate_size": 8192}\n\\end{lstlisting}',
     {"d_model": 2048, "n_layers": 24, "n_heads": 16, "d_ff": 8192}),
    ("\\section{Model}\nThe model has 6 encoder layers and 6 decoder layers, 8 heads and "
     "$d_{model}=512$.\n",
     {"n_layers": 6, "n_heads": 8, "d_model": 512}),
    ("\\section{Model}\nThe encoder has 12 layers, the decoder 6 layers.\n",
     {"n_layers": 12}),
    ("\\section{Model}\nWe use a small model.\\footnote{It has 4 layers, 4 heads and a "
     "hidden size of 256.}\n",
     {"n_layers": 4, "n_heads": 4, "d_model": 256}),
    ("\\section{Method}\nLow-rank adapters of dimension 16 are used.\n",
     {}),
    ("\\section{Method}\nThe latent dimension of the VAE is 64.\n",
     {}),
    ("\\section{Data}\nThe data set has 512 dimensions and 10 features.\n",
     {}),
    ("\\section{Method}\nThe image resolution is 224 and the patch size is 16.\n",
     {}),
    ("\\section{Method}\nThe time series has a look-back window of 336 and a horizon of 96.\n",
     {}),
    ("\\section{Architecture}\nThere are 44 layers with a hidden dimension of 3584. But for "
     "the first two layers, all FFNs are MoE layers with 1 shared expert and 96 routed "
     "experts, each with a hidden dimension of 1408. In MLA, the number of attention heads "
     "is 28 and the per-head dimension is 128.\n",
     {"n_layers": 44, "d_model": 3584, "n_experts_shared": 1, "n_experts": 96,
      "expert_d_ff": 1408, "n_heads": 28, "head_dim": 128}),
    ("\\section{Architecture}\nThe model has 8 experts per layer, 2 of which are active per "
     "token.\n",
     {"n_experts": 8, "n_experts_active": 2}),
    ("\\section{Architecture}\nIt has 90B parameters in total, of which 9B are activated for "
     "each token.\n",
     {"n_parameters": 90_000_000_000}),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), PAPERS)
def test_the_numbers_of_its_own_main_model(body, expected):
    assert asserted(numbers(body)) == expected


def scope(title: str = "A Small Model", body: str = "Nothing.") -> Scope:
    document = paper(body, title)
    return Scope(document, own_names(document))


# A phrase and the part, teacher or baseline that it names.
PARTS = [
    ("the vision encoder", "vision encoder"),
    ("a speech tower", "speech tower"),
    ("the frozen encoder", "frozen encoder"),
    ("a ResNet-50", "resnet-50"),
    ("the convolutional stem", "convolutional stem"),
    ("the teacher model", "teacher model"),
    ("the draft model", "draft model"),
    ("a reward model", "reward model"),
    ("the value head", "value head"),
    ("a BiLSTM", "bilstm"),
    ("the linear classifier", "linear classifier"),
    ("two  classifiers", "classifiers"),
    ("LoRA adapters", "lora"),
    ("the baseline", "baseline"),
    ("a toy model", "toy model"),
    ("prior work", "prior work"),
    # Not their own subject.
    ("8 key-value heads", ""),
    ("without a teacher", ""),
    ("unlike the baseline", ""),
    ("compared to the LSTM", ""),
    ("our decoder", ""),
    ("the encoder", ""),
    ("a convolution width of 4", ""),
]


@pytest.mark.parametrize(("phrase", "part"), PARTS)
def test_parts(phrase, part):
    assert scope().part(phrase) == part


def test_what_the_title_names_is_no_part():
    assert scope("Adapters for Everything").part("the adapter") == ""
    assert scope("A Reward Model that Reads").part("our reward model") == ""


# A phrase and the other paper's model that it names.
FOREIGN = [
    ("BERT has", "BERT"),
    ("The GPT-2 model uses", "GPT-2"),
    ("The largest GloVe model has", "GloVe"),
    ("We measured on LLaMA, which has", "LLaMA"),
    # We use it, or only what it is called after.
    ("We use BERT with", ""),
    ("Our model follows LLaMA and has", ""),
    ("Our model is based on LLaMA, with", ""),
    ("A BERT-style encoder with", ""),
    ("The GPT-2 tokenizer has", ""),
    ("Model: nanoGPT with", ""),
    # Methods and sizes are spelled like names.
    ("RoPE uses", ""),
    ("GQA has", ""),
    ("BASE has", ""),
    ("The model has", ""),
]


@pytest.mark.parametrize(("phrase", "name"), FOREIGN)
def test_models_of_other_papers(phrase, name):
    assert scope().foreign(phrase) == name


def test_a_report_about_a_model_is_about_its_own():
    assert scope("BERT, Revisited").foreign("BERT has") == ""
    body = section("Reading machines", "BERT reads. " * 9 + "GPT-2 writes.")
    assert scope("A long report on reading machines", body).foreign("BERT has") == ""
    body = section("Reading machines", "BERT reads. GPT-2 writes. " * 9)
    assert scope("A long report on reading machines", body).foreign("BERT has") == "BERT"


# What heads a column or row, whether the table has the paper's own name, and whose it is.
HEADERS = [
    ("Base", False, ""),
    ("Ours", False, ""),
    ("Ember-1B", True, ""),
    ("Teacher", False, "teacher"),
    ("BERT-base", False, "BERT"),
    ("BERT (ours)", False, ""),
    ("BERT (ours)", True, "BERT"),
    ("Reference", False, "reference"),
    ("Baseline size", False, ""),
    ("", False, ""),
]


@pytest.mark.parametrize(("name", "own_named", "owner"), HEADERS)
def test_headers(name, own_named, owner):
    assert scope("Ember: A Model").header(name, own_named) == owner


def test_what_is_clearly_its_own():
    ember = scope("Ember: A Model")
    assert ember.clearly_own("Ember-1B")
    assert ember.clearly_own("Ours")
    assert not ember.clearly_own("Base")
    assert not ember.clearly_own("BERT (ours)")


# The words before and after a number, and whose it is.
CLAUSES = [
    ("The teacher has", "", "teacher"),
    ("The teacher has 24 layers; the student has", "", ""),
    ("The vision encoder is frozen, whereas the decoder has", "", ""),
    ("We distill a teacher into our model, which has", "", ""),
    ("We train a", "-layer teacher model", "teacher model"),
    ("It has", " layers in the vision encoder", "vision encoder"),
    ("It has", " layers with a teacher of its own", ""),
]


@pytest.mark.parametrize(("before", "after", "owner"), CLAUSES)
def test_clauses(before, after, owner):
    assert scope().clause(before, after) == owner


def test_a_section_about_a_part_holds_no_number_of_the_model():
    found = numbers(
        section("Vision Encoder", "It has 24 layers.\n\\subsection{Details}It has 16 heads.")
        + section("Decoder", "It has 12 layers.")
    )
    assert asserted(found) == {"n_layers": 12}
    assert found.mentions["n_heads"][0].vetoed == "of vision encoder"


def test_rows_of_other_models_are_not_its_own():
    body = table(
        "Variants of the model.", "Model & Layers & Hidden & Heads", "ViT-B & 12 & 768 & 12",
    )  # fmt: skip
    assert asserted(numbers(body)) == {}
    introduced = "\\begin{abstract}We introduce the Vision Transformer (ViT).\\end{abstract}"
    own = numbers(introduced + section("Method", body), "Images as Words")
    assert asserted(own) == {"n_layers": 12, "d_model": 768, "n_heads": 12}
