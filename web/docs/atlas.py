"""The pages of the atlas: the registry's table, a page for each finding, the data behind both.

Everything is made from the atlas folder that `extra.atlas` in mkdocs.yml names. Its text is
escaped and put into HTML, never into Markdown, where a claim could become markup.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from interval import interval_plot
from mkdocs.structure.files import File, Files

from paperkiln.atlas.analyze import estimate
from paperkiln.atlas.findings import (
    CORRECTED,
    FINDINGS,
    STATUSES,
    Finding,
    analysis_of,
    read_findings,
    read_json,
    read_preregistration,
)

DATA = "atlas/data"  # on the site; below it the paths are those of the atlas folder
UNITS = {"tokens_per_second": "tokens/s", "wall_seconds": "s", "energy_joules": "J"}
LOSSES = ("best_val", "final_val", "final_train_loss", "loss_tail_std", "val@")
OUTCOMES = {
    "lower": "lower at the high level",
    "higher": "higher at the high level",
    "equivalent": "the same within the margin",
    "unresolved": "unresolved: neither a difference nor its absence is shown",
}
NONE_YET = "There are no findings yet."


def add_pages(files: Files, config: Any) -> None:
    """Add a page for each finding and the atlas's data; findings join the menu."""
    atlas = Path(config["extra"]["atlas"])
    findings = read_findings(atlas)
    pages = {}
    for finding in findings:
        uri = f"atlas/findings/{finding.id}.md"
        files.append(File.generated(config, uri, content=finding_page(atlas, finding, findings)))
        pages[finding.id] = uri
    for item in config["nav"] or ():
        if pages and "Atlas" in item:
            item["Atlas"].append({"Each finding": [{name: uri} for name, uri in pages.items()]})
    for path in published(atlas, findings):
        source = str((atlas / path).resolve())
        files.append(File.generated(config, f"{DATA}/{path}", abs_src_path=source))
    index = json.dumps(list(studies(atlas)), ensure_ascii=False, indent=1)
    files.append(File.generated(config, f"{DATA}/studies.json", content=index + "\n"))


def published(atlas: Path, findings: Iterable[Finding]) -> list[str]:
    """Return the files, below the atlas folder, that readers can take: receipts above all."""
    wanted = {FINDINGS, "ledger.jsonl"}
    for finding in findings:
        wanted |= {finding.preregistration.path, *finding.receipts, *finding.replicated_by}
    for name in ("rows.jsonl", "sweep.json"):
        wanted |= {p.relative_to(atlas).as_posix() for p in atlas.glob(f"studies/*/{name}")}
    return sorted(path for path in wanted if (atlas / path).is_file())


def studies(atlas: Path) -> Iterator[dict[str, Any]]:
    """Yield what the explorer lists: every study that has rows."""
    for path in sorted(atlas.glob("studies/*/rows.jsonl")):
        spec = sweep_of(path.parent)
        yield {
            "name": path.parent.name,
            "question": spec.get("question", ""),
            "factors": levels(path.parent),
            "rows": path.relative_to(atlas).as_posix(),
        }


def sweep_of(study: Path) -> dict[str, Any]:
    """Return the resolved sweep of a study, empty where there is none."""
    path = study / "sweep.json"
    return read_json(path) if path.is_file() else {}


def levels(study: Path) -> dict[str, list[str]]:
    """Return the labels of each factor of a study, the low one first."""
    factors = sweep_of(study).get("factors", {})
    return {name: list(factor["levels"]) for name, factor in factors.items()}


# --- the registry -------------------------------------------------------------------------------


def registry(atlas: Path) -> str:
    """Return the table of all findings, corrected ones included, with its search."""
    findings = read_findings(atlas)
    if not findings:
        return f"<p>{NONE_YET}</p>"
    heads = ("Finding", "Claim", "Effect", "Design", "Scope", "Status")
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    rows = "".join(_row(finding) for finding in findings)
    shown = [status for status in STATUSES if any(f.status == status for f in findings)]
    boxes = "".join(
        f'<label class="tick"><input type="checkbox" value="{status}" checked>{status}</label>'
        for status in shown
    )
    return f"""<div class="registry"><paperkiln-registry>
<form class="filters" role="search" aria-label="Findings">
<label>Search <input type="search" placeholder="muon, lr, window …"></label>
<fieldset><legend>Status</legend>{boxes}</fieldset>
<output></output></form>
<table class="findings"><caption class="unseen">The findings of the atlas</caption>
<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>
</paperkiln-registry>
<p><a href="data/{FINDINGS}">{FINDINGS}</a> has a line for each state of each finding.</p></div>"""


def _row(finding: Finding) -> str:
    f, e = finding, escape
    claim = e(f.claim)
    if f.status in CORRECTED:
        claim = f"<del>{claim}</del>"
    if said := remark(f, "findings/"):
        claim += f'<small class="remark">{said}</small>'
    return (
        f'<tr data-status="{f.status}"><th scope="row"><a href="findings/{e(f.id)}/">{e(f.id)}</a>'
        f'</th><td class="claim">{claim}</td>'
        f'<td class="number" data-value="{f.effect}">{signed(f.effect, f.se)}'
        f"<small>{interval(f)} {units(f.metric)}</small></td>"
        f'<td data-value="{f.runs}">{e(f.design.partition(";")[0])}'
        f"<small>{f.runs} runs, {f.seeds} seeds</small></td>"
        f"<td>{e(f.scope)}</td><td>{badge(f)}</td></tr>\n"
    )


def badge(finding: Finding) -> str:
    """Return the status as a word in a coloured frame."""
    return f'<span class="badge {finding.status}">{finding.status}</span>'


def remark(finding: Finding, findings: str) -> str:
    """Return what became of a finding, or nothing; `findings` leads to their pages."""
    said = []
    if (by := finding.superseded_by) is not None:
        said.append(f'Superseded by <a href="{findings}{escape(by)}/">{escape(by)}</a>.')
    if finding.note:
        said.append(escape(finding.note))
    return " ".join(said)


# --- a finding ----------------------------------------------------------------------------------


def finding_page(atlas: Path, finding: Finding, findings: Sequence[Finding]) -> str:
    """Return the page of a finding; its headings are the same on every page."""
    sections = {
        "Result": _result(atlas, finding),
        "Design": _design(finding),
        "Scope": f"<p>{escape(finding.scope)}</p><p>It says nothing about other sizes, data or "
        "budgets.</p>",
        "Pre-registration": _preregistration(atlas, finding),
        "Receipts": _receipts(finding),
        "Reproduce": _reproduce(finding),
        "History": _history(finding, findings),
    }
    claim = escape(finding.claim)
    title = f"<del>{claim}</del>" if finding.status in CORRECTED else claim
    warning = remark(finding, "../") if finding.status in CORRECTED else ""
    if finding.status == "retracted":
        warning = f"<strong>Retracted.</strong> {warning}"
    parts = [
        '<div class="finding">',
        f'<p class="kicker"><a href="../../">Atlas</a> <code>{escape(finding.id)}</code> '
        f"{badge(finding)}</p>",
        f"<h1>{title}</h1>",
        f'<p class="correction">{warning}</p>' if warning else "",
        "</div>",
    ]
    lines = ["".join(parts)]
    for heading, html in sections.items():
        lines += [f"## {heading}", f'<div class="finding">{html}</div>']
    return "\n\n".join(lines) + "\n"


def _result(atlas: Path, finding: Finding) -> str:
    f = finding
    seeds = seed_differences(atlas, f)
    margin = f.check.margin
    said = f"effect {signed(f.effect, f.se)}, 95 % interval {interval(f)} {units(f.metric)}"
    drawing = interval_plot(
        f.effect, f.ci, seeds=[*seeds.values()], margin=margin, label=said, axis=axis_label(f)
    )
    values = {
        "Effect": f"{signed(f.effect, f.se)} {units(f.metric)}",
        "95 % interval": f"{interval(f)}",
        "Relative to the low level": "—"
        if f.relative is None
        else minus(f"{100 * f.relative:+.2f} %"),
        "Standard error": f"{f.se:.3g}",
        "t": minus(f"{f.t:.2f} with {f.df:.4g} degrees of freedom"),
        "p": p_value(f.p),
        "p, Holm": "—" if f.p_holm is None else p_value(f.p_holm),
        "Outcome": OUTCOMES[f.outcome],
    }
    parts = ["the dot and bar are the effect and its 95 % interval", "the line is zero"]
    parts += ["the band is the margin within which effects count as none"] if margin else []
    parts += ["each ring is the difference of one seed"] if seeds else []
    figure = f"<figure>{drawing}<figcaption>{'; '.join(parts).capitalize()}.</figcaption></figure>"
    return figure + table(values.items(), "The estimate") + _each_seed(seeds, f.se)


def _each_seed(seeds: Mapping[int, float], se: float) -> str:
    if not seeds:
        return ""
    rows = ((f"Seed {seed}", signed(value, se)) for seed, value in seeds.items())
    return f"<details><summary>Each seed</summary>{table(rows, 'Each seed')}</details>"


def _design(finding: Finding) -> str:
    f = finding
    return table(
        {
            "Design": escape(f.design).replace("; ", "<br>"),
            "Runs": f"{f.runs}, with {f.seeds} seeds",
            "Study": f"<code>{escape(f.study)}</code>, in the "
            f'<a href="../../explorer/?study={escape(f.study)}">explorer</a>',
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
    items = "".join(
        f"<li{' class=came' if outcome == finding.outcome else ''}><b>{outcome}</b>"
        f"{' (expected)' * (outcome == hypothesis.expected)}: {escape(claim)}</li>"
        for outcome, claim in hypothesis.claims.items()
    )
    return where + rule + words + f"<p>The claim for each outcome:</p><ul>{items}</ul>"


def _receipts(finding: Finding) -> str:
    first, last = finding.ledger
    files = [*finding.receipts, *(r for r in finding.replicated_by if r not in finding.receipts)]
    items = "".join(f"<li>{data_link(path)}</li>" for path in files)
    ledger = data_link("ledger.jsonl")
    return (
        f"<ul>{items}<li>{ledger}, lines {first} to {last}</li></ul>"
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
    items = "".join(
        f"<li><time>{event.date}</time> <b>{event.status}</b>"
        f"{': ' if event.note else ''}{escape(event.note)}"
        f"{f' ({event.verdict})' if event.verdict else ''}</li>"
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
    return f"<ul>{items}</ul>{said}"


def seed_differences(atlas: Path, finding: Finding) -> dict[int, float]:
    """Return the contrast of a finding in each seed, or nothing where seeds are not paired."""
    path = atlas / "studies" / finding.study / "rows.jsonl"
    if not path.is_file():
        return {}
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return dict(estimate(rows, analysis_of(finding), levels(path.parent)).per_seed)


# --- small things -------------------------------------------------------------------------------


def table(rows: Iterable[tuple[str, str]], caption: str) -> str:
    """Return a table of names and values; values are HTML."""
    body = "".join(f'<tr><th scope="row">{name}</th><td>{value}</td></tr>' for name, value in rows)
    return f'<table class="facts"><caption class="unseen">{caption}</caption>{body}</table>'


def data_link(path: str) -> str:
    """Return a link from a finding's page to a file of the atlas."""
    return f'<a href="../../data/{escape(path)}"><code>atlas/{escape(path)}</code></a>'


def signed(value: float, se: float) -> str:
    """Return a number with its sign and as many decimals as give its standard error two digits."""
    decimals = max(0, 1 - math.floor(math.log10(se))) if se > 0 else 4
    return minus(f"{value:+.{min(decimals, 12)}f}")


def minus(text: str) -> str:
    """Return a number's text with the sign that is as wide as a plus."""
    return text.replace("-", "−")


def interval(finding: Finding) -> str:
    """Return the interval of an effect."""
    low, high = finding.ci
    return f"{signed(low, finding.se)} to {signed(high, finding.se)}"


def p_value(p: float) -> str:
    """Return a p value with two digits, very small ones as a bound."""
    return "< 0.0001" if p < 1e-4 else f"{p:.2g}"


def units(metric: str) -> str:
    """Return the units of a metric, or nothing where it has none."""
    return "nats per token" if metric.startswith(LOSSES) else UNITS.get(metric, "")


def axis_label(finding: Finding) -> str:
    """Return what the axis of the plot shows."""
    return f"{finding.metric}, {units(finding.metric)}".rstrip(", ")
