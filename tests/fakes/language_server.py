"""A language server on its standard input and output: each word `missing_…` is an error.

    python tests/fakes/language_server.py MODE LOG

What it is sent is written to LOG, one JSON object a line. Modes besides `push`, `plain` (push, but
without versions) and `pull`; they do so for documents whose name begins with a dot, else they push:

    silent  says nothing
    slow    says it some time after its document was closed
    dies    ends when it gets one
    halts   ends when one gets another text
    odd     does not know what the project defines
    twins   takes it for another file of the project, and says so of the other one
    late    first says that nothing is wrong, and a little later what is; see below
    loads   says that it is at work, that nothing is wrong, and what is wrong when it is done
    stuck   says that it is at work and that nothing is wrong, and is never done
    asked   as `loads`, and says nothing by itself but answers, as `pull` does
    far     says that it is no part of the project

`late` says with `fake/empty` how long an empty list must stand: for long before it has said what is
wrong, shortly after. So tests of it depend on no time.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

SLOW_S = 1.0
LATE_S = {"late": 0.1, "loads": 0.3, "asked": 0.3}
EMPTY_MS = {"before": 60_000, "after": 50}
LOADING = {"kind": "begin", "title": "Loading"}
WORD = re.compile(r"\bmissing_\w+")


class Server:
    """One server, until its input ends."""

    def __init__(self, mode: str, log: Path) -> None:
        self.mode, self.log = mode, log.open("a", buffering=1)
        self.texts: dict[str, str] = {}
        self.loading: set[str] = set()
        self.lock = threading.RLock()

    def run(self) -> None:
        """Answer what comes."""
        data = sys.stdin.buffer
        while head := data.readline():
            size = 0
            while head.strip():
                name, _, value = head.partition(b":")
                if name.lower() == b"content-length":
                    size = int(value)
                head = data.readline()
            message = json.loads(data.read(size))
            self.log.write(json.dumps(message) + "\n")
            if message.get("method") == "exit":
                return
            self.hear(message)

    def send(self, **message: Any) -> None:
        """Say something. Thread: any."""
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        with self.lock:
            sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
            sys.stdout.buffer.flush()

    def hear(self, message: dict[str, Any]) -> None:
        """Take one message."""
        method, params = message.get("method"), message.get("params") or {}
        if method == "initialize":
            can: dict[str, Any] = {"textDocumentSync": {"openClose": True, "change": 2}}
            if self.is_pulled:
                can["diagnosticProvider"] = {
                    "identifier": "fake", "interFileDependencies": False,
                    "workspaceDiagnostics": False,
                }  # fmt: skip
            self.send(id=message["id"], result={"capabilities": can})
        elif method == "textDocument/didOpen":
            document = params["textDocument"]
            self.texts[document["uri"]] = document["text"]
            self.say(document["uri"], document["version"], is_new=True)
        elif method == "textDocument/didChange":
            document = params["textDocument"]
            for change in params["contentChanges"]:
                if "range" not in change:
                    self.texts[document["uri"]] = change["text"]
            self.say(document["uri"], document["version"])
        elif method == "textDocument/didClose":
            uri = params["textDocument"]["uri"]
            if self.mode == "slow" and "/." in uri:
                self.soon(SLOW_S, self.publish, uri, [*self.errors(uri), error(0, "too late")])
            self.texts.pop(uri, None)
            if not self.is_pulled:
                self.publish(uri, [])
            self.say_twins()
        elif method == "textDocument/diagnostic":
            uri = params["textDocument"]["uri"]
            found = [] if uri in self.loading else self.errors(uri)
            self.send(id=message["id"], result={"kind": "full", "items": found})
        elif "id" in message and method:
            self.send(id=message["id"], result=None)

    def say(self, uri: str, version: int, is_new: bool = False) -> None:
        """Say what is wrong with a text, in the manner of the mode."""
        is_odd = "/." in uri
        if is_odd and self.mode in {"loads", "stuck", "asked"} and is_new:
            self.loading.add(uri)
            self.send(method="$/progress", params={"token": uri, "value": LOADING})
        if is_odd and self.mode in LATE_S and (is_new or self.mode == "late"):
            if self.mode == "late":
                self.send(method="fake/empty", params={"ms": EMPTY_MS["before"]})
            if not self.is_pulled:
                self.publish(uri, [], version)
            self.soon(LATE_S[self.mode], self.loaded, uri, version)
            return
        if self.is_pulled or (self.mode in {"silent", "slow"} and is_odd):
            return
        if is_odd and self.mode == ("dies" if is_new else "halts"):
            sys.exit(1)
        found = self.errors(uri)
        if is_odd and self.mode == "odd":
            found.append(error(0, "`project` is not defined"))
        if is_odd and self.mode == "far":
            found = [{**error(0, "No packages found for open file"), "severity": 2}]
        if self.mode == "stuck" and is_odd:
            found = []
        self.publish(uri, found, None if self.mode == "plain" else version)
        if is_odd:
            self.say_twins()

    @property
    def is_pulled(self) -> bool:
        """Whether it says nothing by itself."""
        return self.mode in {"pull", "asked"}

    def soon(self, delay_s: float, do: Callable[..., None], *args: Any) -> None:
        """Do something later."""
        timer = threading.Timer(delay_s, do, args)
        timer.daemon = True
        timer.start()

    def loaded(self, uri: str, version: int) -> None:
        """Say what is wrong with a text at last, unless there is another. Thread: any."""
        with self.lock:  # before anything about the next text
            if not self.is_pulled:
                self.publish(uri, self.errors(uri), version)
            if self.mode == "late":
                self.send(method="fake/empty", params={"ms": EMPTY_MS["after"]})
        if uri in self.loading:
            self.loading.discard(uri)
            self.send(method="$/progress", params={"token": uri, "value": {"kind": "end"}})

    def say_twins(self) -> None:
        """Say of the user's documents that others define the same."""
        if self.mode == "twins":
            has_twin = any("/." in uri for uri in self.texts)
            for uri in self.texts:
                if "/." not in uri:
                    more = [error(0, "it is defined twice")] if has_twin else []
                    self.publish(uri, [*self.errors(uri), *more])

    def errors(self, uri: str) -> list[dict[str, Any]]:
        """Return what is wrong with a text."""
        rows = enumerate(self.texts.get(uri, "").split("\n"))
        return [
            error(row, f"`{word}` is not defined")
            for row, line in rows
            for word in WORD.findall(line)
        ]

    def publish(self, uri: str, found: list[dict[str, Any]], version: int | None = None) -> None:
        """Say it. Thread: any."""
        params: dict[str, Any] = {"uri": uri, "diagnostics": found}
        if version is not None:
            params["version"] = version
        self.send(method="textDocument/publishDiagnostics", params=params)


def error(row: int, message: str) -> dict[str, Any]:
    """Return a diagnostic of a row."""
    where = {"start": {"line": row, "character": 0}, "end": {"line": row, "character": 1}}
    return {"range": where, "severity": 1, "code": "E1", "source": "fake", "message": message}


if __name__ == "__main__":
    Server(sys.argv[1], Path(sys.argv[2])).run()
