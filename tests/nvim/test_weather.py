"""Bad weather: in all of it the text is intact, Neovim never blocks, and one message tells it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot
from tests.nvim.reach import NOTES, notes

Start = Callable[..., Pilot]

DEF = {"a.py": "def f(x):\n"}
# The pauses before a restart are seconds for people; here they need not be.
QUICK = """
local new_timer = vim.uv.new_timer
vim.uv.new_timer = function()
  local timer = new_timer()
  local own = {}
  function own:start(ms, again, fn) return timer:start(math.min(ms, 300), again, fn) end
  function own:stop() return timer:stop() end
  function own:close() return timer:close() end
  return own
end
"""


def test_killed_in_the_middle_of_a_stream(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, init=NOTES)
    request = nvim.insert("o")
    host.partial(request, "return x")
    nvim.wait_ghost()
    host.kill()
    host.wait(lambda: len(host.pids) == 2)
    nvim.wait_state()
    assert nvim.shows() == "return x"
    nvim.press("ret")
    assert nvim.ghost() == "urn x"
    nvim.press("<Tab>")
    assert nvim.lines() == ["def f(x):", "    return x"]
    assert nvim.request()["pid"] == host.pids[1]
    assert [str(text).split(". ")[1] for text, _ in notes(nvim)] == ["It is being restarted"]


def test_killed_before_it_answered(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, init=NOTES)
    nvim.insert("o")
    host.kill()
    again = nvim.request()
    assert again["pid"] == host.pids[1]
    host.done(again, "return x")
    assert nvim.wait_ghost() == "return x"
    assert len(notes(nvim)) == 1


SELFTEST = """
require("lcursor.host").selftest_argv = function(python)
  return {{ python, "-c", [[print('{{"kind": "{kind}", "text": "{text}"}}')]] }}
end
"""


def crash_twice(host: FakeHost) -> None:
    for count in (1, 2):
        host.wait_count(count)
        host.greet()
        host.kill(signal.SIGSEGV)


def test_an_engine_that_crashes_twice_and_fails_its_self_test_is_reported(
    editor: Start, host: FakeHost
) -> None:
    host.is_polite = False
    text = "crashes: SIGSEGV while reading 8 tokens"
    nvim = editor(DEF, init=NOTES + QUICK + SELFTEST.format(kind="crashed", text=text))
    nvim.keys("o")
    crash_twice(host)
    nvim.wait_state("failed")
    told = [str(text) for text, _ in notes(nvim)]
    assert f"the engine {text} (the host crashed with signal 11)" in told[-1]
    assert "Run :LCursor install" in told[-1]
    assert len(host.pids) == 2


def test_a_host_that_crashes_twice_starts_again_if_the_engine_passes_its_self_test(
    editor: Start, host: FakeHost
) -> None:
    host.is_polite = False
    nvim = editor(DEF, init=NOTES + QUICK + SELFTEST.format(kind="passed", text="passes"))
    nvim.keys("o")
    crash_twice(host)
    host.wait_count(3)
    host.greet()
    host.state("ready")
    nvim.wait_state("ready")


def test_killed_while_the_model_loads_until_it_gives_up(editor: Start, host: FakeHost) -> None:
    host.is_polite = False
    nvim = editor(DEF, init=NOTES + QUICK)
    nvim.keys("o")
    for count in range(1, 5):
        host.wait_count(count)
        host.greet()
        host.state("loading_model", "half", 0.5)
        nvim.wait_state("loading_model")
        host.kill()
    nvim.wait_state("failed")
    nvim.keys("abc")
    nvim.wait_lua("return vim.api.nvim_get_current_line() == '    abc'")
    assert len(host.pids) == 4
    assert nvim.why() == "host_failed"
    told = [str(text) for text, _ in notes(nvim)]
    assert len(told) == 2
    assert "It is being restarted" in told[0]
    assert ":LCursor restart" in told[1]
    host.is_polite = True
    nvim.keys("<Cmd>LCursor restart<CR>")
    assert nvim.request()["pid"] == host.pids[4]


def test_it_ends_by_itself_with_a_word_on_stderr(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, init=NOTES)
    nvim.insert("o")
    host.stderr("out of luck\n")
    host.exit(3)
    host.wait(lambda: len(host.pids) == 2)
    nvim.wait_state()
    assert "exit code 3" in str(notes(nvim)[0][0])
    log = Path(nvim.lua("return require('lcursor.ui.log').path()"))
    nvim.wait_lua("return vim.fn.readfile(...)[1] ~= nil", str(log))
    assert "out of luck" in log.read_text()


@pytest.mark.parametrize(
    "garbage", [b"garbage\n", b"\xc1\xc1\xc1", b"\x93\x05\xa1x\x90", b"\x00" * 100, b"\xff" * 9]
)
def test_garbage_on_the_wire(editor: Start, host: FakeHost, garbage: bytes) -> None:
    nvim = editor(DEF, init=NOTES)
    request = nvim.insert("o")
    host.partial(request, "return x")
    nvim.wait_ghost()
    host.raw(garbage)
    deadline = time.monotonic() + 10
    while len(host.pids) == 1 and time.monotonic() < deadline:
        nvim.keys("z<BS>")
        time.sleep(0.02)
    assert len(host.pids) == 2
    nvim.wait_state()
    nvim.press("<C-u>done")
    assert nvim.lines()[1].strip() == "done"
    assert len(notes(nvim)) == 1


def test_another_version_of_the_protocol(editor: Start, host: FakeHost) -> None:
    host.protocol = 999
    nvim = editor(DEF, init=NOTES)
    nvim.keys("o")
    nvim.wait_state("failed")
    nvim.keys("abc")
    nvim.wait_lua("return vim.api.nvim_get_current_line() == '    abc'")
    told = notes(nvim)
    assert len(told) == 1
    assert "protocol 999" in str(told[0][0])
    assert len(host.pids) == 1


def test_messages_that_nobody_knows(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, init=NOTES)
    request = nvim.insert("o")
    host.send_unchecked("fim.dance", {"id": 1})
    host.send_unchecked("fim.partial", {"id": request["id"]})
    host.send_unchecked("fim.partial", {**request, "text": 7})
    host.send_unchecked("fim.partial", {**request, "text": 7})
    host.send_unchecked("fim.done", {})
    host.partial({**request, "id": 99}, "STALE")
    host.partial({**request, "id": 0}, "STALE")
    assert nvim.shows() == ""
    host.done(request, "return x")
    assert nvim.wait_ghost() == "return x"
    [(told, _)] = notes(nvim)  # of the text that is a number
    assert "an error in lcursor" in str(told)


def test_an_error_in_a_message_handler_is_reported(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, init=NOTES)
    request = nvim.insert("o")
    nvim.lua("require('lcursor.host.rpc').on('fim.partial', function() error('out of luck') end)")
    host.partial(request, "return x")
    host.done(request, "return x")
    assert nvim.wait_ghost() == "return x"
    [(told, _)] = notes(nvim)
    assert "an error in lcursor" in str(told)
    assert "out of luck" in str(told)
    assert "out of luck" in Path(nvim.lua("return require('lcursor.ui.log').path()")).read_text()


def test_the_log_has_its_lines_in_order(editor: Start) -> None:
    nvim = editor(DEF)
    count = 200
    code = """
    local log = require("lcursor.ui.log")
    for n = 1, ... do log.warn("line %d", n) end
    return vim.fn.readfile(log.path())
    """
    lines = nvim.lua(code, count)
    assert [line.rpartition(" ")[2] for line in lines] == [str(n + 1) for n in range(count)]


def is_running(pid: int) -> bool:
    """Return whether a process is there and has not ended; one that ended may still be listed."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False)
    return bool(state.stdout.strip()) and not state.stdout.startswith(b"Z")


def test_leaving_waits_for_no_host_and_leaves_none(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.insert("o")
    [pid] = host.pids
    os.kill(pid, signal.SIGSTOP)  # it hears nothing
    try:
        nvim.close()
        assert is_running(pid), "Neovim has left before its host"
    finally:
        os.kill(pid, signal.SIGCONT)
    host.wait(lambda: host.messages("shutdown"))
    deadline = time.monotonic() + 20
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(pid)


def test_a_host_that_never_answers(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": ""})
    nvim.insert("i")
    nvim.press("abc<CR>def<BS><Left>x<Esc>")
    assert nvim.lines() == ["abc", "dxe"]


def test_undo_in_the_middle_of_a_stream(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    request = nvim.insert("o")
    host.partial(request, "return x")
    nvim.wait_ghost()
    nvim.keys("<Cmd>silent undo<CR>")
    host.done(request, "return x + 1")
    assert nvim.shows() == ""
    assert nvim.lines() == ["def f(x):"]


def test_reload_in_the_middle_of_a_stream(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    request = nvim.insert("o")
    host.partial(request, "return x")
    nvim.wait_ghost()
    nvim.keys("<Cmd>silent edit!<CR>")
    host.done(request, "return x + 1")
    assert nvim.shows() == ""
    assert nvim.lines() == ["def f(x):"]
    nvim.keys("<Esc>o")
    host.done(nvim.request("\n    "), "pass")
    assert nvim.wait_ghost() == "pass"


@pytest.mark.parametrize("command", ["bwipeout!", "bdelete!", "enew!"])
def test_the_buffer_goes_in_the_middle_of_a_stream(
    editor: Start, host: FakeHost, command: str
) -> None:
    nvim = editor(DEF, init=NOTES)
    request = nvim.insert("o")
    host.partial(request, "return x")
    nvim.wait_ghost()
    nvim.keys(f"<Cmd>{command}<CR>")
    host.partial(request, "return x + 1")
    host.done(request, "return x + 2")
    assert nvim.shows() == ""
    assert nvim.lines() == [""]
    assert request["id"] in host.cancelled
    assert notes(nvim) == []
    assert nvim.lua("return vim.v.errmsg") == ""


def test_the_text_changes_from_outside_in_the_middle_of_a_stream(
    editor: Start, host: FakeHost
) -> None:
    nvim = editor(DEF)
    request = nvim.insert("o")
    nvim.lua("vim.api.nvim_buf_set_lines(0, 0, 0, false, { 'import os', '' })")
    host.done(request, "return x")
    assert nvim.shows() == ""
    again = nvim.request()
    assert again["prefix"].startswith("import os")


@pytest.fixture
def hosts() -> Iterator[list[FakeHost]]:
    """Two hosts of their own."""
    with FakeHost() as one, FakeHost() as two:
        yield [one, two]


def test_two_neovims_at_once(editor: Start, hosts: list[FakeHost]) -> None:
    one, two = (editor(DEF, host=fake) for fake in hosts)
    first, second = one.insert("o"), two.insert("o")
    hosts[1].done(second, "second")
    hosts[0].done(first, "first")
    assert (one.wait_ghost(), two.wait_ghost()) == ("first", "second")
    hosts[0].kill()
    hosts[0].wait(lambda: len(hosts[0].pids) == 2)
    two.press("<Tab>")
    assert two.lines()[1] == "    second"
    one.press("<Tab>")
    assert one.lines()[1] == "    first"


# Counts the bytes that are read from buffers.
READ = """
_G.bytes = 0
for _, name in ipairs({ "nvim_buf_get_lines", "nvim_buf_get_text" }) do
  local get = vim.api[name]
  vim.api[name] = function(...)
    local lines = get(...)
    _G.bytes = _G.bytes + #table.concat(lines, "\\n")
    return lines
  end
end
"""


@pytest.mark.parametrize("kind", ["10 MB file", "1 MB line", "1 MB line beside", "long lines"])
def test_the_work_is_bounded(editor: Start, host: FakeHost, kind: str) -> None:
    """A key reads the window that is sent, and a few times the line that the cursor is in."""
    unlimited = """
    local gate = require("lcursor.complete.gate")
    gate.max_file_bytes, gate.max_line_bytes = 2 ^ 30, 2 ^ 30
    """
    text, keys = {
        "10 MB file": ("x = 1  # a line of code\n" * 436_000, "218000GA"),
        "1 MB line": ("x" * (1 << 20) + "\n", "A"),
        "1 MB line beside": (("y" * (1 << 20) + "\nz = 1\n") * 9, "8GA"),
        "long lines": (("y" * 300 + "\n") * 9_000, "4000GA"),
    }[kind]
    config = {"completion": {"filetypes": {"text": True}}}
    nvim = editor({"a.txt": text}, config=config, init=unlimited)
    request = nvim.insert(keys)
    assert len(request["prefix"].encode()) <= 16 * 1024
    assert len(request["suffix"].encode()) <= 8 * 1024
    nvim.lua(READ)
    keys = "abcdefghijklmnopqrstuvwxyz"
    for key in keys:
        nvim.press(key)
    assert len(host.requests) > len(keys)
    most = 8 << 20 if kind == "1 MB line" else 96 << 10
    assert nvim.lua("return _G.bytes") / len(keys) < most


def test_large_files_are_left_alone_by_default(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "x = 1  # a line of code\n" * 436_000})
    nvim.press("A")
    nvim.wait_why("big_file")
    assert host.requests == []


def test_long_lines_are_left_alone_by_default(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "x" * (1 << 20) + "\n"})
    nvim.press("A")
    nvim.wait_why("long_line")
    assert host.requests == []
