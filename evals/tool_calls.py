"""Read recorded messages of models: the calls that were meant, none, or malformed.

The corpus and its format are described in evals/data/agent/README.md. The right readings were never
computed by the code under test. Asks no model.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from bench.report import Json, percent, table
from evals.corpus import ROOT
from lcursor.agent.dialects.dialect import Dialect
from lcursor.agent.dialects.fenced import Fenced
from lcursor.agent.dialects.native import Native
from lcursor.agent.records import Answer, Call, Known
from lcursor.agent.tools.tool import Tool
from lcursor.errors import LcursorError

DATA = ROOT / "evals/data/agent/calls.jsonl"
DIALECTS: Mapping[str, Dialect] = {"native": Native(), "fenced": Fenced()}
Right = tuple[Call, ...] | Literal["none", "malformed"]
Outcome = Literal["right", "missed", "wrong"]
"""Read as meant; calls that were meant are not carried out, or the other way to answer without a
call; other calls than meant are carried out."""
TOOLS = (
    Tool(
        "str_replace_editor",
        "View, create or edit a file. `view` also lists a folder.",
        {"command": "view, create, str_replace or insert", "path": "File or folder"},
        {
            "view_range": "First and last line of view, as [1, 40]",
            "old_str": "For str_replace: lines that occur once in the file",
            "new_str": "For str_replace and insert: the new lines",
            "file_text": "For create: the content",
            "insert_line": "For insert: the line after which new_str goes",
        },
        integers=frozenset({"insert_line"}),
        lists=frozenset({"view_range"}),
    ),
    Tool(
        "bash",
        "Run a shell command.",
        {"command": ""},
        {"timeout_s": "At most 600"},
        integers=frozenset({"timeout_s"}),
    ),
    Tool(
        "grep",
        "Find lines that match a regular expression.",
        {"pattern": ""},
        {"path": "Folder or file", "glob": "Only files such as *.py"},
    ),
    Tool("glob", "List files by pattern.", {"pattern": "Such as src/**/*.ts"}),
    Tool("search", "Find code by its meaning.", {"query": "What it does"}, {"path": "Folder"}),
    Tool("finish", "End the task.", {"summary": "What was changed, and what is left"}),
)
"""The tools that the recorded messages are about, not those of the product."""
FORMS = (
    ("<function=", "tags"), ("<tool", "JSON in tags"), ("<function", "JSON in tags"),
    ("{", "JSON"), ("(", "Python"), ("", "text"),
)  # fmt: skip
"""The first sign that a message contains, and its form."""


@dataclass(frozen=True, slots=True)
class Message:
    """A recorded message and its right reading."""

    name: str
    kind: str
    dialect: str
    answer: Answer
    right: Right


@dataclass(frozen=True, slots=True)
class Judged:
    """A message and how it was read."""

    message: Message
    outcome: Outcome
    detail: str


def command(
    data: Annotated[Path, typer.Option(help="The messages.", show_default=False)] = DATA,
    kind: Annotated[str, typer.Option(help="Only messages with this in their name.")] = "",
    as_json: Json = False,
) -> None:
    """Read recorded messages of models: as meant, missed, or wrong calls.

    Exits with 1 if wrong calls would be carried out. Asks no model.
    """
    found = [judge(one) for one in load(data) if kind in f"{one.name} {one.kind}"]
    document = as_dict(found)
    if not as_json:
        typer.echo("\n".join(as_markdown(document)) + "\n")
    names = ("total", "right_share", "missed", "wrong")
    typer.echo(json.dumps({name: document[name] for name in names}))
    if document["wrong"]:
        raise typer.Exit(1)


def load(path: Path = DATA) -> list[Message]:
    """Read the corpus.

    Raises:
        LcursorError: it is missing or malformed.
    """
    try:
        return list(_messages(path))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LcursorError(
            f"{path} is not a corpus of messages ({error})", f"Give the file: --data {DATA}"
        ) from error


def _messages(path: Path) -> Iterator[Message]:
    for line in path.read_text(encoding="utf-8").split("\n"):
        if not line:
            continue
        row = json.loads(line)
        right = row["right"]
        if not isinstance(right, str):
            right = tuple(Call(one["tool"], one["arguments"]) for one in right)
        answer = Answer(row["text"], row["finish"])
        yield Message(row["id"], row["kind"], row["dialect"], answer, right)


def judge(message: Message) -> Judged:
    """Read a message and compare the reading."""
    reply = DIALECTS[message.dialect].parse(message.answer, TOOLS, Known())
    found: Right = "malformed" if reply.problem else reply.calls or "none"
    if found == message.right:
        return Judged(message, "right", "")
    meant, read = (
        each if isinstance(each, str) else " ".join(call.key for call in each)
        for each in (message.right, found)
    )
    outcome: Outcome = "missed" if isinstance(found, str) else "wrong"
    return Judged(message, outcome, f"meant {meant}, read {read} {reply.problem}".rstrip())


def as_dict(found: Sequence[Judged]) -> dict[str, Any]:
    """Return the report as JSON."""
    kinds = dict.fromkeys(_group(one.message) for one in found)
    rows = {kind: _counts([one for one in found if _group(one.message) == kind]) for kind in kinds}
    failed = [
        {"name": one.message.name, "outcome": one.outcome, "detail": one.detail}
        for one in found
        if one.outcome != "right"
    ]
    return {**_counts(found), "rows": rows, "failed": failed}


def _group(message: Message) -> str:
    """Return the source, form and right reading of a message."""
    right = message.right if isinstance(message.right, str) else "calls"
    if message.dialect == "fenced":
        form = "fenced blocks"
    else:
        form = next(form for sign, form in FORMS if sign in message.answer.text)
    return f"{message.name.partition('-')[0]}: {form}, {right}"


def _counts(found: Sequence[Judged]) -> dict[str, Any]:
    counts = Counter(one.outcome for one in found)
    return {
        "total": len(found),
        "right_share": round(counts["right"] / len(found), 4) if found else 1.0,
        "missed": counts["missed"],
        "wrong": counts["wrong"],
    }


def as_markdown(document: Mapping[str, Any]) -> list[str]:
    """Return the lines of the report."""
    rows = [
        (name, row["total"], percent(row["right_share"]), row["missed"], row["wrong"])
        for name, row in document["rows"].items()
    ]
    lines = table(["messages", "n:", "read as meant:", "missed:", "wrong:"], rows)
    if document["failed"]:
        lines += ["", "Not read as meant:", ""]
        lines += [
            f"- {one['name']}, {one['outcome']}: {one['detail']}" for one in document["failed"]
        ]
    return lines
