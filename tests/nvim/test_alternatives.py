"""Several suggestions for one place: asked for at the first press, then cycled, typed, accepted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lcursor.drive.editor import Editor
from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]
Golden = Callable[[str, str], None]
Call = Callable[..., Any]

DEF = {"a.py": "def f(x):\n"}
FIRST, SECOND, THIRD = "return x", "return y\n    # done", "raise x"


@pytest.fixture(scope="module")
def lua(neovim: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Call]:
    """Call Lua in one Neovim for all pure functions of this file."""
    with Editor(neovim, tmp_path_factory.mktemp("home")) as nvim:
        yield nvim.lua


@pytest.mark.parametrize(
    ("shown", "others", "single_line", "texts"),
    [
        ("a", [], False, ["a"]),
        ("a", ["b", "c"], False, ["a", "b", "c"]),
        ("a", ["b", "a", "b"], False, ["a", "b"]),
        ("a", ["", " \n\t", "b"], False, ["a", "b"]),
        ("a", ["a\n", "a  ", "  a"], False, ["a", "  a"]),
        ("a", ["a\nb", "b\nc", "b\nd", "\nx"], True, ["a", "b"]),
        ("a", ["a\nb"], False, ["a", "a\nb"]),
    ],
)
def test_gather(
    lua: Call, shown: str, others: list[str], single_line: bool, texts: list[str]
) -> None:
    code = "return require('lcursor.complete.cycle').gather(...)"
    assert lua(code, shown, others, single_line) == texts


@pytest.mark.parametrize(
    ("texts", "shown", "typed", "steps", "step"),
    [
        (["a", "b", "c"], "a", "", 0, ["a", 1, 3]),
        (["a", "b", "c"], "a", "", 1, ["b", 2, 3]),
        (["a", "b", "c"], "c", "", 1, ["a", 1, 3]),
        (["a", "b", "c"], "a", "", -1, ["c", 3, 3]),
        (["a", "b", "c"], "b", "", -7, ["a", 1, 3]),
        (["ax", "b", "ay"], "ax", "a", 1, ["ay", 2, 2]),
        (["ax", "b", "ay"], "ay", "a", 0, ["ay", 2, 2]),
        (["ax", "a", "a "], "ax", "a", 1, ["ax", 1, 1]),  # nothing to be seen of the others
        (["a"], "a", "", 1, ["a", 1, 1]),
        (["a", "b"], "a", "a", 1, ["a", 1, 1]),  # typed to its end
    ],
)
def test_step(
    lua: Call, texts: list[str], shown: str, typed: str, steps: int, step: list[Any]
) -> None:
    code = "return { require('lcursor.complete.cycle').step(...) }"
    assert lua(code, texts, shown, typed, steps) == step


def others(host: FakeHost, request: dict[str, Any], *texts: str) -> None:
    """Answer the press of a key when it has arrived."""
    host.wait(lambda: host.messages("fim.more"))
    host.alternatives(request, list(texts))


def test_the_first_press_asks_and_further_ones_go_round(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    request = nvim.offer(FIRST, "o")
    nvim.press("<M-]>")
    assert host.messages("fim.more") == [{"id": request["id"], "typed": ""}]
    assert nvim.ghost() == FIRST
    others(host, request, SECOND, FIRST, " ", THIRD)
    seen = [nvim.shows()]
    for key in ("<M-]>", "<M-]>", "<M-[>", "<M-[>"):
        nvim.press(key)
        seen.append(nvim.ghost())
    assert seen == [SECOND, THIRD, FIRST, THIRD, SECOND]
    assert len(host.messages("fim.more")) == 1
    assert len(host.requests) == 1


def test_presses_that_come_before_the_answer_count(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    request = nvim.offer(FIRST, "o")
    nvim.press("<M-]><M-]><M-[><M-]>")
    assert nvim.ghost() == FIRST
    others(host, request, SECOND, THIRD)
    assert nvim.shows() == THIRD
    assert len(host.messages("fim.more")) == 1


def test_a_suggestion_that_grows_is_let_finish_first(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    request = nvim.insert("o")
    host.partial(request, "return")
    nvim.wait_ghost()
    nvim.press("<M-]>")
    assert host.messages("fim.more") == []
    host.done(request, FIRST)
    others(host, request, THIRD)
    assert nvim.shows() == THIRD


def test_what_was_typed_meanwhile_must_fit(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    request = nvim.offer(FIRST, "o")
    nvim.press("<M-]>")
    nvim.press("ret")
    assert nvim.ghost() == "urn x"
    others(host, request, THIRD, "return y")
    assert nvim.shows() == "urn y"
    assert "(2/2)" in nvim.grid()
    nvim.press("urn ")
    assert nvim.ghost() == "y"
    assert "(2/2)" in nvim.grid()
    assert len(host.requests) == 1


def test_the_chosen_one_is_typed_through_and_accepted(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    request = nvim.offer(FIRST, "o")
    nvim.press("<M-]>")
    others(host, request, SECOND, THIRD)
    nvim.settle()
    nvim.press("<C-Right>")
    assert nvim.lines() == ["def f(x):", "    return"]
    nvim.press(" y")
    assert "(" not in nvim.grid().split("\n")[1]  # the others no longer fit
    nvim.press("<Tab>")
    assert nvim.lines() == ["def f(x):", "    return y", "    # done"]


def test_dismiss_takes_all_away(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    request = nvim.offer(FIRST, "o")
    nvim.press("<M-]>")
    others(host, request, THIRD)
    assert nvim.shows() == THIRD
    nvim.press("<C-]>")
    assert nvim.ghost() == ""
    assert "(2/2)" not in nvim.grid()
    assert nvim.why() == "dismissed"


def test_nobody_waits_for_them_after_a_dismiss(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    request = nvim.offer(FIRST, "o")
    nvim.press("<M-]>")
    nvim.press("<C-]>")
    host.wait(lambda: request["id"] in host.cancelled)
    host.alternatives(request, [THIRD])
    assert nvim.shows() == ""


def test_there_are_no_others(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    request = nvim.offer(FIRST, "o")
    nvim.press("<M-]>")
    assert f"«{FIRST}» (…)" in nvim.grid(), "they are awaited"
    others(host, request, FIRST, "")
    assert nvim.shows() == FIRST
    assert f"«{FIRST}» (no alternative)" in nvim.grid()
    assert nvim.why() == "no_alternatives"
    nvim.press("r")
    assert nvim.ghost() == FIRST[1:]
    assert "alternative" not in nvim.grid()
    assert nvim.why() == "shown"


def test_a_host_that_dies_is_asked_again_by_the_next_press(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.offer(FIRST, "o")
    nvim.press("<M-]>")
    host.kill()
    host.wait_count(2)
    nvim.wait_lua("return require('lcursor.host.status').get().state == 'ready'")
    assert nvim.shows() == FIRST
    nvim.press("<M-]>")
    host.wait(lambda: len(host.messages("fim.more")) == 2)


def test_the_public_function_and_the_plug_maps(editor: Start, host: FakeHost) -> None:
    nvim = editor(
        DEF,
        init="""
        vim.keymap.set("i", "<C-j>", "<Plug>(lcursor-next)")
        vim.keymap.set("i", "<C-k>", "<Plug>(lcursor-prev)")
        """,
    )
    assert nvim.lua("return require('lcursor').cycle()") is False
    request = nvim.offer(FIRST, "o")
    assert nvim.lua("return vim.fn.maparg('<M-]>', 'i')") == ""
    assert nvim.lua("return require('lcursor').cycle(-1)") is True
    others(host, request, SECOND, THIRD)
    assert nvim.shows() == THIRD
    nvim.press("<C-j>")
    assert nvim.ghost() == FIRST
    nvim.press("<C-k>")
    assert nvim.ghost() == THIRD


def test_screen_with_the_count(editor: Start, host: FakeHost, golden: Golden) -> None:
    nvim = editor({"a.c": "call()\n"}, columns=60, lines=12)
    request = nvim.offer("one", "f)i")
    nvim.press("<M-]>")
    others(host, request, "two, 2", "three")
    nvim.shows()
    golden("count", nvim.grid())
