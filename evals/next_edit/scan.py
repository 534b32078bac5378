"""`eval scan`: whether a language model sees where the next edit is, and what it is.

A copy scan reads a window of code as the new lines of a change, after its surroundings, the edits
so far and its present lines. Where the model would write another token than the one that stands
there, it proposes an edit; it expects edits in lines that become less likely by the edits so far.
Judged on the steps of commits, with as many windows where nothing remains to be done.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from bench.report import Json, emit, head, percentile, run_facts, table
from evals.corpus import ROOT
from evals.next_edit import commits
from evals.next_edit.commits import Commit, Step, tokens
from evals.next_edit.replay import distance, ordered
from evals.run import Cases, Model, collect
from lcursor.catalog import store
from lcursor.config import CompletionConfig
from lcursor.fim.llama import Context, ContextSize
from lcursor.fim.llama import Model as Weights

ORDER = "random 1"
ROWS, AROUND = 6, 6
"""Lines of a window that is scanned, and lines before and after it that the model sees."""
MAX_STEP_ROWS = 4
MAX_EDITS = 3
MAX_EDIT_ROWS = 6
STATES = 2
"""States of each commit."""
MAX_WRITTEN = 40
RESYNC = 3
"""Written tokens that must stand in the window for the scan to go on there."""
MAX_TOKENS = 256
"""Of a window; longer ones are left out."""
SEP = "<|file_sep|>"


Change = tuple[str, tuple[str, ...], tuple[str, ...]]
"""Path, old and new lines of an edit."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window in a state of a commit."""

    commit: str
    path: str
    before: tuple[str, ...]
    now: tuple[str, ...]
    after: tuple[str, ...]
    row: int
    final: tuple[str, ...]
    """What the commit makes of it; `now` where nothing remains to be done."""
    edits: tuple[Change, ...]
    """The edits so far, the newest last."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """The result for one window."""

    commit: str
    path: str
    row: int
    is_place: bool
    """Whether an edit remains in it."""
    shift: float
    """The largest drop of a line's log probability by the edits, in nats."""
    total_shift: float
    """That of all lines together."""
    margin: float
    """Log probability of the first other token less that of the token that stands there."""
    confidence: float
    """Probability of the written tokens; 0 if there is no proposal."""
    is_right: bool
    """Whether the proposal does the remaining edit, or a part of it."""
    new: tuple[str, ...]
    ms: float


def command(
    repos: Annotated[list[Path] | None, typer.Option("--repo", help="A git clone.")] = None,
    count: Annotated[int, typer.Option("--n", min=1, help="States in each repository.")] = 160,
    model: Model = "",
    threads: Annotated[int, typer.Option(min=1)] = 2,
    seed: Annotated[int, typer.Option(help="Seed for the choice of states and windows.")] = 1,
    cases: Cases = None,
    as_json: Json = False,
) -> None:
    """Ask a completion model where the next edit of a commit is, and what.

    Two windows for each state of a commit: one where an edit remains, one where none does. Takes
    some seconds for each.
    """
    path = store.resolve(model or CompletionConfig().model, "completion")
    folders = repos or [ROOT]
    chosen = [one for folder in folders for one in windows(folder, count, seed)]
    scanner = Scanner(path, threads)
    facts = run_facts(model=f"{path.name} ({scanner.weights.description})")
    try:
        found = collect(map(scanner.scan, chosen), len(chosen), describe, cases)
    finally:
        scanner.close()
    document = as_dict(found, {**facts, "repositories": len(folders)})
    emit(document, as_markdown(document), as_json)


# The windows


def windows(repository: Path, count: int, seed: int) -> Iterator[Window]:
    """Yield two windows for each of some states: with a remaining edit, and without."""
    found = 0
    for commit in commits.load(repository, count * 4):
        for pair in pairs(commit, seed):
            if found == count:
                return
            found += 1
            yield from pair


def pairs(commit: Commit, seed: int) -> Iterator[tuple[Window, Window]]:
    """Yield the windows of some states of a commit: around the next step, and elsewhere."""
    rng = random.Random(f"{seed}:{commit.name}")
    order = ordered(commit, ORDER)
    for count in rng.sample(range(1, len(order)), min(STATES, len(order) - 1)):
        done, step = order[:count], commit.steps[order[count]]
        changes = [commit.steps[index] for index in done[-MAX_EDITS:]]
        edits = tuple(
            (one.path, one.old, one.new)
            for one in changes
            if max(len(one.old), len(one.new)) <= MAX_EDIT_ROWS
        )
        lines, places = _state(commit, step.path, {*done})
        free = [row for row in range(len(lines) - ROWS + 1) if _is_free(commit, lines, places, row)]
        if not edits or not free or len(step.old) > MAX_STEP_ROWS:
            continue
        at = next(row for row, index in places if index == order[count])
        first = at - rng.randint(0, ROWS - max(len(step.old), 1))
        first = max(0, min(first, len(lines) - ROWS))
        open_ = [(row, commit.steps[index]) for row, index in places if index not in done]
        yield (
            _window(commit.name, step.path, lines, first, edits, open_),
            _window(commit.name, step.path, lines, rng.choice(free), edits),
        )


def _is_free(
    commit: Commit, lines: Sequence[str], places: Sequence[tuple[int, int]], first: int
) -> bool:
    """Return whether a window has code, and is at least two lines away from each step."""
    has_code = sum(bool(line.strip()) for line in lines[first : first + ROWS]) > ROWS // 2
    return has_code and all(
        first + ROWS + 2 <= row or row + len(commit.steps[index].new) + 2 <= first
        for row, index in places
    )


def _window(
    name: str,
    path: str,
    lines: Sequence[str],
    first: int,
    edits: tuple[Change, ...],
    open_: Sequence[tuple[int, Step]] = (),
) -> Window:
    """Return a window; `open_` are the rows and the steps that remain."""
    end = first + ROWS
    final = list(lines[first:end])
    for row, step in reversed(open_):
        if first <= row and row + len(step.old) <= end:
            final[row - first : row - first + len(step.old)] = step.new
    before, after = lines[max(0, first - AROUND) : first], lines[end : end + AROUND]
    now = tuple(lines[first:end])
    return Window(name, path, (*before,), now, (*after,), first, (*final,), edits)


def _state(
    commit: Commit, path: str, done: set[int]
) -> tuple[tuple[str, ...], list[tuple[int, int]]]:
    """Return the lines of a file after some steps, and the row of each step in them."""
    base = commit.base[path]
    lines: list[str] = []
    places = []
    row = 0
    for index, step in enumerate(commit.steps):
        if step.path == path:
            lines += base[row : step.row]
            places.append((len(lines), index))
            lines += step.new if index in done else step.old
            row = step.row + len(step.old)
    return (*lines, *base[row:]), places


# The model


class Scanner:
    """A model that scans windows; sequence 0 has the code, 1 and 2 the scans."""

    def __init__(self, path: Path, threads: int) -> None:
        self.weights = Weights(path, 0, lambda fraction: True)
        size = ContextSize(batch=512, outputs=MAX_TOKENS + 1, threads=threads)
        self._context = Context(self.weights, size)

    def close(self) -> None:
        """Free the model."""
        self._context.close()
        self.weights.close()

    def scan(self, window: Window) -> Scanned:
        """Scan a window without and with the edits."""
        began_s = time.perf_counter()
        for sequence in range(3):
            self._context.remove(sequence, 0)
        code = self._header(window.path) + self._text((*window.before, *window.now, *window.after))
        start = self._read(code, 0, 0)
        own = self._text(window.now)[:MAX_TOKENS]
        history = [
            token
            for path, old, new in window.edits
            for token in self._change(path, old) + self._text(new)
        ]
        header = self._change(window.path, window.now)
        without, _ = self._likelihoods(header, own, start, 1)
        likelihoods, others = self._likelihoods(history + header, own, start, 2)
        shifts = self._by_line(own, without - likelihoods)
        margin, confidence, made = self._propose(
            own, likelihoods, others, start + len(history + header)
        )
        now, final = ["\n".join(lines) for lines in (window.now, window.final)]
        return Scanned(
            commit=window.commit,
            path=window.path,
            row=window.row,
            is_place=now != final,
            shift=max(shifts),
            total_shift=sum(shifts),
            margin=margin,
            confidence=confidence,
            is_right=bool(made) and is_right(now, made, final),
            new=tuple(made.split("\n")),
            ms=(time.perf_counter() - began_s) * 1000,
        )

    def _header(self, name: str) -> list[int]:
        return [*self.weights.tokenize(SEP, special=True), *self.weights.tokenize(f"{name}\n")]

    def _change(self, path: str, old: Sequence[str]) -> list[int]:
        """Return the tokens in front of the new lines of a change."""
        return self._header(f"{path}.diff") + self._text(("original:", *old, "updated:"))

    def _text(self, lines: Sequence[str]) -> list[int]:
        return self.weights.tokenize("".join(f"{line}\n" for line in lines))

    def _read(self, ids: Sequence[int], start: int, sequence: int, outputs: int = 1) -> int:
        """Evaluate tokens and return the position after them; logits of the last `outputs`."""
        for at in range(0, len(ids), 512):
            part = ids[at : at + 512]
            self._context.decode(part, start + at, sequence, min(outputs, len(part)))
        return start + len(ids)

    def _likelihoods(
        self, lead: Sequence[int], own: Sequence[int], start: int, sequence: int
    ) -> tuple[Any, list[tuple[int, float]]]:
        """Return the log probability of each own token, and the likeliest token at each place."""
        self._context.copy(0, sequence, 0, start)
        at = self._read(lead[:-1], start, sequence)
        count = len(own) + 1
        self._context.decode([lead[-1], *own], at, sequence, count)
        likelihoods, others = [], []
        for number, token in enumerate(own):
            row = self._context.logits(number)
            top = int(row.argmax())
            norm = float(row[top]) + math.log(float(np.exp(row - row[top]).sum()))
            likelihoods.append(float(row[token]) - norm)
            others.append((top, float(row[top]) - norm))
        return np.array(likelihoods), others

    def _by_line(self, own: Sequence[int], values: Any) -> list[float]:
        """Return the sum of the values of each line's tokens."""
        sums = [0.0]
        for token, value in zip(own, values, strict=True):
            sums[-1] += float(value)
            if b"\n" in self.weights.piece(token):
                sums.append(0.0)
        return sums

    def _propose(
        self, own: Sequence[int], likelihoods: Any, others: Sequence[tuple[int, float]], start: int
    ) -> tuple[float, float, str]:
        """Return margin, confidence and new text of the first place where the model differs.

        Reuses the cells of sequence 2, whose window begins at `start`.
        """
        first = next(
            (
                number
                for number, token in enumerate(own)
                if others[number][0] != token and self._differs(others[number][0], token)
            ),
            None,
        )
        if first is None:
            return 0.0, 0.0, ""
        margin = others[first][1] - float(likelihoods[first])
        token, confidence = others[first]
        written: list[int] = []
        self._context.remove(2, start + first)
        while len(written) < MAX_WRITTEN and not self.weights.is_end(token):
            written.append(token)
            rest = resync(own, first, written)
            if rest is not None:
                made = [*own[:first], *written, *own[rest:]]
                text = b"".join(map(self.weights.piece, made)).decode("utf-8", "replace")
                return margin, math.exp(confidence), text.removesuffix("\n")
            self._context.decode([token], start + first + len(written) - 1, 2)
            row = self._context.logits()
            token = int(row.argmax())
            confidence -= math.log(float(np.exp(row - row[token]).sum()))
        return margin, 0.0, ""

    def _differs(self, one: int, other: int) -> bool:
        return self.weights.piece(one).strip() != self.weights.piece(other).strip()


def resync(own: Sequence[int], first: int, written: Sequence[int]) -> int | None:
    """Return the index in the window after the last written tokens, if they stand in it."""
    end = list(written[-RESYNC:])
    if len(end) < RESYNC:
        return None
    for at in range(first, len(own) - RESYNC + 1):
        if list(own[at : at + RESYNC]) == end:
            return at + RESYNC
    return None


def is_right(now: str, made: str, final: str) -> bool:
    """Return whether a change is a part of the one that remains, or all of it."""
    old, new, wanted = tokens(now), tokens(made), tokens(final)
    done = distance(old, new)
    return 0 < done == distance(old, wanted) - distance(new, wanted)


# The figures


def auc(right: Sequence[float], wrong: Sequence[float]) -> float | None:
    """Return the share of pairs in which the right one has the higher score; ties count half."""
    if not right or not wrong:
        return None
    wins = sum((one > other) + 0.5 * (one == other) for one in right for other in wrong)
    return round(wins / (len(right) * len(wrong)), 4)


def describe(found: Sequence[Scanned]) -> str:
    """Return words about the results so far."""
    right = sum(one.is_right for one in found)
    return f"{right} right of {sum(one.confidence > 0 for one in found)} proposals"


def as_dict(found: Sequence[Scanned], facts: dict[str, Any]) -> dict[str, Any]:
    """Return the report as JSON."""
    scores = ("shift", "total_shift", "margin")
    places = [one for one in found if one.is_place]
    others = [one for one in found if not one.is_place]
    proposed = [one for one in found if one.confidence > 0]
    right = [one for one in proposed if one.is_right]
    wrong = [one for one in proposed if not one.is_right]
    times = [one.ms for one in found]
    return {
        "places": {
            name: auc(*([getattr(one, name) for one in some] for some in (places, others)))
            for name in scores
        },
        "texts": {
            name: auc(*([getattr(one, name) for one in some] for some in (right, wrong)))
            for name in ("confidence", *scores)
        },
        "windows": len(found),
        "states": len(places),
        "proposed": len(proposed),
        "proposed_at_places": sum(one.is_place for one in proposed),
        "right": len(right),
        "best": best(proposed),
        "ms": {"p50": percentile(times, 50), "p95": percentile(times, 95)},
        **facts,
    }


def best(proposed: Sequence[Scanned], share: float = 0.5) -> dict[str, float]:
    """Return the lowest confidence from which a share of the proposals is right."""
    rows = sorted(proposed, key=lambda one: -one.confidence)
    found = {"confidence": 1.0, "shown": 0, "right": 0}
    right = 0
    for number, (one, after) in enumerate(pairwise([*rows, None]), 1):
        assert one
        right += one.is_right
        is_last = after is None or after.confidence < one.confidence
        if is_last and right >= share * number:
            found = {"confidence": round(one.confidence, 3), "shown": number, "right": right}
    return found


def as_markdown(document: dict[str, Any]) -> list[str]:
    """Return the lines of the report."""
    lines = head(
        document,
        f"Model: {document['model']}; {document['states']} states of "
        f"{document['repositories']} repositories",
    )
    rows = [
        (name, *(_figure(document[key].get(score)) for key in ("places", "texts")))
        for name, score in (
            ("largest drop of a line by the edits", "shift"),
            ("drop of all lines", "total_shift"),
            ("margin of the first other token", "margin"),
            ("probability of the written text", "confidence"),
        )
    ]
    lines += table(["AUC of", "place:", "text:"], rows)
    found = document["best"]
    return [
        *lines,
        "",
        f"Proposals: {document['proposed']} in {document['windows']} windows, "
        f"{document['proposed_at_places']} of them where an edit remains; {document['right']} "
        f"right. Half of those shown are right down to a confidence of {found['confidence']}: "
        f"{found['right']} of {found['shown']}.",
        "",
        f"Time for each window: p50 {document['ms']['p50']:.0f} ms, "
        f"p95 {document['ms']['p95']:.0f} ms.",
    ]


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
