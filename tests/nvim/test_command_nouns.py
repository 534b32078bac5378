"""The nouns and verbs of `:LCursor`: completion and unknown words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lcursor.fim import outcomes
from tests.fakes.control import FakeHost
from tests.nvim import reach
from tests.nvim.editing import Desk, change
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]

FILES = {"a.py": "def alpha(x):\n    return x\n\n\ndef beta(y):\n    return y\n"}
CHANGES = [
    change(1, ["    return x"], ["    return x + 1"]),
    change(5, ["    return y"], ["    return y + 1"]),
]
GENERAL = [
    "start", "tutor", "status", "why", "next", "search", "enable", "disable", "toggle",
    "stats", "commit_message", "install", "restart", "log", "health",
]  # fmt: skip
VERBS = {
    "suggestion": ["trigger", "accept", "dismiss", "next", "prev"],
    "hunk": ["accept", "reject", "next", "prev", "list", "diff"],
    "edit": ["ask", "plan", "fix", "apply", "undo", "redo", "list", "stop"],
    "chat": [
        "ask", "new", "last", "list", "context", "sources", "model", "compact", "expand", "rename",
        "export", "delete", "stop",
    ],
    "agent": [
        "start", "plan", "fix", "say", "model", "open", "list", "compare", "fork", "queue",
        "resume", "escalate", "stop",
    ],
    "mcp": ["list", "import"],
    "index": ["status", "start", "rebuild", "why"],
    "server": ["status", "start", "stop", "restart", "log"],
}  # fmt: skip
COMPLETIONS: dict[str, list[str]] = {
    "LCursor ": [*VERBS, *GENERAL],
    "LCursor s": ["suggestion", "server", "start", "status", "search", "stats"],
    "LCursor toggle ": ["buffer"],
    "LCursor toggle buffer ": [],
    "LCursor why ": [],
    "LCursor nonsense ": [],
    **{f"LCursor {noun} ": verbs for noun, verbs in VERBS.items()},
    "LCursor nonsense accept ": [],
    "LCursor hunk re": ["reject"],
    "LCursor hunk dance ": [],
    "silent 1,2LCursor hunk accept ": ["file", "all"],
    "LCursor hunk accept a": ["all"],
    "LCursor hunk accept all ": [],
    "LCursor suggestion accept ": ["line", "word"],
    "LCursor chat list ": ["all"],
    "LCursor chat ask /e": ["/explain"],
    "LCursor chat ask why /e": [],
    "LCursor edit plan why @di": ["@diagnostics", "@diff", "@dir:"],
    "LCursor edit apply ": ['"', "0", "a"],
    "LCursor chat export a": ["a.py"],
    "LCursor index why a": ["a.py"],
    "LCursor chat model ": [],
    "LCursor agent start po": ["policy=plan", "policy=ask", "policy=auto", "policy=full"],
    "LCursor agent make it p": [],
    "LCu hunk re": ["reject"],
    "silent LCurs edit und": ["undo"],
    "LCursor enable | LCursor hunk re": ["reject"],
    "LCursor enable|LCursor hunk re": ["reject"],
    "LCursor chat ask a | LCursor hunk re": [],
}


def test_completion_at_every_level(editor: Start) -> None:
    nvim = editor(FILES)
    nvim.press("yy")
    nvim.press('"ayy')
    complete = "return vim.fn.getcompletion(..., 'cmdline')"
    assert {line: nvim.lua(complete, line) for line in COMPLETIONS} == COMPLETIONS


def test_the_models_of_a_chat_are_completed(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    reach.chat(nvim, host)
    complete = "return vim.fn.getcompletion(..., 'cmdline')"
    assert nvim.lua(complete, "LCursor chat model ") == ["small", "large"]
    assert nvim.lua(complete, "LCursor chat model l") == ["large"]


def test_the_help_describes_each_command(editor: Start) -> None:
    nvim = editor(FILES)
    described = nvim.lua("return require('lcursor.commands').describe()")
    assert [row["name"] for row in described] == [f":LCursor {name}" for name in [*GENERAL, *VERBS]]
    assert all(row["text"].endswith(".") for row in described)
    assert all(text.endswith(".") for row in described for _, text in row["args"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("nonsense", "there is no :LCursor nonsense. Use one of start, tutor, status"),
        ("hunk dance", f"there is no :LCursor hunk dance. Use one of {', '.join(VERBS['hunk'])}"),
        ("suggestion", ":LCursor suggestion needs one of trigger, accept, dismiss"),
        ("hunk accept x", "invalid argument x for :LCursor hunk accept (expected: file, all)"),
        ("hunk list x", "invalid argument x for :LCursor hunk list (expected: none)"),
        ("hunk accept", "no open hunk here"),
    ],
)
def test_unknown_words_are_reported(editor: Start, words: str, told: str) -> None:
    nvim = editor(FILES, init=reach.NOTES)
    nvim.command(f"LCursor {words}")
    (note,) = reach.told(nvim)
    assert note.startswith(f"lcursor: {told}")


@pytest.mark.parametrize(
    ("command", "left"),
    [
        ("disable | let g:after = g:lcursor_enabled", "false"),
        ("disable|let g:after = g:lcursor_enabled", "false"),
        ("disable buffer | let g:after = b:lcursor_enabled", "false"),
        ("hunk next | let g:after = 1", "1"),
        ("| let g:after = 1", "1"),
        ("hunk dance | let g:after = 1", "nil"),
        ("search a | let g:after = 1", "nil"),
    ],
)
def test_another_command_after_a_bar(editor: Start, command: str, left: str) -> None:
    nvim = editor(FILES, init=reach.NOTES)
    nvim.command(f"LCursor {command}")
    assert nvim.lua("return tostring(vim.g.after)") == left


@pytest.mark.parametrize("extra", ["--help", "now"])
def test_an_argument_too_many_is_no_command(editor: Start, extra: str) -> None:
    nvim = editor(FILES, init=reach.NOTES)
    nvim.command(f"LCursor disable buffer {extra}")
    assert nvim.lua("return tostring(vim.b.lcursor_enabled)") == "nil"
    text = f"invalid argument {extra} for :LCursor disable (expected: buffer)"
    assert reach.told(nvim) == [f"lcursor: {text}"]


def test_a_bar_belongs_to_a_text(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    nvim.command("LCursor agent fix the parser of a | b")
    assert reach.asked(host, "agent.start")["task"] == "fix the parser of a | b"


def test_an_error_after_a_bar_reads_as_neovim_writes_it(editor: Start) -> None:
    nvim = editor(FILES, columns=120)
    nvim.keys(":silent LCursor disable | nonsense<CR>")
    nvim.wait_lua("return vim.fn.execute('messages'):find('nonsense') ~= nil")
    messages = nvim.lua("return vim.fn.execute('messages')")
    assert "E492: Not an editor command:  nonsense" in messages
    assert "stack" not in messages


@pytest.mark.parametrize(
    ("command", "tag"),
    [
        ("LCursor --help", "LCursor"),
        ("LCursor agent --help", "LCursor-agent"),
        ("LCursor agent fix --help", "LCursor-agent"),
        ("LCursor search -h", "LCursor-search"),
        ("LCursor suggestion --help", "LCursor-suggestion"),
        ("LCChat --help", "LCChat"),
        ("LCEdit --help", "LCEdit"),
    ],
)
def test_help_on_request(editor: Start, host: FakeHost, command: str, tag: str) -> None:
    text = (Path(__file__).parents[2] / "doc/lcursor.txt").read_text()
    nvim = editor({**FILES, "doc/lcursor.txt": text}, init=reach.NOTES)
    nvim.command(command)
    assert reach.told(nvim) == [f"lcursor: run :helptags ALL, then see :help :{tag}"]
    nvim.command("helptags doc | let &runtimepath = getcwd()")
    nvim.command(command)
    assert nvim.lua("return vim.bo.filetype") == "help"
    assert f":{tag}*" in nvim.lua("return vim.fn.getline('.')")
    assert not host.messages("agent.start")
    assert not host.messages("chat.open")


def test_the_verbs_of_a_suggestion(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, config={"completion": {"auto_trigger": False}})
    nvim.press("o")
    nvim.wait_why("manual_only")
    nvim.keys("<Cmd>LCursor suggestion trigger<CR>")
    host.done(nvim.request(), "return x + 1")
    assert nvim.shows() == "return x + 1"
    nvim.keys("<Cmd>LCursor suggestion accept word<CR>")
    assert nvim.shows() == " x + 1"
    nvim.keys("<Cmd>LCursor suggestion next<CR>")
    host.wait(lambda: host.messages("fim.more"))
    nvim.keys("<Cmd>LCursor suggestion dismiss<CR>")
    assert nvim.shows() == ""
    assert nvim.lines()[1].strip() == "return"


def test_the_verbs_of_hunks_and_edits(editor: Start, host: FakeHost) -> None:
    desk = Desk(editor(FILES, init=reach.NOTES), host)
    desk.nvim.press("G")
    asked = desk.ask("2LCursor edit ask make it faster")
    assert asked["instruction"] == "make it faster"
    assert (asked["first_row"], asked["last_row"]) == (1, 2)
    desk.edited(asked, CHANGES)
    desk.nvim.press("gg")
    rows = []
    for verb in ("next", "next", "prev"):
        desk.nvim.command(f"LCursor hunk {verb}")
        rows.append(desk.nvim.lua("return vim.fn.line('.')"))
    assert rows == [2, 6, 2]
    desk.nvim.command("LCursor hunk accept")
    desk.nvim.command("6LCursor hunk reject")
    assert desk.lines()[1] == "    return x + 1"
    assert desk.lines()[-1] == "    return y"


def test_a_noun_without_a_verb(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    reach.chat(nvim, host, command="LCursor chat")
    assert nvim.lua("return vim.api.nvim_buf_get_name(0)") == "lcursor://chat/1"
    nvim.command("wincmd p")
    nvim.command("LCursor edit")
    assert nvim.lua("return require('lcursor.editor.input').is_open()") is True


def test_a_question_with_a_range(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    reach.chat(nvim, host, command="1,2LCursor chat ask why is it slow?")
    question = reach.asked(host, "chat.send")
    assert question["text"] == "why is it slow?"
    assert [each["text"] for each in question["attachments"]] == ["def alpha(x):\n    return x"]


@pytest.mark.parametrize(
    "command",
    [
        *("LCChat hi", "LCursor chat list", "LCursor agent do it", "LCursor agent", "LCursor log"),
        *("LCursor status", "LCursor search", "LCursor tutor", "LCursor health", "LCursor start"),
        *("LCursor edit list", "LCursor stats"),
    ],
)
def test_in_the_command_line_window_it_is_said_what_to_do(
    editor: Start, host: FakeHost, command: str
) -> None:
    nvim = editor(FILES, init=reach.NOTES)
    nvim.press("q:")
    nvim.wait_lua("return vim.fn.getcmdwintype() == ':'")
    nvim.command(command)
    if command.endswith("stats"):
        reach.asked(host, "stats.request")
        host.send("stats", dict(outcomes.stats([], {}, "/x", "")))
        text = "lcursor: the report waits until the command-line window is closed"
    else:
        text = "lcursor: this opens a window. Close the command-line window first"
    nvim.wait_lua("return #_G.notes > 0")
    assert nvim.lua("return vim.tbl_map(function(n) return n[1] end, _G.notes)") == [text]
    nvim.press("<C-c><C-c>")
    nvim.wait_lua("return vim.fn.getcmdwintype() == ''")
    nvim.command("LCursor status")
    assert nvim.lua("return vim.api.nvim_win_get_config(0).relative") == "editor"
