"""A progress line for long preparations, when a person is watching."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def watched_sweeps(
    most: int, *, show: bool | None
) -> Iterator[Callable[[int, float], None] | None]:
    """Give a callback for `prepare` that draws a bar, or None where nobody watches.

    `show` None means: when standard error is a terminal.  The bar counts sweeps up to
    `most`; preparation mostly converges before, and the text says "at most".
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("preparing"),
        BarColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("starting", total=most)

        def tell(done: int, objective: float) -> None:
            progress.update(
                task,
                completed=done,
                description=f"sweep {done} of at most {most}, objective {objective:.4g}",
            )

        yield tell


@contextmanager
def watched_days(total: int, *, show: bool | None) -> Iterator[Callable[[str], None]]:
    """Give a callback that is told each as-of day that is done; draws a bar if somebody watches."""
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (
        TextColumn("as of {task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Remaining(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("...", total=total)

        def tell(day: str) -> None:
            progress.update(task, advance=1, description=day)

        yield tell
