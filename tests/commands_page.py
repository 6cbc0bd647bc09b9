"""docs/commands.md, made from the commands themselves: python -m tests.commands_page."""

from __future__ import annotations

import re
from pathlib import Path

import typer

from tensortide.cli.main import app

PAGE = Path(__file__).resolve().parents[1] / "docs" / "commands.md"
HEAD = """# Commands

Made from the commands by `python -m tests.commands_page`; a test compares. `tensortide COMMAND
--help` says the same.

A user's mistake is one sentence on standard error and exit code 2; Ctrl-C is 130; `check` of a
damaged run is 1. `--json` prints for machines. Output that is piped has no colour codes. Completion
for your shell: `tensortide --install-completion`.
"""


def commands_page() -> str:
    """Return the page."""
    parts = [HEAD]
    for name, command in sorted(typer.main.get_command(app).commands.items()):
        text, _, example = re.sub(r"\s*\n\s*", " ", command.help).partition("Example: ")
        parts.append(f"\n## tensortide {name}\n\n{text.strip()}\n\n    {example.strip()}\n")
        parts.append("\n| argument or option | what |\n|---|---|\n")
        for param in command.params:
            if param.name == "help":
                continue
            shown = param.metavar if param.param_type_name == "argument" else None
            words = shown or param.name.upper()
            if param.param_type_name == "option":
                words = ", ".join(f"`{o}`" for o in [*param.opts, *param.secondary_opts])
            default = param.default
            told = default is not None and default is not False and not callable(default)
            extra = f" Default: {default}." if told and str(default) else ""
            extra = " Required." if param.required and not shown else extra
            what = (param.help or "").strip()
            parts.append(f"| {words} | {what}{extra} |\n")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(commands_page(), encoding="utf-8")
