"""What the engine is built for, and that a build survives what interrupts it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from lcursor import system
from lcursor.errors import InstallFailed
from lcursor.installer import engine
from lcursor.installer.engine import cpu_flags, cpu_runs
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
def test_only_instruction_sets_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, flags: list[str]
) -> None:
    monkeypatch.setattr(system, "PROC", tmp_path)
    (tmp_path / "cpuinfo").write_text(text)
    assert cpu_flags() == flags


def test_an_unknown_cpu_has_no_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "PROC", tmp_path)
    assert cpu_flags() == []


def test_a_cpu_runs_what_asks_for_no_more_than_it_has() -> None:
    assert cpu_runs(["avx2"], here=["avx", "avx2"])
    assert cpu_runs([], here=[])
    assert not cpu_runs(["avx512f", "avx2"], here=["avx", "avx2"])
    assert cpu_runs(cpu_flags())


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """No wish of the person who runs the tests."""
    for name in ("LCURSOR_ENGINE", "CMAKE_ARGS", "CC", "CXX"):
        monkeypatch.delenv(name, raising=False)


def for_cpu() -> engine.BuildTarget:
    """Return the fastest build for the CPU."""
    return engine.find_targets()[-1]


def test_the_wheels_name_changes_with_what_is_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LCURSOR_CUDA", "0")
    plain = for_cpu().key
    assert plain == for_cpu().key
    monkeypatch.setenv("CMAKE_ARGS", "-DGGML_NATIVE=off")
    assert for_cpu().key != plain
    monkeypatch.delenv("CMAKE_ARGS")
    monkeypatch.setattr(engine, "cpu_flags", lambda: ["sse"])
    assert for_cpu().key != plain


AVX2 = ["avx", "avx2", "bmi2", "f16c", "fma", "sse4_2"]
AMX = [*AVX2, "amx_int8", "amx_tile", "avx512f"]


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        (AMX, ["native", "no-amx", "avx2", "baseline"]),
        (AVX2, ["native", "avx2", "baseline"]),
        (["avx", "sse4_2"], ["native", "baseline"]),
        (["sse4_2"], ["native"]),
    ],
)
def test_the_ladder_has_the_steps_that_this_cpu_can_run(
    monkeypatch: pytest.MonkeyPatch, flags: list[str], names: list[str]
) -> None:
    monkeypatch.setenv("LCURSOR_CUDA", "0")
    monkeypatch.setattr(engine, "cpu_flags", lambda: flags)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    found = engine.ladder()
    assert [target.name for target in found] == names
    assert len({target.key for target in found}) == len(names)
    assert all(cpu_runs(target.cpu, flags) for target in found)


def test_the_step_without_amx_needs_no_amx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LCURSOR_CUDA", "0")
    monkeypatch.setattr(engine, "cpu_flags", lambda: AMX)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    native, no_amx = engine.ladder()[:2]
    assert "amx_tile" in native.cpu
    assert no_amx.cpu == [*AVX2, "avx512f"]
    assert "-DLCURSOR_NO_AMX=ON" in no_amx.cmake_args


def test_portable_steps_have_the_same_wheel_on_every_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LCURSOR_CUDA", "0")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    keys = []
    for flags in (AMX, AVX2):
        monkeypatch.setattr(engine, "cpu_flags", lambda flags=flags: flags)
        keys.append([target.key for target in engine.ladder()])
    assert keys[0][-2:] == keys[1][-2:]
    assert keys[0][0] != keys[1][0]


def test_a_cuda_engine_has_the_cpu_ladder_below_it(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("nvidia-smi", "echo 9.0")
    program("nvcc", "echo release 13.0")
    monkeypatch.setattr(engine, "cpu_flags", lambda: AVX2)
    names = [(target.name, bool(target.gpu)) for target in engine.ladder()]
    assert names[:2] == [("cuda, native", True), ("native", False)]
    assert names[-1] == ("baseline", False)


def test_a_step_can_be_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LCURSOR_CUDA", "0")
    monkeypatch.setattr(engine, "cpu_flags", lambda: ["avx", "sse4_2"])
    monkeypatch.setenv("LCURSOR_ENGINE", "baseline")
    assert [target.name for target in engine.ladder()] == ["baseline"]
    monkeypatch.setenv("LCURSOR_ENGINE", "avx2")
    with pytest.raises(InstallFailed, match="needs another CPU"):
        engine.ladder()
    monkeypatch.setenv("LCURSOR_ENGINE", "fast")
    with pytest.raises(InstallFailed, match="is unknown") as failure:
        engine.ladder()
    assert "native, no-amx, avx2, baseline" in failure.value.hint


# What amx.cpp and mmq.cpp do: a tile configuration on the stack, of which the compiler believes
# that only its first bytes are read.
TILE = r"""
#include <cstdint>
#include <immintrin.h>
struct tile_config_t {
    uint8_t palette_id; uint8_t start_row; uint8_t reserved[14];
    uint16_t colsb[16]; uint8_t rows[16];
};
void configure() {
    alignas(64) tile_config_t tc = {};
    tc.palette_id = 1;
    for (int i = 0; i < 8; i++) { tc.rows[i] = 16; tc.colsb[i] = 64; }
    _tile_loadconfig(&tc);
}
"""
STORE = re.compile(r"\s(v?mov\w*)\s.*,\s*(-?\d*)\((%\w+)\)")
WIDTHS = {"%zmm": 64, "%ymm": 32, "%xmm": 16}
SUFFIXES = {"b": 1, "w": 2, "l": 4, "q": 8}


def stored_bytes(assembly: str) -> set[int]:
    """Return which bytes of the configuration are written with something else than zeros."""
    load = re.search(r"ldtilecfg\s+(-?\d*)\((%\w+)\)", assembly)
    assert load, assembly
    found: set[int] = set()
    for line in assembly[: load.start()].splitlines():
        store = STORE.search(line)
        if not store or store[3] != load[2]:
            continue
        register = re.search(r"(%[xyz]mm)\d+,", line)
        width = WIDTHS[register[1]] if register else SUFFIXES[store[1][-1]]
        first = int(store[2] or 0) - int(load[1] or 0)
        if width < 64:  # the store of 64 bytes is that of the zeros
            found |= set(range(first, first + width))
    return found


def test_the_compiler_writes_the_whole_tile_configuration(tmp_path: Path) -> None:
    flags = re.search(r'COMPILE_OPTIONS "(.*?)"', engine.HOOK.read_text())
    assert flags
    source, assembly = tmp_path / "tile.cpp", tmp_path / "tile.s"
    source.write_text(TILE)
    compiler = os.environ.get("CXX", "g++")
    command = [compiler, "-O3", "-march=sapphirerapids", *flags[1].split(";")]
    done = subprocess.run(
        [*command, "-S", source, "-o", assembly], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip("the compiler does not know AMX")
    assert {0, *range(16, 32), *range(48, 56)} <= stored_bytes(assembly.read_text())


CMAKE = """
cmake_minimum_required(VERSION 3.19)
project(llama.cpp CXX)
add_subdirectory(ggml/src)
"""


def test_the_hook_compiles_exactly_the_amx_files_without_deleting_stores(tmp_path: Path) -> None:
    cmake = shutil.which("cmake")
    if not cmake:
        pytest.skip("no cmake outside of the build's own environment")
    folder = tmp_path / "ggml/src/ggml-cpu/amx"
    folder.mkdir(parents=True)
    sources = ["ggml-cpu/amx/amx.cpp", "ggml-cpu/amx/mmq.cpp", "ggml-cpu/quants.cpp"]
    for name in sources:
        (tmp_path / "ggml/src" / name).write_text("")
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    (tmp_path / "ggml/src/CMakeLists.txt").write_text(f"add_library(ggml-cpu {' '.join(sources)})")
    options = ["-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DLCURSOR_NO_AMX=ON"]
    hook = f"-DCMAKE_PROJECT_llama.cpp_INCLUDE={engine.HOOK}"
    build = tmp_path / "build"
    subprocess.run([cmake, "-S", tmp_path, "-B", build, hook, *options], check=True)
    commands = json.loads((build / "compile_commands.json").read_text())
    if "GNU" not in (next(build.glob("CMakeFiles/*/CMakeCXXCompiler.cmake"))).read_text():
        pytest.skip("another compiler than GCC does not need it")
    kept = {Path(each["file"]).name for each in commands if "-fno-tree-dse" in each["command"]}
    assert kept == {"amx.cpp", "mmq.cpp"}
    assert all("-mno-amx-tile" in each["command"] for each in commands)


@pytest.mark.parametrize(("missing", "has"), [("C", "c++"), ("C++", "cc")])
def test_a_missing_compiler_is_reported_before_anything_else(
    program: Program, monkeypatch: pytest.MonkeyPatch, missing: str, has: str
) -> None:
    folder = program(has, "").parent
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(InstallFailed, match=rf"no {missing.replace('+', '.')} compiler") as failure:
        engine.check_compiler()
    assert "build-essential" in failure.value.hint


def test_too_small_a_disk_is_reported_before_anything_else(
    tmp_path: Path,
) -> None:
    engine.check_space(tmp_path / "new", 1)
    with pytest.raises(InstallFailed, match="free, and the build needs"):
        engine.check_space(tmp_path, 1 << 60)


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


def test_a_build_reports_its_steps_and_keeps_the_wheel(
    cache: Path, tools: Tools, program: Program, said: io.StringIO
) -> None:
    python = program(
        "builder",
        f'test -e pyproject.toml || exit 9; echo "[1/2] cc"; echo "[2/2] c++"; : > "$3/{WHEEL}"',
    )
    target = for_cpu()
    wheel = engine.build(target, cache, tools, lambda path, locks: python)
    assert wheel == cache / "wheels" / target.key / WHEEL
    assert engine.wheel_of(target, cache) == wheel
    assert not (cache / "build").exists()
    assert "because of LCURSOR_GPU or LCURSOR_CUDA" in said.getvalue()
    assert "minutes on" in said.getvalue()

    program("builder", "exit 1")
    assert engine.build(target, cache, tools, lambda path, locks: python) == wheel


def test_a_build_that_stopped_goes_on_with_the_same_tree(
    cache: Path, tools: Tools, program: Program
) -> None:
    python = program("builder", 'echo half > half.o; echo "[1/2] cc"; echo "error: sorry"; exit 1')
    target = for_cpu()
    with pytest.raises(InstallFailed, match="compiling the engine failed") as failure:
        engine.build(target, cache, tools, lambda path, locks: python)
    assert str(tools.log) in failure.value.hint
    assert "error: sorry" in tools.log.read_text()
    assert engine.wheel_of(target, cache) is None

    program("builder", f'test -e half.o || exit 9; : > "$3/{WHEEL}"')
    assert engine.build(target, cache, tools, lambda path, locks: python).exists()


def test_a_half_unpacked_tree_is_unpacked_again(
    cache: Path, tools: Tools, program: Program
) -> None:
    target = for_cpu()
    half = cache / "build" / target.key / "source.part" / "llama_cpp_python-9.9"
    half.mkdir(parents=True)
    (half / "rubbish").write_text("")
    python = program("builder", f'test ! -e rubbish || exit 9; : > "$3/{WHEEL}"')
    assert engine.build(target, cache, tools, lambda path, locks: python).exists()


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
    engine.build(for_cpu(), cache, tools, lambda path, locks: python)
    assert package.read_bytes() == whole
    assert "--require-hashes" in tools.log.read_text()
