"""TinyChat is deterministic, well-formed and of the right kind; its probe is never trained on."""

import hashlib
import re
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from paperkiln.errors import PaperkilnError
from paperkiln.train import tinychat
from paperkiln.train.tinychat import DEMO_KINDS, DEMO_QUESTIONS, KINDS, PROBE, kinds_of, score
from paperkiln.train.tinychat_words import OPENERS, SLOTS

SAMPLE = 4000
HELD_OUT = [probe.question for probe in PROBE] + list(DEMO_QUESTIONS)


@pytest.fixture(scope="module")
def dialogues() -> list[tinychat.Dialogue]:
    return list(tinychat.generate(SAMPLE, seed=7))


@pytest.fixture(scope="module")
def exchanges() -> list[tuple[str, str]]:
    """(kind the generator meant, answer)."""
    played = (tinychat._dialogue(Random(f"test {i}")) for i in range(SAMPLE))
    return [(e.topic.kind, e.assistant) for dialogue in played for e in dialogue]


def user_templates() -> set[str]:
    topics = [
        topic
        for kind in KINDS.values()
        for topic in (*kind.topics, kind.tell, kind.recall, kind.unknown, kind.why)
    ]
    return {t for topic in topics for ask in topic.asks for t in tinychat.expand(ask)}


def plain(text: str) -> str:
    """Lower case, without punctuation: what makes two phrasings the same."""
    return " ".join(re.sub(r"[^a-z0-9+{}_ ]", "", text.lower()).split())


# --- determinism ------------------------------------------------------------------------------


def test_corpus_is_the_same_everywhere(tmp_path: Path) -> None:
    # Changing a phrase changes this sum: put the new one here, and retrain what depends on it.
    counts = tinychat.write_corpus(tmp_path / "c.txt", 500, seed=0)
    assert counts["sha256"] == "09e5916249f99be4fa5666a18f9d7e63f2f3a94bdc2ab4d898bbfe4608872a14"


def test_a_dialogue_depends_on_seed_and_index_alone(dialogues: list[tinychat.Dialogue]) -> None:
    assert list(tinychat.generate(50, seed=7)) == dialogues[:50]
    assert list(tinychat.generate(50, seed=8)) != dialogues[:50]


# --- form -------------------------------------------------------------------------------------


def test_dialogues_alternate_and_have_one_to_four_exchanges(
    dialogues: list[tinychat.Dialogue],
) -> None:
    lengths = Counter(len(dialogue) // 2 for dialogue in dialogues)
    assert set(lengths) == {1, 2, 3, 4}
    assert min(lengths.values()) > SAMPLE / 5
    for dialogue in dialogues:
        roles = [role for role, _ in dialogue]
        assert roles == ["user", "assistant"] * (len(dialogue) // 2)


def test_texts_are_clean(dialogues: list[tinychat.Dialogue]) -> None:
    for role, text in (turn for dialogue in dialogues for turn in dialogue):
        assert not re.search(r"[{}|()/<>\n]|  |^ | $| [.,!?]", text), text
        assert not re.search(r"\ba (?=[aeio])", text.lower()), text
        if role == "assistant":
            assert re.search(r"[.!?]$", text), text
            assert not re.search(r"(?:^|[.!?] )[a-z]", text), text
            assert 4 <= len(text.split()) <= tinychat.MAX_WORDS, text


def test_users_also_type_in_lower_case_without_punctuation(
    dialogues: list[tinychat.Dialogue],
) -> None:
    asks = [text for dialogue in dialogues for role, text in dialogue if role == "user"]
    typed = sum(text[0].islower() and text[-1] not in ".!?" for text in asks)
    assert 0.15 < typed / len(asks) < 0.3


def test_the_corpus_is_dialogues_in_the_chat_template_a_line_each() -> None:
    lines = tinychat.corpus_text(3, seed=7).splitlines(keepends=True)
    for line, dialogue in zip(lines, tinychat.generate(3, seed=7), strict=True):
        turns = [
            f"<|{role}|>{text}" + "<|endoftext|>" * (role == "assistant") for role, text in dialogue
        ]
        assert line == "".join(turns) + "\n"


@pytest.mark.parametrize(
    ("template", "readings"),
    [
        ("hi", ["hi"]),
        ("(a|b) c(|!)", ["a c", "a c!", "b c", "b c!"]),
        ("(a|b|) {food}", ["a {food}", "b {food}", " {food}"]),
    ],
)
def test_expand_lists_every_reading(template: str, readings: list[str]) -> None:
    assert list(tinychat.expand(template)) == readings


def test_every_template_is_clean_in_every_reading() -> None:
    for template in user_templates():
        assert not re.search(r"  |^ | $| [.,!?]|[()|/]", template), template
        assert {slot.rstrip("2") for slot in re.findall(r"\{(\w+)\}", template)} <= {
            *SLOTS,
            *tinychat._numbers(Random(0)),
        }


# --- carry-over -------------------------------------------------------------------------------


def test_what_was_told_is_recalled_and_nothing_else() -> None:
    recalled: Counter[str] = Counter()
    for i in range(SAMPLE):
        told: dict[str, str] = {}
        played = tinychat._dialogue(Random(f"memory {i}"))
        for at, e in enumerate(played):
            kind = KINDS[e.topic.kind]
            if e.topic == kind.tell:
                told[kind.name] = e.values[kind.slot]
            elif e.topic == kind.recall:
                assert told[kind.name] in e.assistant
                recalled[kind.name] += 1
            elif e.topic == kind.unknown:
                assert kind.name not in told
            elif e.topic == kind.why:
                assert e.values[kind.slot] in played[at - 1].assistant
                assert e.values[kind.slot] in e.assistant
            if at and played[at - 1].asked_back:
                assert e.topic == KINDS[played[at - 1].topic.kind].tell
    assert set(recalled) == {kind.name for kind in tinychat.FACTS}
    assert min(recalled.values()) > 20


def test_sums_are_right() -> None:
    value = {word: number for number, word in enumerate(SLOTS["hour"], 1)}
    sums = re.compile(r"(\w+) (plus|minus) (\w+) is (\w+)\.")
    seen = set()
    for i in range(SAMPLE):
        for e in tinychat._dialogue(Random(f"sums {i}")):
            if found := sums.search(e.assistant.lower()):
                a, sign, b, result = found.groups()
                expected = value[a] + value[b] * (1 if sign == "plus" else -1)
                assert value[result] == expected
                seen.add((a, sign, b))
    assert len(seen) >= 45  # of 25 sums and their 25 inverses


# --- kinds and vocabulary ---------------------------------------------------------------------


def test_answers_are_of_their_kind_and_of_no_other(exchanges: list[tuple[str, str]]) -> None:
    asked = Counter(kind for kind, _ in exchanges)
    counted: Counter[tuple[str, str]] = Counter()
    for kind, answer in exchanges:
        assert kind in kinds_of(answer), (kind, answer)
        counted.update((kind, other) for other in kinds_of(answer))
    print("\nrows: kind of the answer; columns: counted as, in percent")
    for kind in KINDS:
        cells = (100 * counted[kind, other] / asked[kind] for other in KINDS)
        print(f"{kind:>9}" + "".join(f"{cell:6.1f}" for cell in cells))
    false = [counted[a, b] / asked[a] for a in KINDS for b in KINDS if a != b]
    assert len(KINDS) >= 10
    assert min(asked.values()) > SAMPLE / 20
    assert sum(false) / len(false) < 0.05


@pytest.mark.parametrize(
    ("answer", "kinds"),
    [
        ("I love soup, simple and fresh.", {"food"}),
        ("The soupy weathervane.", set()),
        ("It is three o'clock.", {"time"}),
        ("One, two, three, four!", {"counting"}),
        ("I feel calm and drink tea in Rome.", {"feeling", "drink", "place"}),
        ("", set()),
    ],
)
def test_kinds_of(answer: str, kinds: set[str]) -> None:
    assert kinds_of(answer) == kinds


def test_vocabulary_is_small(dialogues: list[tinychat.Dialogue]) -> None:
    words = {w for d in dialogues for _, text in d for w in tinychat.words_of(text)}
    assert 300 < len(words) <= 700


# --- the probe --------------------------------------------------------------------------------


def test_probe_is_balanced_and_without_repeats() -> None:
    per_kind = Counter(probe.kind for probe in PROBE)
    assert set(per_kind) == set(KINDS)
    assert len(PROBE) >= 120
    assert len(set(per_kind.values())) == 1
    assert len({plain(question) for question in HELD_OUT}) == len(HELD_OUT)
    assert len(DEMO_QUESTIONS) == len(set(DEMO_KINDS)) == 5
    assert set(DEMO_KINDS) <= set(KINDS)


def test_held_out_phrasings_are_in_no_template() -> None:
    number = "|".join((*SLOTS["hour"], *"123456789"))
    fillers = {slot: "|".join(values).lower() for slot, values in SLOTS.items()}

    def pattern(template: str) -> re.Pattern[str]:
        slot = r"\\\{(\w+?)2?\\\}"
        escaped = re.escape(plain(template))
        return re.compile(re.sub(slot, lambda m: f"(?:{fillers.get(m[1], number)})", escaped))

    patterns = [pattern(template) for template in user_templates()]
    for question in HELD_OUT:
        asked = plain(question)
        openers = ["", *(plain(o) + " " for o in OPENERS if asked.startswith(plain(o) + " "))]
        for bare in (asked.removeprefix(opener) for opener in openers):
            assert not any(p.fullmatch(bare) for p in patterns), question


def test_held_out_phrasings_are_never_generated(dialogues: list[tinychat.Dialogue]) -> None:
    held_out = {plain(question) for question in HELD_OUT}
    emitted = {plain(text) for d in dialogues for role, text in d if role == "user"}
    assert not held_out & emitted


def test_held_out_phrasings_use_words_that_users_say() -> None:
    corpus = tinychat.generate(15_000, seed=1)  # about what the demo trains on
    texts = (text for dialogue in corpus for role, text in dialogue if role == "user")
    said = Counter(word for text in texts for word in tinychat.words_of(text))
    asked = {word for question in HELD_OUT for word in tinychat.words_of(question)}
    assert not {word: said[word] for word in asked if said[word] < 10}


def test_score_of_right_shifted_and_empty_answers(exchanges: list[tuple[str, str]]) -> None:
    by_kind = dict(exchanges)
    right = [by_kind[probe.kind] for probe in PROBE]
    result = score(right)
    assert result.overall == 1
    assert set(result.per_kind.values()) == {1}
    assert result.chance == pytest.approx(1 / len(KINDS), rel=0.2)
    per_kind = len(PROBE) // len(KINDS)
    assert score(right[per_kind:] + right[:per_kind]).overall < 0.05
    assert score([""] * len(PROBE)) == tinychat.ProbeScore(0, dict.fromkeys(KINDS, 0), 0)


def test_chance_is_the_mean_over_permutations(exchanges: list[tuple[str, str]]) -> None:
    by_kind = dict(exchanges)
    answers = [by_kind[probe.kind] if i % 3 else "I love soup." for i, probe in enumerate(PROBE)]
    rng = Random(0)
    shuffled = [score(rng.sample(answers, len(answers))).overall for _ in range(100)]
    assert score(answers).chance == pytest.approx(sum(shuffled) / 100, abs=0.01)


def test_one_answer_said_to_everything_scores_chance() -> None:
    result = score(["I love soup, simple and fresh."] * len(PROBE))
    assert result.overall == result.chance == 1 / len(KINDS)


def test_score_refuses_a_wrong_number_of_answers() -> None:
    with pytest.raises(PaperkilnError, match=f"asks {len(PROBE)} questions, got 1"):
        score(["Hello!"])


# --- the corpus file --------------------------------------------------------------------------


def test_write_corpus_holds_what_generate_yields(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "corpus.txt"
    counts = tinychat.write_corpus(path, 200, seed=3)
    data = path.read_bytes()
    dialogues = list(tinychat.generate(200, seed=3))
    assert data.decode() == tinychat.corpus_text(200, seed=3)
    words = {w for d in dialogues for _, text in d for w in tinychat.words_of(text)}
    assert counts["distinct_words"] == len(words)
    assert counts["dialogues"] == 200
    assert counts["exchanges"] == sum(len(d) for d in dialogues) / 2 == data.count(b"<|user|>")
    assert counts["bytes"] == len(data)
    assert counts["sha256"] == hashlib.sha256(data).hexdigest()
    assert [p.name for p in path.parent.iterdir()] == ["corpus.txt"]


def test_write_corpus_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    with pytest.raises(PaperkilnError, match="at least one dialogue, not 0"):
        tinychat.write_corpus(tmp_path / "c.txt", 0, seed=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(PaperkilnError, match="could not be written"):
        tinychat.write_corpus(tmp_path / "file" / "c.txt", 1, seed=0)
    (tmp_path / "folder").mkdir()
    with pytest.raises(PaperkilnError, match="is a folder"):
        tinychat.write_corpus(tmp_path / "folder", 1, seed=0)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder"]
