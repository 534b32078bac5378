"""Running pip, uv and the compiler: their output, their failures, their end."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lcursor.errors import InstallFailed
from lcursor.installer.plan import explain
from lcursor.installer.process import ROOT, Tools, clean_environment, diagnose
from tests.waiting import is_running

# What the tools really print; the second column is a part of what a person is told.
OUTPUTS = [
    (
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left",
        "disk is full",
    ),
    ("/tmp/cc.s: fatal error: error writing: No space left on device", "disk is full"),
    ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", "sha256 differs"),
    ("error: Hash mismatch for `msgpack==1.2.4`", "sha256 differs"),
    (
        "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError('<pip."
        "HTTPSConnection>: Failed to establish a new connection: [Errno 101]')'\n"
        "ERROR: No matching distribution found for numpy==2.4.6",
        "cannot be reached",
    ),
    ("ERROR: Could not find a version that satisfies x==1 (from versions: none)", "be reached"),
    ("npm error code EAI_AGAIN", "cannot be reached"),
    ("  cause: invalid peer certificate: UnknownIssuer", "certificate is not trusted"),
    ("SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED]", "certificate"),
    ("c++: fatal error: Killed signal terminated program cc1plus", "ran out of memory"),
    ("nvcc fatal   : Unsupported gpu architecture 'compute_120'", "CUDA compiler"),
    ("ERROR: No matching distribution found for numpy==9.9 (from versions: 2.0, 2.1)", "lacks a"),
    (
        "The virtual environment was not created because ensurepip is not available.",
        "cannot create",
    ),
]


@pytest.mark.parametrize(("output", "told"), OUTPUTS)
def test_a_known_cause_is_named(output: str, told: str) -> None:
    failure = diagnose("this step", f"many\nlines\n{output}\nmore", Path("/log"))
    assert told in failure.message
    assert failure.message.startswith("this step: ")
    assert failure.hint


def test_an_unknown_cause_points_at_the_log() -> None:
    failure = diagnose("compiling", "undefined reference to `foo'", Path("/a/log"))
    assert failure.message == "compiling failed"
    assert "/a/log" in failure.hint


@pytest.mark.parametrize(
    ("number", "told"),
    [(errno.ENOSPC, "disk is full"), (errno.EACCES, "permission"), (errno.EIO, "Input/output")],
)
def test_an_error_of_the_system_is_explained(number: int, told: str) -> None:
    message, hint = explain(OSError(number, os.strerror(number), "/some/file"))
    assert told in message
    assert "/some/file" in message
    assert hint


def test_each_line_is_passed_on_and_stored(tools: Tools) -> None:
    heard: list[str] = []
    tools.run("a", ["sh", "-c", "echo one; echo two >&2"], listen=heard.append)
    tools.run("b", ["sh", "-c", "printf '\\377 three'"], listen=heard.append)
    assert sorted(heard[:2]) == ["one\n", "two\n"]
    text = tools.log.read_text()
    assert "one\n" in text
    assert "three" in text
    assert "$ sh -c" in text


def test_a_failing_tool_is_reported_by_its_own_output_only(tools: Tools) -> None:
    with pytest.raises(InstallFailed, match="first: the disk is full"):
        tools.run("first", ["sh", "-c", "echo No space left on device; exit 1"])
    with pytest.raises(InstallFailed, match=r"^second failed"):
        tools.run("second", ["sh", "-c", "echo oh; exit 3"])
    assert list(tools.tail) == ["oh"]


def test_a_tool_that_is_not_there(tools: Tools) -> None:
    with pytest.raises(InstallFailed, match=r"cannot run /no/such/tool"):
        tools.run("this", ["/no/such/tool"])


def test_nothing_leads_a_tool_astray(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONPATH", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX"):
        monkeypatch.setenv(name, "/elsewhere")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/")
    env = clean_environment()
    assert "/elsewhere" not in env.values()
    assert env["PIP_INDEX_URL"] == "http://127.0.0.1:1/"
    assert env["PIP_USER"] == "0"


HOLDER = textwrap.dedent("""
    import sys, signal
    from pathlib import Path
    sys.path.insert(0, sys.argv[1])
    from lcursor.installer import process
    from lcursor.installer.plan import _interrupt
    from lcursor.installer.process import Tools
    from lcursor.installer.report import Report
    process.END_S = 0.3
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a job in the background ignores it
    tools = Tools(Report("plain"), Path(sys.argv[2]) / "holder.log")
    with tools.lock(Path(sys.argv[2]) / "lock", "it"):
        command = ["sh", "-c", sys.argv[3] + "echo $$; exec sleep 60"]
        tools.run("waiting", command, listen=lambda line: print(line, flush=True))
""")


@pytest.fixture
def holder(tmp_path: Path, here: Path) -> Callable[..., tuple[subprocess.Popen[str], int]]:
    """Start an installer that holds a lock and runs a tool; gives both.

    Its argument is what the tool does first, in shell.
    """

    def start(before: str = "") -> tuple[subprocess.Popen[str], int]:
        command = [str(here), "-c", HOLDER, str(ROOT), str(tmp_path), before]
        installer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert installer.stdout
        return installer, int(installer.stdout.readline())

    return start


def wait_until(predicate: Callable[[], bool], within_s: float = 10.0) -> None:
    """Poll until it holds."""
    deadline = time.monotonic() + within_s
    while not predicate():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


def end(installer: subprocess.Popen[str], signum: signal.Signals) -> None:
    """Send a signal and reap."""
    installer.send_signal(signum)
    installer.communicate(timeout=10)


@pytest.mark.parametrize("before", ["", "trap '' INT; "], ids=["polite", "deaf"])
def test_an_interrupted_installer_takes_its_tool_along(
    holder: Callable[..., tuple[subprocess.Popen[str], int]], before: str
) -> None:
    installer, tool = holder(before)
    end(installer, signal.SIGTERM)
    wait_until(lambda: not is_running(tool))


def test_a_killed_installers_tool_still_holds_the_lock(
    holder: Callable[..., tuple[subprocess.Popen[str], int]],
    tmp_path: Path,
    said: io.StringIO,
) -> None:
    installer, tool = holder()
    installer.kill()
    assert installer.wait(10) == -signal.SIGKILL
    assert is_running(tool)
    second = subprocess.Popen(
        ["flock", "--nonblock", str(tmp_path / "lock"), "true"], stderr=subprocess.DEVNULL
    )
    assert second.wait(10) == 1
    os.kill(tool, signal.SIGTERM)
    wait_until(lambda: not is_running(tool))
    assert subprocess.run(["flock", "--nonblock", str(tmp_path / "lock"), "true"]).returncode == 0
    assert installer.stdout
    installer.stdout.close()


def test_the_second_waits_for_the_first_and_says_so(
    holder: Callable[..., tuple[subprocess.Popen[str], int]],
    tools: Tools,
    tmp_path: Path,
    said: io.StringIO,
) -> None:
    installer, tool = holder()
    began = time.monotonic()
    # The tool's end frees the lock; the shell sends it once we wait.
    freeing = subprocess.Popen(["sh", "-c", f"sleep 0.3; kill {tool}"])
    with tools.lock(tmp_path / "lock", "the engine"):
        assert time.monotonic() - began >= 0.25
    assert "another installer uses the engine: waiting" in said.getvalue()
    freeing.wait(5)
    end(installer, signal.SIGTERM)
