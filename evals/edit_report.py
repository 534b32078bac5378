"""What the answers of the edit eval come to: shares, tokens, tables. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evals.edit import OURS, PLAIN, Answer
from evals.report import margin

ASKED = 1.15
"""What our pass@1 shall be of the plain one."""


def as_dict(answers: Sequence[Answer], facts: Mapping[str, Any], asked: int) -> dict[str, Any]:
    """Return all figures, for programs.

    Args:
        answers: of the tasks that were asked both ways.
        facts: of the machine and the model.
        asked: how many tasks were asked for.
    """
    by_kind: dict[str, list[Answer]] = {}
    for each in answers:
        by_kind.setdefault(each.kind, []).append(each)
    plain, ours = by_kind.get(PLAIN, []), by_kind.get(OURS, [])
    rows = {kind: _shares(found) for kind, found in by_kind.items()}
    if ours:
        # The first tries of ours are the default format, asked once.
        rows["ours, first try"] = _shares(ours, is_first=True)
    plain_passed = sum(each.has_passed for each in plain)
    ours_passed = sum(each.has_passed for each in ours)
    tokens = sum(each.answer_tokens for each in plain)
    return {
        "facts": dict(facts),
        "kinds": rows,
        "tasks": len(plain),
        "asked": asked,
        "with_examples": sum(each.has_examples for each in plain),
        "plain_pass": _share(plain_passed, len(plain)),
        "ours_pass": _share(ours_passed, len(ours)),
        "ratio": ours_passed / plain_passed if plain_passed else 0.0,
        "token_ratio": _share(sum(each.answer_tokens for each in ours), tokens),
        "gained": sum(_gains(plain, ours)),
        "lost": sum(_gains(ours, plain)),
        "target": ASKED,
    }


def _gains(before: Sequence[Answer], after: Sequence[Answer]) -> list[bool]:
    passed = {each.task: each.has_passed for each in before}
    return [each.has_passed and not passed.get(each.task, True) for each in after]


def _shares(found: Sequence[Answer], is_first: bool = False) -> dict[str, float]:
    """Return shares and means; of the first tries alone where that is asked for."""
    count = len(found)
    passed = _share(sum(e.first_passed if is_first else e.has_passed for e in found), count)
    shares = {
        "tasks": count,
        "pass": passed,
        "margin": margin(passed, count),
        "formed": _share(sum(each.is_formed for each in found), count),
        "located": _share(sum(each.is_located for each in found), count),
        "checked": _share(sum(each.is_checked for each in found), count),
    }
    if is_first:  # what they cost is not told apart from the rest
        return {**shares, "attempts": 1.0, "answer_tokens": 0, "passes": 0, "seconds": 0}
    return {
        **shares,
        "attempts": _share(sum(max(each.attempts, 1) for each in found), count),
        "answer_tokens": _share(sum(each.answer_tokens for each in found), count),
        "passes": _share(sum(each.passes for each in found), count),
        "seconds": _share(sum(each.seconds for each in found), count),
    }


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def as_markdown(document: Mapping[str, Any]) -> str:
    """Return the same for people."""
    facts = document["facts"]
    rows = [
        f"# Mending functions: {facts.get('model', '')}",
        "",
        *(f"- {name}: {value}" for name, value in facts.items()),
        "",
        f"{document['tasks']} of {document['asked']} tasks, {document['with_examples']} of them "
        "with examples in the docstring. `pass` is the share that passes the hidden tests.",
        "",
        "| | tasks | pass | ± | formed | located | checked | tries | tokens | passes | s |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for kind, each in document["kinds"].items():
        shares = " | ".join(
            f"{100 * each[name]:.1f} %"
            for name in ("pass", "margin", "formed", "located", "checked")
        )
        rows.append(
            f"| {kind} | {each['tasks']} | {shares} | {each['attempts']:.2f} "
            f"| {each['answer_tokens']:.0f} | {each['passes']:.0f} | {each['seconds']:.1f} |"
        )
    rows += [
        "",
        f"Ours passes {document['ratio']:.2f} times as often as plain (asked: "
        f"{document['target']}), with {document['token_ratio']:.2f} times its tokens; "
        f"{document['gained']} tasks won, {document['lost']} lost.",
    ]
    return "\n".join(rows)
