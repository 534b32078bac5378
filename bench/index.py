"""`bench index`: the time until a project can be searched, of queries and of changes.

Runs the real worker on a copy of the project, with empty data and cache folders, and queries it as
an editor would, over its socket.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any
from unittest import mock

import typer

from bench.index_project import Copy, rare_word
from bench.report import Json, Report, measuring, ms_since, wait
from lcursor.catalog import store
from lcursor.errors import LcursorError
from lcursor.index.client import Client
from lcursor.index.records import Mode

QUERIES = 200
SAVES = 20
STEP_S = 0.02
"""Between two looks for a change; the worker pauses for queries, so not less."""
LOOK_S = 0.1
"""The same for what takes seconds: each look is a query, for which the worker pauses."""
PAUSE_S = 0.05
"""Between two queries while the worker indexes, as in an editor."""
GROWTH_S = 0.5
"""Between two looks at how much is indexed and how large the index is."""
MAX_READ_S = 1800.0
SWITCH_S = 120.0
QUIET_S = 3.0
PROMISED_BYTES, PROMISED_S = 32_000_000, 60.0


def command(
    path: Annotated[
        Path | None, typer.Argument(help="A project; default: Python's standard library.")
    ] = None,
    embed_s: Annotated[
        float, typer.Option(min=0, help="Seconds of embedding; 0: lexical search only.")
    ] = 60,
    embedder: Annotated[str, typer.Option(help="A name of `models list`.")] = "",
    seed: Annotated[int, typer.Option(help="Seed for the choice of queries.")] = 1,
    as_json: Json = False,
) -> None:
    """Index a copy of a project and measure reading, queries, saves, a branch switch and memory.

    Exits with 1 when a promise is not kept.
    """
    source = (path or Path(os.__file__).parent).resolve()
    report = Report()
    with (
        tempfile.TemporaryDirectory(prefix="lcx", ignore_cleanup_errors=True) as folder,
        _own_folders(Path(folder)),
    ):
        measuring("copying the project")
        copy = Copy(source, Path(folder) / "project")
        with Client(copy.root, embedder=embedder if embed_s else "none") as client:
            try:
                _Run(copy, client, report, seed, Path(folder)).all(embed_s)
            finally:
                pid = client.call("status")["pid"]
                client.call("stop")
                # It writes until it ends, in folders that are deleted now.
                wait(lambda: not Path(f"/proc/{pid}").exists(), QUIET_S * 3)
    project = ", ".join(f"{name} {value}" for name, value in report.facts["project"].items())
    report.finish(as_json, f"Project: {project}")


@contextmanager
def _own_folders(folder: Path) -> Iterator[None]:
    """Set the environment so that workers keep everything but the models in a folder."""
    own = {
        "LCURSOR_MODELS": str(store.models_dir()),
        "LCURSOR_DATA": str(folder / "data"),
        "XDG_DATA_HOME": str(folder / "data"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "XDG_RUNTIME_DIR": str(folder),
    }
    with mock.patch.dict(os.environ, own):
        yield


class _Run:
    """One run of the bench.

    Args:
        folder: holds the project's copy, and beside it everything that the worker writes.
    """

    def __init__(self, copy: Copy, client: Client, report: Report, seed: int, folder: Path) -> None:
        self._copy, self._client, self._report = copy, client, report
        self._stored = (folder / "data", folder / "cache")
        self._names, self._sentences = copy.queries(QUERIES, seed)
        self._asked = 0
        self._pid = 0
        self._peak_seen_mb = 0.0

    def all(self, embed_s: float) -> None:
        """Measure everything, in order."""
        self._pid = self._client.call("status")["pid"]
        self._read()
        if embed_s:
            self._embed(embed_s)
        measuring("queries, while nothing else is done")
        modes: list[Mode] = ["lexical", "hybrid"] if self._state()["embedded"] else ["lexical"]
        for mode in modes:
            samples = [self._ask(mode, is_quiet=True) for _ in range(QUERIES)]
            limit = 15 if mode == "lexical" else 40
            self._report.add(f"query, {mode}, idle", samples, limit=limit)
        self._save()
        self._switch()
        self._report.add("peak memory of the worker", [self._peak_mb()], limit=400, unit="MB")

    def _state(self) -> dict[str, Any]:
        return self._client.call("status")

    def _ask(self, mode: Mode, is_quiet: bool = False) -> float:
        """Ask the next query; return the milliseconds until its answer."""
        if is_quiet:
            self._client.notify("typing")  # the worker pauses
        self._asked += 1
        queries = self._names if self._asked % 2 else self._sentences
        text = queries[self._asked // 2 % len(queries)]
        began_s = time.perf_counter()
        self._client.call("search", text=text, limit=20, mode=mode)
        return ms_since(began_s)

    def _read(self) -> None:
        measuring("reading the project")
        began_s = time.perf_counter()
        self._client.call("begin")
        first_s, samples = 0.0, list[float]()
        growth: list[tuple[int, float, int]] = [(0, 0.0, self._stored_bytes())]
        while True:
            sample = self._ask("lexical")
            if first_s:
                samples.append(sample)
            elif self._client.call("search", text="a", limit=1, mode="lexical")["hits"]:
                first_s = time.perf_counter() - began_s
            state = self._state()
            if state["phase"] == "failed":
                raise LcursorError(f"the index failed: {state['detail']}")
            spent_s = time.perf_counter() - began_s
            self._peak_seen_mb = max(self._peak_seen_mb, self._memory_mb())
            is_read = state["phase"] in {"embedding", "ready"}
            if spent_s > growth[-1][1] + GROWTH_S or is_read:
                growth.append((state["files"], round(spent_s, 2), self._stored_bytes()))
            if is_read and first_s:
                break
            if spent_s > MAX_READ_S:
                raise LcursorError(f"not read after {spent_s:.0f} s: {state['phase']}")
            time.sleep(PAUSE_S if first_s else STEP_S)
        copy, add = self._copy, self._report.add
        self._report.facts["growth"] = growth
        self._report.facts["project"] = {
            "files": f"{state['files']:,} of {len(copy.names):,}",
            "bytes": f"{copy.bytes:,}",
            "chunks": f"{state['chunks']:,}",
            "symbols": f"{state['symbols']:,}",
            "files/s": f"{state['files'] / spent_s:.1f}",
            "chunks/s by words": f"{state['chunks'] / spent_s:.1f}",
        }
        promised_s = PROMISED_S if copy.bytes <= PROMISED_BYTES else None
        add("first answer after the start", [first_s], limit=1, unit="s")
        add("all is found by words", [spent_s], limit=promised_s, unit="s")
        if samples:
            add("query, lexical, while reading", samples, limit=30)

    def _embed(self, embed_s: float) -> None:
        state = self._state()
        if not state["embedder"] and state["embedder_note"]:
            self._report.facts["project"]["vectors"] = "none: " + state["embedder_note"]
            return
        measuring("making vectors")
        deadline_s = time.perf_counter() + embed_s
        while not state["embedded"] and state["phase"] != "ready" and self._is_before(deadline_s):
            time.sleep(PAUSE_S)  # the model is being loaded
            state = self._state()
        began_s, began = time.perf_counter(), state["embedded"]
        while state["phase"] != "ready" and self._is_before(deadline_s - embed_s / 3):
            time.sleep(PAUSE_S * 4)
            state = self._state()
        spent_s, made = time.perf_counter() - began_s, state["embedded"] - began
        samples = list[float]()
        while state["phase"] != "ready" and self._is_before(deadline_s):
            samples.append(self._ask("hybrid"))
            time.sleep(PAUSE_S * 4)
            state = self._state()
        facts = self._report.facts["project"]
        facts["vectors"] = f"{state['embedded']:,} of {state['chunks']:,}, {state['embedder']}"
        facts["chunks/s with vectors"] = f"{made / max(spent_s, PAUSE_S):.1f}"
        if samples:
            self._report.add("query, hybrid, while making vectors", samples, limit=80)

    @staticmethod
    def _is_before(deadline_s: float) -> bool:
        return time.perf_counter() < deadline_s

    def _save(self) -> None:
        measuring("saves")
        samples = list[float]()
        for number in range(SAVES):
            name = self._copy.names[number * len(self._copy.names) // SAVES]
            word = rare_word("save", number)
            with (self._copy.root / name).open("a", errors="replace") as file:
                file.write(f"\n# {word}\n")
            began_s = time.perf_counter()
            self._wait_for(word)
            samples.append(ms_since(began_s))
            time.sleep(0.3)
        self._report.add("from a save to an answer that has it", samples, limit=500)
        self._copy.settle()

    def _switch(self) -> None:
        copy, add = self._copy, self._report.add
        measuring("branches")
        words = copy.branch()
        self._settle()
        before = self._missing()
        for branch, name in (("two", "to new text"), ("one", "back")):
            began_s = time.perf_counter()
            copy.switch(branch)
            for word in words:
                if branch == "two":
                    self._wait_for(word, LOOK_S)
                else:
                    self._wait_gone(word, LOOK_S)
            spent_s = time.perf_counter() - began_s
            files = f"{copy.branch_files:,} files"
            add(f"branch switch {name}, {files}", [spent_s], limit=15, unit="s")
        again = self._missing() - before if before >= 0 else 0
        add("chunks without a vector more than before", [max(again, 0)], limit=0, unit="")

    def _settle(self) -> None:
        """Wait until nothing has been read for a while."""
        last, since_s = None, time.perf_counter()

        def is_settled() -> bool:
            nonlocal last, since_s
            state = self._state()
            seen = (state["files"], state["chunks"], state["phase"] in {"surveying", "reading"})
            if seen != last or seen[2]:
                last, since_s = seen, time.perf_counter()
            return time.perf_counter() - since_s > QUIET_S

        self._wait(is_settled, "reading did not end")

    def _missing(self) -> int:
        state = self._state()
        return int(state["chunks"] - state["embedded"]) if state["embedder"] else 0

    def _has(self, word: str) -> bool:
        hits = self._client.call("search", text=word, limit=5, mode="lexical")["hits"]
        return any(word in hit["text"] for hit in hits)

    def _wait_for(self, word: str, step_s: float = STEP_S) -> None:
        self._wait(lambda: self._has(word), f"{word} was not found", step_s)

    def _wait_gone(self, word: str, step_s: float) -> None:
        self._wait(lambda: not self._has(word), f"{word} did not go", step_s)

    def _wait(self, is_so: Callable[[], bool], otherwise: str, step_s: float = STEP_S) -> None:
        if not wait(is_so, SWITCH_S, step_s):
            raise LcursorError(f"{otherwise} within {SWITCH_S:.0f} s")

    def _memory_mb(self) -> float:
        """Return the memory of the worker and its child processes; shared memory counts once."""
        pids = {self._pid}
        for children in Path(f"/proc/{self._pid}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                pids.update(map(int, children.read_text().split()))
        return sum(_resident_mb(pid, "smaps_rollup", "Pss") for pid in pids)

    def _stored_bytes(self) -> int:
        """Return the size of the files that the worker has written."""
        sizes = list[int]()
        for path in (path for folder in self._stored for path in folder.rglob("*")):
            with contextlib.suppress(OSError):
                sizes.append(path.stat().st_size)
        return sum(sizes)

    def _peak_mb(self) -> float:
        own = _resident_mb(self._pid, "status", "VmHWM") or self._state()["memory_bytes"] / 1e6
        return max(own, self._peak_seen_mb)


def _resident_mb(pid: int, file: str, field: str) -> float:
    """Return a field of a process's memory statistics; 0 if unknown."""
    try:
        found = re.search(rf"^{field}:\s+(\d+) kB", Path(f"/proc/{pid}/{file}").read_text(), re.M)
    except OSError:
        return 0.0
    return int(found[1]) * 1024 / 1e6 if found else 0.0
