"""Which columns a run takes from a source, of which kind, and how a single field is read."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tensortide.core.losses.standard import allowed_values
from tensortide.legacy import FormerTuple
from tensortide.wording import short

if TYPE_CHECKING:
    import pyarrow as pa

    from tensortide.core.losses.standard import Loss

#: Helper columns of a piece: the line (or record) number, where the record begins, where it ends.
LINE, START, END = "\0line", "\0start", "\0end"

NUMBER = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"

KINDS = {
    "text": "text",
    "integer": "a whole number",
    "boolean": "true or false",
    "date": "a date such as 2026-01-31",
    "datetime": "a time such as 2026-01-31T12:00",
    "datetime UTC": "a time with a zone",
}


@dataclass(frozen=True)
class ColumnSpec:
    """Label columns with their kinds, and the column of values (None: records are counted).

    With a `loss` each value has to be one that it takes; without, they are judged together later.
    """

    kinds: Mapping[str, str]
    value: str | None
    loss: Loss | None = None

    @property
    def names(self) -> list[str]:
        """All columns that are needed."""
        return [*self.kinds, *([] if self.value is None else [self.value])]

    def types(self) -> dict[str, pa.DataType]:
        """Return the Arrow type of each column."""
        import pyarrow as pa

        values = {} if self.value is None else {self.value: pa.float64()}
        return {name: arrow_type(kind) for name, kind in self.kinds.items()} | values

    def field(self, name: str, given: Any) -> Any:
        """Return one field as its column wants it; a ValueError says why it cannot be."""
        if given is None or given == "":
            raise ValueError(f"{name!r} is missing")
        if name == self.value:
            number = _number(name, given)
            if self.excludes(number):
                raise ValueError(self.misfit(number))
            return number
        return _label(name, given, self.kinds[name])

    @property
    def bounded(self) -> bool:
        """Whether the loss excludes any values."""
        loss = self.loss
        return loss is not None and (loss.least > -math.inf or loss.most < math.inf)

    def excludes(self, values: Any) -> Any:
        """Tell of a value, or an array of them, whether the loss excludes it."""
        if self.loss is None:
            return False
        return (values < self.loss.least) | (values > self.loss.most)

    def misfit(self, number: float) -> str:
        """Say what is wrong with a value that the loss excludes."""
        assert self.loss is not None
        takes = f"loss {self.loss.name!r} takes values {allowed_values(self.loss)}"
        return f"{self.value!r} is {number:g}, but {takes}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BadRecord(FormerTuple):
    """A record that cannot be learned: its source and line, why, and what stood there.

    `end` is where it ends in its source.
    """

    _former: ClassVar[tuple[str, ...]] = ("source", "line", "reason", "text")

    source: str = ""
    line: int
    reason: str
    text: str
    end: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """Good records (with the helper columns) and bad ones; `end` is where the piece ends.

    Of a pipe that is sent again, everything up to `known` has been learned before.
    """

    table: pa.Table
    bad: list[BadRecord]
    end: int
    known: int = 0


def arrow_type(kind: str) -> pa.DataType:
    """Return the Arrow type that labels of a kind have in a piece."""
    import pyarrow as pa

    return {
        "text": pa.dictionary(pa.int32(), pa.string()),
        "integer": pa.int64(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
        "datetime": pa.timestamp("us"),
        "datetime UTC": pa.timestamp("us", "UTC"),
    }[kind]


def piece_of(
    columns: Mapping[str, Any], lines: Any, starts: Any, ends: Any, bad: list[BadRecord], end: int
) -> Piece:
    """Put columns, line numbers and places together."""
    import pyarrow as pa

    places = {LINE: pa.array(lines), START: pa.array(starts), END: pa.array(ends)}
    return Piece(pa.table(dict(columns) | places), bad, end)


def without_places(table: pa.Table) -> pa.Table:
    """Return the records alone."""
    return table.drop_columns([LINE, START, END])


def _number(name: str, given: Any) -> float:
    if isinstance(given, str):
        if not re.match(NUMBER, given):
            hint = _hint(given.strip())
            if given.strip().lower().lstrip("+-") in ("nan", "inf", "infinity"):
                raise ValueError(f"{name!r} is not finite: {given.strip()}")
            raise ValueError(f"{name!r} must be a number, not {_short(given)}{hint}")
        number = float(given)
    elif isinstance(given, int | float):
        number = float(given)
    else:
        raise ValueError(f"{name!r} must be a number, not {_short(given)}")
    if not math.isfinite(number):
        raise ValueError(f"{name!r} is not finite: {_short(given)}")
    return number


def _hint(given: str) -> str:
    if re.fullmatch(r"-?\d{1,3}(,\d{3})+(\.\d+)?", given):
        return "; write it without commas, or with a point if the comma is a decimal one"
    return "; write it with a point" if re.fullmatch(r"-?\d+,\d+", given) else ""


def _label(name: str, given: Any, kind: str) -> Any:
    try:
        return _READERS[kind](given)
    except (ValueError, TypeError, KeyError, OverflowError):
        raise ValueError(
            f"the label {_short(given)} of {name!r} is not {KINDS[kind]}, as its labels are"
        ) from None


def _integer(given: Any) -> int:
    if isinstance(given, str):
        if not re.fullmatch(r"\s*-?\d{1,19}\s*", given):
            raise ValueError
        given = int(given)
    if isinstance(given, bool) or not isinstance(given, int) or not -(2**63) <= given < 2**63:
        raise ValueError
    return given


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError
    given.encode()  # half a surrogate pair, as JSON may have it, is no text
    return given


def _boolean(given: Any) -> bool:
    return given if isinstance(given, bool) else _BOOLEANS[given.strip()]


def _date(given: Any) -> dt.date:
    given = given.strip()
    if not re.fullmatch(r"\d{4}-\d\d-\d\d([T ]00:00(:00(\.0+)?)?)?", given):
        raise ValueError
    return dt.date.fromisoformat(given[:10])


def _datetime(given: Any) -> dt.datetime:
    given = given.strip()
    if not re.match(r"\d{4}-\d\d-\d\d", given):
        raise ValueError
    time = dt.datetime.fromisoformat(given)
    if time.tzinfo is not None:
        raise ValueError
    return time


def _short(given: Any) -> str:
    return short(repr(given), 60)


def _zoned(given: Any) -> dt.datetime:
    time = dt.datetime.fromisoformat(given.strip())
    if time.tzinfo is None:
        raise ValueError
    return time.astimezone(dt.UTC)


#: What Arrow takes for truth in a CSV file.
_BOOLEANS = dict.fromkeys(("1", "true", "TRUE", "True"), True) | dict.fromkeys(
    ("0", "false", "FALSE", "False"), False
)

_READERS: dict[str, Any] = {
    "text": _text,
    "integer": _integer,
    "boolean": _boolean,
    "date": _date,
    "datetime": _datetime,
    "datetime UTC": _zoned,
}
