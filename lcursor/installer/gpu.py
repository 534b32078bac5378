"""Find the GPUs of this machine, and how the engine can be compiled for them.

`LCURSOR_GPU` names the only build to try: `cpu` or one of `KINDS`. A GPU that cannot be used costs
a sentence with what helps, and no time. Standard library only; blocks < 1 s.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
from ctypes.util import find_library
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from lcursor import system
from lcursor.errors import InstallFailed
from lcursor.installer.process import ROOT
from lcursor.process.run import output_of

CUDA_LOCK = ROOT / "requirements/cuda.lock"
"""What an engine for CUDA needs at run time: the runtime and cuBLAS."""
CUDA_BUILD_LOCK = ROOT / "requirements/cuda-build.lock"
"""CUDA's compiler."""
PACKAGES_CUDA = 13
"""The version of CUDA in these packages; those of version 12 have no `nvcc`."""
MIN_CAPABILITY = 7.5
"""The oldest GPU that this version compiles for."""
MIN_HEADERS = (1, 3, 272)
"""The Vulkan headers that llama.cpp needs: older ones lack `vk::LayerSettingEXT`."""
DISCRETE_BYTES = 3 << 30
"""An AMD GPU with less memory of its own is taken for an integrated one."""

TOOLKIT = Path("/usr/local/cuda")
VENDORS = {"0x1002": "AMD", "0x8086": "Intel", "0x10de": "NVIDIA"}
"""PCI's numbers of vendors; others are virtual devices, or have no Vulkan driver for computing."""
DRIVER_FILES = {"AMD": r"radeon|amd", "Intel": r"intel", "NVIDIA": r"nvidia"}
"""Names of the files that describe a vendor's Vulkan driver."""
DRIVER_FOLDERS = tuple(
    Path(each, "vulkan/icd.d") for each in ("/usr/share", "/usr/local/share", "/etc")
)
PREFIXES = (Path("/usr/local"), Path("/usr"))

VULKAN_PACKAGES = (
    "Debian 13 or Ubuntu 24.04: sudo apt install glslc libvulkan-dev spirv-headers;"
    " older ones: the Vulkan SDK, with VULKAN_SDK set;"
    " Fedora: sudo dnf install glslc vulkan-loader-devel spirv-headers-devel;"
    " Arch: sudo pacman -S shaderc vulkan-headers vulkan-icd-loader spirv-headers"
)

Kind = Literal["cuda", "vulkan", "metal"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class GpuBuild:
    """How the engine is compiled for GPUs."""

    kind: Kind
    """The back end of llama.cpp."""
    version: str
    """Version of compiler or headers, and the compute capabilities; part of the wheel's name."""
    why: str
    """For the user; follows "compiling llama.cpp"."""
    cmake_args: tuple[str, ...]
    uses_packages: bool = False
    """Whether CUDA's compiler and libraries are installed as packages."""


def find() -> tuple[list[GpuBuild], str]:
    """Return the builds to try, the fastest first, and why a GPU here is not used.

    Raises:
        InstallFailed: `LCURSOR_GPU` names a build that is impossible here, or none.
    """
    wish = wanted()
    builds: list[GpuBuild] = []
    reasons: list[str] = []
    for kind, look in zip(KINDS, (cuda, vulkan, metal), strict=True):
        if wish in ("", kind):
            found = look(wish == kind)
            if isinstance(found, GpuBuild):
                builds.append(found)
            elif found:
                reasons.append(found)
    if wish and not builds:
        raise InstallFailed(f"LCURSOR_GPU={wish}: {'; '.join(reasons)}")
    return builds, "; ".join(reasons)


def wanted() -> str:
    """Return the value of `LCURSOR_GPU`, for which the older `LCURSOR_CUDA` may stand.

    Raises:
        InstallFailed: it is unknown.
    """
    older = {"0": "cpu", "1": "cuda"}.get(os.environ.get("LCURSOR_CUDA", ""), "")
    wish = os.environ.get("LCURSOR_GPU", "") or older
    if wish not in ("", "cpu", *KINDS):
        hint = f"Set it to {', '.join(('cpu', *KINDS[:-1]))} or {KINDS[-1]}"
        raise InstallFailed(f"LCURSOR_GPU={wish} is unknown", hint)
    return wish


def cuda(is_forced: bool = False) -> GpuBuild | str:
    """Return a build with CUDA, or why there is none; "" without an NVIDIA GPU.

    Args:
        is_forced: compile even for a driver that is too old, or without a GPU.
    """
    gpus = capabilities()
    if not gpus and not is_forced:
        return (
            "the NVIDIA driver is loaded, but nvidia-smi finds no GPU"
            if system.has_nvidia_driver()
            else ""
        )
    driver = _driver_cuda()
    if nvcc := find_nvcc():
        return _with_toolkit(nvcc, gpus, "" if is_forced else driver)
    return _with_packages(gpus, is_forced, driver)


def _with_toolkit(nvcc: Path, gpus: list[str], driver: str) -> GpuBuild | str:
    found = re.search(r"release ([\d.]+)", output_of([nvcc, "--version"]))
    version = found[1] if found else ""
    if version and driver and _major(version) > _major(driver):
        return (
            f"the NVIDIA driver runs CUDA {driver}, older than the toolkit's {version}:"
            " for CUDA update the driver and run again"
        )
    args = ["-DGGML_CUDA=on", f"-DCMAKE_CUDA_COMPILER={nvcc}"]
    if not gpus:
        args.append("-DCMAKE_CUDA_ARCHITECTURES=all-major")
    name = f"{version}-{'+'.join(gpus) or 'none'}"
    return GpuBuild("cuda", name, f"with CUDA: {nvcc}, for {_list(gpus)}", tuple(args))


def _with_packages(gpus: list[str], is_forced: bool, driver: str) -> GpuBuild | str:
    if not system.IS_LINUX or platform.machine() not in ("x86_64", "aarch64"):
        return "no nvcc here: for the NVIDIA GPU install the CUDA toolkit and run again"
    usable = [each for each in gpus if float(each) >= MIN_CAPABILITY]
    if not usable:
        if gpus:
            return (
                f"the NVIDIA GPU has compute capability {gpus[-1]}, and CUDA {PACKAGES_CUDA} needs"
                f" {MIN_CAPABILITY}: for CUDA install an older toolkit and run again"
            )
        return "there is no nvcc, and no NVIDIA GPU to compile for: install the CUDA toolkit"
    if not is_forced and (not driver or _major(driver) < PACKAGES_CUDA):
        return (
            f"the NVIDIA driver runs CUDA {driver or '(unknown)'}, and the compiler packages need"
            f" {PACKAGES_CUDA}: for CUDA update the driver (580 or newer) and run again"
        )
    found = re.search(r"^nvidia-cuda-nvcc==(\S+)", CUDA_BUILD_LOCK.read_text("utf-8"), re.MULTILINE)
    version = found[1] if found else str(PACKAGES_CUDA)
    numbers = "+".join(f"{each.replace('.', '')}-real" for each in usable)
    args = (
        "-DGGML_CUDA=on",
        f"-DLCURSOR_CUDA_ARCHITECTURES={numbers}",
        "-DGGML_CUDA_NCCL=OFF",
        # The packages do not have the driver's library, which only this memory pool links to.
        "-DGGML_CUDA_NO_VMM=ON",
    )
    why = f"with CUDA {version} from packages, for {_list(usable)}"
    return GpuBuild("cuda", f"{version}-{'+'.join(usable)}", why, args, uses_packages=True)


def capabilities() -> list[str]:
    """Return the compute capabilities of the NVIDIA GPUs, each once, such as `8.6`."""
    text = output_of(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"])
    return sorted(set(re.findall(r"^\d+\.\d+$", text, re.MULTILINE)), key=float)


def find_nvcc() -> Path | None:
    """Return the compiler of an installed CUDA toolkit."""
    homes = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), TOOLKIT]
    folders = [f"{home}/bin" for home in homes if home]
    found = shutil.which("nvcc") or shutil.which("nvcc", path=os.pathsep.join(folders))
    return Path(found) if found else None


def _driver_cuda() -> str:
    """Return the newest CUDA that the driver runs, such as `12.4`; "" if unknown."""
    found = re.search(r"CUDA (?:\w+ )?Version:\s*(\d+(?:\.\d+)?)", output_of(["nvidia-smi"]))
    return found[1] if found else ""


def _major(version: str) -> int:
    return int(version.split(".")[0])


def _list(gpus: list[str]) -> str:
    return f"compute capability {', '.join(gpus)}" if gpus else "all GPUs"


def vulkan(is_forced: bool = False) -> GpuBuild | str:
    """Return a build with Vulkan, or why there is none; "" without a GPU.

    Args:
        is_forced: compile even for an integrated GPU, or without one.
    """
    reason, vendors = _vulkan_gpus(is_forced)
    if not vendors and not is_forced:
        return reason
    names = " and ".join(vendors) or "any"
    headers, reason = _vulkan_sources()
    if reason:
        return f"Vulkan for the {names} GPU {reason}"
    return GpuBuild("vulkan", headers, f"with Vulkan, for the {names} GPU", ("-DGGML_VULKAN=on",))


def metal(is_forced: bool = False) -> GpuBuild | str:
    """Return a build with Metal, or why there is none; "" without Apple silicon.

    On Intel processors Metal computes wrong results (ggml-org/llama.cpp #25518).
    """
    if system.IS_LINUX or platform.machine() != "arm64":
        return "Metal needs a Mac with Apple silicon" if is_forced else ""
    return GpuBuild("metal", "", "with Metal", ("-DGGML_METAL=ON",))


def _vulkan_gpus(is_forced: bool) -> tuple[str, list[str]]:
    """Return why a GPU is not used, and the vendors of those that are."""
    vendors = {"NVIDIA"} if capabilities() else set()
    reason = ""
    for device in sorted(system.GPUS.glob("renderD*")):
        vendor = VENDORS.get(_word(device / "device/vendor"), "")
        if not vendor or not (system.GPU_NODES / device.name).exists():
            continue
        if not os.access(system.GPU_NODES / device.name, os.R_OK | os.W_OK):
            reason = (
                f"no permission to use the {vendor} GPU: sudo usermod -aG render $USER,"
                " then log in again"
            )
        elif is_forced or not _is_integrated(device / "device", vendor):
            vendors.add(vendor)
    drivers = [file.name for folder in DRIVER_FOLDERS for file in folder.glob("*.json")]
    usable = sorted(
        vendor
        for vendor in vendors
        if any(re.search(DRIVER_FILES[vendor], name) for name in drivers)
    )
    if vendors and not (usable and find_library("vulkan")):
        reason = (
            f"the {' and '.join(sorted(vendors))} GPU has no Vulkan driver here: install"
            " mesa-vulkan-drivers (AMD, Intel) or NVIDIA's driver, and run again"
        )
        return reason, []
    return reason, usable


def _is_integrated(device: Path, vendor: str) -> bool:
    """Return whether a GPU reads the memory of the CPU, whose speed limits both."""
    if vendor == "Intel":
        return device.resolve().name.startswith("0000:00:")  # its place on the first PCI bus
    size = _word(device / "mem_info_vram_total")
    return vendor == "AMD" and size.isdigit() and int(size) < DISCRETE_BYTES


def _vulkan_sources() -> tuple[str, str]:
    """Return the version of the headers, and what is missing to compile with them."""
    sdk = os.environ.get("VULKAN_SDK", "")
    prefixes = [*([Path(sdk)] if sdk else []), *PREFIXES]
    headers = next(
        (found for each in prefixes if (found := _headers(each / "include/vulkan"))), None
    )
    configs = [
        each / folder / "cmake/SPIRV-Headers/SPIRV-HeadersConfig.cmake"
        for each in prefixes
        for folder in ("share", "lib")
    ]
    missing = [
        name
        for name, is_here in (
            ("glslc", shutil.which("glslc") or (sdk and Path(sdk, "bin/glslc").exists())),
            ("the Vulkan headers", headers),
            ("the SPIR-V headers", any(each.exists() for each in configs)),
        )
        if not is_here
    ]
    if missing or headers is None:
        return "", f"needs {', '.join(missing)}: {VULKAN_PACKAGES}. Then run again"
    version = ".".join(map(str, headers))
    if headers < MIN_HEADERS:
        return "", (
            f"needs headers {'.'.join(map(str, MIN_HEADERS))} or newer, and {version} are here:"
            " install a newer libvulkan-dev, or the Vulkan SDK, set VULKAN_SDK, and run again"
        )
    return version, ""


def _headers(folder: Path) -> tuple[int, ...] | None:
    """Return the version of Vulkan headers; None if there are none."""
    text = _word(folder / "vulkan_core.h")
    if not (folder / "vulkan.hpp").exists():
        return None
    patch = re.search(r"#define VK_HEADER_VERSION (\d+)", text)
    whole = re.search(r"VK_HEADER_VERSION_COMPLETE VK_MAKE_API_VERSION\(0, (\d+), (\d+),", text)
    return (int(whole[1]), int(whole[2]), int(patch[1])) if patch and whole else None


def _word(path: Path) -> str:
    """Return the content of a file; "" if it cannot be read."""
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""
