"""The demo: a model that cannot talk, some minutes of training, and the same questions again."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from paperkiln.errors import PaperkilnError
from paperkiln.infer.chat_template import encode_chat
from paperkiln.infer.decode import NumpyDecoder
from paperkiln.infer.generate import generate
from paperkiln.infer.load import load_run
from paperkiln.infer.sampling import Sampling
from paperkiln.lab.score import answer, probe
from paperkiln.models.init import init_parameters
from paperkiln.output import printable
from paperkiln.papers.emit import to_spec
from paperkiln.papers.extract import extract, read_document
from paperkiln.papers.report import show
from paperkiln.papers.source.obtain import obtain
from paperkiln.spec import RunSpec, apply_override, parse_spec
from paperkiln.train.display import Display
from paperkiln.train.run import run, where_gguf_opens
from paperkiln.train.tinychat import DEMO_QUESTIONS, PROBE
from paperkiln.train.tokenizers import Tokenizer


def babble(model: NumpyDecoder, tokenizer: Tokenizer, question: str, n_tokens: int = 8) -> str:
    """Return what a model samples after a question, end tokens passed over: it may know none."""
    prompt = encode_chat(tokenizer, [("user", question)], add_generation_prompt=True)
    *_, last = generate(
        model, tokenizer, prompt, max_new_tokens=n_tokens, sampling=Sampling(1.0, seed=0),
        end_ids=(),
    )  # fmt: skip
    return printable(" ".join(last.result.text.split()))


def spec_from_paper(path: str, overrides: list[str]) -> RunSpec:
    """Read a paper's architecture, show it, and return the spec that trains it on small talk."""
    architecture = extract(read_document(obtain(path)[0]))
    show(architecture, Console(file=sys.stdout, highlight=False))
    print()
    values, _ = to_spec(architecture)
    values["name"] = Path(path).stem
    values["data"]["corpus"] = "tinychat"
    every = max(values["train"]["steps"] // 13, 1)
    values["train"] |= {"eval_every": every, "checkpoint_every": every}
    for override in overrides:
        apply_override(values, override)
    return parse_spec(values, path)


def demo(spec: RunSpec) -> None:
    """Train the spec, show answers before and after, and print the probe score.

    A demo that was stopped is taken up where it was; a finished one is shown again.
    """
    if spec.data.corpus != "tinychat":
        raise PaperkilnError("demo asks small-talk questions: its spec must train on tinychat")
    with Display() as display:
        folder = run(spec, resume=True, listen=display)
    model = load_run(folder)
    untrained = NumpyDecoder(model.config, init_parameters(model.config, spec.train.seed))
    before = [babble(untrained, model.tokenizer, question) for question in DEMO_QUESTIONS]
    after = answer(model.decoder, model.tokenizer, DEMO_QUESTIONS)
    table = Table(
        "question",
        "before training (sampled)",
        "after training (greedy)",
        title="Five questions it never saw",
    )
    for row in zip(DEMO_QUESTIONS, before, after, strict=True):
        table.add_row(*(cell.replace("[", r"\[") for cell in row))
    Console(file=sys.stdout).print(table)
    score = probe(model.decoder, model.tokenizer)
    print(
        f"Probe: {score.overall:.1%} of {len(PROBE)} held-out questions answered in kind "
        f"(the same answers shuffled: {score.chance:.1%})."
    )
    print(f"Keep chatting:  {sys.executable} -m paperkiln chat {folder}")
    opens = where_gguf_opens(spec).replace("`", "")
    print(f"Everything is in {folder}. {opens}")
