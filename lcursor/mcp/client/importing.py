"""Show the servers of other programs' settings as text for `mcp.servers`, for the user to copy.

Nothing of these files takes effect: they may be of the project. A secret in one becomes the name of
an environment variable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lcursor.config import McpServerConfig
from lcursor.mcp.client import launch, policy
from lcursor.mcp.client.records import cleaned
from lcursor.project.reading import open_regular
from lcursor.storage import json_text

OF_PROJECT: Final = (".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json")
OF_USER: Final = ("~/.cursor/mcp.json", "~/.config/mcphub/servers.json")
KEYS: Final = ("mcpServers", "servers", "nativeMCPServers")
MAX_BYTES: Final = 256 << 10
STRING_OR_COMMENT: Final = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.S)
TRAILING_COMMA: Final = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])')
REFERENCE: Final = re.compile(r"\$\{(?:env:)?(\w+)(?::-[^}]*)?\}", re.ASCII)
OTHER_REFERENCE: Final = re.compile(r"\$\{[^}]*\}")
NONE: Final = "-- None of these files has servers:"


def lua_text(root: Path) -> list[str]:
    """Return the servers in the files of other programs, as a part of the settings in Lua."""
    files = [*(root / each for each in OF_PROJECT), *(Path(each).expanduser() for each in OF_USER)]
    lines = list[str]()
    known = set[str]()
    for path in files:
        servers = read(path)
        if servers:
            lines.append(f"    -- {launch.display_path(str(path))}")
        for name, row in servers.items():
            own = unique(name, known)
            known.add(own)
            lines += [f"    {line}" for line in server_lines(own, row)]
    if not lines:
        return [NONE, *(f"--   {launch.display_path(str(each))}" for each in files)]
    head = ["-- Copy what you want into the settings of lcursor. Nothing of this is in effect."]
    return [*head, "mcp = {", "  servers = {", *lines, "  },", "},"]


def read(path: Path) -> dict[str, Mapping[str, Any]]:
    """Return the servers in a file; none if it is missing or something else."""
    try:
        with open_regular(path, follows_links=False) as file:
            text = file.read(MAX_BYTES).decode("utf-8")
        found = json_text.parse(plain_json(text))
    except (OSError, ValueError):
        return {}
    tables = (found.get(key) for key in KEYS) if isinstance(found, dict) else ()
    return {
        str(name): row
        for table in tables
        if isinstance(table, dict)
        for name, row in table.items()
        if isinstance(row, dict) and (row.get("command") or row.get("url"))
    }


def plain_json(text: str) -> str:
    """Return JSON without comments and trailing commas."""
    without = STRING_OR_COMMENT.sub(lambda found: found[1] or " ", text)
    return TRAILING_COMMA.sub(lambda found: found[1] or "", without)


def unique(name: str, known: set[str]) -> str:
    """Return a name as the settings allow it, which no other server has."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "server"
    number = 1
    while (own := plain if number == 1 else f"{plain}-{number}") in known:
        number += 1
    return own


def server_lines(name: str, row: Mapping[str, Any]) -> list[str]:
    """Return a server in Lua."""
    lines = ["  -- It is disabled there."] if row.get("disabled") else []
    if row.get("command"):
        given = row["command"]
        words = [*(given if isinstance(given, list) else [given]), *(row.get("args") or ())]
        command = [str(each) for each in words]
        lines.append(f"  command = {_list(command)},")
        if any(OTHER_REFERENCE.search(each) for each in command):
            lines.append("  -- Write values instead of ${…} in the command.")
        if warning := policy.warning(McpServerConfig(name, tuple(command))):
            lines.append(f"  -- {_clean(warning)}")
        lines.append('  -- network = { "api.example.org" },  -- the hosts that it needs')
        lines += _table("env", name, row.get("env"))
    else:
        lines.append(f"  url = {_quoted(row['url'])},")
        lines += _table("headers", name, row.get("headers"))
    return [f'["{name}"] = {{', *lines, "},"]


def _table(key: str, server: str, values: Any) -> list[str]:
    """Return environment variables or headers in Lua, without secrets."""
    if not isinstance(values, dict) or not values:
        return []
    lines = []
    for name, value in values.items():
        text, note = _value(server, str(name), str(value))
        lines.append(f"    [{_quoted(name)}] = {_quoted(text)},{f'  -- {note}' if note else ''}")
    return [f"  {key} = {{", *lines, "  },"]


def _value(server: str, name: str, value: str) -> tuple[str, str]:
    """Return a value without secrets, and a note for the user."""
    text = REFERENCE.sub(r"$\1", value)
    upper = re.sub(r"\W+", "_", name, flags=re.ASCII).upper()
    variable = upper if upper != "AUTHORIZATION" else f"{server.upper().replace('-', '_')}_TOKEN"
    if OTHER_REFERENCE.search(text):
        return OTHER_REFERENCE.sub(f"${variable}", text), "set this variable"
    if policy.is_secret(name, text):
        scheme = policy.SCHEME.match(text)
        start = scheme[0] if scheme else ""
        return f"{start}${variable}", "set this variable; the file has its value"
    return text, ""


def _list(values: Sequence[str]) -> str:
    return f"{{ {', '.join(map(_quoted, values))} }}"


def _quoted(value: Any) -> str:
    """Return a text as a string of Lua."""
    return json.dumps(_clean(str(value)), ensure_ascii=False)


def _clean(text: str) -> str:
    return cleaned(" ".join(text.splitlines()))
