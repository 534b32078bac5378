"""Detect this machine's GPU, RAM, physical cores, power supply and load.

Never fails; blocks < 5 s.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from lcursor import system
from lcursor.process.run import output_of

Vendor = Literal["nvidia", "amd", "apple", "other", "none"]

MIB = 1 << 20
GIB = 1 << 30
_PROBE_S = 5.0
MIN_CUDA_BYTES = 256 * MIB
"""Free memory of a GPU with which CUDA can begin, without weights; estimated."""
POWER_S = 30.0
"""Time after which the power supply is checked again."""
LOAD_S = 1.0
"""Time after which the load is checked again."""
MIN_BUSY = 0.4
"""Share of all cores that other programs must use to count as busy, while this one computes."""
MIN_BUSY_OF_REST = 0.9
"""The same, of what this process leaves."""


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU as reported by llama.cpp, whatever its back end."""

    name: str
    total_bytes: int
    free_bytes: int


@dataclass(frozen=True, slots=True)
class Hardware:
    """The hardware that decides which models fit; None if unknown."""

    vendor: Vendor
    gpu: str | None
    gpu_bytes: int | None
    """Memory of all GPUs, among which llama.cpp divides a chat model; None if there is none, or if
    `detect` cannot read it."""
    gpu_free_bytes: int | None
    ram_bytes: int | None
    cores: int
    """Physical cores."""
    largest_gpu_bytes: int | None = None
    """Memory of the largest of several GPUs: a completion model uses one; None for one GPU."""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return asdict(self)

    def using(self, devices: Sequence[Device]) -> Hardware:
        """Return the hardware that an engine can use: these GPUs, or none."""
        vendor = self.vendor if self.vendor != "none" else "other"
        return replace(self, vendor=vendor if devices else "none", **_together(devices))

    def describe(self) -> str:
        """Return a description in one line."""
        if self.vendor == "none":
            gpu = "no GPU found"
        elif self.gpu_bytes is None:
            gpu = f"{self.gpu} (its memory is unknown to lcursor)"
        else:
            gpu = f"{self.gpu}, {self.gpu_bytes / GIB:.1f} GiB"
            if self.gpu_free_bytes is not None:
                gpu += f" ({self.gpu_free_bytes / GIB:.1f} GiB free)"
        ram = f"{self.ram_bytes / GIB:.0f} GiB RAM" if self.ram_bytes else "RAM unknown"
        return f"{gpu}; {ram}; {self.cores} physical cores"


class Power:
    """Checks whether the machine runs on battery, at most every `POWER_S`; on Linux only.

    Args:
        look: returns it now.
    """

    def __init__(
        self,
        look: Callable[[], bool] = system.is_on_battery,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look, self._clock = look, clock
        self._until_s = -1.0
        self._is_on_battery = False

    def is_on_battery(self) -> bool:
        """Return whether it does; False if unknown."""
        now_s = self._clock()
        if now_s >= self._until_s:
            self._is_on_battery, self._until_s = self._look(), now_s + POWER_S
        return self._is_on_battery


class Load:
    """Checks whether other programs use all cores, at most every `LOAD_S`; on Linux only.

    Programs of low priority do not count, because they make way. The first check covers the
    time since this object was created.

    Args:
        times: as `system.processor_times`; while it returns None, the machine is not busy.
        own_s: processor time of this process.
    """

    def __init__(
        self,
        times: Callable[[], tuple[float, float] | None] = system.processor_times,
        own_s: Callable[[], float] = time.process_time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._times, self._own_s, self._clock = times, own_s, clock
        self._until_s = clock() + LOAD_S
        self._before = self._read()
        self._is_busy = False

    def is_busy(self) -> bool:
        """Return whether other programs left no core to this one since the last check."""
        now_s = self._clock()
        if now_s >= self._until_s:
            self._is_busy, self._until_s = self._look(), now_s + LOAD_S
        return self._is_busy

    def _look(self) -> bool:
        before, self._before = self._before, self._read()
        if before is None or self._before is None:
            return False
        total, rest, own = (now - then for now, then in zip(self._before, before, strict=True))
        others = total - rest - own
        return others >= MIN_BUSY * total and others >= MIN_BUSY_OF_REST * (total - own)

    def _read(self) -> tuple[float, float, float] | None:
        """Return seconds of all cores: in total, free or of low priority, and of this process."""
        found = self._times()
        return found and (*found, self._own_s())


def _together(devices: Sequence[Device]) -> dict[str, Any]:
    """Return the fields of `Hardware` about GPUs."""
    names = Counter(device.name for device in devices)
    sizes = [device.total_bytes for device in devices]
    return {
        "gpu": " + ".join(f"{n} × {name}" if n > 1 else name for name, n in names.items()) or None,
        "gpu_bytes": sum(sizes) if sizes else None,
        "gpu_free_bytes": sum(device.free_bytes for device in devices) if sizes else None,
        "largest_gpu_bytes": max(sizes) if len(sizes) > 1 else None,
    }


def parse_nvidia(text: str) -> list[Device]:
    """Parse nvidia-smi's `name, memory.total, memory.free` lines."""
    found = []
    for line in text.splitlines():
        name, *numbers = (part.strip() for part in line.rsplit(",", 2))
        # A unified-memory GPU prints "[N/A]" where a number is expected.
        if len(numbers) == 2 and all(number.isdigit() for number in numbers):
            found.append(Device(name, int(numbers[0]) * MIB, int(numbers[1]) * MIB))
    return found


def parse_cores(text: str) -> int:
    """Count the physical cores in the kernel's description; 0 if it does not list them."""
    cores = set()
    for block in text.split("\n\n"):
        pairs = dict(re.findall(r"^([^\t:]+?)\s*: ?(.*)$", block, re.MULTILINE))
        if "core id" in pairs:
            cores.add((pairs.get("physical id", "0"), pairs["core id"]))
    return len(cores)


def physical_cores() -> int:
    """Count the physical cores that this process may use; at least 1."""
    found = 0
    if platform.system() == "Darwin":
        with contextlib.suppress(ValueError):
            found = int(output_of(["sysctl", "-n", "hw.physicalcpu"]))
    else:
        found = parse_cores(system.cpu_info())
    allowed = system.usable_cores()
    return min(found or allowed, allowed)


def ram_bytes() -> int | None:
    """Return the size of the RAM; None if unknown."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(ValueError):
        return int(output_of(["sysctl", "-n", "hw.memsize"]))
    return None


def _nvidia() -> list[Device]:
    query = ["--query-gpu=name,memory.total,memory.free", "--format=csv,noheader,nounits"]
    return parse_nvidia(output_of(["nvidia-smi", *query], max_s=_PROBE_S))


def is_nvidia_full() -> bool:
    """Return whether a GPU of NVIDIA has too little free memory for CUDA to begin."""
    if not system.has_nvidia_driver():
        return False
    return any(device.free_bytes < MIN_CUDA_BYTES for device in _nvidia())


def detect() -> Hardware:
    """Detect this machine."""
    here = Hardware("none", None, None, None, ram_bytes(), physical_cores())
    if nvidia := _nvidia():
        return replace(here, vendor="nvidia", **_together(nvidia))
    if platform.system() == "Darwin" and platform.machine() == "arm64":
        return replace(here, vendor="apple", gpu="Apple GPU")
    if Path("/dev/kfd").exists():
        return replace(here, vendor="amd", gpu="AMD GPU")
    return here
