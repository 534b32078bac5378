"""How a server is started: its program in the sandbox, its environment. For host and helper.

words, env = command_line(settings_of(server, root))
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lcursor.config import McpServerConfig
from lcursor.errors import KeyMissing, McpFailed
from lcursor.process.program import prepare
from lcursor.process.relay import Network
from lcursor.process.sandbox import Confinement
from lcursor.storage import folders

VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+))", re.ASCII)
OWN_PORT: Final = re.compile(r"(?:localhost|127\.0\.0\.1):(\d{1,5})", re.ASCII)
PACKAGES: Final = "node_modules"
Pairs = Sequence[Sequence[str]]


def folder_of(root: Path, name: str) -> Path:
    """Return the folder that a server may write; it need not exist."""
    real = os.path.realpath(root)
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    return folders.data_home() / "mcp" / f"{Path(real).name[:32]}-{digest}" / name


def settings_of(server: McpServerConfig, root: Path) -> dict[str, Any]:
    """Return how to start a server, as JSON; names of variables, not their values."""
    return {
        "name": server.name,
        "command": list(server.command),
        "folder": str(folder_of(root, server.name)),
        "env": [list(pair) for pair in server.env],
        "network": list(server.network),
        "write": [str(path_of(each, root)) for each in server.write],
        "readable": [str(path_of(each, root)) for each in server.readable],
        "url": server.url,
        "headers": [list(pair) for pair in server.headers],
    }


def path_of(text: str, root: Path) -> Path:
    """Return an absolute path of the settings: `.` is the project."""
    return Path(os.path.normpath(root / Path(text).expanduser()))


def program_of(command: Sequence[str]) -> str:
    """Return the path of a program.

    Raises:
        McpFailed: there is none.
    """
    found = shutil.which(os.path.expanduser(command[0]))
    if found is None:
        raise McpFailed(f"there is no program {command[0]}", "Install it, or change the command")
    return os.path.abspath(found)


def command_line(settings: Mapping[str, Any]) -> tuple[list[str], dict[str, str]]:
    """Return the words that start a server in the sandbox, and their environment.

    Both are empty for a server at an address.

    Raises:
        McpFailed: there is no such program.
        KeyMissing: a variable is not set.
        LcursorError: its folder cannot be created.
    """
    if not settings["command"]:
        return [], {}
    folder = Path(settings["folder"])
    for each in (folder.parents[1], folder.parent, folder):
        folders.make_private(each)
    program = program_of(settings["command"])
    confinement = Confinement(
        folder,
        folder,
        readable=(*map(Path, settings["readable"]), *_installation(Path(program))),
        writable=tuple(map(Path, settings["write"])),
        env={"HOME": str(folder), **resolved(settings["env"])},
    )
    return prepare(
        [program, *settings["command"][1:]], confinement, network_of(settings["network"])
    )


def network_of(names: Sequence[str]) -> Network:
    """Return a part of the network: hosts, and ports of this machine, as `localhost:5432`."""
    ports = {name: OWN_PORT.fullmatch(name) for name in names}
    return Network(
        tuple(name for name, found in ports.items() if not found),
        tuple(int(found[1]) for found in ports.values() if found),
    )


def resolved(pairs: Pairs) -> dict[str, str]:
    """Return values by name, with the variables that they name.

    Raises:
        KeyMissing: a variable is not set.
    """
    return {name: VARIABLE.sub(_value, text) for name, text in pairs}


def variables_of(text: str) -> list[str]:
    """Return the names of the variables in a value."""
    return [found[1] or found[2] for found in VARIABLE.finditer(text)]


def display_path(path: str) -> str:
    """Return a path for the user."""
    home = os.path.expanduser("~")
    return path.replace(home, "~", 1) if f"{path}/".startswith(f"{home}/") else path


def _value(found: re.Match[str]) -> str:
    name = found[1] or found[2]
    value = os.environ.get(name)
    if not value:
        raise KeyMissing(f"the environment variable {name} is not set", "Set it before Neovim")
    return value


def _installation(program: Path) -> Iterator[Path]:
    """Yield the environment that a program is installed in: of Python, or of packages of npm."""
    for path in dict.fromkeys((program, Path(os.path.realpath(program)))):
        environment = path.parent.parent
        if (environment / "pyvenv.cfg").is_file():
            yield environment
        names = path.parts
        if PACKAGES in names:
            yield Path(*names[: names.index(PACKAGES) + 1])
