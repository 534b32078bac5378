"""`eval scan` with the real model, where the next edit is that of the three lines before."""

from __future__ import annotations

from pathlib import Path

from evals.next_edit.scan import Scanner, Window

LINES = tuple(
    f"    paint('{name}', red)" for name in ("one", "two", "three", "four", "five", "six")
)


def test_a_repeated_change_is_expected_in_the_next_line(model_path: Path) -> None:
    edits = tuple(("a.py", (line,), (line.replace("red", "blue"),)) for line in LINES[:3])
    now = LINES[3:]
    final = tuple(line.replace("red", "blue") for line in now)
    scanner = Scanner(model_path, 2)
    try:
        found = scanner.scan(Window("c", "a.py", (), now, (), 0, final, edits))
    finally:
        scanner.close()
    assert found.new == (final[0], *now[1:])
    assert found.is_right
    assert found.confidence > 0.5
    assert found.shift > 1
