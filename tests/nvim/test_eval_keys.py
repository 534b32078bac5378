"""A text that `eval keys` types into a real Neovim."""

from __future__ import annotations

from collections.abc import Callable

from evals.keys.in_neovim import WATCH, InNeovim
from evals.keys.insertions import Insertion
from evals.keys.recorded import Clock
from evals.keys.typist import Choice
from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot


def test_a_text_is_typed_and_accepted(editor: Callable[..., Pilot], host: FakeHost) -> None:
    text = "x = 1\n    y < 22\n    return value"
    insertion = Insertion("c", "pkg/a.py", "python", "def f():\n    ", text, "\n\n\nf()\n")
    nvim = editor({"other.py": ""})
    nvim.lua(WATCH)
    person = InNeovim(nvim, Clock(), "repo")
    person.begin(insertion)
    assert nvim.lines() == ["def f():", "    ", "", "", "f()"]
    person.changed(0)
    request = nvim.request()
    assert request["prefix"].endswith("def f():\n    ")
    for at in (1, 2, 3, 4, 5, 10, 11, 12, 13):
        person.changed(at)
    nvim.settle()
    assert nvim.lines() == ["def f():", "    x = 1", "    y <", "", "", "f()"]
    host.done(nvim.request("y <"), " 22\n    return valid\n    z")
    nvim.wait_ghost()
    seen = person.view()
    assert seen
    assert seen.rest == " 22\n    return valid\n    z"
    person.accepted(16, Choice(3, ("line",)))
    seen = person.view()
    assert seen
    assert seen.rest == "\n    return valid\n    z"
    person.accepted(len(text) - 2, Choice(21, ("all",), 4))
    assert nvim.lines() == ["def f():", "    x = 1", "    y < 22", "    return val", "", "", "f()"]
    assert person.mismatches == 0
    person.accepted(len(text), Choice())  # not what the editor did
    assert person.mismatches == 1
    assert nvim.lines()[3] == "    return value"
    person.end()
