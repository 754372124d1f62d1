"""ember under wasmtime: the module compiled once, an instance for each model."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from paperkiln.formats.gguf_writer import write_gguf
from paperkiln.infer import ember as host
from paperkiln.infer import generate as numpy_host
from paperkiln.infer.ember import Ember, load
from paperkiln.infer.load import LoadedModel
from paperkiln.infer.sampling import Sampling
from paperkiln.models.config import ModelConfig, parameter_shapes
from paperkiln.train.tokenizers import Tokenizer, byte_tokenizer

ENGINE = Path(__file__).parents[1] / "web" / "engine"
GOLDEN_GGUF = Path(__file__).parent / "golden" / "golden.gguf"
GOLDEN: dict[str, Any] = json.loads(GOLDEN_GGUF.with_suffix(".json").read_text(encoding="utf-8"))
BYTES = byte_tokenizer()


def load_build() -> ModuleType:
    """Import web/engine/build.py, which is a script and in no package."""
    spec = importlib.util.spec_from_file_location("ember_build", ENGINE / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Wasmtime:
    """A `Machine` in this process; its memory grows to `max_bytes` at most."""

    def __init__(self, path: Path, max_bytes: int | None = None) -> None:
        import wasmtime

        engine, module = _compiled(path)
        self._store = wasmtime.Store(engine)
        if max_bytes is not None:
            self._store.set_limits(memory_size=max_bytes)
        exports = wasmtime.Instance(self._store, module, []).exports(self._store)
        self._exports, self._memory = exports, exports["memory"]

    def call(self, name: str, *arguments: float) -> int:
        value = self._exports[name](self._store, *arguments)
        return value & 0xFFFFFFFF if isinstance(value, int) else value

    def read(self, address: int, n: int) -> bytes:
        return bytes(self._memory.read(self._store, address, address + n))

    def write(self, address: int, data: bytes) -> None:
        self._memory.write(self._store, data, address)


@lru_cache
def _compiled(path: Path) -> tuple:
    import wasmtime

    engine = wasmtime.Engine()
    return engine, wasmtime.Module.from_file(engine, str(path))


def open_in_ember(module: Path, gguf: Path | bytes, **options: object) -> Ember:
    """Return the model of a GGUF file, opened in a fresh instance of the engine."""
    data = gguf if isinstance(gguf, bytes) else gguf.read_bytes()
    return load(Wasmtime(module), data, **options)


@pytest.fixture(scope="session")
def modules(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Both builds of the engine, plain and relaxed."""
    pytest.importorskip("wasmtime", reason="wasmtime is not installed (the extra `test`)")
    return load_build().build(tmp_path_factory.mktemp("engine"))


def write_model(
    folder: Path, tokenizer: Tokenizer = BYTES, dtype: str = "f32", std: float = 1.0, **fields: Any
) -> Path:
    """Write a random model whose norms, biases and nonlinearities all leave their mark."""
    config = ModelConfig(**{"vocab_size": tokenizer.vocab_size} | fields)
    rng = np.random.default_rng(7)
    params = {}
    for name, shape in parameter_shapes(config).items():
        gain = len(shape) == 1 and name.endswith("weight")
        scale = 0.15 if len(shape) == 1 else shape[1] ** -0.5
        params[name] = (gain + rng.normal(0, std * scale, shape)).astype(np.float32)
    path = folder / "model.gguf"
    write_gguf(path, config, params, tokenizer, dtype=dtype)
    return path


def numpy_tokens(model: LoadedModel, ids: Sequence[int], n: int, sampling: Sampling) -> list[int]:
    pieces = numpy_host.generate(
        model.decoder, model.tokenizer, ids, max_new_tokens=n, sampling=sampling, end_ids=()
    )
    return list(pieces)[-1].result.ids


def ember_tokens(model: Ember, ids: Sequence[int], n: int, sampling: Sampling) -> list[int]:
    pieces = host.generate(model, ids, max_new_tokens=n, sampling=sampling, end_ids=())
    return list(pieces)[-1].result.ids
