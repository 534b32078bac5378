"""Write a commit message for staged changes: fit the diff into the context, clean up the answer.

Changes nothing. Secrets are left out, and omissions are reported. Blocks.
"""

from __future__ import annotations

import contextlib
import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from lcursor.changes.sources import project_of
from lcursor.context import changes, layout, rules
from lcursor.context.items import Item
from lcursor.edit.ask_model import complete
from lcursor.edit.rewriting.rewriter import is_tiny
from lcursor.edit.run import EditOutcome, EditRun
from lcursor.edit.session import UNKNOWN_TOKENS, EditDeps, EditSession
from lcursor.errors import EditFailed, NothingStaged
from lcursor.llm.pool import Connection
from lcursor.llm.records import Message, SamplingParams
from lcursor.project import git
from lcursor.project.reading import Reader
from lcursor.project.redaction import encodable
from lcursor.protocol import edit as wire
from lcursor.stop import Stop

ANSWER_TOKENS: Final = 400
FOLLOW_UP_TOKENS: Final = 256
"""Tokens for a bad first answer and the request to improve it."""
TEMPERATURE: Final = 0.2
RULES_SHARE: Final = 4
"""Maximum part of the context for the project's rules, as a divisor."""
MAX_LISTED: Final = 60
MAX_NOTES: Final = 4
SUBJECTS: Final = 8
"""Number of recent commit subjects to show the beginnings of, for the project's style."""
COMPARED: Final = 50
"""Number of recent commit subjects that a message must not repeat."""
MIN_SHARE: Final = 0.6
"""Share of an earlier subject's words that repeats it, if there is no other word."""
WIDTH: Final = 72
SHOWN_CHARS: Final = 400
"""Maximum characters of a bad answer to show in the second question."""
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
"""A model with less than a billion weights copies the diff without such instructions. It does not
get the beginnings of other subjects, because it would start with the same words."""
RETRIES: Final = {
    "none": "That is no commit message. " + TASK_OF_TINY,
    "long": "The first line has {size} characters. Write it again, with at most 60.",
    "repeated": "An earlier commit has that subject. Write what the diff above changes.",
}
AMEND: Final = "To describe an amended commit, ask before you change its message"
REPEATED: Final = "An earlier commit has the same subject"
_BEGINNING = re.compile(r"(?:(?:\[[^\]]*\]|[\w/.,*-]+(?:\([^)]*\))?!?:)\s+)?\w+")
"""Of a subject: a tag, a type such as `fix(ui):` or an area, if any, and the first word."""
_FENCE = re.compile(r"^\s*```[^\n]*\n(.*?)^\s*```", re.M | re.S)
_PREFACE = re.compile(
    r"^\W*(?:here(?:'s| is)\b.*:|(?:the )?commit message\W*:|subject\W*:)\W*", re.I
)
_DIFF = re.compile(
    r"diff --git |index [0-9a-f]{7}|@@ |--- [ab/]|\+\+\+ [ab/]|The diff:$|These files are staged:$"
)
"""Start of the line from which a reply repeats the prompt."""
_LIST = re.compile(r"\s*(?:[-*+•]|\d+[.)])\s")


def ask(run: EditRun, services: EditDeps, params: wire.EditCommit) -> EditOutcome:
    """Write a message and send it."""
    root = project_of(params["path"])
    session = EditSession(run, services, params["path"], ())
    session.connect(params["model"])
    run.progress("writing")
    guidelines, secrets = rules_of(root, services), services.secrets
    index = None
    with contextlib.suppress(git.GitFailed):  # reported with the diff
        index = git.commit_index(root, params["file"], params["index"], run.stopped.is_set)
    written, is_amend = params["written"].split(), False
    if written:  # `git commit --amend` starts with the last message
        reader = Reader(root, secrets, cancel=run.stopped.is_set)
        is_amend = written == changes.last_message(root, reader).split()

    def write(model: Connection) -> tuple[str, str]:
        return message(
            model,
            root,
            run.stopped,
            rules=guidelines,
            secrets=secrets,
            index=index,
            is_amend=is_amend,
        )

    try:
        text, note = session.with_retry(write)
    except NothingStaged as error:
        error.hint = AMEND if written else error.hint
        raise
    run.check()
    run.send("edit.message", text=encodable(text), note=encodable(note), is_amend=is_amend)
    return EditOutcome("proposed")


def rules_of(root: Path, services: EditDeps) -> str:
    """Return the text of the project's rules files, if the settings allow them."""
    if not services.models.config.rule_files:
        return ""
    items = rules.applicable(Reader(root, services.secrets), [str(root)])
    return encodable(layout.write([each for each in items if not each.is_left_out]))


def message(
    connection: Connection,
    root: Path,
    cancel: Stop,
    *,
    rules: str = "",
    secrets: Sequence[str] = (),
    index: Path | None = None,
    is_amend: bool = False,
) -> tuple[str, str]:
    """Return a message for the staged changes, and a note on omitted parts of the diff.

    Args:
        index: that of the commit; None for the usual one.
        is_amend: whether the message replaces that of the last commit, with its changes.

    Raises `NothingStaged`, or `EditFailed` if the model wrote no message.
    """
    reader = Reader(root, secrets, cancel=cancel.is_set)
    staged = changes.staged(reader, index, is_amend=is_amend)
    shown = [item for item in staged if not item.is_left_out]
    hidden = [item for item in staged if item.is_left_out]
    if not shown and not any(item.path for item in hidden):
        why = hidden[0].note if hidden else "nothing is changed"
        if why == "nothing is changed":
            why = "nothing is staged"
        raise NothingStaged(why, "Run git add FILE or git add -p first")
    earlier = [subject for _, subject in changes.recent(reader.root, reader, COMPARED)]
    earlier = earlier[1:] if is_amend else earlier
    prompt, note = _prompt(connection, shown, hidden, rules, earlier[:SUBJECTS])
    cancel.check()

    def answer(messages: Sequence[Message]) -> str:
        return complete(
            connection, messages, SamplingParams(ANSWER_TOKENS, TEMPERATURE), cancel
        ).text

    reply = answer(prompt)
    text = tidied(reply)
    subject = text.partition("\n")[0]
    size, is_repeated = len(subject), repeats(subject, earlier)
    if not text or size > WIDTH or is_repeated:
        problem = "repeated" if is_repeated else "long" if text else "none"
        before = Message("assistant", (subject or reply)[:SHOWN_CHARS].strip() or "(nothing)")
        sampling = Message("user", RETRIES[problem].format(size=size))
        again = tidied(answer([*prompt, before, sampling]))
        subject = again.partition("\n")[0]
        if again and is_repeated:
            text = again  # the rest was about the earlier commit, too
        elif again and (not text or len(subject) < size):
            text = again if "\n" in again else again + text[size:]
    if not text:
        raise EditFailed("the model wrote no commit message", "Try again, or with another model")
    remark = REPEATED if repeats(text.partition("\n")[0], earlier) else ""
    return _with_short_subject(text), ". ".join(filter(None, (remark, note)))


def repeats(subject: str, earlier: Iterable[str]) -> bool:
    """Return whether a subject says nothing else than an earlier one.

    The number of a pull request at the end does not count, but other numbers do.
    """
    own = _words(subject)
    known = (_words(each) for each in earlier)
    return any(own and own <= each and len(own) >= MIN_SHARE * len(each) for each in known)


def _words(subject: str) -> set[str]:
    return set(re.findall(r"\w+", re.sub(r"\(#\d+\)\s*$", "", subject).casefold()))


def beginning(subject: str) -> str:
    """Return the beginning of a subject, which shows its style and cannot be copied as a whole."""
    found = _BEGINNING.match(subject)
    return f"{found[0]} …" if found else "…"


def _with_short_subject(text: str) -> str:
    """Return a message whose subject fits into a line, with the rest of it below."""
    subject, _, body = text.partition("\n")
    if len(subject) <= WIDTH:
        return text
    head = subject[: WIDTH - 1].rpartition(" ")[0] or subject[: WIDTH - 1]
    return "\n\n".join(filter(None, (f"{head} …", _wrapped([subject]), body.strip("\n"))))


def tidied(reply: str) -> str:
    """Return the message in a reply: a subject, and optionally a body."""
    text = reply.strip()
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
    subject = _without_quotes(rows[0].strip().lstrip("#").strip())
    subject = subject[:-1] if subject.endswith(".") and not subject.endswith("..") else subject
    body = _wrapped(rows[1:])
    return f"{subject}\n\n{body}" if body else subject


def _without_quotes(text: str) -> str:
    """Return a text without quotation marks around the whole of it."""
    mark = text[:1]
    if not mark or mark not in "`\"'*":
        return text
    inner = text.strip(mark)
    is_whole = text.endswith(mark) and mark not in inner
    return _without_quotes(inner.strip()) if is_whole or not inner else text


def _wrapped(rows: Sequence[str]) -> str:
    """Return rows with long ones wrapped; lists keep their form."""
    made: list[str] = []
    for row in rows:
        if len(row) <= WIDTH:
            made.append(row)
            continue
        lead = row[: len(row) - len(row.lstrip())]
        mark = _LIST.match(row)
        indent = " " * len(mark[0]) if mark else lead
        wrapper = textwrap.TextWrapper(WIDTH, subsequent_indent=indent, break_on_hyphens=False)
        wrapper.break_long_words = False
        made += wrapper.wrap(row)
    return "\n".join(made).strip("\n")


def _prompt(
    connection: Connection,
    seen: Sequence[Item],
    hidden: Sequence[Item],
    rules: str,
    subjects: Sequence[str],
) -> tuple[list[Message], str]:
    """Return the prompt with as much of the diff as fits, and a note on the rest."""

    def count(text: str) -> int:
        return connection.client.count(text)[0]

    is_small = is_tiny(connection.served.model)
    budget = (connection.context_tokens or UNKNOWN_TOKENS) - ANSWER_TOKENS - FOLLOW_UP_TOKENS
    head = []
    if rules.strip() and count(rules) * RULES_SHARE <= budget:
        head.append(rules.strip())
    if subjects and not is_small:
        shown = dict.fromkeys(map(beginning, subjects))
        head.append("\n".join(["The subjects of the last commits here begin like this:", *shown]))
    head.append("\n".join(["These files are staged:", *_listed(seen, hidden)]))
    fixed = count(SYSTEM) + sum(count(text) for text in head) + 64
    sizes = [count(item.text) for item in seen]
    texts, notes = [], []
    for item, tokens, share in zip(seen, sizes, shares(sizes, max(budget - fixed, 0)), strict=True):
        text = shortened(item.text, tokens, share)
        if text:
            texts.append(text.rstrip("\n"))
        if share < tokens:
            notes.append(f"{_name(item)} {'in part' if text else 'by name only'}")
    notes += [f"{_name(item)} by name only: {item.note}" for item in hidden]
    rest = len(notes) - MAX_NOTES
    more = f"; and {rest} more so" if rest > 0 else ""
    note = f"The model saw {'; '.join(notes[:MAX_NOTES])}{more}" if notes else ""
    diff = "The diff:\n```diff\n" + "\n".join(texts) + "\n```"
    body = "\n\n".join([*head, diff, TASK_OF_TINY if is_small else TASK])
    return [Message("system", SYSTEM), Message("user", body)], note


def shares(needs: Sequence[int], budget: int) -> list[int]:
    """Divide a budget: small needs are met completely, the others get equal parts."""
    given = [0] * len(needs)
    left = len(needs)
    for at in sorted(range(len(needs)), key=lambda each: needs[each]):
        given[at] = min(needs[at], budget // left)
        budget -= given[at]
        left -= 1
    return given


def shortened(text: str, tokens: int, limit: int) -> str:
    """Return the first rows of a file's diff within a token limit; "" if they have no change."""
    if tokens <= limit:
        return text
    rows = text.split("\n")
    chars = int(len(text) * limit / max(tokens, 1)) - 40
    shown: list[str] = []
    for row in rows:
        chars -= len(row) + 1
        if chars < 0:
            break
        shown.append(row)
    if not any(row.startswith(("+", "-")) and not row.startswith(("+++", "---")) for row in shown):
        return ""
    return "\n".join([*shown, f"({len(rows) - len(shown)} more rows of this file are not shown)"])


def _listed(seen: Sequence[Item], hidden: Sequence[Item]) -> list[str]:
    rows = []
    for item in seen:
        body = [row for row in item.text.split("\n") if not row.startswith(("+++", "---"))]
        more = sum(row.startswith("+") for row in body)
        less = sum(row.startswith("-") for row in body)
        rows.append(f"{_name(item)} (+{more} -{less})")
    rows += [f"{_name(item)} (not shown)" for item in hidden]
    rest = len(rows) - MAX_LISTED
    return [*rows[:MAX_LISTED], *([f"and {rest} more"] if rest > 0 else [])]


def _name(item: Item) -> str:
    return item.name.removeprefix("diff ")
