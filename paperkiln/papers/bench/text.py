"""The paper bench's figures as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_COUNTS = {
    "stated": "stated", "right": "right", "wrong": "wrong", "missed": "missed",
    "asserted_on_null": "on null",
}  # fmt: skip
_RATES = {"precision": "precision", "recall": "recall", "f1": "F1", "auroc": "AUROC"}
_COLUMNS = (*_COUNTS.items(), *_RATES.items())
# What is listed entry by entry, and its heading.
_LISTED = (
    ("wrong", "wrong"),
    ("asserted_on_null", "asserted where abstaining is right"),
    ("missed", "missed"),
    ("known_wrong", "KNOWN_WRONG"),
)
_LABEL = 14  # characters of a row's name
_LONGEST = 96  # characters of a paper's text in one line


def lines(figures: Mapping[str, Any]) -> list[str]:
    """Return the lines for what `Report.to_json` returns; quotes are cut and made printable."""
    return [*_table(figures), "", *_summary(figures), *_lists(figures)]


def _table(figures: Mapping[str, Any]) -> Iterator[str]:
    rows = list(figures["per_field"].items())
    for half in ("numbers", "flavors"):
        rows.append((f"all {half}", {**figures[half], **figures["rates"][half]}))
        rows.append(("  by template", figures["by_template"][half]))
    yield "field".ljust(_LABEL) + "".join(title.rjust(_width(title)) for _, title in _COLUMNS)
    for name, row in rows:
        cells = (_cell(row, key).rjust(_width(title)) for key, title in _COLUMNS)
        yield (name.ljust(_LABEL) + "".join(cells)).rstrip()


def _width(title: str) -> int:
    return max(len(title), 5) + 1


def _cell(row: Mapping[str, Any], key: str) -> str:
    if key not in row:
        return ""
    if key in _COUNTS and isinstance(row[key], float):
        return f"{row[key]:.1f}"
    return _number(row[key])


def _summary(figures: Mapping[str, Any]) -> Iterator[str]:
    templates = figures["templates"]
    yield f"{len(templates)} papers, {len(set(templates.values()))} when a template counts once"
    accuracy = figures["verdict_accuracy"]
    yield f"flavours as they should be, stated or open: {accuracy['correct']} of {accuracy['of']}"
    auroc, detail = figures["auroc"], figures["auroc_detail"]
    for title, ours, interval, naive in (
        ("grouped", auroc["grouped"], auroc["grouped_ci"], auroc["naive_grouped"]),
        ("by template", detail["by_template"], detail["by_template_ci"],
         detail["naive_by_template"]),
        ("pooled", auroc["pooled"], detail["pooled_ci"], detail["naive_pooled"]),
    ):  # fmt: skip
        within = f" [{_number(interval[0])}, {_number(interval[1])}]" if interval else ""
        yield f"AUROC {title} {_number(ours)}{within}, naive first-match {_number(naive)}"
    yield f"AUROC pooled without vetoed values {_number(detail['pooled_post_veto'])}"
    for half, left in figures["leave_one_out"].items():
        of = {f1: paper for paper, f1 in left["f1_without"].items()}
        yield (
            f"F1 of {half}, one template left out: {_number(left['min'])} to "
            f"{_number(left['max'])} (lowest without {of.get(left['min'], '-')})"
        )
    yield f"quotes checked {figures['quotes_checked']}, false {figures['quotes_false']}"


def _lists(figures: Mapping[str, Any]) -> Iterator[str]:
    for key, heading in _LISTED:
        if figures[key]:
            yield from ("", f"{heading}:")
        for entry in figures[key]:
            rest = (f"{k} {_shown(v)}" for k, v in entry.items() if k not in ("paper", "field"))
            yield f"  {_shown(entry['paper'])} {entry['field']}: " + ", ".join(rest)
    for key in ("failed", "skipped"):
        if figures[key]:
            yield from ("", f"{key}:")
        for paper, error in figures[key].items():
            yield f"  {_shown(paper)}: {_shown(error)}"
    if figures["false_quotes"]:
        yield from ("", "not verbatim at their place:")
        yield from (f"  {_shown(quote)}" for quote in figures["false_quotes"])


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.3f}"


def _shown(value: Any) -> str:
    """A paper's text may hold anything, also what drives a terminal."""
    text = "".join(c if c.isprintable() else " " for c in str(value))
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
