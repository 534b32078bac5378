"""`python -m lcursor` with an agent that calls tools by the server's own API, whatever the model.

For `eval agent --native`: a model on a llama-server otherwise gets the dialect that suits its size,
as tokens.
"""

from __future__ import annotations

import threading
from unittest import mock

from lcursor.__main__ import main
from lcursor.agent.model import TextModel, ToolModel
from lcursor.llm.pool import ModelPool


def open_model(
    pool: ModelPool, name: str, key: str, closed: threading.Event, *, calls_tools: bool = False
) -> TextModel:
    """Return a conversation with native calls; see `lcursor.agent.model.open_model`."""
    return ToolModel(pool, name, key)


if __name__ == "__main__":
    with mock.patch("lcursor.agent.assembly.open_model", open_model):
        main()
