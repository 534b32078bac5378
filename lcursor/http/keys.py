"""Where the key of a server comes from: a variable of the environment, or a command that prints it.

A key is returned and nothing else: it is in no message, no log and no file.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Mapping

from lcursor.errors import KeyExposed, KeyMissing
from lcursor.http.address import is_local, named, shown

COMMAND_S = 20.0
"""Longest that the command may take; a password manager may ask its user first."""


def find(variable: str, command: str, setting: str) -> str:
    """Return the key, "" when none is configured.

    Args:
        variable: name of a variable of the environment; "" for none.
        command: run without a shell where no variable is named; its first line is the key.
        setting: what the two settings begin with, for messages.

    Raises:
        KeyMissing: what is configured gives no key.
    """
    if variable:
        where, key = f"the variable {variable}", os.environ.get(variable, "")
        hint = f"Start Neovim with it set, or correct {named(setting, 'key_env')}"
    elif command:
        where, key = f"the command of {named(setting, 'key_command')}", _run(command, setting)
        hint = f"Run it in a shell, and correct {named(setting, 'key_command')}"
    else:
        return ""
    key = key.strip()
    if not key:
        raise KeyMissing(f"{where} gives no key", hint)
    if not re.fullmatch(r"[!-~]+", key):  # else the library would name it in its complaint
        raise KeyMissing(f"what {where} gives is no key: it has spaces or signs in it", hint)
    return key


def exposed(urls: Mapping[str, str]) -> KeyExposed | None:
    """Return a warning if any key would be sent unencrypted to another machine.

    Args:
        urls: addresses of servers that have a key, by what their settings begin with.
    """
    plain = {
        setting: shown(url)
        for setting, url in urls.items()
        if url.strip().lower().startswith("http:") and not is_local(url)
    }
    if not plain:
        return None
    settings = ", ".join(named(setting, "url") for setting in plain)
    return KeyExposed(
        f"a key is sent unencrypted to {', '.join(dict.fromkeys(plain.values()))}",
        f"Use https:// in {settings}, or an SSH tunnel to the server",
    )


def _run(command: str, setting: str) -> str:
    hint = f"Run it in a shell, and correct {named(setting, 'key_command')}"
    try:
        done = subprocess.run(
            shlex.split(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        reason = f"took more than {COMMAND_S:.0f} s"
    except (OSError, ValueError):
        reason = "cannot be run"
    else:
        if done.returncode == 0:
            return done.stdout.strip().partition("\n")[0]
        reason = f"ended with {done.returncode}"
    # From none of the above: an exception of subprocess carries the output, and with it the key.
    raise KeyMissing(f"the command of {named(setting, 'key_command')} {reason}", hint) from None
