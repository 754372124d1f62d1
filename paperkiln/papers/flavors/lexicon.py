"""How papers spell the flavours of a Transformer.

In a pattern a space stands for white space or a hyphen, `~` for one, an underscore or nothing.
What stands first in a table counts first: "squared ReLU" is not a ReLU. Values that no model here
is built with are spelled too, so that they compete and a paper that uses them is not misread.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from paperkiln.papers.architecture import Scalar

MAX_HITS = 800  # of one field in one text; no paper has as many
MAX_TEXT = 200_000  # characters of one text that are read; no paragraph is as long

_GAP = r"[\s\u2010-\u2013-]"
_EMB = r"(?:embedd?ing|encoding|vector|representation)s?"
_POS = r"(?:position(?:al|s)?|pos\.)"
_BIAS = r"bias(?:es)?(?: (?:terms?|parameters?|vectors?))?"
_NO_BIAS_IN = (
    r"(?:(?:all|the|any|every|additive|of|from|in|linear|layers?|their|its|attention|projections?|"
    r"dense|and|qkv|most|both|mlp|ffn|learned|learnable) ){0,5}"
)
_NOT_OURS = r"(?! (?:corrections?|toward|against|detection|mitigation|reduction|is introduced))"
_SWISH = r"(?:silu|swish)"
_NORM = r"norm(?:s|ali[sz](?:ations?|ed|ing|es?)|layers?)?"

# field -> (value, pattern); "" claims its text and means nothing.
_SPELLINGS: dict[str, list[tuple[Scalar, str]]] = {
    "norm": [
        ("", rf"(?:QK|query key)~(?:RMS|layer)?~{_NORM}|weight~normali[sz]ation|spectral~norm\w*"),
        ("rmsnorm", rf"p?RMS~(?:layer)?~{_NORM}|root mean squared? (?:layer )?{_NORM}"),
        ("batchnorm", rf"batch~{_NORM}"),
        ("groupnorm", r"group~norm(?:ali[sz]ation)?\b"),
        ("instancenorm", r"instance~norm(?:ali[sz]ation)?\b"),
        ("scalenorm", r"scale~norm(?:ali[sz]ation)?\b"),
        ("deepnorm", r"deep~norm(?:ali[sz]ation)?\b"),
        ("dyt", r"(?-i:DyT)\b|dynamic tanh"),
        ("layernorm", rf"layer~{_NORM}|(?-i:LNs?)\b"),
    ],
    "norm_placement": [
        ("sandwich", r"(?:sandwich|peri|dual|double)~(?:ln\b|layer~norm\w*|rms~norm\w*|norm\w*)|"
                     r"normali[sz]e (?:both )?the inputs? and (?:the )?outputs?|"
                     r"pre~(?:norm\w*)? (?:and|\+|&) post~norm\w*|post~norm\w* and pre~norm\w*"),
        ("pre", r"pre~(?:(?-i:LN)\b|layer~norm\w*|rms~norm\w*|norm(?:ali[sz]\w*|s|ed)?\b)|"
                r"normali[sz](?:e|es|ing) the inputs? (?:of|to)|"
                r"(?:[a-z]{0,5}norm\w*|(?-i:LN)) (?:[a-z]+ ){0,4}(?:before|prior to|to the "
                r"inputs? of|at the inputs? of)"
                r" (?:[a-z]+ ){0,4}(?:sub~layers?|blocks?|modules?|attention|ffn|mlp|feed~forward)|"
                r"\+ ?[A-Za-z][\w-]+ ?\( ?(?-i:LN|LayerNorm|RMSNorm|Norm) ?\("),
        ("post", r"post~(?:(?-i:LN)\b|layer~norm\w*|rms~norm\w*|norm(?:ali[sz]\w*|s|ed)?\b)|"
                 r"residual connections?(?: [a-z]+){0,10}(?:,)? followed by(?: a)? layer~norm\w*|"
                 r"normali[sz](?:e|es|ing) the outputs? of|"
                 r"(?-i:LN|LayerNorm|RMSNorm|Norm)\w{0,2} ?\( ?\w{1,12} ?\+ ?(?-i:[A-Z])\w{0,20} ?"
                 r"\("),
    ],
    "activation": [
        ("swiglu", rf"swi~glus?\b|{_SWISH}~glus?\b|{_SWISH} gated|gated~{_SWISH}\b|"
                   rf"(?:gated linear units?|glus?)(?: \(GLUs?\))?(?: variants?)? (?:with|using) "
                   rf"(?:an? |the )?{_SWISH}\b|"
                   rf"{_SWISH} and (?:a )?gated linear units?"),
        ("geglu", r"ge~?glus?\b|gelu~glus?\b|gelus? gated|gated~gelus?\b|"
                  r"(?:gated linear units?|glus?)(?: \(GLUs?\))?(?: variants?)? (?:with|using) "
                  r"(?:an? |the )?gelu\b"),
        ("reglu", r"re~?glus?\b|gated~relus?\b"),
        ("squared_relu", r"(?:squared|squaring(?: the)?)~relus?\b|relu~(?:squared|\^ ?\{?2\}?|²)|"
                         r"relu\(\w{1,9}\) ?(?:\^ ?2|²)|"
                         r"(?-i:relu2|ReLU2)\b|squared rectified linear"),
        ("leaky_relu", r"leaky~relus?\b"), ("prelu", r"p~relus?\b|parametric relus?\b"),
        ("relu6", r"relu~6\b"), ("elu", r"(?-i:ELUs?)\b|exponential linear units?"),
        ("selu", r"(?-i:SELUs?)\b"), ("quick_gelu", r"quick~gelus?\b"),
        ("silu", rf"{_SWISH}s?\b|sigmoid (?:weighted )?linear units?"),
        ("gelu", r"gelus?\b|gelu_(?:new|fast|tanh|pytorch_tanh)\b|gauss(?:ian)? error linear "
                 r"units?"),
        ("relu", r"relus?\b|rectified linear(?: units?)?|max ?\( ?0 ?, ?(?:x ?\)|\w{0,3} ?"
                 r"(?-i:W)\w*)"),
        ("mish", r"(?-i:Mish|mish)\b"),
        ("tanh", r"(?:tanh|hyperbolic tangent) (?:activations?|non~linearit(?:y|ies)|functions?)"),
        ("glu", r"gated linear units?(?: \(GLUs?\))?|(?-i:GLUs?)\b"),
    ],
    "positional": [
        ("none", rf"(?-i:NoPE)\b|(?:no|without)(?: any| explicit| using){{0,4}} {_POS} (?:{_EMB}|"
                 rf"information)|"
                 rf"do(?:es)? not (?:use|employ|need|require|have|add|include)(?: any| "
                 rf"explicit){{0,4}} {_POS} {_EMB}"),
        ("2d", rf"(?:2|two)~d(?:imensional)?(?: \w+){{0,2}} {_POS} {_EMB}"),
        ("conv", rf"convolutional(?: relative)? {_POS} {_EMB}"),
        ("xpos", r"(?-i:xPos|XPos|XPOS)\b"), ("kerple", r"(?-i:KERPLE)\b"),
        ("rope", rf"(?-i:[A-Za-z-]{{0,4}}RoPEs?)\b|rope[_ ]theta\b|rotary(?: \w+){{0,1}}? "
                 rf"{_POS}(?: {_EMB})?|rotary(?: {_EMB})?\b|"
                 rf"rotational {_POS} {_EMB}|RoFormer(?: \w+)? {_EMB}"),
        ("alibi", r"(?-i:[Aa][Ll]i[Bb]i|ALIBI|AliBI)\b|attention (?:with )?linear bias(?:es)?"),
        ("relative", rf"(?:learn(?:ed|able|t) |trainable )?relative {_POS}(?: {_EMB}| "
                     rf"(?:attention )?bias(?:es)?| attention)|"
                     rf"relative(?: self)? attention|relative {_EMB}|T5(?: style)?(?: "
                     rf"relative)?(?: {_POS})? bias(?:es)?|"
                     r"disentangled (?:self )?attention"),
        ("learned", rf"(?:learn(?:ed|able|t)|trainable|trained|parametric)(?:,)?(?: (?:absolute|"
                    rf"1d|standard|token|and|input|additive|per|segment|type|word|embeddings?|"
                    rf"their|fixed~length)){{0,4}}"
                    rf" {_POS} {_EMB}|learn(?:s|ing)?(?: (?:absolute|separate|the|our|additive|"
                    rf"an?)){{0,4}} {_POS} {_EMB}|"
                    rf"{_POS} {_EMB}(?:,)?(?: (?:that|which))?(?: (?:is|are|was|were))?(?: "
                    rf"(?:also|all|jointly|then|fully|randomly|initiali[sz]ed|and)){{0,4}} "
                    rf"(?:learn(?:ed|able|t)|trainable|trained)\b|"
                    rf"(?:learn(?:ed|able|t)|trainable)(?: \w+){{0,1}} {_EMB} (?:for|of) (?:each "
                    rf"|every |the |all |token |absolute ){{0,4}}positions?|"
                    rf"{_POS} embedding (?:table|"
                    rf"matrix)"),
        ("sinusoidal", rf"sinusoids?\b|sinusoidal(?:ly)?(?: \w+)?(?: {_POS})?(?: {_EMB})?|"
                       rf"sin(?:e|es)? (?:and|/|&) cos(?:ine|ines)?\b|"
                       r"sine?[ /-]{1,2}cos(?:ine)?\b|sin ?\( ?pos\b"),
    ],
    "attention": [
        ("", r"flash~attention~?\d?|cross~attention|relative attention"),
        ("swa", r"(?:full )?sliding~windows?(?: (?:causal|local|self|masked)){0,4} attention|"
                r"(?-i:SWA)\b|"
                r"(?:shifted~)?window(?:ed)?(?: (?:causal|local|self)){0,4} attention|"
                r"local(?: (?:windowed|sliding|window|causal|banded)){0,4}(?: self)? attention|"
                r"banded attention"),
        ("linear", r"lineari[sz]ed attention|linear~(?:self )?attention|lightning attention|"
                   r"(?-i:RetNet)|"
                   r"retention mechanism|(?-i:(?:Gated )?DeltaNet)"),
        ("mla", r"multi~head latent attention|latent attention|(?-i:MLA)\b"),
        ("sparse", r"(?:block~|native(?:ly)? )?sparse(?: \w+)? attention|(?-i:NSA|DSA)\b"),
        ("ssm", r"(?-i:Mamba~?\d?)\b|(?:selective )?state~space (?:models?|layers?|blocks?|"
                r"duality|dynamics)|(?-i:SSMs?|S4|S6)\b"),
        ("exact", r"(?:full|dense|global|exact|quadratic|vanilla|standard)(?: (?:causal|softmax|"
                  r"bidirectional|multi~head|self|dense)){0,4} attention|"
                  r"(?:causal |masked |bidirectional ){0,4}multi~head(?:ed)?(?: causal| masked| "
                  r"scaled dot~product){0,4}(?: self)? attention|"
                  r"(?-i:MHSA|MHA|GQA|MQA)\b|group(?:ed)?~query(?: self)? attention|multi~query "
                  r"attention|"
                  r"(?:(?:causal|masked|bidirectional|scaled|dot~product|softmax)(?: scaled)?(?: "
                  r"self)? )attention|self attention"),
    ],
    "bias": [
        ("qkv", rf"qkv {_BIAS}|{_BIAS} (?:to|in|for|on)(?: only)?(?: the)? (?:qkv|query, key,? "
                rf"and value|q, ?k,? and v)"),
        (False, rf"(?:no|without)(?: (?:any|the|using|additive|linear)){{0,4}} "
                rf"{_BIAS}{_NOT_OURS}\b|bias free|bias less\b|bias ?= ?false\b|"
                rf"(?:remov|omit|drop|exclud|eliminat|discard|disabl|strip)(?:e|s|es|ed|ing|ped|"
                rf"ping|ted|ting)? {_NO_BIAS_IN}{_BIAS}{_NOT_OURS}|"
                rf"(?:do(?:es)?|did) not (?:use|have|include|employ|add|contain|learn|apply) "
                rf"{_NO_BIAS_IN}{_BIAS}|"
                rf"(?:no|none of the) (?:linear |dense |projection )?(?:layers?|projections?|"
                rf"matrix|matrices) (?:has|have|uses?) (?:an? |any )?{_BIAS}|"
                rf"{_BIAS}(?: in \w+(?: \w+)?)? (?:is|are|was|were) (?:all )?(?:removed|omitted|"
                rf"dropped|excluded|disabled|eliminated|not used|set to false)"),
        (True, rf"(?:with|use|uses|using|include|includes|retain|retains|keep|keeps) (?:additive "
               rf"|learned |learnable )?{_BIAS} (?:in|on|for) (?:all|every|each|the)|bias ?= ?"
               rf"true\b"),
    ],
    "tied_embeddings": [
        (False, r"(?:instead of|rather than) (?:tying|sharing) (?:\w+ ){0,5}?(?:embeddings?|"
                r"weights)|un~tied (?:\w+ ){0,4}?(?:embeddings?|unembeddings?|weights|head)|"
                r"unt(?:ie|ies|ying) (?:\w+ ){0,5}?(?:embeddings?|weights)|"
                r"(?:not|n't|without|no|never) (?:\w+ ){0,1}?(?:ti(?:e|ed)|tying|shar(?:e|ed|"
                r"ing)|weight tying) (?:\w+ ){0,4}?(?:(?:un)?embeddings?|weights)|(?:no|without) "
                r"(?:weight|embedding) tying|"
                r"embeddings?(?: \w+){0,4} (?:is|are) (?:not (?:tied|shared)|untied)"),
        (True, r"tied (?:[\w/]+ ){0,4}?(?:embeddings?|unembeddings?|weights|softmax|(?:lm|"
               r"output) (?:head|layer|projection))|(?:weight|embedding) (?:tying|sharing between)|"
               r"t(?:ie|ies|ying) (?:[\w/]+ ){0,6}?(?:embeddings?|unembeddings?|weights|heads?)|"
               r"tied (?:lm |output )?head|"
               r"shar(?:e|es|ed|ing) (?:[\w/]+ ){0,5}?(?:weights? (?:matrix |matrices "
               r")?(?:between|across|of) (?:\w+ ){0,4}?embedding|input(?: and|/| )? ?output "
               r"embedding)|"
               r"shar(?:e|es|ing) (?:[\w/]+ ){0,5}?(?:embeddings? (?:\w+ ){0,5}?(?:with|and|"
               r"between) (?:\w+ ){0,2}?(?:softmax|output|unembedding|lm head))|"
               r"shar(?:e|ed) embeddings? across (?:our )?inputs? and outputs?|"
               r"embeddings?(?: (?:and|matrix|matrices|the|output|input|layers?|projection|"
               r"softmax|weights?|unembedding|lm|head)){0,7} (?:is|are) (?:tied|shared)|"
               r"(?:output|lm|softmax) (?:head|layer|projection) (?:reuses|shares|is tied|is "
               r"shared|reusing|sharing)"),
    ],
    "residual": [
        ("highway", r"highway (?:networks?|connections?|layers?|blocks?|gates?)|carry gates?"),
        ("hyper", r"hyper~connections?|(?-i:mHC)\b"), ("rezero", r"(?-i:ReZero)\b"),
        ("dense", r"dense(?:ly)? (?:connected )?(?:residual|skip) connections?|densely connected"),
        ("gated", r"gated (?:residual|skip) connections?"),
        ("standard", r"residual (?:connections?|streams?|links?|paths?|branch(?:es)?|additions?)|"
                     r"skip connections?|\+ ?residual\b"),
    ],
}  # fmt: skip

# Every spelling of a field holds one of these; looking for them first spares most of a paper.
_SIGNS = {
    "norm": ("norm", "ln", "dyt", "tanh"),
    "norm_placement": ("norm", "ln"),
    "activation": ("glu", "elu", "ilu", "gated", "unit", "swish", "linear", "mish", "tanh",
                   "tangent", "max"),
    "positional": ("pos", "rope", "rotary", "roformer", "alibi", "bias", "relative", "kerple",
                   "nope", "disentangled", "sin", "learn"),
    "attention": ("attention", "mla", "swa", "mamba", "space", "ssm", "s4", "s6", "nsa", "dsa",
                  "mha", "mhsa", "gqa", "mqa", "retnet", "retention", "deltanet"),
    "bias": ("bias",),
    "tied_embeddings": ("embed", "weight", "head", "tying", "softmax", "layer", "projection"),
    "residual": ("residual", "skip", "highway", "gate", "hyper", "rezero", "mhc", "dense"),
}  # fmt: skip
# In these the value is a yes or no (or an absence), and a "no" before it is part of it.
POLAR: dict[str, frozenset[Scalar]] = {
    "bias": frozenset({True, False, "qkv"}),
    "tied_embeddings": frozenset({True, False}),
    "positional": frozenset({"none"}),
}
# A gated unit and the function in its gate: whoever uses the first uses the second.
GATE_OF: dict[Scalar, Scalar] = {"swiglu": "silu", "geglu": "gelu", "reglu": "relu"}

# What a configuration table calls a field, the whole cell.
_LABELS = {
    "norm": rf"(?:pre |post |layer |input |block |final )*{_NORM}(?: (?:type|layers?|functions?|"
            rf"method|scheme))?",
    "norm_placement": r"(?:layer~)?norm(?:ali[sz]ation)? (?:placement|position|location|order|"
                      r"style)",
    "activation": r"(?:hidden |ffn |mlp |feed~forward |model |non~?linear )*(?:activations?|"
                  r"non~linearit(?:y|ies)|act(?:ivation)?[_ ]?fn|hidden_act|ffn|mlp|"
                  r"feed~forward(?: networks?)?)"
                  r"(?: (?:functions?|type|layers?|blocks?|units?))?",
    "positional": r"(?:relative |absolute )?(?:pos(?:ition(?:al)?|\.)?~?(?:enc(?:odings?)?|"
                  r"emb(?:eddings?)?|embed)\.?|PE|positions?|position(?:al)? information)(?: "
                  r"(?:type|method|scheme))?",
    "attention": r"(?:self )?att(?:ention|n\.?)(?: (?:type|mechanism|variant|pattern|layers?))?|"
                 r"token mix(?:er|ing)|sequence mix(?:er|ing)",
    "bias": r"(?:use |linear |linear layer |any )?bias(?:es)?(?: terms?)?",
    "tied_embeddings": r"(?:(?:tie|tied|tying|shared?) (?:word |input[ /]output )?(?:embeddings?|"
                       r"weights)|(?:weight|embedding)s? (?:tying|sharing|tied)|"
                       r"tie_word_embeddings)",
}  # fmt: skip
_YES = re.compile(r"(?:yes|true|✓|✔|tied|shared|on|enabled)\b|[✓✔]", re.IGNORECASE)
_NO = re.compile(r"(?:no|none|false|untied|off|disabled|not tied|separate)\b|[✗×✘]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Hit:
    """A value spelled at [start, end) of a text."""

    value: Scalar
    start: int
    end: int


def _written_out(pattern: str) -> str:
    """Return the pattern with its gaps written out; character classes stay as they are."""
    parts = re.split(r"(\[[^\]]*\])", pattern)
    for i in range(0, len(parts), 2):
        part = parts[i].replace(" ?", "\0").replace("~", r"[\s_\u2010-\u2013-]{0,2}")
        parts[i] = part.replace(" ", rf"{_GAP}{{1,2}}").replace("\0", r"\s?")
    return "".join(parts)


@cache
def _pattern(name: str) -> re.Pattern[str]:
    """Return one alternation over all spellings of a field, a group for each value."""
    spellings = "|".join(f"({_written_out(p)})" for _, p in _SPELLINGS[name])
    return re.compile(rf"(?<![A-Za-z0-9])(?:{spellings})(?:(?<=\W)|(?![A-Za-z]))", re.IGNORECASE)


@cache
def _label(name: str) -> re.Pattern[str]:
    return re.compile(_written_out(_LABELS[name]), re.IGNORECASE)


def find(name: str, string: str) -> list[Hit]:
    """Return every value of a field that the text spells, in order."""
    lower = string[:MAX_TEXT].lower()
    if not any(word in lower for word in _SIGNS[name]):
        return []
    hits = []
    for match in _pattern(name).finditer(string, 0, MAX_TEXT):
        value = _SPELLINGS[name][match.lastindex - 1][0]
        if value != "":
            hits.append(Hit(value, match.start(), match.end()))
        if len(hits) >= MAX_HITS:
            break
    return [hit for i, hit in enumerate(hits) if not _explained(string, hits, i)]


# What may stand between a general word and the value that it introduces, or the other way about.
_APPOSITION = re.compile(
    r"[\s(,:-]*(?:(?:i\.e\.|namely|specifically|with|using|via|called|"
    r"as)[\s,(]+)?(?:the\s+)?"
)
# (general, particular): "layer normalization (RMSNorm)", "a gated linear unit, SwiGLU".
_GENERAL = frozenset(
    {("layernorm", "rmsnorm"), ("glu", "swiglu"), ("glu", "geglu"), ("glu", "reglu"),
     ("relative", "rope"), ("relative", "alibi")}
)  # fmt: skip
# (part, whole): one norm of a sandwich, and the gate that the definition of a SwiGLU names.
_WITHIN = frozenset({("pre", "sandwich"), ("post", "sandwich"), ("silu", "swiglu")})


def _explained(string: str, hits: list[Hit], i: int) -> bool:
    """Return whether a hit is only the general word for the one beside it."""
    hit = hits[i]
    for other in hits[max(i - 1, 0) : i + 2]:
        pair = (hit.value, other.value)
        if pair in _WITHIN and abs(hit.start - other.start) < 100:
            return True
        defined = GATE_OF.get(other.value) == hit.value and "=" in string[other.end : hit.start]
        if defined and hit.start - other.end < 40:
            return True
        if pair not in _GENERAL:
            continue
        low, high = sorted((hit, other), key=lambda h: h.start)
        if _APPOSITION.fullmatch(string[low.end : high.start]) and high.start - low.end < 30:
            return True
    return False


def label_of(cell: str) -> str:
    """Return the field that a table cell is the label of, else ""."""
    words = " ".join(re.sub(r"\([^()]{0,60}\)", " ", cell[:120]).split()).strip(" .:*")
    if not words or len(words) > 50:
        return ""
    return next((name for name in _LABELS if _label(name).fullmatch(words)), "")


def answer(name: str, cell: str) -> Scalar | None:
    """Return the yes or no that a cell beside a label of `bias` or `tied_embeddings` holds."""
    if name not in ("bias", "tied_embeddings"):
        return None
    words = cell.strip()[:40]
    if _NO.match(words):
        return False
    return True if _YES.match(words) else None
