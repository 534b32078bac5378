"""What a plan may be about: files and their symbols, each with a short name for the model.

A model that plans says these names and no code, so it cannot be wrong about where something is.
Reads files through what it is given; asks the index. Blocks; any thread.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from lcursor.code import languages, symbols
from lcursor.context.codebase import Codebase
from lcursor.edit.records import Lines
from lcursor.edit.sources import Sources

MAX_FILES = 16
MAX_SYMBOLS = 40
"""Of one file."""
MAX_NAMES = 12
"""Of an instruction, that are looked up."""
FIND_TOKENS = 6000
"""Of pieces that the codebase is asked for."""
NAMED, OPEN, HERE, DEFINES = 8.0, 2.0, 3.0, 4.0
"""What it counts that a file is named, open, looked at, or defines something that is named."""
HIT = 3.0
SIGNATURE_CHARS = 100


@dataclass(frozen=True, slots=True)
class Spot:
    """A symbol of a file, or all of the file."""

    key: str
    what: str
    """For people: `function parse`; "" for all of the file."""
    first_row: int
    last_row: int
    head: str = ""
    """Its first line."""
    name: str = ""


@dataclass(slots=True)
class Candidate:
    """A file that a plan may be about."""

    key: str
    path: str
    """Relative to the root."""
    rows: int
    language: str
    spots: list[Spot] = field(default_factory=list)
    score: float = 0.0
    is_text: bool = True
    """Whether its lines are known."""

    def whole(self) -> Spot:
        """Return all of it."""
        return Spot(self.key, "", 0, self.rows)

    def lines(self, most: int = MAX_SYMBOLS) -> list[str]:
        """Return it as the model reads it: its name, its path, and its symbols."""
        told = [f"{self.key} {self.path} ({self.rows} lines)"]
        told += [f"  {spot.key} {spot.head or spot.what}" for spot in self.spots[:most]]
        if len(self.spots) > most:
            told.append(f"  … and {len(self.spots) - most} more")
        return told


def collect(
    instruction: str,
    context: str,
    files: Sources,
    codebase: Codebase | None,
    cancel: Callable[[], bool],
) -> list[Candidate]:
    """Return the files that an instruction may be about, the likeliest first.

    Args:
        instruction: of the user.
        context: what is attached, where names of files may stand.
        files: of the project.
        codebase: that is asked for what has to do with it; None for nothing.
        cancel: asked now and then.
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
        asked = [instruction]
        for word in _names(instruction):
            if cancel():
                break
            found = codebase.symbols(word, 4, cancel=cancel)
            for definition in found:
                count(definition.path, DEFINES)
            if found:
                asked.append(word)  # who uses it has to change as well
        for text in asked:
            pieces = codebase.find(text, FIND_TOKENS, cancel).used
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
            one = Candidate(key, path, 0, "", is_text=False)
        else:
            one = _candidate(key, path, lines, words)
        one.score = scores[path]
        made.append(one)
    return made


def one_of(path: str, lines: Lines) -> Candidate:
    """Return a file that was not thought of before."""
    return _candidate("f0", path, lines, set())


def _candidate(key: str, path: str, lines: Lines, words: set[str]) -> Candidate:
    """Return a file with its symbols; where it has very many, those with the asked words first."""
    language = languages.detect(path, lines[0] if lines else "")
    one = Candidate(key, path, len(lines), language)
    found = list(symbols.all_of(lines, language))
    if len(found) > MAX_SYMBOLS:
        meant = [each for each in found if _words(each.name) & words]
        rest = [each for each in found if each not in meant and each.is_top]
        found = sorted([*meant, *rest][:MAX_SYMBOLS], key=lambda each: each.first)
    for number, each in enumerate(found, 1):
        head = " ".join(lines[each.own_first].split())[:SIGNATURE_CHARS]
        head = f"{head} (in {each.scope})" if each.scope else head
        what = f"{each.kind} {each.name}"
        one.spots.append(Spot(f"{key}.{number}", what, each.first, each.last, head, each.name))
    return one


def _is_named(path: str, text: str) -> bool:
    """Return whether a text has a path, or its last part with an ending."""
    name = os.path.basename(path)
    names = [path, name] if "." in name.strip(".") else [path]
    return any(re.search(rf"(?<![\w/.-]){re.escape(one)}(?![\w/-])", text) for one in names)


def _names(text: str) -> list[str]:
    """Return what in a text may be the name of something in code, what looks like one first."""
    names = re.findall(r"`([A-Za-z_][\w.]*)`", text)
    names += re.findall(r"\b(\w*_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*)\b", text)
    names += re.findall(r"\b([A-Za-z_]\w+)\(", text)
    names += re.findall(r"(?<![\w/.-])([A-Za-z]\w{2,})\b(?![./]\w)", text)
    return list(dict.fromkeys(names))[:MAX_NAMES]


def _words(text: str) -> set[str]:
    """Return the words of a text, those within names too, in small letters."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", text)
    return {part.lower() for part in parts if len(part) > 2}
