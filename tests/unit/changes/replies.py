"""Files of a project, and replies that change them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lcursor.changes import diff
from lcursor.changes.apply.parse import blocks
from lcursor.changes.apply.resolve import Ask, Resolved, Unresolved, resolve
from lcursor.changes.records import Lines, digest

ROOT = "/p/"


class Given:
    """Files of a project at a root."""

    def __init__(self, texts: Mapping[str, str], current: str = "") -> None:
        self._texts = {ROOT + path: tuple(text.splitlines()) for path, text in texts.items()}
        self._current = ROOT + current if current else ""

    def read(self, path: str) -> Lines | None:
        return self._texts.get(self.absolute(path))

    def current(self) -> str:
        return self._current

    def all(self) -> Sequence[str]:
        return [path.removeprefix(ROOT) for path in self._texts]

    def absolute(self, path: str) -> str:
        return path if path.startswith("/") else ROOT + path


def pair(old: str, new: str, path: str = "") -> str:
    return f"{path}\n```\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n```\n"


def done(reply: str, files: Given, file: str = "") -> Resolved:
    found = resolve(blocks(reply, file), files)
    assert isinstance(found, Resolved), found
    return found


def text_of(found: Resolved, files: Given, path: str) -> str:
    (change,) = [one for one in found.files if one.path == ROOT + path]
    base = files.read(change.path) or ()
    assert change.base == (digest(base) if change.kind != "create" else "")
    return "\n".join(diff.apply(base, change.changes)) + "\n"


def applied(text: str, reply: str) -> str | Ask | Unresolved:
    """Return the text of the only file after a reply, or why that is not certain."""
    files = Given({"a.py": text}, "a.py")
    found = resolve(blocks(reply, "a.py"), files)
    return text_of(found, files, "a.py") if isinstance(found, Resolved) else found
