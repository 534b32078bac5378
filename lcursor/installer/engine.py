"""Compile llama-cpp-python for this machine, only the libraries that the backend loads.

Downloads the source package of the lock file, builds `libllama` and `libggml*` with our cmake hook
(2 minutes on 2 cores instead of 9 for a plain build; for a GPU also llama-server), and caches the
wheel under a key of everything that its code depends on. Each stage survives an interruption:
package, unpacked tree, ninja's objects.

A step defines the instruction sets of a build: `ladder` lists the steps from the fastest to the
most portable, and `plan.py` installs the first one that passes its self-test.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from lcursor import system
from lcursor.errors import InstallFailed
from lcursor.installer import gpu
from lcursor.installer.gpu import GpuBuild
from lcursor.installer.process import AGAIN, ROOT, Tools, diagnose

PACKAGE = "llama-cpp-python"
HOOK = Path(__file__).with_name("engine.cmake")
SERVER_HOOK = Path(__file__).with_name("server.cmake")
CUDA_HOOK = Path(__file__).with_name("cuda.cmake")
BUILD_LOCK = ROOT / "requirements/build.lock"

BUILD_CPU_S = 250
"""CPU seconds of a CPU build, measured with gcc 12 on a virtual EPYC core."""
SPACE_BYTES = 700 * 1024 * 1024
"""Disk space for source package, unpacked tree, build tools and objects, plus a third."""
CUDA_PACKAGES = "631 MB are downloaded, 770 MB stay on the disk"
"""What CUDA's packages cost."""
CUDA_SPACE_BYTES = 2 * 1024 * 1024 * 1024
"""Disk space for the packages, pip's copies of them, and the objects."""
BUILD_CUDA_CPU_S, BUILD_CUDA_GPU_CPU_S = 1000, 2000
"""CPU seconds of CUDA's 144 files, and of their kernels for one generation of GPUs: for two
generations all took about 5,000 s of two cores."""
BUILD_SERVER_CPU_S = 210
"""CPU seconds of llama-server: with the libraries for the CPU it took 230 s of two cores."""
JOBS = "CMAKE_BUILD_PARALLEL_LEVEL"
JOB_BYTES = 2 << 30
"""Memory for compiling a file of a GPU's kernels."""
BUILD_VULKAN_CPU_S = 500
"""CPU seconds of Vulkan's kernels."""

# Instruction sets that a compiler uses with -march=native. Other flags of the CPU change with the
# kernel and are no reason to compile again.
ISA = re.compile(
    r"sse\w*|ssse3|pni|avx\w*|fma4?|f16c|bmi[12]|abm|popcnt|movbe|adx|aes|pclmulqdq|vaes"
    r"|vpclmulqdq|gfni|sha_ni|amx_\w+|cx16|xop|asimd\w*|sve\w*|i8mm|bf16|sme\w*|atomics"
)


def cpu_flags() -> list[str]:
    """Return the instruction sets that code compiled here may use; empty if unknown."""
    return sorted({flag for flag in system.cpu_features() if ISA.fullmatch(flag)})


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
        gpu: the build for the GPU; None builds for the CPU.
        why: the reason for the choice, for the user.
        advice: why a GPU of this machine is not used, and what helps; "" if all are, or none is
            here.
    """

    gpu: GpuBuild | None
    why: str
    step: InstructionSets = NATIVE
    advice: str = ""

    @property
    def name(self) -> str:
        """Name in messages and in the stamp: a step, or a GPU's back end with a step."""
        return f"{self.gpu.kind}, {self.step.name}" if self.gpu else self.step.name

    @property
    def uses_cuda_packages(self) -> bool:
        """Whether CUDA's compiler and libraries are installed as packages."""
        return self.gpu is not None and self.gpu.uses_packages

    @property
    def has_server(self) -> bool:
        """Whether llama-server is compiled too: of its packages only those for macOS use a GPU."""
        return self.gpu is not None and self.gpu.kind != "metal"

    @property
    def space_bytes(self) -> int:
        """Disk space for the build."""
        return SPACE_BYTES + (CUDA_SPACE_BYTES if self.uses_cuda_packages else 0)

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
        hooks = [f"-DCMAKE_PROJECT_llama.cpp_INCLUDE={SERVER_HOOK if self.has_server else HOOK}"]
        if self.uses_cuda_packages:
            hooks.append(f"-DCMAKE_PROJECT_ggml_INCLUDE={CUDA_HOOK}")
        without_metal = () if system.IS_LINUX else ("-DGGML_METAL=OFF",)
        for_gpu = self.gpu.cmake_args if self.gpu else without_metal
        return [*hooks, "-DLLAVA_BUILD=OFF", *self.step.cmake_args, *for_gpu]

    @cached_property
    def key(self) -> str:
        """The name of the cached wheel, from everything that its code depends on."""
        text = HOOK.read_text(encoding="utf-8")
        if self.has_server:
            text += SERVER_HOOK.read_text(encoding="utf-8")
        if self.uses_cuda_packages:
            text += CUDA_HOOK.read_text(encoding="utf-8")
        hook = [line for line in text.splitlines() if line[:1] != "#"]
        args = [each for each in self.cmake_args if not each.startswith("-DCMAKE_PROJECT_")]
        recipe = [*hook, *args, os.environ.get("CMAKE_ARGS", ""), *self.cpu]
        digest = hashlib.sha256("\n".join(recipe).encode()).hexdigest()[:12]
        kind = f"{self.gpu.kind}{self.gpu.version}" if self.gpu else "cpu"
        return f"{locked_version()}-{platform.machine()}-{kind}-{self.step.name}-{digest}"


def ladder() -> list[BuildTarget]:
    """Return the builds to try, the fastest first; `LCURSOR_ENGINE` names a single step.

    Raises:
        InstallFailed: `LCURSOR_ENGINE` is unknown, or this CPU cannot run it.
    """
    on_gpu = find_targets()
    first = on_gpu[0]
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
    on_cpu = on_gpu.pop()
    return [*on_gpu, *(replace(on_cpu, step=step) for step in steps if _can_run(step))]


def _can_run(step: InstructionSets) -> bool:
    if platform.machine() not in ("x86_64", "AMD64"):
        return step in (NATIVE, BASELINE)
    return not cpu_flags() or cpu_runs(list(step.cpu or ()))


def find_targets() -> list[BuildTarget]:
    """Return the builds for the GPUs here, the fastest first, and last the one for the CPU.

    Raises:
        InstallFailed: `LCURSOR_GPU` names an impossible build.
    """
    if gpu.wanted() == "cpu":
        return [BuildTarget(None, "for the CPU, because of LCURSOR_GPU or LCURSOR_CUDA")]
    builds, reason = gpu.find()
    on_gpu = [BuildTarget(build, build.why) for build in builds]
    return [*on_gpu, BuildTarget(None, "for the CPU", advice="" if on_gpu else reason)]


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
                " Fedora: sudo dnf install gcc-c++; macOS: xcode-select --install. Then run again",
            )


def check_space(directory: Path, needed_bytes: int) -> None:
    """Raise `InstallFailed` if the disk of a directory has too little space for the build."""
    directory.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(directory).free
    if free < needed_bytes:
        raise InstallFailed(
            f"the disk of {directory} has {free >> 20} MB free, and the build needs"
            f" {needed_bytes >> 20} MB",
            f"Set XDG_CACHE_HOME to a larger disk, or free some space. {AGAIN}",
        )


def build(
    target: BuildTarget,
    cache: Path,
    tools: Tools,
    make_venv: Callable[[Path, Sequence[Path]], Path],
    cuda: Path | None = None,
) -> Path:
    """Compile the engine, or continue; return the cached wheel.

    Args:
        make_venv: creates an environment from lock files, for the tools; returns its Python.
        cuda: folder of CUDA's libraries, if they come as packages.
    """
    with tools.lock(cache / "build.lock", "the engine"):
        if wheel := wheel_of(target, cache):
            return wheel
        try:
            wheel = _build(target, cache, tools, make_venv, cuda)
        except (InstallFailed, OSError):
            if target.gpu:  # the build for the CPU that follows needs the space
                shutil.rmtree(cache / "build", ignore_errors=True)
            raise
        stored = cache / "wheels" / target.key / wheel.name
        stored.parent.mkdir(parents=True, exist_ok=True)
        os.replace(wheel, stored)
        shutil.rmtree(cache / "build", ignore_errors=True)
        return stored


def _build(
    target: BuildTarget,
    cache: Path,
    tools: Tools,
    make_venv: Callable[[Path, Sequence[Path]], Path],
    cuda: Path | None,
) -> Path:
    work, venv = cache / "build" / target.key, cache / "build" / "tools"
    python = make_venv(venv, [BUILD_LOCK, *([gpu.CUDA_BUILD_LOCK] if cuda else [])])
    source = _unpacked(_package(cache, python, tools), work, tools)
    nvcc = _join_cuda(venv, cuda) if cuda else None
    return _compile(target, source, work, python, tools, nvcc)


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


def cuda_folder(venv: Path) -> Path:
    """Return where an environment has CUDA's packages."""
    return next(venv.glob("lib/python*/site-packages/nvidia/cu13"), venv / "nvidia/cu13")


def _join_cuda(venv: Path, cuda: Path) -> Path:
    """Complete CUDA's compiler with headers and libraries of another environment.

    The packages have no libraries without a version in their names, as linkers want them.

    Returns:
        The path of nvcc.
    """
    compiler = cuda_folder(venv)
    for file in [*cuda.glob("include/*"), *cuda.glob("lib/*")]:
        for name in {file.name, re.sub(r"\.so\.\d+$", ".so", file.name)}:
            link = compiler / file.parent.name / name
            if not link.exists():
                link.unlink(missing_ok=True)
                link.symlink_to(file)
    return compiler / "bin" / "nvcc"


def expected_time(target: BuildTarget) -> str:
    """Return how long a build takes, for the user."""
    cores = _jobs() if target.gpu else system.usable_cores()
    seconds = BUILD_CPU_S + (BUILD_SERVER_CPU_S if target.has_server else 0)
    if target.gpu and target.gpu.kind == "cuda":
        generations = target.gpu.version.count("+") + 1
        seconds += BUILD_CUDA_CPU_S + BUILD_CUDA_GPU_CPU_S * generations
    elif target.gpu and target.gpu.kind == "vulkan":
        seconds += BUILD_VULKAN_CPU_S
    minutes = max(seconds / cores / 60, 0.5)
    number = f"{minutes:.1g}" if minutes < 10 else f"{minutes:.0f}"
    return f"about {number} minutes on {cores} cores"


def _jobs() -> int:
    """Return how many files of a GPU's kernels to compile at once."""
    free_bytes = system.memory_of_machine("MemAvailable")
    fitting = free_bytes // JOB_BYTES if free_bytes else 1
    return max(1, min(system.usable_cores(), fitting))


def _compile(
    target: BuildTarget, source: Path, work: Path, python: Path, tools: Tools, nvcc: Path | None
) -> Path:
    takes = expected_time(target)
    tools.report.begin("engine", f"compiling llama.cpp {target.why}; takes {takes}")

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
        "SKBUILD_WHEEL_EXCLUDE": "lib/**;include/**;bin/**",  # a second copy, for linking
        "PATH": os.pathsep.join([str(python.parent), os.environ.get("PATH", "")]),
        **({"CUDACXX": str(nvcc)} if nvcc else {}),
        **({JOBS: str(_jobs())} if target.gpu and JOBS not in os.environ else {}),
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
