"""Changed and added lines get the line end of their neighbours, however a reply is applied."""

from __future__ import annotations

from pathlib import Path

import pytest

from lcursor.changes import diff
from lcursor.changes.records import Lines
from lcursor.config import EditConfig
from tests.fakes.chat_server import ChatServer
from tests.unit.edit.desk import Desk, buffer, fenced, made, part_of, reply


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (("a", "b"), ("a", "c"), ("a", "c")),
        (("a\r", "b\r"), ("a", "c"), ("a\r", "c\r")),
        (("a\r", "b"), ("x", "y"), ("x\r", "y")),
        (("a\r", "b", "c"), ("a", "x", "b", "c"), ("a\r", "x\r", "b", "c")),
        (("a", "b\r", "c"), ("x", "a", "b", "y", "c"), ("x", "a", "b\r", "y\r", "c")),
        (("a\r", "b", "c"), ("c",), ("c",)),
        (("a\r", "b\r"), ("x", "y", "z"), ("x\r", "y\r", "z\r")),
        (("a", "b"), ("a", "c\r"), ("a", "c")),
        ((), ("a", "b\r"), ("a", "b\r")),
        (("a\r", ""), (), ()),
    ],
)
def test_new_lines_get_the_ends_of_their_neighbours(
    old: Lines, new: Lines, expected: Lines
) -> None:
    assert diff.with_line_ends(old, new) == expected


MIXED = "import os\n\n\ndef alpha(x):\r\n    return x\r\n\n\ndef beta(x):\n    return x\n"
FORMS = [MIXED, MIXED.replace("\r\n", "\n"), MIXED.replace("\r\n", "\n").replace("\n", "\r\n")]
"""Mixed line ends, and only one kind."""


def wanted(text: str) -> str:
    """Return a text with another first function, which has one more line."""
    end = "\r\n" if "(x):\r\n" in text else "\n"
    return text.replace(f"    return x{end}", f"    y = x{end}    return y{end}", 1)


def lines_in_buffer(text: str) -> str:
    """Return a text as the editor has it: CR is part of a line only if other lines have none."""
    is_dos = text.count("\n") == text.count("\r\n")
    return (text.replace("\r\n", "\n") if is_dos else text).removesuffix("\n")


@pytest.mark.parametrize("text", FORMS)
@pytest.mark.parametrize("formatter", ["", "cat"])
def test_a_rewritten_region_keeps_its_line_ends(tmp_path: Path, text: str, formatter: str) -> None:
    new = "def alpha(x):\n    y = x\n    return y"
    shown = lines_in_buffer(text)
    config = EditConfig(retries=0, formatter=formatter)
    with ChatServer([reply(fenced(new))]) as server, Desk(tmp_path, server, edit=config) as desk:
        desk.allow(*filter(None, [formatter]))
        found = desk.proposed(desk.ask("a.py", shown, "name the result", (3, 4)))
        assert made(shown, found["files"][0]) == lines_in_buffer(wanted(text))
        assert "\r" not in part_of(server.bodies[0])
        assert all(each["is_ok"] for each in found["files"][0]["checks"])


@pytest.mark.parametrize("text", FORMS)
@pytest.mark.parametrize("is_open", [True, False])
def test_a_pasted_reply_keeps_the_line_ends_of_a_file(
    tmp_path: Path, text: str, is_open: bool
) -> None:
    quoted = "a.py\n```\n<<<<<<< SEARCH\n    return x\n=======\n    y = x\n    return y\n"
    pasted = f"{quoted}>>>>>>> REPLACE\n```\n".replace("SEARCH\n", "SEARCH\ndef alpha(x):\n", 1)
    pasted = pasted.replace("=======\n", "=======\ndef alpha(x):\n")
    with ChatServer([]) as server, Desk(tmp_path, server) as desk:
        path = desk.put("a.py", text)
        shown = lines_in_buffer(text)
        number = desk.do(
            "edit.apply", path=str(path), text=pasted, file="", chat="", message=0,
            buffers=[buffer(path, shown)] if is_open else [],
        )  # fmt: skip
        found = desk.proposed(number)
        assert made(shown, found["files"][0]) == lines_in_buffer(wanted(text))
