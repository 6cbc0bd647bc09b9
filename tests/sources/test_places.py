"""A file is its path: grown, renamed, copied, changed, rotated, written while it is read."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from contextlib import closing

import pytest

import tensortide as tt
from tensortide.core.tensor.dense_box import DenseBox
from tensortide.sources.bytestream import ByteStream
from tensortide.sources.text import TextFeed
from tensortide.tracker.feeding import FeedOptions, _feed_file, _follower, cut_of, roles_of
from tensortide.tracker.verify import check_run
from tests.models import fingerprint
from tests.sources.samples import arrow_table, by_hand, created, csv_text, rows, write

MODES = {"modes": ["place", "day"], "value": "n"}
ADDING = MODES | {"combine": "add", "duplicates": "sum"}


def history(run):
    """Every cell of a run with history and its value."""
    model = run.model
    entries = model._model.store.entries
    if isinstance(entries, DenseBox):
        entries = entries.listed
    cells, values = entries.coords(), entries.all_values()
    labels = [list(names) for names in model.labels_.values()]
    return {
        tuple(labels[m][i] for m, i in enumerate(cell)): float(value)
        for cell, value in zip(cells, values, strict=True)
    }


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.csv.gz", "a.parquet", "a.arrow"])
def test_a_renamed_file_goes_on_and_a_copy_beside_it_is_another_file(tmp_path, name):
    records = rows(4)
    source = write(tmp_path / name, records)
    with created(tmp_path / "run") as run:
        run.track(source, step_by="reported")
        renamed, copy = tmp_path / f"b-{name}", tmp_path / f"c-{name}"
        shutil.move(source, renamed)
        done = run.track(renamed)
        assert (done.steps, done.skipped[0].why) == (0, f"is {source}, renamed, with nothing new")
        shutil.copy(renamed, copy)
        done = run.track([renamed, copy])
        assert done.steps == 4
        assert any("both are there" in note.why for note in done.skipped)
        assert run.track([renamed, copy]).steps == 0  # also when asked again
    with tt.Tracker.open(tmp_path / "run") as run:
        assert run.track([renamed, copy]).steps == 0
        write(renamed, [*records, ("Kiel", 1, "2026-01-05", 4, 5.0)])
        if name.endswith(("parquet", "arrow")):  # which is written whole each time
            with pytest.raises(tt.InputError, match="has changed since it was learned"):
                run.track([renamed, copy])
        else:
            assert run.track([renamed, copy]).records == 1


def test_events_of_files_that_stand_side_by_side_are_all_counted(tmp_path):
    """Days that begin alike, and one that equals another, step by step and learned together."""
    days = {"day1": "AABB", "day2": "AABBC", "day3": "AABB"}
    folder = tmp_path / "events"
    folder.mkdir()
    for name, places in days.items():
        text = "place,kind\n" + "".join(f"{p},x\n" for p in places)
        (folder / f"{name}.csv").write_text(text)
    counts = Counter("".join(days.values()))
    expected = {(place, "x"): float(n) for place, n in counts.items()}
    made = {"modes": ["place", "kind"], "duplicates": "count", "combine": "add"}
    for first in (1, 2, 3):
        with tt.Tracker.create(tmp_path / f"run{first}", 1, "gocpt", **made) as run:
            done = run.track(folder, step_files=True, first=first)
            assert done.records == 13
            assert sum("both are there" in note.why for note in done.skipped) == 2
            assert history(run) == expected
            assert run.track(folder).records == 0
    with tt.Tracker.open(tmp_path / "run2") as run:
        assert run.track(folder).records == 0
        assert history(run) == expected


def test_files_that_only_begin_alike_are_two_files(tmp_path):
    head = "place,day,n\nA,1,1\nB,1,2\n"
    (tmp_path / "mon.csv").write_text(head + "A,2,3\nB,2,4\n")
    (tmp_path / "tue.csv").write_text(head + "A,3,5\nB,3,6\n")
    with tt.Tracker.create(tmp_path / "run", 1, **MODES) as run:
        assert run.track(tmp_path / "mon.csv", step_rows=2).records == 4
        assert run.track(tmp_path / "tue.csv").records == 4
        assert run.track([tmp_path / "mon.csv", tmp_path / "tue.csv"]).records == 0


def test_a_run_that_is_moved_or_copied_with_its_files_goes_on(tmp_path):
    (tmp_path / "here").mkdir()
    source = write(tmp_path / "here" / "a.csv", rows(4))
    with created(tmp_path / "here" / "run") as run:
        run.track(source, step_by="reported")
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    with tt.Tracker.open(tmp_path / "there" / "run") as run:
        assert run.track(tmp_path / "there" / "a.csv").steps == 0
    shutil.move(tmp_path / "here" / "run", tmp_path / "run")
    with tt.Tracker.open(tmp_path / "run") as run:  # the run alone: its file is found by content
        assert run.track(source).steps == 0


def test_logs_that_rotate_are_learned_once(tmp_path):
    log, old = tmp_path / "log.csv", tmp_path / "log.1.csv"
    log.write_text("place,day,n\nA,1,1\nB,1,2\n")
    with tt.Tracker.create(tmp_path / "run", 1, "gocpt", **ADDING) as run:
        run.track(log, step_files=True)
        log.rename(old)
        log.write_text("place,day,n\nA,2,3\nB,2,4\n")  # as long as the one before
        assert run.track([log, old]).records == 2
        with log.open("a") as file:
            file.write("A,3,5\n")
        assert run.track([log, old]).records == 1
    with tt.Tracker.open(tmp_path / "run") as run:
        assert run.track([log, old]).records == 0
        expected = {("A", 1): 1.0, ("B", 1): 2.0, ("A", 2): 3.0, ("B", 2): 4.0, ("A", 3): 5.0}
        assert history(run) == expected


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("reopened", [False, True])
def test_logs_that_rotate_again_and_again_are_learned_once(tmp_path, turned, reopened):
    """Files of the same length, so that every place is at a position that was there before."""
    logs = [tmp_path / name for name in ("log.csv", "log.1.csv", "log.2.csv", "log.3.csv")]
    run = tt.Tracker.create(tmp_path / "run", 1, "gocpt", **ADDING)
    expected = {}
    for turn in range(1, 4):
        for new, old in zip(logs[:0:-1], logs[-2::-1], strict=True):
            if old.exists():
                old.rename(new)
        rows = [("A", turn, float(turn)), ("B", turn, 5.0)]
        text = "".join(f"{p},{d},{n:g}\n" for p, d, n in rows)
        logs[0].write_text("place,day,n\n" + text)
        expected |= {(p, d): n for p, d, n in rows}
        there = [log for log in logs if log.exists()]
        if reopened:
            run.close()
            run = tt.Tracker.open(tmp_path / "run")
        for _ in range(2):
            run.track(there[::-1] if turned else there, step_rows=1)
            assert history(run) == expected
    run.close()
    assert all(found.good for found in check_run(tmp_path / "run"))


OPERATIONS = ("append", "new", "rename", "rotate", "swap", "reopen")


def shuffle_files(folder, chance, operation, rows_of):
    """Do to the files of a folder what people and programs do."""
    files = sorted(folder.glob("*.csv"))
    if operation == "new" or len(files) < 2:
        name = chance.choice([f"log_{n}.csv" for n in range(9)] + ["log.csv", "a.csv", "z.csv"])
        if not (folder / name).exists():
            (folder / name).write_text("place,day,n\n" + rows_of(chance.randint(1, 3)))
    elif operation == "append":
        with chance.choice(files).open("a") as file:
            file.write(rows_of(chance.randint(1, 3)))
    elif operation == "rename":
        free = [n for n in range(10, 40) if not (folder / f"log_{n}.csv").exists()]
        chance.choice(files).rename(folder / f"log_{chance.choice(free)}.csv")
    else:
        chosen = files if operation == "rotate" else chance.sample(files, 2)
        for file in chosen:
            file.rename(file.with_suffix(".moving"))
        for old, new in zip(chosen, [*chosen[1:], chosen[0]], strict=True):
            old.with_suffix(".moving").rename(new)


@pytest.mark.parametrize(
    "seeds", [range(6), pytest.param(range(6, 200), marks=pytest.mark.soak)], ids=["few", "many"]
)
@pytest.mark.parametrize("by", [{"step_files": True}, {"step_rows": 2}], ids=["files", "rows"])
def test_whatever_happens_to_files_each_record_is_learned_once(tmp_path, by, seeds):
    """Appended to, renamed, rotated, swapped: the run has every record that was ever written."""
    for seed in seeds:
        chance = random.Random(seed)
        folder = tmp_path / f"files{seed}"
        folder.mkdir()
        expected = {}

        def rows_of(count, expected=expected):
            text = ""
            for _ in range(count):
                place, day = f"p{len(expected) % 4}", len(expected)
                expected[place, day] = 1.0
                text += f"{place},{day},1\n"
            return text

        run = tt.Tracker.create(tmp_path / f"run{seed}", 1, "gocpt", **ADDING)
        for operation in ["new", "new", *chance.choices(OPERATIONS, k=10)]:
            if operation == "reopen":
                run.close()
                run = tt.Tracker.open(tmp_path / f"run{seed}")
            else:
                shuffle_files(folder, chance, operation, rows_of)
            run.track(folder, **by)
            assert history(run) == expected, (seed, operation)
        run.close()
        assert all(found.good for found in check_run(tmp_path / f"run{seed}"))


@pytest.mark.parametrize("name", ["{}.csv", "{}.parquet"])
def test_files_that_change_places_are_learned_once(tmp_path, name):
    records = rows(4)
    files = [tmp_path / "d" / name.format(n) for n in "abc"]
    (tmp_path / "d").mkdir()
    for number, file in enumerate(files):
        write(file, [(*r[:4], r[4] + number) for r in records])
    with created(tmp_path / "run") as run:
        run.track(tmp_path / "d", step_files=True)
        for old in files:
            old.rename(old.with_suffix(".moving"))
        for old, new in zip(files, [*files[1:], files[0]], strict=True):
            old.with_suffix(".moving").rename(new)
        assert run.track(tmp_path / "d").steps == 0
    with tt.Tracker.open(tmp_path / "run") as run:
        assert run.track(tmp_path / "d").steps == 0


def test_a_backup_beside_a_corrected_file_is_told(tmp_path):
    (tmp_path / "d").mkdir()
    source = write(tmp_path / "d" / "a.csv", rows(3))
    with created(tmp_path / "run") as run:
        run.track(tmp_path / "d", step_by="reported")
        shutil.copy(source, tmp_path / "d" / "a_old.csv")
        write(source, [(*r[:4], r[4] + 1) for r in rows(3)])
        said = " ".join(note.why for note in run.track(tmp_path / "d").skipped)
        assert "what was learned of it is in" in said
        assert "this is another file" in said


def test_a_half_line_that_was_added_is_learned_again_when_asked(tmp_path):
    source = tmp_path / "a.csv"
    source.write_text("place,day,n\nA,1,1\nB,1,2\nA,2,3\nB,2,4")
    with tt.Tracker.create(tmp_path / "run", 1, "gocpt", **ADDING) as run:
        run.track(source, step_files=True)
        with source.open("a") as file:
            file.write("0\n")
        with pytest.raises(tt.InputError, match="--changed-file replace"):
            run.track(source)
        run.track(source, changed_file="replace")
        assert history(run)["B", 2] == 40.0


def test_a_step_that_the_ledger_refuses_is_not_known(tmp_path, monkeypatch):
    """While a file is watched, too: what was not committed comes again."""
    (tmp_path / "a.csv").write_text("place,day,n\nA,1,1\nB,1,2\n")
    with tt.Tracker.create(tmp_path / "run", 1, "gocpt", **ADDING) as run:
        run.track(tmp_path / "a.csv", step_rows=1, first=2)
        with (tmp_path / "a.csv").open("a") as file:
            file.write("A,2,3\nB,2,4\n")
        options = FeedOptions(watch=True)
        follower = _follower(run, roles_of(run, None, FeedOptions(), False), options)
        real = run.take

        def refuse(*_):
            raise tt.FileError(f"{tmp_path / 'a.csv'}.run: the disk is full.")

        monkeypatch.setattr(run, "take", refuse)
        with pytest.raises(tt.FileError, match="disk is full"):
            list(_feed_file(follower, tmp_path / "a.csv", options))
        monkeypatch.setattr(run, "take", real)
        list(_feed_file(follower, tmp_path / "a.csv", options))
        assert history(run) == {("A", 1): 1.0, ("B", 1): 2.0, ("A", 2): 3.0, ("B", 2): 4.0}


def corrected(tmp_path, name, **made):
    """A run of a file, one value of which is corrected afterwards."""
    records = rows(6)
    source = write(tmp_path / name, records)
    with created(tmp_path / "run", **made) as run:
        run.track(source, step_by="reported", first=2)
    changed = [(*r[:4], r[4] + (5 if i == len(records) // 2 else 0)) for i, r in enumerate(records)]
    write(source, changed)
    return source, records, changed


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
@pytest.mark.parametrize("method", ["gocpte", "gocpt"])
def test_a_corrected_export_is_asked_about_and_nothing_is_learned(tmp_path, name, method):
    source, records, changed = corrected(tmp_path, name, method=method)
    with tt.Tracker.open(tmp_path / "run") as run:
        before = fingerprint(run.model)
        with pytest.raises(tt.InputError, match=r"--changed-file replace .* --changed-file new"):
            run.track(source)
        assert fingerprint(run.model) == before
        done = run.track(source, changed_file="new")
        assert done.records == len(records)
        assert "also those that were learned before" in done.skipped[0].why
        assert run.track(source).records == 0  # known again, as it is now
        if method == "gocpt":  # what a later record says replaces what an earlier one said
            last = {(r[0], r[1], r[2]): r[4] for r in changed}
            values = run.model._model.store.entries.all_values()
            assert sorted(values.tolist()) == sorted(last.values())


@pytest.mark.parametrize(
    ("method", "adding"), [("gocpte", False), ("gocpt", False), ("gocpt", True)]
)
def test_replaced_a_run_equals_one_on_the_new_file(tmp_path, method, adding):
    made = {"combine": "add", "duplicates": "sum"} if adding else {}
    source, _, _ = corrected(tmp_path, "a.csv", method=method, **made)
    with tt.Tracker.open(tmp_path / "run") as run:
        run.track(source, changed_file="replace")
        with created(tmp_path / "fresh", method=method, **made) as fresh:
            fresh.track(source, step_by="reported", first=2)
            assert fingerprint(run.model) == fingerprint(fresh.model)
            kept = ["number", "batch_id", "kind", "records", "step", "prequential_error"]
            assert run.batches().select(kept).equals(fresh.batches().select(kept))
        assert run.track(source).records == 0
    assert all(found.good for found in check_run(tmp_path / "run"))
    with tt.Tracker.open(tmp_path / "run") as run:
        assert run.track(source).records == 0


def test_a_run_can_be_replaced_again_and_after_a_file_was_renamed(tmp_path):
    source, records, _ = corrected(tmp_path, "a.csv")
    other = write(tmp_path / "b.csv", [("Kiel", 1, "2026-02-01", 9, 5.0)])
    moved = tmp_path / "c.csv"
    for extra in (1, 2, 3):
        write(source, [(*r[:4], r[4] + extra) for r in records])
        with tt.Tracker.open(tmp_path / "run") as run:
            with pytest.raises(tt.InputError, match="has changed"):
                run.track([source, moved if extra > 1 else other])
            run.track([source], changed_file="replace")
            if extra == 1:
                run.track(other)
                other.rename(moved)
                assert run.track(moved).steps == 0
            known = run.track([source, moved])
            assert known.steps == 0
            assert [note.why for note in known.skipped] == ["has nothing new"] * 2
            values = sorted({place.path for place in run.places()})
            assert values[:1] == ["../a.csv"]


def test_what_is_gone_cannot_be_learned_again(tmp_path):
    source, _, _ = corrected(tmp_path, "a.csv")
    other = write(tmp_path / "b.csv", [("Kiel", 1, "2026-02-01", 9, 5.0)])
    with tt.Tracker.open(tmp_path / "run") as run:
        run.track(other)
        other.unlink()
        before = fingerprint(run.model)
        with pytest.raises(tt.InputError, match=r"b\.csv is no longer there"):
            run.track(source, changed_file="replace")
        assert fingerprint(run.model) == before
        write(other, [("Kiel", 1, "2026-02-01", 9, 5.0)])
        run.ingest({"place": ["Ulm"], "age": [1], "date": ["2026-02-02"], "count": [1.0]})
        with pytest.raises(tt.InputError, match="records from Python did not come from one"):
            run.track(source, changed_file="replace")


@pytest.mark.parametrize(("n_rows", "told"), [(20, "in lines 22 to 41"), (1, "in line 31")])
def test_the_lines_of_the_step_that_changed_are_named(tmp_path, n_rows, told):
    source = write(tmp_path / "a.csv", rows(4))
    with created(tmp_path / "run") as run:
        run.track(source, step_rows=n_rows, first=20 // n_rows)
        lines = source.read_text().splitlines(keepends=True)
        lines[30] = lines[30].replace(",", ",1", 1)  # line 31; steps end at lines 21, 41, ...
        source.write_text("".join(lines))
        with pytest.raises(tt.InputError, match=f"learned, {told}; nothing"):
            run.track(source)


def test_tables_with_the_name_of_a_file_are_no_file(tmp_path):
    """What came from Python is never taken for a file that stands beside the run."""
    records = rows(4)
    source = write(tmp_path / "a.csv", records)
    with created(tmp_path / "run") as run:
        assert run.track(arrow_table(records[:30]), name="a.csv", step_rows=30).records == 30
        assert run.track(source).records == len(records)
        source.write_bytes(csv_text(records[1:]))
        with pytest.raises(tt.InputError, match="did not come from one|no longer there"):
            run.track(source, changed_file="replace")


def test_lines_that_are_dropped_at_the_end_are_a_change(tmp_path):
    records = rows(4)
    source = write(tmp_path / "a.csv", records)
    with created(tmp_path / "run") as run:
        run.track(source, step_by="reported")
        write(source, records[:-20])
        with pytest.raises(tt.InputError, match="become shorter than what was learned"):
            run.track(source)


@pytest.mark.parametrize("growing", [False, True])
def test_a_file_that_grows_while_it_is_read_is_learned_once(tmp_path, growing, monkeypatch):
    """It was opened with `n` bytes; the rest is there when its first step is marked."""
    text = "place,day,n\n" + "".join(f"{p},{d},{d}.25\n" for d in range(1, 90) for p in "AB")
    data = text.encode()
    expected = {(p, d): d + 0.25 for d in range(1, 90) for p in "AB"}
    header = data.index(b"\n") + 1
    (tmp_path / "all.csv").write_bytes(data)
    sample = _sample(tmp_path / "all.csv")
    starts = [i + 1 for i in range(header, 2048) if data[i : i + 1] == b"\n"][::7]
    for n in [*starts, *((s + 3) for s in starts[:5] if growing)]:
        source = tmp_path / f"{n}.csv"
        source.write_bytes(data[:n])
        opened = TextFeed._begin

        def begin(self, kind, opened=opened, source=source):
            opened(self, kind)
            source.write_bytes(data)  # another process writes on

        with tt.Tracker.create(tmp_path / f"run{n}", 1, "gocpt", **ADDING) as run:
            drive = FeedOptions(cut=cut_of(None, None, True), changed_file="stop")
            roles = roles_of(run, sample, drive, True)
            follow = FeedOptions(watch=growing)
            with monkeypatch.context() as patch:
                patch.setattr(TextFeed, "_begin", begin)
                _take(run, source, roles, follow)
            _take(run, source, roles, follow)
            _take(run, source, roles, follow)
            assert history(run) == expected, n


def _sample(source):
    feed = TextFeed(source, "csv")
    sample = feed.sample()
    feed.close()
    return sample


def _take(run, source, roles, drive):
    """Look at a file once, as `--watch` does each time."""
    follower = _follower(run, roles, drive)
    for _ in _feed_file(follower, source, drive):
        pass


def test_reading_stops_at_the_size_that_a_file_had(tmp_path):
    source = tmp_path / "a.csv"
    source.write_bytes(b"12345")
    with closing(ByteStream(source)) as octets:
        with source.open("ab") as file:
            file.write(b"678")
        assert octets.read() == b"12345"
        assert octets.read() == b""


def test_by_hand_and_by_file_is_the_same(tmp_path):
    records = rows(4)
    with created(tmp_path / "run") as run:
        run.track(write(tmp_path / "a.csv", records), step_by="reported")
        assert fingerprint(run.model) == fingerprint(by_hand(records))
