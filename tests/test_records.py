"""Records and fingerprints: what a run says about itself, and only that."""

from __future__ import annotations

import hashlib
import json
import platform
import socket
import struct
from pathlib import Path

import numpy as np
import pytest

from paperkiln.formats.hf import params_from_tensors
from paperkiln.formats.safetensors_io import load_tensors
from paperkiln.lab.fingerprint import fingerprint
from paperkiln.lab.records import machine, package_versions
from paperkiln.spec import parse_spec

A = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_a_fingerprint_is_the_hash_that_its_scheme_says() -> None:
    said = b"a\0<f4\0" + b"2,3\0" + struct.pack("<6f", *range(6))
    said += b"b\0<f4\0" + b"1\0" + struct.pack("<f", 1.5)
    value = fingerprint({"b": np.array([1.5], np.float32), "a": A})
    assert value == f"paperkiln-weights/1:{hashlib.sha256(said).hexdigest()}"
    assert value.partition(":")[2][:16] == "6c0044acbaf2a69c", "the same in every release"


SAME = [
    {"a": A, "b": A.T}, {"b": A.T, "a": A}, {"a": np.asfortranarray(A), "b": A.T.copy()},
    {"a": A.astype(">f4"), "b": A.T}, {"a": np.repeat(A, 2, axis=0)[::2], "b": A.T},
]  # fmt: skip
OTHER = [
    {"a": A}, {"a": A, "c": A.T}, {"a": A, "b": A}, {"a": A + 1e-6, "b": A.T},
    {"a": A.astype(np.float64), "b": A.T}, {"a": A.reshape(3, 2), "b": A.T},
    {"a": A.reshape(6), "b": A.T}, {"a": -0.0 * A, "b": A.T}, {"ab": A, "b": A.T}, {},
]  # fmt: skip


def test_layout_order_and_byte_order_do_not_enter_and_all_else_does() -> None:
    assert len({fingerprint(tensors) for tensors in SAME}) == 1
    everything = [fingerprint(tensors) for tensors in [SAME[0], *OTHER]]
    assert len(set(everything)) == len(everything)


def test_the_record_of_a_run(tiny_run: Path) -> None:
    record = json.loads((tiny_run / "record.json").read_text(encoding="utf-8"))
    assert record["format"] == "paperkiln-record/1"
    spec = parse_spec(record["spec"])
    assert record["spec"] == json.loads((tiny_run / "spec.json").read_text(encoding="utf-8"))
    assert record["seed"] == spec.train.seed
    tensors = load_tensors(tiny_run / "model.safetensors").tensors
    assert record["fingerprint"] == fingerprint(params_from_tensors(spec.arch, tensors))
    assert record["packages"]["python"] == platform.python_version()
    assert record["packages"]["numpy"] == np.__version__
    assert record["metrics"]["final_step"] == 20
    assert record["metrics"]["best_step"] in (5, 10, 15, 20)
    assert len(record["corpus"]["sha256"]) == 64


def test_the_card_is_made_of_the_record(tiny_run: Path) -> None:
    record = json.loads((tiny_run / "record.json").read_text(encoding="utf-8"))
    card = (tiny_run / "card.md").read_text(encoding="utf-8")
    for part in (
        "# tiny", "8,032", f"{record['metrics']['best_val']:.4f}", record["fingerprint"],
        record["corpus"]["split"], "2 query, 1 key/value, 8 wide", "2,560 tokens in 20 steps",
    ):  # fmt: skip
        assert part in card, part


def test_the_machine_is_described_without_its_name() -> None:
    described = json.dumps([machine(), package_versions()])
    assert machine()["cores"] >= 1
    assert machine()["processor"]
    assert socket.gethostname() not in described or len(socket.gethostname()) < 4


@pytest.mark.parametrize("seed", [7, 8])
def test_equal_spec_and_seed_give_an_equal_fingerprint(
    tiny, tiny_run: Path, tmp_path: Path, seed: int
) -> None:
    from paperkiln.train.run import run

    again = run(parse_spec(tiny(tmp_path / "again", train={"seed": seed})))
    one, two = (
        json.loads((folder / "record.json").read_text())["fingerprint"]
        for folder in (tiny_run, again)
    )
    assert (one == two) == (seed == 7)
    if seed == 7:
        name = "model.safetensors"
        assert (tiny_run / name).read_bytes() == (again / name).read_bytes()
