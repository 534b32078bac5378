"""Answers of `eval edit`: a cache of them, and the report with pass@1 of both ways."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from bench.report import head, share, table
from evals.rates import margin

PLAIN, OURS = "plain", "ours"
TARGET = 1.15
"""Our pass@1 should be this many times the plain one."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one task, asked in one way."""

    kind: str
    """`plain` or `ours`."""
    task: str
    key: str
    """Digest of the model, the question and the settings."""
    has_passed: bool
    first_passed: bool
    """Whether the first attempt passed."""
    is_formed: bool
    """The first reply had the requested format."""
    is_located: bool
    """Its place was found, and it changes something."""
    is_checked: bool
    """It passed the static checks."""
    has_examples: bool
    attempts: int
    prompt_tokens: int
    answer_tokens: int
    passes: int
    seconds: float
    text: str
    """The resulting file; the reply if there is none."""
    problem: str = ""


class AnswerCache:
    """Answers of earlier runs.

    Args:
        path: a JSON Lines file; created with the first answer.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[tuple[str, str, str], Answer] = {}
        names = {each.name for each in fields(Answer)}
        try:
            rows = path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            rows = []
        for row in rows:
            try:
                values = json.loads(row)
                found = Answer(**{name: values[name] for name in names})
            except (ValueError, KeyError, TypeError):
                continue  # the last line of a run that was killed
            self._known[found.kind, found.task, found.key] = found

    def find(self, kind: str, task: str, key: str) -> Answer | None:
        """Return the answer to the same question, if any."""
        return self._known.get((kind, task, key))

    def add(self, answer: Answer) -> Answer:
        """Add an answer and return it."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(answer)) + "\n")
        self._known[answer.kind, answer.task, answer.key] = answer
        return answer


def complete(found: Sequence[Answer]) -> list[Answer]:
    """Return the answers to tasks that were asked in both ways."""
    both = {each.task for each in found if each.kind == PLAIN}
    both &= {each.task for each in found if each.kind == OURS}
    return [each for each in found if each.task in both]


def as_dict(answers: Sequence[Answer], facts: Mapping[str, Any], asked: int) -> dict[str, Any]:
    """Return the report as JSON.

    Args:
        answers: of the tasks that were asked in both ways.
        facts: machine, model, command, options.
        asked: the number of tasks that were requested.
    """
    by_kind: dict[str, list[Answer]] = {}
    for each in answers:
        by_kind.setdefault(each.kind, []).append(each)
    plain, ours = by_kind.get(PLAIN, []), by_kind.get(OURS, [])
    rows = {kind: _row(found) for kind, found in by_kind.items()}
    if ours:  # the cost of our first attempts alone is not known
        unknown = {"attempts": 1.0, "answer_tokens": 0, "passes": 0, "seconds": 0}
        passed = [each.first_passed for each in ours]
        rows["ours, first try"] = {**_row(ours), **_pass(passed), **unknown}
    plain_passed = {each.task for each in plain if each.has_passed}
    ours_passed = {each.task for each in ours if each.has_passed}
    plain_tokens = sum(each.answer_tokens for each in plain)
    return {
        "facts": dict(facts),
        "kinds": rows,
        "tasks": len(plain),
        "asked": asked,
        "with_examples": sum(each.has_examples for each in plain),
        "plain_pass": share(len(plain_passed), len(plain)),
        "ours_pass": share(len(ours_passed), len(ours)),
        "ratio": share(len(ours_passed), len(plain_passed)),
        "token_ratio": share(sum(each.answer_tokens for each in ours), plain_tokens),
        "gained": len(ours_passed - plain_passed),
        "lost": len(plain_passed - ours_passed),
        "target": TARGET,
    }


def _row(found: Sequence[Answer]) -> dict[str, float]:
    count = len(found)
    return {
        "tasks": count,
        **_pass([each.has_passed for each in found]),
        "formed": share(sum(each.is_formed for each in found), count),
        "located": share(sum(each.is_located for each in found), count),
        "checked": share(sum(each.is_checked for each in found), count),
        "attempts": share(sum(max(each.attempts, 1) for each in found), count),
        "answer_tokens": share(sum(each.answer_tokens for each in found), count),
        "passes": share(sum(each.passes for each in found), count),
        "seconds": share(sum(each.seconds for each in found), count),
    }


def _pass(passed: Sequence[bool]) -> dict[str, float]:
    right = share(sum(passed), len(passed))
    return {"pass": right, "margin": margin(right, len(passed))}


def as_markdown(document: Mapping[str, Any]) -> list[str]:
    """Return the lines of the report."""
    facts = document["facts"]
    title = f"Model: {facts['model']}; seed {facts['seed']}"
    shares = ("pass", "margin", "formed", "located", "checked")
    rows = [
        (
            kind,
            row["tasks"],
            *(f"{100 * row[name]:.1f} %" for name in shares),
            f"{row['attempts']:.2f}",
            *(f"{row[name]:.0f}" for name in ("answer_tokens", "passes")),
            f"{row['seconds']:.1f}",
        )
        for kind, row in document["kinds"].items()
    ]
    columns = ["", "tasks:", "pass:", "±:", "formed:", "located:", "checked:", "attempts:"]
    return [
        *head(facts, title),
        f"{document['tasks']} of {document['asked']} tasks, {document['with_examples']} of them "
        "with examples in the docstring. `pass` is the share that passes the hidden tests.",
        "",
        *table([*columns, "tokens:", "passes:", "s:"], rows),
        "",
        f"Ours passes {document['ratio']:.2f} times as often as plain (target: "
        f"{document['target']}), with {document['token_ratio']:.2f} times its tokens; "
        f"{document['gained']} tasks gained, {document['lost']} lost.",
    ]
