"""Where ghost text is drawn: windows, inlay hints, virtual columns, diff mode; and folds."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]


def rows(nvim: Pilot) -> list[str]:
    """Return the screen without empty rows."""
    nvim.command("redraw!")
    return [row for row in nvim.screen.rows() if row not in ("", "~")]


def test_it_is_drawn_in_the_current_window_only(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "one\ntwo\n"}, init="vim.o.laststatus = 0\n")
    nvim.command("vsplit")
    nvim.offer("ghost\nbelow", "A")
    left, right = rows(nvim)[0].split("│")
    assert (left.rstrip(), right) == ("oneghost", "one")
    assert [row.split("│")[1] for row in rows(nvim)[1:2]] == ["two"]
    nvim.press("<Esc>")
    nvim.command("wincmd w")
    nvim.offer("other", "A")
    left, right = rows(nvim)[0].split("│")
    assert (left.rstrip(), right) == ("one", "oneother")


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("gravity", ["true", "false"])
def test_it_is_left_of_an_inlay_hint(
    editor: Start, host: FakeHost, is_first: bool, gravity: str
) -> None:
    nvim = editor({"a.py": "one\n"})
    hint = f"""
    local ns = vim.api.nvim_create_namespace("hints")
    vim.api.nvim_buf_set_extmark(0, ns, 0, 3, {{
      virt_text = {{ {{ ": int" }} }}, virt_text_pos = "inline", right_gravity = {gravity},
    }})
    """
    if is_first:
        nvim.lua(hint)
    nvim.offer(" = 1", "A")
    if not is_first:
        nvim.lua(hint)
    assert rows(nvim)[0] == "one = 1: int"


@pytest.mark.parametrize("value", ["all", "insert"])
def test_it_is_at_the_cursor_with_virtualedit(editor: Start, host: FakeHost, value: str) -> None:
    nvim = editor({"a.py": "one\n"})
    nvim.command(f"set virtualedit={value}")
    host.reply = lambda request: "ghost text" if request["prefix"] == "one" else ""
    nvim.keys("A<Right><Right><Right>")
    nvim.wait_ghost()
    assert rows(nvim)[0] == "one   ghost text"
    nvim.press("<C-Right>")
    assert rows(nvim)[0] == "one   ghost text"
    nvim.press("<Tab>")
    assert nvim.lines() == ["one   ghost text"]
    nvim.press("!<Esc>u")
    assert nvim.lines() == ["one   ghost text"]
    nvim.press("uu")
    assert nvim.lines() == ["one"]


@pytest.mark.parametrize("opens", [True, False])
def test_accepted_text_opens_its_fold(editor: Start, host: FakeHost, opens: bool) -> None:
    """Also those of lines above the cursor, in which Neovim itself opens none."""
    nvim = editor({"a.py": "\n"})
    nvim.command("set foldmethod=indent foldlevel=0")
    nvim.command(f"set foldopen={'insert' if opens else 'search'}")
    nvim.offer("if a:\n    b = 1\n    c = 1\nd = 1", "A")
    nvim.press("<Tab>")
    assert nvim.lines() == ["if a:", "    b = 1", "    c = 1", "d = 1"]
    assert nvim.lua("return vim.fn.foldclosed(2)") == (-1 if opens else 2)


def test_lines_below_are_not_drawn_in_a_diff(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "one\ntwo\n", "b.py": "one\nzwei\n"}, init="vim.o.laststatus = 0\n")
    nvim.command("vert diffsplit b.py")
    nvim.offer("ghost\nbelow\nlast", "A")
    first, second = (row.split("│") for row in rows(nvim)[:2])
    assert first[0].rstrip().endswith("oneghost (2 more lines)")
    assert (second[0].strip(), second[1].strip()) == ("zwei", "two")
    nvim.press("<Tab>")
    assert nvim.lines() == ["oneghost", "below", "last", "zwei"]


def test_a_sign_shows_what_the_first_suggestion_waits_for(editor: Start, host: FakeHost) -> None:
    host.is_polite = False
    pause = "require('lcursor.complete.sign').pause_ms = {}\n"
    nvim = editor({"a.py": "one\n"}, init=pause.format(0))

    def wait(words: str) -> None:
        found = re.compile(words)
        assert nvim.screen.wait(lambda screen: bool(found.search("\n".join(screen.rows()))), 20)

    nvim.keys("A")
    wait("one  lcursor is starting, ")
    host.wait(lambda: host.messages("hello"))
    host.greet()
    host.state("loading_model", "qwen")
    wait("one  lcursor is loading the model, ")
    nvim.lua("local now = vim.uv.hrtime; vim.uv.hrtime = function() return now() + 90e9 end")
    wait("one  lcursor is loading the model, [0-9]{2} s")
    nvim.press("<Esc>A")
    wait("one  lcursor is loading the model, [0-9] s")
    nvim.lua(pause.format(100_000))
    nvim.press("x")
    assert rows(nvim)[0] == "onex", "a key removes it"
    nvim.lua(pause.format(0))
    host.state("ready")
    request = nvim.request("onex")
    wait("onex  lcursor is reading this file, ")
    host.done(request, "")
    nvim.settle()
    assert rows(nvim)[0] == "onex"
    nvim.press("y")
    nvim.request("onexy")
    nvim.settle()
    assert rows(nvim)[0] == "onexy", "later ones come soon"


PAUSE = "require('lcursor.complete.sign').pause_ms = 0\n"
TRIGGER = "vim.keymap.set('i', '<C-l>', '<Plug>(lcursor-trigger)')\n"
BY_HAND = {"completion": {"auto_trigger": False}}


def begin_loading(nvim: Pilot, host: FakeHost, keys: str) -> None:
    """Press keys, which start the host, and report that the model is loaded."""
    nvim.keys(keys)
    host.wait(lambda: host.messages("hello"))
    host.greet()
    host.state("loading_model", "qwen")
    nvim.wait_state("loading_model")


def test_the_sign_ends_where_nothing_is_requested(editor: Start, host: FakeHost) -> None:
    host.is_polite = False
    nvim = editor({"a.py": "one two\n"}, init=PAUSE)
    begin_loading(nvim, host, "wix")
    assert nvim.screen.wait(lambda screen: "lcursor is loading" in screen.rows()[0], 20)
    host.state("ready")
    nvim.wait_why("midline")
    nvim.settle()
    assert rows(nvim)[0] == "one xtwo"
    assert host.requests == []


@pytest.mark.parametrize(("keys", "kinds"), [("", ["manual"]), ("x", []), ("<Esc>a", [])])
def test_a_trigger_while_the_model_loads_applies_when_it_is_loaded(
    editor: Start, host: FakeHost, keys: str, kinds: list[str]
) -> None:
    host.is_polite = False
    nvim = editor({"a.py": "one\n"}, init=TRIGGER, config=BY_HAND)
    begin_loading(nvim, host, "A<C-l>")
    nvim.press(keys)
    host.state("ready")
    nvim.wait_state("ready")
    nvim.settle()
    assert [request["trigger"] for request in host.requests] == kinds


@pytest.mark.parametrize("is_by_hand", [False, True])
def test_a_request_for_which_the_model_is_loaded_again_is_answered(
    editor: Start, host: FakeHost, is_by_hand: bool
) -> None:
    nvim = editor({"a.py": "one\n"}, init=TRIGGER, config=BY_HAND if is_by_hand else {})
    nvim.keys("A")
    nvim.wait_state("ready")
    if is_by_hand:
        nvim.keys("<C-l>")
    request = nvim.request()
    for state in ("loading_model", "ready"):
        host.state(state)
        nvim.wait_state(state)
        nvim.settle()
    host.done(request, " more")
    nvim.settle()
    assert nvim.shows() == " more"
    assert (len(host.requests), host.cancelled) == (1, [])
