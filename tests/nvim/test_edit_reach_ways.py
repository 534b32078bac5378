"""The ways to an edit: the prompt, the API, plans, pickers, lists, diagnostics, chats, commits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim import reach
from tests.nvim.editing import Desk, change, file
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]

FILES = {"a.py": "def alpha(x):\n    return x\n", "b.py": "b = 1\n\nc = 2\n"}
RETURN = change(1, ["    return x"], ["    return x + 1"])


@pytest.fixture
def desk(editor: Start, host: FakeHost) -> Desk:
    """Two files, the first of them open."""
    return Desk(editor(FILES, init=reach.NOTES), host)


def test_without_an_instruction_a_window_asks(desk: Desk) -> None:
    desk.nvim.command("1,2LCEdit")
    desk.nvim.press("make it")
    desk.nvim.press("<CR>")
    asked = desk.heard("edit.ask")
    assert asked["instruction"] == "make it"
    assert (asked["first_row"], asked["last_row"]) == (0, 2)
    assert desk.nvim.lua("return vim.api.nvim_get_mode().mode") == "n"
    assert desk.nvim.lua("return vim.fs.basename(vim.api.nvim_buf_get_name(0))") == "a.py"


def test_the_window_remembers_and_can_be_left(desk: Desk) -> None:
    for text in ("first", "second"):
        desk.nvim.command("LCEdit")
        desk.nvim.press(f"{text}<CR>")
        desk.done(desk.heard("edit.ask", 1 if text == "first" else 2)["id"], reason="same")
    desk.nvim.command("LCEdit")
    desk.nvim.press("draft<Up><Up>")
    assert desk.lines() == ["first"]
    desk.nvim.press("<Down><Down>")
    assert desk.lines() == ["draft"]
    desk.nvim.press("<C-c>")
    desk.nvim.settle()
    assert desk.nvim.lua("return #vim.api.nvim_list_wins()") == 1
    assert len(desk.host.messages("edit.ask")) == 2
    assert desk.nvim.lua("return vim.g.LCURSOR_EDITS") == ["second", "first"]


def test_nothing_is_asked_without_a_word(desk: Desk) -> None:
    desk.nvim.command("LCEdit")
    desk.nvim.press("  <CR>")
    assert desk.nvim.lua("return require('lcursor.editor.input').is_open()")
    desk.nvim.press("<Esc><Esc>")
    assert not desk.nvim.lua("return require('lcursor.editor.input').is_open()")
    assert desk.host.messages("edit.ask") == []


def test_mentions_are_completed_in_the_window(desk: Desk) -> None:
    desk.nvim.command("LCEdit")
    desk.nvim.press("like @fi")
    asked = desk.host.wait(
        lambda: [each for each in desk.host.messages("chat.complete") if each["word"] == "@fi"]
    )[-1]
    assert asked["path"].endswith("/a.py")
    words = [{"word": "@file:", "kind": "file", "info": "a file"}]
    desk.host.send("chat.completed", {"id": asked["id"], "words": words})
    desk.nvim.wait_lua("return vim.fn.pumvisible() == 1")
    desk.nvim.press("<Tab>")
    assert desk.lines() == ["like @file:"]


def test_a_map_asks_about_what_is_selected(editor: Start, host: FakeHost) -> None:
    init = reach.NOTES + "vim.keymap.set({ 'n', 'x' }, '+', '<Plug>(lcursor-edit)')\n"
    desk = Desk(editor(FILES, init=init), host)
    desk.nvim.press("Vj+")
    desk.nvim.press("do it<CR>")
    asked = desk.heard("edit.ask")
    assert (asked["first_row"], asked["last_row"]) == (0, 2)


def test_the_api_asks_and_knows_its_words(desk: Desk) -> None:
    desk.nvim.lua("require('lcursor').edit({ instruction = 'do', range = { 2, 2 }, model = 'm' })")
    asked = desk.heard("edit.ask")
    assert (asked["instruction"], asked["first_row"], asked["last_row"], asked["model"]) == (
        "do",
        1,
        2,
        "m",
    )
    desk.nvim.lua("require('lcursor').edit({ instruktion = 'do' })")
    assert "no instruktion" in reach.told(desk.nvim)[-1]


@pytest.mark.parametrize(
    "command",
    ["LCEdit! split it", "LCursor edit plan split it", "lua require('lcursor').edit({CALL})"],
)
def test_an_agent_plans_a_change_of_the_project(desk: Desk, command: str) -> None:
    call = "instruction = 'split it', project = true"
    desk.nvim.command(command.replace("CALL", call))
    asked = desk.heard("agent.start")
    assert (asked["task"], asked["policy"], asked["context"]) == ("split it", "plan", "")
    assert desk.host.messages("edit.ask") == []


def test_an_agent_plans_with_the_lines_of_a_range(desk: Desk) -> None:
    desk.nvim.command("1,2LCEdit! split it")
    assert "def alpha" in desk.heard("agent.start")["context"]


def test_an_agent_asks_what_to_plan(desk: Desk) -> None:
    desk.nvim.command("LCEdit!")
    desk.nvim.press("isplit it<CR>")
    assert desk.heard("agent.start")["policy"] == "plan"


def question(desk: Desk) -> dict[str, Any]:
    """Apply what was yanked and be asked where; return what was asked."""
    desk.nvim.lua("vim.fn.setreg('\"', '```python\\nb = 2\\n```')")
    desk.nvim.command("LCursor edit apply")
    asked = desk.heard("edit.apply")
    choices = [
        {
            "path": str(desk.project / "b.py"),
            "name": "b.py",
            "first_row": first,
            "last_row": first + 1,
            "lines": [line],
            "why": why,
        }
        for first, line, why in [(0, "b = 1", "much like it"), (2, "c = 2", "")]
    ]
    said = {"id": asked["id"], "text": "Where does it go?", "choices": choices}
    desk.say("edit.question", said)
    desk.nvim.settle()
    return asked


def open_command_window(desk: Desk) -> None:
    """Open the command-line window, in which Neovim opens and closes no other."""
    desk.nvim.press("q:")
    desk.nvim.wait_lua("return vim.fn.getcmdwintype() == ':'")


@pytest.mark.parametrize("keys", [":quit<CR>", "ilet g:typed = 1<CR>", "<C-c><C-c>"])
def test_a_question_waits_for_the_command_line_window(desk: Desk, keys: str) -> None:
    open_command_window(desk)
    asked = question(desk)
    desk.nvim.press(keys)
    desk.nvim.wait_lua("return vim.api.nvim_win_get_config(0).relative ~= ''")
    desk.nvim.press("<CR>")
    assert desk.heard("edit.choose")["id"] == asked["id"]
    assert not any("error" in text for text in reach.told(desk.nvim))


def test_a_window_is_closed_after_the_command_line_window(desk: Desk) -> None:
    asked = question(desk)
    count = desk.nvim.lua("return #vim.api.nvim_list_wins()")
    desk.nvim.press("<C-w>p")
    open_command_window(desk)
    desk.done(asked["id"], reason="stopped")
    assert desk.running() == 0
    assert not any("error" in text for text in reach.told(desk.nvim))
    desk.nvim.press(":quit<CR>")
    desk.nvim.wait_lua("return #vim.api.nvim_list_wins() < ...", count)
    assert desk.host.messages("edit.stop") == []


def test_pasted_text_goes_where_the_user_says(desk: Desk) -> None:
    asked = question(desk)
    assert (asked["text"], asked["chat"], asked["file"]) == ("```python\nb = 2\n```", "", "")
    assert [each["path"] for each in asked["buffers"]] == [str(desk.project / "a.py")]
    desk.nvim.press("j<CR>")
    chosen = desk.heard("edit.choose")
    assert (chosen["id"], chosen["choice"]) == (asked["id"], 1)
    assert desk.nvim.lua("return #vim.api.nvim_list_wins()") == 1


@pytest.mark.parametrize("key", ["q", "<Esc>"])
def test_a_question_can_be_answered_with_none(desk: Desk, key: str) -> None:
    question(desk)
    desk.nvim.press(key)
    assert desk.heard("edit.choose")["choice"] == -1
    assert desk.nvim.lua("return #vim.api.nvim_list_wins()") == 1


@pytest.mark.parametrize(
    ("command", "told"), [("apply x", "is empty"), ("apply xy", "the name of")]
)
def test_there_must_be_something_to_apply(desk: Desk, command: str, told: str) -> None:
    desk.nvim.command(f"LCursor edit {command}")
    assert told in reach.told(desk.nvim)[-1]


@pytest.mark.parametrize("moves", ["", "k"])
def test_a_block_of_a_chat_becomes_an_edit(editor: Start, host: FakeHost, moves: str) -> None:
    nvim = editor(FILES, init=reach.NOTES)
    desk = Desk(nvim, host)
    said = "So:\n\n```python path=a.py\ndef alpha(x):\n    return 2 * x\n```\n"
    talk = [reach.message(1, "user", "how?"), reach.message(2, "assistant", said)]
    reach.chat(nvim, host, talk)
    nvim.press("ga")
    asked = desk.heard("edit.apply")
    assert asked["text"] == said.split("\n\n")[1].rstrip("\n")
    assert (asked["file"], asked["chat"], asked["message"], asked["path"]) == (
        "a.py",
        "key1",
        2,
        str(desk.project / "a.py"),
    )
    nvim.press(moves)
    key = desk.propose(asked["id"], [file(desk.project / "a.py", [RETURN])], chat="key1")
    desk.done(asked["id"])
    if moves:  # then the cursor stays
        assert nvim.lua("return vim.bo.filetype") == "lcursor_chat"
        chat = desk.lines()
        nvim.press("ghhgHHghG")  # begins no Select mode
        assert desk.lines() == chat
        assert reach.told(nvim)[-1].endswith("Next one: a.py, :LCursor hunk next")
        nvim.press("]h")
    nvim.press("ghh")
    assert desk.lines()[1] == "    return x + 1"
    assert desk.heard("edit.decided")["turn"] == key
    nvim.command("wincmd p")
    assert nvim.lua("return vim.bo.filetype") == "lcursor_chat"
    assert nvim.lua("return vim.fn.maparg('ghh', 'n')") == ""


def test_a_block_that_is_proposed_already_is_led_to(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=reach.NOTES)
    desk = Desk(nvim, host)
    said = "```python path=a.py\ndef alpha(x):\n    return 2 * x\n```\n"
    talk = [reach.message(1, "user", "how?"), reach.message(2, "assistant", said)]
    reach.chat(nvim, host, talk)
    nvim.press("ga")
    asked = desk.heard("edit.apply")
    nvim.press("ga")  # while it is looked for
    assert "still locating" in reach.told(nvim)[-1]
    desk.propose(asked["id"], [file(desk.project / "a.py", [RETURN])], chat="key1")
    desk.done(asked["id"])
    nvim.command("wincmd p")
    nvim.press("ga")
    assert reach.told(nvim)[-1] == "lcursor: already proposed here"
    assert nvim.lua("return vim.fs.basename(vim.api.nvim_buf_get_name(0))") == "a.py"
    assert nvim.lua("return vim.api.nvim_win_get_cursor(0)[1]") == 2
    assert len(host.messages("edit.apply")) == 1
    nvim.press("gHH")  # it was decided: it may be asked for again
    nvim.command("wincmd p")
    nvim.press("ga")
    again = desk.heard("edit.apply", 2)
    desk.propose(again["id"], [file(desk.project / "a.py", [RETURN])], chat="key1")
    desk.done(again["id"])
    nvim.press("ghh")
    assert desk.lines()[1] == "    return x + 1"


def applied(desk: Desk, name: str, changed: dict[str, Any], count: int) -> None:
    """Have what was yanked proposed for a file."""
    desk.nvim.command("LCursor edit apply")
    asked = desk.heard("edit.apply", count)
    desk.propose(asked["id"], [file(desk.project / name, [changed])])
    desk.done(asked["id"])


def test_what_is_proposed_for_a_file_that_is_not_seen_is_named(desk: Desk) -> None:
    desk.nvim.lua("vim.fn.setreg('\"', '```python\\nb = 2\\n```')")
    applied(desk, "b.py", change(0, ["b = 1"], ["b = 2"]), 1)
    desk.nvim.command("LCursor edit apply")
    assert reach.told(desk.nvim)[-1].endswith("for b.py; :LCursor hunk list shows it")
    assert len(desk.host.messages("edit.apply")) == 1


def test_a_block_whose_lines_have_changed_is_asked_for_again(desk: Desk) -> None:
    desk.nvim.lua("vim.fn.setreg('\"', '```python\\nreturn x + 1\\n```')")
    applied(desk, "a.py", RETURN, 1)
    desk.nvim.press("2Gfxry")
    desk.nvim.command("write")
    applied(desk, "a.py", change(1, ["    return y"], ["    return x + 1"]), 2)
    desk.nvim.press("2Gghh")
    assert desk.lines()[1] == "    return x + 1"
    assert desk.nvim.lua("return #require('lcursor.edit.proposals').hunks(0)") == 0


def test_one_instruction_for_all_entries_of_a_list(desk: Desk) -> None:
    desk.nvim.lua(
        """
        vim.fn.setqflist({
          { filename = "a.py", lnum = 1, text = " unused x" }, { filename = "a.py", lnum = 1 },
          { filename = "b.py", lnum = 3, text = "c" }, { filename = ".env", lnum = 1 },
          { text = "no file" },
        })
        """
    )
    desk.nvim.command("copen")
    desk.nvim.command("LCEdit rename it")
    asked = desk.heard("edit.many")
    assert asked["instruction"] == "rename it"
    assert [(each["path"], each["row"], each["text"]) for each in asked["locations"]] == [
        (str(desk.project / "a.py"), 0, "unused x"),
        (str(desk.project / "b.py"), 2, "c"),
    ]
    assert [each["path"] for each in asked["buffers"]] == [str(desk.project / "a.py")]
    assert any("secrets" in text for text in reach.told(desk.nvim))
    desk.nvim.command("3LCEdit rename it")  # only that entry
    assert len(desk.heard("edit.many", 2)["locations"]) == 1


DIAGNOSE = """
local space = vim.api.nvim_create_namespace("test")
vim.diagnostic.set(space, 0, {
  { lnum = 1, col = 4, message = "hint here", severity = 4 },
  { lnum = 1, col = 11, message = "no such\\nname", severity = 1, source = "lint", code = "E1" },
})
"""


def test_a_diagnostic_becomes_an_instruction(desk: Desk) -> None:
    desk.nvim.lua(DIAGNOSE)
    desk.nvim.press("2G")
    desk.nvim.command("LCursor edit fix")
    asked = desk.heard("edit.ask")
    assert (asked["first_row"], asked["last_row"]) == (1, 1)
    assert asked["instruction"].splitlines() == [
        "Fix these problems:",
        "error: no such name [lint E1], in the line `return x`",
        "hint: hint here, in the line `return x`",
    ]
    desk.nvim.press("gg")
    desk.nvim.command("LCursor edit fix")
    assert "no diagnostics" in reach.told(desk.nvim)[-1]
    desk.nvim.command("1,2LCursor edit fix")
    assert desk.heard("edit.ask", 2)["last_row"] == 2


def message(desk: Desk, text: str = "Fix the sum\n\nIt was off by one.") -> None:
    """Answer the question for a commit message."""
    asked = desk.heard("edit.commit")
    answer = {"id": asked["id"], "text": text, "note": "", "is_amend": False}
    desk.say("edit.message", answer)
    desk.done(asked["id"])


def test_a_commit_message_goes_into_a_buffer_of_its_own(desk: Desk) -> None:
    desk.nvim.command("LCursor commit_message")
    message(desk)
    assert desk.lines() == ["Fix the sum", "", "It was off by one."]
    assert desk.nvim.lua("return vim.bo.filetype") == "gitcommit"


def test_a_commit_message_goes_above_what_git_says(desk: Desk) -> None:
    desk.nvim.command("enew | setfiletype gitcommit")
    desk.nvim.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { '', '# Please enter' })")
    desk.nvim.command("LCursor commit_message")
    message(desk, "Fix it")
    assert desk.lines() == ["Fix it", "", "# Please enter"]


@pytest.mark.parametrize("sign", ["#", ";", "//", "REM"])
@pytest.mark.parametrize("diff", [[], ["{sign} ---- >8 ----", "{sign} Do not", "diff", "+# x", ""]])
def test_any_sign_may_begin_the_comments_of_git(desk: Desk, sign: str, diff: list[str]) -> None:
    lines = ["", f"{sign} Please enter", sign, f"{sign}\tmodified: a.py", sign]
    lines += [line.replace("{sign}", sign) for line in diff]
    desk.nvim.command("enew | setfiletype gitcommit")
    desk.nvim.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, ...)", lines)
    desk.nvim.command("LCursor commit_message")
    message(desk, "Fix it")
    assert desk.lines() == ["Fix it", *lines]


def test_a_commit_message_overwrites_nothing(desk: Desk) -> None:
    desk.nvim.command("enew | setfiletype gitcommit")
    desk.nvim.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'mine', '# Please enter' })")
    desk.nvim.command("LCursor commit_message")
    message(desk, "Fix it")
    assert desk.lines() == ["Fix it"]
    desk.nvim.command("bwipeout")
    assert desk.lines() == ["mine", "# Please enter"]


def test_status_and_health_say_what_is_open(desk: Desk) -> None:
    desk.edited(desk.ask(), [RETURN])
    desk.ask(count=2)
    lines = desk.nvim.lua("return require('lcursor.commands.status').lines()")
    assert "edits       1 running, 1 hunk open in 1 file" in lines


@pytest.mark.parametrize(
    ("before", "after", "badge"),
    [(0, 0, ""), (1, 3, "errors: 1 → 3"), (3, 0, "errors: 3 → 0"), (2, 2, "errors: 2, as before")],
)
def test_the_badge_of_errors(editor: Start, before: int, after: int, badge: str) -> None:
    nvim = editor(FILES)
    found = nvim.lua("return { require('lcursor.edit.error_count').note(...) }", before, after)
    assert found[0] == badge


SERVER = """
vim.lsp.start({
  name = "fake",
  cmd = function()
    return {
      request = function(method, _, done)
        done(nil, method == "initialize" and { capabilities = {} } or nil)
        return true, 1
      end,
      notify = function() end, is_closing = function() end, terminate = function() end,
    }
  end,
})
"""


def test_errors_before_and_after_are_said_at_the_hunk(desk: Desk) -> None:
    desk.nvim.lua(SERVER)
    desk.nvim.wait_lua("return #vim.lsp.get_clients({ bufnr = 0 }) > 0")
    desk.nvim.lua(DIAGNOSE)
    desk.edited(desk.ask(), [RETURN])
    desk.nvim.press("2Gghh")
    desk.nvim.lua("vim.diagnostic.reset(vim.api.nvim_create_namespace('test'), 0)")
    desk.nvim.wait_lua(
        """
        local space = vim.api.nvim_create_namespace("lcursor.edit.lsp")
        local mark = vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true })[1]
        return mark and mark[4].virt_text and mark[4].virt_text[1][1]:find("errors: 1 → 0")
        """
    )
    desk.nvim.press("ox<Esc>")
    assert desk.drawn("lsp") == ""
