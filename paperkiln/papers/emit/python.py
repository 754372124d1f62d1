"""From a paper's architecture to a short script that builds and trains it with this package."""

from __future__ import annotations

import json
from collections.abc import Mapping

from paperkiln.papers.architecture import Architecture, Evidence
from paperkiln.papers.emit.choices import Choice, shown
from paperkiln.papers.emit.spec import chosen, one_line, run_name, whose

_WIDTH = 100
_SCRIPT = """\
# {whose}
# Beside each value: where the paper states it, in the authors' own words, or why it is a default.
{not_built}
import sys

from paperkiln.errors import PaperkilnError
from paperkiln.models.config import ModelConfig, count_parameters
from paperkiln.spec import DataSpec, RunSpec, TrainSpec
from paperkiln.train.run import run

model = ModelConfig(
{model}
)
data = DataSpec(
{data}
)
training = TrainSpec(
{training}
)
spec = RunSpec(name="{name}", arch=model, data=data, train=training)

if __name__ == "__main__":
    whole = model.model_copy(update={{"vocab_size": data.vocab_size}})
    print(f"{{count_parameters(whole):,}} parameters, {{model.n_layers}} layers")
    if sys.argv[1:] == ["train"]:
        try:
            print(f"trained: {{run(spec)}}")
        except PaperkilnError as error:
            sys.exit(f"{{error}}")
    else:
        print("to train it: python", sys.argv[0], "train")
"""


def to_python(architecture: Architecture, fit: str | int | None = None) -> str:
    """Return a script that prints the model's size, and trains it when called with `train`.

    `fit` is as in `to_spec`. Raises PaperkilnError for a size that is none.
    """
    choices = chosen(architecture, fit)
    model = dict(choices.model)
    data = {"vocab_size": model.pop("vocab_size")}
    missing = "".join(f"# Not built: {one_line(what, 80)}.\n" for what in choices.not_built)
    return _SCRIPT.format(
        whose=one_line(whose(architecture), _WIDTH - 2), not_built=missing,
        model=_arguments(model), data=_arguments(data), training=_arguments(choices.training),
        name=run_name(architecture),
    )  # fmt: skip


def _arguments(choices: Mapping[str, Choice]) -> str:
    return "\n".join(_argument(name, choice) for name, choice in choices.items())


def _argument(name: str, choice: Choice) -> str:
    """Return one argument with its provenance, clipped to the width of a line."""
    value = choice.value
    code = f"    {name}={json.dumps(value) if isinstance(value, str) else repr(value)},"
    words = []
    if choice.before is not None:
        words.append(f"{shown(choice.before)} before the fit")
    if choice.remark:
        words.append(choice.remark)
    if choice.evidence:
        words.append(cited(choice.evidence))
    return f"{code}  # {one_line('; '.join(words), _WIDTH - len(code) - 4)}" if words else code


def cited(evidence: Evidence) -> str:
    """Return a quote with its place, on one line."""
    return f'{evidence.file}:{evidence.line} "{one_line(evidence.quote)}"'
