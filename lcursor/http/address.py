"""Addresses of servers: what a good one is, and which stay on this machine. Pure.

Must not resolve names: what an address means is decided by how it is written.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from lcursor.errors import ConfigInvalid


def check(url: str, setting: str) -> str:
    """Return an address without its last slash.

    Args:
        url: as the user wrote it.
        setting: where they did, for the message.

    Raises:
        ConfigInvalid: it is no address of an HTTP server.
    """
    try:
        parts = urlsplit(url.strip())
        is_good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        is_good = is_good or (bool(socket_path(url)) and not parts.netloc)
    except ValueError:
        is_good = False
    if not is_good:
        raise ConfigInvalid(
            f"{setting}: {shown(url)!r} is no address of a server",
            'Write it as "http://127.0.0.1:8012"',
        )
    return url.strip().rstrip("/")


def is_local(url: str) -> bool:
    """Whether what is sent there stays on this machine."""
    if socket_path(url):
        return True
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    # Who connects to 0.0.0.0 or :: reaches this machine.
    return address.is_loopback or address.is_unspecified


def socket_path(url: str) -> str:
    """Return the path of a unix socket, of `unix:///path`; "" for other addresses."""
    scheme, mark, rest = url.strip().partition("://")
    is_socket = scheme == "unix" and mark and rest.startswith("/") and rest.strip("/")
    return rest.rstrip("/") if is_socket else ""


def named(setting: str, name: str) -> str:
    """Return a setting's whole name, for hints.

    Args:
        setting: what it begins with: `completion.endpoint`, or a table with its final stop.
        name: `url`, `key_env`, …
    """
    return f"{setting}{name}" if setting.endswith(".") else f"{setting}_{name}"


def shown(url: str) -> str:
    """Return an address as people may see it: without a name and a password in it, or a query."""
    scheme, mark, rest = url.strip().rpartition("://")
    rest = rest.partition("?")[0].partition("#")[0]
    host, slash, path = rest.partition("/")
    return scheme + mark + host.rpartition("@")[2] + slash + path
