"""Completion of `@` and `/` in a chat, as a person types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lcursor.context.mentions import parse
from tests.fakes.control import FakeHost
from tests.nvim import reach
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]
Params = dict[str, Any]

FILES = {"a.py": "def alpha(x):\n    return x\n"}


def offer(nvim: Pilot, host: FakeHost, word: str, words: list[tuple[str, str]]) -> Params:
    """Answer the question for a word."""

    def found() -> list[Params]:
        return [each for each in host.messages("chat.complete") if each["word"] == word]

    question: Params = host.wait(found)[-1]
    told = [{"word": each, "kind": "file", "info": info} for each, info in words]
    host.send("chat.completed", {"id": question["id"], "words": told})
    nvim.settle()
    return question


def menu(nvim: Pilot) -> list[str]:
    """Return the words of the menu that is open."""
    words: list[str] = nvim.lua(
        """
        local info = vim.fn.complete_info({ "items", "pum_visible" })
        local words = vim.tbl_map(function(each) return each.word end, info.items)
        return info.pum_visible == 0 and {} or words
        """
    )
    return words


def test_a_mention_is_completed_while_one_types(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    reach.chat(nvim, host)
    nvim.press("iWhat is @")
    question = offer(nvim, host, "@", [("@buffer", "the file one is in"), ("@file:", "a file")])
    assert question["path"].endswith("/a.py")
    assert menu(nvim) == ["@buffer", "@file:"]
    nvim.press("fi")
    offer(nvim, host, "@fi", [("@file:", "a file")])
    assert menu(nvim) == ["@file:"]
    nvim.press("<C-y>")
    assert nvim.lines()[-1] == "What is @file:"
    offer(nvim, host, "@file:", [("@file:a.py", "12 tokens"), ("@file:src/b.py", "")])
    nvim.press("<C-n><C-y>?")
    assert nvim.lines()[-1] == "What is @file:src/b.py?"


@pytest.mark.parametrize(
    "typed",
    [
        "mail me@",  # an address
        "`@",  # code
        "a\n```\n@",  # a fenced block
        "and/",  # no command: something stands before
        "x\n/",  # nor in the second line
    ],
)
def test_what_is_no_mention_asks_nothing(editor: Start, host: FakeHost, typed: str) -> None:
    nvim = editor(FILES)
    reach.chat(nvim, host)
    nvim.press("i")
    nvim.type(typed)
    nvim.press("f")
    # A timer of Neovim's own that ends after the one after which it is asked.
    nvim.lua("vim.defer_fn(function() _G.is_over = true end, 80)")
    nvim.wait_lua("return _G.is_over")
    nvim.settle()
    words = [each["word"] for each in host.messages("chat.complete")]
    assert not [word for word in words if word.endswith("f")]


def test_a_command_is_offered_at_the_beginning_only(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    reach.chat(nvim, host)
    nvim.press("i/ex")
    offer(nvim, host, "/ex", [("/explain", "what it is for")])
    assert menu(nvim) == ["/explain"]
    nvim.press("<CR>")
    assert nvim.lines()[-1] == "/explain"


def test_an_answer_for_a_word_that_is_gone_is_not_shown(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    reach.chat(nvim, host)
    nvim.press("i@di")
    question = reach.asked(host, "chat.complete")
    nvim.press(" and")
    words = [{"word": "@diff", "kind": "mention", "info": ""}]
    host.send("chat.completed", {"id": question["id"], "words": words})
    nvim.settle()
    assert menu(nvim) == []
    assert nvim.lines()[-1] == "@di and"


def test_omnifunc_asks_by_hand(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    reach.chat(nvim, host)
    reach.draft(nvim, "@di")
    nvim.press("A<C-x><C-o>")
    offer(nvim, host, "@di", [("@diff", ""), ("@dir:", "")])
    assert menu(nvim) == ["@diff", "@dir:"]
    nvim.press("<C-e>")
    assert nvim.lines()[-1] == "@di"


def test_a_deletion_asks_again(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    reach.chat(nvim, host)
    nvim.press("i@dix")
    offer(nvim, host, "@dix", [])
    assert menu(nvim) == []
    nvim.press("<BS>")
    offer(nvim, host, "@di", [("@diff", ""), ("@dir:", "")])
    assert menu(nvim) == ["@diff", "@dir:"]


def test_what_was_left_is_not_offered_again(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    reach.chat(nvim, host)
    nvim.press("i@di")
    offer(nvim, host, "@di", [("@diff", ""), ("@dir:", "")])
    nvim.press("<C-e>")
    nvim.settle()
    assert len(host.messages("chat.complete")) == 1
    assert menu(nvim) == []


def test_a_name_with_blanks_is_inserted_whole(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    reach.chat(nvim, host)
    nvim.press("i@file:my")
    offer(nvim, host, "@file:my", [('@file:"my own file.py"', "12 tokens")])
    nvim.press("<C-y>")
    assert nvim.lines()[-1] == '@file:"my own file.py"'


COMPLETE = """
local client = vim.lsp.get_clients({ bufnr = 0, method = "textDocument/completion" })[1]
local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
client:request("textDocument/completion", params, function(_, result) _G.found = result end, 0)
return { client.name, client.server_capabilities.completionProvider.triggerCharacters }
"""


@pytest.mark.parametrize("plugin", ["blink.cmp", "cmp_nvim_lsp", "mini.completion"])
def test_a_completion_plugin_shows_what_the_server_answers(
    editor: Start, host: FakeHost, plugin: str
) -> None:
    """As it asks every language server; Neovim's own menu stays closed."""
    nvim = editor(FILES)
    reach.chat(nvim, host)
    nvim.lua("package.loaded[...] = {}", plugin)
    nvim.press("ié @file:a")
    nvim.settle()
    assert host.messages("chat.complete") == []
    assert nvim.lua(COMPLETE) == ["lcursor-chat", ["@", "/", ":"]]
    offer(nvim, host, "@file:a", [("@file:a.py", "12 tokens"), ("@file:src/b.py", "")])
    assert menu(nvim) == []
    found = nvim.wait_lua("return _G.found")
    assert found["isIncomplete"] is True
    assert [each["label"] for each in found["items"]] == ["@file:a.py", "@file:src/b.py"]
    assert found["items"][0]["labelDetails"] == {"description": "12 tokens"}
    assert found["items"][0]["textEdit"] == {
        "newText": "@file:a.py",
        "range": {"start": {"line": 2, "character": 3}, "end": {"line": 2, "character": 10}},
    }


def test_no_lsp_attach_event_is_fired_for_our_server(editor: Start, host: FakeHost) -> None:
    """They map keys to what this server cannot do."""
    auto = "vim.api.nvim_create_autocmd('LspAttach', { command = 'let g:attached = 1' })\n"
    nvim = editor(FILES, init=auto)
    reach.chat(nvim, host)
    assert nvim.lua("return #vim.lsp.get_clients({ bufnr = 0 })") == 1
    assert nvim.lua("return vim.g.attached == nil and vim.o.eventignore == ''") is True
    nvim.command("edit")
    nvim.settle()
    nvim.press("Gi@d")
    offer(nvim, host, "@d", [("@diff", "")])
    assert menu(nvim) == ["@diff"]


CASES: list[tuple[str, list[list[str]]]] = [
    ("see @buffer and @diagnostics.", [["buffer", ""], ["diagnostics", ""]]),
    ("@file:src/a.py:10-20, please", [["file", "src/a.py:10-20"]]),
    ('@file:"my file.py"', [["file", "my file.py"]]),
    ("(@terminal:pytest)", [["terminal", "pytest"]]),
    ("me@buffer.org", []),
    ("`@buffer` and ``a ` @buffer``", []),
    ("```\n@buffer\n```\n@quickfix", [["quickfix", ""]]),
    ("~~~\n@buffer\n```\n@buffer\n~~~", []),
    ("@bufferette @buffer-x @buffer(x)", []),
    ("@property\n@codebase @diff", [["diff", ""]]),
    ("", []),
]


def test_the_mentions_of_what_the_editor_has(editor: Start) -> None:
    nvim = editor(FILES)
    for text, mentions in CASES:
        found = nvim.lua(
            """
            return vim.tbl_map(function(one)
              return { one.kind, one.argument }
            end, require("lcursor.editor.mentions").parse(...))
            """,
            text,
        )
        assert found == mentions, text


def test_they_are_what_python_finds(editor: Start) -> None:
    """The two halves read the same text: what is sent along is what is mentioned."""
    known = {"buffer", "selection", "diagnostics", "quickfix", "terminal"}
    known |= {"file", "dir", "symbol", "diff"}
    for text, mentions in CASES:
        found = [[one.kind, one.argument] for one in parse(text) if one.kind in known]
        assert found == mentions, text
