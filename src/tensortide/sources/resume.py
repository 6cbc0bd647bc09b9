"""Places in sources that the ledger knows, and what they say of a file that comes again.

The rule, for files: a file is its path.  What was learned of it is known by content, so a file
that grew goes on where it ended.  A file under a new path goes on where another ended only if
that one is no longer there: it was renamed.  Two files that stand side by side are two files,
also when their bytes are equal.  A file whose beginning is no longer what was learned of it has
changed, and the user is asked.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from tensortide.errors import FileError
from tensortide.legacy import FormerTuple
from tensortide.sources.bytestream import BLOCK, ByteStream, file_digest, new_hash

_Key: TypeAlias = tuple[str, str, int]  # path, else source; generation

#: How the digest of tables with a name begins, which are no files whatever they are called.
NAMED = "name "
#: Bytes at the beginning of a text by which its places are looked up.
HEAD = 1024


def head_of(data: bytes, place: int) -> str:
    """Return the hash of the beginning of a text, with the number of bytes it is of.

    A text that was shorter when it was opened is looked up by what it had then.
    """
    length = min(HEAD, place, len(data))
    digest = new_hash()
    digest.update(data[:length])
    return f"{length} {digest.hexdigest()}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Place(FormerTuple):
    """Where the records of a step end in their source, by its content.

    Of a text, `digest` is the hash of the first `position` bytes and `head` that of its beginning;
    of a file of columns, and of tables with a name, `digest` stands for the whole, and `position`
    counts records.  `part` counts records of a sorted stretch that is not finished.  `path` is the
    file's own; `generation` counts the files that were at this path one after the other; `renamed`
    is the generation and the path (or the name, where there was none) that it had before.
    """

    _former: ClassVar[tuple[str, ...]] = ("position", "digest", "part", "head", "source")

    source: str
    path: str | None = None
    digest: str | None = None
    position: int | None = None
    part: int | None = None
    label: str | None = None
    head: str | None = None
    generation: int = 0
    renamed: str | None = None

    @property
    def batch_id(self) -> str | None:
        """The id that the content gives, or None."""
        if self.digest is None:
            return None
        return f"{self.digest}@{self.position}{'' if self.part is None else f'#{self.part}'}"


class Verdict(Enum):
    """What a source is, beside what is known."""

    NEW = "nothing of it is known"
    KNOWN = "it goes on where it ended"
    RENAMED = "it goes on where a file ended that is no longer there"
    ALIKE = "it begins with all of another file, which is still there"
    SHORTER = "it ends before what was learned of it"
    CHANGED = "what was learned of it is no longer there"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeAt:
    """Where to go on: a place, the running hash and the number of lines before it.

    Of the stretch from there to `until` (hash `digest`), `part` records are done already.
    `earlier` is the place by which it was judged; a text that changed has `lines` which are as
    they were, and has changed before the end of line `changed_by`, where that is known.
    """

    place: int = 0
    running: Any = None
    lines: int = 0
    changed_by: int | None = None
    part: int = 0
    until: int | None = None
    digest: str = ""
    generation: int = 0
    verdict: Verdict = Verdict.NEW
    earlier: Place | None = None


class KnownPlaces:
    """All places that steps have ended at, by source and by content.

    Paths are kept relative to `base`, the folder of the run, so that a run may be moved or
    copied together with its files.
    """

    def __init__(self, base: Path, places: Iterable[Place] = ()) -> None:
        self._base = base.resolve()
        self._sources: dict[_Key, list[Place]] = {}  # oldest first
        self._newest: dict[str, _Key] = {}  # by path
        self._generations: dict[str, int] = {}  # how many files there have been at a path
        self._since: dict[_Key, int] = {}  # which source was the first, the second, ...
        self._marks: dict[_Key, set[str]] = {}  # beginnings and hashes of each source
        self._there: dict[_Key, bool] = {}  # whether a source was there at this look
        self._heads: dict[str, set[_Key]] = {}  # by the beginning of a text
        self._lengths: set[int] = set()  # of the beginnings
        self._digests: dict[str, set[_Key]] = {}  # by the hash of a whole file, or a name
        for place in places:
            self.add(place)

    def look_again(self) -> None:
        """Forget which files were there: another look begins."""
        self._there.clear()

    def path_of(self, path: Path) -> str:
        """Return what a file is known by, however it was named."""
        try:
            return os.path.relpath(path.resolve(), self._base)
        except ValueError:  # another drive
            return str(path.resolve())

    def add(self, place: Place) -> None:
        """Remember a place."""
        digest = place.digest
        if digest is None or place.position is None:
            return
        if place.path is None and not digest.startswith(NAMED):  # a pipe, or a run without paths
            folders = (Path(), self._base, self._base.parent)
            files = (folder / place.source for folder in folders)
            if (file := next((f for f in files if f.is_file()), None)) is not None:
                place = replace(place, path=self.path_of(file))
        key = _key(place)
        if place.path is not None:
            there = self._generations.get(place.path, 0)
            self._generations[place.path] = max(there, place.generation + 1)
        if place.renamed is not None and place.path is not None:
            generation, name = place.renamed.split(" ", 1)
            for old in ((name, "", int(generation)), ("", name, int(generation))):
                self._rename(old, key)
        self._sources.setdefault(key, []).append(place)
        self._since.setdefault(key, len(self._since))
        self._marks.setdefault(key, set()).add(place.head or digest)
        self._there.pop(key, None)
        if place.path is not None:
            self._newest[place.path] = key
        if place.head is None:
            self._digests.setdefault(digest, set()).add(key)
        else:
            self._heads.setdefault(place.head, set()).add(key)
            self._lengths.add(int(place.head.split()[0]))

    def of(self, path: Path) -> list[Place]:
        """Return the places of a file, of its newest generation."""
        key = self._newest.get(self.path_of(path))
        return [] if key is None else self._sources[key]

    def begins(self, data: bytes) -> list[list[Place]]:
        """Return the places of each text that begins like this one."""
        keys = {key for n in self._lengths for key in self._heads.get(head_of(data, n), ())}
        return [self._sources[key] for key in sorted(keys)]

    def whole(self, digest: str) -> list[Place]:
        """Return how far each file, or name, with this digest has been taken."""
        return [self._sources[key][-1] for key in sorted(self._digests.get(digest, ()))]

    def judge(self, candidates: Iterable[Place], path: Path) -> ResumeAt:
        """Say whether a new path goes on where one of these sources ended, all of which it holds.

        If so, it takes their place.
        """
        alike = None
        for place in candidates:
            if self._is_there(place):
                alike = place
                continue
            self._rename(_key(place), self._next(path))
            return ResumeAt(verdict=Verdict.RENAMED, earlier=place)
        verdict = Verdict.NEW if alike is None else Verdict.ALIKE
        return ResumeAt(verdict=verdict, earlier=alike, generation=self._next(path)[2])

    def find_moved(self, place: Place, files: Iterable[Path]) -> Path | None:
        """Return the other file that has now what was learned of one, as when logs rotate.

        It takes over what is known.
        """
        for path in files:
            own = self.of(path)
            if self.path_of(path) == place.path or (own and holds(path, own[-1])):
                continue
            if holds(path, place):
                self._rename(_key(place), self._next(path))
                return path
        return None

    def files(self) -> dict[str, Path | None]:
        """Return the file of each source by its name, oldest first; None where it is no file."""
        found: dict[str, Path | None] = {}
        for key, places in sorted(self._sources.items(), key=lambda item: self._since[item[0]]):
            is_file = key[0] and self._newest.get(key[0]) == key
            if is_file or not key[0]:
                found[places[-1].source] = self._base / key[0] if is_file else None
        return found

    def _next(self, path: Path) -> _Key:
        """Return the key of a file that is new at a path."""
        name = self.path_of(path)
        return name, "", self._generations.get(name, 0)

    def _is_there(self, place: Place) -> bool:
        key = _key(place)
        if place.path is None or self._newest.get(place.path) != key:
            return False
        if key not in self._there:
            self._there[key] = holds(self._base / key[0], place)
        return self._there[key]

    def _rename(self, old: _Key, new: _Key) -> None:
        """Give what is known of a source to the path that it has now, in the same place."""
        if old not in self._sources or old == new:
            return
        if self._newest.get(old[0]) == old:
            del self._newest[old[0]]
        path, _, generation = new
        self._newest[path] = new
        self._generations[path] = max(self._generations.get(path, 0), generation + 1)
        places = self._sources.pop(old)
        self._sources[new] = [replace(p, path=path, generation=generation) for p in places]
        self._since[new] = self._since.pop(old)
        self._marks[new] = self._marks.pop(old)
        self._there.pop(old, None)
        for mark in self._marks[new]:
            for keys in (self._heads.get(mark), self._digests.get(mark)):
                if keys is not None and old in keys:
                    keys.remove(old)
                    keys.add(new)


def _key(place: Place) -> _Key:
    return (place.path or "", "" if place.path else place.source, place.generation)


def holds(path: Path, place: Place) -> bool:
    """Tell whether a file still has, or begins with, what was learned up to a place."""
    if not path.is_file():
        return False
    try:
        if place.head is None:
            return file_digest(path) == place.digest
        digest, left = new_hash(), int(place.position or 0)
        with closing(ByteStream(path)) as octets:
            while left and (more := octets.read(min(BLOCK, left))):
                digest.update(more)
                left -= len(more)
    except FileError:
        return False
    return not left and str(digest.hexdigest()) == place.digest
