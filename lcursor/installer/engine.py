"""Compile llama-cpp-python for this machine, only the libraries that the backend loads.

Downloads the source package of the lock file, builds `libllama` and `libggml*` with our cmake hook
(2 minutes on 2 cores instead of 9 for a plain build), and caches the wheel under a key of
everything that its code depends on. Each stage survives an interruption: package, unpacked tree,
ninja's objects.

A step defines the instruction sets of a build: `ladder` lists the steps from the fastest to the
most portable, and `plan.py` installs the first one that passes its self-test.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from lcursor.errors import InstallFailed
from lcursor.installer.process import AGAIN, ROOT, Tools, diagnose
from lcursor.process.run import output_of

PACKAGE = "llama-cpp-python"
HOOK = Path(__file__).with_name("engine.cmake")
BUILD_LOCK = ROOT / "requirements/build.lock"

BUILD_CPU_S = 250
"""CPU seconds of a CPU build, measured with gcc 12 on a virtual EPYC core."""
SPACE_BYTES = 700 * 1024 * 1024
"""Disk space for source package, unpacked tree, build tools and objects, plus a third."""

# Instruction sets that a compiler uses with -march=native. Other flags of the CPU change with the
# kernel and are no reason to compile again.
ISA = re.compile(
    r"sse\w*|ssse3|pni|avx\w*|fma4?|f16c|bmi[12]|abm|popcnt|movbe|adx|aes|pclmulqdq|vaes"
    r"|vpclmulqdq|gfni|sha_ni|amx_\w+|cx16|xop|asimd\w*|sve\w*|i8mm|bf16|sme\w*|atomics"
)


def cpu_flags(cpuinfo: Path = Path("/proc/cpuinfo")) -> list[str]:
    """Return the instruction sets that code compiled here may use; empty if unknown."""
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    line = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    return sorted({flag for flag in line[1].split() if ISA.fullmatch(flag)}) if line else []


def cpu_runs(flags: list[str], here: list[str] | None = None) -> bool:
    """Return whether this CPU has all given instruction sets."""
    return set(flags) <= set(cpu_flags() if here is None else here)


@dataclass(frozen=True)
class InstructionSets:
    """A step of the ladder: the instruction sets of a build."""

    name: str
    cmake_args: tuple[str, ...]
    cpu: tuple[str, ...] | None
    """The required instruction sets; None for this machine's."""
    speed: str
    """Speed for messages; measured in bench/results/2026-11-22-engine-ladder.md."""


NATIVE = InstructionSets("native", (), None, "the fastest")
NO_AMX = InstructionSets(
    "no-amx", ("-DLCURSOR_NO_AMX=ON",), None, "up to 1.3 times the time of native"
)
AVX2 = InstructionSets(
    "avx2",
    ("-DGGML_NATIVE=OFF",),
    ("avx", "avx2", "bmi2", "f16c", "fma", "sse4_2"),
    "up to 1.8 times the time of native",
)
BASELINE = InstructionSets(
    "baseline",
    (
        "-DGGML_NATIVE=OFF",
        *(f"-DGGML_{name}=OFF" for name in ("AVX2", "BMI2", "FMA", "F16C")),
    ),
    ("avx", "sse4_2"),
    "up to 2.7 times the time of native",
)
STEPS = {step.name: step for step in (NATIVE, NO_AMX, AVX2, BASELINE)}


@dataclass(frozen=True)
class BuildTarget:
    """The target of a build.

    Attributes:
        nvcc: the CUDA compiler to use; None builds for the CPU.
        why: the reason for the choice, for the user.
    """

    nvcc: Path | None
    cuda: str
    """Version of nvcc and the GPUs' compute capabilities; empty for the CPU."""
    why: str
    step: InstructionSets = NATIVE

    @property
    def name(self) -> str:
        """Name in messages and in the stamp: a step, or CUDA with a step."""
        return f"cuda, {self.step.name}" if self.nvcc else self.step.name

    @property
    def cpu(self) -> list[str]:
        """The instruction sets that the code may use."""
        here = cpu_flags()
        if self.step.cpu is not None:
            return [flag for flag in self.step.cpu if flag in here]
        return [flag for flag in here if not (self.step is NO_AMX and flag.startswith("amx"))]

    @property
    def cmake_args(self) -> list[str]:
        """The options for CMake; the user's `CMAKE_ARGS` follow and override them."""
        args = [f"-DCMAKE_PROJECT_llama.cpp_INCLUDE={HOOK}", "-DLLAVA_BUILD=OFF"]
        args += self.step.cmake_args
        if self.nvcc:
            args += ["-DGGML_CUDA=on", f"-DCMAKE_CUDA_COMPILER={self.nvcc}"]
            if self.cuda.endswith("-none"):
                args.append("-DCMAKE_CUDA_ARCHITECTURES=all-major")
        return args

    @cached_property
    def key(self) -> str:
        """The name of the cached wheel, from everything that its code depends on."""
        hook = [line for line in HOOK.read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
        recipe = [*hook, *self.cmake_args[1:], os.environ.get("CMAKE_ARGS", ""), *self.cpu]
        digest = hashlib.sha256("\n".join(recipe).encode()).hexdigest()[:12]
        kind = f"cuda{self.cuda}" if self.nvcc else "cpu"
        return f"{locked_version()}-{platform.machine()}-{kind}-{self.step.name}-{digest}"


def ladder() -> list[BuildTarget]:
    """Return the builds to try, the fastest first; `LCURSOR_ENGINE` names a single step.

    Raises:
        InstallFailed: `LCURSOR_ENGINE` is unknown, or this CPU cannot run it.
    """
    first = find_target()
    wish = os.environ.get("LCURSOR_ENGINE", "")
    if wish:
        if wish not in STEPS:
            raise InstallFailed(
                f"LCURSOR_ENGINE={wish} is unknown", f"Set it to one of: {', '.join(STEPS)}"
            )
        if not _can_run(STEPS[wish]):
            raise InstallFailed(
                f"LCURSOR_ENGINE={wish} needs another CPU", "Unset it, and run again"
            )
        return [replace(first, step=STEPS[wish])]
    has_amx = any(flag.startswith("amx") for flag in cpu_flags())
    steps = [NATIVE, *([NO_AMX] if has_amx else []), AVX2, BASELINE]
    on_cpu = replace(first, nvcc=None, cuda="", why="for the CPU")
    return [
        *([first] if first.nvcc else []),
        *(replace(on_cpu if first.nvcc else first, step=step) for step in steps if _can_run(step)),
    ]


def _can_run(step: InstructionSets) -> bool:
    if platform.machine() not in ("x86_64", "AMD64"):
        return step in (NATIVE, BASELINE)
    return not cpu_flags() or cpu_runs(list(step.cpu or ()))


def find_target() -> BuildTarget:
    """Choose CUDA if its compiler and a GPU are present; `LCURSOR_CUDA=0|1` overrides."""
    wish = os.environ.get("LCURSOR_CUDA", "")
    if wish == "0":
        return BuildTarget(None, "", "for the CPU, because of LCURSOR_CUDA=0")
    homes = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), "/usr/local/cuda"]
    folders = [f"{home}/bin" for home in homes if home]
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path=os.pathsep.join(folders))
    if not nvcc:
        if wish == "1":
            raise InstallFailed(
                "LCURSOR_CUDA=1 requires CUDA, but there is no nvcc",
                "Install the CUDA toolkit, or set CUDA_HOME to its folder",
            )
        has_gpu = Path("/proc/driver/nvidia/version").exists()
        more = "; for the NVIDIA GPU install the CUDA toolkit and run again" if has_gpu else ""
        return BuildTarget(None, "", f"for the CPU: no nvcc here{more}")
    gpus = output_of(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]).split()
    if not gpus and wish != "1":
        return BuildTarget(None, "", "for the CPU: nvcc is here, but no NVIDIA GPU")
    version = re.search(r"release ([\d.]+)", output_of([nvcc, "--version"]))
    driver = re.search(r"CUDA Version:\s*(\d+)\.", output_of(["nvidia-smi"]))
    if wish != "1" and version and driver and int(version[1].split(".")[0]) > int(driver[1]):
        return BuildTarget(
            None,
            "",
            f"for the CPU: the driver runs CUDA {driver[1]}, older than the toolkit's {version[1]};"
            " for the GPU update the driver and run again",
        )
    name = f"{version[1] if version else ''}-{'+'.join(sorted(set(gpus))) or 'none'}"
    return BuildTarget(Path(nvcc), name, f"with CUDA: {nvcc}, {len(gpus)} GPU(s)")


def locked() -> tuple[str, str]:
    """Return version and sha256 of the source package from requirements.lock."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    found = re.search(rf"^{PACKAGE}==(\S+)[^#]*?--hash=sha256:([0-9a-f]{{64}})", text, re.MULTILINE)
    if not found:
        raise InstallFailed(
            f"requirements.lock does not name {PACKAGE}",
            "Restore it: git checkout requirements.lock",
        )
    return found[1], found[2]


def locked_version() -> str:
    """Return the version of the engine in requirements.lock."""
    return locked()[0]


def wheel_of(target: BuildTarget, cache: Path) -> Path | None:
    """Return the cached wheel, if any."""
    return next((cache / "wheels" / target.key).glob("*.whl"), None)


def check_compiler() -> None:
    """Raise `InstallFailed` if there is no compiler, before anything is downloaded."""
    for variable, names, what in (("CC", "cc gcc clang", "C"), ("CXX", "c++ g++ clang++", "C++")):
        names = os.environ.get(variable, "").split(" ")[0] or names
        if not any(shutil.which(name) for name in names.split()):
            raise InstallFailed(
                f"no {what} compiler here, and the engine is compiled for this machine",
                "Debian or Ubuntu: sudo apt install build-essential;"
                " Fedora: sudo dnf install gcc-c++. Then run again",
            )


def check_space(directory: Path) -> None:
    """Raise `InstallFailed` if the disk of a directory has too little space for the build."""
    directory.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(directory).free
    if free < SPACE_BYTES:
        raise InstallFailed(
            f"the disk of {directory} has {free >> 20} MB free, and the build needs"
            f" {SPACE_BYTES >> 20} MB",
            f"Set XDG_CACHE_HOME to a larger disk, or free some space. {AGAIN}",
        )


def build(
    target: BuildTarget, cache: Path, tools: Tools, make_venv: Callable[[Path, Path], Path]
) -> Path:
    """Compile the engine, or continue; return the cached wheel.

    Args:
        make_venv: creates an environment from a lock file, for CMake and ninja; returns its Python.
    """
    with tools.lock(cache / "build.lock", "the engine"):
        if wheel := wheel_of(target, cache):
            return wheel
        work = cache / "build" / target.key
        python = make_venv(cache / "build" / "tools", BUILD_LOCK)
        source = _unpacked(_package(cache, python, tools), work, tools)
        wheel = _compile(target, source, work, python, tools)
        stored = cache / "wheels" / target.key / wheel.name
        stored.parent.mkdir(parents=True, exist_ok=True)
        os.replace(wheel, stored)
        shutil.rmtree(cache / "build", ignore_errors=True)
        return stored


def _package(cache: Path, python: Path, tools: Tools) -> Path:
    """Return the source package, downloaded if necessary, with its sha256 checked."""
    version, sha256 = locked()
    stored = cache / "sdist" / f"llama_cpp_python-{version}.tar.gz"
    if stored.exists() and hashlib.sha256(stored.read_bytes()).hexdigest() == sha256:
        return stored
    tools.report.begin("source", f"downloading {PACKAGE} {version} (77 MB)")
    part = cache / "sdist" / "part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    wanted = part / "wanted.txt"
    wanted.write_text(f"{PACKAGE}=={version} --hash=sha256:{sha256}\n")
    options = ["--no-deps", "--no-build-isolation", "--no-binary", ":all:", "--require-hashes"]
    tools.run(
        f"downloading {PACKAGE}",
        [python, "-m", "pip", "download", *options, "-r", wanted, "-d", part],
    )
    os.replace(part / stored.name, stored)
    shutil.rmtree(part)
    tools.report.end(f"{PACKAGE} {version}")
    return stored


def _unpacked(package: Path, work: Path, tools: Tools) -> Path:
    """Return the source tree, at a fixed path so that ninja can continue after an interruption."""
    source = work / "source"
    if not source.exists():
        tools.report.begin("source", "unpacking")
        part = work / "source.part"
        shutil.rmtree(part, ignore_errors=True)
        with tarfile.open(package) as archive:
            if hasattr(tarfile, "data_filter"):
                archive.extractall(part, filter="data")
            else:
                archive.extractall(part)  # noqa: S202 - Python 3.10 before .12; sha256 checked
        os.replace(next(part.iterdir()), source)
        part.rmdir()
        tools.report.end("unpacked")
    return source


def _compile(target: BuildTarget, source: Path, work: Path, python: Path, tools: Tools) -> Path:
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    minutes = max(BUILD_CPU_S / cores / 60, 0.5)
    guess = "5 to 20 minutes" if target.nvcc else f"about {minutes:.1g} minutes on {cores} cores"
    tools.report.begin("engine", f"compiling llama.cpp {target.why}; takes {guess}")

    def listen(line: str) -> None:
        if step := re.match(r"\s*\[(\d+)/(\d+)\] ", line):
            tools.report.move(int(step[1]) / int(step[2]), "compiling llama.cpp")

    wheels = work / "wheel"
    shutil.rmtree(wheels, ignore_errors=True)
    wheels.mkdir(parents=True)
    hook = "import sys, scikit_build_core.build as b; b.build_wheel(sys.argv[1])"
    environment = {
        "SKBUILD_CMAKE_ARGS": ";".join(target.cmake_args),
        "SKBUILD_BUILD_DIR": str(work / "objects"),
        "SKBUILD_WHEEL_EXCLUDE": "lib/**;include/**",  # a second copy, for linking
        "PATH": os.pathsep.join([str(python.parent), os.environ.get("PATH", "")]),
    }
    tools.run(
        "compiling the engine",
        [python, "-c", hook, wheels],
        listen=listen,
        env=environment,
        cwd=source,
    )
    wheel = next(wheels.glob("*.whl"), None)
    if wheel is None:
        raise diagnose("compiling the engine", "it produced no wheel", tools.log)
    tools.report.end("compiled")
    return wheel
