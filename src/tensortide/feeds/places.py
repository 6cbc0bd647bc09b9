"""Places in sources that the ledger knows, by content."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a text that was reached; `part` records of the stretch up to it are done.

    None means all of them.
    """

    part: int | None


@dataclass(frozen=True, slots=True)
class Start:
    """Where to go on: a place, the running hash and the number of lines before it.

    Of the stretch from there to `until` (hash `digest`), `part` records are done already.
    """

    place: int
    running: Any = None
    lines: int = 0
    part: int = 0
    until: int | None = None
    digest: str = ""


@dataclass
class Known:
    """All places that steps have ended at: place -> hash of what lies before -> mark."""

    places: dict[int, dict[str, Mark]] = field(default_factory=dict)
    sorted_marks: list[int] | None = None

    def add(self, place: int, digest: str, part: int | None) -> None:
        """Remember a place; of a stretch the largest part counts, and all of it counts most."""
        at = self.places.setdefault(place, {})
        before = at.get(digest)
        if before is None or part is None or (before.part is not None and part > before.part):
            at[digest] = Mark(part)
        self.sorted_marks = None

    def at(self, place: int, digest: str) -> Mark | None:
        """Return the mark at a place if the content before it is the same."""
        return self.places.get(place, {}).get(digest)

    def records(self, digest: str) -> int:
        """Return how many records of a whole file with this hash are done."""
        return max((p for p, at in self.places.items() if digest in at), default=0)

    @property
    def marks(self) -> list[int]:
        """All places, in order."""
        if self.sorted_marks is None:
            self.sorted_marks = sorted(self.places)
        return self.sorted_marks
