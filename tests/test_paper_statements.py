"""Numbers in prose: what a sentence states of the paper's own model, and what it does not."""

import pytest
from mini_paper import asserted, numbers

# A text of the model section and every value that it asserts.
STATED = [
    ("A single LM head has 170M parameters.", {}),
    ("Our model is a decoder-only transformer with 12 layers, 12 attention heads and a "
     "hidden size of 768.",
     {"n_layers": 12, "n_heads": 12, "d_model": 768}),
    ("We use $L=12$, $H=768$ and $A=12$, where $L$ is the number of layers, $H$ the hidden "
     "size and $A$ the number of self-attention heads.",
     {"n_layers": 12, "d_model": 768, "n_heads": 12}),
    ("Write the number of layers as $L$, the hidden size as $H$ and the number of heads as "
     "$A$. There are two sizes: \\textbf{BASE} ($L$=10, $H$=640, $A$=10, Total "
     "Parameters=80M) and \\textbf{LARGE} ($L$=20, $H$=960, $A$=15, Total Parameters=250M).",
     {"n_layers": 10, "d_model": 640, "n_heads": 10, "n_parameters": 80_000_000}),
    ("A stack of $N = 6$ equal layers makes up the encoder, and each yields outputs of "
     "dimension $d_{\\text{model}} = 384$. There are $h = 6$ parallel heads with $d_k = d_v "
     "= d_{\\text{model}}/h = 64$. Between them an inner-layer of dimensionality $d_{ff} = "
     "1536$ is applied.",
     {"n_layers": 6, "d_model": 384, "n_heads": 6, "head_dim": 64, "d_ff": 1536}),
    ("Each layer has a feed-forward network of four times the model width; the width is 512.",
     {"d_model": 512}),
    ("We set $d_{\\mathrm{ff}} = 4 d_{\\mathrm{model}}$ with $d_{\\mathrm{model}} = 256$.",
     {"d_model": 256, "d_ff": 1024}),
    ("We set $d_{ff} = 4 \\cdot d_{model}$. We use $d_{model} = 320$ everywhere.",
     {"d_model": 320, "d_ff": 1280}),
    ("\\newcommand{\\dmodel}{d_{\\text{model}}} The feed-forward dimension is $4\\dmodel$ "
     "and $\\dmodel = 640$.",
     {"d_model": 640, "d_ff": 2560}),
    ("We set the SwiGLU hidden dimension to $\\frac{8}{3} d$ where $d = 768$ is the model "
     "dimension.",
     {"d_model": 768, "d_ff": 2048}),
    ("The vocabulary has $2^{15}$ tokens and sequences have length 1024.",
     {"vocab_size": 32768, "context_length": 1024}),
    ("We use a vocabulary of 151{,}936 tokens and a context length of 32K.",
     {"vocab_size": 151936, "context_length": 32768}),
    ("The tokenizer is a BPE with a vocabulary size of 50\\,257.",
     {"vocab_size": 50257}),
    ("We train a byte-level BPE tokenizer with a vocabulary of 128k.",
     {"vocab_size": 128000}),
    ("We use a 49,152-token vocabulary and a maximum sequence length of 2,048 tokens.",
     {"vocab_size": 49152, "context_length": 2048}),
    ("Our eight-layer, 512-hidden-dimension transformer has four attention heads.",
     {"n_layers": 8, "d_model": 512, "n_heads": 4}),
    ("The model has twenty-four layers, sixteen heads and a width of 1024.",
     {"n_layers": 24, "n_heads": 16, "d_model": 1024}),
    ("It is a 6-layer transformer with 8 heads, model dimension 512 and feed-forward "
     "dimension 2048, with dropout 0.1.",
     {"n_layers": 6, "n_heads": 8, "d_model": 512, "d_ff": 2048, "dropout": 0.1}),
    ("The number of layers, hidden size and number of heads are 12, 768 and 12, respectively.",
     {"n_layers": 12, "d_model": 768, "n_heads": 12}),
    ("We use grouped-query attention with 32 query heads and 8 key-value heads of dimension "
     "128.",
     {"n_heads": 32, "n_kv_heads": 8, "head_dim": 128}),
    ("We use 32 attention heads with 8 KV heads (GQA) and a head dimension of 128.",
     {"n_heads": 32, "n_kv_heads": 8, "head_dim": 128}),
    ("The model uses multi-query attention, with 16 query heads that share a single "
     "key-value head.",
     {"n_heads": 16, "n_kv_heads": 1}),
    ("We use a sliding window of 4096 tokens, and RoPE with base 10,000.",
     {"window": 4096, "rope_theta": 10000}),
    ("We increase the RoPE base frequency $\\theta$ to 500,000.",
     {"rope_theta": 500000}),
    ("RoPE uses $\\theta = 10^6$ and head dimension $d_h = 64$.",
     {"rope_theta": 1_000_000, "head_dim": 64}),
    ("The feed-forward layers have an inner dimension of 3072.",
     {"d_ff": 3072}),
    ("We use an MLP hidden dimension of 11008.",
     {"d_ff": 11008}),
    ("The intermediate size is 14{,}336.",
     {"d_ff": 14336}),
    ("Each of the 32 layers has 64 routed experts of which 6 are activated per token, and 2 "
     "shared experts.",
     {"n_layers": 32, "n_experts": 64, "n_experts_active": 6, "n_experts_shared": 2}),
    ("An MoE layer has 1 shared expert and 96 routed experts; the intermediate dimension of "
     "each expert is 1408. Out of the routed ones, 6 experts are activated for each token.",
     {"n_experts": 96, "n_experts_shared": 1, "n_experts_active": 6, "expert_d_ff": 1408}),
    ("Every layer has 8 experts with top-2 routing.",
     {"n_experts": 8, "n_experts_active": 2}),
    ("The router picks the top-2 of 8 experts for every token.",
     {"n_experts": 8, "n_experts_active": 2}),
    ("We set the context window to 8192 tokens.",
     {"context_length": 8192}),
    ("The model is trained on sequences of 2048 tokens.",
     {"context_length": 2048}),
    ("The context length is 4k tokens.",
     {"context_length": 4096}),
    ("The context length is 1 million tokens.",
     {"context_length": 1_000_000}),
    ("The hidden dimension is 1.5K.",
     {}),
    ("The model has 125M parameters: 12 layers, $d_{model}=768$.",
     {"n_parameters": 125_000_000, "n_layers": 12, "d_model": 768}),
    ("Our 1.3B-parameter model has 24 layers and a hidden size of 2048.",
     {"n_layers": 24, "d_model": 2048, "n_parameters": 1_300_000_000}),
    ("We use a small Transformer (4 layers, 4 heads, 128-dimensional embeddings).",
     {"n_layers": 4, "n_heads": 4, "d_model": 128}),
    ("Our decoder has 4 layers, each with 8 heads and an embedding dimension of 256.",
     {"n_layers": 4, "n_heads": 8, "d_model": 256}),
    ("We fix depth to 8, width to 512 and the number of heads to 8.",
     {"n_layers": 8, "d_model": 512, "n_heads": 8}),
    ("The transformer uses \\texttt{n\\_layer=6}, \\texttt{n\\_head=6}, "
     "\\texttt{n\\_embd=384} and \\texttt{block\\_size=256}.",
     {"n_layers": 6, "n_heads": 6, "d_model": 384, "context_length": 256}),
    ("We use \\texttt{hidden\\_size} 2048, \\texttt{intermediate\\_size} 5632, "
     "\\texttt{num\\_hidden\\_layers} 22, \\texttt{num\\_attention\\_heads} 32 and "
     "\\texttt{num\\_key\\_value\\_heads} 4.",
     {"d_model": 2048, "d_ff": 5632, "n_layers": 22, "n_heads": 32, "n_kv_heads": 4}),
    ("Dropout of 10\\% is applied to the residual stream.",
     {"dropout": 0.1}),
    ("We apply dropout with a rate of 0.1 and label smoothing of 0.1.",
     {"dropout": 0.1}),
    ("Residual dropout $P_{drop} = 0.1$.",
     {"dropout": 0.1}),
    ("We use no dropout, i.e. the dropout rate is 0.",
     {"dropout": 0}),
    ("The model width is $d = 2^{10}$ and there are $2^3$ heads.",
     {"d_model": 1024, "n_heads": 8}),
    ("The backbone is a 12-layer, 768-wide transformer with 12 heads.",
     {"n_layers": 12, "d_model": 768, "n_heads": 12}),
    ("The transformer has an embedding size of 512, 6 blocks and 8 heads per block.",
     {"d_model": 512, "n_layers": 6, "n_heads": 8}),
    ("Our final model consists of 16 transformer blocks with a hidden dimension of 1,024 and "
     "16 attention heads, for a total of 350 million parameters.",
     {"n_layers": 16, "d_model": 1024, "n_heads": 16, "n_parameters": 350_000_000}),
    ("All models use a GPT-2 tokenizer with 50,257 tokens.",
     {"vocab_size": 50257}),
    ("The model processes up to 512 tokens.",
     {}),
    ("The encoder and decoder each have 6 layers.",
     {"n_layers": 6}),
    ("Encoder and decoder have 12 blocks each and 768-dimensional hidden states; "
     "feed-forward networks use $d_{\\mathrm{ff}} = 2816$, attention 12 heads with "
     "$d_{kv}=64$.",
     {"n_layers": 12, "d_model": 768, "d_ff": 2816, "n_heads": 12, "head_dim": 64}),
    ("Attention uses 128 heads of dimension 128 each.",
     {"n_heads": 128, "head_dim": 128}),
    ("The per-head dimension is 128 and the number of attention heads is 128.",
     {"n_heads": 128, "head_dim": 128}),
    ("The number of Transformer layers is set to 44 and the hidden dimension to 3584.",
     {"n_layers": 44, "d_model": 3584}),
    ("\\section{Appendix}\n\\appendix Our policy for the games uses 6 layers, 8 attention "
     "heads and an embedding dimension of 128; the context length $K$ is 30 (50 for the "
     "longest one).\n",
     {"n_layers": 6, "n_heads": 8, "d_model": 128, "context_length": 30}),
    ("The speech model is made of 12 Transformer blocks with dimension 640, inner dimension "
     "(FFN) 2,560 and 8 attention heads.",
     {"n_layers": 12, "d_model": 640, "d_ff": 2560, "n_heads": 8}),
    ("BASE has 10 transformer blocks of model dimension 640 and inner dimension (FFN) 2,560 "
     "with 10 attention heads. LARGE has 20 transformer blocks of model dimension 960, inner "
     "dimension 3,840 and 15 attention heads.",
     {"n_layers": 10, "d_model": 640, "d_ff": 2560, "n_heads": 10}),
    ("A feature encoder of seven blocks turns the waveform into frames, and convolutions in "
     "each block have 512 channels. BASE has 10 transformer blocks, model dimension 640, "
     "inner dimension (FFN) 2,560 and 10 attention heads.",
     {"n_layers": 10, "d_model": 640, "d_ff": 2560, "n_heads": 10}),
    ("The protein language model has 33 layers, 20 attention heads, an embedding dimension "
     "of 1280 and 650M parameters. Sequences are cropped to 1024 amino acids.",
     {"n_layers": 33, "n_heads": 20, "d_model": 1280, "n_parameters": 650_000_000}),
    ("Our 10-layer decoder has masked self-attention with 10 attention heads. In the "
     "feed-forward networks we use 2560 dimensional inner states. The BPE vocabulary comes "
     "from 30,000 merges, and dropouts with a rate of 0.1 follow every sub-layer. Batches "
     "hold 64 sequences of 512 tokens.",
     {"n_layers": 10, "n_heads": 10, "d_ff": 2560, "context_length": 512, "dropout": 0.1}),
    ("Our vocabulary is expanded to 50,304. The context grows from 512 to 1024 tokens and "
     "the batch to 512.",
     {"vocab_size": 50304}),
    ("We use a Transformer with $n_{\\text{layer}} = 12$, $n_{\\text{head}} = 12$ and "
     "$n_{\\text{embd}} = 768$ on sequences of 1024 tokens.",
     {"n_layers": 12, "n_heads": 12, "d_model": 768, "context_length": 1024}),
    ("Our models use $n_{ctx} = 2048$ tokens and $d_{\\text{ff}} = 4 * d_{\\text{model}}$, "
     "with $d_{\\text{model}} = 1024$.",
     {"context_length": 2048, "d_ff": 4096, "d_model": 1024}),
    ("The feed-forward expansion factor is 4 and the width is 512.",
     {"d_model": 512}),
    ("The MLP ratio is 4 and the embedding dimension is 384.",
     {"d_model": 384}),
    ("It has 24 blocks, each with 16 heads of size 64 (1024 in total).",
     {"n_layers": 24, "n_heads": 16, "head_dim": 64}),
    ("The student has 6 layers and 384 hidden units, i.e., half of the teacher's 12 layers "
     "and 768 hidden units.",
     {"n_layers": 6, "d_model": 384}),
    ("\\section{Training details}\nWe use Adam with $\\beta_1=0.9$, $\\beta_2=0.98$, a "
     "learning rate of $3\\times10^{-4}$, 4,000 warm-up steps, a batch of 512 sequences of "
     "1024 tokens and dropout of 0.1.\n",
     {"context_length": 1024, "dropout": 0.1}),
    ("Each time series is split into patches of length 16 with stride 8; the encoder has 3 "
     "layers, 16 heads, $D=128$ and a feed-forward size of 256, with dropout 0.2. The "
     "look-back window is $L=512$.",
     {"n_layers": 3, "n_heads": 16, "d_ff": 256, "dropout": 0.2, "d_model": 128}),
    ("We use a 4-layer Transformer encoder with 8 heads, hidden dimension 256, and a "
     "feed-forward dimension of 1024, followed by a 2-layer MLP with hidden size 512.",
     {"n_layers": 4, "n_heads": 8, "d_model": 256, "d_ff": 1024}),
    ("The model is a GPT-style decoder (\\textasciitilde 10.7M parameters: 6 layers, 6 "
     "heads, 384 embedding dimension, 256 context).",
     {"n_parameters": 10_700_000, "n_layers": 6, "n_heads": 6, "d_model": 384,
      "context_length": 256}),
    ("Model: nanoGPT with n_layer=6, n_head=6, n_embd=384, dropout=0.2.",
     {"n_layers": 6, "n_heads": 6, "d_model": 384, "dropout": 0.2}),
    ("\\section{Setup}\nWe use a one-layer decoder-only transformer with 4 heads, "
     "$d_{model}=128$, $d_{head} = 32$ and an MLP with 512 hidden units.\n",
     {"n_heads": 4, "d_model": 128, "head_dim": 32, "n_layers": 1, "d_ff": 512}),
    ("\\section{Setup}\nOur architecture is a 2-layer transformer with width 128 and 4 "
     "attention heads, about $4\\cdot10^5$ non-embedding parameters.\n",
     {"n_layers": 2, "d_model": 128, "n_heads": 4, "n_parameters": 400000}),
    ("The embedding matrix has size $50304 \\times 768$, and there are 12 blocks.",
     {"n_layers": 12}),
    ("The hidden size ($d$) equals 768 while the intermediate size is $4d$.",
     {"d_model": 768, "d_ff": 3072}),
    ("We use $L=24$ layers, $H=16$ heads, and $d=1024$.",
     {"n_layers": 24, "n_heads": 16, "d_model": 1024}),
    ("There are $L = 24$ layers with $H = 16$ attention heads and $d_{\\mathrm{ff}} = 4096$.",
     {"n_layers": 24, "n_heads": 16, "d_ff": 4096}),
    ("The network has depth 12 and width 768.",
     {"n_layers": 12, "d_model": 768}),
    ("A 12-layer, 12-head, 768-dimensional Transformer is trained on sequences with a "
     "maximum length of 512.",
     {"n_layers": 12, "n_heads": 12, "d_model": 768, "context_length": 512}),
    ("The decoder has 16 layers, a hidden dimension of 1{,}024, a feed-forward dimension of "
     "4{,}096, and 16 attention heads of dimension 64.",
     {"n_layers": 16, "d_model": 1024, "d_ff": 4096, "n_heads": 16, "head_dim": 64}),
    ("We use a context of 2k tokens and a vocabulary of 50k BPE tokens.",
     {"context_length": 2048, "vocab_size": 50000}),
    ("Our 7B model follows the Llama 2 architecture: 32 layers, 32 heads, hidden size 4096, "
     "and intermediate size 11008.",
     {"n_layers": 32, "n_heads": 32, "d_model": 4096, "d_ff": 11008}),
    ("We train models of 160M, 410M and 1B parameters, with 12, 24 and 16 layers and widths "
     "of 768, 1024 and 2048.",
     {}),
    ("Both models have 12 layers; the small one has 8 heads, the large one 16.",
     {"n_layers": 12, "n_heads": 8}),
    ("Attention is restricted to a local window of 512 tokens, every sixth layer is global, "
     "and the model has 24 layers in total.",
     {"window": 512, "n_layers": 24}),
    ("Of the 32 layers, 8 use full attention and 24 use sliding-window attention with a "
     "window of 1024.",
     {"n_layers": 32, "window": 1024}),
    ("We use the cl100k tokenizer, with 100,277 entries, and pad the vocabulary to 100,352.",
     {"vocab_size": 100352}),
    ("The tokenizer has a vocabulary of 32,000 entries, padded to 32,128 for efficiency.",
     {"vocab_size": 32000}),
    ("We set $N=16$ for the state dimension, $E=2$ for expansion and use 24 Mamba blocks of "
     "width 768.",
     {"n_layers": 24, "d_model": 768}),
    ("Each transformer block has 8 attention heads with 64-dimensional keys and values.",
     {"n_heads": 8, "head_dim": 64}),
    ("Keys, queries and values are 64-dimensional; the model is 512-dimensional with 8 heads "
     "and 6 layers.",
     {"n_heads": 8, "n_layers": 6}),
    ("The total number of parameters is 1.5B, and it has 48 layers, 25 heads and "
     "1600-dimensional embeddings.",
     {"n_parameters": 1_500_000_000, "n_layers": 48, "n_heads": 25, "d_model": 1600}),
    ("\\section{Experiments}\nOn 2 GPUs, training 12 models took 3 days.\n",
     {}),
    ("\\section{Experiments}\nAccuracy at layer 6 is 80\\%, at layer 12 it is 85\\%.\n",
     {}),
    ("\\section{Results}\nRemoving 4 heads from the 12 layers lowers BLEU by 0.3.\n",
     {}),
    ("\\section{Results}\nAt 8 layers the loss is 2.1.\n",
     {}),
    ("\\section{Discussion}\nLarger models with 48 layers may behave differently.\n",
     {}),
    ("\\section{Limitations}\nWe did not train models with more than 12 layers or a context "
     "length of more than 1024.\n",
     {}),
    ("Pre-trained GloVe vectors of dimension 300 are used as input.",
     {}),
    ("We project the 2048-dimensional ResNet features to 512 dimensions.",
     {}),
    ("The text encoder is a 12-layer 512-wide model with 8 attention heads.",
     {}),
    ("It uses rotary embeddings on 25\\% of the dimensions, with base $10^4$.",
     {}),
    ("Table~\\ref{t} lists the configuration of our 0.5B "
     "model.\n\\begin{table}\\caption{Configuration of the 0.5B "
     "model.}\\begin{tabular}{lc}\nHidden Size & 896 \\\\\n\\# Layers & 24 \\\\\n\\# Query "
     "Heads & 14 \\\\\n\\# KV Heads & 2 \\\\\nHead Size & 64 \\\\\nIntermediate Size & 4864 "
     "\\\\\nEmbedding Tying & True \\\\\nVocabulary Size & 151646 \\\\\n\\# Trained Tokens & "
     "12T \\\\\n\\end{tabular}\\end{table}",
     {"d_model": 896, "n_layers": 24, "n_heads": 14, "n_kv_heads": 2, "head_dim": 64,
      "d_ff": 4864, "vocab_size": 151646}),
    ("The student uses the first 6 layers of the 12-layer teacher.",
     {}),
    ("Our 4-layer model is trained from the 12-layer teacher.",
     {"n_layers": 4}),
    ("The model comprises an embedding layer, 12 identical blocks and an output layer.",
     {"n_layers": 12}),
    ("Every block has 8 experts, each with hidden size 1024; the model width is 512.",
     {"n_experts": 8, "expert_d_ff": 1024, "d_model": 512}),
    ("Our policy is a causal transformer (3 layers, 1 head, embedding dim 128) over the last "
     "20 timesteps.",
     {"n_layers": 3, "n_heads": 1, "d_model": 128}),
    ("The network has 8 self-attention layers with 16 heads each and a model size of 1024.",
     {"n_layers": 8, "n_heads": 16}),
    ("The transformer is parameterized with $n_{layers}=4$, $n_{heads}=4$, and "
     "$d_{model}=256$; $d_{ffn}=1024$.",
     {"n_layers": 4, "n_heads": 4, "d_model": 256, "d_ff": 1024}),
    ("We employ a Transformer encoder with 6 layers, where each layer has 8 heads and 2048 "
     "feed-forward units.",
     {"n_layers": 6, "n_heads": 8, "d_ff": 2048}),
    ("Hidden sizes are 256 for the small and 512 for the large model.",
     {"d_model": 256}),
    ("For all experiments the embedding size and hidden size are set to 256, and the number "
     "of heads to 4.",
     {"d_model": 256, "n_heads": 4}),
    ("The GRU has a hidden size of 256.",
     {}),
    ("An MLP with two hidden layers of 256 units predicts the reward.",
     {}),
    ("The value head is a linear layer of dimension 512.",
     {}),
    ("Embeddings of size 300 are fed to a BiLSTM with 2 layers.",
     {}),
    ("\\section{Analysis}\nWe probe BERT-base (12 layers, 12 heads, hidden size 768).\n",
     {}),
    ("\\section{Experiments}\nWe evaluate on sequences of length 256, 512 and 1024.\n",
     {}),
    ("\\section{Experiments}\nTraining took 300K steps on sequences of 512 tokens.\n",
     {"context_length": 512}),
    ("Tokens are embedded in 512 dimensions, processed by 6 transformer layers with 8 heads, "
     "and projected to a vocabulary of 32K.",
     {"n_layers": 6, "n_heads": 8, "vocab_size": 32000}),
    ("The hidden dimensionality $d$ is 1024, the number of layers $L$ is 24 and the number "
     "of heads $h$ is 16.",
     {"d_model": 1024, "n_layers": 24, "n_heads": 16}),
    ("It has a 2,048-token context window, 40 layers and a hidden dimension of 5,120.",
     {"context_length": 2048, "n_layers": 40, "d_model": 5120}),
    ("Our model has $\\sim$1.1B parameters, 22 layers, 32 heads, 4 query groups, hidden size "
     "2,048 and intermediate size 5,632.",
     {"n_parameters": 1_100_000_000, "n_layers": 22, "n_heads": 32, "n_kv_heads": 4,
      "d_model": 2048, "d_ff": 5632}),
    ("The vocabulary contains 250 thousand entries.",
     {"vocab_size": 250000}),
    ("We have $|V| = 32000$ and a maximum of 1024 positions.",
     {"vocab_size": 32000}),
    ("The rotary base is 10000; attention logits are soft-capped at 50.",
     {"rope_theta": 10000}),
    ("The architecture is a 32-layer, 32-head Transformer with a model dimension of 4096, "
     "hidden dimension of 14336 in the MLP and a vocabulary of 128256.",
     {"n_layers": 32, "n_heads": 32, "d_model": 4096, "d_ff": 14336, "vocab_size": 128256}),
    ("\\section{Introduction}\nModern LLMs have hundreds of layers; GPT-3 has 96 layers and "
     "175B parameters. We train a 350M-parameter model.\n\\section{Model}\nIt is a decoder "
     "with 24 layers, 16 heads and $d_{model}=1024$.\n",
     {"n_parameters": 350_000_000, "n_layers": 24, "n_heads": 16, "d_model": 1024}),
    ("Given hidden states of dimension $d$, we split them into $h$ heads. In practice "
     "$d=512$ and $h=8$.",
     {"d_model": 512, "n_heads": 8}),
    ("\\section{Method}\nLet $d$ be the model dimension and $L$ the number of "
     "layers.\n\\section{Experiments}\nWe set $d=256$, $L=4$.\n",
     {"d_model": 256, "n_layers": 4}),
    ("\\section{Implementation Details}\nWe implement our model in PyTorch. The encoder uses "
     "6 layers with 8 heads; $d_{model}$ is 256 and the dropout is 0.1. We train for 50 "
     "epochs with a batch size of 64 and a learning rate of 1e-4 on 4 V100 GPUs. The input "
     "length is 96 and the prediction length 192.\n",
     {"n_layers": 6, "n_heads": 8, "d_model": 256, "dropout": 0.1}),
    ("\\section{Experiments}\n\\paragraph{Baselines.} Informer uses 2 encoder layers and "
     "$d_{model}=512$.\n\n\\paragraph{Ours.} We use 3 layers and $d_{model}=128$.\n",
     {"n_layers": 3, "d_model": 128}),
    ("\\section{Experimental Setup}\n\\textbf{Model.} We use a LLaMA-style model with 12 "
     "layers, 12 heads, embedding dimension 768, and sequence length 512.\n",
     {"n_layers": 12, "n_heads": 12, "d_model": 768, "context_length": 512}),
    ("\\section{Setup}\nAll models share the same architecture: 8 layers, 8 heads, 512 "
     "hidden units, and a vocabulary of 8,192.\n",
     {"n_layers": 8, "n_heads": 8, "d_model": 512, "vocab_size": 8192}),
    ("The encoder (12 layers) and decoder (6 layers) have width 512.",
     {"n_layers": 12, "d_model": 512}),
    ("\\section{Scaling}\nWe scale from 6 to 48 layers and from 512 to 4096 hidden units.\n",
     {}),
    ("Every 4th layer uses full attention; the remaining layers use a window of 1024 tokens.",
     {"window": 1024}),
    ("We keep the first 4 tokens as sinks and a cache of 1020 tokens.",
     {}),
    ("The codebook has 1024 entries of dimension 256; the transformer has 24 layers and 16 "
     "heads.",
     {"n_layers": 24, "n_heads": 16, "vocab_size": 1024}),
    ("\\section{Data}\nThe data set has 50,000 sentences with a vocabulary of 10,000 words; "
     "sentences have at most 80 tokens.\n",
     {"vocab_size": 10000}),
    ("\\section{Tokenizer}\nWe train a SentencePiece tokenizer with 32,000 pieces.\n",
     {}),
    ("\\section{Tokenizer}\nA unigram SentencePiece model with a vocabulary size of 64k is "
     "trained on 10M lines.\n",
     {"vocab_size": 64000}),
    ("Rotary embeddings ($\\theta=10000$) are applied to a head dimension of 64, with 12 "
     "heads over 12 layers (width 768).",
     {"rope_theta": 10_000, "head_dim": 64, "n_heads": 12, "n_layers": 12, "d_model": 768}),
    ("Our model has 12 layers, width 768; its heads are 64-dimensional.",
     {"n_layers": 12, "d_model": 768, "head_dim": 64}),
    ("We benchmark Mistral-7B (32 layers, hidden size 4096).", {}),
    ("The vocabulary has 32k entries. The model has 270M parameters.",
     {"vocab_size": 32_000, "n_parameters": 270_000_000}),
    ("It has a total parameter capacity of 660B in its experts.", {}),
    ("We use 6 layers and no dropout.", {"n_layers": 6, "dropout": 0}),
    ("We train without dropout.", {"dropout": 0}),
    ("There is no dropout at inference.", {}),
    ("We use RoPE ($\\theta = 10{,}000$) in each of the 6 layers.",
     {"rope_theta": 10_000, "n_layers": 6}),
    ("A separate six-layer Transformer encodes the prompt.", {}),
    ("Each block has an MLP with hidden size 3072.", {"d_ff": 3072}),
    ("A 2-layer MLP with hidden size 1024 predicts the class.", {}),
    ("RWKV-7 blocks are followed by attention blocks.", {}),
    ("We train a 6-layer, 256-wide encoder.", {"n_layers": 6, "d_model": 256}),
    ("It has a 1408 hidden size and a 6144 intermediate size.", {"d_model": 1408, "d_ff": 6144}),
    ("The model (12L-768D-12H) is small.", {"n_layers": 12, "d_model": 768, "n_heads": 12}),
    ("Attention is grouped (GQA: 8Q, 4KV).", {"n_heads": 8, "n_kv_heads": 4}),
    ("We pretrain with a context of 2048, then 4096, tokens.",
     {"context_length": 2048}),
    ("It uses multi-head attention (16 heads of size 64), a 4096-dimensional feed-forward "
     "layer and dropout of 0.1.",
     {"n_heads": 16, "head_dim": 64, "d_ff": 4096, "dropout": 0.1}),
    ("We stack $M=4$ blocks, each with a hidden width of 192.",
     {"n_layers": 4, "d_model": 192}),
    ("Our network has 1.2M parameters in 4 layers of 128 hidden units with 4 heads.",
     {"n_parameters": 1_200_000, "n_layers": 4, "n_heads": 4, "d_model": 128}),
    ("The LM is a 24-layer transformer (1024 hidden, 16 heads) over a 32k vocabulary.",
     {"n_layers": 24, "d_model": 1024, "n_heads": 16, "vocab_size": 32000}),
]  # fmt: skip

# The same in papers that are about what the sentence names.
TITLED = [
    ("Music Transformer",
     "The Music Transformer uses relative attention; we train an 8-layer decoder with hidden "
     "size 384, feed-forward size 1024, 8 heads, and sequences of length 2048.",
     {"n_layers": 8, "d_model": 384, "d_ff": 1024, "n_heads": 8, "context_length": 2048}),
    ("RWKV: an RNN that Trains like a Transformer",
     "RWKV-4 169M has 12 layers and an embedding size of 768.",
     {"n_layers": 12, "d_model": 768}),
    ("Mamba: Sequences",
     "Mamba-130M has 24 layers and $d_{model} = 768$, with a state size of 16 and expansion "
     "factor 2.",
     {"n_layers": 24, "d_model": 768}),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), STATED)
def test_what_a_text_states(body, expected):
    assert asserted(numbers(body)) == expected


@pytest.mark.parametrize(("title", "body", "expected"), TITLED)
def test_what_a_paper_is_about_is_its_own(title, body, expected):
    assert asserted(numbers(body, title)) == expected
