"""Store the outcomes of shown suggestions and next edits, and adapt to them what is shown.

`OutcomeStore` owns a small SQLite file that never leaves the machine, and the only executor
(`lcursor-outcomes`) that accesses it. The file contains numbers, filetypes and outcomes, but no
text of a buffer and no file names. It is optional: an unusable file is reported once. Several
Neovims share one file.

The confidence threshold follows the rule of Cursor's Tab: a suggestion is worth showing if one of
four similar ones is accepted (accept +0.75, reject -0.25, not shown 0; cursor.com/blog/tab-rl).
Outcomes just above the threshold decide, not the average: accepting certain suggestions says
nothing about uncertain ones. So the range from the base to either bound is divided into steps, and
the threshold moves by a step only because of the outcomes in that step.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from lcursor.errors import JournalFailed, LcursorError
from lcursor.executor import FINISH_S, SerialExecutor
from lcursor.protocol.fim import NextEditStats, Stats, StatsRow

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")

KEEP_ROWS = 20_000
KEEP_S = 180 * 24 * 3600
NEWEST_ROWS = 2000
"""Number of rows used for learning."""
LOCKED_S = 2.0
"""Maximum wait for another Neovim that writes; then a row is lost."""
VERSION = 1
TABLE = """
CREATE TABLE IF NOT EXISTS outcome (
    at_s REAL NOT NULL, filetype TEXT NOT NULL, outcome TEXT NOT NULL, source TEXT NOT NULL,
    shown_chars INTEGER NOT NULL, kept_chars INTEGER NOT NULL, through_keys INTEGER NOT NULL,
    shown_ms REAL NOT NULL, latency_ms REAL NOT NULL, confidence REAL NOT NULL
)
"""
INSERT = "INSERT INTO outcome VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
NEWEST = "SELECT * FROM outcome ORDER BY at_s DESC, rowid DESC LIMIT ?"
PRUNE = (
    "DELETE FROM outcome WHERE at_s < ? OR rowid NOT IN "
    "(SELECT rowid FROM outcome ORDER BY at_s DESC, rowid DESC LIMIT ?)"
)

ACCEPTS = {"accepted", "partial", "typed"}
MIN_OUTCOMES = 30
"""Minimum accepts to lower the threshold, and minimum rejections to raise it."""
STEPS = 5
"""Number of steps from the base to each bound."""
TARGET = 0.25
"""Share of accepts at which showing and not showing a suggestion have the same value."""
NEXT_EDIT = "next_edit."
"""Prefix of the source of a next edit, before its kind."""
MIN_REJECTED = 5
"""Rejections in a row after which a kind of next edit is hidden in a filetype."""
HIDDEN_S, MAX_HIDDEN_S = 30 * 60.0, 7 * 24 * 3600.0
"""Time for which it is hidden, twice as long after each further rejection, and the maximum."""
DOUBT = 12
"""Assumed earlier outcomes of each step, as protection against chance. Half of them count as
accepts when raising the threshold, none when lowering it."""


@dataclass(frozen=True, slots=True)
class Row:
    """One suggestion that was shown. The fields are the table's columns, in their order.

    Attributes:
        at_s: when it disappeared, in seconds since 1970.
        outcome: a `protocol.fim.Outcome`.
        source: a `protocol.fim.TextSource`, or that of a next edit, which has no other numbers.
        through_keys: typed keys that matched it, so that no request was sent for them.
        latency_ms: from the key to the ghost text; -1 if something other than the model delayed it.
        confidence: -1 if the suggestion disappeared before the model had finished.
    """

    at_s: float
    filetype: str
    outcome: str
    source: str
    shown_chars: int
    kept_chars: int
    through_keys: int
    shown_ms: float
    latency_ms: float
    confidence: float


Rows = list[Row]


def default_path() -> Path:
    """Return `$XDG_STATE_HOME/lcursor/outcomes.sqlite3`; it defaults to `~/.local/state`."""
    home = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(home).expanduser() / "lcursor" / "outcomes.sqlite3"


class OutcomeStore:
    """The file and its own executor; no method except `close` blocks.

    Args:
        report: called on the store's executor if the file is unusable; at most once.
        changed: called with the newest rows, oldest first, on the store's executor, after each
            write and after `refresh`.
        path: the file; it and its folder are created with the first row.

    Attributes:
        problem: why the file is unusable; "" if it is usable.
    """

    def __init__(
        self,
        report: Callable[[LcursorError], None],
        changed: Callable[[Rows], None] = lambda rows: None,
        path: Path | None = None,
    ) -> None:
        self.path = path or default_path()
        self.problem = ""
        self._report, self._changed = report, changed
        self._executor = SerialExecutor(
            "lcursor-outcomes", lambda error, _: self._give_up(repr(error))
        )
        self._is_closed = False
        self._base: sqlite3.Connection | None = None

    def add(self, row: Row) -> None:
        """Write a row, in the background."""
        self._do(lambda: self._insert(row))

    def read(self, then: Callable[[Rows], None]) -> None:
        """Call `then` with all rows, oldest first, on the store's executor; none if unusable."""
        self._do(lambda: then(self._rows(KEEP_ROWS)))

    def refresh(self) -> None:
        """Call `changed` with the newest rows."""
        self._do(lambda: self._changed(self._rows(NEWEST_ROWS)))

    def reset(self, then: Callable[[Rows], None]) -> None:
        """Delete all rows, including other Neovims' rows; call `then` with the remaining ones."""
        self._do(lambda: self._delete_all(then))

    def close(self, timeout_s: float = FINISH_S) -> None:
        """Write pending rows, and close the file."""
        self._is_closed = True
        self._executor.submit(self._close)
        self._executor.finish(timeout_s)

    def _do(self, work: Callable[[], None]) -> None:
        """Call `work` on the store's executor."""
        if not self._is_closed:
            self._executor.submit(work)

    def _insert(self, row: Row) -> None:
        if self._with(lambda base: base.execute(INSERT, astuple(row))) and not self._is_closed:
            self._changed(self._rows(NEWEST_ROWS))

    def _rows(self, limit: int) -> Rows:
        if not self.path.exists():
            return []
        found = self._with(lambda base: [Row(*one) for one in base.execute(NEWEST, (limit,))])
        return (found or [])[::-1]

    def _delete_all(self, then: Callable[[Rows], None]) -> None:
        self._with(lambda base: base.execute("DELETE FROM outcome"))
        if self.problem:  # no other process can use it either
            for end in ("", "-wal", "-shm"):
                with contextlib.suppress(OSError):
                    self.path.with_name(self.path.name + end).unlink()
            self.problem = ""
        rows = self._rows(KEEP_ROWS)
        self._changed(rows)
        then(rows)

    def _with(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Call `work` in one transaction; return None if the file cannot be used."""
        import sqlite3  # lazy: saves 5 ms at the start of the host

        if self.problem:
            return None
        try:
            if not self.path.exists():
                self._close()  # it was deleted: create it again
            self._base = self._base or self._open()
            with self._base:
                return work(self._base)
        except (sqlite3.Error, OSError) as error:
            if "locked" not in str(error):  # another Neovim is writing
                self._give_up(str(error))
            return None

    def _open(self) -> sqlite3.Connection:
        import sqlite3

        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        with contextlib.ExitStack() as opened:
            # The executor runs one job at a time, but not always on the same thread.
            base = sqlite3.connect(self.path, timeout=LOCKED_S, check_same_thread=False)
            opened.callback(base.close)
            (version,) = base.execute("PRAGMA user_version").fetchone()
            if version not in (0, VERSION):
                raise sqlite3.DatabaseError(f"it has version {version}, not {VERSION}")
            # no WAL: two Neovims that switch a new file to it fail at once, whatever the timeout
            base.execute("PRAGMA synchronous = NORMAL")
            with base:
                base.execute(TABLE)
                base.execute(f"PRAGMA user_version = {VERSION}")
                base.execute(PRUNE, (time.time() - KEEP_S, KEEP_ROWS))
            opened.pop_all()
        return base

    def _give_up(self, reason: str) -> None:
        self._close()
        if not self.problem:
            self.problem = f"{self.path} cannot be used ({reason})"
            self._report(
                JournalFailed(
                    f"{self.problem}; statistics are not recorded",
                    "Run :LCursor stats reset, or check its permissions",
                )
            )

    def _close(self) -> None:
        if self._base:
            self._base.close()
            self._base = None


def history(rows: Iterable[Row]) -> list[tuple[str, float, bool]]:
    """Return the input of `thresholds`: filetype, confidence, whether it was accepted.

    Ignored suggestions are left out, and those without a confidence: servers report none, which is
    stored as 0.
    """
    return [
        (row.filetype, row.confidence, row.outcome in ACCEPTS)
        for row in rows
        if row.outcome != "ignored" and row.confidence > 0
    ]


def next_edit_row(at_s: float, filetype: str, kind: str, *, is_accepted: bool) -> Row:
    """Return the row of a next edit."""
    outcome = "accepted" if is_accepted else "rejected"
    return Row(at_s, filetype, outcome, NEXT_EDIT + kind, 0, 0, 0, 0.0, -1.0, -1.0)


def hidden(rows: Iterable[Row]) -> dict[tuple[str, str], float]:
    """Return until when a kind of next edit is hidden in a filetype, in seconds since 1970.

    The rows are the oldest first. The keys are kind and filetype.
    """
    rejected: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row.source.startswith(NEXT_EDIT):
            key = row.source.removeprefix(NEXT_EDIT), row.filetype
            times = rejected.setdefault(key, [])
            times.clear() if row.outcome in ACCEPTS else times.append(row.at_s)
    return {
        key: times[-1] + min(HIDDEN_S * 2.0 ** (len(times) - MIN_REJECTED), MAX_HIDDEN_S)
        for key, times in rejected.items()
        if len(times) >= MIN_REJECTED
    }


def stats(
    rows: Sequence[Row], thresholds: Mapping[str, float], path: str, problem: str = ""
) -> Stats:
    """Return the message with the statistics, per filetype and in total.

    The rows are the oldest first; path and problem are the store's.
    """
    by_filetype: dict[str, list[Row]] = {}
    next_edits: dict[str, list[Row]] = {}
    suggestions = [row for row in rows if not row.source.startswith(NEXT_EDIT)]
    for row in suggestions:
        by_filetype.setdefault(row.filetype, []).append(row)
    for row in rows:
        if row.source.startswith(NEXT_EDIT):
            next_edits.setdefault(row.source.removeprefix(NEXT_EDIT), []).append(row)
    counted = sorted(by_filetype.items(), key=lambda item: (-len(item[1]), item[0]))
    common = thresholds.get("", 0.0)
    return Stats(
        rows=[_row(name, some, thresholds.get(name, common)) for name, some in counted],
        total=_row("", suggestions, common),
        next_edits=_next_edits(next_edits),
        since_s=rows[0].at_s if rows else 0.0,
        path=path,
        problem=problem,
    )


def _next_edits(by_kind: Mapping[str, Sequence[Row]]) -> list[NextEditStats]:
    found = []
    for kind, rows in sorted(by_kind.items()):
        accepted = sum(row.outcome in ACCEPTS for row in rows)
        one = NextEditStats(kind=kind, accepted=accepted, rejected=len(rows) - accepted)
        found.append(one)
    return sorted(found, key=lambda one: -one["accepted"])


def _row(filetype: str, rows: Sequence[Row], threshold: float) -> StatsRow:
    outcomes = Counter(row.outcome for row in rows)
    sources = Counter(row.source for row in rows)
    through = sum(row.through_keys for row in rows)
    accepts = sum(outcomes[name] for name in ACCEPTS)
    waits = sorted(row.latency_ms for row in rows if row.latency_ms >= 0)
    return StatsRow(
        filetype=filetype,
        shown=len(rows),
        accepted=outcomes["accepted"],
        partial=outcomes["partial"],
        typed=outcomes["typed"],
        rejected=outcomes["rejected"],
        ignored=outcomes["ignored"],
        accept_share=_share(accepts, accepts + outcomes["rejected"]),
        p50_ms=_quantile(waits, 0.5),
        p95_ms=_quantile(waits, 0.95),
        cache_share=_share(sources["cache"], len(rows)),
        speculation_share=_share(sources["speculation"], len(rows)),
        through_share=_share(through, through + len(rows)),
        threshold=threshold,
    )


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else -1.0


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that the given share does not exceed; -1 if there is none."""
    return ordered[math.ceil(share * len(ordered)) - 1] if ordered else -1.0


def threshold(base: float, history: Sequence[tuple[float, bool]]) -> float:
    """Return the threshold for a user with this history.

    More rejections never lower it, more accepts never raise it. A base of 0 (show everything) or 1
    is an explicit choice of the user and never changes.

    Args:
        base: the threshold without any history.
        history: confidence of each suggestion, and whether it was accepted.

    Returns:
        A value of [base / 2, (1 + base) / 2]; the base with fewer than `MIN_OUTCOMES` outcomes.
    """
    if not 0 < base < 1 or len(history) < MIN_OUTCOMES:
        return base
    down, up = base / 2 / STEPS, (1 - base) / 2 / STEPS
    accepts, counts = Counter[int](), Counter[int]()
    for confidence, is_accepted in history:
        step = math.floor((confidence - base) / (up if confidence >= base else down))
        counts[step] += 1
        accepts[step] += is_accepted

    def is_bad(step: int) -> bool:
        return (accepts[step] + DOUBT / 2) / (counts[step] + DOUBT) < TARGET

    def is_good(step: int) -> bool:
        return accepts[step] / (counts[step] + DOUBT) >= TARGET

    at, accepted = 0, accepts.total()
    if len(history) - accepted >= MIN_OUTCOMES:
        while at < STEPS and is_bad(at):
            at += 1
    if at == 0 and accepted >= MIN_OUTCOMES:
        while at > -STEPS and is_good(at) and not is_bad(at - 1):
            at -= 1
    moved = base + at * (up if at > 0 else down)
    return min(max(moved, base / 2), (1 + base) / 2)


def thresholds(base: float, history: Iterable[tuple[str, float, bool]]) -> dict[str, float]:
    """Return the threshold of each filetype with enough outcomes, and of all others under ""."""
    by_filetype: dict[str, list[tuple[float, bool]]] = {}
    for filetype, confidence, is_accepted in history:
        by_filetype.setdefault(filetype, []).append((confidence, is_accepted))
    found = {
        name: threshold(base, one) for name, one in by_filetype.items() if len(one) >= MIN_OUTCOMES
    }
    return {**found, "": threshold(base, [each for one in by_filetype.values() for each in one])}
