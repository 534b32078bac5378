"""The front ends: blink.cmp, nvim-cmp and language clients, by their documented interfaces."""

from __future__ import annotations

from typing import Any

import pytest

from lcursor.drive.editor import ROOT
from tests.fakes.control import FakeHost
from tests.nvim.frontends import (
    DEF,
    FRONT_ENDS,
    NO_GHOST,
    SUGGESTION,
    Start,
    answers,
    insert,
    starter,
    texts,
)


@pytest.fixture
def start(editor: Start) -> Start:
    """Start a Neovim without ghost text, in which each of `FRONT_ENDS` is a Lua function."""
    return starter(editor)


def test_blink_gets_the_first_line_early_and_then_only_what_is_new(
    start: Start, host: FakeHost
) -> None:
    nvim = start()
    insert(nvim, "GAre")
    nvim.lua("blink()")
    request = host.request()
    assert (request["row"], request["col"], request["trigger"]) == (1, 6, "auto")
    host.partial(request, "turn")
    host.partial(request, "turn x\n  ")
    host.partial(request, "turn x\n    #")
    host.done(request, SUGGESTION)
    early, late = answers(nvim, 2)
    assert texts(early) == ["return x"]
    assert texts(late) == ["return x\n    # more"]
    assert late[0]["textEdit"] == {
        "newText": "return x\n    # more",
        "range": {"start": {"line": 1, "character": 4}, "end": {"line": 1, "character": 6}},
    }
    assert (late[0]["label"], late[0]["filterText"]) == ("return x …", "return x")
    flags = "return { answers[1].is_incomplete_forward, answers[1].is_incomplete_backward }"
    assert nvim.lua(flags) == [True, True]


def test_blink_keeps_the_bytes_of_a_word_that_is_not_ascii(start: Start, host: FakeHost) -> None:
    nvim = start({"a.py": 'é = "ü"\n'})
    insert(nvim, "oé = naï")
    nvim.lua("blink()")
    host.done(host.request(), "ve()")
    (items,) = answers(nvim)
    edit = items[0]["textEdit"]
    assert edit["newText"] == "naïve()"
    assert [edit["range"][end]["character"] for end in ("start", "end")] == [5, 9]


def test_blink_cancels_what_the_host_works_on(start: Start, host: FakeHost) -> None:
    nvim = start()
    insert(nvim)
    nvim.lua("blink()")
    request = host.request()
    nvim.lua("cancel()")
    nvim.settle()
    assert host.cancelled == [request["id"]]
    host.done(request, "pass")
    nvim.lua("cancel()")
    nvim.settle()
    assert host.cancelled == [request["id"]]
    assert nvim.lua("return #answers") == 0


def test_cmp_gets_all_of_it_once(start: Start, host: FakeHost) -> None:
    nvim = start()
    insert(nvim, "GAre")
    nvim.lua("cmp()")
    request = host.request()
    host.partial(request, "turn x\n  ")
    host.done(request, SUGGESTION)
    (items,) = answers(nvim)
    assert texts(items) == ["return x\n    # more", "return x"]
    assert nvim.lua("return answers[1].isIncomplete")
    at = "return vim.fn.match('x.re_1', source:get_keyword_pattern() .. '$')"
    assert nvim.lua(at) == 2
    assert nvim.lua("return source:get_position_encoding_kind()") == "utf-8"


def test_cmp_keeps_white_space_that_it_would_trim(start: Start, host: FakeHost) -> None:
    nvim = start({"a.py": "def f(x):"})
    insert(nvim)
    nvim.lua("cmp()")
    host.done(host.request(), "\n    return x")
    (items,) = answers(nvim)
    assert items[0]["textEdit"] == {
        "newText": "f(x):\n    return x",
        "range": {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 9}},
    }


def test_cmp_ends_the_question_before(start: Start, host: FakeHost) -> None:
    nvim = start()
    insert(nvim)
    nvim.lua("cmp()")
    first = host.request()
    nvim.press("r")
    nvim.lua("cmp()")
    second = host.request()
    assert first["id"] in host.cancelled
    host.done(first, "stale")
    host.done(second, "eturn x")
    (items,) = answers(nvim)
    assert texts(items) == ["return x"]


def test_a_client_gets_inline_items(start: Start, host: FakeHost) -> None:
    nvim = start({"a.py": "é = 1\n"})
    insert(nvim, "ggA + é")
    nvim.lua("inline()")
    host.done(host.request(), " + 2\ny = 3")
    (items,) = answers(nvim)
    end = {"line": 0, "character": 11}  # bytes: the client offers utf-8
    assert items == [{"insertText": " + 2\ny = 3", "range": {"start": end, "end": end}}]


def test_a_client_may_count_in_utf_16(start: Start, host: FakeHost) -> None:
    nvim = start({"a.py": "é = 1\n"})
    only = "vim.lsp.stop_client(client.id); client = nil\n"
    nvim.lua(only + "attach({ general = { positionEncodings = { 'utf-16' } } })")
    assert nvim.lua("return client.offset_encoding") == "utf-16"
    insert(nvim, "ggA + é")
    nvim.lua("inline()")
    request = host.request()
    assert (request["row"], request["col"]) == (0, 11)
    host.done(request, " + 2")
    (items,) = answers(nvim)
    assert items[0]["range"]["start"] == {"line": 0, "character": 9}


@pytest.mark.parametrize(
    ("keys", "said", "label"),
    [("GAre", SUGGESTION, "return x …"), ("kA", "\n    return x", "⏎ return x")],
    ids=["two lines", "a line below"],
)
def test_the_native_menu_takes_all_lines_as_they_are(
    start: Start, host: FakeHost, keys: str, said: str, label: str
) -> None:
    nvim = start(init="vim.o.completeopt = 'menuone,noselect'\n")
    insert(nvim, "G" + keys)
    before = nvim.lines()
    nvim.lua("vim.lsp.completion.enable(true, client.id, 0); vim.lsp.completion.get()")
    request = host.request()
    host.done(request, said)
    nvim.wait_lua("return vim.fn.pumvisible() == 1")
    items = nvim.lua("return vim.fn.complete_info().items")
    labels = [item["abbr"] for item in items]
    nvim.press("<C-n>" * (labels.index(label) + 1) + "<C-y>")
    row = request["row"]
    whole = before[row] + said
    assert nvim.lines() == [*before[:row], *whole.split("\n"), *before[row + 1 :]]
    nvim.press(";")
    assert nvim.lines()[row + 1] == whole.split("\n")[1] + ";"


def test_a_client_whose_text_went_on_gets_nothing_old(start: Start, host: FakeHost) -> None:
    nvim = start()
    insert(nvim)
    nvim.lua("inline()")
    request = host.request()
    nvim.press("r")
    host.done(request, "return x")
    assert answers(nvim) == [[]]


def test_a_client_cancels_and_gets_nothing_more(start: Start, host: FakeHost) -> None:
    nvim = start()
    insert(nvim)
    number = nvim.lua("return completion()")
    request = host.request()
    nvim.lua("cancel()")
    nvim.settle()
    assert host.cancelled == [request["id"]]
    assert nvim.lua("return client.requests[...] == nil", number)
    host.done(request, "pass")
    nvim.settle()
    assert nvim.lua("return #answers") == 0


def test_the_set_up_of_the_help_attaches_a_client(editor: Start, host: FakeHost) -> None:
    text = (ROOT / "doc/lcursor.txt").read_text()
    begin = text.index('vim.lsp.config("lcursor"')
    nvim = editor(DEF, config=NO_GHOST, init=text[begin : text.index("\n<", begin)])
    nvim.wait_lua("local c = vim.lsp.get_clients({ bufnr = 0 })[1]; return c and c.initialized")
    methods = "vim.iter({ 'completion', 'inlineCompletion' }):all(function(name)"
    supports = "return vim.lsp.get_clients()[1]:supports_method('textDocument/' .. name) end)"
    assert nvim.lua(f"return {methods} {supports}")
    assert nvim.lua("return vim.lsp.get_clients()[1].server_info.name") == "lcursor"
    assert not nvim.has_started_host()


@pytest.mark.parametrize("way", ["client:stop()", "client:stop(true)"])
def test_a_client_that_stops_ends_its_questions(start: Start, host: FakeHost, way: str) -> None:
    nvim = start()
    insert(nvim)
    nvim.lua("inline()")
    request = host.request()
    nvim.lua(way)
    nvim.wait_lua("return client:is_stopped() and #vim.lsp.get_clients() == 0")
    nvim.settle()
    assert host.cancelled == [request["id"]]
    assert nvim.lua("return client.rpc.request('shutdown', nil, function() end)") is False


# The server itself, below the client: ids, and one acknowledgement for each request.
SERVER = """
local exits = 0
local function on_exit() exits = exits + 1 end
local server = require("lcursor.integrations.lsp").cmd({ on_exit = on_exit })
_G.server, _G.acks = server, {}
local function ack(id) table.insert(_G.acks, id) end
local said = {}
local function ask(method, params)
  return select(2, server.request(method, params, function(err, result)
    table.insert(said, { method, err and err.code or 0, vim.inspect(result) })
  end, ack))
end
local uri = vim.uri_from_bufnr(0)
local function at(row, file)
  local position = { line = row, character = 99 }
  return { textDocument = { uri = file or uri }, position = position, context = {} }
end
local ids = {
  ask("initialize", { capabilities = {} }),
  ask("textDocument/hover", {}),
  ask("textDocument/completion", at(1)),
  ask("textDocument/inlineCompletion", at(1)),
  ask("textDocument/completion", at(4711)),
  ask("textDocument/inlineCompletion", at(0, "file:///no/such/file.py")),
  ask("textDocument/completion", at(0)),
}
server.notify("$/cancelRequest", { id = ids[7] })
server.notify("$/cancelRequest", { id = 999 })
ids[8] = ask("shutdown")
assert(vim.wait(5000, function() return #_G.acks == #ids end, 5))
server.notify("exit")
server.terminate()
table.sort(_G.acks)
return { ids = ids, acks = _G.acks, said = said, exits = exits, closing = server.is_closing() }
"""


def test_the_server_acknowledges_every_request_once(start: Start, host: FakeHost) -> None:
    """In normal mode: all is refused or unknown, yet nobody is left waiting."""
    nvim = start()
    found = nvim.lua(SERVER)
    assert found["ids"] == found["acks"] == list(range(1, 9))
    codes = {method: code for method, code, _ in found["said"]}
    assert codes["textDocument/hover"] == -32601
    assert len(found["said"]) == 7  # the cancelled one hears nothing
    assert (found["exits"], found["closing"]) == (1, True)
    assert nvim.lua("return #vim.api.nvim_list_bufs()") == 1
    assert host.requests == []


@pytest.mark.parametrize("front_end", FRONT_ENDS)
@pytest.mark.parametrize(
    ("files", "config"),
    [
        ({".env": "KEY=1\n"}, {}),
        ({"key.py": "-----BEGIN RSA PRIVATE KEY-----\n"}, {}),
        ({"a.md": "text\n"}, {}),
        (DEF, {"completion": {"enabled": False}}),
    ],
    ids=["secret", "private key", "filetype", "switched off"],
)
def test_what_is_never_read_gets_no_items_and_an_answer(
    start: Start, host: FakeHost, files: dict[str, str], config: Any, front_end: str
) -> None:
    nvim = start(files, config=config)
    nvim.press("GA")
    nvim.lua(front_end + "()")
    assert answers(nvim) == [[]]
    assert not nvim.has_started_host()
    if front_end in {"blink", "cmp"}:
        name = "enabled" if front_end == "blink" else "is_available"
        assert nvim.lua(f"return source:{name}()") is False


@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_a_key_near_the_cursor_is_seen_though_the_top_is_harmless(
    start: Start, host: FakeHost, front_end: str
) -> None:
    nvim = start({"a.py": "x\n" * 400 + "-----BEGIN RSA PRIVATE KEY-----\n"})
    insert(nvim)
    nvim.lua(front_end + "()")
    assert answers(nvim) == [[]]
    assert host.requests == []


@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_text_right_of_the_cursor_is_for_those_who_ask(
    start: Start, host: FakeHost, front_end: str
) -> None:
    nvim = start({"a.py": "f(, y)\n"})
    insert(nvim, "gg0lla")
    nvim.lua(front_end + "()")
    assert answers(nvim) == [[]]
    by_hand = {"blink": "{ initial_kind = 'manual' }", "cmp": "'manual'", "inline": "1"}
    if front_end in by_hand:
        nvim.lua(f"{front_end}({by_hand[front_end]})")
        request = host.request()
        assert (request["single_line"], request["trigger"]) == (True, "manual")
        host.done(request, "x\nz")
        assert [text[-1] for text in texts(answers(nvim, 2)[1])] == ["x"]


@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_an_open_menu_is_no_reason_against_items(
    start: Start, host: FakeHost, front_end: str
) -> None:
    nvim = start()
    insert(nvim)
    nvim.lua("package.loaded['blink.cmp'] = { is_menu_visible = function() return true end }")
    nvim.lua(front_end + "()")
    host.done(host.request(), "pass")
    assert texts(answers(nvim)[0]) == ["pass"]


@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_a_newer_question_answers_the_older_one_with_nothing(
    start: Start, host: FakeHost, front_end: str
) -> None:
    nvim = start()
    insert(nvim)
    nvim.lua(front_end + "()")
    first = host.request()
    nvim.press("x = ")
    nvim.lua("source = nil; inline()")
    second = host.request()
    assert second["id"] > first["id"]
    assert answers(nvim) == [[]]
    host.done(first, "stale")
    host.done(second, "1")
    assert texts(answers(nvim, 2)[1]) == ["1"]


@pytest.mark.parametrize("front_end", FRONT_ENDS)
@pytest.mark.parametrize("end", ["<Esc>", "the host dies", "the model fails"])
def test_every_end_answers(start: Start, host: FakeHost, front_end: str, end: str) -> None:
    nvim = start()
    insert(nvim)
    nvim.lua(front_end + "()")
    request = host.request()
    if end == "<Esc>":
        nvim.press("<Esc>")
        assert host.cancelled == [request["id"]]
    elif end == "the host dies":
        host.kill()
    else:
        host.done(request, "", "failed")
    nvim.wait_lua("return #answers == 1")
    assert nvim.lua("return answers[1].items") in ([], {})


def test_menu_and_ghost_share_one_request(start: Start, host: FakeHost) -> None:
    nvim = start(config={})
    request = nvim.insert("GA")
    nvim.lua("blink()")
    assert nvim.count() == 1
    nvim.lua("cancel()")
    nvim.lua("blink()")
    nvim.settle()
    assert host.cancelled == []
    host.done(request, "pass")
    nvim.wait_ghost(lambda text: text == "pass")
    assert texts(answers(nvim)[0]) == ["pass"]


def test_a_menu_that_asks_elsewhere_leaves_the_ghost_what_it_has(
    start: Start, host: FakeHost
) -> None:
    nvim = start(config={})
    request = nvim.insert("GA")
    host.partial(request, "return x")
    nvim.wait_ghost()
    nvim.press("r")
    nvim.lua("blink()")
    second = host.request()
    host.done(request, "return x + 1")
    host.done(second, "eturn y")
    assert texts(answers(nvim)[0]) == ["return y"]
    assert nvim.shows() == "eturn x"
    assert nvim.count() == 2


def test_two_ghosts_are_reported_once(start: Start, host: FakeHost) -> None:
    nvim = start(config={})
    nvim.insert("GA")
    nvim.lua("told = {}; vim.notify = function(text) table.insert(told, text) end")
    nvim.lua("inline(); inline()")
    nvim.settle()
    (told,) = nvim.lua("return told")
    assert "lcursor-lsp" in told
    assert "*lcursor-lsp*" in (ROOT / "doc/lcursor.txt").read_text()


def test_native_inline_completion_alone_is_not_warned_of(start: Start, host: FakeHost) -> None:
    nvim = start()
    insert(nvim)
    nvim.lua("told = {}; vim.notify = function(text) table.insert(told, text) end")
    nvim.lua("inline()")
    nvim.settle()
    assert nvim.lua("return told") in ([], {})
