"""From a paper's architecture to a run spec, as `paperkiln run` takes it."""

from __future__ import annotations

import re
from typing import Any

from paperkiln.papers.architecture import Architecture
from paperkiln.papers.emit.choices import Choice, Choices, asserted, choose
from paperkiln.papers.emit.counting import ParameterCount
from paperkiln.papers.emit.fit import count, fit, parse_size, shape_of

_MAX_NAME = 100  # characters, as RunSpec.name allows
_MAX_NOTE, _MAX_NOTES = 300, 200  # characters of one; how many RunSpec.notes takes
_WHY_SCALED = "default, or sinusoids of size 1 drown the tokens (Vaswani et al. 2017, section 3.4)"


def to_spec(
    architecture: Architecture, fit: str | int | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Return a run spec and its notes, which the spec carries too.

    Only asserted values are applied; every other field takes a default and is named in a note.
    `fit` ('cpu', '3M', a number of parameters) scales the model down; None keeps its size.
    Raises PaperkilnError for a size that is none.
    """
    choices = chosen(architecture, fit)
    model = {name: choice.value for name, choice in choices.model.items()}
    vocab_size = model.pop("vocab_size")
    training = {name: choice.value for name, choice in choices.training.items()}
    if fit is not None:
        every = max(1, int(training["steps"]) // 10)
        training |= {"eval_every": every, "checkpoint_every": every}
    notes = spec_notes(architecture, choices, fit)
    spec = {
        "version": 1,
        "name": run_name(architecture),
        "notes": notes,
        "arch": model,
        "data": {"tokenizer": "bpe", "vocab_size": vocab_size},
        "train": training,
    }
    return spec, notes


def chosen(architecture: Architecture, size: str | int | None) -> Choices:
    """Return what is built of a paper, at its own size or fitted to another."""
    choices = choose(architecture)
    if choices.model["positional"].value == "sinusoidal":
        choices.model["scale_embeddings"] = Choice(True, None, _WHY_SCALED)
    return choices if size is None else fit(choices, parse_size(str(size)))


def run_name(architecture: Architecture) -> str:
    """Return a name for runs of a paper: letters, digits, dot, dash and underscore."""
    words = architecture.paper_id or architecture.title
    plain = re.sub(r"[^A-Za-z0-9._]+", "-", words).strip("-._")[: _MAX_NAME - 6].rstrip("-._")
    if not plain:
        return "paper"
    return f"arxiv-{plain}" if architecture.paper_id else plain.lower()


def whose(architecture: Architecture) -> str:
    """Return the paper and its model in one line."""
    title = one_line(architecture.title) or "a paper without a title"
    where = f" (arXiv:{one_line(architecture.paper_id, 40)})" if architecture.paper_id else ""
    model = f", {one_line(architecture.model, 60)}" if architecture.model else ""
    return f"{title}{where}{model}"


def spec_notes(architecture: Architecture, choices: Choices, size: str | int | None) -> list[str]:
    """Return what a reader of the spec must know, in lines."""
    counted = count(shape_of(choices.model), choices.model)
    vocab_size = int(choices.model["vocab_size"].value)
    notes = [
        f"from {whose(architecture)}; built as a decoder-only language model",
        f"data.vocab_size {vocab_size}: a tokenizer of at most that many tokens is trained on "
        "your text, which --set data.corpus=FILE names",
        *_about_parameters(architecture, counted, size),
        *choices.notes,
    ]
    if architecture.variants:
        names = ", ".join(one_line(v.name, 40) for v in architecture.variants[:8])
        notes.append(f"other models in the paper, not built here: {names}")
    notes += [
        f"check failed: {check.message}" for check in architecture.checks if check.ok is False
    ]
    return [one_line(note, _MAX_NOTE) for note in notes[:_MAX_NOTES]]


def _about_parameters(
    architecture: Architecture, counted: ParameterCount, size: str | int | None
) -> list[str]:
    stated = asserted(architecture, "n_parameters")
    number = f"{stated.value:,}" if stated and isinstance(stated.value, int | float) else ""
    says = f"; the paper says {number}" if number else ""
    if size is None:
        return [f"n_parameters {counted.total:,} with the whole vocabulary{says}"]
    inside = counted.total - counted.embedding
    return [
        f"fit to {parse_size(str(size)):,} parameters: {counted.total:,} with the whole "
        f"vocabulary, {inside:,} without embeddings{says}"
    ]


def one_line(text: str, most: int = 200) -> str:
    """Return a stranger's text on one line: what cannot be seen or encoded is gone, length cut."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * most]).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
