"""The verbs of the atlas: each parses, calls one function and prints, as in paperkiln.cli."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from paperkiln.errors import PaperkilnError
from paperkiln.output import show, show_json, tell

SCRATCH = Path("runs") / "atlas"  # run folders of sweeps; git ignores it

# --- before: designs and plans -------------------------------------------------------------------


def design(args: argparse.Namespace) -> None:
    """Show a design for so many two-level factors: runs, aliases and power."""
    from paperkiln.atlas.describe import describe
    from paperkiln.atlas.designs import design

    print(describe(design(args.factors, args.runs, args.resolution), args.sd))


def plan(args: argparse.Namespace) -> None:
    """Show a sweep's cells, aliases, power and cost, without running it."""
    from paperkiln.atlas import planning
    from paperkiln.atlas.describe import describe
    from paperkiln.atlas.designs import make_design
    from paperkiln.atlas.preregister import levels_of
    from paperkiln.atlas.sweep import sweep_schema

    if args.schema:
        return show_json(sweep_schema())
    if args.sweep is None:
        raise PaperkilnError("atlas plan needs a sweep file (or --schema)")
    sweep = _sweep(args)
    seconds = None if args.no_calibration else planning.calibrate(sweep, args.jobs)
    result = planning.plan(sweep, args.jobs, seconds)
    if args.json:
        return show_json(result)
    made = make_design(sweep.design.model_dump(exclude_none=True), levels_of(sweep))
    print(planning.plan_as_text(result))
    return print(f"\n{describe(made, args.sd, seeds=(len(sweep.seeds),))}")


def preregister(args: argparse.Namespace) -> None:
    """Fix the hypotheses of a sweep and what each outcome will be called, before any run."""
    from paperkiln.atlas.findings import preregistration_schema
    from paperkiln.atlas.preregister import preregister

    if args.schema:
        return show_json(preregistration_schema())
    if args.draft is None:
        raise PaperkilnError("atlas preregister needs a draft (or --schema)")
    path = preregister(Path(args.draft), _atlas(args))
    tell(["commit this file and the study's sweep.json before the first run: it counts from there"])
    return print(path)


# --- the runs ------------------------------------------------------------------------------------


def run(args: argparse.Namespace) -> int:
    """Run what is left of a sweep; the same command goes on after any stop."""
    import functools

    from paperkiln.atlas import backends
    from paperkiln.atlas.execute import run_sweep
    from paperkiln.atlas.register import unpledged

    sweep = _sweep(args)
    backend = backends.local
    if args.backend == "dask":
        backend = functools.partial(backends.dask, address=args.address)
    elif args.address:
        raise PaperkilnError("--address is that of a dask scheduler; add --backend dask")
    study = _atlas(args) / "studies" / sweep.name
    tell(unpledged(_atlas(args), sweep.name))
    try:
        with _progress() as listen:
            result = run_sweep(
                sweep, study, SCRATCH / sweep.name, jobs=args.jobs, backend=backend, listen=listen
            )
    except KeyboardInterrupt:
        print("stopped, every run saved; the same command goes on", file=sys.stderr)
        return 130
    for name, reason in result["broken"].items():
        print(f"paperkiln: {name} broke and is left for the next call: {reason}", file=sys.stderr)
    if args.json:
        show_json(result)
    else:
        print(study)
    return 1 if result["left"] else 0


def status(args: argparse.Namespace) -> None:
    """Show how much of a sweep is done."""
    from paperkiln.atlas.execute import status

    sweep = _sweep(args)
    result = status(sweep, _atlas(args) / "studies" / sweep.name, SCRATCH / sweep.name)
    show(args, {"name": sweep.name} | result, _status_as_text)


# --- what they say -------------------------------------------------------------------------------


def analyze(args: argparse.Namespace) -> None:
    """Show the effects of a study on a metric, with intervals and checks of what they rest on."""
    from paperkiln.atlas import analyze

    rows, levels = _study(args)
    if args.half_normal:
        from paperkiln.formats.atomic import new_file

        svg = analyze.half_normal_svg(analyze.half_normal(rows, args.metric, levels))
        with new_file(Path(args.half_normal)) as aside:
            aside.write_text(svg, encoding="utf-8")
        tell([f"the half-normal plot is in {args.half_normal}"])
    if args.json:
        effects = analyze.effects(rows, args.metric, levels=levels)
        return show_json([dataclasses.asdict(effect) for effect in effects])
    return print(analyze.analysis_as_text(rows, args.metric, levels))


def lottery(args: argparse.Namespace) -> None:
    """Show, budget by budget, what one seed would say, and how often two would disagree."""
    from paperkiln.atlas import lottery

    found = lottery.lottery(*_comparison(args), margin=args.margin)
    show(args, found, lottery.as_text) if not args.json else show_json(dataclasses.asdict(found))


def crossing(args: argparse.Namespace) -> None:
    """Show where a comparison turns with the budget, and where so many seeds cannot tell."""
    from paperkiln.atlas import crossing

    found = crossing.crossing(*_comparison(args))
    if args.json:
        return show_json(dataclasses.asdict(found))
    print(crossing.as_text(found))
    if args.width is not None:
        seeds = found.seeds_to_close(args.width)
        return print(f"a zone no wider than {args.width:g} steps takes {seeds:,} seeds")
    return None


# --- the registry --------------------------------------------------------------------------------


def findings(args: argparse.Namespace) -> None:
    """List the findings, those that were withdrawn included."""
    from paperkiln.atlas.findings import finding_schema, read_findings, registry
    from paperkiln.atlas.table import findings_table, select

    if args.schema:
        return show_json(finding_schema())
    everything = read_findings(registry(_atlas(args)))
    if args.json:
        chosen = select(everything, args.status, args.factor)
        return show_json([f.model_dump(mode="json", by_alias=True) for f in chosen])
    return print(findings_table(everything, args.status, args.factor, args.md))


def register(args: argparse.Namespace) -> None:
    """Decide each pre-registered hypothesis from the records, and add the findings."""
    from paperkiln.atlas.register import register
    from paperkiln.atlas.table import findings_table

    print(findings_table(register(args.preregistration, _atlas(args))))


def retract(args: argparse.Namespace) -> None:
    """Withdraw a finding; it stays visible, with the reason."""
    from paperkiln.atlas.register import retract
    from paperkiln.atlas.table import findings_table

    print(findings_table([retract(args.finding, args.note, _atlas(args))]))


def supersede(args: argparse.Namespace) -> None:
    """Put a better finding in the place of one that stays visible."""
    from paperkiln.atlas.register import supersede
    from paperkiln.atlas.table import findings_table

    print(findings_table([supersede(args.finding, args.by, args.note, _atlas(args))]))


def advise(args: argparse.Namespace) -> int:
    """Answer a question from the findings, or say that there is no evidence."""
    from paperkiln.atlas.advise import advise
    from paperkiln.atlas.findings import read_findings, registry

    advice = advise(" ".join(args.question), read_findings(registry(_atlas(args))))
    if args.json:
        show_json(advice.to_json())
    else:
        print("\n".join(advice.lines()))
    return 0 if advice.answered else 1


def reproduce(args: argparse.Namespace) -> int:
    """Show what a replication of a finding costs; with --run, do it and judge it."""
    from paperkiln.atlas.findings import registry
    from paperkiln.atlas.reproduce import make_plan, reproduce

    atlas = registry(_atlas(args))
    out = Path(args.out) if args.out else None
    plan = make_plan(args.finding, atlas, jobs=args.jobs, seeds=args.seeds, out=out)
    print("\n".join(plan.lines()))
    if not args.run:
        tell(["nothing was run; add --run"])
        return 0
    try:
        with _progress() as listen:
            result = reproduce(plan, atlas, record=args.record, listen=listen)
    except KeyboardInterrupt:
        print(f"stopped, every run saved; go on with --out {plan.folder}", file=sys.stderr)
        return 130
    print("\n".join(result.lines()))
    return result.exit_code


def verify(args: argparse.Namespace) -> int:
    """Recompute every published number from the records."""
    from paperkiln.atlas.verify import verify

    result = verify(_atlas(args), args.strict)
    if args.json:
        show_json(dataclasses.asdict(result))
    else:
        print("\n".join(result.lines()))
    return result.exit_code


# --- what the verbs share ------------------------------------------------------------------------


def _atlas(args: argparse.Namespace) -> Path:
    return Path(args.atlas)


def _sweep(args: argparse.Namespace) -> Any:
    """Return the sweep that is named: a file, or the name of a study of the atlas."""
    from paperkiln.atlas.sweep import read_sweep

    path, study = Path(args.sweep), _atlas(args) / "studies" / args.sweep / "sweep.json"
    return read_sweep(study if not path.exists() and study.exists() else path)


def _study(args: argparse.Namespace) -> tuple[list[dict[str, Any]], dict[str, list[str]] | None]:
    """Return the rows of the study, or rows file, that is named, and the order of its levels."""
    from paperkiln.atlas.preregister import levels_of, study_sweep
    from paperkiln.atlas.rows import read_rows

    if Path(args.study).is_file():
        return read_rows(Path(args.study)), None
    study = _atlas(args) / "studies" / args.study
    if not (study / "rows.jsonl").exists():
        known = sorted(path.parent.name for path in study.parent.glob("*/rows.jsonl"))
        raise PaperkilnError(f"{study}: no rows there; studies: {', '.join(known) or 'none yet'}")
    return read_rows(study / "rows.jsonl"), levels_of(study_sweep(study))


def _comparison(args: argparse.Namespace) -> tuple[Any, ...]:
    """Return rows, factor, its two levels, budgets and what is held fixed."""
    from paperkiln.atlas.blocks import natural
    from paperkiln.atlas.lottery import shared_budgets

    rows, levels = _study(args)
    known = sorted({k.removeprefix("factor.") for row in rows for k in row if k[:7] == "factor."})
    factor = args.factor or (known[0] if len(known) == 1 else "")
    if factor not in known:
        raise PaperkilnError(f"--factor {factor or '?'}: choose one of {', '.join(known)}")
    labels = (levels or {}).get(factor)
    labels = labels or sorted({str(row.get(f"factor.{factor}")) for row in rows}, key=natural)
    if len(labels) != 2:
        raise PaperkilnError(f"{factor} has {len(labels)} levels; a comparison is of two")
    given = {}
    for pair in args.given:
        name, equals, label = pair.partition("=")
        if not equals:
            raise PaperkilnError(f"--given {pair!r}: write FACTOR=LEVEL, as in lr=high")
        given[name] = label
    return rows, factor, tuple(labels), args.budgets or shared_budgets(rows, given), given or None


@contextmanager
def _progress() -> Iterator[Any]:
    """Yield a listener that shows a sweep's progress: a live line, or plain ones in a pipe."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    bar = Progress(
        TextColumn("sweep"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[said]}"),
        console=console,
    )  # fmt: skip
    task = bar.add_task("sweep", said="")

    def listen(progress: Any) -> None:
        said = _progress_as_text(progress)
        if console.is_terminal:
            bar.update(task, completed=progress.done, total=progress.total, said=said)
        else:
            console.print(f"{progress.done}/{progress.total} {said}")

    if not console.is_terminal:
        yield listen
        return
    with bar:
        yield listen


def _progress_as_text(progress: Any) -> str:
    parts = [progress.last + (f": {progress.reason}" if progress.reason else "")]
    if progress.failed:
        parts.append(f"{progress.failed} failed")
    if progress.seconds_left is not None and progress.done < progress.total:
        parts.append(f"about {max(1, round(progress.seconds_left / 60))} min left")
    return ", ".join(part for part in parts if part)


def _status_as_text(status: dict[str, Any]) -> str:
    line = f"{status['name']}: {status['done']} of {status['total']} runs done"
    for name in ("failed", "running", "left"):
        line += f", {status[name]} {name}" if status[name] else ""
    return f"{line}; scratch {status['disk_bytes'] / 1e6:,.1f} MB"
