"""Compile globs, for the `path:` filter and for the user's patterns of secret files."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Final

TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\[[^\]]+\]|.", re.S)
VIM_TOKEN = re.compile(rf"\\.|{TOKEN.pattern}", re.S)
WILD = re.compile(r"[*?]|\[!?[^\]/]+\]")
PATH_WILDCARDS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
VIM_WILDCARDS = {"**/": ".*/", "**": ".*", "*": ".*", "?": "."}
MAX_CHARS: Final = 500
"""A longer glob with wildcards matches nothing."""
MAX_WILDCARDS: Final = 2
"""Maximum of wildcards of a regular expression that may try all ways to match them."""
MAX_STATES: Final = 300
"""Maximum of remembered states of a matcher."""


def translate(glob: str, *, is_vim: bool = False, has_braces: bool = True) -> str:
    """Return a glob as a regular expression; `{a,b}` matches either; an open brace is literal.

    Args:
        is_vim: as `translate` of editor/privacy.lua, nearly as Vim: `*` and `?` also match a
            slash, `[^a]` is any character except `a`, the brackets of a name such as `[slug]`
            match themselves, too, and a backslash lets the next character match itself. Else
            `**` crosses folders and `*` does not, and `[!a]` is any character except `a`.
    """
    wildcards = VIM_WILDCARDS if is_vim else PATH_WILDCARDS
    parts: list[str] = []
    depth = 0
    for part in (VIM_TOKEN if is_vim else TOKEN).findall(glob):
        if part in wildcards:
            parts.append(wildcards[part])
        elif len(part) > 1 and part[0] == "\\":
            parts.append(rf"\\?{re.escape(part[1:])}")
        elif len(part) > 1:
            found = _character_class(part, "^" if is_vim else "!")
            parts.append(f"(?:{found}|{re.escape(part)})" if is_vim else found)
        elif has_braces and part == "{":
            parts.append("(?:")
            depth += 1
        elif depth and part in "},":
            parts.append(")" if part == "}" else "|")
            depth -= part == "}"
        else:
            parts.append(re.escape(part))
    return translate(glob, is_vim=is_vim, has_braces=False) if depth else "".join(parts)


def _character_class(part: str, inverted: str = "!") -> str:
    letters = re.escape(part[1:-1].removeprefix(inverted)).replace("\\-", "-")
    expression = f"[{'^' if part[1] == inverted else ''}{letters}]"
    try:
        re.compile(expression)
    except re.error:  # `[z-a]` is literal
        return re.escape(part)
    return expression


def path_test(patterns: Sequence[str], paths: Collection[str] = ()) -> Callable[[str], bool]:
    """Return a function that tests whether a path matches any of some globs or path parts.

    A glob may start at any folder, and includes the contents of a matching folder. With a leading
    `/` it starts at the project's root. Without patterns every path matches. The brackets of a
    name such as `[slug]` match themselves, too.

    Args:
        paths: all paths that may be tested. If brackets match themselves in any of them, they
            match nothing else.
    """
    if not patterns:
        return lambda path: True
    tests: list[Callable[[str], bool]] = []
    for pattern in patterns:
        literal = _test(pattern, is_literal=True)
        tests.append(literal)
        if "[" in pattern and not any(map(literal, paths)):
            tests.append(_test(pattern))
    return lambda path: any(test(path) for test in tests)


@lru_cache(maxsize=64)
def _test(pattern: str, *, is_literal: bool = False) -> Callable[[str], bool]:
    """Return a function that tests a path with one pattern.

    Args:
        is_literal: whether brackets match themselves.
    """
    is_rooted, bare = pattern.startswith("/"), pattern.lstrip("/")
    if not (re.search("[*?]", bare) if is_literal else WILD.search(bare)):
        return lambda path: path.startswith(bare) if is_rooted else bare in path
    if len(bare) > MAX_CHARS:
        return lambda path: False
    parts: list[str | Test] = []
    for part in TOKEN.findall(bare.rstrip("/")):
        is_class = part[0] == "[" and len(part) > 1
        parts += [letter.__eq__ for letter in part] if is_literal and is_class else [part]
    if not _is_balanced(parts):
        parts = ["[{]" if each == "{" else each for each in parts]
    return Matcher([*([] if is_rooted else ["**/"]), *parts, *"{,/", "**", "}"]).matches


def _is_balanced(parts: Sequence[object]) -> bool:
    """Return whether each open brace is closed."""
    depth = 0
    for part in parts:
        depth += (part == "{") - (part == "}" and depth > 0)
    return depth == 0


RULE_TOKEN = re.compile(
    r"\(\?:\.\+/\)\?|\(\?:/\.\+\)\?|\[\^/\][*+]?|\(\?:\(\?P<\w+>/\)\|\$\)|\(\?P<\w+>/\)"
    r"|\[\^?\]?(?:\\.|[^\]\\])*\]|\\.|.",
    re.S,
)
"""The parts of pathspec's regular expression of an ignore rule."""


def rule_test(regex: str) -> Callable[[str], object]:
    """Return a function that tests whole paths with pathspec's expression of an ignore rule.

    It returns a true value for a match. An expression with few wildcards is used as it is, which
    takes a tenth of the time.
    """
    if len(re.findall(r"[*+]", regex)) <= MAX_WILDCARDS:
        return re.compile(regex, re.S).fullmatch  # `.` matches newlines, too
    parts: list[str | Test] = []
    for part in RULE_TOKEN.findall(regex.removeprefix("^")):
        if part == "(?:.+/)?":
            parts.append("**/")
        elif part == "(?:/.+)?":
            parts += [*"{,/", "**", "}"]
        elif part.startswith("[^/]"):
            parts += {"*": ["*"], "+": ["?", "*"]}.get(part[4:], ["?"])
        elif part.startswith("("):
            parts += [*"{,/}"] if part.endswith("|$)") else ["/"]
        else:
            parts.append(re.compile(part).fullmatch)
    return Matcher(parts).matches


Test = Callable[[str], object]
"""Returns whether a character matches."""


class _State:
    """The positions in a glob that are reached after some characters."""

    def __init__(self, positions: frozenset[int], *, is_end: bool) -> None:
        self.positions, self.is_end = positions, is_end
        self.moves: dict[str, _State] = {}


class Matcher:
    """Matches whole paths with a glob, in steps that grow with the product of the lengths only.

    A regular expression tries all ways to divide a name among several stars, one after the other.
    This follows all at once, and remembers where each character leads.

    Args:
        parts: of the glob, as `TOKEN` finds them, or tests of one character; each open brace must
            be closed.
    """

    def __init__(self, parts: Sequence[str | Test]) -> None:
        self._steps: list[Test | list[int]] = []
        """For each position, which character leads to the next one, or where it leads without."""
        opened: list[tuple[list[int], list[list[int]]]] = []
        """The beginnings, and the ends, of the alternatives of each open brace."""
        for part in parts:
            at = len(self._steps)
            if part == "**/":
                self._steps += [[at + 1, at + 5], [at + 2, at + 4]]
                self._steps += [_is_any, [at + 1], _is_slash]
            elif part in ("*", "**"):
                test = _is_any if part == "**" else _is_in_name
                self._steps += [[at + 1, at + 3], test, [at]]
            elif part == "{":
                opened.append(([at + 1], []))
                self._steps.append(opened[-1][0])
            elif opened and part in (",", "}"):
                starts, ends = opened[-1]
                ends.append([])
                self._steps.append(ends[-1])
                if part == ",":
                    starts.append(at + 1)
                else:
                    opened.pop()
                    for each in ends:
                        each.append(at + 1)
            else:
                self._steps += _tests(part) if isinstance(part, str) else [part]
        self._states: dict[frozenset[int], _State] = {}
        self._first = self._state([0])

    def matches(self, path: str) -> bool:
        """Return whether the whole path matches. Any thread."""
        state = self._first
        for char in path:
            known = state.moves.get(char)
            if known is None:
                known = state.moves[char] = self._moved(state, char)
            state = known
            if not state.positions:
                return False
        return state.is_end

    def _moved(self, state: _State, char: str) -> _State:
        """Return the state that a character leads to."""
        if max(len(self._states), len(state.moves)) > MAX_STATES:
            self._states = {}
            for each in (self._first, state):
                each.moves = {}
        reached = []
        for at in state.positions:
            step = self._steps[at] if at < len(self._steps) else None
            if callable(step) and step(char):
                reached.append(at + 1)
        return self._state(reached)

    def _state(self, reached: list[int]) -> _State:
        """Return the state of some positions and of those that they lead to."""
        positions_reached = set[int]()
        while reached:
            at = reached.pop()
            if at not in positions_reached:
                positions_reached.add(at)
                step = self._steps[at] if at < len(self._steps) else None
                reached += step if isinstance(step, list) else ()
        positions = frozenset(positions_reached)
        is_end = len(self._steps) in positions
        return self._states.setdefault(positions, _State(positions, is_end=is_end))


def _is_any(char: str) -> bool:
    return True


def _is_in_name(char: str) -> bool:
    return char != "/"


def _is_slash(char: str) -> bool:
    return char == "/"


def _tests(part: str) -> list[Test]:
    """Return what matches `?`, a literal character, a class, or the letters of an invalid one."""
    if part == "?":
        return [_is_in_name]
    pattern = _character_class(part) if len(part) > 1 else ""
    if pattern.startswith("["):
        regex = re.compile(pattern)
        return [lambda char: regex.match(char) is not None]
    return [letter.__eq__ for letter in part]
