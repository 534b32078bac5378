"""The second answer to a request of next edits, which has the proposals of a model."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.next_edits import CONFIG, Typist, predicted
from tests.nvim.pilot import Pilot

TEXT = "first line\nsecond line\n"


@pytest.fixture
def desk(editor: Callable[..., Pilot], host: FakeHost) -> Typist:
    return Typist(editor({"a.txt": TEXT}, config=CONFIG), host)


def late_answer(desk: Typist, number: int) -> None:
    """Send the second answer to a request, with the proposal of a model."""
    proposal = {
        "kind": "model",
        "path": desk.nvim.lua("return vim.api.nvim_buf_get_name(0)"),
        "row": 1,
        "old": ["second line"],
        "new": ["second word"],
        "cause": "suggested by desk",
        "group": "model a",
    }
    answer = predicted(number, proposal)
    desk.host.send("next_edit.predicted", answer)
    desk.nvim.settle()


def test_the_proposal_of_a_model_comes_in_a_second_answer(desk: Typist) -> None:
    desk.nvim.press("wcwword<Esc>")
    request = desk.answer()
    assert (request["row"], request["column"]) == (0, 9)
    assert desk.texts() == []
    late_answer(desk, request["id"])
    assert desk.wait_drawn() == ["word"]
    why = desk.nvim.lua("return require('lcursor.next_edit').why()")
    assert why == "Next edit: suggested by desk; 1 change left."
    desk.nvim.press("<Tab>")
    assert desk.nvim.lines() == ["first word", "second word"]


def test_the_second_answer_is_dropped_after_undo_and_redo(desk: Typist) -> None:
    desk.nvim.press("wcwword<Esc>")
    request = desk.answer()
    desk.nvim.press("u<C-r>")
    late_answer(desk, request["id"])
    assert desk.nvim.lines() == ["first word", "second line"]
    assert desk.drawn() == []
