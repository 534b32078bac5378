"""`:LCursor stats`, `suggestion prompt` and the numbers of `why`, as a person sees them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lcursor.drive.editor import Editor
from lcursor.fim import outcomes
from lcursor.protocol.fim import PromptPiece
from tests.fakes.control import STATS, FakeHost
from tests.nvim.pilot import Pilot
from tests.nvim.reach import NOTES, notes
from tests.unit.fim.test_learning import row

Call = Callable[..., Any]
Start = Callable[..., Pilot]
DEF = {"a.py": "def f(x):\n"}


def piece(number: int, text: str, *, kind: Any = "text", is_cached: bool = True) -> PromptPiece:
    """Return a token of a prompt."""
    return PromptPiece(id=number, text=text, kind=kind, is_cached=is_cached)


PIECES = [
    piece(900, "<fim_prefix>", kind="marker"),
    piece(1, "def f(x):\n"),
    piece(2, "    re", is_cached=False),
    piece(901, "<fim_suffix>", kind="marker", is_cached=False),
    piece(3, "\n"),
    piece(902, "<fim_middle>", kind="marker", is_cached=False),
]


@pytest.fixture(scope="module")
def lua(neovim: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Call]:
    """Call Lua in one Neovim for all of this file."""
    with Editor(neovim, tmp_path_factory.mktemp("home"), init="vim.o.swapfile = false\n") as nvim:
        yield nvim.lua


def text_of(nvim: Pilot) -> str:
    """Return the text of the current buffer."""
    return "\n".join(nvim.lines())


def groups(nvim: Pilot, name: str) -> list[str]:
    """Return the highlight groups or virtual texts of one namespace, in order."""
    code = """
    local namespace = vim.api.nvim_create_namespace("lcursor.prompt" .. ...)
    local marks = vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true })
    return vim.tbl_map(function(mark)
      return mark[4].hl_group or mark[4].virt_text[1][1]
    end, marks)
    """
    found: list[str] = nvim.lua(code, name)
    return found


def test_stats(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, columns=130)
    nvim.insert("o")
    nvim.press("<Esc>")
    nvim.command("LCursor stats")
    host.wait(lambda: host.messages("stats.request"))
    rows = [row(filetype="lua", outcome="rejected"), *[row()] * 3]
    rows += [outcomes.next_edit_row(9.0, "lua", "rename", is_accepted=it) for it in (True, False)]
    host.send("stats", dict(outcomes.stats(rows, {"": 0.4, "lua": 0.52}, "/home/x/o.sqlite3")))
    nvim.settle()
    lines = nvim.lines()
    head, python, lua_row, total = (line.split() for line in lines[:4])
    assert python[:4] == ["python", "3", "100", "%"]
    assert lua_row[:4] == ["lua", "1", "0", "%"]
    assert total[:4] == ["all", "4", "75", "%"]
    assert ["rename", "1", "1"] in [line.split() for line in lines]
    at = head.index("threshold") + 1  # the share of accepted ones is two words
    assert (python[at], lua_row[at]) == ("0.40", "0.52")
    assert len({len(line) for line in lines[:4]}) == 1
    assert "Kept in /home/x/o.sqlite3" in lines
    assert ":LCursor stats reset" in text_of(nvim)
    assert "Suggestions shown since 1970-01-01: 4" in "\n".join(nvim.screen.rows())
    assert nvim.lua("return { vim.bo.modifiable, vim.bo.buftype }") == [False, "nofile"]
    nvim.press("q")
    assert nvim.lua("return #vim.api.nvim_list_wins()") == 1
    assert nvim.lines()[0] == "def f(x):"


def test_stats_reset(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.insert("o")
    nvim.press("<Esc>")
    nvim.command("LCursor stats reset")
    host.wait(lambda: host.messages("stats.reset"))
    host.send("stats", dict(outcomes.stats([], {}, "/x", "/x cannot be used (it is broken)")))
    nvim.settle()
    assert nvim.lines()[0] == "/x cannot be used (it is broken)"
    assert "No suggestion was shown yet" in text_of(nvim)
    assert nvim.lua("return vim.fn.getcompletion('LCursor stats ', 'cmdline')") == ["reset"]


def test_a_report_starts_the_host(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.command("LCursor stats")
    host.wait(lambda: host.messages("stats.request"))
    assert len(host.pids) == 1


def test_a_report_without_an_environment_says_how_to_get_one(editor: Start) -> None:
    nvim = editor(DEF, init=NOTES)
    nvim.lua("require('lcursor.install').python = function() end")
    nvim.command("LCursor stats")
    assert "LCursor install" in str(notes(nvim)[0][0])
    assert nvim.lua("return require('lcursor.status').get().state") == "absent"


def test_a_report_that_cannot_be_had(editor: Start, host: FakeHost) -> None:
    nvim = editor(
        DEF,
        init=NOTES + "require('lcursor.host').argv = function() return { '/no/python' } end\n",
    )
    nvim.command("LCursor suggestion prompt")
    assert any("is not running (failed)" in str(text) for text, _ in notes(nvim))


def test_prompt(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.insert("o")
    nvim.keys("<Cmd>LCursor suggestion prompt<CR>")
    host.wait(lambda: host.messages("prompt.request"))
    host.send("prompt", {"pieces": PIECES})
    nvim.wait_lua("return vim.api.nvim_buf_get_name(0) == 'lcursor://prompt'")
    nvim.settle()
    wanted = ["<fim_prefix>def f(x):", "    re<fim_suffix>", "<fim_middle>"]
    assert nvim.lines() == wanted
    screen = "\n".join(nvim.screen.rows())
    assert "6 tokens: 3 cached, 3 evaluated; 3 special  t borders" in screen
    assert groups(nvim, "").count("LCursorTokenMarker") == 3
    assert groups(nvim, "").count("LCursorTokenRead") == 3
    assert groups(nvim, ".borders") == groups(nvim, ".numbers") == []
    nvim.press("t")
    nvim.press("i")
    assert groups(nvim, ".borders") == ["LCursorTokenBorder"] * 3
    assert groups(nvim, ".numbers") == [
        f"[{one['id']}]" if one["is_cached"] else f"[+{one['id']}]" for one in PIECES
    ]
    nvim.press("ti")
    assert groups(nvim, ".borders") == groups(nvim, ".numbers") == []
    assert nvim.lines() == wanted
    host.send("prompt", {"pieces": PIECES[:2]})
    nvim.settle()
    assert nvim.lines() == [wanted[0], ""]
    assert nvim.lua("return #vim.api.nvim_list_wins()") == 2
    nvim.press("q")
    assert nvim.lua("return #vim.api.nvim_list_wins()") == 1


def test_no_prompt_yet(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, init=NOTES)
    nvim.command("LCursor suggestion prompt")
    host.wait(lambda: host.messages("prompt.request"))
    host.send("prompt", {"pieces": []})
    nvim.settle()
    assert [text for text, _ in notes(nvim)] == ["lcursor: there was no request yet"]


@given(st.lists(st.text(alphabet="ab\n é日", max_size=6), max_size=12))
@settings(
    max_examples=60,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
def test_the_spans_are_the_pieces(lua: Call, texts: list[str]) -> None:
    """Each token stands where its span says, and together they are the prompt."""
    code = """
    local lines, spans = require("lcursor.complete.prompt").layout(...)
    return { lines, spans }
    """
    lines, spans = lua(code, [piece(number, text) for number, text in enumerate(texts)])
    spans = spans or []
    assert "\n".join(lines) == "".join(texts)
    raw = [line.encode() for line in lines]
    for text, span in zip(texts, spans, strict=True):
        (row, col), (end, end_col) = (
            (span["row"], span["col"]),
            (span["end_row"], span["end_col"]),
        )
        part = raw[row : end + 1]
        part[-1] = part[-1][:end_col]
        part[0] = part[0][col:]
        assert b"\n".join(part).decode() == text
    ends = [(span["end_row"], span["end_col"]) for span in spans]
    starts = [(span["row"], span["col"]) for span in spans]
    assert all(end == start for end, start in zip(ends, starts[1:], strict=False))
    assert all(one <= other for one, other in itertools.pairwise(starts))


def done(host: FakeHost, request: dict[str, Any], text: str, reason: str, **stats: Any) -> None:
    """Answer a request with other costs than the usual."""
    keys = {"id": request["id"], "buf": request["buf"], "tick": request["tick"]}
    answer = {**keys, "text": text, "reason": reason, "stats": {**STATS, **stats}}
    answer.setdefault("replaces", 0)
    host.send("fim.done", answer, request["pid"])


def test_why_the_gate_was_silent(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, init=NOTES)
    request = nvim.insert("o")
    done(host, request, "", "unsure", confidence=0.314, threshold=0.45, first_ms=0.0)
    nvim.wait_why("unsure")
    nvim.command("LCursor why")
    assert notes(nvim)[-1][0] == (
        "lcursor: The model was unsure: confidence 0.31, threshold 0.45. "
        "50 ms, 10 of 100 tokens read, generated."
    )


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("model", "generated"),
        ("cache", "from the cache"),
        ("speculation", "generated ahead"),
    ],
)
def test_why_reports_what_an_answer_cost(
    editor: Start, host: FakeHost, source: str, words: str
) -> None:
    nvim = editor(DEF, init=NOTES)
    done(host, nvim.insert("o"), "return x", "end", source=source)
    nvim.wait_ghost()
    nvim.keys("<Cmd>LCursor why<CR>")
    nvim.press("r")
    nvim.keys("<Cmd>LCursor why<CR>")
    nvim.settle()
    wanted = f"Confidence 0.90, 30 ms, 10 of 100 tokens read, {words}."
    assert [text for text, _ in notes(nvim)] == [f"lcursor: A suggestion is shown. {wanted}"] * 2
    nvim.press("q")
    nvim.command("LCursor why")
    assert notes(nvim)[-1][0] == "lcursor: Waiting for the model."


BUSY = "require('lcursor.processor').is_busy = function() return %s end"


@pytest.mark.parametrize(
    ("total_ms", "is_busy", "is_local"),
    [(2500, True, True), (2500, False, True), (1500, True, True), (2500, True, False)],
)
def test_why_mentions_other_programs(
    editor: Start, host: FakeHost, total_ms: int, is_busy: bool, is_local: bool
) -> None:
    server = {"models": {"x": {"url": "http://model.test:1"}}, "completion": {"model": "x"}}
    nvim = editor(DEF, init=NOTES, config={} if is_local else server)
    nvim.lua(BUSY % str(is_busy).lower())
    done(host, nvim.insert("o"), "return x", "end", total_ms=total_ms)
    nvim.wait_ghost()
    nvim.lua(BUSY % "false")  # what counts is the time of the answer
    nvim.keys("<Cmd>LCursor why<CR>")
    nvim.settle()
    words = "It is slow because other programs use the processor."
    assert (words in str(notes(nvim)[-1][0])) is (total_ms > 2000 and is_busy and is_local)


def test_why_mentions_other_programs_while_an_answer_is_awaited(
    editor: Start, host: FakeHost
) -> None:
    nvim = editor(DEF, init=NOTES)
    nvim.insert("o")
    nvim.lua(BUSY % "true")
    nvim.lua("local now = vim.uv.now vim.uv.now = function() return now() + 2500 end")
    nvim.command("LCursor why")
    words = "Waiting for the model. It is slow because other programs use the processor."
    assert notes(nvim)[-1][0] == f"lcursor: {words}"


def test_why_explains_the_present_state(editor: Start, host: FakeHost) -> None:
    """In Normal mode the last decision counts only in its line."""
    nvim = editor({"a.py": "x = call(a, b)\ny = 2\n"}, init=NOTES)
    nvim.press("3la")
    nvim.wait_why("midline")
    nvim.press("<Esc>")

    def why() -> str:
        nvim.command("LCursor why")
        return str(notes(nvim)[-1][0])

    now = "lcursor: Suggestions come only in Insert mode."
    assert why().startswith(f"{now} The last time in this line: There is text right of the cursor")
    nvim.press("j")
    assert why() == now


def test_the_status_names_no_time_of_a_text_that_never_came(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    done(host, nvim.insert("o"), "", "unsure", first_ms=0.0)
    nvim.settle()
    lines = nvim.lua("return require('lcursor.commands.status').lines()")
    assert any(line.startswith("last answer unsure, first text after -, all") for line in lines)
