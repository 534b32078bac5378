"""Start a foreign agent in the sandbox: its program, its home, its model and its network.

It works in the copy at the project's path. Its home is a folder of the run, so that its sessions
can be resumed, and so that neither the user's hooks nor MCP servers reach it; with `login` it also
has a copy of the files with the user's login. Of the network it has the user's model, or with
`login` the hosts of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from lcursor.acp.client import tools_port
from lcursor.acp.client.catalog import KnownAgent
from lcursor.acp.client.model_port import ModelPort
from lcursor.acp.client.session import KEY
from lcursor.acp.client.tools_port import ToolsPort
from lcursor.config import AgentConfig, ChatConfig, ForeignAgentConfig
from lcursor.errors import AgentMissing
from lcursor.llm.pool import ModelPool
from lcursor.process import program
from lcursor.process.relay import Network
from lcursor.process.sandbox import Sandbox
from lcursor.process.visibility import home
from lcursor.project.reading import open_regular
from lcursor.stop import Stop
from lcursor.storage import folders
from lcursor.workspace.shell import ENVIRONMENT
from lcursor.workspace.tree import Tree

HOME: Final = "home"
"""Folder of a run that is the agent's home."""
MAX_LOGIN_BYTES: Final = 1 << 20
CONTEXT_TOKENS: Final = 32_768
"""Context of a model that does not say how much it has."""
PACKAGES: Final = "node_modules"


@dataclass(frozen=True, slots=True)
class Started:
    """How to start an agent, once its model can be reached."""

    words: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    """The project, as the agent sees it."""
    model_url: str
    """Address of the user's model; "" with the user's login."""
    servers: Sequence[Mapping[str, Any]]
    """MCP servers for it."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What an agent is started from."""

    known: KnownAgent
    settings: ForeignAgentConfig
    chat: ChatConfig
    agent: AgentConfig
    models: ModelPool
    tree: Tree
    sandbox: Sandbox
    stopped: Stop
    secrets: Sequence[str]
    """Globs of files that are never read."""

    @contextmanager
    def start(self) -> Iterator[Started]:
        """Connect to the model, and return how to start the agent.

        Raises:
            Cancelled: it was stopped.
            LcursorError: it is not installed, or there is no model.
        """
        command = find_command(self.known, self.settings)
        own = folders.make_private(self.tree.folder / HOME)
        env, network, url = dict(self.known.env), Network(self.settings.hosts), ""
        files = dict(self.known.files)
        with ExitStack() as stack:
            if self.settings.login:
                stack.enter_context(_login(own, self.known.login_files))
                network = Network(self.settings.hosts or self.known.hosts)
            else:
                port, values = self._open_model(stack)
                url = port.url
                network = replace(network, ports=(port.number,))
                env |= {name: _filled(text, values) for name, text in self.known.model_env.items()}
                files |= {
                    name: _filled(text, values) for name, text in self.known.model_files.items()
                }
            for name, text in files.items():
                _write(own, name, text.encode())
            servers = list[Mapping[str, Any]]()
            if tools_port.is_installed():
                tools = stack.enter_context(ToolsPort(self.tree.root, self.secrets))
                network = replace(network, ports=(*network.ports, tools.number))
                servers.append(tools.server)
            env |= {name: os.path.expandvars(text) for name, text in self.settings.env.items()}
            shown = self.tree.confinement(self.agent)
            confinement = replace(
                shown,
                readable=(*shown.readable, *_program_folders(command)),
                private=(own,),
                env={**ENVIRONMENT, **shown.env, **env, "HOME": str(own)},
            )
            cwd = self.sandbox.visible_path(confinement)
            words, variables = program.prepare(command, confinement, network, cwd)
            yield Started(words, variables, cwd, url, servers)

    def _open_model(self, stack: ExitStack) -> tuple[ModelPort, dict[str, str]]:
        """Open a port to the user's model; return it with what stands for the model."""
        name = self.models.choose(self.settings.model, self.chat.model)
        connection = self.models.connect(name, self.stopped)
        served = connection.served.model or name
        port = stack.enter_context(
            ModelPort(connection.client.target, served, connection.client.admission)
        )
        return port, {
            "url": port.url,
            "key": KEY,
            # A name with a slash would be taken for a provider and a model.
            "model": os.path.basename(served).removesuffix(".gguf") or "model",
            "context": str(connection.context_tokens or CONTEXT_TOKENS),
        }


def find_command(known: KnownAgent, settings: ForeignAgentConfig) -> list[str]:
    """Return the command of an agent, with the path of its program.

    Raises:
        AgentMissing: it is not installed.
    """
    program_name, *arguments = settings.command or known.command
    path = shutil.which(os.path.expanduser(program_name))
    if path is None:
        install = f"Install it: {known.install}. Or" if known.install else "Install it, or"
        raise AgentMissing(
            f"{known.title} is not installed: there is no {program_name}",
            f"{install} set agents.{known.name}.command",
        )
    return [os.path.realpath(path), *map(os.path.expanduser, arguments)]


def _program_folders(command: Sequence[str]) -> list[Path]:
    """Return the folders that a program needs to see, besides the system's."""
    words = [Path(os.path.realpath(word)) for word in command if os.path.isabs(word)]
    found = [_package(path) for path in words if path.exists()]
    node = shutil.which("node")
    if node and any(path.is_relative_to(PACKAGES) or PACKAGES in path.parts for path in words):
        found.append(Path(os.path.realpath(node)).parent.parent)
    return list(dict.fromkeys(found))


def _package(path: Path) -> Path:
    """Return the folder with a program and all packages that it may load, else the program."""
    if PACKAGES in path.parts:
        return Path(*path.parts[: path.parts.index(PACKAGES) + 1])
    return path


def _filled(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


@contextmanager
def _login(own: Path, names: Sequence[str]) -> Iterator[None]:
    """Give an agent a copy of the files with the user's login.

    Agents renew their login while they work, which makes the old one invalid. So a file that has
    changed replaces the user's at the end, if it is JSON with the same names.
    """
    before = dict[str, bytes]()
    for name in names:
        with contextlib.suppress(OSError):
            data = (home() / name).read_bytes()
            _write(own, name, data)
            before[name] = data
    try:
        yield
    finally:
        for name, data in before.items():
            with contextlib.suppress(OSError, ValueError):
                after = _read(own, name)
                is_current = (home() / name).read_bytes() == data
                if after != data and is_current and _names(after) == _names(data):
                    folders.write_file(home() / name, after)


def _write(own: Path, name: str, data: bytes) -> None:
    """Write a file of the agent's home; what the agent put in the way is removed, links too.

    No process of the agent runs at the time.
    """
    folder = own
    for part in Path(name).parent.parts:
        folder /= part
        if folder.is_symlink() or not folder.is_dir():
            folders.remove(folder)
            folder.mkdir(mode=0o700)
    if (own / name).is_dir():
        folders.remove(own / name)
    folders.write_file(own / name, data)  # replaces a link, and does not follow it


def _read(own: Path, name: str) -> bytes:
    """Read a file of the agent's home.

    Raises:
        OSError: it cannot be read, or leads elsewhere.
    """
    path = own / name
    if os.path.realpath(path) != os.path.join(os.path.realpath(own), name):
        raise OSError(f"{name} is a link")
    with open_regular(path, follows_links=False) as file:
        return file.read(MAX_LOGIN_BYTES)


def _names(data: bytes) -> list[str]:
    """Return the names of a table of JSON.

    Raises:
        ValueError: it is none.
    """
    found: Any = json.loads(data)
    if not isinstance(found, dict):
        raise ValueError("no table")
    return sorted(found)
