"""Run a function on the examples of its docstring, in the sandbox: the test command of `eval edit`.

`python -m evals.examples FILE FUNCTION` prints the examples that a file gets wrong, and exits with
1 if there are any.
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
"""The examples, in the folder of the file."""
MAX_PRINTED = 3
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
    """Return the test command for the settings; `root` is the checkout of lcursor."""
    words = [sys.executable, "-m", "evals.examples", "{path}", entry_point]
    quoted = " ".join(word if word == "{path}" else shlex.quote(word) for word in words)
    return f"PYTHONPATH={shlex.quote(str(root))} {quoted}"


def wrong(source: str, found: Sequence[Example]) -> list[str]:
    """Return a sentence for each example that a program gets wrong."""
    pairs = [(each.call, each.value) for each in found]
    program = f"{source}\n\nEXAMPLES = {pairs!r}\n{_TRY}"
    outcome, output = sandbox.run_with_output(program, TIMEOUT_S)
    if outcome == "passed":
        return []
    if outcome == "timeout":
        return [f"it does not end within {TIMEOUT_S:g} s"]
    return output.strip().splitlines() or ["the file cannot be run"]


def main(arguments: Sequence[str]) -> int:
    """Run a file on its examples and print what is wrong."""
    path = Path(arguments[0])
    rows = json.loads((path.parent / NAME).read_text(encoding="utf-8"))
    found = wrong(path.read_text(encoding="utf-8"), [Example(*row) for row in rows])
    for words in found[:MAX_PRINTED]:
        sys.stdout.write(f"{words}\n")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
