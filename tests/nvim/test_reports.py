"""`:LCursor stats` and the numbers of `why`, as a person sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lcursor.fim import outcomes
from tests.fakes.control import STATS, FakeHost
from tests.nvim.pilot import Pilot
from tests.nvim.reach import NOTES, notes
from tests.unit.fim.test_learning import row

Start = Callable[..., Pilot]
DEF = {"a.py": "def f(x):\n"}


def text_of(nvim: Pilot) -> str:
    """Return the text of the current buffer."""
    return "\n".join(nvim.lines())


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
    nvim.lua("require('lcursor.host.environment').python = function() end")
    nvim.command("LCursor stats")
    assert "LCursor install" in str(notes(nvim)[0][0])
    assert nvim.lua("return require('lcursor.host.status').get().state") == "absent"


def test_a_report_that_cannot_be_had(editor: Start, host: FakeHost) -> None:
    nvim = editor(
        DEF,
        init=NOTES + "require('lcursor.host').argv = function() return { '/no/python' } end\n",
    )
    nvim.command("LCursor stats")
    assert any("is not running (failed)" in str(text) for text, _ in notes(nvim))


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


BUSY = "require('lcursor.host.system').is_busy = function() return %s end"


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
