"""Golden screens of a run, 80 and 60 columns wide; `--update-screens` rewrites them."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.fakes.control import FakeHost
from tests.nvim import edits
from tests.nvim.agents import Agent
from tests.nvim.pilot import Pilot
from tests.nvim.test_window_screens import FILES, INIT, squeezed, windows

Start = Callable[..., Pilot]
Golden = Callable[[str, str], None]
Play = Callable[[Agent], None]

LONG = "lcursor/index/a_module_with_a_long_name.py:1-40"


def work(agent: Agent) -> None:
    """Do some steps."""
    agent.start("LCursor agent make the tests pass")
    agent.delta("I run the tests first.", is_new=True)
    failed = {"state": "failed", "result": "exit 1", "seconds": 3.2}
    agent.step(1, "command", "pytest -x", "E assert 1 == 2\n1 failed", **failed)
    agent.delta("The sum is off by one.", is_new=True)
    agent.step(2, "read", LONG, "1 x\n2 y", result="40 lines", seconds=0.1)


def running(agent: Agent) -> None:
    """Some steps, and text that comes."""
    work(agent)
    agent.step(3, "edit", "a.py", "ok", result="1 line changed", seconds=0.1)
    agent.step(4, "command", "pytest -x", state="running")
    agent.status(steps=4, seconds=95.0, added=1, removed=1)


def asks(agent: Agent) -> None:
    """A question, the cursor on it."""
    work(agent)
    why = "it leaves the sandbox: pip.test"
    agent.asks(3, "pip install --upgrade pytest", why, is_bound=True)
    agent.nvim.press("]w")


def planned(agent: Agent) -> None:
    """A plan that waits."""
    agent.start("LCursor agent plan the cache", policy="plan")
    agent.step(1, "search", "where results are stored", "a.py:1", seconds=0.1)
    agent.planned("1. Add a table to `store.py`\n2. Read it in `load.py`\n3. Test both")
    agent.status("waiting", steps=1, seconds=9.0)
    agent.nvim.press("]w")


def done(agent: Agent) -> None:
    """The end, without a sandbox."""
    agent.start("LCursor agent make the tests pass", sandbox="none")
    agent.step(1, "edit", "a.py", "ok", result="1 line changed", seconds=0.1)
    agent.step(2, "finish", "", "1 passed", seconds=2.5)
    agent.status(added=1, removed=1, seconds=47.0)
    agent.done(is_checked=True, message="The sum was off by one.", paths=["/a.py"], turn="t")
    path = agent.nvim.home / "project/a.py"
    old = path.read_text().splitlines()
    guarded = edits.file(path.with_name(".envrc"), [], ["x"], kind="create", is_guarded=True)
    agent.changed(edits.file(path, old, [old[0], "    return x + 1", *old[2:]]), guarded)
    agent.nvim.command("mode")  # clears the message


SCENES: dict[str, tuple[Play, tuple[str, ...]]] = {
    "running": (running, ("exit 1", "a.py", "step 4/40", "running")),
    "asks": (asks, ("1 waiting", "pip install --upgrade pytest", "pip.test", "gE change")),
    "planned": (planned, ("## Plan", "3. Test both", "<CR> approve, as edited", "gx reject")),
    "done": (
        done,
        (
            "no sandbox",
            "tests passed",
            "+1 −1 lines",
            "gf go to the file",
            "(new; runs code by itself",
        ),
    ),
}


@pytest.mark.parametrize("columns", [80, 60])
@pytest.mark.parametrize("name", SCENES)
def test_screen(
    editor: Start,
    host: FakeHost,
    golden: Golden,
    name: str,
    columns: int,
) -> None:
    play, texts = SCENES[name]
    nvim = editor(FILES, init=INIT, columns=columns, lines=26)
    play(Agent(nvim, host))
    nvim.settle()
    golden(f"agent-{name}.{columns}", re.sub("[⠀-⣿]", "*", nvim.grid()))
    shown = windows(nvim)
    for text in texts:
        assert any(squeezed(text) in window for window in shown), text
