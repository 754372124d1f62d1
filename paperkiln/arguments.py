"""What each verb of the command line accepts, and its help."""

from __future__ import annotations

import argparse
from typing import Any

import paperkiln
from paperkiln.atlas import cli as atlas


def build_parser(cli: Any) -> argparse.ArgumentParser:
    """Return the parser of every verb; `cli` is the module with a function for each."""
    parser = argparse.ArgumentParser(
        prog="paperkiln",
        description="From a paper to its model: read it, train it, export it, talk to it.",
    )
    parser.add_argument("--version", action="version", version=paperkiln.__version__)
    verbs = parser.add_subparsers(metavar="VERB", required=True)

    p = _verb(
        verbs, "paper", cli.paper, "paper 1706.03762", "paper my-paper.tar.gz --html report.html",
        "paper 1706.03762 --spec transformer.json --fit cpu",
    )  # fmt: skip
    p.add_argument(
        "paper", help="an arXiv id or link, a .tex, .tar.gz, .gz, .zip or folder, or - for stdin"
    )
    p.add_argument("--main", metavar="FILE", help="the main .tex file, if the choice is wrong")
    p.add_argument("--size", metavar="NAME", help="of several models, this one, as base or 1.4B")
    _json(p)
    p.add_argument("--html", metavar="FILE", help="write a page: values beside the source")
    p.add_argument("--spec", metavar="FILE", help="write a run spec for: paperkiln run FILE")
    p.add_argument("--hf", metavar="FILE", help="write a config.json for transformers")
    p.add_argument("--python", metavar="FILE", help="write a script that builds the model")
    p.add_argument(
        "--fit", metavar="SIZE",
        help="scale --spec and --python to this many parameters (3M, 500k), or for a cpu",
    )  # fmt: skip
    p.add_argument("--offline", action="store_true", help="use what was fetched before, no network")
    p.add_argument("--refresh", action="store_true", help="fetch it again")

    p = _verb(
        verbs, "paper-bench", cli.paper_bench, "paper-bench --papers ../shared/papers",
        "paper-bench --arxiv --json",
    )  # fmt: skip
    what = p.add_mutually_exclusive_group(required=True)
    what.add_argument("--papers", metavar="DIR", help="a folder of sources with manifest.jsonl")
    what.add_argument(
        "--arxiv", action="store_true", help="the shipped truth of 40 papers, fetched from arXiv"
    )
    p.add_argument("--offline", action="store_true", help="only those that were fetched before")
    _json(p)

    p = _verb(verbs, "plan", cli.plan, "plan specs/tinychat-quick.json --set train.lr=1e-3")
    p.add_argument("spec", nargs="?", help="a spec file or a run folder")
    _spec_options(p)
    p.add_argument("--schema", action="store_true", help="print the JSON Schema of specs instead")
    _json(p)

    p = _verb(
        verbs, "run", cli.run,
        "run specs/tinychat-quick.json", "run runs/tinychat-quick --resume",
        "run my.json --set train.lr=1e-3 --set arch.n_layers=4 --device torch-cpu",
    )  # fmt: skip
    p.add_argument("spec", help="a spec file, or a run folder to go on with")
    _spec_options(p)
    p.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    p.add_argument("--overwrite", action="store_true", help="delete the run that is there")

    p = _verb(
        verbs, "demo", cli.demo, "demo specs/tinychat-quick.tex", "demo specs/tinychat-quick.json"
    )
    p.add_argument("spec", metavar="paper", help="a paper, or a spec that trains on tinychat")
    _spec_options(p)

    p = _verb(
        verbs, "chat", cli.chat, "chat runs/tinychat-quick", "chat model.gguf --temperature 0"
    )
    _model_options(p)
    p.add_argument(
        "--system", metavar="TEXT", default="", help="system message, if the model takes one"
    )

    p = _verb(verbs, "sample", cli.sample, 'sample runs/shakespeare --prompt "ROMEO:" --tokens 200')
    _model_options(p)
    p.add_argument("--prompt", default="", help="text to continue; none starts a new text")
    p.add_argument("--stop", action="append", default=[], help="end before this text (repeatable)")
    p.add_argument("--no-cache", action="store_true", help="recompute every token: same text")
    _json(p)

    p = _verb(
        verbs, "evaluate", cli.evaluate, "evaluate runs/shakespeare --text other.txt",
        "evaluate runs/tinychat-quick --probe",
    )  # fmt: skip
    p.add_argument("model", help="a run folder, a Hugging Face folder or a GGUF file")
    what = p.add_mutually_exclusive_group()
    what.add_argument("--text", help="a text file or folder; by default the run's validation split")
    what.add_argument("--probe", action="store_true", help="score the TinyChat questions instead")
    p.add_argument("--device", default="cpu", help="where to compute (default: cpu)")
    _json(p)

    p = _verb(
        verbs, "export", cli.export, "export runs/tinychat-quick --format gguf --dtype q8_0",
        "export runs/tinychat-quick --format hf --out my-model",
    )  # fmt: skip
    p.add_argument("model", help="a run folder, a Hugging Face folder or a GGUF file")
    p.add_argument("--format", required=True, choices=["gguf", "safetensors", "hf"])
    p.add_argument("--dtype", default="f32", choices=["f32", "f16", "q8_0"], help="gguf only")
    p.add_argument("--out", help="where to write; by default beside the model")
    _json(p)

    p = _verb(verbs, "info", cli.info, "info runs/tinychat-quick", "info model.gguf --json")
    p.add_argument("path", help="a GGUF or safetensors file, or a run folder")
    _json(p)

    p = _verb(verbs, "figure", cli.figure, "figure runs/shakespeare --out loss.svg")
    p.add_argument("runs", nargs="+", help="run folders, one colour each")
    p.add_argument("--out", required=True, help="the .svg or .png to write")

    nested = _group(verbs, "data", "make or prepare a corpus", "data tinychat --out tinychat.txt")
    p = _verb(nested, "tinychat", cli.data_tinychat, "data tinychat --out tinychat.txt")
    p.add_argument("--out", default="tinychat.txt", help="file to write (default: %(default)s)")
    p.add_argument("--overwrite", action="store_true", help="replace the file that is there")
    p.add_argument("--dialogues", type=int, default=20_000, help="how many (default: %(default)s)")
    p.add_argument("--seed", type=int, default=1, help="of the generator (default: %(default)s)")
    p = _verb(nested, "prepare", cli.data_prepare, "data prepare specs/shakespeare.json")
    p.add_argument("spec", help="a spec file")
    _spec_options(p)

    nested = _group(verbs, "bench", "measure speed side by side", "bench train --preset quick")
    p = _verb(nested, "train", cli.bench_train, "bench train --preset quick --json")
    p.add_argument("--preset", action="append", choices=["quick", "small", "medium"])
    p.add_argument("--engine", action="append", help="tape, tape-fast, torch-eager, torch-compile")
    p.add_argument("--rounds", type=int, default=5, help="interleaved rounds (default: 5)")
    _json(p)
    p = _verb(nested, "generate", cli.bench_generate, "bench generate --preset small")
    p.add_argument("--preset", action="append", choices=["quick", "small"])
    p.add_argument("--rounds", type=int, default=5, help="interleaved rounds (default: 5)")
    _json(p)

    _add_atlas(verbs)

    p = _verb(verbs, "gradcheck", cli.gradcheck, "gradcheck", "gradcheck --op attention --json")
    p.add_argument("--op", action="append", help="only this op (repeatable)")
    _json(p)

    p = _verb(verbs, "doctor", cli.doctor, "doctor", "doctor --json")
    _json(p)
    return parser


def _add_atlas(verbs: Any) -> None:
    """Add the verbs of the atlas, in the order of their use."""
    nested = _group(
        verbs, "atlas", "compare architectures by designed experiments",
        'atlas advise "Is Muon better than AdamW?"',
    )  # fmt: skip

    p = _verb(nested, "design", atlas.design, "atlas design 7 --runs 8")
    p.add_argument("factors", type=int, help="how many factors of two levels")
    p.add_argument("--runs", type=int, help="how many cells (default: the fewest)")
    p.add_argument("--resolution", type=int, help="at least this one, 3 to 5 and more")
    _noise(p)

    p = _verb(nested, "plan", atlas.plan, "atlas plan specs/sweeps/screen.json --sd 0.01")
    _sweep_options(p, nargs="?")
    _noise(p)
    p.add_argument("--no-calibration", action="store_true", help="time no steps: no cost")
    p.add_argument("--schema", action="store_true", help="print the JSON Schema of sweeps instead")
    _json(p)

    p = _verb(nested, "preregister", atlas.preregister, "atlas preregister my-hypotheses.json")
    p.add_argument("draft", nargs="?", help="a pre-registration with sweep: its file")
    p.add_argument("--schema", action="store_true", help="print the JSON Schema instead")
    _atlas_option(p)

    p = _verb(nested, "run", atlas.run, "atlas run specs/sweeps/screen.json --jobs 2")
    _sweep_options(p)
    p.add_argument("--backend", choices=["local", "dask"], default="local", help="who runs it")
    p.add_argument("--address", help="of a dask scheduler; without it a cluster on this machine")
    _json(p)

    p = _verb(nested, "status", atlas.status, "atlas status screen")
    _sweep_options(p)
    _json(p)

    p = _verb(
        nested, "analyze", atlas.analyze, "atlas analyze screen",
        "atlas analyze screen --metric val@200 --half-normal effects.svg",
    )  # fmt: skip
    _study_options(p)
    p.add_argument("--metric", default="best_val", help="of the rows (default: %(default)s)")
    p.add_argument("--half-normal", metavar="FILE", help="draw the effects into this .svg")

    p = _verb(nested, "lottery", atlas.lottery, "atlas lottery window --budgets 600 3000 6000")
    _comparison_options(p)
    p.add_argument("--margin", type=float, help="nats per token that count as no difference")

    p = _verb(nested, "crossing", atlas.crossing, "atlas crossing window --width 500")
    _comparison_options(p)
    p.add_argument("--width", type=float, help="steps: how many seeds would narrow the zone to it")

    p = _verb(nested, "register", atlas.register, "atlas register screen")
    p.add_argument("preregistration", help="its id")
    _atlas_option(p)

    p = _verb(nested, "findings", atlas.findings, "atlas findings --factor optimizer")
    p.add_argument("--status", help="only these, as supported or retracted")
    p.add_argument("--factor", help="only those about this factor")
    p.add_argument("--md", action="store_true", help="print a Markdown table")
    p.add_argument("--schema", action="store_true", help="print the JSON Schema instead")
    _atlas_option(p)
    _json(p)

    p = _verb(nested, "advise", atlas.advise, 'atlas advise "Is Muon better than AdamW?"')
    p.add_argument("question", nargs="+", help="in words")
    _atlas_option(p)
    _json(p)

    p = _verb(
        nested, "reproduce", atlas.reproduce, "atlas reproduce window-early",
        "atlas reproduce window-early --run --seeds 21 22 23",
    )  # fmt: skip
    p.add_argument("finding", help="its id")
    p.add_argument("--run", action="store_true", help="run it, not only say what it costs")
    p.add_argument("--seeds", type=int, nargs="+", help="new ones (default: the original ones)")
    p.add_argument("--out", help="a folder for the runs; one that was stopped goes on there")
    p.add_argument("--jobs", type=_jobs, default=2, help="runs at once (default: 2)")
    p.add_argument("--record", action="store_true", help="keep records and verdict in the atlas")
    _atlas_option(p)

    p = _verb(nested, "retract", atlas.retract, 'atlas retract ID --note "the metric was wrong"')
    p.add_argument("finding", help="its id")
    p.add_argument("--note", required=True, help="why")
    _atlas_option(p)

    p = _verb(nested, "supersede", atlas.supersede, 'atlas supersede ID --by ID --note "matched"')
    p.add_argument("finding", help="its id")
    p.add_argument("--by", required=True, help="the id of the finding that takes its place")
    p.add_argument("--note", required=True, help="why")
    _atlas_option(p)

    p = _verb(nested, "verify", atlas.verify, "atlas verify --strict")
    p.add_argument("--strict", action="store_true", help="also against the history in git")
    _atlas_option(p)
    _json(p)


def _atlas_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--atlas", default="atlas", help="the registry (default: ./atlas)")


def _sweep_options(parser: argparse.ArgumentParser, **options: Any) -> None:
    parser.add_argument("sweep", help="a sweep file, or the name of a study", **options)
    parser.add_argument("--jobs", type=_jobs, default=2, help="runs at once (default: 2)")
    _atlas_option(parser)


def _study_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", help="the name of a study, or a rows.jsonl")
    _atlas_option(parser)
    _json(parser)


def _comparison_options(parser: argparse.ArgumentParser) -> None:
    _study_options(parser)
    parser.add_argument("--factor", help="whose two levels are compared, if there are several")
    parser.add_argument("--budgets", type=int, nargs="+", help="steps (default: every evaluation)")
    parser.add_argument(
        "--given", action="append", default=[], metavar="FACTOR=LEVEL",
        help="hold another factor at a level (repeatable)",
    )  # fmt: skip


def _jobs(text: str) -> int:
    """Return how many runs at once, for argparse."""
    if not text.isdecimal() or not 1 <= int(text[:9]):
        raise argparse.ArgumentTypeError(f"{text[:20]!r} is no number of runs at once, such as 2")
    return int(text[:9])


def _noise(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sd", type=float, help="noise of one run in units of the metric")


def _verb(verbs: Any, name: str, function: Any, *examples: str) -> argparse.ArgumentParser:
    """Add a verb whose help is its function's docstring and whose epilog is its examples."""
    help_text = function.__doc__.strip()
    short = help_text[0].lower() + help_text[1:].rstrip(".")
    parser = verbs.add_parser(name, help=short, description=help_text, **_examples(*examples))
    parser.set_defaults(verb=function, parser=parser)
    return parser


def _group(verbs: Any, name: str, help_text: str, example: str) -> Any:
    description = f"{help_text[0].upper()}{help_text[1:]}."
    parser = verbs.add_parser(name, help=help_text, description=description, **_examples(example))
    return parser.add_subparsers(metavar="WHAT", required=True)


def _examples(*examples: str) -> dict[str, Any]:
    """Return the parser's arguments that end its help with examples."""
    lines = "\n".join(f"  python -m paperkiln {example}" for example in examples)
    return {
        "epilog": f"examples:\n{lines}",
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _spec_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set", action="append", default=[], metavar="PATH=VALUE",
        help="override one field, as train.lr=1e-3 (repeatable)",
    )  # fmt: skip
    parser.add_argument("--device", help="cpu, cpu-fast, torch-cpu, cuda or mps; sets train.device")


def _model_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a run folder, a Hugging Face folder or a GGUF file")
    parser.add_argument("--tokens", type=int, default=200, help="most new tokens (default: 200)")
    parser.add_argument("--temperature", type=float, default=0.7, help="0 is greedy (default: 0.7)")
    parser.add_argument("--top-k", type=int, default=40, help="0 keeps all (default: 40)")
    parser.add_argument("--top-p", type=float, default=0.95, help="1 keeps all (default: 0.95)")
    parser.add_argument("--min-p", type=float, default=0.0, help="0 keeps all (default: 0)")
    parser.add_argument("--repetition-penalty", type=float, default=1.0, help="1 is none")
    parser.add_argument("--seed", type=int, help="same seed, same reply")
