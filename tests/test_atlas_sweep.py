"""Sweeps: what they resolve to, and what is refused because it would mislead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_sweep import sweep_values

from paperkiln.atlas.cells import aliases, resolve, runs_of
from paperkiln.atlas.planning import calibrate, plan, plan_as_text
from paperkiln.atlas.sweep import parse_sweep, read_sweep, sweep_schema
from paperkiln.errors import PaperkilnError

SPECS = Path(__file__).parent.parent / "specs"


def resolved(**changes: Any) -> list[Any]:
    return resolve(parse_sweep(sweep_values(**changes)))


def factor(**levels: dict[str, Any]) -> dict[str, Any]:
    return {"levels": levels}


def test_the_schema_on_disk_is_the_code_s() -> None:
    on_disk = json.loads((SPECS / "sweep.schema.json").read_text(encoding="utf-8"))
    assert on_disk == sweep_schema()


def test_the_schema_refers_to_nothing_outside_itself() -> None:
    schema = sweep_schema()
    text = json.dumps(schema)
    references = {part.split('"')[0] for part in text.split('"$ref": "')[1:]}
    assert {r.removeprefix("#/$defs/") for r in references} <= set(schema["$defs"])


@pytest.mark.parametrize("path", sorted(SPECS.glob("sweeps/*.json")), ids=lambda p: p.stem)
def test_the_sweeps_kept_here_resolve(path: Path) -> None:
    sweep = read_sweep(path)
    assert sweep.name == path.stem
    assert resolve(sweep)


# --- From factors to runs -------------------------------------------------------------------------


def test_the_shorthand_is_the_long_form() -> None:
    short = parse_sweep(sweep_values())
    levels = {"0.001": {"train.lr": 0.001}, "0.003": {"train.lr": 0.003}}
    long = sweep_values(factors=sweep_values()["factors"] | {"lr": {"levels": levels}})
    assert short == parse_sweep(long)
    assert short.sha256 == parse_sweep(short.model_dump(mode="json")).sha256
    assert short.sha256 != parse_sweep(sweep_values(seeds=[1, 3])).sha256


def test_labels_are_the_values_as_json() -> None:
    values = {"path": "train.decay_all", "levels": [False, True]}
    sweep = parse_sweep(sweep_values(factors={"decay": values}))
    assert list(sweep.factors["decay"].levels) == ["false", "true"]


def test_every_cell_sets_its_levels_and_every_seed_is_a_block() -> None:
    sweep = parse_sweep(sweep_values())
    runs = runs_of(sweep, resolve(sweep))
    assert [run.name for run in runs] == [
        f"cell-{cell:02d}-seed-{seed}" for seed in (1, 2) for cell in (1, 2, 3, 4)
    ]
    for run in runs:
        train = run.spec.train
        levels = {"optimizer": train.optimizer, "lr": str(train.lr)}
        assert run.cell.levels == levels
        assert run.name.endswith(f"seed-{train.seed}")
    assert len({run.spec.model_copy(update={"name": "x"}).model_dump_json() for run in runs}) == 8


def test_a_linked_factor_sets_several_fields() -> None:
    context = factor(
        short={"arch.context_length": 16, "train.steps": 8},
        long={"arch.context_length": 32, "train.steps": 4},
    )
    short, long = resolved(factors={"context": context}, acknowledge={"context": ["flops"]})
    assert short.tokens == long.tokens
    assert short.spec.train.steps == 8


def test_an_empty_level_is_the_base() -> None:
    batch = factor(four={}, two={"train.batch": 2, "train.steps": 8})
    four, two = resolved(factors={"batch": batch})
    assert (four.spec.train.batch, two.spec.train.batch) == (4, 2)


def test_nothing_is_exported_unless_the_base_says_so() -> None:
    assert resolved()[0].spec.export.gguf is None
    assert resolved()[0].spec.train.gradmap_every == 0
    base = {"export": {"gguf": "f16"}, "train": {"gradmap_every": 2}}
    cell = resolved(base=base)[0]
    assert (cell.spec.export.gguf, cell.spec.train.gradmap_every) == ("f16", 2)


@pytest.mark.parametrize(
    ("design", "n"),
    [
        ({"kind": "factorial"}, 128),
        ({"kind": "fractional", "generators": ["F=ABC", "G=ABDE"]}, 32),
        ({"kind": "fractional", "runs": 16}, 16),
        ({"kind": "plackett-burman"}, 12),
        ({"kind": "plackett-burman", "runs": 12, "foldover": True}, 24),
    ],
)
def test_the_designs(design: dict[str, Any], n: int) -> None:
    pairs = {"clip": [0.5, 1.0], "beta1": [0.8, 0.9], "beta2": [0.95, 0.99]}
    pairs |= {"eps": [1e-9, 1e-8], "weight_decay": [0.0, 0.1]}
    more = {name: {"path": f"train.{name}", "levels": levels} for name, levels in pairs.items()}
    factors = sweep_values()["factors"] | more
    cells = resolved(factors=factors, design=design)
    assert len(cells) == n
    for name in factors:
        labels = [cell.levels[name] for cell in cells]
        assert {labels.count(label) for label in labels} == {n // 2}, "balanced"


# --- Matching -------------------------------------------------------------------------------------

SHAPE = factor(
    wide={"arch.d_model": 16, "arch.n_layers": 1}, deep={"arch.d_model": 12, "arch.n_layers": 3}
)
GATE = {"path": "arch.activation", "levels": ["gelu", "swiglu"]}


@pytest.mark.parametrize(("factors", "known"), [({"gate": GATE}, {}), ({"shape": SHAPE}, None)])
def test_matched_cells_have_the_base_s_parameters(
    factors: dict[str, Any], known: dict[str, Any] | None
) -> None:
    acknowledge = {"shape": ["flops"]} if known is None else known
    base = {"arch": {"d_ff": 200}}
    cells = resolved(
        base=base, factors=factors, match={"parameters": "arch.d_ff"}, acknowledge=acknowledge
    )
    target = resolved(base=base)[0].parameters
    assert all(abs(cell.parameters - target) / target < 0.01 for cell in cells)
    assert cells[0].spec.arch.d_ff != cells[1].spec.arch.d_ff


def test_the_matched_field_is_rounded() -> None:
    cells = resolved(base={"arch": {"d_ff": 400}}, factors={"gate": GATE}, match={"multiple_of": 4})
    assert [cell.spec.arch.d_ff for cell in cells] == [600, 400]


@pytest.mark.parametrize(
    ("match", "d_model", "message"),
    [({"multiple_of": 1}, 64, "without a feed-forward.*bring the levels nearer"),
     ({"multiple_of": 1024}, 16, "arch.d_ff cannot match|misses the base's")],
)  # fmt: skip
def test_a_match_that_cannot_be(match: dict[str, Any], d_model: int, message: str) -> None:
    width = factor(narrow={}, wide={"arch.d_model": d_model, "arch.bias": True})
    with pytest.raises(PaperkilnError, match=message):
        resolved(factors={"width": width}, match=match)


def test_a_match_that_rounds_too_far() -> None:
    with pytest.raises(PaperkilnError, match=r"misses the base's [\d,]+ parameters by .*multiple"):
        resolved(base={"arch": {"d_ff": 100}}, factors={"gate": GATE}, match={"multiple_of": 64})


# --- What would mislead ---------------------------------------------------------------------------

BATCH = {"path": "train.batch", "levels": [4, 8]}
DEPTH = {"path": "arch.n_layers", "levels": [1, 2]}


@pytest.mark.parametrize(
    ("factors", "acknowledge", "message"),
    [
        ({"batch": BATCH}, {}, "batch also changes the FLOPs of a run by 100.00%: match them, or"),
        ({"batch": BATCH}, {"batch": ["flops"]}, "changes the tokens seen"),
        ({"depth": DEPTH}, {"depth": ["flops"]}, 'say so with "acknowledge": {"depth": \\["param'),
        ({"depth": DEPTH}, {"depth": ["flops", "parameters", "tokens"]}, "does not change the tok"),
        ({"gate": GATE}, {"gate": ["flops", "parameters"], "x": []}, "x, which is no factor"),
    ],
)
def test_what_a_factor_changes_besides_itself(
    factors: dict[str, Any], acknowledge: dict[str, Any], message: str
) -> None:
    with pytest.raises(PaperkilnError, match=message):
        resolved(factors=factors, acknowledge=acknowledge)


def test_what_is_acknowledged_is_run_and_said() -> None:
    sweep = parse_sweep(
        sweep_values(factors={"batch": BATCH}, acknowledge={"batch": ["tokens", "flops"]})
    )
    assert aliases(sweep, resolve(sweep)) == {"batch": {"tokens": 1.0, "flops": 1.0}}
    assert "batch also changes the tokens seen by 100.0% (acknow" in plan_as_text(plan(sweep))


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ({"a": factor(x={}, y={"train.optimizer": "adamw"})}, "a: x and y are the same run"),
        ({"a": factor(x={"arch.preset": "llama-tiny"}, y={"arch.preset": "llama-tiny"})}, "same"),
        ({"a": {"path": "train.lr", "levels": [1, 2]},
          "b": factor(x={"train.lr": 3}, y={"train.clip": 4})}, "a and b both set train.lr; link"),
        ({"a": {"path": "train.early_stopping.patience", "levels": [0, 3]},
          "b": factor(x={"train.early_stopping": {}}, y={})}, "a and b both set train.early_stop"),
        ({"a": {"path": "train.seed", "levels": [1, 2]}}, "a sets train.seed, as the sweep does"),
        ({"a": {"path": "train", "levels": ["x", "y"]}}, "a sets train, as the sweep does"),
        ({"a": {"path": "train.lr.x", "levels": [1, 2]}, "b": BATCH}, "cell|lr"),
        ({"a": {"path": "train.lerning", "levels": [1, 2]}}, "unknown name"),
        ({"a": {"path": "train.lr", "levels": [1, -2]}}, "train.lr = -2"),
        ({"a": {"path": "train.lr", "levels": [1]}}, "factors.a.levels"),
        ({"a": {"path": "train.lr", "levels": ["1", 1]}}, "two levels of train.lr have the same"),
        ({"a:b": BATCH}, "factors"),
        ({}, "factors"),
    ],
)  # fmt: skip
def test_factors_that_are_refused(factors: dict[str, Any], message: str) -> None:
    with pytest.raises(PaperkilnError, match=message):
        resolved(factors=factors)


def test_a_factor_may_not_set_what_is_matched() -> None:
    wide = {"path": "arch.d_ff", "levels": [32, 64]}
    with pytest.raises(PaperkilnError, match=r"wide and match both set arch\.d_ff"):
        resolved(factors={"wide": wide}, match={})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seeds": []}, "seeds"),
        ({"seeds": [1, 1]}, "a seed is there twice"),
        ({"name": "../up"}, "name = "),
        ({"nmae": "x"}, "nmae: unknown name, did you mean name"),
        ({"version": 2}, "version = 2"),
        ({"design": {"kind": "magic"}}, "design"),
        ({"base": {"train": {"steps": "many"}}}, r"train\.steps"),
        ({"base": {"train": 7}}, "train"),
        ({"seeds": list(range(900)), "factors": {
            f"f{i}": {"path": path, "levels": [0.1, 0.2]} for i, path in enumerate(
                ("train.lr", "train.beta1", "train.beta2", "train.clip"))}}, "more than 10,000"),
    ],
)  # fmt: skip
def test_sweeps_that_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(PaperkilnError, match=message):
        resolve(parse_sweep(sweep_values() | change))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": ' + "[" * 10_000, "\udcff"])
def test_files_that_are_no_sweep(tmp_path: Path, text: str) -> None:
    path = tmp_path / "s.json"
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(PaperkilnError, match=r"s\.json"):
        read_sweep(path)


@pytest.mark.parametrize("value", [float("nan"), "half a character \ud800"])
def test_what_no_json_file_can_hold_has_no_hash_and_is_no_sweep(value: Any) -> None:
    with pytest.raises(PaperkilnError, match="cannot be written as JSON"):
        parse_sweep(sweep_values() | {"question": value})


def test_files_that_are_not_there_or_too_large(tmp_path: Path) -> None:
    with pytest.raises(PaperkilnError, match="no such sweep"):
        read_sweep(tmp_path / "s.json")
    (tmp_path / "s.json").write_bytes(b" " * (1 << 20) + b"{}")
    with pytest.raises(PaperkilnError, match="is no sweep"):
        read_sweep(tmp_path / "s.json")


# --- The plan -------------------------------------------------------------------------------------


def test_the_plan_counts_what_will_be_run() -> None:
    sweep = parse_sweep(sweep_values())
    made = plan(sweep, jobs=2, seconds=dict.fromkeys((1, 2, 3, 4), 30.0))
    assert made["runs"] == 8
    assert made["tokens"] == 8 * 4 * 4 * 32
    assert made["minutes"] == 2.0
    text = plan_as_text(made)
    assert "8 (4 cells x 2 seeds)" in text
    assert "about 2 min of this machine at 2 jobs" in text
    assert "fewer than 3" in text
    assert "not calibrated" in plan_as_text(plan(sweep))


def test_the_plan_says_when_the_cores_are_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    sweep = parse_sweep(sweep_values(base={"train": {"shards": 2}}))
    assert any("more threads than 2 cores: set train.shards to 1" in n for n in
               plan(sweep, jobs=2)["advisories"])  # fmt: skip
    assert not any("cores" in n for n in plan(sweep, jobs=1)["advisories"])


def test_the_calibration_times_every_kind_of_cell() -> None:
    seconds = calibrate(parse_sweep(sweep_values()), jobs=2)
    assert sorted(seconds) == [1, 2, 3, 4]
    assert all(0 < value < 60 for value in seconds.values())


def test_a_calibration_that_breaks_says_why(tmp_path: Path) -> None:
    sweep = parse_sweep(sweep_values(base={"data": {"corpus": str(tmp_path / "none.txt")}}))
    with pytest.raises(PaperkilnError, match=r"calibration broke: .*none\.txt"):
        calibrate(sweep, jobs=1)


def test_values_are_merged_into_a_copy() -> None:
    values = sweep_values()
    before = json.dumps(values)
    resolve(parse_sweep(values))
    assert json.dumps(values) == before
