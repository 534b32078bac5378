"""Items out of files, definitions and searches: rows with a name, and a note why they are in.

Asks who knows the project and reads what it names, so that an item is what a file has now. Thread:
of who asks.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lcursor.context import paths
from lcursor.context.codebase import Codebase
from lcursor.context.items import Item, Piece, rows_of
from lcursor.protocol_chat import AttachmentKind

MOST_QUESTION_CHARS = 2000
MOST_DEFINITIONS = 5
MOST_LEFT_OUT = 8
"""Pieces of the codebase that were found and not used, and are listed."""


def of_file(
    places: paths.Places,
    path: Path,
    first: int = 0,
    end: int = -1,
    note: str = "",
    kind: AttachmentKind = "file",
) -> Item:
    """Return a file, or rows of it; left out with the reason where it cannot be read."""
    read = places.reader.read(path, first, end)
    name = places.name(path)
    if first or end >= 0:
        last = read.first_row + rows_of(read.text) if read.text else end
        name += f":{first + 1}-{last}" if last >= 0 else f":{first + 1}-"
    key = f"file:{name}"
    if read.refusal:
        return Item(key, kind, name, str(path), first, "", read.refusal, is_left_out=True)
    leads_to = places.leads_to(path)
    notes = (
        note,
        f"a link to {leads_to}" if leads_to else "",
        "not saved yet" if read.is_unsaved else "",
        "" if read.text else "it is empty",
    )
    told = "; ".join(filter(None, notes))
    return Item(key, kind, name, str(path), read.first_row, read.text, told)


def symbol(name: str, knows: Codebase, places: paths.Places) -> list[Item]:
    """Return the definitions of a name, as the files have them now."""
    reader = places.reader
    found = list(knows.symbols(name, MOST_DEFINITIONS * 3, cancel=reader.cancel))
    reader.check()
    if not found:
        near = list(knows.symbols(name, 5, prefix=True, cancel=reader.cancel))
        hint = ", ".join(dict.fromkeys(one.name for one in near))
        why = "nothing of that name is defined in the project"
        return [none("symbol", name, f"{why}; there are: {hint}" if hint else why)]
    items = []
    for one in found[:MOST_DEFINITIONS]:
        where = reader.root / one.path
        now = reader.read(where).text
        first, end = paths.shifted(now, one.name, one.first_row, one.end_row)
        items.append(of_file(places, where, first, end, f"{one.kind} {one.name}", "symbol"))
    rest = [f"{one.path}:{one.first_row + 1}" for one in found[MOST_DEFINITIONS:]]
    if rest:
        more = f"{len(rest)} more definitions"
        items.append(none("symbol", f"{name}: {more}", f"in {', '.join(rest)}"))
    return items


def codebase(question: str, knows: Codebase, places: paths.Places, tokens: int) -> list[Item]:
    """Return the pieces of the project that have to do with a question."""
    reader = places.reader
    question = question.strip()[:MOST_QUESTION_CHARS]
    if not question:
        return [none("codebase", "codebase", "there is no question to search with")]
    receipt = knows.find(question, tokens, reader.cancel)
    reader.check()
    items: list[Item] = []
    for piece in receipt.used:
        secret = reader.secret(reader.root / piece.path) or reader.secret_text(piece.text)
        items.append(_of_piece(piece, reader.root, secret))
    if not receipt.used:
        nothing = "nothing of the project has to do with the question"
        items.append(none("codebase", "codebase", receipt.note or nothing))
    elif receipt.note:
        items[0] = replace(items[0], note=f"{items[0].note} ({receipt.note})")
    return items + [
        _of_piece(piece, reader.root, piece.why) for piece in receipt.left_out[:MOST_LEFT_OUT]
    ]


def none(kind: AttachmentKind, name: str, why: str) -> Item:
    """Return an item that says why something that was asked for is not in."""
    return Item(f"{kind}:{name}", kind, name, note=why, is_left_out=True)


def _of_piece(piece: Piece, root: Path, refusal: str) -> Item:
    rows = f"{piece.path}:{piece.first_row + 1}-{piece.end_row}"
    key, where = f"codebase:{rows}", (str(root / piece.path), piece.first_row)
    if refusal:
        return Item(key, "codebase", rows, *where, "", refusal, is_left_out=True)
    name = f"{rows} {piece.scope}".rstrip()
    return Item(key, "codebase", name, *where, piece.text, piece.why)
