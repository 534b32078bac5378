"""What is covered in installed packages and in folders of the settings."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from lcursor.process import covers, mounts
from lcursor.process.covers import covered
from lcursor.process.sandbox import LEVELS, Confinement, Level, Sandbox, probe

KEY = "-----BEGIN RSA PRIVATE KEY-----\nSECRET\n"


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def names(folder: Path) -> set[str]:
    return {os.path.relpath(path, folder) for path in covered(str(folder))}


@pytest.mark.parametrize(
    ("name", "text", "is_covered"),
    [
        ("app/.env", "", True),
        ("app/prod.env", "", True),
        ("app/.env.example", "", False),
        (".npmrc", "", True),
        ("a/b/c/d/e/f/.netrc", "", True),
        ("app/secrets.yml", "", True),
        (".aws/credentials", "", True),
        ("id_rsa", KEY, True),
        ("id_rsa", "a test", False),
        ("tls/server.pem", KEY, True),
        ("certifi/cacert.pem", "-----BEGIN CERTIFICATE-----", False),
        ("auth/credentials.py", "", False),
        ("design/tokens.json", "", False),
        ("x/.git/config", "[remote]\n\turl = https://me:token@example.com/x\n", True),
        ("x/.git/config", "[remote]\n\turl = https://example.com/x\n", False),
        (".bundle/config", 'BUNDLE_PATH: "vendor"\n', False),
        ("conda-meta/state", '{"env_vars": {"API_KEY": "x"}}', True),
        ("conda-meta/state", '{"env_vars": {}}', False),
        ("x/state", '{"env_vars": {"API_KEY": "x"}}', False),
        ("etc/conda/activate.d/env_vars.sh", "#!/bin/sh\nexport API_KEY=x\n", True),
        ("etc/conda/activate.d/libglib.sh", "export GSETTINGS_SCHEMA_DIR=x\n", False),
        ("bin/postactivate", "#!/bin/zsh\n# This hook is sourced\nexport API_KEY=x\n", True),
        ("bin/postactivate", "#!/bin/zsh\n# This hook is sourced\n", False),
        (".bundle/config", 'BUNDLE_GEMS__EXAMPLE__COM: "me:token"\n', True),
    ],
)
def test_secrets_of_the_user_are_covered_and_code_is_not(
    tmp_path: Path, name: str, text: str, is_covered: bool
) -> None:
    write(tmp_path, **{name: text})
    assert names(tmp_path) == ({name} if is_covered else set())


def test_sockets_and_pipes_are_covered_and_links_are_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = tmp_path / "top"
    write(top, **{"deep/x": ""})
    write(tmp_path, **{"other/.env": ""})
    (top / "away").symlink_to("../other")
    (top / "linked.env").symlink_to("../other/.env")
    os.mkfifo(top / "deep/pipe")
    monkeypatch.chdir(top / "deep")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("relative")
    assert names(top) == {"deep/pipe", "deep/relative"}


def test_a_later_change_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(covers, "FRESH_NS", -1 << 62)
    write(tmp_path, **{"a/b/x": "", "a/c/.env": ""})
    assert names(tmp_path) == {"a/c/.env"}
    os.rename(tmp_path / "a/c/.env", tmp_path / "a/b/.env")
    assert names(tmp_path) == {"a/b/.env"}


def test_files_near_the_top_are_covered_in_a_folder_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(covers, "MAX_ENTRIES", 4)
    write(tmp_path, **{".env": "", "a/.env": "", "a/b/c/d/.env": ""})
    assert names(tmp_path) == {".env", "a/.env"}


@pytest.mark.parametrize("level", LEVELS)
def test_commands_do_not_read_secrets_in_packages(tmp_path: Path, level: Level) -> None:
    if not probe(level).works:
        pytest.skip("no sandbox of this level works here")
    tree, root = tmp_path / "tree", tmp_path / "project"
    tree.mkdir()
    vendor = root / "vendor"
    write(vendor, **{"app/.env": "SECRET", "app/id_rsa": KEY, "app/main.py": "CODE"})
    write(root, **{"deps/main.py": "CODE"})
    confinement = Confinement(tree, root, packages=(vendor, root / "deps"))
    command = ["sh", "-c", f"cat {vendor}/app/.env {vendor}/app/id_rsa */main.py */*/main.py"]
    done = Sandbox(level).run(command, confinement, max_s=20, max_bytes=9999)
    shown = 1 if level == "landlock" else 2  # which cannot cover a part of a folder
    assert (done.data.count(b"SECRET"), done.data.count(b"CODE")) == (0, shown)


def test_a_folder_with_too_much_to_cover_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mounts, "MAX_COVERS", 2)
    root = tmp_path / "project"
    for name, count in (("a", 2), ("b", 3), ("chosen", 3)):
        write(root / name, **{f"x/{number}.env": "" for number in range(count)})
    seen = mounts.all_mounts(root, root, (), (root / "a", root / "b"), (root / "chosen",), "")
    shown = {each.source for each in seen if each.source.startswith(f"{root}/")}
    assert shown == {f"{root}/a"}


def test_nothing_is_covered_behind_a_link_of_the_copy(tmp_path: Path) -> None:
    tree, root = tmp_path / "tree", tmp_path / "project"
    tree.mkdir()
    (tree / "vendor").symlink_to(tmp_path)
    write(root, **{"vendor/app/.env": ""})
    seen = mounts.all_mounts(tree, root, (), (root / "vendor",), (), "")
    made = mounts.with_mount_points(seen, tree, root)
    assert not any(each.target.startswith(f"{root}/vendor") for each in made)
    assert any(each.target == f"{root}/vendor/app/.env" for each in seen)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("conda-meta/state", '{"env_vars": {}}', '{"env_vars": {"API_KEY": "x"}}'),
        (".bundle/config", "BUNDLE_PATH: x\n", "BUNDLE_GEMS__X__COM: user:secret\n"),
        ("auth/credentials.py", "x = 1\n", KEY),
    ],
)
def test_a_secret_that_is_written_into_a_known_file_is_covered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, before: str, after: str
) -> None:
    monkeypatch.setattr(covers, "FRESH_NS", 0)
    write(tmp_path, **{name: before})
    assert names(tmp_path) == set()
    (tmp_path / name).write_text(after)  # in place: its folder does not change
    assert names(tmp_path) == {name}
    (tmp_path / name).write_text(before)
    assert names(tmp_path) == set()


def test_files_of_the_users_globs_are_covered_in_packages_and_chosen_folders(
    tmp_path: Path,
) -> None:
    root, chosen = tmp_path / "project", tmp_path / "chosen"
    write(root, **{"vendor/x.vault": "", "vendor/deep/y.VAULT": "", "vendor/z.py": ""})
    write(chosen, **{"x.vault": "", "z.py": ""})
    shown = (root, root, (), (root / "vendor",), (chosen,), "")
    seen = mounts.all_mounts(*shown, secrets=["*.vault"])
    covers = {each.target for each in seen if each.source == os.devnull}
    wanted = ("project/vendor/x.vault", "project/vendor/deep/y.VAULT", "chosen/x.vault")
    assert covers == {f"{tmp_path}/{name}" for name in wanted}
    assert not [each for each in mounts.all_mounts(*shown) if each.source == os.devnull]
