"""The help names every option, command, key, event, highlight, error and Lua function."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lcursor import errors
from lcursor.drive.editor import Editor

ROOT = Path(__file__).resolve().parents[2]
HELP = (ROOT / "doc/lcursor.txt").read_text()
TAGS = set(re.findall(r"\*([^*\s|]+)\*(?=\s|$)", HELP))
MAX_COLUMNS = 78
OF_NEOVIM = {
    "User", "i_CTRL-X_CTRL-O", ":UpdateRemotePlugins", "g:python3_host_prog", ":checkhealth",
    "vim.ui.select()", "vim.ui.input()", "vim.lsp.completion.enable()", "vim.lsp.buf.code_action()",
    "gra", "LspAttach", "LspProgress",
}  # fmt: skip
"""Tags of Neovim's own help that ours refers to."""


@pytest.fixture(scope="module")
def lua(neovim: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what the plugin has, and the table of options in the help as Neovim reads it."""
    _, _, rest = HELP.partition("generated: options")
    table = "\n".join(rest.partition("end: options")[0].split("\n")[1:-1])
    table = table.removeprefix(">lua\n").removesuffix("\n<")
    with Editor(neovim, tmp_path_factory.mktemp("help")) as editor:
        found: dict[str, Any] = editor.lua(
            """
            local commands = require("lcursor.commands")
            assert(loadstring(...))()
            local api = {}
            for name, value in pairs(require("lcursor")) do
              local is_group = type(value) == "table"
              vim.list_extend(api, is_group and vim.tbl_map(function(each)
                return name .. "." .. each
              end, vim.tbl_keys(value)) or { name })
            end
            return {
              options = vim.tbl_map(function(row)
                return row[1]
              end, require("lcursor.config.schema")),
              is_copied = vim.deep_equal(vim.g.lcursor, require("lcursor.config").defaults()),
              commands = commands.describe(),
              keys = require("lcursor.config.keys").describe(),
              defaults = require("lcursor.config").defaults(),
              highlights = require("lcursor.ui.highlights").describe(),
              events = require("lcursor.host.status").describe_events(),
              api = api,
            }
            """,
            table,
        )
    return found


def missing(form: str, names: list[str]) -> list[str]:
    return [name for name in names if form.format(name) not in TAGS]


def names(rows: list[dict[str, Any]]) -> list[str]:
    return [row["name"].replace(" ", "-") for row in rows]


def test_each_thing_has_its_tag(lua: dict[str, Any]) -> None:
    assert missing("lcursor-{}", lua["options"]) == []
    assert missing("{}", names(lua["commands"])) == []
    assert missing("{}", names(lua["keys"])) == []
    assert missing("{}", names(lua["events"])) == []
    assert missing("hl-{}", names(lua["highlights"])) == []
    assert missing("lcursor.{}()", lua["api"]) == []


def test_the_table_of_options_can_be_copied(lua: dict[str, Any]) -> None:
    assert lua["is_copied"]


def test_each_command_that_a_text_names_exists(lua: dict[str, Any]) -> None:
    """Texts name a command as `:LCursor verb` or `:LCursor noun verb`."""
    verbs = {
        row["name"].split()[1]: row["args"] for row in lua["commands"] if "verb" in row["form"]
    }
    known = {row["name"].removeprefix(":LCursor ") for row in lua["commands"]}
    known |= {f"{noun} {name.split()[0]}" for noun, args in verbs.items() for name, _ in args}
    paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("doc/*.*")]
    paths += [path for folder in ("lua", "lcursor", "bench") for path in (ROOT / folder).rglob("*")]
    wrong = []
    for path in paths:
        if path.suffix in {".md", ".txt", ".lua", ".py"}:
            for first, second in re.findall(r"LCursor ([a-z_]+)(?: ([a-z_]+))?", path.read_text()):
                name = f"{first} {second}" if second and first in verbs else first
                wrong += [f"{path.relative_to(ROOT)}: {name}"] * (name not in known)
    assert wrong == []


def test_each_argument_of_a_command(lua: dict[str, Any]) -> None:
    for row in lua["commands"]:
        tag = f"*{row['name'].replace(' ', '-')}*"
        section = re.split(r"\n(?=\S)", HELP.partition(tag)[2])[0]
        arguments = [name for name, _ in row.get("args") or []]
        assert [name for name in arguments if f"      {name} " not in section] == []


def test_each_default_key_is_in_a_table_of_keys(lua: dict[str, Any]) -> None:
    defaults = lua["defaults"]
    tables = {
        "suggestion keys": set(defaults["completion"]["keymap"].values()),
        "hunk keys": {key for key in defaults["edit"]["keymap"].values() if key},
        "chat keys": set(defaults["chat"]["keymap"].values()),
        "agent keys": set(defaults["agent"]["keymap"].values()),
    }
    for name, keys in tables.items():
        table = HELP.partition(f"generated: {name}")[2].partition(f"end: {name}")[0]
        assert keys <= {line.split()[0] for line in table.splitlines() if line.strip()}


def test_a_description_of_a_key_has_two_or_three_words(lua: dict[str, Any]) -> None:
    texts = {row["text"] for row in lua["keys"]} - {"Send"}
    assert [text for text in texts if not 2 <= len(text.split()) <= 3] == []


def test_each_error_code() -> None:
    table = HELP.partition("generated: errors")[2]
    assert [error.code for error in errors.tree() if f"    {error.code} " not in table] == []


def test_links_lead_somewhere() -> None:
    prose = re.sub(r"`[^`\n]*`", "", HELP)
    links = set(re.findall(r"(?<!\S)\(?\|([^|\s]+)\|", prose))
    assert links - TAGS - OF_NEOVIM == set()


def test_no_line_is_too_long() -> None:
    assert [line for line in HELP.splitlines() if len(line) > MAX_COLUMNS] == []


def test_no_tag_is_there_twice() -> None:
    found = re.findall(r"\*([^*\s|]+)\*(?=\s|$)", HELP)
    assert sorted(found) == sorted(set(found))
