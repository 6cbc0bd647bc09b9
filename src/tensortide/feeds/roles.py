"""What the columns of a source are: labels, values, steps.  Guesses are obvious or not made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensortide.errors import InputError
from tensortide.feeds.portions import Cut
from tensortide.feeds.wanted import Wanted

if TYPE_CHECKING:
    import pyarrow as pa

_VALUES = ("value", "values", "count", "counts", "n", "cases", "amount", "total")
_ROWS = 10_000


@dataclass(frozen=True)
class Roles:
    """The columns of a run and how they make steps; `said` are the guesses, in words."""

    modes: list[str]
    value: str | None
    cut: Cut
    kinds: dict[str, str]
    said: tuple[str, ...] = ()

    @property
    def wanted(self) -> Wanted:
        """The columns to read."""
        names = [*self.modes, *([] if self.cut.column is None else [self.cut.column])]
        return Wanted({name: self.kinds[name] for name in names}, self.value)


def label_kind(column: pa.ChunkedArray, name: str) -> str:
    """Return the kind of labels that a column holds; refuse what cannot be labels.

    Whole numbers with leading zeros (codes, postcodes) come as text already.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_date(kind):
        return "date"
    if pa.types.is_timestamp(kind):
        if kind.tz is not None:
            return "datetime UTC"
        days = pc.equal(pc.floor_temporal(column, unit="day"), column)
        return "date" if pc.all(pc.fill_null(days, True)).as_py() else "datetime"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        raise InputError(
            f"column {name!r} holds numbers with fractions, which cannot be labels; labels are "
            "text, whole numbers, dates, times or booleans."
        )
    if str(kind).startswith(("list", "large_list", "fixed_size", "struct", "map")):
        raise InputError(f"column {name!r} holds {kind}, which are no labels.")
    return "text"


def find_roles(
    sample: pa.Table,
    modes: Sequence[str] | None,
    value: str | None,
    cut: Cut | None,
    *,
    counting: bool,
    several: bool,
) -> Roles:
    """Complete what the user said by what is obvious; refuse to guess the rest."""
    said: list[str] = []
    _check_named(sample, [*(modes or ()), value, None if cut is None else cut.column])
    if counting:
        value = None
    elif value is None:
        value, why = _value(sample, modes)
        said.append(f"value: {value} ({why})")
    if modes is None:
        modes, why = _modes(sample, value, cut)
        said.append(f"modes: {', '.join(modes)} ({why})")
    if value is not None and value in modes:
        raise InputError(f"column {value!r} cannot be both a mode and the values.")
    if len(set(modes)) < len(modes):
        raise InputError(f"a mode stands twice: {', '.join(modes)}.")
    if cut is not None and cut.column is not None and cut.column == value:
        raise InputError(f"column {value!r} has the values; step by a column of dates or labels.")
    kinds = {name: label_kind(sample[name], name) for name in modes}
    if cut is None:
        cut, why = _cut(kinds, several=several)
        said.append(f"steps: {cut} ({why})")
    if cut.column is not None:
        kinds[cut.column] = label_kind(sample[cut.column], cut.column)
    return Roles(list(modes), value, cut, kinds, tuple(said))


def _check_named(sample: pa.Table, needed: Sequence[str | None]) -> None:
    for name in needed:
        if name is not None and name not in sample.column_names:
            raise InputError(
                f"there is no column {name!r}; the columns are {', '.join(sample.column_names)}."
            )


def _value(sample: pa.Table, modes: Sequence[str] | None) -> tuple[str, str]:
    import pyarrow as pa

    free = [n for n in sample.column_names if n not in (modes or ())]
    named = [n for n in free if n.lower() in _VALUES and _numeric(sample[n].type)]
    fractions = [n for n in free if pa.types.is_floating(sample[n].type)]
    numbers = [n for n in free if _numeric(sample[n].type)]
    for found, why in (
        (named, "by its name"),
        (fractions, "the only column with fractions"),
        (numbers, "the only column of numbers"),
    ):
        if len(found) == 1:
            return found[0], why
    raise InputError(
        f"which column has the values? The columns are {_listed(sample)}; say --value NAME "
        "(or --duplicates count, if every record is one event)."
    )


def _modes(sample: pa.Table, value: str | None, cut: Cut | None) -> tuple[list[str], str]:
    """All other columns; the step column only if no other has dates."""
    free = [n for n in sample.column_names if n != value]
    step = None if cut is None else cut.column
    if step in free and len(free) > 2:
        others = [n for n in free if n != step and _dated(sample[n].type)]
        if others:
            return [n for n in free if n != step], f"all other columns but the steps' {step}"
    if len(free) < 2:
        raise InputError(f"a model needs two modes at least; the columns are {_listed(sample)}.")
    return free, "all other columns"


def _cut(kinds: dict[str, str], *, several: bool) -> tuple[Cut, str]:
    if several:
        return Cut(), "a folder or several files"
    dated = [name for name, kind in kinds.items() if kind.startswith("date")]
    if len(dated) == 1:
        return Cut(column=dated[0]), "the only column of dates"
    return Cut(rows=_ROWS), "no column of dates is obvious; see --step-by"


def _numeric(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _dated(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _listed(sample: pa.Table) -> str:
    return ", ".join(f"{f.name} ({f.type})" for f in sample.schema)
