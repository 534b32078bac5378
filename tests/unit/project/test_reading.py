"""What a file gives to a prompt, and what it never gives."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lcursor.errors import Cancelled
from lcursor.project import reading
from lcursor.project.hard_links import HOME
from lcursor.project.reading import SECRET_LINK, Reader
from tests.unit.project.trees import write

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\n"


def test_rows_of_a_file(root: Path) -> None:
    write(root, "a.py", text="one\r\ntwo\r\nthree\r\n")
    reader = Reader(root)
    assert reader.read(root / "a.py").text == "one\ntwo\nthree\n"
    part = reader.read(root / "a.py", 1, 2)
    assert (part.text, part.first_row, part.rows) == ("two\n", 1, 3)
    assert reader.read(root / "a.py", 1, -1).text == "two\nthree\n"
    assert reader.read(root / "a.py", 2, 99).text == "three\n"
    assert reader.read(root / "a.py", 3, 9).error == "it has only 3 lines"


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("a", b"\xef\xbb\xbfx\n", "x\n"),
        ("a", "ü\n".encode("utf-16"), "ü\n"),
        ("a", "ü\n".encode("latin-1"), "ü\n"),
        ("a", b"", ""),
        ("a", b"no end", "no end"),
    ],
)
def test_texts_of_many_kinds(root: Path, name: str, data: bytes, text: str) -> None:
    (root / name).write_bytes(data)
    found = Reader(root).read(root / name)
    assert (found.text, found.error) == (text, "")


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        (".env", b"A=1\n", reading.SECRET_NAME),
        ("config/.env.local", b"A=1\n", reading.SECRET_NAME),
        ("id_rsa", b"x\n", reading.SECRET_NAME),
        ("notes.txt", KEY.encode(), reading.SECRET_TEXT),
        ("utf16.txt", KEY.encode("utf-16"), reading.SECRET_TEXT),
        ("mine.yaml", b"a: 1\n", "a pattern of privacy.exclude names it: mine.*"),
        ("a.bin", b"\0\1\2", "it is binary"),
        ("a", b"x" * ((1 << 20) + 1), "it has 1.0 MB; name a range of lines, as in a:1-200"),
        ("folder/a", b"", None),
    ],
)
def test_what_is_rejected(root: Path, name: str, data: bytes, why: str | None) -> None:
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_bytes(data)
    reader = Reader(root, ["mine.*"])
    found = reader.read(root / name if why else root / "folder")
    assert found.text == ""
    assert found.error == (why or "it is a folder")


def test_what_is_not_there_or_may_not_be_waited_for(root: Path) -> None:
    reader = Reader(root)
    assert reader.read(root / "no").error == "there is no such file"
    assert reader.read(root / "README.md/x").error == "there is no such file"
    os.mkfifo(root / "pipe")
    assert reader.read(root / "pipe").error == "it is not a regular file"  # nobody writes to it
    assert reader.read(Path("/dev/zero")).error == "it is not a regular file"
    assert reader.read(root / ("x" * 300)).error.startswith("it cannot be read")


def test_a_link_does_not_make_a_secret_public(root: Path) -> None:
    write(root, ".env", text="A=1\n")
    (root / "plain.txt").symlink_to(root / ".env")
    (root / ".env.link").symlink_to(root / "src/a.py")
    reader = Reader(root)
    assert reader.read(root / "plain.txt").error == reading.SECRET_NAME
    assert reader.read(root / ".env.link").error == reading.SECRET_NAME


def test_what_any_editor_called_secret_of_a_project_is(root: Path) -> None:
    import json

    from lcursor.index import launch
    from lcursor.project.root import begun_path

    launch.make_folder(root)
    begun_path(root).write_text(json.dumps({"secrets": ["a.py"]}))
    assert "privacy.exclude" in Reader(root).read(root / "src/a.py").error


def test_rows_of_a_file_that_is_too_long(root: Path) -> None:
    with (root / "log.txt").open("w") as file:
        file.writelines(f"row {row}\n" for row in range(150_000))
    reader = Reader(root)
    assert "name a range of lines, as in log.txt:1-200" in reader.read(root / "log.txt").error
    assert reader.read(root / "log.txt", 100_000, 100_002).text == "row 100000\nrow 100001\n"
    assert reader.read(root / "log.txt", 149_999, -1).text == "row 149999\n"
    assert reader.read(root / "log.txt", 500_000, 500_001).error == "it has only 150,000 lines"
    assert "over 1 MB" in reader.read(root / "log.txt", 1, -1).error
    with (root / "log.txt").open("a") as file:
        file.write(KEY + "after\n")
    assert reader.read(root / "log.txt", 150_001, 150_002).error == reading.SECRET_TEXT
    assert reader.read(root / "log.txt", 150_003, -1).text == "after\n"


def test_unsaved_text_wins_over_the_disk_also_behind_a_link(root: Path) -> None:
    (root / "link.py").symlink_to(root / "src/a.py")
    reader = Reader(
        root, unsaved={str(root / "link.py"): "new\nrows\n", str(root / "none.py"): "n"}
    )
    found = reader.read(root / "src/a.py", 1)
    assert (found.text, found.is_unsaved) == ("rows\n", True)
    assert reader.read(root / "none.py").text == "n"  # it is in no file yet


def test_unsaved_secrets_are_secrets(root: Path) -> None:
    unsaved = {str(root / ".env"): "A=1\n", str(root / "a"): KEY}
    reader = Reader(root, unsaved=unsaved)
    assert reader.read(root / ".env").error == reading.SECRET_NAME
    assert reader.read(root / "a").error == reading.SECRET_TEXT


def test_reading_ends(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no time left" in Reader(root, max_s=0).read(root / "src/a.py").error
    monkeypatch.setattr(reading, "MAX_TOTAL_BYTES", 4)
    reader = Reader(root)
    assert reader.read(root / "src/a.py").text
    assert "attached already" in reader.read(root / "README.md").error
    with pytest.raises(Cancelled):
        Reader(root, cancel=lambda: True).read(root / "src/a.py")


def test_a_hard_link_to_a_secret_file_is_not_read(tmp_path: Path) -> None:
    root, sub = tmp_path / "project", tmp_path / "project/a/b"
    sub.mkdir(parents=True)
    for name in (".env", "own.vault", "plain.txt"):
        (root / name).write_text("KEY=1\n")
    for target in ("notes.txt", "a/b/deep.txt"):
        os.link(root / ".env", root / target)
    os.link(root / "own.vault", root / "own.txt")
    os.link(root / "plain.txt", root / "other.txt")
    (root / "link.txt").symlink_to("notes.txt")
    (root / "a.env").symlink_to("missing")
    reader = Reader(root, ["*.vault"])
    for name in ("notes.txt", "a/b/deep.txt", "own.txt", "link.txt"):
        assert reader.read(root / name).error == SECRET_LINK
    assert reader.read(root / "other.txt").text == "KEY=1\n"


def test_a_hard_link_to_a_secret_file_elsewhere_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, home = tmp_path / "project", tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    for folder in (root / "config", root / "src/deep", home / ".ssh", home / ".aws"):
        folder.mkdir(parents=True)
    secret_files = [root / "config/.env", home / ".ssh/work", home / ".aws/config", home / ".netrc"]
    targets = ["top.txt", "src/a.txt", "src/deep/b.txt", "config/c.txt"]
    for path, target in zip(secret_files, targets, strict=True):
        path.write_text("KEY=1\n")
        os.link(path, root / target)
    os.link(root / "config/.env", root / "src/data.txt")
    (home / "notes.txt").write_text("x\n")
    os.link(home / "notes.txt", root / "notes.txt")
    reader = Reader(root)
    for target in (*targets, "src/data.txt"):
        assert reader.read(root / target).error == SECRET_LINK
    assert reader.read(root / "notes.txt").text == "x\n"


def test_folders_are_listed_once_for_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        (tmp_path / f"{number}").touch()
        os.link(tmp_path / f"{number}", tmp_path / f"{number}.txt")
    reader, listed, scandir = Reader(tmp_path), list[str](), os.scandir

    def list_folder(path: str) -> object:
        listed.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", list_folder)
    assert not any(reader.secret(tmp_path / f"{number}.txt") for number in range(20))
    assert listed.count(str(tmp_path)) == 1
    assert len(listed) == len(set(listed)) == len({*HOME, str(tmp_path)})
