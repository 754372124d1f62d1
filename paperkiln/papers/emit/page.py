"""A paper's architecture as one HTML page: values at the left, the authors' source at the right.

The page asks nothing of any server: its style and script stand in it, and its security policy
allows those two and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files

from paperkiln.papers.architecture import (
    FLAVORS,
    NUMBERS,
    TRAINING,
    Architecture,
    Evidence,
    Mention,
    Scalar,
    Value,
)
from paperkiln.papers.document import Document
from paperkiln.papers.emit.page_source import Quote, Quotes, escaped, listing

LABELS = {
    "d_model": "Width", "n_layers": "Layers", "n_heads": "Heads", "n_kv_heads": "Key/value heads",
    "head_dim": "Width of a head", "d_ff": "Feed-forward width", "vocab_size": "Vocabulary",
    "context_length": "Context", "window": "Window", "rope_theta": "Rotary base",
    "dropout": "Dropout", "n_experts": "Experts", "n_experts_active": "Experts a token",
    "n_experts_shared": "Shared experts", "expert_d_ff": "Width of an expert",
    "n_parameters": "Parameters", "norm": "Norm", "norm_placement": "Norm placement",
    "activation": "Activation", "positional": "Positions", "attention": "Attention",
    "bias": "Biases", "tied_embeddings": "Tied embeddings", "residual": "Residual",
    "optimizer": "Optimizer", "beta1": "β₁", "beta2": "β₂", "eps": "ε", "lr": "Learning rate",
    "min_lr": "Lowest learning rate",
    "schedule": "Schedule", "warmup_steps": "Warm-up, steps", "warmup_tokens": "Warm-up, tokens",
    "weight_decay": "Weight decay", "clip": "Gradient clip", "batch_sequences": "Batch, sequences",
    "batch_tokens": "Batch, tokens", "steps": "Steps", "tokens": "Tokens",
}  # fmt: skip
_VERDICTS = {
    "used": ("stated", "The paper states it of its own model."),
    "derived": ("derived", "Computed from what the paper states."),
    "family": ("family", "The paper names the family, not the member."),
    "inherited": ("inherited", "Taken over from the architecture that the paper says it follows."),
    "contested": ("contested", "Two values speak for themselves alike; neither is applied."),
}
_MOST_QUOTES, _MOST_MENTIONS, _MOST_ROWS = 6, 3, 200


@dataclass
class Row:
    """One entry of the left column and the quotes that it links to."""

    number: int
    name: str
    title: str
    kind: str
    quotes: list[tuple[Evidence, Quote | None]] = field(default_factory=list)

    def cite(self, quotes: Quotes, evidence: Evidence) -> None:
        """Take a quote up, so that the source links back to this row."""
        self.quotes.append((evidence, quotes.add(evidence, self.number)))


def to_html(architecture: Architecture, document: Document) -> str:
    """Return the page; everything that came with the paper is escaped, sizes are bounded."""
    page = _Page(architecture, Quotes(document.files))
    # The rows register their quotes first; the listing then says which of them it shows.
    page.collect()
    names = {row.number: row.title for row in page.rows.values()}
    order = [f for f in (architecture.files or document.files) if f in document.files]
    cited = [f for f in page.quotes.by_file if f not in order]
    source = listing([*order, *cited], page.quotes, names)
    style, script = (_asset(name) for name in ("page.css", "page.js"))
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    title = escaped(architecture.title or "A paper without a title")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{title} · its architecture, quoted</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#source">To the authors’ source</a>
<header>
{"".join(page.header(title))}
</header>
<div class="panes">
<main aria-label="What the paper says of its model">
{"".join(page.values())}
</main>
<section id="source" aria-label="The authors’ source" tabindex="-1">
{source or '<p class="empty">The source holds none of the quotes.</p>'}
</section>
</div>
<script>{script}</script>
</body>
</html>
"""


def _asset(name: str) -> str:
    return files("paperkiln.papers.emit").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def shown_value(name: str, value: Scalar) -> str:
    """Return a value as the page shows it: digits in threes, yes and no."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "n_parameters" and isinstance(value, int | float) and value >= 1e6:
        unit, size = next(u for u in (("T", 1e12), ("B", 1e9), ("M", 1e6)) if value >= u[1])
        return f"{value / size:.4g}{unit}"
    if isinstance(value, int):
        return f"{value:,}" if value >= 10_000 else str(value)
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 10_000 and value == int(value) else f"{value:g}"
    return value


class _Page:
    """The left column of one page."""

    def __init__(self, architecture: Architecture, quotes: Quotes) -> None:
        self.architecture, self.quotes = architecture, quotes
        self.rows: dict[str, Row] = {}

    # --- collecting ------------------------------------------------------------------------

    def collect(self) -> None:
        """Make a row for everything that has evidence, and register its quotes."""
        a = self.architecture
        for name, value in (a.values | a.training).items():
            row = self._row(name, value.verdict, shown_value(name, value.value))
            for evidence in value.evidence[:_MOST_QUOTES]:
                row.cite(self.quotes, evidence)
            if value.runner_up:
                row.cite(self.quotes, value.runner_up.evidence)
        for name in list(a.unresolved)[:_MOST_ROWS]:
            row = self._row(name, "open", "open")
            for mention in self._named_only(name):
                row.cite(self.quotes, mention.evidence)
        if a.inherits:
            row = self._row("inherits", "inherited", a.inherits.ancestor)
            row.cite(self.quotes, a.inherits.evidence)
        for i, variant in enumerate(a.variants[:_MOST_ROWS]):
            row = self._row(f"variant {i}", "variant", variant.name)
            row.cite(self.quotes, variant.evidence)

    def _row(self, name: str, kind: str, value: str) -> Row:
        title = f"{LABELS.get(name, name)}: {value}"
        self.rows[name] = Row(len(self.rows) + 1, name, title, kind)
        return self.rows[name]

    def _named_only(self, name: str) -> list[Mention]:
        return self.architecture.mentions.get(name, [])[:_MOST_MENTIONS]

    # --- the head of the page ----------------------------------------------------------------

    def header(self, title: str) -> Iterator[str]:
        """Yield the title, the paper's id and model, and the score in one line."""
        a = self.architecture
        aim = "what a paper says of its model, and where"
        yield f'<p class="kicker">paperkiln <span>{aim}</span></p>'
        yield f"<h1>{title}</h1>"
        facts = [f"arXiv:{escaped(a.paper_id)}"] if a.paper_id else []
        if a.model:
            facts.append(f"model <b>{escaped(a.model)}</b>")
        if a.inherits:
            row = self.rows["inherits"]
            link = self._quote_link(*row.quotes[0], words=a.inherits.ancestor)
            facts.append(f'<span id="v{row.number}" class="v">follows {link}</span>')
        known = (a.values | a.training).values()
        counts = [
            (sum(v.verdict == verdict for v in known), verdict, word, why)
            for verdict, (word, why) in _VERDICTS.items()
        ]
        counts.append((len(a.unresolved), "open", "open", "Not known from the text; not guessed."))
        tally = "".join(
            f'<li class="{verdict}" title="{why}"><b>{n}</b> {word}</li>'
            for n, verdict, word, why in counts if n
        )  # fmt: skip
        yield f'<p class="facts">{" · ".join(facts)}</p>' if facts else ""
        yield f'<ul class="tally">{tally}</ul>'

    # --- the left column -----------------------------------------------------------------------

    def values(self) -> Iterator[str]:
        """Yield the groups: dimensions, flavours, training, what is open, sizes, checks, notes."""
        a = self.architecture
        for heading, known, order in (
            ("Dimensions", a.values, NUMBERS), ("Flavours", a.values, FLAVORS),
            ("Training", a.training, TRAINING),
        ):  # fmt: skip
            names = [name for name in order if name in known]
            yield from self._group(heading, [self._value(n, known[n]) for n in names])
        others = [n for n in a.values if n not in (*NUMBERS, *FLAVORS)][:_MOST_ROWS]
        yield from self._group("Other", [self._value(n, a.values[n]) for n in others])
        yield from self._open()
        yield from self._variants()
        checks = [
            f'<li class="{ {True: "good", False: "bad", None: "unmade"}[c.ok] }"><b>'
            f"{ {True: 'holds', False: 'fails', None: 'not made'}[c.ok] }</b> "
            f"{escaped(c.message)}</li>"
            for c in a.checks[:_MOST_ROWS]
        ]
        yield from self._group("Checks", checks, "checks")
        notes = [f"<li>{escaped(note)}</li>" for note in a.notes[:_MOST_ROWS]]
        yield from self._group("Notes", notes, "notes")

    def _group(self, heading: str, items: list[str], kind: str = "values") -> Iterator[str]:
        if items:
            yield f'<section><h2>{heading}</h2><ul class="{kind}">{"".join(items)}</ul></section>\n'

    def _value(self, name: str, value: Value) -> str:
        row = self.rows[name]
        rival = value.runner_up
        own = row.quotes[:-1] if rival else row.quotes
        shown = escaped(shown_value(name, value.value))
        if value.verdict == "contested" and rival:
            shown += f" <i>or</i> {escaped(shown_value(name, rival.value))}"
        parts = [self._name(name), f'<p class="value">{shown}</p>', *self._cited(own)]
        if value.note:
            parts.append(f'<p class="note">{escaped(value.note)}</p>')
        parts.append(self._verdict(value))
        if rival:
            against = f"against <b>{escaped(shown_value(name, rival.value))}</b>"
            parts += [f'<p class="rival">{against}</p>', *self._cited(row.quotes[-1:])]
        return self._item(row, parts)

    def _item(self, row: Row, parts: list[str]) -> str:
        return f'<li class="v {row.kind}" id="v{row.number}" tabindex="-1">{"".join(parts)}</li>\n'

    def _name(self, name: str) -> str:
        return f"<h3>{escaped(LABELS.get(name, name))} <code>{escaped(name)}</code></h3>"

    def _verdict(self, value: Value) -> str:
        """Return the verdict, opening on what spoke for the value."""
        word, why = _VERDICTS[value.verdict]
        rival = value.runner_up
        cues = [
            *value.cues[:12],
            *(f"against: {cue}" for cue in (rival.cues[:12] if rival else ())),
        ]
        listed = "".join(f"<li>{escaped(_short(cue))}</li>" for cue in (why, *cues))
        return f'<details><summary class="verdict">{word}</summary><ul>{listed}</ul></details>'

    def _cited(self, quoted: list[tuple[Evidence, Quote | None]]) -> Iterator[str]:
        """Yield a quote in words, a sentence rather than a table's row, and every place."""
        if not quoted:
            return
        ordered = sorted(quoted, key=lambda cited: _tells_little(cited[0].reads))
        evidence, quote = ordered[0]
        words = f"“{escaped(_short(evidence.reads or evidence.quote))}”"
        yield f'<p class="quote">{self._quote_link(evidence, quote, words, raw=True)}</p>'
        places, file = [], ""
        for other, mark in ordered:
            where = f":{other.line}" if other.file == file else f"{other.file}:{other.line}"
            places.append(self._quote_link(other, mark, where))
            file = other.file
        section = f" · {escaped(_short(evidence.section, 80))}" if evidence.section else ""
        yield f'<p class="place">{" ".join(places)}{section}</p>'

    def _quote_link(
        self, evidence: Evidence, quote: Quote | None, words: str, raw: bool = False
    ) -> str:
        words = words if raw else escaped(words)
        if quote is None or not quote.placed:
            return f"<span>{words}</span>"
        title = escaped(f"{evidence.file}, line {evidence.line}")
        return f'<a class="go" href="#{quote.name}" title="{title}">{words}</a>'

    def _open(self) -> Iterator[str]:
        items = []
        for name, reason in list(self.architecture.unresolved.items())[:_MOST_ROWS]:
            row = self.rows[name]
            parts = [self._name(name) + f'<p class="reason">{escaped(_short(reason))}</p>']
            for mention, quoted in zip(self._named_only(name), row.quotes, strict=True):
                value = escaped(shown_value(name, mention.value))
                veto = f", {escaped(_short(mention.vetoed))}" if mention.vetoed else ""
                place = self._quote_link(*quoted, words=f"{quoted[0].file}:{quoted[0].line}")
                parts.append(f'<p class="place">named, not applied: {value} ({place}){veto}</p>')
            items.append(self._item(row, parts))
        yield from self._group("Open: not guessed", items, "values unresolved")

    def _variants(self) -> Iterator[str]:
        a = self.architecture
        variants = a.variants[:_MOST_ROWS]
        if not variants:
            return
        fields = [n for n in (*NUMBERS, *FLAVORS) if any(n in v.values for v in variants)]
        head = "".join(f'<th scope="col">{escaped(LABELS.get(n, n))}</th>' for n in fields)
        lines = [self._cells(a.model or "this one", "", fields,
                             {n: v.value for n, v in a.values.items()})]  # fmt: skip
        for i, variant in enumerate(variants):
            row = self.rows[f"variant {i}"]
            name = self._quote_link(*row.quotes[0], words=variant.name)
            lines.append(self._cells(name, f' class="v" id="v{row.number}" tabindex="-1"', fields,
                                     variant.values, raw=True))  # fmt: skip
        yield (
            '<section><h2>Sizes</h2><div class="wide"><table><thead><tr><th scope="col">model</th>'
            f"{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div></section>\n"
        )

    def _cells(
        self, name: str, attributes: str, fields: list[str], values: dict[str, Scalar],
        raw: bool = False,
    ) -> str:  # fmt: skip
        cells = "".join(
            f"<td>{escaped(shown_value(n, values[n])) if n in values else ''}</td>" for n in fields
        )
        heading = name if raw else escaped(name)
        return f'<tr{attributes}><th scope="row">{heading}</th>{cells}</tr>'


def _tells_little(reads: str) -> tuple[bool, int]:
    """Order sentences before the rows and headings of tables, longer ones first."""
    return " & " in reads or len(reads) < 25, -min(len(reads), 200)


def _short(text: str, most: int = 240) -> str:
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
