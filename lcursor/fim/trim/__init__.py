"""Post-processing of generated text: where it ends, and which part to show.

Functions of text, and one small state: `Suggestion` makes sure that the visible text only grows.
The rules, by module:

| module | rule | what it does |
| --- | --- | --- |
| clean | on_next_line | a block starts below the line that opens it |
| clean | without_seam | no second space after a space; no odd depth in an empty line |
| clean | without_echo | does not repeat the text that was just typed |
| clean | without_comments | no comment after code, unless the file usually has them |
| clean | indented | tabs in a file of tabs, spaces in a file of spaces |
| stops | end_marker | ends at a code fence or at words for the end of the file |
| stops | too_many_lines | one line when asked for, else `max_lines` |
| stops | out_of_scope | ends where the indentation leaves the scope; one closing line may |
| stops | unreachable | ends at code below a `return`, `break` and the like of its block |
| stops | unmatched_closer | ends at a closing bracket that nothing opened |
| stops | repeats_next_line | ends at the next line of the file, ignoring spaces and quotes |
| stops | resembles_next_line | ends at a later line that is almost the next line of the file |
| stops | repeats_line_above | no repetition of the long line above |
| stops | triple_repeat | the same line three times in a row |
| stops | repeated_block | the same block twice in a row |
| stops | looping_line | ends at a line that repeats its own end |
| stops | double_blank | ends at two blank lines |
| stops | drop_closed_below | no last line that closes what the next line closes |
| rest | cut_or_replace | text right of the cursor is not repeated: cut, or replaced |
| partial | find_end | an unfinished line ends at a sensible point |
| partial | ends_in_call | no last line ends inside a call or string that the text opens |
| parses | may_continue | no last line with which the code before the cursor cannot be valid |

`shown` returns the certain part while the text is generated: it holds back text that a rule may
still remove. Unlike other tools, there is no minimum length of a line and no time limit here (the
confidence gate and the engine have them), and a first line is not compared by similarity (similar
rows of a table would count as repetitions).
"""

from __future__ import annotations

from lcursor.fim.trim import partial, rest, stops
from lcursor.fim.trim.clean import clean, without_beginning_of_comment
from lcursor.fim.trim.cursor import CursorContext, cursor_context
from lcursor.fim.trim.partial import cut

__all__ = ["CursorContext", "Suggestion", "cursor_context", "cut", "ended", "finish", "shown"]


class Suggestion:
    """The visible part of a text while it is generated; it only grows.

    Attributes:
        replace_bytes: bytes right of the cursor that the text replaces; known at the end.
    """

    def __init__(self, cursor: CursorContext) -> None:
        self._cursor = cursor
        self.text = ""
        self.replace_bytes = 0

    def grow(self, written: str, behind: str = "") -> bool:
        """Update the visible part; return whether it has grown.

        Args:
            written: all text so far that may be shown.
            behind: text that follows but may not be shown yet.
        """
        visible = shown(written, self._cursor, behind)
        has_grown = len(visible) > len(self.text) and visible.startswith(self.text)
        if has_grown:
            self.text = visible
        return has_grown

    def finish(self, written: str) -> str:
        """Return the final text, given the whole generated text."""
        final, replace_bytes = finish(written, self._cursor)
        if final.startswith(self.text):
            self.text, self.replace_bytes = final, replace_bytes
        return self.text


def ended(text: str, cursor: CursorContext) -> bool:
    """Whether a rule ends the suggestion at or before the end of `text`."""
    return _apply_rules(text, cursor)[1]


def shown(text: str, cursor: CursorContext, behind: str = "") -> str:
    """Return the part of an unfinished text that is worth showing and that no rule can remove.

    The first line grows from one sensible end to the next, unless a rule may still remove it; a
    later line is shown once it is complete.
    """
    allowed, is_over = _apply_rules(text, cursor)
    if is_over:
        final, replace_bytes = finish(text, cursor)
        return rest.held_back(final, cursor).rstrip() if replace_bytes else final
    if "\n" in allowed:
        body = allowed[: allowed.rindex("\n")]
        lines = (cursor.line + body).split("\n")
        lines = stops.drop_closed_below(stops.without_begun_block(lines), cursor)
        part = rest.cut_or_replace("\n".join(lines)[len(cursor.line) :], cursor)[0].rstrip()
        return _sound(part, cursor, cursor.rest)
    if stops.may_repeat(cursor.line + allowed, cursor):
        return ""
    # If a rule ended the line, its last word is complete.
    follows = behind if text.endswith(allowed) else "\n"
    line = without_beginning_of_comment(allowed, cursor)
    return _part(line, cursor, (allowed + follows)[len(line) :])


def finish(text: str, cursor: CursorContext) -> tuple[str, int]:
    """Return the part of a finished text to show, and the number of bytes that it replaces."""
    allowed, _ = _apply_rules(text.rstrip() + "\n", cursor)
    lines = stops.drop_closed_below((cursor.line + allowed).split("\n"), cursor)
    final, replace_bytes = rest.cut_or_replace("\n".join(lines)[len(cursor.line) :], cursor)
    final = final.rstrip()
    sound = _sound(final, cursor, "" if replace_bytes else cursor.rest)
    if not sound.strip():
        return "", 0
    return sound, replace_bytes if sound == final else 0


def _sound(text: str, cursor: CursorContext, behind: str) -> str:
    """Remove the end of a text of complete lines that may not be shown.

    These are last lines that end inside a call or string, or with which the code before the cursor
    cannot be valid; of a single line, what is left is the part that is worth showing.

    Args:
        behind: text of the last line that follows.
    """
    while text.strip():
        if not partial.ends_in_call(text, cursor, behind) and cursor.may_be_valid(text):
            return text
        lines = text.rpartition("\n")[0]
        if not lines.strip():
            return _part(text, cursor, "\n")
        text = rest.cut_or_replace(lines, cursor)[0].rstrip()  # as when it was the last line
    return ""


def _part(text: str, cursor: CursorContext, behind: str) -> str:
    """Return the part of an unfinished line that is worth showing, and valid."""
    certain = rest.held_back(text, cursor).rstrip()
    whole = text + behind
    end = partial.find_end(certain, cursor, whole[len(certain) :])
    while end and not cursor.may_be_valid(text[:end]):
        end = partial.find_end(text[: end - 1], cursor, whole[end - 1 :])
    return text[:end]


def _apply_rules(text: str, cursor: CursorContext) -> tuple[str, bool]:
    """Return the text up to where a rule ends it, and whether one did."""
    text, is_comment = clean(text, cursor)
    end = stops.end(text, cursor)
    first, newline, _ = text.partition("\n")
    # An unmatched bracket ends a line only when the line is complete: see `unmatched_closer`.
    is_cut = end < len(text) and (text[end] not in ")]}" or "\n" in text[end:])
    is_over = is_cut or (is_comment and cursor.single_line)
    return text[:end], is_over or (not newline and stops.is_looping(first))
