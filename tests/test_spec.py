"""RunSpec: defaults and descriptions, the schema on disk, and what is refused with which words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from paperkiln.errors import PaperkilnError
from paperkiln.models.config import PRESETS
from paperkiln.spec import RunSpec, apply_override, json_schema, parse_spec, read_spec

SPECS = Path(__file__).parent.parent / "specs"


def sections(model: type[BaseModel]) -> list[type[BaseModel]]:
    """List a model and all models its fields hold."""
    found = [model]
    for field in model.model_fields.values():
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                found += sections(kind)
    return found


def test_the_schema_on_disk_is_the_code_s() -> None:
    on_disk = json.loads((SPECS / "run.schema.json").read_text(encoding="utf-8"))
    assert on_disk == json_schema(), (
        "write it again: python -m paperkiln plan --schema > specs/run.schema.json"
    )


def test_every_field_has_a_default_and_one_line_of_description() -> None:
    assert len(sections(RunSpec)) == 6
    for model in sections(RunSpec):
        for name, field in model.model_fields.items():
            where = f"{model.__name__}.{name}"
            assert not field.is_required(), where
            assert field.description, where
            assert field.description.endswith("."), where
            assert "\n" not in field.description, where


@pytest.mark.parametrize(
    "path", sorted({*SPECS.glob("*.json")} - {*SPECS.glob("*.schema.json")}), ids=lambda p: p.name
)
def test_every_spec_in_the_repository_is_valid(path: Path) -> None:
    assert read_spec(path).name == path.stem


def test_an_empty_object_is_a_spec_and_a_resolved_spec_is_a_fixed_point() -> None:
    spec = parse_spec({})
    assert spec == RunSpec()
    resolved = json.loads(json.dumps(spec.model_dump(mode="json")))
    assert parse_spec(resolved) == spec
    assert resolved["arch"]["n_kv_heads"] == 4, "every choice is resolved"


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_resolved_once(name: str) -> None:
    spec = parse_spec({"arch": {"preset": name, "vocab_size": 300}})
    assert parse_spec(spec.model_dump(mode="json")) == spec


REFUSED = [  # values, every part that the one line must hold
    ({"trian": {}}, ["trian", "unknown", "did you mean train?"]),
    ({"train": {"learning_rate": 1}}, ["train.learning_rate", "unknown", "known here", "lr"]),
    ({"train": {"bacth": 4}}, ["train.bacth", "did you mean batch?"]),
    ({"train": {"early_stopping": {"patince": 1}}}, ["early_stopping.patince", "patience"]),
    ({"arch": {"d_modle": 4}}, ["arch.d_modle", "did you mean d_model?"]),
    ({"train": {"lr": -1}}, ["train.lr = -1", "greater than 0"]),
    ({"train": {"lr": "fast"}}, ['train.lr = "fast"', "number"]),
    ({"train": {"lr": float("nan")}}, ["train.lr = NaN"]),
    ({"train": {"weight_decay": float("inf")}}, ["train.weight_decay = Infinity", "finite"]),
    ({"train": {"steps": 1.5}}, ["train.steps = 1.5", "integer"]),
    ({"train": {"steps": 0}}, ["train.steps = 0"]),
    ({"train": {"optimizer": "adam"}}, ['train.optimizer = "adam"', "did you mean adamw?"]),
    ({"train": {"device": "gpu"}}, ['train.device = "gpu"', "cuda"]),
    ({"data": {"tokenizer": "BPE"}}, ['data.tokenizer = "BPE"', "did you mean bpe?"]),
    ({"data": {"val_fraction": 1}}, ["data.val_fraction = 1"]),
    ({"export": {"gguf": "q4"}}, ['export.gguf = "q4"', "q8_0"]),
    ({"arch": {"d_model": 10, "n_heads": 3}}, ["d_model 10", "n_heads 3", "not divisible"]),
    ({"arch": {"n_heads": 4, "n_kv_heads": 3}}, ["n_heads 4", "n_kv_heads 3"]),
    ({"arch": {"preset": "gpt9"}}, ["arch", "gpt9", "gpt2-nano"]),
    ({"arch": 3}, ["arch = 3"]),
    ({"name": "../up"}, ['name = "../up"']),
    ({"name": ""}, ['name = ""']),
    ({"data": {"corpus": ""}}, ['data.corpus = ""', "at least 1 character"]),
    ({"data": {"validation": ""}}, ['data.validation = ""', "at least 1 character"]),
    ({"data": {"corpus": "a\0b"}}, [r'data.corpus = "a\u0000b"', "NUL"]),
    ({"data": {"validation": "\0"}}, ["data.validation", "NUL"]),
    ({"out_dir": "a\0b"}, ["out_dir", "NUL"]),
    ({"out_dir": "\ud800"}, ["out_dir", "UTF-8"]),
    ({"train": {"steps": 10**4000}}, ["train.steps = 1000", "…"]),
    ({"train": {"lr": 10**4000}}, ["train.lr = 1000"]),
    ({"version": 2}, ["version 2", "reads 1", "update"]),
    ({"train": {"lr": -1, "stps": 1}}, ["train.lr = -1", "train.stps", "; "]),
]


@pytest.mark.parametrize(("values", "parts"), REFUSED, ids=lambda v: str(v)[:50])
def test_wrong_values_are_refused_with_path_value_and_mend(
    values: dict[str, Any], parts: list[str]
) -> None:
    with pytest.raises(PaperkilnError) as error:
        parse_spec(values, "my.json")
    line = str(error.value)
    assert line.startswith("my.json: ")
    assert "\n" not in line
    for part in parts:
        assert part in line, line


def test_overrides_are_json_or_else_text() -> None:
    values: dict[str, Any] = {"train": {"lr": 1.0}}
    for override in (
        "train.lr=1e-3", "train.early_stopping.patience=3", "export.gguf=null", "name=abc",
        "data.corpus=a=b.txt", " arch.bias =true",
    ):  # fmt: skip
        apply_override(values, override)
    assert values == {
        "train": {"lr": 1e-3, "early_stopping": {"patience": 3}}, "export": {"gguf": None},
        "name": "abc", "data": {"corpus": "a=b.txt"}, "arch": {"bias": True},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("override", "part"),
    [
        ("train.lr", "section.field=value"),
        ("=3", "section.field=value"),
        ("train.lr.deep=3", "'lr' is a value"),
        ("train.lrr=3", "did you mean lr?"),
        ("trian.lr=3", "did you mean train?"),
        ("train=5", "train = 5"),
        ("train.=5", "unknown name"),
        ("train.lr=abc", 'train.lr = "abc"'),
        ("train.steps=" + "9" * 5000, "--set train.steps: Exceeds the limit"),
        ("name=" + "[" * 100_000, "--set name: maximum recursion depth"),
        ("name=" + "[" * 500 + "]" * 500, "name = [[["),
        (r'data.corpus="\u0000"', "NUL"),
    ],
)
def test_a_wrong_override_is_refused(tmp_path: Path, override: str, part: str) -> None:
    path = tmp_path / "s.json"
    path.write_text('{"train": {"lr": 0.1}}')
    with pytest.raises(PaperkilnError) as error:
        read_spec(path, [override])
    assert part in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b'{"name": "a",}', "s.json:1:14: not JSON"),
        (b"", "s.json:1:1: not JSON"),
        (b"[1]", "a spec is a JSON object, not list"),
        (b"\xff\xfe{}", "cannot be read as a spec"),
        (b"[" * 100_000, "cannot be read as a spec"),
        (b'{"train": {"steps": ' + b"9" * 5000 + b"}}", "cannot be read as a spec"),
        (b"{}" + b" " * (1 << 20), "1,048,578 bytes is no run spec"),
        (None, "no such spec file"),
    ],
    ids=["comma", "empty", "list", "utf-16", "deep", "digits", "large", "missing"],
)
def test_a_file_that_is_no_spec(tmp_path: Path, data: bytes | None, part: str) -> None:
    path = tmp_path / "s.json"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(PaperkilnError, match=r"s\.json") as error:
        read_spec(path)
    assert part in str(error.value)


def test_a_paper_in_a_spec_s_place_is_told_how_to_become_one(tmp_path: Path) -> None:
    path = tmp_path / "s.tex"
    path.write_text("\\section{Model}")
    with pytest.raises(PaperkilnError, match=r"s\.tex:1:1: not JSON .*paperkiln paper FILE --spec"):
        read_spec(path)


def test_a_byte_order_mark_before_a_spec_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(b"\xef\xbb\xbf" + b'{"name": "bom"}')
    assert read_spec(path).name == "bom"
