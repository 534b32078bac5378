"""The speed of completion models on this machine's CPU: measured for one, predicted for the others.

The host measures the model that it has loaded (`fim/speed.py`), once per CPU and build of the
engine. Reading a prompt is limited by computation, so its time grows with the number of weights and
the cost of their format; writing is limited by memory, so its time grows with the bytes of the
weights. Any thread.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import re
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from lcursor import system
from lcursor.catalog import hardware, manifest
from lcursor.catalog.manifest import Model
from lcursor.errors import ModelUnknown
from lcursor.installer.venv import read_stamp
from lcursor.storage import folders, json_text, stored

WEIGHTS = {"qwen2.5-coder-0.5b": 0.36, "qwen2.5-coder-1.5b": 1.31}
"""Billions of weights in the layers, where the embedding, with which nothing is multiplied, is a
large part of the parameters."""
READ_COSTS = {"qwen2.5-coder-0.5b": 1.65}
"""Time per weight to read a token, relative to a Q4_0 copy: the rows of this model are too short
for Q4_K, so they are Q5_0. Measured with AVX2, bench/results/2026-11-27-speed-cpu.md."""
READ_COST = 1.1
"""The same for other models."""
COPY_BYTES = 0.9
"""Size of a Q4_0 copy, relative to its original."""


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast a model is."""

    read_tokens_s: float
    """Tokens of a prompt per second, in batches of 64."""
    write_tokens_s: float
    """Generated tokens per second, one at a time."""

    def describe(self) -> str:
        """Return it in words."""
        read, write = (f"{each:.{0 if each >= 10 else 1}f}" for each in self._numbers())
        return f"reads about {read} and writes {write} tokens per second here"

    def _numbers(self) -> tuple[float, float]:
        return self.read_tokens_s, self.write_tokens_s


@dataclass(frozen=True, slots=True)
class Measured:
    """The measured speed of a model."""

    machine: str
    """The result of `machine` then."""
    model: str
    """Its name in the manifest."""
    speed: Speed


def machine() -> str:
    """Return what a speed depends on besides the model: the CPU, its cores, the engine's build."""
    cpu = ""
    if found := re.search(r"^model name\s*: (.*)$", system.cpu_info(), re.M):
        cpu = found[1]
    version, stamp = "", read_stamp(Path(sys.prefix))
    with suppress(importlib.metadata.PackageNotFoundError):
        version = importlib.metadata.version("llama-cpp-python")
    build = stamp.parts.get("engine", ""), stamp.engine.get("step", "")
    parts = (cpu or platform.machine(), f"{hardware.physical_cores()} cores", version, *build)
    return ", ".join(filter(None, parts))


def path() -> Path:
    """Return the file of the measured speed; it need not exist."""
    return folders.cache_home() / "speed.json"


def load() -> Measured | None:
    """Return the measured speed; None if none was measured with this CPU and engine."""
    try:
        found = stored.load(Measured, json_text.parse(path().read_bytes()))
        manifest.find(found.model)
    except (OSError, *stored.DAMAGE, ModelUnknown):
        return None
    is_valid = min(found.speed.read_tokens_s, found.speed.write_tokens_s) > 0
    return found if is_valid and found.machine == machine() else None


def save(model: str, speed: Speed) -> None:
    """Store the measured speed of a model of the manifest; errors are ignored."""
    with suppress(OSError):
        folders.create(path().parent)
        data = json.dumps(asdict(Measured(machine(), model, speed)), indent=1)
        folders.write_file(path(), data.encode())


def predict(measured: Measured, model: Model) -> Speed:
    """Return the speed that a model of the manifest would have here."""
    known = manifest.find(measured.model)
    return Speed(
        measured.speed.read_tokens_s * (_read_cost(known) / _read_cost(model)),
        measured.speed.write_tokens_s * (_write_cost(known) / _write_cost(model)),
    )


def _read_cost(model: Model) -> float:
    """Return the time to read a token: weights in billions, times their cost."""
    weights = WEIGHTS.get(model.made_from or model.name) or _billions(model)[-1]
    return weights * (1.0 if model.made_from else READ_COSTS.get(model.name, READ_COST))


def _write_cost(model: Model) -> float:
    """Return the time to write a token: the bytes of the weights that it needs."""
    billions = _billions(model)
    size = model.bytes * (COPY_BYTES if model.made_from else 1.0)
    return size * billions[-1] / billions[0]


def _billions(model: Model) -> list[float]:
    """Return how many parameters a model has, and how many of these are active."""
    return [float(each) for each in re.findall(r"([\d.]+)B", model.parameters)]
