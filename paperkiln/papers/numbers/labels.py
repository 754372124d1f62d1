"""Fields as table headers name them: a cell counts only when the whole of it names a field.

So a table of results with a column "Params" is no table of configurations by accident.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from paperkiln.papers.phrases import phrases

_DIM = r"(?:dimension(?:ality|s)?|dims?|size|width)"
_FFN = r"(?:feed ?forward|ffn|ff|ffw|mlp)"


def _some(words: str) -> str:
    """Return the pattern of up to four of the words, each with the blank after it."""
    return rf"(?:(?:{words}) ){{0,4}}"


# (field, patterns) of labels in canonical form: lower case, blanks for _ - and /, no full stops,
# and nothing that only says that something is counted ("number of", "#"). The first one that
# matches the whole label is the field.
_LABELS: list[tuple[str, list[str]]] = [
    ("expert_d_ff", [
        rf"{_some('moe|routed|per')}experts?(?:'s)? "
        rf"{_some('intermediate|hidden|ffn|ff|inner|mlp')}{_DIM}",
        rf"(?:moe|expert) (?:intermediate|ffn|ff|mlp)(?: {_DIM})?",
        rf"(?:intermediate|ffn|hidden)(?: {_DIM})? (?:per|of each) expert",
        r"d expert", r"d ffn? ?\^?\(?expert\)?",
    ]),
    ("n_experts_active", [
        r"(?:activated?|active|selected|routed active|active routed|activated routed) experts?"
        r"(?: (?:per )?tok(?:en)?)?",
        r"experts (?:per )?tok(?:en)?", r"experts activated", r"k active",
        r"top ?k experts?", r"(?:expert|router|routing) top ?k", r"top ?k routing",
    ]),
    ("n_experts_shared", [r"shared experts?"]),
    ("n_experts", [
        rf"{_some('routed|total|local|moe|ffn')}experts?(?: per layer)?(?: total)?", r"n e",
    ]),
    ("n_kv_heads", [
        r"(?:kv|k v|key values?|keys and values|key and value|gqa|num key value) "
        r"(?:attention )?(?:heads?|groups?)",
        r"query groups?", r"kv", r"[nh] kv(?: h)?", r"n h(?:ead)? kv", r"heads? kv",
    ]),
    ("head_dim", [
        rf"{_some('attention|attn|per|query|key|qk')}heads? {_DIM}",
        rf"{_DIM} (?:(?:per|of each|of) )?(?:attention )?heads?",
        rf"(?:key|value|kv|k v|key value|qk|qkv) {_DIM}",
        r"d (?:head|h|k|kv|qk)", r"d k = d v",
    ]),
    ("n_heads", [
        _some(
            "attention|attn|self attention|sa|query|q|transformer|parallel|mhsa|mha|multi head|"
            "encoder|decoder"
        )
        + r"heads?(?: h)?(?: count)?",
        r"h", r"n h", r"heads q", r"q query heads",
    ]),
    ("n_layers", [
        _some(
            "hidden|transformer|decoder|encoder|enc|dec|attention|model|stacked|mamba|residual|"
            "built|main|unique|self attention|backbone|total"
        )
        + r"(?:layers?|blocks?)(?: count| l)?",
        r"(?:(?:network|model|transformer|encoder|decoder) )?depth", r"n?l", r"n l",
    ]),
    ("context_length", [
        _some("max|maximum|training|native|default|base|input|supported|pre training|pretraining")
        + r"(?:context(?: (?:length|len|window|size)){0,2}"
        r"|(?:sequence|seq|input|context) (?:length|len|window|size))",
        r"max(?:imum)? (?:sequence|position embeddings|positions|length|tokens|seq|input)",
        r"block size", r"n?ctx", r"n ctx", r"window length",
    ]),
    ("vocab_size", [
        rf"{_some('bpe|token|tokenizer|shared|total|subword|sub word|codebook')}"
        r"(?:vocab|vocabulary)(?: (?:size|entries))?",
        r"\|?v\|?", r"codebook size", r"v size",
    ]),
    ("window", [
        r"(?:sliding|local|attention) ?(?:attention )?window(?: size| length)?",
        r"window size", r"swa window",
    ]),
    ("rope_theta", [
        r"(?:rope|rotary)(?: embedding)? (?:theta|base(?: frequency)?|θ|frequency|base θ)",
        r"base frequency", r"θ(?: (?:base|rope))?",
    ]),
    ("dropout", [
        r"(?:(?:residual|attention|embedding) )?drop ?out(?: rate| probability| ratio| prob| p)?",
        r"p drop",
    ]),
    ("d_ff", [
        rf"(?:{_FFN}|intermediate|inner|filter|intermed)"
        rf"(?: (?:network|layer|hidden|inner|intermediate|expansion)){{0,3}}(?: {_DIM})?",
        rf"hidden {_DIM} {_FFN}", rf"dim {_FFN}", rf"d ?{_FFN}", r"d inner", r"d hidden ffn",
    ]),
    ("n_parameters", [
        rf"{_some('total|trainable|model|learnable|non embedding')}"
        r"(?:parameters?|params?)(?: count)?",
        r"model size", r"size",
    ]),
    ("d_model", [
        r"(?:model|hidden|embedding|embed|emb|residual|transformer|token|channel|backbone|"
        r"residual stream|encoder|decoder)"
        rf"(?: (?:state|layer|vector|stream)){{0,2}} {_DIM}",
        r"hidden", r"embed", r"embd", r"channels", r"hidden units", r"h ?dim", _DIM,
        r"d", r"d ?model", r"d emb(?:ed)?", r"d hidden",
    ]),
]  # fmt: skip
_PATTERN = re.compile("|".join(f"(?P<{name}>{'|'.join(parts)})" for name, parts in _LABELS))
_COUNTED = re.compile(r"^(?:(?:#|(?:number|num|no|nb|total|n)\b)(?: of\b)? ?){1,3}", re.IGNORECASE)
_TRAILING = re.compile(r"[\s,]+\|?[A-Za-z](?:_\w+)?\|?$")  # "Hidden size d"
_BARE = re.compile(rf"{_DIM}|length|channels", re.IGNORECASE)
_SECOND = phrases("extended|extrapolat*|yarn|inference|maximum supported|long")
_UNIT = re.compile(
    r"×\s?10\^(?P<times>\d)|\(10\^(?P<power>\d)\)|\(\s*(?P<letter>[KMB])\s*\)"
    r"|\b(?:in\s+)?(?P<word>millions?|billions?|thousands?)\b",
    re.IGNORECASE,
)
_EXPONENT = {"t": 3, "m": 6, "b": 9, "k": 3}
_ASIDE = re.compile(r"\(([^()]*)\)")
_MAX_LABEL = 70  # characters


# Words that make a label one of something else: "output dimension", "patch layers".
_OTHER_THING = phrases(
    "output|input|batch|patch|image|projection|projected|latent|lora|adapter*|moe|expert*|dense|"
    "shared|conv*|linear|frozen|mtp|first|last|top|final|extra|recurrent|lstm|gru|cnn|unet|dropout|"
    "attention|prediction|classification|cross|looped|recursive|sparse|state|key|value|kv|cache|"
    "time|class|label|joint|common|per|max|min|minimum|maximum|average|mean|number|trainable"
)
_SHAPE = frozenset({"d_model", "n_layers", "n_heads", "d_ff"})


@dataclass(frozen=True)
class Label:
    """What a cell names: the field, a factor from its unit, and how sure the words are."""

    field: str
    text: str = ""
    factor: float = 1.0
    symbol: bool = False
    bare: bool = False
    """A word like "size" or "dim", which means the model's only beside its layers or heads."""
    second: bool = False
    """Of a length that the model was not trained with: "extended context"."""
    part: str = ""
    """What stands before the field's own name: "denoiser" in "Denoiser blocks"."""


_NOTHING = Label("")


def label(string: str, symbols: dict[str, str] | None = None) -> list[Label]:
    """Return the fields that a whole cell names: usually none or one, two for "width / state".

    `symbols` are the ones that the paper defines.
    """
    string = " ".join(string.split())
    if not string or len(string) > _MAX_LABEL:
        return []
    if symbols and string in symbols:
        return [Label(symbols[string], string, symbol=True)]
    if pair := _pair(string):
        return pair
    whole = name_of(string)
    return [whole] if whole else []


def _pair(string: str) -> list[Label]:
    """Return the fields of "n_heads / d_head" and "Heads (Q / KV)", [] for any other label."""
    if "/" not in string or _whole(string):
        return []
    aside = _ASIDE.search(string)
    parts = string.split("/")
    if aside and "/" in aside[1]:
        common = _COUNTED.sub("", _ASIDE.sub("", string), count=1)
        parts = [f"{part} {common}" for part in aside[1].split("/")]
    named = [name_of(part) for part in parts]
    found = [name if name and not name.part else _NOTHING for name in named]
    fields = [named.field for named in found if named.field]
    return found if fields and len(set(fields)) == len(fields) else []


@lru_cache(maxsize=4096)
def name_of(string: str) -> Label | None:
    """Return the one field that a label names, with its unit, else None."""
    unit = _UNIT.search(string)
    factor = 1.0
    if unit:
        power = unit["times"] or unit["power"]
        word = unit["letter"] or unit["word"]
        factor = 10.0 ** (int(power) if power else _EXPONENT[word[0].lower()])
        string = (string[: unit.start()] + string[unit.end() :]).strip()
    aside = " ".join(_ASIDE.findall(string))
    plain = " ".join(_ASIDE.sub(" ", string).split()).strip(" :*†‡^")
    parts = () if re.search(r"\d", plain) else re.split(r"\s*[,=:]\s*", plain)
    # "(D)" may name the field by itself, "(h)" is a unit.
    for text in (string, plain, *parts, "" if aside in ("h", "s", "m") else aside):
        for candidate in (text, _TRAILING.sub("", text)):
            if name := _whole(candidate):
                return Label(
                    name, string, factor, symbol=len(candidate) <= 2,
                    bare=bool(_BARE.fullmatch(candidate)), second=bool(_SECOND.search(string)),
                )  # fmt: skip
    return _of_part(plain)


def _of_part(plain: str) -> Label | None:
    """Return what "Denoiser hidden width" names, with the part of the model it is of."""
    words = plain.split()
    for n in range(1, min(4, len(words)) if "/" not in plain else 1):
        part, rest = " ".join(words[:n]).lower(), " ".join(words[n:])
        if _OTHER_THING.search(part) or _BARE.fullmatch(rest):
            return None
        plainly = rest.lower() in ("layers", "blocks", "heads", "depth") or " " in rest
        if plainly and (name := _whole(rest)) in _SHAPE:
            return Label(name, plain, part=part)
    return None


def _whole(text: str) -> str | None:
    """Return the field that a text names as a whole."""
    text = re.sub(r"[\s_\-–•/()]+", " ", re.sub(r"[{}.]", "", text)).strip().lower()
    match = _PATTERN.fullmatch(text) or _PATTERN.fullmatch(_COUNTED.sub("", text))
    return match.lastgroup if match else None
