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
local found = { settings = require("lcursor.config").get() }
local fact = ...
found.probe = fact ~= vim.NIL and { facts = { chat = fact }, packages = fact.packages or {} } or nil
require("lcursor.health.features").chat(found)
return said
"""


def said(nvim: Pilot, fact: dict[str, Any] | None = None) -> list[str]:
    """Return what the section says, where the doctor has said something of the chat."""
    lines: list[str] = nvim.lua(CHECK, fact)
    return lines


def test_the_models_and_where_they_are(editor: Start) -> None:
    models: dict[str, Any] = {
        "desk": {"url": "http://me:secret@192.168.1.7:8080", "model": "big"},
        "here": {"url": "http://localhost:11434"},
        "paid": {"url": "https://api.example.com/v1", "key_env": "NO_SUCH_KEY"},
        "odd": {"model": "x"},
    }
    nvim = editor(config={"chat": {"models": models, "model": "here"}})
    lines = said(nvim)
    assert [line.partition(":")[0] for line in lines[:4]] == ["warn", "ok", "error", "error"]
    assert "desk: big at http://192.168.1.7:8080: not on this machine" in lines[0]
    assert "secret" not in str(lines)
    assert "chat.models.odd has no url" in lines[2]
    assert "export NO_SUCH_KEY=" in lines[3]
    assert "info: Setting chat.model: here" in lines
    assert "info: The local server is unknown: the Python host is stopped" in lines


def test_what_the_doctor_says_of_the_local_server(editor: Start) -> None:
    nvim = editor()
    fact: dict[str, Any] = {"section": "chat", "text": "xllamacpp serves toy, 4,096 tokens"}
    assert "ok: For the local server xllamacpp serves toy, 4,096 tokens" in said(nvim, fact)
    problem = {"code": "x", "level": "warn", "message": "no engine", "hint": "pip install it"}
    lines = said(nvim, {**fact, "problem": problem})
    assert "warn: no engine -> pip install it" in lines
    broken = {**fact, "problem": problem, "packages": [{"problem": problem}]}
    assert "info: No local server for now: no engine" in said(nvim, broken)
    nvim.lua("require('lcursor').setup({ chat = { server = 'off' } })")
    assert "no engine" not in str(said(nvim, {**fact, "problem": problem}))


def test_nobody_to_ask(editor: Start) -> None:
    nvim = editor(config={"chat": {"server": "off"}})
    assert "error: chat.server is off, and chat.model names none" in " ".join(said(nvim))
    nvim.lua("require('lcursor').setup({ chat = { enabled = false } })")
    assert said(nvim) == ["info: Switched off by the setting chat.enabled"]


def test_the_server_as_the_host_knows_it(editor: Start, host: FakeHost) -> None:
    nvim = editor()
    nvim.lua("require('lcursor.host').start()")
    host.wait_count(1)
    nvim.settle()

    def answer() -> None:
        question = reach.asked(host, "server.ask")
        told = {"state": "failed", "lines": ["no memory"], "url": "", "pid": 0, "model": ""}
        host.send("server.told", {"id": question["id"], **told, "log": ""})

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
    assert "was not reported within 0.7 s" in " ".join(said(nvim))
