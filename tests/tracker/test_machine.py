"""Any order of ingests, repeats, crashes, reopenings, ranks and retirements."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import tensortide as tt
from tensortide.tracker.verify import check_run
from tests.models import fingerprint

MODES = ["place", "day"]


class Crash(BaseException):
    """What no code expects."""


class CrashingDatabase:
    """A connection that breaks at the n-th statement."""

    def __init__(self, db, left, *, after):
        self._db, self._left, self._after = db, left, after

    def _do(self, what, args):
        self._left -= 1
        if self._left < 0 and not self._after:
            raise Crash
        done = what(*args)
        if self._left < 0:  # an interrupt may also come when a statement has been executed
            raise Crash
        return done

    def execute(self, *args):
        return self._do(self._db.execute, args)

    def executemany(self, *args):
        return self._do(self._db.executemany, args)

    def __getattr__(self, name):
        return getattr(self._db, name)


class RunMachine(RuleBasedStateMachine):
    """The run on the disk against an estimator in memory."""

    @property
    def method(self):
        return type(self).METHOD

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp()) / "run"
        self.model = tt.OnlineCP(2, self.method, modes=MODES, value="count")
        tt.Tracker.create(self.folder, 2, self.method, modes=MODES, value="count").close()
        self.run = tt.Tracker.open(self.folder)
        self.ids: list[str] = []
        self.tables: dict[str, dict] = {}

    def table(self, seed, size):
        rng = np.random.default_rng(seed)
        return {
            "place": [f"p{i}" for i in rng.integers(0, 6, size)],
            "day": rng.integers(0, 8, size),
            "count": rng.normal(5.0, 1.0, size),
        }

    @rule(seed=st.integers(0, 10_000), size=st.integers(6, 20))
    def ingest(self, seed, size):
        name = f"batch {len(self.ids)}"
        table = self.table(seed, size)
        assert not self.run.ingest(table, batch_id=name).repeated
        self.model.update(table)
        self.ids.append(name)
        self.tables[name] = table

    @precondition(lambda self: self.ids)
    @rule(data=st.data())
    def ingest_again(self, data):
        name = data.draw(st.sampled_from(self.ids))
        assert self.run.ingest(self.tables[name], batch_id=name).repeated

    @rule(
        seed=st.integers(0, 10_000),
        count=st.integers(0, 30),
        after=st.booleans(),
        reopen=st.booleans(),
    )
    def crash(self, seed, count, after, reopen):
        name = f"batch {len(self.ids)}"
        table = self.table(seed, 8)
        self.run._ledger.db = CrashingDatabase(self.run._ledger.db, count, after=after)
        with contextlib.suppress(Crash):
            self.run.ingest(table, batch_id=name)
        self.run._ledger.db = self.run._ledger.db._db
        if reopen:
            self.reopen()
        lines = self.run.batches()["batch_id"].to_pylist()
        if name in lines:  # the crash came after the commit, or not at all
            self.model.update(table)
            self.ids.append(name)
            self.tables[name] = table

    @rule()
    def reopen(self):
        self.run.close()
        self.run = tt.Tracker.open(self.folder)

    @precondition(lambda self: self.ids)
    @rule(rank=st.integers(1, 4))
    def change_rank(self, rank):
        assert self.run.change_rank(rank) == self.model.change_rank(rank)

    @precondition(lambda self: self.ids and self.model.shape_[0] > 1)
    @rule(data=st.data())
    def retire(self, data):
        label = data.draw(st.sampled_from(self.model.labels_["place"].tolist()))
        self.run.retire("place", [label])
        self.model.retire("place", [label])

    @invariant()
    def the_run_is_the_model(self):
        assert self.run.fitted == bool(self.ids)
        if self.ids:
            assert fingerprint(self.run.model) == fingerprint(self.model)
        lines = self.run.batches()
        pairs = zip(lines["batch_id"].to_pylist(), lines["kind"].to_pylist(), strict=True)
        known = [name for name, kind in pairs if kind in ("prepare", "step")]
        assert known == self.ids

    def teardown(self):
        self.run.close()
        assert all(finding.good for finding in check_run(self.folder))
        shutil.rmtree(self.folder.parent)


class EconomyMachine(RunMachine):
    METHOD = "gocpte"


class FullMachine(RunMachine):
    METHOD = "gocpt"


SETTINGS = settings(max_examples=25, stateful_step_count=15)
TestEconomy = EconomyMachine.TestCase
TestEconomy.settings = SETTINGS
TestFull = FullMachine.TestCase
TestFull.settings = SETTINGS
