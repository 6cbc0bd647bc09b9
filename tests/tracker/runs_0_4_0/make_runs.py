"""Make the runs of this folder; they were made with Tensortide 0.4.0, and later versions open them.

    python make_runs.py FOLDER

Each run has its source beside it, so that a test can go on with it.
"""

import json
import os
import random
import subprocess
import sys
from datetime import date
from pathlib import Path

import tensortide as tt

PLACES = ["Kiel", "Ulm", "Bonn", "Mainz"]


def rows_of(day: int) -> list[dict[str, object]]:
    """Return the records of a day: counts that grow with place and day, one place late."""
    chance = random.Random(day)
    rows = []
    for number, place in enumerate(PLACES[: 3 if day < 4 else 4], 1):
        for age in ("young", "old"):
            mean = 10 * number * (1 + day % 7) * (1 if age == "young" else 2)
            rows.append({
                "place": place, "age": age, "date": f"2026-03-{day:02d}",
                "count": mean + chance.randint(-3, 3),
            })
    return rows


def write_csv(path: Path, rows: list[dict[str, object]], *more: str) -> None:
    """Write records, and lines as they are."""
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows), *more]
    path.write_text("\n".join(lines) + "\n")


def track(*words: str) -> None:
    """Run the command."""
    subprocess.run([sys.executable, "-m", "tensortide", "track", *words], check=True)


def make_all() -> None:
    """Make an economy run, one with history, and one of counts with penalties."""
    reports = Path("reports")
    reports.mkdir()
    for day in range(1, 7):
        bad = [f"Kiel,old,2026-03-{day:02d},many"] if day == 5 else []
        write_csv(reports / f"day{day}.csv", rows_of(day), *bad)
    rows = rows_of(7)
    rows[0]["count"] = 5_000  # a surprise
    write_csv(reports / "day7.csv", rows)
    track(
        "reports", "--into", "economy", "--modes", "place,age,date", "--value", "count", "--rank",
        "2", "--first", "3", "--on-bad", "quarantine", "--keep-surprises", "--step-files",
    )
    events = Path("events.jsonl")
    lines = [json.dumps(row) for day in range(1, 6) for row in rows_of(day)]
    events.write_text("\n".join(lines) + "\n")
    track(
        "events.jsonl", "--into", "history", "--modes", "place,age,date", "--value", "count",
        "--method", "gocpt", "--rank", "2", "--step-by", "date", "--first", "2",
    )
    with tt.Tracker.open("history") as run:
        run.ingest(
            {"place": ["Ulm"], "age": ["old"], "date": ["2026-03-05"], "count": [77]}, "late",
            retract={"place": ["Kiel"], "age": ["old"], "date": ["2026-03-01"]},
        )
    penalties = {"date": [tt.smooth(), tt.nonnegative()], "place": [tt.l1(0.01)]}
    with tt.Tracker.create(
        "counts", 2, "gocpte", modes=["place", "age", "date"], value="count", loss="poisson",
        penalties=penalties,
    ) as run:
        for days in ((1, 2, 3), (4,), (5,)):
            rows = [row for day in days for row in rows_of(day)]
            table = {name: [row[name] for row in rows] for name in rows[0]}
            table["date"] = [date.fromisoformat(str(day)) for day in table["date"]]
            run.ingest(table, f"days {days}")


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    make_all()
