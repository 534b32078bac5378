"""What the pairs of `context.py` come to. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evals.calls import KINDS
from evals.context import Pair
from evals.report import margin


def as_dict(pairs: Sequence[Pair], facts: dict[str, Any]) -> dict[str, Any]:
    """Return everything for JSON.

    Args:
        pairs: of one run.
        facts: the machine, the model, the command, whatever a reader must know.
    """
    groups: dict[str, list[Pair]] = {
        kind: [pair for pair in pairs if pair.kind == kind] for kind in KINDS
    }
    rows = {name: _row(group) for name, group in groups.items() if group}
    if len(rows) > 1:
        rows["all"] = _row(pairs)
    return {**facts, "cuts": rows}


def _row(pairs: Sequence[Pair]) -> dict[str, Any]:
    count = len(pairs)
    row: dict[str, Any] = {"cuts": count}
    for name in ("without_exact", "with_exact", "without_word", "with_word"):
        share = sum(getattr(pair, name) for pair in pairs) / count
        row |= {name: share, f"{name}_margin": margin(share, count)}
    return {
        **row,
        "gained": sum(pair.with_exact and not pair.without_exact for pair in pairs),
        "lost": sum(pair.without_exact and not pair.with_exact for pair in pairs),
        "has_callee": sum(pair.has_callee for pair in pairs) / count,
    }


def as_markdown(document: dict[str, Any]) -> str:
    """Return what `as_dict` made as a table, with what it was measured on."""
    machine = ", ".join(f"{key} {value}" for key, value in document["machine"].items())
    lines = [
        f"Machine: {machine}  ",
        f"Model: {document['model']}; repository {document['repository']}, "
        f"{document['files_tokens']} tokens of other files, seed {document['seed']}  ",
        f"Command: `{document['command']}`",
        "",
        "| cut | n | exact without | exact with | gained | lost | first word without | with | "
        "callee shown |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, row in document["cuts"].items():
        shares = [
            f"{_share(row, f'without_{what}')} | {_share(row, f'with_{what}')}"
            for what in ("exact", "word")
        ]
        lines.append(
            f"| {name} | {row['cuts']} | {shares[0]} | {row['gained']} | {row['lost']}"
            f" | {shares[1]} | {100 * row['has_callee']:.0f} % |"
        )
    return "\n".join(lines) + "\n"


def _share(row: dict[str, Any], name: str) -> str:
    return f"{100 * row[name]:.0f} % ± {100 * row[f'{name}_margin']:.0f}"
