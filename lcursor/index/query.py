"""Parse a query: text, and filters like `path:src lang:python kind:class`.

    parse("open lang:py")  # Query("open", Filters(languages=("python",)), "word", "open")

Text that only resembles a filter (`std::vector`, `http://…`) stays text. Pure; any thread.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from lcursor.code import languages
from lcursor.index import words
from lcursor.index.records import Filters

Kind = Literal["symbol", "word", "mixed", "text"]
"""Only a name; one plain word; a sentence with identifiers; a plain sentence."""

FIELDS = {"path": "path", "file": "path", "lang": "lang", "language": "lang", "kind": "kind"}
FILTER = re.compile(
    rf"""(?:(?<=\s)|^)({"|".join(FIELDS)}):(?!:|//)(?:"([^"]*)"|'([^']*)'|(\S+))(?=\s|$)""", re.I
)
LANGUAGES: dict[str, tuple[str, ...]] = {
    "c++": ("cpp",),
    "c#": ("csharp",),
    "golang": ("go",),
    "js": ("javascript",),
    "shell": ("bash", "fish"),
    "ts": ("typescript", "tsx"),
    "typescript": ("typescript", "tsx"),
    "ocaml": ("ocaml", "ocaml_interface"),
}
"""Other names of languages; file extensions are accepted, too."""
KINDS: dict[str, tuple[str, ...]] = {
    "def": ("function", "method"),
    "func": ("function", "method"),
    "fn": ("function", "method"),
}


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query."""

    text: str
    """Text without filters."""
    filters: Filters
    kind: Kind
    name: str = ""
    """The requested name; only for the kinds `symbol` and `word`."""
    names: tuple[str, ...] = ()
    """Words that look like identifiers."""


def parse(text: str, *, has_filters: bool = True) -> Query:
    """Return the parts of a query.

    Args:
        has_filters: whether words like `path:src` are filters; False for code.
    """
    found: dict[str, list[str]] = {"path": [], "lang": [], "kind": []}

    def add(match: re.Match[str]) -> str:
        value = next(part for part in match.groups()[1:] if part is not None)
        if value.strip():
            found[FIELDS[match[1].lower()]].append(value)
        return " "

    rest = " ".join((FILTER.sub(add, text) if has_filters else text).split())
    filters = Filters(
        paths=tuple(found["path"]),
        languages=tuple(
            each
            for one in _split(found["lang"])
            for each in LANGUAGES.get(one) or (_language(one),)
        ),
        kinds=tuple(each for one in _split(found["kind"]) for each in KINDS.get(one) or (one,)),
    )
    names = tuple(words.names(rest))
    if words.is_symbol_like(rest):
        name = words.bare_name(rest)
        return Query(rest, filters, "symbol", name, names or (name,))
    bare = words.bare_name(rest)
    if words.NAME.fullmatch(bare):
        return Query(rest, filters, "word", bare, names)
    return Query(rest, filters, "mixed" if names else "text", "", names)


def _split(values: list[str]) -> list[str]:
    single = [one.strip().lower() for value in values for one in value.split(",")]
    return [one for one in single if one]


def _language(name: str) -> str:
    """Return a language by its name or a file extension."""
    if name in languages.EXTENSIONS:
        return name
    found = languages.detect(f"a.{name.lstrip('.')}")
    return name if found == languages.TEXT else found
