"""Training settings in prose, lists and code listings, each with what speaks for it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from paperkiln.papers.document import Block, Document
from paperkiln.papers.training.marks import squeezed
from paperkiln.papers.training.names import Name
from paperkiln.papers.training.sentences import statements
from paperkiln.papers.training.setting import SECTION_SCORES, SKIPPED, Setting
from paperkiln.papers.training.stage import Stages, speaks_of_others
from paperkiln.papers.training.terms import Found

_MAX_SENTENCE = 4000  # characters; longer is no sentence
_MAX_READ = 200_000  # characters of sentences about training; no paper has more
_LINE = 400  # characters of a listing read at a time
_NEAR = 600  # characters before a statement in which its subject stands

_TOPIC = re.compile(
    r"adam|sgd|muon|lamb|lion|adafactor|optimi|learning|η|\blr|warm|decay|clip|batch|steps|tokens|"
    r"iteration|updates|β|\bbeta|schedule|max_|num_|duration",
    re.IGNORECASE,
)
_USE = re.compile(
    r"\bwe\b|\bour\b|\ball (?:\w+ )?(?:models|runs|experiments|variants)\b|"
    r"\b(?:is|are|was|were) (?:(?:pre-?)?trained|set)\b|set to|by default|"
    r"\btraining (?:uses|employs|runs|is)\b|hyper-?parameters",
    re.I,
)
_HYPOTHETICAL = re.compile(
    r"\b(?:can|could|may|might|would|should|e\.g\.|for example|for instance|suppose|if we|"
    r"typically use|usually|recommend\w*|suggest\w*|future|planned|often|commonly (?:set|use)|"
    r"in practice|practitioners|compare[sd]?|comparing|instead of|rather than|unlike|versus|"
    r"vs\.?)\b",
    re.I,
)
_COMPARED = re.compile(
    r"\b(?:prior|previous\w*|existing|original(?:ly)?|in contrast|degrad\w*|unstable|instability|"
    r"diverg\w*|fail\w*|too (?:large|small|high|low)|sensitiv\w*|outperform\w*|ablat\w*|proxy|"
    r"pilot|preliminary|small-scale|quick|scaling experiments|toy|sanity|observed|"
    r"when (?:we )?us\w+|advis\w*|increas(?:e|ing) the batch)\b",
    re.I,
)
_OUTCOME = re.compile(
    r"\b(?:performan\w+|accura\w+|perplexit\w+|sensitiv\w+|results? in\b|leads? to\b|converge\w*)",
    re.I,
)
_MEASURED = re.compile(
    r"\b(?:latency|latencies|throughput|inference|decod\w+|serving|prefill\w*|fps|profil\w+|"
    r"generation|sampling|evaluat\w+|tok/s|tokens?/s\w*|speed-?up|memory|vram|kv[\s-]cache|"
    r"deploy\w*|benchmark\w*|validation batch)\b",
    re.I,
)
_WHOLE_BATCH = re.compile(r"\b(?:global|effective|total)\b", re.I)
_PEAK = re.compile(r"\b(?:peak|max(?:imum)?)[\s-]*$", re.I)
_GROUP = re.compile(
    r"\b(encoder|decoder|fusion|decoder/fusion|backbone|head|embeddings?|router|neuron|projector|"
    r"adapter|bridge|gate|generator|actor|critic|discriminator|vision|text|scalar|matrix|bias|"
    r"codebook|controller)\s+$",
    re.I,
)
_SIZE = re.compile(
    r"\b(?:tiny|mini|small|base|medium|large|big|huge|xl|xxl|nano|\d+(?:\.\d+)?\s?[MB])\b"
    r"(?=[\s\w-]{0,20}\b(?:models?|variants?|configuration|size)\b)",
    re.I,
)
_AFTERWARDS = re.compile(
    r"\b(?:then|subsequently|afterwards?|gradually|finally|before|after that)\b", re.I
)


def read_prose(document: Document, stages: Stages) -> list[Setting]:
    """Return every training setting that prose, lists and listings state, in reading order."""
    settings: list[Setting] = []
    lead = ""  # the stage that the paragraph before a list opens
    left = _MAX_READ
    for order, block in enumerate(document.blocks):
        if not isinstance(block, Block) or block.section.kind in SKIPPED or left < 0:
            continue
        if block.kind in ("heading", "title", "figure"):
            lead = "" if block.kind == "heading" else lead
            continue
        spans: list[tuple[int, int, bool]] = []
        for start, end in _spans(block):
            topical = bool(_TOPIC.search(block.text.string, start, end))
            left -= (end - start) * topical
            if left < 0:
                break
            spans.append((start, end, topical))
        passage = lead if block.kind == "item" else ""
        settings += _then_decays(list(_read_block(block, spans, order, stages, passage)))
        if block.kind == "paragraph":
            string = block.text.string.rstrip()
            lead = (stages.opening(string[-200:]) or "") if string.endswith(":") else ""
    return settings


def _spans(block: Block) -> Iterator[tuple[int, int]]:
    """Yield the stretches of a block that are read together: its sentences, or lines of code."""
    if block.kind != "code":
        yield from ((a, min(b, a + _MAX_SENTENCE)) for a, b in block.text.sentences)
        return
    for match in re.finditer(r"[^\n]+", block.text.string):
        for at in range(match.start(), match.end(), _LINE):
            yield at, min(at + _LINE, match.end())


def _read_block(
    block: Block, spans: list[tuple[int, int, bool]], order: int, stages: Stages, passage: str
) -> Iterator[Setting]:
    section, others = stages.of_section(block.section), False
    base = SECTION_SCORES.get(block.section.kind, 0.5)
    for number, (start, end, topical) in enumerate(spans):
        string = block.text.string[start:end]
        opened = stages.opening(string)
        passage = passage if opened is None else opened
        if not topical:
            others = False
            continue
        sentence, origin = squeezed(string)
        found = statements(sentence)
        others = others and speaks_of_others(sentence)
        for item in found:
            before = sentence[max(item.start - _NEAR, 0) : item.start]
            after = sentence[item.end : item.end + 80]
            owner = "another paper" if others else stages.owner(block.section, before, after)
            others = others or owner == "another paper"
            setting = Setting(
                item.field, item.value, block.text, start + origin(item.start),
                start + origin(item.end - 1) + 1, block.section, order, base + item.strength,
                (f"{block.section.kind or 'front'} section", _said(sentence, item)),
                stage=stages.of_statement(before, after, passage, section), owner=owner,
                variant=_variant(item, before), record=(order, number),
            )  # fmt: skip
            yield _weigh(setting, sentence, item, block, len({f.field for f in found}))


def _said(sentence: str, item: Found | Name) -> str:
    return f"“{sentence[item.start : item.end][:60]}”"


def _variant(item: Found | Name, before: str) -> str:
    """Return the parameter group or the size of the model that a statement names."""
    if item.field in ("lr", "weight_decay") and (group := _GROUP.search(before)):
        return group[1].lower()
    sizes = _SIZE.findall(before[-120:])
    return sizes[-1].lower() if sizes else ""


def _weigh(
    setting: Setting, sentence: str, item: Found | Name, block: Block, fields: int
) -> Setting:
    before = sentence[max(item.start - 200, 0) : item.start]
    if fields >= 2:
        setting = setting.weighed(1.0 if fields >= 3 else 0.5, f"{fields} settings in one breath")
    if block.section.appendix:
        setting = setting.weighed(-0.25, "appendix")
    for kind, by in (("footnote", -0.5), ("caption", -1.0), ("code", -0.75)):
        if block.kind == kind:
            setting = setting.weighed(by, kind)
    for cue, string, by in (
        (_USE, sentence, 0.5),
        (_HYPOTHETICAL, before, -3.5),
        (_COMPARED, before, -2.5),
        (_OUTCOME, sentence, -0.75),
    ):
        if match := cue.search(string):
            setting = setting.weighed(by, f"“{match[0].lower()}”")
    if setting.field in ("batch_sequences", "batch_tokens"):
        if _WHOLE_BATCH.search(sentence[max(item.start - 20, 0) : item.start + 30]):
            setting = setting.weighed(1.0, "the whole batch")
        if cue := _MEASURED.search(sentence) or _MEASURED.search(block.section.title.string[:300]):
            setting = setting.weighed(-3.0, f"“{cue[0].lower()}”: a measurement")
    if setting.field == "lr" and _PEAK.search(before):
        setting = setting.weighed(0.5, "the peak")
    return setting


def _then_decays(settings: list[Setting]) -> list[Setting]:
    """Read "keep a constant rate …. Subsequently, decay it" as warm-up, stable, decay."""
    plans = [s for s in settings if s.field == "schedule"]
    steady = next((s for s in plans if s.value == "constant"), None)
    decay = next((s for s in plans if s.value in ("cosine", "linear", "exponential")), None)
    if not steady or not decay or steady.record >= decay.record or steady.stage != decay.stage:
        return settings
    string = decay.text.string
    if not _AFTERWARDS.search(string[max(decay.start - 150, 0) : decay.start]):
        return settings
    both = replace(decay, value="wsd", cues=(*decay.cues, "after a constant rate"))
    return [both if s is decay else s for s in settings if s is not steady]
