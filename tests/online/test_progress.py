"""A bar for a person who watches, silence otherwise; scores at the edges."""

from __future__ import annotations

import contextlib
import io
import math
import os
import pty
import re
import subprocess
import sys

import numpy as np
from rich.console import Console

import tensortide as tt
from tensortide.online.score import fitness
from tensortide.progress import Bar

X = tt.simulate.low_rank((6, 5, 4), 2, noise=0.1, seed=0).dense()


def test_fit_is_silent_when_nobody_watches(capfd):
    tt.OnlineCP(2).fit(X)
    assert capfd.readouterr() == ("", "")


def test_fit_shows_sweeps_and_objective_to_a_person():
    """In a terminal of its own, as a person sees it."""
    code = (
        "import tensortide as tt; x = tt.simulate.low_rank((6, 5, 4), 2, noise=0.1).dense(); "
        "tt.OnlineCP(2).fit(x, max_sweeps=3000, tol=0.0, starts=1)"
    )
    primary, secondary = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stderr=secondary,
        stdout=subprocess.PIPE,
        env={**os.environ, "COLUMNS": "100", "TERM": "xterm"},
    ) as process:
        os.close(secondary)
        seen = b""
        with contextlib.suppress(OSError):  # the terminal closes with the process
            while chunk := os.read(primary, 65536):
                seen += chunk
        assert process.stdout is not None
        assert process.stdout.read() == b""
    os.close(primary)
    assert b"preparing" in seen
    assert re.search(rb"sweep \d+ of at most 3020, objective", seen)


def test_a_bar_shows_what_it_was_told_and_counts_where_nobody_watches():
    def drawn(**how):
        screen = Console(file=io.StringIO(), force_terminal=True, width=100, color_system=None)
        with Bar(4, "first", screen=screen, counted=True, **how) as bar:
            bar.advance("[red]second")
            bar.tell(after="some words", done=3)
            bar.advance()
            assert (bar.done, bar.total) == (4, 4)
            bar.begin_again(9, "third")
            bar.tell(done=2)
            assert (bar.done, bar.total) == (2, 9)
        return screen.file.getvalue()

    assert drawn(show=False) == ""
    assert re.search(r"third .* some words 2/9", drawn(show=True))


def test_what_the_bar_is_told_is_what_was_done():
    from tensortide.core.steps.prepare import Effort
    from tensortide.data.modes import Modes
    from tensortide.methods.registry import gocpt
    from tensortide.online.changes import Rules
    from tensortide.online.model import Model

    told = []
    modes = Modes.for_records(X, None, "value")
    _, info = Model.from_first_data(
        gocpt(),
        Rules(),
        modes,
        modes.read(X, "value"),
        rank=2,
        rng=np.random.default_rng(0),
        effort=Effort(max_sweeps=30, tol=0.0, starts=2),
        on_sweep=lambda n, o: told.append((n, o)),
    )
    assert [n for n, _ in told] == list(range(1, len(told) + 1))
    assert len(told) == 20 + 30  # the start that lost, and all of the one that won
    assert told[-1][1] == info.objective


def test_fitness_of_zeros():
    zeros = np.zeros(3)
    assert fitness(zeros, zeros) == 1.0
    assert fitness(zeros, np.ones(3)) == -math.inf
