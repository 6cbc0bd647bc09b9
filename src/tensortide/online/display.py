"""A model as a small table for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from tensortide.methods.registry import shown

if TYPE_CHECKING:
    from tensortide.online.reading import ReadOnlyModel

_SHOWN = 8  # components


def model_html(model: ReadOnlyModel) -> str:
    """Return what the model has seen, and the top labels of its strongest components."""
    method = escape(shown(model.method).strip("'"))
    head = f"<strong>OnlineCP</strong> {method}, rank {model.rank}"
    if model._model is None:
        return f"<div>{head}, not fitted</div>"
    names = model._model.modes.names
    shape = " x ".join(f"{n:,} {escape(m)}" for m, n in zip(names, model.shape_, strict=True))
    rows = model.components(top=3).to_pylist()
    cells = "".join(f"<th>{escape(name)}</th>" for name in names)
    table = [f"<table><tr><th></th><th>weight</th>{cells}</tr>"]
    for component in range(min(model.rank, _SHOWN)):
        mine = [r for r in rows if r["component"] == component]
        labels = "".join(
            f"<td>{escape(', '.join(r['label'] for r in mine if r['mode'] == name))}</td>"
            for name in names
        )
        table.append(f"<tr><td>{component + 1}</td><td>{mine[0]['weight']:.4g}</td>{labels}</tr>")
    more = model.rank - _SHOWN
    rest = f"<div>and {more} more components</div>" if more > 0 else ""
    return (
        f"<div>{head}, {shape}, step {model.n_steps_}, {model.n_entries_:,} cells seen"
        f"{''.join(table)}</table>{rest}</div>"
    )
