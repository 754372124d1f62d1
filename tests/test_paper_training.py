"""Training facts of a paper: what is stated is read, what is another's or only tried is not."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperkiln.papers.architecture import TRAINING, Value
from paperkiln.papers.document import Document, SourceFile
from paperkiln.papers.latex.reader import read_latex
from paperkiln.papers.names import own_names
from paperkiln.papers.scope import Scope
from paperkiln.papers.training.marks import marked, squeezed
from paperkiln.papers.training.training import read_training


def document(body: str, title: str = "A Small Language Model") -> Document:
    tex = (
        r"\documentclass{article}\title{" + title + r"}\begin{document}\maketitle"
        "\n" + body + "\n" + r"\end{document}"
    )
    return read_latex({"main.tex": SourceFile("main.tex", tex)}, "main.tex")


def read(body: str, title: str = "A Small Language Model") -> dict[str, Value]:
    paper = document(body, title)
    return read_training(paper, Scope(paper, own_names(paper)))


def asserted(body: str, title: str = "A Small Language Model") -> dict[str, object]:
    return {n: v.value for n, v in read(body, title).items() if v.verdict != "contested"}


def training(body: str) -> str:
    return r"\section{Training details}" + "\n" + body


def table(rows: str, columns: str = "ll", caption: str = "Training hyper-parameters.") -> str:
    return (
        training(r"\begin{table}\caption{" + caption + r"}\begin{tabular}{" + columns + "}")
        + rows
        + r"\end{tabular}\end{table}"
    )


ADAMW = {"optimizer": "adamw", "beta1": 0.9, "beta2": 0.95}

STATED = [
    # optimizers
    (r"We use AdamW with $\beta_1=0.9$, $\beta_2=0.95$.", ADAMW),
    (
        r"We train with AdamW ($\beta_1=0.9,\ \beta_2=0.95$, $\epsilon=10^{-8}$).",
        ADAMW | {"eps": 1e-8},
    ),
    (r"The model is trained with AdamW, $(\beta_1, \beta_2) = (0.9, 0.95)$.", ADAMW),
    (r"We use the AdamW optimizer with betas (0.9, 0.95).", ADAMW),
    (r"We optimize using AdamW with $\beta = (0.9, 0.95)$.", ADAMW),
    (r"We use AdamW with $\beta_1$ and $\beta_2$ set to 0.9 and 0.95.", ADAMW),
    (r"We use AdamW, $\beta_{1} = \beta_{2} = 0.95$.", ADAMW | {"beta1": 0.95}),
    (
        r"We use Adam \cite{k} with decoupled weight decay of 0.1.",
        {"optimizer": "adamw", "weight_decay": 0.1},
    ),
    (r"Training uses Adam with learning rate $10^{-3}$.", {"optimizer": "adam", "lr": 1e-3}),
    (
        r"We use SGD with a learning rate of 0.1 and weight decay of 5e-4.",
        {"optimizer": "sgd", "lr": 0.1, "weight_decay": 5e-4},
    ),
    (
        r"We train with the Muon optimizer and a peak learning rate of 0.02.",
        {"optimizer": "muon", "lr": 0.02},
    ),
    (r"We use the Lion optimizer with a learning rate of 1e-4.", {"optimizer": "lion", "lr": 1e-4}),
    (
        r"We use Adafactor with a constant learning rate of 0.001.",
        {"optimizer": "adafactor", "lr": 1e-3, "schedule": "constant"},
    ),
    (
        r"We use the LAMB optimizer with a learning rate of 0.00125.",
        {"optimizer": "lamb", "lr": 0.00125},
    ),
    # rates, as numbers are written
    (r"We use a peak learning rate of $3 \times 10^{-4}$.", {"lr": 3e-4}),
    (r"The learning rate is set to $6\cdot 10^{-4}$.", {"lr": 6e-4}),
    (r"We use a learning rate of 2 × 10⁻⁵.", {"lr": 2e-5}),
    (r"The maximum learning rate for the 7B model is set to $2.5 \times 10^{-4}$.", {"lr": 2.5e-4}),
    (r"We train with a 3e-4 learning rate.", {"lr": 3e-4}),
    (
        r"The learning rate is $\eta_{\max} = 3\times 10^{-4}$ and $\eta_{\min} = 3\times "
        r"10^{-5}$.",
        {"lr": 3e-4, "min_lr": 3e-5},
    ),
    # schedules
    (
        r"We use a peak learning rate of $3\times10^{-4}$ with linear warm-up over the first 2K "
        r"steps, "
        r"then cosine decay to 10\%.",
        {"lr": 3e-4, "warmup_steps": 2000, "schedule": "cosine", "min_lr": 3e-5},
    ),
    (
        r"The learning rate follows a linear warmup over 800 steps to $5 \times 10^{-4}$, then "
        r"cosine "
        r"decay to zero.",
        {"lr": 5e-4, "warmup_steps": 800, "schedule": "cosine", "min_lr": 0},
    ),
    (
        r"The learning rate is annealed with a cosine schedule from 6e-4 to 6e-5.",
        {"lr": 6e-4, "min_lr": 6e-5, "schedule": "cosine"},
    ),
    (
        r"The learning rate increases linearly during the first 8000 updates, then falls "
        r"with the inverse square root of the update.",
        {"warmup_steps": 8000, "schedule": "inverse_sqrt"},
    ),
    (
        r"We warm up the learning rate for 500 steps and decay it linearly afterwards.",
        {"warmup_steps": 500, "schedule": "linear"},
    ),
    (
        r"A linear learning rate schedule with 100 warmup steps is used.",
        {"warmup_steps": 100, "schedule": "linear"},
    ),
    (
        r"We use a WSD learning-rate scheduler with 2,000 warmup iterations.",
        {"warmup_steps": 2000, "schedule": "wsd"},
    ),
    (
        r"A constant learning rate of 1e-4 follows. Then the learning rate is lowered by cosine "
        r"decay.",
        {"lr": 1e-4, "schedule": "wsd"},
    ),
    (
        r"The initial learning rate of 0.1 is divided by 10 at 50\% of training. We use SGD.",
        {"lr": 0.1, "schedule": "step", "optimizer": "sgd"},
    ),
    (
        r"There is a linear LR warmup over the first 375 million tokens.",
        {"warmup_tokens": 375_000_000},
    ),
    (
        r"We use a learning rate of 1e-3 with 1\% warmup and train for 20,000 steps.",
        {"lr": 1e-3, "steps": 20_000, "warmup_steps": 200},
    ),
    # decay and clipping
    (
        r"We use a weight decay of $0.1$ and gradient clipping of 1.0.",
        {"weight_decay": 0.1, "clip": 1.0},
    ),
    (r"We clip the gradient norm at 1.0.", {"clip": 1.0}),
    (r"We clip the global norm of the gradient at 0.5.", {"clip": 0.5}),
    (r"Gradients are clipped to a maximum norm of 1.0.", {"clip": 1.0}),
    (r"We apply gradient clipping to unit norm.", {"clip": 1.0}),
    (r"The gradient clipping norm is set to 0.25.", {"clip": 0.25}),
    # batches
    (r"We train with a batch size of 4M tokens.", {"batch_tokens": 4_000_000}),
    (r"We use a global batch of 1024 sequences.", {"batch_sequences": 1024}),
    (r"We train with a batch size of 256.", {"batch_sequences": 256}),
    (r"We use a batch size of $2^{16}$ tokens.", {"batch_tokens": 65_536}),
    (r"Every batch holds about 32,000 tokens.", {"batch_tokens": 32_000}),
    (r"We use 65,536 tokens per optimizer step.", {"batch_tokens": 65_536}),
    (
        r"We train with a global batch of $4 \times 8 \times 1024 = 32{,}768$ tokens.",
        {"batch_tokens": 32_768},
    ),
    (
        r"We use a per-device batch size of 8 and an effective batch size of 512.",
        {"batch_sequences": 512},
    ),
    (r"The batch size is gradually increased from 256 to 1024.", {"batch_sequences": 1024}),
    # lengths
    (r"We train the base model for a total of 60,000 steps.", {"steps": 60_000}),
    (r"The model was trained for 1\,000\,000 steps.", {"steps": 1_000_000}),
    (r"Training runs for approximately 400K steps.", {"steps": 400_000}),
    (r"The maximum number of training iterations is 9000.", {"steps": 9000}),
    (r"We pre-train the model on 2.5T tokens.", {"tokens": 2_500_000_000_000}),
    (
        r"All models are trained on a subset of C4 \cite{c} for 26B tokens.",
        {"tokens": 26_000_000_000},
    ),
    (
        r"We train for 20K steps ($\approx$ 10B tokens).",
        {"steps": 20_000, "tokens": 10_000_000_000},
    ),
    # one breath, and lists
    (
        r"Pre-training: Adam, lr=$7\times10^{-4}$, 600-step warmup, linear decay, global batch 96. "
        r"SFT: AdamW (lr=$10^{-5}$, batch size 16).",
        {
            "optimizer": "adam",
            "lr": 7e-4,
            "warmup_steps": 600,
            "schedule": "linear",
            "batch_sequences": 96,
        },
    ),
    (
        r"Training uses:\begin{itemize}\item Optimizer: AdamW, LR $2\times10^{-4}$, cosine to "
        r"$2\times10^{-5}$"
        r"\item Warm-up: 3000 steps \item Weight decay: 0.2 \item Batch: 1M tokens"
        r"\item Duration: 90K steps on 64 GPUs\end{itemize}",
        {
            "optimizer": "adamw",
            "lr": 2e-4,
            "min_lr": 2e-5,
            "schedule": "cosine",
            "warmup_steps": 3000,
            "weight_decay": 0.2,
            "batch_tokens": 1_000_000,
            "steps": 90_000,
        },
    ),
    (
        "\\begin{verbatim}\nlearning_rate = 6e-4\nweight_decay = 0.1\ngrad_clip = "
        "1.0\nbatch_size = 64\n"
        "max_iters = 5000\n\\end{verbatim}",
        {"lr": 6e-4, "weight_decay": 0.1, "clip": 1.0, "batch_sequences": 64, "steps": 5000},
    ),
    # the first of several, by data set or size
    (r"We use learning rates of 2e-3 for small data and 7e-4 for large data.", {"lr": 2e-3}),
    (
        r"The base model is trained for 40,000 steps. The large model was trained for "
        r"90,000 steps.",
        {"steps": 40_000},
    ),
    (r"We swept the learning rate over \{1e-4, 3e-4, 1e-3\} and chose 3e-4.", {"lr": 3e-4}),
    (
        r"Following \citet{bert}, we use Adam with a learning rate of 1e-4.",
        {"optimizer": "adam", "lr": 1e-4},
    ),
]

IN_TABLES = [
    (
        r"Optimizer & AdamW ($\beta_1=0.9$, $\beta_2=0.95$)\\ Peak LR & $8\times10^{-4}$\\"
        r"Schedule & Cosine, linear warmup (700 steps)\\ Weight decay & 0.05\\ Gradient clipping "
        r"& 0.5\\"
        r"Batch size & 3M tokens\\",
        "ll",
        ADAMW
        | {
            "lr": 8e-4,
            "schedule": "cosine",
            "warmup_steps": 700,
            "weight_decay": 0.05,
            "clip": 0.5,
            "batch_tokens": 3_000_000,
        },
    ),
    (
        r"Learning rate & 3e-4\\ Batch size (tokens) & 4M\\ Training tokens & 5T\\ Warmup & "
        r"2,000\\",
        "ll",
        {"lr": 3e-4, "batch_tokens": 4_000_000, "tokens": 5_000_000_000_000, "warmup_steps": 2000},
    ),
    (
        r"$\beta_1, \beta_2$ & (0.9, 0.95)\\ Adam epsilon & $10^{-8}$\\ Min learning rate & 3e-5\\"
        r"Max LR & 3e-4\\ Training steps & 6,500\\",
        "ll",
        {"beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "min_lr": 3e-5, "lr": 3e-4, "steps": 6500},
    ),
    (
        r"Warmup ratio & 0.02 (60 steps)\\ Effective batch size & 48\\ Maximum training steps & "
        r"3,000\\",
        "ll",
        {"warmup_steps": 60, "batch_sequences": 48, "steps": 3000},
    ),
    (
        r"Learning rate & $10^{-3} \to 10^{-5}$ (cosine)\\ Duration & 200B tokens (80K steps)\\",
        "ll",
        {
            "lr": 1e-3,
            "min_lr": 1e-5,
            "schedule": "cosine",
            "tokens": 200_000_000_000,
            "steps": 80_000,
        },
    ),
    (
        r" & Pretrain & SFT\\ Optimizer & Adam & AdamW\\ Peak LR & 7e-4 & 1e-5\\ Grad clip & 0.5 "
        r"& 1.0\\",
        "lll",
        {"optimizer": "adam", "lr": 7e-4, "clip": 0.5},
    ),
    (
        r" & Stage 1 & Stage 2\\ Learning rate & 5e-4 & 5e-5\\ LR scheduler & Constant & Linear "
        r"decay\\"
        r"Weight decay & \multicolumn{2}{c}{0.2}\\",
        "lll",
        {"lr": 5e-4, "schedule": "constant", "weight_decay": 0.2},
    ),
    (
        r"size & width & learning rate & batch size & tokens (B)\\ 1B & 2048 & 6e-4 & 1M & 40\\"
        r"3B & 3072 & 4e-4 & 2M & 90\\",
        "lllll",
        {"lr": 6e-4, "batch_tokens": 1_000_000, "tokens": 40_000_000_000},
    ),
]

# (body under a heading, fields that must not be asserted)
NOT_STATED = [
    # swept, not chosen
    (r"\section{Training}We sweep the learning rate in \{1e-4, 3e-4, 1e-3\}.", "lr"),
    (r"\section{Training}Learning rates of 1e-5, 3e-5, and 1e-4 were tried.", "lr"),
    (r"\section{Training}We search over batch sizes of 16, 32, and 64.", "batch_sequences"),
    (r"\section{Training}The batch size is 16--32.", "batch_sequences"),
    # others' training
    (
        r"\section{Related work}BERT was trained on 3B tokens with Adam and a learning rate of "
        r"1e-4.",
        "tokens optimizer lr",
    ),
    (
        r"\section{Training}Baselines are trained with SGD and a learning rate of 0.1.",
        "optimizer lr",
    ),
    (r"\section{Training}LLaMA was trained on 1T tokens.", "tokens"),
    (r"\section{Training}Smith et al. (2021) train with a batch size of 512.", "batch_sequences"),
    (
        r"\section{Training the Reward Model}We use a learning rate of 1e-5 and a batch size of "
        r"64.",
        "lr batch_sequences",
    ),
    (r"\section{Vision Encoder Pre-Training}We use a batch size of 32,768.", "batch_sequences"),
    (
        r"\section{Introduction}TinyLlama models trained on many (3T) tokens are strong; Llama "
        r"was trained on 2T tokens.",
        "tokens",
    ),
    # later stages, where the paper pre-trains
    (
        r"\section{Pre-training}We train on web text.\section{Fine-tuning}We use a learning rate "
        r"of 2e-5.",
        "lr",
    ),
    (r"\section{Pre-training}We train on text.\section{RLHF}PPO is applied for 4K steps.", "steps"),
    (
        r"\section{Pre-training}Text.\section{Long Context Extension}The learning rate is 5e-6, "
        r"the batch "
        r"size is 128.",
        "lr batch_sequences",
    ),
    # hypothetical, compared, measured
    (
        r"\section{Evaluation protocol}Later work could use AdamW, batch size 512, learning rate "
        r"$10^{-3}$.",
        "optimizer lr batch_sequences",
    ),
    (r"\section{Training}Quality degraded when we used a batch size of 1024.", "batch_sequences"),
    (r"\section{Experiments}Latency is measured with a batch size of 1.", "batch_sequences"),
    (
        r"\section{Experiments}At inference, a batch size of 16 gives 900 tokens per second.",
        "batch_sequences",
    ),
    (r"\section{Training}We compare Adam with a learning rate of 1e-3 and SGD.", "lr optimizer"),
    # parts, milestones, other units
    (r"\section{Training}The tokenizer was trained on 50B tokens.", "tokens"),
    (
        r"\section{Training}The model starts from a checkpoint that was trained on 3T tokens.",
        "tokens",
    ),
    (
        r"\section{Training}The learning rate is constant until the model consumes 6T tokens.",
        "tokens",
    ),
    (r"\section{Training}We evaluate every 500 steps and save after 1,000 steps.", "steps"),
    (r"\section{Training}Data is drawn anew every 3,000 steps.", "steps"),
    (
        r"\section{Training}We use a micro-batch size of 8 and a batch size of 4 per GPU.",
        "batch_sequences",
    ),
    (r"\section{Training}Warmup lasts 5 epochs. We train for 300 epochs.", "warmup_steps steps"),
    (
        r"\section{Training}Each training batch is composed of three kinds of examples.",
        "batch_sequences",
    ),
    # other curves, other symbols, mentions
    (r"\section{Training}The masking rate follows a cosine schedule; Adam is used.", "schedule"),
    (r"\section{Training}The EMA decay follows a cosine schedule.", "schedule"),
    (r"\section{Method}We add sine and cosine functions of different frequencies.", "schedule"),
    (r"\section{Training}Label smoothing uses $\epsilon = 0.1$ with Adam.", "eps"),
    (r"\section{Training}The PPO clipping parameter is 0.2.", "clip"),
    (r"\section{Method}Optimizer states of AdamW are stored in BF16.", "optimizer"),
    (r"\section{Method}The Adam optimizer underlies deep learning.", "optimizer"),
    (r"\section{Method}Training for longer helps.", "steps tokens"),
    # a table of results or of data is no recipe
    (
        r"\section{Experiments}\begin{table}\caption{Throughput.}\begin{tabular}{lll}Hardware & "
        r"Batch size & "
        r"tok/s\\ A100 & 8 & 300\\ H100 & 24 & 700\\\end{tabular}\end{table}",
        "batch_sequences",
    ),
    (
        r"\section{Data}\begin{table}\caption{Composition.}\begin{tabular}{ll}Domain & Tokens "
        r"(B)\\ Web & 700"
        r"\\ Code & 200\\\end{tabular}\end{table}",
        "tokens",
    ),
    (
        r"\section{Training}\begin{table}\caption{Search space.}\begin{tabular}{ll}Learning rate "
        r"& 0.1, 0.01, "
        r"0.001\\ Batch size & 16, 32, 64\\\end{tabular}\end{table}",
        "lr batch_sequences",
    ),
    (
        r"\section{Training}\begin{table}\caption{Recommended hyper-parameters for practitioners.}"
        r"\begin{tabular}{ll}Optimizer & Muon\\ Learning rate & 0.02\\\end{tabular}\end{table}",
        "optimizer lr",
    ),
]


@pytest.mark.parametrize(
    ("text", "expected"), STATED, ids=lambda v: v[:40] if isinstance(v, str) else ""
)
def test_stated_in_prose(text: str, expected: dict[str, object]) -> None:
    assert asserted(training(text)) == pytest.approx(expected)


@pytest.mark.parametrize(("rows", "columns", "expected"), IN_TABLES, ids=range(len(IN_TABLES)))
def test_stated_in_tables(rows: str, columns: str, expected: dict[str, object]) -> None:
    assert asserted(table(rows, columns)) == pytest.approx(expected)


@pytest.mark.parametrize(("body", "fields"), NOT_STATED, ids=lambda v: v[-40:])
def test_not_asserted(body: str, fields: str) -> None:
    found = asserted(body)
    assert not found.keys() & set(fields.split()), found


def test_fine_tuning_alone_is_the_training_and_says_so() -> None:
    body = (
        r"\section{Fine-tuning}We fine-tune the model with AdamW, a learning rate of 2e-5 and "
        r"a batch size of 64."
    )
    values = read(body)
    assert {n: v.value for n, v in values.items()} == {
        "optimizer": "adamw", "lr": 2e-5, "batch_sequences": 64,
    }  # fmt: skip
    assert {v.note for v in values.values()} == {"fine-tuning"}


def test_pre_training_wins_over_fine_tuning_in_any_order() -> None:
    body = training(
        r"The fine-tuning learning rate is 2e-5. We pre-trained for 50k steps at a learning rate "
        r"of 3e-4."
    )
    assert asserted(body) == {"lr": 3e-4, "steps": 50_000}


def test_the_second_size_is_the_runner_up() -> None:
    value = read(
        training(r"Prose is read with a batch size of 64. Code is read with a batch size of 32.")
    )
    runner_up = value["batch_sequences"].runner_up
    assert value["batch_sequences"].value == 64
    assert runner_up is not None
    assert runner_up.value == 32


def test_two_places_that_disagree_are_contested() -> None:
    body = (
        r"\section{Training}We use a batch size of 256.\section{Training setup}We use a batch "
        r"size of 512."
    )
    value = read(body)["batch_sequences"]
    assert value.verdict == "contested"
    assert value.runner_up is not None
    assert {value.value, value.runner_up.value} == {256, 512}


def test_several_trainings_without_a_main_one_are_contested() -> None:
    body = (
        r"\section{Experiments}\subsection{Games}We use Adam with a learning rate of 1e-3, "
        r"$\beta_1=0.9$ and a "
        r"batch size of 512.\subsection{Images}We use SGD with a learning rate of 0.1, weight "
        r"decay of 5e-5 and "
        r"a batch size of 128."
    )
    assert asserted(body) == {}


def test_derived_values_show_their_formula_and_both_quotes() -> None:
    value = read(training(r"We use a peak learning rate of 3e-4 and cosine decay to 10\% of it."))[
        "min_lr"
    ]
    assert (value.value, value.verdict) == (pytest.approx(3e-5), "derived")
    assert value.note == "0.1 × 0.0003 = 3e-05"
    assert len(value.evidence) == 2


def test_the_groups_of_one_rate_are_contested() -> None:
    body = training(
        "The encoder learning rate is 5e-4 and the decoder learning rate is 1e-3 with Adam."
    )
    assert read(body)["lr"].verdict == "contested"


def test_what_the_title_is_about_is_the_main_training() -> None:
    body = r"\section{Pre-training}Text.\section{Setup}Fine-tuning uses a learning rate of 2e-5."
    assert "lr" not in asserted(body)
    assert asserted(body, "Packing for Fine-Tuning") == {"lr": 2e-5}


@pytest.mark.parametrize("text", [text for text, _ in STATED])
def test_quotes_are_verbatim_and_hold_the_number(text: str) -> None:
    paper = document(training(text))
    for value in read_training(paper, Scope(paper, own_names(paper))).values():
        assert value.verdict in ("used", "contested", "derived")
        assert value.cues
        for quote in value.evidence:
            assert paper.files[quote.file].text[quote.start : quote.end] == quote.quote
            assert quote.section == "Training details"


def test_fields_are_those_of_the_architecture() -> None:
    for text, expected in STATED:
        assert set(expected) <= {*TRAINING, "min_lr", "eps"}, text


@given(st.text(alphabet="0123456789. ×^-−10⁻⁵e,KMB%abβ_\u2009\ue000\ue001()", max_size=80))
def test_marks_keep_every_offset(string: str) -> None:
    shape, numbers = marked(string)
    assert len(shape) == len(string)
    assert all(shape[start] == "\ue000" for start in numbers)


@given(st.text(alphabet="a 1.,;)_\t\n\u2009\u00a0", max_size=60))
def test_squeezing_leads_back_to_every_character(string: str) -> None:
    short, origin = squeezed(string)
    for i, character in enumerate(short):
        if not character.isspace():
            assert string[origin(i)] == character


_WORDS = st.sampled_from(
    r"We use AdamW with a peak learning rate of 3e-4 $10^{-4}$ \{ \} 2,000 warmup steps and "
    r"cosine decay to 10\% "
    r"batch size 4M tokens $\beta_1$ = 0.9 ( ) weight decay 0.1 clip gradients fine-tuning "
    r"pre-training: -- & \\ "
    r"\section{Training} \begin{tabular}{ll} \end{tabular} \item for from over the first epochs "
    r"sweep 99999999999".split()
)


@settings(max_examples=60, deadline=None)
@given(st.lists(_WORDS, max_size=60))
def test_never_raises(words: list[str]) -> None:
    read(" ".join(words))


BAIT = [
    "We use a learning rate of 3e-4 with AdamW, batch size 256, weight decay 0.1, clip 1.0. ",
    "warm up over the first increase ramp ",
    "learning rate (((((((((((( ",
    "trained for a total of about the same 10 20 30 40 steps ",
    "decay from decay from anneal to to to ",
    "batch batch size of of of 8 × 4 × ",
    "β_1 β_2 = (0.9, 0.95, ",
    "pre-training fine-tuning stage 2 ",
]


@pytest.mark.parametrize("bait", BAIT, ids=range(len(BAIT)))
def test_time_is_bounded(bait: str) -> None:
    paper = document(training(bait * (1_000_000 // len(bait))))
    scope = Scope(paper, own_names(paper))
    start = time.process_time()
    read_training(paper, scope)
    assert time.process_time() - start < 60
