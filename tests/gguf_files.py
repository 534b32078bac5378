"""Small GGUF files that llama.cpp can load."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

from lcursor.catalog import selftest_model


def write_model(path: Path) -> None:
    """Write the self-test's model with markers to fill in the middle with, 1.5 MB."""
    markers = {f"tokenizer.ggml.fim_{name}_token_id": 2 for name in ("pre", "suf", "mid")}
    pairs = {**selftest_model.metadata(), **markers}
    with patch.object(selftest_model, "metadata", lambda *_: pairs):
        selftest_model.write(path)
