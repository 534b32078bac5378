"""`bench --busy`: the processes that run during a bench."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench import cli
from tests.waiting import wait_for


def _children() -> set[int]:
    """Return the ids of this process's children."""
    lists = Path("/proc/self/task").glob("*/children")
    return {int(word) for each in lists for word in each.read_text().split()}


def _ticks(process: int) -> int:
    """Return the processor time of a process, in clock ticks."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11])


@pytest.mark.linux
def test_busy_processes_use_the_processor_until_the_bench_ends() -> None:
    before = _children()
    with cli.busy_processes(2):
        started = _children() - before
        assert len(started) == 2
        wait_for(lambda: all(_ticks(each) > 5 for each in started))
    assert _children() <= before


@pytest.mark.parametrize("words", [["no-such-part"], ["--busy", "2", "no-such-part"]])
def test_names_after_the_option_are_parts_of_the_default_bench(words: list[str]) -> None:
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == 2
    assert "unknown: no-such-part" in done.output
