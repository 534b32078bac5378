"""The health check's section about the chat."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tests.fakes.control import FakeHost
from tests.nvim import reach
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]

CHECK = """
local said = {}
for _, name in ipairs({ "ok", "info", "warn", "error" }) do
  vim.health[name] = function(text, advice)
    local more = type(advice) == "table" and table.concat(advice, "; ") or advice
    table.insert(said, name .. ": " .. text .. (more and (" -> " .. more) or ""))
  end
end
local found = { settings = require("lcursor.config").get(), probe = { facts = ... } }
require("lcursor.health.features").chat(found)
return said
"""


def said(nvim: Pilot, **facts: list[dict[str, Any]]) -> list[str]:
    """Return what the section says, with facts of the doctor by section."""
    lines: list[str] = nvim.lua(CHECK, facts)
    return lines


def test_what_the_doctor_says(editor: Start) -> None:
    nvim = editor(config={"chat": {"model": "here"}})
    problem = {"code": "x", "level": "warn", "message": "no engine", "hint": "pip install it"}
    lines = said(
        nvim,
        chat_model=[
            {"text": "here: big at http://localhost", "is_local": True},
            {"text": "desk: big at http://192.168.1.7", "is_local": False},
            {"text": "paid", "problem": {**problem, "level": "error", "message": "no key"}},
        ],
        chat=[{"text": "no local server is possible", "problem": problem}],
    )
    assert lines[:6] == [
        "info: Setting chat.model: here",
        "ok: here: big at http://localhost",
        "warn: desk: big at http://192.168.1.7",
        "error: no key -> pip install it",
        "warn: no engine -> pip install it",
        "ok: no local server is possible",
    ]
    assert "info: The local server is unknown: the Python host is stopped" in lines
    broken = [{"problem": {**problem, "level": "error"}}]
    lines = said(nvim, chat=[{"text": "none", "problem": problem}], package=broken)
    assert "info: no engine" in lines, "a missing package may be the reason"


def test_nobody_to_ask(editor: Start) -> None:
    nvim = editor(config={"chat": {"server": "off"}})
    assert "local server is unknown" not in " ".join(said(nvim))


def test_the_server_as_the_host_knows_it(editor: Start, host: FakeHost) -> None:
    nvim = editor()
    nvim.lua("require('lcursor.host').start()")
    host.wait_count(1)
    nvim.settle()

    def answer() -> None:
        question = reach.asked(host, "server.ask")
        told = {"state": "failed", "lines": ["no memory"], "url": "", "pid": 0, "model": ""}
        host.send("server.status", {"id": question["id"], **told, "log": ""})

    thread = threading.Thread(target=answer)
    thread.start()
    lines = said(nvim)
    thread.join()
    (line,) = [line for line in lines if line.startswith("error")]
    assert "no memory" in line
    assert ":LCursor server log" in line


def test_a_host_that_does_not_say_is_no_error(editor: Start, host: FakeHost) -> None:
    nvim = editor()
    nvim.lua("require('lcursor.host').start()")
    host.wait_count(1)
    nvim.settle()
    nvim.lua("require('lcursor.health.features').server_ms = 100")
    assert "was not reported within 0.1 s" in " ".join(said(nvim))
