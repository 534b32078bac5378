"""Split lines into tokens, and compare two texts token by token. Pure; any thread."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final, Literal, NamedTuple, cast

from lcursor.next_edit.records import Edit

TokenKind = Literal["name", "number", "string", "sign"]
Class = Literal["replace", "insert", "delete", "insert lines", "delete lines", "format"]

MAX_EDIT_LINES: Final = 20
"""An edit of more lines is no cause of a proposal."""
MAX_EDIT_CHARS: Final = 8000
"""Comparing more takes over half a second."""
MAX_LINE_CHARS: Final = 4000
"""Longer lines have no tokens: they are data."""
NAME: Final = re.compile(r"[^\W\d]\w*")
KEYWORDS: Final = frozenset({
    "abstract", "and", "any", "as", "async", "auto", "await", "bool", "boolean", "break",
    "case", "catch", "chan", "char", "class", "const", "continue", "def", "default", "defer",
    "del", "delete", "do", "double", "elif", "else", "elseif", "end", "enum", "except",
    "export", "extends", "extern", "fallthrough", "false", "False", "final", "finally", "float",
    "fn", "for", "from", "func", "function", "global", "go", "goto", "if", "impl", "implements",
    "import", "in", "include", "instanceof", "int", "interface", "is", "lambda", "let", "local",
    "long", "loop", "map", "match", "mod", "mut", "namespace", "new", "nil", "None", "nonlocal",
    "not", "null", "or", "package", "pass", "private", "protected", "pub", "public", "raise",
    "range", "ref", "repeat", "return", "select", "self", "short", "signed", "sizeof", "static",
    "str", "string", "struct", "super", "switch", "template", "then", "this", "throw", "throws",
    "trait", "true", "True", "try", "type", "typedef", "typeof", "undefined", "union", "unsafe",
    "unsigned", "until", "use", "using", "var", "void", "where", "while", "with", "yield",
})  # fmt: skip
"""Words that are no names that a user chose, in any language; and common types."""
_TOKEN: Final = re.compile(
    r"""(?P<name>[^\W\d]\w*)|(?P<number>\d[\w.]*)"""
    r"""|(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)|(?P<space>\s+)"""
    r"""|(?P<sign>->|=>|==|!=|<=|>=|:=|\+=|-=|\*=|/=|&&|\|\||::|\.\.\.?|\*\*|//|.)"""
)


class Token(NamedTuple):
    """A token of a line."""

    kind: TokenKind
    text: str
    row: int
    """From the first line of the text."""
    column: int
    """In characters."""

    @property
    def end(self) -> int:
        """The column after it."""
        return self.column + len(self.text)


@dataclass(frozen=True, slots=True)
class Change:
    """Tokens that were replaced by others; either side may be empty."""

    old: tuple[Token, ...]
    new: tuple[Token, ...]

    @property
    def names(self) -> tuple[str, str] | None:
        """The old and the new name, if it replaces one name by another."""
        if len(self.old) != 1 or len(self.new) != 1:
            return None
        old, new = self.old[0], self.new[0]
        is_name = old.kind == new.kind == "name" and not {old.text, new.text} & KEYWORDS
        return (old.text, new.text) if is_name else None


def tokenize(line: str, row: int = 0) -> tuple[Token, ...]:
    """Return the tokens of a line, without white space; none of a very long one."""
    return _tokenize(line, row) if len(line) <= MAX_LINE_CHARS else ()


@lru_cache(maxsize=4096)
def _tokenize(line: str, row: int) -> tuple[Token, ...]:
    found = []
    for match in _TOKEN.finditer(line):
        if match.lastgroup != "space":
            kind = cast(TokenKind, match.lastgroup)
            found.append(Token(kind, match[0], row, match.start()))
    return tuple(found)


def tokens(lines: Sequence[str]) -> list[Token]:
    """Return the tokens of some lines."""
    return [token for row, line in enumerate(lines) for token in tokenize(line, row)]


@lru_cache(maxsize=256)
def changes(edit: Edit) -> tuple[Change, ...]:
    """Return the tokens that an edit replaced; a run of the same length is split into pairs.

    None of an edit of more than `MAX_EDIT_CHARS`.
    """
    if _is_long(edit):
        return ()
    old, new = tokens(edit.old), tokens(edit.new)
    matcher = SequenceMatcher(
        None, [one.text for one in old], [one.text for one in new], autojunk=False
    )
    found = []
    for tag, first, end, start, stop in matcher.get_opcodes():
        removed, added = old[first:end], new[start:stop]
        if tag == "replace" and len(removed) == len(added):
            pairs = zip(removed, added, strict=True)
            found += [Change((one,), (other,)) for one, other in pairs if one.text != other.text]
        elif tag != "equal":
            found.append(Change(tuple(removed), tuple(added)))
    return tuple(found)


def classify(edit: Edit) -> Class:
    """Return what kind of edit it is."""
    found = changes(edit)
    if not found:
        return "format"
    if not edit.old or not any(line.strip() for line in edit.old):
        return "insert lines"
    if not edit.new or not any(line.strip() for line in edit.new):
        return "delete lines"
    if all(not one.old for one in found):
        return "insert"
    return "delete" if all(not one.new for one in found) else "replace"


def is_cause(edit: Edit) -> bool:
    """Return whether an edit is small enough to predict from, and changes more than white space."""
    is_small = max(len(edit.old), len(edit.new)) <= MAX_EDIT_LINES
    return is_small and not _is_long(edit) and classify(edit) != "format"


def _is_long(edit: Edit) -> bool:
    """Return whether a comparison would take too long: its time grows with the square."""
    return max(sum(map(len, edit.old)), sum(map(len, edit.new))) > MAX_EDIT_CHARS
