"""An agent that speaks ACP and does what its prompt says, a step a line. Standard library only.

    say TEXT; think TEXT; write NAME TEXT; run COMMAND; ask COMMAND; plan; form; questions;
    model; connect PORT; tools NAME;
    crash; hang; silent S; noise; huge; unknown; child; late TEXT; stop REASON; fail TEXT; flood N

`FAKE` in its environment names what goes wrong before: `mute` (no answer to `session/new`), `dead`,
`old` (version 0), `forgets` (sessions), `loads` (it cannot resume), `deaf` (to the end of its
input, and to SIGTERM), `stray` (leaves a process), `login`, `modeless`.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

MODES = {"plan": "Plan", "default": "Ask", "auto": "Auto"}
IDS = {"allow_once": "proceed_once", "allow_always": "ever", "reject_once": "no"}
FORM = {
    "type": "object",
    "properties": {
        "size": {"type": "string", "enum": ["small", "large"], "title": "Size"},
        "count": {"type": "integer", "default": 3},
    },
    "required": ["size"],
}


def complain(text: str) -> None:
    """Write to standard error."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


class Agent:
    """The agent's end of the connection."""

    def __init__(self) -> None:
        self.fault = os.environ.get("FAKE", "")
        self.home = Path(os.environ["HOME"])
        self.session = ""
        self.mode = "auto"
        self.cwd = ""
        self.servers: list[dict[str, Any]] = []
        self.number = 100
        self.waiting: list[dict[str, Any]] = []
        self.is_cancelled = False

    def send(self, **row: Any) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **row}) + "\n")
        sys.stdout.flush()

    def update(self, report: str, **fields: Any) -> None:
        row = {"sessionUpdate": report, **fields}
        self.send(method="session/update", params={"sessionId": self.session, "update": row})

    def read(self) -> dict[str, Any]:
        line = sys.stdin.readline()
        if not line:
            if self.fault == "deaf":
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                time.sleep(600)
            sys.exit(0)
        row: dict[str, Any] = json.loads(line)
        if row.get("method") == "session/cancel":
            self.is_cancelled = True
        return row

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return the answer."""
        self.number += 1
        number = self.number
        self.send(id=number, method=method, params={"sessionId": self.session, **params})
        while True:
            row = self.read()
            if row.get("id") == number and "method" not in row:
                return row
            if "method" in row and "id" in row:
                self.waiting.append(row)

    # What the client asks.

    def serve(self) -> None:
        while True:
            row = self.waiting.pop(0) if self.waiting else self.read()
            if "id" not in row or "method" not in row:
                continue
            try:
                result = self.answer(row["method"], row.get("params") or {})
            except RuntimeError as error:
                code = error.args[1] if len(error.args) > 1 else -32603
                self.send(id=row["id"], error={"code": code, "message": error.args[0]})
            else:
                self.send(id=row["id"], result=result)
                if row["method"] == "session/prompt":
                    self.after()

    def answer(self, method: str, params: dict[str, Any]) -> Any:
        if method == "initialize":
            self.record("capabilities", params["clientCapabilities"])
            if self.fault == "dead":
                complain("fake: cannot start its child")
                sys.exit(7)
            sessions: dict[str, Any] = {} if self.fault == "loads" else {"resume": {}}
            capabilities = {
                "loadSession": True,
                "sessionCapabilities": sessions,
                "mcpCapabilities": {"http": True},
                **({"providers": {}} if os.environ.get("FAKE_PROVIDERS") else {}),
            }
            version = 0 if self.fault == "old" else 1
            return {"protocolVersion": version, "agentCapabilities": capabilities}
        if method == "providers/list":
            return {"providers": [{"providerId": "main", "supported": ["anthropic"]}]}
        if method == "providers/set":
            self.record("provider", params)
            return {}
        if method == "session/new":
            return self.new(params)
        if method in ("session/resume", "session/load"):
            return self.again(method, params)
        if method in ("session/set_mode", "session/set_config_option"):
            self.mode = params.get("modeId") or params["value"]
            self.record("mode", self.mode)
            return {}
        if method == "session/prompt":
            return self.prompt("".join(part.get("text", "") for part in params["prompt"]))
        raise RuntimeError(f"no method {method}", -32601)

    def new(self, params: dict[str, Any]) -> dict[str, Any]:
        if self.fault == "mute":
            complain("fake: waits for its child")
            while True:
                self.read()
        if self.fault == "login":
            raise RuntimeError("Authentication required", -32000)
        if self.fault == "stray":
            subprocess.Popen(["sleep", "600"], start_new_session=True)
        self.session, self.cwd = f"s{os.getpid()}-{time.time_ns()}", params["cwd"]
        self.record("new", params)
        self.servers = params["mcpServers"]
        (self.home / f"session-{self.session}").touch()
        return {"sessionId": self.session, **self.modes()}

    def again(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        is_known = (self.home / f"session-{params['sessionId']}").exists()
        if self.fault in ("forgets", "loads") and method == "session/resume":
            raise RuntimeError(f"no method {method}", -32601)
        if self.fault == "forgets" or not is_known:
            raise RuntimeError("no such session")
        self.session, self.cwd = params["sessionId"], params["cwd"]
        self.record("again", method)
        if method == "session/load":
            text = {"type": "text", "text": "of an earlier turn"}
            for _ in range(2000):
                self.update("agent_message_chunk", content=text)
        return self.modes()

    def modes(self) -> dict[str, Any]:
        if self.fault == "modeless":
            return {"modes": {"currentModeId": "yolo", "availableModes": [{"id": "yolo"}]}}
        modes = [{"id": each, "name": name} for each, name in MODES.items()]
        return {"modes": {"currentModeId": "auto", "availableModes": modes}}

    # A turn.

    def prompt(self, text: str) -> dict[str, Any]:
        self.record("prompt", text)
        self.is_cancelled = False
        for line in text.split("\n"):
            word, _, rest = line.partition(" ")
            step = getattr(self, f"do_{word}", None)
            if step is not None:
                reason = step(rest)
                if reason:
                    return {"stopReason": reason}
            if self.is_cancelled:
                return {"stopReason": "cancelled"}
        return {"stopReason": "end_turn"}

    def after(self) -> None:
        """Send what comes after the turn."""
        late = self.home / "late"
        if late.exists():
            self.update("session_info_update", title="A title")
            self.update("agent_message_chunk", content={"type": "text", "text": late.read_text()})
            Path(self.cwd, "late.txt").write_text(late.read_text())
            late.unlink()

    def tool(self, title: str, kind: str, **fields: Any) -> str:
        self.number += 1
        key = f"call{self.number}"
        self.update("tool_call", toolCallId=key, title=title, kind=kind, status="pending", **fields)
        return key

    def done(self, key: str, text: str = "", status: str = "completed") -> None:
        content = [{"type": "content", "content": {"type": "text", "text": text}}]
        self.update("tool_call_update", toolCallId=key, status=status, content=content)

    def do_say(self, text: str) -> None:
        self.update("agent_message_chunk", content={"type": "text", "text": text})

    def do_think(self, text: str) -> None:
        self.update("agent_thought_chunk", content={"type": "text", "text": text})

    def do_write(self, rest: str) -> None:
        name, _, text = rest.partition(" ")
        path = Path(self.cwd, name)
        key = self.tool(f"Edit {path}", "edit", locations=[{"path": str(path)}])
        old = path.read_text() if path.exists() else ""
        path.write_text(text.replace("\\n", "\n"))
        diff = {"type": "diff", "path": str(path), "oldText": old, "newText": path.read_text()}
        self.update("tool_call_update", toolCallId=key, status="completed", content=[diff])

    def do_run(self, command: str) -> None:
        key = self.tool(command, "execute", rawInput={"command": command})
        self.execute(key, command)

    def execute(self, key: str, command: str) -> None:
        found = subprocess.run(command, shell=True, cwd=self.cwd, capture_output=True, text=True)
        status = "failed" if found.returncode else "completed"
        self.done(key, found.stdout + found.stderr, status)

    def do_ask(self, command: str) -> None:
        """Ask before a command; some agents report the call only with the question."""
        self.number += 1
        key = f"call{self.number}"
        call = {
            "toolCallId": key,
            "title": f"`{command}`",
            "kind": "execute",
            "status": "pending",
            "rawInput": {"command": ["bash", "-lc", command]},
        }
        options = [{"optionId": key, "name": kind, "kind": kind} for kind, key in IDS.items()]
        answer = self.request("session/request_permission", toolCall=call, options=options)
        outcome = answer["result"]["outcome"]
        self.record("permission", outcome)
        if outcome.get("optionId") == IDS["allow_once"]:
            self.execute(key, command)
        elif outcome["outcome"] == "selected":
            self.done(key, "rejected", "failed")

    def do_plan(self, _: str) -> None:
        rows = [{"content": "Read it", "priority": "high", "status": "pending"}]
        self.update("plan", entries=rows)
        rows[0]["status"] = "completed"
        self.update("plan", entries=[*rows, {"content": "Test it", "status": "pending"}])

    def do_form(self, _: str) -> None:
        answer = self.request(
            "elicitation/create", mode="form", message="Which size?", requestedSchema=FORM
        )
        self.record("form", answer["result"])

    def do_questions(self, _: str) -> None:
        """Ask as Qwen Code does, by a permission."""
        options = [{"label": "Small"}, {"label": "Large"}]
        rows = [{"question": "Which size?", "options": options}, {"question": "Why?"}]
        self.number += 1
        call = {
            "toolCallId": f"call{self.number}",
            "title": "Ask user 2 questions",
            "kind": "think",
            "rawInput": {"questions": rows},
            "_meta": {"qwenInteractionKind": "user_question"},
        }
        choices = [
            {"optionId": "proceed_once", "name": "Submit", "kind": "allow_once"},
            {"optionId": "cancel", "name": "Cancel", "kind": "reject_once"},
        ]
        answer = self.request("session/request_permission", toolCall=call, options=choices)
        self.record("answers", answer["result"])
        self.done(f"call{self.number}", "answered")

    def do_model(self, _: str) -> None:
        """Ask the model that the environment names, and say what it answers."""
        url = os.environ["MODEL_URL"] + "/v1/chat/completions"
        body = json.dumps({"model": "any", "messages": [], "stream": True}).encode()
        request = urllib.request.Request(url, body)
        with urllib.request.urlopen(request) as found:
            lines = found.read().decode().splitlines()
        rows = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
        self.do_say("".join(row["choices"][0]["delta"].get("content") or "" for row in rows))

    def do_connect(self, port: str) -> None:
        try:
            socket.create_connection(("127.0.0.1", int(port)), 2).close()
            self.do_say("connected")
        except OSError as error:
            self.do_say(f"no network: {error.strerror}")

    def do_tools(self, name: str) -> None:
        """Start the MCP server that the client names, and say what a call of its tool returns."""
        server = self.servers[0]
        words = [server["command"], *server["args"]]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin
            assert process.stdout
            about = {"name": "fake", "version": "1"}
            begin = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}
            for row in (
                {"id": 1, "method": "initialize", "params": begin},
                {"method": "notifications/initialized"},
                {"id": 2, "method": "tools/call", "params": {
                    "name": "read", "arguments": {"path": name}}},
            ):  # fmt: skip
                process.stdin.write(json.dumps({"jsonrpc": "2.0", **row}).encode() + b"\n")
                process.stdin.flush()
            for line in process.stdout:
                row = json.loads(line)
                if row.get("id") == 2:
                    self.do_say(row["result"]["content"][0]["text"])
                    break
            process.stdin.close()

    def do_crash(self, _: str) -> None:
        complain("fake: segmentation fault")
        os._exit(139)

    def do_hang(self, _: str) -> None:
        while not self.is_cancelled:
            self.read()

    def do_stuck(self, _: str) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)

    def do_silent(self, seconds: str) -> None:
        time.sleep(float(seconds))

    def do_noise(self, _: str) -> None:
        sys.stdout.write("Loading model…\n[1, 2]\n{broken\n")
        complain("a warning")

    def do_huge(self, size: str) -> None:
        self.do_say("x" * int(size))

    def do_unknown(self, _: str) -> None:
        self.send(method="_auth/status_update", params={"authStatus": {"kind": "none"}})
        self.record("unknown", self.request("craft/drainMidTurnQueue")["error"]["code"])

    def do_child(self, command: str) -> None:
        own, self.session = self.session, "child"
        self.do_say("from a child")
        self.do_ask(command)
        self.session = own

    def do_late(self, text: str) -> None:
        (self.home / "late").write_text(text)

    def do_flood(self, count: str) -> None:
        for _ in range(int(count)):
            self.update("agent_message_chunk", content={"type": "text", "text": "word "})

    def do_odd(self, _: str) -> None:
        """Send reports of unknown kinds, and with fields of other types."""
        self.update("a_kind_of_tomorrow", value=1)
        self.update("tool_call", toolCallId=None, title=3, kind=["x"], status={}, content="text")
        self.update("plan", entries="none")
        self.update("agent_message_chunk", content=["x"])
        self.send(method="session/update", params=[])
        self.send(id=None, result=3)

    def do_stop(self, reason: str) -> str:
        return reason

    def do_fail(self, text: str) -> None:
        raise RuntimeError(text)

    def record(self, name: str, value: Any) -> None:
        """Note what happened, for the test."""
        with (self.home / "heard.jsonl").open("a") as file:
            file.write(json.dumps([name, value]) + "\n")


if __name__ == "__main__":
    Agent().serve()
