"""Read the messages of another editor: the text, and the texts that come with it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from lcursor.project.reading import Reader


def read(blocks: Any, reader: Reader) -> tuple[str, str]:
    """Return the text of a message, and the texts that come with it, without those of secrets."""
    words, contexts = list[str](), list[str]()
    for block in blocks if isinstance(blocks, list) else []:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text":
            words.append(str(block.get("text") or ""))
        elif kind == "resource_link":
            words.append(f"`{_name(block.get('uri'))}`")
        elif kind == "resource" and isinstance(found := block.get("resource"), dict):
            name, text = _name(found.get("uri")), found.get("text")
            path = Path("/", unquote(_parts(found.get("uri")).path).replace("\0", ""))
            secret = isinstance(text, str) and (reader.secret(path) or reader.secret_text(text))
            words.append(f"`{name}` (not read: {secret})" if secret else f"`{name}`")
            if isinstance(text, str) and not secret:
                contexts.append(f"{name}:\n\n```\n{text}\n```")
    return " ".join(filter(None, words)), "\n\n".join(contexts)


def _name(uri: Any) -> str:
    """Return the path of a file, with its lines as `:first-last`; other addresses as they are."""
    parts = _parts(uri)
    if parts.scheme != "file":
        return str(uri)
    rows = re.fullmatch(r"L(\d+)(?:[:-]L?(\d+))?", parts.fragment)
    more = ":" + "-".join(filter(None, rows.groups())) if rows else ""
    return unquote(parts.path) + more


def _parts(uri: Any) -> SplitResult:
    """Return the parts of an address; of what is none, no parts."""
    try:
        return urlsplit(str(uri or ""))
    except ValueError:
        return urlsplit("")
