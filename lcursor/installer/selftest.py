"""Run a self-test in a child process, which may pass, crash, hang or compute wrong values.

The child prints each step before it starts, one JSON object per line, and finally the result.
Standard library only; blocks until the child ends or times out.

    python -m lcursor.installer.selftest

tests the engine of its own environment; the editor runs this after the host crashed.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lcursor.installer.process import ROOT, clean_environment
from lcursor.installer.venv import read_stamp
from lcursor.process.run import run as process_run

LIMIT_S = 240.0
"""Time limit; the portable build needs 40 s for the default model on 2 slow cores."""

HOST_LIMIT_S = 60.0
"""Time limit for the editor, where the user waits for the restart."""

Kind = Literal["passed", "crashed", "hung", "wrong", "no-gpu", "error"]
KINDS: tuple[Kind, ...] = ("passed", "crashed", "wrong", "no-gpu", "error")
"""Results that a child may report; the chat server's child survives the crash of the server."""


@dataclass(frozen=True)
class SelftestOutcome:
    """The result of a self-test."""

    kind: Kind
    detail: str
    """The step that failed, or the measured error."""

    @property
    def sentence(self) -> str:
        """Return a predicate for a message, without a full stop."""
        return {
            "passed": f"passes its self-test ({self.detail})",
            "crashed": f"crashes: {self.detail}",
            "hung": f"hangs: {self.detail}",
            "wrong": f"computes wrong values: {self.detail}",
            "no-gpu": f"cannot use the GPU: {self.detail}",
            "error": f"does not work: {self.detail}",
        }[self.kind]


def run_engine(python: Path, *, on_gpu: bool = False, limit_s: float = LIMIT_S) -> SelftestOutcome:
    """Test the engine of an environment.

    Args:
        python: the environment's interpreter.
        on_gpu: whether the engine was built for a GPU.
        limit_s: seconds after which it counts as hung.
    """
    layers = "-1" if on_gpu else "0"
    return run([python, "-m", "lcursor.fim.selftest", "--gpu-layers", layers], limit_s)


def run_server(python: Path, limit_s: float = LIMIT_S) -> SelftestOutcome:
    """Test the chat server that this environment would start."""
    return run([python, "-m", "lcursor.llm.selftest"], limit_s)


def run(command: Sequence[str | Path], limit_s: float = LIMIT_S) -> SelftestOutcome:
    """Run the child of a self-test, and return its result."""
    done = process_run(
        [str(word) for word in command],
        ROOT,
        env=clean_environment(),
        max_s=limit_s,
        max_error_bytes=1 << 20,
    )
    out = done.data.decode("utf-8", "replace")
    if done.is_cut:
        return SelftestOutcome("hung", f"{_last_step(out)}, for more than {limit_s:.0f} s")
    if done.status is None:
        return SelftestOutcome("error", done.failure)
    if done.status < 0:
        return SelftestOutcome(
            "crashed", f"{signal.Signals(-done.status).name} while {_last_step(out)}"
        )
    verdict = next((line for line in _lines(out) if line.get("result") in KINDS), None)
    if verdict is None:
        words = done.errors.decode("utf-8", "replace").strip().splitlines()
        reason = words[-1] if words else f"exit status {done.status}"
        return SelftestOutcome("error", f"{reason}, while {_last_step(out)}")
    kind = next(kind for kind in KINDS if kind == verdict["result"])
    return SelftestOutcome(kind, verdict.get("message", ""))


def _lines(out: str) -> list[dict[str, str]]:
    found = []
    for line in out.splitlines():
        with contextlib.suppress(ValueError):
            table = json.loads(line)
            if isinstance(table, dict):
                found.append(table)
    return found


def _last_step(out: str) -> str:
    steps = [line["doing"] for line in _lines(out) if "doing" in line]
    return steps[-1] if steps else "loading its libraries"


def main() -> int:
    """Test the engine of this environment, and print the outcome as JSON."""
    python = Path(sys.executable)
    on_gpu = read_stamp(Path(sys.prefix)).is_for_gpu
    outcome = run_engine(python, on_gpu=on_gpu, limit_s=HOST_LIMIT_S)
    sys.stdout.write(json.dumps({"kind": outcome.kind, "text": outcome.sentence}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
