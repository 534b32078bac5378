"""The health check's section about edits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.fakes.control import FakeHost
from tests.nvim.editing import Desk, change
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]

CHECK = """
local said = {}
for _, name in ipairs({ "ok", "info", "warn", "error" }) do
  vim.health[name] = function(text, advice)
    table.insert(said, name .. ": " .. text .. (advice and (" -> " .. advice) or ""))
  end
end
local settings = require("lcursor.config").get()
local test = settings.edit.test
local facts = { edit = test ~= "" and { { text = "edit.test is " .. test } } or nil }
require("lcursor.health.features").edit({ settings = settings, probe = { facts = facts } })
return said
"""


def said(nvim: Pilot, **edit: Any) -> list[str]:
    """Return what the section says with some settings."""
    nvim.lua("require('lcursor').setup({ edit = ... })", edit)
    lines: list[str] = nvim.lua(CHECK)
    return lines


def test_who_writes_and_what_checks(editor: Start, host: FakeHost) -> None:
    nvim = editor()
    assert said(nvim) == [
        "info: Edits are written by: automatic",
        "info: No formatter, lint or test is run before an edit is shown",
        "info: No edit is open",
    ]
    lines = said(
        nvim,
        model="small",
        plan_model="large",
        test="CI=1 make test",
    )
    assert lines[:3] == [
        "info: Edits are written by: small",
        "info: Edits of several files are planned by: large",
        "ok: edit.test is CI=1 make test",
    ]


def test_what_is_open(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "a = 1\n"})
    desk = Desk(nvim, host)
    desk.edited(desk.ask(), [change(0, ["a = 1"], ["a = 2"])])
    assert said(nvim)[-1] == "info: Now 0 running, 1 hunk open in 1 file"
