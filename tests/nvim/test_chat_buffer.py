"""The chat's buffer as a person sees and uses it; the host is a fake one."""

from __future__ import annotations

from collections.abc import Callable

from tests.fakes.control import FakeHost
from tests.nvim import reach
from tests.nvim.pilot import Pilot
from tests.nvim.reach import NOTES, notes
from tests.nvim.talk import ITEM, Talk, message

Start = Callable[..., Pilot]
FILES = {"a.py": "def alpha(x):\n    return x\n", "sub/b.py": "z = 1\n"}
SECRET = {**ITEM, "key": "b", "name": ".env", "is_left_out": True, "note": "a secret"}
HISTORY = [
    message(1, "first question"),
    message(2, "first answer\n\nwith two paragraphs"),
    message(3, "second question"),
    message(4, "second answer"),
]


def row_of(talk: Talk, line: str) -> int:
    """Return the row of a line, from 1."""
    return talk.lines().index(line) + 1


def test_the_lines_of_a_turn(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, columns=110, lines=26)
    talk = Talk(nvim, host).open()
    number = talk.ask("why is alpha so?", [ITEM, SECRET])
    talk.progress(number, "reading", done=512, total=2048, cached=100, seconds_left=3.2)
    nvim.settle()
    talk.delta(number, "", "Let me think\nabout it.\n")
    talk.delta(number, "\nBecause **it** is.\n\n```python\ndef alpha(x):\n    return x\n```\n")
    talk.done(number, title="why is alpha so?")
    assert talk.lines() == [
        "## You",
        "",
        "why is alpha so?",
        "",
        "## Model",
        "",
        "> context: 2 items, 120 tokens, 1 left out",
        "> - file a.py: 120 tokens",
        "> - file .env: left out; a secret",
        "",
        "> thinking",
        "> Let me think",
        "> about it.",
        "",
        "Because **it** is.",
        "",
        "```python",
        "def alpha(x):",
        "    return x",
        "```",
        "",
        "## You",
        "",
        "",
    ]


def test_a_stored_chat_looks_as_when_it_was_said(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    talk = Talk(nvim, host).open()
    number = talk.ask("why?", [ITEM])
    talk.delta(number, "", "one\ntwo")
    talk.delta(number, "Because.\n")
    talk.done(number)
    live = talk.lines()
    nvim.command("bwipeout")
    again = Talk(nvim, host).open(
        messages=[
            message(1, "why?", items=[ITEM]),
            message(2, "Because.\n", reasoning="one\ntwo"),
        ]
    )
    assert again.lines() == live


def test_what_is_sent(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    talk = Talk(nvim, host).open()
    path = nvim.lua("return vim.fn.bufname('a.py')")
    nvim.press("iwhat is<CR>alpha?<C-s>")
    asked = talk.heard()
    assert asked["text"] == "what is\nalpha?"
    assert (asked["chat"], asked["after"], asked["dropped"]) == ("k1", 0, [])
    assert asked["path"].endswith("project/a.py")
    assert path
    assert nvim.lua("return vim.api.nvim_get_mode().mode") == "n"
    talk.done(talk.begin(asked))
    talk.ask("and beta?")
    assert host.messages("chat.send")[-1]["after"] == 2


def test_a_question_on_the_command_line_is_asked_at_once(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    talk = Talk(nvim, host).open("LCChat why is alpha so?")
    assert talk.heard()["text"] == "why is alpha so?"
    assert row_of(talk, "why is alpha so?") == 3
    assert nvim.lua("return require('lcursor.chat').current().win") > 0


def test_a_range_goes_along_and_again_with_a_branch(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, columns=110)
    talk = Talk(nvim, host).open("1,2LCChat")
    assert "## You + a.py:1-2" in "\n".join(nvim.screen.rows())
    nvim.press("iwhy?<C-s>")
    asked = talk.heard()
    (piece,) = asked["attachments"]
    assert (piece["kind"], piece["first_row"]) == ("selection", 0)
    assert piece["text"].rstrip() == FILES["a.py"].rstrip()
    talk.done(talk.begin(asked))
    assert "+ a.py" not in "\n".join(nvim.screen.rows())
    nvim.press("gg2jA then<Esc><CR>")
    again = talk.heard()
    assert (again["text"], again["again"]) == ("why? then", 1)
    assert [each["kind"] for each in again["attachments"]] == ["screen"]  # no selection once more
    talk.done(talk.begin(again, question=3, answer=4))
    talk.ask("more?")
    last = host.messages("chat.send")[-1]
    assert [each["kind"] for each in last["attachments"]] == ["screen"]


def test_nothing_is_sent_without_a_question(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=NOTES)
    Talk(nvim, host).open()
    nvim.press("<CR>")
    assert host.messages("chat.send") == []
    assert "nothing to send" in str(notes(nvim)[-1][0])


def test_an_earlier_question_that_is_changed_begins_a_branch(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    talk = Talk(nvim, host).open(messages=HISTORY)
    nvim.press("GAnot sent yet<Esc>")
    nvim.command(str(row_of(talk, "second question")))
    nvim.press("A, please<Esc>")
    assert "edited: <CR> sends it" in "\n".join(nvim.screen.rows())
    nvim.press("<CR>")
    asked = talk.heard()
    assert (asked["text"], asked["after"]) == ("second question, please", 2)
    number = talk.begin(asked, question=5, answer=6)
    talk.delta(number, "another answer")
    talk.done(number)
    assert talk.lines()[-9:] == [
        "second question, please",
        "",
        "## Model",
        "",
        "another answer",
        "",
        "## You",
        "",
        "not sent yet",
    ]
    assert "second answer" not in talk.lines()
    nvim.press("gg")
    nvim.command(str(row_of(talk, "second question, please")))
    nvim.settle()
    assert "## You 2 of 2" in "\n".join(nvim.screen.rows())
    nvim.press("[b")
    (turned,) = host.wait(lambda: host.messages("chat.branch"))
    assert (turned["number"], turned["step"]) == (5, -1)
    old = [*HISTORY[:2], {**HISTORY[2], "branches": 2}, HISTORY[3]]
    talk.opened(turned["id"], old)
    assert talk.lines()[-5:] == ["second answer", "", "## You", "", "not sent yet"]
    assert nvim.lua("return vim.fn.getline('.')") == "## You"
    assert "## You 1 of 2" in "\n".join(nvim.screen.rows())


def test_an_earlier_question_as_it_was_is_not_asked_again(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=NOTES)
    talk = Talk(nvim, host).open(messages=HISTORY)
    nvim.command(str(row_of(talk, "second question")))
    nvim.press("<CR>")
    assert host.messages("chat.send") == []


def test_regenerate_keeps_the_old_answer(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    talk = Talk(nvim, host).open(messages=HISTORY)
    nvim.press("Ggr")
    asked = talk.heard()
    assert (asked["text"], asked["after"]) == ("", 3)
    number = talk.begin(asked, question=3, answer=5)
    talk.delta(number, "a better answer")
    talk.done(number)
    assert talk.lines()[-5:] == ["a better answer", "", "## You", "", ""]
    assert "second answer" not in talk.lines()
    assert "## Model 2 of 2" in "\n".join(nvim.screen.rows())
    assert [each["number"] for each in session_messages(nvim)] == [1, 2, 3, 5]


def session_messages(nvim: Pilot) -> list[dict[str, object]]:
    """Return the messages that the session knows."""
    messages: list[dict[str, object]] = nvim.lua(
        "return require('lcursor.chat').current().messages"
    )
    return messages


def test_stop_keeps_what_is_there(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    talk = Talk(nvim, host).open()
    number = talk.ask("why?")
    talk.delta(number, "Because")
    talk.wait_text("Because")
    nvim.press("<C-c>")
    assert host.wait(lambda: host.messages("chat.stop")) == [{"id": number}]
    assert "stopping" in "\n".join(nvim.screen.rows())
    talk.done(number, reason="stopped")
    assert talk.lines()[-5:] == ["Because", "", "## You", "", ""]
    assert "## Model incomplete" in "\n".join(nvim.screen.rows())


def test_a_stop_that_nobody_confirms_ends_as_well(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    talk = Talk(nvim, host).open()
    nvim.lua("require('lcursor.chat.turn').max_wait_ms = 100")
    talk.ask("why?")
    nvim.press("<C-c>")
    nvim.wait_lua("return require('lcursor.chat').current().turn == nil")
    assert talk.lines()[2] == "why?"


def test_a_question_waits_until_the_chat_is_open(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    nvim.command("LCChat")
    nvim.press("iearly<C-s>")
    assert host.messages("chat.send") == []
    talk = Talk(nvim, host)
    talk.opened(host.wait(lambda: host.messages("chat.open"))[0]["id"])
    assert talk.heard()["text"] == "early"


def test_what_is_typed_meanwhile_is_sent_afterwards(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    talk = Talk(nvim, host).open()
    number = talk.ask("one?")
    nvim.press("GAtwo?<Esc><CR>")
    assert len(host.messages("chat.send")) == 1
    talk.delta(number, "One.")
    talk.done(number)
    asked = talk.heard()
    assert (asked["text"], asked["after"]) == ("two?", 2)


def test_a_stop_sends_nothing_after_it(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    talk = Talk(nvim, host).open()
    number = talk.ask("one?")
    nvim.press("GAtwo?<Esc><CR><C-c>")
    talk.done(number, reason="stopped")
    assert len(host.messages("chat.send")) == 1
    assert talk.lines()[-1] == "two?"


def test_two_chats(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    one = Talk(nvim, host, "k1").open()
    first = one.ask("one?")
    two = Talk(nvim, host, "k2").open("LCChat!")
    second = two.ask("two?")
    for number, text in ((first, "1"), (second, "2"), (first, "1"), (second, "2")):
        two.delta(number, text)
    two.done(second)
    assert two.lines()[-5:] == ["22", "", "## You", "", ""]
    nvim.press("q")
    nvim.command("buffer lcursor://chat/1")
    one.done(first)
    assert one.lines()[-5:] == ["11", "", "## You", "", ""]
    assert len(nvim.lua("return vim.tbl_count(require('lcursor.chat').all())") * "x") == 2


def test_a_chat_that_was_deleted_from_the_buffers_is_over(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    talk = Talk(nvim, host).open()
    number = talk.ask("why?")
    nvim.command("bdelete")
    assert host.wait(lambda: host.messages("chat.stop")) == [{"id": number}]
    nvim.wait_lua("return #require('lcursor.chat').all() == 0")
    Talk(nvim, host, "k2").open()
    assert nvim.lines() == ["## You", "", ""]


def test_edit_draws_it_again_while_the_answer_comes(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    talk = Talk(nvim, host).open(messages=HISTORY)
    number = talk.ask("why?", [ITEM])
    talk.delta(number, "One. ", "thought")
    talk.wait_text("One.")
    before = nvim.lines()
    nvim.command("edit")
    nvim.wait_lua("return vim.api.nvim_buf_line_count(0) > 3")
    talk.delta(number, "Two.")
    talk.done(number)
    assert nvim.lines() == [line + "Two." if line == "One. " else line for line in before]


def test_the_same_chat_is_shown_again(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    Talk(nvim, host).open()
    nvim.press("q")
    assert nvim.lua("return #vim.api.nvim_list_wins()") == 1
    nvim.command("LCChat")
    assert nvim.lua("return #vim.api.nvim_list_wins()") == 2
    nvim.settle()
    assert len(host.messages("chat.open")) == 1
    nvim.lua("require('lcursor.chat').toggle()")
    assert nvim.lua("return #vim.api.nvim_list_wins()") == 1


def test_an_answer_that_is_changed_says_so_and_is_read_so(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=NOTES, columns=110, lines=40)
    item = reach.item("file", "a.py")
    said = {"reasoning": "first\n\nsecond"}
    history = [
        message(1, "first question", items=[item]),
        message(2, "\n> a quote\n\nfirst answer\n", **said),
        *HISTORY[2:],
    ]
    talk = Talk(nvim, host).open(messages=history)
    nvim.command(str(row_of(talk, "first answer")))
    nvim.press("A, mended<Esc>")
    said_so = "edited here only: <CR> saves it"
    assert said_so in "\n".join(nvim.screen.rows())
    told = [str(each[0]) for each in notes(nvim)]
    assert [each for each in told if "still reads the original answer" in each] == told[-1:]
    nvim.press("u")
    assert said_so not in "\n".join(nvim.screen.rows())
    nvim.press("A, mended<Esc>")
    assert len(notes(nvim)) == len(told)  # it is said once
    nvim.press("<CR>")
    asked = reach.asked(host, "chat.amend")
    assert (asked["number"], asked["text"]) == (2, "> a quote\n\nfirst answer, mended")
    mended = message(7, asked["text"], branch=2, branches=2)
    talk.opened(asked["id"], [history[0], mended])
    assert "2 of 2" in "\n".join(nvim.screen.rows())
    assert said_so not in "\n".join(nvim.screen.rows())
    assert host.messages("chat.send") == []


def test_a_summary_stands_behind_what_it_stands_for(editor: Start, host: FakeHost) -> None:
    talk = Talk(editor(FILES), host).open(messages=HISTORY)
    number = talk.ask("third question")
    cost = {"messages": 2, "tokens_before": 900, "tokens_after": 90}
    summed = {"id": number, "chat": "k1", "number": 7, "last": 2, "text": "Goal: all.", **cost}
    talk.say("chat.summed", summed)
    talk.delta(number, "third answer")
    talk.done(number)
    rows = [row_of(talk, each) for each in ("with two paragraphs", "Goal: all.", "second question")]
    assert rows == sorted(rows)
    assert talk.lines()[-5:-3] == ["third answer", ""]


def test_a_summary_stands_before_the_question(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=NOTES)
    talk = Talk(nvim, host).open(messages=HISTORY)
    number = talk.ask("third question")
    talk.say(
        "chat.summed",
        {
            "id": number,
            "chat": "k1",
            "number": 7,
            "last": 4,
            "messages": 4,
            "tokens_before": 27000,
            "tokens_after": 1200,
            "text": "Goal: all.",
        },
    )
    talk.delta(number, "third answer")
    talk.done(number)
    lines = talk.lines()
    at = lines.index("## Summary")
    assert lines[at : at + 6] == [
        "## Summary",
        "",
        "> earlier messages, summarized",
        "Goal: all.",
        "",
        "## You",
    ]
    assert lines[at + 7] == "third question"
    assert "27k tokens are now 1.2k" in str(notes(nvim)[-1][0])
    assert nvim.lua("return vim.fn.foldclosed(...)", at + 3) == at + 3


def test_finding_all_rows_costs_in_proportion_to_a_chats_length(
    editor: Start, host: FakeHost
) -> None:
    code = """
    local session, buffer = require("lcursor.chat").current(), require("lcursor.chat.buffer")
    jit.off()
    jit.flush() -- compiled code calls no hook
    local count = 0
    debug.sethook(function() count = count + 1 end, "", 100)
    assert(buffer.is_whole(session))
    debug.sethook()
    jit.on()
    return count
    """
    steps = []
    for turns in (50, 200):
        stored = [message(n + 1, "so") for n in range(2 * turns)]
        nvim = editor(FILES)
        Talk(nvim, host, f"k{turns}").open(messages=stored)
        steps.append(nvim.lua(code))
    assert steps[1] < 8 * steps[0]
