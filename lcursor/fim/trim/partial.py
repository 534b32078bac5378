"""Find the part of an unfinished line that is worth showing.

A line is unfinished while it is generated, and stays so if the model becomes uncertain or a budget
runs out. The visible part must make sense on its own: it ends after a closed bracket or string, a
complete operand or the colon of a block, never after an operator or inside a name, a string or a
bracket that it opens. It is short only if it completes a name.
"""

from __future__ import annotations

import re

from lcursor.fim.trim import syntax
from lcursor.fim.trim.cursor import CursorContext
from lcursor.fim.trim.syntax import OPENER

MIN_VISIBLE = 7
"""Minimum characters of an unfinished line that are worth showing."""
MIN_REST = 4
"""The same, if the first of them complete a name that the user has begun."""

_NEEDS_MORE = re.compile(
    r"(?:and|as|assert|async|await|begin|case|catch|chan|class|const|continue|def|default|defer"
    r"|del|delete|dyn|elif|else|elseif|elsif|enum|except|export|extends|extern|final|finally|fn"
    r"|for|foreach|from|func|function|global|go|goto|if|impl|implements|import|in|inline"
    r"|instanceof|interface|is|lambda|let|local|loop|match|mod|module|mut|namespace|new"
    r"|nonlocal|not|of|or|package|private|protected|pub|public|raise|range|readonly|ref|return"
    r"|sizeof|static|struct|super|switch|template|throw|trait|try|type|typedef|typeof|union"
    r"|unless|unsafe|until|use|using|val|var|virtual|void|volatile|where|while|with|yield)"
)
"""Keywords of any language that need a following text."""

_INFIX = r"(?:and|as|do|else|for|if|in|instanceof|is|not|of|or|then|unless|until|while)\b"

_ASSIGNMENT = re.compile(r"\s*(?:(?:[-+*/%&|^@.?]|<<|>>|\*\*|//|\|\||&&|\?\?|\.\.)?=(?!=)|:)")
"""Text after the left side of an assignment, a named argument, a key, or an annotated name."""

_BEHIND_OPERAND = re.compile(
    r"\s*[\n\r)\]},;]"
    r"|\s*[-+/%^]{1,2}[\s\w(\"']|\s+[-+/%^]$"
    r"|\s+[*&|]{1,2}\s|[*&]{1,2}[\s\w(]|\s*(?:\|\||&&)"  # `char *x`, `int &x`, `|x|` differ
    r"|\s*[=!~]=|\s*[<>]=|\s+(?:<<?|>>?)(?:\s|$)"
    r"|\s*\.\.[\s\w\"']|\s+\.\.$"
    r"|\s+(?:#|//|--)"
    r"|\s+" + _INFIX
)
"""Text that proves that the name or number before it is a complete operand."""

_BEHIND_BEGUN_NAME = re.compile(r"[\s()\[\]{},;.:=?+*/%&|^~\"'`-]|!=|[<>]=")
"""Text that proves that a partly typed name is complete."""

_BEHIND_PROSE = re.compile(r"[^\w\s]*(?:\s|$)")
"""Text that proves that a word of a comment or docstring is complete."""

_BLOCK = re.compile(
    r"\s*(?:async|case|class|def|elif|else|except|finally|for|if|match|try|while|with)\b"
)
_LABEL = re.compile(r"\s*(?:case\b|default\s*:)")
_LOOP_NAME = re.compile(r"\bfor\b(?!.*\b(?:in|of)\b)[^=;]*$")
_ONLY_A_NAME = re.compile(r"\s*[\w.$@]+$")
_TYPE_ARGUMENT = re.compile(r"\w<[^<>()=;]*$")
_OPENS_BLOCK = re.compile(r"(?:\bfunction\b.*\)|[-=]>)\s*$")
"""A line with an open bracket in which a block without braces follows."""


def find_end(text: str, cursor: CursorContext, behind: str = "") -> int:
    """Return the length of the longest part of an unfinished text that is worth showing; 0 if none.

    Args:
        text: the text that may be shown; only its last line is unfinished.
        behind: text that follows, which determines whether the last word is complete.
    """
    start = text.rfind("\n") + 1
    whole = text + behind
    is_begun = not start and _is_word(cursor.line[-1:]) and _is_word(text[:1])
    least = MIN_REST if is_begun else MIN_VISIBLE
    for end in range(len(text), start, -1):
        if len(whole[start:end].strip()) < least:
            return 0
        if _is_sensible(whole[:end], whole[end:], cursor):
            return end
    return 0


def cut(text: str, cursor: CursorContext, behind: str = "") -> str:
    """Return the part to keep of a text whose last line stays unfinished.

    These are the complete lines or, of a single line, the part that is worth showing.
    """
    lines = text.rpartition("\n")[0]
    return lines if lines.strip() else text[: find_end(text, cursor, behind)]


def ends_in_call(text: str, cursor: CursorContext, rest: str) -> bool:
    """Return whether a text of complete lines ends inside a call or string that it opens.

    Args:
        rest: text of the last line that follows.
    """
    found = cursor.scan(text + rest)
    if _is_own_string(found, cursor):
        return True
    opened = syntax.unclosed_marks(found.marks) if cursor.syntax.pairs else []
    own = [mark for mark in opened if mark[0] < len(text)]
    if not own or own[-1][1] != "(" or _OPENS_BLOCK.search(text[own[-1][0] :].partition("\n")[0]):
        return False
    is_closed_below = ")" in cursor.next_line and ")" not in cursor.missing(found.marks)
    return not is_closed_below


def _is_own_string(found: syntax.Scan, cursor: CursorContext) -> bool:
    is_string = found.inside not in {"", cursor.syntax.comment}
    return is_string and found.since >= 0


def _is_sensible(before: str, after: str, cursor: CursorContext) -> bool:
    """Whether the text makes sense if it ends between these two parts."""
    last = before[-1]
    is_word = _is_word(last)
    if last.isspace() or (is_word and (not after or _is_word(after[0]))):
        return False
    line, found = cursor.line + before, cursor.scan(before)
    if _is_own_string(found, cursor):
        return False
    if found.inside and (found.inside == cursor.syntax.comment or len(found.inside) == 3):
        return is_word and bool(_BEHIND_PROSE.match(after))
    if not found.inside and cursor.syntax.pairs and syntax.unclosed(found.marks):
        return False
    if is_word and _is_word(cursor.line[-1:]) and all(map(_is_word, before)):
        return not _NEEDS_MORE.fullmatch(_last_word(line)) and bool(_BEHIND_BEGUN_NAME.match(after))
    is_closed = last in OPENER or last in cursor.syntax.quotes
    # It was shown before the `=` was known, and stays if generation ends right behind that.
    is_all = is_closed and after.endswith("\n") and _ASSIGNMENT.fullmatch(after.rstrip())
    if found.inside or (_ASSIGNMENT.match(after) and not is_all):
        return False
    if is_closed:
        return not after.startswith("(")
    if last == ";" or not cursor.syntax.pairs:
        return is_word or last == ";"
    own_line = line[line.rfind("\n") + 1 :]
    if last == ":":
        opener = _BLOCK if cursor.syntax.comment == "#" else _LABEL
        marks = syntax.scan(line, cursor.syntax, cursor.inside).marks
        return bool(opener.match(own_line)) and not syntax.unclosed(marks)
    if not is_word:
        return bool(re.search(r"[\w)\]](?:\+\+|--)$", before))
    if _NEEDS_MORE.fullmatch(_last_word(line)) or _ONLY_A_NAME.match(own_line):
        return False
    if re.match(r"\s*,|\s+(?:in|of)\b", after) and _LOOP_NAME.search(own_line):
        return False
    return bool(_BEHIND_OPERAND.match(after)) and not _TYPE_ARGUMENT.search(own_line)


def _is_word(char: str) -> bool:
    return char.isalnum() or char in {"_", "$"}


def _last_word(line: str) -> str:
    found = re.search(r"[\w$]+$", line)
    return found[0] if found else ""
