"""How what failed is told to Neovim: an error as a message, what nobody foresaw in the log as well.

Knows no channel: who tells brings the function that sends. Any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lcursor.errors import LcursorError
from lcursor.protocol import ErrorMessage

Tell = Callable[[str, Mapping[str, Any]], None]
"""Sends a message to Neovim; callable on any thread, never waits."""


def failure(error: LcursorError, number: int = 0) -> ErrorMessage:
    """Return an error as a message.

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


def foreseen(tell: Tell, error: Exception, words: str) -> LcursorError:
    """Return an error of ours for what was raised.

    Args:
        tell: is given the whole of what nobody foresaw, for the log.
        error: as raised.
        words: what failed, where nobody foresaw it.
    """
    if isinstance(error, LcursorError):
        return error
    log_raised(tell, error)
    return LcursorError(words, "See :LCursor log")


def log_raised(tell: Tell, error: Exception) -> None:
    """Write down what was raised and where, and tell the user nothing."""
    import traceback

    words = "".join(traceback.format_exception(error))
    tell("log", {"level": "error", "message": words})


def tell_failed(tell: Tell, error: Exception, number: int, words: str) -> None:
    """Tell that a request failed; see `failure` and `foreseen`."""
    tell("error", failure(foreseen(tell, error, words), number))
