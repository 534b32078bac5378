"""What goes along with a question: read by the editor, kept back where it is secret."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim import reach
from tests.nvim.pilot import Pilot
from tests.nvim.talk import Talk, message

Start = Callable[..., Pilot]
Params = dict[str, Any]

CODE = "def alpha(x):\n    return x\n\n\ndef beta(y):\n    return alpha(y)\n"
FILES: dict[str, str | bytes] = {"a.py": CODE, "sub/b.py": "b = 1\n"}
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\n"


def sent(nvim: Pilot, host: FakeHost, text: str) -> list[Params]:
    """Ask a question in the chat and return what goes along."""
    count = len(host.messages("chat.send"))
    nvim.lua("require('lcursor.chat.send').ask(require('lcursor.chat').current(), ..., {})", text)
    question = reach.asked(host, "chat.send", count + 1)
    done = {
        **dict.fromkeys(("prompt_tokens", "cached_tokens", "answer_tokens", "context_tokens"), 0),
        **dict.fromkeys(("prompt_ms", "answer_ms", "first_ms"), 0.0),
    }
    ends = {"id": question["id"], "chat": "key1", "reason": "stop", "title": "", "is_exact": True}
    host.send("chat.done", {**ends, **done, "call": ""})
    nvim.settle()
    pieces: list[Params] = question["attachments"]
    return pieces


def named(pieces: list[Params]) -> list[tuple[str, str]]:
    """Return kinds and names."""
    return [(each["kind"], each["name"]) for each in pieces]


def test_a_range_goes_along(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    reach.chat(nvim, host, command="5,6LCChat")
    nvim.press("iWhat is it?<C-s>")
    question = reach.asked(host, "chat.send")
    assert question["text"] == "What is it?"
    assert question["attachments"] == [
        {
            "kind": "selection",
            "name": "a.py:5-6",
            "path": str(nvim.home / "project/a.py"),
            "first_row": 4,
            "text": "def beta(y):\n    return alpha(y)",
            "is_offered": False,
        }
    ]
    assert question["path"] == str(nvim.home / "project/a.py")


def test_a_question_in_the_command_is_asked_at_once(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    reach.chat(nvim, host, command="1LCChat why x?")
    question = reach.asked(host, "chat.send")
    assert (question["text"], named(question["attachments"])) == (
        "why x?",
        [("selection", "a.py:1-1")],
    )


def test_the_same_range_twice_goes_along_once(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    reach.chat(nvim, host, command="1,2LCChat")
    nvim.press("<C-w>p")
    nvim.command("1,2LCChat")
    assert named(sent(nvim, host, "so?")) == [("selection", "a.py:1-2")]


def test_an_answer_that_is_asked_for_again_takes_nothing_of_the_next_question(
    editor: Start, host: FakeHost
) -> None:
    nvim = editor(FILES)
    talk = Talk(nvim, host)
    talk.open("1,2LCChat", [message(1, "why?"), message(2, "So.")])
    nvim.lua("require('lcursor.chat').current().dropped = { 'rules' }")
    nvim.press("gggr")
    talk.done(talk.begin(talk.heard()))
    nvim.press("GAand?<Esc><CR>")
    asked = talk.heard()
    assert named(asked["attachments"]) == [("selection", "a.py:1-2")]
    assert asked["dropped"] == ["rules"]


def test_what_is_attached_before_a_question_is_stored_goes_with_the_next_one(
    editor: Start, host: FakeHost
) -> None:
    nvim = editor(FILES)
    talk = Talk(nvim, host).open("1,2LCChat")
    nvim.press("GAwhy?<Esc><CR>")
    asked = talk.heard()
    assert named(asked["attachments"]) == [("selection", "a.py:1-2")]
    nvim.press("<C-w>p")
    nvim.command("5,6LCChat")
    talk.done(talk.begin(asked))
    nvim.press("GAand?<Esc><CR>")
    assert named(talk.heard()["attachments"]) == [("selection", "a.py:5-6")]


def test_what_is_mentioned_is_read(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    nvim.press("Goz = 3<Esc>ggVj<Esc>")
    nvim.lua(
        """
        vim.diagnostic.set(vim.api.nvim_create_namespace("t"), 0, {
          { lnum = 5, col = 11, message = "no alpha\\nhere", severity = 1, source = "ruff",
            code = "F1" },
          { lnum = 0, col = 0, message = "a hint", severity = 4 },
        })
        vim.fn.setqflist({}, " ", { title = "make", items = {
          { filename = "sub/b.py", lnum = 1, col = 3, text = "bad b", type = "e" },
          { text = "make: done" },
        } })
        """
    )
    reach.chat(nvim, host)
    pieces = sent(nvim, host, "@buffer @selection @diagnostics @quickfix and `@terminal`")
    assert named(pieces) == [
        ("buffer", "a.py"),
        ("selection", "a.py:1-2"),
        ("diagnostics", "a.py"),
        ("quickfix", "make"),
    ]
    assert pieces[0]["text"] == CODE + "z = 3\n"
    assert pieces[1]["text"] == "def alpha(x):\n    return x"
    assert pieces[2]["text"] == "a.py:6:12: error: no alpha here [ruff F1]\n    return alpha(y)"
    assert pieces[3]["text"] == "sub/b.py:1:3: E: bad b\nmake: done"


def test_what_is_on_the_screen_is_offered_where_nothing_else_is_named(
    editor: Start, host: FakeHost
) -> None:
    nvim = editor(FILES)
    nvim.press("Goz = 3<Esc>ggVj<Esc>")
    reach.chat(nvim, host)

    (piece,) = sent(nvim, host, "What is alpha?")

    assert piece == {
        "kind": "screen",
        "name": "a.py:1-7 (cursor in line 2)",
        "path": str(nvim.home / "project/a.py"),
        "first_row": 0,
        "text": CODE + "z = 3",
        "is_offered": True,
    }
    assert named(sent(nvim, host, "Is this right? @buffer")) == [("buffer", "a.py")]


def test_only_what_one_sees_is_on_the_screen(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "".join(f"x{row} = {row}\n" for row in range(400))}, lines=24)
    nvim.press("200Gzt203G")
    reach.chat(nvim, host)

    (piece,) = sent(nvim, host, "What is this?")

    rows = piece["text"].split("\n")
    assert (rows[0], piece["first_row"]) == ("x199 = 199", 199)
    assert 10 < len(rows) <= 24
    assert piece["name"] == f"a.py:200-{199 + len(rows)} (cursor in line 203)"


def test_of_a_very_high_window_the_rows_around_the_cursor_go_along(
    editor: Start, host: FakeHost
) -> None:
    nvim = editor({"a.py": "".join(f"x{row} = {row}\n" for row in range(400))}, lines=210)
    nvim.press("100Gzt250G")
    reach.chat(nvim, host)

    (piece,) = sent(nvim, host, "What is this?")

    assert len(piece["text"].split("\n")) == 120
    assert piece["first_row"] < 249 < piece["first_row"] + 120


def test_a_buffer_that_should_attach_excludes_is_only_sent_if_it_is_named(
    editor: Start, host: FakeHost
) -> None:
    init = "require('lcursor').setup({ should_attach = function() return false end })\n"
    nvim = editor(FILES, init=init)
    nvim.press("Goz = 3<Esc>gg")
    reach.chat(nvim, host)
    assert sent(nvim, host, "What is alpha?") == []
    assert named(sent(nvim, host, "Is this right? @buffer")) == [("buffer", "a.py")]


def test_nothing_goes_along_unasked_where_the_user_says_so(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, config={"chat": {"auto_context": False}})
    nvim.press("Goz = 3<Esc>ggVj<Esc>")
    reach.chat(nvim, host)
    assert sent(nvim, host, "What is alpha?") == []
    assert named(sent(nvim, host, "What is on @screen?")) == [
        ("screen", "a.py:1-7 (cursor in line 2)")
    ]


def test_unsaved_text_of_a_file_that_is_mentioned(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    nvim.command("edit sub/b.py")
    nvim.press("Gob = 2<Esc>")
    nvim.command("edit a.py")
    reach.chat(nvim, host)
    for text in ("@file:sub/b.py:1-2", "@file:b.py", "@dir:sub", "@file:sub/*.py"):
        assert named(sent(nvim, host, text)) == [("buffer", "sub/b.py")], text
    assert sent(nvim, host, "@file:a.py @dir:other @file:c/b.py") == []


def test_a_command_may_be_about_what_is_selected_now(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    nvim.press("ggVj<Esc>")
    reach.chat(nvim, host)
    pieces = sent(nvim, host, "/explain")
    assert named(pieces) == [("buffer", "a.py"), ("selection", "a.py:1-2")]
    assert [each["is_offered"] for each in pieces] == [True, False]
    assert named(sent(nvim, host, "/review")) == [("buffer", "a.py")]
    nvim.press("<C-w>pG<C-w>p")  # the cursor left it
    assert named(sent(nvim, host, "/explain")) == [("buffer", "a.py")]


def test_what_is_not_saved_is_sent_for_a_diff(editor: Start, host: FakeHost) -> None:
    nvim = editor({**FILES, ".env": "A=1\n"}, init=reach.NOTES)
    for name in ("sub/b.py", ".env", "new.py"):
        nvim.command(f"edit {name}")
        nvim.press("Gox = 2<Esc>")
    nvim.command("edit a.py")
    reach.chat(nvim, host)
    unsaved = [("buffer", "new.py"), ("buffer", "sub/b.py")]
    pieces = sent(nvim, host, "/review")
    assert sorted(named(pieces)) == [("buffer", "a.py"), *unsaved]
    assert not [each for each in reach.told(nvim) if "not attached" in each]  # nobody named them
    pieces = sent(nvim, host, "what is in @diff and @diff:HEAD")
    assert sorted(named(pieces)) == unsaved
    assert all(each["is_offered"] for each in pieces)
    assert "b = 1\nx = 2\n" in [each["text"] for each in pieces]
    assert [each for each in reach.told(nvim) if ".env is not attached" in each]
    assert named(sent(nvim, host, "what is in @different")) == [
        ("screen", "a.py:1-6 (cursor in line 1)")
    ]


def test_what_a_program_attaches_is_whole(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    nvim.lua(
        """
        require("lcursor").chat({ question = "/fix", attachments = {
          { text = "log" }, { kind = "terminal", name = "make", text = "boom" },
        } })
        """
    )
    question = reach.asked(host, "chat.open")
    host.send("chat.opened", reach.opened(nvim, question["id"]))
    pieces = reach.asked(host, "chat.send")["attachments"]
    none = {"path": "", "first_row": 0, "is_offered": False}
    assert pieces[:2] == [
        {"kind": "text", "name": "text", "text": "log", **none},
        {"kind": "terminal", "name": "make", "text": "boom", **none},
    ]
    assert all(each["is_offered"] for each in pieces[2:])


def test_a_terminal(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    nvim.lua(
        """
        vim.cmd.new()
        vim.fn.jobstart({ "sh", "-c", "printf 'boom\\nline 3\\n'; cat" }, { term = true })
        """
    )
    nvim.wait_lua("return vim.fn.getline(2) == 'line 3'")
    nvim.command("wincmd p")
    reach.chat(nvim, host)
    (piece,) = sent(nvim, host, "why @terminal")
    assert piece["kind"] == "terminal"
    assert piece["text"].startswith("boom\nline 3")


SECRETS = [
    ("secrets.yaml", "a: 1\n", "its name says that it holds secrets"),
    ("plain.txt", "x\n" + KEY, "it contains a private key"),
    ("late.txt", "x\n" * 90 + KEY, "it contains a private key"),
    ("my.vault", "a\n", "its name says that it holds secrets"),
]


@pytest.mark.parametrize(("name", "text", "why"), SECRETS, ids=[each[0] for each in SECRETS])
def test_a_secret_is_rejected_and_reported(
    editor: Start, host: FakeHost, name: str, text: str, why: str
) -> None:
    nvim = editor({name: text}, init=reach.NOTES, config={"privacy": {"exclude": ["*.vault"]}})
    nvim.command("1,$LCChat")
    assert [each for each in reach.told(nvim) if why in each and name in each]
    assert host.messages("chat.open") == []
    reach.chat(nvim, host)
    assert sent(nvim, host, "@buffer") == []
    assert len([each for each in reach.told(nvim) if "not attached" in each]) == 2
    assert "abc" not in str(host.log)


def test_what_git_ignores_goes_along_when_it_is_named(editor: Start, host: FakeHost) -> None:
    nvim = editor({"built.py": "x = 1\n", ".gitignore": "built.py\n"})
    subprocess.run(["git", "init", "-q"], cwd=nvim.home / "project", check=True)
    reach.chat(nvim, host)
    assert named(sent(nvim, host, "@buffer")) == [("buffer", "built.py")]


def test_chat_of_the_api(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=reach.NOTES)
    nvim.press("ggVj")
    nvim.lua("require('lcursor').chat({ question = 'what is it?' })")
    question = reach.asked(host, "chat.open")
    host.send("chat.opened", reach.opened(nvim, question["id"]))
    send = reach.asked(host, "chat.send")
    assert (send["text"], named(send["attachments"])) == (
        "what is it?",
        [("selection", "a.py:1-2")],
    )
    nvim.lua("require('lcursor').chat({ qestion = 'x' })")
    assert "qestion" in reach.told(nvim)[-1]
    nvim.lua("require('lcursor').chat({ toggle = true })")
    assert nvim.lua("return #vim.api.nvim_list_wins()") == 1
    nvim.lua("require('lcursor').chat({ draft = 'And @diff?', range = { 5, 5 } })")
    nvim.settle()
    assert nvim.lines()[-1] == "And @diff?"


def test_the_newest_chat_is_opened_once(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    reach.chat(nvim, host)
    row = {"chat": "key1", "title": "t", "root": "", "model": "", "messages": 2, "updated_s": 1.0}
    for count in (1, 2):
        nvim.command("LCursor chat last")
        question = reach.asked(host, "chat.list", count)
        rows = [{**row, "preview": ""}]
        host.send("chat.listed", {"id": question["id"], "chats": rows, "note": ""})
        nvim.settle()
    assert len(host.messages("chat.open")) == 1
    assert nvim.lua("return #require('lcursor.chat').all()") == 1
