"""TinyChat: synthetic small talk for a model of half a million parameters, and its probe.

`generate` plays the scripts of `tinychat_phrases` into dialogues of one to four exchanges, with
carry-over: a fact told early is asked for later, a "Why?" is about what was just named. `PROBE`
asks in phrasings that training never emits; `score` counts answers of the right kind.
Only `random.Random.random` is used, the one method whose sequence Python promises to keep.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from random import Random
from typing import TypeVar

from paperkiln.errors import PaperkilnError
from paperkiln.formats.atomic import new_file
from paperkiln.infer.chat_template import Message, render_chat
from paperkiln.train.tinychat_phrases import SCRIPTS
from paperkiln.train.tinychat_probe import DEMO, HELD_OUT
from paperkiln.train.tinychat_words import OPENERS, SLOTS, WHY
from paperkiln.train.tokenizers import SPECIALS, USER

Dialogue = list[Message]  # (role, text); the role is "user" or "assistant"
T = TypeVar("T")

MAX_WORDS = 14  # of one answer, with what it asks in return


# --- reading the tables -----------------------------------------------------------------------


def split_phrases(text: str) -> tuple[str, ...]:
    """Splits a table cell at " / " and line ends."""
    return tuple(p.strip() for line in text.splitlines() for p in line.split(" / ") if p.strip())


@cache
def expand(template: str) -> tuple[str, ...]:
    """Lists every reading of a template's `(a|b)` choices; slots stay as they are."""
    choice = re.search(r"\(([^()]*)\)", template)
    if choice is None:
        return (template,)
    before, after = template[: choice.start()], template[choice.end() :]
    return tuple(r for option in choice[1].split("|") for r in expand(before + option + after))


@dataclass(frozen=True)
class Topic:
    """Phrasings of the user's side, and the answers that fit every one of them."""

    kind: str
    asks: tuple[str, ...]
    answers: tuple[str, ...]

    @cached_property
    def readings(self) -> tuple[str, ...]:
        """All asks with their choices made."""
        return tuple(reading for ask in self.asks for reading in expand(ask))


@dataclass(frozen=True)
class Kind:
    """One kind of exchange; the empty topics are those it does not have."""

    name: str
    mark: str
    slot: str
    topics: tuple[Topic, ...]
    back: tuple[str, ...]
    tell: Topic
    recall: Topic
    unknown: Topic
    why: Topic


def read_script(name: str, script: str) -> Kind:
    """Reads one script of `tinychat_phrases` (its labels are explained there)."""
    cells: dict[str, str] = {}
    chapters: list[dict[str, str]] = []  # one {"ask": ..., "say": ...} a topic
    for line in script.strip().splitlines():
        label, text = line.split(None, 1)
        if label == "ask" and (not chapters or "say" in chapters[-1]):
            chapters.append({})
        cell = chapters[-1] if label in ("ask", "say") else cells
        cell[label] = cell.get(label, "") + "\n" + text

    def topic(asks: str, answers: str) -> Topic:
        return Topic(name, split_phrases(asks), split_phrases(answers))

    def labelled(ask: str, answer: str) -> Topic:
        return topic(cells.get(ask, ""), cells.get(answer, ""))

    return Kind(
        name=name,
        mark=cells["mark"].strip(),
        slot=cells.get("slot", "").strip(),
        topics=tuple(topic(chapter["ask"], chapter["say"]) for chapter in chapters),
        back=split_phrases(cells.get("back", "")),
        tell=labelled("tell", "nod"),
        recall=labelled("recall", "known"),
        unknown=labelled("recall", "unknown"),
        why=topic(WHY if "because" in cells else "", cells.get("because", "")),
    )


KINDS: dict[str, Kind] = {name: read_script(name, script) for name, script in SCRIPTS.items()}
FACTS: tuple[Kind, ...] = tuple(kind for kind in KINDS.values() if kind.tell.asks)


# --- filling a template -----------------------------------------------------------------------


def _pick(rng: Random, options: Sequence[T]) -> T:
    return options[int(rng.random() * len(options))]


def _numbers(rng: Random) -> dict[str, str]:
    """Draws the slots of the counting kind; a hand's sums: few enough to be learned by heart."""
    words = SLOTS["hour"]
    a, b = _pick(rng, [(a, b) for a in range(1, 6) for b in range(1, 6)])
    limit = 4 + int(rng.random() * 4)
    return {
        "a": words[a - 1], "b": words[b - 1], "sum": words[a + b - 1], "after": words[a],
        "a_digit": str(a), "b_digit": str(b),
        "limit": words[limit - 1], "limit_digit": str(limit), "count": ", ".join(words[:limit]),
    }  # fmt: skip


def _fill(rng: Random, template: str, values: dict[str, str]) -> str:
    """Fills the slots, drawing and remembering in `values` those not bound yet."""

    def value(match: re.Match[str]) -> str:
        slot = match[1]
        if slot not in values:
            base = slot.rstrip("2")
            values[slot] = _pick(rng, [v for v in SLOTS[base] if v != values.get(base)])
        return values[slot]

    return re.sub(r"\{(\w+)\}", value, template)


def _sentence_case(text: str) -> str:
    return re.sub(r"(?:^|[.!?] )[a-z]", lambda match: match[0].upper(), text)


def _ask(rng: Random, topic: Topic, values: dict[str, str]) -> str:
    """Speaks the user's side: now and then after an opener, now and then as people type."""
    # Half by phrase and half by reading: short phrases stay frequent, no choice gets rare.
    phrases = topic.asks if rng.random() < 0.5 else topic.readings
    template = _pick(rng, expand(_pick(rng, phrases)))
    if template.endswith("?") and rng.random() < 0.15:
        opener = _pick(rng, OPENERS)
        stays_upper = opener.endswith("! ") or template.startswith(("I ", "{"))
        template = opener + (template if stays_upper else template[0].lower() + template[1:])
    if rng.random() < 0.25:  # before filling: a name or a city keeps its capital letter
        return _fill(rng, template.lower().rstrip(".!?"), values)
    return _sentence_case(_fill(rng, template, values))


# --- playing a dialogue -----------------------------------------------------------------------


@dataclass(frozen=True)
class _Exchange:
    topic: Topic
    values: dict[str, str]  # the slots as they were filled
    user: str
    assistant: str
    asked_back: bool


def _exchange(rng: Random, topic: Topic, known: dict[str, str], may_ask_back: bool) -> _Exchange:
    values = _numbers(rng) | known
    user = _ask(rng, topic, values)
    answer = _sentence_case(_fill(rng, _pick(rng, topic.answers), values))
    kind = KINDS[topic.kind]
    asked_back = False
    if may_ask_back and kind.back and topic in kind.topics and rng.random() < 0.3:
        longer = f"{answer} {_pick(rng, kind.back)}"
        asked_back = not answer.endswith("?") and len(longer.split()) <= MAX_WORDS
        answer = longer if asked_back else answer
    return _Exchange(topic, values, user, answer, asked_back)


def _next_topic(
    rng: Random, last: _Exchange | None, told: dict[str, dict[str, str]], left: int
) -> tuple[Topic, dict[str, str]]:
    """Chooses what the user says next, and the slots that carry over into it."""
    if last is not None:
        kind = KINDS[last.topic.kind]
        if last.asked_back:
            return kind.tell, {}
        named = last.values.get(kind.slot) if last.topic in kind.topics else None
        if kind.why.asks and named and rng.random() < 0.2:
            return kind.why, {kind.slot: named}
        if left == 1 and told and rng.random() < 0.7:
            name = _pick(rng, sorted(told))
            return KINDS[name].recall, told[name]
        if left == 1 and rng.random() < 0.2:
            return _pick(rng, KINDS[_pick(rng, ("thanks", "goodbye"))].topics), {}
    # Names come most often: there are the most of them to learn to copy.
    fact = KINDS["name"] if rng.random() < 0.25 else _pick(rng, FACTS)
    if fact.name not in told:
        dice = rng.random()
        if dice < (0.4 if last is None and left > 1 else 0.1):
            return fact.tell, {}
        if dice > 0.93:
            return fact.unknown, {}
    if last is None and left > 1 and rng.random() < 0.15:
        return _pick(rng, KINDS["greeting"].topics), {}
    return _pick(rng, KINDS[_pick(rng, tuple(KINDS))].topics), {}


def _dialogue(rng: Random) -> list[_Exchange]:
    length = 1 + int(rng.random() * 4)
    exchanges: list[_Exchange] = []
    told: dict[str, dict[str, str]] = {}
    for left in range(length, 0, -1):
        last = exchanges[-1] if exchanges else None
        topic, known = _next_topic(rng, last, told, left)
        now = _exchange(rng, topic, known, may_ask_back=left > 1)
        kind = KINDS[topic.kind]
        if topic == kind.tell:
            told[kind.name] = {kind.slot: now.values[kind.slot]}
        exchanges.append(now)
    return exchanges


def generate(n_dialogues: int, seed: int) -> Iterator[Dialogue]:
    """Yields dialogues; the i-th depends on `seed` and i alone, on every machine."""
    for index in range(n_dialogues):
        dialogue: Dialogue = []
        for exchange in _dialogue(Random(f"tinychat {seed} {index}")):
            dialogue += [("user", exchange.user), ("assistant", exchange.assistant)]
        yield dialogue


def corpus_text(n_dialogues: int, seed: int) -> str:
    """Returns the corpus: dialogues in the chat template, each ended by one newline.

    Raises: PaperkilnError when `n_dialogues` is below one.
    """
    if n_dialogues < 1:
        raise PaperkilnError(f"TinyChat needs at least one dialogue, not {n_dialogues}")
    return "\n".join(render_chat(d) for d in generate(n_dialogues, seed)) + "\n"


def words_of(text: str) -> list[str]:
    """Lists the lower-case words and numbers of a text."""
    return re.findall(r"[a-z]+(?:'[a-z]+)?|\d+", text.lower())


def write_corpus(path: Path, n_dialogues: int, seed: int) -> dict[str, int | str]:
    """Writes the corpus and returns its counts and its SHA-256.

    Raises: PaperkilnError when `n_dialogues` is below one or `path` cannot be written.
    """
    text = corpus_text(n_dialogues, seed)
    data = text.encode()
    with new_file(path) as aside:
        aside.write_bytes(data)
    said = re.sub("|".join(map(re.escape, SPECIALS)), " ", text)
    return {
        "dialogues": n_dialogues,
        "exchanges": text.count(USER),
        "bytes": len(data),
        "distinct_words": len(set(words_of(said))),
        "sha256": hashlib.sha256(data).hexdigest(),
    }


# --- the probe --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Probe:
    """A held-out question and the kind its answer has to be of."""

    question: str
    kind: str


@dataclass(frozen=True)
class ProbeScore:
    """Fractions of answers of the right kind, and what shuffled answers would reach."""

    overall: float
    per_kind: dict[str, float]
    chance: float  # the expectation over all permutations of the same answers


def _probes() -> Iterator[Probe]:
    for name, questions in HELD_OUT.items():
        rng = Random(f"tinychat probe {name}")
        for question in split_phrases(questions):
            yield Probe(_sentence_case(_fill(rng, question, _numbers(rng))), name)


def _mark_pattern(mark: str) -> re.Pattern[str]:
    listed = re.sub(r"\{(\w+)\}", lambda slot: f"(?:{'|'.join(SLOTS[slot[1]])})", mark)
    return re.compile(rf"\b(?:{listed})\b", re.IGNORECASE)


_MARKS = {name: _mark_pattern(kind.mark) for name, kind in KINDS.items()}
PROBE: list[Probe] = list(_probes())
DEMO_QUESTIONS: tuple[str, ...] = tuple(question for question, _ in DEMO)
DEMO_KINDS: tuple[str, ...] = tuple(kind for _, kind in DEMO)


def kinds_of(answer: str) -> set[str]:
    """Tells of which kinds an answer is, by its content words: a food answer names a food."""
    return {name for name, pattern in _MARKS.items() if pattern.search(answer)}


def score(answers: list[str]) -> ProbeScore:
    """Scores one answer for each question of `PROBE`, in its order.

    Raises: PaperkilnError when the number of answers is another one.
    """
    if len(answers) != len(PROBE):
        raise PaperkilnError(f"the probe asks {len(PROBE)} questions, got {len(answers)} answers")
    found = [kinds_of(answer) for answer in answers]
    right: dict[str, list[bool]] = {}
    for probe, kinds in zip(PROBE, found, strict=True):
        right.setdefault(probe.kind, []).append(probe.kind in kinds)
    fits = sum(probe.kind in kinds for probe in PROBE for kinds in found)
    return ProbeScore(
        overall=sum(map(sum, right.values())) / len(PROBE),
        per_kind={name: sum(hits) / len(hits) for name, hits in right.items()},
        chance=fits / len(PROBE) ** 2,
    )
