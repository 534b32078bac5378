"""Report errors to Neovim as `error` messages; log unexpected ones with their traceback.

Callers pass the function that sends a message. Any thread.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from typing import Any

from lcursor.errors import LcursorError
from lcursor.protocol.session import ErrorMessage

Notify = Callable[[str, Mapping[str, Any]], None]
"""Sends a message to Neovim without blocking, on any thread."""


def error_message(error: LcursorError, number: int = 0) -> ErrorMessage:
    """Return the `error` message for an error; `number` is the failed request's id, 0 for none."""
    return {
        "id": number,
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "level": error.level,
    }


def as_lcursor_error(notify: Notify, error: Exception, summary: str) -> LcursorError:
    """Return an LcursorError unchanged; log any other error and return one with a summary."""
    if isinstance(error, LcursorError):
        return error
    log_exception(notify, error)
    return LcursorError(summary, "See :LCursor log")


def log_exception(notify: Notify, error: Exception) -> None:
    """Write an exception with its traceback to the log, without a notification."""
    text = "".join(traceback.format_exception(error))
    notify("log", {"level": "error", "message": text})


def report_error(notify: Notify, error: Exception, number: int, summary: str) -> None:
    """Report that a request failed; see `error_message` and `as_lcursor_error`."""
    notify("error", error_message(as_lcursor_error(notify, error, summary), number))
