"""`tensortide predict`: values at the cells of a file."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, cast

import typer

from tensortide.cli.options import LineJson, RunFolder, TableFile

if TYPE_CHECKING:
    from tensortide.online.reading import Unknown


def predict(
    run: RunFolder,
    cells: Annotated[
        str, typer.Argument(metavar="CELLS", help="A file with the label columns, or -.")
    ],
    unknown: Annotated[
        str,
        typer.Option(
            help="Labels that the run has never seen: error, nan, or forecast, which answers "
            "those of the ordered mode and marks them in a column."
        ),
    ] = "error",
    out: TableFile = None,
    as_json: LineJson = False,
) -> None:
    """Give the model's values at the cells of a file, as CSV.

    Example: tensortide predict run cells.csv -o values.csv
    """
    import numpy as np
    import pyarrow as pa

    from tensortide.cli.table_file import tell_written, write_csv
    from tensortide.sources.cells import read_cells
    from tensortide.tracker.tracker import Tracker

    with Tracker.open(run, read_only=True) as tracker:
        model = tracker.model
    table = read_cells(model._require_model().modes, cells)
    values = model.predict(table, unknown=cast("Unknown", unknown))
    answer = table.append_column("predicted", pa.array(values))
    if unknown == "forecast":
        never = np.isnan(model.predict(table, unknown="nan"))
        answer = answer.append_column("forecast", pa.array(never))
    if out is not None:
        tell_written(answer, out)
    elif as_json:
        for row in answer.to_pylist():
            row["predicted"] = None if row["predicted"] != row["predicted"] else row["predicted"]
            print(json.dumps(row, default=str))
    else:
        write_csv(answer, sys.stdout.buffer)
