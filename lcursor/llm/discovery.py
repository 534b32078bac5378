"""Find model servers of other programs on this machine.

Probes the usual ports of the loopback interface, only if our own server or engine does not run. A
server is suggested to the user, and not used without their consent, because it may belong to
anyone. The exception is completion while the engine is compiled, by a model server of this user or
of an account for such servers: see `is_own`. Any thread.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import re
import socket
from dataclasses import dataclass

from lcursor import system
from lcursor.errors import LcursorError
from lcursor.http.client import Client
from lcursor.storage import json_text

PORTS = {8080: "llama.cpp", 8012: "llama.cpp", 11434: "ollama", 8000: "openai"}
"""Default ports of llama-server, a completion server, Ollama and vLLM."""
CONNECT_S = 0.2
PROGRAMS = ("llama", "ollama")
"""Beginnings of the names of server programs; anything else may be a tunnel to another machine."""
ACCOUNTS = frozenset(
    ("llama", "llama-cpp", "llama-server", "llama-swap", "llama.cpp", "llamacpp", "llamafile",
     "ollama")
)  # fmt: skip
"""Names of the accounts that are installed for servers; `ollamafan` may be a person."""


@dataclass(frozen=True, slots=True)
class Found:
    """A server that offers models."""

    url: str
    api: str
    models: tuple[str, ...]

    def describe(self) -> str:
        """Return a description in one line."""
        names = ", ".join(self.models[:5]) or "no model"
        return f"{self.url} offers {names}"


def running(ports: dict[int, str] | None = None) -> list[Found]:
    """Return the model servers that answer on this machine."""
    found = []
    for port, api in (PORTS if ports is None else ports).items():
        try:
            socket.create_connection(("127.0.0.1", port), CONNECT_S).close()
        except OSError:
            continue
        url = f"http://127.0.0.1:{port}"
        client = Client(url, "", "chat")
        try:
            document = json_text.parse(b"\n".join(client.request("/v1/models")))
            names = tuple(str(each["id"]) for each in document["data"])
        except (LcursorError, ValueError, LookupError, TypeError):
            continue
        finally:
            client.close()
        found.append(Found(url, api, names))
    return found


def is_own(port: int) -> bool:
    """Return whether the server at a port is a model server of this user or of its own account.

    A server of another person is not, nor is a tunnel to another machine. False outside of Linux.
    """
    found = system.listening_sockets(port)
    return bool(found) and all(
        system.program_of_socket(inode).startswith(PROGRAMS)
        if uid == os.getuid()
        else _account(uid) in ACCOUNTS
        for uid, inode in found
    )


def _account(uid: int) -> str:
    """Return the name of an account; "" if unknown."""
    with contextlib.suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return ""


def is_remote(model: str) -> bool:
    """Return whether a model of Ollama runs on Ollama's servers, not on this machine."""
    return re.search(r"[-:]cloud$", model) is not None


def parameters(model: str) -> float:
    """Return the billions of parameters that a model's name states; many if it does not."""
    found = re.search(r"(?<![\d.])(\d+(?:\.\d+)?)b\b", model.lower())
    return float(found[1]) if found else 1000.0


def advice(found: Found) -> str:
    """Return the settings to use a server."""
    name = json.dumps(found.models[0]) if found.models else '""'
    return (
        f'To use it, set models = {{ other = {{ url = "{found.url}", model = {name} }} }} '
        'and chat.model = "other"'
    )
