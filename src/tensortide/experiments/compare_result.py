"""How a method or a rival did, and where a rival is as good as the best method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from tensortide.online.score import share_missed

SLACK = 1.02  # errors that differ by less are as good as each other


class Share:
    """The size of errors against the size of values, over many steps."""

    def __init__(self) -> None:
        self.squares: list[tuple[float, float]] = []

    def add(self, missed: float, size: float) -> float | None:
        """Count a step (two norms) and return its own share."""
        self.squares.append((missed**2, size**2))
        return share_missed(missed, size)

    def total(self) -> float | None:
        """Return the share over all steps."""
        missed, size = np.array(self.squares).sum(axis=0)
        return float(np.sqrt(missed / size)) if size > 0.0 else None

    def spread(self) -> float | None:
        """Return the standard error of the share: the jackknife, leaving out one step each."""
        squares = np.array(self.squares)
        squares = squares[squares[:, 1] > 0.0]
        if len(squares) < 3:
            return None
        missed, size = (squares.sum(axis=0) - squares).T
        left_out = np.sqrt(missed / size)
        return float(np.sqrt((len(squares) - 1) * np.mean((left_out - left_out.mean()) ** 2)))


@dataclass(kw_only=True)
class Result:
    """How a method did; `refused` says why it stopped, at the step `refused_at` (0: preparing).

    Errors are ``|x - y| / |x|``: of each batch before it was learned and after, and of the cells
    of the batch that were held out, after the others were learned; None where x is zero.  A rival
    has no `fitness` and no errors after: it describes nothing that it has learned.  Its `notes`
    say where no method is better.
    """

    method: str
    kind: Literal["method", "rival"] = "method"
    parameters: dict[str, Any]
    errors: list[float | None] = field(default_factory=list)
    errors_after: list[float | None] = field(default_factory=list)
    errors_held: list[float | None] = field(default_factory=list)
    error: float | None = None
    error_held: float | None = None
    error_held_spread: float | None = None
    fitness: float | None = None
    seconds: float = 0.0
    bytes: int = 0
    steps: int = 0
    refused: str | None = None
    refused_at: int | None = None
    notes: list[str] = field(default_factory=list)

    def settle(self, new: Share, held: Share) -> None:
        """Take the errors over all steps."""
        self.error, self.error_held = new.total(), held.total()
        self.error_held_spread = held.spread()


def rank_of(result: Result) -> float:
    """Best first: by the cells held out, else by the error of new cells."""
    error = result.error if result.error_held is None else result.error_held
    return np.inf if error is None else error


def say_who_needs_no_model(results: Sequence[Result]) -> list[str]:
    """Write into the notes of the best rival where it is as good as the best method; return all.

    >>> model = Result(method="gocpt", parameters={}, error=0.200)
    >>> rival = Result(method="last value", kind="rival", parameters={}, error=0.203)
    >>> say_who_needs_no_model([model, rival])[0]
    'last value is as good as gocpt before learning (0.203, 0.200): you need no model for that.'
    >>> rival.error = 0.205
    >>> say_who_needs_no_model([model, rival])
    []
    """
    told = []
    for result in results:
        result.notes.clear()
    for which, when in (("error", "before learning"), ("error_held", "on cells held out")):
        judged = [r for r in results if r.refused is None and getattr(r, which) is not None]
        models = [r for r in judged if r.kind == "method"]
        rivals = [r for r in judged if r.kind == "rival"]
        if not models or not rivals:
            continue
        model, rival = (min(some, key=lambda r: getattr(r, which)) for some in (models, rivals))
        best, other = getattr(model, which), getattr(rival, which)
        if other <= SLACK * best:
            word = "better than" if SLACK * other < best else "as good as"
            rival.notes.append(
                f"{rival.method} is {word} {model.method} {when} ({other:.3f}, {best:.3f}): you "
                "need no model for that."
            )
            told.append(rival.notes[-1])
    return told
