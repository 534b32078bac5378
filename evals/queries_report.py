"""What the ranks of `queries.py` come to. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evals.queries import KINDS, Judged
from evals.search import scores


def as_dict(found: Sequence[Judged], facts: dict[str, Any]) -> dict[str, Any]:
    """Return everything for JSON.

    Args:
        found: all answers, of all modes.
        facts: the machine, the embedder, the command, whatever a reader must know.
    """
    modes: dict[str, dict[str, dict[str, float]]] = {}
    for mode in dict.fromkeys(each.mode for each in found):
        for kind in KINDS:
            of_kind = [each for each in found if (each.mode, each.question.kind) == (mode, kind)]
            for corpus in ["all", *dict.fromkeys(each.question.corpus for each in of_kind)]:
                ranks = [each.rank for each in of_kind if corpus in ("all", each.question.corpus)]
                counted = scores(ranks)
                name = kind if corpus == "all" else f"{kind} of {corpus}"
                modes.setdefault(mode, {})[name] = {
                    "questions": counted.questions,
                    "mrr": counted.mrr,
                    "first": counted.recall1,
                    "recall10": counted.recall10,
                }
    misses = [
        {
            "mode": each.mode,
            "corpus": each.question.corpus,
            "question": each.question.text,
            "rank": each.rank,
            "first": each.first,
        }
        for each in found
        if each.rank != 1
    ]
    return {**facts, "modes": modes, "misses": misses}


def as_markdown(document: dict[str, Any], *, has_misses: bool = False) -> str:
    """Return what `as_dict` made as a table, with what it was measured on."""
    machine = ", ".join(f"{key} {value}" for key, value in document["machine"].items())
    lines = [
        f"Machine: {machine}  ",
        f"Embedder: {document['embedder']}  ",
        f"Command: `{document['command']}`",
        "",
        "| questions | mode | n | right first | MRR | recall@10 |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for mode, rows in document["modes"].items():
        for name, row in rows.items():
            lines.append(
                f"| {name} | {mode} | {row['questions']} | {100 * row['first']:.1f} % "
                f"| {row['mrr']:.3f} | {row['recall10']:.3f} |"
            )
    if has_misses:
        lines += ["", "| mode | question | rank | came first |", "|---|---|--:|---|"]
        lines += [
            f"| {each['mode']} | {each['question']} | {each['rank'] or '-'} | {each['first']} |"
            for each in document["misses"]
        ]
    return "\n".join(lines) + "\n"
