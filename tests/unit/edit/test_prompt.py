"""What a model reads: the same beginning, bounded surroundings, and the region last."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lcursor.changes.records import Format, Lines, Region
from lcursor.edit.rewriting import prompt
from lcursor.edit.rewriting.task import FailedAttempt, Task

LINES: Lines = tuple(f"line {number}" for number in range(400))
TASK = Task(
    "/p/src/x.py", "src/x.py", "python", LINES, Region(200, 203, "function f"), "Do it.",
    "### y.py\n```python\nY = 1\n```",
)  # fmt: skip
FORMATS: list[Format] = ["whole", "search_replace", "udiff"]


@pytest.mark.parametrize("format", FORMATS)
def test_the_region_is_the_last_code_that_is_read(format: Format) -> None:
    system, user = prompt.messages(replace(TASK, format=format))
    assert (system.role, user.role) == ("system", "user")
    asked = f"Task: Do it.\n{prompt.CLOSING[format]}"
    assert user.text.endswith(f"```python\nline 200\nline 201\nline 202\n```\n\n{asked}")
    at = [user.text.index(each) for each in ("Y = 1", "line 199", "line 203", "line 200")]
    assert at == sorted(at)
    assert user.text.count("line 201\n") == 1


def test_the_beginning_does_not_change_with_the_edit() -> None:
    other = replace(TASK, instruction="Another.", region=Region(201, 202, "x"))
    one, two = prompt.messages(TASK), prompt.messages(other, remark="no")
    assert one[0] == two[0]
    assert two[1].text.startswith(TASK.context)


def test_surroundings_are_bounded_and_the_beginning_is_there() -> None:
    text = prompt.messages(TASK)[1].text
    assert "src/x.py begins with:\n```python\nline 0\n" in text
    assert "line 100\n" not in text
    assert "line 300\n" not in text
    less = prompt.messages(TASK, around=0.0)[1].text
    assert "line 199" not in less
    assert "line 203" not in less
    assert "line 200" in less


def test_nothing_is_shown_twice() -> None:
    near = replace(TASK, region=Region(30, 31, "line 31"))
    text = prompt.messages(near)[1].text
    assert "begins with" not in text
    assert text.count("line 5\n") == 1


def test_one_very_long_line_next_to_it_is_left_out() -> None:
    lines = ("x" * 100_000, "short", "y" * 100_000)
    text = prompt.messages(replace(TASK, lines=lines, region=Region(1, 2, "line 2")))[1].text
    assert len(text) < 1000
    assert "short" in text


def test_a_fence_that_the_region_cannot_close() -> None:
    lines = ("before", "````", "code", "````", "after")
    task = replace(TASK, language="markdown", lines=lines, region=Region(1, 4, "lines 2 to 4"))
    assert "`````markdown\n````\ncode\n````\n`````\n" in prompt.messages(task)[1].text


@pytest.mark.parametrize("lines", [(), ("",), ("above", "", "below")])
def test_where_nothing_stands_yet(lines: Lines) -> None:
    region = (
        Region(1, 1, "new code at line 2") if len(lines) > 1 else Region(0, len(lines), "empty")
    )
    text = prompt.messages(replace(TASK, lines=lines, region=region))[1].text
    assert "The part is empty" in text
    assert "```python\n```" not in text


def test_an_earlier_try_and_a_remark() -> None:
    failed = [
        FailedAttempt(("old problem",)),
        FailedAttempt(("It does not parse: row 3",), ("tried",)),
    ]
    text = prompt.messages(TASK, failed, "use fewer names")[1].text
    assert "- It does not parse: row 3" in text
    assert "```python\ntried\n```" in text
    assert "old problem" not in text
    assert "use fewer names" in text
    assert text.index("line 202") < text.index("tried") < text.index("Task: Do it.")


def test_what_was_selected_is_said_where_the_region_is_more() -> None:
    whole = prompt.messages(replace(TASK, selection=TASK.old))[1].text
    assert "The task is about these lines" not in whole
    text = prompt.messages(replace(TASK, selection=("line 201",)))[1].text
    assert "The task is about these lines of it:\n```python\nline 201\n```" in text


def test_a_sketch_is_passed_on() -> None:
    assert "\nfirst a, then b\n" in prompt.messages(replace(TASK, sketch="first a, then b"))[1].text
