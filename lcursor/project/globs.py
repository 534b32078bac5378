"""Compile globs, for the `path:` filter and for the user's patterns of secret files."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\[[^\]]+\]|.", re.S)
WILD = re.compile(r"[*?]|\[!?[^\]/]+\]")
PATH_WILDCARDS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
VIM_WILDCARDS = {"**/": ".*/", "**": ".*", "*": ".*", "?": "."}


def translate(glob: str, *, is_vim: bool = False, has_braces: bool = True) -> str:
    """Return a glob as a regular expression; `{a,b}` matches either; an open brace is literal.

    Args:
        is_vim: as Vim's `glob2regpat`: `*` and `?` also match a slash, and brackets contain a
            class of regular expressions. Else `**` crosses folders and `*` does not, and `[!a]`
            is any character except `a`.
    """
    wildcards = VIM_WILDCARDS if is_vim else PATH_WILDCARDS
    parts: list[str] = []
    depth = 0
    for part in TOKEN.findall(glob):
        if part in wildcards:
            parts.append(wildcards[part])
        elif len(part) > 1:
            parts.append(_character_class(part, is_vim))
        elif has_braces and part == "{":
            parts.append("(?:")
            depth += 1
        elif depth and part in "},":
            parts.append(")" if part == "}" else "|")
            depth -= part == "}"
        else:
            parts.append(re.escape(part))
    return translate(glob, is_vim=is_vim, has_braces=False) if depth else "".join(parts)


def _character_class(part: str, is_vim: bool) -> str:
    found = part
    if not is_vim:
        letters = re.escape(part[1:-1].removeprefix("!")).replace("\\-", "-")
        found = f"[{'^' if part[1] == '!' else ''}{letters}]"
    try:
        re.compile(found)
    except re.error:  # `[z-a]` is literal
        return re.escape(part)
    return found


def path_test(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that tests whether a path matches any of some globs or path parts.

    A glob may start at any folder, and includes the contents of a matching folder. With a leading
    `/` it starts at the project's root. Without patterns every path matches.
    """
    if not patterns:
        return lambda path: True
    tests = [_test(pattern) for pattern in patterns]
    return lambda path: any(test(path) for test in tests)


def _test(pattern: str) -> Callable[[str], bool]:
    is_rooted, bare = pattern.startswith("/"), pattern.lstrip("/")
    if not WILD.search(bare):
        return lambda path: path.startswith(bare) if is_rooted else bare in path
    inside = translate(bare.rstrip("/"))
    regex = re.compile(f"(?s:{'' if is_rooted else '(?:.*/)?'}(?:{inside})(?:/.*)?)\\Z")
    return lambda path: regex.match(path) is not None
