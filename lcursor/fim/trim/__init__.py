"""After the model: where a suggestion ends, what of it is said, and what may be shown yet.

Functions of text, and one small state: `Suggestion` makes sure that what is shown only ever grows.
The rules, by room:

| room | rule | what it does |
| --- | --- | --- |
| clean | on_next_line | a block begins below the line that opens it |
| clean | without_seam | no second blank behind a blank; no odd depth in an empty line |
| clean | without_comments | no comment behind code, unless the file has that habit |
| clean | indented | tabs in a file of tabs, spaces in a file of spaces |
| stops | marker | ends at a code fence or at words for the end of the file |
| stops | too_many | one line when asked for, else `max_lines` |
| stops | out_of_scope | ends where the indentation leaves the scope; one closing line may |
| stops | spare_closer | ends at a bracket that the text did not open and nobody wants |
| stops | next_line_again | ends at the next line of the file, blanks and quotes aside |
| stops | line_above_again | nothing where it is the long line above |
| stops | third_time | the same line three times in a row |
| stops | block_again | the same block twice in a row |
| stops | line_in_circles | a line whose end repeats itself |
| stops | second_blank | two blank lines |
| stops | drop_closed_below | no last line that closes what the next line closes |
| rest | settle | text right of the cursor is not said twice: cut, or replaced |
| partial | find_end | an unfinished line ends where it makes sense |

`shown` is what is certain while the model still writes: what a rule may yet take back is held back.
Left out of what others do: a least length and the time limit (the gate and the engine have them),
and distances in letters between lines (they take rows of a table for repetitions).
"""

from __future__ import annotations

from lcursor.fim.trim import partial, rest, stops
from lcursor.fim.trim.clean import clean, without_beginning_of_comment
from lcursor.fim.trim.cursor import CursorContext, cursor_context
from lcursor.fim.trim.partial import cut

__all__ = ["CursorContext", "Suggestion", "cursor_context", "cut", "ended", "finish", "shown"]


class Suggestion:
    """What a person may see of a text while it is written: it only ever grows.

    Args:
        cursor: the text around the cursor.

    Attributes:
        text: all that may be seen.
        replaces: bytes right of the cursor that the text takes the place of; known at the end.
    """

    def __init__(self, cursor: CursorContext) -> None:
        self._cursor = cursor
        self.text = ""
        self.replace_bytes = 0

    def grow(self, written: str, behind: str = "") -> bool:
        """Take all text so far; return whether there is more to see.

        Args:
            written: what may be shown.
            behind: what is known to follow and may not be shown yet.
        """
        visible = shown(written, self._cursor, behind)
        has_grown = len(visible) > len(self.text) and visible.startswith(self.text)
        if has_grown:
            self.text = visible
        return has_grown

    def finish(self, written: str) -> str:
        """Take the whole text; return what remains to be seen."""
        final, replace_bytes = finish(written, self._cursor)
        if final.startswith(self.text):
            self.text, self.replace_bytes = final, replace_bytes
        return self.text


def ended(text: str, cursor: CursorContext) -> bool:
    """Whether a rule says that nothing more is wanted behind `text`."""
    return _judge(text, cursor)[1]


def shown(text: str, cursor: CursorContext, behind: str = "") -> str:
    """Return the part of an unfinished text that is worth showing and that no rule can take back.

    The first line grows from one sensible end to the next, except while it may still become
    something that a rule takes away; a later line counts when it is whole.

    Args:
        text: what may be shown.
        cursor: the text around the cursor.
        behind: what is known to follow `text`.
    """
    judged, is_over = _judge(text, cursor)
    if is_over:
        final, replace_bytes = finish(text, cursor)
        return rest.held_back(final, cursor).rstrip() if replace_bytes else final
    if "\n" in judged:
        body = judged[: judged.rindex("\n")]
        lines = (cursor.line + body).split("\n")
        lines = stops.drop_closed_below(stops.without_begun_block(lines), cursor)
        return rest.settle("\n".join(lines)[len(cursor.line) :], cursor)[0].rstrip()
    if stops.may_repeat(cursor.line + judged, cursor):
        return ""
    certain = rest.held_back(without_beginning_of_comment(judged, cursor), cursor).rstrip()
    # Where a rule ended the line, its last word is complete.
    follows = (judged + (behind if text.endswith(judged) else "\n"))[len(certain) :]
    return certain[: partial.find_end(certain, cursor, follows)]


def finish(text: str, cursor: CursorContext) -> tuple[str, int]:
    """Return what of a finished text is worth showing, "" for nothing.

    Returns:
        The text, and how many bytes right of the cursor it takes the place of.
    """
    judged, _ = _judge(text.rstrip() + "\n", cursor)
    lines = stops.drop_closed_below((cursor.line + judged).split("\n"), cursor)
    kept, replace_bytes = rest.settle("\n".join(lines)[len(cursor.line) :], cursor)
    kept = kept.rstrip()
    return (kept, replace_bytes) if kept.strip() else ("", 0)


def _judge(text: str, cursor: CursorContext) -> tuple[str, bool]:
    """Return the text as far as the rules let it go, and whether one of them ended it."""
    text, is_comment = clean(text, cursor)
    end = stops.end(text, cursor)
    first, newline, _ = text.partition("\n")
    # A spare bracket ends a line only when it is whole: see `stops.unmatched_closer`.
    is_cut = end < len(text) and (text[end] not in ")]}" or "\n" in text[end:])
    is_over = is_cut or (is_comment and cursor.single_line)
    return text[:end], is_over or (not newline and stops.is_looping(first))
