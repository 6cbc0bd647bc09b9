"""Labels of a mode and their positions: append-only, one type of label per mode."""

from __future__ import annotations

import contextlib
import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tensortide.arrays import AnyArray, Flags, Positions
from tensortide.errors import InputError
from tensortide.wording import written

if TYPE_CHECKING:
    import pyarrow as pa

    from tensortide.data.tables import Column


DTYPES = {
    "text": "O",
    "integer": "int64",
    "boolean": "bool",
    "date": "datetime64[D]",
    "datetime": "datetime64[us]",
    "datetime UTC": "datetime64[us]",
}


_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class Encoded:
    """Positions of the labels of a batch, and the labels that are new (not yet known)."""

    positions: Positions
    fresh: list[Any]


class Labels(Protocol):
    """What the estimator needs of a mode's labels."""

    kind: str

    def __len__(self) -> int:
        """Return the size of the mode."""
        ...

    def label(self, position: int) -> Any:
        """Return the label at a position."""
        ...

    def array(self) -> AnyArray:
        """Return all labels in the order of positions."""
        ...

    def append(self, fresh: Sequence[Any]) -> None:
        """Add new labels at the end."""
        ...

    def truncate(self, size: int) -> None:
        """Take the newest labels away again."""
        ...

    def kept(self, keep: Flags) -> Labels:
        """Return the labels of the rows that are kept, numbered anew."""
        ...

    def copy(self) -> Labels:
        """Return an independent copy."""
        ...


class PositionLabels:
    """Labels that are the positions themselves: for arrays and batches of coordinates."""

    kind = "position"

    def __init__(self, size: int = 0) -> None:
        self._size = size

    def __len__(self) -> int:
        """Return the size of the mode."""
        return self._size

    def label(self, position: int) -> int:
        """Return the position."""
        return position

    def array(self) -> AnyArray:
        """Return all positions."""
        return np.arange(self._size)

    def append(self, fresh: Sequence[Any]) -> None:
        """Grow; the labels are known to be the next positions."""
        self._size += len(fresh)

    def truncate(self, size: int) -> None:
        """Take the newest positions away again."""
        self._size = size

    def kept(self, keep: Flags) -> PositionLabels:
        """Return the labels of the rows that are kept, numbered anew."""
        return PositionLabels(int(keep.sum()))

    def copy(self) -> PositionLabels:
        """Return an independent copy."""
        return PositionLabels(self._size)


class NamedLabels:
    """Labels of one kind (text, integer, date, datetime or boolean) in order of appearance.

    A batch costs one hashed look-up per *distinct* label; records are mapped by arrays.

    >>> names = NamedLabels("text", ["Berlin"])
    >>> names.append(["Hamburg"])
    >>> names.label(1), len(names)
    ('Hamburg', 2)
    """

    def __init__(self, kind: str, labels: Sequence[Any] = ()) -> None:
        self.kind = kind
        self._labels = list(labels)
        self._places = {label: place for place, label in enumerate(self._labels)}
        if len(self._places) < len(self._labels):
            raise InputError("a label stands twice in the list of labels.")

    def __len__(self) -> int:
        """Return the number of labels."""
        return len(self._labels)

    def label(self, position: int) -> Any:
        """Return the label at a position."""
        return self._labels[position]

    def array(self) -> AnyArray:
        """Return all labels as an array."""
        return np.array(self._labels, dtype=DTYPES[self.kind])

    def encode(self, column: Column, mode: str) -> Encoded:
        """Return positions; labels not yet known get the next ones, in order of appearance."""
        size = len(self._labels)
        table = np.empty(len(column.distinct), np.int64)
        labels = self._convert(column, mode)
        unknown = []
        for i, label in enumerate(labels):
            place = self._places.get(label)
            if place is None:
                unknown.append(i)
            else:
                table[i] = place
        fresh: dict[Any, int] = {}
        for i in _by_appearance(column.codes, unknown, len(labels)):
            table[i] = fresh.setdefault(labels[i], size + len(fresh))
        return Encoded(table[column.codes], list(fresh))

    def _convert(self, column: Column, mode: str) -> list[Any]:
        """Return the distinct labels in the kind of this mode: dates and midnights are the same."""
        labels = column.distinct
        if column.kind == self.kind:
            return labels
        if (column.kind, self.kind) == ("date", "datetime"):
            return [dt.datetime.combine(day, dt.time()) for day in labels]
        if (column.kind, self.kind) == ("text", "date") and all(map(_ISO_DATE.fullmatch, labels)):
            with contextlib.suppress(ValueError):
                return [dt.date.fromisoformat(day) for day in labels]
        midnights = column.kind == "datetime" and all(t.time() == dt.time() for t in labels)
        if midnights and self.kind == "date":
            return [time.date() for time in labels]
        raise InputError(
            f"mode {mode!r} has {self.kind} labels, but column {mode!r} now holds "
            f"{column.kind} labels, for instance {written(labels[0])}."
        )

    def append(self, fresh: Sequence[Any]) -> None:
        """Add new labels at the end."""
        size = len(self._labels)
        self._labels.extend(fresh)
        self._places.update((label, size + i) for i, label in enumerate(fresh))

    def truncate(self, size: int) -> None:
        """Take the newest labels away again."""
        for label in self._labels[size:]:
            if self._places.get(label, -1) >= size:
                del self._places[label]
        del self._labels[size:]

    def kept(self, keep: Flags) -> NamedLabels:
        """Return the labels of the rows that are kept, numbered anew."""
        return NamedLabels(self.kind, [self._labels[i] for i in np.flatnonzero(keep)])

    def copy(self) -> NamedLabels:
        """Return an independent copy."""
        return NamedLabels(self.kind, self._labels)


def label_column(kind: str, labels: Sequence[Any]) -> pa.Array:
    """Return labels of a kind as a column that is read as that kind again.

    >>> str(label_column("datetime UTC", [dt.datetime(2026, 1, 1)]).type)
    'timestamp[us, tz=UTC]'
    """
    import pyarrow as pa

    types = {
        "text": pa.string(), "integer": pa.int64(), "position": pa.int64(),
        "boolean": pa.bool_(), "date": pa.date32(), "datetime": pa.timestamp("us"),
        "datetime UTC": pa.timestamp("us", "UTC"),
    }  # fmt: skip
    return pa.array(labels, types[kind])


def _by_appearance(codes: Positions, some: list[int], n_distinct: int) -> list[int]:
    """Sort codes by the first record that has them, however the distinct labels are listed."""
    if len(some) < 2:
        return some
    wanted = np.zeros(n_distinct, bool)
    wanted[some] = True
    present = codes[wanted[codes]]
    found, first = np.unique(present, return_index=True)
    return [int(code) for code in found[np.argsort(first)]]
