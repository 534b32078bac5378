"""`:LCursor search` as a person sees it: the quickfix list, the picker, the user's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot
from tests.nvim.reach import NOTES, notes
from tests.nvim.test_index import FILES, root_of, say

Start = Callable[..., Pilot]


def hit(nvim: Pilot, name: str = "a.py", **other: Any) -> dict[str, Any]:
    """Return something that was found: beta, unless told otherwise."""
    found = {
        "path": f"{root_of(nvim)}/{name}",
        "name": name,
        "first_row": 4,
        "end_row": 6,
        "scope": "",
        "kind": "",
        "language": "python",
        "text": "def beta(y):\n    return alpha(y)\n",
        "score": 1.0,
        "parts": {"lexical": 0.25, "definition": 1.0},
        "is_stale": False,
    }
    return {**found, **other}


def answer(
    nvim: Pilot, host: FakeHost, text: str, hits: list[dict[str, Any]], note: str = ""
) -> dict[str, Any]:
    """Wait for a search for a text, answer it, and return the question."""

    def asked() -> list[dict[str, Any]]:
        return [each for each in host.messages("index.search") if each["text"] == text]

    question: dict[str, Any] = host.wait(asked)[-1]
    found = {"id": question["id"], "root": root_of(nvim), "query": text, "hits": hits}
    say(host, "index.found", {**found, "ms": 3.2, "note": note})
    nvim.settle()
    return question


def test_a_search_fills_the_quickfix_list(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=NOTES)
    nvim.command("LCursor search who calls alpha")
    hits = [
        hit(nvim),
        hit(nvim, first_row=0, end_row=2, text="def alpha(x):\n    return x\n", is_stale=True),
        hit(nvim, "sub/b.py", first_row=0, end_row=9, scope="Z", text="class Z:\n  ...\n"),
    ]
    question = answer(nvim, host, "who calls alpha", hits, "34 of 100 files are indexed")
    assert question["path"] == f"{root_of(nvim)}/a.py"
    assert (question["limit"], question["mode"]) == (30, "hybrid")
    items = nvim.lua(
        """
        return vim.tbl_map(function(it)
          return { vim.fs.basename(vim.fn.bufname(it.bufnr)), it.lnum, it.end_lnum, it.text }
        end, vim.fn.getqflist())
        """
    )
    assert items == [
        ["a.py", 6, 6, "return alpha(y)"],
        ["a.py", 1, 2, "(changed since): def alpha(x):"],
        ["b.py", 1, 9, "class Z:"],
    ]
    assert nvim.lua("return vim.bo.buftype") == "quickfix"
    told = str(notes(nvim)[-1][0])
    assert told.startswith("lcursor: 3 found for who calls alpha in 3 ms (34 of")
    nvim.press("<CR>")
    assert nvim.lua("return vim.api.nvim_win_get_cursor(0)") == [6, 0]


def test_each_search_that_fails_says_so_except_while_one_types(
    editor: Start, host: FakeHost
) -> None:
    nvim = editor(FILES, init=NOTES)
    error = {"code": "index_rejected", "message": "not indexed", "hint": "", "level": "warn"}

    def fail(text: str) -> None:
        def asked() -> list[dict[str, Any]]:
            return [each for each in host.messages("index.search") if each["text"] == text]

        host.send("error", {"id": host.wait(asked)[0]["id"], **error})
        nvim.settle()

    for count, text in enumerate(("alpha", "beta"), 1):
        nvim.command(f"LCursor search {text}")
        fail(text)
        assert [note[0] for note in notes(nvim)] == ["lcursor: not indexed"] * count
    nvim.command("LCursor search")
    for keys, text in (("ga", "ga"), ("mma", "gamma")):
        nvim.keys(keys)
        fail(text)
    assert len(notes(nvim)) == 2


def test_nothing_found(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=NOTES)
    nvim.command("LCursor search xyzzy")
    answer(nvim, host, "xyzzy", [])
    assert notes(nvim)[-1][0] == "lcursor: nothing found for xyzzy"
    assert nvim.lua("return #vim.api.nvim_list_wins()") == 1


def test_an_answer_never_takes_the_cursor_from_who_types(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=NOTES)
    nvim.command("LCursor search beta")
    nvim.insert("o")
    answer(nvim, host, "beta", [hit(nvim)])
    assert nvim.lua("return #vim.api.nvim_list_wins()") == 1
    assert nvim.lua("return #vim.fn.getqflist()") == 1
    assert str(notes(nvim)[-1][0]).endswith("; see :copen")


def test_names_are_asked_for_as_symbols(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    nvim.command("LCursor search @alp")
    (asked,) = host.wait(lambda: host.messages("index.symbols"))
    assert asked["name"] == "alp"
    found = hit(nvim, first_row=0, end_row=2, kind="function", scope="M", text="alpha", parts={})
    answer_to = {"id": asked["id"], "root": root_of(nvim), "query": "@alp", "hits": [found]}
    say(host, "index.found", {**answer_to, "ms": 0.5, "note": ""})
    nvim.settle()
    assert nvim.lua("return vim.fn.getqflist()[1].text") == "function in M: alpha"


def picker(nvim: Pilot) -> list[str]:
    """Return the lines of the picker's list."""
    lines: list[str] = nvim.lua(
        """
        for _, buf in ipairs(vim.api.nvim_list_bufs()) do
          if vim.bo[buf].filetype == "lcursor-hits" then
            return vim.api.nvim_buf_get_lines(buf, 0, -1, false)
          end
        end
        """
    )
    return lines


def test_the_lines_of_a_pasted_text_are_one_query(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    nvim.command("LCursor search")
    nvim.press("who ")
    nvim.client.request("nvim_paste", "calls\nalpha", True, -1)
    answer(nvim, host, "who calls alpha", [hit(nvim)])
    assert len(picker(nvim)) == 1


def test_the_picker_searches_while_one_types(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    nvim.command("LCursor search")
    nvim.settle()
    assert "search: words, or @name" in "\n".join(nvim.screen.rows())
    nvim.keys("beta")
    both = [
        hit(nvim),
        hit(nvim, first_row=0, end_row=2, text="def alpha(x):\n    return x\n", is_stale=True),
    ]
    answer(nvim, host, "beta", both)
    assert picker(nvim) == ["a.py:5: def beta(y):", "a.py:1: (changed since): def alpha(x):"]
    screen = "\n".join(nvim.screen.rows())
    assert "2 found in 3 ms" in screen
    assert "a.py:5-6  defines the name, matching words" in screen
    assert "<CR> open, <C-n> next, <C-q> quickfix, <Esc> close" in screen
    assert "6     return alpha(y)" in screen
    nvim.press("<C-n>")
    assert "changed since it was indexed" in "\n".join(nvim.screen.rows())
    nvim.press("<C-n><C-p><CR>")
    nvim.wait_lua("return #vim.api.nvim_list_wins() == 1")
    assert nvim.lua("return vim.api.nvim_win_get_cursor(0)") == [1, 0]
    assert nvim.lua("return vim.api.nvim_get_mode().mode") == "n"
    assert nvim.lua("return vim.bo.buftype") == ""


def test_the_picker_shows_only_what_answers_the_present_words(
    editor: Start, host: FakeHost
) -> None:
    nvim = editor(FILES)
    nvim.command("LCursor search")
    nvim.keys("be")
    host.wait(lambda: [each for each in host.messages("index.search") if each["text"] == "be"])
    nvim.keys("ta")
    answer(nvim, host, "be", [hit(nvim)])
    assert picker(nvim) == [""]
    answer(nvim, host, "beta", [hit(nvim)])
    assert picker(nvim) == ["a.py:5: def beta(y):"]
    nvim.press("<C-q>")
    nvim.wait_lua("return vim.bo.buftype == 'quickfix'")
    assert nvim.lua("return #vim.fn.getqflist()") == 1


def test_the_picker_previews_a_file_that_is_not_open(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    nvim.command("LCursor search")
    nvim.keys("z")
    answer(nvim, host, "z", [hit(nvim, "sub/b.py", first_row=0, end_row=1, text="nothing")])
    nvim.wait_lua(
        """
        return vim.iter(vim.api.nvim_list_wins()):any(function(win)
          local buf = vim.api.nvim_win_get_buf(win)
          return vim.api.nvim_buf_get_lines(buf, 0, 1, false)[1] == "z = 1"
        end)
        """
    )
    assert nvim.lua("return vim.fn.bufnr('sub/b.py')") == -1
    nvim.press("<C-v>")
    nvim.wait_lua("return vim.fn.bufname() == 'sub/b.py' and #vim.api.nvim_list_wins() == 2")


def test_the_preview_of_a_long_hit_shows_the_line_that_is_listed(
    editor: Start, host: FakeHost
) -> None:
    text = "".join(f"line {number}\n" for number in range(60)) + "needle\n"
    nvim = editor({"a.py": text})
    nvim.command("LCursor search")
    nvim.keys("needle")
    answer(nvim, host, "needle", [hit(nvim, first_row=0, end_row=61, text=text)])
    assert picker(nvim) == ["a.py:61: needle"]
    assert "61 needle" in "\n".join(nvim.screen.rows())


def test_escape_closes_the_picker(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES)
    for key in ("<Esc>", "<Cmd>wincmd p<CR>"):
        nvim.command("LCursor search")
        nvim.press("x")
        nvim.press(key)
        nvim.wait_lua("return #vim.api.nvim_list_wins() == 1")
    assert nvim.lines()[0] == "def alpha(x):"


def test_the_picker_fits_a_terminal_whose_size_changes(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, columns=140, lines=40)
    boxes = """
        return vim.iter(vim.api.nvim_list_wins()):map(vim.api.nvim_win_get_config)
          :filter(function(one) return one.relative ~= "" end)
          :map(function(one) return { one.row, one.col, one.height + 2, one.width + 2 } end)
          :totable()
    """
    nvim.command("LCursor search")
    nvim.settle()
    for columns, lines in ((60, 20), (140, 40)):
        nvim.client.request("nvim_ui_try_resize", columns, lines)
        nvim.settle()
        found = nvim.lua(boxes)
        assert len(found) == 3
        cells = [
            (row, col)
            for top, left, height, width in found
            for row in range(int(top), int(top) + height)
            for col in range(int(left), int(left) + width)
        ]
        assert len(cells) == len(set(cells)), "none stands over another"
        assert max(row for row, _ in cells) < lines
        assert max(col for _, col in cells) < columns


def test_another_file_in_its_window_closes_the_picker(editor: Start, host: FakeHost) -> None:
    nvim = editor(FILES, init=NOTES)
    nvim.command("LCursor search")
    nvim.press("beta")
    nvim.command("stopinsert | edit! b.py")
    nvim.wait_lua("return #vim.api.nvim_list_wins() == 1")
    assert notes(nvim) == []
