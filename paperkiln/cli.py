"""The command line: each verb parses, calls one function and prints.

Exit codes: 0 done; 1 a check failed (gradcheck, doctor); 2 wrong input, said in one line; 130
stopped by Ctrl-C. What a program would read goes to standard output, the rest to standard error.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from paperkiln.arguments import build_parser
from paperkiln.errors import PaperkilnError
from paperkiln.output import one_line, show, show_json, tell

# Modules with numpy or torch below them are imported by the verb that needs them: `--help` and
# a spelling mistake answer at once.


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    _accept_any_character()
    args, unknown = build_parser(sys.modules[__name__]).parse_known_args(argv)
    if unknown:  # argparse itself would show the usage of the whole program
        args.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    try:
        code = args.verb(args) or 0
        sys.stdout.flush()
        return code
    except PaperkilnError as error:
        _complain(error)
        return 2
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("paperkiln"):
            raise
        print(
            f"paperkiln: {error.name} is not installed for {sys.executable}; make demo installs "
            "everything for .venv/bin/python, pip install -e . for another one",
            file=sys.stderr,
        )
        return 2
    except KeyboardInterrupt:
        print("paperkiln: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader, for instance head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is left
        return 0
    except OSError as error:
        _complain(error)
        return 2
    except MemoryError:
        print("paperkiln: not enough memory; choose a smaller model or batch", file=sys.stderr)
        return 2


def _complain(error: Exception) -> None:
    """Say what is wrong in one line, whatever characters a stranger's file put into it."""
    print(f"paperkiln: {one_line(str(error))}", file=sys.stderr)


def paperfetch() -> int:
    """Run `paperkiln paper`: the console script for those who only want the architecture."""
    return main(["paper", *sys.argv[1:]])


# --- verbs ---------------------------------------------------------------------------------


def paper(args: argparse.Namespace) -> None:
    """Read a paper's architecture, each value with the quote that proves it."""
    from paperkiln.papers.extract import extract, read_document
    from paperkiln.papers.source.obtain import obtain

    if args.fit and not (args.spec or args.python):
        raise PaperkilnError("--fit scales what is written; add --spec FILE or --python FILE")
    with _download_progress() as progress:
        files, paper_id = obtain(
            args.paper, offline=args.offline, refresh=args.refresh, progress=progress,
            notice=lambda text: print(f"note: {text}", file=sys.stderr),
        )  # fmt: skip
    document = read_document(files, args.main)
    architecture = extract(document, args.size, paper_id)
    if args.json:
        show_json(architecture.to_json())
    elif not (args.spec or args.hf or args.python or args.html):
        from rich.console import Console

        from paperkiln.papers import report

        report.show(architecture, Console(soft_wrap=False, highlight=False))
    _write_from_paper(args, architecture, document)


def paper_bench(args: argparse.Namespace) -> int:
    """Measure how well papers are read, against known truth."""
    from paperkiln.papers.bench.bench import bench_arxiv, bench_folder, verdict

    report = bench_folder(args.papers) if args.papers else bench_arxiv(args.offline)
    if args.json:
        show_json(report.to_json())
    else:
        print("\n".join(report.lines()))
    code, reasons = verdict(report)
    for reason in reasons:
        print(f"paperkiln: {reason}", file=sys.stderr)
    return code


def plan(args: argparse.Namespace) -> None:
    """Print the resolved spec and what it costs, without running it."""
    from paperkiln.spec import json_schema

    if args.schema:
        return show_json(json_schema())
    if args.spec is None:
        raise PaperkilnError("plan needs a spec file (or --schema)")
    spec = _spec(args)
    from paperkiln.train.plan import make_plan, plan_as_text

    return show(args, make_plan(spec), plan_as_text)


def run(args: argparse.Namespace) -> int:
    """Train a spec and write its run folder."""
    spec = _spec(args)
    from paperkiln.train.display import Display
    from paperkiln.train.loop import CHECKPOINT, Interrupted
    from paperkiln.train.run import before_training, run

    tell(before_training(spec))
    weights = [spec.folder / name for name in (CHECKPOINT, "model.safetensors")]
    if args.resume and not args.overwrite and not any(path.exists() for path in weights):
        tell([f"{spec.folder} has nothing to resume: starting from step 1"])
    try:
        with Display() as display:
            folder = run(spec, resume=args.resume, overwrite=args.overwrite, listen=display)
    except Interrupted as stopped:
        command = [sys.executable, "-m", "paperkiln", "run", str(spec.folder), "--resume"]
        print(f"{stopped}, saved; go on with: {shlex.join(command)}", file=sys.stderr)
        return 130
    print(folder)
    return 0


def demo(args: argparse.Namespace) -> int:
    """Read a paper, train its model on small talk, ask five questions and score the probe."""
    from paperkiln.lab.demo import demo, spec_from_paper
    from paperkiln.train.loop import Interrupted

    is_spec = Path(args.spec).suffix == ".json" or (Path(args.spec) / "spec.json").exists()
    try:
        demo(_spec(args) if is_spec else spec_from_paper(args.spec, _overrides(args)))
    except Interrupted as stopped:
        print(f"{stopped}, saved; the same command goes on", file=sys.stderr)
        return 130
    return 0


def chat(args: argparse.Namespace) -> None:
    """Talk to a model in the terminal."""
    from paperkiln.infer.chat import ChatSession, repl
    from paperkiln.infer.load import load_run

    with contextlib.suppress(ImportError):  # not on Windows
        import readline  # noqa: F401 (arrow keys and history in input())

    model = load_run(args.model)
    tell(model.notes)
    session = ChatSession(
        model.decoder,
        model.tokenizer,
        _sampling(args),
        max_new_tokens=args.tokens,
        system=args.system,
    )
    print("Type a message; /help lists the commands.", file=sys.stderr)
    repl(session)


def sample(args: argparse.Namespace) -> None:
    """Continue a prompt."""
    from paperkiln.infer.chat import write_to_terminal
    from paperkiln.infer.generate import few_blas_threads, generate
    from paperkiln.infer.load import load_run
    from paperkiln.infer.turns import describe

    model = load_run(args.model)
    tell(model.notes)
    if note := describe(model.tokenizer, args.prompt, 0):
        print(f"({note})", file=sys.stderr)
    pieces = generate(
        model.decoder, model.tokenizer, model.tokenizer.encode(args.prompt),
        max_new_tokens=args.tokens, sampling=_sampling(args), stop=args.stop,
        cache=not args.no_cache,
    )  # fmt: skip
    if not args.json:
        write_to_terminal(args.prompt)
    with few_blas_threads(model.decoder):
        for piece in pieces:
            if not args.json:
                write_to_terminal(piece.text)
    result = piece.result
    if args.json:
        return show_json({"prompt": args.prompt} | vars(result))
    print()
    if result.n_prompt_tokens_cut:
        print(f"(the first {result.n_prompt_tokens_cut} tokens were cut)", file=sys.stderr)
    return print(
        f"({len(result.ids)} tokens, ended by {result.stop_reason}, "
        f"{result.tokens_per_second:,.0f} tokens/s)",
        file=sys.stderr,
    )


def evaluate(args: argparse.Namespace) -> None:
    """Score a model on a text: nats per token, perplexity, bits per byte."""
    from paperkiln.lab.score import score_as_text, score_probe, score_text

    if args.probe:
        score = score_probe(args.model)
    else:
        score = score_text(args.model, args.text, args.device)
    tell(score["notes"])
    return show(args, score, score_as_text)


def export(args: argparse.Namespace) -> None:
    """Write a model in another format."""
    from paperkiln.formats.export import export_model

    report = export_model(Path(args.model), args.format, args.dtype, args.out)
    tell(report["notes"])
    return show(args, report, lambda r: r["path"])


def info(args: argparse.Namespace) -> None:
    """Show shapes, parameters and metadata of a file or a run folder."""
    from paperkiln.formats.info import as_text, describe

    show(args, describe(Path(args.path)), as_text)


def figure(args: argparse.Namespace) -> None:
    """Draw the loss curves of runs."""
    from paperkiln.lab.figures import loss_curves

    loss_curves([Path(folder) for folder in args.runs], Path(args.out))
    print(args.out)


def data_tinychat(args: argparse.Namespace) -> None:
    """Write the TinyChat corpus."""
    if Path(args.out).exists() and not args.overwrite:
        raise PaperkilnError(f"{args.out} exists; choose another --out, or --overwrite it")
    from paperkiln.train.tinychat import write_corpus

    show_json(write_corpus(Path(args.out), args.dialogues, args.seed))


def data_prepare(args: argparse.Namespace) -> None:
    """Read a spec's corpus, learn its tokenizer and encode it, as a run would."""
    from paperkiln.train.plan import describe_data
    from paperkiln.train.run import prepare

    show_json(describe_data(prepare(_spec(args))))


def bench_train(args: argparse.Namespace) -> None:
    """Measure training speed, ours against torch, in one run."""
    from paperkiln.lab.bench import bench_train, train_table

    show(args, bench_train(args.preset, args.engine, args.rounds), train_table)


def bench_generate(args: argparse.Namespace) -> None:
    """Measure batch-1 greedy decoding, ours against torch and llama.cpp."""
    from paperkiln.lab.bench import bench_generate, generate_table

    show(args, bench_generate(args.preset, args.rounds), generate_table)


def gradcheck(args: argparse.Namespace) -> int:
    """Check every op's gradient against central differences in float64."""
    from paperkiln.engine.gradcheck import main as check

    return check(args.json, args.op)


def doctor(args: argparse.Namespace) -> int:
    """Show what is installed, which BLAS and which devices."""
    from paperkiln.lab.doctor import as_text, examine

    report = examine()
    show(args, report, as_text)
    return 0 if report["ok"] else 1


# --- what the verbs share --------------------------------------------------------------------


def _accept_any_character() -> None:
    """Show what a terminal or pipe cannot encode, or sends wrongly encoded, as a replacement."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


@contextlib.contextmanager
def _download_progress() -> Iterator[Callable[[int, int | None], None]]:
    """Yield what shows the bytes of a download on the terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("fetching"), BarColumn(), DownloadColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)

    def progress(done: int, total: int | None) -> None:
        if not bar.tasks:
            bar.add_task("source", total=total)
            bar.start()
        bar.update(bar.tasks[0].id, completed=done, total=total)

    try:
        yield progress
    finally:
        if bar.tasks:  # nothing is shown of what came from the cache or the disk
            bar.stop()


def _write_from_paper(args: argparse.Namespace, architecture: Any, document: Any) -> None:
    """Write what --spec, --hf, --python and --html ask for, and say what was not taken over."""
    from paperkiln.formats.atomic import new_file
    from paperkiln.papers.emit import to_hf, to_python, to_spec

    if (args.spec or args.hf or args.python) and not any(
        architecture.asserted(name) for name in ("d_model", "n_layers")
    ):
        sizes = ", ".join(variant.name for variant in architecture.variants[:6])
        raise PaperkilnError(
            "the paper asserts neither d_model nor n_layers of a model of its own: nothing is "
            "written" + (f"; --size reads one of these: {sizes}" if sizes else "")
        )
    written: dict[str, str] = {}
    notes: list[str] = []
    if args.spec:
        spec, notes = to_spec(architecture, args.fit)
        from paperkiln.spec import parse_spec

        parse_spec(spec, args.spec)
        written[args.spec] = json.dumps(spec, indent=2, ensure_ascii=False) + "\n"
    if args.hf:
        config, more = to_hf(architecture)
        notes += [note for note in more if note not in notes]
        written[args.hf] = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
    if args.python:
        written[args.python] = to_python(architecture, args.fit)
    if args.html:
        from paperkiln.papers.emit.page import to_html

        written[args.html] = to_html(architecture, document)
    tell(notes)
    for path, text in written.items():
        with new_file(path) as aside:
            aside.write_text(text, encoding="utf-8", newline="\n")
        print(path, file=sys.stderr if args.json else sys.stdout)


def _spec(args: argparse.Namespace) -> Any:
    """Return the spec of the arguments: a file, or a run folder's own."""
    from paperkiln.spec import read_spec

    path = Path(args.spec)
    overrides = _overrides(args)
    if path.is_dir():  # the folder that is named, even if it was moved since
        overrides.insert(0, f"out_dir={json.dumps(str(path))}")
        path = path / "spec.json"
    return read_spec(path, overrides)


def _overrides(args: argparse.Namespace) -> list[str]:
    return [*args.set, *([f"train.device={args.device}"] if args.device else [])]


def _sampling(args: argparse.Namespace) -> Any:
    from paperkiln.infer.sampling import Sampling

    if args.tokens < 1:
        raise PaperkilnError(f"--tokens {args.tokens}: should be 1 or more")
    return Sampling(
        temperature=args.temperature, top_k=args.top_k, top_p=args.top_p, min_p=args.min_p,
        repetition_penalty=args.repetition_penalty, seed=args.seed,
    )  # fmt: skip
