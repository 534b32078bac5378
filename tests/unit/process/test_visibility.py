"""Which files of the user a sandboxed command may see, and that it sees no others."""

from __future__ import annotations

import base64
import hashlib
import os
import socket
import sys
import threading
import venv
from pathlib import Path

import pytest

from lcursor.process import mounts
from lcursor.process.sandbox import LEVELS, Confinement, Level, Sandbox, probe
from lcursor.process.visibility import why_hidden


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with keys, data of lcursor, and projects."""
    folder = tmp_path / "home"
    for name in (
        ".ssh/id_ed25519", ".aws/credentials", ".config/gh/hosts.yml", ".config/tool/bin/x",
        ".local/share/keyrings/login.keyring", ".local/share/lcursor/chats/x/1.jsonl",
        ".local/bin/tool", ".local/lib/python3.11/os.py", ".cache/lcursor/x", "bin/tool",
        "project/.git/config", "project/bin/tool", "notes/a.txt", "venv/pyvenv.cfg",
        "venv/bin/python", "venv/secret.txt", "dotenv/.env", "data",
    ):  # fmt: skip
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("SECRET\n")
    for name, value in {
        "HOME": folder,
        "XDG_DATA_HOME": folder / ".local/share",
        "XDG_CACHE_HOME": folder / ".cache",
    }.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.delenv("LCURSOR_DATA", raising=False)
    return folder


CASES = {
    "": "home", "..": "home", "/": "home", ".ssh": ".ssh", ".ssh/id_ed25519": "secrets",
    ".aws": ".aws", ".config": ".config", ".config/gh": ".config/gh", ".local": "lcursor",
    ".local/share": "lcursor", ".local/share/keyrings": "keyrings", ".cache": "lcursor",
    ".local/share/lcursor": "data of lcursor", ".local/share/lcursor/chats": "data of lcursor",
    "project": ".git", "dotenv": ".env", "missing": "exist",
    "bin": "", "notes": "", "data": "", ".local/bin": "", ".config/tool/bin": "", "project/bin": "",
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_folders_with_keys_or_much_data_are_hidden(home: Path, name: str) -> None:
    why = why_hidden(home / name)
    assert CASES[name] in why
    assert bool(why) == bool(CASES[name])


def test_a_folder_that_the_user_made_readable_may_be_a_project_but_shows_no_keys(
    home: Path,
) -> None:
    assert why_hidden(home / "project", is_chosen=True) == ""
    assert "home" in why_hidden(home, is_chosen=True)
    assert ".ssh" in why_hidden(home / ".ssh", is_chosen=True)
    assert "lcursor" in why_hidden(home / ".local/share/lcursor", is_chosen=True)
    (home / ".npmrc").touch()
    assert "secrets" in why_hidden(home / ".npmrc", is_chosen=True)


def test_links_are_followed_only_where_the_user_chose_them(home: Path) -> None:
    (home / "project/vendor").symlink_to("../..")
    (home / "project/venv").symlink_to(home / "venv")
    (home / "project/inner").symlink_to("bin")
    assert "home" in why_hidden(home / "project/vendor")
    assert why_hidden(home / "project/venv") == ""
    for name in ("vendor", "venv", "inner", "inner/tool"):
        assert "link" in why_hidden(home / "project" / name, follows_links=False)
    assert why_hidden(home / "project/bin", follows_links=False) == ""


def shown(search_path: str) -> set[str]:
    return {each.source for each in mounts.toolchains(search_path)}


def test_a_virtual_environment_in_the_home_shows_only_its_programs(home: Path) -> None:
    for mark in ("pyvenv.cfg", "conda-meta", "shims"):
        (home / mark).mkdir()
        assert shown(f"{home}/bin:{home}") == {
            f"{home}/bin",
            f"{home}/.local/bin",
            f"{home}/.local/lib",
        }


def test_only_the_needed_parts_of_an_environment_are_shown(home: Path) -> None:
    assert f"{home}/venv/bin" in shown(f"{home}/venv/bin")
    assert f"{home}/venv/pyvenv.cfg" in shown(f"{home}/venv/bin")
    assert not {f"{home}/venv", f"{home}/venv/secret.txt"} & shown(f"{home}/venv/bin")


def test_a_python_in_the_home_shows_only_its_installation(home: Path) -> None:
    for folder in (".local", "."):
        (home / folder / "bin/python3").touch()
    (home / "venv/pyvenv.cfg").write_text(f"home = {home}/.local/bin\n")
    found = {each.source for each in mounts.interpreter(home / "venv")}
    assert found == {f"{home}/.local/bin", f"{home}/.local/lib"}
    (home / "lib/python3.11").mkdir(parents=True)
    (home / "lib/python3.11/os.py").touch()
    (home / "venv/pyvenv.cfg").write_text(f"home = {home}/bin\n")
    found = {each.source for each in mounts.interpreter(home / "venv")}
    assert found == {f"{home}/bin", f"{home}/lib"}
    (home / "lib64").symlink_to("lib")
    (home / "include").symlink_to("notes")
    found = {each.target for each in mounts.interpreter(home / "venv")}
    assert found == {f"{home}/bin", f"{home}/lib", f"{home}/lib64"}


def test_a_folder_without_python_is_no_installation(home: Path) -> None:
    (home / "venv/pyvenv.cfg").write_text(f"home = {home}/.local/bin\n")
    assert [*mounts.interpreter(home / "venv")] == []
    (home / ".local/bin/python3").symlink_to(sys.executable)
    assert [*mounts.interpreter(home / "venv")] == []


@pytest.mark.parametrize("value", ["/a\0b/bin", "a/" * 5000, "", "\ud800"])
def test_a_path_that_cannot_be_is_no_installation(home: Path, value: str) -> None:
    text = f"home = {value}\n"
    (home / "venv/pyvenv.cfg").write_bytes(text.encode("utf-8", "surrogatepass"))
    assert [*mounts.interpreter(home / "venv")] == []


def test_a_pipe_is_no_description_of_an_environment(home: Path) -> None:
    (home / "venv/pyvenv.cfg").unlink()
    os.mkfifo(home / "venv/pyvenv.cfg")
    assert [*mounts.interpreter(home / "venv")] == []


def sources(root: Path, *packages: Path) -> set[str]:
    return {each.source for each in mounts.all_mounts(root, root, (), packages, (), "")}


def test_an_installation_in_the_project_is_not_shown_apart(home: Path, tmp_path: Path) -> None:
    root, fake = home / "project", home / "project/fake"
    for name in ("bin/python3", "lib/python3.11/os.py"):
        (fake / name).parent.mkdir(parents=True)
        (fake / name).touch()
    (root / "venv").mkdir()
    (root / "venv/pyvenv.cfg").write_text(f"home = {fake}/bin\n")
    assert f"{root}/venv" in sources(root, root / "venv")
    assert not any(each.startswith(str(fake)) for each in sources(root, root / "venv"))


@pytest.mark.parametrize("level", LEVELS)
def test_a_link_of_the_project_shows_nothing(home: Path, tmp_path: Path, level: Level) -> None:
    if not probe(level).works:
        pytest.skip("no sandbox of this level works here")
    tree, root = tmp_path / "tree", home / "project"
    tree.mkdir()
    (root / "vendor").symlink_to("..")
    packages = (root / "vendor", root / "vendor/notes")
    script = f"cat vendor/notes/a.txt {home}/notes/a.txt {home}/.ssh/*"
    confinement = Confinement(tree, root, packages=packages)
    done = Sandbox(level).run(["sh", "-c", script], confinement, max_s=20, max_bytes=9999)
    assert b"SECRET" not in done.data
    plain = Confinement(tree, root, packages=(root / "bin",))
    done = Sandbox(level).run(
        ["sh", "-c", f"cat bin/tool {root}/bin/tool"], plain, max_s=20, max_bytes=9999
    )
    assert b"SECRET" in done.data  # a folder of the project is shown


@pytest.mark.parametrize("level", LEVELS)
def test_a_socket_below_what_is_shown_cannot_be_reached(home: Path, level: Level) -> None:
    if not probe(level).works:
        pytest.skip("no sandbox of this level works here")
    tree, folder = home / "tree", home / "notes"
    tree.mkdir()
    path, accepted = folder / "daemon.sock", threading.Event()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(20)

        def accept() -> None:
            try:
                listener.accept()[0].close()
                accepted.set()
            except OSError:
                pass

        thread = threading.Thread(target=accept)
        thread.start()
        script = f"import socket; socket.socket(socket.AF_UNIX).connect({str(path)!r})"
        python = Path(sys.prefix)
        confinement = Confinement(tree, home / "project", readable=(folder, python))
        command = [sys.executable, "-c", script]
        done = Sandbox(level).run(command, confinement, max_s=20, max_bytes=9999)
        assert (done.status, b"Error" in done.errors) == (1, True)
        assert not accepted.is_set()
        with socket.socket(socket.AF_UNIX) as client:  # outside it can be reached
            client.connect(str(path))
            assert accepted.wait(20)
        thread.join()
    assert os.path.exists(path)


def test_environments_of_a_project(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that commands name, the active one, and those that tools have made for the project."""
    root = home / "project"
    key = base64.urlsafe_b64encode(hashlib.sha256(str(root).encode()).digest()).decode()[:8]
    names = ["named", "beside", "active", "unused", f".cache/pypoetry/virtualenvs/x-{key}-py3.11"]
    for name in (*names, ".cache/pypoetry/virtualenvs/x-other-py3.11", "project/.venv"):
        make_environment(home / name)
    monkeypatch.setenv("VIRTUAL_ENV", str(home / "active"))
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    tool = home / "bin/tool"
    tool.chmod(0o755)
    commands = [
        f"{home}/named/bin/python -m x && {tool} {home}/none {home} ../../a -o ../.ssh/id_ed25519",
        "../beside/bin/python .venv/bin/python /usr/bin/env && '",
        "../beside/bin/python .venv/bin/python /usr/bin/env ~/bin/tool ~nobody/x",
    ]
    shown = [str(each.relative_to(home)) for each in mounts.environments(root, commands)]
    assert shown == ["named", "bin/tool", "beside", "active", names[-1]]


def make_environment(path: Path) -> None:
    (path / "lib/python3.11/site-packages").mkdir(parents=True)
    (path / "bin").mkdir()
    (path / "bin/python").symlink_to(sys.executable)
    (path / "pyvenv.cfg").touch()


@pytest.mark.parametrize("level", LEVELS)
def test_an_environment_elsewhere_works(home: Path, level: Level) -> None:
    """Only the environment is shown: nothing beside it, and no secrets in it."""
    if not probe(level).works:
        pytest.skip("no sandbox of this level works here")
    tree, folder = home / "tree", home / "venvs/one"
    tree.mkdir()
    venv.create(folder, symlinks=True)
    (folder / "secret.txt").write_text("SECRET")
    (home / "venvs/beside.txt").write_text("SECRET")
    (packages,) = folder.glob("lib/python3*/site-packages")
    (packages / "tool.py").write_text("print('it works')")
    python = f"{folder}/bin/python"
    script = f"{python} -m tool; cat {folder}/*.txt {folder}/../* {home}/*/* {home}/.ssh/*"
    shown = tuple(mounts.environments(home / "project", [f"{python} -m tool"]))
    confinement = Confinement(tree, home / "project", environments=shown)
    done = Sandbox(level).run(["sh", "-c", script], confinement, max_s=20, max_bytes=9999)
    assert b"it works" in done.data, done.errors
    assert b"SECRET" not in done.data


@pytest.mark.parametrize("name", ["", "project", ".ssh"])
def test_an_environment_in_what_is_hidden_is_not_shown(home: Path, name: str) -> None:
    folder = home / name
    for each in ("bin", "lib/python3.11/site-packages"):
        (folder / each).mkdir(parents=True, exist_ok=True)
    (folder / "pyvenv.cfg").touch()
    seen = mounts.all_mounts(home / "tree", home / "tree", (), (), (), "", [folder])
    assert not [each for each in seen if each.source.startswith(f"{folder}/lib/python")]
    assert str(folder / "pyvenv.cfg") not in {each.source for each in seen}


@pytest.mark.parametrize("can_cover", [True, False])
def test_secrets_in_an_environment_are_covered_or_hide_it(home: Path, can_cover: bool) -> None:
    folder = home / "venvs/one"
    make_environment(folder)
    (folder / "lib/python3.11/.env").write_text("SECRET")
    root = home / "project"
    seen = mounts.all_mounts(root, root, (), (), (), "", [folder], can_cover=can_cover)
    found = {each.target: each.source for each in seen}
    assert (f"{folder}/lib" in found) == can_cover
    assert found.get(f"{folder}/lib/python3.11/.env") == (os.devnull if can_cover else None)
    assert f"{folder}/bin" in found


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("way", ["active", "command", "readable", "link to it"])
def test_a_link_in_the_project_shows_nothing_by_another_name_of_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, level: Level, way: str
) -> None:
    """The user's path of the project leads through a link: its root is another path."""
    if not probe(level).works:
        pytest.skip("no sandbox of this level works here")
    root, tree, alias = home / "project", home / "tree", home / "work"
    tree.mkdir()
    alias.symlink_to(root)
    make_environment(root / ".venv")
    (root / ".venv/share").symlink_to(home / "notes")
    venv_path, readable, commands = alias / ".venv", tuple[Path, ...](), list[str]()
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    if way == "active":
        monkeypatch.setenv("VIRTUAL_ENV", str(venv_path))
    elif way == "command":
        commands = [f"{venv_path}/bin/python -m pytest"]
    elif way == "readable":
        readable = (root / ".venv/share", venv_path / "share")
    else:
        make_environment(home / "own")
        (home / "own/share").symlink_to(root / "bin")
        monkeypatch.setenv("VIRTUAL_ENV", str(home / "own"))
    shown = tuple(mounts.environments(root, commands))
    confinement = Confinement(tree, root, readable=readable, environments=shown)
    script = f"cat {home}/notes/* {root}/bin/* .venv/share/* {venv_path}/share/* {home}/own/share/*"
    done = Sandbox(level).run(["sh", "-c", script], confinement, max_s=20, max_bytes=9999)
    assert b"SECRET" not in done.data


@pytest.mark.parametrize("level", LEVELS)
def test_a_folder_that_contains_the_project_does_not_show_its_other_files(
    home: Path, level: Level
) -> None:
    if not probe(level).works:
        pytest.skip("no sandbox of this level works here")
    tree, folder = home / "tree", home / "venvs/one"
    tree.mkdir()
    make_environment(folder)
    root = folder / "lib/python3.11/site-packages/project"
    root.mkdir()
    (root / "excluded.txt").write_text("SECRET")
    script = f"touch written && pwd; cat {root}/excluded.txt {home}/link/*/*/*/*/excluded.txt"
    (home / "link").symlink_to(folder)
    assert "project" in why_hidden(folder, is_chosen=True, root=root)
    for readable in ((), (folder, home / "link")):
        confinement = Confinement(tree, root, readable=readable, environments=(folder,))
        done = Sandbox(level).run(["sh", "-c", script], confinement, max_s=20, max_bytes=9999)
        assert (tree / "written").exists(), done.errors
        assert b"SECRET" not in done.data
        (tree / "written").unlink()


def test_a_relative_environment_is_not_shown(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    monkeypatch.setenv("VIRTUAL_ENV", "venv")
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    assert mounts.environments(home / "project", []) == []


def test_a_hidden_environment_does_not_show_its_python(home: Path) -> None:
    other = home / "other"
    for name in ("bin/python3", "lib/python3.11/os.py"):
        (other / name).parent.mkdir(parents=True)
        (other / name).touch()
    (home / "project/pyvenv.cfg").write_text(f"home = {other}/bin\n")
    (home / "project/lib/python3.11/site-packages").mkdir(parents=True)
    seen = mounts.all_mounts(home / "tree", home / "tree", (), (), (), "", [home / "project"])
    assert not [each for each in seen if each.source.startswith(str(other))]


@pytest.mark.parametrize("can_cover", [True, False])
@pytest.mark.parametrize("way", ["path", "interpreter"])
def test_secrets_are_covered_however_an_environment_was_found(
    home: Path, way: str, can_cover: bool
) -> None:
    folder, search_path, packages = home / "one", "", list[Path]()
    for name in ("bin/python3", "lib/python3.11/os.py", "lib/python3.11/.env"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("SECRET")
    if way == "path":
        (folder / "pyvenv.cfg").touch()
        search_path = f"{folder}/bin"
    else:  # a file of the project names it
        packages = [home / "project/.venv"]
        packages[0].mkdir()
        (packages[0] / "pyvenv.cfg").write_text(f"home = {folder}/bin\n")
    root = home / "project"
    seen = mounts.all_mounts(root, root, (), packages, (), search_path, can_cover=can_cover)
    found = {each.target: each.source for each in seen}
    assert f"{folder}/bin" in found
    assert (f"{folder}/lib" in found) == can_cover
    assert found.get(f"{folder}/lib/python3.11/.env") == (os.devnull if can_cover else None)
