"""The edit service with more than one region: many places, plans, and replies that are applied."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lcursor.config import EditConfig
from tests.fakes.chat_server import Answer, ChatServer
from tests.unit.edit.desk import Desk, buffer, fenced, made, part_of, reply
from tests.waiting import wait_for

ONE = "def one(x):\n    return x\n\n\ndef also(x):\n    return x + 1\n"
TWO = "def two(x):\n    return x * 2\n"


def longer(body: dict[str, Any]) -> Answer:
    """Do what is asked: `x` becomes `value`."""
    return reply(fenced(part_of(body).replace("x", "value")))


def place(path: Path, row: int, text: str = "") -> dict[str, Any]:
    return {"path": str(path), "row": row, "text": text}


def ask_many(desk: Desk, locations: Sequence[dict[str, Any]], **more: Any) -> int:
    return desk.do(
        "edit.many",
        **{
            "path": str(desk.root), "locations": list(locations), "instruction": "Call it value",
            "buffers": [], "model": "", **more,
        },
    )  # fmt: skip


def test_the_same_is_done_at_many_places_as_one_turn(tmp_path: Path) -> None:
    with ChatServer(longer) as server, Desk(tmp_path, server) as desk:
        one, two = desk.put("one.py", ONE), desk.put("two.py", TWO)
        places = [place(one, 5, "too short"), place(two, 1), place(one, 1), place(one, 0)]
        number = ask_many(desk, places)
        found = desk.proposed(number)
        assert len(server.bodies) == 3  # two places are in one function
        assert {each["name"] for each in found["files"]} == {"one.py", "two.py"}
        for file, text in zip(found["files"], (ONE, TWO), strict=True):
            plain = text.removesuffix("\n")
            assert made(plain, file) == plain.replace("x", "value")
            assert file["tick"] == -1
        told = [body["messages"][-1]["content"] for body in server.bodies]
        assert sum("too short" in each for each in told) == 1
        assert desk.done(number)["attempts"] == 3
        details = [each["detail"] for each in desk.told("edit.progress", number)]
        assert any("2 of 3" in each for each in details)


def test_a_place_that_does_not_work_does_not_keep_the_others(tmp_path: Path) -> None:
    def script(body: dict[str, Any]) -> Answer:
        return reply("No.") if "def two" in part_of(body) else longer(body)

    with ChatServer(script) as server, Desk(tmp_path, server) as desk:
        one, two = desk.put("one.py", ONE), desk.put("two.py", TWO)
        secret = desk.put(".env", "A=1\n")
        gone = desk.root / "gone.py"
        places = [place(two, 1), place(one, 1), place(secret, 0), place(gone, 0), place(one, 99)]
        found = desk.proposed(ask_many(desk, places))
        assert [each["name"] for each in found["files"]] == ["one.py"]
        for words in ("two.py", ".env", "gone.py", "no longer has a line 100"):
            assert words in found["note"]


def test_nothing_that_works_is_rejected_with_the_reasons(tmp_path: Path) -> None:
    with ChatServer(lambda _: reply("No.")) as server, Desk(tmp_path, server) as desk:
        number = ask_many(desk, [place(desk.put("one.py", ONE), 1)])
        end = desk.done(number)
        assert end["reason"] == "rejected"
        assert "one.py" in end["message"]


def test_the_text_of_a_buffer_goes_before_the_disk(tmp_path: Path) -> None:
    with ChatServer(longer) as server, Desk(tmp_path, server) as desk:
        two = desk.put("two.py", TWO)
        text = "# typed\n" + TWO.removesuffix("\n")
        found = desk.proposed(ask_many(desk, [place(two, 2)], buffers=[buffer(two, text, 9)]))
        (file,) = found["files"]
        assert file["tick"] == 9
        assert made(text, file) == text.replace("x", "value")


def apply(desk: Desk, text: str, path: Path, *buffers: dict[str, Any], file: str = "") -> int:
    return desk.do(
        "edit.apply", path=str(path), text=text, file=file, chat="", message=0,
        buffers=list(buffers),
    )  # fmt: skip


def test_a_whole_file_is_applied_without_a_model(tmp_path: Path) -> None:
    with ChatServer() as server, Desk(tmp_path, server) as desk:
        path = desk.put("one.py", ONE)
        wanted = ONE.replace("return x\n", "return -x\n")
        number = apply(desk, fenced(wanted), path, file="one.py")
        (file,) = desk.proposed(number)["files"]
        assert made(ONE.removesuffix("\n"), file) == wanted.removesuffix("\n")
        assert {"parses"} <= {each["name"] for each in file["checks"]}
        assert not server.bodies


@pytest.mark.parametrize("name", ["Conftest.py", "sub/.envrc", "sub/Noxfile.py"])
def test_code_for_a_file_that_runs_by_itself_is_not_written_with_others(
    tmp_path: Path, name: str
) -> None:
    with ChatServer() as server, Desk(tmp_path, server) as desk:
        path = desk.put("one.py", ONE)
        text = f"{name}\n{fenced('x = 1')}\n\none.py\n{fenced(ONE.replace('x + 1', 'x + 2'))}\n"
        found = desk.proposed(apply(desk, text, path))
        marks = {each["name"]: each["is_guarded"] for each in found["files"]}
        assert marks == {name: True, "one.py": False}
        paths = [each["path"] for each in found["files"]]
        wrote = desk.do("edit.write", turn=found["turn"], paths=paths, outside=False)
        assert "runs code by itself" in desk.wait("edit.written", wrote)["problem"]
        assert path.read_text() == ONE
        assert not (desk.root / name).exists()


SEARCH = """\
one.py
```python
<<<<<<< SEARCH
def also(x):
    return x + 1
=======
def also(x):
    return x + 2
>>>>>>> REPLACE
```
"""


def test_a_block_of_search_and_replace_is_applied_to_its_file(tmp_path: Path) -> None:
    with ChatServer() as server, Desk(tmp_path, server) as desk:
        desk.put("one.py", ONE)
        looked_at = desk.put("two.py", TWO)
        number = apply(desk, SEARCH, looked_at, buffer(looked_at, TWO.removesuffix("\n")))
        (file,) = desk.proposed(number)["files"]
        assert file["name"] == "one.py"
        assert made(ONE.removesuffix("\n"), file) == ONE.removesuffix("\n").replace("+ 1", "+ 2")


def test_a_block_that_fits_in_two_places_is_asked_about(tmp_path: Path) -> None:
    twice = "if a:\n    go(1)\n\nif a:\n    go(1)\n"
    text = "```python\n<<<<<<< SEARCH\n    go(1)\n=======\n    go(2)\n>>>>>>> REPLACE\n```\n"
    with ChatServer() as server, Desk(tmp_path, server) as desk:
        path = desk.put("twice.py", twice)
        number = apply(desk, text, path, buffer(path, twice.removesuffix("\n")))
        question = desk.wait("edit.question", number)
        rows = [each["first_row"] for each in question["choices"]]
        assert rows == [1, 4]
        assert all(each["path"] == str(path) for each in question["choices"])
        assert desk.busy[-1] is False  # nobody works while it is asked
        desk.do("edit.choose", id=number, choice=1)
        (file,) = desk.proposed(number)["files"]
        assert made(twice.removesuffix("\n"), file) == "if a:\n    go(1)\n\nif a:\n    go(2)"


def test_none_of_the_places_ends_it(tmp_path: Path) -> None:
    twice = "if a:\n    go(1)\n\nif a:\n    go(1)\n"
    text = "```python\n<<<<<<< SEARCH\n    go(1)\n=======\n    go(2)\n>>>>>>> REPLACE\n```\n"
    with ChatServer() as server, Desk(tmp_path, server) as desk:
        path = desk.put("twice.py", twice)
        number = apply(desk, text, path, buffer(path, twice.removesuffix("\n")))
        desk.wait("edit.question", number)
        desk.do("edit.choose", id=number, choice=-1)
        assert desk.done(number)["reason"] == "stopped"
        other = apply(desk, text, path, buffer(path, twice.removesuffix("\n")))
        desk.wait("edit.question", other)
        desk.do("edit.stop", id=other)
        assert desk.done(other)["reason"] == "stopped"
        assert not desk.told("edit.proposed")


def test_an_answer_that_nobody_asked_for_chooses_nothing(tmp_path: Path) -> None:
    one, two = "if a:\n    go(1)\n", "if b:\n    wait_for(1)\n"
    twice = f"{one}\n{one}\n{two}\n{two}"
    blocks = [
        f"<<<<<<< SEARCH\n    {name}(1)\n=======\n    {name}(2)\n>>>>>>> REPLACE\n"
        for name in ("go", "wait_for")
    ]
    text = f"```python\n{''.join(blocks)}```\n"
    with ChatServer() as server, Desk(tmp_path, server) as desk:
        path = desk.put("twice.py", twice)
        number = apply(desk, text, path, buffer(path, twice.removesuffix("\n")))
        desk.wait("edit.question", number)
        for choice in (0, 1, 1):  # a key that was pressed too often
            desk.do("edit.choose", id=number, choice=choice)
        wait_for(lambda: len(desk.told("edit.question", number)) == 2)
        assert not desk.told("edit.done", number)
        desk.do("edit.choose", id=number, choice=0)
        (file,) = desk.proposed(number)["files"]
        plain = twice.removesuffix("\n")
        wanted = plain.replace("go(1)", "go(2)", 1).replace("wait_for(1)", "wait_for(2)", 1)
        assert made(plain, file) == wanted


def test_a_file_outside_of_the_project_is_marked_and_not_written_without_a_yes(
    tmp_path: Path,
) -> None:
    with ChatServer() as server, Desk(tmp_path, server) as desk:
        path = tmp_path / "outside.py"
        path.write_text(ONE)
        desk.put("one.py", ONE)
        wanted = ONE.replace("return x\n", "return -x\n")
        here = buffer(path, ONE.removesuffix("\n"))
        number = desk.do(
            "edit.apply", path=str(desk.root), text=fenced(wanted), file=str(path), chat="",
            message=0, buffers=[here],
        )  # fmt: skip
        found = desk.proposed(number)
        (file,) = found["files"]
        assert (file["path"], file["is_outside"]) == (str(path), True)
        for is_certain, text in ((False, ONE), (True, wanted)):
            wrote = desk.do(
                "edit.write", turn=found["turn"], paths=[str(path)], outside=is_certain
            )  # fmt: skip
            assert bool(desk.wait("edit.written", wrote)["problem"]) is not is_certain
            assert path.read_text() == text


def test_a_path_that_only_the_reply_names_is_not_read_outside_of_the_project(
    tmp_path: Path,
) -> None:
    text = SEARCH.replace("one.py", str(tmp_path / "outside.py"))
    with ChatServer() as server, Desk(tmp_path, server) as desk:
        (tmp_path / "outside.py").write_text(ONE)
        here = desk.put("two.py", TWO)
        end = desk.done(apply(desk, text, here))
        assert end["reason"] == "rejected"
        assert not desk.told("edit.proposed")


def test_a_secret_that_is_there_is_not_created_again(tmp_path: Path) -> None:
    with ChatServer() as server, Desk(tmp_path, server) as desk:
        desk.put(".env", "TOKEN=abc\n")
        here = desk.put("two.py", TWO)
        end = desk.done(apply(desk, "```\nTOKEN=other\n```\n", here, file=".env"))
        assert end["reason"] == "rejected"
        assert (desk.root / ".env").read_text() == "TOKEN=abc\n"


@pytest.mark.parametrize("data", ["x = 1\n".encode("utf-16"), b"x = 1\n\0"])
@pytest.mark.parametrize("is_whole", [False, True])
def test_a_file_that_is_not_text_is_not_called_missing(
    tmp_path: Path, data: bytes, is_whole: bool
) -> None:
    with ChatServer() as server, Desk(tmp_path, server) as desk:
        here, path = desk.put("two.py", TWO), desk.root / "one.py"
        path.write_bytes(data)
        text = "```\nx = 2\n```\n" if is_whole else SEARCH
        end = desk.done(apply(desk, text, here, file="one.py" if is_whole else ""))
        assert end["message"] == f"{path} is binary or UTF-16. Open it first if it is text"
        assert path.read_bytes() == data


def test_pasted_code_needs_no_fence(tmp_path: Path) -> None:
    with ChatServer() as server, Desk(tmp_path, server) as desk:
        path = desk.put("one.py", ONE)
        text = "def also(x):\n    return x + 3\n"
        (file,) = desk.proposed(apply(desk, text, path))["files"]
        assert made(ONE.removesuffix("\n"), file) == ONE.removesuffix("\n").replace("+ 1", "+ 3")
        assert desk.done(apply(desk, "Only words, and none of code.", path))["reason"] == "rejected"


def test_what_is_nowhere_is_rejected(tmp_path: Path) -> None:
    text = SEARCH.replace("def also", "def nowhere_to_be_found").replace("x + 1", "7 * 3")
    with ChatServer() as server, Desk(tmp_path, server) as desk:
        path = desk.put("one.py", ONE)
        end = desk.done(apply(desk, text, path))
        assert end["reason"] == "rejected"
        assert end["message"]
        number = desk.do(
            "edit.apply", path=str(path), text="Only words.", file="", chat="some", message=0,
            buffers=[],
        )  # fmt: skip
        assert desk.done(number)["reason"] == "nothing"


SKETCH = """\
def one(x):
    # ... existing code ...
    log(x)
    # ... existing code ...
"""


def test_code_that_leaves_out_too_much_is_filled_in_by_the_model(tmp_path: Path) -> None:
    text = "def one(x):\n    y = x\n    y += 1\n    return y\n\n\nLAST = 3\n"
    whole = "def one(x):\n    y = x\n    log(x)\n    y += 1\n    return y"
    with ChatServer([reply(fenced(whole))]) as server, Desk(tmp_path, server) as desk:
        path = desk.put("one.py", text)
        found = desk.proposed(apply(desk, fenced(SKETCH), path, file="one.py"))
        (file,) = found["files"]
        assert made(text.removesuffix("\n"), file) == f"{whole}\n\n\nLAST = 3"
        assert "model completed it" in found["note"]
        asked = server.bodies[0]["messages"][-1]["content"]
        assert part_of(server.bodies[0]) == text.partition("\n\n")[0]
        assert SKETCH in asked


def test_a_sketch_is_rejected_if_no_model_can_be_asked(tmp_path: Path) -> None:
    with ChatServer() as server:
        pass
    with Desk(tmp_path, server) as desk:
        path = desk.put("one.py", "def one(x):\n    y = x\n    return y\n")
        end = desk.done(apply(desk, fenced(SKETCH), path, file="one.py"))
        assert end["reason"] == "rejected"
        assert "code is incomplete" in end["message"]


@pytest.mark.usefixtures("without_sandbox")
def test_many_places_are_tested_once_as_a_whole(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    test = f"echo >> {ran}; test $(cat one.py two.py | grep -c value) -gt 3"
    config = EditConfig(retries=2, test=test)
    with ChatServer(longer) as server, Desk(tmp_path, server, edit=config) as desk:
        desk.allow(test)
        one, two = desk.put("one.py", ONE), desk.put("two.py", TWO)
        found = desk.proposed(ask_many(desk, [place(one, 1), place(one, 5), place(two, 1)]))
        assert len(server.bodies) == 3
        for file in found["files"]:
            assert [c["is_ok"] for c in file["checks"] if c["name"] == "test"] == [True]
    assert len(ran.read_text().splitlines()) == 1


def test_places_to_fix_are_shown_what_the_tests_say(tmp_path: Path) -> None:
    test = "echo one is wrong; false"
    config = EditConfig(retries=0, test=test)
    with ChatServer(longer) as server, Desk(tmp_path, server, edit=config) as desk:
        desk.allow(test)
        one, two = desk.put("one.py", ONE), desk.put("two.py", TWO)
        desk.proposed(ask_many(desk, [place(one, 1), place(two, 1)], instruction="Fix the tests"))
        assert all("one is wrong" in str(body["messages"]) for body in server.bodies)
