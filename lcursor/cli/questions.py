"""Questions of an agent on a terminal: approvals, plans and forms. On standard error."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import typer

from lcursor.cli.terminal import safe

NO_TERMINAL = "there is no terminal to approve it on"


def note(text: str) -> None:
    """Print a line to standard error."""
    typer.echo(safe(text), err=True)


def _ask(prompt: str) -> str:
    """Ask on the terminal, on standard error.

    Raises:
        EOFError: there is no answer.
        KeyboardInterrupt: the user pressed Ctrl-C instead.
    """
    import signal

    typer.echo(prompt, nl=False, err=True)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return input().strip()
    finally:
        signal.signal(signal.SIGINT, handler)


def approve(params: Mapping[str, Any]) -> tuple[str, str]:
    """Ask on the terminal; without one, reject."""
    note(f"    {params['command']}\n    needs approval: {params['why']}")
    if not sys.stdin.isatty():
        return "reject", NO_TERMINAL
    try:
        until = ", until a file changes" if params["is_bound"] else ""
        answer = _ask(f"Run it? [y]es, yes for this [r]un{until}; or the reason against it: ")
    except EOFError:
        return "reject", NO_TERMINAL
    if answer.lower() in ("y", "yes", "r", "run"):
        return ("run" if answer.lower().startswith("r") else "once"), ""
    return "reject", "" if answer.lower() in ("n", "no") else answer


def approve_plan(text: str) -> str:
    """Show a plan and ask whether to carry it out; return it, or "" for no."""
    note(text)
    if not sys.stdin.isatty():
        return ""
    try:
        return text if _ask("Carry it out? [y/N] ").lower() in ("y", "yes") else ""
    except EOFError:
        return ""


def fill_in(text: str) -> str:
    """Ask for the fields of a form; return it filled in, or "" to decline."""
    if not sys.stdin.isatty():
        return ""
    filled = []
    for line in text.splitlines():
        name, mark, _ = line.partition(":")
        try:
            answer = _ask(f"{safe(line)} ") if mark and name.isidentifier() else None
        except EOFError:
            return ""
        filled.append(line if not answer else f"{name}: {answer}")
        if answer is None:
            note(line)
    return "\n".join(filled)
