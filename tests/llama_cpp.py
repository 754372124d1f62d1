"""llama.cpp, the engine nobody here wrote: serves a GGUF file on loopback and answers questions."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paperkiln.train.tokenizers import Tokenizer

# A process of its own that is killed at the end: the server's destructor has been seen to wait
# for ever. argv: the file, and whether the cache is to be float32, as ours, instead of float16.
_SERVE = """
import sys, time, xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_ctx, params.n_parallel, params.warmup, params.verbosity = 128, 1, False, 0
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
if sys.argv[2] == "exact":
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
server = xllamacpp.Server(params)
print("listening:", server.listening_address, flush=True)
time.sleep(600)
"""


@contextmanager
def llama_cpp(path: Path, exact: bool = True) -> Iterator[Callable[[str, dict[str, Any]], Any]]:
    """Serve a file with llama.cpp on loopback; yields a function that posts JSON to it."""
    pytest.importorskip("xllamacpp")
    arguments = [sys.executable, "-c", _SERVE, str(path), "exact" if exact else ""]
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=said, text=True) as server,
    ):
        try:
            lines = iter(server.stdout.readline, "")
            address = next((x.split()[1] for x in lines if x.startswith("listening:")), None)
            assert address, said.seek(0) or said.read()
            yield lambda route, body: _post(address + route, body)
        finally:
            server.kill()


def same_ids_there(tokenizer: Tokenizer, texts: Iterable[str], path: Path) -> None:
    """Every text has the ids of llama.cpp, alone and with the tokens that begin a prompt."""
    with llama_cpp(path) as post:
        for text in texts:
            for specials in (False, True):
                body = {"content": text, "add_special": False, "parse_special": specials}
                found = post("/tokenize", body)["tokens"]
                assert tokenizer.encode(text, specials=specials) == found, text
        found = post("/tokenize", {"content": "hi", "add_special": True})["tokens"]
        assert tokenizer.begin(tokenizer.encode("hi")) == found


def _post(url: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)


def greedy_llama_cpp(post: Callable[[str, dict[str, Any]], Any], prompt: Any, n: int) -> Any:
    body = {"prompt": prompt, "n_predict": n, "temperature": 0, "cache_prompt": False}
    return post("/completion", body | {"return_tokens": True})["tokens"]


def log_probabilities_llama_cpp(
    post: Callable[[str, dict[str, Any]], Any], ids: list[int], n_vocab: int, printable: int
) -> np.ndarray:
    """Return log p(next | ids), (V,); the sampled token is forced, or it may not be reported."""
    body = {"prompt": ids, "n_predict": 1, "n_probs": n_vocab, "cache_prompt": False}
    reply = post("/completion", body | {"temperature": 0, "logit_bias": [[printable, 1e5]]})
    found = np.full(n_vocab, np.nan)
    for entry in reply["completion_probabilities"][0]["top_logprobs"]:
        found[entry["id"]] = entry["logprob"]
    return found
