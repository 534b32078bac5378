"""Parse the front matter of a Markdown file, between two lines of `---`. Pure; never fails.

Supports the common subset of YAML, and Cursor's `globs: *.ts, *.tsx`, which is not valid YAML.
"""

from __future__ import annotations

import re
from typing import Final

_HEAD: Final = re.compile(r"\A\ufeff?---[ \t]*\n(?P<head>.*?)^---[ \t]*(?:\n|\Z)", re.S | re.M)
_ENTRY: Final = re.compile(r"(?P<name>[A-Za-z][\w-]*)[ \t]*:[ \t]*(?P<value>.*)")
_LISTED: Final = re.compile(r"[ \t]*-[ \t]+(?P<value>.+)")
_BLOCK: Final = frozenset({"|", ">", "|-", ">-", "|+", ">+"})


def split(text: str) -> tuple[dict[str, str | list[str]], str]:
    """Return the entries, with names in lower case, and the text after the front matter."""
    text = text.replace("\r\n", "\n")
    match = _HEAD.match(text)
    if not match:
        return {}, text.removeprefix("\ufeff")
    found: dict[str, str | list[str]] = {}
    name = ""
    is_block = False
    for line in match["head"].splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        entry = _ENTRY.fullmatch(line.rstrip()) if not line[0].isspace() else None
        if entry:
            name, value = entry["name"].lower(), entry["value"].strip()
            is_block = value in _BLOCK
            found[name] = "" if is_block else _value(value)
            continue
        if not name:
            continue
        before = found[name]
        listed = _LISTED.fullmatch(line.rstrip())
        if listed and not is_block and (before == "" or isinstance(before, list)):
            found[name] = [*(before if isinstance(before, list) else ()), _bare(listed["value"])]
        elif isinstance(before, str):
            found[name] = f"{before} {line.strip()}".strip()
    return found, text[match.end() :]


def words(value: str | list[str] | None) -> str:
    """Return an entry as one line; "" if there is none."""
    if value is None:
        return ""
    return ", ".join(value) if isinstance(value, list) else value


def is_true(value: str | list[str] | None) -> bool:
    """Return whether an entry means true."""
    return isinstance(value, str) and value.lower() in {"true", "yes", "on", "1"}


def globs(value: str | list[str] | None) -> list[str]:
    """Return the globs of an entry, with braces expanded."""
    if value is None:
        return []
    parts = value if isinstance(value, list) else _split_list(value)
    bare = (_bare(part) for part in parts)
    return [each for part in bare if part for each in _expand_braces(part)]


def _value(value: str) -> str | list[str]:
    if value.startswith("[") and value.endswith("]"):
        return [bare for part in _split_list(value[1:-1]) if (bare := _bare(part))]
    return _bare(value)


def _bare(value: str) -> str:
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return re.sub(r"\s+#.*$", "", value)


def _split_list(value: str) -> list[str]:
    """Split at commas outside of braces, brackets and quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for at, letter in enumerate(value):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "{[":
            depth += 1
        elif letter in "}]":
            depth -= 1
        elif letter == "," and depth <= 0:
            parts.append(value[start:at])
            start = at + 1
    parts.append(value[start:])
    return [part.strip() for part in parts if part.strip()]


def _expand_braces(glob: str, most: int = 64) -> list[str]:
    """Expand `{a,b}` in a glob, into a limited number of globs."""
    waiting = [glob]
    found: list[str] = []
    while waiting and len(found) + len(waiting) <= most:
        one = waiting.pop()
        inner = re.search(r"\{([^{}]*)\}", one)
        if not inner:
            found.append(one)
            continue
        waiting += [
            one[: inner.start()] + part + one[inner.end() :] for part in inner[1].split(",")
        ]
    return sorted(found + waiting)
