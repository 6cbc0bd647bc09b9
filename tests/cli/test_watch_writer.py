"""A watched folder into which another process writes line by line: each record once."""

from __future__ import annotations

import json
import random
import threading

import tensortide as tt
from tests.cli.conftest import started

N_FILES = 40


def write_lines(folder, n_files, seed, done):
    """Write files line by line, a part of a line at a time, several of them at once."""
    chance = random.Random(seed)
    texts = {}
    for number in range(n_files):
        rows = [f"{chance.choice('ABCD')},k{chance.randint(1, 3)}" for _ in range(6)]
        texts[f"{number:03d}.csv"] = "place,kind\n" + "".join(f"{row}\n" for row in rows)
    begun: dict[str, int] = {}
    names = list(texts)
    while names or begun:
        while names and len(begun) < 4:
            begun[names.pop(0)] = 0
        name = chance.choice(list(begun))
        at, text = begun[name], texts[name]
        end = min(len(text), at + chance.randint(1, 12))
        with (folder / name).open("a") as file:
            file.write(text[at:end])
        begun[name] = end
        if end == len(text):
            del begun[name]
    done.update(texts)


def test_what_is_written_while_it_is_watched_is_counted_once(tmp_path):
    folder = tmp_path / "events"
    folder.mkdir()
    (folder / "000-first.csv").write_text("place,kind\nA,k1\nB,k2\nC,k3\nD,k1\n")
    words = [
        "track", str(folder), "--into", str(tmp_path / "run"), "--modes", "place,kind",
        "--duplicates", "count", "--combine", "add", "--method", "gocpt", "--rank", "1",
        "--step-files", "--watch", "--every", "0.05", "--json",
    ]  # fmt: skip
    texts: dict[str, str] = {}
    writer = threading.Thread(target=write_lines, args=(folder, N_FILES, 5, texts))
    total = 4 + 6 * N_FILES
    with started(*words, text=True) as process:
        writer.start()
        n_records = 0
        while n_records < total:  # until everything was learned, however long it takes
            line = process.stdout.readline()
            assert line, process.stderr.read()
            n_records += json.loads(line)["records"]
        writer.join()
        (folder / "zzz.csv").write_text("place,kind\nA,k9\n")  # a last look at all that is there
        while True:
            step = json.loads(process.stdout.readline())
            n_records += step["records"]
            if step["source"].endswith("zzz.csv"):
                break
        process.send_signal(2)
        process.communicate()
    assert n_records == total + 1
    with tt.Tracker.open(tmp_path / "run", read_only=True) as run:
        values = run.model._model.store.entries.all_values()
        assert values.sum() == total + 1
