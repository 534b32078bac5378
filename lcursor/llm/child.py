"""The keeper: a process that runs the one local server, and leaves when nobody uses it any more.

Started as a file by `launch.py` with the lock as an open file. `xllamacpp` it runs in itself (its
only importer: building its server holds the interpreter until the model is loaded, so nothing of
Python, no signal's handler either, runs meanwhile); a `llama-server` is its child.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

if not __package__:  # run as a file, isolated from the user's own modules
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lcursor.llm import lease, slots
from lcursor.llm.lease import Folder, Lease

STEP_S = 1.0
FIRST_STEP_S = 0.05
"""Until the server was seen to listen."""
MOST_DEAF_S = 120.0
"""A server that has made no socket by then makes none any more."""
END_S = 5.0
NICE, NICE_ON_CPU = 10, 19
"""On a GPU the cores only hand out work; without one, every slice that the server takes from the
completion model makes all of that model's threads wait."""
FIT_BYTES = 384 << 20
"""Of a GPU, left free: `engines.FIT_MIB`."""
MOST_LOG_BYTES = 16 << 20
PR_SET_PDEATHSIG = 1
Told = Mapping[str, Any]


def main(arguments: list[str]) -> int:
    """Be the keeper; `--devices` prints the GPUs that `xllamacpp` sees instead."""
    if arguments == ["--devices"]:
        print(json.dumps(_devices()))  # noqa: T201 - the answer to who started us
        return 0
    os.umask(0o077)
    path, fd = Path(arguments[0]), int(arguments[1])
    os.set_inheritable(fd, False)  # the server shall not hold the lock after us
    told = json.loads(path.read_bytes())
    path.unlink()
    _yield_to_completion(told["place"])
    return Keeper(told).run()


class Keeper:
    """Runs a server and watches who uses it."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._folder = Folder(Path(told["folder"]))
        self._is_over = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._server: Any = None
        self._was_there = False
        self._began_s = time.monotonic()

    def run(self) -> int:
        """Run it until it is time to leave; return the exit status."""
        try:
            if self._told["engine"] == "llama-server":
                self._listen_to_signals()
                self._child = self._spawned()
                self._write_lease()
            else:
                self._write_lease()  # before the load: others see where it will answer
                self._server = _serve(self._told)
                self._began_s = time.monotonic()
                self._listen_to_signals()  # until here they end the process, which is well
            return self._watch()
        except Exception as error:  # noqa: BLE001 - the root of a process: its log is read
            sys.stderr.write(f"error: {error}\n")
            return 1
        finally:
            self._clean()

    def _listen_to_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self._is_over.set())

    def _watch(self) -> int:
        idle_s, used_s = float(self._told["idle_s"]), time.monotonic()
        step_s = min(STEP_S, idle_s / 4 or STEP_S)
        while not self._is_over.wait(step_s if self._was_there else FIRST_STEP_S):
            if self._child is not None and self._child.poll() is not None:
                sys.stderr.write(f"the server ended with status {self._child.returncode}\n")
                return 1
            if self._folder.users():
                used_s = time.monotonic()
            elif idle_s and time.monotonic() - used_s > idle_s:
                sys.stderr.write("nobody uses the server any more: it ends\n")
                return 0
            if not self._is_found():
                sys.stderr.write("error: the server's files were removed: it ends\n")
                return 1
            self._cut_log()
            slots.settle_left(self._folder.slots_path)
        return 0

    def _is_found(self) -> bool:
        """Whether others still find us: the lease is ours and the socket there."""
        said = self._folder.read()
        if said is None or said.pid != os.getpid():
            return False
        socket = self._told["socket"]
        if not socket or os.path.exists(socket):
            self._was_there = True
            return True
        if self._was_there or time.monotonic() - self._began_s > MOST_DEAF_S:
            return False
        # It has not made it yet; or it has, and it was removed before we looked.
        return not _is_bound(socket) or os.path.exists(socket)

    def _spawned(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._told["argv"],
            stdin=subprocess.DEVNULL,
            cwd="/",
            preexec_fn=_begin,  # there is one thread here, so that is safe
        )

    def _write_lease(self) -> None:
        told, server = self._told, self._child.pid if self._child else 0
        self._folder.write(
            Lease(
                pid=os.getpid(),
                ticks=lease.ticks(os.getpid()),
                boot=lease.boot(),
                url=told["url"],
                engine=told["program"] if self._child else told["engine"],
                model=told["name"],
                path=told["path"],
                context_tokens=told["context_tokens"],
                need_bytes=told["need_bytes"],
                place=told["place"],
                key=told["key"],
                server_pid=server,
                server_ticks=lease.ticks(server) if server else 0,
            )
        )

    def _cut_log(self) -> None:
        with contextlib.suppress(OSError):
            if self._folder.log_path.stat().st_size > MOST_LOG_BYTES:
                os.truncate(self._folder.log_path, 0)  # it is appended to, so that is safe

    def _clean(self) -> None:
        if self._child is not None:
            try:
                _end_group(self._child.pid, signal.SIGTERM)
                self._child.wait(END_S)
            except subprocess.TimeoutExpired:
                pass
            _end_group(self._child.pid, signal.SIGKILL)
            self._child.wait()
        said = self._folder.read()
        if said is None or said.pid == os.getpid():
            self._folder.clear()
        for path in (self._told["socket"], self._told["key_path"]):
            if path:
                with contextlib.suppress(OSError):
                    os.unlink(path)


def _serve(told: Told) -> Any:
    """Load the model and serve it; returns when it can answer."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = told["path"]
    params.model_alias = {told["name"]}
    params.hostnames = [told["socket"] or "127.0.0.1"]
    params.port = told["port"]
    params.api_keys = [told["key"]] if told["key"] else []
    params.cors_credentials = False
    params.ui = False
    params.n_ctx = told["context_tokens"]
    params.n_parallel = 1
    params.n_batch = params.n_ubatch = told["batch_tokens"]
    params.cache_ram_mib = told["cache_ram_mib"]
    params.slot_save_path = str(Path(told["folder"]) / "slots") + os.sep
    params.offline = True
    if told["kv_type"] == "q8_0":
        params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED
        params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_Q8_0
        params.fit_params_target = [FIT_BYTES] * len(params.fit_params_target)
    if told["threads"]:
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = told["threads"]
    if told["idle_s"] >= 1:
        params.sleep_idle_seconds = int(told["idle_s"])
    kinds = []
    for kind, match_tokens, guess_tokens in told["guesses"]:
        name = kind.replace("-", "_")
        way = getattr(params.speculative, name)
        way.size_n, way.size_m = match_tokens, guess_tokens
        types = xllamacpp.common_speculative_type
        kinds.append(getattr(types, f"COMMON_SPECULATIVE_TYPE_{name.upper()}"))
    params.speculative.types = kinds or params.speculative.types
    return xllamacpp.Server(params)


def _is_bound(socket: str) -> bool:
    """Whether somebody listens by that name, be the file there or not; only Linux knows.

    Source: proc(5), `net/unix`: the name is the last field, as it was given to bind(2).
    """
    try:
        rows = Path("/proc/net/unix").read_bytes().splitlines()
    except OSError:
        return False
    return any(row.endswith(b" " + os.fsencode(socket)) for row in rows)


def _devices() -> list[dict[str, Any]]:
    """Return the GPUs that `xllamacpp` was built for and finds."""
    import xllamacpp

    return [
        {
            "name": each["description"] or each["name"],
            "total_bytes": each["memory_total"],
            "free_bytes": each["memory_free"],
        }
        for each in xllamacpp.get_device_info()
        if "GPU" in each["type"].name
    ]


def _yield_to_completion(place: str) -> None:
    """Take the rest of the cores: what is completed while an answer is written goes first."""
    nice = NICE_ON_CPU if place == "on the CPU" else NICE
    with contextlib.suppress(OSError):
        os.nice(nice)
    with contextlib.suppress(OSError):  # where each session is a group that is weighed as one
        Path("/proc/self/autogroup").write_text(str(nice))


def _begin() -> None:
    """Begin a server: in a group of its own, since it may be a script that starts another.

    Where the kernel can, it ends the server with us, however we end.
    """
    os.setpgid(0, 0)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _end_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # a server's threads are not waited for, and its end could hang
