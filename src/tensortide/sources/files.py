"""Which files there are, and the feed of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

from tensortide.errors import FileError
from tensortide.sources.columnar import ColumnarFeed
from tensortide.sources.memory import TableFeed
from tensortide.sources.text import TextFeed

KINDS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}

Feed: TypeAlias = TextFeed | ColumnarFeed | TableFeed

_PACKED = (".gz", ".bz2", ".xz", ".zst", ".lz4")


def kind_of(path: Path) -> str:
    """Return what a file is by its name; a compressed one by the name before.

    >>> kind_of(Path("day.csv.gz")), kind_of(Path("notes.txt"))
    ('csv', '')
    """
    name = path.name.lower()
    for ending in _PACKED:
        name = name.removesuffix(ending)
    kind = KINDS.get(Path(name).suffix, "")
    packed = name != path.name.lower()
    return "" if packed and kind in ("parquet", "arrow") else kind


def list_files(sources: Sequence[str | Path]) -> list[Path]:
    """Return the files of sources: folders become their files in the order of names."""
    files: list[Path] = []
    for source in sources:
        path = Path(source)
        if path.is_dir():
            files += sorted(f for f in path.iterdir() if f.is_file() and _regular(f))
        elif not path.exists():
            raise FileError(f"{path}: there is no such file or folder.")
        elif not kind_of(path):
            raise FileError(
                f"{path}: is of an unknown kind; known are {', '.join(sorted(KINDS))}, and text "
                f"also packed ({', '.join(_PACKED)})."
            )
        else:
            files.append(path)
    return files


def open_feed(path: Path | None, *, growing: bool = False) -> TextFeed | ColumnarFeed:
    """Open a file, or standard input where there is no path."""
    if path is None:
        return TextFeed(None)
    kind = kind_of(path)
    if kind in ("parquet", "arrow"):
        return ColumnarFeed(path, kind)
    return TextFeed(path, kind, growing=growing)


def open_feeds(source: str) -> Iterator[TextFeed | ColumnarFeed]:
    """Open a file, the files of a folder in the order of their names, or standard input (-)."""
    paths: list[Path | None] = [None] if source == "-" else [*list_files([source])]
    if not paths:
        raise FileError(f"{source}: has no file of a known kind ({', '.join(sorted(KINDS))}).")
    for path in paths:
        with closing(open_feed(path)) as feed:
            yield feed


def _regular(path: Path) -> bool:
    """Leave hidden and half-copied files out."""
    ours = path.name == "quarantine.csv"  # of a run in the same folder
    return bool(kind_of(path)) and not ours and not path.name.startswith((".", "~", "_"))
