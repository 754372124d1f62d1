"""The registry as a table, for the terminal and for Markdown.

Standard library and pydantic only: the browser shows the registry with this file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from paperkiln.atlas.findings import CORRECTED, STATUSES, Finding
from paperkiln.errors import PaperkilnError


def select(
    findings: Iterable[Finding], status: str | None = None, factor: str | None = None
) -> list[Finding]:
    """Return the findings with that status and about that factor; both names are checked.

    What was corrected comes after what stands; else the order is the registry's.
    """
    findings = list(findings)
    if status is not None and status not in STATUSES:
        raise PaperkilnError(f"status {status!r}: choose one of {', '.join(STATUSES)}")
    factors = sorted({name for f in findings for name in f.factors})
    if factor is not None and factor not in factors:
        raise PaperkilnError(f"no finding is about {factor!r}; factors: {', '.join(factors)}")
    chosen = [
        f for f in findings
        if status in (None, f.status) and (factor is None or factor in f.factors)
    ]  # fmt: skip
    return sorted(chosen, key=lambda finding: finding.status in CORRECTED)


def evidence(finding: Finding) -> str:
    """Return effect, interval, p and n in one phrase."""
    low, high = finding.ci
    p = finding.p if finding.p_holm is None else finding.p_holm
    return (
        f"{finding.metric} {finding.effect:+.4g} [{low:+.4g}, {high:+.4g}], "
        f"p {p:.2g}{'' if finding.p_holm is None else ' (Holm)'}, "
        f"{finding.runs} runs, {finding.seeds} seeds"
    )


def remark(finding: Finding) -> str:
    """Return what became of the finding, failed replications included, or nothing."""
    by = f"see {finding.superseded_by}" if finding.superseded_by else ""
    tried = [f"{e.verdict} on {e.date}: {e.note}" for e in finding.history if e.verdict]
    return "; ".join(part for part in (by, finding.note, *tried) if part)


def findings_table(
    findings: Iterable[Finding],
    status: str | None = None,
    factor: str | None = None,
    markdown: bool = False,
) -> str:
    """Return the registry as text for a terminal, or as a Markdown table."""
    chosen = select(findings, status, factor)
    if markdown:
        return _markdown(chosen)
    if not chosen:
        return "no findings"
    width = max(len(f.id) for f in chosen)
    blocks = []
    for f in chosen:
        lines = [f"{f.id:<{width}}  {f.status:<10}  {evidence(f)}", f"  {f.claim}"]
        lines.append(f"  scope: {f.scope}")
        lines += [f"  {f.status}: {remark(f)}"] if remark(f) else []
        blocks.append("\n".join(lines))
    return "\n".join(blocks)


def _markdown(findings: Iterable[Finding]) -> str:
    rows = ["| id | status | claim | evidence | scope |", "| --- | --- | --- | --- | --- |"]
    for f in findings:
        claim = _cell(f.claim)
        claim = f"~~{claim}~~" if f.status in CORRECTED else claim
        claim += f" *{_cell(remark(f))}*" if remark(f) else ""
        cells = (f"`{f.id}`", f"**{f.status}**", claim, _cell(evidence(f)), _cell(f.scope))
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _cell(text: str) -> str:
    """Return text that stays text in a Markdown table."""
    return re.sub(r"([\\|`*_~<>\[\]])", r"\\\1", text)
