"""`tensortide compare`: all methods on the user's own file."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tensortide.compare import Result, Task, batches, compare, draw
from tensortide.errors import InputError
from tensortide.methods import METHODS

PICTURES = (".png", ".svg", ".pdf", ".jpg")


def run_compare(task: Task, *, methods: str | None, picture: Path | None, as_json: bool) -> None:
    """Run the comparison, print the table and write the picture."""
    names = list(METHODS) if methods is None else [m.strip() for m in methods.split(",")]
    unknown = [name for name in names if name not in METHODS]
    if unknown:
        raise InputError(f"there is no method {unknown[0]!r}; there are {', '.join(METHODS)}.")
    if picture is not None and (
        picture.suffix.lower() not in PICTURES or not picture.resolve().parent.is_dir()
    ):
        raise InputError(
            f"{picture}: no picture can be written there; the folder has to exist and the name "
            f"to end in one of {', '.join(PICTURES)}."
        )
    steps = batches(task)
    errors = Console(stderr=True)
    results: list[Result] = []
    with Progress(
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(),
        console=errors, disable=not errors.is_terminal, transient=True,
    ) as progress:  # fmt: skip
        bar = progress.add_task("preparing", total=len(names) * (len(steps) - 1))
        for done, result in enumerate(
            compare(task, names, lambda name: progress.update(bar, advance=1, description=name)), 1
        ):
            results.append(result)
            progress.update(bar, completed=done * (len(steps) - 1))
    if all(r.refused is not None for r in results):
        raise InputError(f"no method could run; the first said: {results[0].refused}")
    if picture is not None:
        draw(task, results, picture)
    if as_json:
        for result in results:
            print(json.dumps(asdict(result)))
        return
    _print(task, results, steps[0].num_rows, picture)


def _print(task: Task, results: list[Result], n_first: int, picture: Path | None) -> None:
    console = Console()
    n_steps = max((r.steps for r in results), default=0)
    console.print(
        f"{task.table.num_rows:,} records, rank {task.rank}; prepared on the first {n_first:,}, "
        f"then {n_steps} steps by {task.step_by}: each batch is predicted, then learned.\n",
        highlight=False,
    )
    table = Table(box=None, pad_edge=False)
    table.add_column("method", no_wrap=True)
    for title in ("fitness", "error of\nnew cells", "seconds", "memory"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("parameters")
    able = [r for r in results if r.refused is None]
    for r in sorted(able, key=lambda r: -(r.fitness or 0.0)):
        table.add_row(
            r.method,
            f"{r.fitness:.4f}",
            "" if r.error is None else f"{r.error:.4f}",
            f"{r.seconds:.2f}",
            _size(r.bytes),
            r.parameters,
        )
    console.print(table)
    console.print(
        "\nfitness: 1 - |x - y| / |x| on all cells at the end; error of new cells: |x - y| / |x| "
        "of every batch before it was learned, a new label predicted with the mean of its mode.",
        highlight=False,
    )
    for r in results:
        if r.refused is not None:
            console.print(f"not run: {r.refused}", highlight=False, soft_wrap=True)
    if picture is not None:
        console.print(f"picture: {picture}", highlight=False, soft_wrap=True)


def _size(n_bytes: int) -> str:
    for unit in ("B", "KB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}"
        n_bytes = round(n_bytes / 1000)
    return f"{n_bytes:.0f} GB"
