"""What lcursor keeps is damaged at random: no traceback, no lost text, and a clear report.

Some hundred cases; 10,000 with `pytest --hypothesis-profile thorough`.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lcursor import protocol
from lcursor.agent import runs
from lcursor.agent.run import step_row
from lcursor.agent.run_log import RunLog, difference
from lcursor.changes import text, undo
from lcursor.changes import write as writes
from lcursor.changes.history import History
from lcursor.changes.records import Change, FileChange, to_wire
from lcursor.changes.turn import Action
from lcursor.chat import views
from lcursor.chat.archive import Archive
from lcursor.chat.chat_file import ChatFile
from lcursor.errors import LcursorError
from lcursor.fim.kv import KVShadow
from lcursor.fim.kv_disk import KVDiskCache, SavedSlot
from lcursor.fim.prompt import File
from lcursor.index import words
from lcursor.index.search import Searcher
from lcursor.index.store import Store
from lcursor.index.vector_store import VectorStore
from lcursor.llm import slots
from lcursor.llm.server_state import ServerFolder
from lcursor.project import root as roots
from lcursor.project import secrets
from lcursor.storage import stored
from tests.fakes.damage import damage_one
from tests.stored import make
from tests.thorough import is_thorough
from tests.unit.edit.desk import decision, hunk_at
from tests.unit.index.pieces import entry, pairs

Check = Callable[[Path, Counter[str]], None]
"""Uses damaged files; counts what was reported and what was not noticed."""


def wire(method: str, row: dict[str, Any]) -> None:
    """Check that a message can be sent."""
    protocol.check(method, row, protocol.TO_LUA)
    json.dumps(row)


def spoil(tmp_path: Path, pristine: Path, cases: tuple[int, int], use: Check) -> Counter[str]:
    """Damage copies of a folder, and use them; return what was counted."""
    counted = Counter[str]()
    folder = tmp_path / "damaged"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)  # for speed
        for seed in range(cases[is_thorough()]):
            shutil.copytree(pristine, folder)
            what = damage_one(folder, random.Random(seed))
            try:
                use(folder, counted)
            except Exception as error:
                raise AssertionError(f"seed {seed}, {what}: {error!r}") from error
            finally:
                shutil.rmtree(folder)
    assert not counted["without words"]
    return counted


@contextlib.contextmanager
def reported(counted: Counter[str]) -> Iterator[None]:
    """Count an error for the user, which has words for it."""
    try:
        yield
    except LcursorError as error:
        has_words = bool(error.message and error.hint)
        counted["reported" if has_words else "without words"] += 1


# Edits.

ACTIONS: tuple[Action, ...] = ("undo", "redo", "undo")


def edited(path: Path, row: int, new: str) -> FileChange:
    found = text.read(path)
    change = Change(row, row + 1, (found.lines[row],), (new,))
    return FileChange(str(path), "edit", base=found.digest, changes=(change,))


def make_edits(project: Path, data: Path) -> dict[str, set[bytes | None]]:
    """Keep turns that were written, undone, decided about; return the possible texts of files."""
    chance = random.Random(0)
    for name in ("a.py", "b.py", "gone.py", "old.py"):
        (project / name).write_text("".join(f"{chance.getrandbits(60):x}\n" for _ in range(12)))
    found: dict[str, set[bytes | None]] = {}

    def look() -> None:
        names = {*found, *(path.name for path in project.iterdir())}
        for name in names:
            path = project / name
            found.setdefault(name, {None} if found else set())
            found[name].add(path.read_bytes() if path.exists() else None)

    look()
    history = History(project, data)

    def do(*files: FileChange) -> str:
        bases = {each.path: text.read(each.path).lines for each in files if each.base}
        key = history.begin("t", files, bases=bases)
        writes.write(files, history, key)
        look()
        return key

    a, b, gone, old = (project / name for name in ("a.py", "b.py", "gone.py", "old.py"))
    do(edited(a, 2, "one"), edited(b, 3, "one"))
    do(FileChange(str(gone), "delete", base=text.read(gone).digest))
    change = edited(old, 0, "two")
    made = FileChange(str(project / "c.py"), "create", changes=(Change(0, 0, (), ("c",)),))
    key = do(replace(change, kind="rename", to=str(project / "new.py")), made)
    undo.revert(history, key, "undo", [])
    look()
    change = edited(a, 8, "three")
    lines, (only,) = text.read(a).lines, change.changes
    key = history.begin("t", [change, edited(b, 9, "four")], bases={str(a): lines})
    history.decided(decision(key, str(a), hunk_at(lines, 8, only.old, only.new), still_open=1))
    # Undone in any order, a file may have each combination of the changes.
    for name, row, new in (("a.py", 2, b"one"), ("a.py", 8, b"three"), ("b.py", 3, b"one")):
        texts = [each.split(b"\n") for each in found[name] if each]
        for lines_ in texts:
            for line in {new, *(each[row] for each in texts)}:
                found[name].add(b"\n".join([*lines_[:row], line, *lines_[row + 1 :]]))
    return found


def test_damaged_edits_are_reported(tmp_path: Path) -> None:
    project, pristine = tmp_path / "project", tmp_path / "kept"
    project.mkdir()
    possible = make_edits(project, pristine)
    kept = {path.name: path.read_bytes() for path in project.iterdir()}
    names = {path.name for path in History(project, pristine).path.iterdir()}

    def use(folder: Path, counted: Counter[str]) -> None:
        for name in {*possible, *(path.name for path in project.iterdir())}:
            (project / name).unlink(missing_ok=True)
        for name, data in kept.items():
            (project / name).write_bytes(data)
        history = History(project, folder)
        writes.recover(history)
        keys = [row["turn"] for row in history.rows()]
        counted["damaged turns"] += history.damaged
        assert len(keys) + history.damaged == len([*history.path.glob("*.json")])
        for key in keys:
            wire("edit.turned", {"id": 1, "turns": history.rows(), "undo": history.undo_key(),
                                 "redo": history.redo_key()})  # fmt: skip
            with reported(counted):
                to_wire(history.open_files(key))
            with reported(counted):
                undo.resume(history, key)
            for do in ACTIONS:
                with reported(counted):
                    found = undo.revert(history, key, do, [])
                    counted["not reverted"] += len(found.problems)
        for path in project.iterdir():
            assert path.read_bytes() in possible[path.name], path.name
        for name in kept:
            assert (project / name).exists() or None in possible[name], name
        with reported(counted):
            writes.write([change := edited(project / "b.py", 5, "new")], history,
                         history.begin("t", [change]))  # fmt: skip
        assert b"new\n" in (project / "b.py").read_bytes()

    assert len(names) == 4
    counted = spoil(tmp_path, pristine, (150, 2500), use)
    assert counted["damaged turns"] > 20


# Runs.

RUN = {
    "policy": "auto", "root": "/r", "task": "the task", "context": "c", "model": "m",
    "dialect": "native", "sandbox": "none", "note": "",
}  # fmt: skip


def make_run(root: Path, folder: Path) -> None:
    """Keep a run of some steps."""
    path = runs.create(root, folder)
    log, talk = RunLog(path), {"ids": [1, 2], "text": "t"}
    log.start(key=path.name, **RUN)
    log.write_talk(talk)
    for number in range(1, 4):
        log.write("said", text=f"said {number}")
        new = {**talk, "ids": [*range(5 * number)]}
        log.write(
            "answer", text=f"answer {number}", problem="", finish="stop", seconds=0.5,
            calls=[{"tool": "bash", "arguments": {"command": "ls"}}], cached_share=0.25,
            usage={"read_tokens": 9}, talk=difference(log.state.talk, new),
        )  # fmt: skip
        log.write("asked", step=number, why="because")
        log.write("decided", step=number, choice="once", decision="allow", reason="",
                  arguments={"command": "ls -l"})  # fmt: skip
        log.write("begin", step=number, tree=f"tree {number}")
        seen = {"text": f"output {number}", "is_error": False, "status": 0,
                "shown": [{"path": "a.py", "first_row": 1, "last_row": 4}]}  # fmt: skip
        log.write("end", step=number, tree="t", digest="d", seconds=1.0, observation=seen)
        log.write_talk({**new, "text": "more text"}, is_read=True, said=1)
    log.write("plan", step=1, text="plan", policy="auto")
    log.write("done", state="done", message="it is done", turn="", is_checked=True, paths=["a.py"])
    log.write("resume", sandbox="none")


def test_damaged_records_of_runs_are_reported(tmp_path: Path) -> None:
    root, pristine = tmp_path / "project", tmp_path / "kept"
    make_run(root, pristine)
    (path,) = pristine.glob("*/*/run.jsonl")
    key, lines = path.parent.name, path.read_bytes().splitlines()

    def use(folder: Path, counted: Counter[str]) -> None:
        (damaged,) = folder.glob("*/*/run.jsonl")
        left = damaged.read_bytes().splitlines()
        (row,) = runs.rows(root, folder)
        wire("agent.listed", {"id": 1, "runs": [row]})
        assert row["run"] == key
        assert runs.find(root, "last", folder) == damaged.parent
        is_over = False
        with reported(counted):
            log = RunLog.open(damaged.parent)
            state = log.state
            counted["damaged lines"] += log.damaged
            assert bool(log.damaged) == ("were skipped" in state.note)
            for step in state.steps:
                wire("agent.step", {"id": 1, **step_row(step, step.shown_state)})
            assert (state.gate, state.tokens >= 0) is not None
            whole = [stored.decode_line(line) for line in left if line in lines]
            said = [row["text"] for row in whole if row["op"] == "said"]
            assert Counter(said) <= Counter(state.said)
            log.write("said", text="more")
            again = RunLog.open(damaged.parent).state
            assert again.said[-1] == "more"
            is_over = again.is_over
        then = time.time() - 8 * 86_400
        os.utime(damaged, (then, then))
        runs.delete_old(folder)
        assert damaged.exists() != is_over

    counted = spoil(tmp_path, pristine, (200, 2500), use)
    assert counted["damaged lines"] > 50
    assert counted["reported"] > 5


# Chats.


def make_chat(folder: Path) -> None:
    """Keep a chat with all operations, and a branch."""
    make.make_chat(folder)
    archive = Archive(folder / "chats")
    chat = ChatFile.open(archive.find(make.CHAT_KEY))
    attachment = {"kind": "file", "name": "a.py", "path": "/a.py", "first_row": 0, "text": "x",
                  "is_offered": False}  # fmt: skip
    for op in (
        {"op": "say", "number": 6, "parent": 2, "text": "Another branch"},
        {"op": "attach", "number": 6, "sent": "s", "items": [], "attachments": [attachment]},
        {"op": "answer", "number": 7, "parent": 6, "model": "m"},
        {"op": "more", "number": 7, "text": "The other answer"},
        {"op": "show", "number": 4},
        {"op": "model", "model": "other"},
        {"op": "expand", "number": 5},
    ):
        chat.change(lambda _, op=op: [op])  # type: ignore[misc]
    chat.close()


def test_damaged_chats_are_reported(tmp_path: Path) -> None:
    pristine = tmp_path / "kept"
    make_chat(pristine)
    (path,) = pristine.glob("chats/*/*.jsonl")
    lines = path.read_bytes().splitlines()
    texts = {line: stored.decode_line(line).get("text", "") for line in lines}

    def use(folder: Path, counted: Counter[str]) -> None:
        archive = Archive(folder / "chats")
        (damaged,) = folder.glob("chats/*/*.jsonl")
        left = damaged.read_bytes().splitlines()
        rows, note = archive.rows()
        for row in rows:
            wire("chat.listed", {"id": 1, "chats": [row], "note": note})
        with reported(counted):
            file = ChatFile.open(damaged)
            chat = file.chat
            counted["with a note"] += bool(file.note)
            for number in (*chat.messages, 0):
                chat.branch(number)
                chat.question_of(number)
            wire("chat.opened", dict(views.opened_message(chat, 1, ["m"], 0)))
            views.markdown(chat)
            shown = [each.text for each in chat.messages.values()]
            for line in left:
                if line in lines and b'"op":"sum"' not in line:
                    assert not texts[line] or any(texts[line] in each for each in shown), line
            file.change(lambda it: [{"op": "say", "number": it.next_number, "parent": it.last,
                                     "text": "more"}])  # fmt: skip
            assert ChatFile.open(damaged).chat.branch()[-1].text == "more"
            return
        assert "cannot be read" in note or not rows

    counted = spoil(tmp_path, pristine, (200, 2500), use)
    assert counted["with a note"] > 50


# Caches.


def test_damaged_kv_states_are_not_loaded(tmp_path: Path) -> None:
    pristine = tmp_path / "kept"
    shadow = KVShadow([1, 2, 3], True, (4, 5), 28, 2)
    saved = SavedSlot(shadow, (File("b.py", "def b(): ...\n"),), random.Random(0).randbytes(900))
    assert KVDiskCache(pristine / "kv", "model 1").save("/r", "a.py", saved)
    server = ServerFolder(pristine / "server")
    make.make_server_state(pristine)
    server.create()
    for name in ("done.kv", "open.kv.part"):
        (server.slots_path / name).write_bytes(bytes(100))

    def use(folder: Path, counted: Counter[str]) -> None:
        cache = KVDiskCache(folder / "kv", "model 1")
        path = cache.path("/r", "a.py")
        found = cache.load("/r", "a.py")
        if found is None:
            counted["not used"] += 1
            assert not path.exists()
            assert cache.save("/r", "a.py", saved)
            found = cache.load("/r", "a.py")
        assert found is not None
        assert (found.shadow, found.files, bytes(found.state)) == (shadow, saved.files, saved.state)
        state = ServerFolder(folder / "server").last()
        counted["no server"] += state is None
        if state is not None:
            assert {type(each) for each in (state.url, state.model, state.engine)} == {str}
            assert {type(each) for each in (state.pid, state.context_tokens)} == {int}
        place = ServerFolder(folder / "server").slots_path
        slots.finish_stale(place, 0.0)
        slots.forget_old(place, 150)
        slots.forget_parts(place)

    counted = spoil(tmp_path, pristine, (100, 1500), use)
    assert counted["not used"] > 10
    assert counted["no server"] > 10


def test_a_damaged_index_is_rebuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pristine, root = tmp_path / "kept", tmp_path / "project"
    monkeypatch.setenv("LCURSOR_DATA", str(tmp_path / "damaged"))
    store = Store(pristine / "store")
    store.put_many(
        entry(f"d/{number}.py", f"alpha word{number} " * 9, "beta\n" * 90) for number in range(20)
    )
    vectors = VectorStore(pristine / "vectors", "e")
    vectors.put(pairs(*range(30)))
    for each in (store, vectors):
        each.close()
    begun = pristine / roots.begun_path(root).relative_to(tmp_path / "damaged")
    begun.parent.mkdir(parents=True)
    begun.write_text(json.dumps({secrets.KEY: ["*.hidden"]}))

    def use(folder: Path, counted: Counter[str]) -> None:
        secrets.load(root).reason("x.hidden")
        with reported(counted):
            opened = Store(folder / "store")
            try:
                counted["rebuilt"] += bool(opened.remarks)
                for _ in range(2):  # the first one may find the damage
                    with reported(counted):
                        query(opened)
                    with reported(counted):
                        opened.put(*entry("d/3.py", "changed"))
                    with reported(counted):
                        opened.remove(["d/4.py"])
            finally:
                opened.close()
        cache = VectorStore(folder / "vectors", "e")
        found = cache.get([digest for digest, _ in pairs(*range(30))])
        assert all(one.dtype == np.float16 for one in found.values())
        cache.put(pairs(40))
        counted["remarks"] += len(cache.remarks)
        cache.close()

    counted = spoil(tmp_path, pristine, (80, 1000), use)
    assert counted["rebuilt"] + counted["reported"] > 10


def query(store: Store) -> None:
    """Ask an index everything."""
    reader = store.reader()
    try:
        hits = reader.lexical(words.terms("alpha beta"), 50)
        reader.chunks([number for number, _ in hits])
        reader.origins([number for number, _ in hits])
        reader.counts()
        reader.files()
        reader.chunk_ids()
        reader.digests(range(50))
        reader.chunks_at("d/3.py", 2)
        reader.symbols_in("d/3.py")
        searcher = Searcher(reader)
        searcher.search("alpha word3")
    finally:
        reader.close()
