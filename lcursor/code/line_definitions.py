"""Find definitions without a grammar, by the start of each line. Pure; any thread.

A heuristic for languages without a grammar, and when its wheel is missing. It uses the first words
of a line and the indentation, so prose about classes misleads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

KINDS: Final = {
    "function": "function func fun fn def defn defun defp sub proc procedure subroutine task rpc",
    "macro": "macro defmacro mixin",
    "class": "class deftype",
    "struct": "struct record defrecord defstruct message",
    "interface": "interface protocol defprotocol service contract",
    "trait": "trait",
    "enum": "enum",
    "module": "module namespace package defmodule",
    "type": "type typedef input scalar",
}
SILENT: Final = frozenset(
    {"css", "diff", "html", "ini", "jinja", "json", "markdown", "rst", "text"}
)
"""Languages in which the words above are plain text."""

_KIND_OF: Final = {word: kind for kind, words in KINDS.items() for word in words.split()}
_ROW: Final = re.compile(
    r"""[ \t]*\(?[@!]?
    (?:(?:pub(?:\(\w+\))?|public|private|protected|internal|static|export|async|abstract|final
      |override|local|virtual|inline|default|sealed|partial|data)\s+)*
    (?P<word>[a-z]+)!?(?:\s+|\s*\(\s*)"""
    r"""(?P<name>[^\W\d][\w.:$\#?!-]*)""",
    re.VERBOSE,
)
_ASSIGNED: Final = re.compile(r"\s*(?P<name>[^\W\d][\w.]*)\s*(?:<-|=)\s*function\b")
_TARGET: Final = re.compile(r"(?P<name>[\w./-]+)\s*:(?!=)")
_SECTION: Final = re.compile(r"\\(?:chapter|(?:sub)*section)\*?\{(?P<name>[^}]+)\}")
_RESOURCE: Final = re.compile(r'(?:resource|data|module|variable|output)\s+(?P<name>".*")\s*\{')

MAX_DEFINITIONS: Final = 5000

LineDefinition = tuple[str, str, int, int]
"""Name, kind, first row, end row (exclusive)."""


def definitions(language: str, lines: Sequence[str]) -> list[LineDefinition]:
    """Return the likely definitions, in order."""
    if language in SILENT:
        return []
    tags = []
    for row, line in enumerate(lines):
        named = _named(language, line)
        if named:
            tags.append((*named, row, _end(lines, row)))
            if len(tags) == MAX_DEFINITIONS:
                break
    return tags


def _named(language: str, line: str) -> tuple[str, str] | None:
    for name, kind in _special(language, line):
        return name, kind
    match = _ROW.match(line)
    if match and match["word"] in _KIND_OF:
        name = match["name"].rstrip(":.-")
        return (name, _KIND_OF[match["word"]]) if name else None
    match = _ASSIGNED.match(line)
    return (match["name"], "function") if match else None


def _special(language: str, line: str) -> Iterator[tuple[str, str]]:
    if language == "make" and (match := _TARGET.match(line)) and not line.startswith("."):
        yield match["name"], "target"
    elif language == "tex" and (match := _SECTION.match(line)):
        yield match["name"], "section"
    elif language == "hcl" and (match := _RESOURCE.match(line)):
        yield match["name"].replace('"', "").replace(" ", "."), "resource"


def _end(lines: Sequence[str], row: int) -> int:
    """Return the row after a definition, where its own indentation returns."""
    margin = len(lines[row]) - len(lines[row].lstrip())
    last = row
    for at in range(row + 1, len(lines)):
        text = lines[at].lstrip()
        if not text:
            continue
        if len(lines[at]) - len(text) <= margin:
            is_closer = text[0] in ")}]" or text.startswith(("end", "done", "fi"))
            is_opener = at == row + 1 and text[0] == "{"
            if is_opener:
                last = at
                continue
            return at + 1 if is_closer else last + 1
        last = at
    return last + 1
