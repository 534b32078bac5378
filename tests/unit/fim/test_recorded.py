"""What is shown of many texts, and what an editing session costs, compared with a record.

A change of the rules or of the cache shows here which suggestions and which costs it changes:
`pytest tests/unit/fim/test_recorded.py --update-recorded`, then read `git diff tests/recorded`.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from lcursor.config import CompletionConfig
from lcursor.errors import Cancelled
from lcursor.fim.context_ring import Chunk, ContextRing, Kind
from lcursor.fim.engine import Engine
from lcursor.fim.prompt import Source
from lcursor.fim.result import Result
from lcursor.fim.trim import Suggestion, cursor_context, ended, finish
from tests.fakes.llama import IDS, FakeContext, engines
from tests.unit.index.samples import SAMPLES, Sample

Recorded = Callable[[str, str], None]

# Texts.

CURSORS = 30
"""In each sample."""
PIECE = 5
"""Characters of a token."""
COMMENTS = {"#": "py sh rb toml yaml", "--": "lua sql hs", "//": "c rs go js ts java"}


def continuations(sample: Sample, draw: random.Random) -> Iterator[tuple[str, str, str, str]]:
    """Yield a name, the text before and after a cursor, and what a model may write there."""
    lines = sample.text.split("\n")
    ending = sample.path.rpartition(".")[2]
    comment = next((sign for sign, ends in COMMENTS.items() if ending in ends.split()), "//")
    for _ in range(CURSORS):
        row = draw.randrange(len(lines))
        line = lines[row]
        start = len(line) - len(line.lstrip())
        at = draw.choice([start, len(line), draw.randint(start, len(line))])
        before = "\n".join([*lines[:row], line[:at]])
        stop = row + draw.randrange(4)  # the lines up to there are missing
        after = "\n" + "\n".join(lines[stop + 1 :])
        goes_on = [line[at:], *lines[row + 1 : stop + 4]]
        whole = "\n".join(goes_on)
        last = line[at:].rstrip()[-1:]
        first, *others = goes_on
        kinds = {
            "as the file": (after, whole),
            "pair": ((last if last in ")]}'\";" else ")") + after, whole),
            "a pair of two": (line[-2:].strip() + after, whole),
            "in the middle": (line[at + (len(line) - at) // 2 :] + after, whole),
            "more behind a pair": (")" + after, f"{first}, value) + 1\n" + "\n".join(others)),
            "three times": (after, "\n".join([first, *others[:2] * 3])),
            "a block again": (after, "\n".join([first, *others, *others])),
            "tabs": (after, whole.replace("    ", "\t").replace("  ", "\t")),
            "spaces": (after, whole.replace("\t", "    ")),
            "comments": (after, "\n".join(f"{one}  {comment} as above" for one in goes_on)),
            "an echo": (after, line[start:at][-8:] + whole),
            "a blank first": (after, " " + whole),
            "an explanation": (after, f"{first}\n```\nThis is how it works."),
            "to the left": (after, "\n".join([first, *map(str.lstrip, others)])),
            "in circles": (after, first + ", value(1)" * 12),
            "blank lines": (after, f"{first}\n\n\n\n" + "\n".join(others)),
            "above": (after, "\n".join([*lines[max(row - 2, 0) : row], whole])),
        }
        name = draw.choice([*kinds])
        yield f"{name} {row + 1}:{at + 1}", before, *kinds[name]


def test_parts_shown_of_texts_in_many_languages(recorded: Recorded) -> None:
    rows, draw = list[str](), random.Random(1)
    for sample in SAMPLES:
        rows.append(f"==== {sample.path}")
        for name, before, after, text in continuations(sample, draw):
            is_single, most = draw.random() < 0.4, draw.choice([3, 12])
            cursor = cursor_context(before, after, is_single, most, sample.path)
            suggestion, seen = Suggestion(cursor), list[str]()
            end, unsure = 0, draw.randrange(3)
            while end < len(text) and not ended(text[:end], cursor):
                end = min(end + PIECE, len(text))
                certain = max(end - unsure, 0)
                if suggestion.grow(text[:certain], text[certain:end]):
                    seen.append(f"{end}: {suggestion.text[-12:]!r}")
            final, replaced = finish(text[:end], cursor)
            assert suggestion.finish(text[:end]) == final
            rows += [
                f"{name} {'one line' if is_single else f'{most} lines'}",
                f"  {cursor.line!r} ¦ {cursor.rest!r}",
                f"  wrote {text[:end]!r}",
                f"  shown {final!r}, {replaced} replaced; {', '.join(seen)}",
            ]
    recorded("texts", "\n".join(rows) + "\n")


# A session.

TEXT = "".join(
    f"def step_{row}(first, second):\n    total = first + second * {row}\n"
    f"    if total > {row}:\n        report(total)\n    return total\n\n\n"
    for row in range(24)
)
KNOWN = {
    "step_": ["9(first, second):\n    total = ", "8(first):\n"],
    "total = ": ["first + second * 9\n    if total", "second\n"],
    "if total ": ["> 9:\n        report(total)\n", "is None:\n        return 0\n"],
    "report(": ["total)\n    return total\n", "first)\n"],
    "return ": ["total\n\n\ndef step_", "first\n"],
}
CONFIG = CompletionConfig(
    min_confidence=0.0, budget_ms=600_000, max_tokens=40, prefix_tokens=700, suffix_tokens=200,
    files_tokens=300, context_tokens=2048,
)  # fmt: skip

STEPS = (
    "type type type type delete accept accept newline jump near file chunk idle idle idle rest "
    "abort warm alternatives again below settings"
)
"""What a user does, as often as it is named."""


class Session:
    """Types into two files; writes a row for each request."""

    def __init__(self, engine: Engine, seed: int) -> None:
        self.engine, self.draw = engine, random.Random(seed)
        self.context = cast(FakeContext, engine._context)
        self.files = {"a.py": TEXT, "lib/b.py": TEXT.replace("step", "part")[: len(TEXT) // 2]}
        self.path, self.at = "a.py", 0
        self.rows: list[str] = []
        self.last = Result()
        engine.on_improved = self.improved

    def note(self, text: str) -> None:
        """Add a row: what was done, and the batches that it took."""
        batches = " ".join(map(str, self.context.batches))
        self.rows.append(f"{text} | {batches}")
        self.context.batches.clear()

    def improved(self, result: Result) -> None:
        self.note(f"    improved {result.window} {result.reason} {result.text!r}")

    def source(self) -> Source:
        text = self.files[self.path]
        first = max(text.count("\n", 0, self.at) - 120, 0)
        start = len("".join(text.splitlines(keepends=True)[:first]))
        return Source(
            text[start : self.at], text[self.at :][:900], first, self.path, "demo", root="/demo/"
        )

    def prompt(self) -> str:
        """Return the last prompt: markers, and the sizes of what is between them."""
        names = {number: name for name, number in IDS.items()}
        parts, size = list[str](), 0
        for token, _, _ in self.engine.last_prompt():
            if token in names:
                parts += [str(size)] * bool(size) + [names[token]]
                size = 0
            else:
                size += 1
        cached = sum(is_cached for _, _, is_cached in self.engine.last_prompt())
        return f"{' '.join([*parts, str(size)])}, {cached} cached"

    def complete(self, what: str, **options: bool) -> None:
        seen = list[str]()
        is_single = self.draw.random() < 0.3
        try:
            made = self.engine.complete(
                self.source(), seen.append, single_line=is_single, **options
            )
        except Cancelled:
            self.engine.abort.clear()
            return self.note(f"{what}: cancelled")
        self.last = made
        shape = self.prompt() if made.source == "model" else made.source
        return self.note(
            f"{what}: {made.text!r} {made.reason} {made.window}, {len(seen)} shown,"
            f" {made.prompt_tokens} prompt, {made.read_tokens} read, {made.passes} passes, {shape}"
        )

    def insert(self, text: str) -> None:
        whole = self.files[self.path]
        self.files[self.path] = whole[: self.at] + text + whole[self.at :]
        self.at += len(text)

    def go_to(self, low: int) -> None:
        """Go where the model knows how the text goes on."""
        key, text = self.draw.choice([*KNOWN]), self.files[self.path]
        at = text.find(key, low) if key in text[low:] else text.find(key)
        inside = self.draw.choice([0, 0, 1])  # half typed, or in a word
        self.at = at + len(key) - inside
        end = text.find("\n", self.at)
        if self.draw.random() < 0.8:  # the rest of the line is not there yet
            rest = self.draw.choice(["", "", ")", ":"])
            self.files[self.path] = text[: self.at] + rest + text[end:]

    def step(self) -> None:
        """Do something that a user does."""
        draw, text = self.draw, self.files[self.path]
        kind = draw.choice(STEPS.split())
        if kind == "type":
            typed = self.last.text[: draw.randint(1, 6)] if draw.random() < 0.85 else "x"
            self.insert(typed or "t")
        elif kind == "delete":
            size = min(draw.randint(1, 12), self.at)
            self.files[self.path] = text[: self.at - size] + text[self.at :]
            self.at -= size
        elif kind == "accept":
            self.insert(self.last.text)
        elif kind == "newline":
            self.insert("\n    ")
        elif kind in {"jump", "near"}:
            low = 0 if kind == "jump" else max(self.at - 200, 0)
            high = len(text) if kind == "jump" else min(self.at + 200, len(text))
            self.go_to(draw.randint(low, high))
        elif kind == "file":
            self.path = next(path for path in self.files if path != self.path)
            self.at = min(self.at, len(self.files[self.path]))
        elif kind == "below":
            self.files[self.path] = text[: self.at] + text[self.at + draw.randint(1, 60) :]
        elif kind == "settings":
            tokens = draw.choice([20, 40])
            self.engine.configure(replace(CONFIG, max_tokens=tokens))
        if kind == "chunk":
            assert self.engine.ring is not None
            row = draw.randrange(20)
            lines = TEXT.replace("step", f"other_{row}").split("\n")[
                row : row + draw.randint(3, 30)
            ]
            how: Kind = draw.choice(["visited", "edited", "yanked", "import"])
            chunk = Chunk(f"lib/{row % 3}.py", row, "\n".join(lines), how)
            self.engine.ring.add(chunk)
            return self.note(f"chunk {how} {row}, {len(lines)} lines")
        if kind in {"idle", "rest"}:
            steps = 1
            while self.engine.idle() and (kind == "rest" or steps < 2):
                steps += 1
            return self.note(f"idle {steps}")
        if kind == "warm":
            self.engine.warm(self.source())
            return self.note("warm")
        if kind == "alternatives":
            return self.note(f"alternatives {self.engine.alternatives()}")
        if kind == "abort":
            self.context.abort.looks_left = draw.randint(1, 60)
            self.context.abort.is_immediate = draw.random() < 0.5
            self.complete("abort", bypass_cache=True)
            with contextlib.suppress(Cancelled):
                self.context.abort.clear()
            self.context.abort.is_immediate = False
            return None
        return self.complete(kind, bypass_cache=kind == "again")


@pytest.mark.parametrize("window", ["staged", "full"])
def test_tokens_read_by_the_requests_of_a_session(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, recorded: Recorded, window: str
) -> None:
    with engines(monkeypatch, tmp_path, KNOWN) as start:
        engine = start(CONFIG)
        engine.reader.window = "full" if window == "full" else "staged"
        engine.ring = ContextRing()
        session = Session(engine, 1 if window == "full" else 2)
        for _ in range(600):
            if not session.last.text and session.draw.random() < 0.3:
                session.go_to(session.draw.randrange(len(TEXT)))
            session.step()
    recorded(f"session-{window}", "\n".join(session.rows) + "\n")
