"""Show the changes of a run in another editor, and write those that the user allows."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from lcursor.acp.server.editor import OtherEditor
from lcursor.changes import text
from lcursor.changes.histories import Histories
from lcursor.changes.records import Change
from lcursor.changes.text import Text
from lcursor.errors import AgentFailed, LcursorError
from lcursor.protocol.edit import EditFile, EditHunk

WRITE: Final = {"optionId": "write", "name": "Write this file", "kind": "allow_once"}
WRITE_ALL: Final = {"optionId": "all", "name": "Write all files", "kind": "allow_always"}
SKIP: Final = {"optionId": "skip", "name": "Leave it as it is", "kind": "reject_once"}
KINDS: Final = {"edit": "edit", "create": "edit", "delete": "delete", "rename": "move"}
CONTEXT_ROWS: Final = 3
"""Lines that identify where a change was made."""


def write_changes(
    histories: Histories,
    editor: OtherEditor,
    session: str,
    done: Mapping[str, Any],
    files: Mapping[str, Any],
    stopped: Callable[[], bool],
) -> str:
    """Show each changed file of a run as a difference, and write it once the user allows it.

    Files that run code by themselves are asked about one by one. What is not written stays an open
    change in the history.

    Returns:
        What could not be shown, "" for nothing.

    Args:
        done: the run's last message.
        files: what the editor does with files.
    """
    turn = str(done["turn"])
    texts = _Texts(editor, session, files)
    buffers = [
        {"path": path, "tick": 0, "text": "\n".join(found.lines)}
        for path in done["paths"]
        if (found := texts.of_editor(path)) is not None
    ]
    proposed = histories.resume(
        {"id": 0, "turn": turn, "path": done["root"], "buffers": buffers}  # type: ignore[typeddict-item]
    )
    writes_all = False
    for number, file in enumerate(proposed["files"], 1):
        name = f"{turn}.{number}"
        call = _call(name, file, texts)
        editor.notify("session/update", _update(session, {"sessionUpdate": "tool_call", **call}))
        options = [WRITE, SKIP] if file["is_guarded"] else [WRITE, WRITE_ALL, SKIP]
        choice = "write" if writes_all and not file["is_guarded"] else ""
        try:
            choice = choice or editor.permission(session, call, options, stopped)
            writes_all = writes_all or choice == "all"
            problem = "not written"
            if choice in ("write", "all"):
                problem = _write(histories, editor, session, turn, file, texts)
        except LcursorError as error:
            problem = str(error)
        state = "failed" if problem else "completed"
        more = [{"type": "content", "content": {"type": "text", "text": problem}}]
        content = [*call["content"], *(more if problem else [])]
        change = {"toolCallId": name, "status": state, "content": content}
        editor.notify(
            "session/update", _update(session, {"sessionUpdate": "tool_call_update", **change})
        )
    return proposed["note"]


class _Texts:
    """The texts of files: the editor's, if it tells them, else those on disk."""

    def __init__(self, editor: OtherEditor, session: str, files: Mapping[str, Any]) -> None:
        self._editor, self._session, self._files = editor, session, files

    def of_editor(self, path: str) -> Text | None:
        """Return what the editor shows; None if it does not say, or has no such file."""
        if not self._files.get("readTextFile") or not os.path.lexists(path):
            return None
        with contextlib.suppress(AgentFailed):
            found = self._editor.ask(
                "fs/read_text_file", {"sessionId": self._session, "path": path}
            )
            if isinstance(found, dict) and isinstance(found.get("content"), str):
                return text.from_bytes(found["content"].encode("utf-8", "replace"), path)
        return None

    def of(self, path: str) -> Text:
        """Return the text of a file; an empty one for a file that does not exist.

        Raises:
            LcursorError: it cannot be read.
        """
        if not os.path.lexists(path):
            return Text((), ends=False)
        return self.of_editor(path) or text.read(path)

    @property
    def can_write(self) -> bool:
        """Whether the editor writes files."""
        return bool(self._files.get("writeTextFile"))


def _write(
    histories: Histories,
    editor: OtherEditor,
    session: str,
    turn: str,
    file: EditFile,
    texts: _Texts,
) -> str:
    """Write a file; return a problem, or "".

    Raises:
        LcursorError: it cannot be read, or written by the editor.
    """
    path = file["path"]
    if file["kind"] in ("edit", "create") and texts.can_write:
        old = texts.of(path)
        new = _changed(old, file)
        content = new.encode().decode(new.encoding)
        params = {"sessionId": session, "path": path, "content": content}
        editor.ask("fs/write_text_file", params)
        hunks = _hunks(file, new.lines)
        histories.decided(
            {"turn": turn, "path": path, "accepted": hunks, "rejected": [], "open": 0,
             "is_undone": False}
        )  # fmt: skip
        return ""
    written = histories.write({"id": 0, "turn": turn, "paths": [path], "outside": False})
    return written["problem"]


def _changed(old: Text, file: EditFile) -> Text:
    return old.changed([_change(each) for each in file["changes"]])


def _change(row: Mapping[str, Any]) -> Change:
    return Change(row["first_row"], row["last_row"], tuple(row["old"]), tuple(row["new"]))


def _hunks(file: EditFile, lines: Sequence[str]) -> list[EditHunk]:
    """Return the changes of a file at the rows of the new text."""
    hunks, grown = list[EditHunk](), 0
    for each in file["changes"]:
        row = each["first_row"] + grown
        end = row + len(each["new"])
        grown += len(each["new"]) - len(each["old"])
        hunks.append(
            {
                "row": row,
                "old": list(each["old"]),
                "new": list(each["new"]),
                "above": list(lines[max(row - CONTEXT_ROWS, 0) : row]),
                "below": list(lines[end : end + CONTEXT_ROWS]),
            }
        )
    return hunks


def _call(name: str, file: EditFile, texts: _Texts) -> dict[str, Any]:
    """Return the tool call that shows the change of a file."""
    old, new = "", ""
    content = list[dict[str, Any]]()
    with contextlib.suppress(LcursorError):
        before = texts.of(file["path"])
        old = before.encode().decode(before.encoding)
        if file["kind"] != "delete":
            after = _changed(before, file)
            new = after.encode().decode(after.encoding)
        shown = {"type": "diff", "path": file["to"] or file["path"], "newText": new}
        content = [shown if file["kind"] == "create" else {**shown, "oldText": old}]
    words = {"create": "Create", "delete": "Delete", "rename": "Rename"}
    title = f"{words.get(file['kind'], 'Change')} {file['name']}"
    if file["kind"] == "rename":
        title += f" to {file['to']}"
    if file["is_guarded"]:
        title += " (it runs code by itself)"
    first = file["changes"][0]["first_row"] + 1 if file["changes"] else 1
    return {
        "toolCallId": name,
        "title": title,
        "kind": KINDS[file["kind"]],
        "status": "pending",
        "content": content,
        "locations": [{"path": file["path"], "line": first}],
    }


def _update(session: str, update: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"sessionId": session, "update": update}
