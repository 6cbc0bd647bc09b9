"""Random bytes and damaged files: a sentence or quarantined rows, never anything else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensortide as tt
from tensortide.tracker.verify import check_run
from tests.models import fingerprint
from tests.sources.samples import created, rows, write

NAMES = ["a.csv", "a.tsv", "a.jsonl", "a.csv.gz", "a.parquet", "a.arrow", "a.feather", "a.ipc"]


@st.composite
def damage(draw):
    """What to do to the bytes of a file: places are shares of its length."""
    place = st.floats(0, 1, exclude_max=True)
    kind = draw(st.sampled_from(["change", "delete", "insert", "repeat", "cut"]))
    return kind, draw(place), draw(place), draw(st.binary(min_size=1, max_size=8))


def damaged(data, changes):
    for kind, a, b, extra in changes:
        start = int(a * len(data))
        stop = start + 1 + int(b * min(40, max(len(data) - start, 1)))
        if kind == "change":
            data = data[:start] + extra + data[start + len(extra) :]
        elif kind == "delete":
            data = data[:start] + data[stop:]
        elif kind == "insert":
            data = data[:start] + extra + data[start:]
        elif kind == "repeat":
            data = data[:stop] + data[start:stop] + data[stop:]
        else:
            data = data[:start]
    return data


@pytest.mark.parametrize("on_bad", ["stop", "quarantine"])
@pytest.mark.parametrize("name", NAMES)
def test_no_bytes_can_break_a_run(tmp_path, name, on_bad):
    write(tmp_path / name, rows(3))
    valid = (tmp_path / name).read_bytes()
    victim = tmp_path / f"victim{name[1:]}"
    run = created(tmp_path / "run")
    run.track(tmp_path / name, step_files=True)

    @settings(max_examples=80)
    @given(
        st.one_of(
            st.binary(max_size=300),
            st.lists(damage(), min_size=1, max_size=4).map(lambda d: damaged(valid, d)),
        )
    )
    def attack(data):
        victim.write_bytes(data)
        before, n_lines = fingerprint(run.model), run.batches().num_rows
        try:
            done = run.track(victim, on_bad=on_bad)
        except tt.TensortideError:
            assert fingerprint(run.model) == before
            assert run.batches().num_rows == n_lines
        else:
            assert on_bad == "quarantine" or not done.bad
            assert run.batches().num_rows == n_lines + done.steps

    attack()
    run.close()
    with tt.Tracker.open(tmp_path / "run") as run:
        assert run.fitted
    assert all(finding.good for finding in check_run(tmp_path / "run"))
