"""Whose number is it: the paper's own model's, a component's, a teacher's, a baseline's?"""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice

from paperkiln.papers.document import Document, Section
from paperkiln.papers.lineage.ancestors import ANCESTORS, alias_pattern

# What a paper describes beside its model, as patterns of whole words.
_PARTS = [
    # encoders of what goes into the model
    r"(?:vision|visual|image|video|audio|speech|acoustic|text|feature|patch|document|graph|protein|"
    r"modality|multimodal|state|history|sensor|frozen|pre-?trained)[\s-]+"
    r"(?:encoders?|towers?|extractors?|embedders?|branch)",
    r"conv(?:olution(?:al)?)?[\s-]+(?:neural\s+)?(?:stem|networks?|nets?|encoders?|front-?ends?|"
    r"layers?|blocks?|backbones?|baselines?)",
    r"stem", r"resnets?(?:-?\d+)?",
    r"glove", r"word2vec", r"fasttext", r"word[\s-](?:vectors|embeddings)",
    # models that teach, judge, draft or search for it
    r"(?<!student[\s-])teachers?(?:'s)?(?:[\s-]+(?:models?|networks?))?",
    r"draft(?:ing)?[\s-]+models?", r"drafters?", r"reward[\s-]+models?", r"world[\s-]+models?",
    r"(?:proxy|surrogate|reference|oracle|pilot)[\s-]+(?:models?|networks?)",
    r"discriminators?", r"critics?", r"retrievers?", r"rerankers?",
    r"(?<!key[\s/-])(?<!and[\s-])value[\s-]+(?:networks?|functions?|heads?)",
    # pieces added to it
    r"adapters?", r"lora", r"projectors?", r"projection[\s-]+(?:heads?|layers?|networks?)",
    r"hyper-?networks?", r"gating[\s-]+networks?", r"routers?", r"mtp[\s-]+modules?",
    r"predictors?", r"indexers?", r"bridges?", r"samplers?", r"q-?formers?", r"resamplers?",
    r"perceiver", r"style[\s-]+(?:embeddings?|adapters?|encoders?)", r"auxiliary[\s-]+\w+",
    r"(?:(?:linear|text|image|sequence|final|mlp)[\s-]*)?classifiers?",
    # networks that are no transformer
    r"vae", r"vq-?vae", r"vq-?gan", r"auto-?encoders?", r"codecs?", r"vocoders?", r"u-?nets?",
    r"cnns?", r"(?:bi-?)?lstms?", r"(?:bi-?)?grus?", r"rnns?",
    # what it is compared with, or tried out on
    r"baselines?", r"toy(?:[\s-]+\w+)?", r"synthetic[\s-]+controls?", r"sanity[\s-]+checks?",
    r"prob(?:e|es|ing)(?:[\s-]+\w+)?", r"hand-?coded", r"hand-?crafted",
    r"analytic(?:al)?[\s-]+construction", r"competing[\s-]+\w+",
    r"(?:prior|previous|existing)[\s-]+(?:work|models?)",
]  # fmt: skip
_PART = re.compile(rf"\b(?:{'|'.join(_PARTS)})\b", re.IGNORECASE)
# Words that turn "<part>" into something that the main model has or does.
_NOT_SUBJECT = re.compile(
    r"\b(?:without|unlike|than|instead of|like|from|over|against|"
    r"(?<!fed )(?<!passed )(?<!input )to)\s+(?:\w+\s+){0,3}$",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(
    r"^\s*(?:model|backbone|architecture):|\b(?:we|our|ours|us|this (?:paper|work)|"
    r"the (?:proposed|main|full|resulting) (?:model|network|architecture))\b",
    re.IGNORECASE,
)
_OWN_HEADER = re.compile(r"\b(?:ours?|proposed|this (?:work|paper))\b", re.I)
_MEASURED_ON = re.compile(
    r"\b(?:benchmark|analy[sz]e|study|studied|probe|evaluate|examine|investigate|inspect|interpret|"
    r"quanti[sz]e|compress|prune|test|measure|attack|profile)d?\s+(?:the\s+)?(?:\w+\s+)?$|"
    r"(?<!based )(?<!built )(?<!builds )\b(?:on|across|of|for|against|within|using)\s+"
    r"(?:the\s+)?(?:\w+\s+)?$",
    re.IGNORECASE,
)
# Parts, methods and sizes that are spelled like the name of a model.
_METHODS = frozenset(
    "rope gqa mqa mha mla ffn ffns mlp moe smoe swa bpe rmsnorm layernorm swiglu geglu gelu relu "
    "alibi sentencepiece wordpiece adamw flashattention ssm mhsa qkv "
    "tiny mini nano small base medium large huge".split()
)
# "The largest GloVe model has", "RoBERTa is": a name with inner capitals as the subject
_NAMED_SUBJECT = re.compile(
    r"^\s*(?:(?:The|A|An|Both|Each)\s+)?(?:[a-z]+\s+){0,2}"
    r"(?P<name>(?=[A-Z][\w-]{0,30}[A-Z])[A-Z][\w-]{2,60})(?:\s+models?)?\s+"
    r"(?:has|have|uses?|contains?|is|are|consists?|comes|employs?|adopts?)\b"
)
_MAX_TITLE = 300  # characters of a heading
_MAX_HEADS = 20_000  # characters that are searched for the subject of a report
_MANY_BLOCKS = 60
_NEW_SUBJECT = re.compile(
    r"[;:]\s|\b(?:whereas|while|but|and the|followed by)\b"
    r"|\b(?:our|the (?:proposed|main|final|full|student))\s+(?:[\w-]+\s+){0,2}"
    r"(?:model|network|transformer|student|decoder)(?=,?\s+(?:which|that|has|with|uses|is)\b)"
)
_COUNTED_THING = re.compile(  # "24-layer teacher model"
    r"(?:[\s-](?!(?:with|and|of|for|in|to|that)\b)[\w-]{1,40}){0,3}"
)


_ALIASES = re.compile(
    r"(?<![\w-])(?:"
    + alias_pattern(
        alias
        for name, row in ANCESTORS.items()
        for alias in row.aliases
        if name != "transformer" and "transformer" not in alias
    )
    + r")(?![a-z])"
)


_APART = re.compile(r"\b(?:separate|auxiliary|additional|secondary|external)\s+(?:\w+\s+)?$", re.I)


_CONJUNCTION = re.compile(r",\s*(?:and\s)?|\s(?:and|&|vs\.?|or)\s|/|\+", re.I)


def _subject(document: Document) -> str:
    """Return the model that a report with no name of its own is about: BERT, in one about BERT."""
    blocks = islice((b for b in document.prose if b.section.kind != "related"), _MANY_BLOCKS)
    text = " ".join(block.text.string for block in blocks)[:_MAX_HEADS]
    named = Counter(match[0].lower() for match in _ALIASES.finditer(text))
    name, n = named.most_common(1)[0] if named else ("", 0)
    return name if n >= 8 and n > 0.6 * named.total() else ""


class Scope:
    """Decides, for one paper, whose model a phrase speaks of."""

    def __init__(self, document: Document, own_names: frozenset[str]) -> None:
        self.own_names = own_names
        self._sections: dict[Section, str] = {}
        self._topic = document.title.string[:_MAX_TITLE].lower()
        if not own_names:
            self._topic += f" {_subject(document)}"
        names = "|".join(re.escape(name) for name in sorted(own_names, key=len, reverse=True))
        self._own = re.compile(rf"(?<!\w)(?:{names})(?!\w)", re.IGNORECASE) if names else None

    def names_own(self, phrase: str) -> bool:
        """Whether the phrase names the paper's own model."""
        return bool(self._own and self._own.search(phrase))

    def part(self, phrase: str) -> str:
        """Return the component, teacher or baseline that the phrase names, else ""."""
        for match in _PART.finditer(phrase):
            name = match[0].lower()
            if name in self._topic or name.rstrip("s") in self._topic:
                continue  # what the paper is about is its main model
            if _NOT_SUBJECT.search(phrase[max(match.start() - 30, 0) : match.start()]):
                continue
            return name
        return ""

    def foreign(self, phrase: str) -> str:
        """Return the other paper's model that the phrase names, else ""."""
        if self.names_own(phrase):
            return ""
        match = _ALIASES.search(phrase)
        if match and match[0].lower() in self._topic:
            return ""
        ours = _FIRST_PERSON.search(phrase)
        if match and ours and not _MEASURED_ON.search(phrase[: match.start()]):
            return ""
        if match is None and not ours and (named := _NAMED_SUBJECT.match(phrase)):
            known = named["name"].lower() in self._topic or named["name"].lower() in _METHODS
            return "" if known else named["name"]
        if match and re.match(
            r"[\s-]*(?:style|like|based|inspired|compatible|tokeni[sz]er)\b",
            phrase[match.end() : match.end() + 20],
            re.I,
        ):
            return ""
        return match[0] if match else ""

    def section(self, section: Section) -> str:
        """Return the component that a section, or one that holds it, is about."""
        if section not in self._sections:
            # "Encoder and predictor" is about both, so about the model.
            pieces = _CONJUNCTION.split(section.title.string[:_MAX_TITLE])
            parts = [self.part(piece) for piece in pieces]
            above = self.section(section.parent) if section.parent else ""
            self._sections[section] = parts[0] if all(parts) else above
        return self._sections[section]

    def clause(self, before: str, after: str) -> str:
        """Return whose number stands between the two parts of its sentence, "" for the paper's own.

        `before` is the sentence up to the statement, `after` what follows in the same clause.
        """
        if _APART.search(before):
            return "a separate network"
        subject = _NEW_SUBJECT.split(before)[-1]
        if found := self.part(subject) or self.part(_COUNTED_THING.match(after)[0]):
            return found
        attached = re.match(
            r"\W*(?:\w+\W+){0,2}?(?:for|in|of|by)\s+(?:the|a|an|our|each)?\s*((?:[\w-]+\s?){1,3})",
            after,
        )
        if attached and (found := self.part(attached[1]) or self.foreign(attached[1])):
            return found
        return self.foreign(before)

    def header(self, name: str, own_named: bool = False) -> str:
        """Return whose column or row `name` heads, "" for the paper's own model.

        Where the table has the paper's own name too (`own_named`), "BERT (ours)" is a baseline.
        """
        if not name.strip() or self.names_own(name):
            return ""
        if _OWN_HEADER.search(name):
            other = _ALIASES.search(name) if own_named else None
            return other[0] if other else ""
        if re.match(r"reference\b", name, re.I):
            return "reference"
        part = "" if re.search(r"baseline (?:size|config)", name, re.I) else self.part(name)
        return part or self.foreign(name)

    def clearly_own(self, name: str) -> bool:
        """Whether a column or row says that it is the paper's own."""
        return self.names_own(name) or (
            bool(_OWN_HEADER.search(name)) and not _ALIASES.search(name)
        )
