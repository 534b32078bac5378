"""What the pairs of `context.py` come to. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lcursor.evals.calls import KINDS
from lcursor.evals.context import Pair
from lcursor.evals.report import margin


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
    before = sum(pair.without_exact for pair in pairs) / count
    after = sum(pair.with_exact for pair in pairs) / count
    return {
        "cuts": count,
        "without_exact": before,
        "without_margin": margin(before, count),
        "with_exact": after,
        "with_margin": margin(after, count),
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
        "| cut | n | exact without | exact with | gained | lost | callee shown |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, row in document["cuts"].items():
        shares = [
            f"{100 * row[f'{arm}_exact']:.0f} % ± {100 * row[f'{arm}_margin']:.0f}"
            for arm in ("without", "with")
        ]
        lines.append(
            f"| {name} | {row['cuts']} | {' | '.join(shares)} | {row['gained']} | {row['lost']}"
            f" | {100 * row['has_callee']:.0f} % |"
        )
    return "\n".join(lines) + "\n"
