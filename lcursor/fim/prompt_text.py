"""A prompt as text, for a server that tokenizes it itself.

The layout is that of `prompt.py`, with the spellings of markers where that has their ids. Pure.
Without the tokenizer, budgets are estimated. The window before the cursor moves in
the same steps, so that the server finds the beginning of the prompt in its cache.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lcursor.fim.families import FAMILIES, Family, parts
from lcursor.fim.files import File, imports_of, room_for_files, room_for_top
from lcursor.fim.prompt import STEP_LINES, Source

CHARS_A_TOKEN = 3.2
"""Of source code, on the low side: a prompt must not come out longer than it may be."""

_NAMES: tuple[tuple[str, str], ...] = (
    (r"qwen-?3.*coder", "qwen3-coder"),
    (r"qwen-?2.*coder", "qwen2.5-coder"),
    (r"star-?coder", "starcoder2"),
    (r"granite", "granite"),
    (r"code-?gemma", "codegemma"),
    (r"deepseek.*coder|deepseek-v2", "deepseek-coder-v2"),
    (r"code-?llama", "codellama"),
    (r"codestral", "codestral"),
    (r"mellum", "mellum"),
    (r"seed-?coder", "seed-coder"),
)
_CHAT_MARKER = r"<[|｜][^<>|｜\s]{1,40}[|｜]>"
"""The form of special tokens in most vocabularies; a model has more than its family needs."""


Piece = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class TextPrompt:
    """What is sent, and what the rules after the model need to know.

    Attributes:
        pieces: the prompt, in texts and whole markers; True marks a marker.
        stops: texts that end the answer, the most needed first.
        prefix: what of the text before the cursor is in it, as it is in the buffer.
        suffix: what of the text after it.
    """

    pieces: tuple[Piece, ...]
    stops: tuple[str, ...]
    prefix: str
    suffix: str

    @property
    def text(self) -> str:
        """What is sent."""
        return _joined(self.pieces)


def family_of(model: str) -> Family | None:
    """Find a model's family by its name; None when the name says nothing."""
    name = re.sub(r"[\s_]+", "-", model.lower())
    if name in FAMILIES:
        return FAMILIES[name]
    return next((FAMILIES[family] for form, family in _NAMES if re.search(form, name)), None)


def tokens(text: str) -> int:
    """Estimate how many tokens a text has."""
    return -int(-len(text) // CHARS_A_TOKEN)


def text(
    source: Source,
    family: Family,
    *,
    prefix_tokens: int,
    suffix_tokens: int,
    single_line: bool = False,
    files: Sequence[File] = (),
    files_tokens: int = 0,
) -> TextPrompt:
    """Lay out a prompt in the family's order.

    Args:
        source: text around the cursor.
        family: its template and markers.
        prefix_tokens: most tokens of text before the cursor, about.
        suffix_tokens: most tokens of text after it.
        single_line: end at a newline.
        files: pieces of other files, where the family has a place for them.
        files_tokens: most tokens of them and of the file's own top together.
    """
    marks = _marks(family)
    prefix, start = _before(source, _chars(prefix_tokens))
    suffix = _after(source.suffix, _chars(suffix_tokens))
    others = _slots(files, family, marks, _chars(room_for_files(files_tokens)))
    top = _slots(_top(source, start), family, marks, _chars(room_for_top(files_tokens)))
    filled = {
        "prefix": [(_plain(prefix, marks), False)],
        "suffix": [(_plain(suffix, marks), False)],
        "path": [(_plain(source.path or "untitled", marks), False)],
        "repo": [(_plain(source.repo or "project", marks), False)],
        "files": others + top,
    }
    line = ("\n",) if single_line else ()
    stops = dict.fromkeys([*line, *family.stops, *reversed(tuple(family.markers.values()))])
    pieces = _fill(family.project or family.single, family, filled)
    return TextPrompt(tuple(pieces), tuple(stops), prefix, suffix)


def before_stop(written: str, stops: Sequence[str], *, is_done: bool) -> tuple[str, bool]:
    """Cut an answer at the first stop in it, for servers that do not.

    Args:
        written: all that the server said.
        stops: see `TextPrompt.stops`.
        is_done: nothing more comes; else an end that may become a marker is held back.

    Returns:
        The text before it, and whether there was one.
    """
    found = [at for at in map(written.find, stops) if at >= 0]
    if found:
        return written[: min(found)], True
    if not is_done:
        longest = max(map(len, stops), default=0)
        for size in range(min(longest, len(written)), 0, -1):
            if any(stop.startswith(written[-size:]) for stop in stops):
                return written[:-size], False
    return written, False


def _marks(family: Family) -> re.Pattern[str]:
    known = sorted({*family.markers.values(), *family.stops}, key=len, reverse=True)
    return re.compile("|".join([*map(re.escape, known), _CHAT_MARKER]))


def _plain(text: str, marks: re.Pattern[str]) -> str:
    """Write the markers in a text in another way.

    The server reads each of them as the marker itself, and there is no way to escape one: a file
    about FIM models would end its own prompt. The signs put around the name are in no marker, so
    that no new one can come together from what stands beside it.
    """
    return marks.sub(lambda found: "‹" + re.sub(r"^\W+|\W+$", "", found[0]) + "›", text)


def _fill(template: str, family: Family, filled: Mapping[str, list[Piece]]) -> list[Piece]:
    made: list[Piece] = []
    for kind, value in parts(template):
        if kind == "marker":
            made.append((family.markers[value], True))
        else:
            made += filled[value] if kind == "field" else [(value, False)]
    return [piece for piece in made if piece[0]]


def _joined(pieces: Iterable[Piece]) -> str:
    return "".join(text for text, _ in pieces)


def _slots(files: Sequence[File], family: Family, marks: re.Pattern[str], room: int) -> list[Piece]:
    """Return files in the family's template, as many as there is room for."""
    made: list[Piece] = []
    if not family.file or "{files}" not in family.project:
        return made
    for file in files:
        path = [(_plain(file.path, marks), False)]
        around = _joined(_fill(family.file, family, {"path": path, "code": []}))
        code = _whole_lines(file.text, room - len(around))
        if code:
            filled = {"path": path, "code": [(_plain(code, marks), False)]}
            made += _fill(family.file, family, filled)
            room -= len(around) + len(code)
        if len(code) < len(file.text):
            break
    return made


def _top(source: Source, start: int) -> tuple[File, ...]:
    """Return the file's imports, where the window begins below them."""
    above = source.top.split("\n")[: source.first_row + start]
    if source.first_row == 0:
        above = source.prefix.split("\n")[:start]
    code = imports_of(above)
    return (File(source.path or "untitled", code),) if code else ()


def _before(source: Source, room: int) -> tuple[str, int]:
    """Return the text before the cursor that fits, and the line of the source where it begins."""
    lines = source.prefix.split("\n")
    start, size = 0, len(source.prefix)
    while size > room and start < len(lines) - 1:
        size -= len(lines[start]) + 1
        start += 1
    if start:
        anchored = -(-(source.first_row + start) // STEP_LINES) * STEP_LINES - source.first_row
        start = anchored if anchored < len(lines) else start
    kept = "\n".join(lines[start:])
    return kept[max(len(kept) - room, 0) :], start


def _after(suffix: str, room: int) -> str:
    """Return whole lines after the cursor that fit; of one that is too long, its beginning."""
    return _whole_lines(suffix, room) or suffix[:room]


def _whole_lines(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    end = text.rfind("\n", 0, max(room, 0) + 1)
    return text[:end] if end > 0 else ""


def _chars(budget: int) -> int:
    return int(budget * CHARS_A_TOKEN)
