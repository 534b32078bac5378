"""Places that programs name."""

from __future__ import annotations

import pytest

from lcursor.context.trace import MAX, frames

CASES = [
    ('  File "/p/src/a.py", line 12, in f', [("/p/src/a.py", 11)]),
    ('  File "a b.py", line 3', [("a b.py", 2)]),
    ("    at f (/p/src/a.js:10:5)", [("/p/src/a.js", 9)]),
    ("    at async file:///p/src/a.mjs:10:5", [("/p/src/a.mjs", 9)]),
    ("\t/p/main.go:23 +0x1d", [("/p/main.go", 22)]),
    ("   --> src/main.rs:4:9", [("src/main.rs", 3)]),
    ("\tat org.x.Y.z(Y.java:77)", [("Y.java", 76)]),
    ("./a.rb:5:in `f'", [("./a.rb", 4)]),
    ("E5108: /p/lua/x.lua:9: boom", [("/p/lua/x.lua", 8)]),
    ("src/a.c:3:7: error: x", [("src/a.c", 2)]),
    ("~/x/y.py:3", [("~/x/y.py", 2)]),
    ("app/[id]/page.tsx:3:1", [("app/[id]/page.tsx", 2)]),
    ("a.py:1 a.py:1 b.py:2", [("a.py", 0), ("b.py", 1)]),
    ("https://x.org:80/a 10:20:30 12.5:3 1.2.3.4:80", []),
    ("", []),
]


@pytest.mark.parametrize(("text", "found"), CASES)
def test_frames_of_a_trace(text: str, found: list[tuple[str, int]]) -> None:
    assert [tuple(frame) for frame in frames(text)] == found


def test_the_first_of_many_frames_count() -> None:
    found = frames("\n".join(f"a.py:{row}" for row in range(1, 500)))
    assert len(found) == MAX
    assert found[0].row == 0
