"""Why a file is not in the index, asked of the rules themselves: no index is needed. Any thread.

Opens the file that it is asked about, and nothing else.
"""

from __future__ import annotations

from pathlib import Path

from lcursor.index import reading
from lcursor.project import filetypes, ignore
from lcursor.project.secrets import SecretGlobs


def why(root: Path, name: str, own: SecretGlobs) -> str:
    """Return the reason in words, by ignore rules, name, size and content; "" if there is none.

    Args:
        root: of the project.
        name: of the file, relative to the root.
        own: what the user calls secret.
    """
    reason = ignore.why(root, name)
    if reason:
        return reason
    seen = reading.look(root, name)
    if seen is None:
        return ""
    reason = filetypes.by_name(name, seen[0]) or own.reason(name)
    if reason:
        return reason
    found = reading.read(root, name)
    return found.reason if isinstance(found, reading.Refusal) else filetypes.by_content(found.data)
