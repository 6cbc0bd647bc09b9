"""A process that runs `tensortide` commands in children that begin in no time.

It imports and compiles everything once; each child runs a command as a person would give it.  It
can be killed with SIGKILL: at the n-th statement that SQLite executes, at the n-th file that is
put on the disk, or at the n-th call of a function after some commits.  It does so itself, or,
`outside`, tells its parent, who does it while the child goes on.  One order per line of JSON on
standard input, one answer per line on standard output.  A child can also be one without the rights
of root.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import sys
from collections.abc import Callable

import tensortide as tt
from tensortide.cli import main as command
from tests.models import fingerprint


def warm() -> None:
    """Import everything, and compile or load all kernels, by running the command itself."""
    import tempfile
    from pathlib import Path

    for method in ("gocpte", "gocpt"):
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "some.csv"
            cells = [f"{p},{d},{p * d + 1.5}" for d in range(1, 4) for p in range(3)]
            source.write_text("\n".join(["place,day,count", *cells, ""]))
            words = ["track", str(source), "--into", f"{folder}/run", "--step-by", "day"]
            sys.argv = ["tensortide", *words, "--rank", "1", "--json", "--method", method]
            with contextlib.redirect_stdout(sys.stderr):
                with contextlib.suppress(SystemExit):
                    command.main()
                sys.argv = ["tensortide", "info", f"{folder}/run"]
                with contextlib.suppress(SystemExit):
                    command.main()


def die_at(order: dict, end: Callable[[], None]) -> None:
    """Arrange that this process ends at the n-th event of a kind."""
    left = [order["at"]]

    def count(*_: object) -> None:
        left[0] -= 1
        if left[0] == 0:
            end()

    if order["by"] == "statement":
        watch_ledger(lambda db: db.set_trace_callback(count))
    elif order["by"] == "call":
        count_calls(count, order["commits"])
    else:
        for name in ("fsync", "replace"):
            before = getattr(os, name)

            def watched(*args, before=before):
                count()
                done = before(*args)
                count()
                return done

            setattr(os, name, watched)


def count_calls(count: Callable[..., None], commits: int) -> None:
    """Count calls and returns of functions, and work within statements, after some commits."""
    left = [commits]

    def begin() -> None:
        sys.setprofile(count)

    def see(statement: str) -> None:
        left[0] -= statement.startswith("COMMIT")
        if left[0] == 0 and sys.getprofile() is None:
            begin()

    def attend(db: sqlite3.Connection) -> None:
        db.set_trace_callback(see)
        db.set_progress_handler(lambda: sys.getprofile() and count(), 50)

    watch_ledger(attend)
    if not commits:
        begin()


def watch_ledger(attend: Callable[[sqlite3.Connection], None]) -> None:
    """Let every connection to a ledger be attended from its beginning."""
    inner = sqlite3.connect

    def connect(*args, **kwargs):
        db = inner(*args, **kwargs)
        if "run.sqlite" in str(args[0]):
            attend(db)
        return db

    sqlite3.connect = connect


def kill_oneself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def given_through_a_pipe(text: str) -> int:
    """Return the end of a pipe in which a text lies ready."""
    hear, tell = os.pipe()
    os.set_blocking(tell, False)
    assert os.write(tell, text.encode()) == len(text.encode()), "more than a pipe holds"
    os.close(tell)
    return hear


def child(order: dict, end: Callable[[], None]) -> None:
    """Run the command and leave."""
    sys.argv = ["tensortide", *order["command"]]
    sys.modules["__main__"].__package__ = ""  # else the command would be called after this file
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(given_through_a_pipe(order["given"]) if "given" in order else null, 0)
    os.dup2(null, 1)
    for name, stream in (("stdout", 1), ("stderr", 2)):
        if name in order:
            os.dup2(os.open(order[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    os.environ["COLUMNS"] = str(order.get("width", 120))
    os.chdir(order.get("folder", "."))
    if order.get("nobody") and os.getuid() == 0:  # root may write everywhere
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    if "by" in order:
        die_at(order, end)
    try:
        command.main()
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.stdout.flush()
    os._exit(0)


def obey(order: dict) -> dict:
    """Run one child to its end, and tell how it ended."""
    if order.get("do") == "state":
        with tt.Tracker.open(order["run"], read_only=True) as run:
            ids = run.batches()["batch_id"].to_pylist()
            state = fingerprint(run.model) if run.fitted else ()
        return {"ids": ids, "state": repr(hash_of(state))}
    hear, tell = os.pipe()
    pid = os.fork()
    if not pid:
        child(order, (lambda: os.write(tell, b".")) if order.get("outside") else kill_oneself)
    os.close(tell)
    if os.read(hear, 1):  # nothing but the end when it has ended by itself
        os.kill(pid, signal.SIGKILL)
    os.close(hear)
    _, status = os.waitpid(pid, 0)
    return {"killed": os.WIFSIGNALED(status), "code": os.waitstatus_to_exitcode(status)}


def hash_of(state: tuple) -> str:
    import hashlib

    return hashlib.sha256(repr(state).encode()).hexdigest()


if __name__ == "__main__":
    warm()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(obey(json.loads(line))), flush=True)
