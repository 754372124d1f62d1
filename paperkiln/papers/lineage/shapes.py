"""How a sentence says that one model takes over another's architecture: the phrases, as a table.

All patterns run over words (see naming.py), each followed by one space, and over at most REACH
words before a name and a few after it, so their cost is bounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from paperkiln.papers.lineage.naming import Words

REACH = 28  # words before the name that are read


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STRONG = _words(
    "architecture architectures architectural backbone backbones design designs transformer "
    "transformers decoder decoders encoder encoder-decoder network networks structure structures "
    "configuration configurations config block blocks stack layout topology blueprint"
)
WEAK = _words("model models family families series lm lms llm llms variant variants size sizes")
WEIGHTS = _words("weights checkpoint checkpoints parameters")
# Heads that are not an architecture, and parts that are less than one.
NOT_ARCHITECTURE = _words(
    "tokenizer tokenizers tokeniser tokenization tokenisation vocabulary vocab embedding "
    "embeddings framework data dataset datasets corpus corpora optimizer optimiser optimization "
    "codebase code implementation repository library hyperparameters hyper-parameters "
    "hyperparameter setup set-up setting settings recipe objective loss initialization "
    "initialisation scheme paper report results result scores score baseline baselines teacher "
    "teachers schedule format prompt prompts template outputs activations judge evaluator "
    "benchmark tokens api pipeline attention mlp mlps ffn ffns feed-forward layer layers rope "
    "norm normalization rmsnorm swiglu classifier retriever features representations logits "
    "training pretraining pre-training evaluation experiments analysis regime budget budgets "
    "procedure protocol strategy methodology convention experimental license playground "
    "inference decoding quantization ratio ratios mixture"
)
COMPONENT = _words(
    "vision visual image text audio speech sentence critic reward value draft teacher embedder "
    "reference judge verifier retriever reranker baseline baselines classifier"
)
_STOP = _words(
    "of in on for with to as by from at and or but , ; : . / is are was were be been that which "
    "who where while when because since using uses use than so we our i it they this has have "
    "had not no without except excluding following via through into over under between during "
    "after before trained pretrained finetuned fine-tuned implemented containing consisting"
)
_HEADS = (("strong", STRONG), ("weak", WEAK), ("weights", WEIGHTS))
_STYLES = _words("style styled like based type inspired esque")
_JOINERS = _words("and or , /")
_POSSESSIVE = _words("' ’ s")


@dataclass(frozen=True)
class Noun:
    """The noun phrase that a family's name heads or modifies."""

    head: str
    """strong, weak, weights, bare (the name alone), not (an architecture) or other."""
    style: bool
    others: tuple[str, ...]
    """Families named beside it."""
    end: int
    words: str


def read_noun(words: Words, at: int) -> Noun:
    """Read on from the name at word `at`: `-style`, families beside it, the noun it modifies."""
    end, style, others = at + 1, False, []
    while end < len(words):
        word = words.words[end]
        if word[0] == "@":
            others.append(word[1:])
        elif word in _STYLES:
            style = True
        elif word in _JOINERS:
            beside = _name_beside(words, end)
            if not beside:
                break
            end = beside
            continue
        elif word not in _POSSESSIVE:
            break
        end += 1
    head, stop = _read_head(words, end)
    itself = words.words[at][1:]
    rest = tuple(dict.fromkeys(name for name in others if name != itself))
    return Noun(head, style, rest, stop, words.text(at, stop).strip())


def _name_beside(words: Words, at: int) -> int | None:
    """Return where the family named after "and" or ", and the" stands."""
    for i in range(at, min(at + 4, len(words))):
        if words.words[i][0] == "@":
            return i
        if words.words[i] not in _JOINERS and words.words[i] != "the":
            return None
    return None


def _read_head(words: Words, start: int) -> tuple[str, int]:
    """Return the kind of the last noun of the phrase that goes on at `start`, and its end."""
    head, stop = "bare", start
    for i in range(start, min(start + 7, len(words))):
        word = words.words[i]
        if word in _STOP or word[0] in "@~":
            break
        if word in NOT_ARCHITECTURE or word in COMPONENT:
            return "not", i + 1
        kind = next((kind for kind, nouns in _HEADS if word in nouns), "")
        if kind:
            head, stop = kind, i + 1
        elif i == start:
            head = "other"
    return head, stop


# What the phrases are made of. Longer words first: the space after each settles which it was.
NOUN = f"(?:{'|'.join(sorted(STRONG | _words('model models lm lms llm llms student')))})"
BAD = "|".join(sorted(NOT_ARCHITECTURE | COMPONENT))
PREPOSITIONS = (
    "of|in|on|for|with|to|as|by|from|at|or|but|is|are|was|were|that|which|than|not|we|it|they|"
    "using|via|while|when|because|whereas|between|over|into|used|follow|follows|following"
)
# Words of one noun phrase: no preposition, no verb of being, no other name.
_MOD = rf"(?:(?!(?:{PREPOSITIONS}|{BAD}) )[^@\s;:./]\S* )"
_MODS, _MODS3 = f"{_MOD}{{0,9}}", f"{_MOD}{{0,3}}"
_ANY3 = r"(?:[^@\s;:.,]\S* ){1,3}"
_ART = "(?:(?:a|an|the|its|their|our) )?"
_ADV = (
    "(?:(?:closely|largely|mostly|strictly|exactly|directly|heavily|primarily|mainly|generally|"
    "essentially|roughly|broadly|almost|nearly|also|further|simply|all|both|each|currently|first|"
    "then|architecturally|therefore|fully|entirely|very|otherwise|itself|themselves) ){0,3}"
)
_OF = (
    "(?:of|from|in|to|used (?:in|by|for)|proposed (?:in|by)|introduced (?:in|by)|"
    "described (?:in|by)) "
)
_ON = "(?:(?:up)?on|after|from) (?:top of )?"
_THAT_OF = "(?:(?:that|those|the ones?) (?:of|used (?:in|by)|in) )?"
_BE = "(?:is|are|was|were|remains?) "
_GROUP = (
    "(?:family|series|suite|set|number|collection|range|group|variants?|versions?|adaptation|"
    "instance|copy|replica|re-?implementation|reproduction|extension|modification|derivative|"
    "descendant)"
)
_USE = (
    r"(?:(?:re-?)?us(?:e|es|ed|ing)|adopt\w*|employ\w*|utili[sz]\w+|choose|chose|chosen|select\w*|"
    r"implement(?:s|ed|ing)?|take|takes|took|leverag\w+|keep|keeps|retain\w*|opt for|"
    r"rel(?:y|ies|ied) on|build|builds|built|construct\w*|instantiat\w+|replicat\w+|reproduc\w+|"
    r"inherit\w*|modif(?:y|ies|ied)|extend\w*|with|has|have|having)"
)
_TRAIN = r"(?:(?:pre-?)?train(?:s|ed)?|replicat\w+|reproduc\w+|develop\w*|scale)"
_FOLLOW = r"(?:follow(?:s|ed|ing)?|adher(?:e|es|ing) to|mirror(?:s|ing)?|replicat\w+)"
_BASE = "(?:based|built|builds|build|building|modell?ed|patterned|constructed|founded|implemented)"
_OF_WEIGHTS = f"(?:(?:weights|parameters|checkpoints?) (?:of|from) {_MODS3})?"
_PRETRAINED = re.compile(r"(?<!\S)(?:frozen|pre-?trained|off-the-shelf|public|released) ")
_AS_BACKBONE = re.compile(
    rf"(?:(?:is|are|was) used |serves )?as (?:our|the|a|its) {_MODS3}(?:backbone|base|"
    r"foundation\w*|student|starting|initiali[sz]ation)(?!\S)"
)
_IN_PERFORMANCE = re.compile(r"(?:in|on) (?!(?:\S+ )?(?:architecture|design|structure|that) )")
_A = re.compile(r"(?<!\S)(?:a|an) ")


@dataclass(frozen=True)
class Shape:
    """A phrase that ends right before the name, and the nouns that it may take."""

    name: str
    lead: re.Pattern[str]
    heads: frozenset[str]
    score: float
    initialised: bool = False
    rule: str = ""
    """A further condition; see `fits`."""

    def fits(self, noun: Noun, lead: str, after: str) -> bool:
        """Return whether the noun phrase is one that this phrase takes over."""
        if noun.head not in self.heads:
            return False
        match self.rule:
            case "own model":  # a plain model of the family is a model that others made
                own = noun.style or _A.search(lead)
                return noun.head == "strong" or bool(own and (noun.head == "weak" or noun.style))
            case "styled":
                return noun.style
            case "strong or styled":
                return noun.head == "strong" or noun.style
            case "not in performance":
                return not _IN_PERFORMANCE.match(after)
            case "as our backbone":
                return bool(_AS_BACKBONE.match(after))
        return True

    def starts_from_weights(self, noun: Noun, lead: str) -> bool:
        """Return whether the claim is of weights, and only so of an architecture."""
        return self.initialised or noun.head == "weights" or bool(_PRETRAINED.search(lead))


def _shape(
    name: str, lead: str, heads: str, score: float, initialised: bool = False, rule: str = ""
) -> Shape:
    pattern = re.compile(rf"(?<!\S){lead}$")
    return Shape(name, pattern, _words(heads), score, initialised, rule)


_NAMED = "strong weak bare other"
_WEIGHED = _NAMED + " weights"

SHAPES = (
    _shape(
        "has the same architecture",
        rf"(?:same|identical|similar|exact) {_MODS}(?:and {_MODS3})?{NOUN} (?:and {_ANY3})?"
        rf"(?:as|to|with) (?:{_THAT_OF}|(?:of|used in|used by) ){_ART}{_MODS3}",
        _NAMED, 4.0,
    ),
    _shape(
        "has an identical or similar architecture",
        rf"(?:{NOUN}|~own) (?:(?:we use|used|in this work|throughout) )?(?:{_BE}|stays? |kept )?"
        rf"{_ADV}(?:identical|similar|equivalent|(?:the )?same) (?:in (?:architecture|structure) )?"
        rf"(?:to|as) {_THAT_OF}{_ART}{_MODS3}",
        _NAMED, 3.5, rule="not in performance",
    ),
    _shape("shares", rf"shar(?:e|es|ed|ing) {_MODS}{NOUN} with {_ART}{_MODS3}", _NAMED, 3.5),
    _shape(
        "follows the architecture",
        rf"(?:{_FOLLOW}|{_USE}) (?:(?:most|much|all|many) of )?(?:{_ANY3}and )?{_MODS}"
        rf"(?:{NOUN}|details|architectural \S+)(?: principles| choices)? {_OF}{_ART}{_MODS3}",
        _NAMED, 3.5,
    ),
    _shape("follows", rf"{_ADV}{_FOLLOW} {_ADV}{_MODS}", "strong", 3.5),
    _shape(
        "its architecture follows",
        rf"(?:{NOUN}|~own) {_ADV}{_FOLLOW} {_ADV}{_THAT_OF}{_ART}{_MODS3}",
        "strong weak bare", 3.5,
    ),
    _shape(
        "is based on",
        rf"(?:{_BE})?{_ADV}{_BASE} {_ADV}{_ON}{_MODS}"
        rf"(?:{NOUN} {_OF}{_MODS3}|{_GROUP} of {_MODS3})?",
        "strong", 3.5,
    ),
    _shape(
        "our model is based on",
        rf"(?:{NOUN}|~own) (?:, )?(?:{_BE})?{_ADV}{_BASE} {_ADV}{_ON}{_MODS3}",
        "weak bare", 3.0,
    ),
    _shape("bases its architecture on", rf"bases? {_MODS}{NOUN} {_ON}{_MODS3}", _NAMED, 3.5),
    _shape(
        "is derived from",
        rf"(?:adapted|derived|inherit\w*|borrow\w*|taken|modified|extended) {_ADV}{_MODS3}from "
        rf"{_MODS}(?:{NOUN} of {_MODS3})?",
        "strong", 3.0,
    ),
    _shape(
        "is a version of",
        rf"(?:is|are|as|{_USE}|{_TRAIN}|propos\w+|present\w*|introduc\w+|releas\w+) {_MODS}"
        rf"{_GROUP} of {_MODS3}",
        _NAMED, 3.0,
    ),
    _shape("trains", rf"{_TRAIN} {_MODS}", "strong weak bare", 2.5),
    _shape("uses the architecture", rf"{_USE} {_MODS}", _NAMED, 3.0, rule="own model"),
    _shape(
        "is a model of the kind", rf"(?:is|are|was|were|as|being) {_MODS}", _NAMED, 3.0,
        rule="strong or styled",
    ),
    _shape("is ours", rf"our {_MODS}", "strong weak", 2.5, rule="styled"),
    _shape(
        "is its backbone",
        r"(?:backbones?|base (?:model|llm|lm|language model)s?|foundation models?|"
        rf"student(?: model)?) (?:is|are|was) {_MODS}",
        _NAMED, 1.5, True,
    ),
    _shape(
        "is initialised from",
        rf"(?:initiali[sz]\w*|init) {_MODS}(?:from|with|using|by) {_MODS}{_OF_WEIGHTS}",
        _WEIGHED, 1.5, True,
    ),
    _shape(
        "starts from",
        rf"start(?:s|ed|ing)? (?:(?:pre-?)?training )?(?:from|with) {_MODS}{_OF_WEIGHTS}",
        _WEIGHED, 1.5, True,
    ),
    _shape(
        "fine-tunes",
        r"(?:fine-?tun\w+|continu\w+ (?:to )?(?:pre-?)?train\w*|post-?train\w*|upcycl\w+|"
        r"continual(?:ly)? (?:pre-?)?train\w*|instruction-tun\w+|warm-?start\w*) "
        rf"(?:from )?{_MODS}",
        _WEIGHED, 1.0, True,
    ),
    _shape("uses as its backbone", rf"{_USE} {_MODS}", _NAMED, 1.5, True, "as our backbone"),
    _shape(
        "is labelled so",
        rf"^(?:\S+ )?(?:{NOUN}|type|base|family)(?: type| family)? [:.] {_MODS}",
        "strong weak bare", 2.5,
    ),
)  # fmt: skip
