"""What a server may do, in words: for the user, who allows it, and for comparisons. Pure.

An answer of the user is bound to this text, so all that decides what runs is in it, except for the
values of secrets.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from lcursor.config import McpServerConfig
from lcursor.errors import LcursorError
from lcursor.http.endpoint import is_local
from lcursor.mcp.client import launch
from lcursor.project import redaction

RUNNERS: Final = {"npx", "bunx", "pnpx", "uvx", "pipx", "deno", "dnx"}
"""Programs that fetch another program and run it."""
VERSION: Final = re.compile(r"(?<=[\w\]])(?:@|==)v?\d")
SECRET_NAME: Final = re.compile(r"token|secret|passw|api_?key|authorization|credential", re.I)
MIN_SECRET: Final = 12
PATHS: Final = ("readable", "write")
SCHEME: Final = re.compile(r"(?:bearer|token|basic)\s+", re.I)


def problem(server: McpServerConfig) -> str:
    """Return why a server cannot be used with its settings; "" if it can."""
    for pairs, what in ((server.env, "env"), (server.headers, "headers")):
        for name, value in pairs:
            if is_secret(name, value):
                return (
                    f"{server.setting}.{what}.{name} looks like a key; write the name of an "
                    "environment variable: $NAME"
                )
    for each in (*server.command, server.url):
        if redaction.redact(each)[1]:
            return f"{server.setting} has a key in its command or address; put it into env"
    if server.url:
        parts = urlsplit(server.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            return f"{server.setting}.url: {server.url} is no address"
        if parts.scheme == "http" and server.headers and not is_local(server.url):
            return f"{server.setting}: its headers would be sent without encryption; use https"
        for name in ("env", "network", "write", "readable"):
            if getattr(server, name):
                return f"{server.setting}.{name} is only for a command"
    elif server.headers:
        return f"{server.setting}.headers is only for a url"
    return ""


def warning(server: McpServerConfig) -> str:
    """Return what the user should know of a command; "" for nothing."""
    words = [Path(each).name for each in server.command[:1]] + [*server.command[1:]]
    if not words or words[0] not in RUNNERS:
        return ""
    package = next((word for word in words[1:] if not word.startswith("-") and word != "run"), "")
    if "@latest" in package or not VERSION.search(package):
        return f"{words[0]} fetches the newest {package} at each start: name a version"
    return ""


def describe(server: McpServerConfig, root: Path) -> list[str]:
    """Return all that a server may do."""
    if server.url:
        names = [_source(name, value) for name, value in server.headers]
        return [f"address    {server.url}", *_row("headers", names)]
    try:
        program = launch.program_of(server.command)
    except LcursorError:
        program = f"{server.command[0]} (not found)"
    settings = launch.settings_of(server, root)
    paths = {name: [launch.display_path(each) for each in settings[name]] for name in PATHS}
    return [
        f"program    {program}",
        *_row("arguments", [_quoted(each) for each in server.command[1:]], " "),
        *_row("variables", [_source(name, value) for name, value in server.env]),
        *_row("reads", paths["readable"]),
        *_row("writes", [*paths["write"], "a folder of its own"]),
        *_row("network", [*server.network] or ["none"]),
    ]


def risk(server: McpServerConfig) -> str:
    """Return why calls of its tools need approval although it is allowed; "" if they do not."""
    if server.url:
        return f"it sends the arguments to {urlsplit(server.url).hostname}"
    if server.network:
        return f"this server may connect to {', '.join(server.network)}"
    if server.write:
        return f"this server may change {', '.join(server.write)}"
    return ""


def is_secret(name: str, value: str) -> bool:
    """Return whether a value is a key, not the name of a variable."""
    if launch.variables_of(value):
        return False
    if redaction.redact(value)[1]:
        return True
    plain = SCHEME.sub("", value)
    is_named = bool(SECRET_NAME.search(name)) and len(plain) >= MIN_SECRET
    return is_named and not re.search(r"\s|/", plain)


def _source(name: str, value: str) -> str:
    variables = launch.variables_of(value)
    return f"{name} from ${', $'.join(variables)}" if variables else name


def _row(name: str, values: list[str], joint: str = ", ") -> list[str]:
    return [f"{name:<10} {joint.join(values)}"] if values else []


def _quoted(word: str) -> str:
    return word if re.fullmatch(r"[\w@%+=:,./~-]+", word) else repr(word)
