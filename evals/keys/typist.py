"""Types a text against a simulated clock, and accepts what saves keys.

The person knows what to type, looks at the screen before each key, and chooses what costs the
fewest keys: the next character, or the suggestion, or its first lines and words. Indentation after
a line break costs nothing, because the editor writes it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from evals.keys.insertions import Insertion, Kind, kind
from evals.keys.recorded import Clock
from lcursor.fim.prompt import Source

KEY_S, LINE_S, REST_S = 0.2, 0.8, 2.0
"""Seconds before a key, before the first key of a line, and in Normal mode before the first one."""
BODY_S = 4.0
"""Before the first key of the body of a new function, with `--bodies`."""
LOOK_S = 0.1
"""A suggestion must have been visible for this long before the next key to be accepted."""
READING_KEYS = 2
"""What reading one suggestion costs, in the second count."""

_WORD = re.compile(r"[ \t]*\n+[ \t]*|[ \t]*\w+|[ \t]*[^\s\w]+|.", re.DOTALL)
_LINE = re.compile(r"\n*[^\n]*")


@dataclass(slots=True)
class Shown:
    """A suggestion as the person saw it.

    Attributes:
        text: what was visible at last, from the first position on.
        truth: what was to be typed there.
        accepted: characters of it that were accepted.
        is_wrong: whether its next character was another one than the typed one.
        reason: why the generation ended; "" if it was still running.
    """

    at: int
    text: str
    truth: str
    kind: Kind
    reason: str = ""
    accepted: int = 0
    is_wrong: bool = False


@dataclass(slots=True)
class Line:
    """The cost of one typed line, in keys."""

    kind: Kind
    keys: int = 0
    pressed: int = 0
    shown: int = 0
    accepted_keys: int = 0


@dataclass(slots=True)
class Typed:
    """What typing a text cost."""

    insertion: Insertion
    lines: list[Line] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)


class View(NamedTuple):
    """What is on the screen.

    Attributes:
        number: another one for each suggestion.
        rest: the part that is not typed yet.
        since_s: since when.
        reason: why its generation ended; "" if it has not.
    """

    number: int
    rest: str
    since_s: float
    reason: str


Unit = Literal["all", "line", "word"]


class Choice(NamedTuple):
    """What to do with a suggestion.

    Attributes:
        length: characters of it to accept.
        units: what to accept, a key each.
        wrong: characters at its end to delete again, a key each.
    """

    length: int = 0
    units: tuple[Unit, ...] = ()
    wrong: int = 0


class Completer(Protocol):
    """A completion policy on the clock."""

    def begin(self, insertion: Insertion) -> None:
        """Begin with a text: the cursor is there, in Normal mode."""

    def changed(self, at: int) -> None:
        """React to a key in Insert mode; `at` characters of the text have been typed."""

    def accepted(self, at: int, choice: Choice) -> None:
        """React to the acceptance of the suggestion, or a part; then `at` characters are typed."""

    def end(self) -> None:
        """Leave Insert mode."""

    def work(self) -> None:
        """Do one step of work, or advance the clock to its next event."""

    def view(self) -> View | None:
        """Return what is on the screen."""


def keys(text: str) -> int:
    """Return the number of keys to type a text; indentation after a line break costs none."""
    return len(re.sub(r"\n[ \t]+", "\n", text))


def source(insertion: Insertion, at: int, repo: str) -> Source:
    """Return what the editor would send after `at` characters."""
    prefix = insertion.before + insertion.text[:at]
    return Source(prefix, insertion.after, 0, insertion.path, repo)


def choose(suggestion: str, truth: str) -> Choice:
    """Return the best use of a suggestion; parts are accepted by line, then by word."""
    same = 0
    while same < min(len(suggestion), len(truth)) and suggestion[same] == truth[same]:
        same += 1
    best, gain = Choice(), 0
    end, units = 0, tuple[Unit, ...]()
    by_unit: tuple[tuple[Unit, re.Pattern[str]], ...] = (("line", _LINE), ("word", _WORD))
    for unit, pattern in by_unit:
        while end < same:
            found = pattern.match(suggestion, end)
            if found is None or found.end() > same or found.end() == end:
                break
            end, units = found.end(), (*units, unit)
            if keys(suggestion[:end]) - len(units) > gain:
                best, gain = Choice(end, units), keys(suggestion[:end]) - len(units)
    wrong = keys(suggestion[same:])
    if keys(suggestion[:same]) - 1 - wrong > gain:
        best = Choice(len(suggestion), ("all",), wrong)
    return best


class Typist:
    """Types texts with a completer.

    Args:
        first_s: seconds before the first key in Insert mode.
    """

    def __init__(self, clock: Clock, completer: Completer, first_s: float = LINE_S) -> None:
        self._clock, self._completer, self._first_s = clock, completer, first_s
        clock.on_event = self._act
        self._typed: Typed
        self._text = ""
        self._at = 0
        self._is_resting = self._is_done = False
        self._number = -1

    def type(self, insertion: Insertion) -> Typed:
        """Type one text, and return what that cost."""
        clock = self._clock
        self._typed, self._text, self._at = Typed(insertion), insertion.text, 0
        self._is_resting, self._is_done, self._number = True, False, -1
        self._start_line()
        clock.next_s = clock.now_s + REST_S
        self._completer.begin(insertion)
        while not self._is_done:
            self._completer.work()
        self._completer.end()
        return self._typed

    def _start_line(self) -> None:
        insertion = self._typed.insertion
        before = insertion.before + self._text[: self._at]
        self._typed.lines.append(Line(kind(before, insertion.is_middle)))

    def _act(self) -> None:
        """Press the next key; called by the clock."""
        clock = self._clock
        if self._is_resting:  # Insert mode begins
            self._is_resting = False
            self._completer.changed(0)
            clock.next_s = clock.now_s + self._first_s
            return
        truth, view = self._text[self._at :], self._completer.view()
        if view and clock.now_s - view.since_s < LOOK_S:
            view = None
        seen = self._see(view, truth) if view else None
        choice = choose(view.rest, truth) if view else Choice()
        if seen and view and choice.length:
            seen.accepted += self._accept(view.rest[: choice.length], choice)
            self._completer.accepted(self._at, choice)
        else:
            if seen and view:
                seen.is_wrong = seen.is_wrong or view.rest[0] != truth[0]
            self._type_key(truth)
            self._completer.changed(self._at)
        if self._at >= len(self._text):
            self._is_done, clock.next_s = True, math.inf

    def _type_key(self, truth: str) -> None:
        line = self._typed.lines[-1]
        line.keys += 1
        line.pressed += 1
        step = re.match(r"\n[ \t]*|.", truth)
        self._at += step.end() if step else 1
        is_new = truth[0] == "\n"
        if is_new:
            self._start_line()
        self._clock.next_s = self._clock.now_s + (LINE_S if is_new else KEY_S)

    def _see(self, view: View, truth: str) -> Shown:
        """Note that the person sees a suggestion: a new one, or more of the last one."""
        if view.number != self._number:
            self._number = view.number
            line = self._typed.lines[-1]
            line.shown += 1
            self._typed.shown.append(Shown(self._at, "", truth, line.kind))
        seen = self._typed.shown[-1]
        seen.text = seen.truth[: self._at - seen.at] + view.rest
        seen.reason = view.reason
        return seen

    def _accept(self, text: str, choice: Choice) -> int:
        """Accept a text and delete its wrong end; return the number of right characters."""
        truth, same = self._text[self._at :], 0
        while same < min(len(text), len(truth)) and text[same] == truth[same]:
            same += 1
        presses = len(choice.units) + choice.wrong
        self._typed.lines[-1].pressed += presses
        for part in re.findall(r"\n[ \t]*|[^\n]+", truth[:same]):
            self._at += len(part)
            if part[0] == "\n":
                self._start_line()
            line = self._typed.lines[-1]
            line.keys += keys(part)
            line.accepted_keys += keys(part)
        self._clock.next_s = self._clock.now_s + KEY_S * (presses + 1)
        return same
