"""What is seen: streaming by extension, typing through a ghost, hiding at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lcursor.drive.screen import Screen
from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]

DEF = {"a.py": "def f(x):\n"}


def marks(editor: Pilot) -> list[Any]:
    """Return the ghost's extmarks: [id, row, col]."""
    found: list[Any] = editor.lua(
        "return vim.api.nvim_buf_get_extmarks("
        "0, vim.api.nvim_create_namespace('lcursor.ghost'), 0, -1, {})"
    )
    return found


def test_the_request_says_all_that_the_model_needs(editor: Start, host: FakeHost) -> None:
    nvim = editor({"src/a.py": "import os\n\ndef f(x):\nrest\n", ".hg/x": ""})
    nvim.keys("jj")
    nvim.keys("A<CR>")
    request = nvim.request("\n    ")
    assert request["prefix"] == "import os\n\ndef f(x):\n    "
    assert request["suffix"] == "\nrest\n"
    assert (request["row"], request["col"], request["first_row"]) == (3, 4, 0)
    assert (request["name"], request["repo"]) == ("src/a.py", "project")
    assert request["path"].endswith("/project/src/a.py")
    assert (request["filetype"], request["trigger"]) == ("python", "auto")
    assert request["single_line"] is False
    assert request["tick"] == nvim.lua("return vim.b.changedtick")


def test_a_ghost_grows_and_never_changes(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    request = nvim.insert("o")
    host.partial(request, "return")
    nvim.wait_ghost(lambda text: text == "return")
    first = marks(nvim)
    host.partial(request, "return x + 1\n    # more")
    nvim.wait_ghost(lambda text: text == "return x + 1\n    # more")
    host.partial(request, "retreat")
    host.done(request, "something else")
    assert nvim.shows() == "return x + 1\n    # more"
    assert marks(nvim) == first
    assert nvim.count() == 1


def test_a_final_text_that_is_shorter_leaves_what_was_seen(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    request = nvim.insert("o")
    host.partial(request, "return x  # the")
    host.done(request, "return x", "trimmed")
    assert nvim.shows() == "return x  # the"


def test_typing_what_it_says_keeps_it_without_a_request(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.offer("return x\n    pass", "o")
    number = marks(nvim)[0][0]
    for typed, rest in [("r", "eturn x"), ("eturn", " x"), (" ", "x")]:
        nvim.press(typed)
        assert nvim.ghost().splitlines()[0].strip() == rest.strip()
        assert [mark[0] for mark in marks(nvim)] == [number]
    assert nvim.ghost() == "x\n    pass"
    assert nvim.count() == 1


def test_no_frame_between_two_typed_letters_is_without_the_ghost(
    editor: Start, host: FakeHost
) -> None:
    nvim = editor(DEF)
    nvim.offer("return x", "o")
    missing: list[str] = []

    def look(screen: Screen) -> bool:
        text = screen.text_of("LCursorGhost")
        typed = screen.rows()[1].strip()
        if not typed.endswith(text) or typed != "return x":
            missing.append(typed)
        return bool(missing) or text == " x"

    nvim.keys("return")
    assert nvim.screen.wait(look, 5)
    assert missing == []


def test_typing_through_a_newline_with_autoindent(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, init="vim.o.autoindent = true\n")
    nvim.offer("y = x\n    return y", "o")
    nvim.press("y = x")
    assert nvim.ghost() == "    return y"
    nvim.press("<CR>")
    assert nvim.lines() == ["def f(x):", "    y = x", "    "]
    assert nvim.ghost() == "return y"
    nvim.press("ret")
    assert nvim.ghost() == "urn y"
    assert nvim.count() == 1


def test_all_of_it_typed_asks_again(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.offer("pass", "o")
    nvim.press("pas")
    assert nvim.count() == 1
    nvim.press("s")
    assert nvim.count() == 2
    assert host.requests[1]["prefix"].endswith("    pass")


def test_typing_ahead_of_the_stream_keeps_the_request(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    request = nvim.insert("o")
    host.partial(request, "ret")
    nvim.wait_ghost()
    nvim.press("retu")
    assert nvim.ghost() == ""
    host.partial(request, "return x")
    nvim.wait_ghost(lambda text: text == "rn x")
    assert nvim.count() == 1
    assert host.cancelled == []


def test_typing_ahead_of_a_stream_that_goes_elsewhere(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    request = nvim.insert("o")
    host.partial(request, "ret")
    nvim.wait_ghost()
    nvim.press("retu")
    host.partial(request, "retry()")
    again = nvim.request()
    assert again["prefix"].endswith("    retu")
    assert host.cancelled == [request["id"]]
    assert nvim.shows() == ""


def test_other_text_hides_it_and_asks_again(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.offer("return x", "o")
    nvim.keys("z")
    again = nvim.request()
    assert nvim.shows() == ""
    assert again["prefix"].endswith("    z")


@pytest.mark.parametrize(
    "keys", ["<Left>", "<BS>", "<Up>", "<Esc>", "<C-c>", "<C-o>", "<Del>", "<C-u>", "<C-w>", "("]
)
def test_it_is_hidden_in_the_frame_of_the_key(editor: Start, host: FakeHost, keys: str) -> None:
    nvim = editor({"a.py": "first\nfoo bar\nlast\n"})
    nvim.offer("return x", "jA")
    frames: list[bool] = []

    def gone(screen: Screen) -> bool:
        frames.append(screen.has("LCursorGhost"))
        return not frames[-1]

    if keys == "<C-c>":  # as input it interrupts a Neovim that is busy at that moment
        nvim.lua("vim.api.nvim_feedkeys(vim.keycode(...), 't', false)", keys)
    else:
        nvim.keys(keys)
    assert nvim.screen.wait(gone, 5)
    # One frame with it was there before the key; the next one must be without.
    assert frames.count(True) <= 1
    assert nvim.shows() == ""
    assert marks(nvim) == []


def test_a_change_elsewhere_in_the_line_hides_it(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "one\ntwo\n"})
    nvim.offer("return x")
    nvim.lua("vim.api.nvim_buf_set_text(0, 0, 0, 0, 1, { 'O' })")
    nvim.settle()
    assert nvim.ghost() == ""


def test_a_change_right_of_the_cursor_hides_it(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "print();\n"})
    nvim.command("call cursor(1, 7)")
    nvim.offer("x", "i")
    nvim.keys("<Del>")
    assert nvim.request()["suffix"] == ";\n"
    assert nvim.shows() == ""


def test_a_running_request_is_cancelled_when_nobody_waits(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    request = nvim.insert("o")
    nvim.press("<Esc>")
    assert host.cancelled == [request["id"]]
    host.done(request, "return x")
    assert nvim.shows() == ""
    second = nvim.insert("A")
    nvim.command("edit! other.py")
    nvim.settle()
    assert second["id"] in host.cancelled


def test_a_newer_request_supersedes_an_older_one(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    first = nvim.insert("o")
    nvim.keys("r")
    second = nvim.request()
    host.done(first, "STALE")
    host.partial(second, "eturn")
    nvim.wait_ghost(lambda text: text == "eturn")
    assert second["id"] > first["id"]
    assert first["id"] in host.cancelled


def test_nothing_is_shown_when_there_is_nothing_to_see(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    request = nvim.insert("o")
    host.partial(request, "\n")
    host.done(request, "\n   \n")
    assert nvim.shows() == ""
    assert nvim.lua("return vim.fn.maparg('<Tab>', 'i', false, true).buffer") != 1
    assert nvim.why() == "empty_end"
    assert nvim.count() == 1


def test_debounce_waits_for_a_pause(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": ""}, config={"completion": {"debounce_ms": 120}})
    nvim.keys("i")
    nvim.type("abcdef", pace_ms=5)
    request = nvim.request()
    assert request["prefix"] == "abcdef"
    assert nvim.count() == 1


def test_moving_the_cursor_asks_at_the_new_place(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "one\ntwo\n"})
    nvim.offer("x", "A")
    nvim.keys("<Down>")
    assert nvim.request()["row"] == 1


def test_a_single_line_request_shows_one_line(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "print()\n"})
    nvim.command("call cursor(1, 7)")
    request = nvim.insert("i")
    assert request["single_line"] is True
    host.done(request, "1, 2\n3")
    nvim.wait_ghost()
    assert nvim.shows() == "1, 2"
    assert nvim.screen.rows()[0] == "print(1, 2)"


def test_a_long_stream_with_typing_in_between(editor: Start, host: FakeHost) -> None:
    """Every prefix of the text arrives and is typed in a random-looking but fixed order."""
    nvim = editor({"a.py": ""})
    whole = "for i in range(10):\n    print(i)\n    total += i"
    request = nvim.insert("i")
    typed = 0
    for end in range(3, len(whole) + 1, 3):
        host.partial(request, whole[:end])
        host.sync()
        if end % 2 and whole[typed] not in "\n ":
            nvim.press("<lt>" if whole[typed] == "<" else whole[typed])
            typed += 1
        elif whole[typed] == " ":
            nvim.press(" ")
            typed += 1
    host.done(request, whole)
    assert "".join(nvim.shows().split()) == "".join(whole[typed:].split())
    assert nvim.count() == 1
