"""An agent in the demo: it corrects a function whose test fails.

Runs `python -m lcursor agent`. The smallest model can just do the task; if it does not, the demo
says so.
"""

from __future__ import annotations

import difflib
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from lcursor.catalog import manifest, store
from lcursor.drive.editor import ROOT, prepare_home
from lcursor.process.run import run

MODELS = ("qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b")
"""The first one that is installed works."""
FILE = "stats.py"
TEXT = '''\
def mean(values):
    """Return the sum of the values divided by their number."""
    return sum(values) / len(values)
'''
TASK = "mean must return None if there are no values."
TEST = 'python3 -c "from stats import mean; assert mean([]) is None and mean([2, 4]) == 3"'
MAX_STEPS = 6
MAX_S = 60.0


def play(home: Path) -> None:
    """Let an agent work, and print its steps and what it changed.

    Args:
        home: of the demo, with the server of its chat.
    """
    model = next(name for name in MODELS if store.path_of(manifest.find(name)).is_file())
    project = home / "stats"
    project.mkdir()
    (project / FILE).write_text(TEXT)
    words = ["agent", TASK, "--test", TEST, "--max-steps", str(MAX_STEPS), "--apply"]
    print(f"\nAn agent in a project of one file: `python -m lcursor {shlex.join(words[:4])}`")
    words += ["--path", str(project), "--model", model]
    with subprocess.Popen(
        [sys.executable, "-m", "lcursor", *words],
        cwd=ROOT,
        env={**os.environ, **prepare_home(home, init="", plugin=False)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            _, printed = process.communicate(timeout=MAX_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)  # ends it with its changes so far
            _, printed = process.communicate()
    old, new = TEXT.splitlines(), (project / FILE).read_text().splitlines()
    diff = difflib.unified_diff(old, new, f"a/{FILE}", f"b/{FILE}", lineterm="")
    print("\n".join(f"  {line}" for line in (*printed.splitlines(), *diff)))
    is_solved = not run(shlex.split(TEST), project).failure
    print(
        f"  The test passes now. {model} did that."
        if is_solved
        else f"  The test still fails: {model} did not solve this task; larger models solve more."
    )
