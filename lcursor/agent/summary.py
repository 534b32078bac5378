"""Replace a long conversation by a summary that the model can go on with.

The program writes what it knows for sure: the task, the user's messages, changed files, commands
and lines read. The model adds what it knows, what failed and what comes next, in the same
conversation, so that its request is short. The result has at most `MAX_TOKENS`, and at most
`MAX_REREAD_TOKENS` with the last observations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from lcursor.agent.records import Model, Shown
from lcursor.agent.run_log import AgentStep, RunState
from lcursor.changes import diff
from lcursor.errors import ContextFull
from lcursor.project import filetypes
from lcursor.workspace.tree import TreeChange

Count = Callable[[str], int]

MAX_TOKENS: Final = 1000
MAX_REREAD_TOKENS: Final = 1250
"""Limit of all that is new in the prompt after a summary."""
MAX_ANSWER_TOKENS: Final = 350
MIN_ANSWER_TOKENS: Final = 120
"""With less space for the model's part, there is none."""
TASK_TOKENS: Final = 200
SAID_TOKENS, CHANGED_TOKENS, COMMAND_TOKENS, READ_TOKENS = 80, 170, 110, 60
"""What each list may have at least; what one does not need is free for the next ones."""
LAST_OBSERVATIONS: Final = 2
MAX_HEADS: Final = 3
MAX_FAILURES: Final = 3
MAX_ROW_CHARS: Final = 140
MAX_READ_BYTES: Final = 1 << 20
"""Of a changed file whose changes are listed by function."""

REQUEST: Final = """\
The conversation is almost full. Write a summary to go on with, in three lists with lines of \
"- ", each at most 15 words, with exact names of files, functions and tests:
Known: what you found out that matters for the task
Tried and failed: what did not work
Next: what you will do next
The task, changed files, commands and lines read are listed anyway. Call no tool now."""
GRAMMAR: Final = """\
root ::= "Known:\\n" line{1,5} "Tried and failed:\\n" line{1,3} "Next:\\n" line{1,3}
line ::= "- " [^\\n]{1,110} "\\n"
"""
TITLE: Final = "Summary of your work so far; the conversation before it was removed."
_HEAD: Final = re.compile(
    r"\s*(?:(?:export|pub|public|private|static|async|local|abstract)\s+)*"
    r"(?:def|class|fn|func|function|struct|impl|interface|trait|enum|type|module)\b.*"
)
_FAILURE: Final = re.compile(r"fail|error|exception|panic|assert", re.IGNORECASE)


class Files(Protocol):
    """The files of a run; see `tree.Tree`."""

    def changed(self, since: str = "") -> Sequence[TreeChange]:
        """Return the files that differ from the start."""

    def contents(self, keys: Sequence[str], max_bytes: int) -> Mapping[str, bytes]:
        """Return the contents of files, without larger ones."""


def summarize(model: Model, system: str, files: Files, state: RunState) -> None:
    """Replace the conversation by a summary and the last observations.

    Args:
        system: the system text, which stays the same.

    Raises:
        LcursorError: the server failed; the conversation is as before.
    """
    written = _ask(model)
    model.begin(system, compose(state, files, written, model.count))


def compose(state: RunState, files: Files, written: str, count: Count) -> str:
    """Return the first message after a summary.

    Args:
        written: the model's part.
    """
    rows = [row.rstrip()[:MAX_ROW_CHARS] for row in written.strip().split("\n")]
    own = _first_rows([row for row in rows if row], MAX_ANSWER_TOKENS, count)
    summary = "\n\n".join(filter(None, [task_text(state, count), facts(state, files, count), own]))
    return summary + last_observations(state, MAX_REREAD_TOKENS - count(summary), count)


def _ask(model: Model) -> str:
    """Return the model's part; "" if there is no space for it."""
    before = model.state()
    try:
        model.append(REQUEST)
        space = model.context_tokens - model.used_tokens - 16
        if space < MIN_ANSWER_TOKENS:
            return ""
        limit = min(MAX_ANSWER_TOKENS, space)
        return model.ask(lambda _: True, max_tokens=limit, grammar=GRAMMAR, is_forced=True).text
    except ContextFull:
        return ""
    finally:
        model.restore(before)


def task_text(state: RunState, count: Count) -> str:
    """Return the task, or its first and last lines if it is long."""
    text = f"{state.task}\n\n{state.context}" if state.context else state.task
    if count(text) <= TASK_TOKENS:
        return text
    rows = [row[: 4 * MAX_ROW_CHARS] for row in text.split("\n")]
    half = TASK_TOKENS // 2 - 5
    first = _first_rows(rows, half, count)
    last = _last_rows(rows[first.count("\n") + 1 :], half, count)
    return f"{first}\n…\n{last}"


def facts(state: RunState, files: Files, count: Count) -> str:
    """Return what the program knows for sure."""
    said = [f"- {_short(text)}" for text in state.said[: state.read]]
    commands, ranges = _commands(state.steps), _ranges(state.steps)
    lists: tuple[tuple[str, int, Callable[[int], str]], ...] = (
        ("The user said:", SAID_TOKENS, lambda limit: _last_rows(said, limit, count)),
        ("Changed files:", CHANGED_TOKENS, lambda limit: _changed(files, limit, count)),
        ("Commands:", COMMAND_TOKENS, lambda limit: _last_rows(commands, limit, count)),
        ("Read:", READ_TOKENS, lambda limit: _last_rows(ranges, limit, count)),
    )
    parts, left = [TITLE], 0
    for title, least, write in lists:
        left += least
        if rows := write(left):
            parts.append(f"{title}\n{rows}")
            left -= count(rows)
    return "\n".join(parts)


def last_observations(state: RunState, limit: int, count: Count) -> str:
    """Return the last observations that the model has read, as far as they fit; oldest first."""
    pending = set(state.answer.steps) if state.answer else set()
    steps = [each for each in state.steps if each.observation and each.number not in pending]
    texts: list[str] = []
    for step in reversed(steps[-LAST_OBSERVATIONS:]):
        assert step.observation is not None
        text = f"\n\nResult of {_short(f'{step.call.tool} {step.target}')}:\n"
        text += step.observation.text
        limit -= count(text)
        if limit < 0:
            break
        texts.insert(0, text)
    return "".join(texts)


def heads(old: str, new: str) -> list[str]:
    """Return for each change its lines in the new text and the definition around it."""
    before, after = old.split("\n"), new.split("\n")
    rows_shown, shift = [], 0
    for change in diff.changes(before, after):
        first = change.first_row + shift
        last = first + max(len(change.new), 1)
        rows = f"{first + 1}-{last}" if last > first + 1 else f"{first + 1}"
        above = after[: first + 1][::-1]
        head = next((row.strip() for row in above if _HEAD.fullmatch(row)), "")
        rows_shown.append(f"{rows} {head[:60]}".strip())
        shift += len(change.new) - len(change.old)
    return rows_shown


def _changed(files: Files, limit: int, count: Count) -> str:
    """Return the changed files: with their changes, or their names by folder if there are many."""
    listed = files.changed()
    keys = [
        key
        for change in listed
        if not change.is_binary and not change.is_link
        for key in change.keys
    ]
    texts = {
        key: filetypes.decode(data)
        for key, data in files.contents(
            [key for key in keys if key.strip("0")], MAX_READ_BYTES
        ).items()
    }
    rows = []
    for change in listed:
        name = f"{change.path} → {change.to}" if change.to else change.path
        size = f" (+{change.added} -{change.removed})"
        kind = "" if change.kind == "edit" else f" {change.kind}d"
        where = []
        if change.kind == "edit" and not change.is_binary and not change.is_link:
            where = heads(*(texts.get(key, "") for key in change.keys))
        more = [f"{len(where) - MAX_HEADS} more"] if len(where) > MAX_HEADS else []
        shown = ", ".join([*where[:MAX_HEADS], *more])
        rows.append(f"- {name}{kind}{size}{': ' if shown else ''}{shown}")
    whole = "\n".join(rows)
    if count(whole) <= limit:
        return whole
    folders: dict[str, list[str]] = {}
    for change in listed:
        folder, _, name = (change.to or change.path).rpartition("/")
        folders.setdefault(folder or ".", []).append(name)
    names = [f"- {folder}: {', '.join(names)}" for folder, names in folders.items()]
    return _first_rows(names, limit, count)


def _commands(steps: Sequence[AgentStep]) -> list[str]:
    """Return each command with its last result, those that failed at the end, with their reason."""
    passed, failed = dict[str, str](), dict[str, str]()
    for step in steps:
        seen = step.observation
        if step.kind not in ("command", "finish") or seen is None:
            continue
        name = _short(step.target or step.call.tool)
        failures = [row.strip() for row in seen.text.split("\n") if _FAILURE.search(row)]
        is_failed = seen.is_error or bool(seen.status)
        shown = failures[-MAX_FAILURES:] if is_failed else []
        rows = [f"- {name}: {seen.result}", *(f"  {_short(row)}" for row in shown)]
        for found in (passed, failed):
            found.pop(name, None)  # order by the last time
        (failed if is_failed else passed)[name] = "\n".join(rows)
    return [*passed.values(), *failed.values()]


def _ranges(steps: Sequence[AgentStep]) -> list[str]:
    """Return the lines that were read of each file, the last file at the end."""
    shown: dict[str, list[Shown]] = {}
    for step in steps:
        for part in step.observation.shown if step.observation else ():
            shown[part.path] = [*shown.pop(part.path, []), part]
    rows = []
    for path, ranges in shown.items():
        merged: list[tuple[int, int]] = []
        for first, last in sorted((part.first_row, part.last_row) for part in ranges):
            if merged and first <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
            else:
                merged.append((first, last))
        rows.append(f"- {path}:{','.join(f'{first + 1}-{last}' for first, last in merged)}")
    return rows


def _first_rows(rows: Sequence[str], limit: int, count: Count) -> str:
    """Return the first rows within a limit, with a note on the others."""
    found = _within(rows, limit, count)
    more = len(rows) - len(found)
    return "\n".join([*found, *([f"({more} more)"] if more else [])])


def _last_rows(rows: Sequence[str], limit: int, count: Count) -> str:
    """Return the last rows within a limit, with a note on the others."""
    found = _within(rows[::-1], limit, count)[::-1]
    more = len(rows) - len(found)
    return "\n".join([*([f"({more} earlier)"] if more else []), *found])


def _within(rows: Sequence[str], limit: int, count: Count) -> list[str]:
    shown: list[str] = []
    left = limit - 5  # of the note
    for row in rows:
        left -= count(f"{row}\n")
        if left < 0:
            break
        shown.append(row)
    return shown


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_ROW_CHARS else f"{line[: MAX_ROW_CHARS - 1]}…"
