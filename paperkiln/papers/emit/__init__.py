"""From a paper's architecture to what others read: a run spec, config.json, a Python script."""

from __future__ import annotations

from paperkiln.papers.emit.hf import to_hf
from paperkiln.papers.emit.python import to_python
from paperkiln.papers.emit.spec import to_spec

__all__ = ["to_hf", "to_python", "to_spec"]
