"""More cases by chance with `pytest --hypothesis-profile thorough`, as in properties."""

from __future__ import annotations

from typing import cast

from hypothesis import settings


def is_thorough() -> bool:
    """Return whether that profile is in use."""
    default = cast("settings", settings.default)
    return default.max_examples == settings.get_profile("thorough").max_examples
