"""What a program may do in the sandbox, and what not."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from evals import sandbox
from evals.data import DATA, KINDS, cuts


def test_a_program_that_ends_passes() -> None:
    assert sandbox.run("import math, re, typing, hashlib\nprint(math.pi)\n") == "passed"


@pytest.mark.parametrize(
    "program",
    [
        "assert 1 == 2",
        "def f(:",
        "import sys; sys.exit(0)",
        "import os; os._exit(0)",
        "input()",
        "import numpy",
        "'\\udc80'.encode()",
    ],
)
def test_a_program_that_does_not_reach_its_end_fails(program: str) -> None:
    assert sandbox.run(program) == "failed"


def test_the_solutions_of_the_benchmark_pass_and_an_empty_one_fails() -> None:
    for kind in KINDS:
        for cut in cuts(DATA, kind, 3, 3):
            assert sandbox.run(cut.program(cut.rest)) == "passed"
    cut = cuts(DATA, "word", 1, 3)[0]
    assert sandbox.run(cut.program("(")) == "failed"


@pytest.mark.parametrize("program", ["while True: pass", "import time\ntime.sleep(60)"])
def test_a_program_that_does_not_end_is_ended(program: str) -> None:
    times_s = []
    for each, outcome in (("", "passed"), (program, "timeout")):
        began_s = time.monotonic()
        assert sandbox.run(each, timeout_s=0.5 if each else 5.0) == outcome
        times_s.append(time.monotonic() - began_s)
    assert times_s[1] < 2 + 3 * times_s[0]


REFUSED = """
try:
    {}
except PermissionError:
    pass
else:
    raise SystemExit
"""


@pytest.mark.parametrize(
    "deed",
    [
        "open('new', 'w')",
        "import os; os.open('new', os.O_CREAT)",
        "import os; os.remove('/nowhere')",
        "import os; os.fork()",
        "import os; os.kill(os.getpid(), 0)",
        "import os; os.system('true')",
        "import subprocess; subprocess.run(['true'])",
        "import socket; socket.socket()",
        "import shutil; shutil.rmtree('/nowhere')",
        "import ctypes; ctypes.CDLL(None)",
        "import pathlib; pathlib.Path('new').mkdir()",
        "import socket; socket.getaddrinfo('localhost', 80)",
    ],
)
def test_access_to_the_outside_is_rejected(deed: str) -> None:
    assert sandbox.run(REFUSED.format(deed)) == "passed"


def test_memory_has_an_end() -> None:
    caught = (
        f"try:\n    'a' * {sandbox.MEMORY_BYTES}\nexcept MemoryError:\n    pass\nelse:\n    1/0"
    )
    assert sandbox.run(caught) == "passed"


def test_nothing_listens_from_inside_and_nothing_stays(tmp_path: Path) -> None:
    """The real effects, beside the exceptions above: no connection, no file."""
    target = tmp_path / "new"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        server.settimeout(0.2)
        sandbox.run(f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 1)")
        with pytest.raises(TimeoutError):
            server.accept()
    sandbox.run(f"open({str(target)!r}, 'w').write('x')")
    assert not target.exists()


def test_the_output_of_a_program_is_reported() -> None:
    assert sandbox.run_with_output("print('one')\nprint('two')") == ("passed", "one\ntwo\n")
    assert sandbox.run_with_output("print('one')\nassert False") == ("failed", "one\n")
    outcome, said = sandbox.run_with_output("while True: print('x' * 1000)", timeout_s=2.0)
    assert outcome in {"failed", "timeout"}
    assert len(said) <= sandbox.FILE_BYTES
