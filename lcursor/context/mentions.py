"""Parse the mentions in a question: `@file:src/a.py:10-20`, `@diff`, `@symbol:"operator []"`. Pure.

Text in code, in an address or after a backslash is not a mention. `gather.py` resolves mentions,
`complete.py` completes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

KINDS: Final = {
    "buffer": "the current file, with unsaved changes",
    "file": "a file, some of its lines (@file:a.py:10-20), or a glob",
    "dir": "all files in a folder",
    "selection": "the selection",
    "screen": "the visible lines of code",
    "symbol": "a definition, by its name",
    "diagnostics": "errors and warnings of the current file",
    "diff": "uncommitted changes; @diff:main, @diff:--staged",
    "commit": "a commit; without a name the last one",
    "quickfix": "the quickfix list",
    "terminal": "the output of a terminal",
    "codebase": "the parts of the project that match the question",
    "rules": "a rules file that is not included automatically",
    "mcp": "a resource of an MCP server",
}
"""All kinds, in the order of the completion menu."""
WITH_ARGUMENT: Final = frozenset({"file", "dir", "symbol", "rules", "mcp"})
"""Required, because `@file` and `@dir` are also Doxygen commands."""
ARGUMENT_POSSIBLE: Final = WITH_ARGUMENT | {"buffer", "diff", "commit", "codebase", "terminal"}

_BEFORE: Final = r"(?<![A-Za-z0-9_.@\\/+\-=&$#%])"
_SIGN: Final = re.compile(
    rf"{_BEFORE}@(?P<with>{'|'.join(sorted(ARGUMENT_POSSIBLE))}):(?=\S)"
    rf"|{_BEFORE}@(?P<kind>{'|'.join(KINDS)})"
    r"(?![A-Za-z0-9\-(/@=+]|_\w|[.:*]\.*[A-Za-z0-9_])"
)
_QUOTED: Final = re.compile(r'"((?:\\.|[^"\\\n])+)"|\'((?:\\.|[^\'\\\n])+)\'')
_BARE: Final = re.compile(r"(?:\\[^\S\n]|[^\s`])+")
_ROWS: Final = re.compile(
    r"(?::L?(?P<first>\d+)(?:[-,]L?(?P<end>\d+|\$|(?=$))|:\d+)?"
    r"|#L(?P<mark>\d+)(?:C\d+)?(?:-L?(?P<last>\d+)(?:C\d+)?)?)$"
)
_AFTER_QUOTE: Final = re.compile(r":L?\d+(?:-L?(?:\d+|\$)|:\d+)?|#L\d+(?:-L?\d+)?")
_CLOSERS: Final = {")": "(", "]": "[", "}": "{", ">": "<"}
_ENDS: Final = ".,;:!?…'\"”’»。，、；：！？）」』"
_FENCE: Final = re.compile(r"(?:[ \t]*>)*[ ]{0,3}(?P<mark>`{3,}|~{3,})(?P<rest>[^\n]*)")
_TICKS: Final = re.compile(r"(?<!\\)`+")


@dataclass(frozen=True, slots=True)
class Mention:
    """One mention."""

    kind: str
    argument: str
    """Without quotes; "" for none."""
    first: int
    """Offset in the text, in characters."""
    end: int


class FileRows(NamedTuple):
    """The argument of `@file`."""

    path: str
    first_row: int
    end_row: int
    """-1 for the end of the file."""
    is_point: bool
    """Whether it is a single row, as programs print it, to be shown with the rows around it."""


def parse(text: str) -> list[Mention]:
    """Return the mentions in a text, in order."""
    code = _code(text)
    found: list[Mention] = []
    at = number = 0
    while sign := _SIGN.search(text, at):
        at = sign.end()
        while number < len(code) and code[number][1] <= sign.start():
            number += 1
        if number < len(code) and code[number][0] <= sign.start():
            at = code[number][1]
            continue
        mention = _mention(text, sign)
        if mention:
            found.append(mention)
            at = mention.end
    return found


def without(text: str, mentions: Sequence[Mention]) -> str:
    """Return a text without mentions, for a search."""
    parts, at = [], 0
    for one in mentions:
        parts.append(text[at : one.first])
        at = one.end
    parts.append(text[at:])
    return re.sub(r"[ \t]{2,}", " ", "".join(parts)).strip()


def spell(kind: str, argument: str = "") -> str:
    """Return the text of a mention, with quotes if necessary."""
    if not argument:
        return f"@{kind}"
    plain = f"@{kind}:{argument}"
    is_open = argument.endswith("\\")  # it would escape the space after it
    if not is_open and parse(plain) == [Mention(kind, argument, 0, len(plain))]:
        return plain
    return '@{}:"{}"'.format(kind, argument.replace("\\", "\\\\").replace('"', '\\"'))


def parse_rows(argument: str) -> FileRows:
    """Split an argument into a path and rows.

    The whole argument may also be a file name: callers try that first.
    """
    match = _ROWS.search(argument)
    if not match or not match.start():
        return FileRows(argument, 0, -1, False)
    path = argument[: match.start()]
    first = max(int(match["first"] or match["mark"]), 1)
    end = match["end"] if match["first"] else match["last"]
    if end is None:
        return FileRows(path, first - 1, first, True)
    if end in {"", "$"}:
        return FileRows(path, first - 1, -1, False)
    first, last = sorted((first, max(int(end), 1)))
    return FileRows(path, first - 1, last, False)


def _mention(text: str, sign: re.Match[str]) -> Mention | None:
    kind = sign["kind"]
    if kind:
        if kind in WITH_ARGUMENT:
            return None
        return Mention(kind, "", sign.start(), sign.end())
    kind, at = sign["with"], sign.end()
    if quoted := _QUOTED.match(text, at):
        argument = re.sub(r"\\(.)", r"\1", quoted[1] or quoted[2])
        rows = _AFTER_QUOTE.match(text, quoted.end())
        end = rows.end() if rows else quoted.end()
        return Mention(kind, argument + (rows[0] if rows else ""), sign.start(), end)
    bare = _BARE.match(text, at)
    raw = _trimmed(bare[0], text[sign.start() - 1 : sign.start()]) if bare else ""
    if raw:
        argument = re.sub(r"\\([^\S\n])", r"\1", raw)
        return Mention(kind, argument, sign.start(), at + len(raw))
    if kind in WITH_ARGUMENT:
        return None
    return Mention(kind, "", sign.start(), at - 1)


def _trimmed(raw: str, before: str) -> str:
    """Remove punctuation of the surrounding sentence from an argument."""
    while raw:
        if raw.endswith(("'s", "’s")):
            raw = raw[:-2]
        elif _is_of_sentence(raw, before):
            raw = raw[:-1]
        else:
            break
    return raw


def _is_of_sentence(raw: str, before: str) -> bool:
    """Return whether an argument ends with punctuation of the surrounding sentence."""
    last = raw[-1]
    if last == "." and re.search(r"(?:^|/)\.{1,2}$", raw):  # `.`, `src/..`: a folder
        return False
    if last in _CLOSERS:
        return raw.count(last) > raw.count(_CLOSERS[last])
    return last in _ENDS or (last == before and last in "*_~|")


def _code(text: str) -> list[tuple[int, int]]:
    """Return the ranges of code in a text."""
    found = []
    at = start = 0
    fence = ""
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        mark = _FENCE.match(text, at, end)
        if fence and mark and mark["mark"].startswith(fence) and not mark["rest"].strip():
            found.append((start, end))
            fence, start = "", end
        elif not fence and mark and not (mark["mark"][0] == "`" and "`" in mark["rest"]):
            found += _inline(text, start, at)
            fence, start = mark["mark"], at
        at = end
    if fence:
        found.append((start, len(text)))
    else:
        found += _inline(text, start, len(text))
    return found


def _inline(text: str, first: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of code between backticks, paragraph by paragraph."""
    for paragraph in re.compile(r"(?:[^\n]|\n(?!\s*\n))+").finditer(text, first, end):
        runs = list(_TICKS.finditer(text, paragraph.start(), paragraph.end()))
        by_length: dict[int, list[int]] = {}
        for number, run in enumerate(runs):
            by_length.setdefault(len(run[0]), []).append(number)
        number = 0
        while number < len(runs):
            same = by_length[len(runs[number][0])]
            while same and same[0] <= number:
                same.pop(0)
            if same:
                yield runs[number].start(), runs[same[0]].end()
                number = same[0]
            number += 1
