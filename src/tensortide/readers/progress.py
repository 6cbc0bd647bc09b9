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
