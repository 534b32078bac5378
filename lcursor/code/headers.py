"""Extract the signatures of a file, which a caller needs, in few tokens.

Works line by line without a grammar, so incomplete code is fine. Pure; any thread.

    header_lines("tool.py", "def f(\\n    a: int,\\n):\\n    return g(a)\\n")  # "def f(a: int):"
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import PurePath

MAX_LINES = 64
MAX_JOINED = 12
"""Maximum lines of one signature."""

_NOT_METHODS = "if|for|while|switch|catch|return|do|else|function|new|await|typeof"
_SCRIPT = (
    r"(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?"
    r"(?:function\*?|class|interface|type|enum)\s+(?P<name>\w+)"
    r"|export\s+(?:const|let|var)\s+(?P<name2>\w+)",
    r"(?:(?:public|static|async|get|set|readonly|override)\s+)*"
    rf"(?!(?:{_NOT_METHODS})\b)(?P<name>#?\w+)\s*(?:\(.*|\??:\s*.*;\s*)$",
    r"(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:class|interface|enum)\b",
)
_PYTHON = (
    r"(?:async\s+)?def\s+(?P<name>\w+)|class\s+(?P<name2>\w+)|(?P<name3>[A-Z][A-Z0-9_]*)\s*[:=]",
    r"(?:async\s+)?def\s+(?P<name>\w+)|(?P<name2>\w+)\s*:\s*[\w\"']",
    r"class\b",
)
_LUA = (r"function\s+(?:\w+[.:])*(?P<name>\w+)|\w+\.(?P<name2>\w+)\s*=(?!=)", "", "")
_GO = (
    r"func\s+(?:\([^)]*\)\s*)?(?P<name>[A-Z]\w*)|type\s+(?P<name2>[A-Z]\w*)",
    r"(?P<name>[A-Z]\w*)\b.*[^{]$",
    r"type\s+\w+\s+(?:struct|interface)\b",
)
_RUST = (
    r"pub(?:\([^)]*\))?\s+(?:(?:async|unsafe|const)\s+)*"
    r"(?:fn|struct|enum|trait|type|static|const|union)\s+(?P<name>\w+)"
    r"|impl\b[^{]*?(?P<name2>\w+)(?:<[^>]*>)?\s*(?:where\b.*)?\{",
    r"(?:pub(?:\([^)]*\))?\s+)?(?:(?:async|unsafe|const)\s+)*fn\s+(?P<name>\w+)"
    r"|pub(?:\([^)]*\))?\s+(?P<name2>\w+)\s*:",
    r"(?:impl|(?:pub(?:\([^)]*\))?\s+)?(?:trait|struct|enum))\b",
)
_LANGUAGES = {
    **dict.fromkeys(("py", "pyi"), _PYTHON),
    "lua": _LUA,
    **dict.fromkeys(("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts"), _SCRIPT),
    "go": _GO,
    "rs": _RUST,
}


def header_lines(path: str, text: str, symbols: Collection[str] = ()) -> str:
    """Return the lines of a file that declare its public names; "" for an unknown language.

    Args:
        symbols: names to include at the top level; empty for all public ones.
    """
    language = _LANGUAGES.get(PurePath(path).suffix.lstrip("."))
    if language is None:
        return ""
    top, inner, holder = map(re.compile, language)
    lines = text.split("\n")
    headers: list[str] = []
    indent = -1  # indent of class members; 0 before the first one, -1 outside of classes
    for number, line in enumerate(lines):
        bare = line.lstrip()
        depth = len(line) - len(bare)
        if not bare or len(headers) >= MAX_LINES:
            continue
        if depth == 0:
            match = top.match(bare)
            if match is None:
                indent = indent if bare[0] in ")}]" else -1
                continue
            is_wanted = _is_wanted(_name(match), symbols)
            indent = 0 if is_wanted and holder.pattern and holder.match(bare) else -1
        else:
            indent = depth if indent == 0 else indent
            member = inner.match(bare) if inner.pattern and depth == indent else None
            is_wanted = member is not None and not _is_private(_name(member))
        if is_wanted:
            headers.append(line[:depth] + _signature(lines, number))
    return "\n".join(headers)


def _name(match: re.Match[str]) -> str:
    return next((name for name in match.groupdict().values() if name), "")


def _is_private(name: str) -> bool:
    return name.startswith(("_", "#")) and name not in {"__init__", "__call__"}


def _is_wanted(name: str, symbols: Collection[str]) -> bool:
    return name in symbols if symbols else not _is_private(name)


def _signature(lines: Sequence[str], first: int) -> str:
    joined = lines[first].strip()
    for line in lines[first + 1 : signature_end(lines, first, MAX_JOINED)]:
        bare = line.strip()
        space = "" if joined.endswith(("(", "[")) or bare.startswith((")", "]")) else " "
        joined += space + bare
    return re.sub(r",(?=[)\]])", "", joined)


def signature_end(lines: Sequence[str], first: int, max_lines: int) -> int:
    """Return the row after a signature, which ends where no bracket is open.

    Args:
        first: first row of the signature or of its decorators.
    """
    depth, is_decorator = 0, False
    for row, line in enumerate(lines[first : first + max_lines], first):
        if depth <= 0:
            is_decorator = line.lstrip().startswith("@")
        depth += sum(map(line.count, "([")) - sum(map(line.count, ")]"))
        if depth <= 0 and line.strip() and not is_decorator:
            return row + 1
    return min(first + max_lines, len(lines))
