"""Build items from files, definitions and searches, and remove duplicate lines.

An item has the current text of its file, which may have changed since the search.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from lcursor.context import grep, paths
from lcursor.context.codebase import Codebase
from lcursor.context.items import Item, SearchHit, SymbolLocation, count_rows, missing
from lcursor.index import chunk, words
from lcursor.project.reading import Reader
from lcursor.protocol.chat import AttachmentKind

MAX_QUESTION_CHARS = 2000
MAX_DEFINITIONS = 5
MAX_USES = 12
"""Maximum number of lines that use a name."""
MAX_OMITTED = 3
"""Maximum number of unused hits that are named."""
FILE_KINDS: Final = frozenset({"file", "dir", "buffer", "symbol", "codebase"})
"""Kinds of items without duplicate lines."""


def file_item(
    resolver: paths.PathResolver,
    path: Path,
    first: int = 0,
    end: int = -1,
    note: str = "",
    kind: AttachmentKind = "file",
) -> Item:
    """Return a file or some of its lines; left out with the reason if it cannot be read."""
    read = resolver.reader.read(path, first, end)
    name = resolver.display_name(path)
    if first or end >= 0:
        last = read.first_row + count_rows(read.text) if read.text else end
        name += f":{first + 1}-{last}" if last >= 0 else f":{first + 1}-"
    key = f"file:{name}"
    if read.error:
        return Item(key, kind, name, str(path), first, "", read.error, is_left_out=True)
    target = resolver.target_outside(path)
    notes = (
        note,
        f"a link to {target}" if target else "",
        "not saved yet" if read.is_unsaved else "",
        "" if read.text else "it is empty",
    )
    return Item(
        key, kind, name, str(path), read.first_row, read.text, "; ".join(filter(None, notes))
    )


def symbol_items(
    name: str, codebase: Codebase, resolver: paths.PathResolver, *, has_uses: bool = False
) -> list[Item]:
    """Return the definitions of a name, and the lines that use it if the question is about them."""
    reader = resolver.reader
    found = list(codebase.symbols(name, MAX_DEFINITIONS * 3, cancel=reader.cancel))
    reader.check()
    if not found:
        near = list(codebase.symbols(name, 5, prefix=True, cancel=reader.cancel))
        hint = ", ".join(dict.fromkeys(one.name for one in near))
        why = "no definition in the project"
        return [missing("symbol", name, f"{why}; similar: {hint}" if hint else why)]
    items = []
    for one in found[:MAX_DEFINITIONS]:
        path = reader.root / one.path
        text = reader.read(path).text
        first, end = paths.find_moved(text, one.name, one.first_row, one.end_row)
        items.append(file_item(resolver, path, first, end, f"{one.kind} {one.name}", "symbol"))
    rest = [f"{one.path}:{one.first_row + 1}" for one in found[MAX_DEFINITIONS:]]
    if rest:
        more = f"{len(rest)} more definitions"
        items.append(missing("symbol", f"{name}: {more}", f"in {', '.join(rest)}"))
    return items + _use_items(words.last_name(name), found, reader) if has_uses else items


def _use_items(name: str, found: Sequence[SymbolLocation], reader: Reader) -> list[Item]:
    """Return the lines that contain a name outside of its definitions, tests last, as one item."""
    rows, _ = grep.search(reader.root, [name], reader, is_whole=True, keeps_case=True)
    lines: list[str] = []
    for path in sorted(rows, key=lambda path: (-grep.worth(path), path)):
        if len(lines) > MAX_USES:
            break
        text = reader.read(reader.root / path).text
        if not text:  # such as a secret
            continue
        own = [one for one in found if one.path == path]
        around = chunk.read(path, text).symbols
        for row, line in rows[path]:
            if any(one.first_row <= row < one.end_row for one in own):
                continue
            scopes = [one for one in around if one.first_row < row < one.end_row]
            scope = max(scopes, key=lambda one: one.first_row).name if scopes else ""
            where = f"{path}:{row + 1}" + (f" in {scope}" if scope else "")
            lines.append(f"{where}: {line.strip()}")
    if not lines:
        return []
    note = f"the first {MAX_USES} lines" if len(lines) > MAX_USES else ""
    listed = "\n".join(lines[:MAX_USES])
    return [Item(f"uses:{name}", "symbol", f"uses of {name}", text=listed, note=note)]


def codebase_items(
    question: str, codebase: Codebase, resolver: paths.PathResolver, tokens: int
) -> list[Item]:
    """Return the parts of the project that are relevant to a question."""
    reader = resolver.reader
    question = question.strip()[:MAX_QUESTION_CHARS]
    if not question:
        return [missing("codebase", "codebase", "there is no question to search with")]
    result = codebase.find(question, tokens, reader.cancel)
    reader.check()
    items: list[Item] = []
    for hit in result.hits:
        secret = reader.secret(reader.root / hit.path) or reader.secret_text(hit.text)
        items.append(_hit_item(hit, reader.root, secret))
    if not result.hits:
        nothing = "nothing in the project matches the question"
        items.append(missing("codebase", "codebase", result.note or nothing))
    elif result.note:
        items[0] = replace(items[0], note=f"{items[0].note} ({result.note})")
    if result.omitted:
        names = [f"{hit.path}:{hit.first_row + 1}" for hit in result.omitted[:MAX_OMITTED]]
        rest = ", …" if len(result.omitted) > MAX_OMITTED else ""
        name = f"{len(result.omitted)} weaker hit{'s' * (len(result.omitted) > 1)}"
        items.append(
            missing("codebase", name, f"{result.omitted[0].why}: {', '.join(names)}{rest}")
        )
    return items


def remove_overlaps(items: Sequence[Item], dropped: Collection[str]) -> list[Item]:
    """Leave out items whose lines are part of another item.

    Args:
        items: in order; the first of several items with the same key is used.
        dropped: keys of items that the user removed, which contain no others.
    """
    found: dict[str, Item] = {}
    for item in items:
        before = found.get(item.key)
        if before is None or (before.is_left_out and not item.is_left_out):
            found[item.key] = item
    by_file: dict[str, list[Item]] = {}
    for item in found.values():
        if item.kind in FILE_KINDS and item.path and item.text and item.key not in dropped:
            by_file.setdefault(os.path.realpath(item.path), []).append(item)
    for group in by_file.values():
        containers = _containers(group)
        for item in group:
            container = containers.get(item.key)
            if container is None:
                continue
            if (container.first_row, container.end_row) == (item.first_row, item.end_row):
                del found[item.key]  # the same lines
            else:
                note = f"already included with {container.name}"
                found[item.key] = replace(item, text="", note=note, is_left_out=True)
    return list(found.values())


def _containers(items: Sequence[Item]) -> dict[str, Item]:
    """Return the containing item by the key of each contained item."""
    wide = sorted(
        (item for item in items if item.kind != "codebase"),  # an outline lacks some lines
        key=lambda item: (item.first_row, -item.end_row),
    )
    order = {item.key: number for number, item in enumerate(wide)}
    found: dict[str, Item] = {}
    for item in items:
        for other in wide[: order.get(item.key, len(wide))]:
            if other.first_row <= item.first_row and item.end_row <= other.end_row:
                found[item.key] = other
                break
    return found


def _hit_item(hit: SearchHit, root: Path, error: str) -> Item:
    rows = f"{hit.path}:{hit.first_row + 1}-{hit.end_row}"
    key, where = f"codebase:{rows}", (str(root / hit.path), hit.first_row)
    if error:
        return Item(key, "codebase", rows, *where, "", error, is_left_out=True)
    return Item(key, "codebase", f"{rows} {hit.scope}".rstrip(), *where, hit.text, hit.why)
