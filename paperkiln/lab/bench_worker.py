"""One engine of a benchmark, in its own process: set up, then run a slice whenever told to.

`python -m paperkiln.lab.bench_worker JOB` with a JSON job; see `bench_rounds` for the parent.
It answers in JSON lines: the facts of its setup (or why the engine cannot run here), then one
measurement for each number of seconds that arrives on standard input.

An engine is a function that imports what it needs, and returns its facts and one unit of work.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from paperkiln.models.config import ModelConfig
from paperkiln.models.init import init_parameters

Job = dict[str, Any]
# Does some work and returns how much (tokens, or floating-point operations) and its seconds.
Unit = Callable[[], tuple[float, float]]

N_CHECKED_STEPS = 3  # the first losses of every engine, which must agree
N_PROMPT, N_NEW = 8, 48  # tokens of one generation
PEAK_SIZE = 2048


class Unavailable(Exception):
    """The engine cannot run here, and why."""


class Engine(NamedTuple):
    """An engine set up: the facts that the parent checks, and its unit of work."""

    facts: dict[str, Any]
    unit: Unit


def main() -> None:
    """Serve one job until standard input ends."""
    # Libraries print to standard output when they please: it becomes standard error.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def reply(message: dict[str, Any]) -> None:
        print(json.dumps(message), file=replies, flush=True)

    job = json.loads(sys.argv[1])
    try:
        engine = ENGINES[job["engine"]](job)
    except (Unavailable, ImportError) as reason:
        return reply({"unavailable": str(reason)})
    except Exception as error:
        return reply({"failed": f"{type(error).__name__}: {error}".splitlines()[0]})
    reply(engine.facts)
    cpu, wall = time.process_time(), time.perf_counter()
    for line in sys.stdin:
        idle = (time.process_time() - cpu) / max(time.perf_counter() - wall, 1e-9)
        reply(run_slice(engine.unit, float(line)) | {"idle_cpu": idle})
        cpu, wall = time.process_time(), time.perf_counter()
    return None


def run_slice(unit: Unit, seconds: float) -> dict[str, Any]:
    """Repeat a unit for that long, at least once; return its mean and best rate a second."""
    work = spent = best = 0.0
    while spent < seconds:
        done, took = unit()
        work, spent, best = work + done, spent + took, max(best, done / took)
    return {"rate": work / spent, "best": best, "peak_rss_mb": peak_rss_mb()}


def peak_rss_mb() -> float | None:
    """Return the most memory this process has held, in MiB; None where nobody says."""
    try:  # getrusage counts what was held before exec too: the parent's memory, at a fork
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    try:
        import resource
    except ImportError:  # Windows
        return None
    kib = 1024 if sys.platform == "darwin" else 1
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / kib / 1024


# --- training ----------------------------------------------------------------------------------


def train_tokens(vocab_size: int) -> np.ndarray:
    """Return seeded token ids (N,) with the frequencies of text: p(rank) ~ 1 / (rank + 2.7)."""
    weights = 1.0 / (np.arange(vocab_size) + 2.7)
    rng = np.random.default_rng(0)
    return rng.choice(vocab_size, 1 << 16, p=weights / weights.sum()).astype(np.uint16)


def train_spec(job: Job, device: str) -> Any:
    """Return the run that is measured, on one of our devices."""
    from paperkiln.spec import RunSpec

    train = {"batch": job["batch"], "device": device, "schedule": "constant", "warmup_steps": 0}
    return RunSpec(arch=job["config"], train=train | {"lr": 1e-3, "gradmap_every": 0})


def trainer(device: str) -> Callable[[Job], Engine]:
    """Return the setup of our own trainer on a device."""

    def setup(job: Job) -> Engine:
        from paperkiln.engine.device import pick_engine, unavailable
        from paperkiln.train.loop import Tokens, Trainer

        if reason := unavailable(device):
            raise Unavailable(reason)
        spec, config = train_spec(job, device), ModelConfig(**job["config"])
        tokens = train_tokens(config.vocab_size)
        engine, nowhere = pick_engine(device), Path()  # nothing is saved
        imported = peak_rss_mb()
        trainer = Trainer(
            spec, Tokens(tokens, tokens[:0], 0, ""), engine, nowhere, lambda event: None
        )
        return timed_steps(spec, config, lambda update: trainer.step(update).loss, imported)

    return setup


def torch_training(compiled: bool) -> Callable[[Job], Engine]:
    """Return the setup of the torch module: eager, or through torch.compile."""

    def setup(job: Job) -> Engine:
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # no idle compiler processes
        import torch

        from paperkiln.lab.torch_reference import build
        from paperkiln.train.data import batch

        spec, config = train_spec(job, "torch-cpu"), ModelConfig(**job["config"])
        t, tokens = spec.train, train_tokens(config.vocab_size)
        imported = peak_rss_mb()
        module = build(config, init_parameters(config, t.seed)).train()
        weights = dict(module.named_parameters())
        decayed = [p for n, p in weights.items() if p.dim() == 2 and n != "embed.weight"]
        rest = [p for n, p in weights.items() if p.dim() < 2 or n == "embed.weight"]
        optimizer = torch.optim.AdamW(
            [{"params": decayed}, {"params": rest, "weight_decay": 0.0}],
            lr=t.lr, betas=(t.beta1, t.beta2), eps=t.eps, weight_decay=t.weight_decay, fused=True,
        )  # fmt: skip
        loss_of = torch.compile(module, dynamic=False) if compiled else module

        def step(update: int) -> float:
            ids, targets = batch(tokens, t.seed, update, t.batch, config.context_length)
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of(torch.from_numpy(ids), torch.from_numpy(targets))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(module.parameters(), t.clip)
            optimizer.step()
            return loss.item()

        try:
            return timed_steps(spec, config, step, imported)
        except Exception as error:
            if not compiled:
                raise
            first = str(error).strip().splitlines()[0]
            raise Unavailable(f"torch.compile does not work here: {first}") from error

    return setup


def timed_steps(
    spec: Any, config: ModelConfig, step: Callable[[int], float], imported: float | None
) -> Engine:
    """Take the steps whose losses are compared, then offer one step at a time."""
    losses = [step(update) for update in range(1, N_CHECKED_STEPS + 1)]
    updates = iter(range(N_CHECKED_STEPS + 1, sys.maxsize))
    n_tokens = spec.train.batch * config.context_length

    def unit() -> tuple[float, float]:
        started = time.perf_counter()
        step(next(updates))
        return n_tokens, time.perf_counter() - started

    return Engine({"losses": losses, "rss_after_imports_mb": imported}, unit)


# --- greedy decoding ---------------------------------------------------------------------------


def decode_inputs(job: Job) -> tuple[ModelConfig, dict[str, np.ndarray], Any, list[int]]:
    """Return the model, a tokenizer of its size and the ids that every engine is fed."""
    from paperkiln.train.tokenizers import byte_tokenizer

    config = ModelConfig(**job["config"])
    tokenizer = byte_tokenizer()
    if n_more := config.vocab_size - tokenizer.vocab_size:
        tokenizer = _with_merges(tokenizer, n_more)
    ids = np.random.default_rng(1).integers(3, config.vocab_size, N_PROMPT + N_NEW)
    return config, init_parameters(config, seed=0), tokenizer, ids.tolist()


def _with_merges(tokenizer: Any, n_more: int) -> Any:
    """Return a BPE with so many more tokens, each a pair of bytes."""
    from paperkiln.train.tokenizers import Tokenizer

    characters = tokenizer.tokens[3:]
    merges = [(a, b) for a in characters for b in characters][:n_more]
    return Tokenizer("bpe", [*tokenizer.tokens, *(a + b for a, b in merges)], merges)


def numpy_decoding(job: Job) -> Engine:
    """Set up our own generation loop."""
    from paperkiln.infer.decode import NumpyDecoder
    from paperkiln.infer.generate import generate
    from paperkiln.infer.sampling import Sampling

    config, params, tokenizer, ids = decode_inputs(job)
    imported, greedy = peak_rss_mb(), Sampling(temperature=0)
    model = NumpyDecoder(config, params)
    cache = model.new_cache()
    logits = model.prefill(ids[:N_PROMPT], cache)
    for token in ids[N_PROMPT:]:  # teacher forcing, through the path that is measured
        logits = model.step(token, cache)

    def unit() -> tuple[float, float]:
        started = time.perf_counter()
        *_, last = generate(
            model, tokenizer, ids[:N_PROMPT], max_new_tokens=N_NEW, sampling=greedy, end_ids=()
        )
        return len(last.result.ids), time.perf_counter() - started

    return Engine(_decode_facts(logits, imported), unit)


def torch_decoding(job: Job) -> Engine:
    """Set up torch with a preallocated cache."""
    import torch

    from paperkiln.lab.torch_reference import build, generate

    config, params, _, ids = decode_inputs(job)
    imported = peak_rss_mb()
    module = build(config, params).eval()
    with torch.inference_mode():
        logits = module.head(module.hidden(torch.tensor([ids])))[0, -1].numpy()

    def unit() -> tuple[float, float]:
        started = time.perf_counter()
        new = generate(module, ids[:N_PROMPT], N_NEW)
        return len(new), time.perf_counter() - started

    return Engine(_decode_facts(logits, imported), unit)


def llama_cpp_decoding(dtype: str) -> Callable[[Job], Engine]:
    """Return the setup of llama.cpp on a GGUF file of that tensor type."""

    def setup(job: Job) -> Engine:
        import xllamacpp

        from paperkiln.formats.gguf_writer import write_gguf

        config, model, tokenizer, ids = decode_inputs(job)
        imported = peak_rss_mb()
        settings = xllamacpp.CommonParams()
        settings.n_ctx, settings.n_parallel = config.context_length, 1
        settings.warmup, settings.verbosity = False, 0
        settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = job["threads"]
        with tempfile.TemporaryDirectory() as folder:
            settings.model.path = str(Path(folder) / "model.gguf")
            write_gguf(settings.model.path, config, model, tokenizer, dtype=dtype)
            server = xllamacpp.Server(settings)

        def complete(prompt: list[int], n: int, **more: Any) -> dict[str, Any]:
            body = {"prompt": prompt, "n_predict": n, "temperature": 0, "cache_prompt": False}
            request = urllib.request.Request(
                f"{server.listening_address}/completion",
                json.dumps(body | {"ignore_eos": True} | more).encode(),
                {"Content-Type": "application/json"},
            )
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)

        def unit() -> tuple[float, float]:
            t = complete(ids[:N_PROMPT], N_NEW)["timings"]
            return t["predicted_n"], (t["prompt_ms"] + t["predicted_ms"]) / 1000

        # The server reports log p of every candidate when the sampled token is a whole character.
        [letter] = tokenizer.encode("a")
        forced = {"n_probs": config.vocab_size, "logit_bias": [[letter, 1e5]], "ignore_eos": False}
        log_p = np.full(config.vocab_size, np.nan)
        for entry in complete(ids, 1, **forced)["completion_probabilities"][0]["top_logprobs"]:
            log_p[entry["id"]] = entry["logprob"]
        return Engine(_decode_facts(log_p, imported), unit)

    return setup


def _decode_facts(logits: np.ndarray, imported: float | None) -> dict[str, Any]:
    """Return log p of the next token after the forced ids, (V,), which engines must agree on."""
    shifted = logits.astype(np.float64) - logits.max()
    log_p = shifted - np.log(np.exp(shifted).sum())
    return {"log_p": log_p.tolist(), "rss_after_imports_mb": imported}


# --- the machine -------------------------------------------------------------------------------


def sgemm_peak(job: Job) -> Engine:
    """Set up large square products, by turns with BLAS's threads and with one BLAS each.

    The latter is how the tape runs: rows dealt to as many Python threads as there are cores.
    """
    from threadpoolctl import threadpool_limits

    n, n_cores = PEAK_SIZE, os.cpu_count() or 1
    a, b = np.random.default_rng(0).random((2, n, n), dtype=np.float32)
    out = np.empty((n, n), np.float32)
    pool = ThreadPoolExecutor(n_cores)
    rows = np.array_split(np.arange(n), n_cores)
    bands = [slice(r[0], r[-1] + 1) for r in rows]

    def in_bands() -> None:
        list(pool.map(lambda band: np.matmul(a[band], b, out=out[band]), bands))

    def ways() -> Iterator[tuple[Callable[[], Any], int]]:
        while True:
            yield lambda: np.matmul(a, b, out=out), n_cores
            yield in_bands, 1

    turns = ways()

    def unit() -> tuple[float, float]:
        product, n_threads = next(turns)
        with threadpool_limits(n_threads, user_api="blas"):
            started = time.perf_counter()
            product()
            return 2 * n**3, time.perf_counter() - started

    return Engine({"rss_after_imports_mb": peak_rss_mb()}, unit)


ENGINES: dict[str, Callable[[Job], Engine]] = {
    "tape": trainer("cpu"),
    "tape-fast": trainer("cpu-fast"),
    "torch-eager": torch_training(compiled=False),
    "torch-compile": torch_training(compiled=True),
    "numpy": numpy_decoding,
    "torch": torch_decoding,
    "llama.cpp-f32": llama_cpp_decoding("f32"),
    "llama.cpp-q8_0": llama_cpp_decoding("q8_0"),
    "sgemm-peak": sgemm_peak,
}

if __name__ == "__main__":
    main()
