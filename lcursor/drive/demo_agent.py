"""An agent in the demo: it corrects a function whose test fails.

Runs `python -m lcursor agent` on a project of two files. If the model does not solve it in time,
the demo says so and goes on.
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

MODELS = ("qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b")
"""The first one that is installed works."""
FILES = {
    "pyproject.toml": '[project]\nname = "stats"\n',
    "stats.py": '''\
def mean(values):
    """Return the sum of the values divided by their number."""
    return sum(values) / (len(values) + 1)
''',
    "test_stats.py": """\
import unittest

from stats import mean


class MeanTest(unittest.TestCase):
    def test_mean(self):
        self.assertEqual(mean([2, 4, 6]), 4)
""",
}
CHANGED = "stats.py"
TASK = (
    "In stats.py, mean divides by one too many. Change mean so that it divides the sum by "
    "len(values), and run the tests."
)
TEST = "python3 -m unittest -q"
MAX_STEPS = 7
MAX_S = 60.0


def play(home: Path) -> None:
    """Let an agent work, and print its steps and what it changed.

    Args:
        home: of the demo, with the server of its chat.
    """
    model = next(name for name in MODELS if store.path_of(manifest.find(name)).is_file())
    project = home / "stats"
    project.mkdir()
    for name, text in FILES.items():
        (project / name).write_text(text)
    words = ["agent", TASK, "--test", TEST, "--max-steps", str(MAX_STEPS), "--apply"]
    print(f"\nAn agent in a project of two files: `python -m lcursor {shlex.join(words[:4])}`")
    words += ["--path", str(project), "--model", model]
    with subprocess.Popen(
        [sys.executable, "-m", "lcursor", *words],
        cwd=ROOT,
        env={**os.environ, **prepare_home(home, init="", plugin=False)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            printed, _ = process.communicate(timeout=MAX_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)  # ends it with its changes so far
            printed, _ = process.communicate()
    print("\n".join(f"  {line}" for line in printed.splitlines()))
    changed = (project / CHANGED).read_text()
    old, new = FILES[CHANGED].splitlines(), changed.splitlines()
    print(
        "\n".join(
            f"  {line}" for line in difflib.unified_diff(old, new, CHANGED, CHANGED, lineterm="")
        )
    )
    if "the tests pass" not in printed:
        print(f"  {model} did not solve this task; larger models do more (:help lcursor-agent).")
