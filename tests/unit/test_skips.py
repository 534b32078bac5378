"""A run in CI fails when a test is skipped for a reason that nobody expects."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.skips import EXPECTED

ROOT = Path(__file__).resolve().parents[2]
CONFTEST = "from tests.conftest import pytest_runtest_makereport\n"
CASE = "import pytest\n\n{mark}\ndef test_it():\n    {body}\n"


def outcome(folder: Path, mark: str, body: str, **env: str) -> str:
    """Run one test in a pytest of its own, and return what that prints."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(CASE.format(mark=mark, body=body))
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "-p", "no:randomly", "-c", os.devnull]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--rootdir", str(folder), str(folder)],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **env},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


@pytest.mark.parametrize(
    ("mark", "body"),
    [
        ("", "pytest.skip('no such program')"),
        ("@pytest.mark.skipif(True, reason='no such program')", "pass"),
    ],
)
def test_an_unexpected_skip_fails_in_ci_only(tmp_path: Path, mark: str, body: str) -> None:
    assert "1 skipped" in outcome(tmp_path, mark, body)
    said = outcome(tmp_path, mark, body, CI="true")
    assert "1 failed" in said or "1 error" in said
    assert "skipped in CI: 'no such program'" in said


@pytest.mark.parametrize(
    ("body", "result"),
    [
        (f"pytest.skip({next(iter(EXPECTED))!r})", "1 skipped"),
        ("pytest.xfail('known')", "1 xfailed"),
        ("pass", "1 passed"),
        ("assert False", "1 failed"),
    ],
)
def test_other_outcomes_stay(tmp_path: Path, body: str, result: str) -> None:
    assert result in outcome(tmp_path, "", body, CI="true")


def test_every_expected_reason_is_one_that_a_test_gives() -> None:
    sources = [
        path.read_text() for path in (ROOT / "tests").rglob("*.py") if path.name != "skips.py"
    ]
    for reason in EXPECTED:
        assert any(f'"{reason}"' in source for source in sources), reason
