"""The `tensortide` command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tensortide.errors import TensortideError

app = typer.Typer(
    name="tensortide",
    help="Keep a low-rank model of data that never stops changing.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
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
        int, typer.Option(min=1, max=20, help="Number of components of the models.")
    ] = 3,
) -> None:
    """Show the engine at work on a simulated reporting stream.

    Example: tensortide demo --seed 7
    """
    from tensortide.cli.demo import run_demo

    run_demo(seed=seed, rank=rank)


@app.command()
def methods() -> None:
    """List the methods with what they can take and what they keep.

    Example: tensortide methods
    """
    from tensortide.cli.methods import list_methods

    list_methods()


@app.command(name="compare")
def compare_methods(
    source: Annotated[
        str, typer.Argument(help="A CSV, JSON lines, Parquet or Arrow file, a folder, or -.")
    ],
    modes: Annotated[str, typer.Option(help="Label columns, with commas: place,age,date.")],
    value: Annotated[str, typer.Option(help="Column of values.")] = "value",
    step_by: Annotated[
        str | None, typer.Option(help="Column whose values are the steps; else the last mode.")
    ] = None,
    rank: Annotated[int, typer.Option(min=1, help="Number of components.")] = 5,
    start: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Share of the steps that is preparation.")
    ] = 0.5,
    methods: Annotated[str | None, typer.Option(help="Some methods only, with commas.")] = None,
    absent: Annotated[str, typer.Option(help="Cells not listed: missing or zero.")] = "missing",
    duplicates: Annotated[
        str, typer.Option(help="Several records of a cell: last, sum, mean, count, error.")
    ] = "last",
    hold_out: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=0.9,
            help="Share of later cells that is never learned, to judge by; "
            "0.1 unless the first data have no hole.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="For the random start and the cells held out.")
    ] = 0,
    picture: Annotated[
        Path | None, typer.Option("-o", "--out", help="File for the picture: png, svg, pdf, jpg.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON line a method.")] = False,
) -> None:
    """Compare all methods on your own data: predict each batch, then learn it.

    Example: tensortide compare counts.csv --modes place,age,date --value count -o compare.png
    """
    from tensortide.cli.compare import run_compare
    from tensortide.compare import Task
    from tensortide.data.sources import read_source

    names = [name.strip() for name in modes.split(",")]
    task = Task(
        read_source(source),
        names,
        value,
        step_by or names[-1],
        rank,
        start,
        absent,
        duplicates,
        seed,
        hold_out,
    )
    title = "standard input" if source == "-" else Path(source).name
    run_compare(task, title=title, methods=methods, picture=picture, as_json=as_json)


@app.command()
def reproduce(
    experiment: Annotated[
        str,
        typer.Argument(
            help="general, factorization, completion, synthetic-factorization, "
            "synthetic-completion, ablation, complexity, or all."
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


def main() -> None:
    """Run the command; a user's mistake is one sentence on standard error and exit code 2."""
    try:
        app()
    except TensortideError as error:
        print(f"tensortide: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("tensortide: stopped.", file=sys.stderr)
        raise SystemExit(130) from None
