"""An edit service at work in a project of the test: what is sent to it, and what it tells."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from lcursor import protocol
from lcursor.changes import diff
from lcursor.changes.records import Change, digest, to_wire
from lcursor.config import EditConfig
from lcursor.edit.service import EditService
from lcursor.llm.pool import ModelPool
from lcursor.project.reading import Reader
from lcursor.protocol.edit import EditDecided, EditHunk
from lcursor.workspace.approval import CheckApprovals, content_of
from tests.fakes.chat_server import Answer, ChatServer, say
from tests.fakes.heard import Heard, Told, config_of


def fenced(code: str, language: str = "python") -> str:
    """Return a reply that is one fenced block."""
    return f"```{language}\n{code.rstrip()}\n```\n"


def reply(text: str, pieces: int = 24) -> Answer:
    """Return an answer that says a text in pieces."""
    return say(*[text[at : at + pieces] for at in range(0, len(text), pieces)])


def part_of(body: Mapping[str, Any]) -> str:
    """Return the code that a prompt asks to be written anew; "" where nothing stands there."""
    text = str(body["messages"][-1]["content"])
    found = re.search(r"^The part, [^\n]*:\n```\w*\n(.*?)\n```$", text, re.M | re.S)
    return found[1] if found else ""


class Project:
    """A folder with files, and one for the history of its edits."""

    def __init__(self, place: Path) -> None:
        self.root, self.data = place / "project", place / "data"
        self.root.mkdir()

    def path(self, name: str) -> str:
        return str(self.root / name)

    def put(self, name: str, data: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    def get(self, name: str) -> str | None:
        path = self.root / name
        return path.read_text() if path.exists() else None


class Desk(Heard):
    """A slot in a project of the test, and all that it told."""

    def __init__(
        self,
        place: Path,
        *servers: ChatServer,
        edit: EditConfig | None = None,
        chat: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        super().__init__()
        self.root = place / "project"
        self.root.mkdir(exist_ok=True)
        (self.root / ".git").mkdir(exist_ok=True)
        self.busy: list[bool] = []
        self.edited: list[tuple[str, Sequence[Mapping[str, Any]]]] = []
        self._number = 0
        self.models = ModelPool(config_of(*servers, **(chat or {})), place / "server")
        self.folder: Path = more.setdefault("folder", place / "edits")
        self.slot = EditService(
            edit or EditConfig(retries=0),
            self._tell,
            self.models,
            busy=self.busy.append,
            chat_edited=lambda chat, edits: self.edited.append((chat, edits)),
            **more,
        )

    def __enter__(self) -> Desk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the slot and its models."""
        self.slot.close()
        self.models.close()

    def put(self, name: str, text: str) -> Path:
        """Write a file of the project."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path

    def do(self, method: str, **params: Any) -> int:
        """Send a message; return its id."""
        whole = dict(params)
        if "id" in protocol.TO_PYTHON[method].__annotations__ and "id" not in whole:
            self._number += 1
            whole["id"] = self._number
        self.slot.handlers()[method](protocol.check(method, whole))
        return int(whole.get("id", 0))

    def ask(self, name: str, text: str, instruction: str, rows: Sequence[int], **more: Any) -> int:
        """Ask for a change of a buffer; return its id."""
        fields: dict[str, Any] = {
            "path": str(self.root / name),
            "name": name,
            "filetype": "python",
            "tick": 7,
            "text": text,
            "first_row": rows[0],
            "last_row": rows[-1],
            "instruction": instruction,
            "attachments": [],
            "buffers": [],
            "model": "",
            "again": 0,
            "remark": "",
        }
        return self.do("edit.ask", **{**fields, **more})

    def done(self, number: int) -> Told:
        """Wait for the end of an edit, and for nothing after it."""
        found = self.wait("edit.done", number)
        assert len(self.told("edit.done", number)) == 1
        return found

    def proposed(self, number: int) -> Told:
        """Wait for what an edit proposes, and for its end."""
        end = self.done(number)
        assert end["reason"] == "proposed", (end, self.sent[-4:])
        return self.told("edit.proposed", number)[-1]

    def allow(self, *commands: str) -> None:
        """Have the user's answer that commands may run in the project."""
        reader = Reader(self.root)
        contents = {text: content_of(reader, text) for text in commands}
        CheckApprovals(self.folder).remember(self.root, contents)

    def phases(self, number: int) -> list[str]:
        """Return what an edit waited for, one after the other."""
        return list(dict.fromkeys(each["phase"] for each in self.told("edit.progress", number)))


def made(base: str, file: Told) -> str:
    """Return a text with the changes of a file, which must be of it."""
    lines = base.split("\n")
    assert file["base"] == digest(lines)
    changes = [
        Change(each["first_row"], each["last_row"], tuple(each["old"]), tuple(each["new"]))
        for each in file["changes"]
    ]
    return "\n".join(diff.apply(lines, changes))


def buffer(path: Path | str, text: str, tick: int = 3) -> dict[str, Any]:
    """Return a buffer as the editor sends it."""
    return {"path": str(path), "tick": tick, "text": text}


def hunk_of(file: Told, at: int = 0, row: int | None = None) -> dict[str, Any]:
    """Return a change of a proposal as a hunk that was accepted."""
    change = file["changes"][at]
    return {
        "row": change["first_row"] if row is None else row,
        "old": change["old"],
        "new": change["new"],
        "above": [],
        "below": [],
    }


def hunk_at(lines: Sequence[str], row: int, old: Sequence[str], new: Sequence[str]) -> EditHunk:
    """Return a hunk as the editor tells it, after it was made in some lines."""
    end = row + len(new)
    return {
        "row": row,
        "old": list(old),
        "new": list(new),
        "above": list(lines[max(row - 3, 0) : row]),
        "below": list(lines[end : end + 3]),
    }


def decision(
    key: str,
    path: str,
    *accepted: EditHunk,
    rejected: Sequence[Change] = (),
    still_open: int = 0,
    is_undone: bool = False,
) -> EditDecided:
    """Return what the editor sends when the user has accepted or rejected hunks."""
    return {
        "turn": key,
        "path": path,
        "accepted": list(accepted),
        "rejected": to_wire(rejected),
        "open": still_open,
        "is_undone": is_undone,
    }
