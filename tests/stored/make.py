"""Write one small file of each kind that lcursor keeps, as the version that runs this writes it.

The folders beside this file were made by released versions, each by its own copy of this script.
Before a release, and before a format changes, keep the present forms:

    python -m tests.stored.make tests/stored/VERSION

`tests/unit/test_stored_data.py` reads all of them with today's code.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from lcursor.changes.history import History
from lcursor.changes.records import Change, FileChange, digest
from lcursor.changes.write import write
from lcursor.chat.archive import Archive
from lcursor.chat.chat_file import ChatFile
from lcursor.chat.conversation import Conversation
from lcursor.fim.kv import KVShadow
from lcursor.fim.kv_disk import KVDiskCache, SavedSlot
from lcursor.fim.outcomes import OutcomeStore, Row
from lcursor.fim.prompt import File
from lcursor.index.records import Chunk, FileState, Parsed, Symbol
from lcursor.index.store import Store
from lcursor.index.vector_store import VectorStore
from lcursor.installer.venv import Stamp, write_stamp
from lcursor.llm.server_state import ServerFolder, ServerState

ROOT = "/home/anna/project"
"""Stands for the project's folder in all that is kept."""
CHAT_KEY = "20260101-120000-0123abcd"
CODE = "import os\n\n\ndef first(a):\n    return a + 1\n\n\ndef second(a):\n    return a + 2\n"
DIGEST = bytes(range(16))
EMBEDDER = "minilm-l6-v2-int8"
FINGERPRINT = "model 1"


def make_chat(folder: Path) -> None:
    """Keep a chat of two questions: one answered, one stopped; its title, and a summary."""
    archive = Archive(folder / "chats")
    chat = ChatFile(archive.path(CHAT_KEY, ROOT), Conversation(key=CHAT_KEY, root=ROOT))
    item = {"key": "a.py", "kind": "file", "name": "a.py", "path": f"{ROOT}/a.py", "tokens": 40}
    cost = {"prompt_tokens": 120, "answer_tokens": 9, "context_tokens": 4096, "is_exact": True}
    for op in (
        {"op": "say", "number": 1, "parent": 0, "text": "What does first() do? Größe 🙂"},
        {"op": "attach", "number": 1, "sent": "a.py:\nWhat does first() do?", "items": [item]},
        {"op": "answer", "number": 2, "parent": 1, "model": "qwen", "server": "run 1"},
        {"op": "more", "number": 2, "text": "It adds ", "reasoning": "Look at it."},
        {"op": "more", "number": 2, "text": "one.\n"},
        {"op": "end", "number": 2, "reason": "stop", "cost": cost},
        {"op": "title", "title": "About first"},
        {"op": "say", "number": 3, "parent": 2, "text": "And second()?"},
        {"op": "answer", "number": 4, "parent": 3, "model": "qwen"},
        {"op": "more", "number": 4, "text": "It adds"},
        {"op": "end", "number": 4, "reason": "stopped"},
        {"op": "sum", "number": 5, "last": 2, "text": "first() adds one."},
        {"op": "edit", "after": 2, "name": "a.py", "first_row": 4, "rows": 1, "what": "first"},
    ):
        chat.change(lambda _, op=op: [op])  # type: ignore[misc]
    chat.close()


def make_edits(folder: Path) -> None:
    """Keep a turn written to disk, and one of whose two hunks in a buffer one was accepted."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve() / "project"
        root.mkdir()
        (root / "a.py").write_text(CODE)
        history = History(root, folder / "edits")
        lines = CODE.splitlines()
        change = Change(4, 5, ("    return a + 1",), ("    return 1 + a",))
        files = [FileChange(str(root / "a.py"), base=digest(lines), changes=(change,))]
        files.append(
            FileChange(str(root / "new.py"), "create", changes=(Change(0, 0, (), ("b = 1",)),))
        )
        write(files, history, history.begin("Turn one around", files, chat=CHAT_KEY))
        lines[4] = "    return 1 + a"
        changes = (
            Change(0, 1, ("import os",), ("import sys",)),
            Change(8, 9, ("    return a + 2",), ("    return 2 + a",)),
        )
        path = str(root / "a.py")
        key = history.begin(
            "Turn two around",
            [FileChange(path, base=digest(lines), changes=changes)],
            bases={path: lines},
        )
        history.decided(
            {
                "turn": key,
                "path": path,
                "accepted": [
                    {
                        "row": 0,
                        "old": ["import os"],
                        "new": ["import sys"],
                        "above": [],
                        "below": lines[1:4],
                    }
                ],
                "rejected": [],
                "open": 1,
                "is_undone": False,
            }
        )
        shutil.copy(root / "a.py", folder / "edited.txt")
        shutil.copytree(history.path, folder / "turns")
        shutil.copytree(history.images.folder, folder / "images")
        for each in (folder / "turns").iterdir():
            each.write_text(each.read_text().replace(str(root), ROOT))
    shutil.rmtree(folder / "edits")


def make_journal(folder: Path) -> None:
    """Keep three outcomes of suggestions."""
    journal = OutcomeStore(lambda error: sys.exit(str(error)), path=folder / "outcomes.sqlite3")
    for number, outcome in enumerate(("accepted", "typed", "rejected")):
        journal.add(
            Row(time.time() + number, "lua", outcome, "model", 20, 12, 3, 900.0, 210.0, 0.75)
        )
    is_written = threading.Event()
    journal.read(lambda rows: is_written.set())
    is_written.wait(10)
    journal.close(10)


def make_vectors(folder: Path) -> None:
    """Keep one vector."""
    cache = VectorStore(folder / "vectors", EMBEDDER)
    cache.put([(DIGEST, np.arange(8, dtype=np.float16))])
    cache.close()


def make_index(folder: Path) -> None:
    """Keep a file of two chunks."""
    store = Store(folder / "index")
    chunks = [
        Chunk(0, 5, "def first(a):\n    return a + 1", "", "code", DIGEST),
        Chunk(5, 9, "def second(a):\n    return a + 2", "", "code", DIGEST[::-1]),
    ]
    symbols = [Symbol("first", "function", 3, 5, "")]
    store.put("a.py", FileState(90, 1, DIGEST), Parsed("python", chunks, symbols))
    store.close()
    for path in (folder / "index").iterdir():
        if path.name != "index.sqlite3":
            path.unlink()


def make_kv(folder: Path) -> None:
    """Keep the cells of one buffer; what llama.cpp made of them is nothing but a few bytes."""
    cells = KVShadow()
    cells.prefix, cells.suffix, cells.suffix_at = [1, 2, 3], (4, 5), 28
    cells.has_marker, cells.stale = True, 2
    saved = SavedSlot(cells, (File("b.py", "def b(): ...\n"),), b"\x00\x01cells")
    KVDiskCache(folder / "kv", FINGERPRINT).save(ROOT, "a.py", saved)


def make_server_state(folder: Path) -> None:
    """Keep the state of a server that has ended."""
    place = ServerFolder(folder / "server")
    place.create()
    place.write(
        ServerState(
            pid=4711,
            url="unix:///run/lcursor/chat.sock",
            engine="xllamacpp",
            model="qwen2.5-coder-0.5b",
            path="/home/anna/models/qwen.gguf",
            context_tokens=4096,
        )
    )
    for empty in (place.users_path, place.slots_path):
        empty.rmdir()


def make_stamp(folder: Path) -> None:
    """Keep what an environment was made from."""
    (folder / "venv").mkdir()
    parts = {"base": "a" * 64, "neovim": "b" * 64, "engine": "0.3.36 cpu native"}
    write_stamp(folder / "venv", Stamp(python="3.11", cpu=["avx", "avx2", "fma"], parts=parts))


def main(folder: Path) -> None:
    """Write all of them into a folder that does not exist yet."""
    folder.mkdir(parents=True)
    for make in (
        make_chat, make_edits, make_journal, make_vectors, make_index, make_kv, make_server_state,
        make_stamp,
    ):  # fmt: skip
        make(folder)
    for path in folder.rglob("*.lock"):
        path.unlink()


if __name__ == "__main__":
    main(Path(os.path.abspath(sys.argv[1])))
