"""Detect this machine's GPU, RAM, physical cores, power supply and load.

Never fails; blocks < 5 s.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from lcursor.process.run import output_of

Vendor = Literal["nvidia", "amd", "apple", "none"]

MIB = 1 << 20
GIB = 1 << 30
_PROBE_S = 5.0
POWER_S = 30.0
"""Time after which the power supply is checked again."""
LOAD_S = 1.0
"""Time after which the load is checked again."""
MIN_BUSY = 0.4
"""Share of all cores that other programs must use to count as busy, while this one computes."""
MIN_BUSY_OF_REST = 0.9
"""The same, of what this process leaves."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """The hardware that decides which models fit; None if unknown."""

    vendor: Vendor
    gpu: str | None
    gpu_bytes: int | None
    """Memory of the largest GPU; None if there is none, or if it cannot be read (AMD, Apple)."""
    gpu_free_bytes: int | None
    ram_bytes: int | None
    cores: int
    """Physical cores."""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return asdict(self)

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
    """Checks whether the machine runs on battery, at most every `POWER_S`.

    Args:
        folder: Linux's list of power supplies; without it, the machine is not on battery.
    """

    def __init__(
        self,
        folder: Path = Path("/sys/class/power_supply"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder, self._clock = folder, clock
        self._until_s = -1.0
        self._is_on_battery = False

    def is_on_battery(self) -> bool:
        """Return whether no mains supply is connected, or a battery is discharging."""
        now_s = self._clock()
        if now_s >= self._until_s:
            self._is_on_battery, self._until_s = self._look(), now_s + POWER_S
        return self._is_on_battery

    def _look(self) -> bool:
        try:
            supplies = sorted(self._folder.iterdir())
        except OSError:
            return False
        mains = [_word(each / "online") for each in supplies if _word(each / "type") == "Mains"]
        if mains:
            return "1" not in mains
        return any(
            _word(each / "status") == "Discharging"
            for each in supplies
            # The battery of a mouse or a headset has the scope "Device".
            if _word(each / "type") == "Battery" and _word(each / "scope") != "Device"
        )


class Load:
    """Checks whether other programs use all cores, at most every `LOAD_S`.

    Programs of low priority do not count, because they make way. The first check covers the
    time since this object was created.

    Args:
        stat: Linux's count of the time of each kind; without it, the machine is not busy.
        own_s: processor time of this process.
    """

    def __init__(
        self,
        stat: Path = Path("/proc/stat"),
        own_s: Callable[[], float] = time.process_time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stat, self._own_s, self._clock = stat, own_s, clock
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
        with contextlib.suppress(OSError, ValueError, IndexError):
            with self._stat.open() as file:
                ticks = [int(each) for each in file.readline().split()[1:9]]
            _, nice, _, idle, waiting, *_ = ticks
            second = os.sysconf("SC_CLK_TCK")
            return sum(ticks) / second, (nice + idle + waiting) / second, self._own_s()
        return None


def _word(path: Path) -> str:
    """Return the content of a file; "" if it cannot be read."""
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def parse_nvidia(text: str) -> tuple[str, int, int] | None:
    """Parse nvidia-smi's `name, memory.total, memory.free` lines; return the largest GPU."""
    found = []
    for line in text.splitlines():
        name, *numbers = (part.strip() for part in line.rsplit(",", 2))
        # A unified-memory GPU prints "[N/A]" where a number is expected.
        if len(numbers) == 2 and all(number.isdigit() for number in numbers):
            found.append((name, int(numbers[0]) * MIB, int(numbers[1]) * MIB))
    return max(found, key=lambda gpu: gpu[1], default=None)


def parse_cores(text: str) -> int:
    """Count the physical cores in /proc/cpuinfo; 0 if it does not list them."""
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
        with contextlib.suppress(OSError):
            found = parse_cores(Path("/proc/cpuinfo").read_text(errors="replace"))
    allowed = os.cpu_count() or 1
    with contextlib.suppress(AttributeError, OSError):
        allowed = len(os.sched_getaffinity(0))
    return min(found or allowed, allowed)


def ram_bytes() -> int | None:
    """Return the size of the RAM; None if unknown."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(ValueError):
        return int(output_of(["sysctl", "-n", "hw.memsize"]))
    return None


def detect() -> Hardware:
    """Detect this machine."""
    rest = {"ram_bytes": ram_bytes(), "cores": physical_cores()}
    query = ["--query-gpu=name,memory.total,memory.free", "--format=csv,noheader,nounits"]
    if nvidia := parse_nvidia(output_of(["nvidia-smi", *query], max_s=_PROBE_S)):
        return Hardware("nvidia", *nvidia, **rest)  # type: ignore[arg-type]
    if platform.system() == "Darwin" and platform.machine() == "arm64":
        return Hardware("apple", "Apple GPU", None, None, **rest)  # type: ignore[arg-type]
    if Path("/dev/kfd").exists():
        return Hardware("amd", "AMD GPU", None, None, **rest)  # type: ignore[arg-type]
    return Hardware("none", None, None, None, **rest)  # type: ignore[arg-type]
