"""The model families that papers build on, and what every size of each has in common.

A row holds only what its paper or released code states of the whole family: whatever differs
between sizes or releases stays out, and no dimension is ever inherited.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from paperkiln.papers.architecture import Scalar


@dataclass(frozen=True)
class Ancestor:
    """A family; lower-case aliases match in any case, others only as spelled.

    A hyphen in an alias stands for a hyphen, a space or nothing.
    """

    paper: str
    """An arXiv id, or a citation where there is none."""
    aliases: tuple[str, ...]
    values: dict[str, Scalar] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    """How its paper is usually keyed in a bibliography."""
    modality: str = "text"


_PRE_LAYERNORM: dict[str, Scalar] = {"norm": "layernorm", "norm_placement": "pre"}
_GPT: dict[str, Scalar] = {
    **_PRE_LAYERNORM, "activation": "gelu", "positional": "learned",
}  # fmt: skip
_BERT: dict[str, Scalar] = {
    "norm": "layernorm", "norm_placement": "post", "activation": "gelu", "positional": "learned",
    "attention": "exact", "bias": True, "tied_embeddings": True,
}  # fmt: skip
_LLAMA: dict[str, Scalar] = {
    "norm": "rmsnorm", "norm_placement": "pre", "activation": "swiglu", "positional": "rope",
    "attention": "exact",
}  # fmt: skip
_UNTIED: dict[str, Scalar] = {"bias": False, "tied_embeddings": False}
_MLA: dict[str, Scalar] = {**_LLAMA, **_UNTIED, "attention": "mla"}
_T5: dict[str, Scalar] = {
    "norm": "rmsnorm", "norm_placement": "pre", "positional": "relative", "attention": "exact",
    "bias": False,
}  # fmt: skip
_GEMMA: dict[str, Scalar] = {
    "norm": "rmsnorm", "activation": "geglu", "positional": "rope", "bias": False,
    "tied_embeddings": True,
}  # fmt: skip
_NEOX: dict[str, Scalar] = {
    **_PRE_LAYERNORM, "activation": "gelu", "positional": "rope", "attention": "exact",
    "tied_embeddings": False,
}  # fmt: skip
_VIT: dict[str, Scalar] = {**_GPT, "attention": "exact", "bias": True}

# Names that stand for the decoder-only or the general Transformer: recorded, they fill nothing.
GENERIC = frozenset({"transformer", "gpt"})

ANCESTORS: dict[str, Ancestor] = {
    "transformer": Ancestor(
        "1706.03762",
        ("original-transformer", "vanilla-transformer", "standard-transformer", "the-transformer",
         "vaswani"),
        keys=("vaswani2017attention",),
    ),
    # "GPT-style" has come to mean any causal decoder.
    "gpt": Ancestor("Radford et al. 2018, Improving Language Understanding", ("GPT",)),
    "gpt-1": Ancestor(
        "Radford et al. 2018, Improving Language Understanding", ("gpt-1",),
        {**_GPT, "norm_placement": "post", "attention": "exact", "bias": True,
         "tied_embeddings": True},
        ("radford2018improving",),
    ),
    "gpt-2": Ancestor(
        "Radford et al. 2019, Language Models are Unsupervised Multitask Learners", ("gpt-2",),
        {**_GPT, "attention": "exact", "bias": True, "tied_embeddings": True},
        ("radford2019language",),
    ),
    "nanogpt": Ancestor(
        "github.com/karpathy/nanoGPT", ("nanogpt",),
        {**_GPT, "attention": "exact", "tied_embeddings": True},
    ),
    # Dense and locally banded layers alternate, so attention stays out.
    "gpt-3": Ancestor("2005.14165", ("gpt-3",), _GPT, ("brown2020language",)),
    "gpt-neo": Ancestor(
        "Black et al. 2021, GPT-Neo", ("gpt-neo",), {**_GPT, "tied_embeddings": True}
    ),
    "gpt-j": Ancestor("Wang and Komatsuzaki 2021, GPT-J-6B", ("gpt-j",), _NEOX),
    "gpt-neox": Ancestor(
        "2204.06745", ("gpt-neox", "neox"), {**_NEOX, "bias": True}, ("black2022gptneox",)
    ),
    "pythia": Ancestor(
        "2304.01373", ("pythia",), {**_NEOX, "bias": True}, ("biderman2023pythia",)
    ),
    "bert": Ancestor("1810.04805", ("bert",), _BERT, ("devlin2018bert", "devlin2019bert")),
    "roberta": Ancestor("1907.11692", ("roberta",), _BERT, ("liu2019roberta",)),
    "albert": Ancestor("1909.11942", ("albert",), _BERT),
    "distilbert": Ancestor("1910.01108", ("distilbert",), _BERT),
    "deberta": Ancestor("2006.03654", ("deberta",), {**_BERT, "positional": "relative"}),
    "modernbert": Ancestor(
        "2412.13663", ("modernbert",),
        {**_PRE_LAYERNORM, "activation": "geglu", "positional": "rope", "bias": False},
    ),
    "bart": Ancestor("1910.13461", ("BART",), _BERT, ("lewis2019bart", "lewis2020bart")),
    "t5": Ancestor(
        "1910.10683", ("t5",), {**_T5, "activation": "relu", "tied_embeddings": True},
        ("raffel2020exploring", "raffel2019exploring"),
    ),
    "t5-v1.1": Ancestor(
        "2002.05202 and the T5 release notes", ("t5-v1.1", "t5-1.1", "t5.1.1", "mt5", "flan-t5"),
        {**_T5, "activation": "geglu", "tied_embeddings": False},
    ),
    "gopher": Ancestor(
        "2112.11446", ("Gopher", "Chinchilla"),
        {"norm": "rmsnorm", "norm_placement": "pre", "positional": "relative"},
        ("rae2021scaling", "hoffmann2022training"),
    ),
    # Its 350M model is post-norm, so the placement stays out.
    "opt": Ancestor(
        "2205.01068", ("OPT",),
        {"norm": "layernorm", "activation": "relu", "positional": "learned", "attention": "exact",
         "bias": True, "tied_embeddings": True},
        ("zhang2022opt",),
    ),
    "bloom": Ancestor(
        "2211.05100", ("BLOOM",),
        {**_PRE_LAYERNORM, "activation": "gelu", "positional": "alibi", "attention": "exact",
         "bias": True, "tied_embeddings": True},
    ),
    "palm": Ancestor(
        "2204.02311", ("PaLM", "PALM"),
        {**_PRE_LAYERNORM, "activation": "swiglu", "positional": "rope", "attention": "exact",
         "bias": False, "tied_embeddings": True},
        ("chowdhery2022palm", "chowdhery2023palm"),
    ),
    "llama": Ancestor(
        "2302.13971", ("llama", "llama-1", "vicuna"), {**_LLAMA, **_UNTIED},
        ("touvron2023llama",),
    ),
    "llama-2": Ancestor(
        "2307.09288", ("llama-2", "code-llama"), {**_LLAMA, **_UNTIED}, ("touvron2023llama2",)
    ),
    # The small releases tie the embeddings, the large ones do not.
    "llama-3": Ancestor(
        "2407.21783", ("llama-3", "llama-3.1", "llama-3.2", "llama-3.3"),
        {**_LLAMA, "bias": False}, ("dubey2024llama", "grattafiori2024llama"),
    ),
    "tinyllama": Ancestor(
        "2401.02385", ("tinyllama",), {**_LLAMA, **_UNTIED}, ("zhang2024tinyllama",)
    ),
    "mistral": Ancestor(
        "2310.06825", ("mistral", "mistral-7b"), {**_LLAMA, **_UNTIED, "attention": "swa"},
        ("jiang2023mistral",),
    ),
    # Later releases of the 7B dropped the sliding window.
    "mistral-v0.2": Ancestor(
        "2310.06825 and the release notes of v0.2",
        ("mistral-7b-v0.2", "mistral-7b-v0.3", "mistral-7b-instruct-v0.2",
         "mistral-7b-instruct-v0.3", "mistral-nemo", "mistral-small"),
        {**_LLAMA, **_UNTIED},
    ),
    "mixtral": Ancestor(
        "2401.04088", ("mixtral", "mixtral-8x7b", "mixtral-8x22b"), {**_LLAMA, **_UNTIED},
        ("jiang2024mixtral",),
    ),
    "gemma": Ancestor(
        "2403.08295", ("Gemma", "gemma-1", "GEMMA"), {**_GEMMA, "attention": "exact"}
    ),
    # Local and global layers alternate.
    "gemma-2": Ancestor("2408.00118", ("gemma-2",), _GEMMA),
    "gemma-3": Ancestor("2503.19786", ("gemma-3",), _GEMMA),
    "qwen": Ancestor("2309.16609", ("qwen", "qwen-1.5"), _LLAMA, ("bai2023qwen",)),
    "qwen2": Ancestor("2407.10671", ("qwen-2",), _LLAMA, ("yang2024qwen2",)),
    "qwen2.5": Ancestor("2412.15115", ("qwen-2.5",), _LLAMA, ("yang2024qwen2.5",)),
    "qwen3": Ancestor("2505.09388", ("qwen-3",), {**_LLAMA, "bias": False}, ("yang2025qwen3",)),
    "deepseek": Ancestor("2401.02954", ("deepseek-llm",), {**_LLAMA, **_UNTIED}),
    "deepseek-v2": Ancestor("2405.04434", ("deepseek-v2", "deepseek-v2.5"), _MLA),
    "deepseek-v3": Ancestor("2412.19437", ("deepseek-v3", "deepseek-r1"), _MLA),
    "phi": Ancestor(
        "2309.05463", ("phi-1", "phi-1.5", "phi-2"),
        {**_PRE_LAYERNORM, "activation": "gelu", "positional": "rope", "attention": "exact",
         "bias": True, "tied_embeddings": False},
    ),
    # The 7B differs from the others in norm and activation.
    "phi-3": Ancestor("2404.14219", ("phi-3",), {"norm_placement": "pre", "positional": "rope"}),
    "phi-4": Ancestor("2412.08905", ("phi-4",), {**_LLAMA, "bias": False}),
    "olmo": Ancestor(
        "2402.00838", ("olmo",),
        {**_PRE_LAYERNORM, "activation": "swiglu", "positional": "rope", "attention": "exact",
         "bias": False},
        ("groeneveld2024olmo",),
    ),
    # Norms stand after each sublayer but inside the residual: neither pre nor post.
    "olmo-2": Ancestor(
        "2501.00656", ("olmo-2",),
        {"norm": "rmsnorm", "activation": "swiglu", "positional": "rope", "attention": "exact",
         **_UNTIED},
    ),
    "olmoe": Ancestor("2409.02060", ("olmoe",), _LLAMA),
    "falcon": Ancestor(
        "2311.16867", ("Falcon",),
        {**_PRE_LAYERNORM, "activation": "gelu", "positional": "rope", "bias": False},
    ),
    "mpt": Ancestor(
        "MosaicML 2023, Introducing MPT-7B", ("MPT",),
        {**_PRE_LAYERNORM, "activation": "gelu", "positional": "alibi", "attention": "exact",
         "bias": False, "tied_embeddings": True},
    ),
    "stablelm": Ancestor("Stability AI 2023", ("stablelm",), {"norm": "layernorm"}),
    "stablelm-2": Ancestor(
        "2402.17834", ("stablelm-2",),
        {**_PRE_LAYERNORM, "activation": "swiglu", "positional": "rope", "attention": "exact"},
    ),
    "yi": Ancestor("2403.04652", ("Yi",), {**_LLAMA, **_UNTIED}),
    "internlm2": Ancestor("2403.17297", ("internlm-2",), {**_LLAMA, **_UNTIED}),
    "smollm": Ancestor(
        "2502.02737", ("smollm", "smollm-2"), {**_LLAMA, "bias": False, "tied_embeddings": True}
    ),
    "minicpm": Ancestor("2404.06395", ("minicpm",), {**_LLAMA, "bias": False}),
    "mamba": Ancestor(
        "2312.00752", ("Mamba", "mamba-1"), {"activation": "silu", "positional": "none"},
        ("gu2023mamba",),
    ),
    "mamba-2": Ancestor(
        "2405.21060", ("mamba-2",), {"activation": "silu", "positional": "none"}, ("dao2024mamba2",)
    ),
    "rwkv": Ancestor(
        "2305.13048", ("rwkv", "rwkv-4", "rwkv-5", "rwkv-6", "rwkv-7"),
        {**_PRE_LAYERNORM, "activation": "squared_relu", "positional": "none",
         "attention": "linear", "tied_embeddings": False},
        ("peng2023rwkv",),
    ),
    "vit": Ancestor(
        "2010.11929", ("ViT", "vision-transformer"), _VIT, ("dosovitskiy2020image",), "image"
    ),
    "deit": Ancestor("2012.12877", ("DeiT",), _VIT, ("touvron2021training",), "image"),
}  # fmt: skip


def alias_pattern(aliases: Iterable[str]) -> str:
    """Return a pattern for any of the aliases, the longest first."""
    return "|".join(_spelled(alias) for alias in sorted(set(aliases), key=len, reverse=True))


def _spelled(alias: str) -> str:
    pattern = re.escape(alias).replace(r"\-", r"[-\s]?")
    return f"(?i:{pattern})" if alias.islower() else f"(?-i:{pattern})"


def inherited(*names: str) -> dict[str, Scalar]:
    """Return what the named ancestors have in common; a generic name has nothing to give."""
    rows = [ANCESTORS[name].values for name in names if name not in GENERIC]
    if not rows:
        return {}
    return {k: v for k, v in rows[0].items() if all(row.get(k) == v for row in rows)}
