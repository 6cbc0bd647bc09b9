"""How far a file of text has been learned, found by the hashes of its beginnings."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from tensortide.sources.bytestream import BLOCK, ByteStream, new_hash
from tensortide.sources.resume import KnownPlaces, Place, ResumeAt, Verdict


class _Prefix(NamedTuple):
    """What lies before a place: its running hash, its lines, its last byte, and the one after."""

    running: Any
    lines: int
    last: bytes
    following: bytes

    def is_of(self, place: Place) -> bool:
        return bool(self.running.hexdigest() == place.digest)

    @property
    def line_grew(self) -> bool:
        """Whether a last line that had no end when it was read has become longer."""
        return self.last != b"\n" and self.following not in (b"", b"\r", b"\n")


class Prefixes:
    """The beginnings of a text up to some places, as far as it reaches."""

    def __init__(self, path: Path, limit: int | None, places: list[Place]) -> None:
        self._at: dict[int, _Prefix] = {}
        digest, lines, last = new_hash(), 0, b""
        with closing(ByteStream(path, limit)) as octets:
            data, at, begin = b"", 0, 0  # the block that begins at `begin`; hashed up to `at`
            for mark in sorted({_position(p) for p in places}):
                while at < mark:
                    if at == begin + len(data):
                        begin, data = at, octets.read(BLOCK)
                    taken = data[at - begin : mark - begin]
                    if not taken:
                        return
                    digest.update(taken)
                    lines, last, at = lines + taken.count(b"\n"), taken[-1:], at + len(taken)
                if at == begin + len(data):
                    begin, data = at, octets.read(BLOCK)
                following = data[at - begin : at - begin + 1]
                self._at[mark] = _Prefix(digest.copy(), lines, last, following)

    def reaches(self, place: Place) -> bool:
        """Tell whether the text is long enough for a place."""
        return _position(place) in self._at

    def matches(self, place: Place) -> bool:
        """Tell whether the text begins with what was learned up to a place."""
        return self.reaches(place) and self._at[_position(place)].is_of(place)

    def grew(self, place: Place) -> bool:
        """Tell whether the last line before a place has become longer."""
        return self._at[_position(place)].line_grew

    def lines(self, place: Place) -> int:
        """Return the number of lines before a place."""
        return self._at[_position(place)].lines

    def last_line(self, place: Place) -> int:
        """Return the number of the line in which a place lies, or which ends there."""
        before = self._at[_position(place)]
        return before.lines + (before.last != b"\n")

    def go_on(self, resume: ResumeAt, places: list[Place]) -> ResumeAt:
        """Go on behind the last of these places, all of which are in the text."""
        done = [p for p in places if p.part is None]
        if done:
            at = _position(done[-1])
            before = self._at[at]
            resume = replace(resume, place=at, running=before.running, lines=before.lines)
        if not places:
            return resume
        last = places[-1]
        if last.part is not None:
            resume = replace(resume, part=last.part, until=last.position, digest=last.digest or "")
        return replace(resume, generation=last.generation)


def resume_text(
    path: Path, limit: int | None, head: bytes, known: KnownPlaces
) -> tuple[ResumeAt, bool]:
    """Return where a file goes on, and whether a last line that was learned became longer."""
    own = known.of(path)
    others = [places for places in known.begins(head) if places is not own]
    prefixes = Prefixes(path, limit, [*own, *(p for places in others for p in places)])
    resume = ResumeAt(verdict=Verdict.KNOWN)
    if not own:
        here = [places[-1] for places in others if prefixes.matches(places[-1])]
        resume = known.judge(sorted(here, key=_position, reverse=True), path)
        own = known.of(path)
    found = [p for p in own if prefixes.matches(p)]
    if found[-1:] == own[-1:]:
        grew = bool(own) and prefixes.grew(own[-1])
        at = _position(own[-1]) if own else 0
        done = [p for p in found if _position(p) < at] if grew else found
        piped = [ps[-1] for ps in others if ps[-1].path is None and prefixes.matches(ps[-1])]
        farther = [p for p in piped if _position(p) > at and p.part is None]
        if own and not grew and farther:  # the same text came by a pipe, and more of it
            last = max(farther, key=_position)
            done = [*done, replace(last, generation=own[-1].generation)]
        return prefixes.go_on(resume, done), grew
    inside = [p for p in own if prefixes.reaches(p)]
    other = [p for p in inside if not prefixes.matches(p)]
    shorter = len(inside) < len(own) and not other
    return ResumeAt(
        verdict=Verdict.SHORTER if shorter else Verdict.CHANGED,
        earlier=own[-1],
        lines=prefixes.lines(found[-1]) if found else 0,
        changed_by=prefixes.last_line(other[0]) if other else None,
        generation=own[-1].generation,
    ), False


def _position(place: Place) -> int:
    return int(place.position or 0)
