"""A run that is learned again takes the place of the old one at once, or not at all."""

from __future__ import annotations

import contextlib

import pytest

import tensortide as tt
from tensortide.tracker.verify import check_run
from tests.models import fingerprint
from tests.sources.samples import created, rows, write
from tests.tracker.test_machine import Crash, CrashingDatabase


@pytest.mark.parametrize("method", ["gocpte", "gocpt"])
def test_a_crash_while_a_run_is_replaced_leaves_the_old_or_the_new(tmp_path, method):
    source = write(tmp_path / "a.csv", rows(4))
    with created(tmp_path / "run", method) as run:
        run.track(source, step_by="reported")
        old = fingerprint(run.model)
    changed = [(*r[:4], r[4] + 1) for r in rows(4)]
    write(source, changed)
    with created(tmp_path / "fresh", method) as fresh:
        fresh.track(source, step_by="reported")
        new = fingerprint(fresh.model)
    seen = []
    for left in range(0, 200, 5):
        with tt.Tracker.open(tmp_path / "run") as run:
            run._ledger.db = CrashingDatabase(run._ledger.db, left, after=bool(left % 2))
            with contextlib.suppress(Crash):
                run.track(source, changed_file="replace")
            run._ledger.db = run._ledger.db._db
        assert all(found.good for found in check_run(tmp_path / "run")), left
        with tt.Tracker.open(tmp_path / "run") as run:
            state = fingerprint(run.model)
        assert state in (old, new), left
        seen.append(state == new)
        if state == new:
            break
    assert seen[-1]
    assert not seen[0]
    assert {f.name for f in (tmp_path / "run").iterdir()} <= {
        "run.sqlite", "lock.sqlite", "last-commit", "history", "quarantine.csv",
    }  # fmt: skip
