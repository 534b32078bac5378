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


def test_a_buffer_that_is_entered_is_told_with_its_cursor(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    nvim.insert("A")
    nvim.press("<Esc>")
    nvim.command("edit +2 b.py")
    host.wait(lambda: "b.py" in names(host))
    told = host.messages("fim.warm")[-1]
    assert (told["prefix"], told["suffix"], told["first_row"]) == ("one = 1\n", "two = 2\n", 0)
    assert told["path"].endswith("/b.py")


def test_who_passes_through_is_not_told(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    nvim.insert("A")
    nvim.press("<Esc>")
    before = len(names(host))
    nvim.lua("vim.cmd.edit('b.py') vim.cmd.edit('.env') vim.cmd.edit('a.py')")
    host.wait(lambda: len(names(host)) > before)
    assert set(names(host)[before:]) == {"a.py"}


def test_what_must_not_be_read_is_not_told(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    nvim.insert("A")
    nvim.press("<Esc>")
    nvim.command("edit .env")
    nvim.command("sleep 500m")
    nvim.command("edit b.py")
    host.wait(lambda: "b.py" in names(host))
    assert ".env" not in names(host)
    nvim.lua("vim.b.lcursor = { completion = { auto_trigger = false } }")
    count = len(names(host))
    nvim.command("edit a.py")
    host.wait(lambda: len(names(host)) > count)
    nvim.command("edit b.py")
    nvim.command("sleep 500m")
    assert names(host)[-1] == "a.py"
