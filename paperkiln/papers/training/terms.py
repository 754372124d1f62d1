"""How papers name what they train with: the words of each setting, and values that make sense.

Patterns run over a *marked* sentence: every number is overwritten by marks of the same length, so
that offsets stay, and `#` in a pattern is any number, however it was written. A word like "of"
or "set to" may stand between a name and its number, a word that says something may not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from paperkiln.papers.numbers.quantities import Quantity
from paperkiln.papers.training.marks import IN_NUMBER, NUMBER, marked

# Values outside are something else. The parts are fractions: of the steps, of the peak rate.
WINDOWS: dict[str, tuple[float, float]] = {
    "beta1": (0, 0.99999), "beta2": (0.1, 0.999999), "eps": (1e-20, 1e-3), "lr": (1e-9, 1),
    "min_lr": (0, 0.5), "min_lr_part": (0, 0.9), "warmup_steps": (1, 1e6),
    "warmup_part": (1e-5, 0.9), "warmup_tokens": (1e4, 1e13), "weight_decay": (0, 1),
    "clip": (1e-4, 100), "steps": (10, 1e8), "tokens": (1e5, 1e15),
    "batch_sequences": (1, 1e6), "batch_tokens": (64, 1e9),
}  # fmt: skip
_WHOLE = frozenset("warmup_steps warmup_tokens steps batch_sequences batch_tokens tokens".split())

_WORD = rf"\s\(?[\w%/{IN_NUMBER}-]+[,)]?"  # a word of a gap, which may be a number
_RISING = rf"(?!\s(?:decay|anneal|cosine|down|decreas|reduc|then)){_WORD}"


def _words(*words: str) -> str:
    said = "|".join(" ".join(words).split())
    return rf"(?:[\s:=~≈∼≃(\"'\[]|(?:{said})\b|[ηλαγ](?:_\w{{1,6}})?){{0,24}}"


_LINK = _words(
    "of is are was were at to as by be set fixed kept held equal equals a an the value values rate",
    "rates about around approximately roughly maximum max peak coefficient constant size factor",
    "parameter which we use used using lr wd initial target stays remains starts starting",
)
_CLIP_LINK = _words(
    "of is are was were at to as by be set a an the value with norm norms max maximum global using",
    "threshold gradient gradients L2 L_2 ℓ_2 l2 total applied above 2-norm exceed exceeding",
)
_WARM_LINK = _words(
    "of for over the first initial period periods phase stage is in during with a an linear zero",
    "linearly learning rate schedule steps step set to up length duration performed applied about",
    "approximately lasts lasting iterations updates use uses was spanning across through takes",
    "tokens from and",
)
_BATCH_LINK = (
    r"(?:[\s:=~≈∼≃(\"'\[×\d]|(?:of|is|are|was|were|at|to|as|be|set|fixed|held|kept|equal|a|an|"
    r"the|about|around|approximately|roughly|total|size|up|we|use|used|constant|maximum)\b){0,40}"
)
_B1, _B2 = r"(?:β|\bbeta|\bb)\s?_?\s?1\b", r"(?:β|\bbeta|\bb)\s?_?\s?2\b"
_STEPS = (
    r"(?:k\s)?(?:(?:training|pre-?training|optimi[sz]ation|optimi[sz]er|gradient|update|"
    r"parameter|weight|descent|total|mini-?batch)[\s-]){0,2}(?:steps?|iterations?|updates?|iters)\b"
)
_TOKENS = r"(?:[a-z][\w-]*\s){0,3}?tokens\b"
_WARM = r"\bwarm[\s_-]?(?:up|ing[\s-]up)s?"
_RATE = r"\b(?:learning[\s_-]rates?(?:[\s_]max)?|max_lr|peak_lr|lrs?|step[\s-]size)\b"
_TRAIN = r"\b(?:(?:pre-?)?train(?:ed|ing|s)?|optimi[sz](?:e|ed|ing))\b"
_FOR = r"\s(?:for|over|on|with|using|uses|used|of|takes|requires)\s"
_ABOUT = (
    r"(?:(?:a|an|the|our|total|of|about|around|approximately|roughly|up|to|nearly|only|some|"
    r"maximum|full|same|over|≈|~|∼)\s{0,2}){0,6}"
)
_UNIT = r"(?:sequences|samples|examples|sentences|images|documents|instances|prompts)"

_RISE = r"\b(?:warm(?:ed|s|ing|[\s-]?up)?|increas\w+|ramp\w*|ris(?:es|ing)|peak(?:s|ed|ing)?)"
_FALL = r"\b(?:anneal\w*|(?<!weight\s)(?<!weight-)decay\w*|decreas\w+|reduc\w+|lowered|cosine)"
_EARLY = r"\s(?:during|over|in|for|within|across)\s(?:the\s)?(?:first|initial)\s"
_RUN = rf"{_TRAIN}(?:{_WORD}){{0,12}}?{_FOR}{_ABOUT}"  # "trained on one pod for a total of"
_STEP_WORDS = r"(?:steps|iterations|updates)"
_OPTIMIZER_STEPS = (
    rf"(?:training|pre-?training|optimi[sz]ation|optimi[sz]er|gradient|update)\s{_STEP_WORDS}"
)

# (fields in the order of their numbers, strength, pattern). "a+b" gives one number to both, "-"
# to none. Of two readings of a number the earlier pattern's counts.
_PHRASES: list[tuple[str, float, str]] = [
    # AdamW (β_1 = 0.9, β_2 = 0.95)
    ("beta1+beta2", 1.0, rf"{_B1}\s*=\s*{_B2}{_LINK}#"),
    ("beta1 beta2", 1.0, rf"{_B1}\)?\s*(?:,|and|&|/)\s*(?:and\s)?{_B2}[)\]]?{_LINK}\s*"
                         r"#\s*(?:,|and|/|;)\s*(?:and\s)?#"),
    ("- beta1 beta2", 1.0, r"β_1,\s?#\s?=\s?\(?#\s?,\s?#"),
    ("beta1", 1.0, rf"{_B1}{_LINK}#"),
    ("beta2", 1.0, rf"{_B2}{_LINK}#"),
    ("beta1 beta2", 1.0, r"(?:\bbetas?\b|β(?!_)|\bmomentum(?:\s(?:terms|parameters|coefficients))?)"
                         r"[\s:=\"'a-z]{0,12}[(\[]\s*#\s*,\s*#\s*[)\]]"),
    ("beta1 beta2", 1.0, r"\bAdam\w*\s*\(\s*#\s*,\s*#\s*[,)]"),
    ("eps", 1.0, rf"(?:ε|ϵ|\bepsilon|\beps)(?:_\w{{1,6}})?{_LINK}#"),
    # a peak learning rate of 3e-4, decayed from 3e-4 to 3e-5
    ("lr", 1.0, rf"{_RATE}{_LINK}#"),
    ("lr", 1.0, rf"{_RATE}\s(?:for|of|in)(?:{_WORD}){{1,4}}?\s(?:is|was|are|were)\s{_LINK}#"),
    ("lr", 1.0, rf"η_?(?:max|peak){_LINK}#"),
    ("lr", 0.5, r"\b(?:chose|choose|selected|picked|settled\son|best|optimal)"
                rf"(?:{_WORD}){{0,4}}?\s{_LINK}#"),
    ("min_lr", 1.0, rf"η_?min{_LINK}#"),
    ("lr", 0.75, r"η\s*=\s*#"),
    ("lr", 0.75, rf"#\s(?:peak\s|max(?:imum)?\s|initial\s|constant\s)?{_RATE}"),
    ("lr", 0.75, rf"\bwith\sa\speak\s{_LINK}#"),
    ("lr min_lr", 0.75, rf"{_FALL}(?:{_WORD}){{0,6}}?\sfrom\s{_LINK}#\s(?:down\s)?to\s{_LINK}#"),
    ("lr", 0.75, rf"{_RISE}(?:{_RISING}){{0,12}}?\s(?:to|at)\s{_LINK}#"),
    ("min_lr", 0.75, rf"{_FALL}(?:{_WORD}){{0,8}}?\s(?:down\s)?to\s(?:a\s|the\s)?"
                     rf"(?:minimum\s|final\s)?{_LINK}#"),
    ("weight_decay", 1.0, r"\bweight[\s_-]?decay(?:\s(?:strength|penalty|parameter|coefficient|"
                          rf"rate|factor|regulari[sz]ation))?{_LINK}#"),
    ("weight_decay", 0.75, r"#\sweight[\s-]decay"),
    # gradients clipped to a norm of 1.0
    ("clip", 1.0, r"\b(?:gradients?|grad|global)(?:['’]s)?[\s_-]*(?:norms?[\s_-]*)?clip\w*"
                  rf"{_CLIP_LINK}#"),
    ("clip", 1.0, r"\bclip(?:ped|ping|s)?[\s_-]*(?:the\s|all\s|our\s)?(?:global\s)?"
                  r"(?:gradients?|grad|norms?)(?:['’]s)?[\s_-]?(?:norms?)?"
                  rf"(?:\sof\s(?:the\s)?gradients?)?{_CLIP_LINK}#"),
    ("clip", 1.0, rf"\bgradients?(?:\snorms?)?\s(?:are|is|were|was)\sclipped{_CLIP_LINK}#"),
    ("clip", 1.0, r"\bmax(?:imum)?[\s_-]*(?:grad(?:ient)?s?[\s_-]*norm|"
                  rf"norm[\s_-]of[\s_-](?:the[\s_-])?gradients?){_CLIP_LINK}#"),
    # 2,000 warm-up steps; a linear warm-up over the first 5%
    ("warmup_steps", 1.0, r"#[\s-]*(?:linear\s|lr\s|learning[\s-]rate\s)?warm[\s-]?up[\s-]"
                          rf"{_STEPS}"),
    ("warmup_steps", 1.0, rf"#[\s-]*{_STEPS}(?:\sof)?[\s-]+(?:(?:linear|lr|learning[\s-]rate)\s)"
                          r"{0,2}warm[\s-]?up"),
    ("warmup_steps", 1.0, rf"{_WARM}{_WARM_LINK}#[\s-]*{_STEPS}"),
    ("warmup_steps", 1.0, rf"{_WARM}[\s_-]+(?:steps|iterations|updates|iters)\b{_LINK}#"),
    ("warmup_steps", 0.75, rf"(?:{_RISE}|\blinear\w*)(?:{_WORD}){{0,14}}?{_EARLY}#[\s-]*{_STEPS}"),
    ("warmup_tokens", 1.0, rf"{_WARM}{_WARM_LINK}#[\s-]*{_TOKENS}"),
    ("warmup_tokens", 0.75, rf"{_RISE}(?:{_WORD}){{0,14}}?{_EARLY}#[\s-]*{_TOKENS}"),
    ("warmup_tokens", 1.0, r"#[\s-]tokens?[\s-](?:of\s)?(?:linear\s)?warm[\s-]?up"),
    ("warmup_part", 0.75, r"#(?:\slinear|\slr|\slearning[\s-]rate)?\swarm[\s-]?up"),
    ("warmup_part", 0.75, rf"{_WARM}(?:\s(?:ratio|fraction|proportion))?{_WARM_LINK}#"),
    ("warmup_part", 0.75, rf"{_RISE}(?:{_WORD}){{0,10}}?{_EARLY}#\sof"),
    # a batch size of 4M tokens; 1024 sequences per batch
    ("batch", 1.0, rf"\bbatch(?:es)?[\s_-]?sizes?{_BATCH_LINK}#"),
    ("- batch", 1.0, rf"\bbatch[\s-]sizes?(?:{_WORD}){{0,4}}?\s(?:increas|ramp|grow|rais)\w*"
                     rf"(?:{_WORD}){{0,2}}?\sfrom\s#(?:\stokens|\ssequences)?\sto\s#"),
    ("batch", 1.0, rf"\b(?:global|effective|total)\s(?:mini-?)?batch{_BATCH_LINK}#"),
    ("batch_unit", 1.0, r"\bbatch(?:es)?(?:\s[a-z-]+){0,8}?\s(?:contain|compris|consist|hold|"
                        rf"ha[sd]\b|of\b|is\b|are\b|with\b)(?:ing|es|s|ed)?{_BATCH_LINK}#"),
    ("batch", 0.5, rf"^\s*(?:global\s|effective\s)?batch{_BATCH_LINK}#"),
    ("batch_tokens", 1.0, r"#\s(?:[a-z-]+\s){0,2}?tokens\s(?:per|in\seach|in\severy|/)\s?"
                          r"(?:mini-?|global\s|training\s|optimi[sz]er\s|gradient\s)?"
                          r"(?:batch|step|update|iteration)"),
    ("batch_sequences", 1.0, rf"#\s(?:[a-z-]+\s)?{_UNIT}\s(?:\([^()]{{0,30}}\)\s)?"
                             r"(?:per|in\seach|/)\s?(?:mini-?|training\s)?(?:batch|step|update)"),
    # trained for 100K steps; on 14.8T tokens
    ("steps tokens", 1.0, rf"{_RUN}#\s{_STEPS}\s?[=(,≈~∼]{{1,3}}\s?#\s{_TOKENS}"),
    ("steps", 1.0, rf"{_RUN}#\s{_STEPS}"),
    ("steps", 1.0, r"\b(?:(?:total|maximum|max)\s(?:number\sof\s)?|number\sof\s)"
                   rf"{_OPTIMIZER_STEPS}{_LINK}#"),
    ("steps", 1.0, rf"^\s*(?:(?:pre-?)?training\s)?(?:{_STEP_WORDS}|duration)\s?[:=]{_LINK}#"
                   rf"(?=\s*(?:{_STEP_WORDS}|[.;,(]|on\b|$))"),
    ("steps", 0.75, rf"(?:use[sd]?|with|using|total\sof|,|and)\s#\s{_OPTIMIZER_STEPS}"),
    ("steps", 0.5, rf"\bfor\s{_ABOUT}#\s{_STEPS}"),
    ("steps", 0.75, r"\b(?:(?:max|train|total|num_train|training|n|num)_steps|max_iters|num_iters|"
                    rf"max_iterations){_LINK}#"),
    ("steps", 1.0, rf"\btotal\s(?:training\s)?{_STEP_WORDS}{_LINK}#"),
    ("tokens", 1.0, rf"{_RUN}#[\s-]{_TOKENS}"),
    ("tokens", 0.75, r"\b(?:consum(?:es|ing|ed)|(?:exposed|amounts|amounting)\sto|sees|processes)\s"
                     rf"{_ABOUT}#\s{_TOKENS}"),
    ("tokens", 1.0, r"\b(?:pre-?)?training[\s-](?:token\s(?:budget|count)|tokens|budget)\s?"
                    rf"{_LINK}#"),
    ("tokens", 1.0, rf"^\s*(?:duration|tokens|total\stokens)\s?[:=]{_LINK}#\stokens"),
]  # fmt: skip
_COMPILED = [
    (
        tuple(fields.split()),
        strength,
        re.compile(pattern.replace("#", f"({NUMBER})"), re.IGNORECASE),
    )
    for fields, strength, pattern in _PHRASES
]
_UNIT_NORM = re.compile(
    r"\bclip\w*(?:\s[\w-]+){0,5}?\s(?:to|at|of|with)\s(?:a\s)?unit\s(?:global\s)?norm|"
    r"\bunit[\s-]norm\s(?:gradient\s)?clipping",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Found:
    """A setting's value, said at string[start:end]."""

    field: str
    value: int | float
    start: int
    end: int
    strength: float
    at: int
    """Where the number starts, `until` where it ends."""
    until: int


def phrases(string: str) -> list[Found]:
    """Return every setting that a phrase of `string` gives a number to, in order.

    Of several readings of one number the first pattern's counts.
    """
    shape, numbers = marked(string)
    found: list[Found] = []
    taken: set[int] = set()
    for fields, strength, pattern in _COMPILED if numbers else ():
        for match in pattern.finditer(shape):
            at = [match.start(group) for group in range(1, len(fields) + 1)]
            if not taken.isdisjoint(at):
                continue
            settled = [
                [settle(name, numbers[start], string) for name in names.split("+") if name != "-"]
                for start, names in zip(at, fields, strict=True)
            ]
            if not all(value for values in settled for value in values):
                continue  # a pair of which one makes no sense is no pair
            taken.update(at)
            for start, values in zip(at, settled, strict=True):
                until = numbers[start].end
                found += [
                    Found(*value, *match.span(), strength, start, until)
                    for value in values
                    if value
                ]
    if match := _UNIT_NORM.search(string):
        found.append(Found("clip", 1.0, *match.span(), 1.0, *match.span()))
    return sorted(found, key=lambda f: (f.at, f.field))


_TOKEN_AFTER = re.compile(r"[\s-]*(?:[a-z][\w-]*\s){0,2}?tokens?\b", re.I)
_UNIT_AFTER = re.compile(
    rf"[\s-]*(?:(?!of\b|in\b|per\b|for\b)[a-z][\w-]*\s){{0,2}}?{_UNIT}\b|"
    rf"[\s-]*(?:[a-z][\w-]*\s)?pairs\b",
    re.I,
)
_PER_DEVICE = re.compile(
    r"\s*\(?(?:[a-z]+\s){0,2}(?:per|/|on\seach)[\s-]?(?:gpu|device|tpu|worker|core|chip|node|replica)|"
    r"\s*[×x*]\s",
    re.I,
)


def settle(name: str, quantity: Quantity, string: str) -> tuple[str, int | float] | None:
    """Return the field and the value that `quantity` gives it, None when it cannot."""
    value: int | float = quantity.value
    after = string[quantity.end : quantity.end + 60]
    if name.startswith("batch"):
        if quantity.percent or _PER_DEVICE.match(after):
            return None
        name = batch_field(name, quantity, after)
    if quantity.percent or name.endswith("_part"):
        if name not in ("min_lr", "warmup_part"):
            return None
        name = "min_lr_part" if name == "min_lr" else name
        value = value / 100 if quantity.percent else value
    if name in _WHOLE and value < 1000 and string[quantity.start].isalpha():
        return None  # "two types", "ten steps" in passing
    low, high = WINDOWS.get(name, (1, 0))
    if not low <= value <= high or (name in _WHOLE and value != int(value)):
        return None
    if name in _WHOLE:
        return name, int(value)
    return name, value if isinstance(value, int) else float(f"{value:.12g}")


def batch_field(name: str, quantity: Quantity, after: str) -> str:
    """Return batch_tokens or batch_sequences, by the unit that follows; without one, sequences."""
    if name in ("batch_tokens", "batch_sequences"):
        return name
    if _TOKEN_AFTER.match(after):
        return "batch_tokens"
    if _UNIT_AFTER.match(after):
        return "batch_sequences"
    if name == "batch_unit":
        return ""
    return "batch_tokens" if quantity.scaled else "batch_sequences"
