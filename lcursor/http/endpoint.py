"""Check addresses of model servers, and read their keys.

Resolves no names: whether an address is local depends only on its text. Keys never appear in
messages, logs or files.
"""

from __future__ import annotations

import ipaddress
import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from lcursor.errors import ConfigInvalid, KeyExposed, KeyMissing

KEY_COMMAND_S = 20.0
"""Time limit of a command that prints a key; a password manager may ask its user first."""
_VERSION = re.compile(r"v\d\w*")


def check_url(url: str, setting: str) -> str:
    """Return an address without trailing slashes.

    Raises:
        ConfigInvalid: it is not the address of an HTTP server.
    """
    try:
        parts = urlsplit(url.strip())
        is_good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        is_good = is_good or (bool(socket_path(url)) and not parts.netloc)
    except ValueError:
        is_good = False
    if not is_good:
        raise ConfigInvalid(
            f"{setting}: {display_url(url)!r} is not the address of a server",
            'Write it as "http://127.0.0.1:8012"',
        )
    return url.strip().rstrip("/")


def is_local(url: str) -> bool:
    """Return whether an address is on this machine."""
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
    # 0.0.0.0 and :: also mean this machine.
    return address.is_loopback or address.is_unspecified


def split_url(url: str) -> tuple[str, str]:
    """Return the root of a server's own paths, and the prefix of OpenAI's.

    Users write the address with or without a version, which may differ from 1.
    """
    url = url.rstrip("/")
    if url.endswith("/v1"):
        return url.removesuffix("/v1"), "/v1"
    path = url.partition("://")[2].partition("/")[2]
    is_versioned = any(_VERSION.fullmatch(part) for part in path.split("/"))
    return url, "" if is_versioned and not url.startswith("unix:") else "/v1"


def proxy_of(url: str) -> str:
    """Return the proxy that the environment names for an address; "" for none.

    A proxy would resolve a local address on its own machine.
    """
    parts = urlsplit(url)
    hosts = (parts.netloc.rpartition("@")[2], parts.hostname or "")
    if is_local(url) or any(map(proxy_bypass, hosts)):
        return ""
    named = getproxies()
    proxy = named.get(parts.scheme) or named.get("all", "")
    return proxy if "://" in proxy or not proxy else f"http://{proxy}"


def socket_path(url: str) -> str:
    """Return the path in `unix:///path`; "" for other addresses."""
    scheme, mark, rest = url.strip().partition("://")
    is_socket = scheme == "unix" and mark and rest.startswith("/") and rest.strip("/")
    return rest.rstrip("/") if is_socket else ""


def display_url(url: str) -> str:
    """Return an address without a user, a password or a query."""
    scheme, mark, rest = url.strip().rpartition("://")
    rest = rest.partition("?")[0].partition("#")[0]
    host, slash, path = rest.partition("/")
    return scheme + mark + host.rpartition("@")[2] + slash + path


def read_key(variable: str, command: str, setting: str) -> str:
    """Return the key of a server; "" if none is configured.

    Args:
        variable: name of an environment variable; "" for none.
        command: run without a shell if there is no variable; its first line is the key.
        setting: prefix of the two settings: `models.NAME.`.

    Raises:
        KeyMissing: the variable or the command has no key.
    """
    if variable:
        source, key = f"the variable {variable}", os.environ.get(variable, "")
        hint = f"Set it before starting Neovim, or correct {setting}key_env or key_command"
    elif command:
        source = f"the command of {setting}key_command"
        key = _run_key_command(command, setting)
        hint = f"Run it in a shell, and correct {setting}key_command"
    else:
        return ""
    key = key.strip()
    if not key:
        raise KeyMissing(f"{source} returned no key", hint)
    if not re.fullmatch(r"[!-~]+", key):  # the HTTP library's error would include it
        raise KeyMissing(
            f"{source} returned an invalid key: it has other characters than ASCII", hint
        )
    return key


def plaintext_warning(urls: Mapping[str, str]) -> KeyExposed | None:
    """Return a warning if a key would be sent unencrypted to another machine.

    Args:
        urls: addresses of servers with a key, by the prefix of their settings.
    """
    plain = {
        setting: display_url(url)
        for setting, url in urls.items()
        if url.strip().lower().startswith("http:") and not is_local(url)
    }
    if not plain:
        return None
    settings = ", ".join(f"{setting}url" for setting in plain)
    return KeyExposed(
        f"a key is sent unencrypted to {', '.join(dict.fromkeys(plain.values()))}",
        f"Use https:// in {settings}, or an SSH tunnel to the server",
    )


def _run_key_command(command: str, setting: str) -> str:
    name = f"{setting}key_command"
    try:
        done = subprocess.run(
            shlex.split(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=KEY_COMMAND_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        reason = f"took more than {KEY_COMMAND_S:.0f} s"
    except (OSError, ValueError):
        reason = "cannot be run"
    else:
        if done.returncode == 0:
            return done.stdout.strip().partition("\n")[0]
        reason = f"ended with {done.returncode}"
    # Raised outside of `except`: exceptions of subprocess contain the output, and so the key.
    raise KeyMissing(f"the command of {name} {reason}", f"Run it in a shell, and correct {name}")
