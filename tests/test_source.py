"""A paper's source from bytes and from disk, hostile archives too, and which file is the paper."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperkiln.errors import PaperkilnError
from paperkiln.papers.document import SourceFile
from paperkiln.papers.source.archive import MAX_FILE, MAX_LAYERS, MAX_MEMBERS, kind_of
from paperkiln.papers.source.files import decode, open_path, open_source
from paperkiln.papers.source.main_file import choose_main
from paperkiln.papers.source.obtain import obtain

PAPER = b"\\documentclass{article}\n\\begin{document}\nTwelve layers.\n\\end{document}\n"
MEMBERS = {"main.tex": PAPER, "sections/a.tex": b"A section.", "fig/a.png": b"\x89PNG\r\n\0\0"}


def tar(members: dict[str, bytes], mode: str = "w", form: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, format=form) as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def special(kind: bytes, name: str, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def zipped(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def refusal(data: bytes, name: str = "p.tar.gz") -> str:
    with pytest.raises(PaperkilnError) as caught:
        open_source(data, name)
    line = str(caught.value)
    assert line.isprintable()
    return line


# --- containers ---------------------------------------------------------------------------------

CONTAINERS: dict[str, Callable[[dict[str, bytes]], bytes]] = {
    "tar": tar,
    "ustar": lambda m: tar(m, form=tarfile.USTAR_FORMAT),
    "gnu": lambda m: tar(m, form=tarfile.GNU_FORMAT),
    "tar.gz": lambda m: tar(m, "w:gz"),
    "tar.bz2": lambda m: tar(m, "w:bz2"),
    "tar.xz": lambda m: tar(m, "w:xz"),
    "tar.gz.gz": lambda m: gzip.compress(tar(m, "w:gz")),
    "zip": zipped,
    "zip.gz": lambda m: gzip.compress(zipped(m)),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_is_told_by_its_content(container: str) -> None:
    files = open_source(CONTAINERS[container](MEMBERS), "1706.03762")
    assert {n: f.text.encode() for n, f in files.items()} == {
        n: c for n, c in MEMBERS.items() if n.endswith(".tex")
    }


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
def test_long_names(form: int) -> None:
    name = f"{'f' * 90}/{'a' * 90}.tex"
    assert list(open_source(tar({name: PAPER}, form=form), "p")) == [name]


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_names_that_are_not_ascii(form: int) -> None:
    members = {"modèle.tex": PAPER, "b.tex": PAPER, f"{'é' * 120}.tex": PAPER}
    assert list(open_source(tar(members, form=form), "p")) == list(members)


def test_names_are_normal(tmp_path: Path) -> None:
    files = open_source(tar({"./main.tex": PAPER, "a//b/./c.tex": PAPER}), "p")
    assert list(files) == ["main.tex", "a/b/c.tex"]
    assert list(open_source(zipped({"paper\\main.tex": PAPER}), "p")) == ["paper/main.tex"]


@pytest.mark.parametrize(
    ("name", "data", "key"),
    [
        ("1706.06280", gzip.compress(PAPER, mtime=0), "1706.06280.tex"),
        ("hep-th/9901001", gzip.compress(b"\\magnification=1200 Hi \\bye", mtime=0), "9901001.tex"),
        ("ms.tex.gz", gzip.compress(PAPER, mtime=0), "ms.tex"),
        ("main.tex", PAPER, "main.tex"),
        ("a/main.TEX", PAPER, "main.TEX"),
        ("excerpt.tex", b"The model has 12 layers.", "excerpt.tex"),
        ("-", PAPER, "-.tex"),
    ],
)
def test_a_lone_file_packed_or_not(name: str, data: bytes, key: str) -> None:
    files = open_source(data, name)
    assert list(files) == [key]
    assert files[key].name == key


@pytest.mark.parametrize("name", ["paper", "paper.txt", "0808.1725", "odd/place/draft7.tex"])
def test_tex_without_its_ending_is_found(name: str) -> None:
    files = open_source(tar({name: PAPER, "README": b"nothing", "data.txt": b"1 2"}, "w:gz"), "p")
    assert list(files) == [name]
    assert choose_main(files) == (name, "it is the only TeX file")


def test_what_is_kept_and_what_is_not() -> None:
    kept = ["main.tex", "main.bbl", "my.sty", "my.cls", "00README.XXX", "fig.tikz"]
    left = [".main.tex", "._main.tex", "__MACOSX/._main.tex", "a.png", "data.csv", "refs.bib"]
    files = open_source(tar(dict.fromkeys(kept + left, PAPER)), "p")
    assert sorted(files) == sorted(kept)
    assert list(open_source(tar({"a.tex": PAPER, "big.sty": b"%" * (1 << 20)}), "p")) == ["a.tex"]
    assert list(open_source(tar({"a.tex": PAPER, "b.tex": b"\x89PNG\r\n"}), "p")) == ["a.tex"]


# --- decoding -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        (b"plain", "plain", "utf-8"),
        ("modèle".encode(), "modèle", "utf-8"),
        (b"\xef\xbb\xbf" + "é".encode(), "é", "utf-8"),
        (b"1990\x962000", "1990–2000", "cp1252"),
        (b"\xd5 a", "Õ a", "cp1252"),
        (b"\x81\xe9", "\x81é", "latin-1"),
        ("ééé".encode() + b"\x96", "ééé–", "mixed utf-8 and cp1252"),
        (b"\xff\xfe" + "a é".encode("utf-16-le"), "a é", "utf-16-le"),
        (b"\xfe\xff" + "a é".encode("utf-16-be"), "a é", "utf-16-be"),
        (b"a\r\nb\rc\n", "a\r\nb\rc\n", "utf-8"),
    ],
)
def test_decoding(data: bytes, text: str, encoding: str) -> None:
    assert decode(data) == (text, encoding)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_lines_count_alike_whatever_ends_them(newline: str) -> None:
    text = newline.join(["\\documentclass{article}", "é", "12 layers"])
    for data in (text.encode(), text.encode("cp1252"), b"\xef\xbb\xbf" + text.encode()):
        file = open_source(data, "a.tex")["a.tex"]
        assert file.line(file.text.index("12 layers")) == 3


# --- hostile and broken -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["../main.tex", "/etc/main.tex", "a/../../main.tex", "C:\\main.tex", "..\\main.tex"]
)
@pytest.mark.parametrize("pack", [tar, zipped])
def test_names_that_lead_outside(name: str, pack: Callable[[dict[str, bytes]], bytes]) -> None:
    assert "leads outside" in refusal(pack({"ok.tex": PAPER, name: PAPER}))


def test_links_and_devices_are_never_looked_into() -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(special(tarfile.SYMTYPE, "link.tex", "/etc/passwd"))
        archive.addfile(special(tarfile.LNKTYPE, "hard.tex", "main.tex"))
        archive.addfile(special(tarfile.CHRTYPE, "device.tex"))
        archive.addfile(special(tarfile.FIFOTYPE, "fifo.tex"))
        archive.addfile(special(tarfile.DIRTYPE, "folder.tex"))
        info = tarfile.TarInfo("main.tex")
        info.size = len(PAPER)
        archive.addfile(info, io.BytesIO(PAPER))
    assert list(open_source(out.getvalue(), "p")) == ["main.tex"]

    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        link = zipfile.ZipInfo("link.tex")
        link.external_attr = 0o120777 << 16
        packed.writestr(link, "/etc/passwd")
        packed.writestr("main.tex", PAPER)
    assert list(open_source(out.getvalue(), "p")) == ["main.tex"]


def encrypted() -> bytes:
    data = bytearray(zipped({"main.tex": PAPER}))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def layered() -> bytes:
    data = tar(MEMBERS)
    for _ in range(MAX_LAYERS + 1):
        data = gzip.compress(data)
    return data


def claims(size: bytes) -> bytes:
    """Return a tar whose only header claims a size."""
    header = bytearray(tar({"main.tex": PAPER}, form=tarfile.USTAR_FORMAT)[:512])
    header[124:136] = size
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + PAPER


GZ = tar(MEMBERS, "w:gz")
BROKEN: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"", "is empty"),
    "only zeros": (lambda: bytes(10240), "is empty"),
    "gzip of nothing": (lambda: gzip.compress(b""), "is empty"),
    "empty zip": (lambda: zipped({}), "it has no files"),
    "gzip cut short": (lambda: GZ[: len(GZ) // 2], "cut short"),
    "gzip without its end": (lambda: GZ[:-4], "cut short"),
    "gzip header alone": (lambda: GZ[:5], "cut short"),
    "tar cut short": (lambda: tar(MEMBERS)[:700], "cut short"),
    "xz cut short": (lambda: tar(MEMBERS, "w:xz")[:-30], "cut short"),
    "bz2 cut short": (lambda: tar(MEMBERS, "w:bz2")[:-30], "cut short"),
    "zip cut short": (lambda: zipped(MEMBERS)[:-30], "corrupt"),
    "check sum of gzip": (lambda: flipped(GZ, len(GZ) - 6), "corrupt"),
    "corrupt deflate": (lambda: flipped(GZ, 40), "corrupt"),
    "corrupt zip member": (lambda: flipped(zipped({"a.tex": PAPER}), 45), "corrupt"),
    "corrupt second header": (lambda: flipped(tar(MEMBERS), 1024 + 5), "corrupt"),
    "encrypted zip": (encrypted, "encrypted"),
    "four layers": (layered, "packed more than 3 times"),
    "a size of 8 EiB": (lambda: claims(b"\x80" + b"\0" * 3 + b"\x7f" + b"\xff" * 7), "cut short"),
    "a negative size": (lambda: claims(b"\xff" * 12), "corrupt"),
    "a size that is no number": (lambda: claims(b"-0000000001\0"), "corrupt"),
    "too long a file": (lambda: tar({"main.tex": b"a" * (MAX_FILE + 1)}), "longer than 16 MiB"),
    "too long a lone file": (lambda: gzip.compress(b"a" * (MAX_FILE + 1)), "longer than 16 MiB"),
    "too much text": (lambda: tar({f"{i}.tex": b"a" * MAX_FILE for i in range(5)}), "64 MiB"),
    "bomb": (lambda: gzip.compress(tar({"a.dat": bytes(1 << 26), "m.tex": PAPER})), "far more"),
    "bomb in a zip": (lambda: zipped({"main.tex": bytes(1 << 26)}), "longer than 16 MiB"),
    "many files": (lambda: tar(dict.fromkeys(map(str, range(20_001)), b"")), "20,000 files"),
    "deep folders": (lambda: tar({"a/" * 40 + "m.tex": PAPER}), "corrupt"),
    "a long name": (lambda: tar({"a" * 5000 + ".tex": PAPER}), "corrupt"),
    "figures only": (lambda: tar({"a.png": b"x", "b.png": b"y"}), "no LaTeX; its files are a.png"),
    "a PDF only": (lambda: tar({"paper.pdf": b"%PDF-1.4"}), "made as a PDF only"),
    "a README only": (lambda: tar({"00README.XXX": b"a.tex ignore"}), "holds no LaTeX"),
    "PDF": (lambda: b"%PDF-1.5\n", "is a PDF"),
    "PDF with a mark before it": (lambda: b"\xef\xbb\xbf\n%PDF-1.5\n", "is a PDF"),
    "gzipped PDF": (lambda: gzip.compress(b"%PDF-1.5\n"), "is a PDF"),
    "HTML": (lambda: b"\n<!DOCTYPE html><html>\\section{x}", "is a web page"),
    "XHTML": (lambda: b"<?xml version='1.0'?><html>", "is a web page"),
    "PostScript": (lambda: b"%!PS-Adobe-2.0", "PostScript"),
    "7z": (lambda: b"7z\xbc\xaf\x27\x1c\0\4", "repack"),
    "binary": (lambda: bytes(range(256)) * 4, "binary"),
    "JSON": (lambda: b'{"error": "C:\\\\temp"}', "holds no LaTeX"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_each_broken_archive_has_its_own_line(case: str) -> None:
    make, part = BROKEN[case]
    assert part in refusal(make())


def test_many_files_in_a_zip_are_refused_before_they_are_listed() -> None:
    entry = b"PK\x01\x02" + bytes(42)
    data = zipped({"a.tex": PAPER}) + entry * (MAX_MEMBERS + 1)
    assert "20,000 files" in refusal(data)


def test_a_quine_like_tower_of_archives_costs_nothing() -> None:
    data = PAPER
    for _ in range(50):
        data = gzip.compress(data)
    start = time.process_time()
    assert "times over" in refusal(data)
    assert time.process_time() - start < 60


VALID = [pack(MEMBERS) for pack in CONTAINERS.values()] + [gzip.compress(PAPER), PAPER]


@given(st.binary(max_size=2000), st.sampled_from(["p", "a.tex", "-", "../x", ""]))
def test_arbitrary_bytes_give_files_or_one_clear_line(data: bytes, name: str) -> None:
    opens_or_refuses(data, name)


@settings(max_examples=300)
@given(
    st.sampled_from(VALID),
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 255)), min_size=1, max_size=6),
    st.integers(0, 400),
)
def test_damaged_archives_give_files_or_one_clear_line(
    data: bytes, flips: list[tuple[int, int]], cut: int
) -> None:
    damaged = bytearray(data)
    for at, bits in flips:
        damaged[at % len(damaged)] ^= bits
    opens_or_refuses(bytes(damaged[: len(damaged) - cut]), "p")


def opens_or_refuses(data: bytes, name: str) -> None:
    try:
        files = open_source(data, name)
    except PaperkilnError as error:
        line = str(error)
        assert line.isprintable()
        return
    assert files
    for key, file in files.items():
        assert key == file.name
        assert key.isprintable()
        assert not key.startswith("/")
        assert ".." not in key.split("/")
    choose_main(files)


def test_kinds() -> None:
    assert kind_of(b"") == ""
    assert kind_of(PAPER) == ""
    assert kind_of(bz2.compress(b"")) == "bzip2"
    assert kind_of(lzma.compress(b"")) == "xz"
    assert kind_of(tar(MEMBERS)[:512]) == "tar"
    assert kind_of(bytes(512)) == ""


# --- on disk ------------------------------------------------------------------------------------


def write(folder: Path, members: dict[str, bytes]) -> Path:
    for name, content in members.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


@pytest.mark.parametrize("container", CONTAINERS)
def test_an_archive_on_disk_with_a_name_that_misleads(tmp_path: Path, container: str) -> None:
    path = tmp_path / "paper.pdf"
    path.write_bytes(CONTAINERS[container](MEMBERS))
    assert sorted(open_path(path)) == ["main.tex", "sections/a.tex"]
    assert [p.name for p in tmp_path.iterdir()] == ["paper.pdf"]  # nothing is written


def test_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "p", MEMBERS | {".git/x.tex": PAPER, "b/c/d.TEX": PAPER})
    (tmp_path / "secret.tex").write_bytes(PAPER)
    os.symlink(tmp_path / "secret.tex", tmp_path / "p" / "link.tex")
    os.symlink(tmp_path / "p" / "main.tex", tmp_path / "p" / "inner.tex")
    os.symlink(tmp_path, tmp_path / "p" / "up")
    os.mkfifo(tmp_path / "p" / "fifo.tex")
    assert sorted(open_path(tmp_path / "p")) == [
        "b/c/d.TEX", "inner.tex", "main.tex", "sections/a.tex"
    ]  # fmt: skip


def test_a_lone_tex_brings_what_it_takes_in_and_nothing_else(tmp_path: Path) -> None:
    text = (
        b"\\documentclass{article}\\usepackage{graphicx, mine}\n\\begin{document}\n"
        b"\\input{sections/a}\\input sections/b.tex %\\input{old}\n\\import{deep/}{c}\n"
        b"\\input{../secret}\\input{/etc/passwd}\\input{main}\\input{gone}\\end{document}"
    )
    folder = write(
        tmp_path / "p",
        {"main.tex": text, "sections/a.tex": b"\\input{sections/d}", "sections/b.tex": b"b",
         "sections/d.tex": b"d", "deep/c.tex": b"c", "mine.sty": b"% mine", "old.tex": b"old",
         "other.tex": PAPER},
    )  # fmt: skip
    (tmp_path / "secret.tex").write_bytes(PAPER)
    files = open_path(folder / "main.tex")
    assert sorted(files) == [
        "deep/c.tex", "main.tex", "mine.sty", "sections/a.tex", "sections/b.tex", "sections/d.tex"
    ]  # fmt: skip
    assert choose_main(files)[0] == "main.tex"


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    write(tmp_path, {"empty.tex": b"", "p.pdf": b"%PDF-1.4", "f/a.png": b"x"})
    os.mkfifo(tmp_path / "fifo")
    for name, part in {
        "gone.tex": "does not exist", "empty.tex": "is empty", "p.pdf": "is a PDF",
        "f": "holds no LaTeX; its files are a.png", "fifo": "not a regular file",
        "n" * 300: "cannot be read", "nul\0": "does not exist",
    }.items():  # fmt: skip
        with pytest.raises(PaperkilnError, match=part) as caught:
            open_path(tmp_path / name)
        assert str(caught.value).isprintable()


def test_it_imports_in_a_bare_python() -> None:
    code = (
        "import sys; import paperkiln.papers.source.files, paperkiln.papers.source.reference\n"
        "print(sorted({'numpy', 'torch', 'pydantic', 'requests', 'rich', 'filelock'}"
        " & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# --- the main file ------------------------------------------------------------------------------

DOC = PAPER.decode()
SHORT = "\\documentclass{article}\\begin{document}x\\end{document}"
MORE = DOC.replace("Twelve", "Twelve or more")
LONG = DOC.replace("Twelve", "Twelve " * 500)


def sources(**files: str) -> dict[str, SourceFile]:
    return {name: SourceFile(name, text) for name, text in files.items()}


MAINS: dict[str, tuple[dict[str, str], str, str]] = {
    "one file": ({"template.tex": DOC}, "template.tex", "only TeX file"),
    "an excerpt": ({"x.tex": "12 layers"}, "x.tex", "only TeX file"),
    "plain TeX": ({"p.tex": "\\input m \\bye", "m.tex": "\\def\\x{}" * 99}, "p.tex", "takes in"),
    "parts": ({"m.tex": "\\input{a}" + DOC, "a.tex": LONG}, "m.tex", "takes in every other"),
    "stray part": ({"m.tex": DOC, "stray.tex": "x" * 9999}, "m.tex", "only complete document"),
    "in a part": ({"z.tex": "\\input{pre}\\input{body}", "pre.tex": "\\documentclass{a}",
                   "body.tex": "\\begin{document}", "stray.tex": "x" * 999}, "z.tex", "complete"),
    "commented class": ({"a.tex": "%\\documentclass{article}\n%\\begin{document}\n" + "x" * 9999,
                         "b.tex": DOC}, "b.tex", "only complete document"),
    "commented input": ({"b.tex": DOC, "main.tex": "%\\input{b}\n" + DOC}, "main.tex", "name"),
    "after the end": ({"ms.tex": DOC, "z.tex": DOC + "\\input{ms}"}, "ms.tex", "name"),
    "LaTeX 2.09": ({"old209.tex": DOC.replace("class", "style"), "b.tex": "x" * 999},
                   "old209.tex", "only complete document"),
    "template": ({"bare_jrnl_compsoc.tex": MORE, "main.tex": DOC}, "main.tex",
                 "name of a template"),
    "example": ({"example_paper.tex": MORE, "main_workshop.tex": DOC}, "main_workshop.tex",
                "name of a template"),
    "a template in use": ({"template.tex": DOC, "template.bbl": "", "figs.tex": MORE},
                          "template.tex", "bibliography"),
    "scrap": ({"template.tex": LONG, "main.tex": SHORT}, "template.tex", "not a tenth as long"),
    "bbl": ({"a.tex": DOC, "a.bbl": "", "main.tex": MORE}, "a.tex", "bibliography"),
    "supplement": ({"paper1.tex": DOC, "supplementary.tex": LONG, "supplementary.bbl": ""},
                   "paper1.tex", "supplementary.tex stands beside"),
    "rebuttal": ({"iclr.tex": DOC, "rebuttal_v2.tex": LONG}, "iclr.tex", "stands beside"),
    "old copy": ({"nips.tex": DOC, "nips_old.tex": MORE}, "nips.tex", "stands beside"),
    "standalone": ({"x.tex": DOC, "plot.tex": LONG.replace("article", "standalone")},
                   "x.tex", "stands beside"),
    "subfile": ({"x.tex": DOC + "\\subfile{s}", "s.tex": LONG.replace("{article}", "{subfiles}")},
                "x.tex", "stands beside"),
    "slides": ({"x.tex": DOC, "s.tex": LONG.replace("{article}", "[a]{beamer}")}, "x.tex", ""),
    "name": ({"main.tex": DOC, "z.tex": MORE}, "main.tex", "name of a main file"),
    "depth": ({"z.tex": DOC, "a/b.tex": MORE}, "z.tex", "deeper folder"),
    "length": ({"a.tex": DOC, "b.tex": MORE}, "b.tex", "longer than a.tex"),
    "length with parts": ({"a.tex": "\\input{p}" + DOC, "p.tex": LONG, "b.tex": LONG},
                          "a.tex", "longer"),
    "circle": ({"a.tex": "\\input{b}" + DOC, "b.tex": "\\input{a}"}, "a.tex", ""),
    "takes itself in": ({"a.tex": "\\input{a}" + DOC, "b.tex": "x"}, "a.tex", "complete"),
    "wrapper folder": ({"w/main.tex": "\\input{s/a}" + DOC, "w/s/a.tex": "\\input{s/b}",
                        "w/s/b.tex": DOC}, "w/main.tex", "takes in every other"),
    "import": ({"m.tex": DOC.replace("Twelve", "\\import{s/}{a}\\subimport{./}{t}"),
                "s/a.tex": DOC, "t.tex": DOC}, "m.tex", "takes in every other"),
    "twins": ({"b.tex": DOC, "a.tex": DOC}, "a.tex", "comes first"),
    "readme": ({"00README.XXX": "z.tex toplevelfile\nmain.tex ignore\n", "main.tex": LONG,
                "z.tex": SHORT}, "z.tex", "00README.XXX names it"),
    "readme ignores": ({"00README": "main.tex ignore", "main.tex": LONG, "z.tex": SHORT},
                       "z.tex", "only TeX file"),
    "readme errs": ({"00README.XXX": "gone.tex toplevelfile", "main.tex": DOC}, "main.tex", "only"),
    "readme json": ({"00README.json": json.dumps({"sources": [
        {"usage": "ignore", "filename": "main.tex"}, {"filename": "z.tex", "usage": "toplevel"}]}),
        "main.tex": LONG, "z.tex": SHORT}, "z.tex", "00README.json names it"),
    "readme yaml": ({"00README.yaml": "process:\n  compiler: pdflatex\nsources:\n"
                     "- filename: main.tex\n  usage: ignore\n- usage: toplevel\n"
                     "  filename: \"z.tex\"\n", "main.tex": LONG, "z.tex": SHORT},
                    "z.tex", "00README.yaml names it"),
    "readme toml": ({"00README.toml": '[[sources]]\nusage = "toplevel"\nfilename = "z.tex"\n',
                     "main.tex": LONG, "z.tex": SHORT}, "z.tex", "00README.toml names it"),
    "readme in a folder": ({"p/00README.XXX": "z.tex toplevelfile", "p/z.tex": SHORT,
                            "p/main.tex": LONG}, "p/z.tex", "names it"),
    "readme of nonsense": ({"00README.json": '{"sources": 3}', "main.tex": DOC}, "main.tex", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", MAINS)
def test_main_file(case: str) -> None:
    files, main, reason = MAINS[case]
    for order in (files, dict(reversed(files.items()))):
        name, why = choose_main(sources(**order))
        assert name == main
        assert reason in why


def test_a_main_file_that_is_asked_for() -> None:
    files = sources(**{"a.tex": DOC, "s/b.tex": DOC, "t/b.tex": DOC, "s/c.tex": DOC, "x.sty": ""})
    for wanted in ("a.tex", "a", "./a.tex"):
        assert choose_main(files, wanted) == ("a.tex", "it was asked for")
    assert choose_main(files, "c")[0] == "s/c.tex"
    with pytest.raises(PaperkilnError, match=r"^b stands for more .* holds s/b.tex, t/b.tex$"):
        choose_main(files, "b")
    with pytest.raises(PaperkilnError, match=r"^z is not in .* a.tex, s/b.tex, s/c.tex, t/b.tex$"):
        choose_main(files, "z")
    with pytest.raises(PaperkilnError, match="no TeX file"):
        choose_main(sources(**{"x.sty": ""}))


def test_the_choice_takes_linear_time() -> None:
    files = {f"{'d/' * 30}{i}.tex": "\\input{a}" * 50 + DOC for i in range(2000)}
    files |= {f"c{i}.tex": f"\\input{{c{i + 1}}}" for i in range(5000)}
    files["bait.tex"] = "\\documentclass[" * 50_000 + "\\input{" * 50_000 + "\\input " * 50_000
    # tomllib needs the square of a key's parts, and a regex could need that of a line's blanks
    files |= {f"{i}/00README.toml": "a." * 200_000 for i in range(3)}
    files |= {f"00README{i}": (" " * 499 + "\n") * 4000 for i in range(20)}
    start = time.process_time()
    choose_main(sources(**files))
    assert time.process_time() - start < 60


def test_a_name_too_long_for_a_file_is_refused_like_any_other() -> None:
    with pytest.raises(PaperkilnError, match="give an arXiv id"):
        obtain("x" * 300)


@pytest.mark.parametrize("name", ["/papers/mine", "./mine", "../mine", "~/mine", "mine/", "a.tex"])
def test_what_looks_like_a_path_and_is_not_there_is_called_so(name: str) -> None:
    with pytest.raises(PaperkilnError, match="no such file or folder"):
        obtain(name)
