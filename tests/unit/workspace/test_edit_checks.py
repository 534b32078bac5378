"""Formatter, linter and tests of the user, run on a copy of a real project."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lcursor.config import EditConfig
from lcursor.errors import Cancelled, CheckFailed
from lcursor.stop import Stop
from lcursor.workspace import edit_checks
from lcursor.workspace.edit_checks import EditChecks
from tests.waiting import wait_for

PYTHON = shlex.quote(sys.executable)


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "a.py").write_text("x = 1\n")
    (folder / "check.py").write_text("import a\nassert a.x == 2, f'x is {a.x}'\n")
    (folder / ".gitignore").write_text("big.bin\n")
    (folder / "big.bin").write_text("not for the copy")
    return folder


@pytest.fixture
def tried(root: Path) -> Iterator[EditChecks]:
    with EditChecks(root, EditConfig(test=f"{PYTHON} check.py")) as made:
        yield made


def never() -> Stop:
    return Stop()


def shown(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".git/" not in f"{path}/"
    }


def test_the_tests_see_the_change_and_the_users_files_do_not(root: Path, tried: EditChecks) -> None:
    before = shown(root)
    (good,) = tried.run({str(root / "a.py"): ("x = 2",)}, never()).checks
    assert good.is_ok
    assert not good.text
    (bad,) = tried.run({str(root / "a.py"): ("x = 3",)}, never()).checks
    assert not bad.is_ok
    assert "x is 3" in bad.text
    assert tried._copy is not None
    assert str(tried._copy.tree.path) not in bad.text
    assert shown(root) == before


@pytest.mark.usefixtures("without_sandbox")
def test_only_what_git_lists_is_copied_and_the_copy_goes(root: Path) -> None:
    made = EditChecks(root, EditConfig(test="ls; pwd; false"))
    (check,) = made.run({}, never()).checks
    assert "check.py" in check.text
    assert "big.bin" not in check.text
    assert str(root) not in check.text
    assert made._copy is not None
    folder = made._copy.tree.path
    assert folder.is_dir()
    assert folder.stat().st_mode & 0o077 == 0
    made.__exit__()
    assert not folder.exists()


def test_no_secrets_are_in_the_copy(root: Path) -> None:
    start = "-----BEGIN " + "PRIVATE KEY-----"
    files = {".env": "A=1", "sub/prod.pem": "x", "own.vault": "x", "key.py": f"K = '{start}'"}
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    os.link(root / ".env", root / "notes.txt")
    (root / "link.txt").symlink_to(".env")
    git(root, "add", "-A")
    test = "ls -A . sub; cat .env notes.txt link.txt; false"
    unsaved = {str(root / ".env"): ("B=2",)}
    with EditChecks(root, EditConfig(test=test), unsaved, ["*.vault"]) as made:
        assert not made.run({}, never()).checks[0].is_ok
        assert made._copy is not None
        assert set(shown(made._copy.tree.path)) == {"a.py", "check.py", ".gitignore"}
        text = made.run({}, never()).checks[0].text
    assert "A=1" not in text
    assert "B=2" not in text
    assert text.endswith("\n(5 files with secrets left out: .env, key.py, notes.txt, …)")


@pytest.mark.process
def test_the_copy_of_a_killed_process_goes_with_the_next_one(root: Path, own_cache: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from lcursor.config import EditConfig\n"
        "from lcursor.stop import Stop\n"
        "from lcursor.workspace.edit_checks import EditChecks\n"
        "made = EditChecks(Path(sys.argv[1]), EditConfig(test='true'))\n"
        "made.run({}, Stop()); print('made', flush=True); Stop().wait()\n"
    )
    words = [sys.executable, "-c", code, str(root)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"made\n"
        with EditChecks(root, EditConfig(test="true")) as made:
            made.run({}, never())
            assert len(list(own_cache.glob("*/tree/a.py"))) == 2  # one that is used stays
        other.kill()
    assert len(list(own_cache.glob("*/tree/a.py"))) == 1
    with EditChecks(root, EditConfig(test="true")) as made:
        made.run({}, never())
        assert made._copy is not None
        assert list(own_cache.glob("*/tree/a.py")) == [made._copy.tree.path / "a.py"]
    assert list(own_cache.iterdir()) == []


@pytest.mark.parametrize(
    "name",
    [
        "GIT_DIR", "NVIM", "SSH_AUTH_SOCK", "LCURSOR_DATA", "OPENAI_API_KEY", "GITHUB_TOKEN",
        "DB_PASSWORD", "aws_secret_access_key",
    ],
)  # fmt: skip
@pytest.mark.usefixtures("without_sandbox")
def test_the_triedget_no_keys_and_no_way_to_the_editor(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "private")
    monkeypatch.setenv("DATABASE_URL", "public")
    test = f'test "$DATABASE_URL" = public && test -n "$HOME$PATH" && test -z "${name}"'
    with EditChecks(root, EditConfig(test=test)) as made:
        (check,) = made.run({}, never()).checks
    assert check.is_ok, check.text


def test_all_changed_files_are_seen_at_once(root: Path) -> None:
    (root / "b.py").write_text("from a import x\n")
    (root / "old.py").write_text("raise SystemExit('it is still there')\n")
    command = f"{PYTHON} -c 'import b, os; assert not os.path.exists(\"old.py\")'"
    with EditChecks(root, EditConfig(test=command, lint="! grep -n ': bad' {path}")) as made:
        files = {
            str(root / "a.py"): ("y = 1",),
            str(root / "b.py"): ("from a import y",),
            str(root / "old.py"): None,
        }
        assert all(check.is_ok for check in made.run(files, never()).checks)
        tests = made.run({}, never()).checks[-1]
        assert not tests.is_ok  # the copy has the file again
        lint, tests = made.run({**files, str(root / "a.py"): ("y: bad = 1",)}, never()).checks
        assert (lint.is_ok, tests.is_ok) == (False, False)


def test_a_linter_that_complains_about_a_new_file_fails(root: Path) -> None:
    lint = "test -f {path} || { echo no such file; exit 1; }; grep -n bad {path} && exit 1; true"
    with EditChecks(root, EditConfig(lint=lint)) as made:
        path = str(root / "new.py")
        assert not made.run({path: ("bad = 1",)}, never()).checks[0].is_ok
        assert made.run({path: ("good = 1",)}, never()).checks[0].is_ok


def test_a_new_file_is_there_and_is_gone_again(root: Path) -> None:
    with EditChecks(root, EditConfig(test="cat new/b.txt")) as made:
        first = made.run({str(root / "new/b.txt"): ("hello",)}, never()).checks[0]
        second = made.run({}, never()).checks[0]
    assert first.is_ok
    assert not second.is_ok


def test_what_is_not_saved_yet_counts(root: Path) -> None:
    unsaved = {str(root / "a.py"): ("x = 2",)}
    with EditChecks(root, EditConfig(test=f"{PYTHON} check.py"), unsaved) as made:
        assert made.run({}, never()).checks[0].is_ok


def test_a_linter_that_complained_before_fails_only_for_more(root: Path) -> None:
    lint = "grep -n bad {path} && exit 1 || exit 0"
    with EditChecks(root, EditConfig(lint=lint)) as made:
        path = str(root / "a.py")
        assert made.run({path: ("x = 2",)}, never()).checks[0].is_ok
        assert not made.run({path: ("bad = 2",)}, never()).checks[0].is_ok
        (root / "b.py").write_text("bad = 1\n")
    with EditChecks(root, EditConfig(lint=lint)) as made:
        path = str(root / "b.py")
        assert made.run({path: ("bad = 2",)}, never()).checks[0].is_ok
        more = made.run({path: ("bad = 2", "bad = 3")}, never()).checks[0]
        assert not more.is_ok
        assert "2:bad = 3" in more.text
        other = made.run({path: ("worse = bad",)}, never()).checks[0]
        assert not other.is_ok  # another problem instead of the old one


@pytest.mark.parametrize("lint", ["no-such-linter {path}", f"{PYTHON} -m no_such_linter {{path}}"])
def test_a_linter_that_is_missing_counts_as_not_run(root: Path, lint: str) -> None:
    with EditChecks(root, EditConfig(lint=lint, test="true")) as made:
        found = made.run({str(root / "a.py"): ("x = 2",)}, never())
    assert [each.name for each in found.checks] == ["test"]
    assert re.match("lint was not run: .*no.such.linter", found.note)


def test_a_linter_without_words_that_failed_before_does_not_count(root: Path) -> None:
    (root / "b.py").write_text("bad = 1\n")
    with EditChecks(root, EditConfig(lint="! grep -q bad {path}")) as made:
        assert made.run({str(root / "b.py"): ("bad = 2",)}, never()).checks[0].is_ok
        assert not made.run({str(root / "a.py"): ("bad = 2",)}, never()).checks[0].is_ok


@pytest.mark.process
@pytest.mark.usefixtures("without_sandbox")
@pytest.mark.linux
def test_a_command_that_takes_too_long_is_ended_with_all_it_started(
    root: Path, tmp_path: Path
) -> None:
    file = tmp_path / "pid"
    test = f"sleep 600 & echo $! > {file}.part; mv {file}.part {file}; wait"
    with EditChecks(root, EditConfig(test=test, check_seconds=3)) as made:
        (check,) = made.run({}, never()).checks
    assert (check.is_ok, check.text) == (False, "stopped after 3 s")
    wait_for(lambda: has_ended(int(file.read_text())))


@pytest.mark.process
@pytest.mark.usefixtures("without_sandbox")
@pytest.mark.linux
def test_what_a_command_leaves_behind_is_ended_too(root: Path) -> None:
    with EditChecks(root, EditConfig(test="sleep 600 > /dev/null 2>&1 & echo $! > pid")) as made:
        assert made.run({}, never()).checks[0].is_ok
        assert made._copy is not None
        pid = int((made._copy.tree.path / "pid").read_text())
        wait_for(lambda: has_ended(pid))


def has_ended(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


@pytest.mark.process
@pytest.mark.usefixtures("without_sandbox")
def test_stopping_ends_it_at_once(root: Path, tmp_path: Path) -> None:
    cancel, began = never(), tmp_path / "began"

    def stop() -> None:
        wait_for(began.exists)
        cancel.set()

    threading.Thread(target=stop).start()
    with (
        EditChecks(root, EditConfig(test=f"touch {began}; sleep 600")) as made,
        pytest.raises(Cancelled),
    ):
        made.run({}, cancel)


def test_links_out_of_the_project_are_not_followed(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("mine")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "c.txt").write_text("mine too")
    (root / "out.txt").symlink_to(other)
    (root / "deep").symlink_to(folder)
    (root / "same.py").symlink_to("a.py")
    command = "echo x > out.txt; mkdir -p deep; echo x > deep/c.txt; echo 'x = 9' > same.py; true"
    with EditChecks(root, EditConfig(test=command)) as made:
        assert made.run({str(root / "a.py"): ("x = 2",)}, never()).checks[0].is_ok
    assert other.read_text() == "mine"
    assert (folder / "c.txt").read_text() == "mine too"
    assert (root / "a.py").read_text() == "x = 1\n"


@pytest.mark.parametrize("name", ["a.py", "sub/b.py"])
def test_nothing_is_written_through_a_link_that_a_command_made(
    root: Path, tmp_path: Path, name: str
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "a.py").write_text("mine")
    (mine / "b.py").write_text("mine")
    (root / "sub").mkdir()
    (root / "sub/b.py").write_text("x = 1\n")
    command = f"rm -rf a.py sub; ln -s {mine}/a.py a.py; ln -s {mine} sub"
    with EditChecks(root, EditConfig(test=command)) as made:
        for _ in range(2):
            made.run({str(root / name): ("x = 2",)}, never())
    assert shown(mine) == {"a.py": b"mine", "b.py": b"mine"}


def test_files_behind_a_folder_that_became_a_link_are_not_copied(root: Path) -> None:
    mine = root.parent / "mine"
    mine.mkdir()
    (mine / "b.txt").write_text("mine")
    (root / "sub").mkdir()
    (root / "sub/b.txt").touch()
    git(root, "add", ".")
    shutil.rmtree(root / "sub")
    (root / "sub").symlink_to(mine)
    with EditChecks(root, EditConfig(test="ls sub; cat sub/*; false")) as made:
        (check,) = made.run({str(root / "a.py"): ("x = 2",)}, never()).checks
    assert "mine" not in check.text


def test_a_pipe_that_a_linter_made_is_replaced(root: Path) -> None:
    config = EditConfig(lint="rm -f {path}; mkfifo {path}", test=f"{PYTHON} check.py")
    with EditChecks(root, config) as made:
        for _ in range(2):
            lint, test = made.run({str(root / "a.py"): ("x = 2",)}, never()).checks
            assert (lint.is_ok, test.is_ok) == (True, True)


def test_what_a_command_linked_is_not_taken_for_the_users_file(root: Path) -> None:
    (root.parent / "mine").write_text("mine")
    (root / "b.py").touch()
    config = EditConfig(test=f"cat b.py; ln -sf {root.parent}/mine b.py; false")
    with EditChecks(root, config) as made:
        for name in ("a.py", "b.py", "a.py"):
            (check,) = made.run({str(root / name): ("x = 2",)}, never()).checks
            assert "mine" not in check.text


def test_a_project_that_is_too_large_is_not_tried(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edit_checks, "COPY_S", -1)
    with EditChecks(root, EditConfig(test="false")) as made:
        found = made.run({}, never())
    assert not found.checks
    assert "not run" in found.note


def test_a_file_outside_of_the_project_is_not_tried(root: Path, tmp_path: Path) -> None:
    with EditChecks(root, EditConfig(test="true")) as made:
        found = made.run({str(tmp_path / "other.py"): ("x",)}, never())
    assert not found.checks
    assert "outside of the project" in found.note


def test_a_copy_that_cannot_be_written_is_said(root: Path) -> None:
    (root / "file").write_text("no folder\n")
    with EditChecks(root, EditConfig(test="true")) as made:
        found = made.run({str(root / "file/below.py"): ("x",)}, never())
    assert not found.checks
    assert "cannot be written" in found.note


def test_a_linter_that_fixes_does_not_change_what_is_tested(root: Path) -> None:
    config = EditConfig(lint="echo 'x = 2' > {path}", test=f"{PYTHON} check.py")
    with EditChecks(root, config) as made:
        lint, test = made.run({str(root / "a.py"): ("x = 3",)}, never()).checks
    assert lint.is_ok
    assert "x is 3" in test.text


def test_a_project_without_git_is_tried_as_well(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\r\ntwo\r\n")
    with EditChecks(tmp_path, EditConfig(test="cmp a.txt b.txt")) as made:
        lines = ("one", "two")
        path = str(tmp_path / "b.txt")
        assert not made.run({path: lines}, never()).checks[0].is_ok
        (tmp_path / "b.txt").write_text("one\r\nand\r\n")
    with EditChecks(tmp_path, EditConfig(test="cmp a.txt b.txt")) as made:
        assert made.run({path: lines}, never()).checks[0].is_ok  # line ends stay


def test_nothing_is_copied_where_there_is_no_command(root: Path) -> None:
    with EditChecks(root, EditConfig()) as made:
        assert not made.has_any
        assert made.run({str(root / "a.py"): ()}, never()).checks == ()
        assert made._copy is None


def test_the_formatter_gets_the_text_and_the_name(root: Path) -> None:
    code = "import sys; print(sys.argv[1]); print(sys.stdin.read().upper(), end='')"
    config = EditConfig(formatter=f"{PYTHON} -c {shlex.quote(code)} {{path}}")
    with EditChecks(root, config) as made:
        found = made.format("/p/a b.py", ("x", "é\udcff"), never())
    assert found == ("/p/a b.py", "X", "É\udcff") or found[:2] == ("/p/a b.py", "X")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("no-such-formatter-here", "cannot be run"),
        ("sh -c 'echo it is wrong >&2; exit 3'", "it is wrong"),
        ("true", "wrote nothing"),
        ("sleep 30", "longer than 0.3 s"),
        ("cat '", "is not a command"),
    ],
)
def test_a_formatter_that_fails_says_why(root: Path, command: str, words: str) -> None:
    config = EditConfig(formatter=command, check_seconds=0.3)
    with EditChecks(root, config) as made, pytest.raises(CheckFailed, match=words):
        made.format("a.py", ("x = 1",), never())


def test_a_large_text_does_not_block_the_formatter(root: Path) -> None:
    lines = tuple(f"x_{number} = 1" for number in range(50_000))
    with EditChecks(root, EditConfig(formatter="cat")) as made:
        assert made.format("a.py", lines, never()) == lines


def test_what_is_tried_knows_nothing_of_the_users_repository(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(root / ".git"))
    monkeypatch.setitem(os.environ, "GIT_INDEX_FILE", str(root / ".git/index"))
    with EditChecks(root, EditConfig(test='test -z "$GIT_DIR$GIT_INDEX_FILE"')) as made:
        assert made.run({}, never()).checks[0].is_ok
