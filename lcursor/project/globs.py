"""Which paths are meant by `path:` in a question. Pure functions of text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

WILD = re.compile(r"(\*\*/|\*\*|\*|\?|\[!?[^\]/]+\])")
WILDCARDS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def path_test(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return what tells whether a path is one of those meant: globs, or parts of a path.

    A glob may begin at any folder, and what is in a folder that is meant is meant. With `/` before
    it, a glob or a part begins at the project's root.
    """
    if not patterns:
        return lambda path: True
    tests = [_test(pattern) for pattern in patterns]
    return lambda path: any(test(path) for test in tests)


def _test(pattern: str) -> Callable[[str], bool]:
    is_rooted, bare = pattern.startswith("/"), pattern.lstrip("/")
    if not WILD.search(bare):
        return lambda path: path.startswith(bare) if is_rooted else bare in path
    inside = "".join(map(_regex, WILD.split(bare.rstrip("/"))))
    regex = re.compile(f"(?s:{'' if is_rooted else '(?:.*/)?'}{inside}(?:/.*)?)\\Z")
    return lambda path: regex.match(path) is not None


def _regex(part: str) -> str:
    """Return a piece of a glob as a regular expression."""
    if part in WILDCARDS:
        return WILDCARDS[part]
    if len(part) > 2 and part.startswith("[") and part.endswith("]"):
        letters = re.escape(part[1:-1].removeprefix("!")).replace("\\-", "-")
        made = f"[{'^' if part[1] == '!' else ''}{letters}]"
        try:
            re.compile(made)
        except re.error:  # `[z-a]` means itself
            return re.escape(part)
        return made
    return re.escape(part)
