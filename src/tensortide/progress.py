"""One bar for everything that takes long, when a person is watching."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


class Bar:
    """How far a work of `total` parts is, with words before and after; else nothing at all.

    `show` None means: when standard error is a terminal.  Only what is told is drawn; with
    `counted` the parts that are done are shown as a number too, with `left` the time that is left
    if the other parts take as long, else the time that has passed.
    """

    def __init__(
        self, total: int | None, before: str = "", *, show: bool | None = None,
        counted: bool = False, left: bool = False, screen: Console | None = None,
    ) -> None:  # fmt: skip
        self.total, self.done = total, 0
        self.shown = sys.stderr.isatty() if show is None else show
        if not self.shown:
            return
        from rich import progress as rich
        from rich.console import Console

        columns = [
            rich.TextColumn("{task.fields[before]}", markup=False),
            rich.BarColumn(bar_width=24),
            rich.TextColumn("{task.fields[after]}", markup=False),
            *([rich.MofNCompleteColumn()] if counted else []),
            rich.TimeRemainingColumn() if left else rich.TimeElapsedColumn(),
        ]
        shown_on = screen or Console(stderr=True)
        self._progress = rich.Progress(*columns, console=shown_on, transient=True)
        self._task = self._progress.add_task("", total=total, before=before, after="")

    def __enter__(self) -> Bar:
        """Begin to draw."""
        if self.shown:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take the bar away."""
        if self.shown:
            self._progress.stop()

    def tell(
        self, before: str | None = None, after: str | None = None, *, done: int | None = None
    ) -> None:
        """Change the words, and how many parts are done."""
        self.done = self.done if done is None else done
        if self.shown:
            words = {"before": before, "after": after}
            given: dict[str, Any] = {k: text for k, text in words.items() if text is not None}
            self._progress.update(self._task, completed=self.done, **given)

    def advance(self, before: str | None = None) -> None:
        """Tell that another part is done."""
        self.tell(before, done=self.done + 1)

    def begin_again(self, total: int | None, before: str) -> None:
        """Draw another work."""
        self.total, self.done = total, 0
        if self.shown:
            self._progress.reset(self._task, total=total)
            self.tell(before)


@contextmanager
def watched_sweeps(
    most: int, *, show: bool | None
) -> Iterator[Callable[[int, float], None] | None]:
    """Give a callback for `prepare` that draws a bar, or None where nobody watches.

    The bar counts sweeps up to `most`; preparation mostly converges before, and the text says
    "at most".
    """
    with Bar(most, "preparing", show=show) as bar:

        def tell(done: int, objective: float) -> None:
            words = f"sweep {done} of at most {most}, objective {objective:.4g}"
            bar.tell(after=words, done=done)

        yield tell if bar.shown else None


@contextmanager
def watched_days(total: int, *, show: bool | None) -> Iterator[Callable[[str], None]]:
    """Give a callback that is told each as-of day that is done; draws a bar if somebody watches."""
    with Bar(total, "as of ...", show=show, counted=True, left=True) as bar:
        yield lambda day: bar.advance(f"as of {day}")
