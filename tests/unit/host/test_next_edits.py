"""Next edits in the host: only the newest request is answered."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lcursor.host import next_edits
from lcursor.protocol import TO_LUA, check
from lcursor.protocol.next_edit import NextEdit, NextEditFile, NextEditPredict

TEXT = "def f(deadline):\n    return timeout\n"
EDIT: NextEdit = {
    "path": "/p/a.py",
    "row": 0,
    "old": ["def f(timeout):"],
    "new": ["def f(deadline):"],
    "is_accepted": False,
}


def request(number: int, edits: list[NextEdit]) -> NextEditPredict:
    files: list[NextEditFile] = [{"path": "/p/a.py", "text": TEXT}]
    return {
        "id": number,
        "files": files,
        "is_wide": False,
        "edits": edits,
        "row": 0,
        "column": 6,
    }


class Receiver:
    """Records the messages of a service."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, Mapping[str, Any]]] = []
        self._changed = threading.Condition()

    def __call__(self, method: str, params: Mapping[str, Any]) -> None:
        with self._changed:
            self.messages.append((method, params))
            self._changed.notify_all()

    def wait(self) -> Mapping[str, Any]:
        """Wait for the first message."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.messages, 10)
        method, params = self.messages[0]
        return check(method, params, TO_LUA)


def test_the_newest_request_is_answered() -> None:
    receive = Receiver()
    service = next_edits.NextEdits(receive)
    blocked = threading.Event()

    def block() -> None:
        assert blocked.wait(10)

    service._executor.submit(block)
    for number in (1, 2, 3):
        service.predict(request(number, [EDIT]))
    blocked.set()
    answer = receive.wait()
    service.close()
    assert answer["id"] == 3
    assert len(receive.messages) == 1
    (proposal,) = answer["proposals"]
    assert (proposal["path"], proposal["row"]) == ("/p/a.py", 1)
    assert proposal["new"] == ["    return deadline"]


def test_without_edits_the_text_is_only_parsed() -> None:
    receive = Receiver()
    service = next_edits.NextEdits(receive)
    service.predict(request(1, []))
    assert receive.wait()["proposals"] == []
    service.close()


def test_an_error_is_reported_with_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("broken")

    monkeypatch.setattr("lcursor.next_edit.predict.predict", fail)
    receive = Receiver()
    service = next_edits.NextEdits(receive)
    service.predict(request(7, [EDIT]))
    receive.wait()
    service.close()
    (found,) = [params for method, params in receive.messages if method == "error"]
    assert found["id"] == 7


def test_files_with_a_name(tmp_path: Path) -> None:
    texts = {
        "a.py": "timeout\n",
        "b.py": "x = 1\r\nprint(timeout)\r\n",
        "deep/c.py": "timeouts\n",
        "deep/d.py": "\ntimeout = 1\n",
        "e.lua": "timeout = 1\n",
        "ignored.py": "timeout\n",
        "mine.py": "timeout\n",
        "key.py": "timeout\n# -----BEGIN RSA PRIVATE KEY-----\n",
        ".gitignore": "ignored.py\n",
        "long.py": "timeout\n" * (next_edits.MAX_LINES + 1),
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, newline="")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    found = next_edits.files_with(["timeout"], [str(tmp_path / "a.py")], ["mine.*"])
    assert found == {
        str(tmp_path / "b.py"): ("x = 1", "print(timeout)"),
        str(tmp_path / "deep/d.py"): ("", "timeout = 1"),
    }
