"""Which GPU the engine is compiled for, and what is said about one that cannot be used."""

from __future__ import annotations

import ctypes
import errno
import io
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lcursor.errors import InstallFailed
from lcursor.installer import engine, gpu, plan, selftest
from lcursor.installer.selftest import SelftestOutcome
from lcursor.installer.venv import Venv, read_stamp, write_stamp
from tests.unit.installer.installing import build, install

Program = Callable[[str, str], Path]


def test_a_toolkit_and_a_gpu_are_enough_for_cuda(
    program: Program, nvidia: Callable[..., None]
) -> None:
    program("nvidia-smi", "exit 9")
    nvcc = program("nvcc", 'echo "Cuda compilation tools, release 12.4, V12.4.131"')
    assert gpu.find() == ([], ""), "without a GPU nothing is said"
    nvidia("8.9", "8.9")
    found = build(gpu.cuda())
    assert found.version == "12.4-8.9"
    assert not found.uses_packages
    assert {"-DGGML_CUDA=on", f"-DCMAKE_CUDA_COMPILER={nvcc}"} == set(found.cmake_args)
    first = engine.find_targets()[0]
    assert "cuda12.4-8.9" in first.key
    assert first.name == "cuda, native"


def test_the_compiler_of_a_toolkit_is_found_outside_of_path(
    nvidia: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvidia("9.0")
    nvcc = tmp_path / "cuda" / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.write_text("#!/bin/sh\necho release 13.0\n")
    nvcc.chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    assert f"-DCMAKE_CUDA_COMPILER={nvcc}" in build(gpu.cuda()).cmake_args


def test_a_driver_older_than_the_toolkit_is_named(
    program: Program, nvidia: Callable[..., None]
) -> None:
    nvidia("8.9", cuda="12.4")
    program("nvcc", "echo release 13.0")
    assert "runs CUDA 12.4, older than the toolkit's 13.0" in str(gpu.cuda())
    program("nvcc", "echo release 12.9")
    build(gpu.cuda())


def test_without_a_toolkit_its_packages_are_used_for_the_gpus_here(
    nvidia: Callable[..., None],
) -> None:
    nvidia("12.0", "8.6", "8.6")
    found = build(gpu.cuda())
    assert found.uses_packages
    assert re.fullmatch(r"13\.\d+\.\d+-8\.6\+12\.0", found.version)
    assert "-DLCURSOR_CUDA_ARCHITECTURES=86-real+120-real" in found.cmake_args
    target = engine.find_targets()[0]
    assert all(any(name in each for each in target.cmake_args) for name in ("cuda.", "server."))
    assert target.space_bytes > engine.SPACE_BYTES


@pytest.mark.parametrize(
    ("capability", "cuda", "words"),
    [
        ("8.6", "12.8", "the NVIDIA driver runs CUDA 12.8, and the compiler packages need 13"),
        ("8.6", "N/A", "the NVIDIA driver runs CUDA (unknown)"),
        ("6.1", "13.0", "has compute capability 6.1, and CUDA 13 needs 7.5"),
    ],
)
def test_a_driver_or_a_gpu_that_is_too_old_is_found_before_anything_is_downloaded(
    nvidia: Callable[..., None], capability: str, cuda: str, words: str
) -> None:
    nvidia(capability, cuda=cuda)
    first = engine.find_targets()[0]
    assert first.gpu is None
    assert words in first.advice
    assert "and run again" in first.advice


def test_an_old_gpu_next_to_a_new_one_is_left_out(nvidia: Callable[..., None]) -> None:
    nvidia("6.1", "8.9")
    assert build(gpu.cuda()).version.endswith("-8.9")


def test_cuda_by_wish_needs_a_gpu_or_a_toolkit(
    program: Program, nvidia: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LCURSOR_CUDA", "1")
    program("nvidia-smi", "exit 9")
    with pytest.raises(InstallFailed, match="LCURSOR_GPU=cuda: there is no nvcc"):
        gpu.find()
    program("nvcc", "echo release 12.4")
    assert "-DCMAKE_CUDA_ARCHITECTURES=all-major" in build(gpu.find()[0][0]).cmake_args
    program("nvcc", "echo release 13.0")
    nvidia("8.9", cuda="12.4")
    build(gpu.find()[0][0])


def test_the_cpu_by_wish(
    program: Program, nvidia: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    nvidia("8.9")
    program("nvcc", "echo release 13.0")
    for name, value in (("LCURSOR_CUDA", "0"), ("LCURSOR_GPU", "cpu")):
        monkeypatch.setenv(name, value)
        assert [target.gpu for target in engine.find_targets()] == [None]
    monkeypatch.setenv("LCURSOR_GPU", "fast")
    with pytest.raises(InstallFailed, match="LCURSOR_GPU=fast is unknown"):
        gpu.find()


@pytest.fixture
def mac(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Mac with Apple silicon."""
    monkeypatch.setattr("lcursor.system.IS_LINUX", False)
    monkeypatch.setattr("platform.machine", lambda: "arm64")


def test_apple_silicon_is_used_with_metal_and_no_server_is_compiled(
    mac: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = engine.ladder()[:2]
    assert (first.name, second.name) == ("metal, native", "native")
    assert "-DGGML_METAL=ON" in first.cmake_args
    assert "-DGGML_METAL=OFF" in second.cmake_args
    assert not any("server." in each for each in first.cmake_args)
    assert engine.expected_time(first) == engine.expected_time(second)
    monkeypatch.setenv("LCURSOR_GPU", "cpu")
    assert "-DGGML_METAL=OFF" in engine.ladder()[0].cmake_args
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setenv("LCURSOR_GPU", "")
    assert {target.gpu for target in engine.ladder()} == {None}


def test_metal_is_for_macs_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gpu.metal() == ""
    assert not any("METAL" in each for each in engine.ladder()[0].cmake_args)
    monkeypatch.setenv("LCURSOR_GPU", "metal")
    with pytest.raises(InstallFailed, match="needs a Mac with Apple silicon"):
        gpu.find()


def test_metal_that_computes_wrong_values_leaves_an_engine_for_the_cpu(
    mac: None, venv: Venv, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(python: Path, *, on_gpu: bool = False) -> SelftestOutcome:
        wrong = SelftestOutcome("wrong", "the largest error is 7")
        return wrong if on_gpu else SelftestOutcome("passed", "fine")

    monkeypatch.setattr(selftest, "run_engine", run)
    stamp = install(venv)
    assert stamp.engine["step"] == "native"
    assert stamp.engine["reason"] == (
        "The metal, native engine computes wrong values: the largest error is 7"
    )


def test_the_compiler_is_completed_with_libraries_of_the_environment(tmp_path: Path) -> None:
    compiler, runtime = (
        tmp_path / name / "lib/python3.11/site-packages/nvidia/cu13" for name in ("tools", "venv")
    )
    for file in ("bin/nvcc", "include/cuda.h", "lib/libcudart_static.a"):
        (compiler / file).parent.mkdir(parents=True, exist_ok=True)
        (compiler / file).write_text("of the compiler")
    for file in ("include/cuda.h", "include/cublas_v2.h", "lib/libcublas.so.13"):
        (runtime / file).parent.mkdir(parents=True, exist_ok=True)
        (runtime / file).write_text("of the runtime")
    found = engine._join_cuda(tmp_path / "tools", engine.cuda_folder(tmp_path / "venv"))
    assert found == compiler / "bin/nvcc"
    assert (compiler / "include/cuda.h").read_text() == "of the compiler"
    for file in ("include/cublas_v2.h", "lib/libcublas.so", "lib/libcublas.so.13"):
        assert (compiler / file).read_text() == "of the runtime"
    engine._join_cuda(tmp_path / "tools", engine.cuda_folder(tmp_path / "venv"))


PROJECT = """
cmake_minimum_required(VERSION 3.19)
project(llama_cpp CXX)
add_subdirectory(ggml)
install(TARGETS ggml-cuda LIBRARY DESTINATION site-packages/llama_cpp/lib)
set_target_properties(ggml-cuda PROPERTIES INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH TRUE)
"""
GGML = """
project(ggml CXX)
file(WRITE ${CMAKE_BINARY_DIR}/cudart.cpp "int version() { return 13; }")
file(WRITE ${CMAKE_BINARY_DIR}/cuda.cpp
  "int version(); extern \\"C\\" int answer() { return version(); }")
add_library(cudart SHARED ${CMAKE_BINARY_DIR}/cudart.cpp)
install(TARGETS cudart LIBRARY DESTINATION site-packages/nvidia/cu13/lib)
add_library(ggml-cuda SHARED ${CMAKE_BINARY_DIR}/cuda.cpp)
target_link_libraries(ggml-cuda PRIVATE cudart)
file(WRITE ${CMAKE_BINARY_DIR}/gpus.txt "${CMAKE_CUDA_ARCHITECTURES}")
"""


def test_an_engine_finds_cuda_in_its_environment_wherever_that_is(tmp_path: Path) -> None:
    cmake = shutil.which("cmake")
    if not cmake:
        pytest.skip("no cmake outside of the build's own environment")
    source, build = tmp_path / "source", tmp_path / "build"
    (source / "ggml").mkdir(parents=True)
    (source / "CMakeLists.txt").write_text(PROJECT)
    (source / "ggml/CMakeLists.txt").write_text(GGML)
    hook = f"-DCMAKE_PROJECT_ggml_INCLUDE={engine.CUDA_HOOK}"
    gpus = "-DLCURSOR_CUDA_ARCHITECTURES=86-real+120-real"
    subprocess.run([cmake, "-S", source, "-B", build, hook, gpus], check=True)
    assert (build / "gpus.txt").read_text() == "86-real;120-real"
    subprocess.run([cmake, "--build", build], check=True)
    subprocess.run([cmake, "--install", build, "--prefix", tmp_path / "venv"], check=True)
    shutil.rmtree(build)
    moved = (tmp_path / "venv").rename(tmp_path / "moved")
    library = ctypes.CDLL(str(moved / "site-packages/llama_cpp/lib/libggml-cuda.so"))
    assert library.answer() == 13


def test_the_cost_of_the_packages_is_shown_before_they_are_downloaded(
    venv: Venv, nvidia: Callable[..., None], said: io.StringIO
) -> None:
    nvidia("8.6")
    stamp = install(venv)
    assert stamp.engine["step"] == "cuda, native"
    assert stamp.is_for_gpu
    assert "cuda" in stamp.parts
    text = said.getvalue()
    assert text.index(engine.CUDA_PACKAGES) < text.index("cuda.lock")
    assert re.search(r"compiling takes about \d+ minutes", text)


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        ("ConnectionResetError: Connection reset by peer", "the package index cannot be reached"),
        ("THESE PACKAGES DO NOT MATCH THE HASHES", "is not the one the lock file names"),
    ],
)
def test_packages_that_cannot_be_installed_leave_an_engine_for_the_cpu(
    venv: Venv,
    nvidia: Callable[..., None],
    program: Program,
    said: io.StringIO,
    output: str,
    words: str,
) -> None:
    nvidia("8.6")
    program("python", f'case "$*" in *lcursor-cuda.txt*) echo "{output}"; exit 1;; esac')
    leftover = venv.path / "lib/python3.11/site-packages/nvidia/cu13/lib"
    leftover.mkdir(parents=True)
    stamp = install(venv)
    assert stamp.engine["step"] == "native"
    assert "cuda" not in stamp.parts
    assert re.search(rf"The cuda, native engine cannot be built: .*{words}", said.getvalue())
    assert "Falling back to the native engine" in said.getvalue()
    assert words in stamp.engine["reason"]
    assert re.search(r"pip uninstall --yes .*nvidia-cublas", venv._tools.log.read_text())


def test_a_disk_without_room_for_the_packages_leaves_an_engine_for_the_cpu(
    venv: Venv, nvidia: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    nvidia("8.6")
    monkeypatch.setattr(engine, "CUDA_SPACE_BYTES", 1 << 60)
    stamp = install(venv)
    assert stamp.engine["step"] == "native"
    assert "free, and the build needs" in stamp.engine["reason"]
    assert "lcursor-cuda.txt" not in venv._tools.log.read_text(), "nothing is downloaded"


def test_a_disk_that_fills_up_during_the_build_leaves_an_engine_for_the_cpu(
    venv: Venv, nvidia: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def build_or_fill(target: engine.BuildTarget, *_: object) -> Path:
        if target.gpu:
            raise OSError(errno.ENOSPC, "No space left on device")
        return Path(target.name)

    nvidia("8.6")
    monkeypatch.setattr(engine, "build", build_or_fill)
    stamp = install(venv)
    assert (stamp.engine["step"], stamp.parts.get("cuda")) == ("native", None)
    assert "the disk is full" in stamp.engine["reason"]


def test_a_gpu_without_memory_leaves_an_engine_for_the_cpu(
    venv: Venv, nvidia: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(python: Path, *, on_gpu: bool = False) -> SelftestOutcome:
        full = SelftestOutcome("error", "the tiny model does not fit into the GPU's memory")
        return full if on_gpu else SelftestOutcome("passed", "fine")

    nvidia("8.6")
    monkeypatch.setattr(selftest, "run_engine", run)
    stamp = install(venv)
    assert stamp.engine["step"] == "native"
    assert "does not fit into the GPU's memory" in stamp.engine["reason"]


@pytest.mark.parametrize(
    ("variable", "wish", "is_older", "step"),
    [
        ("LCURSOR_GPU", "", False, "cuda, native"),
        ("LCURSOR_GPU", "cpu", False, "native"),
        ("LCURSOR_ENGINE", "baseline", False, "baseline"),
        ("LCURSOR_GPU", "", True, "native"),
    ],
)
def test_an_engine_stays_while_its_gpu_is_not_found(
    venv: Venv,
    nvidia: Callable[..., None],
    program: Program,
    monkeypatch: pytest.MonkeyPatch,
    said: io.StringIO,
    variable: str,
    wish: str,
    is_older: bool,
    step: str,
) -> None:
    nvidia("8.6")
    install(venv)
    program("nvidia-smi", "exit 9")  # its driver was updated
    monkeypatch.setenv(variable, wish)
    if is_older:
        stamp = read_stamp(venv.path)
        write_stamp(venv.path, replace(stamp, parts={**stamp.parts, "engine": "0.1-x86_64"}))
    monkeypatch.setattr(plan, "Venv", lambda *_: Venv(venv.path, venv._tools))
    for name in ("verify", "ensure", "install", "add_to_path"):
        monkeypatch.setattr(Venv, name, lambda *_, **__: None)
    monkeypatch.setattr(engine, "check_compiler", lambda: None)
    plan.install(venv.path, [], venv._tools)
    assert read_stamp(venv.path).engine["step"] == step
    assert ("LCURSOR_GPU=cpu installs the engine for the CPU" in said.getvalue()) == (
        step == "cuda, native"
    )


def test_an_engine_that_finds_no_gpu_is_not_built_again(
    venv: Venv, nvidia: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    nvidia("8.6")
    install(venv)
    for kind, expected in (("no-gpu", False), ("wrong", True), ("passed", False)):
        outcome = SelftestOutcome(kind, "x")  # type: ignore[arg-type]
        monkeypatch.setattr(selftest, "run_engine", lambda *_, _found=outcome, **__: _found)
        assert plan._should_retry(Venv(venv.path, venv._tools), venv._tools) == expected


def test_a_build_for_a_gpu_uses_as_many_cores_as_fit_into_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lcursor.system.usable_cores", lambda: 16)
    for free_gib, jobs in ((9, 4), (64, 16), (1, 1)):
        monkeypatch.setattr("lcursor.system.memory_of_machine", lambda _, n=free_gib: n << 30)
        assert engine._jobs() == jobs


def test_a_driver_that_is_too_old_leaves_an_engine_for_the_cpu(
    venv: Venv, nvidia: Callable[..., None], said: io.StringIO
) -> None:
    nvidia("8.6", cuda="12.2")
    stamp = install(venv)
    assert (stamp.engine["step"], stamp.engine["reason"]) == ("native", "")
    assert "The engine does not use the GPU: the NVIDIA driver runs CUDA 12.2" in said.getvalue()
    assert "CUDA 12.2" in stamp.engine["advice"]
