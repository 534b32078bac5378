"""Properties of hunks, in one real Neovim: no change in a wrong place, nothing typed is lost."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.nvim.edits import Room, changes, file, proposed

Act = tuple[str, float, float]
Lines = list[str]

# Few different lines: what is alike is where a change could go wrong.
LINE = st.sampled_from(["a", "b", "  a", "", "}", "x = 1"])
TEXT = st.lists(LINE, min_size=1, max_size=12)
ACTS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *("line", "append", "delete", "split", "join", "double"),
                *("accept", "accept", "reject", "rows", "all", "undo", "redo", "undo"),
            ]
        ),
        st.floats(0, 0.999),
        st.floats(0, 0.999),
    ),
    max_size=12,
)
SETTINGS = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def room(neovim: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    """One Neovim for all examples."""
    plain = "vim.o.autoindent = false"
    with Room(neovim, tmp_path_factory.mktemp("home"), plain) as shared:
        yield shared


@dataclass(frozen=True)
class Line:
    """A line of the buffer, and which of the base it is: none where it was typed or is new."""

    text: str
    row: int | None = None
    behind: float | None = None  # row of the base that it stands at, of a line that was accepted

    @property
    def place(self) -> float | None:
        """Where it is in the base."""
        return self.behind if self.row is None else self.row


Model = tuple[Line, ...]


def texts(model: Sequence[Line]) -> Lines:
    """Return the text of a model; no line is one empty line."""
    return [line.text for line in model] or [""]


class Session:
    """A buffer with a proposal, and what we know of its lines."""

    def __init__(self, room: Room, base: Lines, new: Lines) -> None:
        room.clear()
        self.room = room
        self.path = room.open("p.txt", base)
        self.base, self.new = room.lines(), new
        self.changes = changes(self.base, new)
        self.model: Model = tuple(Line(t, i) for i, t in enumerate(self.base))
        self.past: list[Model] = []
        self.future: list[Model] = []
        self.typed = 0
        room.propose(proposed([file(self.path, self.base, new)]))

    def step(self, model: Sequence[Line]) -> None:
        """Take a new model, as one undo step."""
        self.past.append(self.model)
        self.future.clear()
        self.model = tuple(model) or (Line(""),)
        assert self.room.lines() == texts(self.model)

    def row(self, share: float) -> int:
        """Return a row of the buffer."""
        return int(share * len(self.model))

    def type(self, row: int, keys: str, model: Sequence[Line]) -> None:
        """Press keys at a row."""
        self.room.nvim.lua(
            """
            local row, keys = ...
            vim.api.nvim_win_set_cursor(0, { row + 1, 0 })
            vim.api.nvim_feedkeys(vim.keycode(keys), "tx", false)
            """,
            row,
            keys,
        )
        self.step(model)

    def token(self) -> str:
        """Return a text that is nowhere yet."""
        self.typed += 1
        return f"typed{self.typed}"

    def act(self, what: str, share: float, more: float) -> None:
        """Do one thing and see that what follows is right."""
        row, lines = self.row(share), list(self.model)
        here = lines[row]
        token = self.token()
        if what == "line":
            self.type(row, f"O{token}<Esc>", [*lines[:row], Line(token), *lines[row:]])
        elif what == "append":
            lines[row] = Line(here.text + token, here.row)
            self.type(row, f"A{token}<Esc>", lines)
        elif what == "delete" and len(lines) > 1:
            self.type(row, "dd", lines[:row] + lines[row + 1 :])
        elif what == "split":
            lines[row : row + 1] = [Line(here.text, here.row, here.behind), Line("")]
            self.type(row, "A<CR><Esc>", lines)
        elif what == "double":
            lines.insert(row + 1, here)  # nobody could tell which is which
            self.type(row, "yyp", lines)
        elif what == "join" and row + 1 < len(lines):
            joined = here.text + lines[row + 1].text
            lines[row : row + 2] = [Line(joined, here.row)]
            self.type(row, "gJ", lines)
        elif what == "undo" and self.past:
            self.future.append(self.model)
            self.model = self.past.pop()
            self.room.nvim.command("silent undo")
        elif what == "redo" and self.future:
            self.past.append(self.model)
            self.model = self.future.pop()
            self.room.nvim.command("silent redo")
        elif what in ("accept", "reject"):
            self.room.cursor(row)
            self.taken(self.call(what))
        elif what == "rows":
            last = row + 1 + int(more * (len(lines) - row))
            self.taken(self.call("accept", row, last))
        elif what == "all":
            self.taken(self.call("accept_file"))
        assert self.room.lines() == texts(self.model)

    def call(self, name: str, *args: int) -> list[dict[str, Any]]:
        """Call a function of hunks.lua and return what it told."""
        told: list[dict[str, Any]] = self.room.nvim.lua(
            """
            _G.decided = {}
            local name = ...
            require("lcursor.edit.hunks")[name](select(2, ...))
            local told = _G.decided
            _G.decided = {}
            return told
            """,
            name,
            *args,
        )
        return told

    def taken(self, told: list[dict[str, Any]]) -> None:
        """See that what was taken is what was proposed, where it was proposed."""
        hunks = [hunk for one in told for hunk in one["accepted"]]
        if not hunks:
            return
        lines, by = list(self.model), 0
        for hunk in hunks:
            at = hunk["row"] - by
            self.right(hunk, at)
            by += len(hunk["new"]) - len(hunk["old"])
        for hunk in hunks:  # rows are those of the text with all before it made
            row, old = hunk["row"], hunk["old"]
            place = lines[row].place if old else self.between(lines, row)
            lines[row : row + len(old)] = [Line(t, behind=place) for t in hunk["new"]]
        self.step(lines)

    @staticmethod
    def between(lines: Sequence[Line], row: int) -> float:
        """Return a place of the base for what is put at a row."""
        above = [line.place for line in lines[:row] if line.place is not None]
        return (above[-1] if above else -1) + 0.5

    def is_back(self, old: Lines, at: int, first: int, last: int) -> bool:
        """Whether the old lines stand between their neighbours again, though typed anew."""
        above = self.model[at - 1].row if at else -1
        below = at + len(old)
        after = self.model[below].row if below < len(self.model) else len(self.base)
        return any(
            self.base[row : row + len(old)] == old and (above == row - 1 or after == row + len(old))
            for row in range(first, last - len(old) + 1)
        )

    def is_the_same(self, hunk: dict[str, Any], at: int, first: int, last: int) -> bool:
        """Whether lines that are the change's own could have been taken, with the same outcome."""
        count, new, lines = len(hunk["old"]), hunk["new"], [line.text for line in self.model]
        wanted = lines[:at] + new + lines[at + count :]
        own = [i for i, line in enumerate(self.model) if line.row in range(first, last)]
        for chosen in itertools.combinations(own, count):
            rest = [text for i, text in enumerate(lines) if i not in chosen]
            if rest[: chosen[0]] + new + rest[chosen[0] :] == wanted:
                return True
        return False

    def right(self, hunk: dict[str, Any], at: int) -> None:
        """See that a hunk is one of those proposed, or a part of it, at its own lines."""
        old, new = hunk["old"], hunk["new"]
        items = self.model[at : at + len(old)]
        assert texts(items) == old or not old
        for change in self.changes:
            first, last = change["first_row"], change["last_row"]
            is_part = any(
                change["new"][i : i + len(new)] == new for i in range(len(change["new"]) + 1)
            )
            if not is_part:
                continue
            if old:
                rows = [item.row for item in items]
                begin = rows[0]
                if (
                    begin is not None
                    and rows == list(range(begin, begin + len(old)))
                    and first <= begin
                    and begin + len(old) <= last
                ):
                    return
                if self.is_back(old, at, first, last) or self.is_the_same(hunk, at, first, last):
                    return
            else:
                places = [(item.place, i) for i, item in enumerate(self.model)]
                above = [(p, -i) for p, i in places if p is not None and p < first - 0.5]
                below = [(p, -i) for p, i in places if p is not None and p >= last]
                # Of lines that were doubled either counts.
                if (-max(above)[1] if above else -1) < at <= (-min(below)[1] if below else at):
                    return
        raise AssertionError(f"{hunk} was taken at {at} of {self.model}")


@SETTINGS
@given(base=TEXT, new=TEXT, acts=ACTS)
def test_nothing_goes_wrong(room: Room, base: Lines, new: Lines, acts: list[Act]) -> None:
    session = Session(room, base, new)
    for act in acts:
        session.act(*act)


@SETTINGS
@given(base=TEXT, new=TEXT, acts=ACTS)
def test_nothing_goes_wrong_with_time_between(
    room: Room, base: Lines, new: Lines, acts: list[Act]
) -> None:
    session = Session(room, base, new)
    for act in acts:
        session.act(*act)
        room.settle()


@SETTINGS
@given(base=TEXT, new=TEXT, order=st.randoms())
def test_all_taken_is_the_proposal(room: Room, base: Lines, new: Lines, order: Any) -> None:
    session = Session(room, base, new)
    hunks = list(range(len(session.changes)))
    order.shuffle(hunks)
    for index in hunks:
        room.nvim.lua(
            """
            local index = ...
            local part = require("lcursor.edit.proposals").all()[1].parts[1]
            require("lcursor.edit.apply").accept(part.buf, { part.hunks[index + 1] })
            """,
            index,
        )
    assert room.lines() == new
    for _ in hunks:
        room.nvim.command("silent undo")
    assert room.lines() == session.base
    room.settle()
    assert room.states() == ["open"] * len(hunks)
    room.hunks("accept_file")
    assert room.lines() == new


@SETTINGS
@given(base=TEXT, new=TEXT)
def test_all_rejected_is_the_text_before(room: Room, base: Lines, new: Lines) -> None:
    session = Session(room, base, new)
    for index in range(len(session.changes)):
        room.nvim.lua(
            """
            local part = require("lcursor.edit.proposals").all()[1].parts[1]
            require("lcursor.edit.apply").reject({ part.hunks[... + 1] })
            """,
            index,
        )
    assert room.lines() == session.base
    assert not room.nvim.lua("return vim.bo.modified")


@SETTINGS
@given(old=st.lists(LINE, max_size=12), new=st.lists(LINE, max_size=12))
def test_a_difference_made_is_the_other(room: Room, old: Lines, new: Lines) -> None:
    made = room.nvim.lua(
        """
        local diff = require("lcursor.text.diff")
        local old, new = ...
        local changes = vim.tbl_map(function(block)
          return {
            first_row = block.first,
            last_row = block.last,
            old = vim.list_slice(old, block.first + 1, block.last),
            new = vim.list_slice(new, block.new_first + 1, block.new_last),
          }
        end, diff.blocks(old, new))
        return { diff.apply(old, changes), #diff.blocks(new, new) }
        """,
        old,
        new,
    )
    assert made == [new, 0]


@SETTINGS
@given(old=st.text("ab_ .é日(", max_size=20), new=st.text("ab_ .é日(", max_size=20))
def test_words_that_differ_are_what_differs(room: Room, old: str, new: str) -> None:
    spans = room.nvim.lua("return { require('lcursor.text.diff').words(...) }", old, new)
    if not spans[0] and not spans[1]:
        return
    left = []
    for text, cuts in zip((old.encode(), new.encode()), spans, strict=True):
        out, at = b"", 0
        for first, last in cuts:
            assert at <= first < last
            out += text[at:first]
            at = last
        left.append((out + text[at:]).decode())
    assert left[0] == left[1]
