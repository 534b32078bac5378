"""The typing bench drives a real Neovim; the host is a fake one that knows every answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench import plugin, typing_run
from bench.plugin import Plugin
from bench.trials import COLD_KEYS, pick_spots, read_lines
from bench.typing_report import jump_summary, summary
from bench.typing_run import run, run_cold
from tests.fakes.control import STATS, FakeHost

PROGRAM = "\n".join(
    f"    value_{number} = compute(first, second) < third[{number}]" for number in range(130)
)
AT_ONCE = "vim.g.lcursor = { completion = { debounce_ms = 0 } }\n"


@pytest.fixture(autouse=True)
def _is_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rest for less time than people do: the host answers at once, without idle work."""
    monkeypatch.setattr(typing_run, "IDLE_S", 0.05)
    monkeypatch.setattr(typing_run, "JUMP_TO_KEY_S", 0.1)
    monkeypatch.setattr(typing_run, "QUIET_S", 0.5)
    monkeypatch.setattr(plugin, "SILENCE_S", 0.5)


@pytest.mark.parametrize("at_once", [True, False], ids=["before-the-keys", "at-the-first-key"])
def test_a_host_that_is_always_right(
    neovim: Path, tmp_path: Path, host: FakeHost, at_once: bool
) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    lines = read_lines(path)
    spots = pick_spots(lines, 2, 1)
    starts = {(spot.row, len(spot.before)) for spot in spots}

    def reply(params: dict[str, Any]) -> str:
        here = (params["row"], params["col"])
        return lines[here[0]][here[1] :] if at_once or here not in starts else ""

    host.reply = reply
    installed = Plugin(init=AT_ONCE + host.init())
    _, trials = run(installed, neovim, path, spots, pace_ms=100, gate_off=at_once)

    assert [trial.final for trial in trials] == [spot.rest for spot in spots]
    found = summary(trials)
    assert found["shown"] == len(spots)
    assert found["exact"] == (len(spots) if at_once else None)  # which takes the gate off
    assert found["answered"] == found["keystrokes"]
    read = 0 if at_once else STATS["decoded_tokens"]
    assert [trial.tokens[0] for trial in trials] == [read, read]
    assert found["tokens_per_keystroke_median"] == 0
    # Two keys may be handled at once, and then the first of them took no time of its own.
    assert all(sum(trial.main_ms) > 0 for trial in trials)


def test_the_keys_are_typed_again_with_the_gate_off(
    neovim: Path, tmp_path: Path, host: FakeHost
) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    spots = pick_spots(read_lines(path), 2, 1)

    def is_off() -> bool:
        told = host.messages("config")
        return bool(told) and told[-1]["config"]["completion"]["min_confidence"] == 0

    host.reply = lambda params: "unsure" if is_off() else ""
    installed = Plugin(init=AT_ONCE + host.init())
    _, trials = run(installed, neovim, path, spots, pace_ms=20)
    assert [(trial.final, trial.ungated) for trial in trials] == [("", "unsure")] * 2
    assert not is_off()
    count = len(host.messages("config"))
    _, trials = run(installed, neovim, path, spots[:1], pace_ms=20, gate_off=False)
    assert trials[0].ungated is None
    assert len(host.messages("config")) == count


@pytest.mark.parametrize("rest_s", [0.0, 0.2], ids=["cold", "rested"])
def test_jumps_to_a_host_that_is_always_right(
    neovim: Path, tmp_path: Path, host: FakeHost, rest_s: float
) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    lines = read_lines(path)
    spots = pick_spots(lines, 2, 1)
    host.reply = lambda params: lines[params["row"]][params["col"] :]
    installed = Plugin(init=AT_ONCE + host.init())
    _, jumps = run_cold(installed, neovim, path, spots, rest_s=rest_s)
    assert all(len(jump.spot.typed) == COLD_KEYS for jump in jumps)
    found = jump_summary(jumps, "cold")
    assert found["cold_shown"] == found["cold_exact"] == len(spots)
    assert found["cold_replaced_later"] == found["cold_unanswered"] == 0


def test_a_warm_run_waits_for_an_answer_from_the_full_window(
    neovim: Path, tmp_path: Path, host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin, "AGAIN_S", 0.0)
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    spot = pick_spots(read_lines(path), 1, 1)[0]
    by_hand: list[int] = []

    def reply(params: dict[str, Any]) -> str:
        if params["trigger"] == "manual":
            by_hand.append(params["col"])
        host.stats = {"window": "short" if len(by_hand) < 2 else "full"}
        return ""

    host.reply = reply
    run(Plugin(init=AT_ONCE + host.init()), neovim, path, [spot], pace_ms=20, gate_off=False)
    assert by_hand == [len(spot.before)] * 2
