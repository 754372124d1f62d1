"""The architecture of a paper as a terminal shows it: value, verdict, evidence, place."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from paperkiln.papers.architecture import FLAVORS, NUMBERS, TRAINING, Architecture, Evidence, Value

_CLOSE = 1.0  # a second value as near as this is shown beside the one used
_STYLES = {
    "used": "green", "derived": "cyan", "inherited": "cyan", "family": "green",
    "contested": "yellow",
}  # fmt: skip


def show(architecture: Architecture, console: Console) -> None:
    """Print the architecture."""
    console.print(Group(*_parts(architecture)))


def _parts(architecture: Architecture) -> Iterator[RenderableType]:
    title = architecture.title or "(no title)"
    named = f"  ({architecture.paper_id})" if architecture.paper_id else ""
    yield Text(f"{title}{named}", style="bold")
    if architecture.model:
        yield Text(f"model: {architecture.model}")
    if architecture.inherits:
        yield Text(
            f"builds on {architecture.inherits.ancestor}: {_quote(architecture.inherits.evidence)}"
        )
    yield Text("")
    if architecture.values:
        yield _table(architecture.values, (*NUMBERS, *FLAVORS))
    else:
        yield Text("No architecture of its own is stated; it may be about other people's models.")
    if architecture.training:
        yield Text("\ntraining", style="bold")
        yield _table(architecture.training, TRAINING)
    yield from _open(architecture)
    yield from _variants(architecture)
    if architecture.checks:
        yield Text("\nchecks", style="bold")
        for check in architecture.checks:
            sign = {True: "✓", False: "✗", None: "·"}[check.ok]
            yield _indented(f"{sign} {check.message}", "red" if check.ok is False else "")
    for note in architecture.notes:
        yield Text(f"note: {note}", style="dim")


def _table(values: dict[str, Value], order: tuple[str, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("field", no_wrap=True)
    table.add_column("value", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("evidence", overflow="fold", ratio=1)
    for name in order:
        if name not in values:
            continue
        value = values[name]
        evidence = _evidence(value)
        shown = shown_value(value.value)
        table.add_row(name, shown, Text(value.verdict, _STYLES[value.verdict]), evidence)
    return table


def _evidence(value: Value) -> Text:
    text = Text()
    for i, evidence in enumerate(
        value.evidence[:2] if value.verdict == "derived" else value.evidence[:1]
    ):
        text.append("\n" if i else "")
        text.append(f"“{_around(evidence.reads, value.value)}” ")
        text.append(f"{evidence.file}:{evidence.line}", style="dim")
    if value.note:
        text.append(f"\n{value.note}", style="dim")
    if value.verdict == "contested" and value.runner_up:
        other = value.runner_up
        text.append(f"\nor {shown_value(other.value)}: “{_short(other.evidence.reads)}” ", "yellow")
        text.append(f"{other.evidence.file}:{other.evidence.line}", style="dim")
    elif value.runner_up and value.runner_up.score > value.score - _CLOSE and not value.note:
        other = value.runner_up
        text.append(f"\nalso {shown_value(other.value)}: ", style="dim")
        text.append(f"“{_around(other.evidence.reads, other.value, 60)}” ", style="dim")
        text.append(f"{other.evidence.file}:{other.evidence.line}", style="dim")
    return text


def _open(architecture: Architecture) -> Iterator[RenderableType]:
    stated = {n: why for n, why in architecture.unresolved.items() if why != "not stated"}
    silent = [n for n in architecture.unresolved if n not in stated]
    if not architecture.unresolved:
        return
    yield Text("\nunresolved (reported, not guessed)", style="bold")
    for name, why in stated.items():
        yield _indented(f"{name}: {_short(why, 160)}")
    if silent:
        yield _indented(f"not stated: {', '.join(silent)}")


def _variants(architecture: Architecture) -> Iterator[RenderableType]:
    if architecture.variants:
        yield Text("\nother sizes (--size NAME reads one of them)", style="bold")
    for variant in architecture.variants[:12]:
        values = ", ".join(f"{n} {shown_value(v)}" for n, v in variant.values.items())
        yield _indented(f"{variant.name}: {values}")
    if len(architecture.variants) > 12:
        yield _indented(f"and {len(architecture.variants) - 12} more (--json lists them)")


def _indented(text: str, style: str = "") -> Padding:
    """Return a line whose continuation, where it is wrapped, stands under it."""
    return Padding(Text(text, style), (0, 0, 0, 2), expand=False)


def shown_value(value: object) -> str:
    """Return a value as a reader expects it: 151,936, yes, 3e-04."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if value >= 10_000 else str(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _quote(evidence: Evidence) -> str:
    return f"“{_short(evidence.reads, 200)}” {evidence.file}:{evidence.line}"


def _around(text: str, value: object, most: int = 110) -> str:
    """Return at most `most` characters of a quote, those around its value."""
    if len(text) <= most:
        return text
    forms = {shown_value(value), str(value), f"{value:,}" if isinstance(value, int) else str(value)}
    places = [at for form in forms if (at := text.lower().find(form.lower())) >= 0]
    start = max(min(places, default=0) - most // 2, 0)
    start = text.rfind(" ", 0, start) + 1 if start else 0
    cut = _short(text[start:], most)
    return f"…{cut}" if start else cut


def _short(text: str, most: int = 110) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
