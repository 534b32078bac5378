"""Compare the attempts of several runs at one task. Pure.

Tests come first, because running them says more than any guess, and more if they are the user's as
they were; then the smaller change, as models change more than they should; then the change that
more attempts made.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from lcursor.agent.run_log import RunState
from lcursor.changes.records import FileChange
from lcursor.changes.records import digest as digest_of
from lcursor.protocol.agent import AgentAttempt

TEMPERATURE: Final = 0.7
"""Of all attempts but the first, so that they differ."""
_GATES: Final = {"passed": 0, "none": 1, "failed": 2}


def temperature(attempt: int) -> float:
    """Return the temperature of an attempt, from 1; 0 is a run without others."""
    return TEMPERATURE if attempt > 1 else 0.0


def digest(files: Iterable[FileChange]) -> str:
    """Return what equal changes have in common; "" without changes.

    Empty lines and blanks at ends of lines do not count.
    """
    lines = list[str]()
    for file in sorted(files, key=lambda each: each.path):
        lines += [file.path, file.kind, file.to]
        for change in file.changes:
            new = (line.rstrip() for line in change.new)
            lines += [str(change.first_row), str(change.last_row), *filter(None, new), ""]
    return digest_of(lines) if lines else ""


def compared(states: Sequence[RunState]) -> list[AgentAttempt]:
    """Return the attempts of a group, the best first."""
    counts = Counter(state.digest for state in states if state.digest)
    files = Counter(path for state in states for path in {*state.paths})

    def row(state: RunState) -> AgentAttempt:
        first = firsts[state.digest] if state.digest else state.attempt
        return {
            "run": state.key,
            "attempt": state.attempt,
            "state": state.state,
            "tests": "" if state.gate == "none" else state.gate,
            "added": state.added,
            "removed": state.removed,
            "turn": state.turn,
            "paths": state.paths,
            "names": [os.path.relpath(path, state.root) for path in state.paths],
            "only": [os.path.relpath(path, state.root) for path in state.paths if files[path] == 1],
            "same_as": first if first != state.attempt else 0,
        }

    def order(state: RunState) -> tuple[bool, bool, int, bool, int, int, int]:
        return (
            not state.is_over,
            not state.turn,
            _GATES[state.gate],
            state.changes_tests,
            state.added + state.removed,
            -counts[state.digest],
            state.attempt,
        )

    states = sorted(states, key=order)
    firsts = dict[str, int]()
    for state in states:
        firsts.setdefault(state.digest, state.attempt)
    return [row(state) for state in states]
