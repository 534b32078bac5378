"""`python -m lcursor index` and `search`, with the real worker of a small project."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lcursor.cli import index as cli
from lcursor.index.client import Client

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "pyproject.toml": "[project]\nname = 'x'\n",
    "src/retry.py": '''"""Sends requests."""


class Backoff:
    """How long to wait."""

    def pause_ms(self, attempt: int) -> int:
        """Return the pause before the next attempt doubles."""
        return 100 * 2**attempt
''',
    "src/parse.lua": "local M = {}\n\nfunction M.parse_header(line)\n  return line\nend\n",
    "secret/.env": "TOKEN=1\n",
    "logo.png": "\x89PNG",
}


class Shell:
    """Runs the command line on a project, with folders of its own."""

    def __init__(self, tmp_path: Path, runtime: str) -> None:
        self.home, self.root = tmp_path / "home", tmp_path / "project"
        self.home.mkdir()
        for name, text in FILES.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("latin-1"))
        self.env = {
            "HOME": str(self.home),
            "XDG_DATA_HOME": str(self.home / "data"),
            "XDG_CACHE_HOME": str(self.home / "cache"),
            "XDG_RUNTIME_DIR": runtime,
        }

    def run(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "lcursor", *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), **self.env},
            cwd=self.root,
            timeout=60,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done

    def json(self, *arguments: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run(*arguments, "--json").stdout)
        return found


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """One project for all of this file; its worker ends with it."""
    with tempfile.TemporaryDirectory(prefix="lcx") as runtime:
        shell = Shell(tmp_path_factory.mktemp("index").resolve(), runtime)
        yield shell
        with pytest.MonkeyPatch.context() as patch:
            for name, value in shell.env.items():
                patch.setenv(name, value)
            with Client(shell.root, start=False) as client:
                client.call("stop")


@pytest.fixture(scope="module")
def state(shell: Shell) -> dict[str, Any]:
    """What the worker says after indexing."""
    assert "is not indexed" in shell.run("search", "anything", code=1).stderr
    return shell.json("index")


def test_indexing_reports_what_there_is(state: dict[str, Any]) -> None:
    assert (state["phase"], state["files"], state["embedded"]) == ("ready", 3, 0)
    assert state["symbols"] >= 3
    assert "models pull minilm" in state["embedder_note"]


def test_indexing_again_is_done_at_once(shell: Shell, state: dict[str, Any]) -> None:
    said = shell.run("index").stdout
    assert (
        f"{state['root']}: 3 files, {state['chunks']} chunks, {state['symbols']} definitions"
        in said
    )
    assert "Note: " in said


def test_search(shell: Shell, state: dict[str, Any]) -> None:
    found = shell.json("search", "pause", "before", "next", "attempt", "--limit", "1")
    (hit,) = found["hits"]
    assert (hit["path"], found["query"]) == ("src/retry.py", "pause before next attempt")
    assert hit["score"] > 0
    lines = shell.run("search", "parse header lang:lua").stdout.splitlines()
    assert lines[0].startswith("src/parse.lua:")
    assert all("retry" not in line for line in lines)


def test_search_from_a_folder_in_the_project(shell: Shell, state: dict[str, Any]) -> None:
    found = shell.json("search", "doubles", "--path", str(shell.root / "src"), "--mode", "lexical")
    assert [hit["path"] for hit in found["hits"]][:1] == ["src/retry.py"]


def test_search_for_names(shell: Shell, state: dict[str, Any]) -> None:
    found = shell.json("search", "@pause")
    assert [hit["name"] for hit in found["hits"]] == ["pause_ms"]
    assert "src/retry.py:7-9  method pause_ms, Backoff" in shell.run("search", "@pause_ms").stdout


def test_nothing_found(shell: Shell, state: dict[str, Any]) -> None:
    done = shell.run("search", "@xyzzy_nowhere")
    assert (done.stdout, "Nothing found" in done.stderr) == ("", True)


def test_a_wrong_mode(shell: Shell) -> None:
    assert "lexical, vector, hybrid" in shell.run("search", "x", "--mode", "best", code=2).stderr


def test_report(shell: Shell) -> None:
    report = shell.json("index", "--report")
    assert (report["files"], report["is_home"]) == (3, False)
    assert set(report["languages"]) == {"toml", "python", "lua"}
    text = shell.run("index", "--report").stdout
    assert "3 files, 0.0 MB" in text
    assert "its name says that it holds secrets" in text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("src/retry.py", ""),
        ("logo.png", "binary"),
        ("secret/.env", "secrets"),
        ("src/missing.py", "No such file"),
        ("../elsewhere.py", "not in the project"),
    ],
)
def test_why(shell: Shell, name: str, words: str) -> None:
    said = shell.json("index", str(shell.root), "--why", str(shell.root / name))
    assert words in said["reason"]
    assert bool(said["reason"]) == bool(words)


def test_a_secret_of_ones_own(shell: Shell) -> None:
    options = ("--secret", "*.toml", "--secret", "nothing/*")
    assert set(shell.json("index", "--report", *options)["languages"]) == {"python", "lua"}
    why = ("--why", str(shell.root / "pyproject.toml"))
    said = shell.json("index", str(shell.root), *why, *options)
    assert said["reason"] == "a pattern of privacy.exclude names it: *.toml"
    assert shell.json("index", str(shell.root), *why)["reason"] == ""  # only asked


def test_a_home_directory_is_rejected_where_nobody_can_be_asked(shell: Shell) -> None:
    done = shell.run("index", str(shell.home), code=1)
    assert "is a home directory" in done.stderr
    assert not list((shell.home / "data/lcursor/index").glob("home-*/begun.json"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é", "plain é"),
        ("a\x1b[31m", "a�[31m"),
        ("\udcff.py", "�.py"),
        ("a\nb", "a�b"),
        ("a\tb", "a\tb"),
        ("«\u202fun\u00a0mot\u202f» 日本\u3000語",) * 2,
    ],
)
def test_what_a_terminal_would_obey_is_not_printed(text: str, shown: str) -> None:
    assert cli._safe(text) == shown
