"""What the machine tells of its power supply."""

from __future__ import annotations

from pathlib import Path

import pytest

from lcursor.catalog.hardware import Power

MAINS_ON, MAINS_OFF = {"type": "Mains", "online": "1"}, {"type": "Mains", "online": "0"}
FULL, EMPTYING = (
    {"type": "Battery", "status": "Full"},
    {"type": "Battery", "status": "Discharging"},
)


def plug(folder: Path, *supplies: dict[str, str]) -> Path:
    """Write a folder of power supplies as Linux does; return it."""
    for number, files in enumerate(supplies):
        each = folder / f"supply{number}"
        each.mkdir(parents=True, exist_ok=True)
        for name, word in files.items():
            (each / name).write_text(word + "\n")
    return folder


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
def test_power(tmp_path: Path, supplies: list[dict[str, str]], is_on_battery: bool) -> None:
    assert Power(plug(tmp_path, *supplies)).is_on_battery() is is_on_battery


def test_without_a_folder_the_machine_is_not_on_battery(tmp_path: Path) -> None:
    assert not Power(tmp_path / "none").is_on_battery()


def test_power_is_looked_at_every_half_minute(tmp_path: Path) -> None:
    now_s = [0.0]
    power = Power(plug(tmp_path, MAINS_OFF), lambda: now_s[0])
    assert power.is_on_battery()
    plug(tmp_path, MAINS_ON)
    now_s[0] = 29.9
    assert power.is_on_battery()
    now_s[0] = 30.0
    assert not power.is_on_battery()
