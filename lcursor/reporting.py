"""Report errors to Neovim: as `error` messages; unexpected ones are logged with their traceback.

Independent of the connection: callers pass the function that sends. Any thread.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from typing import Any

from lcursor.errors import LcursorError
from lcursor.protocol.session import ErrorMessage

Notify = Callable[[str, Mapping[str, Any]], None]
"""Sends a message to Neovim; callable on any thread, never waits."""


def error_message(error: LcursorError, number: int = 0) -> ErrorMessage:
    """Return the `error` message for an error.

    Args:
        error: as raised.
        number: the id of the request that failed; 0 for none.
    """
    return {
        "id": number,
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "level": error.level,
    }


def as_lcursor_error(notify: Notify, error: Exception, summary: str) -> LcursorError:
    """Return an error as it is if it is ours; else log it and return one with a summary."""
    if isinstance(error, LcursorError):
        return error
    log_exception(notify, error)
    return LcursorError(summary, "See :LCursor log")


def log_exception(notify: Notify, error: Exception) -> None:
    """Write an exception with its traceback to the log; the user sees nothing."""
    text = "".join(traceback.format_exception(error))
    notify("log", {"level": "error", "message": text})


def report_error(notify: Notify, error: Exception, number: int, summary: str) -> None:
    """Report that a request failed; see `error_message` and `as_lcursor_error`."""
    notify("error", error_message(as_lcursor_error(notify, error, summary), number))
