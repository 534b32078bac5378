"""The Lua functions that only compute: text, settings, the window of a request."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lcursor.drive.editor import Editor

Call = Callable[..., Any]


@pytest.fixture(scope="module")
def lua(neovim: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Call]:
    """Call Lua in one Neovim for all of this file."""
    with Editor(neovim, tmp_path_factory.mktemp("home"), init="vim.o.swapfile = false\n") as nvim:
        yield nvim.lua


def text(name: str) -> str:
    """Return Lua that calls a function of text.lua."""
    return f"return require('lcursor.text').{name}(...)"


@pytest.mark.parametrize(
    ("rest", "kind", "piece"),
    [
        ("a = 1\nb", "all", "a = 1\nb"),
        ("a = 1\nb", "line", "a = 1"),
        ("\n    b\nc", "line", "\n    b"),
        ("\n\n  b\nc", "line", "\n\n  b"),
        ("return x", "word", "return"),
        (" x + y", "word", " x"),
        ("(x)", "word", "("),
        ("x)", "word", "x"),
        (")).y", "word", "))."),
        ("foo_bar2.baz", "word", "foo_bar2"),
        ("\n    b", "word", "\n    "),
        ("  \n\tb", "word", "  \n\t"),
        ("\n\n  b", "word", "\n\n  "),
        ("größe = 1", "word", "größe"),
        ("日本語 x", "word", "日本語"),
        ("   ", "word", "   "),
        ("", "word", ""),
        ("\0a", "word", "\0"),
    ],
)
def test_piece(lua: Call, rest: str, kind: str, piece: str) -> None:
    assert lua(text("piece"), rest, kind) == piece


@given(
    st.text(alphabet="ab_1 .()\n\té日\U0001f600\0", min_size=1), st.sampled_from(["line", "word"])
)
@settings(
    max_examples=150,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
def test_pieces_make_up_the_whole(lua: Call, rest: str, kind: str) -> None:
    code = """
    local rest, kind = ...
    local pieces = {}
    while rest ~= "" do
      local piece = require("lcursor.text").piece(rest, kind)
      assert(piece ~= "" and vim.startswith(rest, piece))
      table.insert(pieces, piece)
      rest = rest:sub(#piece + 1)
    end
    return pieces
    """
    pieces = lua(code, rest, kind)
    assert "".join(pieces) == rest


@pytest.mark.parametrize(
    ("column", "tabstop", "stops", "width"),
    [
        (0, 8, [], 8),
        (7, 8, [], 1),
        (8, 8, [], 8),
        (3, 4, [], 1),
        (0, 8, [4, 10, 6], 4),
        (4, 8, [4, 10, 6], 10),
        (13, 8, [4, 10, 6], 1),
        (14, 8, [4, 10, 6], 6),
        (21, 8, [4, 10, 6], 5),
    ],
)
def test_tab_width(lua: Call, column: int, tabstop: int, stops: list[int], width: int) -> None:
    assert lua(text("tab_width"), column, tabstop, stops) == width


LINES = st.text(
    alphabet=st.one_of(
        st.sampled_from("ab \t\t\x01\x1b\x7f日e\u0301\U0001f600\u200b\ufeff"),
        st.characters(exclude_characters="\0\n\r", exclude_categories=["Cs", "Mn", "Me", "Mc"]),
    ),
    max_size=20,
)


@given(LINES, LINES, st.integers(1, 9))
@settings(
    max_examples=300,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
def test_a_line_is_as_wide_as_neovim_says(lua: Call, head: str, line: str, tabstop: int) -> None:
    """Each line's width on the screen is what it will be when it stands in the buffer."""
    code = """
    local head, line, tabstop = ...
    vim.bo.tabstop = tabstop
    local column = vim.fn.strdisplaywidth(head)
    local shown = require("lcursor.text").expand(line, column, tabstop, {})
    return { vim.api.nvim_strwidth(shown), vim.fn.strdisplaywidth(line, column), shown }
    """
    width, real, shown = lua(code, head, line, tabstop)
    assert width == real
    assert "\t" not in shown


def window(lua: Call, lines: list[str], row: int, col: int) -> dict[str, Any]:
    """Return the request that a buffer of those lines would make."""
    code = """
    local lines, row, col = ...
    local buf = vim.api.nvim_create_buf(true, false)
    vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
    local request = require("lcursor.editor.context").read(buf, row, col)
    vim.api.nvim_buf_delete(buf, { force = true })
    return request
    """
    request: dict[str, Any] = lua(code, lines, row, col)
    return request


def numbered(count: int, width: int = 8) -> list[str]:
    """Return lines that differ."""
    return [f"{number:0{width}d}" for number in range(count)]


def test_a_small_file_is_read_whole(lua: Call) -> None:
    lines = numbered(90)
    request = window(lua, lines, 40, 3)
    assert request["first_row"] == 0
    assert request["prefix"] + request["suffix"] == "\n".join(lines) + "\n"
    assert request["prefix"].endswith("\n000")
    assert (request["path"], request["name"]) == ("", "")


@pytest.mark.parametrize(
    ("row", "width"), [(0, 8), (299, 8), (300, 8), (301, 8), (999, 8), (700, 100), (700, 3000)]
)
def test_the_window_is_bounded(lua: Call, row: int, width: int) -> None:
    lines = numbered(1000, width)
    request = window(lua, lines, row, 2)
    prefix, suffix = request["prefix"], request["suffix"]
    assert len(prefix) <= 16 * 1024
    assert prefix.count("\n") == row - request["first_row"] <= 300
    assert prefix == "\n".join([*lines[request["first_row"] : row], lines[row][:2]])
    assert len(suffix) <= 8 * 1024 + 1
    assert suffix.count("\n") <= 100
    assert "\n".join([lines[row][2:], *lines[row + 1 :], ""]).startswith(suffix)
    room = 16 * 1024 if width > 8 else 300 * 9
    if row >= 300:
        assert len(prefix) > room / 4


def test_the_start_moves_in_steps(lua: Call) -> None:
    """Typing on keeps the beginning of the window for at least forty lines."""
    code = """
    local width = ...
    local buf = vim.api.nvim_create_buf(true, false)
    local starts, line = {}, ("x"):rep(width)
    for row = 0, 1500 do
      vim.api.nvim_buf_set_lines(buf, row, -1, false, { line })
      for _, col in ipairs({ 0, math.floor(width / 2), width }) do
        table.insert(starts, require("lcursor.editor.context").read(buf, row, col).first_row)
      end
    end
    vim.api.nvim_buf_delete(buf, { force = true })
    return starts
    """
    for width, least in [(20, 40), (60, 40), (200, 15)]:
        starts = lua(code, width)
        assert starts == sorted(starts)
        moves = sorted(set(starts))
        steps = [b - a for a, b in itertools.pairwise(moves)]
        assert min(steps) >= least, (width, steps)
        if width < 100:
            assert all(start % 64 == 0 for start in moves)


def test_a_jump_back_moves_the_window_back(lua: Call) -> None:
    code = """
    local buf = vim.api.nvim_create_buf(true, false)
    vim.api.nvim_buf_set_lines(buf, 0, -1, false, vim.split(("x\\n"):rep(2000), "\\n"))
    local read = require("lcursor.editor.context").read
    local function first(row) return read(buf, row, 0).first_row end
    return { first(1000), first(100), first(1000) }
    """
    far, near, again = lua(code)
    assert near == 0
    assert far == again


@pytest.mark.parametrize("char", ["é", "日", "\U0001f600"])
def test_a_cut_line_keeps_whole_characters(lua: Call, char: str) -> None:
    for shift in range(4):
        line = "x" * shift + char * 20_000
        col = len(("x" * shift + char * 10_000).encode())
        request = window(lua, [line], 0, col)
        assert set(request["prefix"]) <= {char, "x"}
        assert set(request["suffix"]) == {char}
        assert 16 * 1024 - 4 < len(request["prefix"].encode()) <= 16 * 1024
        assert 8 * 1024 - 4 < len(request["suffix"].encode()) <= 8 * 1024


def test_random_windows_are_the_text(lua: Call) -> None:
    rng = random.Random(7)
    for _ in range(30):
        lines = ["日x"[rng.random() < 0.5] * rng.choice([0, 3, 80, 5000]) for _ in range(200)]
        row = rng.randrange(len(lines))
        col = len(lines[row][: rng.randrange(len(lines[row]) + 1)].encode())
        request = window(lua, lines, row, col)
        whole = "\n".join(lines).encode()
        at = len("\n".join(lines[:row]).encode()) + (row > 0) + col
        assert whole[:at].endswith(request["prefix"].encode())
        assert (whole[at:] + b"\n").startswith(request["suffix"].encode())


@pytest.mark.parametrize("eol", [True, False])
def test_the_last_line_is_read_whole(lua: Call, eol: bool) -> None:
    code = """
    vim.cmd.enew({ bang = true })
    vim.bo.fixendofline, vim.bo.endofline = false, ...
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { "ab", "cd" })
    local read = require("lcursor.editor.context").read
    return { read(0, 1, 0).suffix, read(0, 1, 2).suffix, read(0, 0, 1).suffix }
    """
    end = "\n" if eol else ""
    assert lua(code, eol) == ["cd" + end, end, "b\ncd" + end]


def test_merging_settings(lua: Call) -> None:
    code = """
    local config = require("lcursor.config")
    vim.g.lcursor = { completion = { max_tokens = 10, debounce_ms = 1 }, log_level = "debug" }
    config.setup({ completion = { max_tokens = 20, filetypes = { lua = false } } })
    vim.b.lcursor = { completion = { debounce_ms = 7, max_tokens = "x" } }
    local all, here = config.get(), config.for_buffer(0)
    local result = {
      all.completion.max_tokens, all.completion.debounce_ms, all.log_level,
      all.completion.filetypes.lua, all.completion.filetypes.markdown, all.completion.keymap.accept,
      here.completion.debounce_ms, here.completion.max_tokens, #config.problems(),
    }
    vim.g.lcursor, vim.b.lcursor = nil, nil
    config.setup()
    return result
    """
    assert lua(code) == [20, 1, "debug", False, False, "<Tab>", 7, 20, 0]


def test_the_settings_of_a_buffer_are_merged_once(lua: Call) -> None:
    """They are read several times at each key."""
    code = """
    local config, seen = require("lcursor.config"), {}
    config.setup()
    local function see() table.insert(seen, config.for_buffer(0)) end
    vim.b.lcursor = { completion = { max_lines = 3 } }
    see() see()
    vim.b.lcursor = { completion = { max_lines = 4 } }
    see()
    config.setup({ completion = { max_tokens = 20 } })
    see()
    vim.b.lcursor = nil
    see()
    config.setup()
    return {
      rawequal(seen[1], seen[2]),
      vim.tbl_map(function(each)
        return { each.completion.max_lines, each.completion.max_tokens == 20 }
      end, { seen[2], seen[3], seen[4] }),
      rawequal(seen[5], seen[4]),
      seen[5].completion.max_tokens,
    }
    """
    assert lua(code) == [True, [[3, False], [4, False], [4, True]], False, 20]


def test_false_is_no_key(lua: Call) -> None:
    code = """
    local config = require("lcursor.config")
    config.setup({
      completion = { keymap = false },
      chat = { keymap = { send = false } },
      edit = { keymap = { stop = false } },
    })
    local all, problems = config.get(), #config.problems()
    config.setup()
    return {
      all.completion.keymap.next, all.chat.keymap.send, all.edit.keymap.stop,
      all.chat.keymap.help, problems,
    }
    """
    assert lua(code) == ["", "", "", "g?", 0]


def test_named_models(lua: Call) -> None:
    code = """
    local config = require("lcursor.config")
    vim.g.lcursor = { models = { near = { url = "http://x" } } }
    config.setup({ models = { big = { url = "https://y", context_tokens = 9 } } })
    local result = { config.for_host().models, #config.problems() }
    vim.g.lcursor = nil
    config.setup()
    return result
    """
    both = {"near": {"url": "http://x"}, "big": {"url": "https://y", "context_tokens": 9}}
    assert lua(code) == [both, 0]


def test_settings_as_a_function(lua: Call) -> None:
    code = """
    local config = require("lcursor.config")
    vim.g.lcursor = function() return { enabled = false } end
    config.setup()
    local enabled = config.get().enabled
    vim.g.lcursor = nil
    config.setup()
    return { enabled, config.get().enabled }
    """
    assert lua(code) == [False, True]


@pytest.mark.parametrize(
    ("given_settings", "message"),
    [
        ({"completion": {"debounce": 1}}, 'did you mean "completion.debounce_ms"'),
        ({"completon": {"enabled": True}}, 'did you mean "completion"'),
        ({"completion": {"keymaps": {}}}, 'did you mean "completion.keymap"'),
        ({"enable": True}, 'did you mean "enabled"'),
        ({"enabled": 1}, "expected a boolean"),
        ({"should_attach": True}, "should_attach: expected a function, found true"),
        ({"completion": {"max_tokens": 0}}, "expected at least 1"),
        ({"completion": {"files_tokens": -2}}, "expected at least 0"),
        ({"completion": {"max_tokens": 1.5}}, "expected a whole number"),
        ({"log_level": "loud"}, "expected one of debug, info, warn, error"),
        ({"completion": True}, "completion: expected a table, found true"),
        ({"completion": False}, "found false; completion.enabled = false switches it off, "),
        ({"next_edit": False}, 'found false; next_edit.mode = "off" switches it off, '),
        ({"agent": False}, "agent: expected a table, found false; agent.keymap = false removes"),
        ({"privacy": False}, "privacy: expected a table, found false"),
        ({"chat": "big"}, 'chat: expected a table, found "big"'),
        ({"models": {"big": {"modle": "x"}}}, "big.modle: no such setting, use api, "),
        ({"models": {"big": {"url": 1}}}, "big.url: expected string, found a number"),
        ({"models": {"big": {"api": "x"}}}, "big.api: expected one of auto, llama.cpp"),
        ({"models": {"big": "http://x"}}, "found a string at big"),
        ({"models": ["http://x"]}, "found a string at 1"),
        ({"edit": {"keymap": {"acept": "x"}}}, 'acept: no such key, did you mean "accept"?'),
        ({"chat": {"keymap": {"sendd": "x"}}}, 'sendd: no such key, did you mean "send"?'),
        ({"chat": {"keymap": {"send": 3}}}, "send: expected a key or false, found 3"),
        ({"chat": {"keymap": ["x"]}}, "expected a table with names"),
        ({"chat": {"keymap": True}}, "expected a table"),
        ({"chat": {"window": {"size": 2}}}, "size: expected 0 to 1"),
        ({"chat": {"window": {"position": "up"}}}, "position: expected one of right, left, above"),
        ({"chat": {"window": {"side": "left"}}}, "side: no such setting, use position, size"),
        ({"models": {"big": {"provider": "x"}}}, "big.provider: expected one of anthropic, "),
        ({"completion": {"keymap": {"accept": True}}}, "expected a key or false, found true"),
        ({"completion": {"filetypes": ["lua"]}}, "expected a table with names"),
        ({"completion": {"filetypes": {"lua": "off"}}}, 'lua: expected a boolean, found "off"'),
    ],
)
def test_wrong_settings(lua: Call, given_settings: dict[str, Any], message: str) -> None:
    code = """
    local config = require("lcursor.config")
    config.setup(...)
    local problems, same = config.problems(), vim.deep_equal(config.get(), config.defaults())
    config.setup()
    return { problems, same }
    """
    problems, same = lua(code, given_settings)
    assert len(problems) == 1
    assert message in problems[0]["message"]
    assert same


def test_described_settings(lua: Call) -> None:
    rows = {row["name"]: row for row in lua("return require('lcursor.config').describe()")}
    assert rows["enabled"]["default"] == "true"
    assert 'accept = "<Tab>"' in rows["completion.keymap"]["default"]
    assert "debug, info, warn, error" in rows["log_level"]["text"]
    filetypes = lua(
        "return loadstring('return ' .. ...)()", rows["completion.filetypes"]["default"]
    )
    assert filetypes["markdown"] is False


@pytest.mark.parametrize("name", ["a\nb.py", "a\n## Done\nb", "\x1b[31m", "größe\r\n", "a\x7f\t"])
def test_the_files_of_a_run_are_lines_whatever_their_names(lua: Call, name: str) -> None:
    code = """
        local file = { name = ..., kind = "create", is_guarded = true }
        local lines = require("lcursor.agent.format").files({ file })
        local buf = vim.api.nvim_create_buf(false, true)
        vim.api.nvim_buf_set_lines(buf, 0, -1, true, lines)
        return vim.api.nvim_buf_get_lines(buf, 0, -1, true)
    """
    first, line = lua(code, name)
    assert first == ""
    assert line.startswith("- ")
    assert line.isprintable()
    assert line.endswith(" (new; runs code by itself: accept it on its own)")
