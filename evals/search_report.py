"""What the ranks of `search.py` come to. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from evals.search import Scores

TABLES = {
    "modes": "docstrings and rules",
    "without_rules": "docstrings, no rules",
    "without_docstrings": "no docstrings, rules",
    "without_both": "neither",
}


def as_dict(found: Mapping[str, Mapping[str, Scores]], facts: dict[str, Any]) -> dict[str, Any]:
    """Return everything for JSON.

    Args:
        found: table, then mode, to its scores.
        facts: the machine, the embedder, the command, whatever a reader must know.
    """
    rows = {
        table: {mode: asdict(each) for mode, each in modes.items()}
        for table, modes in found.items()
    }
    return {**facts, **rows}


def as_markdown(document: dict[str, Any]) -> str:
    """Return what `as_dict` made as a table, with what it was measured on."""
    machine = ", ".join(f"{key} {value}" for key, value in document["machine"].items())
    lines = [
        f"Machine: {machine}  ",
        f"Embedder: {document['embedder']}; {document['functions']:,} functions  ",
        f"Command: `{document['command']}`",
        "",
        "| | mode | n | MRR | NDCG@10 | recall@1 | recall@10 |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for table, title in TABLES.items():
        for mode, row in document.get(table, {}).items():
            numbers = (row["mrr"], row["ndcg10"], row["recall1"], row["recall10"])
            cells = " | ".join(f"{number:.3f}" for number in numbers)
            lines.append(f"| {title} | {mode} | {row['questions']} | {cells} |")
    return "\n".join(lines) + "\n"
