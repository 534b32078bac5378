"""Open the completion backend: a model in this process, or a server.

The imports are lazy, on the completion service's thread, because llama.cpp takes 0.3 s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lcursor.catalog import manifest, store
from lcursor.config import CompletionConfig

if TYPE_CHECKING:
    from lcursor.fim.backend import Backend, OnImproved, Progress
    from lcursor.fim.context_ring import ContextRing


def open_backend(
    config: CompletionConfig, progress: Progress, ring: ContextRing, on_improved: OnImproved
) -> Backend:
    """Load the configured model, or prepare the connection to the configured server.

    Raises:
        LcursorError: the model is missing; see also `Engine` and `Endpoint`.
        Cancelled: `progress` returned False.
    """
    if config.endpoint:
        from lcursor.fim.endpoint import Endpoint

        return Endpoint(config, config.endpoint, ring)
    from lcursor.fim.engine import Engine

    path = store.resolve(config.model, "completion")
    return Engine(path, manifest.family_of(path), config, progress, ring, on_improved)
