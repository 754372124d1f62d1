"""safetensors_io against the safetensors package, and against damaged files."""

from __future__ import annotations

import contextlib
import json
import struct
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from paperkiln.errors import PaperkilnError
from paperkiln.formats.safetensors_io import load_tensors, save_tensors

DTYPES = ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?")


def some_tensors() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    tensors = {f"of.{d}": (rng.normal(size=(3, 5)) * 9).astype(d) for d in DTYPES}
    return tensors | {
        "transposed": rng.normal(size=(4, 6)).astype("f4").T,
        "big-endian": np.arange(5, dtype=">f4"),
        "scalar": np.float32(2.5).reshape(()),
        "empty": np.zeros((0, 3), "f4"),
        "é 🦙": np.ones(3, "f4"),
    }


def test_the_package_reads_what_we_write_and_we_read_it_too(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_tensors(path, some_tensors(), {"step": "7"})
    theirs, ours = safetensors.numpy.load_file(path), load_tensors(path)
    assert ours.metadata == {"format": "pt", "step": "7"}
    assert ours.notes == []
    assert list(ours.tensors) == list(some_tensors())  # the order given
    for name, array in some_tensors().items():
        for loaded in (theirs[name], ours.tensors[name]):
            assert loaded.dtype == array.dtype.newbyteorder("=")
            np.testing.assert_array_equal(loaded, array)
        ours.tensors[name][...] = 0  # its own, writeable memory


def test_we_read_what_the_package_writes(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    tensors = {name: np.ascontiguousarray(a) for name, a in some_tensors().items()}
    tensors["big-endian"] = tensors["big-endian"].astype("f4")
    safetensors.numpy.save_file(tensors, path, {"a": "b"})
    loaded = load_tensors(path)
    assert loaded.metadata == {"a": "b"}
    for name, array in tensors.items():
        np.testing.assert_array_equal(loaded.tensors[name], array)


def test_equal_input_gives_equal_bytes(tmp_path: Path) -> None:
    metadata = {f"key{i}": "x" for i in range(20)}
    for name in ("a", "b"):
        save_tensors(tmp_path / name, some_tensors(), metadata)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_bfloat16_is_widened_and_said(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file

    x = torch.randn(4, 8, dtype=torch.float32).to(torch.bfloat16)
    save_file({"x": x, "y": torch.ones(2)}, tmp_path / "b.safetensors")
    loaded = load_tensors(tmp_path / "b.safetensors")
    assert loaded.tensors["x"].dtype == np.float32
    np.testing.assert_array_equal(loaded.tensors["x"], x.to(torch.float32).numpy())
    assert loaded.notes == ["1 bfloat16 tensors were widened to float32"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_tensors(path, {"x": np.ones(3, "f4")})
    before = path.read_bytes()
    with pytest.raises(PaperkilnError, match="complex64"):
        save_tensors(path, {"x": np.ones(3, "c8")})
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.safetensors"]
    with pytest.raises(PaperkilnError, match="could not be written"):
        save_tensors(path / "below a file", {"x": np.ones(3, "f4")})


def blob(header: object, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(start: int, end: int, **other: object) -> dict[str, object]:
    return {"dtype": "F32", "shape": [2], "data_offsets": [start, end]} | other


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it has 0 bytes"),
        (b"GGUF" + bytes(4), "claims"),
        (struct.pack("<Q", 1 << 62) + b"{}", "claims"),
        (blob(b"\xff\xfe{}"), "not JSON"),
        (blob(b"[" * 100_000), "not JSON"),
        (blob(b'{"x": ' + b"9" * 5000 + b"}"), "not JSON"),
        (blob([1, 2]), "not a table"),
        (blob({"__metadata__": 3}), "not a table"),
        (blob({"x": 3}), "malformed"),
        (blob({"x": {"dtype": "F32", "shape": [2]}}), "malformed"),
        (blob({"x": entry(0, 8, dtype="F8_E4M3")}, bytes(8)), "F8_E4M3"),
        (blob({"x": entry(0, 8, shape=[3])}, bytes(8)), "shape"),
        (blob({"x": entry(0, 8, shape=[-2])}, bytes(8)), "shape"),
        (blob({"x": entry(0, 8, shape=[1 << 62, 1 << 62])}, bytes(8)), "shape"),
        (blob({"x": entry(0, 8, shape=["2"])}, bytes(8)), "shape"),
        (blob({"x": entry(8, 16)}, bytes(16)), "begins at byte 8"),
        (blob({"x": entry(0, 8), "y": entry(0, 8)}, bytes(8)), "begins at byte 0"),
        (blob({"x": entry(0, 8)}, bytes(7)), "it holds 7"),
        (blob({"x": entry(0, 8)}, bytes(9)), "it holds 9"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "bad.safetensors"
    path.write_bytes(content)
    with pytest.raises(PaperkilnError, match=said) as caught:
        load_tensors(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.safetensors", tmp_path):
        with pytest.raises(PaperkilnError, match="cannot be read"):
            load_tensors(path)


@settings(max_examples=200)
@given(data=st.data())
def test_no_damage_escapes_as_another_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    good = blob({"x": entry(0, 8), "y": entry(8, 16)}, bytes(16))
    bad = bytearray(good[: data.draw(st.integers(0, len(good)))])
    for _ in range(data.draw(st.integers(0, 3))):
        if bad:
            bad[data.draw(st.integers(0, len(bad) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.safetensors"
    path.write_bytes(bad)
    with contextlib.suppress(PaperkilnError):
        load_tensors(path)
