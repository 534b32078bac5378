"""What a small model may do next, so that it gets on with its work. Pure.

A small model reads the same code over and over, edits the first one that it sees, ends without a
change, or does not end. So the names of the task come first, then those of the results; no call is
repeated while the files stay the same; after a few looks, something is to be changed; and once the
tests pass after a change, the run ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import IntEnum
from pathlib import PurePosixPath
from typing import Final, TypeVar

from lcursor.agent.records import Known
from lcursor.agent.run_log import AgentStep, RunState
from lcursor.agent.tools import mcp
from lcursor.code.languages import is_test

MAX_LOOKS: Final = 3
"""Times in a row that a model may read or search if it could edit."""
MAX_CALLS: Final = 3
"""Tools of servers that a model may call in a row."""
MIN_STEPS: Final = 8
"""Steps before a run may end without a change, unless it has called a tool of a server."""
MAX_RECENT: Final = 30
"""Regions that are not offered to be read again."""
OPENING: Final = "# see whether the tests pass\nrun test\n"
ENDING: Final = "# the tests pass\ndone : Changed {}{}\n"
UNPROVEN: Final = ". The tests passed before, too, so they do not show that the task is done"
_WORD: Final = re.compile(r"[^\W\d]\w*")
_CODE: Final = re.compile(r"\b\w*(?:_|\w\.\w)[\w.]*|\b\w+(?=\()|(?<=`)\w+(?=`)|\b[A-Z]\w*")
"""Matches words that are meant as names: with an underscore, a dot, a call, a capital letter."""
_DEFINITION: Final = re.compile(r"^\S+#\S+:$|\b(?:def|class|func|fn|function)\s+\w+", re.MULTILINE)
"""Matches the names of regions and definitions where they begin."""

_Spot = TypeVar("_Spot")


class _Rank(IntEnum):
    """How near a spot is to the task; the first is the nearest."""

    NAME = 1
    """The task has its name, and means a name by it."""
    WORD = 2
    """The task has its name, which may be any word."""
    FILE = 3
    """The task has the name of its file."""
    RESULT = 4
    """A result has its name."""
    OTHER = 5


def own_answer(known: Known, state: RunState, tree_id: str) -> str:
    """Return the answer that needs no model, in the dialect `choice`; "" if the model is to answer.

    A run with tests begins with them, and ends when they pass after a change.

    Args:
        known: all that may be named.
        tree_id: the present files.
    """
    if not state.answers:
        return OPENING if "test" in known.commands else ""
    since = state.steps[state.warned :]
    test = _last_test(known.commands.get("test"), since[-1:])
    changed = [str(each.call.arguments["region"]) for each in since if _has_changed(each)]
    if not changed or test is None or not _passed(test) or test.before != tree_id:
        return ""
    parts = (region.rpartition("#") for region in dict.fromkeys(changed))
    first = _last_test(known.commands["test"], state.steps[:1])
    names = ", ".join(f"{name} in {path}" for path, _, name in parts)
    return ENDING.format(names, UNPROVEN if first and _passed(first) else "")


def offered(known: Known, state: RunState, tree_id: str) -> Known:
    """Return what may be named in the next answer.

    Args:
        known: all that may be named.
        tree_id: the present files.
    """
    test = _last_test(known.commands.get("test"), state.steps)
    known = _unused(known, state, tree_id)
    if test and not _passed(test):
        known = _without_tests(known, state.steps)
    rank = _ranking(state)
    spots = [(path, name) for path, names in known.symbols.items() for name in names]
    spots += [(path, "") for path in known.paths]
    spots, reading = _nearest(spots, lambda spot: rank(*spot))
    changed = {each.call.arguments.get("region") for each in state.steps if _has_changed(each)}
    left = [key for key in known.regions if key not in changed]
    left, editing = _nearest(left, lambda key: rank(known.regions[key].path, _name(key)))
    regions = {key: at for key, at in known.regions.items() if key in {*left, *changed}}
    looks = 0
    for step in reversed(state.steps):
        if step.kind not in ("read", "search"):
            break
        looks += 1
    calls = 0
    for step in reversed(state.steps):
        if step.call.tool != mcp.CALL.name:
            break
        calls += 1
    has_called = any(_has_called(each) for each in state.steps)
    may_read = bool(changed) or reading <= editing
    return replace(
        known,
        symbols={at: tuple(name for path, name in spots if name and path == at)
                 for at, name in spots if name},
        paths=tuple(path for path, name in spots if not name),
        regions=regions,
        may_look=(may_read and looks < MAX_LOOKS) or not regions,
        may_search=reading >= _Rank.RESULT or not spots,
        may_end=bool(changed) or has_called or len(state.steps) >= MIN_STEPS,
        schemas=known.schemas if calls < MAX_CALLS else {},
    )  # fmt: skip


def _unused(known: Known, state: RunState, tree_id: str) -> Known:
    """Leave out what was read lately, and what would repeat a call on the same files."""
    steps = [each for each in state.steps[max(state.warned, state.summarized) :]
             if each.before == tree_id]  # fmt: skip
    done = [each.call.arguments for each in steps]
    commands = {each.get("command") for each in done}
    recent = list(known.regions.items())[-MAX_RECENT:]
    read = {each.get("path") for each in done if each.get("command") == "view"}
    read |= {key for key, _ in recent} | {at.path for _, at in recent if at.first_row == 0}
    failed = {each.call.arguments.get("region") for each in steps
              if each.kind == "edit" and each.shown_state != "done"}  # fmt: skip
    return replace(
        known,
        paths=tuple(path for path in known.paths if path not in read),
        symbols={
            path: tuple(name for name in names if f"{path}#{name}" not in read)
            for path, names in known.symbols.items()
        },
        regions={key: at for key, at in known.regions.items() if key not in failed},
        commands={name: text for name, text in known.commands.items() if text not in commands},
    )


def _last_test(test: str | None, steps: Sequence[AgentStep]) -> AgentStep | None:
    """Return the last run of the tests."""
    runs = (each for each in reversed(steps) if each.call.arguments.get("command") == test)
    return next(runs, None) if test else None


def _without_tests(known: Known, steps: Sequence[AgentStep]) -> Known:
    """Leave out test files: they are not to be changed, and are to be read once."""
    regions = {key: at for key, at in known.regions.items() if not is_test(at.path)}
    known = replace(known, regions=regions)
    if not any(each.kind == "read" and is_test(each.target) for each in steps):
        return known
    symbols = {path: names for path, names in known.symbols.items() if not is_test(path)}
    paths = tuple(path for path in known.paths if not is_test(path))
    return replace(known, symbols=symbols, paths=paths)


def _ranking(state: RunState) -> Callable[[str, str], _Rank]:
    """Return a function that ranks a path and a definition in it, "" for the whole file.

    A test's name also names what it tests. A definition's own first line in a result names nothing.
    """
    task = "\n".join([state.task, state.context, *state.said])
    results = "\n".join(each.observation.text for each in state.steps if each.observation)
    names = _words(" ".join(_CODE.findall(task)))
    words = _words(task)
    shown = _words(_DEFINITION.sub("", results))

    def rank(path: str, name: str) -> _Rank:
        if name in names:
            return _Rank.NAME
        if name in words:
            return _Rank.WORD
        if not PurePosixPath(path).suffix:
            return _Rank.OTHER
        if path in task or PurePosixPath(path).stem in words:
            return _Rank.FILE
        if name in shown or (not name and path in results):
            return _Rank.RESULT
        return _Rank.OTHER

    return rank


def _words(text: str) -> set[str]:
    """Return the words of a text, also without the beginning `test_` or an ending such as -s."""
    words = set(_WORD.findall(text))
    words |= {word.removeprefix("test_") for word in words}
    return words | {word.removesuffix(end) for word in words for end in ("s", "d", "ed")}


def _nearest(spots: Sequence[_Spot], rank: Callable[[_Spot], _Rank]) -> tuple[list[_Spot], _Rank]:
    """Return the spots of the first rank that any has, and this rank."""
    ranks = [rank(each) for each in spots]
    first = min(ranks, default=_Rank.OTHER)
    return [each for each, one in zip(spots, ranks, strict=True) if one == first], first


def _passed(step: AgentStep) -> bool:
    return step.observation is not None and step.observation.status == 0


def _has_called(step: AgentStep) -> bool:
    return step.call.tool == mcp.CALL.name and step.shown_state == "done"


def _has_changed(step: AgentStep) -> bool:
    return step.kind == "edit" and step.shown_state == "done"


def _name(region: str) -> str:
    """Return the name of the definition of a region, such as `load` for `a.py#load-2`."""
    return region.partition("#")[2].partition("-")[0]
