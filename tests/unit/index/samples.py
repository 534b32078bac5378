"""A small piece of each language, as people write it, and what it defines."""

from __future__ import annotations

from tests.unit.index import samples_compiled, samples_data, samples_scripting

SAMPLES = [*samples_compiled.SAMPLES, *samples_scripting.SAMPLES, *samples_data.SAMPLES]
