"""Open the completion backend: a model in this process, or a server. Measure the model's speed.

The imports are lazy, on the completion service's thread, because llama.cpp takes 0.3 s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lcursor.catalog import manifest, store
from lcursor.config import CompletionConfig

if TYPE_CHECKING:
    from lcursor.fim.completer import Progress
    from lcursor.fim.endpoint import Endpoint
    from lcursor.fim.engine import Engine


def open_backend(config: CompletionConfig, progress: Progress) -> Engine | Endpoint:
    """Load the configured model, or prepare the connection to the configured server.

    Raises:
        LcursorError: the model is missing; see also `Engine` and `Endpoint`.
        Cancelled: `progress` returned False.
    """
    if config.endpoint:
        from lcursor.fim.endpoint import Endpoint

        return Endpoint(config, config.endpoint)
    from lcursor.fim.engine import Engine

    path = store.resolve(config.model, "completion")
    return Engine(path, manifest.family_of(path), config, progress)


def measure_speed(engine: Engine) -> str:
    """Measure and store the speed of a model, if none is stored; return a line for the log.

    Raises:
        LcursorError, Cancelled: see `speed.measure`.
    """
    from lcursor.fim import speed

    found = speed.measure_once(engine.model, engine.abort)
    return f"{engine.model.path.name} {found.describe()}" if found else ""
