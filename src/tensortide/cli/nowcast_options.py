"""What `tensortide nowcast` is asked for, and what of it does not go together."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tensortide.cli.table_file import check_ending
from tensortide.errors import FileError, InputError
from tensortide.nowcast.periods import as_day


@dataclass(frozen=True, kw_only=True)
class NowcastOptions:
    """What is to be made of the triangle."""

    as_of: str | None
    first: str | None
    last: str | None
    days: int | None
    ranks: str | tuple[int, ...]
    warm_up: int
    replay: bool
    form: str
    out: Path | None
    page: Path | None
    as_json: bool
    source: str

    @property
    def length(self) -> int:
        """Dates that a target sums over."""
        return 7 if self.form == "hub" else self.days or 1

    def check(self) -> None:
        """Refuse what cannot be meant, before anything is computed."""
        self._check_days()
        self._check_form()
        for path in (self.out, self.page):
            if path is not None:
                self._check_path(path)

    def _check_days(self) -> None:
        if self.as_of and (self.first or self.last) and not self.replay:
            raise InputError("give either --as-of, or --from and --to (both with --replay only).")
        ends = [as_day(d, n) for d, n in ((self.first, "--from"), (self.last, "--to")) if d]
        if ends != sorted(ends):
            raise InputError(f"--from {self.first} is after --to {self.last}.")
        if self.first and self.out is None and not self.replay:
            raise InputError(
                "--from makes a range of as-of days, for a file (-o) or --replay; for the table of "
                "one day say --as-of."
            )

    def _check_form(self) -> None:
        if self.form not in ("table", "hub"):
            raise InputError(f"--format must be table or hub, not {self.form!r}.")
        if self.form == "hub" and self.out is None:
            raise InputError("--format is about the file: name one with -o.")
        if self.form == "hub" and self.days not in (None, 7):
            raise InputError(f"the hub's format has sums of 7 days, not of --sum {self.days}.")
        if self.out is not None:
            check_ending(self.out)
        if self.page is not None and self.page.suffix.lower() not in (".html", ".htm"):
            raise InputError(f"{self.page}: the page must end with .html.")

    def _check_path(self, path: Path) -> None:
        if not path.parent.is_dir():
            raise FileError(f"{path}: there is no folder {path.parent}.")
        if path.is_dir():
            raise FileError(f"{path} is a folder: name a file in it.")
        if not os.access(path.parent, os.W_OK):
            raise FileError(f"{path}: nothing can be written into {path.parent}.")
        if path.exists() and path.resolve() == Path(self.source).resolve():
            raise InputError(f"{path} is the source: choose another file for the result.")
