"""The words of questions to the registry: how people call factors, levels and metrics.

A phrase is matched word by word, never inside of a word; longer phrases go first.
"""

from __future__ import annotations

from typing import NamedTuple


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(phrase.strip() for phrase in text.split(","))


class Factor(NamedTuple):
    """How a factor is called, and the names of the values it may take, each with its synonyms."""

    names: tuple[str, ...]
    levels: dict[str, tuple[str, ...]]


def _factor(names: str, **levels: str) -> Factor:
    return Factor(_phrases(names), {level: _phrases(text) for level, text in levels.items()})


# A level that no finding compares (Lion, ALiBi) is listed so that it is recognised, and refused.
FACTORS: dict[str, Factor] = {
    "optimizer": _factor(
        "optimizer, optimiser, optimizers, optimisers, optimization, optimisation",
        adamw="adamw, adam, adam w", muon="muon", sgd="sgd, stochastic gradient descent",
        lion="lion", sophia="sophia", shampoo="shampoo", soap="soap", adafactor="adafactor",
        rmsprop="rmsprop", adagrad="adagrad", lamb="lamb", lbfgs="lbfgs, l bfgs",
    ),
    "lr": _factor("lr, learning rate, learning rates, step size, step sizes, stepsize"),
    "norm": _factor(
        "norm placement, norm position, placement of the norm, normalization, normalisation, norm, "
        "norms, layer norm placement, norm order",
        pre="pre norm, prenorm, pre ln, pre normalization, pre normalisation",
        post="post norm, postnorm, post ln, post normalization, post normalisation",
        rmsnorm="rmsnorm, rms norm", layernorm="layernorm, layer norm", batchnorm="batchnorm",
        sandwich="sandwich norm", qk="qk norm",
    ),
    "activation": _factor(
        "activation, activations, activation function, nonlinearity, non linearity, mlp, "
        "feed forward, feedforward, ffn",
        gelu="gelu", swiglu="swiglu, gated, glu, gating", relu="relu", silu="silu, swish",
        geglu="geglu", tanh="tanh", squared="relu squared, squared relu, relu2",
    ),
    "positional": _factor(
        "positional, position, positions, positional encoding, positional encodings, "
        "position encoding, position embedding, position embeddings, positional embedding, "
        "positional embeddings",
        learned="learned, learnt, learned positions, absolute positions",
        rope="rope, rotary, rotary embedding, rotary embeddings", alibi="alibi", nope="nope",
        sinusoidal="sinusoidal, sinusoids",
    ),
    "shape": _factor(
        "shape, depth, width, deep, deeper, wide, wider, narrow, shallow, aspect ratio, "
        "number of layers, more layers, layers, depth against width, depth versus width"
    ),
    "batch": _factor("batch, batches, batch size, batch sizes, batchsize"),
    "attention": _factor(
        "attention, window size, attention window",
        swa="swa, window, windows, windowed, sliding, sliding window, sliding window attention, "
        "windowed attention, window attention, local attention, sparse attention",
        exact="exact, full attention, exact attention, softmax attention, dense attention, "
        "global attention",
        linear="linear attention, kimi, performer, linformer", flash="flash, flashattention",
        grouped="gqa, mqa, grouped query", latent="mla, latent attention",
    ),
    "context": _factor("context, context length, sequence length, context window"),
    "heads": _factor("heads, attention heads, head count, number of heads"),
}  # fmt: skip

# What is measured, in the words of a question, and the row metrics that measure it.
METRICS: dict[str, tuple[tuple[str, ...], frozenset[str]]] = {
    "loss": (
        _phrases(
            "loss, losses, perplexity, ppl, validation loss, val loss, final loss, best loss, "
            "best val, validation, nats, cross entropy, quality, bits per byte, bpb"
        ),
        frozenset({"best_val", "final_val", "final_train_loss", "val"}),
    ),
    "speed": (
        _phrases(
            "fast, faster, fastest, slow, slower, slowest, speed, speeds, speed up, speedup, "
            "latency, throughput, tokens per second, tokens a second, tokens s, tok s, wall clock, "
            "wall time, training time, quick, quicker, seconds, time"
        ),
        frozenset({"tokens_per_second", "wall_seconds"}),
    ),
    "convergence": (
        _phrases(
            "converge, converges, convergence, converge faster, converges faster, "
            "faster convergence, convergence speed, sample efficient, sample efficiency, "
            "learn faster, learns faster, fewer steps, loss auc"
        ),
        frozenset({"loss_auc", "half_gap_step"}),
    ),
    "stability": (
        _phrases(
            "stable, stability, unstable, instability, spike, spikes, loss spikes, diverge, "
            "diverges, divergence, gradient norm, gradient norms, blow up, blows up"
        ),
        frozenset(
            {"spikes", "spike_rate", "loss_tail_std", "grad_norm_mean", "grad_norm_max",
             "init_transient"}
        ),
    ),
    "energy": (
        _phrases("energy, joules, power, watts, electricity, carbon"),
        frozenset({"energy_joules"}),
    ),
}  # fmt: skip

# "Is it better?" asks for the loss; so does a bare comparison of two levels.
GENERAL = _phrases(
    "better, best, any good, useful, help, helps, improve, improves, improvement, worse, worst, "
    "beat, beats, win, wins, good, matter, matters, effect, effects, use, choose, pick, prefer, "
    "should i, preferred, recommend, recommended, superior, inferior, gain, gains, worth, benefit, "
    "benefits, hurt, hurts, interact, interacts, interaction, depend, depends, overtake, "
    "overtakes, advantage, outperform, outperforms, lower, lowest, higher, highest, least, "
    "lowers, raises, difference, impact, affect, affects, important, importance, significant, "
    "influence, optimal, ideal, right, crossover, cross, reverse, reverses, switch, change, "
    "changes"
)

# Subjects that people ask about and that no study here touches.
ELSEWHERE: dict[str, tuple[str, ...]] = {
    "quantization": _phrases(
        "quantization, quantisation, quantize, quantized, quantised, int8, int4, fp8, gguf, "
        "4 bit, 8 bit, bit width"
    ),
    "memory": _phrases("memory, ram, vram, kv cache, footprint, oom, out of memory, disk"),
    "inference": _phrases("inference, decoding, generation, serving, deployment, sampling"),
    "instruction following and fine-tuning": _phrases(
        "instruct, instruction, instructions, instruction following, rlhf, dpo, sft, fine tune, "
        "fine tuning, fine tuned, finetune, finetuning, finetuned, lora, alignment, aligned, "
        "preference, chatbot arena, reinforcement learning, rl"
    ),
    "vision": _phrases(
        "vision, image, images, vit, vits, video, videos, diffusion, pixels, imagenet, multimodal"
    ),
    "speech": _phrases("speech, audio, music, voice, asr"),
    "other tasks": _phrases(
        "translation, classification, code generation, coding, programming, protein, proteins, "
        "tabular, time series, retrieval, rag, summarization, summarisation, bert, encoder, "
        "encoders, reasoning, math, mathematics, mmlu, gsm8k, hellaswag, downstream, accuracy, f1, "
        "bleu, hallucination, hallucinations, safety, bias, toxicity, recall"
    ),
    "other architectures": _phrases(
        "mamba, ssm, state space, rnn, rnns, lstm, lstms, cnn, cnns, resnet, resnets, convolution, "
        "convolutional, moe, mixture of experts, experts, gan, gans, u net"
    ),
    "tokenizers and vocabulary": _phrases("tokenizer, tokenizers, tokenization, vocabulary, bpe"),
    "regularisation": _phrases(
        "dropout, weight decay, regularization, regularisation, overfit, overfits, overfitting"
    ),
    "schedules": _phrases("warmup, warm up, cosine, schedule, schedules, annealing"),
    "hardware": _phrases(
        "gpu, gpus, h100, a100, cuda, tpu, tpus, mps, apple silicon, multi gpu, distributed, "
        "cluster, mixed precision, bf16, fp16, half precision"
    ),
    "money": _phrases("price, prices, dollar, dollars, cheap, cheaper, cost, costs, cloud"),
}

# Words that ask for more than the sizes at which something was measured.
SCALE = _phrases(
    "large, larger, largest, big, bigger, biggest, huge, scale, scales, scaled, scaling, billion, "
    "billions, trillion, frontier, production, state of the art, sota, real world, llm, llms, gpt, "
    "llama, mistral, qwen, gemini, claude, deepseek, always, every, everywhere, any, all, "
    "in general, generally, universally, longer, long"
)

# Words of a question that name no subject.
STOP = frozenset(
    """a about actually after against also am among an and another are as ask at be because been
    before being between both but by can compare compared comparison could did do does doing done
    each either ever for from get gets getting give given go going got had has have having here
    how i if in instead into is it its just kind know less let like little look made make makes
    many may me mean might model models more most much must my need neither network networks no
    nor not of on one only or other our out over please question rather really run runs s same say
    says see seem seems setup should show shows small smaller so some something still such t tell
    than that the their them then there these they thing things this those to together too train
    trained training transformer transformers try two under until up upon us using used uses very
    versus vs want was we well were what when where whether which while who why will with within
    without would yes you your set setting settings value values choice choices language lm lms
    step steps parameter parameters token tokens sequence sequences block blocks epoch epochs
    down ones first last second equal same amount number kind kinds sort case cases
    tiny smallest low high new old way ways evidence found finding findings result results atlas
    registry think believe end ends reach reaches""".split()
)

# A clause of a scope that holds one of these says what is not covered.
NEGATIONS = frozenset("not no nothing never untested unknown neither nor without beyond".split())
