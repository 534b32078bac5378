"""Parse JSON that somebody else wrote: a server, a model, or a file that may be damaged. Pure."""

from __future__ import annotations

import json
from typing import Any


def parse(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: it is no JSON, or nested more deeply than this program can read.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
