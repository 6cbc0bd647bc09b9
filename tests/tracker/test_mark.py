"""The mark beside the ledger is right, or silent, whatever comes between two of its lines."""

from __future__ import annotations

import os
import sys
from functools import partial

import pytest

from tensortide.tracker import mark
from tensortide.tracker.mark import FILE, Mark, read_mark

LINK = "ab" * 16


def _interrupted(work, at):
    """Do something with Ctrl-C at the n-th line of the module; tell whether it came."""
    left = [at]

    def trace(frame, event, arg):
        if frame.f_code.co_filename != mark.__file__:
            return None
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def _descriptors():
    return set(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="lists open files by /proc")
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # dropped at once, so closed
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("work", ["write", "write again", "remove", "close"])
def test_an_interrupt_at_any_line_writes_no_other_file_and_leaves_none_open(tmp_path, work):
    n_interrupts = 0
    for at in range(1, 100):
        open_before = _descriptors()
        (tmp_path / FILE).unlink(missing_ok=True)
        one = Mark(tmp_path)
        if work != "write":
            one.write(1, LINK)
        does = {"remove": one.remove, "close": one.close}.get(work, partial(one.write, 2, LINK))
        came = _interrupted(does, at)
        with (tmp_path / "other").open("wb") as other:  # may get the number of a closed file
            other.write(b"precious")
            other.flush()
            one.write(3, LINK)
            assert read_mark(tmp_path) in ((3, LINK), None)
        assert (tmp_path / "other").read_bytes() == b"precious"
        one.close()
        one.write(4, LINK)
        assert read_mark(tmp_path) == (4, LINK)
        one.close()
        del one, does
        assert _descriptors() == open_before
        if not came:
            break
        n_interrupts += 1
    assert n_interrupts >= 2


def test_a_mark_that_is_longer_than_ours_is_written_anew(tmp_path):
    (tmp_path / FILE).write_text("[1, " + " " * 200 + "garbage")
    assert read_mark(tmp_path) is None
    one = Mark(tmp_path)
    one.write(2, LINK)
    one.close()
    assert read_mark(tmp_path) == (2, LINK)


def test_a_mark_that_nobody_closes_leaves_no_file_open(tmp_path):
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("lists open files by /proc")
    before = _descriptors()
    one = Mark(tmp_path)
    one.write(1, LINK)
    assert _descriptors() > before
    del one
    assert _descriptors() == before
