"""Answers that are streamed into the buffer: what they cost, and what they leave alone."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterator

from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot
from tests.nvim.reach import NOTES, notes
from tests.nvim.talk import Talk, message

Start = Callable[..., Pilot]
FILES = {"a.py": "def alpha(x):\n    return x\n"}
PER_S = 200
TEXT = (
    "Because **alpha** returns its argument, `beta` does the same here and there.\n\n"
    "- one item\n- another *item* with words\n\n"
    "```lua\nlocal function alpha(x)\n  if x > 3 then\n    return x\n  end\nend\n```\n\n"
)


def tokens() -> Iterator[str]:
    """Yield pieces of an answer without end."""
    return itertools.cycle(re.findall(r"\s*\S{1,4}|\s+", TEXT))


def stream(talk: Talk, number: int, seconds: float, each: Callable[[], None] | None = None) -> str:
    """Say an answer at 200 tokens a second; return it."""
    start, said = time.monotonic(), []
    for count, piece in zip(range(int(seconds * PER_S)), tokens(), strict=False):
        talk.host.send("chat.delta", {"id": number, "text": piece, "reasoning": ""})
        said.append(piece)
        if each and count % 10 == 0:
            each()
        time.sleep(max(0.0, start + (count + 1) / PER_S - time.monotonic()))
    return "".join(said)


def messages_of(nvim: Pilot) -> str:
    """Return `:messages`."""
    text: str = nvim.lua("return vim.fn.execute('messages')")
    return text


# Streams pieces by a clock of its own; returns what that took, in steps of the interpreter.
CLOCKED = """
local pieces, every_ms = ...
local session = require("lcursor.chat").current()
local stream, running = require("lcursor.chat.stream"), session.turn.stream
local first_tick = vim.api.nvim_buf_get_changedtick(session.buf)
local now, new_timer, hrtime = vim.uv.now, vim.uv.new_timer, vim.uv.hrtime
local clock_ms, due = now(), {}
vim.uv.now = function() return math.floor(clock_ms) end
vim.uv.hrtime = function() return clock_ms * 1e6 end
vim.uv.new_timer = function()
  local timer = {}
  function timer:start(ms, _, fn) due[timer] = { at = clock_ms + ms, fn = fn } end
  function timer:stop() due[timer] = nil end
  function timer:close() due[timer] = nil end
  function timer:is_closing() return false end
  return timer
end
local schedule_wrap = vim.schedule_wrap
vim.schedule_wrap = function(fn) return fn end
local steps = 0
jit.off()
jit.flush() -- compiled code calls no hook
debug.sethook(function() steps = steps + 1 end, "", 100)
for _, piece in ipairs(pieces) do
  clock_ms = clock_ms + every_ms
  for timer, one in pairs(due) do
    if one.at <= clock_ms then
      due[timer] = nil
      one.fn()
    end
  end
  stream.push(running, "text", piece)
end
debug.sethook()
jit.on()
vim.uv.now, vim.uv.new_timer, vim.uv.hrtime = now, new_timer, hrtime
vim.schedule_wrap = schedule_wrap
stream.close(running)
return { writes = vim.api.nvim_buf_get_changedtick(session.buf) - first_tick, steps = steps }
"""


def test_a_fast_answer_is_written_a_few_times_a_second_however_long_the_chat_is(
    editor: Start, host: FakeHost
) -> None:
    """The shares of the main thread are numbers for `bench chat screen`."""
    seconds = 2
    pieces = list(itertools.islice(tokens(), seconds * PER_S))
    found = []
    for turns in (0, 40):
        nvim = editor(FILES, columns=160, lines=40)
        stored = [message(n + 1, TEXT * 6 if n % 2 else "why?") for n in range(2 * turns)]
        talk = Talk(nvim, host, f"k{turns}").open(messages=stored)
        number = talk.ask("explain it")
        found.append(nvim.lua(CLOCKED, pieces, 1000 / PER_S))
        talk.done(number)
        assert "".join(pieces).rstrip() in "\n".join(talk.lines())
    short, long = found
    assert seconds * 5 < short["writes"] < seconds * 8
    assert seconds * 1 < long["writes"] < short["writes"]  # each makes Neovim highlight longer
    assert long["steps"] < 1.5 * short["steps"]


def test_typing_elsewhere_goes_on(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    talk = Talk(nvim, host).open()
    number = talk.ask("explain it")
    nvim.press("<C-w>pGo")
    said = stream(talk, number, 1, lambda: nvim.keys("x"))
    talk.done(number)
    assert nvim.lines()[-1] == "x" * 20
    assert nvim.lua("return vim.api.nvim_get_mode().mode") == "i"
    assert said.rstrip() in "\n".join(talk.lines())
    assert messages_of(nvim) == ""


def test_the_view_follows_from_the_draft_and_is_kept_elsewhere(
    editor: Start, host: FakeHost
) -> None:
    nvim = editor(FILES, lines=20)
    talk = Talk(nvim, host).open()
    number = talk.ask("explain it")
    stream(talk, number, 0.8)
    nvim.wait_lua("return vim.api.nvim_buf_line_count(0) > 30")
    nvim.settle()
    assert nvim.lua("return vim.fn.line('w$') == vim.fn.line('$')")
    nvim.press("12Gzt")
    view = nvim.lua("return vim.fn.winsaveview()")
    lines = len(nvim.lines())
    stream(talk, number, 0.8)
    nvim.wait_lua("return vim.api.nvim_buf_line_count(0) > ...", lines + 10)
    nvim.settle()
    assert nvim.lua("return vim.fn.winsaveview()") == view
    nvim.press("G")
    stream(talk, number, 0.3)
    talk.done(number)
    assert nvim.lua("return vim.fn.line('w$') == vim.fn.line('$')")


def test_the_view_is_kept_in_a_window_one_is_not_in(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, lines=20)
    talk = Talk(nvim, host).open()
    number = talk.ask("explain it")
    stream(talk, number, 0.8)
    nvim.press("10Gzt<C-w>p")
    first = "return vim.fn.line('w0', require('lcursor.chat').current().win)"
    assert nvim.lua(first) == 10
    stream(talk, number, 0.5)
    talk.done(number)
    assert nvim.lua(first) == 10


def test_a_line_end_in_two_pieces(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    talk = Talk(nvim, host).open()
    number = talk.ask("why?")
    for piece in ("größer: 日本語", "\r", "\nnext\r", "\n"):
        talk.delta(number, piece)
    talk.done(number)
    assert talk.lines()[6:9] == ["größer: 日本語", "next", ""]


def test_undo_never_takes_back_the_answer(editor: Start, host: FakeHost) -> None:
    """What was typed since the answer last grew is undone, and nothing before."""
    nvim = editor(FILES)
    talk = Talk(nvim, host).open()
    number = talk.ask("why?")
    talk.delta(number, "One. ")
    talk.wait_text("One.")
    nvim.press("GAalpha<Esc>")
    talk.delta(number, "Two.\n\nThree.")
    talk.wait_text("Three.")
    nvim.press("uu")
    assert nvim.lines()[-1] == "alpha"
    assert "One. Two.\n\nThree." in "\n".join(nvim.lines())
    assert nvim.lines()[:3] == ["## You", "", "why?"]
    nvim.press("GA beta<Esc>u")
    assert nvim.lines()[-1] == "alpha"
    nvim.press("<C-r>")
    assert nvim.lines()[-1] == "alpha beta"
    talk.delta(number, " Four.")
    talk.done(number)
    nvim.press("uuu")
    assert nvim.lines()[-1] == "alpha beta"
    assert "Three. Four." in nvim.lines()
    nvim.press("GA gamma<Esc>u")
    assert nvim.lines()[-1] == "alpha beta"


def test_undo_after_an_answer_does_not_take_it(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    talk = Talk(nvim, host).open()
    talk.answer("why?", "Because.\n\nIt is so.")
    lines = nvim.lines()
    nvim.press("uuu")
    assert nvim.lines() == lines
    nvim.press("GAmore<Esc>ggjjA, then<Esc>")
    nvim.press("u")
    assert "why?" in nvim.lines()
    nvim.press("u")
    assert nvim.lines() == lines


def test_an_accident_in_an_answer_can_be_undone(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    talk = Talk(nvim, host).open()
    talk.answer("why?", "Because.\n\nIt is so.")
    lines = nvim.lines()
    nvim.command(str(lines.index("It is so.") + 1))
    nvim.press("dd")
    assert "It is so." not in nvim.lines()
    nvim.press("u")
    assert nvim.lines() == lines


def test_what_is_typed_into_the_draft_stays_apart(editor: Start, host: FakeHost) -> None:
    """Insert mode in the chat itself, while lines come in above the cursor."""
    nvim = editor(FILES)
    talk = Talk(nvim, host).open()
    number = talk.ask("why?")
    nvim.press("GA")
    said = stream(talk, number, 1, lambda: nvim.keys("z"))
    talk.done(number)
    assert nvim.lines()[-1] == "z" * 20
    assert said.rstrip() in "\n".join(nvim.lines())
    nvim.press("<Esc>u")
    assert said.rstrip() in "\n".join(nvim.lines())


def test_the_buffer_is_wiped_while_streaming(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=NOTES)
    talk = Talk(nvim, host).open()
    number = talk.ask("why?")
    stream(talk, number, 0.2)
    nvim.command("bwipeout!")
    assert host.wait(lambda: host.messages("chat.stop")) == [{"id": number}]
    stream(talk, number, 0.2)
    talk.done(number, reason="stopped")
    assert notes(nvim) == []
    assert messages_of(nvim) == ""
    assert nvim.lua("return #require('lcursor.chat').all()") == 0
    Talk(nvim, host, "k2").open().answer("and now?", "Now it is well.")
    assert "Now it is well." in nvim.lines()


def test_neovim_is_closed_while_streaming(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    talk = Talk(nvim, host).open()
    number = talk.ask("why?")
    stream(talk, number, 0.2)
    nvim.client.notify("nvim_command", "qall!")
    assert nvim.client.close(timeout_s=30) >= 0, "it was killed: it did not leave by itself"
    host.wait(lambda: host.messages("shutdown"))


def test_a_hidden_chat_goes_on(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    talk = Talk(nvim, host).open()
    number = talk.ask("why?")
    nvim.press("q")
    said = stream(talk, number, 0.3)
    talk.done(number)
    assert said.rstrip() in "\n".join(talk.lines())
    nvim.command("LCChat")
    assert said.rstrip() in "\n".join(nvim.lines())


def test_a_buffer_that_may_not_be_changed_is_written_all_the_same(
    editor: Start, host: FakeHost
) -> None:
    nvim = editor(FILES)
    talk = Talk(nvim, host).open()
    number = talk.ask("why?")
    nvim.command("setlocal nomodifiable")
    talk.delta(number, "Because.")
    talk.done(number)
    assert "Because." in talk.lines()
    assert nvim.lua("return vim.bo.modifiable") is False


def test_a_menu_of_completions_is_not_disturbed(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    talk = Talk(nvim, host).open()
    talk.answer("why?", "alphabet alphanumeric")
    number = talk.ask("and?")
    nvim.press("GAalph<C-n>")
    nvim.wait_lua("return vim.fn.pumvisible() == 1")
    talk.delta(number, "Later.")
    nvim.settle()
    assert nvim.lua("return vim.fn.pumvisible()") == 1
    assert "Later." not in nvim.lines()
    nvim.press("<C-y>")
    talk.wait_text("Later.")
    talk.done(number)
    assert nvim.lines()[-1] == "alphabet"


COLOURS = """
local wanted, buf = ..., require("lcursor.chat").current().buf
for row, line in ipairs(vim.api.nvim_buf_get_lines(buf, 0, -1, false)) do
  local col = line:find(wanted, 1, true)
  if col then
    local found = vim.treesitter.get_captures_at_pos(buf, row - 1, col - 1)
    local groups = vim.tbl_map(function(each) return each.capture .. "." .. each.lang end, found)
    return #groups > 0 and groups
  end
end
"""


def test_an_answer_is_coloured_by_treesitter_while_it_comes(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    talk = Talk(nvim, host).open()
    assert nvim.lua("return { vim.bo.filetype, vim.bo.syntax }") == ["lcursor_chat", ""]
    number = talk.ask("why?")
    talk.delta(number, TEXT + "```lua\nlocal open = 1\n")
    assert "markup.strong.markdown_inline" in nvim.wait_lua(COLOURS, "**alpha**")
    assert "keyword.lua" in nvim.wait_lua(COLOURS, "local open")
    talk.done(number)
    nvim.command("edit")
    assert nvim.lua("return vim.treesitter.highlighter.active[vim.fn.bufnr()] ~= nil") is True
    assert nvim.lua("return vim.bo.filetype") == "lcursor_chat"


def test_settings_for_markdown_files_are_not_for_chats(editor: Start, host: FakeHost) -> None:
    """Those that the draft needs are there: comments, to continue a list or quote."""
    auto = """
    vim.api.nvim_create_autocmd("FileType", { pattern = "markdown", command = "setlocal spell" })
    """
    nvim = editor(FILES, init=auto)
    Talk(nvim, host).open()
    assert nvim.lua("return vim.wo.spell") is False
    assert nvim.lua("return vim.bo.commentstring") == "<!-- %s -->"
    assert "n:>" in nvim.lua("return vim.bo.comments")


def test_a_chat_is_no_markdown_document_for_plugins(editor: Start, host: FakeHost) -> None:
    """They would fetch the images that a model names."""
    nvim = editor(FILES)
    Talk(nvim, host).open()
    assert nvim.lua("return vim.treesitter.language.get_lang('lcursor_chat')") == "lcursor_chat"
    assert nvim.lua("return (pcall(vim.treesitter.get_parser, 0))") is False
    assert nvim.lua("return vim.treesitter.highlighter.active[vim.fn.bufnr()] ~= nil") is True


def test_plugins_that_render_text_are_notified_at_the_end(editor: Start, host: FakeHost) -> None:
    """Also when the cursor is elsewhere, where Neovim has no event for the chat."""
    nvim = editor(FILES)
    talk = Talk(nvim, host).open()
    nvim.lua(
        """
        vim.api.nvim_create_autocmd("TextChanged", {
          callback = function(event)
            local buf = vim.api.nvim_get_current_buf()
            if event.buf == buf and vim.bo.filetype == "lcursor_chat" then
              vim.g.rendered = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
            end
          end,
        })
        """
    )
    number = talk.ask("explain it")
    nvim.press("<C-w>p")
    talk.delta(number, "It **is**.")
    talk.done(number)
    nvim.wait_lua("return vim.list_contains(vim.g.rendered or {}, 'It **is**.')")
    assert nvim.lua("return vim.fn.bufname()").endswith("a.py")


def test_a_queued_question_waits_while_one_adds_to_it(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    talk = Talk(nvim, host).open()
    number = talk.ask("One?")
    nvim.press("GAplease delete<Esc><CR>")  # queued
    nvim.press("GA the")
    talk.delta(number, "Yes.")
    talk.done(number)
    nvim.press(" old code")
    assert len(host.messages("chat.send")) == 1
    nvim.press("<Esc>")
    assert talk.heard()["text"] == "please delete the old code"


def test_the_last_window_is_left_under_a_float(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    Talk(nvim, host).open()
    nvim.press("<C-w>o")
    nvim.lua(
        """
        local buf = vim.api.nvim_create_buf(false, true)
        local size = { relative = "editor", row = 0, col = 0, width = 9, height = 1 }
        vim.api.nvim_open_win(buf, false, size)
        """
    )
    nvim.press("q")
    assert nvim.lua("return vim.bo.filetype") != "lcursor-chat"
    assert nvim.lua("return vim.v.errmsg") == ""


def test_a_question_that_is_sent_during_a_change_stays(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    before = [message(1, "what?"), message(2, "That.")]
    talk = Talk(nvim, host).open(messages=before)
    nvim.command("LCursor chat model big")
    change = host.wait(lambda: host.messages("chat.use"))[0]
    nvim.press("GAwhy?<Esc><CR>")
    asked = talk.heard()
    talk.opened(change["id"], before, model="big")
    assert nvim.lua("return require('lcursor.chat').current().model") == "big"
    number = talk.begin(asked)
    talk.delta(number, "So.")
    talk.done(number)
    assert talk.lines()[-9:] == ["why?", "", "## Model", "", "So.", "", "## You", "", ""]
    nvim.press("GAand?<Esc><CR>")
    assert talk.heard()["after"] == 4
