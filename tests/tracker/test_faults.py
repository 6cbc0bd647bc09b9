"""Full disks, folders that cannot be written, permissions: nothing lost, and a sentence."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

import tensortide as tt
from tensortide.tracker.verify import check_run
from tests.models import MODES, batches, fingerprint


def begun(path, method="gocpte"):
    with tt.Tracker.create(path, 2, method, modes=MODES, value="count") as run:
        for table in batches()[:2]:
            run.ingest(table)
        return fingerprint(run.model)


def large_batch(day=50):
    """A step that writes some hundred kilobytes: many new labels."""
    n = 4_000
    return {
        "place": [f"new place number {i}" for i in range(n)],
        "day": [day] * n,
        "delay": [0] * n,
        "count": [1.0] * n,
    }


@pytest.mark.parametrize("method", ["gocpte", "gocpt"])
def test_a_size_limit_loses_nothing(tmp_path, method):
    before = begun(tmp_path / "run", method)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with tt.Tracker.open(tmp_path / "run") as run:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, hard))
        try:
            with pytest.raises(tt.FileError, match=r"Nothing of this step was kept"):
                run.ingest(large_batch(), batch_id="too large")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert fingerprint(run.model) == before
        assert not run.ingest(large_batch(), batch_id="too large").repeated  # now there is room
    assert all(finding.good for finding in check_run(tmp_path / "run"))


@pytest.fixture
def small_disk(tmp_path):
    """A disk of half a megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(place)]
    if os.getuid() or not shutil.which("mount") or subprocess.run(words, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here (needs root and tmpfs)")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("method", ["gocpte", "gocpt"])
def test_a_full_disk_loses_nothing_and_the_same_command_goes_on(small_disk, tmp_path, method):
    before = begun(small_disk / "run", method)
    filler = small_disk / "filler"
    free = shutil.disk_usage(small_disk).free
    filler.write_bytes(bytes(max(free - 40_000, 0)))
    with tt.Tracker.open(small_disk / "run") as run:
        with pytest.raises(tt.FileError, match=r"full|No space"):
            run.ingest(large_batch(), batch_id="x")
        assert fingerprint(run.model) == before
    filler.unlink()
    with tt.Tracker.open(small_disk / "run") as run:
        assert fingerprint(run.model) == before
        assert run.ingest(batches()[2], batch_id="x").step == 3
    assert all(finding.good for finding in check_run(small_disk / "run"))


def test_a_full_disk_at_the_very_beginning_leaves_no_half_run(small_disk):
    (small_disk / "filler").write_bytes(bytes(shutil.disk_usage(small_disk).free))
    with pytest.raises(tt.FileError, match=r"full|No space|cannot be"):
        begun(small_disk / "run")
    (small_disk / "filler").unlink()
    begun(small_disk / "run")


@pytest.fixture
def shared_folder():
    """A folder that another user can reach, removed at the end."""
    import tempfile

    place = Path(tempfile.mkdtemp(prefix="tensortide-test-"))
    place.chmod(0o755)
    yield place
    for path in [place, *place.rglob("*")]:
        path.chmod(0o755)
    shutil.rmtree(place)


@pytest.mark.parametrize("case", ["read-only run", "no folder", "unreadable source"])
def test_what_may_not_be_written_or_read_is_said_in_a_sentence(shared_folder, parent, case):
    def as_nobody(*words):
        said = shared_folder / "said.txt"
        answer = parent(command=[str(w) for w in words], nobody=True, stderr=str(said))
        return answer["code"], " ".join(said.read_text().split())

    source = shared_folder / "data.csv"
    source.write_text("place,day,count\n" + "".join(f"p{i % 3},{i},{i}.5\n" for i in range(9)))
    run, words = shared_folder / "run", ["--modes", "place,day", "--value", "count", "--rank", "1"]
    if case == "read-only run":
        with tt.Tracker.create(run, 1, modes=["place", "day"], value="count") as made:
            made.ingest({"place": ["a", "b"], "day": [1, 2], "count": [1.0, 2.0]})
        for path in [run, *run.iterdir()]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        before = (run / "run.sqlite").read_bytes()
        code, said = as_nobody("track", source, "--into", run)
        assert (run / "run.sqlite").read_bytes() == before
        assert as_nobody("info", run)[0] == 0  # reading is no writing
    elif case == "no folder":
        shared_folder.chmod(0o555)
        code, said = as_nobody("track", source, "--into", run, *words)
        assert not run.exists()
    else:
        source.chmod(0o000)
        code, said = as_nobody("track", source, "--into", run, *words)
        assert not run.exists()
    assert code == 2
    assert "Traceback" not in said
    assert "ermission" in said
