"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

RunFolder: TypeAlias = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of the run.")]
TableFile: TypeAlias = Annotated[
    Path | None, typer.Option("-o", "--out", help="File: .csv, .parquet or .arrow.")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
LineJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON line a cell.")]
