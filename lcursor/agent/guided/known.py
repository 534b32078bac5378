"""What a small model may name: files, definitions and regions that it has seen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from lcursor.agent.records import Known
from lcursor.agent.tools.tool import ToolContext
from lcursor.code import languages, symbols
from lcursor.workspace.files import Denied

MAX_KNOWN_PATHS: Final = 60
MAX_KNOWN_FILES: Final = 20
"""Files of which the definitions may be named."""
MAX_KNOWN_SYMBOLS: Final = 40
"""Of each of these files."""
MAX_NAMED: Final = 200
"""Words of an output that are tested for being a path."""
_PATH: Final = re.compile(r"[\w./+-]*\w\.\w+")


class KnownNames:
    """Collects the names, and caches the definitions of files."""

    def __init__(self) -> None:
        self._symbols: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        """Lines and definitions of files."""

    def collect(self, context: ToolContext) -> Known:
        """Return what may be named."""
        seen, files = context.seen, context.files
        if not seen.paths:  # all files of a small project, the newest of a large one
            context.lookup.glob("**", lambda: False)
        for path in {region.path for region in seen.regions.values()}:
            seen.update(path, _lines(context, path))
        try:
            top = [name.rstrip("/") for name in files.names(".")]
        except Denied:
            top = []
        newest = [path for path in reversed(seen.paths) if files.exists(path)]
        paths = tuple(dict.fromkeys([*newest[:MAX_KNOWN_PATHS], *top[:MAX_KNOWN_PATHS]]))
        definitions = {path: self._definitions(context, path) for path in newest[:MAX_KNOWN_FILES]}
        regions = {
            key: region
            for key, region in seen.regions.items()
            if region.first_row < region.last_row
        }
        named = {path: names for path, names in definitions.items() if names}
        return Known(paths, named, regions, context.commands())

    def _definitions(self, context: ToolContext, path: str) -> tuple[str, ...]:
        """Return the names of a file's definitions."""
        lines = tuple(_lines(context, path))
        cached = self._symbols.get(path)
        if cached is None or cached[0] != lines:
            language = languages.detect(path, lines[0] if lines else "")
            names = dict.fromkeys(each.name for each in symbols.all_of(lines, language))
            cached = self._symbols[path] = (lines, tuple(names)[:MAX_KNOWN_SYMBOLS])
        return cached[1]


def name_paths(context: ToolContext, text: str) -> None:
    """Record the files that an output names."""
    files = context.files
    words = dict.fromkeys(_PATH.findall(text))
    for word in list(words)[:MAX_NAMED]:
        try:
            name = files.relative(word)
        except Denied:
            continue
        if files.exists(name) and not files.is_folder(name):
            context.seen.name([name])


def _lines(context: ToolContext, path: str) -> Sequence[str]:
    try:
        return context.files.read(path).text.lines
    except Denied:
        return ()
