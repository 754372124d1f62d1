"""From training settings to values: what the paper's own main training used.

Settings of the paper's pre-training come first; those of later stages count only where the paper
has no other training. Two values that nothing decides between are contested.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from paperkiln.papers.architecture import Evidence, Mention, Scalar, Value
from paperkiln.papers.document import Document
from paperkiln.papers.evidence import evidence
from paperkiln.papers.scope import Scope
from paperkiln.papers.training.prose import read_prose
from paperkiln.papers.training.setting import Setting
from paperkiln.papers.training.stage import PRETRAINING, Stages
from paperkiln.papers.training.tables import read_training_tables

_ASSERT = 1.0  # score below which a setting is only a mention
_MARGIN = 0.5  # by which the best value must lead
_AGREED = 0.25  # for every further place that says the same
_PARTS = {"min_lr_part": ("min_lr", "lr"), "warmup_part": ("warmup_steps", "steps")}
# Fields in which two trainings differ; when several do, the paper has no main training.
_TELLING = frozenset("optimizer lr batch_sequences batch_tokens beta2 steps tokens".split())
_MAX_TRAININGS = 50
_BODY = ("training", "method", "abstract", "introduction")


def read_training(document: Document, scope: Scope) -> dict[str, Value]:
    """Return what the document states of its main training, by field of `TRAINING`.

    Fields that are not stated are absent.
    """
    stages = Stages(document, scope)
    settings = read_prose(document, stages) + read_training_tables(document, scope, stages)
    own = [s for s in settings if not s.owner and s.score >= _ASSERT]
    pool, stage = _main_pool(own, stages)
    values = {name: _judge(found, stage) for name, found in _by_field(pool).items()}
    return _finish(_apart(values, pool))


def _main_pool(own: list[Setting], stages: Stages) -> tuple[list[Setting], str]:
    """Return the settings of the main training, and the stage it is when it is a later one."""
    main = [s for s in own if s.stage in ("", PRETRAINING)]
    telling = {s.field for s in main} - {"tokens"}
    if telling or stages.pretrains or not own:
        return main, ""
    first = next((s.stage for s in own if s.stage and s.stage != "evaluation"), "")
    return main + [s for s in own if s.stage == first != ""], first


def _by_field(pool: Iterable[Setting]) -> dict[str, list[Setting]]:
    fields: dict[str, list[Setting]] = defaultdict(list)
    for setting in sorted(pool, key=lambda s: (s.order, s.record, s.start)):
        fields[setting.field].append(setting)
    return fields


def _judge(found: list[Setting], stage: str) -> Value:
    """Return the value of one field: the first of its record, the best said of the records."""
    places: dict[Scalar, set[int]] = defaultdict(set)
    for setting in found:
        places[setting.value].add(setting.order)

    def strength(setting: Setting) -> float:
        return setting.score + _AGREED * min(len(places[setting.value]) - 1, 3)

    firsts: dict[tuple[int, ...], Setting] = {}
    for setting in found:
        firsts.setdefault(setting.record, setting)
    best = max(firsts.values(), key=lambda s: (strength(s), -s.order))
    # A paragraph tells of the main training first, then of the others.
    best = next(
        s for s in firsts.values() if s.order == best.order and strength(s) > strength(best) - 1
    )
    rivals = [s for s in found if s.value != best.value]
    disputed = [s for s in rivals if _disputes(s, best, strength(s) - strength(best))]
    runner = max(disputed or rivals, key=lambda s: (strength(s), -s.order), default=None)
    return Value(
        best.value, "contested" if disputed else "used", (_quote(best),),
        round(strength(best), 2), best.cues, _mention(runner), "" if disputed else stage,
    )  # fmt: skip


def _disputes(rival: Setting, best: Setting, lead: float) -> bool:
    """Whether nothing decides between two values of a field; `lead` is the rival's in score."""
    apart = rival.variant != best.variant
    if rival.record == best.record:  # the rate of the encoder and that of the decoder
        return rival.field == "lr" and bool(best.variant) and apart
    if rival.order == best.order and rival.record > best.record:
        return False  # a paragraph tells of the main size and of the first stage first
    return lead > -_MARGIN and not (apart and rival.variant and best.variant)


def _apart(values: dict[str, Value], pool: list[Setting]) -> dict[str, Value]:
    """Contest what one of several trainings alone says, when the paper has no main one.

    A section that sets three things describes a training; one in the body of the paper comes
    before those of experiments and appendices.
    """
    trainings: dict[str, dict[str, set[Scalar]]] = defaultdict(lambda: defaultdict(set))
    for setting in pool:
        trainings[setting.section.path][setting.field].add(setting.value)
    rank = {s.section.path: s.section.kind in _BODY and not s.section.appendix for s in pool}
    full = [path for path, said in trainings.items() if len(said) >= 3]
    full = ([path for path in full if rank[path]] or full)[:_MAX_TRAININGS]
    apart = {
        path
        for i, path in enumerate(full)
        for j, other in enumerate(full)
        if i != j and _differ(trainings[path], trainings[other]) >= 2
    }
    return {
        name: value
        if all(trainings[p].get(name) == {value.value} for p in apart)
        else _contest(value)
        for name, value in values.items()
    }


def _differ(one: dict[str, set[Scalar]], other: dict[str, set[Scalar]]) -> int:
    shared = _TELLING & one.keys() & other.keys()
    return sum(not one[name] & other[name] for name in shared)


def _contest(value: Value) -> Value:
    note = "the paper describes several trainings and calls none the main one"
    return Value(
        value.value, "contested", value.evidence, value.score, value.cues, value.runner_up, note
    )


def _finish(values: dict[str, Value]) -> dict[str, Value]:
    """Turn fractions of the peak rate and of the steps into numbers, and drop what cannot be."""
    for part, (name, whole) in _PARTS.items():
        value, base = values.pop(part, None), values.get(whole)
        if not value or name in values or not base or "contested" in (value.verdict, base.verdict):
            continue
        product = float(f"{value.value * base.value:.6g}")  # type: ignore[operator]
        if name == "warmup_steps":
            product = round(product)
        values[name] = Value(
            product, "derived", (*value.evidence, *base.evidence), value.score, value.cues, None,
            f"{value.value:g} × {base.value:g} = {product:g}",
        )  # fmt: skip
    low, high = values.get("min_lr"), values.get("lr")
    if low and high and not low.value < high.value:  # type: ignore[operator]
        del values["min_lr"]
    return values


def _quote(setting: Setting) -> Evidence:
    return evidence(setting.text, setting.start, setting.end, setting.section)


def _mention(setting: Setting | None) -> Mention | None:
    if setting is None:
        return None
    return Mention(setting.value, round(setting.score, 2), _quote(setting), setting.cues)
