"""Texts and words of the traps: see `apply_traps.py`."""

from __future__ import annotations

from typing import Any

TWINS = """\
def load_users(path):
    with open(path) as file:
        rows = file.readlines()
    return [row.strip() for row in rows]


def load_groups(path):
    with open(path) as file:
        rows = file.readlines()
    return [row.strip() for row in rows]
"""
SHAPES = """\
import os
import sys


class Circle:
    def __init__(self, r):
        self.r = r

    def area(self):
        return 3.14 * self.r * self.r

    def name(self):
        return "circle"


class Square:
    def __init__(self, a):
        self.a = a

    def area(self):
        return self.a * self.a

    def name(self):
        return "square"


def total(shapes):
    result = 0
    for shape in shapes:
        result += shape.area()
    return result


def main():
    shapes = [Circle(1), Square(2)]
    print(total(shapes))
    return 0
"""
STEPS = """\
def run(job):
    job.start()
    value = job.first()
    check(value)
    log("one")
    value = job.second()
    check(value)
    log("two")
    value = job.third()
    check(value)
    log("three")
    job.stop()
    return value
"""
GO = """\
package main

type A struct{}

func (a *A) Run() int {
	return 1
}

type B struct{}

func (b *B) Run() int {
	return 2
}
"""
LUA = """\
local M = {}

local function read(path)
  return io.open(path)
end

function M.read(path)
  return read(path):read("a")
end

function M.write(path, text)
  local file = io.open(path, "w")
  file:write(text)
  file:close()
end

return M
"""
NOTES = """\
# Notes

Use it so:

```python
run(1)
```

And then:

```
done
```

The end.
"""


def sr(old: str, new: str, path: str = "") -> str:
    """Return a search/replace block."""
    head = f"{path}\n" if path else ""
    return f"{head}```\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n```\n"


def code(text: str, info: str = "python", path: str = "") -> str:
    """Return a fence."""
    head = f"{path}\n" if path else ""
    return f"{head}```{info}\n{text}```\n"


def diff(text: str) -> str:
    return f"```diff\n{text}```\n"


TRAPS: list[dict[str, Any]] = []


def trap(
    name: str,
    files: dict[str, str],
    reply: str,
    right: dict[str, str | None] | None = None,
    *,
    current: str = "",
    file: str = "",
) -> None:
    """Note one: what is not named in `right` stays as it is."""
    TRAPS.append(
        {
            "id": f"trap-{name}",
            "from": "by hand",
            "form": "trap",
            "mangled": name.partition(":")[0],
            "files": {path: lines(text) for path, text in files.items()},
            "current": current,
            "file": file,
            "reply": reply,
            "right": None
            if right is None
            else {
                path: None if text is None else [[0, count(files, path), lines(text)]]
                for path, text in right.items()
            },
            "is_unique": right is not None,
        }
    )


def lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def count(files: dict[str, str], path: str) -> int:
    return len(lines(files[path])) if path in files else 0


def swapped(text: str, *pairs: tuple[str, str]) -> str:
    """Return a text with parts replaced, each of which must be there once."""
    for old, new in pairs:
        assert text.count(old) == 1, (text.count(old), old)
        text = text.replace(old, new)
    return text
