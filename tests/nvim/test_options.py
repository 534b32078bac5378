"""Wrong options of the user."""

from __future__ import annotations

from collections.abc import Callable

from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot
from tests.nvim.reach import NOTES, notes, told

Start = Callable[..., Pilot]

DEF = {"a.py": "def f(x):\n"}


def test_wrong_settings_are_reported_once_with_the_nearest_name(
    editor: Start, host: FakeHost
) -> None:
    nvim = editor(
        DEF,
        init=NOTES,
        config={"completion": {"debounce": 1, "max_tokens": "many"}, "keymap": {"accept": "x"}},
    )
    nvim.insert("o")
    told = notes(nvim)
    assert len(told) == 1
    for part in ("completion.debounce_ms", "completion.max_tokens: expected a number", "keymap"):
        assert part in str(told[0][0])


def test_wrong_settings_are_reported_without_completion(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, init=NOTES, config={"chat": {"modle": "big"}})
    nvim.command("LCChat")
    assert [note for note in told(nvim) if 'did you mean "chat.model"' in note]


def test_wrong_settings_of_a_later_setup_are_reported_once(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, init=NOTES)
    nvim.insert("o")
    for wrong in ("modle", "modle", "filetype"):
        nvim.lua("require('lcursor').setup({ completion = { [...] = 'x' } })", wrong)
        nvim.press("abc")
    first, second = told(nvim)
    assert "modle" in first
    assert "filetype" in second


def test_wrong_settings_of_a_buffer_are_reported_once(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, init=NOTES)
    nvim.lua("vim.b.lcursor = { completion = { keymap = { acept = 'x' }, max_lines = 'two' } }")
    nvim.insert("o")
    nvim.press("abc")
    told = notes(nvim)
    assert len(told) == 1
    for part in ("vim.b.lcursor", 'did you mean "accept"', "completion.max_lines"):
        assert part in str(told[0][0])

    nvim.lua("vim.b.lcursor = 7")
    nvim.press("def")
    assert [str(note[0]) for note in notes(nvim)][1:] == [
        "lcursor: vim.b.lcursor: expected a table, found 7. See :help lcursor-config"
    ]


def test_a_key_that_is_false_is_not_mapped(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, config={"completion": {"keymap": {"accept": False}}})
    nvim.offer("return x", "o")
    code = "return vim.fn.maparg(..., 'i', false, true).buffer == 1"
    assert [nvim.lua(code, key) for key in ("<Tab>", "<S-Tab>")] == [False, True]
