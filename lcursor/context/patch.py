"""Parse the output of `git diff`: the section of each file, and its paths. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_HEAD: Final = re.compile(r"^diff --(?:git|cc|combined) ", re.MULTILINE)
_SIDE: Final = re.compile(r"^(?:---|\+\+\+|rename from|rename to|copy from|copy to) (.+)$", re.M)
_BOTH: Final = re.compile(r"^diff --git (?:a/(?P<one>.*) b/(?P=one)|(?P<quoted>\".*\"))$", re.M)
_HUNK: Final = re.compile(r"^@@+ -[\d,]+(?: -[\d,]+)* \+(\d+)", re.MULTILINE)
_KEY_BODY: Final = re.compile(r"(?:^[+\- ]{1,2}[A-Za-z0-9+/]{64}\n){2,}", re.MULTILINE)
"""Lines of a private key, without its first line."""
_ESCAPE: Final = re.compile(r"\\([0-7]{3}|.)", re.DOTALL)
_UNQUOTED: Final = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "r": "\r", "a": "\a", "b": "\b"}


def first_row(section: str) -> int:
    """Return the first changed row of a section, in the new file."""
    hunk = _HUNK.search(section)
    return max(int(hunk[1]) - 1, 0) if hunk else 0


def is_key_like(section: str) -> bool:
    """Return whether a section contains lines of a private key."""
    return _KEY_BODY.search(section) is not None


def sections(text: str) -> Iterator[tuple[str, str]]:
    """Yield path and text of each file's section."""
    starts = [match.start() for match in _HEAD.finditer(text)]
    if not starts:
        return
    for first, end in zip(starts, [*starts[1:], len(text)], strict=True):
        section = text[first:end]
        sides = paths(section)
        yield sides[-1] if sides else section.partition("\n")[0], section


def paths(section: str) -> list[str]:
    """Return the old and the new path of a section, without duplicates."""
    hunk = section.find("\n@@")
    head = section if hunk < 0 else section[:hunk]
    found: dict[str, None] = {}
    for match in _SIDE.finditer(head):
        name = _unquoted(match[1])
        if name != "/dev/null":
            is_marked = match[0].startswith(("---", "+++")) and name[:2] in {"a/", "b/"}
            found[name[2:] if is_marked else name] = None
    if not found:
        whole = _BOTH.match(head)
        if whole and whole["one"]:
            found[whole["one"]] = None
        elif whole:
            found[_unquoted(whole["quoted"].rpartition(' "')[2].join(('"', "")))[2:]] = None
        else:
            found[head.partition("\n")[0].rpartition(" ")[2].removeprefix("b/")] = None
    return list(found)


def _unquoted(name: str) -> str:
    """Remove the quotes that git may put around a path."""
    name = name.removesuffix("\t")  # git adds one after a name with spaces
    if not (name.startswith('"') and name.endswith('"') and len(name) > 1):
        return name
    return _ESCAPE.sub(lambda match: _unescaped(match[1]), name[1:-1])


def _unescaped(code: str) -> str:
    """Return the character of an escape sequence."""
    return chr(int(code, 8)) if len(code) == 3 else _UNQUOTED.get(code, code)
