"""Commit messages by the real 0.5B model: of the form that git wants, whatever it says first."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lcursor.config import ChatConfig
from lcursor.edit import commit
from lcursor.llm import llama_server
from lcursor.llm.pool import Connection, ModelPool
from lcursor.llm.server import LocalServer
from lcursor.stop import Stop

MODEL = "qwen2.5-coder-0.5b"
AREA = "def area(width, height):\n    return width * height\n"
CHANGES = {
    "a check": {
        "shapes.py": AREA.replace(
            "    return",
            "    if width < 0 or height < 0:\n"
            '        raise ValueError("a side is negative")\n'
            "    return",
        )
    },
    "one word": {"README.md": "# Shapes\n\nIt computes areas of shapes.\n"},
    "more files": {
        "shapes.py": f"{AREA}\n\ndef perimeter(width, height):\n    return 2 * (width + height)\n",
        "test_shapes.py": "from shapes import perimeter\n\n\ndef test_perimeter():\n"
        "    assert perimeter(2, 3) == 10\n",
    },
}


def git(root: Path, *words: str) -> None:
    names = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", str(root), *names, *words], check=True, capture_output=True)


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    if not llama_server.has_package():
        pytest.fail("the package xllamacpp is not installed. Run: make test")
    folder = tmp_path_factory.mktemp("server")
    config = ChatConfig(model=MODEL, context_tokens=4096)
    models = ModelPool(config, folder)
    try:
        yield models.connect(MODEL, Stop())
    finally:
        models.close()
        server = LocalServer(config, folder, lambda _: None)
        server.stop()
        server.close()


def test_messages_have_the_form_that_git_wants(connection: Connection, tmp_path: Path) -> None:
    for number, (name, files) in enumerate(CHANGES.items()):
        root = tmp_path / str(number)
        root.mkdir()
        git(root, "init", "-q")
        (root / "shapes.py").write_text(AREA)
        (root / "README.md").write_text("# Shapes\n\nIt computes area of shapes.\n")
        git(root, "add", ".")
        subjects = ["Compute areas", "Document how to compute areas", "Test that areas are right"]
        for subject in subjects:
            git(root, "commit", "--allow-empty", "-qm", subject)
        for path, text in files.items():
            (root / path).write_text(text)
        git(root, "add", ".")
        text, note = commit.message(connection, root, Stop())
        rows = text.split("\n")
        assert max(map(len, rows)) <= commit.WIDTH, (name, text)
        assert len(rows[0].split()) >= 2, (name, text)
        assert rows[1:2] in ([], [""]), (name, text)
        assert not any(mark in text for mark in ("```", "diff --git", "@@", "+++")), (name, text)
        assert not rows[0].endswith("."), (name, text)
        assert rows[0][0] not in "\"'`*#", (name, text)
        assert note == ""
        assert not commit.repeats(rows[0], subjects), (name, text)
        git(root, "commit", "-qm", text)
