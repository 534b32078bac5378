"""Why a file is not in the index, asked of the rules themselves: no index is needed. Any thread.

Opens the file that it is asked about, and nothing else.
"""

from __future__ import annotations

import os
from pathlib import Path

from lcursor.index import files, reading, skip
from lcursor.index.own import OwnSecrets


def name_of(root: Path, path: Path) -> str:
    """Return a path as the index has it; one that is outside begins with `../`."""
    whole = os.path.join(os.path.realpath(path.parent), path.name)  # the file may be a link itself
    return os.path.relpath(whole, root).replace(os.sep, "/")


def why(root: Path, name: str, own: OwnSecrets) -> str:
    """Return the reason in words, by ignore rules, name, size and content; "" if there is none.

    Args:
        root: of the project.
        name: of the file, relative to the root.
        own: what the user calls secret.
    """
    reason = files.why(root, name)
    if reason:
        return reason
    seen = reading.look(root, name)
    if seen is None:
        return ""
    reason = skip.by_name(name, seen[0]) or own.reason(name)
    if reason:
        return reason
    found = reading.read(root, name)
    return found.reason if isinstance(found, reading.Refusal) else skip.by_content(found.data)
