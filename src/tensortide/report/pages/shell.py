"""The shell of every page: one file that loads nothing, with the drawing library inside."""

from __future__ import annotations

import base64
import gzip
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import tensortide
from tensortide.atomic import write_whole
from tensortide.markup import escape


def write_page(page: str, out: Path) -> int:
    """Write a page and return its size in bytes; the old file stays until it is whole."""
    written = page.encode()
    write_whole(out, written)
    return len(written)


def page_around(title: str, body: str, figures: dict[str, Any]) -> str:
    """Return the page; a figure is drawn into the element whose id is its name."""
    from plotly.offline import get_plotlyjs

    library = base64.b64encode(gzip.compress(get_plotlyjs().encode(), 9, mtime=0)).decode()
    return _PAGE.format(
        title=escape(title),
        css=_resource("page.css"),
        body=body,
        version=tensortide.__version__,
        figures=json.dumps(figures, separators=(",", ":")).replace("<", "\\u003c"),
        library=library,
        script=_resource("page.js"),
    )


def _resource(name: str) -> str:
    return (files("tensortide.report.pages") / name).read_text(encoding="utf-8")


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
{css}</style>
</head>
<body>
{body}
<footer class="soft">Made by Tensortide {version}. The page stands alone: it loads nothing.</footer>
<script type="application/json" id="figures">{figures}</script>
<script type="text/plain" id="plotly">{library}</script>
<script>
{script}</script>
</body>
</html>
"""
