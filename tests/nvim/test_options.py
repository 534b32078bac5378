"""The user's options: wrong ones, and those of earlier versions."""

from __future__ import annotations

from collections.abc import Callable

from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot
from tests.nvim.reach import NOTES, notes

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


def test_a_removed_option_is_reported_with_a_hint(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, init=NOTES, config={"chat": {"route": True}, "index": {"limit": 9}})
    nvim.insert("o")
    assert len(told := notes(nvim)) == 1
    for part in ("chat.route is no longer an option: choose", "index.limit is no longer an option"):
        assert part in str(told[0][0])


def test_a_renamed_option_works_and_is_reported_with_a_hint(editor: Start, host: FakeHost) -> None:
    config = {
        "completion": {
            "backend": "endpoint",
            "endpoint_url": "http://127.0.0.1:1",
            "endpoint_model": "m",
            "secrets": ["*.vault"],
        },
        "keymaps": {"accept": "<C-y>", "dismiss": False},
        "chat": {"models": {"big": {"url": "http://x"}}, "float": True, "side": "left"},
        "edit": {"mappings": {"previous": "[x"}, "planner": "big"},
    }
    nvim = editor(DEF, init=NOTES, config=config)
    nvim.insert("o")
    (told,) = notes(nvim)
    for part in (
        "completion.endpoint_url is now models.NAME.url: see |lcursor-endpoint|",
        "completion.backend is now implied by completion.model: see |lcursor-endpoint|",
        "chat.models is now models: see |lcursor-endpoint|",
        "keymaps is now completion.keymap: see |lcursor-completion.keymap|",
        "edit.mappings is now edit.keymap: see |lcursor-edit.keymap|",
        "edit.keymap.previous is now edit.keymap.prev: see |lcursor-edit.keymap|",
        "chat.float is now chat.window.position: see |lcursor-chat.window|",
        "completion.secrets is now privacy.exclude: see |lcursor-privacy.exclude|",
    ):
        assert part in str(told[0]), part
    sent = host.messages("hello")[0]["config"]
    assert sent["models"] == {
        "server": {"url": "http://127.0.0.1:1", "model": "m"},
        "big": {"url": "http://x"},
    }
    assert (sent["completion"]["model"], sent["edit"]["plan_model"]) == ("server", "big")
    assert sent["privacy"]["exclude"] == ["*.vault"]
    now = nvim.lua("return require('lcursor.config').get()")
    assert now["chat"]["window"]["position"] == "float"
    assert (now["edit"]["keymap"]["prev"], now["edit"]["keymap"]["next"]) == ("[x", "]h")
    keymap = now["completion"]["keymap"]
    assert (keymap["accept"], keymap["dismiss"], keymap["next"]) == ("<C-y>", "", "<M-]>")


def test_each_old_option_is_gone_and_its_new_one_there(editor: Start) -> None:
    code = """
    local known, wrong = {}, {}
    for _, setting in ipairs(require("lcursor.schema")) do
      known[setting[1]] = true
    end
    for _, old in ipairs(require("lcursor.renamed").options) do
      local to = (old.to or ""):gsub("(%.keymap)%..*", "%1"):gsub("(%.window)%..*", "%1")
      to = to:gsub("^models%..*", "models")
      if known[old[1]] or not (old.gone or known[to]) then
        table.insert(wrong, old[1])
      end
    end
    return wrong
    """
    assert editor(DEF).lua(code) == []


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
