"""The page of a finding: its claim, what it rests on, and how to get it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from interval import interval_plot
from studies import Study
from words import (
    axis_label,
    badge,
    claim_of,
    data_link,
    details,
    figure,
    interval,
    items,
    minus,
    p_value,
    page,
    relative,
    signed,
    table,
    units,
)

from paperkiln.atlas.analyze import estimate
from paperkiln.atlas.findings import CORRECTED, Finding, analysis_of, read_preregistration

OUTCOMES = {
    "lower": "lower at the high level",
    "higher": "higher at the high level",
    "equivalent": "the same within the margin",
    "unresolved": "unresolved: neither a difference nor its absence is shown",
}


def finding_page(
    atlas: Path, finding: Finding, findings: Sequence[Finding], study: Study | None
) -> str:
    """Return the page of a finding; its headings are the same on every page."""
    sections = {
        "Result": _result(finding, study),
        "Design": _design(finding, study),
        "Scope": f"<p>{escape(finding.scope)}</p><p>It says nothing about other sizes, data or "
        "budgets.</p>",
        "Pre-registration": _preregistration(atlas, finding),
        "Receipts": _receipts(finding),
        "Reproduce": _reproduce(finding),
        "History": _history(finding, findings),
    }
    warning = remark(finding, "../") if finding.status in CORRECTED else ""
    if finding.status == "retracted":
        warning = f"<strong>Retracted.</strong> {warning}"
    head = (
        f'<p class="kicker"><a href="../../">Atlas</a> <code>{escape(finding.id)}</code> '
        f"{badge(finding)}</p><h1>{claim_of(finding)}</h1>"
    )
    return page(head + (f'<p class="correction">{warning}</p>' if warning else ""), sections)


def remark(finding: Finding, findings: str) -> str:
    """Return what became of a finding, or nothing; `findings` leads to their pages."""
    said = []
    if (by := finding.superseded_by) is not None:
        said.append(f'Superseded by <a href="{findings}{escape(by)}/">{escape(by)}</a>.')
    if finding.note:
        said.append(escape(finding.note))
    return " ".join(said)


def _result(finding: Finding, study: Study | None) -> str:
    f = finding
    seeds = seed_differences(f, study)
    margin = f.check.margin
    said = f"effect {signed(f.effect, f.se)}, 95 % interval {interval(f)} {units(f.metric)}"
    drawing = interval_plot(
        f.effect, f.ci, seeds=[*seeds.values()], margin=margin, label=said,
        axis=axis_label(f.metric),
    )  # fmt: skip
    values = {
        "Effect": f"{signed(f.effect, f.se)} {units(f.metric)}",
        "95 % interval": f"{interval(f)}",
        "Relative to the low level": relative(f.relative),
        "Standard error": f"{f.se:.3g}",
        "t": minus(f"{f.t:.2f} with {f.df:.4g} degrees of freedom"),
        "p": p_value(f.p),
        "p, Holm": p_value(f.p_holm),
        "Outcome": OUTCOMES[f.outcome],
    }
    parts = ["the dot and bar are the effect and its 95 % interval", "the line is zero"]
    parts += ["the band is the margin within which effects count as none"] if margin else []
    parts += ["each ring is the difference of one seed"] if seeds else []
    shown = figure(drawing, f"{'; '.join(parts).capitalize()}.")
    return shown + table(values.items(), "The estimate") + _each_seed(seeds, f.se)


def _each_seed(seeds: Mapping[int, float], se: float) -> str:
    if not seeds:
        return ""
    rows = ((f"Seed {seed}", signed(value, se)) for seed, value in seeds.items())
    return details("Each seed", table(rows, "Each seed"))


def _design(finding: Finding, study: Study | None) -> str:
    f, name = finding, escape(finding.study)
    explorer = f'<a href="../../explorer/?study={name}">explorer</a>'
    its_page = f'<a href="../../studies/{name}/">{name}</a>' if study else f"<code>{name}</code>"
    return table(
        {
            "Design": escape(f.design).replace("; ", "<br>"),
            "Runs": f"{f.runs}, with {f.seeds} seeds",
            "Study": f"{its_page}, with all its effects; also in the {explorer}",
            "Metric": f"<code>{escape(f.metric)}</code>",
            "Contrast": escape(contrast(f)),
        }.items(),
        "The design",
    )


def contrast(finding: Finding) -> str:
    """Return in words what is compared."""
    analysis = analysis_of(finding)
    term = analysis["term"]
    if analysis["kind"] == "change":
        return (
            f"how the effect of {term} on the lowest validation loss so far changes "
            f"from {analysis['from']} to {analysis['to']} steps"
        )
    if analysis["kind"] == "simple":
        given = ", ".join(f"{name} = {label}" for name, label in analysis["given"].items())
        return f"{term}, high minus low level, where {given}"
    if ":" in term:
        first, second = term.split(":")
        return f"{first} by {second}: half of how much the effect of one changes with the other"
    return f"{term}, high minus low level, over all other factors"


def _preregistration(atlas: Path, finding: Finding) -> str:
    pledge = finding.preregistration
    plan = read_preregistration(atlas, Path(pledge.path).stem)
    hypothesis = next((h for h in plan.hypotheses if h.id == finding.id), None)
    where = (
        f"<p>Written on {plan.date}, before the first run: {data_link(pledge.path)}, commit "
        f"<code>{pledge.commit[:12]}</code>, SHA-256 <code>{pledge.sha256[:16]}…</code>.</p>"
    )
    n, margin = len(plan.hypotheses), finding.check.margin
    family = f" after Holm's correction over {n} hypotheses" if n > 1 else ""
    equal = f"else equivalent, if two one-sided tests put it within ±{margin:g}; " if margin else ""
    rule = (
        f"<p>The rule: the direction, if p is below {plan.alpha:g}{family}; {equal}else "
        'unresolved. <a href="../../method/#rule">More on it.</a></p>'
    )
    words = table(
        {"Why": escape(plan.why), "Left out": escape(plan.exclusions)}.items(), "The plan"
    )
    if hypothesis is None:
        return where + rule + words
    claims = "".join(
        f"<li{' class=came' if outcome == finding.outcome else ''}><b>{outcome}</b>"
        f"{' (expected)' * (outcome == hypothesis.expected)}: {escape(claim)}</li>"
        for outcome, claim in hypothesis.claims.items()
    )
    return where + rule + words + f"<p>The claim for each outcome:</p><ul>{claims}</ul>"


def _receipts(finding: Finding) -> str:
    first, last = finding.ledger
    files = [*finding.receipts, *(r for r in finding.replicated_by if r not in finding.receipts)]
    ledger = f"{data_link('ledger.jsonl')}, lines {first} to {last}"
    return (
        f"{items([*map(data_link, files), ledger])}"
        "<p><code>paperkiln atlas verify --strict</code> computes every number of this page from "
        "them again.</p>"
    )


def _reproduce(finding: Finding) -> str:
    command = f"paperkiln atlas reproduce {escape(finding.id)} --run"
    return (
        f'<pre tabindex="0"><code>{command}</code></pre>'
        "<p>It runs the design in a fresh folder, applies the rule above and says REPLICATED, "
        "DID NOT REPLICATE or UNDERPOWERED. Without <code>--run</code> it says what that costs.</p>"
    )


def _history(finding: Finding, findings: Sequence[Finding]) -> str:
    events = items(
        f"<time>{event.date}</time> <b>{event.status}</b>"
        f"{': ' if event.note else ''}{escape(event.note)}"
        f"{f' ({event.verdict})' if event.verdict else ''}"
        for event in finding.history
    )
    links = {
        "Replicates": [finding.replicates] if finding.replicates else [],
        "Supersedes": [f.id for f in findings if f.superseded_by == finding.id],
    }
    said = "".join(
        f"<p>{words} {', '.join(f'<a href=../{i}/>{i}</a>' for i in map(escape, ids))}.</p>"
        for words, ids in links.items()
        if ids
    )
    return events + said


def seed_differences(finding: Finding, study: Study | None) -> dict[int, float]:
    """Return the contrast of a finding in each seed, or nothing where seeds are not paired."""
    if study is None or not study.rows:
        return {}
    return dict(estimate(study.rows, analysis_of(finding), study.levels).per_seed)
