"""The families of next-edit models: the format of their prompts and answers. Pure; any thread.

Sweep (`sweepai/sweep-next-edit-0.5B`, `-1.5B`): the publisher's script `run_model.py`. Each edit is
a pseudo-file with the old and the new lines, then come the window before the last edit, the window
now, and the header of the window after the next edit, without a line end. Not said there: whether
old and new lines have context (here: none), whether the last edit is among them (here: only if it
is outside of the window, as in the publisher's example), and that the window has 21 lines, which
is in the publisher's post.

Zeta 2.1 (`zed-industries/zeta-2.1`): the format V0318SeedMultiRegions of Zed's crate `zeta_prompt`.
The text after the window comes first; the window is divided by numbered markers, and the answer
starts and ends with the markers between which it replaces the text. Not known: the example of the
model's card has a line end after each marker and no hunk headers, unlike the crate, which this
follows; answers of both forms are read. The window is as long as Zed's, but Zed extends it to whole
syntax nodes, and writes the name of the project's folder before each path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import unified_diff
from itertools import accumulate
from types import MappingProxyType
from typing import Final, NamedTuple

from lcursor.next_edit.records import Edit, Lines, Texts
from lcursor.next_edit.window import EditStep, WindowPrompt, steps, without_returns

MAX_EDITS: Final = 6
SWEEP_ROWS: Final = 10
"""Rows above and below the cursor's."""
# A surrogate is a byte that is not UTF-8, which a request cannot contain either.
SWEEP_MARKER: Final = re.compile(r"<\|\w+\|>|[\ud800-\udfff]")
ZETA_BYTES, ZETA_CONTEXT_BYTES = 350 * 3, 150 * 3
"""Of the window, and of the lines around it."""
ZETA_CONTEXT_ROWS: Final = 3
"""Unchanged lines around an edit."""
MIN_BLOCK, MAX_BLOCK, MAX_SHIFT = 6, 16, 5
"""Lines between two markers, and by how many lines one moves to a better place."""
ZETA_MARKER: Final = re.compile(r"<\|\w+\|>|<\[[^\s<>]+\]>|<filename>|[\ud800-\udfff]")
ZETA_NUMBER: Final = re.compile(r"<\|marker_(\d+)\|>")
ZETA_END: Final = "<[end▁of▁sentence]>"
CURSOR: Final = "<|user_cursor|>"

Build = Callable[[Texts, Sequence[Edit], str, int, int], WindowPrompt | None]
Parse = Callable[[str, Lines], Lines | None]


class Family(NamedTuple):
    """A format of prompts and answers."""

    prompt: Build
    """Builds the prompt of a window, from the current texts, the last edits (oldest first), the
    path, and the cursor's row and column (in characters); None if the text contains markers."""
    parse: Parse
    """Returns the new lines of the window, from a complete answer and the old lines; None if it is
    not understood. Lines have no carriage returns."""


def sweep_prompt(
    texts: Texts, edits: Sequence[Edit], path: str, row: int, column: int
) -> WindowPrompt | None:
    """Build a prompt for Sweep; see `Family.prompt`."""
    lines, made = without_returns(texts[path]), steps(texts, edits, MAX_EDITS)
    first, end = max(row - SWEEP_ROWS, 0), min(row + SWEEP_ROWS + 1, len(lines))
    original = current = lines[first:end]
    if made and made[-1].edit.path == path:
        last = made[-1]
        original = last.before[last.row_before(first) : last.row_before(end)]
        if original != current:
            del made[-1]
    parts: list[str] = []
    for step in made:
        parts += [f"<|file_sep|>{step.edit.path}.diff", "original:", *_joined(step.edit.old)]
        parts += ["updated:", *_joined(step.edit.new)]
    parts += [f"<|file_sep|>original/{path}", *_joined(original)]
    parts += [f"<|file_sep|>current/{path}", *_joined(current), f"<|file_sep|>updated/{path}"]
    text = "\n".join(parts)
    if len(SWEEP_MARKER.findall(text)) != len(made) + 3:
        return None
    return WindowPrompt(text, first, end, ("<|file_sep|>", "<|endoftext|>"))


def sweep_parse(answer: str, old: Lines) -> Lines | None:
    """Read an answer of Sweep; see `Family.parse`."""
    text = answer.removeprefix("\n").removesuffix("\n")
    return without_returns(tuple(text.split("\n"))) if text.strip() else None


def zeta_prompt(
    texts: Texts, edits: Sequence[Edit], path: str, row: int, column: int
) -> WindowPrompt | None:
    """Build a prompt for Zeta 2.1; see `Family.prompt`."""
    lines, made = without_returns(texts[path]), steps(texts, edits, MAX_EDITS)
    first, end = _grown(lines, row, row + 1, ZETA_BYTES)
    top, bottom = _grown(lines, first, end, _bytes(lines[first:end]) + ZETA_CONTEXT_BYTES)
    window = lines[first:end]
    starts = list(accumulate([len(line) + 1 for line in window], initial=0))
    cursor = starts[row - first] + column
    borders = [starts[at] for at in _borders(window)]
    history, after = "".join(map(_event, made)), _text(lines[end:bottom]) or "\n"
    text = "".join(
        [
            f"<[fim-suffix]>{after}<[fim-prefix]>",
            f"<filename>edit_history\n{history}\n" if history else "",
            f"<filename>{path}\n{_text(lines[top:first])}",
            _marked(_text(window), borders, cursor),
            "\n<[fim-middle]>",
        ]
    )
    expected = 3 + (2 if history else 1) + len(borders) + 1
    if len(ZETA_MARKER.findall(text)) != expected:
        return None
    return WindowPrompt(text, first, end, (ZETA_END,))


def zeta_parse(answer: str, old: Lines) -> Lines | None:
    """Read an answer of Zeta 2.1; see `Family.parse`."""
    text = answer.partition(ZETA_END)[0].replace(CURSOR, "")
    before, *parts = ZETA_NUMBER.split(text)
    numbers, contents = [int(part) for part in parts[::2]], parts[1::2]
    if text.strip() == "NO_EDITS" or (len(numbers) > 1 and numbers[0] == numbers[-1]):
        return old
    if len(numbers) < 2 or before.strip() or contents[-1].strip():
        return None
    borders = _borders(old)
    is_known = numbers[0] > 0 and numbers[-1] <= len(borders)
    if not is_known or numbers != list(range(numbers[0], numbers[-1] + 1)):
        return None
    start, stop = borders[numbers[0] - 1], borders[numbers[-1] - 1]
    new: Lines = ()
    for at, content in zip(borders[numbers[0] - 1 :], contents[:-1], strict=False):
        if content.startswith("\n") and old[at].strip():
            content = content[1:]
        if content:
            new += without_returns(tuple(content.removesuffix("\n").split("\n")))
    return old[:start] + new + old[stop:]


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "sweep": Family(sweep_prompt, sweep_parse),
        "zeta2.1": Family(zeta_prompt, zeta_parse),
    }
)
_NAMES: Final = ((r"sweep", "sweep"), (r"zeta[-_. ]?2[-_.]1", "zeta2.1"))


def family_of(model: str) -> str:
    """Return the name of a model's family by the model's name; "" if none matches."""
    name = model.lower()
    return next((family for form, family in _NAMES if re.search(form, name)), "")


def _joined(lines: Lines) -> list[str]:
    """Return lines for a prompt; no lines are an empty one."""
    return list(lines) or [""]


def _text(lines: Lines) -> str:
    return "".join(f"{line}\n" for line in lines)


def _bytes(lines: Lines) -> int:
    return len(_text(lines).encode("utf-8", "surrogateescape"))


def _grown(lines: Lines, first: int, end: int, budget: int) -> tuple[int, int]:
    """Extend rows upwards and downwards by turns, as far as a number of bytes allows."""
    left, can_rise, can_sink = budget - _bytes(lines[first:end]), True, True
    while can_rise or can_sink:
        can_rise = can_rise and first > 0 and _bytes(lines[first - 1 : first]) <= left
        if can_rise:
            first -= 1
            left -= _bytes(lines[first : first + 1])
        can_sink = can_sink and end < len(lines) and _bytes(lines[end : end + 1]) <= left
        if can_sink:
            left -= _bytes(lines[end : end + 1])
            end += 1
    return first, end


def _borders(lines: Lines) -> list[int]:
    """Return the rows of the markers: at the start, behind blank lines, and at the end."""
    borders, row = [0], 0
    while row < len(lines):
        size = row - borders[-1]
        rows = range(row, min(row + MAX_SHIFT, len(lines)))
        target = next((at for at in rows if _can_begin(lines[at])), row)
        is_behind_blank = row > 0 and lines[row].strip() and not lines[row - 1].strip()
        has_room = len(lines) - target >= MIN_BLOCK
        if (size >= MIN_BLOCK and is_behind_blank and has_room) or size >= MAX_BLOCK:
            borders.append(target)
            row = target
        row += 1
    return [*borders, len(lines)] if borders[-1] != len(lines) else borders


def _can_begin(line: str) -> bool:
    """Return whether a block may begin with a line: not with the end of another."""
    text = line.strip()
    ends = {"break", "continue", "return", "throw", "end"}
    return bool(text) and text[0] not in "}])" and text.rstrip(";") not in ends


def _marked(text: str, borders: Sequence[int], cursor: int) -> str:
    """Return a text with markers; a cursor at a border is before its marker."""
    pieces, is_placed = [], False
    for number, start in enumerate(borders, 1):
        pieces.append(f"<|marker_{number}|>")
        end = borders[number] if number < len(borders) else start
        if not is_placed and start <= cursor <= end:
            pieces += [text[start:cursor], CURSOR, text[cursor:end]]
            is_placed = True
        else:
            pieces.append(text[start:end])
    return "".join(pieces)


def _event(step: EditStep) -> str:
    """Return an edit as a unified diff."""
    edit = step.edit
    top = max(edit.row - ZETA_CONTEXT_ROWS, 0)
    old = step.before[top : edit.row + len(edit.old) + ZETA_CONTEXT_ROWS]
    new = step.after[top : edit.row + len(edit.new) + ZETA_CONTEXT_ROWS]
    hunk = list(unified_diff(old, new, lineterm="", n=len(old)))[3:]
    lines = [
        *(["// User accepted prediction:"] if edit.is_accepted else []),
        f"--- a/{edit.path}",
        f"+++ b/{edit.path}",
        f"@@ -{top + 1},{len(old)} +{top + 1},{len(new)} @@",
        *hunk,
    ]
    return _text(tuple(lines))
