"""The demo: a model that cannot talk, five minutes of training, and the same questions again."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table

from paperkiln.errors import PaperkilnError
from paperkiln.infer.decode import NumpyDecoder
from paperkiln.infer.load import load_run
from paperkiln.lab.probe import answer, probe
from paperkiln.models.init import init_parameters
from paperkiln.spec import RunSpec
from paperkiln.train.display import Display
from paperkiln.train.run import run
from paperkiln.train.tinychat import DEMO_QUESTIONS, PROBE


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
    before = answer(untrained, model.tokenizer, DEMO_QUESTIONS, max_tokens=10)
    after = answer(model.decoder, model.tokenizer, DEMO_QUESTIONS)
    table = Table(
        "question", "before training", "after training", title="Five questions it never saw"
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
    print(f"Everything is in {folder}: model.gguf opens in llama.cpp, Ollama and LM Studio.")
