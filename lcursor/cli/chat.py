"""`python -m lcursor chat`: the chat from outside the editor, with the same slot and archive.

Streams the answer to standard output and the progress to standard error. Only prints.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lcursor.cli import options
from lcursor.cli.terminal import safe

if TYPE_CHECKING:
    from rich.console import Console

    from lcursor.chat.attachments import OpenCodebase
    from lcursor.chat.service import ChatService

INTERRUPTED = 130
INTERRUPT = "interrupt"
"""The name of the message that an interrupt from the keyboard adds to the queue."""


def chat(
    question: Annotated[
        list[str] | None,
        typer.Argument(
            help="The question, with mentions; - reads standard input; default: ask one by one."
        ),
    ] = None,
    model: options.Model = "",
    path: options.Where = None,
    go_on: Annotated[
        bool, typer.Option("--continue", help="Continue the newest chat of the project.")
    ] = False,
    show: Annotated[str, typer.Option(metavar="CHAT", help="Print a chat as Markdown.")] = "",
    listing: Annotated[bool, typer.Option("--list", help="List the chats of the project.")] = False,
    url: options.Url = "",
    key_env: options.KeyEnv = "",
    secret: options.Secret = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print messages, one line of JSON each.")
    ] = False,
) -> None:
    """Ask about the code of a project. Ctrl-C stops an answer and keeps the text so far."""
    from lcursor.project.root import root_of

    where = str((path or Path.cwd()).absolute())
    if show:
        _print_chat(show)
        return
    if listing:
        _print_list(str(root_of(Path(where))), as_json)
        return
    text = " ".join(question or [])
    if text == "-" or (not text and not sys.stdin.isatty()):
        text = sys.stdin.read()
    with _slot(model, url, key_env, secret or []) as talk:
        talk.open("last" if go_on else "", where)
        if text:
            raise typer.Exit(talk.ask(text, where, as_json))
        while True:
            try:
                text = input("> ")
            except (EOFError, KeyboardInterrupt):
                return
            if text.strip():
                talk.ask(text, where, as_json)


class _Talk:
    """A chat, and the messages of its slot."""

    def __init__(self) -> None:
        self.messages: SimpleQueue[tuple[str, Mapping[str, Any]]] = SimpleQueue()
        self.slot: ChatService
        self._number = 0
        self._chat = ""
        self._last = 0

    def emit(self, method: str, params: Mapping[str, Any]) -> None:
        """Queue a message. Thread: any."""
        self.messages.put((method, params))

    def open(self, chat: str, path: str) -> None:
        """Start a chat, or continue one."""
        self._number += 1
        self.slot.open({"id": self._number, "chat": chat, "path": path})
        for method, params in self._coming(None):
            if method == "chat.opened":
                self._chat = params["chat"]
                self._last = max((each["number"] for each in params["messages"]), default=0)
                if params["messages"]:
                    typer.echo(f"lcursor: continuing {safe(params['title'])}", err=True)
                return

    def ask(self, text: str, path: str, as_json: bool) -> int:
        """Ask and print the answer; return the exit status."""
        self._number += 1
        self.slot.send(
            {
                "id": self._number,
                "chat": self._chat,
                "after": self._last,
                "text": text,
                "path": path,
                "attachments": [],
                "dropped": [],
                "model": "",
                "again": 0,
                "call": "",
                "choice": "",
            }
        )
        shower = _Json() if as_json else _Screen()
        failed: Mapping[str, Any] | None = None
        is_stopped = False
        try:
            for method, params in self._coming(self._number):
                shower.take(method, params)
                if method == "error":
                    failed = params
                elif method == "chat.started":
                    self._last = params["answer"]
                elif method == "chat.done":
                    is_stopped = params["reason"] == "stopped"
                if method == "chat.done" or (failed is not None and self._has_no_turn(failed)):
                    break
        finally:
            shower.close()
        if failed is not None:
            text = ". ".join(filter(None, (failed["message"], failed["hint"])))
            typer.echo(f"lcursor: {safe(text)}", err=True)
            return 1
        return INTERRUPTED if is_stopped else 0

    def _has_no_turn(self, failed: Mapping[str, Any]) -> bool:
        """Return whether an error prevented the turn, so that no `chat.done` follows."""
        return failed["code"] in {"chat_busy", "chat_missing", "command_unknown"}

    def _coming(self, stops: int | None) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield messages; an interrupt stops a turn, a second one the command."""
        from lcursor.errors import LcursorError

        with _interrupts(self.messages):
            is_stopped = False
            while True:
                method, params = self.messages.get()
                if method == INTERRUPT:
                    if stops is None or is_stopped:
                        raise KeyboardInterrupt
                    is_stopped = True
                    self.slot.stop({"id": stops})
                elif method == "error" and params["id"] == 0:
                    typer.echo(f"lcursor: {safe(params['message'])}", err=True)
                elif method == "error" and stops is None:
                    raise LcursorError(params["message"], params["hint"])
                elif method != "log":
                    yield method, params


@contextmanager
def _interrupts(messages: SimpleQueue[tuple[str, Mapping[str, Any]]]) -> Iterator[None]:
    """Turn interrupts into messages."""
    import signal

    before = signal.signal(signal.SIGINT, lambda *_: messages.put((INTERRUPT, {})))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class _Json:
    """Prints each message."""

    def take(self, method: str, params: Mapping[str, Any]) -> None:
        """Print one."""
        typer.echo(json.dumps({"message": method, **params}))

    def close(self) -> None:
        """Nothing is left to print."""


class _Screen:
    """Streams an answer to the terminal, with the progress below it."""

    def __init__(self) -> None:
        from rich.console import Console

        self._out: Console = Console(highlight=False, soft_wrap=True)
        self._status = Console(stderr=True).status("") if sys.stderr.isatty() else None
        self._is_waiting = False
        self._column = 0

    def take(self, method: str, params: Mapping[str, Any]) -> None:
        """Show a message."""
        if method == "chat.started":
            self._wait("")
            for item in params["items"]:
                note = f" ({item['note']})" if item["note"] else ""
                sign = "-" if item["is_left_out"] else "+"
                typer.echo(f"{sign} {safe(item['name'] + note)}", err=True)
        elif method == "chat.progress":
            self._wait(_progress(params))
        elif method == "chat.summed":
            self._wait("")
            typer.echo(
                f"lcursor: {params['messages']} messages are summarized, "
                f"{params['tokens_before']:,} tokens to {params['tokens_after']:,}",
                err=True,
            )
        elif method == "chat.delta":
            self._wait("")
            self._print(params["reasoning"], "dim")
            self._print(params["text"], "")
        elif method == "chat.done":
            self._wait("")
            if params["reason"] == "stopped":
                self._end_line()
                typer.echo("lcursor: stopped; the text so far is kept", err=True)
            elif params["reason"] == "length":
                self._end_line()
                typer.echo("lcursor: the context is full; the answer is cut off", err=True)

    def close(self) -> None:
        """End the line."""
        self._wait("")
        self._end_line()

    def _end_line(self) -> None:
        if self._column:
            self._out.print()
            self._column = 0

    def _print(self, text: str, style: str) -> None:
        if text:
            from rich.segment import Segment, Segments
            from rich.style import Style

            # In a string, rich would replace tabs and emoji codes such as `:x:`.
            self._out.print(Segments([Segment(safe(text), Style.parse(style))]), end="")
            self._out.file.flush()
            self._column = 0 if text.endswith("\n") else 1

    def _wait(self, words: str) -> None:
        if self._status is None:
            return
        if not words and self._is_waiting:
            self._status.stop()
        elif words and self._is_waiting:
            self._status.update(words)
        elif words:
            self._status.update(words)
            self._status.start()
        self._is_waiting = bool(words)


def _progress(params: Mapping[str, Any]) -> str:
    """Describe what a turn waits for; "" once the answer has begun."""
    phase, detail = params["phase"], safe(params["detail"]).replace("[", "\\[")
    if phase == "writing":
        return ""
    words = {
        "server": "waiting for the server",
        "context": "reading attachments",
        "summary": "summarizing earlier messages",
        "reading": "reading",
    }[phase]
    if params["total"]:
        left = f", {params['seconds_left']:.0f} s left" if params["seconds_left"] >= 0 else ""
        words += f" {params['done']:,} of {params['total']:,} tokens{left}"
    return f"{words}: {detail}" if detail else words


@contextmanager
def _slot(model: str, url: str, key_env: str, secrets: Sequence[str]) -> Iterator[_Talk]:
    from lcursor.chat.service import ChatService

    config = options.chat_settings(model, url, key_env)
    talk = _Talk()
    talk.slot = ChatService(config, talk.emit, _open_codebase(secrets), secrets=secrets)
    try:
        yield talk
    finally:
        talk.slot.close(is_leaving=False)


def _open_codebase(secrets: Sequence[str]) -> OpenCodebase:
    """Return a function that opens a project for search: its index if there is one, else grep.

    Starts an index worker if none runs, as `python -m lcursor search` does.
    """
    from functools import cache

    from lcursor.context.codebase import Codebase, GrepSearch, IndexSearch
    from lcursor.project.root import is_begun

    @cache  # all questions share one client
    def open_codebase(root: Path) -> Codebase:
        if is_begun(root):
            return IndexSearch.open(root, start=True, secrets=secrets)
        return GrepSearch(root, secrets)

    return open_codebase


def _print_chat(key: str) -> None:
    from lcursor.chat.archive import Archive
    from lcursor.chat.chat_file import ChatFile
    from lcursor.chat.views import markdown

    typer.echo(safe(markdown(ChatFile.open(Archive().find(key)).chat)), nl=False)


def _print_list(root: str, as_json: bool) -> None:
    from datetime import datetime

    from lcursor.chat.archive import Archive

    rows, note = Archive().rows(root)
    for each in rows:
        if as_json:
            typer.echo(json.dumps(each))
        else:
            at = datetime.fromtimestamp(each["updated_s"]).strftime("%Y-%m-%d %H:%M")
            typer.echo(f"{each['chat']}  {at}  {each['messages']:>3}  {safe(each['title'])}")
    if note:
        typer.echo(f"lcursor: {note}", err=True)
    if not rows and not as_json:
        typer.echo("This project has no chats", err=True)
