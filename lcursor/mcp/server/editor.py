"""Talk to a Neovim that already runs: find it by its sockets, and call functions of the plugin.

Each request opens a connection of its own. A Neovim that waits for a key, as at a prompt, answers
no request; it counts as absent.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lcursor.drive.client import request
from lcursor.errors import LcursorError

MODULE: Final = "lcursor.integrations.mcp"


class EditorAway(LcursorError):
    """No Neovim of the project answers."""


class RunningEditor:
    """A running Neovim that has files of a project open.

    Args:
        address: of its socket; "" to look for one.
    """

    def __init__(self, root: Path, address: str = "") -> None:
        self._root, self._address = root, address

    def unsaved(self) -> Mapping[str, str]:
        """Return the texts of buffers with unsaved changes, by absolute path; none without editor.

        Texts that the plugin keeps from models are not among them.
        """
        try:
            found = self._call("unsaved")
        except EditorAway:
            return {}
        return {each["path"]: each["text"] for each in found}

    def excluded(self) -> Sequence[str]:
        """Return the globs of files that the user keeps from models; none without editor."""
        try:
            return [*map(str, self._call("excluded"))]
        except EditorAway:
            return []

    def private_reason(self, path: Path) -> str:
        """Return why the settings of the editor keep a file from models; "" if they do not."""
        try:
            return str(self._call("private_reason", str(path)) or "")
        except EditorAway:
            return ""

    def diagnostics(self, path: str) -> Sequence[Mapping[str, Any]]:
        """Return the diagnostics of a file, or of all open files for "".

        Raises:
            EditorAway: no Neovim of the project answers.
        """
        found: Sequence[Mapping[str, Any]] = self._call("diagnostics", path)
        return found

    def propose(self, path: str, diff: str) -> str:
        """Show a unified diff as hunks; return a problem, or "".

        Raises:
            EditorAway: no Neovim of the project answers.
        """
        return str(self._call("propose", path, diff) or "")

    def _call(self, function: str, *arguments: str) -> Any:
        """Call a function of the plugin.

        Raises:
            EditorAway: no Neovim of the project answers.
        """
        code = (
            f"local name, root = ...; local has_plugin, calls = pcall(require, '{MODULE}'); "
            "if not has_plugin or not calls.has(root) then return nil end; "
            "return { calls[name](select(3, ...)) }"
        )
        for address in [self._address] if self._address else _addresses():
            try:
                if request(address, "nvim_get_mode")["blocking"]:
                    continue
                values = [function, str(self._root), *arguments]
                answer = request(address, "nvim_exec_lua", code, values)
            except (OSError, ValueError):
                continue  # it has ended, or is something else
            if answer is not None:
                self._address = address
                return answer[0] if answer else None
        self._address = ""
        raise EditorAway("no Neovim with this project open answers", "Open it, and edit a file")


def _addresses() -> Iterator[str]:
    """Yield the sockets of this user's Neovims: first of the one around this process."""
    if own := os.environ.get("NVIM"):
        yield own
    folders = [os.environ.get("XDG_RUNTIME_DIR") or ""]
    user = os.environ.get("USER") or "*"
    folders += map(str, Path(tempfile.gettempdir()).glob(f"nvim.{user}/*"))
    for folder in filter(None, folders):
        for path in sorted(Path(folder).glob("nvim.*.0")):
            if path.is_socket() and path.stat().st_uid == os.getuid():
                yield str(path)
