"""`:LCursor index` as a person sees it, and what the index is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lcursor.protocol import TO_LUA, check
from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot
from tests.nvim.reach import NOTES, notes

Start = Callable[..., Pilot]
A = "def alpha(x):\n    return x\n\n\ndef beta(y):\n    return alpha(y)\n"
FILES = {"a.py": A, "sub/b.py": "z = 1\n"}
STATE: dict[str, Any] = {
    "phase": "ready",
    "detail": "",
    "done": 0,
    "total": 0,
    "seconds_left": -1,
    "files": 1712,
    "chunks": 20000,
    "symbols": 9000,
    "embedded": 500,
    "embedder": "minilm",
    "embedder_note": "",
    "watching": "watching",
    "remarks": [],
    "memory_bytes": 150_000_000,
    "pid": 5,
}
REPORT: dict[str, Any] = {
    "files": 1712,
    "bytes": 30_100_000,
    "seconds": 40,
    "embed_seconds": 600,
    "languages": [{"name": "python", "files": 1700, "bytes": 29_000_000, "examples": []}],
    "ignored": [
        {"name": "git ignores it", "files": 3000, "bytes": 0, "examples": ["build/"]},
        {"name": "binary", "files": 1, "bytes": 0, "examples": []},
    ],
    "is_home": False,
    "is_begun": False,
}


def root_of(nvim: Pilot) -> str:
    """Return the project's folder."""
    return str(Path(nvim.lua("return vim.uv.cwd()")).resolve())


def say(host: FakeHost, method: str, params: dict[str, Any]) -> None:
    """Say a message that the wire knows."""
    host.send(method, check(method, params, TO_LUA))


def tell_state(nvim: Pilot, host: FakeHost, **other: Any) -> None:
    """Say what the index does, and wait until it was heard."""
    say(host, "index.state", {**STATE, "root": root_of(nvim), **other})
    nvim.settle()


def wake(nvim: Pilot, host: FakeHost) -> None:
    """Let the host run, and the index be alive."""
    nvim.insert()
    nvim.press("<Esc>")
    tell_state(nvim, host)


def report(nvim: Pilot, host: FakeHost, **other: Any) -> None:
    """Ask for the report, and let it come."""
    count = len(host.messages("index.report"))
    nvim.command("LCursor index")
    host.wait(lambda: len(host.messages("index.report")) > count)
    asked = host.messages("index.report")[-1]
    say(host, "index.reported", {"id": asked["id"], "root": root_of(nvim), **REPORT, **other})
    nvim.settle()


def test_the_report_says_what_would_be_read_and_begins(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    report(nvim, host)
    text = "\n".join(nvim.lines())
    assert nvim.lines()[0].startswith("1,712 files, 30.1 MB; about 40 s to full-text search,")
    assert "10 min more to semantic search" in text
    assert "python    1,700  29.0 MB" in text
    assert "git ignores it  3,000  build/, …" in text
    assert "not indexed · s start, q close" in "\n".join(nvim.screen.rows())
    assert host.messages("index.begin") == []
    nvim.press("s")
    (begin,) = host.wait(lambda: host.messages("index.begin"))
    assert (begin["path"], begin["is_confirmed"], begin["rebuild"]) == (root_of(nvim), False, False)
    assert nvim.lines()[0] == "def alpha(x):"
    tell_state(nvim, host, phase="reading", done=34, total=100, seconds_left=12)
    assert "34 of 100 files read, 12 s left" in nvim.screen.rows()[-1]
    nvim.command("echo 'of somebody else'")
    tell_state(nvim, host, phase="reading", done=35, total=100, seconds_left=11)
    assert nvim.screen.rows()[-1].strip() == "of somebody else"
    tell_state(nvim, host, phase="embedding", done=34, total=100, seconds_left=540)
    assert "34 of 100 chunks embedded, 9 min left" in nvim.screen.rows()[-1]
    assert nvim.lua("return vim.g.lcursor_status") == "lc index 34%"
    tell_state(nvim, host, phase="paused", done=34, total=100)
    assert nvim.lua("return vim.g.lcursor_status") == "lc index 34%"
    tell_state(nvim, host)
    assert nvim.lua("return vim.g.lcursor_status") == "lc"
    assert "ready: 1712 files" in nvim.lua("return vim.fn.execute('messages')")


def test_a_home_directory_is_asked_about_twice(editor: Start, host: FakeHost) -> None:
    ask = "vim.ui.select = function(items, opts, done) _G.asked = opts.prompt; _G.done = done end\n"
    nvim = editor(FILES, init=ask)
    report(nvim, host, is_home=True)
    assert "hardly a project" in "\n".join(nvim.lines())
    nvim.press("s")
    assert nvim.lua("return _G.asked") == f"Really index all of {root_of(nvim)}?"
    nvim.lua("_G.done(nil, 1)")
    nvim.settle()
    assert host.messages("index.begin") == []
    nvim.press("s")
    nvim.lua("_G.done(nil, 2)")
    assert host.wait(lambda: host.messages("index.begin"))[0]["is_confirmed"]


def test_the_report_of_what_is_indexed(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    wake(nvim, host)
    report(nvim, host, is_begun=True)
    text = "\n".join(nvim.lines())
    assert "ready: 1712 files, 20000 chunks, 9000 definitions" in text
    assert "semantic     500 of 20,000 chunks, with minilm" in text
    assert "process 5, 150.0 MB of memory" in text
    nvim.press("r")
    assert host.wait(lambda: host.messages("index.begin"))[0]["rebuild"]


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("git ignores it: *.log", "project/sub/x.log is not indexed: git ignores it: *.log"),
        ("", "project/sub/x.log is indexed, or will be once its project is"),
    ],
)
def test_why(editor: Start, host: FakeHost, reason: str, words: str) -> None:
    nvim = editor(FILES, init=NOTES)
    nvim.command("LCursor index why sub/x.log")
    (asked,) = host.wait(lambda: host.messages("index.why"))
    assert asked["path"] == f"{root_of(nvim)}/sub/x.log"
    said = {"id": asked["id"], "path": "sub/x.log", "root": root_of(nvim), "reason": reason}
    say(host, "index.explained", said)
    nvim.settle()
    assert notes(nvim)[-1][0] == f"lcursor: {words}"


def test_the_command_line_is_completed(editor: Start) -> None:
    nvim = editor(FILES)

    def words(line: str) -> list[str]:
        found: list[str] = nvim.lua("return vim.fn.getcompletion(..., 'cmdline')", line)
        return found

    assert words("LCursor index ") == ["status", "start", "rebuild", "why"]
    assert words("LCursor index why su") == ["sub/"]
    assert not words("LCursor index start ")


def test_entering_a_file_wakes_its_index(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    nvim.insert()
    nvim.press("<Esc>")
    host.wait(lambda: host.messages("index.enter"))
    nvim.command("edit sub/b.py")
    host.wait(lambda: host.messages("index.enter")[-1]["path"].endswith("sub/b.py"))


def test_unsaved_text_is_sent_where_there_is_an_index(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    nvim.insert("ox")
    nvim.press("<Esc>")
    assert host.messages("index.buffer") == []
    tell_state(nvim, host)
    host.wait(lambda: host.messages("index.buffer"))
    nvim.press("oy<Esc>")
    text = "\n".join(nvim.lines()) + "\n"
    nvim.command("new")
    nvim.settle()
    told = host.messages("index.buffer")[-1]
    assert told["path"].endswith("/a.py")
    assert told["is_changed"]
    assert told["text"] == text
    nvim.command("close | write")
    host.wait(lambda: host.messages("index.saved"))
    host.wait(lambda: not host.messages("index.buffer")[-1]["is_changed"])
    nvim.press("oz<Esc>")
    nvim.command("new | close")
    host.wait(lambda: host.messages("index.buffer")[-1]["is_changed"])
    nvim.press("u")
    nvim.command("new")
    host.wait(lambda: not host.messages("index.buffer")[-1]["is_changed"])


def test_unsaved_text_is_sent_before_a_search_and_not_while_one_types(
    editor: Start, host: FakeHost
) -> None:
    """All of the text is sent, which takes long where it is much."""
    nvim = editor(FILES)
    wake(nvim, host)
    nvim.press("oa new line<Esc>")
    assert host.messages("index.buffer") == []
    nvim.command("LCursor search new line")
    host.wait(lambda: host.messages("index.search"))
    order = [method for _, method, _ in host.log if method in {"index.buffer", "index.search"}]
    assert order == ["index.buffer", "index.search"]
    assert "a new line\n" in host.messages("index.buffer")[0]["text"]


@pytest.mark.parametrize(
    ("name", "line", "config"),
    [
        ("a.py", "x", {}),  # this one is told
        (".env", "x", {}),
        ("a.py", "-----BEGIN RSA PRIVATE KEY-----", {}),
        ("my.vault", "x", {"privacy": {"exclude": ["*.vault"]}}),
        ("a.py", "x", {"index": {"enabled": False}}),
    ],
)
def test_what_is_kept_back(
    editor: Start, host: FakeHost, name: str, line: str, config: dict[str, Any]
) -> None:
    nvim = editor({name: "one\n"}, config=config)
    nvim.command("LCursor status")
    nvim.press("q")
    nvim.lua("require('lcursor.host').start() require('lcursor.index').start()")
    nvim.wait_lua("return require('lcursor.host.status').get().state == 'ready'")
    tell_state(nvim, host)
    nvim.press("i" + line + "<Esc>")
    nvim.command("new")
    nvim.settle()
    told = [told for told in host.messages("index.buffer") if told["is_changed"]]
    assert bool(told) == ((name, line, config) == ("a.py", "x", {}))


def test_typing_is_sent_only_to_a_working_index(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    wake(nvim, host)
    nvim.press("oa")
    assert host.messages("index.typing") == []
    tell_state(nvim, host, phase="embedding", done=1, total=9)
    nvim.press("bcdef")
    assert len(host.messages("index.typing")) == 1


def test_a_new_host_is_informed_again(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    nvim.insert("ox")
    nvim.press("<Esc>")
    tell_state(nvim, host)
    host.wait(lambda: host.messages("index.buffer"))
    count = len(host.messages("index.enter"))
    host.kill()
    host.wait_count(2)
    host.wait(lambda: len(host.messages("index.enter")) > count)
    assert nvim.lua("return #require('lcursor.index').states()") == 0
    tell_state(nvim, host, pid=6)
    host.wait(lambda: len(host.messages("index.buffer")) == 2)


def test_remarks_are_reported_once(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=NOTES)
    wake(nvim, host)
    for _ in range(2):
        tell_state(nvim, host, remarks=["the database was damaged and is made anew"])
    told = [text for text, _ in notes(nvim) if "damaged" in str(text)]
    assert told == ["lcursor: index of project: the database was damaged and is made anew"]


def test_switched_off(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, config={"index": {"enabled": False}}, init=NOTES)
    nvim.command("LCursor search x")
    nvim.command("LCursor index")
    assert [text for text, _ in notes(nvim)] == [
        "lcursor: the index is switched off by the setting index.enabled"
    ] * 2
    assert not nvim.has_started_host()


HEALTH = """
local said = {}
for _, level in ipairs({ "ok", "info", "warn", "error" }) do
  vim.health[level] = function(text)
    table.insert(said, level .. ": " .. text)
  end
end
require("lcursor.health.features").index({ settings = require("lcursor.config").get() })
return said
"""


def test_health(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    assert nvim.lua(HEALTH)[0].startswith("info: No project is indexed in this session")
    wake(nvim, host)
    home = nvim.lua("return vim.fn.fnamemodify(..., ':~')", root_of(nvim))
    assert nvim.lua(HEALTH) == [
        f"ok: {home}: ready: 1712 files, 20000 chunks, 9000 definitions",
        "info: Semantic search with minilm: 500 of 20000 chunks",
        "info: Changes of its files are noticed at once",
        "info: Its worker is process 5, 150.0 MB of memory",
    ]
    note = "the model is not here. Run python -m lcursor models pull minilm"
    unknown = {"embedder": "", "memory_bytes": 0}
    tell_state(nvim, host, embedder_note=note, watching="polling", remarks=["mended"], **unknown)
    said = nvim.lua(HEALTH)
    assert said[1] == f"warn: No semantic search: {note}"
    assert said[2].startswith("warn: Its files are polled for changes")
    assert said[3:5] == ["info: Its worker is process 5", "warn: mended"]
    tell_state(nvim, host, phase="failed", detail="the disk is full")
    assert nvim.lua(HEALTH)[0] == f"error: {home}: failed: the disk is full"


def test_status_says_how_the_index_is(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    wake(nvim, host)
    lines = nvim.lua("return require('lcursor.commands.status').lines()")
    assert "index       ready: 1712 files, 20000 chunks, 9000 definitions" in lines


def test_the_report_waits_until_one_has_stopped_typing(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=NOTES)
    nvim.command("LCursor index")
    host.wait(lambda: host.messages("index.report"))
    nvim.press("GAnew")
    asked = host.messages("index.report")[-1]
    say(host, "index.reported", {"id": asked["id"], "root": root_of(nvim), **REPORT})
    nvim.settle()
    nvim.press("s = 1")
    assert nvim.lines()[-1].endswith("news = 1")
    assert host.messages("index.begin") == []
    assert "the report waits until you are in Normal mode" in str(notes(nvim))
    nvim.press("<Esc>")
    nvim.settle()
    assert nvim.lines()[0].startswith("1,712 files")
