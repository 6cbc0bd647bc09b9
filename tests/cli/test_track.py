"""`tensortide track` and the commands that read a run, as a person uses them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

import tensortide as tt
from tensortide.cli import main, track
from tensortide.wording import counted
from tests.cli.conftest import COMMAND, LAST_RESORT, started, wait_for
from tests.sources.samples import csv_text, json_text, rows, write

WORDS = ["--modes", "place,age,date", "--value", "count", "--rank", "2"]


def lines(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def said(done):
    return " ".join(done.stderr.split())


@pytest.fixture
def tracked(run, tmp_path):
    source = write(tmp_path / "a.csv", rows())
    done = run(
        "track", str(source), "--into", str(tmp_path / "run"), *WORDS, "--step-by", "reported"
    )
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_track_says_what_it_does_and_continues(run, tracked):
    again = run("track", str(tracked / "a.csv"), "--into", str(tracked / "run"))
    assert again.returncode == 0
    assert "goes on after step 12; one step for each reported" in said(again)
    assert "0 steps" in said(again)
    assert "1 file had nothing new" in said(again)


def test_guesses_are_said_out_loud(run, tmp_path):
    source = write(tmp_path / "a.csv", rows())
    done = run("track", str(source), "--into", str(tmp_path / "run"), "--step-by", "reported")
    assert done.returncode == 0, done.stderr
    assert "guessed value: count (by its name)" in said(done)
    assert "guessed modes: place, age, date (all other columns but the steps' reported)" in said(
        done
    )
    assert "place (text), age (integer), date (date)" in said(done)
    assert "done: 12 steps" in said(done)
    assert "before learning" in said(done)


def test_what_is_not_obvious_is_asked_for(run, tmp_path):
    (tmp_path / "a.csv").write_text("a,b,x,y\nu,v,1,2\nw,v,3,4\n")
    done = run("track", str(tmp_path / "a.csv"), "--into", str(tmp_path / "run"))
    assert done.returncode == 2
    assert "which column has the values?" in said(done)
    assert "x (whole numbers)" in said(done)
    assert not (tmp_path / "run").exists()


MANY = [(f"p{i % 3}", f"2026-01-0{i % 5 + 1}", f"{i}.5") for i in range(20)]
COLUMNS = {
    "case_id,place,date\n" + "".join(f"{i},{p},{d}\n" for i, (p, d, _) in enumerate(MANY)): (
        2,
        "which column has the values?",
    ),
    "place,date,cases,deaths\na,2026-01-01,1,2\nb,2026-01-02,3,4\n": (
        2,
        "is 'deaths' a second value",
    ),
    "place,date,count\na,31.01.2026,1\nb,01.02.2026,2\n": (2, "dates such as 31.01.2026"),
    "Kiel,2026-01-01,1.5\nUlm,2026-01-01,2.5\n": (2, "line 1: '2026-01-01' is no name"),
    "place,2020,2021\na,1,2\n": (2, "or the table wide?"),
    "place,date,count\na,2026-01-01,NA\nb,2026-01-02,2\n": (2, "must be a number, not 'NA'"),
    'place,date,count\na,2026-01-01,"1,100"\nb,2026-01-02,2\n': (2, "write it without commas"),
    "sep=;\nplace;date;count\n" + "".join(f"{p};{d};{v}\n" for p, d, v in MANY): (
        0,
        "values in count",
    ),
    ",place,date,count\n" + "".join(f"{i},{','.join(r)}\n" for i, r in enumerate(MANY)): (
        0,
        "the one without a name, which numbers rows",
    ),
}


@pytest.mark.parametrize("text", COLUMNS, ids=lambda text: text.split("\n")[0])
def test_tables_of_many_shapes_are_read_or_named(run, tmp_path, text):
    code, message = COLUMNS[text]
    (tmp_path / "a.csv").write_text(text)
    done = run("track", str(tmp_path / "a.csv"), "--into", str(tmp_path / "run"), "--rank", "1")
    assert message in said(done)
    assert done.returncode == code
    assert "Traceback" not in done.stderr


def test_a_run_that_has_learned_nothing_takes_other_options(run, tmp_path):
    (tmp_path / "a.csv").write_text("place,day,count\na,1,1.5\na,2,2.5\nb,3,3.5\nb,4,1.5\n")
    words = ["track", str(tmp_path / "a.csv"), "--into", str(tmp_path / "run"), "--step-by", "day"]
    failed = run(*words)
    assert failed.returncode == 2
    assert "--first 10" in said(failed)
    assert run(*words, "--rank", "1", "--first", "3").returncode == 0


@pytest.mark.parametrize(
    ("text", "words", "helps"),
    [
        ("a,1,1\na,2,2\n", ["--step-by", "day"], "--first 10,"),
        ("a,1,1\na,2,2\n", ["--step-by", "day", "--rank", "60"], "--first 61,"),
        ("a,1,1\na,2,2\n", ["--step-by", "day", "--first", "9"], ""),  # there are no more
        ("a,1,1\na,2,2\n", ["--step-files"], ""),
        ("a,1,-1\nb,2,2\n" * 9, ["--step-rows", "9", "--loss", "gamma"], ""),  # not too few
    ],
)
def test_learning_more_steps_together_is_advised_where_it_helps(run, tmp_path, text, words, helps):
    (tmp_path / "a.csv").write_text("place,day,count\n" + text)
    failed = run("track", str(tmp_path / "a.csv"), "--into", str(tmp_path / "run"), *words)
    assert failed.returncode == 2
    assert ("--first" in said(failed)) is bool(helps)
    assert helps in said(failed)
    if not helps and "gamma" not in words:
        assert "a smaller rank" in said(failed)
    (tmp_path / "b.csv").write_text("place,day,count\nb,3,1\n")
    if "--step-files" in words:  # now there is another step
        files = [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
        assert "--first 10" in said(run("track", *files, "--into", str(tmp_path / "run"), *words))


@pytest.mark.parametrize("method", ["gocpt", "gocpte"])
def test_events_of_a_cell_add_up_where_they_can(run, tmp_path, method):
    first = "".join(f"{p},{d}\n" for p in "abc" for d in (1, 2, 3) for _ in range(9))
    (tmp_path / "1.csv").write_text("place,day\n" + first)
    (tmp_path / "2.csv").write_text("place,day\na,1\n")
    (tmp_path / "cells.csv").write_text("place,day\na,1\n")
    path = str(tmp_path / "run")
    words = ["--duplicates", "count", "--rank", "1", "--method", method]
    done = run("track", str(tmp_path / "1.csv"), str(tmp_path / "2.csv"), "--into", path, *words)
    assert done.returncode == 0
    assert "72 records counted with others" in said(done)
    if method == "gocpt":
        assert "guessed combine: add" in said(done)
        cell = lines(run("predict", path, str(tmp_path / "cells.csv"), "--json"))[0]
        assert 9 < cell["predicted"] < 10.5
    else:
        assert "keeps no counts" in said(done)


def test_records_that_are_dropped_are_told(run, tmp_path):
    source = write(tmp_path / "a.csv", rows())
    words = ["--modes", "place,date", "--value", "count", "--step-files", "--rank", "1"]
    done = run("track", str(source), "--into", str(tmp_path / "run"), *words)
    dropped = len(rows()) - len({(r[0], r[2]) for r in rows()})
    assert f"{dropped} records dropped for a later one of the same cell" in said(done)
    assert "combined" in run("info", str(tmp_path / "run")).stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rank", "7"], "begun with --rank 2, not 7"),
        (["--method", "gocpt"], "begun with --method gocpte, not gocpt"),
        (["--modes", "place,date"], "--modes place,age,date, not place,date"),
        (["--value", "reported"], "--value count, not reported"),
        (["--absent", "zero"], "--absent missing, not zero"),
        (["--prior", "paper"], "begun with --prior learned, not paper"),
        (["--keep-fibres"], "begun with --no-fibres, not --keep-fibres"),
        (["--step-rows", "10"], "takes one step for each reported"),
    ],
)
def test_options_that_differ_from_the_run_are_refused(run, tracked, words, message):
    done = run("track", str(tracked / "a.csv"), "--into", str(tracked / "run"), *words)
    assert done.returncode == 2
    assert message in said(done)
    same = ["--rank", "2", "--method", "gocpte", "--modes", "place,age,date", "--prior", "learned"]
    same += ["--no-fibres"]
    assert (
        run("track", str(tracked / "a.csv"), "--into", str(tracked / "run"), *same).returncode == 0
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere.csv"], "no such file"),
        (["-", "a.csv"], "cannot be mixed"),
        (["a.csv", "--step-by", "date", "--step-rows", "3"], "not by two"),
        (["a.csv", "--on-bad", "ignore"], "--on-bad must be one of"),
        (["a.csv", "--modes", "place,nix", "--value", "count"], "no column 'nix'"),
        (["a.csv", "--modes", "place,place", "--value", "count"], "twice"),
        (["a.csv", "--modes", "place,count", "--value", "count"], "both a mode and the value"),
        (["a.csv", "--step-by", "count", "--value", "count"], "has the values"),
        (["a.csv", "--method", "gocptee"], "did you mean 'gocpte'"),
        (["a.csv", "--absent", "never"], "--absent must be one of 'missing', 'zero'"),
        (["a.csv", "--loss", "rmse"], "--loss must be one of 'squared', 'poisson'"),
        (["a.csv", "--loss", "rmse"], "'huber', not 'rmse'"),
        (["a.csv", "--keep-fibres", "--prior", "paper"], "--keep-fibres goes with --prior learned"),
        (["a.csv", "--prior", "learned", "--method", "sdt"], "--prior learned goes with 'gocpt'"),
        (["a.csv", "--keep-fibres", "--loss", "bernoulli"], "leave --keep-fibres out"),
        (["a.csv", "--combine", "add"], "--combine add needs the known values"),
    ],
)
def test_mistakes_are_a_sentence_and_leave_no_run(run, tmp_path, words, message):
    write(tmp_path / "a.csv", rows(3))
    words = [str(tmp_path / w) if w.endswith(".csv") else w for w in words]
    done = run("track", *words, "--into", str(tmp_path / "run"))
    assert done.returncode == 2
    assert message in said(done)
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run" / "run.sqlite").exists()


def test_json_is_one_line_a_step_and_a_summary(run, tmp_path):
    source = write(tmp_path / "a.jsonl", rows())
    done = run(
        "track",
        str(source),
        "--into",
        str(tmp_path / "run"),
        *WORDS,
        "--step-by",
        "reported",
        "--json",
    )
    *steps, last = lines(done)
    assert [s["step"] for s in steps] == list(range(1, 13))
    assert steps[3]["label"] == "3"
    assert last["done"] is True
    assert (last["steps"], last["records"]) == (12, len(rows()))


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_pipe_is_continued_by_its_content(run, tmp_path, form):
    data = csv_text(rows()) if form == "csv" else json_text(rows())
    half = (
        csv_text([r for r in rows() if r[3] < 6])
        if form == "csv"
        else json_text([r for r in rows() if r[3] < 6])
    )
    words = [
        "track",
        "-",
        "--into",
        str(tmp_path / "run"),
        *WORDS,
        "--step-by",
        "reported",
        "--json",
    ]
    results = []
    for sent in (half, data, data):
        done = run(*words, given=sent.decode())
        assert done.returncode == 0, done.stderr
        results.append(json.loads(done.stdout.splitlines()[-1]))
    assert [(r["steps"], r["known"]) for r in results] == [(6, 0), (6, 0), (0, 0)]


@pytest.mark.parametrize("cut_at", ["line", "middle"])
def test_a_pipe_that_broke_off_within_a_step_adds_nothing_twice(run, tmp_path, cut_at):
    text = "place,day,n\n" + "".join(f"{p},{d},{d}.5\n" for d in (1, 2, 3) for p in "AB")
    words = ["--modes", "place,day", "--value", "n", "--rank", "1", "--step-by", "day", "--json"]
    adding = ["--method", "gocpt", "--combine", "add", "--duplicates", "sum"]
    end = text.index("B,2") - (3 if cut_at == "middle" else 0)
    for sent in (text[:end], text, text):
        done = run("track", "-", "--into", tmp_path / "run", *words, *adding, given=sent)
    assert done.returncode == 0, done.stderr
    with tt.Tracker.open(tmp_path / "run", read_only=True) as tracker:
        values = sorted(tracker.model._model.store.entries.all_values().tolist())
    if cut_at == "line":
        assert values == [1.5, 1.5, 2.5, 2.5, 3.5, 3.5]
    else:  # half a number was learned as a number; what came whole is not added twice
        assert sum(values) <= 15 + 2.5


def test_a_pipe_that_is_not_in_order_is_refused(run, tmp_path):
    data = csv_text(list(reversed(rows(3))))
    words = ["track", "-", "--into", str(tmp_path / "run"), *WORDS, "--step-by", "reported"]
    done = run(*words, given=data.decode())
    assert done.returncode == 2
    assert "a pipe has to" in said(done)


def test_quarantine_is_counted_and_written(run, tmp_path):
    text = csv_text(rows(4)).replace(b"2026-01-02,1,", b"2026-01-02,1,x", 2)
    (tmp_path / "a.csv").write_bytes(text)
    words = ["track", str(tmp_path / "a.csv"), "--into", str(tmp_path / "run"), *WORDS]
    stopped = run(*words, "--step-by", "reported")
    assert stopped.returncode == 2
    assert "a.csv, line" in said(stopped)
    done = run(*words, "--on-bad", "quarantine")
    assert done.returncode == 0
    assert "2 bad records set aside" in said(done)
    assert (tmp_path / "run" / "quarantine.csv").read_text().count("must be a number") == 2


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_watch_follows_a_folder_until_it_is_stopped(run, tmp_path, how):
    folder = tmp_path / "reports"
    folder.mkdir()
    words = ["track", str(folder), "--into", str(tmp_path / "run"), *WORDS]
    with started(*words, "--watch", "--every", "0.05", "--json", text=True) as process:
        write(folder / "0.csv", [r for r in rows(3) if r[3] == 0])
        assert json.loads(process.stdout.readline())["step"] == 1
        write(folder / "1.csv", [r for r in rows(3) if r[3] == 1])
        assert json.loads(process.stdout.readline())["step"] == 2
        info = run("info", str(tmp_path / "run"), "--json")  # a reader meanwhile
        assert json.loads(info.stdout)["steps"] == 2
        second = run(*words)
        assert second.returncode == 2
        assert f"process {process.pid}" in said(second)
        process.send_signal(how)
        out, err = process.communicate()
    assert process.returncode == 0
    assert json.loads(out.splitlines()[-1])["stopped"] is True
    assert "Traceback" not in err


def test_an_interrupted_run_says_how_to_go_on(run, tmp_path):
    words = ["track", "-", "--into", str(tmp_path / "run"), *WORDS, "--step-by", "reported"]
    with started(*words, stdin=subprocess.PIPE) as process:
        process.stdin.write(csv_text(rows(6)))
        process.stdin.flush()
        wait_for((tmp_path / "run" / "run.sqlite").is_file, process)
        info = ("info", str(tmp_path / "run"), "--json")
        wait_for(lambda: json.loads(run(*info).stdout)["steps"] == 5, process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 130
    assert "the same command goes on" in " ".join(err.decode().split())
    assert "Traceback" not in err.decode()


@pytest.mark.parametrize("untold", [1, 3])
def test_what_is_said_to_be_kept_is_what_the_ledger_has(tmp_path, monkeypatch, capsys, untold):
    """An interrupt between the commit of a step and the word about it."""
    told = []

    def tell(self, event):
        told.append(event)
        if len(told) == untold:
            raise KeyboardInterrupt

    source = write(tmp_path / "a.csv", rows(6))
    monkeypatch.setattr(track._Telling, "tell", tell)
    words = ["track", str(source), "--into", str(tmp_path / "run"), *WORDS, "--step-by", "reported"]
    monkeypatch.setattr("sys.argv", ["tensortide", *words])
    with pytest.raises(SystemExit) as leaving:
        main.main()
    assert leaving.value.code == 130
    with tt.Tracker.open(tmp_path / "run") as run:
        kept = run.progress()
        assert kept.steps == untold
        assert kept == run.progress(since=0)
        assert run.progress(since=kept.last) == (kept.last, 0, 0, 0)
    words = f"stopped: {counted(untold, 'step')}, {kept.records} records"
    assert words in " ".join(capsys.readouterr().err.split())


def test_the_files_of_others_are_not_those_of_the_run(run, tmp_path):
    source = write(tmp_path / "a.csv", rows(4))
    run("track", str(source), "--into", str(tmp_path), *WORDS, "--step-by", "reported")
    before = json.loads(run("info", str(tmp_path), "--json").stdout)["bytes"]
    (tmp_path / "large.csv").write_bytes(b"x" * 1_000_000)
    assert json.loads(run("info", str(tmp_path), "--json").stdout)["bytes"] == before > 10_000


def test_info_components_predict_and_check(run, tracked):
    path = str(tracked / "run")
    info = run("info", path)
    assert "4 place (text), 3 age (integer), 12 date (date)" in info.stdout
    assert "a.csv: 12 steps" in info.stdout
    told = [" ".join(line.split()) for line in info.stdout.splitlines()]
    for line in (
        "model gocpte, rank 2, loss squared", "prior learned", "absent missing", "fibres not kept",
        "outlook along date",
    ):  # fmt: skip
        assert line in told
    facts = json.loads(run("info", path, "--json").stdout)
    assert (facts["prior"], facts["fibres"], facts["outlook"]) == ("learned", False, "date")
    assert facts["records"] == len(rows())
    found = run("components", path, "--top", "2")
    assert "weight" in found.stdout
    assert len(json.loads(run("components", path, "--json").stdout)) > 10
    assert run("components", path, "-o", str(tracked / "c.csv")).returncode == 0
    assert (tracked / "c.csv").read_text().startswith('"component"')
    check = run("check", path)
    assert check.returncode == 0
    assert check.stdout.count("ok ") == 9


def test_predict_answers_in_the_order_of_the_cells(run, tracked):
    (tracked / "cells.csv").write_text("date,place,age\n2026-01-03,Kiel,2\n2026-01-01,Gera,1\n")
    path, cells = str(tracked / "run"), str(tracked / "cells.csv")
    done = run("predict", path, cells)
    head, first, second = done.stdout.splitlines()
    assert head == '"place","age","date","predicted"'
    assert first.startswith('"Kiel",2,2026-01-03,')
    assert second.startswith('"Gera",1,2026-01-01,')
    as_json = lines(run("predict", path, cells, "--json"))
    assert as_json[0]["predicted"] == float(first.rsplit(",", 1)[1])
    assert run("predict", path, cells, "-o", str(tracked / "p.parquet")).returncode == 0
    piped = subprocess.run(
        [str(COMMAND), "predict", path, "-"], input=(tracked / "cells.csv").read_bytes(),
        capture_output=True, check=False,
    )  # fmt: skip
    assert piped.stdout.decode() == done.stdout
    (tracked / "cells.csv").write_text("date,place,age\n2027-01-03,Kiel,2\n")
    unknown = run("predict", path, cells)
    assert unknown.returncode == 2
    assert "no label 2027-01-03; pass --unknown nan" in said(unknown)
    assert lines(run("predict", path, cells, "--unknown", "nan", "--json"))[0]["predicted"] is None
    (tracked / "cells.csv").write_text("date,place,age\n2026-01-03,Kiel,old\n")
    assert "cells.csv, line 2: the label 'old'" in said(run("predict", path, cells))


def test_check_of_a_damaged_run_is_exit_code_one(run, tracked):
    file = tracked / "run" / "run.sqlite"
    data = bytearray(file.read_bytes())
    data[2048:8192] = bytes(6144)
    file.write_bytes(data)
    done = run("check", str(tracked / "run"))
    assert done.returncode == 1
    assert "BAD" in done.stdout
    assert "is damaged" in done.stdout
    assert run("info", str(tracked / "run")).returncode == 2


@pytest.mark.parametrize("command", ["info", "components", "report", "check"])
def test_a_folder_without_a_run_is_said(run, tmp_path, command):
    done = run(command, str(tmp_path))
    assert done.returncode == 2
    assert "no run here" in said(done) + done.stdout
    assert "Traceback" not in done.stderr


COMMANDS = [
    "track", "info", "components", "predict", "report", "check", "methods", "demo", "compare",
    "reproduce",
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(run, command):
    done = run(command, "--help")
    assert done.returncode == 0
    assert f"Example: tensortide {command}" in " ".join(done.stdout.split())


def test_completion_can_be_shown(run):
    env = {
        **os.environ,
        "_TENSORTIDE_COMPLETE": "complete_bash",
        "COMP_WORDS": "tensortide tr",
        "COMP_CWORD": "1",
    }
    done = subprocess.run([str(COMMAND)], env=env, capture_output=True, text=True, check=False)
    assert "track" in done.stdout


def test_a_progress_bar_is_drawn_on_a_terminal(tmp_path):
    import pty

    source = write(tmp_path / "a.csv", rows())
    leader, follower = pty.openpty()
    words = [str(COMMAND), "track", str(source), "--into", str(tmp_path / "run"), *WORDS]
    process = subprocess.Popen([*words, "--step-by", "reported"], stderr=follower, stdout=follower)
    os.close(follower)
    drawn = b""
    while True:
        try:
            part = os.read(leader, 4096)
        except OSError:
            break
        if not part:
            break
        drawn += part
    os.close(leader)
    assert process.wait(LAST_RESORT) == 0
    text = drawn.decode()
    for word in ("a.csv", "records/s", "step 12", "fitness"):
        assert word in text


def test_help_needs_none_of_the_heavy_libraries(run):
    code = (
        "import sys; sys.argv = ['tensortide', '--help']\n"
        "from tensortide.cli.main import app\n"
        "try:\n    app()\nexcept SystemExit:\n    pass\n"
        "print(sorted({'numba', 'pyarrow', 'plotly', 'scipy', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.rstrip().endswith("[]")


def test_a_run_of_counts_has_its_loss(run, tmp_path):
    source = write(tmp_path / "a.csv", rows())
    words = ["track", str(source), "--into", str(tmp_path / "run"), *WORDS, "--step-by", "reported"]
    assert run(*words, "--loss", "poisson").returncode == 0
    assert "loss poisson" in run("info", str(tmp_path / "run")).stdout
    other = run(*words, "--loss", "gamma")
    assert other.returncode == 2
    assert "begun with --loss poisson, not gamma" in " ".join(other.stderr.split())
    wrong = run("track", str(source), "--into", str(tmp_path / "other"), *WORDS, "--loss", "poison")
    assert wrong.returncode == 2
    assert "loss must be one of" in wrong.stderr


def test_info_tells_a_baseline_from_what_looks_ahead(run, tmp_path):
    source = write(tmp_path / "a.csv", rows())
    for words, told in (
        (["--method", "cpc_als"], ("prior paper", "fibres not kept", "outlook none with the")),
        (["--method", "gocpt"], ("prior learned", "fibres kept", "outlook along date")),
    ):
        path = str(tmp_path / words[-1])
        done = run("track", str(source), "--into", path, *WORDS, "--step-by", "reported", *words)
        assert done.returncode == 0, done.stderr
        said = " ".join(run("info", path).stdout.split())
        assert all(words in said for words in told)
