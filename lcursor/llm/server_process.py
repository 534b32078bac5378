"""The process that runs the local server, and ends when it has no users.

Started as a file by `launch.py`, with the lock as an open file. Its child is a `llama-server`, or
this file again with `xllamacpp` (the only importer: creating its server holds the interpreter lock
until the model is loaded, so no Python runs meanwhile, not even a signal handler).

On a CPU the child is paused while a completion runs, because any time slice that it takes blocks
all threads of that model. Its priority stays normal: a process without rights cannot raise a
priority again that it has lowered, and an answer that a user waits for is no background job.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

if not __package__:  # run as a file, isolated from the user's own modules
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lcursor import system
from lcursor.llm import slots
from lcursor.llm.server_state import BEGIN, MAX_SIGNALS, ServerFolder, ServerState
from lcursor.process.supervise import send_signal

STEP_S = 1.0
FIRST_STEP_S = 0.05
"""Interval of checks until the server listens."""
LISTEN_S = 120.0
"""Time limit for the server's socket."""
END_S = 5.0
MAX_PAUSE_S, MIN_RUN_S = 1.0, 0.5
"""How long the child is paused at most, and how long it runs then at least, while keys keep
beginning completions."""
FREE_GPU_BYTES = 384 << 20
"""Same as `llama_server.FREE_GPU_MIB`."""
MAX_LOG_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Settings:
    """The parameters of the process, in a file that only the user can read."""

    folder: str
    state: dict[str, Any]
    """The fields of `ServerState` known before the start."""
    command: list[str]
    """Command line of a `llama-server`; empty for `xllamacpp`."""
    socket: str
    kv_type: str
    batch_tokens: int
    cache_ram_mib: int
    parallel: int
    """Number of slots."""
    threads: int
    """Number of threads; 0 for the program's default."""
    speculations: list[tuple[str, int, int]]
    """For `xllamacpp`: kind, matched tokens, drafted tokens."""
    idle_s: float
    """Time without users until it ends, and without requests until it sleeps; 0 is never."""


def main(arguments: list[str]) -> int:
    """Run the server; `--devices` prints the GPUs that `xllamacpp` finds instead.

    With `--serve` it is the child, whose settings come from standard input.
    """
    if arguments == ["--devices"]:
        print(json.dumps(_devices()))  # noqa: T201 - the result for the parent
        return 0
    if arguments == ["--serve"]:
        return _serve(Settings(**json.loads(sys.stdin.buffer.readline())))
    os.umask(0o077)
    path, lock = Path(arguments[0]), int(arguments[1])
    os.set_inheritable(lock, False)  # the server must not hold the lock after this process
    settings = Settings(**json.loads(path.read_bytes()))
    path.unlink()
    return ServerProcess(settings).run()


class ServerProcess:
    """Runs a server and tracks its users."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._folder = ServerFolder(Path(settings.folder))
        self._is_over, self._signals = threading.Event(), threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._has_listened = False
        self._started_s = time.monotonic()

    def run(self) -> int:
        """Run the server until it should end; return the exit status."""
        try:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, lambda *_: self._is_over.set())
            self._child = child = self._spawn()
            self._write_state(child.pid)
            if self._settings.state["placement"] == "on the CPU":
                threading.Thread(target=self._pause, args=(child.pid,), daemon=True).start()
            return self._watch(child)
        except Exception as error:  # noqa: BLE001 - the root of a process: its log is read
            sys.stderr.write(f"error: {error}\n")
            return 1
        finally:
            self._clean_up()

    def _watch(self, child: subprocess.Popen[bytes]) -> int:
        idle_s, used_s = self._settings.idle_s, time.monotonic()
        step_s = min(STEP_S, idle_s / 4 or STEP_S)
        while not self._is_over.wait(step_s if self._has_listened else FIRST_STEP_S):
            if child.poll() is not None:
                sys.stderr.write(f"the server ended with status {child.returncode}\n")
                return 1
            if self._folder.users():
                used_s = time.monotonic()
            elif idle_s and time.monotonic() - used_s > idle_s:
                sys.stderr.write("the server has no users: it ends\n")
                return 0
            if not self._can_be_found():
                sys.stderr.write("error: the server's files were removed: it ends\n")
                return 1
            self._truncate_log()
            slots.finish_stale(self._folder.slots_path)
        return 0

    def _can_be_found(self) -> bool:
        """Return whether the state is ours and the socket exists, or may still be created."""
        state = self._folder.last()
        if state is None or state.pid != os.getpid():
            return False
        if os.path.exists(self._settings.socket):
            self._has_listened = True
            return True
        return not self._has_listened and time.monotonic() - self._started_s < LISTEN_S

    def _pause(self, pid: int) -> None:
        """Stop the child at each `BEGIN`, and continue it at `END` or in time. On its own thread.

        If this process ends, the kernel ends the child, also a paused one.
        """
        with contextlib.suppress(OSError):
            fd = self._folder.open_signals()
            is_paused, end_s, next_s = False, 0.0, 0.0
            while True:
                wait_s = max(end_s - time.monotonic(), 0.0) if is_paused else None
                ready, _, _ = select.select([fd], [], [], wait_s)
                is_begin = bool(ready) and os.read(fd, MAX_SIGNALS)[-1:] == BEGIN
                now_s = time.monotonic()
                if is_begin and now_s >= next_s:
                    end_s, next_s = now_s + MAX_PAUSE_S, now_s + MAX_PAUSE_S + MIN_RUN_S
                elif ready and not is_begin:
                    end_s = next_s = 0.0
                is_paused = is_begin and now_s < end_s
                with self._signals:
                    if self._is_over.is_set():
                        return
                    number = signal.SIGSTOP if is_paused else signal.SIGCONT
                    send_signal(pid, number, is_group=True)

    def _spawn(self) -> subprocess.Popen[bytes]:
        command = self._settings.command
        child = subprocess.Popen(
            command or [sys.executable, "-I", __file__, "--serve"],
            stdin=subprocess.DEVNULL if command else subprocess.PIPE,
            cwd="/",
            preexec_fn=_prepare_child,  # there is one thread here, so this is safe
        )
        if child.stdin is not None:  # stays open: its end is the end of this process
            child.stdin.write(json.dumps(asdict(self._settings)).encode() + b"\n")
            child.stdin.flush()
        return child

    def _write_state(self, server_pid: int) -> None:
        self._folder.write(
            ServerState(**self._settings.state, pid=os.getpid(), server_pid=server_pid)
        )

    def _truncate_log(self) -> None:
        with contextlib.suppress(OSError):
            if self._folder.log_path.stat().st_size > MAX_LOG_BYTES:
                os.truncate(self._folder.log_path, 0)  # opened for appending, so this is safe

    def _clean_up(self) -> None:
        with self._signals:
            self._is_over.set()  # from now on, the child is not stopped again
        if self._child is not None:
            send_signal(self._child.pid, signal.SIGTERM, is_group=True)
            send_signal(self._child.pid, signal.SIGCONT, is_group=True)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(END_S)
            send_signal(self._child.pid, signal.SIGKILL, is_group=True)
            self._child.wait()
        state = self._folder.last()
        if state is None or state.pid == os.getpid():
            self._folder.clear_state()
        with contextlib.suppress(OSError):
            os.unlink(self._settings.socket)


def _serve(settings: Settings) -> int:
    """Load the model and serve it, until the parent ends."""
    import xllamacpp

    try:
        server = xllamacpp.Server(_params(settings))  # noqa: F841 - it serves while it exists
    except Exception as error:  # noqa: BLE001 - the root of a process: its log is read
        sys.stderr.write(f"error: {error}\n")
        return 1
    sys.stdin.buffer.read()
    return 0


def _params(settings: Settings) -> Any:
    """Return the parameters of `xllamacpp` for some settings."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings.state["path"]
    params.model_alias = {settings.state["model"]}
    params.hostnames = [settings.socket]
    params.port = 0
    params.api_keys = []
    params.cors_credentials = False
    params.ui = False
    params.n_ctx = settings.state["context_tokens"]
    params.n_parallel, params.kv_unified = settings.parallel, True
    params.n_batch = params.n_ubatch = settings.batch_tokens
    params.cache_ram_mib = settings.cache_ram_mib
    params.slot_save_path = f"{settings.folder}{os.sep}slots{os.sep}"
    params.offline = True
    if settings.kv_type == "q8_0":
        params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED
        params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_Q8_0
        params.fit_params_target = [FREE_GPU_BYTES] * len(params.fit_params_target)
    if settings.threads:
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings.threads
    if settings.idle_s >= 1:
        params.sleep_idle_seconds = int(settings.idle_s)
    kinds = []
    for kind, match_tokens, draft_tokens in settings.speculations:
        name = kind.replace("-", "_")
        speculation = getattr(params.speculative, name)
        speculation.size_n, speculation.size_m = match_tokens, draft_tokens
        types = xllamacpp.common_speculative_type
        kinds.append(getattr(types, f"COMMON_SPECULATIVE_TYPE_{name.upper()}"))
    params.speculative.types = kinds or params.speculative.types
    return params


def _devices() -> list[dict[str, Any]]:
    """Return the GPUs that `xllamacpp` uses: integrated ones only if there are no others."""
    import xllamacpp

    found = [each for each in xllamacpp.get_device_info() if "GPU" in each["type"].name]
    return [
        {
            "name": each["description"] or each["name"],
            "total_bytes": each["memory_total"],
            "free_bytes": each["memory_free"],
        }
        for each in [each for each in found if "IGPU" not in each["type"].name] or found
    ]


def _prepare_child() -> None:
    """Put a server into its own process group, because it may be a script that starts another.

    On Linux the kernel ends the server together with this process.
    """
    os.setpgid(0, 0)
    system.end_with_parent(signal.SIGTERM)


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # without waiting for a server's threads, which could hang
