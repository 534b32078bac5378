"""What the machine reports of its power supply, and of other programs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lcursor import system
from lcursor.catalog.hardware import Load, Power

MAINS_ON, MAINS_OFF = {"type": "Mains", "online": "1"}, {"type": "Mains", "online": "0"}
FULL, EMPTYING = (
    {"type": "Battery", "status": "Full"},
    {"type": "Battery", "status": "Discharging"},
)


@pytest.fixture(autouse=True)
def _proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "PROC", tmp_path)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of power supplies."""
    monkeypatch.setattr(system, "POWER_SUPPLIES", tmp_path / "supplies")
    system.POWER_SUPPLIES.mkdir()
    return system.POWER_SUPPLIES


def plug(folder: Path, *supplies: dict[str, str]) -> None:
    """Write power supplies as Linux does."""
    for number, files in enumerate(supplies):
        each = folder / f"supply{number}"
        each.mkdir(parents=True, exist_ok=True)
        for name, word in files.items():
            (each / name).write_text(word + "\n")


@pytest.mark.parametrize(
    ("supplies", "is_on_battery"),
    [
        ([], False),
        ([MAINS_ON], False),
        ([MAINS_ON, EMPTYING], False),
        ([MAINS_OFF, MAINS_ON], False),
        ([FULL], False),
        ([MAINS_OFF], True),
        ([MAINS_OFF, FULL], True),
        ([FULL, EMPTYING], True),
        ([{"type": "USB", "online": "1"}], False),
        ([EMPTYING | {"scope": "Device"}], False),  # of a mouse
        ([{}], False),
    ],
)
def test_the_power_supply_is_read(
    folder: Path, supplies: list[dict[str, str]], is_on_battery: bool
) -> None:
    plug(folder, *supplies)
    assert Power().is_on_battery() is is_on_battery


def test_without_a_folder_the_machine_is_not_on_battery(folder: Path) -> None:
    folder.rmdir()
    assert not Power().is_on_battery()


def test_power_is_looked_at_every_half_minute(folder: Path) -> None:
    plug(folder, MAINS_OFF)
    now_s = [0.0]
    power = Power(clock=lambda: now_s[0])
    assert power.is_on_battery()
    plug(folder, MAINS_ON)
    now_s[0] = 29.9
    assert power.is_on_battery()
    now_s[0] = 30.0
    assert not power.is_on_battery()


class Machine:
    """Two cores, whose seconds pass as a test says."""

    def __init__(self, folder: Path) -> None:
        self.path, self.now_s, self.own_s = folder / "stat", 0.0, 0.0
        self._ticks = [0] * 10
        self.load = self.watch()
        self.run()

    def watch(self) -> Load:
        """Return a new check of its load."""
        return Load(own_s=lambda: self.own_s, clock=lambda: self.now_s)

    def run(self, others: float = 0, own: float = 0, nice: float = 0, seconds: float = 1) -> bool:
        """Let programs use that many cores for a while; return whether it counts as busy."""
        self.now_s += seconds
        self.own_s += own * seconds
        second = os.sysconf("SC_CLK_TCK") * seconds
        for at, cores in enumerate((others / 2 + own, nice, others / 2, 2 - others - own - nice)):
            self._ticks[at] += round(cores * second)
        self.path.write_text(f"cpu  {' '.join(map(str, self._ticks))}\ncpu0 1 2 3\n")
        return self.load.is_busy()


@pytest.mark.parametrize(
    ("others", "own", "nice", "is_busy"),
    [
        (0, 0, 0, False),
        (0, 2, 0, False),
        (1, 0, 0, False),  # one program, while the engine rests
        (0.66, 1.34, 0, False),  # and while it computes
        (2, 0, 0, True),  # two programs
        (1, 1, 0, True),
        (0, 0, 2, False),
        (1.95, 0.05, 0, True),
    ],
)
def test_other_programs_use_all_cores(
    tmp_path: Path, others: float, own: float, nice: float, is_busy: bool
) -> None:
    assert Machine(tmp_path).run(others, own, nice) is is_busy


def test_the_load_is_looked_at_every_second(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    assert not machine.run(2, seconds=0.9), "too early to look again"
    assert machine.run(2, seconds=0.2)
    assert machine.run(0, seconds=0.9)
    assert not machine.run(0, seconds=0.2)


def test_the_first_check_covers_the_time_since_the_creation(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.load = machine.watch()
    assert machine.run(2)


def test_without_a_count_the_machine_is_not_busy(tmp_path: Path) -> None:
    now_s = iter(range(99))
    for text in (None, "", "cpu 1 2\n", "cpu a b c d e f\n"):
        if text is not None:
            (tmp_path / "stat").write_text(text)
        load = Load(own_s=lambda: 0.0, clock=lambda: float(next(now_s)))
        assert not load.is_busy()
        assert not load.is_busy()
