"""How papers name the numbers of a model: the words, the symbols and what values make sense.

A term binds a number in one of two ways: a *size* is followed by it ("hidden size of 512"), a
*count* follows it ("8 attention heads"). More specific terms stand first: the first one that
matches at a place is the one meant there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from paperkiln.papers.numbers.quantities import Quantity

Role = Literal["size", "count", "both"]

# Values outside are something else: a year, a page, a batch.
WINDOWS: dict[str, tuple[float, float]] = {
    "d_model": (8, 65536), "n_layers": (1, 1000), "n_heads": (1, 512), "n_kv_heads": (1, 512),
    "head_dim": (4, 2048), "d_ff": (8, 1 << 20), "vocab_size": (16, 2_000_000),
    "context_length": (8, 1 << 24), "window": (2, 1 << 22), "rope_theta": (100, 1e10),
    "dropout": (0, 0.95), "n_experts": (2, 4096), "n_experts_active": (1, 512),
    "n_experts_shared": (1, 64), "expert_d_ff": (8, 1 << 18), "n_parameters": (1000, 1e14),
}  # fmt: skip
_LENGTHS = frozenset({"context_length", "window"})
INTEGERS = frozenset(WINDOWS) - {"dropout", "rope_theta", "n_parameters"}

_S = r"[\s-]+"  # between the words of a term
_DIM = r"(?:dimension(?:alit(?:y|ies)|s)?|dims?\.?|sizes?|widths?)"
_FFN = r"(?:feed[\s-]?forward|ffns?|ff|mlps?|position-wise|swiglu|geglu)"
_NUMBER_OF = r"(?:(?:total\s+)?number\s+of\s+|num(?:ber)?\.?\s+|#\s*)?"
_KV = r"(?:kv|k/v|key[\s-]*(?:/|-|–|and)?[\s-]*values?|keys?\s+and\s+values?)(?:\s*\(kv\))?"
_TOKENS = r"[\s\u00a0](?:[a-z]+\s){0,3}[\d,.^]+\s?k?[\s\u00a0-]?(?:sub-?word\s)?tokens?\b"


def _some(words: str) -> str:
    """Return the pattern of up to four of the words, each with the blank or hyphen after it."""
    return rf"(?:(?:{words}){_S}){{0,4}}"


# (field, role, strength, patterns). Strength is what such words say by themselves: a symbol like
# d_model leaves no doubt, "width" alone does.
_TERMS: list[tuple[str, Role, float, list[str]]] = [
    # Experts, before the feed-forward that each of them is.
    ("expert_d_ff", "both", 1.0, [
        rf"(?:moe|experts?(?:'s)?|per[\s-]expert|routed[\s-]experts?){_S}(?:{_FFN}{_S})?"
        rf"(?:network{_S})?(?:intermediate|hidden|inner|{_FFN})(?:{_S}(?:hidden|inner|layer))?"
        rf"(?:{_S}{_DIM})?",
        rf"(?:intermediate|hidden|inner|{_FFN})(?:{_S}hidden)?{_S}{_DIM}\s+(?:of|for|in|per)\s+"
        r"(?:(?:each|every|the|one|an?)\s+)?(?:(?:routed|fine-grained|individual)\s+)?experts?",
        rf"(?<=experts,\s)each\s+(?:with|has|of|having)\s+(?:an?\s+)?(?:(?:hidden|intermediate|inner|ffn)\s+)?{_DIM}",
        r"moe_intermediate_size", r"d_expert", r"d_ff\^?_?expert",
        r"expert_(?:dim|size|d_ff|ffn_dim)",
    ]),
    ("n_experts_active", "both", 1.0, [
        rf"{_NUMBER_OF}(?:activated?|active|selected){_S}(?:routed{_S})?experts(?:\s+per\s+token)?",
        r"experts\s+(?:are\s+|will\s+be\s+)?(?:activated|active|selected|chosen|used)"
        r"(?:\s+(?:per|for\s+each|for\s+every)\s+token)?",
        r"(?:routed\s+)?experts\s+(?:per|for\s+each|for\s+every)\s+token",
    ]),
    ("n_experts_active", "count", 0.5, [
        r"(?:of\s+(?:which|them|these|those)\s+)?(?:are|is)\s+(?:activated?|active|selected|chosen)"
        r"\s+(?:per|for\s+each|for\s+every)\s+token",
    ]),
    ("n_experts_active", "size", 1.0, [r"num_experts_per_tok(?:en)?", r"experts_per_tok(?:en)?"]),
    ("n_experts_active", "size", 0.5, [r"top(?=[\s-]\d+[^.]{0,60}(?:expert|rout|activ))"]),
    ("n_experts_shared", "both", 1.0, [
        rf"{_NUMBER_OF}shared\s+experts?(?!\s+(?:isolation|strategy))",
    ]),
    ("n_experts_shared", "size", 1.0, [r"n(?:um)?_shared_experts"]),
    ("n_experts", "both", 0.5, [
        rf"{_NUMBER_OF}{_some('total|routed|fine-grained|ffn|specialized|distilled|moe')}"
        r"experts\b(?!\s+(?:per|for\s+each)\s+token)(?:\s+(?:per|in\s+each)\s+layer)?",
    ]),
    ("n_experts", "size", 0.5, [r"n_(?:routed_)?experts", r"num_(?:local_)?experts"]),
    # Heads.
    ("n_kv_heads", "both", 1.5, [
        rf"{_NUMBER_OF}(?:shared\s+)?{_KV}[\s-]+(?:attention[\s-]+)?"
        r"(?:heads?(?:[\s-]+groups?)?|groups?)",
        rf"{_NUMBER_OF}(?:query|gqa)[\s-]groups?",
    ]),
    ("n_kv_heads", "size", 1.5, [
        r"n_\{?kv(?:_?-?heads?)?", r"num_(?:key_value|kv)_heads", r"h_kv", r"n_kv-heads",
    ]),
    ("head_dim", "both", 1.5, [
        rf"{_some('attention|query|key|value|per')}(?:attention/)?heads?{_S}{_DIM}"
        rf"(?!{_S}of{_S}the{_S}model)",
        rf"{_DIM}\s+(?:(?:per|(?:of|for)\s+(?:each|every|the))\s+(?:attention\s+)?heads?|"
        r"of\s+(?:attention\s+)?heads?)\b",
        r"each\s+(?:attention\s+)?head\s+has\s+(?:a\s+)?(?:dimension(?:ality)?|size|width)",
        rf"(?<=heads\s)(?:each\s+)?(?:of|with)\s+(?:an?\s+)?(?:(?:head|per-head)\s+)?{_DIM}",
        r"head_dim", r"d_head", r"d_h(?!_)", r"d_k", r"d_kv",
    ]),
    ("n_heads", "both", 1.5, [
        rf"{_NUMBER_OF}(?:total\s+of\s+)?"
        + _some(
            "parallel|attention|self-attention|query|q|multi-?head|causal|transformer|total|mhsa|"
            "mha|distinct"
        )
        + r"(?:attention\s+layers,?\s+or\s+)?(?:attention[\s-]+|self-attention[\s-]+)?heads?\b",
    ]),
    ("n_heads", "size", 1.5, [r"num_(?:attention_)?heads", r"n_?heads?", r"n_h", r"h_q"]),
    ("n_layers", "size", 1.5, [
        r"(?:(?:total\s+)?number\s+of|num(?:ber)?\.?|#|total)\s*(?:of\s+)?"
        + _some(
            "hidden|transformer|decoder|encoder|identical|self-attention|attention|model|backbone|"
            "main|residual|mamba|total|stacked"
        )
        + r"(?:layers|blocks)\b",
        r"num_(?:hidden_)?layers", r"n_?layers?", r"n_blocks?",
        r"(?:network|model|transformer|encoder|decoder|layer)\s+depth", r"depth",
    ]),
    # Tables, windows and rates.
    ("context_length", "both", 1.5, [
        r"max(?:imum|\.)?[\s-]+(?:context|sequence|input|token|position(?:al)?)"
        r"(?:\s+(?:length|window|size|embeddings?|context)){1,3}",
        r"(?:(?:training|input)\s+)?(?:context|sequence|seq\.?)[\s-]+"
        r"(?:lengths?|windows?|sizes?|len\.?)(?:\s+(?:length|size))?",
        r"max(?:imum|\.)?\s+(?:context|position\s+embeddings)",
        r"block\s+size", r"context\s+windows?",
        r"(?:token|tokens)[\s-]+(?:of\s+)?context(?:[\s-]+(?:window|length|size))?s?",
        r"token\s+(?:sequences?|windows?)",
        r"(?:tokens?|characters?|bytes?)\s+(?:in\s+)?(?:context|sequence)\s+length",
        r"context",
    ]),
    ("context_length", "size", 1.5, [
        r"(?:sequences?|chunks?|segments?|inputs?|contexts?)\s+"
        r"(?:(?:of|with|have|has)\s+(?:a\s+)?(?:(?:maximum|fixed|total)\s+)?length"
        r"|(?:of|with)\s+(?:up\s+to|at\s+most))",
        rf"(?:sequences?|chunks?|segments?)\s+of(?={_TOKENS})",
        r"max_position_embeddings", r"max_seq(?:uence)?_len(?:gth)?", r"block_size",
        r"(?:context|ctx|seq|sequence)_len(?:gth)?", r"n_ctx", r"context_(?:window|size)",
    ]),
    ("vocab_size", "both", 1.5, [
        r"(?:(?:bpe|byte-level|sub-?words?|word-?pieces?|sentence-?pieces?|unigram|tokens?|word|"
        r"character|byte|joint|shared|distinct|unique)[\s-]+){0,4}"
        r"vocab(?:ulary|\.)?(?:\s+(?:sizes?|of\s+size))?",
    ]),
    ("vocab_size", "size", 1.5, [r"n?_?vocab_size", r"n_vocab", r"d_vocab", r"\|v\|"]),
    ("vocab_size", "size", 1.0, [rf"(?<=tokeni[sz]er\s)(?:with|of|has)(?={_TOKENS})"]),
    ("vocab_size", "both", 0.5, [r"(?:codebook|dictionary)(?:\s+sizes?)?(?:\s+(?:with|of))?"]),
    ("window", "both", 1.0, [
        r"(?:sliding|local|attention)[\s-]+(?:attention[\s-]+)?windows?(?:[\s-]+attention)?"
        r"(?:[\s-]+(?:size|length|width))?",
        r"window_size", r"sliding_window", r"swa\s+window",
    ]),
    ("window", "size", 0.5, [rf"window\s+of(?={_TOKENS})"]),
    ("rope_theta", "size", 1.5, [
        r"(?:rope|rotary|rope's)(?:\s+(?:positional?\s+)?embeddings?)?[\s-]+"
        r"(?:(?:with|uses|using)\s+)?(?:(?:a|an|the)\s+)?(?:base(?:\s+frequency)?|theta|θ)",
        r"(?:base\s+)?frequency\s+(?:base|hyper-?parameter)?(?:\s*θ)?",
        r"base\s+frequenc(?:y|ies)(?:\s+(?:of\s+rope\s+)?θ)?",
        r"rope_(?:theta|base)", r"rotary_base", r"rotary\s+base", r"θ_(?:base|rope)", r"theta_base",
    ]),
    ("dropout", "both", 1.0, [
        r"(?:(?:residual|attention|embedding)\s+)?drop-?outs?"
        r"(?:\s+(?:with\s+)?(?:an?\s+|the\s+)?(?:rate|probability|ratio|prob\.?|p))?",
        r"p_drop", r"resid_pdrop",
    ]),
    # The feed-forward, before "hidden size" alone.
    ("d_ff", "both", 1.5, [
        rf"(?:{_FFN}|intermediate|filter){_S}"
        + _some(
            r"networks?|layers?|sub-?layers?|block|module|hidden|inner|intermediate|state|expansion"
        )
        + _DIM,
        rf"{_FFN}(?:{_S}network)?{_S}(?:hidden|inner|intermediate)"
        rf"(?:{_S}(?:{_DIM}|layer|units?|neurons?))?",
        rf"(?:hidden|inner|intermediate)(?:{_S}(?:layer|state))?{_S}{_DIM}\s+(?:of|in|for)\s+"
        rf"(?:(?:the|each|its|our|all)\s+)?(?:position-wise\s+)?{_FFN}"
        r"(?:\s+(?:networks?|layers?|blocks?|sub-?layers?))?",
        rf"inner-?layer(?:\s+has)?\s+{_DIM}",
        rf"dimension(?:ality)?\s+of\s+(?:the\s+)?{_FFN}(?:\s+(?:networks?|layers?|blocks?))?",
        r"intermediate_size", r"d_?ffn?", r"d_mlp", r"d_feedforward", r"n_inner",
        r"ffn_(?:dim|hidden_size|size)", r"mlp_dim", r"dim_feedforward",
    ]),
    ("d_ff", "count", 1.0, [
        rf"(?:dimensional|dim|d){_S}(?:inner|intermediate|{_FFN})(?:{_S}(?:states?|layers?|networks?))?",
        rf"{_FFN}{_S}(?:hidden{_S})?(?:units|neurons)",
    ]),
    ("d_ff", "size", 0.0, [rf"inner{_S}(?:layer{_S})?{_DIM}"]),
    ("n_parameters", "both", 0.25, [
        rf"{_some('total|trainable|model|learnable|non-embedding')}(?:parameters?|params?)"
        r"(?!\s(?:capacity|budget|sharing|update|efficien\w+|space|server))"
        r"(?:\s+counts?|\s+in\s+total)?",
        r"#\s*params?", r"model\s+size",
    ]),
    # The width of the residual stream, and what may be it.
    ("d_model", "both", 1.5, [
        rf"(?:model|hidden|residual|residual[\s-]+stream|transformer|backbone|internal)"
        rf"(?:{_S}(?:state|states|vector|layer|unit|representation|embedding))?{_S}{_DIM}",
        rf"(?:embedding|token[\s-]+embedding|embed){_S}(?:vector{_S})?{_DIM}",
        rf"{_DIM}\s+of\s+(?:the\s+)?(?:model|hidden\s+states?|hidden\s+layers?|embeddings?|"
        r"residual\s+stream|token\s+embeddings?|transformer)",
        r"(?:dimensional|dim|d)[\s-]+(?:hidden|model|token|residual|embedding|transformer|decoder)s?"
        r"(?:[\s-]+(?:states?|embeddings?|stream|representations?|vectors?|space|dimension))?",
        r"(?:outputs?|vectors?|representations?)\s+of\s+dimension(?:ality)?", r"token\s+width",
        r"channel\s+(?:width|dimension)", r"model\s+channels",
    ]),
    ("d_model", "size", 1.5, [
        r"d_\{?model\}?", r"dmodel", r"d_embed?", r"n_embd?", r"hidden_(?:size|dim)",
        r"embed(?:ding)?_dim", r"d_hidden", r"model_dim", r"d_emb",
    ]),
    ("d_model", "size", 0.5, [
        rf"(?:(?<=layers\s)|(?<=blocks\s))(?:each\s+)?(?:of|with)\s+(?:an?\s+)?{_DIM}",
    ]),
    ("d_model", "count", 0.5, [r"(?<=-)wide(?!\s+(?:sliding|window|attention|local|context))"]),
    ("d_model", "count", 1.0, [r"(?<=[0-9]-)wide"]),
    ("d_model", "size", -0.25, [r"width"]),
    ("d_ff", "size", -0.25, [r"ffn?", r"mlp"]),
    ("d_model", "both", 0.0, [r"hidden(?:\s+(?:units|states?))?\b"]),
    ("n_layers", "count", 1.5, [r"(?:layers?|blocks?)\b"]),
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Term:
    """A field named at string[start:end]."""

    field: str
    role: Role
    strength: float
    start: int
    end: int


_PATTERN = re.compile(
    r"(?<![A-Za-z0-9_])(?:"
    + "|".join(f"(?P<t{i}>{'|'.join(patterns)})" for i, (*_, patterns) in enumerate(_TERMS))
    + r")(?![A-Za-z0-9_])",
    re.IGNORECASE,
)


def terms(string: str) -> list[Term]:
    """Return every naming of a field in `string`, in order and without overlap."""
    found = []
    for match in _PATTERN.finditer(string):
        name, role, strength, _ = _TERMS[int(match.lastgroup[1:])]  # type: ignore[index]
        found.append(Term(name, role, strength, match.start(), match.end()))
    return found


_WHOLE = frozenset(
    "d_model n_layers n_heads n_kv_heads d_ff n_experts".split()
)  # never in thousands or millions


def value_of(field: str, quantity: Quantity, factor: float = 1.0) -> int | float | None:
    """Return a quantity in the field's unit, None when no model has such a value.

    `factor` is the unit that a table's header states. Lengths read K as 1024: 4K is 4096.
    """
    value: int | float = quantity.binary if field in _LENGTHS else quantity.value
    if factor != 1:
        value = round(value * (1024 if field in _LENGTHS and factor == 1000 else factor), 6)
    if field == "dropout" and quantity.percent:
        value = value / 100
    elif quantity.percent or (field in _WHOLE and (quantity.scaled or quantity.kilo)):
        return None
    if field == "n_parameters" and value < 10_000:
        return None
    if field in INTEGERS and value != int(value):
        return None
    if not in_window(field, value):
        return None
    return int(value) if value == int(value) else value


def in_window(field: str, value: int | float) -> bool:
    """Whether some model has such a value of the field."""
    low, high = WINDOWS[field]
    return low <= value <= high
