"""A project of a stranger in a real Neovim: its files are opened, typed into and asked about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fakes.control import FakeHost
from tests.hostile import tricks
from tests.hostile.conftest import Enter
from tests.hostile.world import World, leaks
from tests.nvim.pilot import Pilot

Edit = Callable[[World], Pilot]
CHOSEN = {
    "all tricks": tricks.TOGETHER,
    **{each.name: (each,) for each in tricks.ALONE if each.name.startswith("a missing object")},
}
FILES = (
    "main.py",
    "new.py",
    "lib/util.py",
    "docs/notes.md",
    "bare/notes.py",
    "nested/a.py",
    "sub/a.py",
)
ANSWERED = """
for _, buf in ipairs(vim.api.nvim_list_bufs()) do
  if vim.bo[buf].buflisted then
    local reason = require("lcursor.editor.privacy").block_reason(buf, {}, function() end)
    if reason == "checking" then return false end
  end
end
return true
"""


@pytest.fixture
def edit(neovim: Path, tmp_path: Path, host: FakeHost) -> Iterator[Edit]:
    """Open a project in a Neovim of its user."""
    with ExitStack() as stack:

        def opened(world: World) -> Pilot:
            names = [world.project / name for name in FILES]
            pilot = Pilot(
                neovim,
                tmp_path / "editor",
                host,
                files=tuple(name for name in names if name.exists()),
                cwd=world.project,
                env=world.env,
            )
            stack.enter_context(pilot)
            return pilot

        yield opened


@pytest.mark.parametrize("chosen", CHOSEN)
def test_nothing_runs(enter: Enter, edit: Edit, host: FakeHost, chosen: str) -> None:
    world = enter(*CHOSEN[chosen])
    world.write("new.py", "new = 1\n")
    world.shell("unset ${!GIT_*}; git check-ignore -q -- new.py")
    assert world.ran() != []
    world.forget()
    nvim = edit(world)
    nvim.press("ix")
    nvim.press("<Esc>")
    nvim.command("silent! argdo doautocmd InsertEnter")
    nvim.wait_lua(ANSWERED)
    nvim.command("LCursor why")
    nvim.press("Ay = gamma()")
    nvim.press("<Esc>")
    nvim.wait_lua(ANSWERED)
    assert world.ran() == []
    assert leaks(str(host.requests)) == []
