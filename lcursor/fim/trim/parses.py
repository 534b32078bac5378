"""Whether a text can be the start of valid code.

What follows a suggestion is not written yet, so the text is parsed only up to its end. Where valid
code stops in the middle, tree-sitter finds the error only there: each error node reaches the end,
and no token was read while it searched for a state to continue in. A comment or string of several
lines is closed first. Most keywords are names where the grammar expects none, which `KEYWORDS`
corrects. Code that does not parse before the suggestion either is not judged.

C and C++ are left out: 2 % of real lines do not parse, because of macros.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Final

from lcursor.code import grammars, languages

if TYPE_CHECKING:
    from lcursor.code.grammars import Node

MAX_LINES: Final = 300
"""Lines before the cursor that are parsed; fewer if an outermost definition starts among them."""
UNKNOWN_STATE: Final = 0
"""Parse state of tokens that were read while tree-sitter searched for a state to continue in."""

_ECMA: Final = (
    "break case catch class const continue debugger default delete do else export extends finally"
    " for function if import in instanceof new return switch throw try typeof var void while with"
)
KEYWORDS: Final = {
    "go": "break case chan const continue default defer else fallthrough for func go goto if import"
    " interface map package range return select struct switch type var",
    "java": "break case catch class const continue default do else enum extends final finally for"
    " if implements import instanceof interface new package private protected public return static"
    " super switch this throw throws try void while",
    "javascript": _ECMA,
    "lua": "and break do else elseif end false for function if in local nil not or repeat return"
    " then true until while",
    "python": " ".join(word for word in keyword.kwlist if word.islower()),
    "ruby": "alias and begin break case def do else elsif end ensure for if in module next not or"
    " redo rescue retry return then undef unless until when while yield",
    "rust": "as break const continue crate else enum extern fn for if impl in let loop match mod"
    " move mut pub ref return struct trait type unsafe use where while",
    "tsx": _ECMA,
    "typescript": _ECMA,
}
"""Languages that are judged -> keywords that are never names of variables."""
ENDS: Final = {"lua": ("]]",), "python": (), "ruby": ('"', "=end"), "rust": ('"', "*/")}
"""Ends of comments and strings of several lines that `syntax.scan` does not know."""
ENDS_ELSEWHERE: Final = ("*/",)

_STARTS: Final = re.compile(r"(?!(?:catch|do|elif|else|elseif|end|except|finally|then)\b)[\w@#<]")
"""A line at the left margin that may start a definition or statement."""


class CodeBefore:
    """The code before the cursor, to which texts are added; parsed when first needed.

    Args:
        path: determines the language.
        text: the text before the cursor, from the start of any line on.
    """

    def __init__(self, path: str, text: str) -> None:
        self._language = languages.detect(path)
        self._text = text
        self._valid = self._invalid = ""

    def may_continue(self, text: str) -> bool:
        """Return whether valid code may start with the code and a text; True if not known.

        Cost: 0.6 ms for the first text, less for others; 10 to 50 ms for a language's first use.
        """
        if self._language not in KEYWORDS or self._valid.startswith(text):
            return True
        if self._invalid and text.startswith(self._invalid):
            return False
        is_valid = not self._is_valid or _may_be_valid(self._language, self._window, text)
        if is_valid:
            self._valid = text
        else:
            self._invalid = text
        return is_valid

    @cached_property
    def _window(self) -> str:
        lines = self._text.split("\n")
        low = max(len(lines) - MAX_LINES, 0)
        starts = (at for at in range(len(lines) - 2, low, -1) if _STARTS.match(lines[at]))
        return "\n".join(lines[next(starts, low) :])

    @cached_property
    def _is_valid(self) -> bool:
        return _may_be_valid(self._language, self._window)


def _may_be_valid(language: str, before: str, text: str = "") -> bool:
    """Return whether valid code may start with two texts; keywords count in the second one."""
    data, start = _encoded(before + text), len(_encoded(before))
    for end in ("", *ENDS.get(language, ENDS_ELSEWHERE)):
        root = grammars.parse(language, data + end.encode())
        if root is None:
            return True
        if not _has_early_error(root):
            words = KEYWORDS[language].split()
            return not any(name in words for name in _names(root, start))
    return False


def _encoded(text: str) -> bytes:
    return text.rstrip().encode("utf-8", "surrogateescape")


def _has_early_error(root: Node) -> bool:
    """Return whether an error was found before the end."""
    if not root.has_error:
        return False
    end, work = _end(root), [root]
    while work:
        node = work.pop()
        if node.is_error or node.is_missing:
            if node.end_byte < end or any(map(_was_skipped, node.children)):
                return True
            work += node.children
        elif node.has_error:
            work += node.children
    return False


def _was_skipped(node: Node) -> bool:
    is_token = not node.child_count and node.end_byte > node.start_byte and not node.is_extra
    return is_token and node.parse_state == UNKNOWN_STATE


def _end(node: Node) -> int:
    """Return the end of the last token that is no comment; 0 if there is none."""
    if not node.child_count:
        return node.end_byte if node.end_byte > node.start_byte else 0
    tokens = (child for child in reversed(node.children) if child.is_error or not child.is_extra)
    return next(filter(None, map(_end, tokens)), 0)


def _names(root: Node, start: int) -> Iterator[str]:
    """Yield the names of variables that end after an offset."""
    work = [root]
    while work:
        node = work.pop()
        if node.end_byte > start:
            if node.type == "identifier" and node.text is not None:
                yield node.text.decode("utf-8", "replace")
            work += node.children
