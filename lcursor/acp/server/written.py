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
from lcursor.protocol.edit import EditBuffer, EditFile, EditHunk, EditProposed

WRITE: Final = {"optionId": "write", "name": "Write this file", "kind": "allow_once"}
WRITE_ALL: Final = {"optionId": "all", "name": "Write all files", "kind": "allow_always"}
SKIP: Final = {"optionId": "skip", "name": "Leave it as it is", "kind": "reject_once"}
KINDS: Final = {"edit": "edit", "create": "edit", "delete": "delete", "rename": "move"}
CONTEXT_ROWS: Final = 3
"""Lines that identify where a change was made."""


class ChangeWriter:
    """Writes the changes of a run, each file once the user allows it.

    A file is shown as a difference to its text now. If that changes while the user is asked, the
    user is asked again. What is not written stays an open change in the history.

    Args:
        done: the run's last message.
        files: what the editor does with files.
    """

    def __init__(
        self,
        histories: Histories,
        editor: OtherEditor,
        session: str,
        done: Mapping[str, Any],
        files: Mapping[str, Any],
        stopped: Callable[[], bool],
    ) -> None:
        self._histories, self._editor, self._session = histories, editor, session
        self._turn, self._root, self._files = str(done["turn"]), str(done["root"]), files
        self._stopped = stopped
        self._texts: dict[str, Text | None] = dict.fromkeys(done["paths"])
        """What the editor shows, by path; None if it does not say."""
        self._writes_all = False

    def write_all(self) -> str:
        """Show and write all files, those that run code by themselves one by one.

        Returns:
            What could not be shown, "" for nothing.
        """
        for path in self._texts:
            self._read(path)
        proposed = self._proposed()
        for number, file in enumerate(proposed["files"], 1):
            if self._stopped():
                break
            name = f"{self._turn}.{number}"
            try:
                problem = self._write_file(name, file["path"])
            except LcursorError as error:
                problem = str(error)
            self._update("tool_call_update", toolCallId=name, **_ended(problem))
        return proposed["note"]

    def _write_file(self, name: str, path: str) -> str:
        """Show a file, ask, and write it; return why it was not written, or ""."""
        shown: object = None
        while True:
            self._read(path)
            proposed = self._proposed()
            file = next((each for each in proposed["files"] if each["path"] == path), None)
            if file is None:
                return proposed["note"] or "it has changed, so nothing is left to write"
            old = self._text(path)
            if file["kind"] == "create" and os.path.lexists(path):
                return "there is such a file by now"
            if shown == (old.lines, file["changes"]):
                return self._write(file, old)
            kind = "tool_call" if shown is None else "tool_call_update"
            shown = (old.lines, file["changes"])
            call = _call(name, file, old)
            self._update(kind, **call)
            if not self._may_write(call, is_guarded=file["is_guarded"]):
                return "not written"

    def _may_write(self, call: Mapping[str, Any], *, is_guarded: bool) -> bool:
        if self._stopped():
            return False
        if self._writes_all and not is_guarded:
            return True
        options = [WRITE, SKIP] if is_guarded else [WRITE, WRITE_ALL, SKIP]
        choice = self._editor.permission(self._session, call, options, self._stopped)
        self._writes_all = self._writes_all or choice == "all"
        return choice in ("write", "all") and not self._stopped()

    def _write(self, file: EditFile, old: Text) -> str:
        """Write a file; return a problem, or ""."""
        path = file["path"]
        if file["kind"] not in ("edit", "create") or not self._files.get("writeTextFile"):
            written = self._histories.write(
                {"id": 0, "turn": self._turn, "paths": [path], "outside": False}
            )
            return written["problem"]
        new = _changed(old, file)
        content = new.encode().decode(new.encoding)
        params = {"sessionId": self._session, "path": path, "content": content}
        if self._editor.ask("fs/write_text_file", params, self._stopped) is None:
            return "the editor has not written it yet"
        self._histories.decided(
            {
                "turn": self._turn,
                "path": path,
                "accepted": _hunks(file, new.lines),
                "rejected": [],
                "open": 0,
                "is_undone": False,
            }
        )
        return ""

    def _proposed(self) -> EditProposed:
        """Return the open changes for the texts now."""
        buffers: list[EditBuffer] = [
            {"path": path, "tick": 0, "text": "\n".join(found.lines)}
            for path, found in self._texts.items()
            if found is not None
        ]
        return self._histories.resume(
            {"id": 0, "turn": self._turn, "path": self._root, "buffers": buffers}
        )

    def _read(self, path: str) -> None:
        """Ask the editor for the text of a file."""
        self._texts[path] = None
        if self._files.get("readTextFile") and os.path.lexists(path):
            params = {"sessionId": self._session, "path": path}
            with contextlib.suppress(AgentFailed):
                found = self._editor.ask("fs/read_text_file", params, self._stopped)
                if isinstance(found, dict) and isinstance(found.get("content"), str):
                    data = found["content"].encode("utf-8", "replace")
                    self._texts[path] = text.from_bytes(data, path)

    def _text(self, path: str) -> Text:
        """Return the text of a file; an empty one for a file that does not exist.

        Raises:
            LcursorError: it cannot be read.
        """
        if not os.path.lexists(path):
            return Text((), ends=False)
        return self._texts.get(path) or text.read(path)

    def _update(self, update_kind: str, **fields: Any) -> None:
        update = {**fields, "sessionUpdate": update_kind}
        self._editor.notify("session/update", {"sessionId": self._session, "update": update})


def _ended(problem: str) -> dict[str, Any]:
    """Return the end of a tool call; the difference stays shown unless there is a problem."""
    if not problem:
        return {"status": "completed"}
    content = {"type": "content", "content": {"type": "text", "text": problem}}
    return {"status": "failed", "content": [content]}


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


def _call(name: str, file: EditFile, old: Text) -> dict[str, Any]:
    """Return the tool call that shows the change of a file."""
    new = ""
    if file["kind"] != "delete":
        after = _changed(old, file)
        new = after.encode().decode(after.encoding)
    shown = {"type": "diff", "path": file["to"] or file["path"], "newText": new}
    if file["kind"] != "create":
        shown["oldText"] = old.encode().decode(old.encoding)
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
        "content": [shown],
        "locations": [{"path": file["path"], "line": first}],
    }
