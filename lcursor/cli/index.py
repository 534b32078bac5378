"""`python -m lcursor index` and `search`: the index of a project from outside the editor.

The project's worker does the work and continues after this command has ended. Only prints.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lcursor.cli.terminal import safe

if TYPE_CHECKING:
    from lcursor.index.client import Client
    from lcursor.index.report import Report

EVENT_S = 1.0
SNIPPET_LINES = 4
PHASES = {
    "surveying": "scanning files",
    "reading": "files",
    "embedding": "vectors",
    "paused": "resting",
}
Json = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]


def index(
    path: Annotated[
        Path | None,
        typer.Argument(help="A file or folder of the project; default: the current folder."),
    ] = None,
    report: Annotated[
        bool, typer.Option("--report", help="Only report what would be read.")
    ] = False,
    why: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Only explain why this file is left out.")
    ] = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Delete the index first.")] = False,
    words: Annotated[
        bool, typer.Option("--words", help="Do not wait for semantic search.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Index even a home directory.")] = False,
    secret: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="Never index these files, now and later. Repeatable."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Index a project and show the progress. Indexed files can be searched at once.

    The worker continues after an interrupt, and the index stays.
    """
    from lcursor.project.root import root_of

    root = root_of((path or why or Path.cwd()).absolute())
    globs = secret or []
    if report:
        _print_report(root, globs, as_json)
    elif why is not None:
        _explain(root, why.absolute(), globs, as_json)
    else:
        _index(root, globs, rebuild=rebuild, words=words, yes=yes, as_json=as_json)


def search(
    query: Annotated[
        list[str],
        typer.Argument(help="Words, or @ and a name; path:, lang: and kind: narrow the search."),
    ],
    path: Annotated[
        Path | None,
        typer.Option(help="A file or folder of the project; default: the current folder."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of results.")] = 10,
    mode: Annotated[str, typer.Option(help="lexical, vector or hybrid.")] = "hybrid",
    as_json: Json = False,
) -> None:
    """Search an indexed project."""
    from typing import get_args

    from lcursor.errors import IndexRejected
    from lcursor.index.client import Client
    from lcursor.index.records import Mode
    from lcursor.project.root import is_begun, root_of

    if mode not in get_args(Mode):
        raise typer.BadParameter(f"expected one of {', '.join(get_args(Mode))}", param_hint="mode")
    root = root_of((path or Path.cwd()).absolute())
    if not is_begun(root):
        raise IndexRejected(f"{root} is not indexed", f"Run python -m lcursor index {root}")
    text = " ".join(query)
    began_s = time.perf_counter()
    with Client(root) as client:
        if text.startswith("@"):
            found = client.call("symbols", name=text[1:].strip(), limit=limit, prefix=True)
            hits = [{"text": "", "score": 0.0, "parts": {}, **row} for row in found["symbols"]]
        else:
            hits = client.call("search", text=text, limit=limit, mode=mode)["hits"]
    ms = (time.perf_counter() - began_s) * 1000
    if as_json:
        typer.echo(json.dumps({"query": text, "root": str(root), "ms": ms, "hits": hits}))
        return
    for hit in hits:
        typer.echo(_hit_lines(hit))
    if not hits:
        typer.echo(f"Nothing found for {text}", err=True)


def _hit_lines(hit: Mapping[str, Any]) -> str:
    """Return a hit as text: its location, kind and first lines."""
    what = hit.get("kind", "")
    label = ", ".join(part for part in (what and f"{what} {hit['name']}", hit["scope"]) if part)
    stale = "  (changed since it was read)" if hit.get("is_stale") else ""
    parts = ", ".join(f"{name} {value:.3g}" for name, value in hit["parts"].items())
    head = f"{_safe(hit['path'])}:{hit['first_row'] + 1}-{hit['end_row']}"
    lines = [line for line in hit["text"].split("\n") if line.strip()][:SNIPPET_LINES]
    headline = "  ".join(part for part in (head, label, parts) if part) + stale
    return "\n".join([_safe(headline), *(f"    {_safe(line)}" for line in lines)])


def _safe(text: str) -> str:
    """Replace what a terminal cannot print in one line."""
    return safe(text).replace("\n", "�")


def _print_report(root: Path, globs: Sequence[str], as_json: bool) -> None:
    from lcursor.index.report import summarize
    from lcursor.project import listing, secrets
    from lcursor.project.root import is_home_like

    known = secrets.load(root)
    known.add(globs)
    found = summarize(listing.survey(root), known)
    if as_json:
        document = {"root": str(root), "is_home": is_home_like(root), **asdict(found)}
        typer.echo(json.dumps(document))
    else:
        typer.echo(_report_text(root, found))


def _report_text(root: Path, found: Report) -> str:
    lines = [
        f"{root}: {found.files:,} files, {found.bytes / 1e6:.1f} MB",
        f"About {found.seconds:.0f} s to full-text search, "
        f"{found.embed_seconds:.0f} s more to semantic search.",
        "",
    ]
    width = max(map(len, (*found.languages, *found.ignored, "language")))
    lines.append(f"{'language':<{width}}  {'files':>8}  {'size':>10}")
    for name, share in found.languages.items():
        lines.append(f"{name:<{width}}  {share.files:>8,}  {share.bytes / 1e6:>7.2f} MB")
    if found.ignored:
        lines += ["", f"{'left out':<{width}}  {'paths':>8}"]
        for reason, count in found.ignored.items():
            some = _safe(", ".join(found.examples[reason]))
            more = ", …" if count > len(found.examples[reason]) else ""
            lines.append(f"{reason:<{width}}  {count:>8,}  {some}{more}")
    return "\n".join([*lines, "", "Why a file is left out: python -m lcursor index --why PATH"])


def _explain(root: Path, path: Path, globs: Sequence[str], as_json: bool) -> None:
    from lcursor.index import report
    from lcursor.project import secrets
    from lcursor.project.root import relative_name

    name = relative_name(root, path)
    known = secrets.load(root)
    known.add(globs)
    reason = report.why(root, name, known)
    if as_json:
        typer.echo(json.dumps({"root": str(root), "path": name, "reason": reason}))
    elif reason:
        typer.echo(f"{_safe(name)} is not indexed: {_safe(reason)}")
    else:
        typer.echo(f"{_safe(name)} is indexed, or will be when its project is")


def _index(
    root: Path, globs: Sequence[str], *, rebuild: bool, words: bool, yes: bool, as_json: bool
) -> None:
    from lcursor.errors import IndexFailed
    from lcursor.index.client import Client

    events: SimpleQueue[Any] = SimpleQueue()
    with Client(root) as client:
        client.listen(events.put)
        if globs:
            client.call("secrets", globs=list(globs))
        _begin(client, root, rebuild=rebuild, yes=yes)
        began_s = time.monotonic()
        try:
            state = _follow(client, events, words)
        except KeyboardInterrupt:
            typer.echo(
                "lcursor: the worker continues for a while; run this again for the rest", err=True
            )
            raise typer.Exit(130) from None
    if state["phase"] == "failed":
        raise IndexFailed(
            f"the index of {root} failed: {state['detail']}", "See :checkhealth lcursor"
        )
    if as_json:
        typer.echo(json.dumps({**state, "seconds": time.monotonic() - began_s}))
        return
    typer.echo(
        f"{root}: {state['files']:,} files, {state['chunks']:,} chunks, {state['symbols']:,} "
        f"definitions, {state['embedded']:,} vectors, in {time.monotonic() - began_s:.1f} s"
    )
    for note in filter(None, (state["embedder_note"], *state["remarks"])):
        typer.echo(f"Note: {note}")


def _begin(client: Client, root: Path, *, rebuild: bool, yes: bool) -> None:
    from lcursor.errors import IndexRejected

    try:
        client.call("begin", rebuild=rebuild, confirmed=yes)
    except IndexRejected as error:
        question = f"{error.message}. Really index all of {root}?"
        if not sys.stdin.isatty() or not typer.confirm(question, err=True):
            raise
        client.call("begin", rebuild=rebuild, confirmed=True)


def _follow(client: Client, events: SimpleQueue[Any], words: bool) -> Mapping[str, Any]:
    """Show the progress of a worker until it is done; return its last state."""
    from lcursor.cli.progress import watching

    shown = ("", False)
    with watching("index", "{:,}".format) as watch:
        while True:
            try:
                event = events.get(timeout=EVENT_S)
            except Empty:  # no event: request the state
                event = {"event": "gone"}
            if event["event"] == "remark":
                watch.say(event["text"])
                continue
            state = event if event["event"] == "state" else client.call("status")
            if _is_over(state, words):
                return state
            phase, total = state["phase"], state["total"]
            if phase in PHASES and shown != (phase, total > 0):
                shown = (phase, total > 0)
                watch.begin(PHASES[phase], total, state["done"])
            watch.at(state["done"])


def _is_over(state: Mapping[str, Any], words: bool) -> bool:
    return state["phase"] in {"ready", "failed"} or (words and state["phase"] == "embedding")
