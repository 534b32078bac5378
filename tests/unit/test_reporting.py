"""What failed, told to Neovim: as what it is, or as something that nobody foresaw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lcursor import protocol
from lcursor.errors import ChatBusy, LcursorError
from lcursor.reporting import as_lcursor_error, error_message, report_error


def told(error: Exception, number: int) -> list[tuple[str, Mapping[str, Any]]]:
    """Return all that is told of an error."""
    said: list[tuple[str, Mapping[str, Any]]] = []
    report_error(lambda method, params: said.append((method, params)), error, number, "it broke")
    for method, params in said:
        protocol.check(method, params, protocol.TO_LUA)
    return said


def test_an_error_of_ours_is_reported_with_all_that_it_says() -> None:
    error = ChatBusy("somebody answers", "Wait")
    assert told(error, 7) == [
        (
            "error",
            {
                "id": 7,
                "code": "chat_busy",
                "message": "somebody answers",
                "hint": "Wait",
                "level": ChatBusy.level,
            },
        )
    ]


def test_what_nobody_foresaw_is_in_the_log_with_where_it_came_from() -> None:
    try:
        raise ZeroDivisionError("by nothing")
    except ZeroDivisionError as error:
        (log, words), (method, params) = told(error, 3)
    assert (log, words["level"]) == ("log", "error")
    assert __file__ in words["message"]
    assert "by nothing" in words["message"]
    assert (method, params["id"], params["message"]) == ("error", 3, "it broke")
    assert params["code"] == LcursorError.code
    assert ":LCursor log" in params["hint"]


def test_an_error_of_ours_stays_itself_and_belongs_to_no_request_unless_said() -> None:
    error = LcursorError("as it is")
    assert as_lcursor_error(lambda *_: None, error, "it broke") is error
    assert error_message(error)["id"] == 0
