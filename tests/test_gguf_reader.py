"""The GGUF header reader: against the gguf package, in a bare interpreter, on damaged files."""

from __future__ import annotations

import contextlib
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperkiln.errors import PaperkilnError
from paperkiln.formats import gguf_reader
from paperkiln.formats.gguf_io import dequantize
from paperkiln.formats.gguf_reader import MAX_ENTRIES, TensorInfo, read_beginning, read_header
from paperkiln.formats.gguf_writer import write_gguf
from paperkiln.models.config import ModelConfig, parameter_shapes
from paperkiln.train.tokenizers import byte_tokenizer

REPO = Path(__file__).parent.parent


@pytest.fixture(scope="module", params=["f32", "f16", "q8_0"])
def written(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = ModelConfig(d_model=32, n_layers=2, n_heads=4, d_ff=48, vocab_size=280)
    rng = np.random.default_rng(0)
    params = {n: rng.normal(size=s).astype("f4") for n, s in parameter_shapes(config).items()}
    path = tmp_path_factory.mktemp("gguf") / f"{request.param}.gguf"
    write_gguf(path, config, params, byte_tokenizer(), dtype=request.param)
    return path


def test_agrees_with_the_package_on_our_files(written: Path) -> None:
    check_against_package(written)


def test_agrees_on_every_value_and_tensor_type(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    writer = gguf.GGUFWriter(path, "any")
    for kind, value in [
        ("uint8", 255), ("int8", -128), ("uint16", 65535), ("int16", -32768), ("uint32", 1 << 31),
        ("int32", -5), ("float32", 0.1), ("uint64", 1 << 63), ("int64", -(1 << 62)),
        ("float64", 0.1), ("bool", True), ("bool", False), ("string", "é 🦙"),
    ]:  # fmt: skip
        getattr(writer, f"add_{kind}")(f"x.{kind}.{value}", value)
    for i, array in enumerate([[1, 2, -3], [0.5, 1e9], ["a", "", "é"], [True, False], [[1], [2]]]):
        writer.add_array(f"x.array{i}", array)
    writer.add_custom_alignment(64)
    rng = np.random.default_rng(0)
    for i, kind in enumerate(gguf.GGMLQuantizationType):
        block, size = gguf.GGML_QUANT_SIZES[kind]
        if block == 1 or kind.name in ("Q8_1", "Q8_K"):  # below; never in a file
            continue
        data = rng.integers(0, 255, (3, 2 * size), dtype=np.uint8)
        writer.add_tensor(f"t{i}", data, raw_dtype=kind)
    writer.add_tensor("four", rng.normal(size=(2, 3, 4, 5)).astype("f4"))
    for dtype in ("i1", "i2", "i4", "i8", "f8", "f2"):
        writer.add_tensor(dtype, np.arange(6).reshape(2, 3).astype(dtype))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert read_header(path).alignment == 64
    check_against_package(path)


def check_against_package(path: Path) -> None:
    ours, theirs = read_header(path), gguf.GGUFReader(path)
    assert ours == read_header(path.read_bytes())
    fields = {k: f.contents() for k, f in theirs.fields.items() if not k.startswith("GGUF.")}
    nested = [k for k, v in ours.metadata.items() if isinstance(v, list) and v and v[0] == [1]]
    for key in nested:  # the package flattens an array of arrays
        fields[key] = ours.metadata[key]
    assert ours.metadata == fields
    assert ours.data_offset == theirs.data_offset
    assert list(ours.tensors) == [t.name for t in theirs.tensors]
    content = path.read_bytes()
    for their in theirs.tensors:
        info = ours.tensors[their.name]
        assert info.shape == tuple(reversed([int(n) for n in their.shape]))
        assert info.ggml_type == their.tensor_type.name.lower()
        assert (info.offset, info.n_bytes) == (their.data_offset, their.n_bytes)
        assert content[info.offset : info.offset + info.n_bytes] == their.data.tobytes()


def test_q8_0_is_read_as_the_package_reads_it() -> None:
    x = np.random.default_rng(0).normal(size=(5, 64)).astype(np.float32)
    data = gguf.quants.quantize(x, gguf.GGMLQuantizationType.Q8_0)
    found = dequantize(TensorInfo("x", x.shape, "q8_0", 0, data.size), data.tobytes(), "here")
    np.testing.assert_array_equal(
        found, gguf.quants.dequantize(data, gguf.GGMLQuantizationType.Q8_0)
    )
    with pytest.raises(PaperkilnError, match="'x' is i8, which is not read here"):
        dequantize(TensorInfo("x", (256,), "i8", 0, 256), bytes(256), "here")


def test_needs_only_the_standard_library(written: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(REPO)!r})\n"
        "from paperkiln.formats.gguf_reader import read_header\n"
        f"print(len(read_header({str(written)!r}).tensors))\n"
        "assert not {'numpy', 'pydantic', 'torch'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) == len(read_header(written).tensors)


# Files made by hand, to be wrong in one place.


def text(s: str) -> bytes:
    return struct.pack("<Q", len(s.encode())) + s.encode()


def pair(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def tensor(name: str = "x", ne: tuple[int, ...] = (8,), kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(ne)}QIQ", len(ne), *ne, kind, offset)


def file(
    *parts: bytes,
    pairs: int = 0,
    tensors: int = 0,
    data: int = 64,
    magic: bytes = b"GGUF",
    version: int = 3,
) -> bytes:
    head = magic + struct.pack("<IQQ", version, tensors, pairs) + b"".join(parts)
    return head + bytes(-len(head) % 32) + bytes(data)


HUGE = 1 << 63
GOOD = file(
    pair("a", 8, text("b")),
    pair("c", 9, struct.pack("<IQ", 8, 2) + text("d") + text("")),
    pair("e", 6, struct.pack("<f", 0.5)),
    tensor("x", (8, 1)),
    tensor("y", (4,), 1, 32),
    pairs=3,
    tensors=2,
)


def test_the_files_made_by_hand_are_right_but_for_one_place() -> None:
    header = read_header(GOOD)
    assert header.metadata == {"a": "b", "c": ["d", ""], "e": 0.5}
    assert [t.shape for t in header.tensors.values()] == [(1, 8), (4,)]
    assert read_header(file(version=2)).version == 2
    assert read_header(file(pair("a", 8, struct.pack("<Q", 1) + b"\xff"), pairs=1)).metadata == {
        "a": "\ufffd"
    }


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"GG", "begins with"),
        (file(magic=b"GGML"), "not b'GGUF'"),
        (b"PK\x03\x04" + bytes(99), "give a .gguf file"),
        (b"GGUF\x03", "the version needs 4 bytes"),
        (file(version=1), "version 1 is not 2 or 3"),
        (file(version=3 << 24), "big-endian"),
        (file(pairs=HUGE), "the metadata count is 9,223"),
        (file(tensors=HUGE), "the tensor count is 9,223"),
        (file(tensors=3, data=0), "the tensor count is 3,"),
        (file(struct.pack("<Q", HUGE), pairs=1), "the length of metadata key 0"),
        (file(pair("a", 8, struct.pack("<Q", 1 << 40)), pairs=1), "more than the file can hold"),
        (file(pair("a", 99, bytes(8)), pairs=1), "unknown value type 99"),
        (file(pair("a", 9, struct.pack("<IQ", 99, 1)), pairs=1), "unknown value type 99"),
        (file(pair("a", 9, struct.pack("<IQ", 4, HUGE)), pairs=1), "the length of metadata 'a'"),
        (file(pair("a", 9, struct.pack("<IQ", 8, 1 << 20)), pairs=1), "the length of metadata"),
        (file(pair("a", 9, struct.pack("<IQ", 9, 1) * 6), pairs=1), "unknown value type 9"),
        (file(pair("a", 0, b"1"), pair("a", 0, b"1"), pairs=2), "appears twice"),
        (file(pair("general.alignment", 4, struct.pack("<I", 0)), pairs=1), "power of two"),
        (file(pair("general.alignment", 4, struct.pack("<I", 24)), pairs=1), "power of two"),
        (file(pair("general.alignment", 8, text("32")), pairs=1), "power of two"),
        (file(bytes(40 << 16), tensors=MAX_ENTRIES + 1), "at most 65,536 are read"),
        (file(bytes(40 << 16), pairs=MAX_ENTRIES + 1), "at most 65,536 are read"),
        (file(tensor(), tensor(), tensors=2), "tensor 'x' appears twice"),
        (file(tensor(), tensor("y"), tensors=2), "'x' and 'y' overlap"),
        (file(tensor(ne=()), tensors=1), "0 dimensions"),
        (file(tensor(ne=(1,) * 5), tensors=1), "5 dimensions"),
        (file(tensor(ne=(0, 4)), tensors=1), "positive multiple of 1"),
        (file(tensor(ne=(48,), kind=8), tensors=1), "multiple of 32"),
        (file(tensor(kind=4), tensors=1), "unknown type 4"),
        (file(tensor(offset=8), tensors=1), "not aligned to 32"),
        (file(tensor(offset=64), tensors=1), "it is cut off"),
        (file(tensor(ne=(HUGE, HUGE, HUGE)), tensors=1), "it is cut off"),
        (file(tensor(ne=(17,)), tensors=1), "it is cut off"),
    ],
)
def test_damaged_files_are_refused(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    with pytest.raises(PaperkilnError, match=said) as caught:
        read_header(path)
    assert str(path) in str(caught.value)
    assert "; " in str(caught.value)  # and the mend
    with pytest.raises(PaperkilnError, match=said):
        read_header(content)


def test_a_header_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lists take many times their bytes: 168 MB of them took 1.5 GB."""
    assert read_header(GOOD)
    monkeypatch.setattr(gguf_reader, "MAX_HEADER", 60)
    with pytest.raises(PaperkilnError, match="header is longer than 60 bytes"):
        read_header(GOOD)


def test_the_beginning_of_a_file_is_enough() -> None:
    header = read_header(GOOD)
    end_of_table = GOOD.rindex(b"y") + len(b"y") + 24  # dimensions, one of them, type, offset
    for n in range(4, len(GOOD) + 1):
        found = read_beginning(GOOD[:n], len(GOOD), "here")
        assert found == (header if n >= end_of_table else None)
    with pytest.raises(PaperkilnError, match="but the file ends at 10"):
        read_beginning(GOOD[:8], 10, "here")


def test_errors_stay_short() -> None:
    content = file(pair("k" * 5000, 99, b""), pairs=1)
    with pytest.raises(PaperkilnError) as caught:
        read_beginning(content, len(content), "/long" * 1000 + "/name.gguf")
    assert "/name.gguf: " in str(caught.value)
    assert len(str(caught.value)) < 400


def test_every_truncation_is_refused(written: Path) -> None:
    content = written.read_bytes()
    header_end = read_header(content).data_offset
    for size in (*range(0, 120), *range(120, header_end, 97), header_end, len(content) - 1):
        with pytest.raises(PaperkilnError):
            read_header(content[:size])


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.gguf", tmp_path):
        with pytest.raises(PaperkilnError, match="cannot be read"):
            read_header(path)


@settings(max_examples=500)
@given(
    changes=st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), max_size=4),
    size=st.integers(0, len(GOOD)) | st.just(len(GOOD)),
)
def test_no_damage_escapes_as_another_error(changes: list[tuple[int, int]], size: int) -> None:
    bad = bytearray(GOOD)
    for at, value in changes:
        bad[at] = value
    with contextlib.suppress(PaperkilnError):
        read_header(bytes(bad[:size]))
