"""The rules that detect a run without progress, on sequences as agents produce them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lcursor.agent.records import Observation
from lcursor.agent.stuck import DoneCall, Repetition, digest_of, find_circle, repeat_of

ROOT = Path(__file__).resolve().parents[3]


def calls(script: str) -> list[DoneCall]:
    """Return the calls of a script, one a line.

    `read a.py 0 40` shows rows, `edit B` makes tree B, `run pytest: 3 failed` prints that, and
    `run make > B: ok` also makes tree B.
    """
    done, tree = list[DoneCall](), "A"
    for line in filter(None, map(str.strip, script.split("\n"))):
        words, _, output = line.partition(":")
        words, _, after = words.partition(" > ")
        rows = frozenset[tuple[str, int]]()
        if words.startswith("read"):
            _, path, first, last = words.split()
            rows = frozenset((path, row) for row in range(int(first), int(last)))
        if words.startswith("edit"):
            after = words.split()[1]
        found = digest_of(Observation(output or f"{words} {tree}" * bool(rows)))
        done.append(DoneCall(words, found, tree, after or tree, rows))
        tree = after or tree
    return done


ORDINARY = {
    "reads, edits and tests": """
        run pytest: 2 failed
        read a.py 0 100
        edit B
        run pytest: 1 failed
        read b.py 0 80
        edit C
        run pytest: 1 failed
        edit D
        run pytest: passed
        """,
    "pages of a long file": "\n".join(f"read a.py {n * 50} {n * 50 + 50}" for n in range(30)),
    "pages that overlap": "\n".join(f"read a.py {n * 40} {n * 40 + 50}" for n in range(30)),
    "searches with other words": "\n".join(f"grep {word}: no hits" for word in "abcdefghijklmnop"),
    "a change that is taken back once": """
        edit B
        run pytest: 3 failed
        edit A
        run pytest: 1 failed
        edit C
        run pytest: passed
        """,
    "a script that is made, run and deleted": """
        edit B
        run python try.py: 7
        run rm try.py > A: ok
        edit C
        run pytest: passed
        edit D
        run python try.py: 8
        run rm try.py > C: ok
        run pytest: passed
        """,
    "the same tests of a flaky project": """
        run pytest: 1 failed
        run pytest: 2 failed
        run pytest: 1 failed, 1 skipped
        run pytest: passed
        """,
    "the same file after each edit": "\n".join(f"edit {n}\nread a.py 0 50" for n in range(20)),
    "a look at what is known before each edit": "\n".join(
        f"read a.py 0 50\nread b.py 0 50\nrun git diff {n}: +{n}\nedit {n}" for n in range(9)
    ),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_run_is_not_taken_for_one_without_progress(name: str) -> None:
    found = calls(ORDINARY[name])
    for count in range(len(found)):
        assert find_circle(found[: count + 1]) == ""
        repeat, _ = repeat_of(found[:count], found[count].key, found[count].before)
        assert repeat in ("run", "shorten")


CIRCLES = {
    "R2, two calls in turn": ("read a.py 0 9\nrun pytest: 1 failed\n" * 3, 6, "the same 2 calls"),
    "R2, three calls in turn": ("grep x: 1\nread a.py 0 9\ngrep y: 2\n" * 3, 9, "the same 3 calls"),
    "R2, four calls after others": (
        "edit B\n" + "grep x: 1\ngrep y: 2\ngrep z: 3\nrun ls: a\n" * 3, 13, "the same 4 calls",
    ),
    "R3, edits that are undone": (
        "edit B\nrun pytest: 1\nedit A\nrun pytest: 2\nedit B\nrun pytest: 1", 5, "undone",
    ),
    "R3, attempts that are all taken back": ("edit B\nedit A\nedit C\nedit A", 4, "undone"),
    "R3, by the same two trees in turn": ("edit B\nedit C\nedit B\nedit C", 4, "undone"),
    "R4, parts of what was read": (
        "read a.py 0 90\n" + "\n".join(f"read a.py {n} {n + 9}" for n in range(12)),
        13, "nothing new",
    ),
    "R4, files and searches again and again": (
        "read a.py 0 9\nread b.py 0 9\ngrep x: 1\ngrep y: 2\nrun ls: a\n" * 4, 17, "nothing new",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CIRCLES)
def test_a_run_without_progress_is_detected(name: str) -> None:
    script, at, words = CIRCLES[name]
    found = calls(script)
    first = next(count for count in range(len(found) + 1) if find_circle(found[:count]))
    assert first == at
    assert words in find_circle(found[:first])


def test_equal_calls_are_shortened_skipped_and_end_the_run() -> None:
    found = calls("run pytest: 1 failed in 0.52s\nrun pytest: 1 failed in 0.61s\n" * 2)
    key, actions = found[0].key, ["run", "shorten", "skip", "end", "end"]
    assert [repeat_of(found[:count], key, "A")[0] for count in range(5)] == actions
    assert repeat_of(found, key, "B") == ("run", -1)  # another tree


@pytest.mark.parametrize("pieces", [1, 4, 16])
def test_repeated_text_is_noticed(pieces: int) -> None:
    sentence = "Let me look at the file again, to be sure. "
    for before, limit in (("First. ", 700), ("```python\n", 4000)):
        text, repetition = before + sentence * 200, Repetition()
        parts = [text[at : at + pieces] for at in range(0, len(text), pieces)]
        count = next(number for number, part in enumerate(parts, 1) if repetition.add(part))
        assert count * pieces < limit


FILES = sorted(
    path
    for pattern in ("*.md", "doc/*.*", "bench/results/*.md", "lua/lcursor/*.lua", "tests/screens/*",
                    "lcursor/*.py", "tests/unit/agent/*.py", "models/*.toml")
    for path in ROOT.glob(pattern)
)  # fmt: skip


@pytest.mark.parametrize("before", ["", "<parameter=file_text>\n"], ids=["prose", "call"])
def test_a_text_of_a_project_is_no_repetition(before: str) -> None:
    assert len(FILES) > 80
    for path in FILES:
        if not before and path.suffix != ".md":
            continue
        repetition, text = Repetition(), path.read_text()[:6000]
        for at in range(0, len(text), 12):
            assert not repetition.add(before * (at == 0) + text[at : at + 12]), path
