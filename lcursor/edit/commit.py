"""A commit message for what is staged: the diff read within the context, the answer tidied up.

Asks git and the model, changes nothing. Secrets are left out, as everywhere; what the model did
not see is said. Blocks; on the edit's thread.
"""

from __future__ import annotations

import re
import textwrap
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lcursor import protocol_edit as wire
from lcursor.context import changes, layout, rules
from lcursor.context.items import Item
from lcursor.edit import tools as common
from lcursor.edit.job import End, Job
from lcursor.edit.rewriting.rewrite import is_tiny
from lcursor.edit.sources import project_of
from lcursor.edit.talk import stopping
from lcursor.edit.tools import Tools
from lcursor.errors import Cancelled, EditFailed, NothingStaged
from lcursor.llm.pool import Connection
from lcursor.llm.records import Message, SamplingParams, Text
from lcursor.project.reading import Reader

ANSWER_TOKENS: Final = 400
AGAIN_TOKENS: Final = 256
"""For a first answer that is no good, and what is said to it."""
TEMPERATURE: Final = 0.2
UNKNOWN_CONTEXT: Final = 8192
"""What a server is taken to read that does not say how much it does."""
RULES_SHARE: Final = 4
"""The rules of a project take at most one part in so many of what fits."""
MAX_LISTED: Final = 60
SUBJECTS: Final = 8
"""Of the last commits, from which the style of a project is seen."""
WIDTH: Final = 72
SHOWN_CHARS: Final = 400
"""Of a reply that was none, in the second question."""
SYSTEM: Final = (
    "You write commit messages. You are shown what is staged, as a diff, and you answer with the "
    "message and nothing else: first a subject of at most 60 characters in the imperative, without "
    "a full stop, that says what the change does; where that does not say all, an empty line and a "
    "short body that says what changes for whom and why. Name what matters, not each file. Invent "
    "nothing that the diff does not show."
)
TASK: Final = "Write the commit message."
TASK_OF_TINY: Final = (
    "Write the commit message for this diff: one line of at most 60 characters, in the imperative, "
    "that says what the change does. No code, no diff, no quotes."
)
"""A model of less than a billion weights copies the diff where it is told less. It is not shown how
other commits are called either: it begins with the same words."""
ASKED_AGAIN: Final = {
    "none": "That is no commit message. " + TASK_OF_TINY,
    "long": "The first line has {size} characters. Write it again, with at most 60.",
}
_FENCE = re.compile(r"^\s*```[^\n]*\n(.*?)^\s*```", re.M | re.S)
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.S)
_PREFACE = re.compile(
    r"^\W*(?:here(?:'s| is)\b.*:|(?:the )?commit message\W*:|subject\W*:)\W*", re.I
)
_DIFF = re.compile(
    r"diff --git |index [0-9a-f]{7}|@@ |--- [ab/]|\+\+\+ [ab/]|The diff:$|These files are staged:$"
)
"""How the row begins from which on a reply repeats what was asked."""
_JOINT = re.compile(
    r" (?:and|or|so that|that|which|because|when|where|for|to|with|by|in|of|from|the|an?)$|[,;:]$"
)
_LIST = re.compile(r"\s*(?:[-*+•]|\d+[.)])\s")


@dataclass(frozen=True, slots=True)
class _Part:
    """What is staged of one file."""

    name: str
    text: str
    tokens: int


def ask(job: Job, tools: Tools, params: wire.EditCommit) -> End:
    """Have a message written and tell it.

    Raises:
        LcursorError: nothing is staged, or the model cannot be asked.
    """
    root = project_of(params["path"])
    reached = common.reach(job, tools, params["model"])
    job.progress("writing")
    known = rules_of(root, tools)

    def write(model: Connection) -> tuple[str, str]:
        return message(model, root, job.cancel, rules=known, secrets=tools.secrets)

    text, note = common.surely(job, tools, reached, write)
    job.check()
    job.say("edit.message", text=common.clean(text), note=common.clean(note))
    return End("proposed")


def rules_of(root: Path, tools: Tools) -> str:
    """Return the project's files of rules, as far as they are read at all."""
    if not tools.models.config.rules:
        return ""
    found = rules.found(root, [str(root)], reader=Reader(root, tools.secrets))
    return common.clean(layout.write([each for each in found if not each.is_left_out]))


def message(
    reached: Connection,
    root: Path,
    cancel: threading.Event,
    *,
    rules: str = "",
    secrets: Sequence[str] = (),
) -> tuple[str, str]:
    """Have a message written for what is staged.

    Args:
        reached: the model.
        root: of the project.
        cancel: ends it at once.
        rules: of the project, as the model shall read them.
        secrets: globs that the user calls secret.

    Returns:
        The message, and what of the diff the model did not see; empty where it saw all.

    Raises:
        NothingStaged: there is nothing to write about.
        EditFailed: the model wrote none.
        Cancelled: `cancel` was set.
        LcursorError: the model cannot be asked.
    """
    reader = Reader(root, secrets, cancel=cancel.is_set)
    found = changes.diff("--staged", reader)
    seen = [item for item in found if not item.is_left_out]
    hidden = [item for item in found if item.is_left_out]
    if not seen and not any(item.path for item in hidden):
        why = hidden[0].note if hidden else "nothing is changed"
        if why == "nothing is changed":
            why = "nothing is staged"
        raise NothingStaged(why, "First: git add FILE, or git add -p")
    subjects = [subject for _, subject in changes.recent(reader.root, reader, SUBJECTS)]
    asked, note = _asked(reached, seen, hidden, rules, subjects)
    if cancel.is_set():
        raise Cancelled("the edit was stopped")
    reply = _said(reached, asked, cancel)
    text = tidied(reply)
    size = len(text.partition("\n")[0])
    if not text or size > WIDTH:
        wish = ASKED_AGAIN["long" if text else "none"].format(size=size)
        shown = (text.partition("\n")[0] or reply)[:SHOWN_CHARS].strip()
        before = Message("assistant", shown or "(nothing)")
        again = tidied(_said(reached, [*asked, before, Message("user", wish)], cancel))
        if again and (not text or len(again.partition("\n")[0]) < size):
            text = again if "\n" in again else again + text[size:]
    if not text:
        raise EditFailed("the model wrote no commit message", "Try again, or with another model")
    return fitted(text), note


def _said(reached: Connection, asked: Sequence[Message], cancel: threading.Event) -> str:
    """Return what the model says.

    Raises:
        Cancelled: `cancel` was set.
        LcursorError: the model cannot be asked.
    """
    reply = ""
    stream = reached.client.stream(asked, SamplingParams(ANSWER_TOKENS, TEMPERATURE))
    with stopping(stream, cancel):
        for event in stream:
            if isinstance(event, Text):
                reply += event.text
    return reply


def fitted(text: str) -> str:
    """Return a message whose subject has room in a line: what has not goes on below it."""
    subject, _, body = text.partition("\n")
    if len(subject) <= WIDTH:
        return text
    head = subject[: WIDTH - 1].rpartition(" ")[0] or subject[: WIDTH - 1]
    while found := _JOINT.search(head):
        head = head[: found.start()].rstrip()
    return "\n\n".join(filter(None, (f"{head} …", _wrapped([subject]), body.strip("\n"))))


def tidied(reply: str) -> str:
    """Return the message that a reply holds, as git wants one: a subject, and a body below it."""
    text = _THOUGHT.sub("", reply).strip()
    fences = [each[1].strip("\n") for each in _FENCE.finditer(f"{text}\n")]
    messages = [each for each in fences if not _DIFF.match(each)]
    text = messages[0] if messages else _FENCE.sub("", f"{text}\n") if fences else text
    rows = [row.rstrip() for row in text.split("\n") if not row.startswith("```")]
    rows = rows[: next((at for at, row in enumerate(rows) if _DIFF.match(row)), len(rows))]
    while rows:
        rest = _PREFACE.sub("", rows[0])
        if rest == rows[0] and rest.strip():
            break
        rows = [rest, *rows[1:]] if rest.strip() else rows[1:]
    if not rows:
        return ""
    subject = rows[0].strip().strip("`\"'*#").strip()
    subject = subject[:-1] if subject.endswith(".") and not subject.endswith("..") else subject
    body = _wrapped(rows[1:])
    return f"{subject}\n\n{body}" if body else subject


def _wrapped(rows: Sequence[str]) -> str:
    """Return rows with the long ones broken; lists keep their form."""
    made: list[str] = []
    for row in rows:
        if len(row) <= WIDTH:
            made.append(row)
            continue
        lead = row[: len(row) - len(row.lstrip())]
        mark = _LIST.match(row)
        behind = " " * len(mark[0]) if mark else lead
        made += textwrap.wrap(
            row,
            WIDTH,
            subsequent_indent=behind,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(made).strip("\n")


def _asked(
    reached: Connection,
    seen: Sequence[Item],
    hidden: Sequence[Item],
    rules: str,
    subjects: Sequence[str],
) -> tuple[list[Message], str]:
    """Return the prompt, as much of the diff in it as fits, and what does not."""

    def count(text: str) -> int:
        return reached.counter.text(text)[0]

    is_small = is_tiny(reached.served.model)
    room = (reached.context_tokens or UNKNOWN_CONTEXT) - ANSWER_TOKENS - AGAIN_TOKENS
    parts = [_Part(item.path, item.text, count(item.text)) for item in seen]
    names = [item.name.removeprefix("diff ") for item in seen]
    head = []
    if rules.strip() and count(rules) * RULES_SHARE <= room:
        head.append(rules.strip())
    if subjects and not is_small:
        head.append("\n".join(["The last commits here were called:", *subjects]))
    head.append("\n".join(["These files are staged:", *_listed(seen, hidden)]))
    fixed = count(SYSTEM) + sum(count(text) for text in head) + 64
    shares = shared([part.tokens for part in parts], max(room - fixed, 0))
    texts, notes = [], []
    for part, name, share in zip(parts, names, shares, strict=True):
        text = shortened(part.text, part.tokens, share)
        if text:
            texts.append(text.rstrip("\n"))
        if share < part.tokens:
            notes.append(f"{name} {'in part' if text else 'by name only'}")
    notes += [f"{item.name.removeprefix('diff ')} by name only: {item.note}" for item in hidden]
    note = f"The model saw {_few(notes)}" if notes else ""
    body = "\n\n".join(
        [
            *head,
            "The diff:\n```diff\n" + "\n".join(texts) + "\n```",
            TASK_OF_TINY if is_small else TASK,
        ]
    )
    return [Message("system", SYSTEM), Message("user", body)], note


def shared(needs: Sequence[int], room: int) -> list[int]:
    """Divide room among those who need it: who needs little gets all, the others equal parts."""
    given = [0] * len(needs)
    left = len(needs)
    for at in sorted(range(len(needs)), key=lambda each: needs[each]):
        given[at] = min(needs[at], room // left)
        room -= given[at]
        left -= 1
    return given


def shortened(text: str, tokens: int, most: int) -> str:
    """Return the first rows of a file's part that have at most so many tokens; "" for too few."""
    if tokens <= most:
        return text
    rows = text.split("\n")
    chars = int(len(text) * most / max(tokens, 1)) - 40
    kept: list[str] = []
    for row in rows:
        chars -= len(row) + 1
        if chars < 0:
            break
        kept.append(row)
    if not any(row.startswith(("+", "-")) and not row.startswith(("+++", "---")) for row in kept):
        return ""
    return "\n".join([*kept, f"({len(rows) - len(kept)} more rows of this file are not shown)"])


def _listed(seen: Sequence[Item], hidden: Sequence[Item]) -> list[str]:
    rows = []
    for item in seen:
        body = [row for row in item.text.split("\n") if not row.startswith(("+++", "---"))]
        more = sum(row.startswith("+") for row in body)
        less = sum(row.startswith("-") for row in body)
        rows.append(f"{item.name.removeprefix('diff ')} (+{more} -{less})")
    rows += [f"{item.name.removeprefix('diff ')} (not shown)" for item in hidden]
    rest = len(rows) - MAX_LISTED
    return [*rows[:MAX_LISTED], *([f"and {rest} more"] if rest > 0 else [])]


def _few(notes: Sequence[str], most: int = 4) -> str:
    rest = len(notes) - most
    return "; ".join(notes[:most]) + (f"; and {rest} more so" if rest > 0 else "")
