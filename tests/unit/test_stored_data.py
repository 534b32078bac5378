"""What released versions keep on disk is read by today's code: nobody loses a chat by an update.

`tests/stored/make.py` wrote the files; it must go on doing so, which is why the present form of
each file is read here too.
"""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

from lcursor.changes import turn as turns
from lcursor.changes.history import OLD_NAMES, History
from lcursor.changes.records import FileChange
from lcursor.changes.turn import Turn
from lcursor.changes.undo import revert
from lcursor.chat.archive import Archive
from lcursor.chat.chat_file import ChatFile
from lcursor.errors import LcursorError
from lcursor.fim.kv_disk import KVDiskCache
from lcursor.fim.outcomes import OutcomeStore, Rows
from lcursor.fim.prompt import File
from lcursor.index.records import FileState
from lcursor.index.store import Store
from lcursor.index.vector_store import VectorStore
from lcursor.installer.venv import STAMP, read_stamp
from lcursor.llm.server_state import ServerFolder
from lcursor.storage import stored
from tests.stored import make
from tests.unit.index.pieces import entry, found

STORED = Path(make.__file__).parent
RELEASES = sorted(path.name for path in STORED.glob("[0-9]*"))


def test_there_are_files_of_a_release() -> None:
    assert "0.1.0" in RELEASES


@pytest.fixture(params=[*RELEASES, "today"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Give a copy of what one version kept."""
    folder = tmp_path / "kept"
    if request.param == "today":
        make.main(folder)
    else:
        shutil.copytree(STORED / request.param, folder)
    return folder


def test_chats(kept: Path) -> None:
    archive = Archive(kept / "chats")
    (row,), note = archive.rows(make.ROOT)
    assert note == ""
    assert (row["chat"], row["title"], row["root"]) == (make.CHAT_KEY, "About first", make.ROOT)
    assert archive.newest(make.ROOT) == make.CHAT_KEY

    chat = ChatFile.open(archive.find(make.CHAT_KEY))
    assert chat.note == ""
    first, answer, second, stopped = chat.chat.branch()
    assert first.text == "What does first() do? Größe 🙂"
    assert (first.sent, first.items[0].name) == ("a.py:\nWhat does first() do?", "a.py")
    assert (answer.text, answer.reasoning) == ("It adds one.\n", "Look at it.")
    assert (answer.end, answer.model, answer.cost.prompt_tokens) == ("stop", "qwen", 120)
    assert (second.text, stopped.text, stopped.is_partial) == ("And second()?", "It adds", True)
    summary = chat.chat.active_summary(chat.chat.branch())
    assert summary is not None
    assert (summary.last, summary.text) == (2, "first() adds one.")
    (edit,) = chat.chat.edits
    assert (edit.name, edit.first_row) == ("a.py", 4)

    chat.change(lambda it: [{"op": "say", "number": 6, "parent": 4, "text": "Go on"}])
    again = ChatFile.open(archive.find(make.CHAT_KEY))
    assert [each.text for each in again.chat.branch()][-1] == "Go on"


def test_edits_and_their_undo(kept: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    shutil.copy(kept / "edited.txt", project / "a.py")
    (project / "new.py").write_text("b = 1\n")
    history = History(project, tmp_path / "edits")
    history.folder.mkdir(parents=True)
    if not (kept / "turns").exists():
        expired(history, kept)
        return
    shutil.copytree(kept / "turns", history.path)
    for path in history.path.iterdir():
        moved = json.loads(path.read_text().replace(make.ROOT, str(project.resolve())))
        path.write_bytes(turns.to_bytes(stored.load(Turn, moved)))
    shutil.copytree(kept / "images", history.images.folder)

    two, one = history.rows()
    assert not history.damaged
    assert (one["title"], one["state"]) == ("Turn one around", "done")
    assert (two["title"], two["state"], two["open"]) == ("Turn two around", "open", 1)
    assert history.turn(one["turn"]).chat == make.CHAT_KEY
    (waiting,) = history.open_files(two["turn"])
    assert [change.new for change in waiting.changes] == [("    return 2 + a",)]

    assert "return 1 + a" in (project / "a.py").read_text()
    assert revert(history, one["turn"], "undo", []).problems == ()
    assert (project / "a.py").read_text() == make.CODE
    assert not (project / "new.py").exists()
    assert revert(history, one["turn"], "redo", []).problems == ()
    assert (project / "new.py").read_text() == "b = 1\n"


def expired(history: History, kept: Path) -> None:
    """Version 0.1.0 kept no images: its turns are forgotten with the first new one."""
    old = history.folder / OLD_NAMES[0]
    shutil.copy(kept / "edits.jsonl", old)
    assert (history.rows(), history.undo_key(), history.damaged) == ([], "", 0)
    key = history.begin("new", [FileChange("a.py")])
    assert [row["turn"] for row in history.rows()] == [key]
    assert not old.exists()


def test_outcomes_of_suggestions(kept: Path) -> None:
    errors: list[LcursorError] = []
    rows: list[Rows] = []
    is_read = threading.Event()

    def take(found: Rows) -> None:
        rows.append(found)
        is_read.set()

    journal = OutcomeStore(errors.append, path=kept / "outcomes.sqlite3")
    journal.read(take)
    assert is_read.wait(30)
    journal.close(10)
    assert (errors, journal.problem) == ([], "")
    assert [row.outcome for row in sorted(rows[0], key=lambda row: row.at_s)] == [
        "accepted",
        "typed",
        "rejected",
    ]
    first = min(rows[0], key=lambda row: row.at_s)
    assert (first.filetype, first.shown_chars, first.kept_chars) == ("lua", 20, 12)
    assert (first.through_keys, first.latency_ms, first.confidence) == (3, 210.0, 0.75)


def test_vectors(kept: Path) -> None:
    cache = VectorStore(kept / "vectors", make.EMBEDDER)
    (vector,) = cache.get([make.DIGEST]).values()
    assert vector.tolist() == list(range(8))
    cache.put([(b"another digest..", np.ones(8, np.float16))])
    assert len(cache.get([make.DIGEST, b"another digest.."])) == 2
    assert cache.remarks == []
    cache.close()


def test_the_index_of_a_project(kept: Path) -> None:
    """It is used, or where another version made it, made again; it is not called damaged."""
    store = Store(kept / "index")
    assert store.remarks == []
    if files := store.files():
        assert files == {"a.py": FileState(90, 1, make.DIGEST)}
        assert found(store, "second") == ["def second(a):\n    return a + 2"]
    store.put(*entry("b.py", "def third(a): ..."))
    assert found(store, "third") == ["def third(a): ..."]
    assert store.remarks == []
    store.close()


def test_the_cells_of_a_buffer(kept: Path) -> None:
    saved = KVDiskCache(kept / "kv", make.FINGERPRINT).load(make.ROOT, "a.py")
    assert saved is not None
    assert saved.state == b"\x00\x01cells"
    assert saved.files == (File("b.py", "def b(): ...\n"),)
    assert (saved.shadow.prefix, saved.shadow.suffix, saved.shadow.suffix_at) == (
        [1, 2, 3],
        (4, 5),
        28,
    )


def test_the_state_of_a_server(kept: Path) -> None:
    folder = ServerFolder(kept / "server")
    state = folder.last()
    assert state is not None
    assert (state.pid, state.url) == (4711, "unix:///run/lcursor/chat.sock")
    assert (state.model, state.context_tokens) == ("qwen2.5-coder-0.5b", 4096)
    assert folder.running() is None


def test_the_stamp_of_an_environment(kept: Path) -> None:
    assert (kept / "venv" / STAMP).exists()
    stamp = read_stamp(kept / "venv")
    assert (stamp.python, stamp.cpu) == ("3.11", ["avx", "avx2", "fma"])
    assert stamp.parts["engine"] == "0.3.36 cpu native"
