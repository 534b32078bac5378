"""The models: which there are, which fit this machine, where their files are, and getting them.

Imports errors only. Nothing here loads a model; the heavy library (huggingface_hub) is imported
inside the functions of `hub.py`, so that asking for a path costs a few milliseconds.
"""

from __future__ import annotations

from lcursor.catalog.gguf import check_for_completion
from lcursor.catalog.store import resolve

__all__ = ["check_for_completion", "resolve"]
