"""`tensortide compare`: methods and rivals on the user's own file."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from tensortide.cli.table_file import ENDINGS, write_table
from tensortide.errors import InputError
from tensortide.experiments.compare import Task
from tensortide.experiments.compare_result import Result
from tensortide.experiments.comparison import contenders, contest
from tensortide.palette import plotting

PICTURES = (".png", ".svg", ".pdf", ".jpg")


def run_compare(
    task: Task, guessed: tuple[str, ...], *, title: str, methods: str | None, rivals: bool,
    out: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Run the comparison, print the table and write the picture or the table."""
    said = None if methods is None else [m.strip() for m in methods.split(",") if m.strip()]
    names = contenders(said)
    if out is not None:
        _check_out(out)
    for guess in guessed:
        print(f"guessed {guess}", file=sys.stderr)
    found = contest(task, names, rivals=rivals, guessed=guessed, tell=_tell)
    if as_json:
        for result in found.rows:
            print(json.dumps(asdict(result)))
    else:
        print(found)
    if out is None:
        return
    if out.suffix.lower() in ENDINGS:
        write_table(found.to_table(), out)
    else:
        found.plot(out, title)
    if not as_json:
        print(f"{'table' if out.suffix.lower() in ENDINGS else 'picture'}: {out}")


def _tell(result: Result) -> None:
    """Where no bar is drawn, say what is done."""
    if not sys.stderr.isatty():
        print(f"{result.method}: {result.seconds:.2f} s", file=sys.stderr)


def _check_out(out: Path) -> None:
    """Refuse before anything is computed."""
    kinds = (*PICTURES, *ENDINGS)
    if out.suffix.lower() not in kinds or not out.resolve().parent.is_dir():
        raise InputError(
            f"{out}: no picture or table can be written there; the folder has to exist and the "
            f"name to end in one of {', '.join(kinds)}."
        )
    if out.suffix.lower() in PICTURES:
        plotting()
