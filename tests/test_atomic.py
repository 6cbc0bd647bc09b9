"""A file is written whole or not at all, whatever happens on the way."""

from __future__ import annotations

import os
import signal
import stat
from functools import partial

import pytest

import tensortide as tt
from tensortide.atomic import write_whole, writing
from tensortide.palette import plotting, save_picture

OLD, NEW = b"old" * 1000, b"new" * 2000
MOMENTS = range(1, 8)  # calls of the system on the way, and one that is never reached


class Stopped(BaseException):
    """As an interrupt is no Exception."""


def at_moment(monkeypatch, n, what):
    """Let something happen before the n-th call that touches the disk."""
    left = [n]
    for name in ("fsync", "replace", "open", "close"):
        monkeypatch.setattr(os, name, partial(_watched, getattr(os, name), left, what))


def _watched(before, left, what, *args, **kwargs):
    left[0] -= 1
    if left[0] == 0:
        what()
    return before(*args, **kwargs)


def fail_with(error):
    def fail():
        raise error

    return fail


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("error", [OSError(28, "no"), Stopped()], ids=["full disk", "interrupt"])
def test_a_failure_at_any_moment_leaves_the_old_content_or_the_new(
    tmp_path, monkeypatch, moment, error
):
    path = tmp_path / "file"
    path.write_bytes(OLD)
    said = None
    with monkeypatch.context() as patched:
        at_moment(patched, moment, fail_with(error))
        try:
            write_whole(path, NEW)
        except (tt.FileError, Stopped) as raised:
            said = raised
    assert path.read_bytes() in (OLD, NEW)
    if said is None:
        assert path.read_bytes() == NEW
    elif isinstance(error, OSError):
        assert str(said) == f"{path}: cannot be written: No space left on device."
        assert path.read_bytes() == OLD
    assert list(tmp_path.iterdir()) == [path]  # nothing half-written is left


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_at_any_moment_leaves_the_old_content_or_the_new(tmp_path, monkeypatch, moment):
    path = tmp_path / "file"
    path.write_bytes(OLD)
    child = os.fork()
    if not child:
        at_moment(monkeypatch, moment, lambda: os.kill(os.getpid(), signal.SIGKILL))
        write_whole(path, NEW)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert path.read_bytes() in ((OLD, NEW) if os.WIFSIGNALED(status) else (NEW,))


def test_a_block_that_fails_half_way_changes_nothing(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(OLD)

    def write_half():
        with writing(path) as file:
            file.write(NEW)
            file.flush()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_half()
    assert path.read_bytes() == OLD
    assert list(tmp_path.iterdir()) == [path]


def test_links_stay_links_and_permissions_stay(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(OLD)
    path.chmod(0o640)
    link.symlink_to(path)
    write_whole(link, NEW)
    assert link.is_symlink()
    assert path.read_bytes() == NEW
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_pipe_is_written_as_it_stands(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(path, NEW)
    assert path.is_fifo()
    assert os.read(end, 10_000) == NEW
    os.close(end)


@pytest.mark.parametrize("name", [".", "no/such/folder/file"])
def test_what_is_no_place_for_a_file_is_said(tmp_path, name):
    with pytest.raises(tt.FileError, match=r"cannot be written: .+\. Try another\.$"):
        write_whole(tmp_path / name, NEW, "Try another.")


def test_a_picture_that_cannot_be_written_leaves_the_old_one(tmp_path):
    pyplot = plotting()
    picture = tmp_path / "picture.png"
    picture.write_bytes(OLD)
    figure = pyplot.figure()
    with pytest.raises(tt.FileError, match="no/picture"):
        save_picture(figure, tmp_path / "no" / "picture.png", picture)
    assert picture.read_bytes() == OLD
    assert not pyplot.fignum_exists(figure.number)
