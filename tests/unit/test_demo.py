"""The demo's sample still holds what the demo looks for."""

from __future__ import annotations

import re

import pytest

from lcursor.drive import demo, demo_chat, demo_edit


@pytest.mark.parametrize("line", [step.line for step in demo.STEPS])
def test_each_line_that_is_retyped_stands_once_in_the_sample(line: str) -> None:
    lines = [each.strip() for each in demo.SAMPLE.read_text().splitlines()]
    assert lines.count(line) == 1


@pytest.mark.parametrize("lines", [demo_chat.RANGE, demo_edit.RANGE])
def test_the_function_that_is_asked_about_is_in_the_sample(lines: str) -> None:
    first, last = re.fullmatch("/(.*)/,/(.*)/", lines).groups()  # type: ignore[union-attr]
    assert re.search(f"{first}.*{last}", demo.SAMPLE.read_text(), re.MULTILINE | re.DOTALL)
