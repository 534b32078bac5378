"""Names of files in texts for the user: a name may contain line ends and escape sequences. Pure."""

from __future__ import annotations

import re
import shlex

_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPED = re.compile(r"[\x00-\x1f\x7f'\\]")


def has_controls(name: str) -> bool:
    """Return whether a name has a line end or another control character."""
    return _CONTROLS.search(name) is not None


def printable(name: str) -> str:
    """Return a name on one line, with a replacement for each character that is not printed."""
    if name.isascii() and name.isprintable():
        return name
    return "".join(each if each.isprintable() or each == "\u3000" else "�" for each in name)


def quoted(name: str) -> str:
    """Return a name as a word of a command for a shell, on one line.

    As the first word of a text it cannot be taken for a heading or a list.
    """
    if has_controls(name):
        inner = _ESCAPED.sub(lambda found: f"\\x{ord(found[0]):02x}", name)
        return f"$'{inner}'"
    return shlex.quote(name)
