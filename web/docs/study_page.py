"""The page of a study: what it asked, how, what came out, and what it cost."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from studies import Study
from study_budgets import budgets_of, crossing_section, lottery_section
from study_effects import effects_section, residual_error
from words import (
    badge,
    claim_of,
    counted,
    data_link,
    details,
    grid,
    interval,
    items,
    page,
    percent,
    signed,
    table,
    units,
)

from paperkiln.atlas.aliases import alias_structure, check_orthogonality
from paperkiln.atlas.cells import TOLERANCE, aliases
from paperkiln.atlas.designs import ROMAN
from paperkiln.atlas.findings import Finding
from paperkiln.atlas.power import smallest_effect
from paperkiln.errors import PaperkilnError

METRIC = "best_val"
_POWER = 0.8
_QUANTITIES = {"tokens": "tokens seen", "parameters": "parameters", "flops": "FLOPs of a run"}


def study_page(
    atlas: Path, study: Study, studies: Sequence[Study], findings: Sequence[Finding]
) -> str:
    """Return the page of a study; of an unfinished one, how many runs there are and no more."""
    kind = f"replication of {_link(study.original)}" if study.original else "study"
    question = escape(study.sweep.question or study.name)
    head = (
        f'<p class="kicker"><a href="../../">Atlas</a> <span>{kind}</span> '
        f"<code>{escape(study.name)}</code></p><h1>{question}</h1>"
    )
    if not study.finished:
        there = f"{len(study.rows)} of {study.planned} runs are there"
        return page(f"{head}<p>{there}. No result is shown before all are.</p>", {})
    sections = {
        "What varied": _factors(study),
        "Design": _design(study),
        "Effects": effects_section(atlas, study, METRIC),
        "Findings": _findings(study, findings),
        "Lottery": lottery_section(study),
        "Crossing": crossing_section(study),
        "Replications": _replications(study, studies, findings),
        "Cost": _cost(study),
        "Reproduce": _reproduce(study),
    }
    return page(head, sections)


def _link(name: str) -> str:
    return f'<a href="../{escape(name)}/">{escape(name)}</a>'


# --- what varied --------------------------------------------------------------------------------


def _factors(study: Study) -> str:
    rows = [
        (
            f"<code>{escape(name)}</code>",
            "".join(_level(label, fields) for label, fields in factor.levels.items()),
            escape(factor.note) or "—",
        )
        for name, factor in study.sweep.factors.items()
    ]
    same = table(((escape(k), escape(v)) for k, v in _fields(study.sweep.base)), "The base")
    return (
        grid(("Factor", "Levels, the low one first", "Note"), rows, "The factors")
        + items(_balance(study))
        + (details("What was the same in all runs", same) if study.sweep.base else "")
    )


def _level(label: str, fields: Mapping[str, Any]) -> str:
    sets = ", ".join(f"{path} = {json.dumps(value)}" for path, value in fields.items())
    return f"<div><b>{escape(label)}</b> <small>{escape(sets)}</small></div>"


def _fields(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every field of the base with its value."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _fields(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", json.dumps(value, ensure_ascii=False)


def _balance(study: Study) -> Iterator[str]:
    """Yield in words what was matched, and what a factor changed besides itself."""
    counts = sorted({row["parameters"] for row in study.complete})
    if counts:
        shown = " to ".join(f"{n:,}" for n in dict.fromkeys((counts[0], counts[-1])))
        matched = ""
        if study.sweep.match:
            field = escape(study.sweep.match.parameters)
            matched = f": <code>{field}</code> of each cell was solved for the count of the base"
        yield f"A model has {shown} parameters{matched}."
    cells = [_measured(study, row) for row in study.complete]
    ran = {(name, label) for cell in cells for name, label in cell.levels.items()}
    if any((name, label) not in ran for name, labels in study.levels.items() for label in labels):
        return
    changed = aliases(study.sweep, cells)
    for name, quantities in changed.items():
        for quantity, difference in quantities.items():
            known = quantity in study.sweep.acknowledge.get(name, [])
            yield (
                f"<code>{escape(name)}</code> also changes the {_QUANTITIES[quantity]}, by "
                f"{percent(difference, 1)}{', as the sweep said before the runs' * known}."
            )
    if not changed:
        yield (
            f"No factor changes the tokens seen, the parameters or the FLOPs of a run by more than "
            f"{percent(TOLERANCE)}."
        )


def _measured(study: Study, row: Mapping[str, Any]) -> Any:
    """Return a run as `aliases` reads a cell."""
    return SimpleNamespace(
        levels={name: row[f"factor.{name}"] for name in study.sweep.factors},
        tokens=row["tokens"],
        parameters=row["parameters"],
        flops=row["flops_per_token"] * row["tokens"],
    )


# --- the design ---------------------------------------------------------------------------------


def _design(study: Study) -> str:
    design, seeds = study.design, study.sweep.seeds
    kind = {"factorial": "full factorial", "fractional": "fractional factorial",
            "plackett-burman": "Plackett–Burman screen"}[design.kind]  # fmt: skip
    if design.resolution is not None:
        kind += f" of resolution {ROMAN.get(design.resolution, design.resolution)}"
    if design.folded:
        kind += ", with fold-over"
    faults = check_orthogonality(design)
    values = {
        "Design": f"{kind} of {counted(len(design.factors), 'factor')}",
        "Runs": f"{counted(len(design.matrix), 'cell')} × {counted(len(seeds), 'seed')} = "
        f"{study.planned}",
        "Seeds": f"{', '.join(map(str, seeds))}; every cell has each, so they are blocks",
        "Orthogonal": "no: " + escape("; ".join(faults)) if faults
        else "yes: each pair of levels of two factors occurs equally often",
    }  # fmt: skip
    if len(design.factors) == 1:
        del values["Orthogonal"]
    return table(values.items(), "The design") + _aliases(study) + _power(study)


def _aliases(study: Study) -> str:
    """Say what the design cannot tell apart."""
    if len(study.design.factors) == 1:
        return ""
    lines = alias_structure(study.design)
    if not lines:
        return (
            "<h3>Aliases</h3><p>None: every main effect and every two-way interaction has an "
            "estimate of its own. Interactions of three and more factors are not estimated.</p>"
        )
    words = "The effects of a line are estimated as one number."
    if study.design.kind == "plackett-burman":
        words = (
            "Main effects are clear of each other, but each takes in parts of the two-way "
            "interactions of the other factors: if those are large, it is partly theirs."
        )
    listed = items(f"<code>{escape(line)}</code>" for line in lines)
    return f"<h3>Aliases</h3><p>{words}</p>{details('What each estimate takes in', listed)}"


def _power(study: Study) -> str:
    """Say which effects the study could see, at the noise that it turned out to have."""
    try:
        words = _power_words(study)
    except PaperkilnError as error:
        words = f"<p>It cannot be told: {escape(str(error))}.</p>"
    return f"<h3>Power</h3>{words}"


def _power_words(study: Study) -> str:
    cells, had, sd = residual_error(study, METRIC)
    tests = sum(len(plan.hypotheses) for plan in study.plans) or len(study.sweep.factors)
    alpha = min((plan.alpha for plan in study.plans), default=0.05)
    levels = max(map(len, study.levels.values()))
    rows = []
    for seeds in (had, 2 * had, 4 * had):
        seen = [
            f"{smallest_effect(cells, seeds, sd, alpha, _POWER, count, levels):.3g}"
            for count in dict.fromkeys((1, tests))
        ]
        name = f"{seeds} (this study)" if seeds == had else f"{seeds}"
        rows.append((name, f"{cells * seeds:,}", f"{(cells - 1) * (seeds - 1):,}", *seen))
    heads = ["Seeds", "Runs", "Degrees of freedom", "Smallest effect, one test"]
    heads += [f"… after Holm over {tests} tests"] if tests > 1 else []
    return (
        f"<p>The residual standard deviation of <code>{METRIC}</code> was "
        f"{sd:.3g} {units(METRIC)}. At that, the smallest effect that is found with a chance of "
        f"{percent(_POWER)} (α = {alpha:g}) is:</p>{grid(heads, rows, 'Power')}"
    )


# --- findings and replications ------------------------------------------------------------------


def _findings(study: Study, findings: Sequence[Finding]) -> str:
    its = [finding for finding in findings if finding.study == study.name]
    if not its:
        return "" if study.original else "<p>None is registered yet.</p>"
    return items(
        f'{badge(f)} <a href="../../findings/{escape(f.id)}/">{escape(f.id)}</a>: {claim_of(f)} '
        f"<small>{signed(f.effect, f.se)}, {interval(f)} {units(f.metric)}</small>"
        for f in its
    )


def _replications(study: Study, studies: Sequence[Study], findings: Sequence[Finding]) -> str:
    """List the replications of this study, or what this one says as a replication."""
    if study.original:
        return items(_verdicts(study, findings))
    return items(
        f"{_link(other.name)}, seeds {', '.join(map(str, other.sweep.seeds))}"
        + items(_verdicts(other, findings))
        for other in studies
        if other.original == study.name
    ).replace("<ul></ul>", "")


def _verdicts(study: Study, findings: Sequence[Finding]) -> Iterator[str]:
    for finding in findings:
        for event in finding.history:
            if event.verdict and event.receipt == f"{study.folder}/records.jsonl":
                yield (
                    f'<a href="../../findings/{escape(finding.id)}/">{escape(finding.id)}</a>: '
                    f"<b>{event.verdict}</b>, {escape(event.note)}"
                )


# --- what it cost, and how to get it again ------------------------------------------------------


def _cost(study: Study) -> str:
    runs = study.complete
    failed = len(study.rows) - len(runs)
    speeds = [row["tokens_per_second"] for row in runs if row["tokens_per_second"] is not None]
    energy = [row["energy_joules"] for row in runs if row["energy_joules"] is not None]
    values = {
        "Runs": f"{len(study.rows)}, of which {failed or 'none'} failed",
        "Machine time": f"{machine_hours(study):.2f} hours"
        + (", without the failed runs, whose time is not recorded" if failed else ""),
        "Tokens": f"{sum(row['tokens'] for row in study.rows):,}",
        "Arithmetic": f"{sum(r['flops_per_token'] * r['tokens'] for r in study.rows):.2e} FLOPs",
    }
    if speeds:
        values["Speed of a run"] = (
            f"{statistics.median(speeds):,.0f} tokens/s, the median of runs between "
            f"{min(speeds):,.0f} and {max(speeds):,.0f}"
        )
    if energy:
        values["Energy"] = f"{sum(energy) / 3.6e6:.3g} kWh, of {counted(len(energy), 'run')}"
    return table(values.items(), "The cost") + (
        "<p>Time and speed were measured on a machine that was shared with other runs and other "
        "work: they say what the study cost, not which level is faster.</p>"
    )


def machine_hours(study: Study) -> float:
    """Return the hours that the runs took, added up; a failed run has no time in its record."""
    return sum(row["wall_seconds"] or 0.0 for row in study.rows) / 3600


def _reproduce(study: Study) -> str:
    name = escape(study.name)
    commands = [
        f"paperkiln atlas run atlas/{study.folder}/sweep.json --atlas again",
        f"paperkiln atlas analyze {name} --atlas again",
    ]
    if budgets_of(study):
        commands += [f"paperkiln atlas {verb} {name} --atlas again" for verb in
                     ("lottery", "crossing")]  # fmt: skip
    code = "\n".join(commands)
    links = items(data_link(path) for path in study.files)
    return (
        f'<pre tabindex="0"><code>{code}</code></pre><p>The first line runs it all again, in a '
        "folder <code>again</code>, and goes on after any stop; the others compute this page's "
        "numbers. <code>paperkiln atlas verify --strict</code> computes them from the records "
        f"that are published:</p>{links}<p>The rows are also in the "
        f'<a href="../../explorer/?study={name}">explorer</a>.</p>'
    )
