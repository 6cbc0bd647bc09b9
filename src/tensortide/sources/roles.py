"""What the columns of a source are: labels, values, steps.  Guesses are obvious or not made."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensortide.errors import InputError
from tensortide.sources.columns import ColumnSpec
from tensortide.sources.cut import Cut
from tensortide.validate import check_columns_exist, check_value_apart

if TYPE_CHECKING:
    import pyarrow as pa

_VALUES = ("count", "n", "cases", "value", "total", "counts", "values", "amount")
#: names that columns often have, for a first look at somebody's file; the likeliest first
NAMES = {
    "value": _VALUES,
    "measure": (
        *_VALUES, "deaths", "sales", "quantity", "price", "visits", "admissions", "population",
    ),
    "count": (
        "count", "n", "cases", "value", "confirm", "total", "paid", "counts", "values", "amount",
    ),
    "reference": (
        "reference_date", "reference", "date", "event_date", "onset_date", "onset", "week", "month",
    ),
    "report": (
        "report_date", "reported", "report", "reporting_date", "notified", "notification_date",
        "publication_date", "published", "report_week", "report_month",
    ),
    "delay": ("delay", "lag", "development", "dev"),
}  # fmt: skip
_ROWS = 10_000


def columns_called(role: str, columns: Sequence[str]) -> list[str]:
    """Return the columns that have a name which is usual for a role, the likeliest first.

    Capitals do not matter.

    >>> columns_called("count", ["date", "Cases", "n"])
    ['n', 'Cases']
    """
    usual = NAMES[role]
    found = [name for name in columns if name.lower() in usual]
    return sorted(found, key=lambda name: (usual.index(name.lower()), name != name.lower()))


@dataclass(frozen=True, kw_only=True)
class Roles:
    """The columns of a run and how they make steps; `said` are the guesses, in words."""

    modes: list[str]
    value: str | None
    cut: Cut
    kinds: dict[str, str]
    said: tuple[str, ...] = ()

    @property
    def wanted(self) -> ColumnSpec:
        """The columns to read."""
        names = [*self.modes, *([] if self.cut.column is None else [self.cut.column])]
        return ColumnSpec({name: self.kinds[name] for name in names}, self.value)


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
            f"column {name!r} holds numbers with fractions, which cannot be labels; say with "
            "--modes which columns are: text, whole numbers, dates, times or booleans."
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
    needed = [*(modes or ()), value, None if cut is None else cut.column]
    check_columns_exist(sample.column_names, [name for name in needed if name is not None])
    if counting:
        value = None
    elif value is None:
        value, why = _value(sample, modes)
        said.append(f"value: {value} ({why})")
    if modes is None:
        modes, why = _modes(sample, value, cut)
        said.append(f"modes: {', '.join(modes)} ({why})")
    check_value_apart(value, modes)
    if len(set(modes)) < len(modes):
        raise InputError(f"a mode stands twice: {', '.join(modes)}.")
    if cut is not None and cut.column is not None and cut.column == value:
        raise InputError(f"column {value!r} has the values; step by a column of dates or labels.")
    kinds = {name: label_kind(sample[name], name) for name in modes}
    _check_dates(sample, [*modes, *([] if cut is None or cut.column is None else [cut.column])])
    if cut is None:
        cut, why = _cut(kinds, several=several)
        said.append(f"steps: {cut} ({why})")
    if cut.column is not None:
        kinds[cut.column] = label_kind(sample[cut.column], cut.column)
    return Roles(modes=list(modes), value=value, cut=cut, kinds=kinds, said=tuple(said))


def _value(sample: pa.Table, modes: Sequence[str] | None) -> tuple[str, str]:
    """Return the column of values where there is one that nobody would doubt."""
    import pyarrow as pa

    free = [n for n in sample.column_names if n not in (modes or ()) and not _numbering(sample, n)]
    named = [n for n in columns_called("value", free) if not _dated(sample[n].type)]
    fractions = [n for n in free if pa.types.is_floating(sample[n].type)]
    numbers = [n for n in free if _numeric(sample[n].type)]
    for found, why in (
        (named, "by its name"),
        (fractions, "the only column with fractions"),
        (numbers, "the only column of numbers"),
    ):
        if len(found) == 1:
            return found[0], why
    advice = "say --value NAME (or --duplicates count, if every record is one event)"
    if len(numbers) > 2:
        advice += "; if the table is wide, turn it first: one row a value is needed"
    if not numbers:
        advice += "; numbers with a decimal comma or a unit are text: write them with a point"
    raise InputError(
        f"which column has the values? The columns are {_list_columns(sample)}; {advice}."
    )


def _modes(sample: pa.Table, value: str | None, cut: Cut | None) -> tuple[list[str], str]:
    """All other columns; the step column only if no other has dates; no numbers of rows."""
    free = [n for n in sample.column_names if n != value]
    why = "all other columns"
    counting = [n for n in free if _numbering(sample, n)]
    if counting and len(free) - len(counting) >= 2:
        free = [n for n in free if n not in counting]
        why += (
            f" but {', '.join(n or 'the one without a name' for n in counting)}, which numbers rows"
        )
    measures = [n for n in columns_called("measure", free) if _numeric(sample[n].type)]
    if measures:
        raise InputError(
            f"is {measures[0]!r} a second value or a label? The columns are "
            f"{_list_columns(sample)}; say which columns are labels with --modes."
        )
    step = None if cut is None else cut.column
    if step in free and len(free) > 2 and any(n != step and _dated(sample[n].type) for n in free):
        return [n for n in free if n != step], f"{why} but the steps' {step}"
    if len(free) < 2:
        raise InputError(
            f"a model needs two label columns at least; the columns are {_list_columns(sample)}."
        )
    return free, why


def _numbering(sample: pa.Table, name: str) -> bool:
    """Tell whether a column numbers the records: cases, rows of a spreadsheet."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_integer(sample[name].type) or sample.num_rows < 3:
        return False
    called = re.fullmatch(r"(.*[^a-z])?id|index|row|nr|no|", name.lower()) is not None
    distinct = int(pc.count_distinct(sample[name]).as_py())
    return distinct == sample.num_rows and (called or sample.num_rows >= 100)


def _check_dates(sample: pa.Table, names: Sequence[str]) -> None:
    """Refuse dates that would be taken for text, and so for labels without an order."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in names:
        texts = sample[name]
        if pa.types.is_dictionary(texts.type):
            texts = texts.cast(texts.type.value_type)
        if not pa.types.is_string(texts.type) or not sample.num_rows:
            continue
        written = pc.match_substring_regex(texts, r"^\d{1,2}[./]\d{1,2}[./]\d{2,4}$")
        if (pc.sum(written).as_py() or 0) >= 0.9 * sample.num_rows:
            shown = texts.filter(written)[0].as_py()
            raise InputError(
                f"column {name!r} has dates such as {shown}, which cannot be put in order; write "
                "them as 2026-01-31."
            )


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


def _list_columns(sample: pa.Table) -> str:
    return ", ".join(f"{f.name} ({_word(f.type)})" for f in sample.schema)


def _word(kind: pa.DataType) -> str:
    """Return a type in plain words."""
    import pyarrow as pa

    if _dated(kind):
        return "dates"
    if pa.types.is_integer(kind):
        return "whole numbers"
    return "numbers" if _numeric(kind) else "true or false" if pa.types.is_boolean(kind) else "text"
