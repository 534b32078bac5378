"""Rules that rewrite single lines: the space at the cursor, trailing comments, indentation.

Each rule is monotonic: its result for the start of a text is the start of its result for the whole
text.
"""

from __future__ import annotations

import re

from lcursor.fim.trim.cursor import CursorContext

MIN_ECHO = 4
MAX_ECHO = 80
"""Minimum characters; see `without_echo`."""


def clean(text: str, cursor: CursorContext) -> tuple[str, bool]:
    """Apply all rules; return the text and whether a comment was removed from its last line."""
    text = without_echo(without_seam(on_next_line(text, cursor), cursor), cursor)
    text, is_cut = without_comments(text, cursor)
    return indented(text, cursor), is_cut


def on_next_line(text: str, cursor: CursorContext) -> str:
    """Insert a missing newline between the opening line of a block and the block.

    Many tokenizers have one token for the end of the opening line and the newline: `):\\n`. After a
    prompt that ends in `):` the model may therefore continue with the indentation. Token healing
    avoids that, but only after the vocabulary is read, and not on servers.
    """
    blanks = text[: len(text) - len(text.lstrip(" \t"))]
    is_indented = len(blanks) > 1 or blanks == "\t"
    if not is_indented or text[len(blanks) :][:1] in {"", "\n", "\r"} or not cursor.opens_block:
        return text
    own = cursor.line[: len(cursor.line) - len(cursor.line.lstrip(" \t"))]
    is_deeper = blanks.startswith(own) and len(blanks) > len(own)
    indent = blanks if is_deeper else own + (cursor.indent or blanks)
    return cursor.newline + indent + text[len(blanks) :]


def without_seam(text: str, cursor: CursorContext) -> str:
    """Remove a single leading space if the cursor's line ends in one; several are intended.

    In an empty line, remove it only if the indentation would become odd.
    """
    is_one = len(text) - len(text.lstrip(" \t")) == 1 and text[0] == " "
    if not is_one or not cursor.line[-1:].isspace():
        return text
    is_odd = "\t" not in cursor.line and len(cursor.line) % 2 == 0
    return text[1:] if is_odd or cursor.line.strip() else text


def without_echo(text: str, cursor: CursorContext) -> str:
    """Remove a repetition of the end of the cursor's line at the start of the text.

    Small models often repeat the text that was just typed: `i <= #list` after `while i <= `. Real
    lines repeat an operator and a name like this at one of 3,000 cursors.
    """
    echoes = [
        cursor.line[at:]
        for at in range(_first_echo(cursor.line), len(cursor.line))
        if _is_echo(cursor.line, at)
    ]
    if any(echo.startswith(text) and echo != text for echo in echoes):
        return ""
    return text[max((len(echo) for echo in echoes if text.startswith(echo)), default=0) :]


def _first_echo(line: str) -> int:
    indent = len(line) - len(line.lstrip())
    return max(indent, len(line) - MAX_ECHO)


def _is_echo(line: str, at: int) -> bool:
    """Return whether the rest is long enough, has a name and an operator, and splits no name."""
    echo = line[at:]
    return (
        len(echo) >= MIN_ECHO
        and re.search(r"\w", echo) is not None
        and re.search(r"[^\w\s]", echo) is not None
        and re.match(r"\w\w", line[at - 1 : at + 1] if at else "") is None
    )


def without_comments(text: str, cursor: CursorContext) -> tuple[str, bool]:
    """Remove comments after code, unless the file usually has them."""
    if not cursor.comment or cursor.comment not in text:
        return text, False
    cleaned, done, is_last = "", 0, False
    for at, sign in cursor.marks(text):
        if sign != cursor.comment or text.startswith("--[", at):  # Lua's may end within the line
            continue
        start = text.rfind("\n", 0, at) + 1
        code = text[start:at]
        if not (code if start else cursor.line + code).strip():
            continue
        end = text.find("\n", at)
        is_last = end < 0
        cleaned += text[done : start + len(code.rstrip())]
        done = len(text) if is_last else end
    return cleaned + text[done:], is_last


def without_beginning_of_comment(line: str, cursor: CursorContext) -> str:
    """Remove the end of an unfinished line that may become the start of a comment."""
    for size in range(len(cursor.comment) - 1, 0, -1):
        if line.endswith(cursor.comment[:size]) and (cursor.line + line)[:-size][-1:].isspace():
            return line[:-size]
    return line


def indented(text: str, cursor: CursorContext) -> str:
    """Convert the indentation to the tabs or spaces that the file uses."""
    if not cursor.indent or "\n" not in text:
        return text
    first, *others = text.split("\n")
    if cursor.indent != "\t":
        step = cursor.indent
        others = [re.sub(r"^\t+", lambda tabs: step * len(tabs[0]), line) for line in others]
    else:
        width = _width(others, len(cursor.line) - len(cursor.line.lstrip("\t")))
        others = [
            re.sub(r"^ +", lambda blanks: "\t" * (len(blanks[0]) // width), line) for line in others
        ]
    return "\n".join([first, *others])


def _width(lines: list[str], depth: int) -> int:
    """Return the number of spaces that the text uses for a tab, by its first indented line."""
    for line in lines:
        blanks = len(line) - len(line.lstrip(" "))
        if blanks and line.strip():
            likely = (width for width in (4, 2, 8, 3) if blanks // width in {depth, depth + 1})
            return next((width for width in likely if blanks % width == 0), 4)
    return 4
