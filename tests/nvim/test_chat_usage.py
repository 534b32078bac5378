"""The context of a question before it is sent, and its sources after: the lists and their keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.fakes.control import FakeHost
from tests.nvim import reach
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]
Params = dict[str, Any]

FILES = {"a.py": "def alpha(x):\n    return x\n\n\ndef beta(y):\n    return alpha(y)\n"}


def items(nvim: Pilot, dropped: bool = False) -> list[Params]:
    """Return what a question of two attachments consists of."""
    path = str(nvim.home / "project/a.py")
    file = reach.item("file", "a.py:5-6", 1234, path=path, first_row=4)
    if dropped:
        file = {**file, "is_left_out": True, "note": "you dropped it", "tokens": 0}
    return [
        reach.item("system", "what the model is told first", 100),
        file,
        reach.item("file", ".env", 0, is_left_out=True, note="its name says so"),
        reach.item("question", "your question", 6),
    ]


def bill(nvim: Pilot, host: FakeHost, count: int = 1, **other: Any) -> Params:
    """Answer the request for a preview."""
    question = reach.asked(host, "chat.preview", count)
    lines = other.get("items", items(nvim))
    total = sum(each["tokens"] for each in lines)
    answer = {"id": question["id"], "chat": "key1", "items": lines, "total_tokens": total}
    host.send("chat.previewed", {**answer, "limit_tokens": 8000, **other})
    nvim.settle()
    return question


def test_the_preview_says_what_each_line_costs(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, columns=120)
    reach.chat(nvim, host, [reach.message(1, "user", "a"), reach.message(2, "assistant", "b")])
    reach.draft(nvim, "Why @file:a.py:5-6 ?")
    nvim.press("gb")
    assert reach.sheet(nvim, "context") == ["  counting …"]
    question = bill(nvim, host)
    assert (question["text"], question["after"]) == ("Why @file:a.py:5-6 ?", 2)
    assert reach.sheet(nvim, "context") == [
        "  instructions  what the model is told first    100",
        "  file          a.py:5-6                      1,234",
        "✗ file          .env                              -  its name says so",
        "  question      your question                     6",
    ]
    assert reach.winbar(nvim).startswith(" 1,340 of 8,000 tokens, 17% · dd drop, u restore")
    nvim.press("q")
    assert reach.sheet(nvim, "context") == []
    assert nvim.lua("return vim.api.nvim_buf_get_name(0)") == "lcursor://chat/1"
    assert host.messages("chat.send") == []


def test_a_line_is_dropped_brought_back_and_dropped_at_sending(
    editor: Start, host: FakeHost
) -> None:
    nvim = editor(FILES, columns=120)
    reach.chat(nvim, host)
    reach.draft(nvim, "Why @file:a.py:5-6 ?")
    nvim.press("gb")
    bill(nvim, host)
    nvim.press("jdd")
    assert reach.sheet(nvim, "context")[1].startswith("− file          a.py:5-6")
    assert reach.winbar(nvim).startswith(" 106 of 8,000 tokens, 2%")
    question = bill(nvim, host, 2, items=items(nvim, dropped=True))
    assert question["dropped"] == ["file:a.py:5-6"]
    nvim.press("u")
    assert bill(nvim, host, 3)["dropped"] == []
    assert reach.sheet(nvim, "context")[1].endswith("1,234")
    nvim.press("2Gdd")
    bill(nvim, host, 4, items=items(nvim, dropped=True))
    nvim.press("<CR>")
    sent = reach.asked(host, "chat.send")
    assert (sent["text"], sent["dropped"]) == ("Why @file:a.py:5-6 ?", ["file:a.py:5-6"])
    assert reach.sheet(nvim, "context") == []


def test_several_lines_at_once(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, columns=120, init=reach.NOTES)
    reach.chat(nvim, host)
    reach.draft(nvim, "Why?")
    nvim.press("gb")
    lines = [reach.item("file", name, 10) for name in ("a", "b", "c")]
    bill(nvim, host, items=lines)
    nvim.press("Vjd")
    assert bill(nvim, host, 2, items=lines)["dropped"] == ["file:a", "file:b"]
    nvim.press("u")
    assert bill(nvim, host, 3, items=lines)["dropped"] == []
    nvim.press("u")
    assert reach.told(nvim)[-1] == "lcursor: nothing to restore"


def test_what_cannot_be_dropped_says_so(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, columns=120, init=reach.NOTES)
    reach.chat(nvim, host)
    nvim.press("gb")
    bill(nvim, host, items=[*items(nvim), reach.item("history", "the chat so far", 50)])
    nvim.press("dd")
    assert reach.told(nvim)[-1] == "lcursor: the instructions cannot be dropped"
    nvim.press("Gdd")
    assert ":LCursor chat compact" in reach.told(nvim)[-1]
    nvim.press("kkdd")
    assert reach.told(nvim)[-1] == "lcursor: already left out"
    assert len(host.messages("chat.preview")) == 1


def test_too_much_says_what_to_drop(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, columns=120)
    reach.chat(nvim, host)
    reach.draft(nvim, "Why?")
    nvim.press("gb")
    lines = [reach.item("file", "small", 10), reach.item("file", "huge", 9000)]
    bill(nvim, host, items=lines)
    assert reach.winbar(nvim).startswith(" 9,010 of 8,000 tokens, 113%: too many; drop huge")


def test_an_unknown_limit_and_an_estimate_are_said(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, columns=120)
    reach.chat(nvim, host)
    nvim.press("gb")
    bill(nvim, host, items=[reach.item("question", "", 1234, is_exact=False)], limit_tokens=0)
    assert "about 1,234 tokens; the limit is not known yet" in reach.winbar(nvim)
    assert reach.sheet(nvim, "context") == ["  question  question  ~1,234"]


def test_the_preview_of_an_edited_question_sends_a_branch(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, columns=120)
    talk = [
        reach.message(1, "user", "first"),
        reach.message(2, "assistant", "one"),
        reach.message(3, "user", "second"),
        reach.message(4, "assistant", "two"),
    ]
    reach.chat(nvim, host, talk)
    nvim.lua("vim.fn.search('^second')")
    nvim.press("Athird<Esc>gb")
    question = bill(nvim, host)
    assert (question["text"], question["after"]) == ("secondthird", 2)
    nvim.press("<CR>")
    sent = reach.asked(host, "chat.send")
    assert (sent["text"], sent["after"]) == ("secondthird", 2)
    nvim.settle()
    assert "two" not in nvim.lines()
    assert "one" in nvim.lines()


def test_a_preview_that_fails_closes(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, columns=120, init=reach.NOTES)
    reach.chat(nvim, host)
    nvim.press("gb")
    question = reach.asked(host, "chat.preview")
    error = {"code": "chat_missing", "message": "no chat", "hint": "", "level": "warn"}
    host.send("error", {"id": question["id"], **error})
    nvim.settle()
    assert reach.sheet(nvim, "context") == []
    assert reach.told(nvim) == ["lcursor: no chat"]


def test_the_sources_lead_to_their_files(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, columns=120)
    talk = [
        reach.message(1, "user", "why?", items(nvim)),
        reach.message(2, "assistant", "so"),
        reach.message(3, "user", "and?"),
        reach.message(4, "assistant", "no"),
    ]
    reach.chat(nvim, host, talk)
    nvim.lua("vim.fn.search('^so')")
    nvim.press("gs")
    assert reach.sheet(nvim, "sources") == [
        "  file  a.py:5-6  1,234",
        "✗ file  .env          -  its name says so",
    ]
    assert reach.winbar(nvim).startswith(" 1 sent, 1,234 tokens; 1 left out")
    nvim.press("<CR>")
    assert nvim.lua("return vim.fn.expand('%:t')") == "a.py"
    assert nvim.lua("return vim.api.nvim_win_get_cursor(0)") == [5, 0]


def test_the_sources_as_a_quickfix_list(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, columns=120)
    reach.chat(nvim, host, [reach.message(1, "user", "why?", items(nvim))])
    nvim.press("gs<C-q>")
    found = nvim.lua("return vim.tbl_map(function(i) return i.lnum end, vim.fn.getqflist())")
    assert found == [5]


def test_places_that_are_named_in_an_answer(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, columns=120, init=reach.NOTES)
    said = "see `a.py:5`, (a.py#L2) and nothing.py\n\nx"
    asked = reach.message(1, "user", "why @file:a.py ?", items(nvim))
    reach.chat(nvim, host, [asked, reach.message(2, "assistant", said)])

    def follow(pattern: str) -> object:
        nvim.command("wincmd b")
        nvim.lua("vim.fn.cursor(1, 1) vim.fn.search(...)", pattern)
        nvim.press("gf")
        return nvim.lua("return { vim.fn.expand('%:t'), vim.fn.line('.') }")

    assert follow("a.py:5") == ["a.py", 5]
    assert follow("a.py#L2") == ["a.py", 2]
    assert follow("@file:a.py ?") == ["a.py", 1]
    assert follow("^> - file a.py") == ["a.py", 5]
    assert follow("nothing.py") != ["a.py", 5]
    assert reach.told(nvim)[-1] == "lcursor: no file name under the cursor"
