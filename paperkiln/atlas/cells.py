"""From a sweep to its runs: cells, matched parameters, and what must not be confounded.

What would make a comparison misleading is refused here, before any compute: levels that change
nothing, factors that set the same field, and factors that change the tokens seen, the parameters
or the arithmetic of a run without the sweep saying so.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from paperkiln.atlas.designs import cells as design_cells
from paperkiln.atlas.designs import make_design
from paperkiln.atlas.sweep import Match, SweepSpec
from paperkiln.errors import PaperkilnError
from paperkiln.models.config import count_parameters
from paperkiln.models.cost import train_flops_per_token
from paperkiln.spec import DataSpec, RunSpec, parse_spec

MAX_RUNS = 10_000
TOLERANCE = 0.02  # relative difference between two levels that is still called equal
MATCH_TOLERANCE = 0.01  # by which a matched cell may miss the base's parameter count
RESERVED = ("version", "name", "out_dir", "notes", "train.seed")  # the sweep sets them
_WORDS = {"tokens": "tokens seen", "parameters": "parameters", "flops": "FLOPs of a run"}


@dataclass(frozen=True)
class Cell:
    """One combination of levels; `spec` has the base's seed."""

    number: int
    levels: dict[str, str]
    spec: RunSpec

    @property
    def parameters(self) -> int:
        """Trainable parameters."""
        return count_parameters(self.spec.arch)

    @property
    def tokens(self) -> int:
        """Training tokens seen by a run that is not stopped early."""
        train = self.spec.train
        return train.steps * train.batch * train.accum * self.spec.arch.context_length

    @property
    def flops(self) -> int:
        """Training FLOPs of a run (models.cost: 6 N + 12 L H E T a token)."""
        return train_flops_per_token(self.spec.arch) * self.tokens


@dataclass(frozen=True)
class Run:
    """One cell with one seed."""

    name: str
    cell: Cell
    spec: RunSpec


def resolve(sweep: SweepSpec) -> list[Cell]:
    """Return the cells of the design, each with its run spec, after every check.

    Raises PaperkilnError for a cell that is no run, and for whatever would mislead.
    """
    _check_paths(sweep)
    _check_levels(sweep)
    labels = {name: list(factor.levels) for name, factor in sweep.factors.items()}
    combos = design_cells(make_design(sweep.design.model_dump(exclude_none=True), labels))
    if len(combos) * len(sweep.seeds) > MAX_RUNS:
        raise PaperkilnError(
            f"{sweep.name}: {len(combos)} cells x {len(sweep.seeds)} seeds are more than "
            f"{MAX_RUNS:,} runs; choose a fraction of the design"
        )
    cells = [Cell(i, combo, _cell_spec(sweep, combo)) for i, combo in enumerate(combos, 1)]
    check_aliases(sweep, cells)
    return cells


def runs_of(sweep: SweepSpec, cells: list[Cell]) -> list[Run]:
    """Return every cell with every seed, a whole seed (block) before the next."""
    runs = []
    for seed in sweep.seeds:
        for cell in cells:
            name = f"cell-{cell.number:02d}-seed-{seed}"
            train = cell.spec.train.model_copy(update={"seed": seed})
            runs.append(
                Run(name, cell, cell.spec.model_copy(update={"name": name, "train": train}))
            )
    return runs


def _check_paths(sweep: SweepSpec) -> None:
    """Refuse fields that the sweep itself sets, and fields that two factors set."""
    owners = {name: factor.paths for name, factor in sweep.factors.items()}
    for name, paths in owners.items():
        for path in paths:
            if any(_overlap(path, reserved) for reserved in RESERVED):
                raise PaperkilnError(f"{sweep.name}: factor {name} sets {path}, as the sweep does")
    if sweep.match:
        owners["match"] = [sweep.match.parameters]
    for (one, its), (other, theirs) in combinations(owners.items(), 2):
        shared = [p for p in its if any(_overlap(p, q) for q in theirs)]
        if shared:
            raise PaperkilnError(
                f"{sweep.name}: {one} and {other} both set {shared[0]}; link them in one factor"
            )


def _overlap(path: str, other: str) -> bool:
    """Return whether two fields are one, or one holds the other."""
    return f"{path}.".startswith(f"{other}.") or f"{other}.".startswith(f"{path}.")


def _check_levels(sweep: SweepSpec) -> None:
    """Refuse two levels of a factor that, all else equal, are one and the same run."""
    lows = {name: next(iter(factor.levels)) for name, factor in sweep.factors.items()}
    for name, factor in sweep.factors.items():
        seen: dict[RunSpec, str] = {}
        for label in factor.levels:
            spec = _cell_spec(sweep, lows | {name: label}, matched=False)
            key = spec.model_dump_json(exclude={"arch": {"preset"}})
            if key in seen:
                raise PaperkilnError(
                    f"{sweep.name}: factor {name}: {seen[key]} and {label} are the same run; "
                    "a level must change something"
                )
            seen[key] = label


def _cell_spec(sweep: SweepSpec, levels: dict[str, str], matched: bool = True) -> RunSpec:
    """Return the run spec of a cell, its vocabulary stated and its parameters matched."""
    values = _base_values(sweep)
    for name, label in levels.items():
        for path, value in sweep.factors[name].levels[label].items():
            _set(values, path, value, f"{sweep.name}: factor {name}, level {label}")
    where = ", ".join(f"{name}={label}" for name, label in levels.items())
    spec = _with_vocabulary(parse_spec(values, source=f"{sweep.name}: cell {where}"))
    if sweep.match and matched:
        base = _with_vocabulary(parse_spec(_base_values(sweep), source=f"{sweep.name}: base"))
        spec = _matched(spec, count_parameters(base.arch), sweep.match, f"{sweep.name}: {where}")
    return spec


def _base_values(sweep: SweepSpec) -> dict[str, Any]:
    """Return the base; nothing is exported or mapped for its own sake unless it says so."""
    values = copy.deepcopy(sweep.base)
    for path, value in (("export.gguf", None), ("train.gradmap_every", 0)):
        section, field = path.split(".")
        if isinstance(values.setdefault(section, {}), dict):
            values[section].setdefault(field, value)
    values["out_dir"] = None
    return values


def _set(values: dict[str, Any], path: str, value: Any, where: str) -> None:
    *sections, field = path.split(".")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise PaperkilnError(f"{where}: {path}: {section!r} is a value, it has no fields")
    values[field] = copy.deepcopy(value)


def vocabulary(data: DataSpec) -> int:
    """Return how many tokens the data's tokenizer has when it learns as many as it may."""
    return 259 if data.tokenizer == "byte" else data.vocab_size


def _with_vocabulary(spec: RunSpec) -> RunSpec:
    """State arch.vocab_size: parameters are counted, and matched, before any text is read."""
    if spec.arch.vocab_size is not None:
        return spec
    arch = spec.arch.model_copy(update={"vocab_size": vocabulary(spec.data)})
    return spec.model_copy(update={"arch": arch})


def _matched(spec: RunSpec, target: int, match: Match, where: str) -> RunSpec:
    """Return the spec with the d_ff that brings its parameter count nearest to `target`.

    The count is linear in d_ff: two evaluations give the line.
    """
    count = lambda d_ff: count_parameters(spec.arch.model_copy(update={"d_ff": d_ff}))  # noqa: E731
    slope = count(2) - count(1)
    exact = (target - (count(1) - slope)) / slope
    d_ff = round(exact / match.multiple_of) * match.multiple_of
    if d_ff < 1:
        raise PaperkilnError(
            f"{where}: {count(1) - slope:,} parameters without a feed-forward, the base has "
            f"{target:,}: arch.d_ff cannot match them; bring the levels nearer to the base"
        )
    off = (count(d_ff) - target) / target
    if abs(off) > MATCH_TOLERANCE:
        raise PaperkilnError(
            f"{where}: the nearest arch.d_ff {d_ff} misses the base's {target:,} parameters by "
            f"{off:+.1%}; lower match.multiple_of"
        )
    return spec.model_copy(update={"arch": spec.arch.model_copy(update={"d_ff": d_ff})})


# --- Aliasing -------------------------------------------------------------------------------------


def aliases(sweep: SweepSpec, cells: list[Cell]) -> dict[str, dict[str, float]]:
    """Return, for each factor, what else its levels change: the largest relative difference.

    Means over the design's own cells are compared, so that what a fraction aliases shows too.
    """
    found: dict[str, dict[str, float]] = {}
    for name, factor in sweep.factors.items():
        for quantity in _WORDS:
            means = []
            for label in factor.levels:
                values = [getattr(c, quantity) for c in cells if c.levels[name] == label]
                means.append(sum(values) / len(values))
            difference = max(means) / min(means) - 1
            if difference > TOLERANCE:
                found.setdefault(name, {})[quantity] = difference
    return found


def check_aliases(sweep: SweepSpec, cells: list[Cell]) -> None:
    """Refuse what a factor changes besides itself unless acknowledged, and the reverse."""
    found = aliases(sweep, cells)
    problems = []
    for name in sweep.factors:
        changed, said = found.get(name, {}), set(sweep.acknowledge.get(name, []))
        for quantity in sorted(set(changed) - said):
            problems.append(
                f"factor {name} also changes the {_WORDS[quantity]} by {changed[quantity]:.2%}: "
                f'match them, or say so with "acknowledge": {{"{name}": ["{quantity}"]}}'
            )
        for quantity in sorted(said - set(changed)):
            problems.append(
                f"factor {name} does not change the {_WORDS[quantity]}: "
                f"take {quantity} out of its acknowledge"
            )
    if problems:
        raise PaperkilnError(f"{sweep.name}: {'; '.join(problems)}")
