"""A file is written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from tensortide.errors import FileError


@contextlib.contextmanager
def writing(path: Path, note: str = "") -> Iterator[IO[bytes]]:
    """Give a file whose content takes the place of `path` at the end of the block.

    It is written beside `path`, put on the disk and renamed, so that whatever happens leaves the
    old content or the new.  A link stays a link, permissions stay as they were, and a device or a
    pipe is written as it stands.  The sentence of a failure ends with `note`.
    """
    target = Path(os.path.realpath(path))
    begun = target.parent / f".{target.name}.{uuid.uuid4().hex[:8]}.begun"
    try:
        if target.exists() and not (target.is_file() or target.is_dir()):
            with target.open("wb") as file:
                yield file
            return
        try:
            with begun.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(OSError):
                shutil.copymode(target, begun)
            os.replace(begun, target)
        except BaseException:
            with contextlib.suppress(OSError):
                begun.unlink()
            raise
        _sync_folder(target.parent)
    except FileError:
        raise
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        raise FileError(f"{path}: cannot be written: {reason}.{note and ' ' + note}") from None


def write_whole(path: Path, content: bytes, note: str = "") -> None:
    """Write a file from bytes that are there."""
    with writing(path, note) as file:
        file.write(content)


def _sync_folder(folder: Path) -> None:
    """Put the name of a new file on the disk too, where the system knows how."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
