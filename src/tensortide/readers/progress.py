"""A progress line for long preparations, when a person is watching."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def watched_sweeps(
    starts: int, max_sweeps: int, *, show: bool | None
) -> Iterator[Callable[[int, int, float], None] | None]:
    """Give a callback for `prepare` that draws a bar, or None where nobody watches.

    `show` None means: when standard error is a terminal.  The bar counts sweeps of all
    starts; preparation may stop before the last one, which is what it says then.
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
        task = progress.add_task("starting", total=starts * max_sweeps)

        def tell(start: int, sweep: int, objective: float) -> None:
            of = f"start {start + 1} of {starts}, " if starts > 1 else ""
            progress.update(
                task,
                completed=start * max_sweeps + sweep,
                description=f"{of}sweep {sweep} of at most {max_sweeps}, objective {objective:.4g}",
            )

        yield tell
