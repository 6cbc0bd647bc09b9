"""What a person wants to know about a step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensortide.online.surprise import Surprise

MOST = 20  # surprises that a step lists


@dataclass(frozen=True, slots=True, kw_only=True)
class Info:
    """The report of one `fit` or `update`.

    `filled` and `revised` are None for methods without history, which cannot tell one from the
    other: `in_old_box` is their sum.  `prequential_error` is ``|x - y| / |x|`` of the batch with
    ``y`` predicted before learning, `learned_error` the same after it, `norm` is ``|x|`` and
    `missed` is ``|x - y|`` before; a new label is predicted with the mean row of its mode.
    `surprises` are the values that fit least, the least likely first, 20 at most.
    `rows_read` and `rows_written` count factor rows.  In a tracked run a batch has an id, and
    `repeated` says that it was applied before.
    """

    step: int
    entries: int
    duplicates: int = 0
    grown: int = 0
    in_old_box: int = 0
    filled: int | None = None
    revised: int | None = None
    unchanged: int | None = None
    retracted: int = 0
    new_labels: dict[str, int] = field(default_factory=dict)
    prequential_error: float | None = None
    learned_error: float | None = None
    norm: float | None = None
    missed: float | None = None
    objective: float | None = None
    alpha: float | None = None
    strategy: str | None = None
    sweeps: int = 0
    converged: bool | None = None
    rows_read: int = 0
    rows_written: int = 0
    largest_move: float = 0.0
    seconds: float = 0.0
    surprises: list[Surprise] = field(default_factory=list)
    batch_id: str | None = None
    repeated: bool = False

    def __str__(self) -> str:
        """Return one line for people."""
        if self.repeated:
            return f"batch {self.batch_id!r} was applied at step {self.step}: nothing done"
        known = [("grown", self.grown), ("filled", self.filled), ("revised", self.revised)]
        if self.filled is None:
            known = [("grown", self.grown), ("filled or revised", self.in_old_box)]
        known += [("unchanged", self.unchanged), ("retracted", self.retracted)]
        parts = [f"{count} {word}" for word, count in known if count]
        parts += [f"+{n} {mode}" for mode, n in self.new_labels.items() if n]
        word = "entry" if self.entries == 1 else "entries"
        line = f"step {self.step}: {self.entries} {word} ({', '.join(parts) or 'nothing new'})"
        if self.duplicates:
            line += f", {self.duplicates} duplicates combined"
        if self.prequential_error is not None:
            line += f", error before learning {self.prequential_error:.3f}"
        if self.surprises:
            n = len(self.surprises)
            more = " or more" if n >= MOST else ""
            line += f", {n}{more} surprise{'' if n == 1 else 's'}"
        return line + (", not converged" if self.converged is False else "")
