"""Complete a mention or a command while it is typed.

Called with each key, so file names are cached for a moment. Blocks for some milliseconds.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from lcursor.context import changes, file_names, mentions, prompts, rules
from lcursor.context.codebase import Codebase
from lcursor.context.servers import ServerTexts
from lcursor.llm.tokens import BYTES_PER_TOKEN
from lcursor.project import listing
from lcursor.project.reading import Reader
from lcursor.protocol.chat import ChatWord

MAX = 50
MAX_S = 1.5
MIN_CHARS = 2
"""Minimum of typed characters before files are offered without `@file:`."""
_TYPED = re.compile(r"@(?P<kind>[a-z]*)(?P<colon>:?)(?P<rest>.*)\Z", re.S)


def complete(
    root: Path, word: str, codebase: Codebase, servers: ServerTexts | None = None
) -> list[ChatWord]:
    """Return completions of a typed word that starts with `@` or `/`, best first."""
    if word.startswith("/"):
        return _commands(root, word[1:], servers)
    typed = _TYPED.match(word)
    if not typed:
        return []
    reader = Reader(root, max_s=MAX_S)
    kind, rest = typed["kind"], typed["rest"]
    if not typed["colon"]:
        found = _kinds(kind) if not rest else []
        if len(kind + rest) >= MIN_CHARS:
            found += _files(reader, kind + rest, "file")[: MAX - len(found)]
        return found
    rest = rest.removeprefix('"').replace("\\ ", " ").replace('\\"', '"')
    sources: dict[str, Callable[[], list[ChatWord]]] = {
        "file": lambda: _files(reader, rest, "file"),
        "buffer": lambda: _files(reader, rest, "buffer"),
        "dir": lambda: _folders(reader, rest),
        "symbol": lambda: _symbols(codebase, rest),
        "commit": lambda: _commits(reader, rest),
        "diff": lambda: _revisions(reader, rest),
        "rules": lambda: _rules(reader, rest),
        "mcp": lambda: _resources(servers, rest),
    }
    return sources[kind]() if kind in sources else []


def _kinds(typed: str) -> list[ChatWord]:
    return [
        _word(f"@{kind}{':' if kind in mentions.WITH_ARGUMENT else ''}", "mention", info)
        for kind, info in mentions.KINDS.items()
        if kind.startswith(typed)
    ]


def _commands(root: Path, typed: str, servers: ServerTexts | None) -> list[ChatWord]:
    lower = typed.lower()
    origins = {"built in": "", "project": " (project)", "own": " (own)", "server": ""}
    known = {
        prompt.name: prompt.description + origins[prompt.origin] for prompt in prompts.library(root)
    }
    if servers is not None:
        if ":" in typed:
            servers.start()
        known = dict(servers.prompts()) | known
    begun = [name for name in known if name.lower().startswith(lower)]
    inside = [name for name in known if lower in name.lower() and name not in begun]
    return [_word(f"/{name}", "command", known[name]) for name in [*begun, *inside][:MAX]]


def _files(reader: Reader, typed: str, kind: str) -> list[ChatWord]:
    names = file_names.cached(reader.root)
    shown = typed.removeprefix("./")
    if typed.startswith(("/", "~", "../")):
        return _elsewhere(reader, typed, kind)
    found: list[ChatWord] = []
    for name in file_names.ranked(names, shown, MAX * 2):
        if len(found) < MAX and not reader.secret(reader.root / name):
            found.append(_word(mentions.spell(kind, name), "file", _size(reader.root / name)))
    return found


def _elsewhere(reader: Reader, typed: str, kind: str) -> list[ChatWord]:
    """Complete a path outside the project, folder by folder."""
    before, _, begun = typed.rpartition("/")
    folder = Path(f"{before}/").expanduser()
    if not folder.is_absolute():
        folder = reader.root / folder
    try:
        with os.scandir(folder) as entries:
            known = sorted(
                (entry.name, entry.is_dir())
                for entry in entries
                if entry.name.startswith(begun) and (begun or not entry.name.startswith("."))
            )
    except OSError:
        return []
    found: list[ChatWord] = []
    for name, is_folder in known[: MAX * 2]:
        if len(found) < MAX and not reader.secret(folder / name):
            whole = f"{before}/{name}{'/' if is_folder else ''}"
            info = "" if is_folder else _size(folder / name)
            found.append(_word(mentions.spell(kind, whole), "dir" if is_folder else "file", info))
    return found


def _folders(reader: Reader, typed: str) -> list[ChatWord]:
    if typed.startswith(("/", "~", "../")):
        return [one for one in _elsewhere(reader, typed, "dir") if one["kind"] == "dir"]
    names = file_names.cached(reader.root)
    counts = Counter(folder for name in names for folder in listing.folders_of(name))
    wanted = file_names.ranked(counts, typed.removeprefix("./").rstrip("/"), MAX)
    return [_word(mentions.spell("dir", name), "dir", f"{counts[name]:,} files") for name in wanted]


def _symbols(codebase: Codebase, typed: str) -> list[ChatWord]:
    if len(typed) < MIN_CHARS:
        return []
    found: dict[str, ChatWord] = {}
    for one in codebase.symbols(typed, MAX, prefix=True):
        info = f"{one.kind}, {one.path}:{one.first_row + 1}"
        before = found.get(one.name)
        if before is None:
            found[one.name] = _word(mentions.spell("symbol", one.name), "symbol", info)
        elif not before["info"].endswith(", …"):
            before["info"] += ", …"
    return list(found.values())[:MAX]


def _commits(reader: Reader, typed: str) -> list[ChatWord]:
    lower = typed.lower()
    known = changes.recent(reader.root, reader, 200)
    fits = [one for one in known if one[0].startswith(lower) or lower in one[1].lower()]
    return [_word(f"@commit:{name}", "commit", subject) for name, subject in fits[:MAX]]


def _revisions(reader: Reader, typed: str) -> list[ChatWord]:
    found = []
    if "--staged".startswith(typed):
        found.append(_word("@diff:--staged", "diff", "the staged changes"))
    found += [
        _word(mentions.spell("diff", name), "diff", f"since {name}")
        for name in changes.branches(reader.root, reader)
        if typed.lower() in name.lower()
    ]
    return found[:MAX]


def _rules(reader: Reader, typed: str) -> list[ChatWord]:
    found = []
    for rule in rules.known(reader):
        if typed.lower() in rule.name.lower() and not rule.error:
            info = rule.description or ", ".join(rule.globs) or "rules"
            found.append(_word(mentions.spell("rules", rule.name), "rules", info))
    return _first(found)


def _resources(servers: ServerTexts | None, typed: str) -> list[ChatWord]:
    """Complete a resource; servers that start meanwhile have theirs offered with a later key."""
    if servers is None:
        return []
    servers.start()
    lower = typed.lower()
    found = [each for each in servers.resources() if lower in each.name.lower()]
    return [_word(mentions.spell("mcp", name), "mcp", about) for name, about in found[:MAX]]


def _first(found: Iterable[ChatWord]) -> list[ChatWord]:
    return list({one["word"]: one for one in found}.values())[:MAX]


def _size(path: Path) -> str:
    """Return the approximate number of tokens of a file."""
    try:
        size = os.stat(path).st_size
    except OSError:
        return ""
    tokens = size / BYTES_PER_TOKEN
    if tokens < 1000:
        return f"~{max(round(tokens, -1), 10):.0f} tokens" if size else "empty"
    return f"~{tokens / 1000:,.1f}k tokens" if tokens < 1e6 else f"{size >> 20:,} MB"


def _word(word: str, kind: str, info: str) -> ChatWord:
    return {"word": word, "kind": kind, "info": info}
