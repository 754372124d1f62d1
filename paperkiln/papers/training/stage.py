"""Whose training is it, and which stage: pre-training of the main model, or something after it."""

from __future__ import annotations

import re

from paperkiln.papers.document import Document, Section
from paperkiln.papers.scope import Scope

PRETRAINING = "pre-training"
_STAGES = {
    "continued pre-training": r"(?:continu\w+|supervised|further|additional)[\s-]+"
    r"(?:domain[\s-]+)?pre-?train\w*",
    "after pre-training": r"(?:post|after|following)[\s-]+(?:the\s+|base\s+|its\s+)?pre-?training",
    # "the pre-trained model" is what a training starts from
    PRETRAINING: r"pre-?train(?:ing|s|ed)?\b(?!\s+(?:[\w.-]+\s+){0,3}(?:models?|checkpoints?|"
    r"weights|backbones?|encoders?|llms?|lms?|networks?|embeddings?|tokeni[sz]ers?|bert|parameters))"
    r"|train(?:ed|ing)?\s+(?:\w+\s+){0,3}from\s+(?:scratch|random)",
    "fine-tuning": r"fine[\s-]?tun\w+|sft\b|instruction[\s-]tun\w+|post-training\b|"
    r"transfer\s+learning|downstream|(?:q?lora|adapters?)\b",
    "reinforcement learning": r"rlhf|ppo\b|dpo\b|grpo\b|reinforcement|preference\s+\w+|"
    r"reward\s+model\w*|alignment|policy\b",
    "distillation": r"distill\w*|kd\b",
    "context extension": r"context[\s-](?:window\s)?extension|long[\s-]context|longct|yarn|"
    r"length\sextension|extend(?:ed|ing|s)?\s(?:to|the\scontext)",
    "annealing": r"mid-?training|(?<!cosine\s)anneal(?:ing|ed)?\s(?:stage|phase|run)|ct\sannealing|"
    r"cool-?down\s(?:stage|phase)|decay\s(?:stage|phase)",
    "a later stage": r"(?:stage|phase)[\s-]?(?:[2-9]|ii|iii|iv|two|three)\b|"
    r"(?:second|third|fourth|final|last)[\s-](?:training\s)?(?:stage|phase)",
    "evaluation": r"(?:linear\s)?prob(?:e|es|ing)\b|linear\s(?:evaluation|eval|classif\w+)|"
    r"inference|benchmarking",
}
_STAGE = re.compile(
    "|".join(f"(?P<s{i}>(?<![\\w-]){pattern})" for i, pattern in enumerate(_STAGES.values())),
    re.IGNORECASE,
)
_NAMES = list(_STAGES)
_FIRST = re.compile(
    r"\b(?:stage|phase)[\s-]?(?:1a?|i|one)\b|\bfirst\s(?:\w+\s)?(?:stage|phase)", re.I
)
_OPENING = 60  # characters of a sentence in which "For fine-tuning, we" opens a passage
_FOR_STAGE = re.compile(
    r"\W{0,3}(?:[\w.-]+\s){0,2}(?:for|during|in|at)\s(?:the\s|all\s|our\s)?(?=\S)", re.I
)
_EVERYTHING = re.compile(
    r"\b(?:all|both|every|each|same|identical|across)\s(?:of\s)?(?:the\s|our\s|these\s)?"
    r"(?:[\w-]+\s){0,2}(?:models?|runs?|experiments?|methods|variants|networks|conditions|versions|"
    r"sizes|baselines|configurations|architectures|training|settings|hyper-?parameters)\b",
    re.I,
)
# Scope takes these for another model or part; in a training they are how, not whose.
_NO_MODEL = re.compile(
    r"lora|adapter|adam|sgd|muon|lamb|lion|adafactor|cosine|gradient|learning|rmsprop|warm|cuda|gpu|pytorch|"
    r"fsdp|ddp|table",
    re.I,
)
_ATTRIBUTED = re.compile(
    r"\bet\sal\b|\b(?:[Tt]he authors|[Pp]rior work|[Pp]revious work|[Ee]xisting (?:work|methods))\b"
)
_OURS = re.compile(r"\b(?:we|our|ours|us)\b", re.I)
_FOLLOWING = re.compile(
    r"\b(?:following|follow|as in|similar to|same as|inspired by|based on|proposed by)\b", re.I
)
_BUILDS_ON = re.compile(
    r"\b(?:fine-?tun|initiali[sz]|start|adapt|continu|build|built|train|extend|based)\w*\s"
    r"(?:[\w-]+\s){0,4}(?:on|from|of|with)\s",
    re.I,
)
_NAMED = re.compile(
    r"^\s*(?:The\s)?(?P<name>[A-Z][\w-]{0,30}[a-z0-9][\w-]{0,30}[A-Z][\w-]{0,30}|[A-Z]{3,30}[\w-]{0,30})\s"
    r"(?:(?:model|network)s?\s)?(?:was|were|is|are)\s(?:\w+\s)?(?:trained|optimi[sz]ed)\b"
)
_OTHERS_SAY = re.compile(r"\s*(?:They|Their|These authors)\b")


# One of these is in every stage's name; looking for them first is faster.
_TRACES = (
    "train tun sft downstream lora adapter rlhf ppo dpo grpo reinforc prefer reward align policy "
    "distill kd yarn context longct extend length anneal cool stage phase prob linear inference "
    "benchmarking"
).split()


def stages_in(string: str) -> list[tuple[int, str]]:
    """Return the (offset, name) of every stage of training that `string` names."""
    lower = string.lower()
    if not any(trace in lower for trace in _TRACES):
        return []
    return [(m.start(), _NAMES[int(m.lastgroup[1:])]) for m in _STAGE.finditer(string)]  # type: ignore[index]


def is_first(string: str) -> bool:
    """Whether a heading, caption or column names the first of several stages."""
    return bool(_FIRST.search(string))


class Stages:
    """Decides, for one paper, which stage and whose training a statement belongs to."""

    def __init__(self, document: Document, scope: Scope) -> None:
        self._scope = scope
        self._title = document.title.string.lower()
        self._of_section: dict[Section, str] = {}
        # What the title speaks of is the paper's main training, whatever it is.
        self._topic = {name for _, name in stages_in(document.title.string)}
        self.pretrains = any(
            block.kind == "heading"
            and block.section.kind != "related"
            and any(name == PRETRAINING for _, name in stages_in(block.text.string))
            for block in document.prose
        )

    def _named(self, stage: str) -> str:
        return "" if stage in self._topic and stage != PRETRAINING else stage

    def of_section(self, section: Section) -> str:
        """Return the stage that a section, or one that holds it, is about."""
        if section not in self._of_section:
            titles = (above.title.string[:300] for above in section.ancestors())
            self._of_section[section] = next((s for t in titles if (s := self.of_title(t))), "")
        return self._of_section[section]

    def of_title(self, title: str) -> str:
        """Return the first stage that a heading, caption or column names."""
        return next((self._named(name) for _, name in stages_in(title[:300])), "")

    def opening(self, sentence: str) -> str | None:
        """Return the stage with which a sentence opens a passage, None when it names none."""
        named = [name for at, name in stages_in(sentence[: _OPENING + 20]) if at < _OPENING]
        return self._named(named[0]) if named else None

    def of_statement(self, before: str, after: str, passage: str, section: str) -> str:
        """Return the stage of a statement between the two parts of its sentence."""
        if attached := _FOR_STAGE.match(after):
            named = stages_in(after[attached.end() : attached.end() + 30])
            if named and named[0][0] < 16:
                return self._named(named[0][1])
        named = stages_in(before)
        stage = self._named(named[-1][1]) if named else passage
        if stage in ("", PRETRAINING) and section not in ("", PRETRAINING) and not named:
            return section
        return stage or section

    def _known(self, name: str) -> bool:
        return bool(
            self._scope.names_own(name) or _NO_MODEL.search(name) or name.lower() in self._title
        )

    def part(self, title: str) -> str:
        """Return the component or baseline that a caption or group of rows is about."""
        found = self._scope.part(title)
        return "" if _NO_MODEL.search(found) else found

    def owner(self, section: Section, before: str, after: str) -> str:
        """Return whose training the statement speaks of, "" for the paper's own."""
        if _EVERYTHING.search(before) or _EVERYTHING.search(after):
            return ""
        found = self._scope.section(section)
        if found and not _NO_MODEL.search(found):
            return found
        found = self._scope.clause(before, after)
        if found and _NO_MODEL.search(found):
            return ""
        if (
            found
            and _OURS.search(before)
            and (_FOLLOWING.search(before) or _BUILDS_ON.search(before))
        ):
            return ""  # "following BERT, we use", "we fine-tune X on LLaMA with"
        named = _NAMED.match(before)
        if named and not found and self._scope.own_names and not self._known(named["name"]):
            return named["name"]
        if not found and _ATTRIBUTED.search(before) and not _OURS.search(before):
            return "another paper"
        return found


def speaks_of_others(sentence: str) -> bool:
    """Whether the sentence goes on about the authors of another paper."""
    return bool(_OTHERS_SAY.match(sentence))
