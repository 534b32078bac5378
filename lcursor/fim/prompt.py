"""Lay out a prompt: select parts of the file and of other files, and their order.

Pure functions of text; callers pass the tokenizer. If possible, the window before the cursor starts
at a line whose number is a multiple of `STEP_LINES`, so that typing does not change its start,
which would invalidate the KV cache. `context_ring.py` selects the other files.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lcursor.fim.families import Resolved, Tokenize, parts
from lcursor.fim.related import related_lines

STEP_LINES = 32
GROWTH = 4
"""While the user types, a small window grows to this many times its first size."""
MAX_HEADS, MAX_LINE_CHARS, MAX_LINES_TO_HEAD = 4, 100, 400
NEAR_LINES = 5
"""Number of lines above the cursor that determine related lines."""
MAX_CHARS_PER_TOKEN = 8
"""Limit of the tokenized text; code with more characters per token is very rare."""
TOP_LINES = 40

_CLOSES = re.compile(r"\s*([\])}#*]|//|--|(end|else|elif|except|finally|case|default)\b)")
_IMPORT = re.compile(
    r"(import|from|use|using|require|require_once|include|package|mod|extern|pub use)\b"
    r"|#\s*include\b|(local|const|let|var)\b.*\brequire\b|(library|source)\b"
)


@dataclass(frozen=True, slots=True)
class File:
    """Part of another file, with its path in the prompt."""

    path: str
    text: str


class SmallWindow(NamedTuple):
    """The budgets of a prompt that can be evaluated quickly.

    Attributes:
        prefix_tokens: tokens of the lines before the cursor, without headers of enclosing blocks.
        suffix_tokens: tokens after the cursor.
        lines_below: number of lines after the cursor's line.
        related_lines: number of other lines of the file, before all others, that share words with
            the cursor's line.
        related_tokens: tokens of these.
    """

    prefix_tokens: int
    suffix_tokens: int
    lines_below: int
    related_lines: int
    related_tokens: int


@dataclass(frozen=True, slots=True)
class Source:
    """The text around a cursor that the editor sent.

    Attributes:
        first_row: row of the first line of `prefix` in the file.
        top: the first lines of the file, if `prefix` does not start with them.
        root: absolute path of the folder that `path` is relative to; not part of a prompt.
    """

    prefix: str
    suffix: str
    first_row: int = 0
    path: str = ""
    repo: str = ""
    top: str = ""
    root: str = ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The tokens of a prompt; the model generates after the last one.

    Attributes:
        before: everything up to the cursor: names, and for an SPM family also the suffix.
        marker: the suffix marker if the suffix follows the cursor (PSM), else None.
        after: the suffix after the marker.
        middle: the tokens where generation starts; at most two.
        prefix: the text before the cursor that is in the prompt.
        suffix: the text after the cursor that is in the prompt.
    """

    before: tuple[int, ...]
    marker: int | None
    after: tuple[int, ...]
    middle: tuple[int, ...]
    prefix: str
    suffix: str

    @property
    def tokens(self) -> tuple[int, ...]:
        """All tokens, in the order in which the model evaluates them."""
        marker = () if self.marker is None else (self.marker,)
        return (*self.before, *marker, *self.after, *self.middle)


def build(
    source: Source,
    family: Resolved,
    tokenize: Tokenize,
    *,
    prefix_tokens: int,
    suffix_tokens: int,
    bos: int | None = None,
    files: Sequence[File] = (),
    files_tokens: int = 0,
) -> Prompt:
    """Lay out a prompt in the family's order.

    Args:
        tokenize: the model's tokenizer; buffer text is never tokenized as markers.
        prefix_tokens: maximum tokens of text before the cursor.
        suffix_tokens: maximum tokens of text after the cursor.
        bos: id of the first token, if the model requires one.
        files: chunks of other files in order; ignored if the template does not support them.
        files_tokens: maximum tokens of these, and of the file's own imports if the window starts
            below them.
    """
    prefix, before, start = _window_before(source, tokenize, prefix_tokens)
    suffix, after = _window_after(source.suffix, tokenize, suffix_tokens)
    others: list[int] = []
    if files_tokens and _takes_files(family):
        budget = other_files_budget(files_tokens)
        others = tokens_of_files(files, family, tokenize, budget)
        # The imports have a separate budget, so that the files before them are always truncated
        # in the same way.
        top = _top_of_file(source, start)
        others += tokens_of_files(top, family, tokenize, files_tokens - budget)
    return _lay_out(source, family, tokenize, bos, (prefix, before), (suffix, after), others)


def build_small(
    source: Source,
    family: Resolved,
    tokenize: Tokenize,
    *,
    prefix_tokens: int,
    suffix: Sequence[int],
    related: Sequence[str] = (),
    first_row: int = -1,
    bos: int | None = None,
) -> tuple[Prompt, int]:
    """Lay out a prompt that can be evaluated quickly: the lines at the cursor and their context.

    Before them are related lines, and the headers of the definitions and blocks around the first
    line, each with less indentation than the next.

    Args:
        source, family, tokenize, bos: see `build`.
        prefix_tokens: maximum tokens of the lines before the cursor.
        suffix: tokens after the cursor, see `small_suffix`.
        related: see `related_to`.
        first_row: first row of the window, as returned by an earlier call, so that typing does not
            change its start; -1 chooses one.

    Returns:
        The prompt, and the first row of its window.
    """
    lines = source.prefix.split("\n")
    start = first_row - source.first_row
    if not 0 <= start < len(lines) or first_row < 0:
        start = _small_start(lines, tokenize, prefix_tokens)
    most = GROWTH * prefix_tokens
    front = [*related, ""] if related else []
    text = "\n".join([*front, *_heads(lines, start), *lines[start:]])
    text = text[-MAX_CHARS_PER_TOKEN * most :]
    before = tokenize(text, False)[-most:]
    small = _lay_out(source, family, tokenize, bos, (text, before), ("", list(suffix)), [])
    return small, source.first_row + start


def small_suffix(source: Source, tokenize: Tokenize, window: SmallWindow) -> list[int]:
    """Return the tokens after the cursor in a small window: the rest of its line, and the next."""
    below = source.suffix.split("\n")[: 1 + window.lines_below]
    return tokenize("\n".join(below), False)[: window.suffix_tokens]


def related_to(source: Source, tokenize: Tokenize, window: SmallWindow) -> list[str]:
    """Return the lines of the file that share the most words with the text at the cursor.

    They contain likely next names. Those that do not fit are left out.
    """
    above, below = source.prefix.split("\n"), source.suffix.split("\n")
    head, near = above[-1], above[-1 - NEAR_LINES : -1]
    far, behind = above[: -1 - NEAR_LINES], below[1 + window.lines_below :]
    found = related_lines(far, behind, near, head, window.related_lines)
    lines, left = list[str](), window.related_tokens
    for line in found:
        text = line[:MAX_LINE_CHARS]
        size = len(tokenize(text + "\n", False))
        if size <= left:
            lines.append(text)
            left -= size
    return lines


def _lay_out(
    source: Source,
    family: Resolved,
    tokenize: Tokenize,
    bos: int | None,
    before: tuple[str, list[int]],
    after: tuple[str, list[int]],
    others: list[int],
) -> Prompt:
    """Fill the family's template; `before` and `after` are texts and their tokens."""
    filled = {
        "prefix": before[1],
        "suffix": after[1],
        "path": tokenize(source.path or "untitled", False),
        "repo": tokenize(source.repo or "project", False),
        "files": others,
    }
    read: list[int] = [] if bos is None else [bos]
    at_cursor, marker_at = len(read), None
    for kind, text in parts(family.template):
        if kind == "marker":
            if text == "suf" and family.family.order == "psm":
                marker_at = len(read)
            read.append(family.ids[text])
        elif kind == "field":
            read += filled[text]
            at_cursor = len(read) if text == "prefix" else at_cursor
        else:
            read += tokenize(text, False)
    texts = before[0], after[0]
    if marker_at is not None:
        marker, middle = read[marker_at], tuple(read[marker_at + 1 + len(after[1]) :])
        return Prompt(tuple(read[:marker_at]), marker, tuple(after[1]), middle, *texts)
    return Prompt(tuple(read[:at_cursor]), None, (), tuple(read[at_cursor:]), *texts)


def _small_start(lines: list[str], tokenize: Tokenize, budget: int) -> int:
    """Return the first line of a window of at most `budget` tokens that ends at the cursor."""
    start = len(lines) - 1
    tokens = len(tokenize(lines[start], False))
    while start > 0:
        tokens += len(tokenize(lines[start - 1] + "\n", False))
        if tokens > budget:
            break
        start -= 1
    while start < len(lines) - 1 and not lines[start].strip():
        start += 1
    return start


def _heads(lines: list[str], start: int) -> list[str]:
    """Return the lines above `start` that open the enclosing blocks, outermost first."""
    own = next((line for line in lines[start:] if line.strip()), "")
    depth, heads = _depth(own), list[str]()
    for at in range(start - 1, max(-1, start - MAX_LINES_TO_HEAD), -1):
        if depth == 0 or len(heads) == MAX_HEADS:
            break
        line = lines[at]
        if not line.strip() or _depth(line) >= depth or _CLOSES.match(line):
            continue
        depth = _depth(line)
        heads.append(line[:MAX_LINE_CHARS])
        if line.strip() == "{" and at > 0:  # the header is on the line above
            heads.append(lines[at - 1][:MAX_LINE_CHARS])
    return heads[::-1]


def _depth(line: str) -> int:
    """Return the width of a line's indentation; a tab counts as four columns."""
    return len((line[: len(line) - len(line.lstrip())]).expandtabs(4))


def _window_before(source: Source, tokenize: Tokenize, budget: int) -> tuple[str, list[int], int]:
    """Return the text before the cursor that fits, its tokens, and its first line in the source."""
    lines = source.prefix.split("\n")
    chars = budget * MAX_CHARS_PER_TOKEN
    start = _first_line_within(lines, 0, chars)
    while True:
        start = _next_anchor(start, source.first_row, len(lines))
        text = "\n".join(lines[start:])[-chars:]
        tokens = tokenize(text, False)
        if len(tokens) <= budget:
            return text, tokens, start
        if start == len(lines) - 1:
            return text, tokens[-budget:], start
        start = _first_line_within(lines, start + 1, len(text) * budget // len(tokens))


def _first_line_within(lines: list[str], start: int, chars: int) -> int:
    """Return the first line at or after `start` from which at most `chars` characters remain."""
    size = sum(len(line) + 1 for line in lines[start:])
    while size > chars and start < len(lines) - 1:
        size -= len(lines[start]) + 1
        start += 1
    return start


def _next_anchor(start: int, first_row: int, count: int) -> int:
    """Return the first line at or after `start` where a window may start.

    That is a multiple of `STEP_LINES` in the file, or any line if there is none before the cursor.
    """
    if start == 0:
        return 0
    anchored = -(-(first_row + start) // STEP_LINES) * STEP_LINES - first_row
    return anchored if anchored < count else start


def _window_after(suffix: str, tokenize: Tokenize, budget: int) -> tuple[str, list[int]]:
    """Return the complete lines after the cursor that fit, and their tokens."""
    if budget == 0:
        return "", []
    text = suffix[: budget * MAX_CHARS_PER_TOKEN]
    if len(tokens := tokenize(text, False)) <= budget:
        return text, tokens
    ends = [at for at, char in enumerate(text) if char == "\n" and at > 0]
    fitting = bisect_right(ends, budget, key=lambda end: len(tokenize(text[:end], False)))
    if ends:
        text = text[: ends[max(fitting - 1, 0)]]
    return text, tokenize(text, False)[:budget]


def other_files_budget(files_tokens: int) -> int:
    """Return the part of the budget for other files; the rest is for the file's own imports."""
    return files_tokens - files_tokens // 3


def _takes_files(family: Resolved) -> bool:
    """Return whether the family's template supports other files, and the model has the markers."""
    template = family.family.file
    known = all(name in family.ids for kind, name in parts(template) if kind == "marker")
    return "{files}" in family.template and bool(template) and known


def _top_of_file(source: Source, start: int) -> tuple[File, ...]:
    """Return the file's imports if the window, from line `start` of the source on, lacks them.

    They come after the other files, because they change only when the window moves, which changes
    the prefix as well.
    """
    above = source.top.split("\n")[: source.first_row + start]
    if source.first_row == 0:
        above = source.prefix.split("\n")[:start]
    text = imports_of(above)
    return (File(source.path or "untitled", text),) if text else ()


def imports_of(lines: Sequence[str]) -> str:
    """Return the top of a file from its first import on; "" without imports."""
    for start, line in enumerate(lines[:TOP_LINES]):
        if _IMPORT.match(line):
            return "\n".join(lines[start:TOP_LINES]).rstrip()
    return ""


def tokens_of_files(
    files: Sequence[File], family: Resolved, tokenize: Tokenize, limit: int
) -> list[int]:
    """Return the tokens of files in order, each in the family's template.

    The first file that does not fit is truncated at the end of a line, and ends the list.
    """
    read: list[int] = []
    for file in files:
        around: tuple[list[int], list[int]] = ([], [])
        is_behind = False
        for kind, text in parts(family.family.file):
            if kind == "marker":
                around[is_behind].append(family.ids[text])
            elif text == "code" and kind == "field":
                is_behind = True
            else:
                around[is_behind].extend(tokenize(file.path if kind == "field" else text, False))
        code = tokenize(file.text, False)
        left = limit - len(read) - len(around[0]) - len(around[1])
        is_cut = len(code) > left
        if is_cut:
            fitting = cut(file.text, left, lambda text: len(tokenize(text, False)), len(code))
            code = tokenize(fitting, False)
        if code:
            read += [*around[0], *code, *around[1]]
        if is_cut:
            break
    return read


def cut(
    text: str,
    limit: int,
    count: Callable[[str], int],
    tokens: int = -1,
    *,
    from_middle: bool = False,
) -> str:
    """Return the first lines of a text within `limit` tokens.

    Args:
        count: counts the tokens of a text.
        tokens: tokens of the whole text, if known.
        from_middle: return the lines around its middle instead.
    """
    tokens, limit = count(text) if tokens < 0 else tokens, max(limit, 0)
    lines = text.split("\n")
    while tokens > limit and lines:
        fewer = min(len(lines) * limit // tokens, len(lines) - 1)
        first = (len(lines) - fewer) // 2 if from_middle else 0
        lines = lines[first : first + fewer]
        tokens = count("\n".join(lines)) if lines else 0
    return "\n".join(lines)
