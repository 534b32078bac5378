"""A file of lines that several processes add to: kills, full disks, files written anew."""

from __future__ import annotations

import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.storage.log_file import LogFile
from tests.fakes.disk import full_disk


def add(file: LogFile, *lines: bytes) -> list[bytes]:
    """Add lines; return the news that came before them."""
    with file.lock_for_writing() as fd:
        assert isinstance(fd, int)
        news, _ = file.read_new(fd)
        assert file.append(fd, [line + b"\n" for line in lines]) is None
    return news


def news(file: LogFile) -> tuple[list[bytes], bool]:
    """Return what is new to a reader."""
    with file.lock_for_reading() as fd:
        return file.read_new(fd)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "all" / "one" / "lines"


def test_what_one_adds_is_new_to_the_other_once(path: Path) -> None:
    one, two = LogFile(path), LogFile(path)
    add(one, b"a", b"b")
    assert news(two) == ([b"a", b"b"], True)
    assert add(two, b"c") == []
    assert news(one) == ([b"c"], False)
    assert news(one) == ([], False)


def test_only_the_user_can_read_it(path: Path) -> None:
    add(LogFile(path), b"a")
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (path, *path.parents[:2])]
    assert modes == [0o600, 0o700, 0o700]


def test_a_file_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with LogFile(tmp_path / "file" / "folder" / "lines").lock_for_writing() as fd:
        assert isinstance(fd, OSError)


@given(st.lists(st.lists(st.binary(min_size=1).filter(lambda line: b"\n" not in line))))
def test_lines_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, turns: Sequence[Sequence[bytes]]
) -> None:
    path = tmp_path_factory.mktemp("lines") / "lines"
    writers = [LogFile(path), LogFile(path)]
    for number, lines in enumerate(turns):
        add(writers[number % 2], *lines)
    if turns:
        assert news(LogFile(path))[0] == [line for lines in turns for line in lines]


def test_a_line_that_was_cut_off_does_not_take_the_next_one_along(path: Path) -> None:
    file = LogFile(path)
    add(file, b"a")
    with path.open("ab") as other:
        other.write(b"half")
    assert add(file, b"b") == [b"half"]
    assert news(LogFile(path))[0] == [b"a", b"half", b"b"]
    assert news(file) == ([], False)


def test_many_threads_and_processes_lose_nothing(path: Path) -> None:
    script = """
        import sys
        from pathlib import Path
        from lcursor.storage.log_file import LogFile
        file = LogFile(Path(sys.argv[1]))
        for number in range(40):
            with file.lock_for_writing() as fd:
                file.read_new(fd)
                file.append(fd, [b"%s %d\\n" % (sys.argv[2].encode(), number)], fsync=False)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(path)]
    processes = [subprocess.Popen([*command, str(name)]) for name in range(3)]

    def write() -> None:
        file = LogFile(path)
        for number in range(40):
            add(file, b"here %d" % number)

    thread = threading.Thread(target=write)
    thread.start()
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    thread.join(60)
    lines, _ = news(LogFile(path))
    for name in (b"0", b"1", b"2", b"here"):
        mine = [line for line in lines if line.startswith(name + b" ")]
        assert mine == [b"%s %d" % (name, number) for number in range(40)]


def test_a_full_disk_leaves_no_half_of_a_line(path: Path) -> None:
    file = LogFile(path)
    add(file, b"a")
    with full_disk(path.stat().st_size + 20), file.lock_for_writing() as fd:
        assert isinstance(fd, int)
        assert isinstance(file.append(fd, [b"b\n", b"c" * 100 + b"\n"]), OSError)
    assert path.read_bytes() == b"a\n"
    add(file, b"d")
    assert news(LogFile(path))[0] == [b"a", b"d"]


def test_a_file_that_was_replaced_is_read_from_the_start(path: Path) -> None:
    file = LogFile(path)
    add(file, b"a", b"b")
    other = path.with_suffix(".other")
    other.write_bytes(b"all\n")
    other.replace(path)
    assert add(file, b"new") == [b"all"]
    assert news(file) == ([], False)
    assert news(LogFile(path)) == ([b"all", b"new"], True)


def test_another_file_is_known_also_where_it_has_the_same_number(path: Path) -> None:
    file = LogFile(path)
    add(file, b"a")
    path.write_bytes(b"b\nc\n")  # the same inode
    assert news(file) == ([b"b", b"c"], True)


def test_a_file_that_was_deleted_is_made_again(path: Path) -> None:
    one, two = LogFile(path), LogFile(path)
    add(one, b"a", b"b")
    path.unlink()
    add(two, b"c")
    assert news(one) == ([b"c"], True)
