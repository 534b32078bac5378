"""What is decided without a server: what settings mean, what was allowed, which tool fits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lcursor.config import McpServerConfig
from lcursor.config_table import mcp_servers
from lcursor.errors import KeyMissing
from lcursor.mcp.client import importing, launch, policy
from lcursor.mcp.client.consent import Consent
from lcursor.mcp.client.ranking import rank
from lcursor.mcp.client.records import ServerTool, cleaned, one_line, tool_of
from tests.unit.mcp import catalogue

TOKEN = "ghp_" + "a1B2" * 10
ECHO = ServerTool("it", "echo", "Repeat a text.", {"properties": {"text": {"type": "string"}}})


def server(**settings: Any) -> McpServerConfig:
    [made] = mcp_servers({"it": settings})
    return made


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"command": ["x"], "env": {"TOKEN": "$TOKEN", "MODE": "fast", "PATH_KEY": "/a/b"}}, ""),
        ({"url": "https://x", "headers": {"Authorization": "Bearer ${TOKEN}"}}, ""),
        ({"url": "http://localhost:3", "headers": {"Authorization": "$TOKEN"}}, ""),
        ({"command": ["x"], "env": {"A": TOKEN}}, "env.A looks like a key"),
        ({"command": ["x"], "env": {"API_KEY": "abcdef1234567890"}}, "API_KEY looks like a key"),
        (
            {"url": "https://x", "headers": {"Authorization": "Bearer abcdef1234567890"}},
            "headers.Authorization looks like a key",
        ),
        ({"command": ["x", "--token", TOKEN]}, "has a key in its command"),
        ({"url": f"https://x/?key={TOKEN}"}, "has a key in its command or address"),
        ({"url": "http://x", "headers": {"A": "$B"}}, "without encryption"),
        ({"url": "ftp://x"}, "is no address"),
        ({"url": "https://x", "network": ["y"]}, "network is only for a command"),
        ({"command": ["x"], "headers": {"A": "$B"}}, "headers is only for a url"),
    ],
)
def test_what_is_wrong_with_settings(settings: dict[str, Any], words: str) -> None:
    problem = policy.problem(server(**settings))
    assert words in problem
    assert bool(words) == bool(problem)
    assert TOKEN not in problem


@pytest.mark.parametrize(
    ("command", "is_warned"),
    [
        (["npx", "-y", "server-x"], True),
        (["npx", "-y", "@org/server-x@latest"], True),
        (["npx", "-y", "@org/server-x@2026.8.31"], False),
        (["uvx", "mcp-server-git"], True),
        (["uvx", "mcp-server-git==2026.10.19"], False),
        (["pipx", "run", "mcp-server-git"], True),
        (["/usr/bin/server"], False),
    ],
)
def test_a_program_that_is_fetched_without_a_version_is_warned_of(
    command: list[str], is_warned: bool
) -> None:
    assert bool(policy.warning(server(command=command))) == is_warned


def test_a_description_has_names_of_variables_but_no_values(tmp_path: Path) -> None:
    made = server(command=["sh", "-c", "a b"], env={"TOKEN": "$MINE", "MODE": "fast"}, write=["x"])
    text = "\n".join(policy.describe(made, tmp_path))
    assert "variables  MODE, TOKEN from $MINE" in text
    assert "fast" not in text
    assert "'a b'" in text
    assert f"writes     {tmp_path}/x, a folder of its own" in text


def test_a_file_of_the_project_is_described_by_its_content(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text("one")
    made = server(command=["sh", str(script)])
    first = policy.describe(made, tmp_path)
    assert any(line.startswith("contents   server.py ") for line in first)
    script.write_text("two")
    assert policy.describe(made, tmp_path) != first
    assert not any("contents" in line for line in policy.describe(made, tmp_path / "elsewhere"))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"command": ["x"]}, ""),
        ({"command": ["x"], "readable": ["y"]}, ""),
        ({"command": ["x"], "network": ["a.org"]}, "may connect to a.org"),
        ({"command": ["x"], "write": ["~/y"]}, "may change ~/y"),
        ({"url": "https://a.org/mcp"}, "sends the arguments to a.org"),
    ],
)
def test_the_risk_of_a_call(settings: dict[str, Any], words: str) -> None:
    risk = policy.risk(server(**settings))
    assert words in risk
    assert bool(words) == bool(risk)


def test_variables_are_those_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "12345")
    monkeypatch.delenv("NONE", raising=False)
    assert launch.resolved([("A", "Bearer $MINE"), ("B", "${MINE}s"), ("C", "5$")]) == {
        "A": "Bearer 12345", "B": "12345s", "C": "5$"
    }  # fmt: skip
    with pytest.raises(KeyMissing, match="NONE is not set"):
        launch.resolved([("A", "$NONE")])


def test_ports_of_this_machine_are_no_hosts() -> None:
    network = launch.network_of(["localhost:5432", "127.0.0.1:8080", "api.example.org"])
    assert (network.hosts, network.ports) == (("api.example.org",), (5432, 8080))


def test_texts_are_cleaned() -> None:
    assert cleaned("a\u200bb\u202ec\x1b[1m\td\ne\u2028\U000e0041") == "abc[1md\ne"
    assert one_line("a\n\n b" + "x" * 200) == "a b" + "x" * 116 + "…"


def test_a_tool_in_one_line() -> None:
    schema = {
        "required": ["b"],
        "properties": {
            "a": {"enum": ["x", "y"]},
            "b": {"type": "array", "items": {"type": "integer"}},
            "c": {"anyOf": [{"type": "null"}, {"type": "string"}]},
            "d": True,
        },
    }
    made = ServerTool("it", "do", "First.\nSecond.", schema)
    assert made.signature == "it__do(b: [integer], a?: x|y, c?: string, d?: any)"
    assert made.summary == "First."


def test_all_that_a_server_says_of_a_tool_is_in_its_digest() -> None:
    row = ECHO.stored()
    for changed in (
        {"name": "echo2"},
        {"description": "Repeat a text. "},
        {"schema": {"type": "object"}},
        {"annotations": {"readOnlyHint": True}},
    ):
        assert tool_of("it", {**row, **changed}).digest != ECHO.digest
    assert tool_of("it", json.loads(json.dumps(row))).digest == ECHO.digest


def test_answers_are_stored_for_the_project(tmp_path: Path) -> None:
    one = Consent(tmp_path / "one", tmp_path / "data")
    assert one.server_state("it", ["program x"]) == "none"
    one.remember("it", is_allowed=True, policy=["program x"], tools=[ECHO])
    one.remember("no", is_allowed=False, policy=["program y"], tools=[])
    again = Consent(tmp_path / "one", tmp_path / "data")
    assert again.server_state("it", ["program x"]) == "approved"
    assert again.server_state("it", ["program x", "network a"]) == "changed"
    assert again.difference("it", ["program x", "network a"]) == ["+ network a"]
    assert again.server_state("no", ["program z"]) == "rejected"
    assert again.tool_state(ECHO) == "approved"
    one.remember("no", is_allowed=True, policy=["program y"], tools=[])
    assert again.server_state("no", ["program y"]) == "approved", "as another Neovim said"
    other = ServerTool("it", "echo", "Repeat a text twice.", ECHO.schema)
    assert again.tool_state(other) == "changed"
    assert again.tool_difference(other) == ["-     Repeat a text.", "+     Repeat a text twice."]
    assert again.tool_state(ServerTool("it", "new")) == "none"
    assert Consent(tmp_path / "two", tmp_path / "data").server_state("it", ["program x"]) == "none"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"it": 3}', '{"it": {"is_allowed": 1}}'])
def test_damaged_answers_are_none(tmp_path: Path, text: str) -> None:
    made = Consent(tmp_path, tmp_path / "data")
    made.remember("it", is_allowed=True, policy=["x"], tools=[])
    [path] = (tmp_path / "data").glob("*/servers.json")
    path.write_text(text)
    assert Consent(tmp_path, tmp_path / "data").server_state("it", ["x"]) == "none"


def test_servers_of_other_programs_become_settings(tmp_path: Path) -> None:
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".vscode/mcp.json").write_text(
        """{
          // comments and commas are allowed there
          "servers": {
            "My Tracker": {
              "type": "http", "url": "https://tracker.test/mcp", /* https:// in a string */
              "headers": {"Authorization": "Bearer SECRET", "X-Mode": "${env:MODE}"},
            },
            "empty": {},
          },
        }""".replace("SECRET", TOKEN)
    )
    text = "\n".join(importing.lua_text(tmp_path))
    assert '["my-tracker"] = {' in text
    assert '["Authorization"] = "Bearer $MY_TRACKER_TOKEN",  -- set this variable' in text
    assert '["X-Mode"] = "$MODE",' in text
    assert TOKEN not in text
    assert "empty" not in text


def test_without_servers_the_files_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".mcp.json").write_text("{not json")
    lines = importing.lua_text(tmp_path)
    assert lines[0] == importing.NONE
    assert "--   ~/.config/mcphub/servers.json" in lines


@pytest.mark.parametrize(
    ("name", "number", "share"), [("questions", 60, 0.8), ("searches", 44, 0.95)]
)
def test_the_right_tool_is_among_the_first_five(name: str, number: int, share: float) -> None:
    """By words only; with an index, meaning counts too."""
    tools, questions = catalogue.tools(), catalogue.questions(name)
    assert (len(tools), len(questions)) == (100, number)
    assert {key for _, keys in questions for key in keys} <= {each.key for each in tools}
    hits = sum(
        any(each.key in keys for each in rank(tools, question, 5)) for question, keys in questions
    )
    assert hits / len(questions) >= share


def test_a_similar_meaning_counts_where_no_word_fits() -> None:
    tools = [ECHO, ServerTool("it", "add", "Add numbers.")]
    assert rank(tools, "sum", 5) == []
    assert rank(tools, "sum", 5, [0.1, 0.6]) == [tools[1]]
    assert rank(tools, "repeat numbers", 5, [0.3, 0.9])[0] == tools[1]
