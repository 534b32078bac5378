"""Changed and added lines get the line end of their neighbours, however a reply is applied."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals import apply
from lcursor.changes import diff
from lcursor.changes.apply.parse import blocks
from lcursor.changes.apply.resolve import Resolved, resolve
from lcursor.changes.records import Lines
from lcursor.config import EditConfig
from tests.fakes.chat_server import ChatServer
from tests.unit.edit.desk import Desk, buffer, fenced, made, part_of, reply

TASKS = 150
MAX_LINES = 700

texts = st.lists(st.sampled_from(["", "a", "b", "}", "    c"]), max_size=16)
ends = st.lists(st.sampled_from(["", "\r"]), min_size=16, max_size=16)


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


@given(texts, ends)
def test_an_unchanged_text_keeps_its_ends(lines: list[str], marks: list[str]) -> None:
    old = tuple(line + mark for line, mark in zip(lines, marks, strict=False))
    assert diff.with_line_ends(old, lines) == old


def mixed(lines: Lines, draw: random.Random) -> Lines:
    """Return lines of which runs of some lines end with CR LF."""
    result, end = list[str](), "\r"
    for line in lines:
        result.append(line + end)
        end = "\r" if draw.random() < (0.2 if not end else 0.8) else ""
    return tuple(result)


def test_replies_are_applied_to_mixed_line_ends_as_to_others() -> None:
    draw = random.Random(3)
    tasks = [
        task for task in apply.load() if task.files and max(map(len, task.files.values())) < 700
    ]
    done = 0
    for task in draw.sample(tasks, TASKS):
        plain = resolve(blocks(task.reply, task.file), apply.TaskFiles(task.files, task.current))
        files = {path: mixed(tuple(lines), draw) for path, lines in task.files.items()}
        found = resolve(blocks(task.reply, task.file), apply.TaskFiles(files, task.current))
        assert type(found) is type(plain), task.name
        if not isinstance(found, Resolved) or not isinstance(plain, Resolved):
            continue
        for file, other in zip(found.files, plain.files, strict=True):
            base = tuple(files.get(file.path, ()))
            new = diff.apply(base, file.changes)
            bare = diff.apply(tuple(task.files.get(file.path, ())), other.changes)
            assert tuple(line.removesuffix("\r") for line in new) == bare, task.name
            assert len(file.changes) <= len(other.changes) + len(base), task.name
            if file.kind == "edit" and base:
                assert diff.with_line_ends(base, bare) == new, task.name
                done += 1
    assert done > TASKS // 2


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


@pytest.mark.parametrize("text", FORMS)
def test_an_added_region_has_the_line_ends_around_it(tmp_path: Path, text: str) -> None:
    shown = lines_in_buffer(text)
    with ChatServer([reply(fenced("LIMIT = 1"))]) as server, Desk(tmp_path, server) as desk:
        found = desk.proposed(desk.ask("a.py", shown, "add a limit", (5, 5)))
        end = "\r" if "\r" in shown else ""
        assert f"\n{end}\nLIMIT = 1{end}\n" in made(shown, found["files"][0])
