"""The tools that other agents get: search, definitions, text, diagnostics and proposals.

Results are texts of at most `MAX_TOKENS`, places first. Files with secrets are never read; unsaved
text of a running Neovim takes the place of the disk. Blocks; on any thread.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from lcursor.code import estimate
from lcursor.context.codebase import Codebase
from lcursor.context.items import SearchHit
from lcursor.mcp.server.editor import EditorAway, RunningEditor
from lcursor.project.reading import Read, Reader
from lcursor.project.root import relative_name

MAX_TOKENS: Final = 4000
"""Of a result."""
HEADROOM: Final = 400
"""Tokens for the names and notes of a result."""
MAX_SYMBOLS: Final = 20
MAX_DIAGNOSTICS: Final = 50
CONTEXT_LINES: Final = 3
"""Unchanged lines around a change, by which its place is found."""


class ToolProblem(Exception):
    """A tool cannot do what was asked; the message is for the model."""


class ProjectTools:
    """The tools for one project.

    Args:
        secrets: globs of files that are never read, in addition to the built-in ones.
    """

    def __init__(
        self, root: Path, codebase: Codebase, editor: RunningEditor, secrets: Sequence[str] = ()
    ) -> None:
        self._root = Path(os.path.realpath(root))
        self._codebase, self._editor, self._secrets = codebase, editor, tuple(secrets)

    def search(self, query: str) -> str:
        """Find code by meaning and words."""
        found = self._codebase.find(query, MAX_TOKENS - HEADROOM)
        reader = self._reader()
        hits = [each for each in found.hits if not self._is_secret(reader, each.path)]
        parts = [_hit(each) for each in hits] or ["Nothing was found."]
        more = [
            f"{each.path}:{each.first_row + 1}"
            for each in found.omitted[:8]
            if not self._is_secret(reader, each.path)
        ]
        if more:
            parts.append(f"Also: {', '.join(more)}")
        return "\n\n".join([*parts, *([f"Note: {found.note}"] if found.note else [])])

    def symbol(self, name: str) -> str:
        """Find definitions of a name."""
        found, reader = self._codebase.symbols(name, MAX_SYMBOLS), self._reader()
        lines = [
            f"{each.path}:{each.first_row + 1}-{each.end_row} {each.kind} {each.name}"
            + (f" in {each.scope}" if each.scope else "")
            for each in found
            if not self._is_secret(reader, each.path)
        ]
        return "\n".join(lines) or f"{name} is not defined in this project."

    def read(self, path: str, first_line: int = 1, last_line: int = 0) -> str:
        """Read lines of a file; `last_line` 0 is its end.

        Raises:
            ToolProblem: the file cannot be read.
        """
        first_row = max(first_line, 1) - 1
        found = self._text(path, first_row, last_line if last_line > 0 else -1)
        lines, total = [], 0
        for row, line in enumerate(found.text.removesuffix("\n").split("\n"), first_row):
            numbered = f"{row + 1}\t{line}"
            total += estimate.tokens(numbered)
            if total > MAX_TOKENS - HEADROOM:
                lines.append(f"… cut here; read on from line {row + 1}")
                break
            lines.append(numbered)
        name = self._name(path)
        state = ", unsaved in the editor" if found.is_unsaved else ""
        return f"{name}:{first_row + 1}-{first_row + len(lines)}{state}\n" + "\n".join(lines)

    def diagnostics(self, path: str = "") -> str:
        """Return the diagnostics that the editor shows.

        Raises:
            ToolProblem: no editor has the project open.
        """
        try:
            found = self._editor.diagnostics(str(self._inside(path)) if path else "")
        except EditorAway as error:
            raise ToolProblem(str(error)) from error
        reader = self._reader()
        lines = [
            f"{self._name(each['path'])}:{each['line']} {each['severity']}: {each['message']}"
            for each in found
            if not self._is_secret(reader, each["path"])
        ]
        if len(lines) > MAX_DIAGNOSTICS:
            lines[MAX_DIAGNOSTICS:] = [f"and {len(lines) - MAX_DIAGNOSTICS} more"]
        return "\n".join(lines) or "The editor shows no diagnostics."

    def propose(self, path: str, old: str, new: str) -> str:
        """Show a change as hunks that the user accepts or rejects.

        Raises:
            ToolProblem: the text is not there once, or no editor has the project open.
        """
        file = self._inside(path)
        text = self._text(path).text if file.exists() or old else ""
        if old and text.count(old) != 1:
            count = text.count(old) or "not"
            raise ToolProblem(f"`old` is {count} times in {path}; it must be there exactly once")
        if not old and text.strip():
            raise ToolProblem(f"{path} has text already; give the part to replace in `old`")
        changed = text.replace(old, new) if old else new
        if changed == text:
            raise ToolProblem("`old` and `new` are equal")
        name = self._name(path)
        diff = difflib.unified_diff(
            text.splitlines(), changed.splitlines(),
            f"a/{name}" if text else "/dev/null", f"b/{name}", n=CONTEXT_LINES, lineterm="",
        )  # fmt: skip
        try:
            problem = self._editor.propose(str(file), "\n".join(diff) + "\n")
        except EditorAway as error:
            raise ToolProblem(str(error)) from error
        if problem:
            raise ToolProblem(problem)
        return f"The user sees this change of {name} as hunks in the editor, and decides."

    def _text(self, path: str, first_row: int = 0, end_row: int = -1) -> Read:
        file = self._inside(path)
        if reason := self._editor.private_reason(file):
            raise ToolProblem(f"{path} is not shown to models: {reason}")
        reader = self._reader(self._editor.unsaved())
        found = reader.read(file, first_row, end_row)
        if reason := found.error or reader.secret_text(found.text):
            raise ToolProblem(f"{path} cannot be read: {reason}")
        return found

    def _inside(self, path: str) -> Path:
        """Return the absolute path of a file of the project.

        Raises:
            ToolProblem: it is elsewhere.
        """
        real = Path(os.path.realpath(self._root / path))
        if not real.is_relative_to(self._root):
            raise ToolProblem(f"{path} is not in this project")
        return real

    def _reader(self, unsaved: Mapping[str, str] | None = None) -> Reader:
        globs = (*self._secrets, *self._editor.excluded())
        return Reader(self._root, globs, unsaved)

    def _is_secret(self, reader: Reader, path: str) -> bool:
        return bool(reader.secret(self._root / path))

    def _name(self, path: str) -> str:
        return relative_name(self._root, self._root / path)


def _hit(hit: SearchHit) -> str:
    return f"{hit.path}:{hit.first_row + 1}-{hit.end_row} ({hit.why})\n{hit.text.rstrip()}"
