"""What the engine is built for, and that a build survives what interrupts it."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from lcursor.errors import InstallFailed
from lcursor.installer import engine
from lcursor.installer.engine import cpu_flags, cpu_runs, find_target
from lcursor.installer.process import Tools

X86 = (
    "processor\t: 0\nflags\t\t: fpu vme sse sse2 avx avx2 fma f16c bmi2 ibpb md_clear\n\nprocessor"
)
ARM = "processor\t: 0\nFeatures\t: fp asimd evtstrm aes asimddp i8mm bf16 sve\n"

Program = Callable[[str, str], Path]


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        (X86, ["avx", "avx2", "bmi2", "f16c", "fma", "sse", "sse2"]),
        (ARM, ["aes", "asimd", "asimddp", "bf16", "i8mm", "sve"]),
        ("nothing of the kind", []),
    ],
)
def test_only_instruction_sets_count(tmp_path: Path, text: str, flags: list[str]) -> None:
    (tmp_path / "cpuinfo").write_text(text)
    assert cpu_flags(tmp_path / "cpuinfo") == flags


def test_an_unknown_cpu_has_no_flags(tmp_path: Path) -> None:
    assert cpu_flags(tmp_path / "none") == []


def test_a_cpu_runs_what_asks_for_no_more_than_it_has() -> None:
    assert cpu_runs(["avx2"], here=["avx", "avx2"])
    assert cpu_runs([], here=[])
    assert not cpu_runs(["avx512f", "avx2"], here=["avx", "avx2"])
    assert cpu_runs(cpu_flags())


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """No wish of the person who runs the tests."""
    for name in ("LCURSOR_CUDA", "CUDA_HOME", "CUDA_PATH", "CMAKE_ARGS", "CC", "CXX"):
        monkeypatch.delenv(name, raising=False)


def test_cuda_needs_its_compiler_and_a_gpu(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("nvidia-smi", "exit 9")
    nvcc = program("nvcc", 'echo "Cuda compilation tools, release 12.4, V12.4.131"')
    target = find_target()
    assert target.nvcc is None
    assert "no NVIDIA GPU" in target.why

    program("nvidia-smi", "echo 8.9; echo 8.9")
    target = find_target()
    assert (target.nvcc, target.cuda) == (nvcc, "12.4-8.9")
    assert "-DGGML_CUDA=on" in target.cmake_args
    assert "cuda12.4-8.9" in target.key

    monkeypatch.setenv("LCURSOR_CUDA", "0")
    assert find_target().nvcc is None


def test_cuda_by_wish_without_a_gpu_builds_for_all(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("nvidia-smi", "exit 9")
    program("nvcc", "echo release 12.4")
    monkeypatch.setenv("LCURSOR_CUDA", "1")
    assert "-DCMAKE_CUDA_ARCHITECTURES=all-major" in find_target().cmake_args


def test_nvcc_is_found_where_the_toolkit_is(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("nvidia-smi", "echo 9.0")
    nvcc = tmp_path / "cuda" / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.write_text("#!/bin/sh\necho release 13.0\n")
    nvcc.chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    assert find_target().nvcc == nvcc


def test_the_wheels_name_changes_with_what_is_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LCURSOR_CUDA", "0")
    plain = find_target().key
    assert plain == find_target().key
    monkeypatch.setenv("CMAKE_ARGS", "-DGGML_NATIVE=off")
    assert find_target().key != plain
    monkeypatch.delenv("CMAKE_ARGS")
    monkeypatch.setattr(engine, "cpu_flags", lambda: ["sse"])
    assert find_target().key != plain


@pytest.mark.parametrize(("missing", "has"), [("C", "c++"), ("C++", "cc")])
def test_a_missing_compiler_is_told_before_anything_else(
    program: Program, monkeypatch: pytest.MonkeyPatch, missing: str, has: str
) -> None:
    folder = program(has, "").parent
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(InstallFailed, match=rf"no {missing.replace('+', '.')} compiler") as failure:
        engine.check_compiler()
    assert "build-essential" in failure.value.hint


def test_too_small_a_disk_is_told_before_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.check_room(tmp_path / "new")
    monkeypatch.setattr(engine, "ROOM_BYTES", 1 << 60)
    with pytest.raises(InstallFailed, match="free, and the build needs"):
        engine.check_room(tmp_path)


WHEEL = "llama_cpp_python-9.9-py3-none-any.whl"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that has the source package already, with a matching digest."""
    package = tmp_path / "cache" / "sdist" / "llama_cpp_python-9.9.tar.gz"
    package.parent.mkdir(parents=True)
    with tarfile.open(package, "w:gz") as archive:
        body = b"[project]"
        info = tarfile.TarInfo("llama_cpp_python-9.9/pyproject.toml")
        info.size = len(body)
        archive.addfile(info, io.BytesIO(body))
    sha256 = hashlib.sha256(package.read_bytes()).hexdigest()
    monkeypatch.setattr(engine, "locked", lambda: ("9.9", sha256))
    monkeypatch.setenv("LCURSOR_CUDA", "0")
    return tmp_path / "cache"


def test_a_build_tells_its_steps_and_keeps_the_wheel(
    cache: Path, tools: Tools, program: Program, said: io.StringIO
) -> None:
    python = program(
        "builder",
        f'test -e pyproject.toml || exit 9; echo "[1/2] cc"; echo "[2/2] c++"; : > "$3/{WHEEL}"',
    )
    target = find_target()
    wheel = engine.build(target, cache, tools, lambda path, lock: python)
    assert wheel == cache / "wheels" / target.key / WHEEL
    assert engine.wheel_of(target, cache) == wheel
    assert not (cache / "build").exists()
    assert "no NVIDIA GPU" in said.getvalue() or "LCURSOR_CUDA=0" in said.getvalue()
    assert "minutes on" in said.getvalue()

    program("builder", "exit 1")
    assert engine.build(target, cache, tools, lambda path, lock: python) == wheel


def test_a_build_that_stopped_goes_on_with_the_same_tree(
    cache: Path, tools: Tools, program: Program
) -> None:
    python = program("builder", 'echo half > half.o; echo "[1/2] cc"; echo "error: sorry"; exit 1')
    target = find_target()
    with pytest.raises(InstallFailed, match="compiling the engine failed") as failure:
        engine.build(target, cache, tools, lambda path, lock: python)
    assert str(tools.log) in failure.value.hint
    assert "error: sorry" in tools.log.read_text()
    assert engine.wheel_of(target, cache) is None

    program("builder", f'test -e half.o || exit 9; : > "$3/{WHEEL}"')
    assert engine.build(target, cache, tools, lambda path, lock: python).exists()


def test_a_half_unpacked_tree_is_unpacked_anew(cache: Path, tools: Tools, program: Program) -> None:
    target = find_target()
    half = cache / "build" / target.key / "source.part" / "llama_cpp_python-9.9"
    half.mkdir(parents=True)
    (half / "rubbish").write_text("")
    python = program("builder", f'test ! -e rubbish || exit 9; : > "$3/{WHEEL}"')
    assert engine.build(target, cache, tools, lambda path, lock: python).exists()


def test_a_damaged_source_package_is_fetched_again(
    cache: Path, tools: Tools, program: Program
) -> None:
    package = next((cache / "sdist").glob("*.gz"))
    whole = package.read_bytes()
    package.write_bytes(whole[:-10])
    (cache / "whole").write_bytes(whole)
    python = program(
        "builder",
        f'case "$*" in *download*) cp {cache}/whole {cache}/sdist/part/{package.name};;'
        f' *) : > "$3/{WHEEL}";; esac',
    )
    engine.build(find_target(), cache, tools, lambda path, lock: python)
    assert package.read_bytes() == whole
    assert "--require-hashes" in tools.log.read_text()
