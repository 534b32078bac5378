"""Golden screens of every window and hint, 80 and 60 columns wide, with nothing cut off.

`--update-screens` rewrites `tests/screens/{name}.{columns}.txt`; look at the difference before you
keep it. Of ghost text there are more in test_screens.py, of hunks in test_edit_draw.py.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from lcursor.fim import outcomes
from tests.fakes.control import FakeHost
from tests.nvim import edits, reach
from tests.nvim.editing import Desk
from tests.nvim.editing import row as edit_row
from tests.nvim.pilot import Pilot
from tests.nvim.talk import ITEM, Talk, message
from tests.nvim.test_chat_list import answer as list_chats
from tests.nvim.test_chat_list import row as chat_row
from tests.nvim.test_chat_list import server as tell_server
from tests.nvim.test_chat_usage import bill, items
from tests.nvim.test_edit_draw import NEW, OLD
from tests.nvim.test_edit_reach_ways import message as tell_message
from tests.nvim.test_index import report, tell_state, wake
from tests.nvim.test_index_search import answer as found
from tests.nvim.test_index_search import hit
from tests.unit.fim.test_learning import row as outcome

Start = Callable[..., Pilot]
Golden = Callable[[str, str], None]
Play = Callable[[Pilot, FakeHost], None]

WIDTHS = (80, 60)
CODE = "def alpha(x):\n    return x\n\n\ndef beta(y):\n    return alpha(y)\n"
FILES = {"a.py": CODE, "b.py": "b = 1\n\nc = 2\n", "old.py": "".join(f"{x}\n" for x in OLD)}
INIT = """
vim.o.ruler, vim.o.showcmd = false, false
vim.fn.localtime = os.time
"""
SECRET = {**ITEM, "key": "b", "name": ".env", "is_left_out": True, "note": "a secret"}
LONG_NAME = "lcursor/index/a_module_with_a_long_name.py"
FAILED = "1 failed: test_alpha_adds_three_numbers, see the log"
CHECKS = [
    {"name": "parses", "is_ok": True, "text": ""},
    {"name": "test", "is_ok": False, "text": FAILED},
]
PROPOSE = "require('lcursor.edit').start() require('lcursor.edit.proposals').propose(...)"
SCENES: dict[str, tuple[Play, tuple[str, ...]]] = {}


def scene(*texts: str) -> Callable[[Play], Play]:
    """Add a scene: what leads to a screen, and texts that must be complete on it."""

    def add(play: Play) -> Play:
        SCENES[play.__name__.replace("_", "-")] = (play, texts)
        return play

    return add


@scene("x, y", "return total", "(2/2)")
def ghost(nvim: Pilot, host: FakeHost) -> None:
    """A second suggestion of several lines, one of them longer than the window."""
    asked = nvim.offer("total = x", "jo")
    nvim.press("<M-]>")
    host.wait(lambda: host.messages("fim.more"))
    words = ", ".join(f"argument{number}" for number in range(9))
    text = f"total = sum([x, y, {words}])\n    check({words})\n    return total"
    host.alternatives(asked, [text])


def hunks(nvim: Pilot, **other: Any) -> None:
    """Propose changes of a file and go to the last of them."""
    nvim.command("edit old.py")
    path = nvim.home / "project/old.py"
    nvim.lua(PROPOSE, edits.proposed([edits.file(path, OLD, NEW, **other)]))
    nvim.press("G[h")
    drawn(nvim)


def drawn(nvim: Pilot) -> None:
    """Wait until all hunks are drawn."""
    nvim.wait_lua("return require('lcursor.edit.render').is_done()")
    nvim.settle()


@scene(FAILED, "3/3 +1 -2", "ghh accept")
def edit_hunks(nvim: Pilot, host: FakeHost) -> None:
    """Open hunks, the cursor at the last one."""
    hunks(nvim, checks=CHECKS)


@scene("✓ parses", "2/2", "gHH reject", "ghd compare")
def edit_hunk_accepted(nvim: Pilot, host: FakeHost) -> None:
    """One of three hunks accepted."""
    hunks(nvim, checks=CHECKS[:1])
    nvim.press("ghhgg]h")
    drawn(nvim)


@scene("2 accepted, 1 rejected. Undo: :LCursor edit undo")
def edit_decided(nvim: Pilot, host: FakeHost) -> None:
    """All hunks decided."""
    hunks(nvim)
    nvim.press("gHHgghhghG")


@scene("conflict: the original lines were modified")
def edit_conflict(nvim: Pilot, host: FakeHost) -> None:
    """A line of a hunk was changed."""
    hunks(nvim)
    nvim.press("5GA  # my own version of it<Esc>")
    drawn(nvim)


@scene("; ghd closes the view", "return alpha(1, 2, len(sys.argv))")
def edit_side_by_side(nvim: Pilot, host: FakeHost) -> None:
    """The file next to what it would be."""
    hunks(nvim)
    nvim.press("ghd")
    drawn(nvim)


@scene("the file is deleted by", ":LCursor hunk accept all", "✗ parses: line 2, no bracket")
def edit_deleted(nvim: Pilot, host: FakeHost) -> None:
    """A file that would be deleted, with a check that failed."""
    nvim.command("edit b.py")
    checks = [{"name": "parses", "is_ok": False, "text": "line 2, no bracket"}]
    lines = FILES["b.py"].splitlines()
    other = {"kind": "delete", "checks": checks}
    file = edits.file(nvim.home / "project/b.py", lines, [], **other)
    nvim.lua(PROPOSE, edits.proposed([file]))
    drawn(nvim)


@scene("+2 -2 | + def alpha(x, y, z): | do it", "lcursor: 3 open hunks")
def edit_quickfix(nvim: Pilot, host: FakeHost) -> None:
    """All open hunks."""
    hunks(nvim)
    nvim.command("LCursor hunk list")
    drawn(nvim)


@scene("2 edits of this project", "2 h", "1 open", "u undo, r redo", "q close", "and 1 more")
def edit_list(nvim: Pilot, host: FakeHost) -> None:
    """The edits of a project."""
    desk = Desk(nvim, host)
    nvim.command("LCursor edit list")
    paths = [str(desk.project / f"{name}.py") for name in "abcd"]
    title = "Rename alpha to beta wherever it is called"
    rows = [
        edit_row("t2", title, paths=paths[:1], state="open", open=1, at_s=time.time()),
        edit_row("t1", "Make it faster", paths=paths, at_s=time.time() - 7300),
    ]
    desk.turns(rows, undo="t1")


@scene("It was off by one.", ":w !git commit -F - commits with it, q closes")
def commit(nvim: Pilot, host: FakeHost) -> None:
    """A commit message."""
    nvim.command("LCursor commit_message")
    tell_message(Desk(nvim, host))


@scene("edit a.py:1-2", "make it", "<CR> send, <Up> history, <C-c> cancel")
def edit_prompt(nvim: Pilot, host: FakeHost) -> None:
    """The window for an instruction."""
    nvim.command("1,2LCEdit")
    nvim.press("make it")


@scene("writing function alpha, 1 of 2 lines, 4 s left", "<C-c> stops")
def edit_running(nvim: Pilot, host: FakeHost) -> None:
    """An edit that writes, with the host's words for its progress."""
    desk = Desk(nvim, host)
    asked = desk.ask("1LCEdit do it")
    desk.started(asked, 0, 2)
    desk.progress(asked["id"], "writing", done=1, total=2, seconds_left=3.2)
    desk.delta(asked["id"], ["def alpha(x):", "    return x"])


@scene("2 edits run here", "say what it does: writing function alpha, 1 of 2 lines, 4 s left")
def edit_running_two(nvim: Pilot, host: FakeHost) -> None:
    """Two edits of the same lines."""
    desk = Desk(nvim, host)
    one = desk.ask("1,2LCEdit say what it does")
    two = desk.ask("1,2LCEdit rename x", 2)
    for asked in (one, two):
        desk.started(asked, 0, 2)
    desk.progress(one["id"], "writing", done=1, total=2, seconds_left=3.2)
    desk.delta(one["id"], ["def alpha(x):"])
    desk.progress(two["id"], "writing", done=1, total=1)
    desk.delta(two["id"], ["def alpha(n):"])


@scene("Where does this go in b.py?", "There are several such places.", "<CR> choose, q none")
def edit_choose(nvim: Pilot, host: FakeHost) -> None:
    """A question where something goes."""
    desk = Desk(nvim, host)
    nvim.lua("vim.fn.setreg('\"', '```python\\nb = 2\\n```\\n')")
    nvim.command("LCursor edit apply")
    asked = desk.heard("edit.apply")
    choices = [
        {
            "path": str(desk.project / "b.py"),
            "name": "b.py",
            "first_row": first,
            "last_row": first + 1,
            "lines": ["b = 2"],
            "why": why,
        }
        for first, why in [(0, "the same name"), (2, "")]
    ]
    text = "Where does this go in b.py? There are several such places."
    desk.say("edit.question", {"id": asked["id"], "text": text, "choices": choices})
    nvim.settle()


@scene("## You", "Ask here; <CR> sends, g? lists the keys", "0 of 32k")
def chat_empty(nvim: Pilot, host: FakeHost) -> None:
    """A new chat."""
    Talk(nvim, host).open()


@scene("reading 25%", "left out; a secret")
def chat_reading(nvim: Pilot, host: FakeHost) -> None:
    """The model reads a question with its context."""
    talk = Talk(nvim, host).open()
    number = talk.ask("why is alpha so?", [ITEM, SECRET])
    talk.progress(number, "reading", done=512, total=2048, cached=100, seconds_left=3.2)


@scene("context: 2 items", "thinking", "def alpha(x):")
def chat_answered(nvim: Pilot, host: FakeHost) -> None:
    """An answer with context and reasoning, both folded."""
    talk = Talk(nvim, host).open()
    number = talk.ask("why is alpha so?", [ITEM, SECRET])
    talk.delta(number, "", "Let me think\nabout it.\n")
    talk.delta(number, "\nBecause **it** is.\n\n```python\ndef alpha(x):\n    return x\n```\n")
    talk.done(number, title="why is alpha so?")


@scene("failed", "incomplete", "the server went away while it answered. Try again", "Because")
def chat_failed(nvim: Pilot, host: FakeHost) -> None:
    """An answer that broke off."""
    talk = Talk(nvim, host).open()
    number = talk.ask("why?")
    talk.delta(number, "Because")
    talk.fail(number, "the server went away while it answered", "Try again")
    talk.done(number, reason="failed", prompt_tokens=0)


@scene("## Summary", "edited: <CR> sends it", "edited here only: <CR> saves it")
def chat_edited(nvim: Pilot, host: FakeHost) -> None:
    """A chat with a summary, and with a question and an answer that the user has edited."""
    said = [
        message(1, "They talked about alpha.", role="summary"),
        message(2, "why?", role="user"),
        message(3, "so", role="assistant", branch=2, branches=3),
    ]
    Talk(nvim, host).open(messages=said)
    for text in ("why?", "so"):
        nvim.press(f"gg/^{text}$<CR>A indeed<Esc>")
    nvim.command("nohlsearch")


@scene("+ a.py:1-2", "+ b.py:1-3")
def chat_attached(nvim: Pilot, host: FakeHost) -> None:
    """A draft with attachments."""
    reach.chat(nvim, host, command="1,2LCChat")
    nvim.press("<C-w>p")
    nvim.command("edit b.py | 1,3LCChat")


@scene("Stop answer", "Show keys")
def chat_help(nvim: Pilot, host: FakeHost) -> None:
    """The keys of a chat, over a chat with branches."""
    said = [message(1, "why?"), message(2, "so", branch=2, branches=3)]
    Talk(nvim, host).open(messages=said)
    nvim.press("g?")


@scene("1,340 of 8,000 tokens, 17%", "its name says so", "dd drop", "gf jump", "q close")
def chat_context(nvim: Pilot, host: FakeHost) -> None:
    """What would be sent."""
    reach.chat(nvim, host)
    reach.draft(nvim, "Why @file:a.py:5-6 ?")
    nvim.press("gb")
    bill(nvim, host)


@scene("1 sent, 1,234 tokens; 1 left out", "<CR> jump", "<C-q> quickfix", "its name says so")
def chat_sources(nvim: Pilot, host: FakeHost) -> None:
    """What was sent with a question."""
    asked = message(1, "why?", items=items(nvim))
    Talk(nvim, host).open(messages=[asked, message(2, "so")])
    nvim.press("gs")


@scene("3 chats of this project", "r rename", "a all projects", "q close", "Rename alpha to beta")
def chat_list(nvim: Pilot, host: FakeHost) -> None:
    """The stored chats."""
    nvim.command("LCursor chat list")
    rows = [
        chat_row(nvim, "k1", "Why is it slow", 125, preview="Why is it slow"),
        chat_row(nvim, "k2", "Rename", 7300, messages=12, preview="Rename alpha\nto beta"),
        chat_row(nvim, "k3", "How are requests that failed before retried after a while", 300000),
    ]
    list_chats(nvim, host, rows, note="1 cannot be read")


@scene(
    "2 found in 3 ms", "34 of 100 files are indexed", "def beta(y):", "changed since it was indexed"
)
def search(nvim: Pilot, host: FakeHost) -> None:
    """The picker with results, the second of them chosen."""
    nvim.command("LCursor search")
    nvim.settle()
    nvim.keys("beta")
    text = "def alpha(x):\n    return x\n"
    old = hit(nvim, LONG_NAME, first_row=0, end_row=2, text=text, is_stale=True)
    found(nvim, host, "beta", [old, hit(nvim)], "34 of 100 files are indexed")
    nvim.screen.wait(lambda screen: any("1 def alpha(x):" in row for row in screen.rows()), 20)


@scene("search: words, or @name")
def search_empty(nvim: Pilot, host: FakeHost) -> None:
    """The picker before a search."""
    nvim.command("LCursor search")
    nvim.settle()


@scene("a.py|5-6 col 1| def beta(y):", "the index is still being made")
def search_quickfix(nvim: Pilot, host: FakeHost) -> None:
    """The results of a search with words, in the quickfix list."""
    nvim.command("LCursor search beta")
    found(nvim, host, "beta", [hit(nvim), hit(nvim, LONG_NAME)], "the index is still being made")


@scene("not indexed", "s start", "q close", "build/, …", "why a file is left out.")
def index_report(nvim: Pilot, host: FakeHost) -> None:
    """What indexing would read."""
    report(nvim, host)


@scene("indexed", "r rebuild", "noticed at once")
def index_state(nvim: Pilot, host: FakeHost) -> None:
    """What the index holds."""
    wake(nvim, host)
    report(nvim, host, is_begun=True)


@scene("34 of 100 files read, 12 s left")
def index_progress(nvim: Pilot, host: FakeHost) -> None:
    """An index that is being made."""
    report(nvim, host)
    nvim.press("s")
    host.wait(lambda: host.messages("index.begin"))
    tell_state(nvim, host, phase="reading", done=34, total=100, seconds_left=12)


@scene("Suggestions shown since", "accepted", "threshold", "through")
def stats(nvim: Pilot, host: FakeHost) -> None:
    """The acceptance statistics."""
    nvim.command("LCursor stats")
    host.wait(lambda: host.messages("stats.request"))
    rows = [outcome(filetype="lua", outcome="rejected"), *[outcome()] * 3]
    thresholds = {"": 0.4, "lua": 0.52}
    host.send("stats", dict(outcomes.stats(rows, thresholds, "/home/x/o.sqlite3")))
    nvim.settle()


@scene("The language server of this buffer", "in an ordinary window", "detail", "lcursor")
def status(nvim: Pilot, host: FakeHost) -> None:
    """The state of everything."""
    nvim.lua(
        "require('lcursor.host.status').set('failed', ...)",
        "The language server of this buffer cannot be shown in an ordinary window, which is long.",
    )
    nvim.command("LCursor status")


@scene("server   is running", "/run/user/1000/lcursor/qwen2.5-coder-7b.sock", "process  4711")
def server(nvim: Pilot, host: FakeHost) -> None:
    """The state of the local chat server."""
    nvim.command("LCursor server")
    url = "unix:///run/user/1000/lcursor/qwen2.5-coder-7b.sock"
    log = "/home/me/.local/state/lcursor/server-qwen2.5-coder-7b.log"
    tell_server(nvim, host, 1, model="qwen2.5-coder-7b", url=url, log=log, pid=4711)


@scene("no answer came from the server at http://127.0.0.1:8012/v1 within 30 s. Try it again")
def message_long(nvim: Pilot, host: FakeHost) -> None:
    """A message that the command line cuts off, and so a window shows for a while."""
    text = "no answer came from the server at http://127.0.0.1:8012/v1 within 30 s"
    nvim.lua("require('lcursor.ui.notify').info(...)", text, "Try it again")
    nvim.wait_lua("return #vim.api.nvim_list_wins() == 2")


def squeezed(text: str) -> str:
    """Return a text without blanks and without the frames of windows."""
    return re.sub(r"[\s│─╭╮╰╯]+", "", text)


def windows(nvim: Pilot) -> list[str]:
    """Return the text of the screen, and of the part of it that each window takes."""
    rows = nvim.screen.cells()
    areas = nvim.lua(
        """
        return vim.tbl_map(function(win)
          local info = vim.fn.getwininfo(win)[1]
          return { info.winrow - 2, info.winrow + info.height + 1, info.wincol - 1, info.width }
        end, vim.api.nvim_tabpage_list_wins(0))
        """
    )
    parts = [(0, len(rows), 0, len(rows[0]))]
    parts += [(max(top, 0), end, left, width + 1) for top, end, left, width in areas]
    return [
        squeezed("".join(text for row in rows[top:end] for text, _ in row[left : left + width]))
        for top, end, left, width in parts
    ]


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("name", SCENES)
def test_a_window(editor: Start, host: FakeHost, golden: Golden, name: str, columns: int) -> None:
    play, texts = SCENES[name]
    nvim = editor(FILES, init=INIT, columns=columns, lines=24)
    play(nvim, host)
    nvim.settle()
    golden(f"{name}.{columns}", re.sub("[⠀-⣿]", "*", nvim.grid()))
    shown = windows(nvim)
    for text in texts:
        assert any(squeezed(text) in window for window in shown), text
