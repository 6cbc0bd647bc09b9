"""The modes of a model: their names and labels, and the way from raw records to positions.

Reading never changes anything.  New labels come back with the arrival and are appended
only when its step has succeeded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensortide.arrays import NO_WEIGHTS, Floats, Positions, Shape
from tensortide.data.arrival import Arrival
from tensortide.data.batch import Batch
from tensortide.data.labelled import LabelledArray, is_labelled
from tensortide.data.labels import Labels, NamedLabels, PositionLabels
from tensortide.data.tables import Table, is_table
from tensortide.errors import InputError
from tensortide.validate import check_array, check_order, check_positions
from tensortide.wording import written

VALUE_ADVICE = " Pass value=... to name the column of values."


class Modes:
    """Names and labels of all modes."""

    def __init__(self, names: Sequence[str], labels: Sequence[Labels]) -> None:
        self.names = tuple(names)
        self.labels = list(labels)

    @classmethod
    def for_records(cls, records: Any, names: tuple[str, ...] | None, value: str) -> Modes:
        """Set up empty modes that fit the first records."""
        if is_labelled(records):
            array = LabelledArray.of(records)
            array = array.turned(names or tuple(array.labels))
            check_order(len(array.labels))
            return cls(tuple(array.labels), [NamedLabels(c.kind) for c in array.labels.values()])
        if is_table(records):
            table = Table(records)
            if not table.n_records:
                raise InputError("there are no records to prepare from.")
            if names is None:
                table.require((value,), VALUE_ADVICE)
                names = tuple(name for name in table.names if name != value)
            check_order(len(names))
            table.require(names)
            return cls(names, [NamedLabels(table.labels(name).kind) for name in names])
        order = records.order if isinstance(records, Batch) else check_array(records, None)[0].ndim
        check_order(order)
        if names is not None and len(names) != order:
            raise InputError(
                f"there are {len(names)} modes {list(names)}, but the data have {order}."
            )
        return cls(
            names or [f"mode_{m}" for m in range(order)], [PositionLabels() for _ in range(order)]
        )

    @property
    def order(self) -> int:
        """Number of modes."""
        return len(self.names)

    @property
    def shape(self) -> Shape:
        """Size of each mode."""
        return tuple(len(labels) for labels in self.labels)

    def index(self, mode: str | int) -> int:
        """Return the number of a mode given by name or number."""
        if isinstance(mode, str):
            if mode in self.names:
                return self.names.index(mode)
            raise InputError(f"there is no mode {mode!r}; the modes are {', '.join(self.names)}.")
        if isinstance(mode, bool) or not isinstance(mode, int | np.integer):
            raise InputError(f"a mode is given by name or number, not by {mode!r}.")
        if not -self.order <= mode < self.order:
            raise InputError(f"there is no mode {mode}; the tensor has {self.order}.")
        return int(mode) % self.order

    def read(
        self,
        records: Any,
        value: str,
        *,
        counting: bool = False,
        mask: Any = None,
        append_along: int | None = None,
    ) -> Arrival:
        """Turn any kind of records into positions."""
        if is_labelled(records):
            return self._read_labelled(LabelledArray.of(records, mask), counting=counting)
        if isinstance(records, Batch) or is_table(records):
            if mask is not None:
                raise InputError("mask goes with an array; records list observed cells only.")
            if isinstance(records, Batch):
                return self._read_batch(records)
            return self._read_table(Table(records), value, counting=counting)
        return self._read_array(records, mask, append_along, counting=counting)

    def cells(self, cells: Any, *, unknown_is_nan: bool = False) -> Positions:
        """Return the positions of labelled cells; -1 in every mode where a label is unknown."""
        if is_table(cells):
            table = Table(cells)
            self._named_labels()
            table.require(self.names)
            if table.n_records == 0:
                return np.empty((0, self.order), np.int64)
            return self._cells_of_table(table, unknown_is_nan=unknown_is_nan)
        positions = check_positions(cells, "cells")
        if positions.shape[1] != self.order:
            raise InputError(f"cells have {positions.shape[1]} modes, the model has {self.order}.")
        beyond = positions >= np.array(self.shape)
        if beyond.any():
            if not unknown_is_nan:
                row, mode = (int(i[0]) for i in np.nonzero(beyond))
                raise InputError(
                    f"cell {row}: mode {self.names[mode]!r} has no position "
                    f"{positions[row, mode]}, its size is {self.shape[mode]}."
                )
            positions[beyond.any(axis=1)] = -1
        return positions

    def positions_of(self, mode: int, wanted: Sequence[Any]) -> Positions:
        """Return the positions of labels of one mode."""
        labels, name = self.labels[mode], self.names[mode]
        if isinstance(wanted, str) or not hasattr(wanted, "__len__"):
            raise InputError(f"labels must be a list, not the single {wanted!r}.")
        if not len(wanted):
            return np.empty(0, np.int64)
        if isinstance(labels, NamedLabels):
            encoded = labels.encode(Table({name: wanted}).labels(name), name)
            if encoded.fresh:
                raise InputError(f"mode {name!r} has no label {written(encoded.fresh[0])}.")
            return encoded.positions
        positions = np.asarray(wanted)
        if positions.dtype.kind not in "iu":
            raise InputError(f"labels of mode {name!r} are positions, not {wanted[0]!r}.")
        for position in positions[(positions < 0) | (positions >= len(labels))]:
            raise InputError(f"mode {name!r} has no label {int(position)!r}.")
        return positions.astype(np.int64)

    def positions_or_new(self, mode: int, wanted: Sequence[Any]) -> tuple[Positions, list[Any]]:
        """Return the positions of labels of one mode; those never seen get the next ones."""
        labels, name = self.labels[mode], self.names[mode]
        if not len(wanted):
            raise InputError(f"the list of labels of mode {name!r} is empty.")
        if isinstance(labels, NamedLabels):
            encoded = labels.encode(Table({name: wanted}).labels(name), name)
            return encoded.positions, encoded.fresh
        asked = check_positions(np.asarray(wanted)[:, None].repeat(2, axis=1), f"mode {name!r}")
        return _numbered_anew(asked[:, 0], len(labels))

    def cells_or_new(self, cells: Any, mode: int) -> tuple[Positions, list[Any]]:
        """Return the positions of cells, whose labels of one mode may be new, and those labels."""
        if is_table(cells):
            table = Table(cells)
            named = self._named_labels()
            table.require(self.names)
            if not table.n_records:
                return np.empty((0, self.order), np.int64), []
            encoded = named[mode].encode(table.labels(self.names[mode]), self.names[mode])
            known = {n: c for n, c in table.columns.items() if n != self.names[mode]}
            rest = self._cells_of_table(Table(known), but=mode)
            rest[:, mode] = encoded.positions
            return rest, encoded.fresh
        positions = check_positions(cells, "cells")
        beyond = positions[:, mode : mode + 1].copy() if positions.shape[1] == self.order else None
        if beyond is None:
            return self.cells(positions), []
        positions[:, mode] = 0
        positions = self.cells(positions)
        positions[:, mode], fresh = _numbered_anew(beyond[:, 0], self.shape[mode])
        return positions, fresh

    def label(self, mode: int, position: int, arrival: Arrival) -> Any:
        """Return the label at a position of a mode, which may be one that has just come."""
        labels, old = self.labels[mode], arrival.old_shape[mode]
        known = position < len(labels)
        return labels.label(position) if known else arrival.fresh[mode][position - old]

    def no_records(self, value: str) -> Any:
        """Return records in the form of these modes that are none."""
        if self.labels[0].kind == "position":
            return Batch(np.empty((0, self.order), np.int64), np.empty(0))
        return {name: [] for name in (*self.names, value)}

    def append(self, fresh: Sequence[Sequence[Any]]) -> None:
        """Adopt the new labels of an arrival."""
        for labels, new in zip(self.labels, fresh, strict=True):
            labels.append(new)

    def truncate(self, shape: Shape) -> None:
        """Take back what `append` did, however far it got."""
        for labels, size in zip(self.labels, shape, strict=True):
            if len(labels) > size:
                labels.truncate(size)

    def copy(self) -> Modes:
        """Return an independent copy."""
        return Modes(self.names, [labels.copy() for labels in self.labels])

    def _named_labels(self) -> list[NamedLabels]:
        named = [labels for labels in self.labels if isinstance(labels, NamedLabels)]
        if len(named) < self.order:
            raise InputError(
                "this model was fitted with positions; give an array of positions or a Batch, "
                "not a table."
            )
        return named

    def _arrival(
        self, coords: Positions, values: Floats, weights: Floats, fresh: Sequence[Sequence[Any]]
    ) -> Arrival:
        old = self.shape
        new = tuple(size + len(labels) for size, labels in zip(old, fresh, strict=True))
        return Arrival(
            listed=coords, values=values, weights=weights, fresh=tuple(fresh), old_shape=old,
            new_shape=new,
        )  # fmt: skip

    def _read_table(self, table: Table, value: str, *, counting: bool) -> Arrival:
        named = self._named_labels()
        table.require(self.names)
        if not counting:
            table.require((value,), VALUE_ADVICE)
        n = table.n_records
        coords = np.empty((n, self.order), np.int64)
        fresh: list[list[Any]] = []
        for mode, (name, labels) in enumerate(zip(self.names, named, strict=True)):
            new: list[Any] = []
            if n:
                encoded = labels.encode(table.labels(name), name)
                coords[:, mode], new = encoded.positions, encoded.fresh
            fresh.append(new)
        values = np.ones(n) if counting else table.values(value)
        return self._arrival(coords, values, NO_WEIGHTS, fresh)

    def _read_labelled(self, array: LabelledArray, *, counting: bool) -> Arrival:
        """Take the known cells; labels that are new come in the order of their axis."""
        named, array = self._named_labels(), array.turned(self.names)
        cells = np.nonzero(array.known)
        coords = np.empty((len(cells[0]), self.order), np.int64)
        fresh: list[list[Any]] = []
        for mode, (name, labels) in enumerate(zip(self.names, named, strict=True)):
            encoded = labels.encode(array.labels[name], name)
            coords[:, mode] = encoded.positions[cells[mode]]
            fresh.append(encoded.fresh)
        values = np.ones(len(coords)) if counting else array.values[cells]
        return self._arrival(coords, values, NO_WEIGHTS, fresh)

    def _read_batch(self, batch: Batch) -> Arrival:
        if batch.order != self.order:
            raise InputError(f"the batch has {batch.order} modes, the model has {self.order}.")
        fresh: list[range] = []
        for mode, (labels, size) in enumerate(zip(self.labels, batch.shape, strict=True)):
            if size > len(labels) and labels.kind != "position":
                raise InputError(
                    f"mode {self.names[mode]!r} has no position {size - 1}; new labels of a model "
                    "with named labels come in tables."
                )
            fresh.append(range(len(labels), max(size, len(labels))))
            self._check_growth(mode, len(fresh[-1]), batch)
        weights = NO_WEIGHTS if batch.weights is None else batch.weights
        return self._arrival(batch.coords, batch.values, weights, fresh)

    def _check_growth(self, mode: int, growth: int, batch: Batch) -> None:
        """Refuse a single large position, which is mostly a slip, to make a million rows."""
        if growth > 1_000_000 and growth > 100 * len(batch) and not batch.declared:
            raise InputError(
                f"position {batch.shape[mode] - 1} would make mode {self.names[mode]!r} grow by "
                f"{growth:,} rows for {len(batch)} records; if that is meant, pass shape= to Batch."
            )

    def _read_array(
        self, array: Any, mask: Any, append_along: int | None, *, counting: bool
    ) -> Arrival:
        dense, known = check_array(array, mask)
        if append_along is not None:
            mode = self.index(append_along)
            if dense.ndim == self.order - 1:
                dense, known = np.expand_dims(dense, mode), np.expand_dims(known, mode)
            self._check_slices(dense.shape, mode)
        whole = known.all() and np.isfinite(dense).all() and not counting
        if whole and self._positional():
            return self._read_block(np.array(dense, order="C"), append_along)
        batch = Batch(np.argwhere(known), dense[known], shape=dense.shape)
        if append_along is None:
            return self._read_batch(batch)
        coords = batch.coords.copy()
        coords[:, mode] += self.shape[mode]
        shape = tuple(s + dense.shape[m] if m == mode else s for m, s in enumerate(self.shape))
        return self._read_batch(Batch(coords, batch.values, shape=shape))

    def _positional(self) -> bool:
        return all(labels.kind == "position" for labels in self.labels)

    def _read_block(self, dense: Floats, append_along: int | None) -> Arrival:
        """Take an array without holes: more slices along a mode, or a box from the corner on."""
        fresh = []
        for mode, (size, known) in enumerate(zip(dense.shape, self.shape, strict=True)):
            end = known + size if mode == append_along else max(size, known)
            fresh.append(range(known, end))
        if append_along is None and any(self.shape):
            return self._read_batch(Batch(np.argwhere(np.ones(dense.shape)), dense.ravel()))
        new = tuple(k + len(f) for k, f in zip(self.shape, fresh, strict=True))
        from tensortide.core.tensor.dense_box import DenseBox  # brings the compiler

        block = DenseBox(dense)
        return Arrival(
            listed=None, values=dense.ravel(), weights=NO_WEIGHTS, fresh=tuple(fresh),
            old_shape=self.shape, new_shape=new, block=block,
        )  # fmt: skip

    def _check_slices(self, shape: Shape, mode: int) -> None:
        expected = " x ".join("any" if m == mode else str(s) for m, s in enumerate(self.shape))
        fits = len(shape) == self.order and all(
            m == mode or a == b for m, (a, b) in enumerate(zip(shape, self.shape, strict=True))
        )
        if not fits:
            raise InputError(
                f"slices along mode {self.names[mode]!r} must have shape {expected}, not "
                f"{' x '.join(map(str, shape))}."
            )

    def _cells_of_table(
        self, table: Table, *, unknown_is_nan: bool = False, but: int | None = None
    ) -> Positions:
        positions = np.zeros((table.n_records, self.order), np.int64)
        unknown = np.zeros(table.n_records, bool)
        for mode, (name, labels) in enumerate(zip(self.names, self._named_labels(), strict=True)):
            if mode == but:
                continue
            encoded = labels.encode(table.labels(name), name)
            if encoded.fresh and not unknown_is_nan:
                shown = ", ".join(written(label) for label in encoded.fresh[:5])
                more = f" and {len(encoded.fresh) - 5} more" if len(encoded.fresh) > 5 else ""
                ahead = (
                    "" if labels.kind in ("text", "boolean") else ", unknown='forecast' for values"
                )
                raise InputError(
                    f"mode {name!r} has no label {shown}{more}; pass unknown='nan' to get NaN "
                    f"for such cells{ahead}."
                )
            positions[:, mode] = encoded.positions
            unknown |= encoded.positions >= len(labels)
        positions[unknown] = -1
        return positions


def _numbered_anew(positions: Positions, size: int) -> tuple[Positions, list[Any]]:
    """Return positions with those from `size` on in a row without gaps, and what they stand for."""
    fresh = np.unique(positions[positions >= size])
    later = size + np.searchsorted(fresh, positions)
    return np.where(positions < size, positions, later), fresh.tolist()
