"""Find the lines of a project's files that contain some words, and rank them."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from lcursor.code import languages, line_definitions
from lcursor.index import words as text_words
from lcursor.index.rank import penalties
from lcursor.project import git
from lcursor.project.ignore import IgnoreRules
from lcursor.project.reading import Reader

MAX_WORDS = 12
MIN_LETTERS = 3
MAX_BYTES = 8 << 20
MAX_S = 3.0
MAX_FILE_ROWS = 60
EXCLUDED = ("*.min.*", "*.map", "*.lock", "*-lock.*", "*.svg", "*.ipynb", ".git")
"""Generated files, and files with very long lines."""
AROUND_ROWS = 6
"""Lines before and after a matching line."""
MAX_ROWS = 60
"""Maximum lines of one window."""

DATA = frozenset({"json", "yaml", "toml", "html", "xml"})
DATA_FACTOR = 0.6

Rows = Mapping[str, Sequence[tuple[int, str]]]
"""Path -> matching rows with their text."""
Match = tuple[int, frozenset[str]]
"""A row and its matching words."""

_DEFINING = re.compile(
    r"\b(?:def|class|function|func|fn|fun|struct|enum|interface|trait|type|module|const|let|var"
    r"|impl|macro|define|object|record|protocol|namespace|sub|proc|local)\b|[=:(]\s*(?:function|\()"
)


def words_of(text: str) -> list[str]:
    """Return the words of a question to search for, identifiers first."""
    found: dict[str, None] = {}
    for name in text_words.names(text):
        found[text_words.last_name(name)] = None
    for word in text_words.keywords(text):
        found.setdefault(word, None)
    split = [text_words.parts(name) for name in found]
    parts = {part for parts in split if len(parts) > 1 for part in parts}
    chosen: dict[str, None] = {}
    for word in found:
        if len(word) >= MIN_LETTERS and word not in parts:
            stem = (
                text_words.stem(word) if word.islower() else word
            )  # `passwords` must find `password`
            chosen[stem if len(stem) > MIN_LETTERS and word.startswith(stem) else word] = None
    return list(chosen)[:MAX_WORDS]


def full_word(word: str, text: str) -> str:
    """Return the full word in the question for a stem that was searched."""
    found = re.search(rf"\b{re.escape(word)}\w*", text, re.IGNORECASE)
    return found[0] if found else word


def search(
    root: Path,
    words: Sequence[str],
    reader: Reader,
    *,
    is_whole: bool = False,
    keeps_case: bool = False,
) -> tuple[dict[str, list[tuple[int, str]]], str]:
    """Return the rows that contain a word, by path, and a note if the search is incomplete.

    Args:
        reader: reader of the project; its limits stop the search.

    Raises:
        Cancelled: the reader was canceled.
    """
    flags = [*(["-w"] if is_whole else []), *([] if keeps_case else ["-i"])]
    output = git.grep(
        root,
        ["-I", "-n", "-z", "-F", "--no-color", *flags, *(p for w in words for p in ("-e", w))],
        EXCLUDED,
        max_bytes=MAX_BYTES,
        max_s=min(MAX_S, reader.left_s),
        cancel=reader.cancel,
    )
    rules = IgnoreRules(root, is_in_git=True)
    found: dict[str, list[tuple[int, str]]] = {}
    is_fine: dict[str, bool] = {}
    for path, row, line in _rows(output.data):
        if path not in is_fine:
            is_fine[path] = not reader.secret(root / path) and not rules.reason(path)
        rows = found.setdefault(path, [])
        if is_fine[path] and len(rows) < MAX_FILE_ROWS:
            rows.append((row, line))
    note = f"not all of the project was searched: {output.failure}" if output.failure else ""
    return {path: rows for path, rows in found.items() if rows}, note


def _rows(data: bytes) -> Iterator[tuple[str, int, str]]:
    """Parse `path NUL row NUL text`."""
    for line in data.split(b"\n"):
        parts = line.split(b"\0", 2)
        if len(parts) == 3 and parts[1].isdigit():
            yield (
                os.fsdecode(parts[0]),
                int(parts[1]) - 1,
                parts[2][:500].decode("utf-8", "replace"),
            )


def best(rows: Rows, words: Sequence[str]) -> list[tuple[str, float, list[Match]]]:
    """Rank files by the words in them, best first.

    Rare words have more weight, and words in the path count twice. Many different words count more
    than many lines, and code more than prose.
    """
    lower = [word.lower() for word in words]
    matches = {
        path: [
            (row, frozenset(word for word in lower if word in line.lower())) for row, line in pairs
        ]
        for path, pairs in rows.items()
    }
    weight = weights(rows, words)
    found = []
    for path, pairs in matches.items():
        has = frozenset().union(*(there for _, there in pairs))
        score = 0.0
        for word in has:
            times = sum(word in there for _, there in pairs)
            score += weight[word] * (1 + math.log(times)) ** 0.5
            if word in path.lower():
                score += weight[word]
        score *= (len(has) / len(lower)) ** 0.5 * worth(path)
        found.append((path, score, pairs))
    return sorted(found, key=lambda each: (-each[1], each[0]))


def weights(rows: Rows, words: Sequence[str]) -> dict[str, float]:
    """Return the weight of each word in lower case; rare words weigh more."""
    texts = ["\n".join(line for _, line in pairs).lower() for pairs in rows.values()]
    found = {}
    for word in words:
        having = sum(word.lower() in text for text in texts)
        found[word.lower()] = math.log(1 + max(len(rows), 1) / (1 + having))
    return found


def worth(path: str) -> float:
    """Return the score factor of a path: less than 1 for data, prose, tests and similar files."""
    factor = DATA_FACTOR if languages.detect(path) in DATA else 1.0
    return factor * math.prod(penalty for _, penalty in penalties(path))


def score(lines: Sequence[str], words: Sequence[str], weight: Mapping[str, float]) -> float:
    """Score lines by their words; words that they define count twice."""
    text = "\n".join(lines).lower()
    heads = "\n".join(line for line in lines if _DEFINING.search(line)).lower()
    found = 0.0
    for word in words:
        if word.lower() in text:
            found += weight[word.lower()] * (2 if word.lower() in heads else 1)
    return found


def windows(
    path: str, lines: Sequence[str], matches: Sequence[Match], words: Sequence[str]
) -> list[tuple[int, int, list[str]]]:
    """Group matching rows into windows: first row, end row and words of each, best first.

    A window contains the whole definition around a row, unless that is too long.
    """
    language = languages.detect(path, lines[0] if lines else "")
    around = [(first, end) for _, _, first, end in line_definitions.definitions(language, lines)]
    spans: list[list[int]] = []
    for row, _ in matches:
        first, end = max(row - AROUND_ROWS, 0), min(row + AROUND_ROWS + 1, len(lines))
        fitting = [
            span for span in around if span[0] <= row < span[1] and span[1] - span[0] <= MAX_ROWS
        ]
        if fitting:
            first, end = max(fitting, key=lambda span: span[1] - span[0])
        if spans and first <= spans[-1][1] and max(end, spans[-1][1]) - spans[-1][0] <= MAX_ROWS:
            spans[-1][1] = max(end, spans[-1][1])
        elif not spans or end > spans[-1][1]:
            spans.append([max(first, spans[-1][1]) if spans else first, end])
    found = []
    for first, end in spans:
        there = frozenset().union(*(has for row, has in matches if first <= row < end))
        found.append((first, end, [word for word in words if word.lower() in there]))
    return sorted(found, key=lambda each: (-len(each[2]), each[0]))


def likely_defining(rows: Rows, name: str) -> list[str]:
    """Sort the files that contain a name; files that seem to define it come first."""

    def order(path: str) -> tuple[int, int, str]:
        is_defined = any(_DEFINING.search(line) for _, line in rows[path])
        return (not is_defined, name.lower() not in path.lower(), path)

    return sorted(rows, key=order)
