"""Which places the host is told to read before a key comes, when it is stopped, and which never."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]

LINES = "".join(f"line_{n} = {n}\n" for n in range(60))
FILES = {"a.py": "first = 1\n", "b.py": "one = 1\ntwo = 2\n", "c.py": LINES, ".env": "KEY=1\n"}


def names(host: FakeHost) -> list[str]:
    """Return the files that were told, in their order."""
    return [each["name"] for each in host.messages("fim.warm")]


# What waits for a rest runs when the test says so.
RESTS = """
local new_timer = vim.uv.new_timer
_G.waiting = {}
vim.uv.new_timer = function()
  local timer, own = new_timer(), {}
  function own:start(ms, again, fn)
    if ms == 250 then
      _G.waiting[own] = fn
    else
      timer:start(ms, again, fn)
    end
  end
  function own:stop()
    _G.waiting[own] = nil
    timer:stop()
  end
  function own:close() timer:close() end
  function own:is_closing() return timer:is_closing() end
  return own
end
"""


def rest(nvim: Pilot) -> int:
    """Let a rest come to its end; return how many waited for it."""
    nvim.settle()
    count: int = nvim.lua(
        """
        local all = vim.tbl_values(_G.waiting)
        _G.waiting = {}
        for _, fn in ipairs(all) do fn() end
        return #all
        """
    )
    nvim.settle()
    return count


def begun(editor: Start) -> Pilot:
    """Return a Neovim whose host runs and whose files were edited; nothing waits for a rest."""
    nvim = editor(FILES, init=RESTS)
    nvim.insert("A")
    nvim.press("<Esc>")
    for name in (".env", "c.py", "b.py", "a.py"):
        nvim.command(f"edit {name}")
        nvim.press("xu")
    rest(nvim)
    return nvim


def in_the_middle(editor: Start, host: FakeHost) -> tuple[Pilot, int]:
    """Return a Neovim whose cursor rests in a long file, and the id of what was told of it."""
    nvim = begun(editor)
    nvim.command("edit +20 c.py")
    assert rest(nvim) == 1
    assert names(host)[-1] == "c.py"
    number: int = host.messages("fim.warm")[-1]["id"]
    assert number not in host.cancelled
    return nvim, number


def test_an_entered_buffer_is_read_to_the_end_of_the_line(editor: Start, host: FakeHost) -> None:
    nvim = begun(editor)
    nvim.command("edit +2 b.py")
    assert rest(nvim) > 0
    told = host.messages("fim.warm")[-1]
    assert (told["prefix"], told["suffix"], told["first_row"]) == ("one = 1\ntwo = 2", "\n", 0)
    assert told["path"].endswith("/b.py")


def test_a_host_that_became_ready_is_informed(editor: Start, host: FakeHost) -> None:
    nvim = begun(editor)
    count = len(names(host))
    host.kill()
    host.wait_count(2)
    nvim.wait_state()
    assert rest(nvim) > 0
    assert len(names(host)) == count + 1


def test_a_position_that_is_passed_through_is_not_sent(editor: Start, host: FakeHost) -> None:
    nvim = begun(editor)
    before = len(names(host))
    nvim.lua("vim.cmd.edit('b.py') vim.cmd.edit('.env') vim.cmd.edit('a.py')")
    assert rest(nvim) > 0
    assert set(names(host)[before:]) == {"a.py"}


def test_what_must_not_be_read_is_not_sent(editor: Start, host: FakeHost) -> None:
    nvim = begun(editor)
    before = len(names(host))
    nvim.command("edit .env")
    assert rest(nvim) > 0
    assert names(host)[before:] == []


def test_where_nothing_shall_be_read_ahead(editor: Start, host: FakeHost) -> None:
    nvim = begun(editor)
    nvim.command("edit b.py")
    nvim.lua("vim.b.lcursor = { completion = { auto_trigger = false } }")
    rest(nvim)
    before = len(names(host))
    nvim.command("edit a.py")
    rest(nvim)
    nvim.command("edit b.py")
    assert rest(nvim) > 0
    assert names(host)[before:] == ["a.py"]


def test_a_file_that_is_only_read_is_not_sent(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=RESTS)
    nvim.insert("A")
    nvim.press("<Esc>")
    rest(nvim)
    before = len(names(host))
    nvim.press("x")
    nvim.command("edit b.py")
    nvim.press("j")
    rest(nvim)
    assert names(host)[before:] == []
    nvim.press("x")
    assert rest(nvim) > 0
    assert names(host)[before:] == ["b.py"]


def test_reading_ahead_can_be_switched_off(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=RESTS, config={"completion": {"read_ahead": False}})
    nvim.insert("A")
    nvim.press("<Esc>x")
    assert rest(nvim) > 0
    assert names(host) == []


def test_ids_are_those_of_the_requests(editor: Start, host: FakeHost) -> None:
    nvim, number = in_the_middle(editor, host)
    assert number > host.requests[-1]["id"]
    assert nvim.insert("A")["id"] > number


@pytest.mark.parametrize("keys", ["j", "G", "dd", "x", "v", ":", "y", ":edit a.py<CR>"])
def test_a_key_stops_it(editor: Start, host: FakeHost, keys: str) -> None:
    nvim, number = in_the_middle(editor, host)
    if keys in ("v", ":", "y"):
        nvim.keys(keys)
        host.wait(lambda: number in host.cancelled)
        nvim.keys("<Esc>")
    else:
        nvim.press(keys)
        assert number in host.cancelled
    before = len(host.messages("fim.warm"))
    assert rest(nvim) == 1  # and it waits for the next rest
    assert len(host.messages("fim.warm")) == before + 1
    assert host.cancelled.count(number) <= 1


@pytest.mark.parametrize("keys", ["A", "i", "o", "O", "a"])
def test_insert_mode_does_not_stop_it(editor: Start, host: FakeHost, keys: str) -> None:
    nvim, number = in_the_middle(editor, host)
    nvim.press(keys)
    assert number not in host.cancelled
    assert rest(nvim) == 0


def test_the_same_position_is_sent_once(editor: Start, host: FakeHost) -> None:
    nvim, number = in_the_middle(editor, host)
    before = len(names(host))
    nvim.press("lllh")
    nvim.lua("vim.cmd.doautocmd('BufEnter')")
    assert rest(nvim) == 0
    assert len(names(host)) == before
    assert number not in host.cancelled


def test_nothing_is_sent_in_another_mode(editor: Start, host: FakeHost) -> None:
    nvim, _ = in_the_middle(editor, host)
    before = len(names(host))
    nvim.press("jv")
    assert rest(nvim) == 0
    nvim.press("<Esc>i")
    assert rest(nvim) == 0
    assert len(names(host)) == before


def test_what_a_request_was_answered_about_is_read(editor: Start, host: FakeHost) -> None:
    nvim = begun(editor)
    before = len(names(host))
    host.done(nvim.insert("A"), "")
    nvim.settle()
    nvim.press("<Esc>")
    assert rest(nvim) == 0
    assert len(names(host)) == before
