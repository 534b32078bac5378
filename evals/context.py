"""`eval context`: complete calls of what another file defines, with other files and without.

Runs the engine in this process and on this thread. The context is filled as the editor fills it:
either by visits to the definition, or by an index of the repository.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from bench.report import Json, emit, head, percent, run_facts, table
from evals import fim
from evals.calls import KINDS, Call, Kind, Module, choose, read
from evals.corpus import ROOT
from evals.indexing import temporary_index
from evals.rates import first_line, margin
from evals.run import Cases, Model, collect
from lcursor.code.headers import header_lines
from lcursor.fim.context_ring import AROUND_LINES, Chunk, ContextRing, Found, Query
from lcursor.fim.engine import Engine
from lcursor.fim.prompt import File, Source
from lcursor.host.retriever import MAX_CHARS, chunks
from lcursor.index import chunk
from lcursor.index.records import FileState
from lcursor.index.retrieve import find_around
from lcursor.index.search import Searcher

FilesOf = Callable[[Call, int, Callable[[str], int]], tuple[File, ...]]
"""Return the files to show for a call, given a token limit and a token counter."""
MAX_IMPORTS = 8
"""Imported files whose headers the editor sends."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The completions of one call without other files and with them."""

    kind: Kind
    path: str
    callee: str
    rest: str
    without: str
    with_files: str
    without_exact: bool
    with_exact: bool
    without_word: bool
    """The first word is right: the rest of the callee's name, or of the first argument."""
    with_word: bool
    has_callee: bool
    """Whether the files shown have the name of the callee."""
    read_tokens: int
    """Prompt tokens that were evaluated with the files."""


def command(
    folder: Annotated[
        Path | None, typer.Argument(help="A Python package; default: lcursor.")
    ] = None,
    n: Annotated[int, typer.Option("--n", min=1, help="Number of cuts of each kind.")] = 50,
    files_tokens: Annotated[
        int, typer.Option(min=-1, help="Limit for the tokens of other files; -1: the default.")
    ] = -1,
    by: Annotated[
        Literal["visits", "index"],
        typer.Option(help="How files are chosen: by visits to the definition, or by the index."),
    ] = "visits",
    model: Model = "",
    seed: Annotated[int, typer.Option(help="Seed for the choice of calls.")] = 1,
    cases: Cases = None,
    as_json: Json = False,
) -> None:
    """Complete calls of what another file defines, with other files in the prompt and without.

    The rest of the line is removed, from inside the callee's name or from after its bracket. The
    files are those of a user who has visited the definition: that, and the headers of the imported
    files; or those that an index of the package finds.
    """
    where = (folder or ROOT / "lcursor").resolve()
    modules = read(where)
    chosen = [call for kind in KINDS for call in choose(modules, kind, n, seed)]
    if not chosen:
        raise typer.BadParameter(f"no file in {where} calls what another one defines")
    facts = run_facts(repository=where.name, seed=seed)
    engine = fim.load(model)
    try:
        facts["model"] = f"{engine.model.path.name} ({engine.model.description})"
        tokens = files_tokens if files_tokens >= 0 else engine.reader.files_tokens
        facts["files_tokens"] = tokens
        with indexed(modules) if by == "index" else nullcontext() as files_of:
            results = pairs(engine, modules, chosen, where.name, tokens, files_of)
            found = collect(results, len(chosen), _describe, cases)
    finally:
        engine.close()
    document = as_dict(found, facts)
    emit(document, as_markdown(document), as_json)


def pairs(
    engine: Engine,
    modules: Mapping[str, Module],
    calls: Sequence[Call],
    repo: str,
    tokens: int,
    files_of: FilesOf | None = None,
) -> Iterator[Pair]:
    """Complete each call twice: without other files, then with them.

    Args:
        engine: completes.
        modules: the repository.
        calls: where to complete.
        repo: name of the repository in the prompt.
        tokens: limit for the other files.
        files_of: chooses the other files; `visited_files` by default.
    """
    chosen = files_of or partial(visited_files, modules)
    for call in calls:
        engine.reader.files, engine.reader.files_tokens = (), 0
        plain, _ = _text(engine, call, repo)
        engine.reader.files_tokens = tokens
        engine.reader.files = chosen(call, tokens, lambda text: len(engine.model.tokenize(text)))
        text, read_tokens = _text(engine, call, repo)
        yield Pair(
            kind=call.kind,
            path=call.path,
            callee=call.callee,
            rest=call.rest,
            without=plain,
            with_files=text,
            without_exact=_is_exact(plain, call),
            with_exact=_is_exact(text, call),
            without_word=_first_word(plain) == _first_word(call.rest),
            with_word=_first_word(text) == _first_word(call.rest),
            has_callee=any(f" {call.callee}" in file.text for file in engine.reader.files),
            read_tokens=read_tokens,
        )


def visited_files(
    modules: Mapping[str, Module], call: Call, tokens: int, count: Callable[[str], int]
) -> tuple[File, ...]:
    """Return the files of a user who visited the definition before the call."""
    ring = ContextRing()
    ring.add(_visited(modules[call.defined_in], call.callee))
    for path, symbols in list(modules[call.path].imports.items())[:MAX_IMPORTS]:
        ring.add(Chunk(path, 0, header_lines(path, modules[path].text, symbols), "import"))
    while ring.admit():
        pass
    return ring.layout(Query(call.path, call.prefix, call.suffix), tokens, count)


def _visited(module: Module, name: str) -> Chunk:
    """Return the chunk that the editor sends when the cursor is at a definition."""
    lines = module.text.split("\n")
    first = max(0, module.rows[name] - AROUND_LINES)
    text = "\n".join(lines[first : first + 2 * AROUND_LINES])
    return Chunk(module.path, first, text, "visited")


def _text(engine: Engine, call: Call, repo: str) -> tuple[str, int]:
    source = Source(call.prefix, call.suffix, 0, call.path, repo)
    result = engine.complete(source, lambda text: None, single_line=True, bypass_cache=True)
    return result.text, result.read_tokens


def _first_word(text: str) -> str:
    match = re.match(r"\W*\w+", text)
    return match[0].lstrip() if match else ""


def _is_exact(text: str, call: Call) -> bool:
    return bool(text) and first_line(text) == first_line(call.rest)


@contextmanager
def indexed(modules: Mapping[str, Module]) -> Iterator[FilesOf]:
    """Index a repository and yield a function that chooses files by lexical search in it."""
    state = FileState(0, 0, b"")
    files = ((path, state, chunk.read(path, module.text)) for path, module in modules.items())
    with temporary_index(files) as searcher:

        def files_of(call: Call, tokens: int, count: Callable[[str], int]) -> tuple[File, ...]:
            query = Query(call.path, call.prefix, call.suffix)
            ring = ContextRing(_Index(searcher))
            ring.retrieve(query)
            ring.admit()
            return ring.layout(query, tokens, count)

        yield files_of


class _Index:
    """A retriever that answers at once; that of the host answers later."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher

    def ask(self, query: Query, found: Found) -> None:
        """Find chunks for a position."""
        before, after = query.prefix[-MAX_CHARS:], query.suffix[:MAX_CHARS]
        hits = find_around(self._searcher, query.path, before, after)
        found(chunks("/", Path("/"), [asdict(hit) for hit in hits]))


def _describe(found: Sequence[Pair]) -> str:
    without = sum(pair.without_exact for pair in found) / len(found)
    with_files = sum(pair.with_exact for pair in found) / len(found)
    return f"{found[-1].kind}, exact without {percent(without)}, with {percent(with_files)}"


def as_dict(found: Sequence[Pair], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the report as JSON."""
    groups = {kind: [pair for pair in found if pair.kind == kind] for kind in KINDS}
    rows = {str(name): _row(group) for name, group in groups.items() if group}
    if len(rows) > 1:
        rows["all"] = _row(found)
    return {**facts, "cuts": rows}


def _row(found: Sequence[Pair]) -> dict[str, Any]:
    count = len(found)
    row: dict[str, Any] = {"cuts": count}
    for name in ("without_exact", "with_exact", "without_word", "with_word"):
        share = sum(getattr(pair, name) for pair in found) / count
        row |= {name: share, f"{name}_margin": margin(share, count)}
    return {
        **row,
        "gained": sum(pair.with_exact and not pair.without_exact for pair in found),
        "lost": sum(pair.without_exact and not pair.with_exact for pair in found),
        "has_callee": sum(pair.has_callee for pair in found) / count,
    }


def as_markdown(document: Mapping[str, Any]) -> list[str]:
    """Return the lines of the report."""
    title = (
        f"Model: {document['model']}; repository {document['repository']}, "
        f"{document['files_tokens']} tokens of other files, seed {document['seed']}"
    )
    rows = []
    for name, row in document["cuts"].items():
        shares = {
            each: f"{percent(row[each])} ± {100 * row[f'{each}_margin']:.0f}"
            for each in ("without_exact", "with_exact", "without_word", "with_word")
        }
        exact, words = shares["without_exact"], shares["without_word"]
        rows.append(
            (name, row["cuts"], exact, shares["with_exact"], row["gained"], row["lost"])
            + (words, shares["with_word"], percent(row["has_callee"]))
        )
    columns = ["cut", "n:", "exact without:", "exact with:", "gained:", "lost:"]
    columns += ["first word without:", "with:", "callee shown:"]
    return [*head(document, title), *table(columns, rows)]
