"""Small helpers for lines of text, shared by the modules of an edit. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def has_text(line: str) -> bool:
    """Return whether a line is not blank."""
    return bool(line.strip())


def stripped(lines: Sequence[str]) -> list[str]:
    """Return the non-blank lines, without surrounding space."""
    return [line.strip() for line in lines if line.strip()]


def without_returns(lines: Sequence[str]) -> tuple[str, ...]:
    """Return lines without the CR at an end, which a file with mixed line ends has in some."""
    return tuple(line.removesuffix("\r") for line in lines)


def indent_of(line: str) -> str:
    """Return the indentation of a line."""
    return line[: len(line) - len(line.lstrip())]


def trim(lines: Sequence[str], first: int, last: int) -> tuple[int, int]:
    """Return a range of rows without blank ones at both ends."""
    while first < last and not lines[first].strip():
        first += 1
    while last > first and not lines[last - 1].strip():
        last -= 1
    return first, last


def contains_run(lines: Sequence[str], run: Sequence[str]) -> bool:
    """Return whether lines contain a run of consecutive lines."""
    count, wanted = len(run), list(run)
    return any(list(lines[at : at + count]) == wanted for at in range(len(lines) - count + 1))
