"""Which buffers the host is told to read before a key comes, and which never."""

from __future__ import annotations

from collections.abc import Callable

from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]

FILES = {"a.py": "first = 1\n", "b.py": "one = 1\ntwo = 2\n", ".env": "KEY=1\n"}


def names(host: FakeHost) -> list[str]:
    """Return the files that were told, in their order."""
    return [each["name"] for each in host.messages("fim.warm")]


# What waits for a rest runs when the test says so.
RESTS = """
local defer = vim.defer_fn
_G.waiting = {}
vim.defer_fn = function(fn, ms)
  if ms == 300 then
    table.insert(_G.waiting, fn)
  else
    return defer(fn, ms)
  end
end
"""


def rest(nvim: Pilot) -> int:
    """Let a rest come to its end; return how many waited for it."""
    count: int = nvim.lua(
        """
        local all = _G.waiting
        _G.waiting = {}
        for _, fn in ipairs(all) do fn() end
        return #all
        """
    )
    nvim.settle()
    return count


def begun(editor: Start) -> Pilot:
    """Return a Neovim in Normal mode whose host runs, and nothing waits for a rest."""
    nvim = editor(FILES, init=RESTS)
    nvim.insert("A")
    nvim.press("<Esc>")
    rest(nvim)
    return nvim


def test_a_buffer_that_is_entered_is_told_with_its_cursor(editor: Start, host: FakeHost) -> None:
    nvim = begun(editor)
    nvim.command("edit +2 b.py")
    assert rest(nvim) > 0
    told = host.messages("fim.warm")[-1]
    assert (told["prefix"], told["suffix"], told["first_row"]) == ("one = 1\n", "two = 2\n", 0)
    assert told["path"].endswith("/b.py")


def test_who_passes_through_is_not_told(editor: Start, host: FakeHost) -> None:
    nvim = begun(editor)
    before = len(names(host))
    nvim.lua("vim.cmd.edit('b.py') vim.cmd.edit('.env') vim.cmd.edit('a.py')")
    assert rest(nvim) > 0
    assert set(names(host)[before:]) == {"a.py"}


def test_what_must_not_be_read_is_not_told(editor: Start, host: FakeHost) -> None:
    nvim = begun(editor)
    before = len(names(host))
    nvim.command("edit .env")
    assert rest(nvim) > 0
    assert names(host)[before:] == []


def test_where_nothing_comes_by_itself_nothing_is_told(editor: Start, host: FakeHost) -> None:
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
