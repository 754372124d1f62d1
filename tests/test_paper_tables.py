"""Numbers in tables: fields down the side or along the top, one model or many."""

import pytest
from mini_paper import asserted, numbers, section, table

# A table and every value that it asserts.
TABLES = [
    # A part's labels are the model's where no others are; a later part is something else.
    (table("Components.", "& Base & Large", "Denoiser blocks & 12 & 32",
           "Denoiser hidden width & 768 & 1280", "Attention heads & 12 & 16",
           "Prompt Transformer blocks & 6 & 6", "Prompt Transformer hidden width & 512 & 512"),
     {"n_layers": 12, "d_model": 768, "n_heads": 12}),
    # Groups of a header are networks of their own; where all are parts, the first is the model.
    (table("Architecture of the models.",
           r"\multirow{2}{*}{Model} & Embedding & \multicolumn{3}{c}{Image Encoder} & "
           r"\multicolumn{3}{c}{Text Encoder}",
           r" & dimension & \#layers & width & \#heads & \#layers & width & \#heads",
           "Base & 256 & 12 & 768 & 12 & 10 & 512 & 8"),
     {"n_layers": 12, "d_model": 768, "n_heads": 12}),
    (table("Arms of the study.", "Arm & Shape", "Ours & 20L $d$512, no FFN"),
     {"n_layers": 20, "d_model": 512}),
    (table("Training hyperparameters.", "Setting & Value", "GPU hours (h) & 6", "Batch & 64"), {}),
    (table(
        "The models and their shapes.",
        r"Model Name & $n_{\text{params}}$ & $n_{\text{layers}}$ & $d_{\text{model}}$ & "
        r"$n_{\text{heads}}$ & $d_{\text{head}}$ & Batch Size & Learning Rate",
        r"Small & 125M & 12 & 768 & 12 & 64 & 0.5M & $6.0\times10^{-4}$",
        r"Medium & 350M & 24 & 1024 & 16 & 64 & 0.5M & $3.0\times10^{-4}$",
        r"Large & 760M & 24 & 1536 & 16 & 96 & 0.5M & $2.5\times10^{-4}$",
    ), {"n_parameters": 125_000_000, "n_layers": 12, "d_model": 768, "n_heads": 12,
         "head_dim": 64}),
    (table(
        "Variants of the model.", "Model & Layers & Hidden size $D$ & MLP size & Heads & Params",
        "ViT-Base & 12 & 768 & 3072 & 12 & 86M", "ViT-Large & 24 & 1024 & 4096 & 16 & 307M",
        "ViT-Huge & 32 & 1280 & 5120 & 16 & 632M",
    ), {}),
    (table(
        "Shapes and optimization of the models.",
        "params & dimension & $n$ heads & $n$ layers & learning rate & batch size & $n$ tokens",
        "6.7B & 4096 & 32 & 32 & $3.0e^{-4}$ & 4M & 1.0T",
        "13.0B & 5120 & 40 & 40 & $3.0e^{-4}$ & 4M & 1.0T",
    ), {"n_parameters": 6_700_000_000, "d_model": 4096, "n_heads": 32, "n_layers": 32}),
    (table(
        "Model architecture.", r"\textbf{Parameter} & \textbf{Value}", r"\texttt{dim} & 4096",
        r"\texttt{n\_layers} & 32", r"\texttt{head\_dim} & 128", r"\texttt{hidden\_dim} & 14336",
        r"\texttt{n\_heads} & 32", r"\texttt{n\_kv\_heads} & 8", r"\texttt{window\_size} & 4096",
        r"\texttt{context\_len} & 8192", r"\texttt{vocab\_size} & 32000",
    ), {"d_model": 4096, "n_layers": 32, "head_dim": 128, "d_ff": 14336, "n_heads": 32,
         "n_kv_heads": 8, "window": 4096, "context_length": 8192, "vocab_size": 32000}),
    (table(
        "Model architecture.", "Parameter & Value", r"\texttt{dim} & 4096",
        r"\texttt{n\_layers} & 32", r"\texttt{head\_dim} & 128", r"\texttt{hidden\_dim} & 14336",
        r"\texttt{n\_heads} & 32", r"\texttt{n\_kv\_heads} & 8",
        r"\texttt{context\_len} & 32768", r"\texttt{vocab\_size} & 32000",
        r"\texttt{num\_experts} & 8", r"\texttt{top\_k\_experts} & 2",
    ), {"d_model": 4096, "n_layers": 32, "head_dim": 128, "d_ff": 14336, "n_heads": 32,
         "n_kv_heads": 8, "context_length": 32768, "vocab_size": 32000, "n_experts": 8,
         "n_experts_active": 2}),
    (table(
        "The family of models.", "Model & Layers & Width & Heads & Parameters",
        "Tiny & 4 & 384 & 6 & 39M", "Base & 6 & 512 & 8 & 74M", "Small & 12 & 768 & 12 & 244M",
        "Medium & 24 & 1024 & 16 & 769M", "Large & 32 & 1280 & 20 & 1550M",
    ), {"n_layers": 6, "d_model": 512, "n_heads": 8, "n_parameters": 74_000_000}),
    (table(
        "Model architecture details.",
        r"Model & Layers & \# of Heads & $d_{\mathrm{model}}$ & "
        r"\# of Parameters (in billions) & Batch Size",
        r"8B & 32 & 16 & 4096 & 8.63 & 256 $\to$ 512",
        r"62B & 64 & 32 & 8192 & 62.50 & 512 $\to$ 1024",
        r"540B & 118 & 48 & 18432 & 540.35 & 512 $\to$ 1024 $\to$ 2048",
    ), {"n_layers": 32, "n_heads": 16, "d_model": 4096, "n_parameters": 8_630_000_000}),
    (table(
        "Model architecture details.", r"Model & \#L & \#H & $d_{\text{model}}$ & LR & Batch",
        "125M & 12 & 12 & 768 & $6.0e{-4}$ & 0.5M", "350M & 24 & 16 & 1024 & $3.0e{-4}$ & 0.5M",
    ), {"n_layers": 12, "n_heads": 12, "d_model": 768}),
    (table(
        "The suite of models.",
        "Model Size & Non-Embedding Params & Layers & Model Dim & Heads & Learning Rate & "
        "Equivalent Models",
        r"70 M & 18,915,328 & 6 & 512 & 8 & $10.0 \times 10^{-4}$ & ---",
        r"160 M & 85,056,000 & 12 & 768 & 12 & $6.0 \times 10^{-4}$ & GPT-Neo 125M, OPT-125M",
    ), {"n_layers": 6, "d_model": 512, "n_heads": 8, "n_parameters": 70_000_000}),
    (table(
        "Architecture details.",
        r"\textbf{Model} & \textbf{Layers} & \textbf{Number Heads} & \textbf{Key/Value Size} & "
        r"\textbf{d$_{\text{model}}$} & \textbf{Max LR} & \textbf{Batch Size}",
        r"Gopher 280B & 80 & 128 & 128 & 16,384 & $4 \times 10^{-5}$ & 3M $\to$ 6M",
        r"Ours 70B & 80 & 64 & 128 & 8,192 & $1 \times 10^{-4}$ & 1.5M $\to$ 3M",
    ), {"n_layers": 80, "n_heads": 64, "head_dim": 128, "d_model": 8192}),
    (table(
        "Scaling law model sizes.",
        r"Params & \texttt{n\_layers} & \texttt{d\_model} & "
        r"\texttt{n\_heads} / \texttt{d\_head} & Training steps & Learning Rate & Batch Size & "
        r"Tokens",
        "125M & 12 & 768 & 12 / 64 & 4800 & 6e-4 & 0.5M tokens & 2.5B",
        "350M & 24 & 1024 & 16 / 64 & 13500 & 3e-4 & 0.5M tokens & 7B",
    ), {"n_parameters": 125_000_000, "n_layers": 12, "d_model": 768, "n_heads": 12,
         "head_dim": 64}),
    (table(
        "Model configurations.",
        "Model & Layers & Model Dimension & Parameters & FLOP per token",
        r"169M & 12 & 768 & $1.693 \times 10^{8}$ & $2.613 \times 10^{8}$",
        r"430M & 24 & 1024 & $4.304 \times 10^{8}$ & $7.573 \times 10^{8}$",
    ), {"n_layers": 12, "d_model": 768, "n_parameters": 169_300_000}),
    (table(
        "Hyperparameters of our models.", "& Small & Base & Large", "Layers & 6 & 12 & 24",
        "Hidden size & 512 & 768 & 1024", "FFN size & 2048 & 3072 & 4096",
        "Attention heads & 8 & 12 & 16", r"Vocabulary & \multicolumn{3}{c}{32{,}000}",
        r"Context length & \multicolumn{3}{c}{2048}",
    ), {"n_layers": 12, "d_model": 768, "d_ff": 3072, "n_heads": 12, "vocab_size": 32000,
         "context_length": 2048}),
    (table(
        "Model parameters.", "Parameters & 2B & 7B", r"d\_model & 2048 & 3072",
        "Layers & 18 & 28", "Feedforward hidden dims & 32768 & 49152", "Num heads & 8 & 16",
        "Num KV heads & 1 & 16", "Head size & 256 & 256", "Vocab size & 256128 & 256128",
    ), {"n_parameters": 2_000_000_000, "d_model": 2048, "n_layers": 18, "d_ff": 32768,
         "n_heads": 8, "n_kv_heads": 1, "head_dim": 256, "vocab_size": 256128}),
    (table(
        "Model architecture of the dense models.",
        "Models & Layers & Heads (Q / KV) & Tie Embedding & Context Length",
        "0.6B & 28 & 16 / 8 & Yes & 32K", "1.7B & 28 & 16 / 8 & Yes & 32K",
    ), {"n_layers": 28, "n_heads": 16, "n_kv_heads": 8, "context_length": 32768}),
    (table(
        "Architecture of the MoE models.",
        r"Models & Layers & Heads (Q / KV) & \# Experts (Total / Activated) & Context Length",
        "30B-A3B & 48 & 32 / 4 & 128 / 8 & 128K",
    ), {"n_layers": 48, "n_heads": 32, "n_kv_heads": 4, "n_experts": 128, "n_experts_active": 8,
         "context_length": 131072}),
    (table(
        "Main hyperparameters.", "& 8B & 70B & 405B", "Layers & 32 & 80 & 126",
        "Model Dimension & 4,096 & 8,192 & 16,384", "FFN Dimension & 14,336 & 28,672 & 53,248",
        "Attention Heads & 32 & 64 & 128", "Key/Value Heads & 8 & 8 & 8",
        r"Peak Learning Rate & $3\times10^{-4}$ & $1.5\times10^{-4}$ & $8\times10^{-5}$",
        r"Activation Function & \multicolumn{3}{c}{SwiGLU}",
        r"Vocabulary Size & \multicolumn{3}{c}{128,000}",
        r"Positional Embeddings & \multicolumn{3}{c}{RoPE ($\theta = 500,000$)}",
    ), {"rope_theta": 500_000, "n_layers": 32, "d_model": 4096, "d_ff": 14336, "n_heads": 32,
         "n_kv_heads": 8, "vocab_size": 128000}),
    (table(
        "Variations of the base model, which has the values that are left out.",
        r"& $N$ & $d_{\text{model}}$ & $d_{\text{ff}}$ & $h$ & $d_k$ & $d_v$ & $P_{drop}$",
        "base & 6 & 512 & 2048 & 8 & 64 & 64 & 0.1",
        r"\multirow{2}{*}{(A)} & & & & 1 & 512 & 512 &", "& & & & 4 & 128 & 128 &",
    ), {"d_model": 512, "d_ff": 2048, "n_heads": 8, "head_dim": 64, "dropout": 0.1}),
    (table(
        "Hyperparameters of the model.", r"\textbf{Hyperparameter} & \textbf{Value}",
        "Number of layers & $3$", "Number of attention heads & $1$",
        "Embedding dimension & $128$", "Nonlinearity function & ReLU", "Batch size & $64$",
        "Context length $K$ & $20$ HalfCheetah, Hopper, Walker", "& $5$ Reacher",
        "Dropout & $0.1$", "Learning rate & $10^{-4}$",
    ), {"n_layers": 3, "n_heads": 1, "d_model": 128, "context_length": 20, "dropout": 0.1}),
    (table(
        "Architecture.",
        "Layers & Hidden size & Heads & FF size & Max. sequence length & Dropout",
        "8 & 512 & 8 & 1024 & 2048 & 0.1",
    ), {"n_layers": 8, "d_model": 512, "n_heads": 8, "d_ff": 1024, "context_length": 2048,
         "dropout": 0.1}),
    (table(
        "Hyperparameters.", r"\# Params & \# Layers & Embed dim & Attention heads",
        "8M & 6 & 320 & 20", "35M & 12 & 480 & 20", "150M & 30 & 640 & 20",
    ), {"n_parameters": 8_000_000, "n_layers": 6, "d_model": 320, "n_heads": 20}),
    (table(
        "Model hyper-parameters.", "Model & S & M & L", "Num Params (M) & 10.3 & 30.7 & 118.8",
        "Encoder Layers & 16 & 16 & 17", "Encoder Dim & 144 & 256 & 512",
        "Attention Heads & 4 & 4 & 8",
    ), {"n_parameters": 10_300_000, "n_layers": 16, "d_model": 144, "n_heads": 4}),
    (table(
        "Default hyper-parameters.", "Parameter & Value", "Encoder layers & 3",
        "Number of heads $H$ & 16", "Model dimension $D$ & 128",
        "Feed-forward dimension $F$ & 256", "Dropout rate & 0.2", "Look-back window $L$ & 336",
    ), {"n_layers": 3, "n_heads": 16, "d_model": 128, "d_ff": 256, "dropout": 0.2}),
    (table(
        "Configuration of the models compared.", "Model & Layers & Hidden & Heads & FFN",
        "BERT-base & 12 & 768 & 12 & 3072", "RoBERTa-large & 24 & 1024 & 16 & 4096",
        "Ours & 10 & 640 & 10 & 2560",
    ), {"n_layers": 10, "d_model": 640, "n_heads": 10, "d_ff": 2560}),
    (table(
        "Model configurations.", "Family & Size & Layers & Hidden & Heads",
        r"\multirow{2}{*}{Dense} & 100M & 12 & 512 & 8", "& 400M & 24 & 1024 & 16",
        r"\multirow{2}{*}{Sparse} & 1B & 12 & 512 & 8", "& 4B & 24 & 1024 & 16",
    ), {"n_parameters": 100_000_000, "n_layers": 12, "d_model": 512, "n_heads": 8}),
    (table(
        "Results on the test set.", "Model & Params & PPL & Accuracy",
        "Baseline & 110M & 21.2 & 71.2", "Ours & 120M & 19.8 & 73.0",
    ), {}),
    (table(
        "Architecture of teacher and student.", "& Teacher & Student", "Layers & 24 & 6",
        "Hidden size & 1024 & 384", "Heads & 16 & 12",
    ), {"n_layers": 6, "d_model": 384, "n_heads": 12}),
    (table(
        "Architecture.", "Component & Parameter & Value",
        r"\multirow{2}{*}{Vision encoder} & Layers & 24", "& Hidden size & 1024",
        r"\multirow{3}{*}{Language model} & Layers & 32", "& Hidden size & 4096", "& Heads & 32",
    ), {"n_layers": 32, "d_model": 4096, "n_heads": 32}),
    (table(
        "Model sizes.", r"Params (M) & Layers & $d_\text{model}$ & Heads & Context (K)",
        "124 & 12 & 768 & 12 & 1",
    ), {"n_parameters": 124_000_000, "n_layers": 12, "d_model": 768, "n_heads": 12,
         "context_length": 1024}),
    (table(
        "Model configurations.",
        r"Params & \#Layers & Hidden Size & \#Attn Heads & \#Shared Experts & "
        r"\#Routed Experts & Relative Expert Size & Sequence Length",
        "2.0B & 9 & 1280 & 10 & 1 & 63 (7 activated) & 0.25 & 2048",
        "16.4B & 28 & 2048 & 16 & 2 & 64 (6 activated) & 0.25 & 4096",
    ), {"n_parameters": 2_000_000_000, "n_layers": 9, "d_model": 1280, "n_heads": 10,
         "n_experts_shared": 1, "n_experts": 63, "context_length": 2048}),
    (table(
        "Model configuration.", "Hyperparameter & Value", r"$d_{\text{model}}$ & 512",
        r"$d_{\text{ff}}$ & $4 \times d_{\text{model}}$", "Layers & 8", "Heads & 8",
    ), {"d_model": 512, "d_ff": 2048, "n_layers": 8, "n_heads": 8}),
    (table(
        "Hyperparameters.", "Layers & 6 & Heads & 8", "Hidden size & 512 & FFN size & 2048",
        "Vocabulary & 16,000 & Max length & 256",
    ), {"n_layers": 6, "n_heads": 8, "d_model": 512, "d_ff": 2048, "vocab_size": 16000,
         "context_length": 256}),
    (table(
        "Architecture variants.", "Model & Layers & Channels & Heads",
        "T & 2, 2, 6, 2 & 96 & 3, 6, 12, 24",
    ), {"d_model": 96}),
    (table(
        "Configuration.", "Key & Value", r"\texttt{hidden\_size} & 576",
        r"\texttt{intermediate\_size} & 1536", r"\texttt{num\_hidden\_layers} & 30",
        r"\texttt{num\_attention\_heads} & 9", r"\texttt{num\_key\_value\_heads} & 3",
        r"\texttt{max\_position\_embeddings} & 2048", r"\texttt{rope\_theta} & 10000.0",
        r"\texttt{vocab\_size} & 49152",
    ), {"d_model": 576, "d_ff": 1536, "n_layers": 30, "n_heads": 9, "n_kv_heads": 3,
         "context_length": 2048, "rope_theta": 10000, "vocab_size": 49152}),
    (table(
        "Model variants.",
        r"Model & Parameters & \# layers & $d_{\text{model}}$ & $d_{\text{ff}}$ & "
        r"$d_{\text{kv}}$ & \# heads",
        "Small & 60M & 6 & 512 & 2048 & 64 & 8", "Base & 220M & 12 & 768 & 3072 & 64 & 12",
        "3B & 3B & 24 & 1024 & 16384 & 128 & 32",
    ), {"n_parameters": 220_000_000, "n_layers": 12, "d_model": 768, "d_ff": 3072,
         "head_dim": 64, "n_heads": 12}),
    (table(
        "Model design.",
        "Model & Parameters & $d_{model}$ & $FFN_{GEGLU}$ & $d_{ff}$ & $d_{kv}$ & "
        "Num. Heads & Num. Layers & Num. Experts",
        "Base & 7B & 768 & & 2048 & 64 & 12 & 12 & 128",
    ), {"n_parameters": 7_000_000_000, "d_model": 768, "d_ff": 2048, "head_dim": 64,
         "n_heads": 12, "n_layers": 12, "n_experts": 128}),
    (section("Experiments", table(
        "Hyperparameters used for training.", "Hyperparameter & Value", "Optimizer & AdamW",
        "Learning rate & 3e-4", "Batch size & 64", "Layers & 12", "Hidden dim & 768",
        "Heads & 12", "Top-k & 50", "Max length & 128",
    )), {"n_layers": 12, "d_model": 768, "n_heads": 12, "context_length": 128}),
    (section("Experiments", table(
        "Ablation on depth.", "Layers & Accuracy", "2 & 70.1", "4 & 72.0", "8 & 73.5",
    )), {}),
    (section("Ablations", table(
        "Ablation on width.", "Hidden size & Heads & Loss", "128 & 2 & 3.1", "256 & 4 & 2.9",
        "512 & 8 & 2.8",
    )), {}),
    (section("Experiments", table(
        "Comparison with prior work.", "Model & Layers & Hidden & BLEU",
        "Transformer-base & 6 & 512 & 27.3", "ConvS2S & 15 & 512 & 26.4",
        "Ours & 6 & 512 & 28.0",
    )), {"n_layers": 6, "d_model": 512}),
    (section("Model", table(
        "Our configuration.", r"\multicolumn{2}{c}{Encoder}", "Layers & 12", "Hidden size & 768",
        r"\multicolumn{2}{c}{Vocoder}", "Layers & 30", "Hidden size & 64",
    )), {"n_layers": 12, "d_model": 768}),
    (section("Model", table(
        "Configurations",
        r"\multirow{2}{*}{Model} & \multicolumn{3}{c}{Architecture} & \multirow{2}{*}{Params}",
        "& Layers & $d_{model}$ & Heads & ", "Ours-S & 6 & 384 & 6 & 22M",
        "Ours-B & 12 & 768 & 12 & 86M",
    )), {"n_layers": 6, "d_model": 384, "n_heads": 6, "n_parameters": 22_000_000}),
    (section("Model", table(
        "Model hyperparameters ($V$: vocabulary, $L$: layers, $d$: width, $h$: heads).",
        "$V$ & $L$ & $d$ & $h$ & $d_{ff}$", "32k & 12 & 768 & 12 & 3072",
    )), {"vocab_size": 32000, "n_layers": 12, "d_model": 768, "n_heads": 12, "d_ff": 3072}),
    (section("Model", table(
        "Model card.", "Architecture & Decoder-only Transformer", "Parameters & 1.3B",
        "Layers & 24", "Hidden size & 2048", "Attention & GQA (16 query heads, 4 KV heads)",
        "Vocabulary & 50k BPE", "Context & 2k tokens",
    )), {"n_parameters": 1_300_000_000, "n_layers": 24, "d_model": 2048, "vocab_size": 50000,
         "context_length": 2048, "n_heads": 16, "n_kv_heads": 4}),
    (section("Setup", table(
        "Data sets.", "Dataset & Length & Dim & Size", "ETTh1 & 17420 & 7 & 10M",
        "Weather & 52696 & 21 & 20M",
    )), {}),
    (section("Setup", table(
        "Dataset statistics", "Corpus & Vocab size & Tokens", "WikiText-103 & 267,735 & 103M",
        "PTB & 10,000 & 1M",
    )), {}),
    (section("Results", table(
        "Inference latency.", "Sequence length & Latency (ms) & Memory", "512 & 10 & 1.1",
        "1024 & 21 & 2.2", "2048 & 45 & 4.1",
    )), {}),
    (section("Results", table(
        "Long-range results.", "Model & Context length & Accuracy", "Ours & 4096 & 88.0",
        "Ours & 16384 & 86.1",
    )), {}),
    (section("Appendix: hyperparameters", table(
        "Hyperparameters of all experiments.", "& MNIST & CIFAR & Text", "Layers & 2 & 6 & 12",
        "Heads & 2 & 4 & 8", "Width & 64 & 128 & 512",
    )), {"n_layers": 2, "n_heads": 2, "d_model": 64}),
    (section("Model", table(
        "Architecture of our three sizes.", "Size & XS & S & M", "Blocks & 6 & 12 & 24",
        "Channels & 192 & 384 & 768", "Heads & 3 & 6 & 12", "MLP ratio & 4 & 4 & 4",
    )), {"n_layers": 6, "d_model": 192, "n_heads": 3}),
    (section("Efficiency", table(
        "Cost.", "Model & Params (M) & FLOPs (G) & Layers", "ViT-S & 22 & 4.6 & 12",
        "Ours & 21 & 4.1 & 12",
    )), {"n_parameters": 21_000_000, "n_layers": 12}),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), TABLES)
def test_what_a_table_states(body, expected):
    assert asserted(numbers(body)) == expected
