"""Power fails while a chat or the record of a run is written: what was flushed is read again."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lcursor.agent.run_log import RunLog
from lcursor.chat.chat_file import ChatFile
from lcursor.chat.conversation import Conversation, Op
from lcursor.errors import AgentFailed, ChatFailed
from lcursor.storage import folders
from tests.fakes.power import Disk
from tests.thorough import is_thorough

pytestmark = pytest.mark.linux
CHANCES, THOROUGH_CHANCES = 10, 500
"""Number of states by chance at each point."""
KEY = "20260101-120000-0123abcd"


class Writer:
    """Writes texts to a log, and knows which were flushed after how many changes of the disk."""

    def __init__(self, place: Path) -> None:
        place.mkdir()
        self.disk = Disk(place)
        self.said: list[tuple[int, str, bool]] = []

    def record(self, say: Callable[[str, bool], object]) -> None:
        """Say ten texts, of which every third is flushed."""
        with self.disk.recording():
            for number in range(10):
                text, is_flushed = f"text {number} " * (1 + 40 * number), number % 3 == 0
                say(text, is_flushed)
                self.said.append((self.disk.now, text, is_flushed))

    def check(self, read: Callable[[], list[str]], say: Callable[[str], object]) -> None:
        """Lose power after each change: what was flushed is there, and more can be said."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "fsync", lambda _: None)  # for speed
            count = THOROUGH_CHANCES if is_thorough() else CHANCES
            for at in range(self.disk.now + 1):
                for number, state in enumerate(self.disk.states(at, count)):
                    where = f"after {at} of {self.disk.now} changes, state {number}"
                    self.disk.restore(state)
                    texts = [text for _, text, _ in self.said]
                    flushed = [
                        i for i, (done, _, is_) in enumerate(self.said) if is_ and done <= at
                    ]
                    kept = texts[: flushed[-1] + 1] if flushed else []
                    found = read()
                    assert found[: len(kept)] == kept, where
                    assert found == [text for text in texts if text in found], where
                    say("more")
                    assert read() == [*found, "more"], where


def test_a_chat_has_all_that_was_flushed(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "disk")
    path = writer.disk.place / f"chats/project/{KEY}.jsonl"

    def chat() -> ChatFile:
        return ChatFile.open(path) if path.exists() else ChatFile(path, Conversation(key=KEY))

    def say(text: str, is_flushed: bool = True) -> None:
        def make(it: Conversation) -> list[Op]:
            return [{"op": "say", "number": it.next_number, "parent": it.last, "text": text}]

        chat().change(make, fsync=is_flushed)

    def read() -> list[str]:
        try:
            return [each.text for each in chat().chat.branch()]
        except ChatFailed as error:
            pytest.fail(str(error))

    writer.record(say)
    writer.check(read, say)


START: dict[str, Any] = {"policy": "auto", "key": KEY} | dict.fromkeys(
    ("root", "task", "context", "model", "dialect", "sandbox", "note"), "x"
)


def test_the_record_of_a_run_has_all_that_was_flushed(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "disk")
    folder = writer.disk.place / f"agents/project/{KEY}"

    def say(text: str, is_flushed: bool = True) -> None:
        if not folder.exists() or not read_log():
            folders.make_private(folder)
            RunLog(folder).start(**START)
        RunLog.open(folder).write("said", text=text, fsync=is_flushed)

    def read_log() -> RunLog | None:
        try:
            return RunLog.open(folder)
        except AgentFailed:
            return None

    def read() -> list[str]:
        log = read_log()
        return list(log.state.said) if log else []

    writer.record(say)
    writer.check(read, say)
