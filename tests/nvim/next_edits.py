"""Next edits in a Neovim whose host is the fake one, which answers with the real predictors."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from lcursor.host.next_edits import NextEdits
from lcursor.protocol.next_edit import NextEditPredict
from tests.fakes.control import FakeHost
from tests.nvim import edits
from tests.nvim.pilot import Pilot

RENAME = """\
def fetch(url, timeout):
    session = connect(url)
    session.wait(timeout)

    return session.get(url, timeout=timeout)
"""
CONFIG: dict[str, Any] = {
    "completion": {"auto_trigger": False},
    "next_edit": {"mode": "draw"},
    "index": {"enabled": False},
}
SET_DELAYS = """
local delays = require("lcursor.next_edit.delays")
for name, ms in pairs(...) do
  assert(delays[name])
  delays[name] = ms
end
"""
# For an init.lua. Where nothing may come before a pause, a test sets the delay to `LONG_MS`.
SHORT = """
local delays = require("lcursor.next_edit.delays")
delays.rest, delays.pause, delays.move, delays.glance = 40, 40, 40, 0
delays.again, delays.wide, delays.stand = 20, 30000, 30
"""
LONG_MS = 30_000
CHECKED = """
local gate = require("lcursor.next_edit.gate")
return not vim.iter(vim.api.nvim_list_bufs()):any(function(buf)
  return gate.buffer_block_reason(buf, function() end) == "checking"
end)
"""
HOST = """
local is_ready = require("lcursor.host.status").get().state == "ready"
return is_ready or require("lcursor.host").info().job == nil
"""
DRAWN = """
local space = vim.api.nvim_create_namespace("lcursor.next_edit")
local found = {}
for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true })) do
  local text = ""
  for _, line in ipairs({ mark[4].virt_text or {}, unpack(mark[4].virt_lines or {}) }) do
    for _, chunk in ipairs(line) do
      text = text .. chunk[1]
    end
  end
  table.insert(found, { mark[2], vim.trim(text) })
end
return found
"""


def predicted(number: int, proposal: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer of the host with one proposal."""
    answer = {"id": number, "has_names": False, "reason": ""}
    return {**answer, "proposals": [dict(proposal)]}


def wait_for_git(nvim: Pilot) -> None:
    """Wait until git has answered about all open files, and this has been noticed."""
    nvim.wait_lua(CHECKED)
    nvim.settle()


class Typist:
    """Types into a Neovim, and answers its requests when it is told to."""

    def __init__(self, nvim: Pilot, host: FakeHost) -> None:
        self.nvim, self.host = nvim, host
        self._answered = {False: itertools.count(), True: itertools.count()}

    def requests(self) -> list[dict[str, Any]]:
        """Return all requests so far, when all keys have been handled."""
        self.nvim.settle()
        self.nvim.wait_lua(HOST)  # all messages have arrived, if it was started
        self.nvim.settle()
        return self._sent()

    def _sent(self) -> list[dict[str, Any]]:
        return [one for one in self.host.messages("next_edit.predict") if one["edits"]]

    def answer(self, *, is_wide: bool = False) -> dict[str, Any]:
        """Wait for the next request, or the next one about other files, and answer it."""

        def sent_such() -> list[dict[str, Any]]:
            return [one for one in self._sent() if one["is_wide"] == is_wide]

        index = next(self._answered[is_wide])
        self.host.wait(lambda: len(sent_such()) > index)
        request = sent_such()[index]
        sent = threading.Event()

        def send(method: str, params: Mapping[str, Any]) -> None:
            self.host.send(method, dict(params))
            sent.set()

        service = NextEdits(send)
        service.predict(cast(NextEditPredict, request))
        assert sent.wait(10)
        service.close()
        self.nvim.settle()
        return request

    def review(self) -> list[str]:
        """Press the key that shows all as hunks, propose these, and return the names of files."""
        self.nvim.press("<S-Tab>")
        self.host.wait(lambda: len(self.host.messages("edit.propose")) > 0)
        request = self.host.messages("edit.propose")[-1]
        texts = {one["path"]: one for one in request["buffers"]}
        files = []
        for one in request["files"]:
            path, changes = one["path"], sorted(one["changes"], key=lambda it: it["first_row"])
            sent = texts.get(path) or {
                "text": Path(path).read_text().removesuffix("\n"),
                "tick": -1,
            }
            old = sent["text"].split("\n")
            files.append(edits.file(path, old, old, changes=changes, tick=sent["tick"]))
        answer = edits.proposed(files, title=request["title"], id=request["id"])
        self.host.send("edit.proposed", answer)
        self.nvim.settle()
        return [Path(file["path"]).name for file in files]

    def delay(self, **ms: int) -> None:
        """Set delays of next edits. Those that have begun stay as they are."""
        self.nvim.lua(SET_DELAYS, ms)

    def drawn(self) -> list[tuple[int, str]]:
        """Return what is drawn: rows, and their virtual text."""
        self.nvim.settle()
        return [(row, text) for row, text in self.nvim.lua(DRAWN)]

    def texts(self) -> list[str]:
        """Return the virtual texts that are drawn, without the notes about keys."""
        return [text for _, text in self.drawn() if text and not re.fullmatch("⇥( . of .)?", text)]

    def wait_drawn(self) -> list[str]:
        """Wait until something is drawn, and return its texts."""
        self.nvim.wait_lua(f"return #(function() {DRAWN} end)() > 0")
        return self.texts()

    def has_key(self, lhs: str = "<Tab>", mode: str = "n") -> bool:
        """Return whether a key is ours."""
        code = "return vim.startswith(vim.fn.maparg(..., false, true).desc or '', 'lcursor: ')"
        return bool(self.nvim.lua(code.replace("...", f"'{lhs}', '{mode}'")))
