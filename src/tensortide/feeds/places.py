"""Places in sources that the ledger knows, by content."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tensortide.feeds.octets import new_hash

#: Bytes at the beginning of a text by which its places are looked up.
HEAD = 1024


def head_of(data: bytes, place: int) -> str:
    """Return the hash of the beginning of a text, with the number of bytes it is of."""
    length = min(HEAD, place)
    digest = new_hash()
    digest.update(data[:length])
    return f"{length} {digest.hexdigest()}"


@dataclass(slots=True)
class Mark:
    """A place in a text that was reached; `part` records of the stretch up to it are done.

    None means all of them.  `sources` are the names under which it was reached; `last` says that
    one of them has not been read any farther.
    """

    part: int | None
    sources: set[str]
    last: bool = True

    def continues(self, name: str) -> bool:
        """Whether a text of this name that begins so is the same one, grown or renamed.

        Another text may share its first records by chance.
        """
        return self.last or name in self.sources


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
    """All places that steps have ended at.

    Of texts: beginning -> place -> hash of what lies before -> mark; the beginning keeps the
    search short where there are thousands of files.  Of whole files and of names: how many
    records are done.
    """

    texts: dict[str, dict[int, dict[str, Mark]]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    lengths: set[int] = field(default_factory=set)  # of the beginnings
    latest: dict[str, tuple[int, Mark]] = field(default_factory=dict)  # by source

    def add(self, place: int, digest: str, part: int | None, head: str | None, source: str) -> None:
        """Remember a place; of a stretch the largest part counts, and all of it counts most."""
        if head is None:
            self.counts[digest] = max(place, self.counts.get(digest, 0))
            return
        self.lengths.add(int(head.split()[0]))
        at = self.texts.setdefault(head, {}).setdefault(place, {})
        mark = at.setdefault(digest, Mark(part, set()))
        if part is None or (mark.part is not None and part > mark.part):
            mark.part = part
        mark.sources.add(source)
        mark.last = True
        before = self.latest.get(source)
        if before is not None and before[0] < place and before[1] is not mark:
            before[1].last = False
        self.latest[source] = (place, mark)

    def records(self, digest: str) -> int:
        """Return how many records of a whole file with this hash, or of a name, are done."""
        return self.counts.get(digest, 0)

    def marks(self, data: bytes) -> list[tuple[int, dict[str, Mark]]]:
        """Return the places of texts that begin like this one, in order."""
        found: dict[int, dict[str, Mark]] = {}
        for length in self.lengths:
            for place, at in self.texts.get(head_of(data, length), {}).items():
                found.setdefault(place, {}).update(at)
        return sorted(found.items())
