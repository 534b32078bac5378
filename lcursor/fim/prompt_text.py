"""A prompt as text, for a server that tokenizes it itself.

The layout is that of `prompt.py`, with the spellings of markers instead of their ids. Without the
tokenizer, budgets are estimated. The window before the cursor moves in the same steps, so that the
server finds the beginning of the prompt in its cache. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lcursor.fim.families import FAMILIES, Family, parts
from lcursor.fim.files import File, file_top_budget, other_files_budget
from lcursor.fim.prompt import Source, first_line_within, next_anchor, top_of_file

CHARS_PER_TOKEN = 3.2
"""Estimate for source code, on the low side: a prompt must not exceed its budget."""

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
"""The form of special tokens in most vocabularies; a model has more of them than its markers."""


Piece = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class TextPrompt:
    """The text to send, and what the rules for the answer need.

    Attributes:
        pieces: the prompt as texts and markers; True marks a marker.
        stops: texts that end the answer, the most important first.
        prefix: the text before the cursor that is in the prompt, as it is in the buffer.
        suffix: the text after the cursor that is in the prompt.
    """

    pieces: tuple[Piece, ...]
    stops: tuple[str, ...]
    prefix: str
    suffix: str

    @property
    def text(self) -> str:
        """The text to send."""
        return _joined(self.pieces)


def family_of(model: str) -> Family | None:
    """Return a model's family by its name; None if the name does not match any."""
    name = re.sub(r"[\s_]+", "-", model.lower())
    if name in FAMILIES:
        return FAMILIES[name]
    return next((FAMILIES[family] for form, family in _NAMES if re.search(form, name)), None)


def tokens(text: str) -> int:
    """Estimate how many tokens a text has."""
    return -int(-len(text) // CHARS_PER_TOKEN)


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
        prefix_tokens: estimated most tokens of text before the cursor.
        suffix_tokens: estimated most tokens of text after the cursor.
        single_line: end at a newline.
        files: pieces of other files; ignored if the template has no place for them.
        files_tokens: estimated most tokens of these and of the file's own imports together.
    """
    marks = _marks(family)
    prefix, start = _before(source, _chars(prefix_tokens))
    suffix = _after(source.suffix, _chars(suffix_tokens))
    others = _files(files, family, marks, _chars(other_files_budget(files_tokens)))
    top = _files(top_of_file(source, start), family, marks, _chars(file_top_budget(files_tokens)))
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
    """Cut an answer at the first stop text in it, for servers that do not.

    Args:
        written: the answer so far.
        stops: see `TextPrompt.stops`.
        is_done: whether it is complete; else an end that may become a marker is held back.

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
    """Replace the markers in a text by a harmless spelling.

    The server would tokenize each of them as the marker itself, and there is no way to escape one:
    a file about FIM models would end its own prompt. The signs around the name are in no marker, so
    that no new marker can arise with the text beside it.
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


def _files(
    files: Sequence[File], family: Family, marks: re.Pattern[str], budget: int
) -> list[Piece]:
    """Return files in the family's template, as many as fit."""
    made: list[Piece] = []
    if not family.file or "{files}" not in family.project:
        return made
    for file in files:
        path = [(_plain(file.path, marks), False)]
        around = _joined(_fill(family.file, family, {"path": path, "code": []}))
        code = _whole_lines(file.text, budget - len(around))
        if code:
            filled = {"path": path, "code": [(_plain(code, marks), False)]}
            made += _fill(family.file, family, filled)
            budget -= len(around) + len(code)
        if len(code) < len(file.text):
            break
    return made


def _before(source: Source, budget: int) -> tuple[str, int]:
    """Return the text before the cursor that fits, and its first line in the source."""
    lines = source.prefix.split("\n")
    start = first_line_within(lines, 0, budget + 1)  # which counts a newline behind the last line
    start = next_anchor(start, source.first_row, len(lines))
    kept = "\n".join(lines[start:])
    return kept[max(len(kept) - budget, 0) :], start


def _after(suffix: str, budget: int) -> str:
    """Return the complete lines after the cursor that fit, or the beginning of a long line."""
    return _whole_lines(suffix, budget) or suffix[:budget]


def _whole_lines(text: str, budget: int) -> str:
    if len(text) <= budget:
        return text
    end = text.rfind("\n", 0, max(budget, 0) + 1)
    return text[:end] if end > 0 else ""


def _chars(budget: int) -> int:
    return int(budget * CHARS_PER_TOKEN)
