"""The reader of papers runs in a browser: the standard library, no file system, no threads."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path

import paperkiln.papers

NOTE = Path(__file__).parents[1] / "specs" / "tinychat-quick.tex"

# What only the command line needs: the network, the cache, the terminal.
DESKTOP = {"arxiv", "client", "cache", "obtain", "report"}

BLOCKED = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"numpy", "torch", "scipy", "pydantic", "requests", "rich",
                                      "tokenizers", "gguf", "filelock", "platformdirs",
                                      "subprocess", "multiprocessing", "socket"}:
            raise ImportError(f"{name} is blocked")
sys.meta_path.insert(0, Blocker())
"""


def python(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_imports_with_the_standard_library_alone() -> None:
    found = [m.name for m in pkgutil.walk_packages(paperkiln.papers.__path__, "paperkiln.papers.")]
    safe = [name for name in found if name.rpartition(".")[2] not in DESKTOP]
    assert len(safe) > 20
    python(BLOCKED + "\n".join(f"import {name}" for name in safe))


def test_a_paper_is_read_from_bytes_to_every_form() -> None:
    script = f"""
from paperkiln.papers.emit import to_hf, to_python, to_spec
from paperkiln.papers.extract import extract, read_document
from paperkiln.papers.emit.page import to_html
from paperkiln.papers.source.files import open_source
data = open({str(NOTE)!r}, "rb").read()
document = read_document(open_source(data, "note.tex"))
architecture = extract(document)
print(architecture.asserted("d_ff"), to_spec(architecture, "cpu")[0]["arch"]["activation"],
      to_hf(architecture)[0]["model_type"], len(to_python(architecture)) > 500,
      to_html(architecture, document).count("<html"))
"""
    assert python(BLOCKED + script) == "352 swiglu llama True 1\n"
