"""Linter and tests in the sandbox: what they see, and that nobody is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from lcursor.config import EditConfig
from lcursor.process.sandbox import open_sandbox
from lcursor.stop import Stop
from lcursor.workspace.edit_checks import EditChecks
from tests.fakes.chat_server import ChatServer
from tests.unit.edit.desk import Desk, fenced, reply

pytestmark = pytest.mark.sandbox

TEXT = "def one(x):\n    return x"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a project with an installed package that git ignores."""
    folder = tmp_path / "project"
    (folder / "node_modules/left").mkdir(parents=True)
    (folder / "node_modules/left/index.js").write_text("installed")
    (folder / ".git").mkdir()
    (folder / ".gitignore").write_text("node_modules\n")
    (folder / "a.txt").write_text("one\n")
    return folder


def output_of(root: Path, test: str) -> str:
    """Run a test command on the project, and return why it fails."""
    with EditChecks(root, EditConfig(test=f"{test}; exit 1")) as made:
        (check,) = made.run({str(root / "a.txt"): ("two",)}, Stop()).checks
    return check.text


@pytest.mark.usefixtures("needs_mounts")
def test_project_is_at_its_path(root: Path) -> None:
    """Commands see the changed copy, and installed packages, at the project's own path."""
    words = f"cat {root}/a.txt {root}/node_modules/left/index.js"
    assert output_of(root, words) == "two\ninstalled"
    assert output_of(root, "rm -r node_modules/left 2>/dev/null || echo denied") == "denied"
    assert (root / "node_modules/left/index.js").exists()
    assert (root / "a.txt").read_text() == "one\n"


@pytest.fixture
def needs_mounts() -> None:
    """Skip on a machine with the weakest sandbox only."""
    if open_sandbox().level == "landlock":
        pytest.skip("no sandbox of this level works here")


def test_nothing_else_is_reached(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands get no other file of the user, and none of his environment variables."""
    monkeypatch.setenv("DATABASE_URL", "private")
    (tmp_path / "secret").write_text("private")
    assert "private" not in output_of(root, f"env; cat {tmp_path}/secret")
    output_of(root, f"echo x > {tmp_path}/secret; echo x > {tmp_path}/other")
    assert (tmp_path / "secret").read_text() == "private"
    assert not (tmp_path / "other").exists()


def test_nobody_is_asked(tmp_path: Path) -> None:
    """An edit runs its checks without a question."""
    new = reply(fenced("def one(x):\n    return x + 1"))
    config = EditConfig(retries=0, test="grep 'x + 1' a.py")
    with ChatServer(lambda _: new) as server, Desk(tmp_path, server, edit=config) as desk:
        desk.put("a.py", TEXT + "\n")
        number = desk.ask("a.py", TEXT, "add one", (0, 1))
        found = desk.proposed(number)
        assert not desk.told("edit.question", number)
    (test,) = [each for each in found["files"][0]["checks"] if each["name"] == "test"]
    assert (test["is_ok"], found["note"]) == (True, "")
