"""Run a function on the examples of its docstring, in the sandbox: the test command of `eval edit`.

`python -m evals.examples FILE FUNCTION` prints the examples that a file gets wrong, and exits with
1 if there are any. It runs in a folder that `prepare` has written, where nothing else of this
project can be imported.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from evals import sandbox

Pair = Sequence[str]
"""A call and its value."""
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


def prepare(folder: Path, found: Sequence[Pair]) -> None:
    """Write the examples of a file into its folder, and the modules that run them."""
    (folder / NAME).write_text(json.dumps(found), encoding="utf-8")
    (folder / "evals").mkdir()
    for path in (__file__, sandbox.__file__):
        shutil.copy(path, folder / "evals")


def command(entry_point: str) -> str:
    """Return the test command for the settings."""
    return f"{shlex.quote(sys.executable)} -m evals.examples {{path}} {entry_point}"


def wrong(source: str, found: Sequence[Pair]) -> list[str]:
    """Return a sentence for each example that a program gets wrong."""
    program = f"{source}\n\nEXAMPLES = {found!r}\n{_TRY}"
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
    found = wrong(path.read_text(encoding="utf-8"), rows)
    for words in found[:MAX_PRINTED]:
        sys.stdout.write(f"{words}\n")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
