"""Numbers, tables and links as the pages of the atlas write them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from paperkiln.atlas.findings import CORRECTED, Finding

DATA = "atlas/data"  # on the site; below it the paths are those of the atlas folder
_UNITS = {"tokens_per_second": "tokens/s", "wall_seconds": "s", "energy_joules": "J"}
_LOSSES = ("best_val", "final_val", "final_train_loss", "loss_tail_std", "val@")


# --- numbers ------------------------------------------------------------------------------------


def signed(value: float, se: float) -> str:
    """Return a number with its sign and as many decimals as give its standard error two digits."""
    decimals = max(0, 1 - math.floor(math.log10(se))) if se > 0 else 4
    return minus(f"{value:+.{min(decimals, 12)}f}")


def minus(text: str) -> str:
    """Return a number's text with the sign that is as wide as a plus."""
    return text.replace("-", "−")


def interval(found: Any) -> str:
    """Return the interval of an estimate or a finding."""
    low, high = found.ci
    return f"{signed(low, found.se)} to {signed(high, found.se)}"


def p_value(p: float | None) -> str:
    """Return a p value with two digits, very small ones as a bound, in HTML."""
    return "—" if p is None else "&lt; 0.0001" if p < 1e-4 else f"{p:.2g}"


def p_is(p: float) -> str:
    """Return what p is for a sentence, in HTML."""
    return f"p {p_value(p)}" if p < 1e-4 else f"p = {p_value(p)}"


def relative(share: float | None) -> str:
    """Return a share as a percentage with its sign."""
    return "—" if share is None else minus(f"{100 * share:+.2f} %")


def percent(share: float, decimals: int = 0) -> str:
    """Return a share as a percentage."""
    return f"{100 * share:.{decimals}f} %"


def units(metric: str) -> str:
    """Return the units of a metric, or nothing where it has none."""
    return "nats per token" if metric.startswith(_LOSSES) else _UNITS.get(metric, "")


def axis_label(metric: str) -> str:
    """Return what the axis of a plot of a metric shows."""
    return f"{metric}, {units(metric)}".rstrip(", ")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# --- pieces of pages ----------------------------------------------------------------------------


def table(rows: Iterable[tuple[str, str]], caption: str) -> str:
    """Return a table of names and values; values are HTML."""
    body = "".join(f'<tr><th scope="row">{name}</th><td>{value}</td></tr>' for name, value in rows)
    return f'<table class="facts"><caption class="unseen">{caption}</caption>{body}</table>'


def grid(heads: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    """Return a table of columns, the first of them names; it scrolls by itself where it is wide."""
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    body = "".join(
        f'<tr><th scope="row">{name}</th>{"".join(f"<td>{value}</td>" for value in values)}</tr>'
        for name, *values in rows
    )
    return (
        f'<div class="grid" role="region" aria-label="{caption}" tabindex="0"><table class="grid">'
        f'<caption class="unseen">{caption}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def details(summary: str, html: str) -> str:
    """Return what is shown on request."""
    return f"<details><summary>{summary}</summary>{html}</details>"


def figure(drawing: str, caption: str) -> str:
    """Return a drawing with what it shows."""
    return f"<figure>{drawing}<figcaption>{caption}</figcaption></figure>"


def items(lines: Iterable[str]) -> str:
    """Return a list; its lines are HTML."""
    return f"<ul>{''.join(f'<li>{line}</li>' for line in lines)}</ul>"


def page(head: str, sections: dict[str, str]) -> str:
    """Return a page's Markdown; head and sections are HTML, and empty sections are left out."""
    lines = [f'<div class="finding">{head}</div>']
    for heading, html in sections.items():
        if html:
            lines += [f"## {heading}", f'<div class="finding">{html}</div>']
    return "\n\n".join(lines) + "\n"


def data_link(path: str) -> str:
    """Return a link from the page of a finding or study to a file of the atlas."""
    return f'<a href="../../data/{escape(path)}"><code>atlas/{escape(path)}</code></a>'


def badge(finding: Finding) -> str:
    """Return the status as a word in a coloured frame."""
    return f'<span class="badge {finding.status}">{finding.status}</span>'


def claim_of(finding: Finding) -> str:
    """Return the claim, struck through where it was corrected."""
    claim = escape(finding.claim)
    return f"<del>{claim}</del>" if finding.status in CORRECTED else claim
