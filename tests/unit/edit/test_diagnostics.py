"""Language servers on a proposal: what is new of what they say, and an editor that is asked."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from lcursor.changes.records import Check
from lcursor.config import EditConfig
from lcursor.edit import diagnostics
from lcursor.edit import run as runs
from tests.fakes.chat_server import ChatServer
from tests.fakes.heard import Told
from tests.unit.edit.desk import Desk, fenced, made, reply

TEXT = "def one(x):\n    return x\n\n\ndef two(y):\n    return y\n"
BAD = "def one(x):\n    return z"
GOOD = "def one(x):\n    return x + 1"
UNDEFINED = "`z` is not defined"


def problem(row: int, text: str = UNDEFINED, code: str = "undefined") -> Any:
    return {"row": row, "text": text, "code": code}


def rows(was: list[Any], now: list[Any], before: str, after: str) -> list[int]:
    found = diagnostics.new_problems(was, now, tuple(before.split("\n")), tuple(after.split("\n")))
    return [each["row"] for each in found]


@pytest.mark.parametrize(
    ("was", "now", "before", "after", "new"),
    [
        ([], [problem(0)], "a", "z", [0]),
        ([problem(0)], [problem(2)], "z", "a\nb\nz", []),  # it moved
        ([problem(0)], [problem(0), problem(1)], "z", "y = z\nz", [0]),  # its line tells which
        ([problem(0)], [problem(0)], "f(z)", "g(z)", []),  # its line changed, and it is there
        ([problem(0)], [problem(0, "`y` is not defined")], "z", "y", [0]),
        ([problem(0)], [problem(0, code="other")], "z", "z", [0]),
        ([problem(0, "see line 3")], [problem(0, "see line 40")], "z", "z", []),
        ([problem(0), problem(1)], [], "z\nz", "a\nb", []),
        ([], [problem(1), problem(0)], "", "z\nz", [0, 1]),
        ([], [problem(7)], "", "z", [7]),  # of a row that there is not
    ],
)
def test_only_what_was_not_there_is_new(
    was: list[Any], now: list[Any], before: str, after: str, new: list[int]
) -> None:
    assert rows(was, now, before, after) == new


def test_who_says_nothing_is_no_check_and_who_finds_nothing_is_a_good_one() -> None:
    assert diagnostics.compare([], (), ()) is None
    clean = {"name": "ls", "before": [problem(0)], "after": [problem(0)]}
    assert diagnostics.compare([clean], ("z",), ("z",)) == Check("diagnostics", True)  # type: ignore[list-item]


def test_an_error_is_reported_with_its_line_and_not_without_end() -> None:
    one = {"name": "one", "before": [], "after": [problem(1)]}
    found = diagnostics.compare([one, one], (), ("a", "  return z"))  # type: ignore[list-item]
    words = "line 2: `z` is not defined [undefined]: return z"
    assert found == Check("diagnostics", False, words)  # both say the same
    many = [
        problem(row, "wrong\n" * 200 + str(row), "") for row in range(diagnostics.MAX_SHOWN + 3)
    ]
    found = diagnostics.compare([{"name": "one", "before": [], "after": many}], (), ("",))
    assert found is not None
    told = found.text.split("\n")
    assert told[-1] == "and 3 more"
    assert len(told) == diagnostics.MAX_SHOWN + 1
    assert all(len(line) < diagnostics.MAX_SHOWN_CHARS + 20 for line in told)


class Looking(Desk):
    """A desk whose editor answers what language servers are asked."""

    def __init__(self, *args: Any, answers: list[list[Any] | None], **more: Any) -> None:
        self.answers, self.looks = answers, list[Told]()
        super().__init__(*args, **more)

    def __enter__(self) -> Looking:
        return self

    def _tell(self, method: str, params: Told) -> None:
        super()._tell(method, params)
        if method == "edit.diagnose":
            self.looks.append(params)
            found = self.answers.pop(0)
            if found is not None:
                server = {"name": "ls", "before": [], "after": found}
                said = {"id": params["id"], "check": params["check"], "servers": [server]}
                thread = threading.Thread(target=self.do, args=("edit.diagnosed",), kwargs=said)
                thread.start()


def asked(desk: Desk, **more: Any) -> int:
    return desk.ask(
        "a.py", TEXT.rstrip("\n"), "Add one", (0, 2), served=[str(desk.root / "a.py")], **more
    )


def test_a_new_error_is_reported_to_the_model_which_tries_again(tmp_path: Path) -> None:
    config = EditConfig(retries=1)
    with (
        ChatServer([reply(fenced(BAD)), reply(fenced(GOOD))]) as server,
        Looking(tmp_path, server, edit=config, answers=[[problem(1)], []]) as desk,
    ):
        found = desk.proposed(asked(desk))
        (file,) = found["files"]
        assert found["attempts"] == 2
        assert "return x + 1" in made(TEXT.rstrip("\n"), file)
        assert {"name": "diagnostics", "is_ok": True, "text": ""} in file["checks"]
        said = str(server.bodies[1]["messages"])
        assert "line 2: `z` is not defined [undefined]: return z" in said
        assert [each["before"] for each in desk.looks] == [TEXT, TEXT]
        assert desk.looks[0]["after"] == TEXT.replace("return x", "return z")
        assert [each["check"] for each in desk.looks] == [0, 1]


def test_what_stays_wrong_is_shown_with_what_is_wrong(tmp_path: Path) -> None:
    with (
        ChatServer([reply(fenced(BAD))]) as server,
        Looking(tmp_path, server, answers=[[problem(1)]]) as desk,
    ):
        (file,) = desk.proposed(asked(desk))["files"]
        (check,) = [each for each in file["checks"] if not each["is_ok"]]
        assert check["name"] == "diagnostics"
        assert check["text"].startswith("line 2: `z` is not defined")


def test_a_file_that_no_server_has_is_not_asked_about_and_a_link_to_it_is(tmp_path: Path) -> None:
    answers = [reply(fenced(GOOD)), reply(fenced(GOOD))]
    with ChatServer(answers) as server, Looking(tmp_path, server, answers=[[]]) as desk:
        other, link = str(desk.root / "b.py"), str(desk.root / "link.py")
        desk.proposed(desk.ask("a.py", TEXT, "Add one", (0, 2), served=[other]))
        assert desk.looks == []
        desk.put("a.py", TEXT)
        os.symlink(desk.root / "a.py", link)
        desk.proposed(desk.ask("a.py", TEXT, "Add one", (0, 2), served=[link]))
        assert len(desk.looks) == 1


def test_what_does_not_parse_is_not_asked_about(tmp_path: Path) -> None:
    broken = reply(fenced("def one(x:\n    return x + 1"))
    with ChatServer([broken]) as server, Looking(tmp_path, server, answers=[]) as desk:
        desk.done(asked(desk))
        assert desk.looks == []


def test_an_editor_that_does_not_answer_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "DIAGNOSTICS_S", 0.05)
    config = EditConfig(retries=1)
    long = "def one(x):\n" + "    return x + 1\n" * 40  # it repeats itself
    with (
        ChatServer([reply(fenced(long)), reply(fenced(GOOD))]) as server,
        Looking(tmp_path, server, edit=config, answers=[None]) as desk,
    ):
        (file,) = desk.proposed(asked(desk))["files"]
        assert len(server.bodies) == 2
        assert len(desk.looks) == 1
        assert "diagnostics" not in {each["name"] for each in file["checks"]}


def test_a_stop_ends_it_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "DIAGNOSTICS_S", 600)
    with (
        ChatServer([reply(fenced(GOOD))]) as server,
        Looking(tmp_path, server, answers=[None]) as desk,
    ):
        number = asked(desk)
        desk.wait("edit.diagnose", number)
        (thread,) = [each for each in threading.enumerate() if each.name == "lcursor-edit"]
        desk.do("edit.stop", id=number)
        assert desk.done(number)["reason"] == "stopped"
        thread.join(20)
        assert not thread.is_alive()
        desk.do("edit.diagnosed", id=number, check=0, servers=[])  # too late: nobody hears it


def test_too_much_text_is_not_asked_about() -> None:
    assert diagnostics._text(("x",) * diagnostics.MAX_ROWS) is not None
    assert diagnostics._text(("x",) * (diagnostics.MAX_ROWS + 1)) is None
    assert diagnostics._text(("x" * (diagnostics.MAX_CHARS + 1),)) is None
    assert diagnostics._text(("\udcff",)) is None  # no Unicode: the file has other bytes
