"""The bytes of a source: decompressed, hashed as they go, and complaints as sentences."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
import lzma
import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from tensortide.errors import ARROW_ERRORS, FileError

BLOCK = 4 << 20
#: The longest line, in bytes; longer than a block, so that one line is at most in a few of them.
LONGEST = 16 << 20

_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
}


def new_hash() -> Any:
    """Return the hash that identifies content."""
    return hashlib.blake2b(digest_size=16)


def compression(head: bytes) -> str | None:
    """Tell how bytes are compressed by their beginning."""
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)


#: What is said of bytes that no text has.
BINARY = "looks like a binary file (it has NUL bytes); CSV or JSON lines are read here"


class EndlessLineError(FileError):
    """A line is longer than LONGEST: no table, or one without line ends."""

    def __init__(self, name: str, *, binary: bool, line: int | None = None) -> None:
        self.binary = binary
        where, it = (name, "a line") if line is None else (f"{name}, line {line}", "it")
        advice = "is it the wrong file, or are line ends missing? JSON has to be one object a line."
        size = f"{LONGEST / (1 << 20):.3g} MB"
        super().__init__(
            f"{where}: {BINARY}."
            if binary
            else f"{where}: {it} is longer than {size}, the most that a record may have; {advice}"
        )


class ByteStream:
    """The decompressed bytes of a file or of standard input, from the start on.

    They are text: a line that is too long is refused before it fills the memory.  It is not set
    aside as a bad record: where it ends nobody knows.  A file that is not packed is read up to
    `limit`, the size that it has now: what is written meanwhile may be half a line.
    """

    def __init__(self, path: Path | None, limit: int | None = None) -> None:
        self.name = "standard input" if path is None else str(path)
        with complaints(self.name):
            self._raw: BinaryIO = sys.stdin.buffer if path is None else path.open("rb")
            head = self._raw.peek(8)[:8] if path is None else self._raw.read(8)  # type: ignore
            if path is not None:
                self._raw.seek(0)
            self.kind = compression(head)
            self._file: Any = self._decompress()
        self._live = path is None and self.kind is None
        self.size = None if path is None else os.fstat(self._raw.fileno()).st_size
        self.limit = limit if limit is not None or self.kind is not None else self.size
        self.at = 0
        self._open = 0  # bytes since the last line end

    def _decompress(self) -> Any:
        if self.kind is None:
            return self._raw
        if self.kind == "gzip":
            return gzip.GzipFile(fileobj=self._raw)
        if self.kind == "bz2":
            return bz2.BZ2File(self._raw)
        if self.kind == "xz":
            return lzma.LZMAFile(self._raw)
        import pyarrow as pa

        return pa.CompressedInputStream(pa.PythonFile(self._raw, "r"), self.kind)

    def read(self, count: int = BLOCK) -> bytes:
        """Return the next bytes: `count` of them, or fewer at the end."""
        parts: list[bytes] = []
        missing = count if self.limit is None else min(count, self.limit - self.at)
        with complaints(self.name):
            while missing:
                part = self._file.read1(missing) if self._live else self._file.read(missing)
                if not part:
                    self._check_shrunk()
                    break
                parts.append(part)
                missing -= len(part)
                if self._live:  # a pipe: take what is there, do not wait for more
                    break
        data = b"".join(parts)
        self.at += len(data)
        self._check_line(data)
        return data

    def _check_line(self, data: bytes) -> None:
        """Refuse a line without end; only one that goes on from block to block can be so long."""
        end = data.find(b"\n")
        if self._open + (len(data) if end < 0 else end) > LONGEST:
            raise EndlessLineError(self.name, binary=b"\0" in data)
        self._open = self._open + len(data) if end < 0 else len(data) - data.rfind(b"\n") - 1

    def skip(self, count: int) -> None:
        """Go on to a later place."""
        if self.kind is None and self.size is not None:
            with complaints(self.name):
                self._raw.seek(count, os.SEEK_CUR)
            self.at += count
            self._open = 0  # a place is where a line ends
            return
        while count:
            count -= len(self.read(min(count, BLOCK)))

    @property
    def raw_position(self) -> int:
        """How many bytes of the file have been read: the honest progress."""
        with contextlib.suppress(OSError, ValueError):
            return self._raw.tell()
        return self.at

    def _check_shrunk(self) -> None:
        if self.size is not None and os.fstat(self._raw.fileno()).st_size < self.size:
            raise FileError(f"{self.name}: became shorter while it was read; try again.")

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self.size is not None:
            self._raw.close()


@contextlib.contextmanager
def complaints(name: str) -> Iterator[None]:
    """Say in a sentence what is wrong with a file."""
    try:
        yield
    except FileError:
        raise
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise FileError(f"{name}: is compressed, but cut or damaged ({error}).") from None
    except OSError as error:
        reason = error.strerror or str(error).splitlines()[0].rstrip(".")
        raise FileError(f"{name}: cannot be read: {reason}.") from None
    except MemoryError:
        raise FileError(f"{name}: needs more memory than there is, or is damaged.") from None
    except ARROW_ERRORS as error:
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise FileError(f"{name}: cannot be read: {reason}.") from None


def file_digest(path: Path) -> str:
    """Return the hash of a whole file."""
    digest = new_hash()
    with complaints(str(path)), path.open("rb") as file:
        while data := file.read(BLOCK):
            digest.update(data)
    return str(digest.hexdigest())
