"""Collect the files and symbols that a plan may change, each with an id for the model.

Reads files through `Sources`; searches the index. Blocks; any thread.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from lcursor.changes.records import Lines
from lcursor.changes.sources import Sources
from lcursor.code import languages, symbols
from lcursor.context.codebase import Codebase

MAX_FILES = 16
MAX_SYMBOLS = 40
"""Maximum symbols of one file."""
MAX_NAMES = 12
"""Maximum names of an instruction to look up."""
FIND_TOKENS = 6000
"""Maximum tokens of search results."""
NAMED, OPEN, HERE, DEFINES = 8.0, 2.0, 3.0, 4.0
"""Score of a file that is named, open, current, or defines a named symbol."""
HIT = 3.0
SIGNATURE_CHARS = 100


@dataclass(frozen=True, slots=True)
class Entry:
    """A symbol of a file, or the whole file."""

    key: str
    what: str
    """Description for the user: `function parse`; "" for the whole file."""
    first_row: int
    last_row: int
    head: str = ""
    """First line."""
    name: str = ""


@dataclass(slots=True)
class Candidate:
    """A file that a plan may change."""

    key: str
    path: str
    """Path relative to the root."""
    rows: int
    entries: list[Entry] = field(default_factory=list)
    is_text: bool = True
    """Whether its lines are known."""

    def whole(self) -> Entry:
        """Return the entry of the whole file."""
        return Entry(self.key, "", 0, self.rows)

    def lines(self, count: int = MAX_SYMBOLS) -> list[str]:
        """Return the lines for the prompt: id, path and some of the symbols."""
        shown = [f"{self.key} {self.path} ({self.rows} lines)"]
        shown += [f"  {entry.key} {entry.head or entry.what}" for entry in self.entries[:count]]
        if len(self.entries) > count:
            shown.append(f"  … and {len(self.entries) - count} more")
        return shown


def collect(
    instruction: str,
    context: str,
    files: Sources,
    codebase: Codebase | None,
    cancel: Callable[[], bool],
) -> list[Candidate]:
    """Return the files that an instruction may concern, the likeliest first.

    The context, the attachments, may name files. Without a codebase there is no search.
    """
    scores: dict[str, float] = {}

    def count(path: str, by: float) -> None:
        scores[path] = scores.get(path, 0.0) + by

    known = list(files.all())
    buffers = [files.name(path) for path in files.buffers()]
    for name in buffers:
        count(name, OPEN)
    if files.current():
        count(files.name(files.current()), HERE)
    for path in known:
        if _is_named(path, instruction):
            count(path, NAMED)
        elif context and re.search(rf"(?<![\w/]){re.escape(path)}(?![\w/])", context):
            count(path, HIT)
    words = _words(instruction)
    if codebase is not None:
        queries = [instruction]
        for word in _names(instruction):
            if cancel():
                break
            found = codebase.symbols(word, 4, cancel=cancel)
            for definition in found:
                count(definition.path, DEFINES)
            if found:
                queries.append(word)  # its callers must change as well
        for text in queries:
            pieces = codebase.find(text, FIND_TOKENS, cancel).hits
            for at, piece in enumerate(pieces):
                count(piece.path, HIT * (1 - at / (len(pieces) + 1)))
    best = sorted(scores, key=lambda path: (-scores[path], path))[:MAX_FILES]
    made: list[Candidate] = []
    for path in best:
        lines = files.read(path)
        key = f"f{len(made) + 1}"
        if lines is None:
            if path not in known:
                continue
            one = Candidate(key, path, 0, is_text=False)
        else:
            one = candidate(key, path, lines, words)
        made.append(one)
    return made


def candidate(key: str, path: str, lines: Lines, words: Collection[str] = frozenset()) -> Candidate:
    """Return a file with its symbols; if it has many, those with some words come first."""
    language = languages.detect(path, lines[0] if lines else "")
    one = Candidate(key, path, len(lines))
    found = list(symbols.all_of(lines, language))
    if len(found) > MAX_SYMBOLS:
        meant = [each for each in found if _words(each.name) & {*words}]
        rest = [each for each in found if each not in meant and each.is_top]
        found = sorted([*meant, *rest][:MAX_SYMBOLS], key=lambda each: each.first)
    for number, each in enumerate(found, 1):
        head = " ".join(lines[each.own_first].split())[:SIGNATURE_CHARS]
        head = f"{head} (in {each.scope})" if each.scope else head
        what = f"{each.kind} {each.name}"
        one.entries.append(Entry(f"{key}.{number}", what, each.first, each.last, head, each.name))
    return one


def _is_named(path: str, text: str) -> bool:
    """Return whether a text names a path, or its last part if that has an extension."""
    name = os.path.basename(path)
    names = [path, name] if "." in name.strip(".") else [path]
    return any(re.search(rf"(?<![\w/.-]){re.escape(one)}(?![\w/-])", text) for one in names)


def _names(text: str) -> list[str]:
    """Return the words of a text that may be identifiers, the likeliest first."""
    names = re.findall(r"`([A-Za-z_][\w.]*)`", text)
    names += re.findall(r"\b(\w*_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*)\b", text)
    names += re.findall(r"\b([A-Za-z_]\w+)\(", text)
    names += re.findall(r"(?<![\w/.-])([A-Za-z]\w{2,})\b(?![./]\w)", text)
    return list(dict.fromkeys(names))[:MAX_NAMES]


def _words(text: str) -> set[str]:
    """Return the words of a text in lower case, including the words within names."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", text)
    return {part.lower() for part in parts if len(part) > 2}
