"""What the atlas puts on the site: its pages, its data, and the table of all findings.

Everything is made from the atlas folder that `extra.atlas` in mkdocs.yml names. Its text is
escaped and put into HTML, never into Markdown, where a claim could become markup.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from finding_page import finding_page, remark
from mkdocs.structure.files import File, Files
from studies import Study, read_studies
from study_page import study_page
from words import DATA, badge, claim_of, counted, interval, signed, units

from paperkiln.atlas.findings import FINDINGS, STATUSES, Finding, read_findings
from paperkiln.atlas.table import select

NONE_YET = "There are no findings yet."


def add_pages(files: Files, config: Any) -> None:
    """Add a page for each study and finding, and the atlas's data; the pages join the menu."""
    atlas = Path(config["extra"]["atlas"])
    findings, studies = read_findings(atlas), read_studies(atlas)
    by_name = {study.name: study for study in studies}
    its_page = {}
    for study in studies:
        uri = f"atlas/studies/{study.name}.md"
        its_page[uri] = study_page(atlas, study, studies, findings)
    for finding in findings:
        uri = f"atlas/findings/{finding.id}.md"
        its_page[uri] = finding_page(atlas, finding, findings, by_name.get(finding.study))
    for uri, content in its_page.items():
        files.append(File.generated(config, uri, content=content))
    _join_menu(config["nav"] or (), studies, findings)
    for path in published(atlas, studies, findings):
        source = str((atlas / path).resolve())
        files.append(File.generated(config, f"{DATA}/{path}", abs_src_path=source))
    index = json.dumps(list(explored(studies)), ensure_ascii=False, indent=1)
    files.append(File.generated(config, f"{DATA}/studies.json", content=index + "\n"))


def _join_menu(nav: Iterable[Any], studies: Sequence[Study], findings: Sequence[Finding]) -> None:
    sections = {
        "Studies": [{study.title: f"atlas/studies/{study.name}.md"} for study in studies],
        "Each finding": [{f.id: f"atlas/findings/{f.id}.md"} for f in select(findings)],
    }
    for item in nav:
        if "Atlas" in item:
            item["Atlas"] += [{name: pages} for name, pages in sections.items() if pages]


def published(atlas: Path, studies: Iterable[Study], findings: Iterable[Finding]) -> list[str]:
    """Return the files, below the atlas folder, that readers can take: receipts above all."""
    wanted = {FINDINGS, "ledger.jsonl"}
    for finding in findings:
        wanted |= {finding.preregistration.path, *finding.receipts, *finding.replicated_by}
    for study in studies:
        wanted |= set(study.files)
    return sorted(path for path in wanted if (atlas / path).is_file())


def explored(studies: Iterable[Study]) -> Iterator[dict[str, Any]]:
    """Yield what the explorer lists: the studies whose runs have all ended."""
    for study in studies:
        if study.finished:
            yield {
                "name": study.name,
                "question": study.sweep.question,
                "factors": study.levels,
                "rows": f"{study.folder}/rows.jsonl",
            }


# --- the registry -------------------------------------------------------------------------------


def registry(atlas: Path) -> str:
    """Return the table of all findings, corrected ones included, with its search."""
    findings = select(read_findings(atlas))
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
    claim = claim_of(f)
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


def cite(markdown: str, atlas: Path) -> str:
    """Put a finding's effect and interval, linked, wherever a page of the atlas names its id."""
    by_id = {finding.id: finding for finding in read_findings(atlas)}

    def cited(match: re.Match[str]) -> str:
        f = by_id.get(match[1])
        if f is None:
            return "(not in this registry)"
        return f"[{signed(f.effect, f.se)} ({interval(f)})](findings/{f.id}.md)"

    return re.sub(r"<!-- finding: ([\w.-]+) -->", cited, markdown)


def study_list(atlas: Path) -> str:
    """Return the list of all studies, replications under their originals."""
    findings, studies = read_findings(atlas), read_studies(atlas)
    if not studies:
        return "<p>There are no studies yet.</p>"
    return f'<ul class="studies">{"".join(_study(study, findings) for study in studies)}</ul>'


def _study(study: Study, findings: Sequence[Finding]) -> str:
    if study.finished:
        number = sum(f.study == study.name for f in findings)
        state = f"{counted(len(study.rows), 'run')}, {counted(number, 'finding')}"
    else:
        state = f"{len(study.rows)} of {study.planned} runs are there"
    level = ' class="again"' if study.original else ""
    return (
        f'<li{level}><a href="studies/{escape(study.name)}/">{escape(study.title)}</a> '
        f"<small>{state}</small><br>{escape(study.sweep.question)}</li>"
    )
