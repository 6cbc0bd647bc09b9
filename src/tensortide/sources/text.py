"""CSV and JSON lines, block by block: files larger than memory, growing files, pipes."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensortide.errors import ARROW_ERRORS, FileError
from tensortide.sources.bytestream import BINARY, BLOCK, ByteStream, EndlessLineError, new_hash
from tensortide.sources.columns import ColumnSpec, Piece
from tensortide.sources.lines import LineSpans, fields, split
from tensortide.sources.parse import (
    csv_record,
    csv_table,
    json_record,
    json_table,
    not_utf8,
    parse_block,
)
from tensortide.sources.prefixes import resume_text
from tensortide.sources.resume import KnownPlaces, ResumeAt, head_of
from tensortide.sources.sample import check_names, codes_as_text, mostly_dates

if TYPE_CHECKING:
    import pyarrow as pa

_SAMPLE = 1 << 20  # bytes by which kinds of labels are found out
_BOM = b"\xef\xbb\xbf"
_LIST = re.compile(rb"\s*\[\s*\{")
_RECORD = re.compile(r"-?\d+([.,]\d+)?|\d{4}-\d\d-\d\d|\d{1,2}\.\d{1,2}\.\d{4}")
_OTHER = {
    b"\xff\xfe": "is UTF-16; save it as UTF-8",
    b"\xfe\xff": "is UTF-16; save it as UTF-8",
    b"PAR1": "is a Parquet file; give it the ending .parquet and do not pipe it",
    b"ARROW1": "is an Arrow file; give it the ending .arrow and do not pipe it",
}


class TextFeed:
    """Records of one text, by bytes: a place is the number of bytes before it."""

    unit = "line"

    def __init__(self, path: Path | None, kind: str = "", *, growing: bool = False) -> None:
        self.path = path
        self.growing = growing  # a last line without its end is left for later
        self._octets = ByteStream(path)
        self._limit = self._octets.limit  # what comes later is left for the next look
        self.name = self._octets.name
        self.names: list[str] = []
        self.separator = ","
        self._first_line, self._body = 1, 0
        self._read = False  # whether more than the head has been read
        self._marks: list[tuple[int, str]] = []
        self._passed = 0  # what a pipe brings again
        self.line_grew = False  # whether a last line that was learned has become longer
        self._hash, self._start, self._hashed, self._block = new_hash(), 0, 0, b""
        try:
            self._begin(kind)
        except BaseException:
            self._octets.close()
            raise

    def _begin(self, kind: str) -> None:
        """Read the first block, and find out what it is."""
        self._head = self._octets.read(BLOCK)
        for magic, what in _OTHER.items():
            if self._head.startswith(magic):
                raise FileError(f"{self.name}: {what}.")
        if b"\0" in self._head.partition(b"\n")[0]:
            raise FileError(f"{self.name}, line 1: {BINARY}.")
        self._body = len(_BOM) if self._head.startswith(_BOM) else 0
        first = self._head[self._body :].lstrip()[:1]
        self.json = kind == "json" or (not kind and first == b"{")
        if first == b"[" and (self.json or _LIST.match(self._head, self._body)):
            raise FileError(f"{self.name}: holds one JSON list; write one object per line.")
        self._complete_head()
        if self.growing and b"\n" not in self._head:
            self._head = b""  # not even the first line is complete
        if not self.json and self._head[self._body :]:
            self._read_header(kind)

    def _complete_head(self) -> None:
        """Read on until there are a header and a record, or all there is."""
        parts, n_lines = [self._head], self._head.count(b"\n")
        short = len(self._head) < BLOCK
        self._ended = short and self.path is not None
        while n_lines < 2 and not self._ended:  # a slow pipe, or long lines
            more = self._next(n_lines)
            parts.append(more)
            n_lines += more.count(b"\n")
            self._ended = not more
        self._head = b"".join(parts)

    def _next(self, n_lines: int) -> bytes:
        """Read the next block; so many lines have ended before it."""
        try:
            return self._octets.read(BLOCK)
        except EndlessLineError as error:
            self.close()
            raise EndlessLineError(self.name, binary=error.binary, line=n_lines + 1) from None

    def _following(self, rest: bytes, n_lines: int) -> tuple[bytes, bool]:
        """Return the rest of a block with what follows, and whether the source has ended.

        A line that goes over blocks is put together once, when its end has come.
        """
        parts, n_lines = [rest], n_lines + rest.count(b"\n")
        while more := self._next(n_lines):
            parts.append(more)
            if b"\n" in more:
                return b"".join(parts), False
        return b"".join(parts), True

    def _read_header(self, kind: str) -> None:
        """Read names and separator off the first line."""
        line, newline, _ = self._head[self._body :].partition(b"\n")
        said = re.fullmatch(rb"sep=(.)\r?", line)  # a first line that Excel knows
        if said:
            self._body += len(line) + len(newline)
            self._first_line = 2
            line, newline, _ = self._head[self._body :].partition(b"\n")
        try:
            text = line.decode().rstrip("\r")
            guessed = "\t" if kind == "tsv" else max(",;\t", key=text.count)
            self.separator = said[1].decode() if said else guessed
            self.names = [name.strip() for name in fields(text, self.separator)]
        except UnicodeDecodeError as error:
            raise FileError(f"{self.name}, line {self._first_line}: {not_utf8(error)}.") from None
        except csv.Error as error:
            raise FileError(
                f"{self.name}, line {self._first_line}: is no header ({error})."
            ) from None
        number = next((n for n in self.names if _RECORD.fullmatch(n)), None)
        if number is not None:
            raise FileError(
                f"{self.name}, line {self._first_line}: {number!r} is no name of a column. Is the "
                "header missing, or the table wide? Names are needed, and one row a value."
            )
        check_names(self.name, self.names)
        self._body += len(line) + len(newline)
        self._first_line += 1

    @property
    def empty(self) -> bool:
        """Whether there is not even a header."""
        return not self._head.removeprefix(_BOM).strip()

    @property
    def size(self) -> int | None:
        """Size of the file as it lies on the disk, if it is a file."""
        return self._octets.size

    @property
    def done(self) -> int:
        """How much of `size` has been read."""
        return self._octets.raw_position

    def sample(self) -> pa.Table:
        """Return the first records with all their columns and guessed types."""
        body = self._head[self._body :]
        records = self._split(body, self._first_line, final=self._ended)
        data = body[: records.consumed]
        cut = len(data)
        if cut > _SAMPLE:  # the first record at least, however long it is
            cut = (data.rfind(b"\n", 0, _SAMPLE) + 1) or data.find(b"\n") + 1
        return self._guess_types(data[:cut])

    def whole(self) -> pa.Table:
        """Return all records with all their columns; one that cannot be parsed spoils them all."""
        parts, n_lines = [self._head[self._body :]], self._head.count(b"\n")
        while more := self._next(n_lines):
            parts.append(more)
            n_lines += more.count(b"\n")
        data = b"".join(parts)
        if b"\0" in data:
            self._name_bad(data)
        if not data.strip():
            return self._guess_types(b"")
        try:
            if self.json:
                return self._json_table(data)
            table = csv_table(data, self.names, self.separator, None)
        except ARROW_ERRORS:
            self._name_bad(data)
            raise
        swallowed = b'"' in data and table.num_rows != self._count(data)
        if swallowed or any(str(field.type) == "binary" for field in table.schema):
            self._name_bad(data)
        return self._codes_as_text(table, data)

    def _count(self, data: bytes) -> int:
        return len(self._split(data, self._first_line, final=True).starts)

    def _name_bad(self, data: bytes) -> None:
        """Say which line it is that cannot be parsed."""
        read = json_record if self.json else csv_record(self.names, self.separator)
        records = self._split(data, self._first_line, final=True)
        for start, stop, line in zip(records.starts, records.ends, records.lines, strict=True):
            try:
                read(data[start:stop].decode())
            except UnicodeDecodeError as error:
                reason = not_utf8(error)
            except ValueError as error:
                reason = str(error)
            else:
                continue
            raise FileError(f"{self.name}, line {line}: {reason}.")

    def _guess_types(self, data: bytes) -> pa.Table:
        """Guess types of as many records as go together; bad ones are judged later."""
        import pyarrow as pa

        if not data.strip():
            return pa.table({name: pa.array([], pa.string()) for name in self.names})
        for _ in range(50):
            try:
                if self.json:
                    return self._json_table(data)
                table = csv_table(data, self.names, self.separator, None)
                return mostly_dates(self._codes_as_text(table, data))
            except ARROW_ERRORS:
                data = data[: data[: len(data) // 2].rfind(b"\n") + 1]
                if not data.strip():
                    break
        return pa.Table.from_pylist(self._readable(self._head[self._body :][: 1 << 16]))

    def _codes_as_text(self, table: pa.Table, data: bytes) -> pa.Table:
        return codes_as_text(table, lambda types: self._csv_table(data, types))

    def _readable(self, data: bytes) -> list[dict[str, str]]:
        """Return the first records that can be read one by one."""
        read = json_record if self.json else csv_record(self.names, self.separator)
        rows: list[dict[str, str]] = []
        reason = ""
        for line in data.split(b"\n")[:1_000]:
            if not line.strip():
                continue
            try:
                given = read(line.decode().rstrip("\r"))
                rows.append({k: str(v) for k, v in given.items()})
            except (ValueError, RecursionError) as error:
                reason = reason or str(error)
        if not rows:
            raise FileError(f"{self.name}, line {self._first_line}: {reason}.")
        return [r for r in rows if r.keys() == rows[0].keys()]

    def start(self, known: KnownPlaces) -> ResumeAt:
        """Return how far this text has been learned, and what it is beside others."""
        if self.path is None:
            begun = known.begins(self._head)
            ends = [p for places in begun for p in places if p.part is None]
            # a pipe is compared as it comes
            self._marks = sorted({(p.position or 0, p.digest or "") for p in ends})
            return ResumeAt()
        resume, self.line_grew = resume_text(self.path, self._limit, self._head, known)
        return resume

    def _compare(self, data: bytes, at: int, end: int) -> None:
        """Find out how far a pipe has been learned before, within the block that has come."""
        running, hashed = self._hash.copy(), self._hashed
        for mark, digest in self._marks:
            if not hashed <= mark <= end:
                continue
            running.update(data[hashed - at : mark - at])
            hashed = mark
            whole = data[mark - at - 1 : mark - at] == b"\n" or mark - at == len(data)
            if running.hexdigest() == digest and whole:
                self._passed = mark

    def pieces(self, wanted: ColumnSpec, start: ResumeAt) -> Iterator[Piece]:
        """Yield the records from a place on."""
        head, at, line = self._head, self._body, self._first_line
        self._hash, self._hashed = new_hash(), 0
        if start.place >= self._body and start.running is not None:
            self._hash, self._hashed = start.running.copy(), start.place
            at, line = start.place, start.lines + 1
            head = self._from(at)
        else:
            self._hash.update(head[:at])
            self._hashed, head = at, self._from(at) if self._read else head[at:]
        self._read = True
        table_of = json_table if self.json else self._csv_table
        record_of = json_record if self.json else csv_record(self.names, self.separator)
        data, final = head, False
        while True:
            records = self._split(data, line, final=final and not self.growing)
            self._start, self._block = at, data
            if self._marks:
                self._compare(data, at, at + records.consumed)
            if len(records.starts):
                piece = parse_block(data, records, wanted, at, table_of, record_of)
                yield replace(piece, known=self._passed)
            self._update(at + records.consumed)
            rest = data[records.consumed :]
            at += records.consumed
            line += records.n_lines
            if final:
                break
            data, final = self._following(rest, line - 1)
        self._start, self._block = at, b""

    @property
    def end(self) -> int:
        """Where reading has ended."""
        return self._start

    def head_at(self, place: int) -> str:
        """Return the hash of the beginning, by which a place is found again."""
        return head_of(self._head, place)

    def digest_at(self, place: int) -> str:
        """Return the hash of everything before a place in the block that was read last."""
        if place < self._hashed:
            raise AssertionError(f"{self.name}: place {place} lies before {self._hashed}.")
        self._update(place)
        return str(self._hash.hexdigest())

    def close(self) -> None:
        """Close the file."""
        self._octets.close()

    def _update(self, place: int) -> None:
        if place > self._hashed:
            self._hash.update(self._block[self._hashed - self._start : place - self._start])
            self._hashed = place

    def _from(self, place: int) -> bytes:
        """Return the first block from a place on, whatever was read before."""
        if self.path is None:
            return self._head[place:]
        self._octets.close()
        self._octets = ByteStream(self.path, self._limit)
        self._octets.skip(place)
        return self._octets.read(BLOCK)

    def _split(self, data: bytes, line: int, *, final: bool) -> LineSpans:
        separator = None if self.json else self.separator
        return split(data, line, separator, len(self.names), final=final)

    def _csv_table(self, data: bytes, types: dict[str, Any]) -> pa.Table:
        return csv_table(data, self.names, self.separator, types)

    def _json_table(self, data: bytes) -> pa.Table:
        table = json_table(data, None)
        check_names(self.name, table.column_names)
        return table
