"""The command line of the installer, and its steps in order.

Reads the stamp, installs the missing parts, and reports an error in one sentence. A second run does
nothing and uses no network. Standard library only; main thread.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from lcursor.errors import InstallFailed
from lcursor.installer import engine, gpu, selftest
from lcursor.installer.process import FREE, ROOT, Tools, clean_environment
from lcursor.installer.report import UNKNOWN, Report
from lcursor.installer.venv import Venv, digest, find_neovim, python_of

STYLUA = "2.5.2"
INTERRUPTED = 130
REPLACE = (
    "After an update of the driver, restart the machine; LCURSOR_GPU=cpu installs the engine for "
    "the CPU"
)
NO_NEOVIM = "Install Neovim 0.11 or newer, put it on PATH, and run again"


def cache_dir() -> Path:
    """Return the folder of sources, objects and built wheels."""
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return (Path(home) / "lcursor").expanduser()


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="install.py", description="Create or complete the Python environment of lcursor."
    )
    parser.add_argument("--venv", type=Path, required=True, help="directory of the environment")
    parser.add_argument(
        "--with",
        dest="extras",
        action="append",
        default=[],
        choices=["dev", "lint", "mcp", "neovim"],
        help="dev: for the tests; lint: dev, and stylua, which needs npm;"
        " mcp: for python -m lcursor mcp and mcp.servers; neovim: a Neovim, unless one is on PATH",
    )
    parser.add_argument(
        "--model",
        dest="models",
        action="append",
        default=[],
        metavar="NAME",
        help="also download this model; repeatable",
    )
    parser.add_argument(
        "--embedder",
        metavar="NAME",
        help="also download this embedder, for semantic search",
    )
    parser.add_argument(
        "--verify",
        action="store_true",
        help="verify the environment, and start over if it is broken",
    )
    parser.add_argument("--progress", choices=["json"], help="one JSON object per line on stdout")
    parser.add_argument(
        "--print", dest="show", choices=["neovim"], help="only print which Neovim is used"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    options = parse(arguments)
    venv = Path(os.path.abspath(options.venv))  # not resolve(), which would follow links
    if options.show == "neovim":
        return _print_neovim(venv)
    for signum in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, _interrupt)
    report = Report(options.progress)
    tools: Tools | None = None
    try:
        name = hashlib.sha256(str(venv).encode()).hexdigest()[:8]
        tools = Tools(report, cache_dir() / "log" / f"install-{name}.log")
        with tools.lock(cache_dir() / "locks" / name, str(venv)):
            install(venv, options.extras, tools, verify=options.verify)
        without: list[str] = []
        for model in options.models:
            code, warning = pull(venv, model, tools)
            if code:
                return code
            without += [warning] if warning else []
        if options.embedder and (warning := pull_embedder(venv, options.embedder, tools)):
            without.append(warning)
        report.finish(f"{venv} is ready", "\n".join(without))
    except InstallFailed as error:
        output = [line for line in (tools.tail if tools else ()) if "WARNING" not in line]
        report.fail(error.message, error.hint, output[-8:])
        return 1
    except KeyboardInterrupt:
        report.fail("interrupted", "Run the same command again: it continues", [])
        return INTERRUPTED
    except OSError as error:
        report.fail(*explain(error), details=[])
        return 1
    return 0


def install(venv_dir: Path, extras: Sequence[str], tools: Tools, *, verify: bool = False) -> None:
    """Update an environment to its lock files.

    Args:
        extras: parts in addition to the runtime: `dev`, `lint`, `neovim`.
        verify: do not trust the stamp, but import the packages.
    """
    venv = Venv(venv_dir, tools)
    if verify:
        venv.verify()
    ladder = engine.ladder()
    wanted = ladder[0].key
    needs_engine = venv.lacks("engine", wanted) or not engine.cpu_runs(venv.stamp.cpu)
    if len(ladder) == 1 and venv.stamp.engine.get("step") != ladder[0].name:
        needs_engine = True  # a fallback is installed, but this step is requested
    keeps = needs_engine and _keeps_engine(venv, ladder)
    if keeps:
        step, advice = venv.stamp.engine["step"], ladder[-1].advice or "no GPU is found"
        tools.report.note(f"The {step} engine stays, although {advice}. {REPLACE}")
    needs_engine = needs_engine and not keeps
    if verify and not needs_engine:
        needs_engine = _should_retry(venv, tools)
    if needs_engine and not engine.wheel_of(ladder[0], cache_dir()):
        engine.check_compiler()
        engine.check_space(cache_dir(), ladder[-1].space_bytes)
    venv.ensure()
    venv.install("runtime", "packages", ROOT / "requirements.lock", without=engine.PACKAGE)
    if needs_engine or (venv.lacks("engine", wanted) and not keeps):
        install_engine(venv, ladder, tools)
    elif "cuda" in venv.stamp.parts:
        venv.install("cuda", "CUDA's libraries", gpu.CUDA_LOCK)
    if {"dev", "lint"} & {*extras}:
        venv.install("dev", "test tools", ROOT / "requirements/dev.lock")
    if "lint" in extras:
        _install_stylua(venv, tools)
    if "mcp" in extras:
        venv.install("mcp", "MCP", ROOT / "requirements/mcp.lock")
    if "neovim" in extras:
        _install_neovim(venv, tools)
    if venv_dir.parent == ROOT:
        venv.add_to_path(ROOT)


def _keeps_engine(venv: Venv, ladder: Sequence[engine.BuildTarget]) -> bool:
    """Return whether an engine for a GPU stays though none is found now.

    A driver that was updated needs a restart; the variable `VULKAN_SDK` may be set elsewhere.
    """
    is_current = venv.stamp.parts.get("engine", "").startswith(f"{engine.locked_version()}-")
    is_chosen = gpu.wanted() == "cpu" or bool(os.environ.get("LCURSOR_ENGINE"))
    runs = engine.cpu_runs(venv.stamp.cpu)
    return (
        venv.stamp.is_for_gpu
        and is_current
        and runs
        and not (is_chosen or ladder[0].gpu is not None)
    )


def install_engine(venv: Venv, ladder: Sequence[engine.BuildTarget], tools: Tools) -> None:
    """Install the first engine of the ladder that passes its self-test.

    Args:
        ladder: the fastest first; the stamp has the key of the first one even if a fallback was
            installed, so that a new engine version or CPU starts at the top again.

    Raises:
        InstallFailed: every step fails.
    """
    if ladder[-1].advice:
        tools.report.note(f"The engine does not use the GPU: {ladder[-1].advice}")
    reasons: list[str] = []
    for number, target in enumerate(ladder):
        if number:
            tools.report.note(
                f"{reasons[-1]}. Falling back to the {target.name} engine: {target.step.speed}"
            )
        try:
            wheel = _wheel(target, venv, tools)
        except (InstallFailed, OSError) as error:
            if not target.gpu or number + 1 == len(ladder):
                raise
            if isinstance(error, InstallFailed):
                cause, hint = error.message, error.hint
            else:
                cause, hint = explain(error)
            advice = f" ({hint})" if hint else ""
            reasons.append(f"The {target.name} engine cannot be built: {cause}{advice}")
            _remove_cuda(venv)
            continue
        venv.install_wheel("engine", wheel)
        tools.report.end("installed")
        tools.report.begin("engine", "self-test")
        outcome = selftest.run_engine(venv.python, on_gpu=target.gpu is not None)
        if outcome.kind == "passed":
            venv.stamp.cpu = target.cpu
            venv.stamp.engine = {
                "step": target.name,
                "reason": "; ".join(reasons),
                "selftest": outcome.detail,
                "advice": ladder[-1].advice,
            }
            venv.record_part("engine", ladder[0].key)
            tools.report.end(f"the {target.name} engine {outcome.sentence}")
            if not target.uses_cuda_packages:
                _remove_cuda(venv)
            return
        reasons.append(f"The {target.name} engine {outcome.sentence}")
    raise InstallFailed(
        reasons[-1],
        "Unset LCURSOR_ENGINE and run again"
        if os.environ.get("LCURSOR_ENGINE")
        else f"Please report this; the whole output is in {tools.log}",
    )


def _wheel(target: engine.BuildTarget, venv: Venv, tools: Tools) -> Path:
    """Return the engine's wheel, built if necessary; install the libraries that it needs."""
    cuda = None
    if target.uses_cuda_packages:
        if not engine.wheel_of(target, cache_dir()):
            engine.check_space(cache_dir(), target.space_bytes)
            tools.report.note(
                f"No CUDA toolkit here: its packages are used. {engine.CUDA_PACKAGES};"
                f" compiling takes {engine.expected_time(target)}"
            )
        venv.install("cuda", "CUDA's libraries", gpu.CUDA_LOCK)
        cuda = engine.cuda_folder(venv.path)
    return engine.build(
        target, cache_dir(), tools, lambda path, locks: _build_venv(path, locks, tools), cuda
    )


def _remove_cuda(venv: Venv) -> None:
    """Remove CUDA's libraries from an environment whose engine does not use them."""
    if "cuda" in venv.stamp.parts or (engine.cuda_folder(venv.path) / "lib").exists():
        venv.uninstall("cuda", "CUDA's libraries", gpu.CUDA_LOCK)


def _should_retry(venv: Venv, tools: Tools) -> bool:
    """Return whether to try again: the engine fails its self-test, or is a fallback."""
    step = venv.stamp.engine.get("step", engine.NATIVE.name)
    if venv.stamp.engine.get("reason"):
        return True
    tools.report.begin("engine", "self-test")
    outcome = selftest.run_engine(venv.python, on_gpu=venv.stamp.is_for_gpu)
    tools.report.end(f"the {step} engine {outcome.sentence}")
    if outcome.kind == "no-gpu":
        tools.report.note(f"The {step} engine stays. {REPLACE}")
        return False
    return outcome.kind != "passed"


def pull(venv: Path, model: str, tools: Tools) -> tuple[int, str]:
    """Download a model with `models pull`.

    On a terminal that command draws its own progress; otherwise its lines are reported.

    Returns:
        The exit status, and a warning after a success, which a terminal shows already.
    """
    command = [str(python_of(venv)), "-m", "lcursor", "models", "pull", model]
    report = tools.report
    if report.mode == "terminal":
        done = subprocess.run(command, cwd=ROOT, env=clean_environment(), check=False)
        return done.returncode, ""

    def listen(line: str) -> None:
        percent = re.search(r"\((\d+) %\)", line)
        report.move(int(percent[1]) / 100 if percent else UNKNOWN, line.strip())

    report.begin("model", model)
    try:
        tools.run(f"pulling {model}", command, listen=listen)
    except InstallFailed as error:
        messages = [line for line in tools.tail if line.startswith("lcursor: ")]
        tools.tail.clear()
        if not messages:
            raise
        raise InstallFailed(messages[-1].removeprefix("lcursor: ").rstrip(".")) from error
    report.end(tools.tail[-1] if tools.tail else model)
    warnings = [line for line in tools.tail if line.startswith("lcursor: ")]
    return 0, warnings[-1].removeprefix("lcursor: ") if warnings else ""


def pull_embedder(venv: Path, name: str, tools: Tools) -> str:
    """Download the optional embedder; return a message if that fails."""
    try:
        code, warning = pull(venv, name, tools)
        if not code:
            return warning
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        reason = ""
    except InstallFailed as error:
        reason = f" ({error.message})"
    command = shlex.join([str(python_of(venv)), "-m", "lcursor", "models", "pull", name])
    return (
        f"The embedder {name} was not downloaded{reason}, so there is no semantic search. "
        f"Download it later: {command}"
    )


def explain(error: OSError) -> tuple[str, str]:
    """Return a message and a hint for an operating system error."""
    where = f" ({error.filename})" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full{where}", FREE
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return (
            f"no permission to write{where}",
            "Make it writable, or choose other folders with --venv and XDG_CACHE_HOME",
        )
    return f"{error.strerror or error}{where}", "Fix this and run again"


def _build_venv(path: Path, locks: Sequence[Path], tools: Tools) -> Path:
    venv = Venv(path, tools)
    venv.ensure()
    for lock in locks:
        venv.install(lock.stem, "build tools", lock)
    return venv.python


def _install_neovim(venv: Venv, tools: Tools) -> None:
    lock = ROOT / "requirements/neovim.lock"
    found = find_neovim(venv.path)
    if found and (venv.path not in found.parents or not venv.lacks("neovim", digest(lock))):
        return
    try:
        venv.install("neovim", "Neovim", lock)
    except InstallFailed as error:
        raise InstallFailed(error.message, NO_NEOVIM) from error
    if not find_neovim(venv.path):
        raise InstallFailed("the installed Neovim does not run here", NO_NEOVIM)


def _install_stylua(venv: Venv, tools: Tools) -> None:
    if not venv.lacks("stylua", STYLUA):
        return
    npm = shutil.which("npm")
    if not npm:
        raise InstallFailed(
            "npm is missing, and stylua, which formats the Lua code, is an npm package",
            "Debian or Ubuntu: sudo apt install npm. Then run again",
        )
    tools.report.begin("packages", f"stylua {STYLUA}")
    options = ["--no-package-lock", "--no-save", "--no-audit", "--no-fund", "--fetch-retries=1"]
    package = f"@johnnymorganz/stylua-bin@{STYLUA}"
    prefix = str(venv.path / "node")
    tools.run("installing stylua", [npm, "install", "--prefix", prefix, *options, package])
    link = venv.path / "bin" / "stylua"
    link.unlink(missing_ok=True)
    link.symlink_to(Path("..", "node", "node_modules", ".bin", "stylua"))
    venv.record_part("stylua", STYLUA)
    tools.report.end(f"stylua {STYLUA}")


def _print_neovim(venv: Path) -> int:
    found = find_neovim(venv)
    if found:
        sys.stdout.write(f"{found}\n")
        return 0
    sys.stderr.write(f"lcursor: no Neovim 0.11 or newer on PATH or in {venv}. {NO_NEOVIM}\n")
    return 1


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
