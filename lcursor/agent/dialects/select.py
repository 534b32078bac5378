"""Choose the dialect of a model: by the manifest, else by its name and size. Pure."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Final

from lcursor.agent.dialects.dialect import Dialect
from lcursor.agent.dialects.fenced import Fenced
from lcursor.agent.dialects.native import Native
from lcursor.agent.guided.choice import Choice
from lcursor.agent.records import DialectName
from lcursor.catalog import manifest

MIN_NATIVE_BILLIONS: Final = 14
MAX_CHOICE_BILLIONS: Final = 3
_TRAINED: Final = re.compile(
    r"qwen-?3.*coder|devstral|gpt-oss|glm-?[45]|kimi-?k|minimax-?m|deepseek-?v[34]"
)
"""Models that are trained to work as agents, in any size."""
_CAPABLE: Final = re.compile(
    r"qwen-?3|mistral|magistral|ministral|nemotron|hermes|seed-?oss|gemma-?[34]"
)
"""Models that call tools well if they are large."""
_JSON: Final = re.compile(r"qwen-?3(?![.\d])(?!.*(coder|next))|qwen-?2|hermes")
"""Models whose templates have JSON in calls, not tags."""
_BILLIONS: Final = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)b(?![a-z])")


def dialect_for(model: str, *, is_hosted: bool = False) -> Dialect:
    """Return the dialect of a model.

    Args:
        model: a name of the manifest, the name on a server, or the path of a file.
        is_hosted: a provider runs it; these models are large.
    """
    name = re.sub(r"[\s_]+", "-", PurePath(model).name.lower())
    dialect = _of_manifest(model) or ("native" if is_hosted else _by_name(name))
    if dialect == "native":
        return Native("json" if _JSON.search(name) else "tags")
    return Choice() if dialect == "choice" else Fenced()


def _of_manifest(model: str) -> DialectName | None:
    name, file = model.lower(), PurePath(model).name
    found = (one for one in manifest.load() if one.name == name or one.file == file)
    return next((one.dialect for one in found), None)


def _by_name(name: str) -> DialectName:
    sizes = _BILLIONS.findall(name)
    billions = float(sizes[0]) if sizes else 0.0
    if _TRAINED.search(name) or (_CAPABLE.search(name) and billions >= MIN_NATIVE_BILLIONS):
        return "native"
    return "choice" if 0 < billions <= MAX_CHOICE_BILLIONS else "fenced"
