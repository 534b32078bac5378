"""A run in CI fails when a test is skipped for a reason that nobody expects."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.skips import EXPECTED

ROOT = Path(__file__).resolve().parents[2]
CONFTEST = "from tests.conftest import pytest_runtest_makereport\n"
CASES = f"""
import pytest

def test_skipped(): pytest.skip("no such program")
@pytest.mark.skipif(True, reason="no such program")
def test_marked(): pass
def test_expected(): pytest.skip({next(iter(EXPECTED))!r})
def test_known(): pytest.xfail("known")
def test_passes(): pass
def test_fails(): assert False
"""
OUTCOMES = {
    "skipped": "SKIPPED", "marked": "SKIPPED", "expected": "SKIPPED", "known": "XFAIL",
    "passes": "PASSED", "fails": "FAILED",
}  # fmt: skip
SAID = "skipped in CI: 'no such program'"


def run(folder: Path, **env: str) -> tuple[dict[str, str], str]:
    """Run the cases in a pytest of its own; return their outcomes, and what it prints."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(CASES)
    options = ["-v", "-n", "0", "-p", "no:cacheprovider", "-p", "no:randomly", "-c", os.devnull]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--rootdir", str(folder), str(folder)],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **env},
        capture_output=True,
        text=True,
        check=False,
    )
    return dict(re.findall(r"^\S*test_it\.py::test_(\w+) ([A-Z]+)", done.stdout, re.M)), done.stdout


def test_an_unexpected_skip_is_one_elsewhere(tmp_path: Path) -> None:
    outcomes, said = run(tmp_path)
    assert outcomes == OUTCOMES, said
    assert SAID not in said


def test_an_unexpected_skip_fails_in_ci(tmp_path: Path) -> None:
    outcomes, said = run(tmp_path, CI="true")
    assert outcomes == {**OUTCOMES, "skipped": "FAILED", "marked": "ERROR"}, said
    assert said.count(SAID) >= 2


def test_every_expected_reason_is_one_that_a_test_gives() -> None:
    sources = [
        path.read_text() for path in (ROOT / "tests").rglob("*.py") if path.name != "skips.py"
    ]
    for reason in EXPECTED:
        assert any(f'"{reason}"' in source for source in sources), reason
