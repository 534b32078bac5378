"""The demo's files still hold what the demo looks for."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from lcursor.drive import demo, demo_agent, demo_chat, demo_edit


@pytest.mark.parametrize("line", [step.line for step in demo.STEPS])
def test_each_line_that_is_retyped_stands_once_in_the_sample(line: str) -> None:
    lines = [each.strip() for each in demo.SAMPLE.read_text().splitlines()]
    assert lines.count(line) == 1


@pytest.mark.parametrize("lines", [demo_chat.RANGE, demo_edit.RANGE])
def test_the_function_that_is_asked_about_is_in_the_sample(lines: str) -> None:
    first, last = re.fullmatch("/(.*)/,/(.*)/", lines).groups()  # type: ignore[union-attr]
    assert re.search(f"{first}.*{last}", demo.SAMPLE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("more", "passes"), [("", False), (" if values else None", True)])
def test_the_task_of_the_agent_is_solved_by_its_fix(
    more: str, passes: bool, tmp_path: Path
) -> None:
    text = demo_agent.TEXT.replace("len(values)\n", f"len(values){more}\n")
    (tmp_path / demo_agent.FILE).write_text(text)
    done = subprocess.run(shlex.split(demo_agent.TEST), cwd=tmp_path, capture_output=True)
    assert (done.returncode == 0) == passes
