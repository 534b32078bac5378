"""Which tests a CI run may skip: no single machine can run every test."""

from __future__ import annotations

import pytest

EXPECTED = {
    # The account. Each of the two kinds runs where the other does not.
    "takes root to be another user": "needs root",
    "root may write everywhere": "needs an account other than root",
    # Rights and features that many containers withhold even from root.
    "mounting is not allowed here": "needs CAP_SYS_ADMIN",
    "a small file system cannot be mounted here": "needs CAP_SYS_ADMIN",
    "the kernel does not weigh sessions": "needs a kernel with autogroups",
    "no sandbox works here": "needs user namespaces, or Linux 6.12",
    "no sandbox of this level works here": "needs bubblewrap, user namespaces, or Landlock",
    "the engine was built for the CPU": "needs a GPU, or Vulkan headers 1.3.272 and Mesa",
    # The system.
    "needs Linux": "runs on Linux",
    # Programs that nothing in this project installs.
    "no llama-server is on PATH": "needs llama-server",
    "uv is not here": "needs uv",
    "lua is not here": "needs lua",
    "node is not here": "needs Node.js",
}
"""The reason that the test gives, and what a machine needs to run the test."""


def refuse(report: pytest.TestReport) -> None:
    """Turn a skip whose reason is not listed into a failure."""
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    assert isinstance(report.longrepr, tuple)
    path, line, text = report.longrepr
    reason = text.removeprefix("Skipped: ")
    if reason not in EXPECTED:
        report.outcome = "failed"
        report.longrepr = (
            f"{path}:{line}: skipped in CI: {reason!r}. If that is right, add it to tests/skips.py"
        )
