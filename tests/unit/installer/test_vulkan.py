"""When the engine is compiled with Vulkan, and what is said about a GPU that it cannot use."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lcursor.errors import InstallFailed
from lcursor.installer import engine, gpu
from lcursor.installer.venv import Venv
from tests.unit.installer.installing import build, install

Program = Callable[[str, str], Path]


@pytest.fixture
def machine(tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with a Vulkan driver for AMD, `glslc` and new headers, but without a GPU."""
    monkeypatch.setattr(gpu, "find_library", lambda _: "libvulkan.so.1")
    program("nvidia-smi", "exit 9")
    program("glslc", "")
    machine = Machine(tmp_path)
    machine.add_driver("radeon_icd.x86_64.json")
    machine.write_headers("1", "3", "290")
    machine.write(tmp_path / "usr/share/cmake/SPIRV-Headers/SPIRV-HeadersConfig.cmake", "")
    return machine


class Machine:
    """The files that the installer looks at."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def add_gpu(self, vendor: str, address: str = "0000:03:00.0", vram: int = 8 << 30) -> Path:
        """Add a GPU, and return its device node."""
        number = 128 + len([*self.folder.glob("DRM/*")])
        device = self.folder / "pci" / address
        self.write(device / "vendor", f"{vendor}\n")
        self.write(device / "mem_info_vram_total", f"{vram}\n")
        listed = self.folder / "DRM" / f"renderD{number}"
        listed.mkdir(parents=True)
        (listed / "device").symlink_to(device)
        node = self.folder / "NODES" / listed.name
        self.write(node, "")
        return node

    def add_driver(self, name: str) -> None:
        self.write(self.folder / "icd.d" / name, "{}")

    def write_headers(self, *version: str) -> None:
        folder = self.folder / "usr/include/vulkan"
        self.write(
            folder / "vulkan_core.h",
            f"#define VK_HEADER_VERSION {version[2]}\n"
            "#define VK_HEADER_VERSION_COMPLETE VK_MAKE_API_VERSION"
            f"(0, {version[0]}, {version[1]}, VK_HEADER_VERSION)\n",
        )
        self.write(folder / "vulkan.hpp", "")


AMD, INTEL, NVIDIA, VIRTUAL = "0x1002", "0x8086", "0x10de", "0x1af4"


def test_vulkan_serves_a_gpu_with_a_driver(machine: Machine) -> None:
    assert gpu.vulkan() == "", "a driver file alone is no GPU"
    machine.add_gpu(AMD)
    found = build(gpu.vulkan())
    assert (found.kind, found.version) == ("vulkan", "1.3.290")
    first, second = engine.ladder()[:2]
    assert first.name == "vulkan, native"
    assert "-DGGML_VULKAN=on" in first.cmake_args
    assert "vulkan1.3.290" in first.key
    assert (second.name, second.gpu, second.advice) == ("native", None, "")


def test_a_virtual_gpu_and_one_that_a_container_hides_do_not_count(machine: Machine) -> None:
    machine.add_driver("lvp_icd.x86_64.json")
    machine.add_gpu(VIRTUAL, "0000:01:00.0")
    machine.add_gpu(AMD).unlink()
    assert gpu.vulkan() == ""


@pytest.mark.parametrize(
    ("vendor", "address", "vram"),
    [(INTEL, "0000:00:02.0", 0), (AMD, "0000:04:00.0", 512 << 20)],
)
def test_an_integrated_gpu_is_used_only_by_wish(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    vendor: str,
    address: str,
    vram: int,
) -> None:
    machine.add_driver("intel_icd.x86_64.json")
    machine.add_gpu(vendor, address, vram)
    first = engine.ladder()[0]
    assert (first.gpu, first.advice) == (None, "")
    monkeypatch.setenv("LCURSOR_GPU", "vulkan")
    assert engine.ladder()[0].name == "vulkan, native"


def test_a_discrete_gpu_of_intel_is_used(machine: Machine) -> None:
    machine.add_driver("intel_icd.x86_64.json")
    machine.add_gpu(INTEL, "0000:03:00.0")
    build(gpu.vulkan())


def test_a_gpu_without_its_driver_is_named(machine: Machine) -> None:
    machine.add_gpu(INTEL)
    assert "the Intel GPU has no Vulkan driver here" in str(gpu.vulkan())


def test_a_gpu_that_this_user_may_not_open_is_named(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.add_gpu(AMD)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "sudo usermod -aG render" in str(gpu.vulkan())


def test_vulkan_serves_nvidia_where_cuda_cannot(
    machine: Machine, nvidia: Callable[..., None]
) -> None:
    nvidia("8.6", cuda="12.4")
    machine.add_driver("nvidia_icd.json")
    assert [target.name for target in engine.find_targets()] == ["vulkan, native", "native"]
    nvidia("8.6", cuda="13.0")
    names = [target.name for target in engine.find_targets()]
    assert names == ["cuda, native", "vulkan, native", "native"]


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("bin/glslc", "needs glslc: Debian 13 or Ubuntu 24.04: sudo apt install glslc"),
        ("usr/include/vulkan/vulkan_core.h", "needs the Vulkan headers: "),
        (
            "usr/share/cmake/SPIRV-Headers/SPIRV-HeadersConfig.cmake",
            "needs the SPIR-V headers: ",
        ),
    ],
)
def test_what_is_missing_for_vulkan_is_named_and_the_cpu_serves(
    machine: Machine,
    venv: Venv,
    said: io.StringIO,
    monkeypatch: pytest.MonkeyPatch,
    missing: str,
    words: str,
) -> None:
    machine.add_gpu(AMD)
    (machine.folder / missing).unlink()
    monkeypatch.setenv("PATH", f"{machine.folder}/bin")
    start_s = time.monotonic()
    stamp = install(venv)
    assert time.monotonic() - start_s < 2
    assert stamp.engine["step"] == "native"
    assert f"Vulkan for the AMD GPU {words}" in said.getvalue()


def test_old_headers_are_found_before_anything_is_compiled(
    machine: Machine, venv: Venv, said: io.StringIO
) -> None:
    machine.add_gpu(AMD)
    machine.write_headers("1", "3", "239")
    start_s = time.monotonic()
    stamp = install(venv)
    assert time.monotonic() - start_s < 2
    assert stamp.engine["step"] == "native"
    text = "needs headers 1.3.272 or newer, and 1.3.239 are here"
    assert said.getvalue().count(text) == 1
    assert text in stamp.engine["advice"]


def test_vulkan_by_wish_names_what_is_missing(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LCURSOR_GPU", "vulkan")
    assert engine.ladder()[0].name == "vulkan, native", "as for a software device"
    machine.write_headers("1", "3", "239")
    with pytest.raises(InstallFailed, match=r"LCURSOR_GPU=vulkan: .* needs headers 1\.3\.272"):
        engine.ladder()


def test_headers_of_the_vulkan_sdk_come_first(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.add_gpu(AMD)
    machine.write_headers("1", "4", "313")
    (machine.folder / "usr").rename(machine.folder / "sdk")
    machine.write_headers("1", "3", "239")
    monkeypatch.setenv("VULKAN_SDK", str(machine.folder / "sdk"))
    assert build(gpu.vulkan()).version == "1.4.313"
