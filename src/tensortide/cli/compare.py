"""`tensortide compare`: methods and rivals on the user's own file.

What computes is imported when it is needed: every command loads this module for its options.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tensortide.errors import InputError
from tensortide.wording import in_options

if TYPE_CHECKING:
    from tensortide.experiments.compare_result import Result
    from tensortide.experiments.comparison import Comparison

PICTURES = (".png", ".svg", ".pdf", ".jpg")


def compare(
    source: Annotated[
        str, typer.Argument(help="A CSV, JSON lines, Parquet or Arrow file, a folder, or -.")
    ],
    modes: Annotated[
        str | None, typer.Option(help="Label columns, with commas: place,age,date.")
    ] = None,
    value: Annotated[str | None, typer.Option(help="Column of values.")] = None,
    step_by: Annotated[
        str | None,
        typer.Option(
            help="Column whose values are the steps, in order; else the only mode of dates, as "
            "track has it, else the last mode."
        ),
    ] = None,
    rank: Annotated[int, typer.Option(min=1, help="Number of components.")] = 5,
    start: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Share of the steps that is preparation.")
    ] = 0.5,
    methods: Annotated[str | None, typer.Option(help="Some methods only, with commas.")] = None,
    rivals: Annotated[
        bool,
        typer.Option(
            "--rivals/--no-rivals",
            help="Compare with what needs no model, too: last value, fibre mean, additive "
            "effects, seasonal naive.",
        ),
    ] = True,
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
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            help="File for the picture (png, svg, pdf, jpg) or the table (csv, parquet, arrow).",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON line a method.")] = False,
) -> None:
    """Compare all methods on your own data: predict each batch, then learn it.

    Rivals stand beside them: what anybody would try first. Where one is as good, it is said.

    Example: tensortide compare counts.csv --modes place,age,date --value count -o compare.png
    """
    from tensortide.experiments.comparison import contenders, contest, task_of
    from tensortide.sources.whole import read_source

    names = contenders(_listed(methods))
    task, guessed = task_of(
        read_source(source), _listed(modes), value, step_by, rank=rank, start=start,
        absent=absent, duplicates=duplicates, seed=seed, hold_out=hold_out,
    )  # fmt: skip
    if out is not None:
        _check_out(out)
    for guess in guessed:
        print(f"guessed {guess}", file=sys.stderr)
    found = contest(task, names, rivals=rivals, guessed=guessed, tell=_tell)
    for result in found.rows:
        result.refused = None if result.refused is None else in_options(result.refused)
    if as_json:
        for result in found.rows:
            print(json.dumps(asdict(result)))
    else:
        print(found)
    if out is not None:
        title = "standard input" if source == "-" else Path(source).name
        kind = _write(found, out, title)
        if not as_json:
            print(f"{kind}: {out}")


def _listed(names: str | None) -> list[str] | None:
    """Return names that stand between commas."""
    return None if names is None else [n.strip() for n in names.split(",") if n.strip()]


def _tell(result: Result) -> None:
    """Where no bar is drawn, say what is done."""
    if not sys.stderr.isatty():
        print(f"{result.method}: {result.seconds:.2f} s", file=sys.stderr)


def _check_out(out: Path) -> None:
    """Refuse before anything is computed."""
    from tensortide.cli.table_file import ENDINGS
    from tensortide.palette import plotting

    kinds = (*PICTURES, *ENDINGS)
    if out.suffix.lower() not in kinds or not out.resolve().parent.is_dir():
        raise InputError(
            f"{out}: no picture or table can be written there; the folder has to exist and the "
            f"name to end in one of {', '.join(kinds)}."
        )
    if out.suffix.lower() in PICTURES:
        plotting()


def _write(found: Comparison, out: Path, title: str) -> str:
    """Write the picture or the table, and say which."""
    from tensortide.cli.table_file import write_table

    if out.suffix.lower() in PICTURES:
        found.plot(out, title)
        return "picture"
    write_table(found.to_table(), out)
    return "table"
