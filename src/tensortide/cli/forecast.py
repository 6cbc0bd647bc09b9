"""`tensortide forecast`: what is expected of the labels that come next."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tensortide.cli.options import LineJson, RunFolder
from tensortide.errors import ARROW_ERRORS, InputError
from tensortide.wording import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from tensortide.data.modes import Modes
    from tensortide.online.reading import ReadOnlyModel

PICTURES = (".png", ".svg", ".pdf")
SHOWN = 60  # rows that a person reads


def forecast(
    run: RunFolder,
    steps: Annotated[int, typer.Option(help="How many labels ahead.")],
    mode: Annotated[
        str | None, typer.Option(help="The mode that goes on, if it is not clear which.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="MODE=LABEL", help="Only these labels; may be said several times."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", help="File: .csv, .parquet, .arrow; or a picture: .png, .svg, .pdf."
        ),
    ] = None,
    as_json: LineJson = False,
) -> None:
    """Tell what is expected of the labels that come next: of tomorrow, next week, next month.

    Example: tensortide forecast run --steps 14 -o ahead.csv
    """
    from tensortide.cli.table_file import ENDINGS, tell_written
    from tensortide.tracker.tracker import Tracker

    endings = (*ENDINGS, *PICTURES)
    if out is not None and out.suffix.lower() not in endings:
        *most, last = endings
        raise InputError(f"{out}: the file must end with {', '.join(most)} or {last}.")
    with Tracker.open(run, read_only=True) as tracker:
        model = tracker.model
    if out is not None and out.suffix.lower() in PICTURES:
        _draw(model, steps, mode, where, out, f"forecast of {run.resolve().name}")
        return
    chosen = _chosen(model._require_model().modes, where or ())
    found = model.forecast(steps, mode, where=chosen)
    if out is not None:
        tell_written(found, out)
    elif as_json:
        for row in found.to_pylist():
            print(json.dumps(row, default=str))
    else:
        _print(found)


def _draw(
    model: ReadOnlyModel, steps: int, mode: str | None, where: Any, out: Path, title: str
) -> None:
    from tensortide.report.figures.forecast import draw_forecast

    if where:
        raise InputError("a picture shows the largest series; --where goes with a table.")
    draw_forecast(model, steps, mode, out, title)
    print(f"{out}: {counted(steps, 'step')} ahead", file=sys.stderr)


def _chosen(modes: Modes, where: Sequence[str]) -> dict[str, list[Any]] | None:
    """Read MODE=LABEL words; labels are read in the kinds that the run has."""
    chosen: dict[str, list[Any]] = {}
    for word in where:
        name, equals, text = word.partition("=")
        if not equals:
            raise InputError(f"--where {word}: say a mode and a label, as in place=Kiel.")
        kind = modes.labels[modes.index(name)].kind
        chosen.setdefault(name, []).append(_label(name, kind, text))
    return chosen or None


def _label(name: str, kind: str, text: str) -> Any:
    import pyarrow as pa

    from tensortide.data.labels import label_column

    try:
        return pa.array([text]).cast(label_column(kind, []).type)[0].as_py()
    except ARROW_ERRORS:
        raise InputError(f"--where {name}={text}: mode {name!r} has {kind} labels.") from None


def _print(found: pa.Table) -> None:
    """Print the first rows as a table, and say how many more there are."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    *modes, value, _ = found.column_names
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in modes:
        table.add_column(name, overflow="fold")
    table.add_column("forecast", justify="right", no_wrap=True)
    for row in found.slice(0, SHOWN).to_pylist():
        table.add_row(*(str(row[name]) for name in modes), f"{row[value]:,.5g}")
    console.print(table)
    if found.num_rows > SHOWN:
        more = f"{found.num_rows - SHOWN:,} more rows; -o FILE writes all, --where chooses some."
        console.print(more)
