"""Where the data of a project's index is, and its socket."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from lcursor.errors import LcursorError
from lcursor.index import launch
from lcursor.project.root import begun_path, data_folder, is_begun, root_of
from lcursor.storage import folders


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.delenv("LCURSOR_DATA", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home))
    return home


@pytest.mark.parametrize(
    ("there", "asked", "root"),
    [
        (["a/.git/", "a/b/c.py"], "a/b/c.py", "a"),
        (["a/.git/", "a/b/pyproject.toml", "a/b/c.py"], "a/b/c.py", "a"),
        (["a/.git", "a/b/c.py"], "a/b/c.py", "a"),  # a work tree has a file
        (["a/.git/", "a/b/.git", "a/b/c.py"], "a/b/c.py", "a/b"),
        (["a/Cargo.toml", "a/src/x.rs"], "a/src/x.rs", "a"),
        (["a/Cargo.toml", "a/b/Cargo.toml", "a/b/x.rs"], "a/b/x.rs", "a/b"),
        (["a/b/x.rs"], "a/b/x.rs", "a/b"),
        (["a/b/"], "a/b", "a/b"),
        (["a/.git/"], "a/new/file.py", "a"),
        ([".git/", "a/b/x.rs"], "a/b/x.rs", "a/b"),  # the home's own files are no project of others
        ([".git/", "package.json", "x.rs"], "x.rs", "."),
    ],
)
def test_the_root_of_a_file(home: Path, there: list[str], asked: str, root: str) -> None:
    for name in there:
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir() if name.endswith("/") else path.touch()
    assert root_of(home / asked) == (home / root).resolve()


def test_an_index_serves_the_folders_in_it_unless_they_are_projects(home: Path) -> None:
    for name in ("thesis/chapters/one", "thesis/tool/.git"):
        (home / name).mkdir(parents=True)
    for root in (home.resolve(), home.resolve() / "thesis"):
        launch.make_folder(root)
        begun_path(root).write_text("{}")
    assert root_of(home / "thesis/chapters/one/a.tex") == (home / "thesis").resolve()
    assert root_of(home / "thesis/tool/a.py") == (home / "thesis/tool").resolve()
    assert root_of(home / "data/a.tex") == (home / "data").resolve()


def test_links_lead_to_the_one_project(home: Path) -> None:
    (home / "a/.git").mkdir(parents=True)
    (home / "b").symlink_to(home / "a")
    assert root_of(home / "b") == root_of(home / "a") == (home / "a").resolve()


def test_each_project_has_a_folder_of_its_own(home: Path) -> None:
    one, other = data_folder(Path("/src/app")), data_folder(Path("/tmp/app"))
    assert one != other
    assert one.name.startswith("app-")
    assert one.is_relative_to(home / "data/lcursor/index")
    for odd in ("/", "/a b\n/ü\udcff", "/" + "x" * 200):
        name = data_folder(Path(odd)).name
        assert name.isascii()
        assert "\n" not in name
        assert len(name) < 60


def test_the_data_may_be_elsewhere(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LCURSOR_DATA", str(home / "elsewhere"))
    assert data_folder(Path("/src/app")).is_relative_to(home / "elsewhere/index")


def test_a_socket_is_for_the_user_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    runtime = Path("/tmp") / f"lcursor-test-{os.getpid()}"
    runtime.mkdir(mode=0o755)
    try:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
        path = launch.socket_path(Path("/src/app"))
        assert path.parent == runtime / "lcursor"
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        os.chmod(path.parent, 0o777)
        assert launch.socket_path(Path("/src/app")) == path
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        path.parent.rmdir()
        path.parent.symlink_to(tmp_path)  # as another user might have made it
        other = launch.socket_path(Path("/src/app"))
        assert not other.is_relative_to(runtime)
        assert stat.S_IMODE(other.parent.stat().st_mode) == 0o700
    finally:
        (runtime / "lcursor").unlink(missing_ok=True)
        runtime.rmdir()


def test_a_socket_has_a_short_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: Path
) -> None:
    for runtime in (str(tmp_path / ("x" * 90)), "", str(home / "missing")):
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        if "x" * 90 in runtime:
            Path(runtime).mkdir()
        path = launch.socket_path(Path("/" + "deep/" * 100))
        assert len(os.fsencode(path)) <= folders.MAX_SOCKET_BYTES
        assert path.parent.name == f"lcursor-{os.getuid()}"


def test_a_folder_that_cannot_be_created_is_an_error(home: Path) -> None:
    (home / "data").write_text("a file")
    with pytest.raises(LcursorError, match="cannot be created"):
        launch.make_folder(Path("/src/app"))


def test_a_project_is_begun_once_the_user_asked(home: Path) -> None:
    root = Path("/src/app")
    assert not is_begun(root)
    launch.make_folder(root)
    begun_path(root).write_text("{}")
    assert is_begun(root)
