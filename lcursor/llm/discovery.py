"""Find model servers of other programs on this machine, to suggest them to the user.

Probes the usual ports of the loopback interface, only if our own server does not run. A server is
never used without the user's consent, because it may belong to anyone. Any thread.
"""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass

from lcursor.errors import LcursorError
from lcursor.http.client import Client

PORTS = {8080: "llama.cpp", 8012: "llama.cpp", 11434: "ollama", 8000: "openai"}
"""Default ports of llama-server, a completion server, Ollama and vLLM."""
CONNECT_S = 0.2


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
            document = json.loads(b"\n".join(client.request("/v1/models")))
            names = tuple(str(each["id"]) for each in document["data"])
        except (LcursorError, ValueError, LookupError, TypeError):
            continue
        finally:
            client.close()
        found.append(Found(url, api, names))
    return found


def advice(found: Found) -> str:
    """Return the settings to use a server."""
    name = json.dumps(found.models[0]) if found.models else '""'
    return (
        f'To use it, set chat.models = {{ other = {{ url = "{found.url}", model = {name} }} }} '
        'and chat.model = "other"'
    )
