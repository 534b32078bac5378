"""`python -m lcursor acp` as a process, with an editor of this test and a scripted model."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lcursor.acp.server import sessions
from tests.fakes.script_server import Entry, Fault, ScriptServer
from tests.unit.agent.runs_over_http import FILES, MODEL, bash, call, finish, replace, view
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[3]
CAPABILITIES = {"fs": {"readTextFile": True, "writeTextFile": True}}
Row = dict[str, Any]


class Editor:
    """An editor that starts the agent.

    Attributes:
        updates: those of all sessions.
        asked: requests of the agent.
        choose: returns the option for a question.
        unasked: answers to what has no number.
        texts: of open files with unsaved changes, by path.
        written: the files that the agent let it write.
    """

    def __init__(self, folder: Path, server: ScriptServer, *options: str) -> None:
        self.root, self.server = folder / "project", server
        (self.root / ".git").mkdir(parents=True, exist_ok=True)
        for name, text in FILES.items():
            (self.root / name).write_text(text)
        environment = {**os.environ, "LCURSOR_DATA": str(folder / "data"), "PYTHONPATH": str(ROOT)}
        words = [sys.executable, "-m", "lcursor", "acp", "--url", server.url, "--model", MODEL]
        self.process = subprocess.Popen(
            [*words, *options], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.updates, self.asked, self.written = list[Row](), list[Row](), dict[str, str]()
        self.texts: dict[str, str] = {}
        self.choose: Callable[[Row], str | None] = lambda params: params["options"][0]["optionId"]
        self._answers: dict[int, queue.SimpleQueue[Row]] = {}
        self.unasked: queue.SimpleQueue[Row] = queue.SimpleQueue()
        self._last = 0
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def request(self, method: str, **params: Any) -> Row:
        """Return the result of a request."""
        answer = self.answer(self.begin(method, **params))
        assert "error" not in answer, answer
        return dict(answer["result"])

    def error(self, method: str, **params: Any) -> Row:
        return dict(self.answer(self.begin(method, **params))["error"])

    def begin(self, method: str, **params: Any) -> int:
        """Send a request; return its number."""
        self._last += 1
        self._answers[self._last] = queue.SimpleQueue()
        self.send({"id": self._last, "method": method, "params": params})
        return self._last

    def answer(self, number: int) -> Row:
        return self._answers[number].get(timeout=40)

    def send(self, row: Row | str) -> None:
        assert self.process.stdin
        line = row if isinstance(row, str) else json.dumps({"jsonrpc": "2.0", **row})
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def open(self, capabilities: Mapping[str, Any] | None = None) -> str:
        """Begin a session; return its id."""
        given = CAPABILITIES if capabilities is None else capabilities
        self.request("initialize", protocolVersion=1, clientCapabilities=given)
        return str(self.request("session/new", cwd=str(self.root), mcpServers=[])["sessionId"])

    def prompt(self, session: str, text: str = "Set x.", *more: Row) -> str:
        """Return the reason of the end."""
        blocks = [{"type": "text", "text": text}, *more]
        return str(self.request("session/prompt", sessionId=session, prompt=blocks)["stopReason"])

    def said(self, kind: str = "agent_message_chunk") -> str:
        found = [each for each in self.updates if each["sessionUpdate"] == kind]
        return "".join(each["content"]["text"] for each in found)

    def calls(self) -> list[tuple[str, str]]:
        """Return title and last status of each tool call."""
        titles, states = dict[str, str](), dict[str, str]()
        for each in self.updates:
            if each["sessionUpdate"].startswith("tool_call"):
                number = each["toolCallId"]
                titles[number] = each.get("title", titles.get(number, ""))
                states[number] = each.get("status", states.get(number, ""))
        return [(titles[number], states[number]) for number in titles]

    def end(self) -> int:
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(30)

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            row = json.loads(line)
            assert row["jsonrpc"] == "2.0"
            if row.get("method") == "session/update":
                self.updates.append(row["params"]["update"])
            elif "method" in row:
                self.asked.append(row)
                self._serve(row)
            else:
                (self._answers[row["id"]] if row["id"] else self.unasked).put(row)

    def _serve(self, row: Row) -> None:
        params, number = row["params"], row["id"]
        if row["method"] == "session/request_permission":
            choice = self.choose(params)
            if choice is not None:
                outcome = {"outcome": "selected", "optionId": choice}
                self.send({"id": number, "result": {"outcome": outcome}})
        elif row["method"] == "fs/read_text_file":
            text = self.texts.get(params["path"])
            text = Path(params["path"]).read_text() if text is None else text
            self.send({"id": number, "result": {"content": text}})
        elif row["method"] == "fs/write_text_file":
            self.written[params["path"]] = params["content"]
            self.send({"id": number, "result": None})


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Callable[..., Editor]]:
    made, servers = list[Editor](), list[ScriptServer]()

    def make(script: Sequence[Entry], *options: str) -> Editor:
        servers.append(ScriptServer(script))
        servers[-1].model = MODEL
        made.append(Editor(tmp_path, servers[-1], *options))
        return made[-1]

    yield make
    for each in made:
        each.process.kill()
        each.process.wait()
        each.reader.join()
        for stream in (each.process.stdin, each.process.stdout):
            assert stream
            stream.close()
    for server in servers:
        server.close()


Make = Callable[..., Editor]


def test_a_change_is_shown_and_written_by_the_editor(editor: Make) -> None:
    it = editor([view(), replace(), finish("x is 2")])
    session = it.open()
    assert it.prompt(session) == "end_turn"
    path = f"{it.root}/a.py"
    assert it.written == {path: "x = 2\n"}
    assert (it.root / "a.py").read_text() == "x = 1\n"  # the editor decides when it is saved
    assert it.said() == "x is 2"
    asked = next(each for each in it.asked if each["method"] == "session/request_permission")
    shown = asked["params"]["toolCall"]["content"][0]
    assert shown == {"type": "diff", "path": path, "oldText": "x = 1\n", "newText": "x = 2\n"}
    names = [name for name, _ in it.calls()]
    assert names == ["Read a.py:1-1", "Edit a.py:1-1", "Finish", "Change a.py"]
    assert {state for _, state in it.calls()} == {"completed"}


def test_what_the_model_writes_before_its_calls_is_shown(editor: Make) -> None:
    it = editor([f"I look < at it.\n{view()}", replace(), finish("x is 2")])
    it.prompt(it.open({}))
    assert it.said("agent_thought_chunk").strip() == "I look < at it."


@pytest.mark.parametrize(
    ("dialect", "written", "shown"),
    [
        ("native", "One <two> <tool_call>\n{}", "One <two> "),
        ("fenced", "Look at `a`:\n```bash\nls\n```", "Look at `a`:\n"),
        ("choice", "I read it.\nread a.py", "I read it."),
    ],
)
def test_calls_are_no_text(dialect: str, written: str, shown: str) -> None:
    for size in (1, 3, 100):
        writing = sessions._Writing(dialect)
        parts = [written[at : at + size] for at in range(0, len(written), size)]
        assert "".join(writing.more(each, is_new=False) for each in parts) == shown


def test_a_session_without_a_message_is_resumed(editor: Make) -> None:
    it = editor([finish("x is 2")])
    session = it.open({})
    it.request("session/resume", sessionId=session, cwd=str(it.root))
    it.prompt(session)
    assert it.said() == "x is 2"


def test_unsaved_text_stays(editor: Make) -> None:
    it = editor([view(), replace(), finish()])
    path = f"{it.root}/a.py"
    it.texts[path] = "# unsaved\nx = 1\n"
    it.prompt(it.open())
    assert it.written == {path: "# unsaved\nx = 2\n"}


def test_a_change_that_no_longer_fits_is_not_written(editor: Make) -> None:
    it = editor([view(), replace(), finish()])
    it.texts[f"{it.root}/a.py"] = "x = 7\n"
    assert it.prompt(it.open()) == "end_turn"
    assert it.written == {}
    assert "no hunk applies any more" in it.said()


def test_text_that_is_typed_while_the_editor_asks_stays(editor: Make) -> None:
    it = editor([view(), replace(), finish()])
    path = f"{it.root}/a.py"

    def choose(_: Row) -> str:
        it.texts.setdefault(path, "# one\n# two\nx = 1\n")
        return "write"

    it.choose = choose
    it.prompt(it.open())
    assert it.written == {path: "# one\n# two\nx = 2\n"}
    shown = [
        each["params"]["toolCall"]["content"][0]
        for each in it.asked
        if "toolCall" in each["params"]
    ]
    assert [each["oldText"] for each in shown] == ["x = 1\n", "# one\n# two\nx = 1\n"]


def test_a_file_that_was_created_meanwhile_is_not_replaced(editor: Make) -> None:
    create = {"command": "create", "path": "n.py", "file_text": "new = 1\n"}
    it = editor([call("str_replace_editor", **create), finish()])

    def choose(_: Row) -> str:
        (it.root / "n.py").write_text("mine = 1\n")
        return "write"

    it.choose = choose
    it.prompt(it.open())
    assert it.written == {}
    assert it.calls()[-1] == ("Create n.py", "failed")
    assert (it.root / "n.py").read_text() == "mine = 1\n"


def test_a_stop_while_files_are_written(editor: Make) -> None:
    create = {"command": "create", "path": "n.py", "file_text": "new = 1\n"}
    it = editor([view(), replace(), call("str_replace_editor", **create), finish()])
    session = it.open({})

    def choose(_: Row) -> str:
        it.send({"method": "session/cancel", "params": {"sessionId": session}})
        return "all"

    it.choose = choose
    assert it.prompt(session) == "cancelled"
    assert (it.root / "a.py").read_text() == "x = 1\n"
    assert not (it.root / "n.py").exists()
    assert sum("toolCall" in each["params"] for each in it.asked) == 1


def test_two_sessions_change_the_same_file(editor: Make) -> None:
    it = editor([view(), replace(), finish()] * 2)
    first, other = it.open({}), it.open({})
    it.prompt(first)
    (it.root / "a.py").write_text("x = 1\n")  # the user takes it back by hand
    it.prompt(other)
    assert (it.root / "a.py").read_text() == "x = 2\n"


def test_a_rejected_change_is_not_written(editor: Make) -> None:
    it = editor([view(), replace(), finish()])
    it.choose = lambda _: "skip"
    it.prompt(it.open())
    assert it.written == {}
    assert it.calls()[-1] == ("Change a.py", "failed")


def test_an_editor_that_writes_no_files_gets_them_on_disk(editor: Make) -> None:
    it = editor([view(), replace(), finish()])
    it.prompt(it.open({}))
    assert (it.root / "a.py").read_text() == "x = 2\n"
    assert it.calls()[-1] == ("Change a.py", "completed")


def test_a_file_that_runs_code_is_asked_about_alone(editor: Make) -> None:
    create = {"command": "create", "path": ".vscode/tasks.json", "file_text": "{}\n"}
    it = editor([view(), replace(), call("str_replace_editor", **create), finish()])
    it.choose = lambda params: (
        "all" if any(each["optionId"] == "all" for each in params["options"]) else "skip"
    )
    it.prompt(it.open())
    assert list(it.written) == [f"{it.root}/a.py"]
    titles = [name for name, state in it.calls() if state == "failed"]
    assert titles == ["Create .vscode/tasks.json (it runs code by itself)"]


@pytest.mark.parametrize(("choice", "result"), [("once", "completed"), ("reject", "failed")])
def test_a_command_is_approved(editor: Make, choice: str, result: str) -> None:
    it = editor([bash("echo 1 > new.txt"), finish()], "--mode", "ask")
    it.choose = lambda params: choice if len(params["options"]) == 3 else "skip"
    it.prompt(it.open())
    first = it.asked[0]["params"]["toolCall"]
    assert first["title"] == "echo 1 > new.txt"
    assert it.calls()[0][1] == result


def test_a_message_continues_the_session(editor: Make) -> None:
    it = editor([view(), replace(), finish("x is 2"), replace("2", "3"), finish("x is 3")])
    session = it.open({})
    it.prompt(session)
    assert it.prompt(session, "Now 3.") == "end_turn"
    assert (it.root / "a.py").read_text() == "x = 3\n"
    assert it.said() == "x is 2x is 3"


def test_servers_of_the_editor_are_named_once_as_not_used(editor: Make) -> None:
    it = editor([view(), replace(), finish("x is 2"), replace("2", "3"), finish("x is 3")])
    it.request("initialize", protocolVersion=1, clientCapabilities={})
    servers = [{"name": name, "command": "/bin/false", "args": [], "env": []} for name in "ab"]
    session = it.request("session/new", cwd=str(it.root), mcpServers=servers)["sessionId"]
    it.prompt(session)
    it.prompt(session, "Now 3.")
    remark = "(MCP servers are not used by lcursor here: a, b.)"
    assert it.said() == f"x is 2\n\n{remark}x is 3"


def test_a_session_is_opened_again(editor: Make) -> None:
    first = editor([view(), replace(), finish("x is 2")])
    session = first.open({})
    first.prompt(session)
    assert first.end() == 0
    it = editor([replace("2", "3"), finish("x is 3")])
    it.request("initialize", protocolVersion=1)
    listed = it.request("session/list", cwd=str(it.root))["sessions"]
    assert [(each["sessionId"], each["title"]) for each in listed] == [(session, "Set x.")]
    it.request("session/load", sessionId=session, cwd=str(it.root), mcpServers=[])
    assert it.said("user_message_chunk") == "Set x."
    assert [name for name, _ in it.calls()] == ["Read a.py:1-1", "Edit a.py:1-1", "Finish"]
    assert it.prompt(session, "Now 3.") == "end_turn"
    assert it.said().endswith("x is 3")


@pytest.mark.parametrize("moment", ["while the model works", "while it asks"])
def test_a_stop(editor: Make, moment: str) -> None:
    script = (
        [Fault.SILENCE] if moment == "while the model works" else [bash("echo 1 > b"), finish()]
    )
    it = editor(script, "--mode", "ask")
    it.choose = lambda _: None
    session = it.open()
    number = it.begin("session/prompt", sessionId=session, prompt=[text("Set x.")])
    if moment == "while it asks":
        wait_for(lambda: it.asked, 30, "a question")
    elif moment == "while the model works":
        wait_for(lambda: it.updates, 30, "the run has begun")
    it.send({"method": "session/cancel", "params": {"sessionId": session}})
    assert it.answer(number)["result"] == {"stopReason": "cancelled"}


def text(words: str) -> Row:
    return {"type": "text", "text": words}


def test_files_in_a_message_are_read_by_the_model(editor: Make) -> None:
    it = editor([finish()])
    resource = {"uri": f"file://{it.root}/a%20b.py#L3:4", "text": "secret_words = 1"}
    link = {"type": "resource_link", "uri": f"file://{it.root}/a.py", "name": "a.py"}
    it.prompt(it.open(), "Explain", {"type": "resource", "resource": resource}, link)
    state = next((it.root.parent / "data").rglob("run.jsonl")).read_text()
    assert f"Explain `{it.root}/a b.py:3-4` `{it.root}/a.py`" in state
    assert "secret_words = 1" in state


def test_secrets_in_a_message_are_not_read(editor: Make) -> None:
    it = editor([finish()])
    resource = {"uri": f"file://{it.root}/.env", "text": "PASSWORD=12345"}
    it.prompt(it.open(), "Explain", {"type": "resource", "resource": resource})
    state = next((it.root.parent / "data").rglob("run.jsonl")).read_text()
    assert "not read" in state
    assert "12345" not in state


def test_options(editor: Make) -> None:
    it = editor([finish()])
    it.request("initialize", protocolVersion=99)
    made = it.request("session/new", cwd=str(it.root), mcpServers=[])
    session = made["sessionId"]
    assert made["modes"]["currentModeId"] == "auto"
    values = {each["id"]: each["currentValue"] for each in made["configOptions"]}
    assert values["mode"] == "auto"
    it.request("session/set_mode", sessionId=session, modeId="plan")
    found = it.request("session/set_config_option", sessionId=session, configId="mode", value="ask")
    assert found["configOptions"][0]["currentValue"] == "ask"
    assert "not one of" in it.error("session/set_mode", sessionId=session, modeId="yolo")["message"]


def test_wrong_requests_are_answered(editor: Make) -> None:
    it = editor([finish()])
    session = it.open()
    assert it.error("session/new", cwd="here")["code"] == -32602
    assert it.error("session/prompt", sessionId="none", prompt=[])["code"] == -32602
    assert it.error("session/prompt", sessionId=session, prompt=[])["code"] == -32602
    assert it.error("nothing/here")["code"] == -32601
    assert "error" in it.answer(it.begin("session/list", cwd="/\0"))
    link = {"type": "resource_link", "uri": "http://[x", "name": "x"}
    assert it.prompt(session, "See", link) == "end_turn"
    found = it.error("session/load", sessionId="20260101-000000-00000000", cwd=str(it.root))
    assert "there is no run" in found["message"]
    it.send("this is no JSON")
    assert it.unasked.get(timeout=40)["error"]["code"] == -32700
    it.send({"method": "nothing/here", "params": {}})  # no answer: it is a notification
    assert it.prompt(session) == "end_turn"


def test_a_session_goes_on_after_a_first_message_that_failed(editor: Make) -> None:
    it = editor([view(), replace(), finish("x is 2")])
    session = it.open()
    it.server.close()
    it.prompt(session)
    assert "nothing answers at" in it.said()
    with ScriptServer(it.server.play, port=it.server.port) as again:
        again.model = MODEL
        assert it.prompt(session) == "end_turn"
        assert it.written == {f"{it.root}/a.py": "x = 2\n"}
        assert it.prompt(session) == "end_turn"  # and it is continued


@pytest.mark.linux
def test_it_ends_with_the_editor(editor: Make) -> None:
    it = editor([bash("sleep 86399.5"), finish()])
    session = it.open()
    it.begin("session/prompt", sessionId=session, prompt=[text("Set x.")])
    wait_for(lambda: it.calls(), 30, "the command runs")
    assert it.end() == 0
    left = [each for each in Path("/proc").glob("[0-9]*/cmdline") if is_sleep(each)]
    assert left == []


def is_sleep(path: Path) -> bool:
    try:
        return b"86399.5" in path.read_bytes()
    except OSError:
        return False
