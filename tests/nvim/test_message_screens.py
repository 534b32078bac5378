"""Each message is complete on the screen at 80 and 60 columns, and waits for no key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lcursor.drive.editor import ROOT, Editor
from lcursor.drive.screen import Screen

WIDTHS = (80, 60)
STRING = r'"((?:[^"\\\n]|\\.)*)"'
MESSAGE = re.compile(rf"notify\.(?:info|warn)\(\s*\(?{STRING}\)?(?:,\s*{STRING})?")
SENTENCE = re.compile(rf"^  [a-z_]+ = {STRING},$", re.M)
VALUES = {"s": "a_name_of_something.py", "d": "12", "q": '"text"'}
LONG = ("no answer came from the server at http://127.0.0.1:8012/v1 within 30 s", "Try it again")


def messages() -> list[tuple[str, str]]:
    """Return the messages in the Lua sources and what to do about each, with invented values."""
    found = [LONG]
    for path in sorted((ROOT / "lua").rglob("*.lua")):
        found += MESSAGE.findall(path.read_text())
    found += [(text, "") for text in SENTENCE.findall(_why())]
    return sorted({(_filled(text), _filled(hint)) for text, hint in found if " " in text})


def _why() -> str:
    return (ROOT / "lua/lcursor/complete/why.lua").read_text()


def _filled(text: str) -> str:
    text = re.sub(r"%[-.\d]*([sdqf])", lambda match: VALUES.get(match[1], "1.5"), text)
    return text.replace("%%", "%").replace('\\"', '"')


@pytest.fixture(scope="module", params=WIDTHS)
def nvim(
    request: pytest.FixtureRequest, neovim: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Editor]:
    """A Neovim of each width."""
    home = tmp_path_factory.mktemp("home")
    init = 'vim.o.fillchars = "eob: "\nvim.o.shortmess = vim.o.shortmess .. "I"\n'
    with Editor(neovim, home, init=init, columns=request.param, lines=24) as editor:
        yield editor


def is_shown(text: str) -> Callable[[Screen], bool]:
    """Return whether a text is on a screen, in the command line or in the window above it."""
    wanted = re.sub(r"\s+", "", text)

    def check(screen: Screen) -> bool:
        return wanted in re.sub(r"[\s│]+", "", "".join(screen.rows()))

    return check


def test_there_are_many() -> None:
    assert len(messages()) > 80


def test_each_is_complete_and_waits_for_no_key(nvim: Editor) -> None:
    cut_off = []
    for text, hint in messages():
        nvim.lua("require('lcursor.ui.notify').info(...)", text, hint)
        nvim.command("redraw")
        mode: dict[str, Any] = nvim.client.request("nvim_get_mode")
        assert not mode["blocking"], text
        if not nvim.screen.wait(is_shown(f"lcursor: {text}{'. ' if hint else ''}{hint}"), 2):
            cut_off.append((text, nvim.screen.rows()[-6:]))
    assert cut_off == []


def test_the_window_of_a_long_message_goes_with_the_next_message(nvim: Editor) -> None:
    windows = "return #vim.api.nvim_list_wins()"
    nvim.lua("require('lcursor.ui.notify').info(...)", *LONG)
    nvim.wait_lua(f"{windows} == 2")
    nvim.lua("require('lcursor.ui.notify').info('short')")
    nvim.wait_lua(f"{windows} == 1")
