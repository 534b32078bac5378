"""`install.py` as make and the editor start it, and the files that it reads."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lcursor.installer import engine
from lcursor.installer.venv import STAMP, Stamp, digest, python_version, write_stamp

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "lcursor" / "install.py"


def run(
    *arguments: str, path: str = "/usr/bin:/bin", **env: str
) -> subprocess.CompletedProcess[str]:
    """Start it with an interpreter that sees none of our packages."""
    return subprocess.run(
        [sys.executable, "-I", "-S", str(SCRIPT), *arguments],
        env={"PATH": path, "LCURSOR_CUDA": "0", **env},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def test_an_old_python_is_reported_in_one_sentence() -> None:
    code = (
        "import sys, runpy; sys.version_info = (3, 8, 18, 'final', 0);"
        f"sys.argv = ['install.py']; runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("lcursor: Python 3.10 or newer is required, this is Python 3.8")
    assert "Traceback" not in done.stderr


def test_a_machine_without_a_compiler_is_reported_at_once(tmp_path: Path) -> None:
    done = run(
        "--venv", str(tmp_path / "venv"), "--progress", "json", path="/none", HOME=str(tmp_path)
    )
    last = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 1
    assert last["step"] == "failed"
    assert "no C compiler here" in last["text"]
    assert "build-essential" in last["hint"]
    assert not (tmp_path / "venv").exists()


def test_a_place_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run("--venv", str(tmp_path / "venv"), XDG_CACHE_HOME=str(tmp_path / "file"))
    assert done.returncode == 1
    assert re.search(r"^lcursor: .*file.*\. ", done.stdout, re.MULTILINE)
    assert "Traceback" not in done.stderr


@pytest.fixture
def whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment that its stamp calls whole."""
    for name in ("CMAKE_ARGS",):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LCURSOR_CUDA", "0")
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    parts = {
        "runtime": digest(ROOT / "requirements.lock"),
        "dev": digest(ROOT / "requirements/dev.lock"),
        "engine": engine.find_targets()[-1].key,
    }
    write_stamp(venv, Stamp(python=python_version(venv), cpu=engine.cpu_flags(), parts=parts))
    return venv


def test_a_second_run_has_nothing_to_do(whole: Path, tmp_path: Path) -> None:
    before = (whole / STAMP).read_text()
    done = run("--venv", str(whole), "--with", "dev", HOME=str(tmp_path))
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith(f"lcursor: {whole} is ready")
    assert (whole / STAMP).read_text() == before
    log = next((tmp_path / ".cache/lcursor/log").glob("*.log"))
    assert log.read_text() == ""


def test_each_model_is_pulled_in_turn(whole: Path, tmp_path: Path) -> None:
    python = whole / "bin" / "python"
    python.rename(python.with_name("real"))
    python.write_text(
        '#!/bin/sh\nfor last; do :; done\ncase "$*" in\n'
        f'*"models pull"*) echo "$last" >> "{tmp_path}/pulled"; [ "$last" != three ] ;;\n'
        '*) exec "${0%python}real" "$@" ;;\nesac\n'
    )
    python.chmod(0o755)
    models = [word for name in ("one", "two", "three", "four") for word in ("--model", name)]
    done = run("--venv", str(whole), *models, HOME=str(tmp_path))
    assert done.returncode != 0
    assert (tmp_path / "pulled").read_text().split() == ["one", "two", "three"]


def test_an_embedder_that_does_not_come_is_a_sentence(whole: Path, tmp_path: Path) -> None:
    python = whole / "bin" / "python"
    python.rename(python.with_name("real"))
    python.write_text(
        '#!/bin/sh\ncase "$*" in\n'
        '*"models pull there"*) ;;\n'
        '*"models pull"*) echo "lcursor: No network here. Mend it" >&2; exit 1 ;;\n'
        '*) exec "${0%python}real" "$@" ;;\nesac\n'
    )
    python.chmod(0o755)
    there = run("--venv", str(whole), "--embedder", "there", HOME=str(tmp_path))
    assert there.returncode == 0
    assert "was not downloaded" not in there.stdout
    away = run("--venv", str(whole), "--embedder", "away", HOME=str(tmp_path))
    assert away.returncode == 0, "the rest stands"
    assert "The embedder away was not downloaded (No network here. Mend it)" in away.stdout
    assert f"{python} -m lcursor models pull away" in away.stdout
    assert f"{whole} is ready" in away.stdout.splitlines()[-1]
    editor = run(
        "--venv", str(whole), "--embedder", "away", "--progress", "json", HOME=str(tmp_path)
    )
    last = json.loads(editor.stdout.splitlines()[-1])
    assert (last["step"], editor.returncode) == ("done", 0)
    assert last["hint"].startswith("The embedder away was not downloaded")


def test_it_prints_which_neovim_is_used(tmp_path: Path) -> None:
    nvim = tmp_path / "nvim"
    nvim.write_text("#!/bin/sh\necho NVIM v0.11.4\n")
    nvim.chmod(0o755)
    done = run("--print", "neovim", "--venv", "x", path=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, f"{nvim}\n")
    done = run("--print", "neovim", "--venv", "x", path="/none")
    assert done.returncode == 1
    assert "Install Neovim 0.11 or newer" in done.stderr


LOCKS = sorted([ROOT / "requirements.lock", *ROOT.glob("requirements/*.lock")])


def test_all_locks_are_there() -> None:
    assert {path.name for path in LOCKS} == {
        "build.lock",
        "cuda-build.lock",
        "cuda.lock",
        "dev.lock",
        "mcp.lock",
        "neovim.lock",
        "requirements.lock",
    }


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_a_lock_pins_everything_by_hash_and_names_no_index(lock: Path) -> None:
    text = lock.read_text()
    assert "://" not in text
    blocks = re.split(r"^(?=[^\s#])", text, flags=re.MULTILINE)[1:]
    assert blocks
    for block in blocks:
        assert re.match(r"[a-z0-9.-]+==\S+", block), block
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_each_requirement_is_in_its_lock(lock: Path) -> None:
    wanted = re.findall(r"^\w[\w-]*", lock.with_suffix(".in").read_text(), re.MULTILINE)
    assert wanted
    locked = re.findall(r"^([a-z0-9.-]+)==", lock.read_text(), re.MULTILINE)
    assert {name.lower().replace("_", "-") for name in wanted} <= set(locked)


def test_the_project_file_and_the_lock_agree_about_the_engine() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    assert f'"llama-cpp-python=={engine.locked_version()}"' in project
    assert (
        f"llama-cpp-python=={engine.locked_version()}\n" in (ROOT / "requirements.in").read_text()
    )


@pytest.mark.skipif(not shutil.which("make"), reason="no make")
def test_make_without_a_target_only_lists_the_targets() -> None:
    done = subprocess.run(
        ["make"], cwd=ROOT, capture_output=True, text=True, check=True, env={**os.environ}
    )
    targets = re.findall(r"^  make (\w+)", done.stdout, re.MULTILINE)
    assert targets[:5] == ["help", "demo", "try", "test", "check"]
