"""The typing bench drives a real Neovim; the host is a fake one that knows every answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lcursor.bench.peer import Lcursor
from lcursor.bench.trials import pick_spots, summary
from lcursor.bench.typing import read_lines, run
from tests.fakes.control import STATS, FakeHost

PROGRAM = "\n".join(
    f"    value_{number} = compute(first, second) < third[{number}]" for number in range(130)
)
AT_ONCE = "vim.g.lcursor = { completion = { debounce_ms = 0 } }\n"


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
    typist = Lcursor(init=AT_ONCE + host.init())
    _, trials = run(typist, neovim, path, spots, pace_ms=100)

    assert [trial.final for trial in trials] == [spot.rest for spot in spots]
    found = summary(trials)
    assert found["shown"] == found["exact"] == len(spots)
    assert found["answered"] == found["keystrokes"]
    read = 0 if at_once else STATS["decoded_tokens"]
    assert [trial.tokens[0] for trial in trials] == [read, read]
    assert found["tokens_per_keystroke_median"] == 0
    assert all(ms > 0 for trial in trials for ms in trial.main_ms)


def test_a_host_that_says_nothing(neovim: Path, tmp_path: Path, host: FakeHost) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    host.reply = lambda params: ""
    typist = Lcursor(init=AT_ONCE + host.init())
    _, trials = run(typist, neovim, path, pick_spots(read_lines(path), 1, 1), pace_ms=20)
    assert [trial.final for trial in trials] == [""]
    assert trials[0].ghost_ms == [None] * 6
