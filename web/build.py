"""Builds the browser pages: `python web/build.py [FOLDER]` makes FOLDER/app, for any static host.

    pages, styles, scripts     as they stand here, with what only a build knows filled in
    engine/                    ember, compiled from engine/ember.c
    pyodide/, wheels/          Python and its packages, from npm and PyPI, pinned by hash
    atlas/                     the atlas's elements, and the library that draws their plots
    models/                    the shipped models, each with its record and card
    manifest.json              every file with its size and hash: what the service worker keeps

Downloads are kept outside the tree, in the cache folder, and checked by hash each time.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT))

from paperkiln.cache import cache_folder  # noqa: E402
from paperkiln.errors import PaperkilnError  # noqa: E402
from paperkiln.models.config import PRESETS  # noqa: E402
from paperkiln.papers.emit import page as evidence_page  # noqa: E402
from paperkiln.spec import json_schema  # noqa: E402

# Of the archives of package.json's versions on npm.
SHA256 = {
    "pyodide": "66b7949e5a0cba2250b586d7e368bf12fb482800748d182c4618254b685ffaa0",
    "d3": "7e36605710a2ba54846797c8c6d888911341b215ae53257dc32a49a0b824355e",
    "@observablehq/plot": "4dcc9f7afd10caee8b2283c0075a5765610cfbbf6d7d93cdb153b3b5d3501afc",
    "@wllama/wllama": "a9eaac205ff9a1d6fdbea395a48652bd5febc56511a7b66b736d862bf726d2d5",
}
PYODIDE_FILES = (
    "pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip",
)  # fmt: skip
# What the visitor's browser calls itself, so that pip picks the wheels for it.
PLATFORM = ("--platform", "pyemscripten_2026_0_wasm32", "--python-version", "3.14",
            "--implementation", "cp", "--abi", "cp314", "--abi", "none")  # fmt: skip
PAGES = ("chat.html", "spec.html", "paper.html")
PLOT_FILES = {"d3": "dist/d3.min.js", "@observablehq/plot": "dist/plot.umd.min.js"}
SOURCES = ("*.js", "*.css", "*.svg", "elements/*.js", "demos/*.js", "atlas/*.js")
A_DAY = 86_400  # s
MODEL_FILES = ("model.gguf", "record.json", "card.md")


def build(out: Path, models: Path, paper_proxy: str = "") -> Path:
    """Build the pages into `out`/app and return that folder. Raises PaperkilnError."""
    app = out / "app"
    shutil.rmtree(app, ignore_errors=True)
    app.mkdir(parents=True)
    for pattern in SOURCES:
        for source in sorted(HERE.glob(pattern)):
            copy(source, app / source.relative_to(HERE))
    build_engine(app / "engine")
    pyodide = take_pyodide(app / "pyodide")
    wheels = take_wheels(app / "wheels")
    take_plot(app / "atlas")
    shipped = take_models(models, app / "models")
    copy(ROOT / "specs" / "tinychat-quick.tex", app / "example.tex")
    write_json(app / "presets.json", presets())
    write_json(app / "run.schema.json", json_schema())
    write_json(app / "config.json", {"paperProxy": paper_proxy})
    write_pages(app, paper_proxy)
    write_manifest(app, pyodide=pyodide, wheels=wheels, models=shipped)
    return app


# --- what is fetched --------------------------------------------------------------------------


def downloads() -> Path:
    """Return the folder that keeps what was downloaded."""
    return cache_folder() / "web"


def npm_package(name: str) -> tarfile.TarFile:
    """Return a package of npm, fetched unless it is kept already."""
    pinned = json.loads((HERE / "package.json").read_text())
    version = (pinned["dependencies"] | pinned["devDependencies"])[name]
    file = f"{name.rpartition('/')[2]}-{version}.tgz"
    archive = downloads() / file
    if not archive.exists() or sha256(archive.read_bytes()) != SHA256[name]:
        registry = os.environ.get("NPM_CONFIG_REGISTRY", "https://registry.npmjs.org").rstrip("/")
        url = f"{registry}/{name}/-/{file}"
        print(f"fetching {url}", file=sys.stderr)
        try:
            with urllib.request.urlopen(url, timeout=300) as response:
                data = response.read()
        except OSError as error:
            raise PaperkilnError(
                f"{url} cannot be fetched ({error}); "
                f"fetch it by other means and put it at {archive}"
            ) from None
        if sha256(data) != SHA256[name]:
            raise PaperkilnError(f"{url}: its SHA-256 is {sha256(data)}, not the pinned one")
        archive.parent.mkdir(parents=True, exist_ok=True)
        archive.write_bytes(data)
    return tarfile.open(fileobj=io.BytesIO(archive.read_bytes()))


def take_pyodide(out: Path) -> dict[str, str]:
    """Unpack of Pyodide what a browser needs; return what it says of its build."""
    out.mkdir()
    with npm_package("pyodide") as package:
        for name in PYODIDE_FILES:
            (out / name).write_bytes(package.extractfile(f"package/{name}").read())
        return json.load(package.extractfile("package/pyodide-lock.json"))["info"]


def take_plot(out: Path) -> None:
    """Unpack the library that draws the atlas's plots, and the one under it, with their terms."""
    for name, path in PLOT_FILES.items():
        file = out / Path(path).name
        with npm_package(name) as package:
            file.write_bytes(package.extractfile(f"package/{path}").read())
            terms = package.extractfile("package/LICENSE").read()
            file.with_suffix(".LICENSE.txt").write_bytes(terms)


def take_wheels(out: Path) -> dict[str, str]:
    """Put our own wheel and pydantic's into the folder; return their paths in the app by name."""
    requirements = HERE / "requirements.txt"
    pinned = set(re.findall(r"sha256:(\w+)", requirements.read_text()))
    kept = downloads() / "wheels"
    kept.mkdir(parents=True, exist_ok=True)

    def found() -> dict[str, Path]:
        return {h: p for p in kept.glob("*.whl") if (h := sha256(p.read_bytes())) in pinned}

    if found().keys() != pinned:
        pip("download", "--no-deps", "--require-hashes", "--only-binary", ":all:", *PLATFORM,
            "--requirement", str(requirements), "--dest", str(kept))  # fmt: skip
    out.mkdir()
    for path in [*found().values(), own_wheel()]:
        copy(path, out / path.name)
    return {p.name.split("-")[0]: f"wheels/{p.name}" for p in sorted(out.glob("*.whl"))}


def own_wheel() -> Path:
    """Return our wheel, built anew when a source has changed."""
    sources = [ROOT / "pyproject.toml", *sorted((ROOT / "paperkiln").rglob("*"))]
    told = hashlib.sha256()
    for path in sources:
        if path.is_file() and "__pycache__" not in path.parts:
            told.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    kept = downloads() / "own"
    folder = kept / told.hexdigest()[:16]
    if not list(folder.glob("*.whl")):
        kept.mkdir(parents=True, exist_ok=True)
        for old in kept.iterdir():  # but not what another build has just made
            if time.time() - old.stat().st_mtime > A_DAY:
                shutil.rmtree(old, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=kept) as aside:
            pip("wheel", str(ROOT), "--no-deps", "--wheel-dir", aside)
            folder.mkdir(exist_ok=True)
            (wheel,) = Path(aside).glob("*.whl")
            wheel.replace(folder / wheel.name)
    return next(folder.glob("*.whl"))


def pip(*arguments: str) -> None:
    """Run pip; raise PaperkilnError with its last complaint."""
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1577836800"}  # the same wheel every time
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        complaint = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise PaperkilnError(f"pip {arguments[0]} failed: {complaint}")


# --- what is made -----------------------------------------------------------------------------


def build_engine(out: Path) -> None:
    """Compile ember and put its loader beside it."""
    path = HERE / "engine" / "build.py"
    spec = importlib.util.spec_from_file_location("engine_build", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        module.build(out)
    except RuntimeError as error:
        raise PaperkilnError(str(error)) from None
    copy(HERE / "engine" / "ember.js", out / "ember.js")


def take_models(source: Path, out: Path) -> list[dict[str, object]]:
    """Copy the shipped models; return what the chat page lists, the first being its default."""
    shipped = []
    for folder in sorted(p.parent for p in source.glob("*/model.gguf")):
        for name in MODEL_FILES:
            if (folder / name).exists():
                copy(folder / name, out / folder.name / name)
        size = (folder / "model.gguf").stat().st_size
        shipped.append({"name": folder.name, "path": f"models/{folder.name}/", "size": size})
    if not shipped:
        raise PaperkilnError(f"{source} holds no NAME/model.gguf: the chat page needs a model")
    return shipped


def presets() -> dict[str, object]:
    """Return what the spec builder starts from: whole runs, and shapes of the model."""
    runs = {path.stem: json.loads(path.read_text()) for path in sorted(ROOT.glob("specs/*.json"))}
    return {
        "runs": {n: spec for n, spec in runs.items() if "." not in n and "arch" in spec},
        "arch": PRESETS,
    }


def write_pages(app: Path, paper_proxy: str) -> None:
    """Write the pages, their security policies completed."""
    evidence = Path(evidence_page.__file__).parent
    parts = urlsplit(paper_proxy)
    filled = {
        "{{evidence-style}}": digest(evidence / "page.css"),
        "{{evidence-script}}": digest(evidence / "page.js"),
        "{{paper-proxy}}": f" {parts.scheme}://{parts.netloc}" if parts.netloc else "",
    }
    for name in PAGES:
        text = (HERE / name).read_text(encoding="utf-8")
        for key, value in filled.items():
            text = text.replace(key, value)
        (app / name).write_text(text, encoding="utf-8")


def write_manifest(app: Path, **known: object) -> None:
    """Write manifest.json, and the same list into the service worker."""
    mutable = {"sw.js", "config.json"}  # the browser checks the first, the site's owner edits both
    files = {}
    for path in sorted(p for p in app.rglob("*") if p.is_file()):
        name = path.relative_to(app).as_posix()
        if name not in mutable and not name.startswith("atlas/"):  # of the docs: not kept offline
            data = path.read_bytes()
            files[name] = {"size": len(data), "sha256": sha256(data)}
    version = sha256(json.dumps(files).encode())[:16]
    write_json(app / "manifest.json", {"version": version, **known, "files": files})
    hashes = {name: file["sha256"][:16] for name, file in files.items()}
    hashes["manifest.json"] = version
    worker = (app / "sw.js").read_text(encoding="utf-8")
    filled = worker.replace("const FILES = {};", f"const FILES = {json.dumps(hashes, indent=1)};")
    assert filled != worker
    (app / "sw.js").write_text(filled, encoding="utf-8")


# --- small things -----------------------------------------------------------------------------


def copy(source: Path, target: Path) -> None:
    """Copy a file, making its folder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def write_json(path: Path, value: object) -> None:
    """Write JSON in UTF-8."""
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def sha256(data: bytes) -> str:
    """Return the SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def digest(path: Path) -> str:
    """Return a file's hash as a security policy writes it, for the file set inside a page."""
    text = path.read_text(encoding="utf-8")
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def main() -> int:
    """Build from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", nargs="?", type=Path, default=ROOT / "build" / "site")
    parser.add_argument("--models", type=Path, default=HERE / "models", help="folders of models")
    parser.add_argument("--paper-proxy", default="", metavar="URL",
                        help="where the paper page may fetch sources: URL/src/ID")  # fmt: skip
    args = parser.parse_args()
    try:
        app = build(args.out, args.models, args.paper_proxy)
    except PaperkilnError as error:
        print(f"paperkiln: {error}", file=sys.stderr)
        return 2
    size = sum(p.stat().st_size for p in app.rglob("*") if p.is_file())
    print(f"{app} {size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
