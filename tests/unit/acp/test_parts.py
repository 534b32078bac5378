"""The parts of a run of a foreign agent: forms, reports, the port to the model, the launch."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lcursor import config
from lcursor.acp.client import catalog
from lcursor.acp.client.launch import _login, find_command
from lcursor.acp.client.model_port import ModelPort
from lcursor.acp.client.updates import MAX_TEXT_CHARS, ToolUse
from lcursor.config import ForeignAgentConfig
from lcursor.errors import AgentMissing, ConfigInvalid
from lcursor.llm.records import ServedModel
from lcursor.run import forms
from tests.fakes.loopback import Handler, Loopback

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


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_the_port_adds_the_key_and_the_name_of_the_model(kind: Any) -> None:
    with Echo() as server:
        target = ServedModel("m", f"{server.url}/api/v1", kind=kind, key="secret")
        with ModelPort(target, "real-name") as port:
            found = ask(f"{port.url}/v1/chat", {"model": "gpt"}, Authorization="Bearer x")
            assert found["path"] == "/api/v1/chat"
            assert found["body"] == {"model": "real-name"}
            headers = {name.lower(): value for name, value in found["headers"].items()}
            key = headers["x-api-key"] if kind == "anthropic" else headers["authorization"]
            assert key.endswith("secret")
            with pytest.raises(urllib.error.HTTPError, match="404"):
                ask(f"http://127.0.0.1:{port.number}/v1/chat", {"model": "gpt"})


def test_the_port_leads_to_the_api_of_openai_at_gemini() -> None:
    with Echo() as server:
        for path in ("", "/v1beta"):
            target = ServedModel("m", f"{server.url}{path}", kind="gemini")
            with ModelPort(target, "m") as port:
                assert ask(f"{port.url}/v1/chat", {})["path"] == "/v1beta/openai/chat"


def test_the_port_leads_to_a_socket(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with Echo(socket_path=path), ModelPort(ServedModel("m", f"unix://{path}"), "m") as port:
        assert ask(f"{port.url}/v1/models", {})["path"] == "/v1/models"


def test_a_server_that_is_gone_is_an_error_of_the_port() -> None:
    target = ServedModel("m", "http://127.0.0.1:9")
    with (
        ModelPort(target, "m") as port,
        pytest.raises(urllib.error.HTTPError, match="502"),
    ):
        ask(f"{port.url}/v1/models")


def test_settings_of_agents() -> None:
    table = {"agents": {"codex": {"env": {"A": "$B"}, "hosts": ["x.test"], "command": {}}}}
    [found] = config.from_table(table).agent.foreign
    assert found == ForeignAgentConfig("codex", env={"A": "$B"}, hosts=("x.test",))


@pytest.mark.parametrize(
    "table", [3, {"codex": 3}, {"codex": {"modle": "x"}}, {"codex": {"command": "x"}}]
)
def test_wrong_settings_of_agents(table: object) -> None:
    with pytest.raises(ConfigInvalid, match=r"agents"):
        config.from_table({"agents": table})


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


def test_the_documents_list_each_agent() -> None:
    readme = (ROOT / "README.md").read_text()
    for each in catalog.AGENTS:
        path = {"messages": "messages", "responses": "responses", "chat": "chat/completions"}
        row = f"| {each.title} | `{each.name}` | `{each.install}` | `/v1/{path[each.api]}` |"
        assert f"{row} {each.tried} |" in readme
