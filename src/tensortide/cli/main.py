"""The `tensortide` command."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from tensortide.cli.compare import compare
from tensortide.cli.entry import INTERRUPTED, tell_stopped
from tensortide.cli.forecast import forecast
from tensortide.cli.nowcast import nowcast
from tensortide.cli.options import AsJson, RunFolder, TableFile
from tensortide.cli.predict import predict
from tensortide.errors import TensortideError
from tensortide.wording import in_options

app = typer.Typer(
    name="tensortide",
    help="Keep a low-rank model of data that never stops changing.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: its columns fit a terminal of 80 characters
)


def _print_version(wanted: bool) -> None:
    if wanted:
        import tensortide

        print(f"tensortide {tensortide.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Keep a low-rank model of data that never stops changing."""


@app.command()
def demo(
    seed: Annotated[int, typer.Option(min=0, help="Another stream with another number.")] = 0,
    rank: Annotated[
        int, typer.Option(min=1, max=20, help="Number of components of the model.")
    ] = 3,
    out: Annotated[
        Path, typer.Option("-o", "--out", help="Folder for reports, run and page.")
    ] = Path("tensortide-demo"),
) -> None:
    """Show the whole story in a minute: simulate, track, kill, resume, nowcast, report.

    Example: tensortide demo --seed 7
    """
    from tensortide.cli.demo import run_demo

    run_demo(seed=seed, rank=rank, out=out)


@app.command()
def track(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE...",
            help="CSV, JSON lines, Parquet or Arrow files, folders of them, or - for a pipe.",
        ),
    ],
    into: Annotated[Path, typer.Option(help="Folder of the run; made if it is not there.")],
    modes: Annotated[
        str | None, typer.Option(help="Label columns, with commas: place,age,date.")
    ] = None,
    value: Annotated[str | None, typer.Option(help="Column of values.")] = None,
    step_by: Annotated[
        str | None, typer.Option(help="Column whose values are the steps, in order.")
    ] = None,
    step_rows: Annotated[
        int | None, typer.Option(min=1, help="Steps of this many records.")
    ] = None,
    step_files: Annotated[bool, typer.Option("--step-files", help="One step a file.")] = False,
    first: Annotated[
        int, typer.Option(min=1, help="Steps that are learned together as the first one.")
    ] = 1,
    rank: Annotated[
        int | None, typer.Option(min=1, help="Number of components; 5 in a new run.")
    ] = None,
    method: Annotated[
        str | None, typer.Option(help="See `tensortide methods`; gocpte in a new run.")
    ] = None,
    absent: Annotated[
        str | None, typer.Option(help="Cells not listed: missing (default) or zero.")
    ] = None,
    duplicates: Annotated[
        str | None,
        typer.Option(
            help="Records of one cell in a step: last (default), sum, mean, count, error."
        ),
    ] = None,
    combine: Annotated[
        str | None, typer.Option(help="A record of a known cell: replace (default) or add.")
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            help="squared (default), poisson for counts, negative_binomial, gamma, bernoulli, "
            "huber."
        ),
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(help="Priors of rows: learned (default of gocpt and gocpte), or paper."),
    ] = None,
    keep_fibres: Annotated[
        bool | None,
        typer.Option(
            "--keep-fibres/--no-fibres",
            help="Remember what is left over of each series, which gives back its last value; "
            "by default only where the method keeps history.",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="For the random start.")] = None,
    on_bad: Annotated[
        str, typer.Option(help="Bad records: stop, or quarantine to set them aside.")
    ] = "stop",
    changed_file: Annotated[
        str,
        typer.Option(
            help="A file that is no longer what was learned of it: stop, replace (the run is "
            "learned again from its files), or new (all of it is taken as new records)."
        ),
    ] = "stop",
    keep_surprises: Annotated[
        bool | None,
        typer.Option(
            "--keep-surprises/--no-surprises",
            help="Keep the values that were least likely, which are raw values; by "
            "default only where the method keeps history.",
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on and follow new files until stopped.")
    ] = False,
    every: Annotated[
        float, typer.Option(min=0.05, help="Seconds between two looks with --watch.")
    ] = 1.0,
    wait: Annotated[
        float, typer.Option(min=0.0, help="Seconds to wait while another process writes.")
    ] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON line a step.")] = False,
) -> None:
    """Keep the model of a run current: every batch once, whatever happens.

    The same command continues where it stopped, also after a crash.  Files are known by path and
    content: what was learned is never learned twice, and a file that changed is asked about.

    Example: tensortide track reports/ --into run --modes place,age,date --value count
    """
    from tensortide.cli.track import ModelOptions, run_track
    from tensortide.tracker.feeding import FeedOptions, cut_of

    names = None if modes is None else [name.strip() for name in modes.split(",")]
    asked = ModelOptions(
        rank=rank, method=method, modes=names, value=value, absent=absent, duplicates=duplicates,
        combine=combine, loss=loss, prior=prior, fibres=keep_fibres, seed=seed,
    )  # fmt: skip
    cut = cut_of(step_by, step_rows, step_files)
    drive = FeedOptions(
        cut=cut, on_bad=on_bad, first=first, watch=watch, every=every, changed_file=changed_file
    )
    run_track(
        sources, into, asked, drive, keep_surprises=keep_surprises, wait=wait, as_json=as_json
    )


@app.command()
def info(run: RunFolder, as_json: AsJson = False) -> None:
    """Tell what a run has seen and how well it fits, also while it is being written.

    Example: tensortide info run
    """
    from tensortide.cli.inspect import show_info

    show_info(run, as_json=as_json)


@app.command()
def components(
    run: RunFolder,
    top: Annotated[int, typer.Option(min=1, help="Labels per mode.")] = 3,
    out: TableFile = None,
    as_json: AsJson = False,
) -> None:
    """Tell who is in each component, strongest first.

    Example: tensortide components run --top 5
    """
    from tensortide.cli.inspect import show_components

    show_components(run, top=top, as_json=as_json, out=out)


app.command()(predict)
app.command()(forecast)


@app.command()
def report(
    run: RunFolder,
    out: Annotated[Path, typer.Option("-o", "--out", help="The page to write.")] = Path(
        "report.html"
    ),
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write one self-contained page with the pictures of a run.

    Example: tensortide report run -o page.html
    """
    from tensortide.report.pages.run import write_report
    from tensortide.tracker.tracker import Tracker

    with Tracker.open(run, read_only=True) as tracker:
        size = write_report(tracker, out, title)
    if as_json:
        print(json.dumps({"page": str(out), "bytes": size}))
    else:
        print(f"{out}: {size / 1e6:.1f} MB; open it in a browser.")


@app.command()
def check(run: RunFolder, as_json: AsJson = False) -> None:
    """Verify that a run is whole, bit by bit; exit code 1 if it is not.

    Example: tensortide check run
    """
    from tensortide.cli.inspect import check as run_check

    run_check(run, as_json=as_json)


@app.command()
def methods(as_json: AsJson = False) -> None:
    """List the methods with what they can take and what they keep.

    Example: tensortide methods
    """
    from tensortide.cli.methods import list_methods

    list_methods(as_json=as_json)


app.command()(compare)
app.command()(nowcast)


@app.command()
def reproduce(
    experiment: Annotated[
        str,
        typer.Argument(
            help="general, factorization, completion, synthetic-factorization, "
            "synthetic-completion, ablation, complexity, or all of these; nowcast, "
            "nowcast-choices."
        ),
    ] = "all",
    seeds: Annotated[int, typer.Option(min=1, help="Random seeds per method.")] = 5,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small versions of everything, one seed.")
    ] = False,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for results, tables and figures.")
    ] = Path("reproduced"),
    document: Annotated[
        Path | None, typer.Option(help="A Markdown file whose marked tables are renewed.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print results as JSON lines.")] = False,
) -> None:
    """Run the paper's experiments: results, tables and figures.

    An interrupted run goes on with the same command: what is in the results is not run again.

    Example: tensortide reproduce completion --seeds 2
    """
    from tensortide.cli.reproduce import reproduce as run

    run(experiment, seeds=seeds, quick=quick, out=out, document=document, as_json=as_json)


def _tell_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"tensortide: {in_options(str(message))}", file=sys.stderr)


# Typer may carry its own copy of click: usage errors are known by a child that Typer exports.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]


def _usage(error: Any) -> str:
    """Return a usage error as one sentence (or nothing, where the help was the answer)."""
    message = error.format_message().strip()
    if not message:
        return ""
    message += "" if message.endswith((".", "?")) else "."
    command = error.ctx.command_path if error.ctx else "tensortide"
    return f"tensortide: {message} See `{command} --help`."


def main() -> None:
    """Run the command; a user's mistake is one sentence on standard error and exit code 2."""
    warnings.showwarning = _tell_warning
    try:
        code = app(standalone_mode=False)
    except TensortideError as error:
        print(f"tensortide: {in_options(str(error))}", file=sys.stderr)
        raise SystemExit(2) from None
    except _UsageError as error:
        if told := _usage(error):
            print(told, file=sys.stderr)
        raise SystemExit(2) from None
    if code == INTERRUPTED:
        tell_stopped()
    raise SystemExit(code)
