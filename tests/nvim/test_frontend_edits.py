"""Front ends and a suggestion that takes the place of what is right of the cursor."""

from __future__ import annotations

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.frontends import Start, answers, insert, starter, texts


@pytest.fixture
def start(editor: Start) -> Start:
    """Start a Neovim without ghost text, in which each of `FRONT_ENDS` is a Lua function."""
    return starter(editor)


@pytest.mark.parametrize("front_end", ["blink", "cmp", "inline"])
def test_a_suggestion_may_replace_what_is_right_of_the_cursor(
    start: Start, host: FakeHost, front_end: str
) -> None:
    nvim = start({"a.py": "é(fo)\n"})
    insert(nvim, "gg$i")
    nvim.lua(front_end + "()")
    host.done(host.request(), "o, b) -> int:", replaces=1)
    ((item,),) = answers(nvim)
    edit = item.get("textEdit", {"range": item.get("range"), "newText": item["insertText"]})
    line = nvim.lines()[0].encode()
    range_ = [edit["range"][end]["character"] for end in ("start", "end")]
    after = line[: range_[0]] + edit["newText"].encode() + line[range_[1] :]
    assert after.decode() == "é(foo, b) -> int:"


def test_items_that_only_insert_end_before_it(start: Start, host: FakeHost) -> None:
    nvim = start({"a.py": "é(fo)\n"})
    insert(nvim, "gg$i")
    nvim.lua("completion()")
    host.done(host.request(), "o, b) -> int:", replaces=1)
    (items,) = answers(nvim)
    assert texts(items) == ["foo, b"]
