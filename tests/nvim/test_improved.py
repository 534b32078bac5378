"""A better answer after the first one: when it is shown, and what it never takes away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]

DEF = {"a.py": "def f(x):\n"}
PAUSE = "_G.pass(1000)"

# The time stands still but where the test lets it pass.
CLOCK = """
local now = vim.uv.hrtime()
_G.pass = function(ms) now = now + ms * 1e6 end
vim.uv.hrtime = function() return now end
"""


def begun(editor: Start, text: str, keys: str = "o", **files: str) -> tuple[Pilot, dict[str, Any]]:
    """Return a Neovim that shows a suggestion, or nothing where it is empty, and its request."""
    nvim = editor(files or DEF, init=CLOCK)
    request = nvim.insert(keys)
    nvim.host.done(request, text, "end" if text else "unsure")
    assert nvim.shows() == text
    return nvim, request


def test_a_longer_text_extends_what_is_shown(editor: Start, host: FakeHost) -> None:
    nvim, request = begun(editor, "return x")
    nvim.press("re")
    host.improved(request, "return x + 1")
    assert nvim.shows() == "turn x + 1"
    nvim.press("<Tab>")
    assert nvim.lines()[1].strip() == "return x + 1"


def test_it_is_shown_where_nothing_was(editor: Start, host: FakeHost) -> None:
    nvim, request = begun(editor, "")
    assert nvim.why() == "unsure"
    host.improved(request, "return x")
    assert nvim.shows() == "return x"
    assert nvim.why() == "shown"
    host.improved(request, "return x + 1")
    assert nvim.shows() == "return x + 1"
    nvim.press("<Tab>")
    assert nvim.lines()[1].strip() == "return x + 1"


@pytest.mark.parametrize("keys", ["r", "r<BS>", "<Left>", "<Esc>", "<C-]>"])
def test_it_is_not_shown_where_the_text_is_another(
    editor: Start, host: FakeHost, keys: str
) -> None:
    nvim, request = begun(editor, "")
    if keys == "<C-]>":
        assert not nvim.lua("return require('lcursor.complete').dismiss()")
    else:
        nvim.press(keys)
    host.improved(request, "return x")
    assert nvim.shows() == ""


def test_after_an_empty_answer_a_key_asks_again(editor: Start, host: FakeHost) -> None:
    nvim, _ = begun(editor, "")
    before = nvim.count()
    nvim.press("r")
    assert nvim.request("r")
    nvim.press("<BS>")
    assert nvim.count() == before + 2


def test_another_text_waits_for_a_pause(editor: Start, host: FakeHost) -> None:
    nvim, request = begun(editor, "return x")
    nvim.lua("_G.pass(999)")
    host.improved(request, "yield x")
    assert nvim.shows() == "return x"
    nvim.lua("_G.pass(1)")
    host.improved(request, "yield x")
    assert nvim.shows() == "yield x"
    nvim.press("<Tab>")
    assert nvim.lines()[1].strip() == "yield x"


def test_another_text_does_not_come_where_some_was_typed(editor: Start, host: FakeHost) -> None:
    nvim, request = begun(editor, "return x")
    nvim.press("r")
    nvim.lua(PAUSE)
    host.improved(request, "reraise x")
    assert nvim.shows() == "eturn x"


def test_an_empty_answer_is_not_better(editor: Start, host: FakeHost) -> None:
    nvim, request = begun(editor, "return x")
    nvim.lua(PAUSE)
    host.improved(request, "")
    assert nvim.shows() == "return x"


def test_an_alternative_is_never_replaced(editor: Start, host: FakeHost) -> None:
    nvim, request = begun(editor, "return x")
    nvim.press("<M-]>")
    nvim.lua(PAUSE)
    host.improved(request, "return x + 1")
    assert nvim.shows() == "return x"  # the alternatives are awaited
    host.alternatives(request, ["raise x"])
    assert nvim.shows() == "raise x"
    host.improved(request, "raise x + 1")
    assert nvim.shows() == "raise x"


def test_it_belongs_to_the_last_request(editor: Start, host: FakeHost) -> None:
    nvim, first = begun(editor, "return x")
    nvim.press("q")
    second = nvim.request("q")
    nvim.lua(PAUSE)
    host.improved(first, "return x + 1")
    assert nvim.shows() == ""
    host.improved(second, "uit()")  # it was not answered yet
    assert nvim.shows() == ""
    host.done(second, "uit")
    assert nvim.shows() == "uit"


def test_what_stands_right_of_the_cursor_is_replaced(editor: Start, host: FakeHost) -> None:
    nvim, request = begun(editor, "", "A<Left>", **{"a.py": "f()\n"})
    host.improved(request, "x) + g(y)", replaces=1)
    nvim.settle()
    nvim.press("<Tab>")
    assert nvim.lines() == ["f(x) + g(y)"]


def test_the_reason_and_the_cost_are_those_of_what_is_shown(editor: Start, host: FakeHost) -> None:
    nvim, request = begun(editor, "return x")
    host.improved(request, "yield x", confidence=0.55)
    nvim.settle()
    why = "return require('lcursor.complete').why().numbers"
    assert "Confidence 0.90" in nvim.lua(why)
    nvim.lua(PAUSE)
    host.improved(request, "yield x", confidence=0.55, window="short")
    nvim.settle()
    assert "Confidence 0.55" in nvim.lua(why)
    assert nvim.lua(why).endswith("from a short window; more context is being read.")


@pytest.mark.parametrize("text", ["return x", ""])
def test_the_same_answer_brings_its_cost(editor: Start, host: FakeHost, text: str) -> None:
    nvim, request = begun(editor, text)
    host.improved(request, text, decoded_tokens=77)
    assert nvim.shows() == text
    assert nvim.why() == ("shown" if text else "empty_end")
    assert "77 of" in nvim.lua("return require('lcursor.complete').why().numbers")


def test_the_reason_of_a_second_empty_answer_comes_with_its_confidence(
    editor: Start, host: FakeHost
) -> None:
    host.stats = {"confidence": 0.2, "threshold": 0.5}
    nvim, request = begun(editor, "")
    text = "return require('lcursor.complete').why().text"
    assert "unsure: confidence 0.20" in nvim.lua(text)
    host.improved(request, "\n", reason="end", confidence=1.0, threshold=0.5)
    nvim.settle()
    assert nvim.lua(text) == "The model had nothing to suggest here."
    host.improved(request, "", reason="unsure", confidence=0.4999, threshold=0.5)
    nvim.settle()
    assert nvim.lua(text) == "The model was unsure: confidence 0.49, threshold 0.50."


@pytest.mark.parametrize("text", ["return x + 1", "yield x"])
def test_it_is_one_suggestion_in_the_statistics(editor: Start, host: FakeHost, text: str) -> None:
    nvim, request = begun(editor, "return x")
    nvim.lua(PAUSE)
    host.improved(request, text, confidence=0.55, source="speculation")
    assert nvim.shows() == text
    nvim.press("<Tab>")
    nvim.settle()
    (row,) = host.messages("fim.outcome")
    assert (row["id"], row["outcome"]) == (request["id"], "accepted")
    assert (row["confidence"], row["source"]) == (0.55, "speculation")
    assert (row["shown_chars"], row["kept_chars"]) == (len(text), len(text))
