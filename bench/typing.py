"""`bench typing`: the time from a key to the suggestion, at the ends of real lines.

`typing_run.py` types, `trials.py` computes times, `typing_report.py` makes the tables.
"""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import time
from asyncio import base_events
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from bench.index_project import Copy
from bench.peer import Lcursor, LlamaVim, Typist
from bench.report import Json, emit, progress, reporting_timeouts, run_facts, wait
from bench.trials import pick_spots, read_lines, spread
from bench.typing_report import Results, as_dict, as_markdown
from bench.typing_run import Plan, default_files, measure
from lcursor.cli.editor import find_neovim
from lcursor.drive.editor import Editor
from lcursor.errors import LcursorError

INDEXING = frozenset({"surveying", "reading", "embedding", "paused"})
BEGIN_INDEX = "require('lcursor.index').start() require('lcursor.index.report').start(...)"
INDEX_STATE = """
for _, state in ipairs(require("lcursor.index").states()) do
  if state.root == ... then
    return { state.phase, state.pid }
  end
end
return { "", 0 }
"""
BEGUN_S = 30.0


def command(
    context: typer.Context,
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Files to type into; default: two of CPython and one of Neovim."),
    ] = None,
    positions: Annotated[
        int, typer.Option(min=1, help="Number of line ends to type, over all files.")
    ] = 24,
    seed: Annotated[int, typer.Option(help="Seed for the choice of lines.")] = 1,
    warm: Annotated[
        bool, typer.Option(help="Type six keys with the text around the cursor evaluated.")
    ] = True,
    cold: Annotated[
        bool, typer.Option(help="Type three keys right after a jump of 60 rows or more.")
    ] = False,
    rested: Annotated[
        bool, typer.Option(help="Type three keys after a jump and 3 s in Normal mode.")
    ] = False,
    gate_off: Annotated[
        bool, typer.Option(help="Ask again at each warm position with the confidence gate off.")
    ] = True,
    pace_ms: Annotated[
        float, typer.Option(min=20, help="Time between two keys in the warm run.")
    ] = 120,
    model: Annotated[str, typer.Option(help="A name of `models list`, or a path.")] = "",
    peer: Annotated[
        str,
        typer.Option(metavar="llama.vim=DIR", help="Also type into this checkout of llama.vim."),
    ] = "",
    server: Annotated[
        str, typer.Option(metavar="URL", help="The llama-server for llama.vim.")
    ] = "http://127.0.0.1:8012",
    indexing: Annotated[
        bool,
        typer.Option(help="Repeat it while the standard library is being indexed."),
    ] = False,
    limit_minutes: Annotated[
        float, typer.Option(min=0, help="Start no further file after this time; 0: no limit.")
    ] = 0,
    as_json: Json = False,
) -> None:
    """Type the ends of real lines and time each key to its first valid suggestion.

    Each file is opened again for each run. The warm run visits its lines from top to bottom, the
    cold and the rested one jump about. A cold time goes from the last key to the first suggestion
    that is only extended until it is complete and one second has passed.
    """
    if not (warm or cold or rested):
        raise typer.BadParameter("nothing is left to do", param_hint="--no-warm")
    typists: dict[str, Typist] = {"lcursor": Lcursor(model)}
    if peer:
        name, _, folder = peer.partition("=")
        if name != "llama.vim" or not folder:
            raise typer.BadParameter("expected llama.vim=DIR", param_hint="--peer")
        typists[name] = LlamaVim(Path(folder), server)
    if indexing:
        typists["while indexing"] = context.with_resource(_while_indexing(model))
    neovim = find_neovim()
    sources = files or default_files(neovim)
    names = [f"{path.resolve().parent.name}/{path.name}" for path in sources]
    spots = [
        pick_spots(read_lines(path), count, seed, name)
        for path, name, count in zip(sources, names, spread(positions, len(sources)), strict=True)
    ]
    plan = Plan(warm, cold, rested, gate_off, pace_ms)
    results = {name: Results() for name in typists}
    facts = run_facts(file=", ".join(names), seed=seed, pace_ms=pace_ms)
    began_s = time.monotonic()
    for path, chosen in zip(sources, spots, strict=True):
        if not chosen:
            continue
        with reporting_timeouts():
            measure(typists, neovim, path, chosen, plan, results)
        if limit_minutes and time.monotonic() - began_s > 60 * limit_minutes:
            progress(f"time is up after {path.name}")
            break
    emit(as_dict(results, facts), as_markdown(results, facts), as_json)


class _WhileIndexing(Lcursor):
    """lcursor right after it was told to index a project."""

    def __init__(self, model: str, project: Copy) -> None:
        super().__init__(model)
        self._project, self._pid = project, 0

    def begin(self, editor: Editor) -> str:
        """Also start indexing, and wait until it runs; end the worker of an earlier editor."""
        self.end_worker()
        model = super().begin(editor)
        editor.lua(BEGIN_INDEX, str(self._project.root / self._project.names[0]))
        if not wait(lambda: self._phase(editor) in INDEXING, BEGUN_S, 0.1):
            raise LcursorError(f"indexing did not start within {BEGUN_S:.0f} s", "See :LCursor log")
        return model

    def drain(self, editor: Editor) -> None:
        """Wait for the last answers, and check that indexing is still running."""
        super().drain(editor)
        if self._phase(editor) not in INDEXING:
            raise LcursorError("indexing ended before the typing did", "Name a larger project")

    def end_worker(self) -> None:
        """End the worker of the last editor."""
        if self._pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGTERM)
        self._pid = 0

    def _phase(self, editor: Editor) -> str:
        phase, self._pid = editor.lua(INDEX_STATE, str(self._project.root))
        return str(phase)


@contextmanager
def _while_indexing(model: str) -> Iterator[Lcursor]:
    """Copy the standard library, and yield an lcursor that indexes the copy."""
    with tempfile.TemporaryDirectory(prefix="lcursor-bench-", ignore_cleanup_errors=True) as folder:
        project = Copy(Path(base_events.__file__).parents[1], Path(folder) / "indexed")
        typist = _WhileIndexing(model, project)
        try:
            yield typist
        finally:
            typist.end_worker()
