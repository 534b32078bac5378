"""The parts of a run of a foreign agent: forms, reports, the port to the model, the launch."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from lcursor.acp.client import catalog, tools_port
from lcursor.acp.client.connection import Connection
from lcursor.acp.client.launch import _login, find_command
from lcursor.acp.client.model_port import ModelPort
from lcursor.acp.client.session import Session
from lcursor.acp.client.tools_port import ToolsPort
from lcursor.acp.client.updates import MAX_TEXT_CHARS, ToolUse
from lcursor.config import ForeignAgentConfig
from lcursor.config_table import from_table
from lcursor.errors import AgentMissing, ConfigInvalid
from lcursor.llm.admission import Admission
from lcursor.llm.records import ServedModel
from lcursor.run import forms
from tests.fakes.loopback import Handler, Loopback

ANSWERS = """
import json, sys
for line in sys.stdin:
    row = json.loads(line)
    is_first = row["method"] == "initialize"
    result = {"protocolVersion": 1} if is_first else json.loads(sys.argv[1])
    print(json.dumps({"id": row["id"], "result": result}), flush=True)
"""
"""An agent that answers `initialize`, and then with its argument."""
ROOT = Path(__file__).resolve().parents[3]
SCHEMA = {
    "properties": {
        "name": {"type": "string"},
        "size": {"oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
        "tags": {"type": "array", "items": {"enum": ["red", "blue"]}},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "sure": {"type": "boolean", "default": True},
    },
    "required": ["name"],
}


def test_a_form_has_a_line_for_each_field() -> None:
    assert forms.write("Who?", SCHEMA).splitlines() == [
        "Who?", "", "name: ", "size:   (s: Small, l: Large)", "tags:   (red, blue)", "count: ",
        "share: ", "sure: yes  (yes, no)",
    ]  # fmt: skip


def test_values_have_their_types() -> None:
    text = "name: a: b\nsize: large\ntags: blue, Red\ncount: 3\nshare: 0.5\nsure: no\nother: x"
    assert forms.read(text, SCHEMA) == {
        "name": "a: b", "size": "l", "tags": ["blue", "red"], "count": 3, "share": 0.5,
        "sure": False,
    }  # fmt: skip
    unchanged = forms.write("Who?", SCHEMA).replace("name: ", "name: me")
    assert forms.read(unchanged, SCHEMA) == {"name": "me", "sure": True}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "name is missing"),
        ("name: x\ncount: many", "count is a number"),
        ("name: x\nsize: huge", "size is one of s, l"),
        ("name: x\nsure: perhaps", "sure is yes or no"),
    ],
)
def test_a_value_that_is_not_valid_is_named(text: str, problem: str) -> None:
    with pytest.raises(forms.FormProblem, match=problem):
        forms.read(text, SCHEMA)


@pytest.mark.parametrize("schema", [{}, {"properties": []}, {"properties": {"a": 3}}])
def test_an_odd_schema_is_a_question_without_fields(schema: Mapping[str, Any]) -> None:
    assert forms.write("Well?", schema).strip() == "Well?"
    assert forms.read("Well?", schema) == {}


def test_a_long_result_is_shortened_in_the_middle() -> None:
    use = ToolUse(status="completed", output={"stdout": f"begin{'x' * 40_000}end"})
    text = use.observation("/p").text
    assert len(text) < MAX_TEXT_CHARS + 100
    assert text.startswith("begin")
    assert text.endswith("end")


@pytest.mark.parametrize("words", [["bash", "-lc", "make test"], "make test", ["make", "test"]])
def test_the_command_of_a_call(words: object) -> None:
    use = ToolUse("Run it", "execute", input={"command": words})
    assert use.command == "make test"
    assert use.call("/p").arguments == {"kind": "command", "command": "make test"}


class Echo(Loopback):
    """A server that answers with what it was asked."""

    def answer(self, ask: Handler, body: dict[str, Any]) -> None:
        row = {"path": ask.path, "headers": dict(ask.headers), "body": body}
        ask.send(200, "application/json", json.dumps(row).encode())


def ask(url: str, body: Mapping[str, Any] | None = None, **headers: str) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers)) as found:
        return json.load(found)


def port_to(url: str, admission: Admission | None = None) -> ModelPort:
    return ModelPort(ServedModel("m", url), "m", admission or Admission())


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_the_port_adds_the_key_and_the_name_of_the_model(kind: Any) -> None:
    with Echo() as server:
        target = ServedModel("m", f"{server.url}/api/v1", kind=kind, key="secret")
        with ModelPort(target, "real-name", Admission()) as port:
            path = "/v1/chat/completions"
            found = ask(f"{port.url}{path}", {"model": "gpt"}, Authorization="Bearer x")
            assert found["path"] == f"/api{path}"
            assert found["body"] == {"model": "real-name"}
            headers = {name.lower(): value for name, value in found["headers"].items()}
            key = headers["x-api-key"] if kind == "anthropic" else headers["authorization"]
            assert key.endswith("secret")
            with pytest.raises(urllib.error.HTTPError, match="404"):
                ask(f"http://127.0.0.1:{port.number}{path}", {"model": "gpt"})
            for other in ("/v1/files", "/v1/files/1/content", "/v1/batches", "/v1/models/../files"):
                with pytest.raises(urllib.error.HTTPError, match="404"):
                    ask(f"{port.url}{other}", {})
            assert ask(f"{port.url}/v1/models?limit=9", {})["path"] == "/api/v1/models?limit=9"


def test_tokens_in_the_text_do_not_leave_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    token = "ghp_" + "aB3" * 12
    with Echo() as server, port_to(server.url) as port:
        assert ask(f"{port.url}/v1/x", {"text": token})["body"]["text"] == token
        monkeypatch.setattr("lcursor.http.endpoint.is_local", lambda _: False)
        assert token not in ask(f"{port.url}/v1/x", {"text": f"a {token}"})["body"]["text"]


def test_the_port_leads_to_the_api_of_openai_at_gemini() -> None:
    with Echo() as server:
        for path in ("", "/v1beta"):
            target = ServedModel("m", f"{server.url}{path}", kind="gemini")
            with ModelPort(target, "m", Admission()) as port:
                assert ask(f"{port.url}/v1/chat", {})["path"] == "/v1beta/openai/chat"


def test_the_port_leads_to_a_socket(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with Echo(socket_path=path), port_to(f"unix://{path}") as port:
        assert ask(f"{port.url}/v1/models", {})["path"] == "/v1/models"


def test_a_request_waits_until_the_server_has_space() -> None:
    admission = Admission()
    admission.resize(1, 0)
    chat = admission.enter(10, 10, 0)
    with Echo() as server, port_to(server.url, admission) as port, ThreadPoolExecutor(1) as threads:
        assert ask(f"{port.url}/v1/models")  # no model reads it
        answer = threads.submit(ask, f"{port.url}/v1/chat", {"messages": []})
        assert not wait([answer], 0.2).done
        chat.leave()
        assert answer.result(5)["body"] == {"messages": []}
    assert admission.enter(10, 10, 0).is_running.is_set()


def test_a_request_that_waits_ends_with_the_port() -> None:
    admission = Admission()
    admission.resize(1, 0)
    chat = admission.enter(10, 10, 0)
    with Echo() as server, ThreadPoolExecutor(1) as threads:
        with port_to(server.url, admission) as port:
            answer = threads.submit(ask, f"{port.url}/v1/chat", {"messages": []})
            assert not wait([answer], 0.2).done
        with pytest.raises(urllib.error.HTTPError, match="502") as raised:
            answer.result(5)
        raised.value.close()
        chat.leave()
    assert admission.enter(10, 10, 0).is_running.is_set()


def test_a_server_that_is_gone_is_an_error_of_the_port() -> None:
    target = ServedModel("m", "http://127.0.0.1:9")
    with (
        ModelPort(target, "m", Admission()) as port,
        pytest.raises(urllib.error.HTTPError, match="502"),
    ):
        ask(f"{port.url}/v1/models")


OPTIONS = [
    {"id": "model", "category": "model", "options": [{"value": "m"}]},
    {"id": "mode", "category": "mode", "options": [
        {"group": "own", "options": [{"value": "read-only"}, {"value": "auto"}]},
        {"group": "profiles", "options": [{"value": "profile"}]},
    ]},
]  # fmt: skip


@pytest.mark.parametrize(
    ("opened", "modes"),
    [
        ({"configOptions": OPTIONS}, ["read-only", "auto", "profile"]),
        ({"modes": {"availableModes": [{"id": "plan"}, {"id": "default"}]}}, ["plan", "default"]),
        ({"configOptions": "none", "modes": 3}, []),
    ],
)
def test_the_modes_of_a_session(opened: Mapping[str, Any], modes: list[str]) -> None:
    given = {"sessionId": "s1", **opened}
    with Connection([sys.executable, "-c", ANSWERS, json.dumps(given)], os.environ) as connection:
        session = Session(connection, Path("/p"))
        assert not session.open(lambda _: None, "", (), "")
        assert (session.id, list(session.modes)) == ("s1", modes)


def test_the_port_to_the_tools_needs_the_secret_and_has_few_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools_port, "SERVER", (sys.executable, "-c", "print(3); input()"))
    with ToolsPort(tmp_path) as port:
        secret = port.server["args"][-1].encode()

        def connect(line: bytes) -> socket.socket:
            connection = socket.create_connection(("127.0.0.1", port.number))
            connection.settimeout(20.0)
            connection.sendall(line + b"\n")
            return connection

        with connect(b"guess") as stranger:
            assert stranger.recv(10) == b""
        known = [connect(secret) for _ in range(tools_port.MAX_SERVERS)]
        assert [each.recv(1) for each in known] == [b"3"] * len(known)
        with connect(secret) as other, contextlib.suppress(ConnectionResetError):
            assert other.recv(10) == b""
        for each in known:
            each.close()


def test_settings_of_agents() -> None:
    table = {"agents": {"codex": {"env": {"A": "$B"}, "hosts": ["x.test"], "command": {}}}}
    [found] = from_table(table).agent.foreign
    assert found == ForeignAgentConfig("codex", env={"A": "$B"}, hosts=("x.test",))


@pytest.mark.parametrize(
    "table", [3, {"codex": 3}, {"codex": {"modle": "x"}}, {"codex": {"command": "x"}}]
)
def test_wrong_settings_of_agents(table: object) -> None:
    with pytest.raises(ConfigInvalid, match=r"agents"):
        from_table({"agents": table})


def test_an_agent_that_is_missing_says_how_to_install_it() -> None:
    known = catalog.KNOWN["codex"]
    with pytest.raises(AgentMissing, match="there is no /nowhere/x") as error:
        find_command(known, ForeignAgentConfig("codex", command=("/nowhere/x",)))
    assert known.install in str(error.value)


def test_a_login_is_copied_and_only_a_renewed_one_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, own = tmp_path / "home", tmp_path / "own"
    monkeypatch.setenv("HOME", str(home))
    (home / ".a").mkdir(parents=True)
    own.mkdir()
    names = (".a/renewed", ".a/other", ".a/broken", ".a/missing")
    for name in names[:3]:
        (home / name).write_text('{"token": 1}')
    with _login(own, names):
        assert (own / names[0]).read_text() == '{"token": 1}'
        (own / names[0]).write_text('{"token": 2}')
        (own / names[1]).write_text('{"token": 2, "hook": "rm"}')
        (own / names[2]).write_text("no json")
    assert [(home / name).read_text() for name in names[:3]] == [
        '{"token": 2}', '{"token": 1}', '{"token": 1}',
    ]  # fmt: skip
    assert not (home / names[3]).exists()
    assert oct(os.stat(own / names[0]).st_mode)[-3:] == "600"


def test_links_in_the_home_of_an_agent_lead_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, own, other = tmp_path / "home", tmp_path / "own", tmp_path / "other"
    monkeypatch.setenv("HOME", str(home))
    for folder in (home / ".a", own, other):
        folder.mkdir(parents=True)
    (home / ".a/login").write_text('{"token": 1}')
    (other / "secret").write_text('{"token": 666}')
    (own / ".a").symlink_to(other)
    with _login(own, [".a/login"]):
        assert [*other.iterdir()] == [other / "secret"]
        assert (own / ".a/login").read_text() == '{"token": 1}'
        (own / ".a/login").unlink()
        (own / ".a/login").symlink_to(other / "secret")
    assert (home / ".a/login").read_text() == '{"token": 1}'
    with _login(own, [".a/login"]):
        assert not (own / ".a/login").is_symlink()
    assert (other / "secret").read_text() == '{"token": 666}'


def test_the_documents_list_each_agent() -> None:
    readme = (ROOT / "README.md").read_text()
    for each in catalog.AGENTS:
        path = {"messages": "messages", "responses": "responses", "chat": "chat/completions"}
        row = f"| {each.title} | `{each.name}` | `{each.install}` | `/v1/{path[each.api]}` |"
        assert f"{row} {each.tried} |" in readme
