"""File access never leaves the folder, whatever the path and whatever links there are."""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lcursor import system
from lcursor.changes.text import Text
from lcursor.workspace.files import MAX_BYTES, Denied, Files

CANARY = "canary-7f3a"
PRIVATE = "-----BEGIN PRIVATE KEY-----\nabc\n"


def secret(path: str) -> str:
    return "its name says that it holds secrets" if path.endswith(".env") else ""


@pytest.mark.linux
def test_this_kernel_is_new_enough_for_the_other_tests() -> None:
    assert system.has_openat2()


class Place:
    """A folder with files, and things outside of it that must not be reached."""

    def __init__(self, top: Path, *, uses_openat2: bool) -> None:
        self.outside, self.folder, self.scratch = top / "outside", top / "tree", top / "run"
        for each in (self.outside, self.folder / "sub/deep", self.scratch):
            each.mkdir(parents=True)
        (self.outside / "canary").write_text(CANARY)
        (self.outside / CANARY).touch()  # for lists of names
        (self.folder / "a.py").write_text("a = 1\n")
        (self.folder / "sub/b.py").write_text("b = 1\r\nc = 2\r\n")
        (self.folder / ".env").write_text(CANARY)
        (self.folder / ".git").mkdir()
        (self.folder / ".git/config").write_text(CANARY)
        (self.folder / "key.txt").write_text(PRIVATE)
        links: dict[str, Path | str] = {
            "out": self.outside, "file": self.outside / "canary", "up": "../outside",
            "sub/up": "../../outside/canary", "magic": "/proc/self/root", "fd": "/proc/self/cwd",
            "chain": "out", "secret": ".env", "config": ".git/config", "inner": "sub/b.py",
            "dangling": "../outside/new", "root": "/", "loop": "loop", "folder": "sub",
        }  # fmt: skip
        for name, target in links.items():
            (self.folder / name).symlink_to(target)
        os.mkfifo(self.folder / "pipe")
        os.link(self.outside / "canary", self.folder / "hard")
        with (self.folder / "huge").open("wb") as file:
            file.truncate(2 << 30)
        root = Path("/the/project")
        self.files = Files(
            self.folder, (root, self.folder), secret, self.scratch, uses_openat2=uses_openat2
        )

    def state(self) -> dict[str, bytes]:
        """Return the files outside."""
        return {str(path): path.read_bytes() for path in self.outside.rglob("*") if path.is_file()}


@pytest.fixture(
    params=[pytest.param(True, marks=pytest.mark.linux), False], ids=["openat2", "walk"]
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(tmp_path, uses_openat2=request.param)


READABLE = [
    ("a.py", "a.py"),
    ("./sub/../a.py", "a.py"),
    ("/the/project/sub/b.py", "sub/b.py"),
    ("sub//b.py", "sub/b.py"),
    ("out/../a.py", "a.py"),
]


@pytest.mark.parametrize(("path", "name"), READABLE)
def test_files_inside_are_read(place: Place, path: str, name: str) -> None:
    found = place.files.read(path)
    assert found.path == name
    assert found.text.lines[0].endswith("= 1")
    inside = place.files.read(str(place.folder / name))
    assert inside == found


@pytest.mark.linux
def test_a_link_inside_is_its_target(tmp_path: Path) -> None:
    place = Place(tmp_path, uses_openat2=True)
    assert place.files.read("inner").path == "sub/b.py"
    assert place.files.read("folder/b.py").path == "sub/b.py"


DENIED = [
    ("../outside/canary", "outside of the project"),
    ("/etc/passwd", "outside of the project"),
    ("/the/project/../../etc/passwd", "outside of the project"),
    ("/the/projects/a", "outside of the project"),
    ("sub/../../outside/canary", "outside of the project"),
    ("", "empty"),
    ("a\0b", "control"),
    ("a\nb", "control"),
    ("x" * 5000, "too long"),
    ("\ud800", "not valid"),
    (".env", "secrets"),
    ("./sub/../.env", "secrets"),
    (".git/config", "version control"),
    (".GIT/config", "version control"),
    ("key.txt", "private key"),
    ("missing.py", "no file"),
    ("a.py/b", "no file"),
    ("sub", "folder"),
    ("pipe", "not a regular file"),
    ("hard", "hard links"),
    ("huge", "2,048.0 MB"),
    *((name, "") for name in ("out/canary", "file", "up/canary", "sub/up", "magic/etc/passwd")),
    *((name, "") for name in ("fd", "chain/canary", "secret", "config", "dangling", "loop")),
    ("root/etc/passwd", ""),
]


@pytest.mark.parametrize(("path", "words"), DENIED)
def test_everything_else_is_denied(place: Place, path: str, words: str) -> None:
    with pytest.raises(Denied, match=words or None) as denied:
        place.files.read(path)
    assert CANARY not in str(denied.value)


WRITES = [
    "../outside/new", "/etc/lcursor-new", "out/new", "up/new", "root/tmp/lcursor-new", ".env",
    ".git/hooks/new", "a.py/new", "sub", "out/deep/er/new", "magic/tmp/new", "chain/new",
]  # fmt: skip


@pytest.mark.parametrize("path", WRITES)
def test_nothing_is_written_outside(place: Place, path: str) -> None:
    before = place.state()
    with pytest.raises(Denied):
        place.files.write(path, Text(("x",)))
    assert place.state() == before
    assert os.listdir(place.scratch) == []
    assert not Path("/etc/lcursor-new").exists()


@pytest.mark.parametrize("path", ["file", "dangling", "hard"])
def test_a_link_or_another_name_is_replaced_rather_than_written_through(
    place: Place, path: str
) -> None:
    before = place.state()
    place.files.write(path, Text(("x",)))
    assert place.state() == before
    assert (place.folder / path).read_text() == "x\n"


def test_writing_keeps_line_ends_and_mode_and_makes_folders(place: Place) -> None:
    (place.folder / "sub/b.py").chmod(0o755)
    file = place.files.read("sub/b.py")
    place.files.write("sub/b.py", file.text.with_lines(["x", "y"]), file.mode)
    assert (place.folder / "sub/b.py").read_bytes() == b"x\r\ny\r\n"
    assert (place.folder / "sub/b.py").stat().st_mode & 0o777 == 0o755
    place.files.write("new/er/c.py", Text(("c",)))
    assert (place.folder / "new/er/c.py").read_text() == "c\n"
    assert os.listdir(place.scratch) == []


def test_a_large_text_is_not_written(place: Place) -> None:
    with pytest.raises(Denied, match="4 MB"):
        place.files.write("a.py", Text(("x" * MAX_BYTES,)))
    assert (place.folder / "a.py").read_text() == "a = 1\n"


def test_names_of_a_folder(place: Place) -> None:
    assert {"a.py", "sub/", "out", "pipe"} <= {*place.files.names(".")}
    assert ".git/" not in place.files.names(".")
    assert place.files.names("sub") == ["b.py", "deep/", "up"]
    for path in ("out", "a.py", "magic", ".."):
        with pytest.raises(Denied):
            place.files.names(path)


PARTS = st.sampled_from([
    "..", ".", "", "sub", "deep", "out", "up", "magic", "root", "etc", "passwd", "canary", "a.py",
    "fd", "chain", "folder", "inner", ".env", ".git", "config", "proc", "self", "environ", "loop",
    "\\..", "..%2f", "file", "hard", "dangling", "new",
])  # fmt: skip
PATHS = st.builds(
    lambda start, parts: start + "/".join(parts),
    st.sampled_from(["", "/", "./", "/the/project/", "//", "/the/project/../"]),
    st.lists(PARTS, max_size=6),
) | st.text(max_size=20)


@settings(
    max_examples=int(os.environ.get("LCURSOR_PATHS", "150")),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(PATHS)
def test_no_path_leads_outside(place: Place, path: str) -> None:
    before = place.state()
    for act in (
        lambda: "\n".join(place.files.read(path).text.lines),
        lambda: "\n".join(place.files.names(path)),
        lambda: place.files.write(path, Text(("x",))),
    ):
        try:
            found = act()
        except Denied:
            continue
        assert CANARY not in (found or "")
        assert "root:" not in (found or "")
    assert place.state() == before


@pytest.mark.linux  # which can exchange two names
def test_a_folder_that_becomes_a_link_meanwhile_leads_nowhere(place: Place) -> None:
    """Swap a folder and a link to outside, while a file in it is read and written."""
    (place.folder / "sub/canary").write_text("inside")
    before = place.state()
    stopped = threading.Event()

    exchange = ctypes.CDLL(None).renameat2
    names = (os.fsencode(place.folder / "sub"), os.fsencode(place.folder / "out"))

    def swap() -> None:
        while not stopped.is_set():
            assert exchange(-100, names[0], -100, names[1], 2) == 0

    thread = threading.Thread(target=swap)
    thread.start()
    found = set[str]()
    try:
        for _ in range(400):
            try:
                found.update(place.files.read("sub/canary").text.lines)
                place.files.write("sub/canary", Text(("inside",), ends=False))
            except Denied:
                continue
    finally:
        stopped.set()
        thread.join()
    assert found <= {"inside"}
    assert place.state() == before
