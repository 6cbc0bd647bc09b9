"""Where the records of a block of text begin and end.

A record is a line, unless a quoted field of a CSV file goes over several lines.  A quote that
is never closed spoils its own line only.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

import numpy as np

from tensortide.arrays import Positions

_NEWLINE, _QUOTE = 10, 34
_MOST_LINES = 1_000  # of one quoted field
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSpans:
    """Begin and end of each record that is not blank, and the number of its first line."""

    starts: Positions
    ends: Positions
    lines: Positions
    consumed: int
    n_lines: int


def split(
    data: bytes, first_line: int, separator: str | None, n_fields: int, *, final: bool
) -> LineSpans:
    """Find the complete records of a block; `final` says that the source ends with it.

    Without `separator` quotes mean nothing.
    """
    octets = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(octets == _NEWLINE) + 1
    if final and len(data) and (not len(ends) or ends[-1] < len(data)):
        ends = np.append(ends, len(data))
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64) if len(ends) else ends
    lines = np.arange(first_line, first_line + len(ends))
    if separator is not None and len(ends) and b'"' in data:
        starts, ends, lines = _join(data, octets, starts, ends, lines, separator, n_fields, final)
    consumed = int(ends[-1]) if len(ends) else 0
    n_lines = data.count(b"\n", 0, consumed)
    short = np.flatnonzero(ends - starts <= 2)
    blank = [i for i in short if not data[starts[i] : ends[i]].strip(b"\r\n")]
    if blank:
        starts, ends, lines = (np.delete(a, blank) for a in (starts, ends, lines))
    return LineSpans(starts=starts, ends=ends, lines=lines, consumed=consumed, n_lines=n_lines)


def fields(text: str, separator: str) -> list[str]:
    """Return the fields of one CSV record; csv.Error where its quotes are broken."""
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
    if len(rows) != 1:
        raise csv.Error("one record was expected")
    return rows[0]


def _join(
    data: bytes,
    octets: object,
    starts: Positions,
    ends: Positions,
    lines: Positions,
    separator: str,
    n_fields: int,
    final: bool,
) -> tuple[Positions, Positions, Positions]:
    """Join the lines of quoted fields that go over several lines."""
    quotes = np.add.reduceat((np.asarray(octets) == _QUOTE).astype(np.int32), starts)
    odd = np.flatnonzero(quotes % 2).tolist()
    inner: list[int] = []
    k = 0
    while k < len(odd):
        first = odd[k]
        if _whole(data[starts[first] : ends[first]], separator, n_fields):
            k += 1  # a quote within a field, as in 5" pipe
        elif k + 1 < len(odd):
            last = odd[k + 1]
            text = data[starts[first] : ends[last]]
            if last - first <= _MOST_LINES and _whole(text, separator, n_fields):
                inner += range(first, last)
                k += 1
            k += 1
        elif final or len(data) - int(starts[first]) > _MOST_BYTES:
            k += 1
        else:  # perhaps the rest comes with the next block
            inner = [i for i in inner if i < first]
            starts, ends, lines = starts[:first], ends[:first], lines[:first]
            break
    if not inner:
        return starts, ends, lines
    gone = np.array(inner)
    return np.delete(starts, gone + 1), np.delete(ends, gone), np.delete(lines, gone + 1)


def _whole(record: bytes, separator: str, n_fields: int) -> bool:
    try:
        return len(fields(record.decode(), separator)) == n_fields
    except (csv.Error, UnicodeDecodeError):
        return False
