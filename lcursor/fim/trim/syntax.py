"""Comments, strings and brackets of languages, for the rules.

A table by file extension, and one scanner. It is not a parser: it may misread a regular expression
or a heredoc, and recovers on the next line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import NamedTuple

CLOSER = {"(": ")", "[": "]", "{": "}"}
OPENER = {closer: opener for opener, closer in CLOSER.items()}

Mark = tuple[int, str]
"""Offset of a bracket or of the start of a comment, and its text."""


@dataclass(frozen=True, slots=True)
class Syntax:
    """The syntax of one language.

    Attributes:
        comment: start of a comment that ends with the line; "" if unknown.
        quotes: characters that start and end a string; a backquote may span lines.
        pairs: whether brackets come in pairs, as in code; a shell's `case` and prose have lone
            ones.
    """

    comment: str = ""
    quotes: str = "\"'"
    pairs: bool = False


UNKNOWN = Syntax()

_TABLE = {
    "py pyi rb pl pm r jl nim ex exs coffee nix tf gd": Syntax("#", pairs=True),
    "toml yaml yml cmake ps1 sh bash zsh fish mk conf ini tcl awk": Syntax("#"),
    "c h cc cpp cxx hh hpp hxx cu java kt kts swift cs scala php dart groovy m mm proto": Syntax(
        "//", pairs=True
    ),
    "js jsx mjs cjs ts tsx mts cts go vue svelte": Syntax("//", "\"'`", pairs=True),
    "rs zig v sv": Syntax("//", '"', pairs=True),
    "json json5 css scss less": Syntax("//", pairs=True),
    "lua sql": Syntax("--", pairs=True),
    "hs elm ada adb ads vhd vhdl": Syntax("--", '"', pairs=True),
    "el lisp cl clj cljs scm rkt": Syntax(";", '"', pairs=True),
    "tex sty erl hrl": Syntax("%", '"'),
}
_BY_ENDING = {end: syntax for ends, syntax in _TABLE.items() for end in ends.split()}
_BY_NAME = dict.fromkeys(("makefile", "dockerfile", "cmakelists.txt"), Syntax("#"))


def for_path(path: str) -> Syntax:
    """Return the syntax of a file by its name; `UNKNOWN` if the name is not in the table."""
    name = PurePosixPath(path.lower())
    return _BY_NAME.get(name.name) or _BY_ENDING.get(name.suffix[1:], UNKNOWN)


@cache
def _signs(syntax: Syntax) -> re.Pattern[str]:
    leader = "|" + re.escape(syntax.comment) if syntax.comment else ""
    return re.compile(r"\\.|\"\"\"|'''|[\"'`()\[\]{}\n]" + leader)


_PREFIXES = {"", "b", "br", "f", "fr", "l", "r", "rb", "rf", "u", "u8"}


class Scan(NamedTuple):
    """What is found in a text.

    Attributes:
        marks: the brackets and comment starts that are neither in strings nor in comments; those
            up to an offset depend only on the text before it.
        inside: the string or comment that is open at the end: a quote, or the start of a comment.
        since: offset where it starts; -1 if it was open at the start of the text.
    """

    marks: list[Mark]
    inside: str
    since: int


def scan(text: str, syntax: Syntax, inside: str = "") -> Scan:
    """Find the brackets and comments in a text that begins at the start of a line.

    Args:
        inside: the string or comment that is open there.
    """
    marks: list[Mark] = []
    since = -1
    for match in _signs(syntax).finditer(text):
        sign, at = match[0], match.start()
        if inside:
            if sign == "\n":
                inside = inside if len(inside) == 3 or inside == "`" else ""
            elif inside != syntax.comment and sign in {inside, inside * 3}:
                inside = ""
        elif sign == syntax.comment:
            if at == 0 or text[at - 1].isspace():
                marks.append((at, sign))
                inside, since = sign, at
        elif sign[0] in "\"'`":
            if sign[0] in syntax.quotes and (sign != "'" or _begins_string(text, at)):
                inside, since = sign, at
        elif sign in CLOSER or sign in OPENER:
            marks.append((at, sign))
    return Scan(marks, inside, since)


def _begins_string(text: str, at: int) -> bool:
    """Return whether an apostrophe starts a string; inside a word, as in `don't`, it does not."""
    word = re.search(r"\w*$", text[max(at - 4, 0) : at])
    return word is None or word[0].lower() in _PREFIXES


def unclosed_marks(marks: list[Mark]) -> list[Mark]:
    """Return the unclosed opening brackets, outermost first."""
    stack: list[Mark] = []
    for at, sign in marks:
        if sign in CLOSER:
            stack.append((at, sign))
        elif sign in OPENER and stack and stack[-1][1] == OPENER[sign]:
            stack.pop()
    return stack


def unclosed(marks: list[Mark]) -> list[str]:
    """Return the unclosed opening brackets without their offsets, outermost first."""
    return [sign for _, sign in unclosed_marks(marks)]


def unopened(marks: list[Mark]) -> list[Mark]:
    """Return the unmatched closing brackets."""
    stack: list[str] = []
    found = []
    for at, sign in marks:
        if sign in CLOSER:
            stack.append(sign)
        elif sign in OPENER and stack and stack[-1] == OPENER[sign]:
            stack.pop()
        elif sign in OPENER:
            found.append((at, sign))
    return found
