"""Where the command begins: nothing is imported before an interrupt can be answered."""

from __future__ import annotations

import errno
import os
import signal
import sys

INTERRUPTED = 130  # the exit code of Ctrl-C

_UNWRITTEN = (errno.EPIPE, errno.ENOSPC)


def main() -> None:
    """Run the command and leave; Ctrl-C is one sentence, and a pipe that is closed is none."""
    try:
        from tensortide.cli.main import main as run

        run()
        code: str | int | None = None
    except KeyboardInterrupt:
        _leave_quietly()
        tell_stopped()
        raise SystemExit(INTERRUPTED) from None
    except OSError as error:
        if error.errno not in _UNWRITTEN:
            raise
        code = _unwritten(error)
    except SystemExit as leaving:
        code = leaving.code
    _leave_quietly()
    raise SystemExit(_flush(code))


def tell_stopped() -> None:
    """Say that the command was interrupted."""
    print("tensortide: stopped.", file=sys.stderr)


def _leave_quietly() -> None:
    """Let the system answer Ctrl-C from now on: all is done, and Python would show its stack."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _flush(code: str | int | None) -> str | int | None:
    """Write what is still waiting, and return the exit code; Python would complain at its end."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        return code or _unwritten(error)
    return code


def _unwritten(error: OSError) -> int:
    """Say that output got lost, unless nobody reads it, and let the rest go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if error.errno != errno.EPIPE:
        print(f"tensortide: the output cannot be written: {error.strerror}.", file=sys.stderr)
    return 1
