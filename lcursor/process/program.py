"""Start a program in the sandbox for a library that starts processes itself.

    words, env = prepare(["mcp-server-time"], Confinement(folder, folder))
    Popen(words, env=env, stdin=PIPE, stdout=PIPE, stderr=PIPE)

The process that these words start runs `main`. It starts the program with its own standard streams,
and forwards its network. It ends with the program, with the process that started it, and at
SIGTERM; all processes of the program end before it does.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

from lcursor import system
from lcursor.errors import LcursorError
from lcursor.process.relay import NO_NETWORK, Network
from lcursor.process.sandbox import Confinement, Limits, open_sandbox

PACKAGES: Final = str(Path(__file__).resolve().parents[2])
WORDS: Final = (
    sys.executable,
    "-I",
    "-c",
    f"import sys; sys.path.insert(0, {PACKAGES!r}); "
    "from lcursor.process.program import main; main()",
)
VARIABLE: Final = "LCURSOR_PROGRAM"
"""Environment variable with the plan: other users can read command lines."""
LOOK_MS: Final = 1000
"""Time between two looks at what the program uses."""
STOPPED: Final = 128 + signal.SIGTERM
LIMITS: Final = Limits(cpu_s=86_400)
"""Of a program that runs for hours."""


def prepare(
    command: Sequence[str],
    confinement: Confinement,
    network: Network = NO_NETWORK,
    cwd: Path | None = None,
) -> tuple[list[str], dict[str, str]]:
    """Return words and environment with which this process starts a program in the sandbox.

    Args:
        command: the program and its arguments, as the sandbox sees them.
        cwd: working directory, as it sees it; the tree by default.
    """
    plan = {
        "command": list(command),
        "confinement": asdict(confinement),
        "network": asdict(network),
        "cwd": str(cwd or ""),
        "parent": os.getpid(),
    }
    return [*WORDS], {**os.environ, VARIABLE: json.dumps(plan, default=str)}


def main() -> NoReturn:
    """Run the plan in the environment, and exit with the status of the program."""
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    try:
        status = _run(json.loads(os.environ.pop(VARIABLE)))
    except (LcursorError, ProcessLookupError) as error:
        print(error, file=sys.stderr, flush=True)  # noqa: T201 - a program of its own
        status = 1
    except _Stopped:
        status = STOPPED
    sys.exit(status)


def _run(plan: Any) -> int:
    parent = plan["parent"]
    confinement = _confinement(plan["confinement"])
    network = Network(**{name: tuple(value) for name, value in plan["network"].items()})
    cwd = Path(plan["cwd"]) if plan["cwd"] else None
    sandbox = open_sandbox()
    starter = system.open_process(parent)
    if os.getppid() != parent:
        return STOPPED  # the starter has ended already
    with sandbox.start(plan["command"], confinement, cwd=cwd, network=network) as running:
        process = running.process
        poll = select.poll()
        for fd in (system.open_process(process.pid), starter):
            if fd is not None:  # without it, the end is noticed at the next look
                poll.register(fd, select.POLLIN)
        while process.poll() is None and os.getppid() == parent:
            poll.poll(LOOK_MS)
            if limit := running.watch.exceeded(process.pid):
                print(limit, file=sys.stderr, flush=True)  # noqa: T201 - a program of its own
                return STOPPED
        status = process.poll()
    if status is None:
        return STOPPED
    return status if status >= 0 else 128 - status


def _confinement(plan: Any) -> Confinement:
    """Return what `asdict` and JSON made of a confinement."""
    values = dict(plan)
    for each in fields(Confinement):
        value = values[each.name]
        if each.name in ("tree", "root"):
            values[each.name] = Path(value)
        elif each.name == "read_only":
            values[each.name] = tuple((Path(source), Path(target)) for source, target in value)
        elif each.name == "limits":
            values[each.name] = Limits(**value)
        elif each.name == "secrets":
            values[each.name] = tuple(value)
        elif isinstance(value, list):
            values[each.name] = tuple(map(Path, value))
    return Confinement(**values)


class _Stopped(BaseException):
    """This process was asked to end."""


def _stop(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise _Stopped
