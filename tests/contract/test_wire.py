"""Both halves know the same messages, codes, settings and version."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

import lcursor
from lcursor import config, errors, protocol
from lcursor.config_table import from_table
from lcursor.drive.editor import Editor
from lcursor.host.dispatch import Dispatch
from lcursor.llm import providers

ROOT = Path(__file__).resolve().parents[2]
SECTIONS = dataclasses.fields(config.Config)


@pytest.fixture(scope="module")
def lua(neovim: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the Lua half says of itself, asked in a real Neovim."""
    with Editor(neovim, tmp_path_factory.mktemp("wire")) as editor:
        said: dict[str, Any] = editor.lua(
            """
            local config, protocol = require("lcursor.config"), require("lcursor.host.protocol")
            local rows = {}
            for _, setting in ipairs(require("lcursor.config.schema")) do
              rows[setting[1]] = setting.rows
            end
            return {
              version = protocol.version, to_lua = protocol.to_lua, levels = protocol.levels,
              plugin = require("lcursor.host").version(), wire = config.for_host(),
              rows = rows,
              servers = require("lcursor.config.servers"),
            }
            """
        )
    return said


def names(table: dict[str, type]) -> dict[str, list[str]]:
    """Return the fields of each message."""
    return {method: list(protocol.fields(message)) for method, message in table.items()}


def as_lists(table: dict[str, Any]) -> dict[str, list[str]]:
    """Return Lua's tables, in which an empty one has no type of its own."""
    return {key: value or [] for key, value in table.items()}


def test_messages_and_their_fields(lua: dict[str, Any]) -> None:
    assert lua["version"] == protocol.PROTOCOL
    assert as_lists(lua["to_lua"]) == names(protocol.TO_LUA)


def sources(folder: str, suffix: str, *without: str) -> str:
    """Return the text of all files of a half, but for some that only describe or drive it."""
    files = sorted((ROOT / folder).rglob(f"*{suffix}"))
    names = [(path.relative_to(ROOT / folder).parts[0], path) for path in files]
    return "\n".join(path.read_text() for name, path in names if not name.startswith(without))


def is_named(method: str, text: str, call: str) -> bool:
    """Whether a message is an argument of a call; one without a dot is a common word elsewhere."""
    before = r"(?:[(,{]\s*|=\s*|^\s*)" if "." in method else call
    return bool(re.search(rf'{before}"{re.escape(method)}"', text, re.M))


def test_each_message_has_a_sender_and_a_handler() -> None:
    lua = sources("lua/lcursor", ".lua", "protocol")
    python = sources("lcursor", ".py", "protocol", "drive", "cli")
    handled = set(Dispatch(lambda method, params: None, lambda: None).handlers)
    assert handled == set(protocol.TO_PYTHON)
    assert not {name for name in protocol.TO_PYTHON if not is_named(name, lua, r"notify\(")}
    # What has an id is delivered to whoever asked, see requests.lua.
    told = {
        name for name, message in protocol.TO_LUA.items() if "id" not in protocol.fields(message)
    }
    assert not {name for name in told if not is_named(name, lua, r"rpc\.on\(")}
    assert not {name for name in protocol.TO_LUA if not is_named(name, python, r"\(\s*")}


def test_error_codes_and_levels(lua: dict[str, Any]) -> None:
    assert lua["levels"] == errors.levels()


def test_the_two_halves_are_of_one_version(lua: dict[str, Any]) -> None:
    assert lua["plugin"] == lcursor.__version__


def test_settings_that_cross_the_wire(lua: dict[str, Any]) -> None:
    sections = {each.name: getattr(config.Config(), each.name) for each in SECTIONS}
    ours = {
        name: {each.name: getattr(section, each.name) for each in config.options(type(section))}
        for name, section in sections.items()
    }
    assert not lua["wire"].pop("models")
    assert not lua["wire"].pop("agents")
    for section in ours.values():  # Lua has one type for all tables
        section.update({name: [] for name, value in section.items() if value == ()})
    assert lua["wire"] == ours
    assert from_table(lua["wire"]) == config.Config()


def test_settings_of_a_model(lua: dict[str, Any]) -> None:
    rows = lua["rows"]["models"]
    assert rows.keys() == {each.name for each in config.options(config.ModelConfig)}
    assert (rows["provider"], rows["api"]) == ("providers", "apis")
    assert lua["servers"]["providers"] == sorted(config.PROVIDERS)
    assert lua["servers"]["apis"] == [providers.AUTO, *providers.APIS]
    assert {each.api for each in config.PROVIDERS.values()} <= providers.APIS.keys()


def test_settings_of_a_server_with_tools(lua: dict[str, Any]) -> None:
    rows = lua["rows"]["mcp.servers"]
    assert rows.keys() == {each.name for each in config.options(config.McpServerConfig)}


def test_every_error_class_is_documented_and_has_its_own_code() -> None:
    classes = errors.tree()
    codes = [error.code for error in classes]
    assert len(set(codes)) == len(codes)
    assert all(error.__doc__ for error in classes)


def test_the_top_of_the_changelog_is_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## \[?([0-9.]+|Unreleased)", text, re.M)
    assert lcursor.__version__ in versions[:2]
