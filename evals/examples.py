"""Tries a function on the examples of its docstring, in the sandbox: the eval's test command.

`python -m evals.examples FILE FUNCTION` says which examples a file gets wrong, as a person
would read it in a terminal, and ends with 1 where there are any.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from evals import sandbox
from evals.bugs import Example

NAME = "examples.json"
"""In the folder of the file: what it is tried on."""
MOST_TOLD = 3
TIMEOUT_S = 5.0

_TRY = """
def _lcursor_try(call, value):
    try:
        found = eval(call, globals())
    except BaseException as error:
        return f"{call} raises {type(error).__name__}: {error}, it should be {value}"
    wanted = eval(value)
    if found == wanted and (type(found) is type(wanted) or not isinstance(wanted, (bool, str))):
        return ""
    if isinstance(wanted, float) and isinstance(found, (int, float)) and abs(found-wanted) < 1e-6:
        return ""
    return f"{call} is {found!r}, it should be {value}"

_lcursor_wrong = [words for words in (_lcursor_try(*each) for each in EXAMPLES) if words]
print("\\n".join(_lcursor_wrong))
assert not _lcursor_wrong
"""


def command(root: Path, entry_point: str) -> str:
    """Return the command that tries a file, for the settings.

    Args:
        root: where lcursor is.
        entry_point: the function.
    """
    words = [sys.executable, "-m", "evals.examples", "{path}", entry_point]
    said = " ".join(word if word == "{path}" else shlex.quote(word) for word in words)
    return f"PYTHONPATH={shlex.quote(str(root))} {said}"


def wrong(source: str, found: Sequence[Example]) -> list[str]:
    """Return what a program gets wrong, in sentences; nothing where all is right."""
    pairs = [(each.call, each.value) for each in found]
    program = f"{source}\n\nEXAMPLES = {pairs!r}\n{_TRY}"
    outcome, said = sandbox.told(program, TIMEOUT_S)
    if outcome == "passed":
        return []
    if outcome == "timeout":
        return [f"it does not come to an end within {TIMEOUT_S:g} s"]
    return said.strip().splitlines() or ["the file cannot be run"]


def main(arguments: Sequence[str]) -> int:
    """Try a file and say what is wrong."""
    path = Path(arguments[0])
    rows = json.loads((path.parent / NAME).read_text(encoding="utf-8"))
    found = wrong(path.read_text(encoding="utf-8"), [Example(*row) for row in rows])
    for words in found[:MOST_TOLD]:
        sys.stdout.write(f"{words}\n")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
