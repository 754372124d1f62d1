"""Torch is an extra: nothing imports it before a torch device is asked for."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import paperkiln

PACKAGE = Path(paperkiln.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
THE_ONE = PACKAGE / "engine" / "torch_ops.py"
HEAVY = {"torch", "torchvision", "transformers", "accelerate"}


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield the dotted names a module imports when it is imported itself."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module or ''}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from imported(node)


def brings_torch(name: str) -> bool:
    parts = name.split(".")
    return parts[0] in HEAVY or "torch_ops" in parts or name.startswith("safetensors.torch")


def test_the_walk_sees_what_it_should() -> None:
    text = "try:\n  import torch.nn\nexcept ImportError: pass\ndef f():\n  import transformers\n"
    assert list(imported(ast.parse(text))) == ["torch.nn"]
    assert brings_torch("paperkiln.engine.torch_ops")
    assert not brings_torch("paperkiln.lab.torch_reference")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_no_module_imports_torch_at_its_top(path: Path) -> None:
    found = [n for n in imported(ast.parse(path.read_text("utf-8"))) if brings_torch(n)]
    if path == THE_ONE:
        assert "torch" in found
    else:
        assert not found


def test_importing_the_whole_package_leaves_torch_out() -> None:
    modules = [
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in FILES
        if path != THE_ONE and path.name != "__main__.py"
    ]
    lines = [f"import {m}" for m in modules] + ["import sys", "assert 'torch' not in sys.modules"]
    command = [sys.executable, "-c", "\n".join(lines)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_what_is_imported_is_a_dependency_or_has_its_extra() -> None:
    """A fresh install runs every verb: only these few say what to install first."""
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text("utf-8"))["project"]
    required = {re.match(r"[\w-]+", line)[0] for line in project["dependencies"]}
    optional = {"torch", "matplotlib", "distributed", "xllamacpp"}
    given = {"paperkiln", "pyodide"}  # itself, and what the browser's Python has
    found = set()
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add((node.module or "").partition(".")[0])
    assert found - set(sys.stdlib_module_names) - given == required | optional
