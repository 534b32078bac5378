"""`python -m lcursor eval …`: how often the completions are right, by true texts and by tests."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from evals.context import Pair
    from evals.edit import Answer as Mended
    from evals.fim import Answer
    from evals.splice import Case

Found = TypeVar("Found", "Answer", "Case", "Pair")

app = typer.Typer(
    help="Judge the completions by true texts and by tests that are run.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

LINE_EVERY_S = 5.0


@app.command()
def fim(
    n: Annotated[int, typer.Option("--n", min=1, help="Cuts of each kind.")] = 200,
    cut: Annotated[str, typer.Option(help="char, word, span, or all.")] = "all",
    model: Annotated[str, typer.Option(help="A name of `models list`, or a path.")] = "",
    seed: Annotated[int, typer.Option(help="Of the choice of tasks and places.")] = 1,
    gate: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Show nothing below this confidence.")
    ] = 0.0,
    typed: Annotated[
        int, typer.Option(min=0, help="Keys typed before the one that is judged.")
    ] = 3,
    no_heal: Annotated[bool, typer.Option("--no-heal", help="Without token healing.")] = False,
    no_splice: Annotated[
        bool, typer.Option("--no-splice", help="Read the suffix anew at each key.")
    ] = False,
    short: Annotated[
        bool, typer.Option("--short", help="Answer from the short window alone.")
    ] = False,
    data: Annotated[Path | None, typer.Option(help="The folder of the benchmark.")] = None,
    source: Annotated[
        Path | None,
        typer.Option(help="Cut lines of this file instead, which no test judges.", dir_okay=False),
    ] = None,
    cases: Annotated[
        Path | None, typer.Option(help="Write each answer to it, as JSON Lines.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Complete HumanEval infilling at random places: exact match, pass@1, what a gate gains.

    The programs run in a sandbox without network, files or processes of their own.
    """
    from bench.report import machine
    from evals import fim as judge
    from evals import report
    from evals.data import DATA, KINDS, cuts, source_cuts

    known = [kind for kind in KINDS if source is None or kind != "span"]
    kinds = [kind for kind in known if cut in (kind, "all")]
    if not kinds:
        raise typer.BadParameter(f"unknown cut: {cut}; one of {', '.join(known)}, all")
    chosen = [
        each  # neighbours of one program share what the engine has read
        for kind in kinds
        for each in sorted(
            source_cuts(source, kind, n, seed) if source else cuts(data or DATA, kind, n, seed),
            key=lambda each: each.task.name,
        )
    ]
    facts: dict[str, Any] = {
        "machine": {**machine(), "load": f"{os.getloadavg()[0]:.1f} at the start"},
        "command": shlex.join(["python", "-m", "lcursor", *sys.argv[1:]]),
        "seed": seed,
        "typed": typed,
        "heals": not no_heal,
        "splices": not no_splice,
        "window": "short" if short else "full",
        "source": source.name if source else "",
    }
    engine = judge.load(
        model, heals=not no_heal, splices=not no_splice, window="short" if short else "full"
    )
    try:
        facts["model"] = f"{engine.model.path.name} ({engine.model.description})"
        found = _watched(judge.answers(engine, chosen, typed), len(chosen), _rates())
        answers = list(_written(found, cases) if cases else found)
    finally:
        engine.close()
    document = report.as_dict(answers, facts, gate)
    typer.echo(json.dumps(document) if as_json else report.as_markdown(document))


@app.command()
def splice(
    positions: Annotated[
        int, typer.Option("--positions", min=1, help="Places, over all languages.")
    ] = 200,
    typed: Annotated[
        list[int] | None,
        typer.Option(min=1, max=64, help="Tokens since the suffix was read; may come again."),
    ] = None,
    model: Annotated[str, typer.Option(help="A name of `models list`, or a path.")] = "",
    seed: Annotated[int, typer.Option(help="Of the choice of files and lines.")] = 1,
    cases: Annotated[
        Path | None, typer.Option(help="Write each place to it, as JSON Lines.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Compare a suffix that stayed in the cache with one read anew, by the true rest of lines.

    Reads source files of this machine in four languages; about 10 seconds a place on two cores.
    """
    from bench.report import machine
    from evals import fim as judge
    from evals import splice as compare
    from evals import splice_report as report

    counts = sorted(set(typed or compare.TYPED))
    facts: dict[str, Any] = {
        "machine": {**machine(), "load": f"{os.getloadavg()[0]:.1f} at the start"},
        "command": shlex.join(["python", "-m", "lcursor", *sys.argv[1:]]),
        "seed": seed,
    }
    engine = judge.load(model, heals=False)
    try:
        facts["model"] = f"{engine.model.path.name} ({engine.model.description})"
        chosen = compare.spots(positions, seed, counts[-1], compare.pieces_of(engine.model))
        found = _watched(compare.measure(engine, chosen, counts), positions, _costs())
        judged = list(_written(found, cases) if cases else found)
    finally:
        engine.close()
    document = report.as_dict(judged, facts)
    typer.echo(json.dumps(document) if as_json else report.as_markdown(document))


@app.command()
def context(
    folder: Annotated[
        Path | None, typer.Argument(help="A Python package; this one where none is given.")
    ] = None,
    n: Annotated[int, typer.Option("--n", min=1, help="Cuts of each kind.")] = 50,
    files_tokens: Annotated[
        int, typer.Option(min=-1, help="Most tokens of other files; -1 as the product has it.")
    ] = -1,
    by: Annotated[
        str,
        typer.Option(help="Who chooses the files: `visits` to the definition, or the `index`."),
    ] = "visits",
    model: Annotated[str, typer.Option(help="A name of `models list`, or a path.")] = "",
    seed: Annotated[int, typer.Option(help="Of the choice of calls.")] = 1,
    cases: Annotated[
        Path | None, typer.Option(help="Write each pair to it, as JSON Lines.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Complete calls of what another file defines, with other files in the prompt and without.

    The rest of the line is cut off inside the callee's name, or behind its bracket. The files are
    those of someone who has looked at the definition: that, and the headers of what is imported;
    or what an index of the package finds for someone who has looked at nothing.
    """
    import contextlib

    from bench.report import machine
    from evals import context as judge
    from evals import context_report as report
    from evals import fim
    from evals.calls import KINDS, choose, read
    from evals.context_index import indexed
    from evals.corpus import ROOT

    if by not in {"visits", "index"}:
        raise typer.BadParameter("expected visits or index", param_hint="--by")
    where = (folder or ROOT / "lcursor").resolve()
    modules = read(where)
    chosen = [call for kind in KINDS for call in choose(modules, kind, n, seed)]
    if not chosen:
        raise typer.BadParameter(f"no file in {where} calls what another one defines")
    facts: dict[str, Any] = {
        "machine": {**machine(), "load": f"{os.getloadavg()[0]:.1f} at the start"},
        "command": shlex.join(["python", "-m", "lcursor", *sys.argv[1:]]),
        "repository": where.name,
        "seed": seed,
    }
    engine = fim.load(model)
    try:
        facts["model"] = f"{engine.model.path.name} ({engine.model.description})"
        tokens = files_tokens if files_tokens >= 0 else engine.reader.files_tokens
        facts["files_tokens"] = tokens
        chooser = indexed(modules) if by == "index" else contextlib.nullcontext()
        with chooser as files_of:
            found = judge.pairs(engine, modules, chosen, where.name, tokens, files_of)
            watched = _watched(found, len(chosen), _gains())
            judged = list(_written(watched, cases) if cases else watched)
    finally:
        engine.close()
    document = report.as_dict(judged, facts)
    typer.echo(json.dumps(document) if as_json else report.as_markdown(document))


@app.command()
def search(
    data: Annotated[Path, typer.Option(help="The folder of CoSQA.", show_default=False)],
    n: Annotated[int, typer.Option("--n", min=0, help="Questions; 0 for all.")] = 0,
    modes: Annotated[
        str, typer.Option(help="lexical, vector, hybrid; several with commas between.")
    ] = "lexical,vector,hybrid",
    embedder: Annotated[str, typer.Option(help="A name of `models list`.")] = "",
    threads: Annotated[int, typer.Option(min=1, help="Threads that embed.")] = 2,
    quick: Annotated[
        bool, typer.Option("--quick", help="With docstrings and rules alone.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Find the function that a sentence asks for, among 6,000 of CoSQA: MRR, NDCG, recall.

    With docstrings and without, with the ranking rules and without. The first run embeds for some
    minutes; the vectors stay in the user's cache.
    """
    from bench.report import machine
    from evals import search as judge
    from evals import search_report as report

    wanted = [mode for mode in judge.MODES if mode in modes.split(",")]
    if not wanted or {*modes.split(",")} - {*wanted}:
        raise typer.BadParameter(f"unknown modes: {modes}; of {', '.join(judge.MODES)}")
    corpus = judge.load(data, n)
    facts: dict[str, Any] = {
        "machine": {**machine(), "load": f"{os.getloadavg()[0]:.1f} at the start"},
        "command": shlex.join(["python", "-m", "lcursor", *sys.argv[1:]]),
        "functions": len(corpus.codes),
    }
    runs = judge.measure(
        corpus,
        wanted,
        embedder,
        threads,
        everything=not quick,
        tell=lambda text: typer.echo(text, err=True),
    )
    facts["embedder"], tables = runs
    document = report.as_dict(tables, facts)
    typer.echo(json.dumps(document) if as_json else report.as_markdown(document))


@app.command()
def queries(
    modes: Annotated[
        str, typer.Option(help="lexical, vector, hybrid; several with commas between.")
    ] = "lexical",
    embedder: Annotated[str, typer.Option(help="A name of `models list`.")] = "",
    threads: Annotated[int, typer.Option(min=1, help="Threads that embed.")] = 2,
    misses: Annotated[
        bool, typer.Option("--misses", help="Show each question whose answer is not first.")
    ] = False,
    data: Annotated[Path | None, typer.Option(help="The folder of the questions.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Ask questions written by hand about this project and the standard library.

    Names of definitions and plain sentences: how often the right place comes first, and how far
    down it is. Words alone need no model.
    """
    from bench.report import machine
    from evals import queries as judge
    from evals import queries_report as report
    from evals.search import MODES

    wanted = [mode for mode in MODES if mode in modes.split(",")]
    if not wanted or {*modes.split(",")} - {*wanted}:
        raise typer.BadParameter(f"unknown modes: {modes}; of {', '.join(MODES)}")
    facts: dict[str, Any] = {
        "machine": {**machine(), "load": f"{os.getloadavg()[0]:.1f} at the start"},
        "command": shlex.join(["python", "-m", "lcursor", *sys.argv[1:]]),
        "embedder": "none",
    }
    found_embedder = None
    if {*wanted} - {"lexical"}:
        from lcursor.index.embed import Embedder
        from lcursor.index.embedders import DEFAULT, find

        found_embedder = Embedder(find(embedder or DEFAULT), threads=threads)
        facts["embedder"] = found_embedder.name
    found = judge.measure(
        wanted, found_embedder, data or judge.DATA, tell=lambda text: typer.echo(text, err=True)
    )
    document = report.as_dict(found, facts)
    typer.echo(json.dumps(document) if as_json else report.as_markdown(document, has_misses=misses))


@app.command()
def edit(
    data: Annotated[Path, typer.Option(help="The folder of HumanEvalFix.", show_default=False)],
    n: Annotated[int, typer.Option("--n", min=0, help="Tasks; 0 for all.")] = 0,
    formats: Annotated[
        str, typer.Option(help="whole, search_replace, udiff: asked once, too; commas between.")
    ] = "",
    model: Annotated[str, typer.Option(help="A name of `models list`, or a path.")] = "",
    seed: Annotated[
        int, typer.Option(help="Of the choice of tasks; 0 takes the shortest first.")
    ] = 1,
    seconds: Annotated[
        float, typer.Option(min=0.0, help="Stop after so long; the next run goes on. 0 never.")
    ] = 0.0,
    cache: Annotated[Path | None, typer.Option(help="Where answers are kept.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Mend functions of HumanEvalFix, asked plainly and by the pipeline of edits: pass@1 of both.

    All tries of ours together write at most twice the tokens of the plain answer. The programs run
    in a sandbox; the examples of a docstring are the only tests that a retry hears of.
    """
    from bench.report import machine
    from evals import edit as judge
    from evals import edit_report as report
    from evals.bugs import chosen, load

    wanted = [form for form in judge.FORMATS if form in formats.split(",")]
    if {each for each in formats.split(",") if each} - {*wanted}:
        raise typer.BadParameter(f"unknown formats: {formats}; of {', '.join(judge.FORMATS)}")
    name = model or judge.MODEL
    bugs = chosen(load(data), n, seed)
    facts: dict[str, Any] = {
        "model": name,
        "machine": {**machine(), "load": f"{os.getloadavg()[0]:.1f} at the start"},
        "command": shlex.join(["python", "-m", "lcursor", *sys.argv[1:]]),
        "seed": seed,
    }
    store = judge.Store(cache or judge.default_store(name))
    began_s = time.monotonic()
    found: list[Mended] = []
    with judge.running(name) as reached:
        for answer in judge.answers(judge.Judge(reached, store), bugs, wanted):
            found.append(answer)
            spent_s = time.monotonic() - began_s
            word = "passes" if answer.has_passed else answer.problem or "fails"
            typer.echo(f"{spent_s:4.0f} s {answer.task} {answer.kind}: {word[:60]}", err=True)
            if seconds and spent_s > seconds:
                break
    found = judge.complete(found)
    document = report.as_dict(found, facts, len(bugs))
    typer.echo(json.dumps(document) if as_json else report.as_markdown(document))


@app.command()
def apply(
    data: Annotated[Path | None, typer.Option(help="The folder of the replies.")] = None,
    form: Annotated[str, typer.Option(help="Only replies whose name has this in it.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Apply replies of models to their files: right, refused or asked about, wrong.

    Made from real commits and mangled, traps written by hand, and replies of a local model. Ends
    with 1 where one is applied wrong. Asks no model.
    """
    from evals import apply as judge
    from evals import apply_report as report

    tasks = [task for task in judge.load(data or judge.DATA) if form in task.name]
    document = report.as_dict(list(judge.judge(tasks)), {})
    if not as_json:
        typer.echo(report.as_markdown(document) + "\n")
    typer.echo(json.dumps(report.last_line(document)))
    if document["wrong"]:
        raise typer.Exit(1)


def _gains() -> Callable[[Pair], str]:
    without = with_files = number = 0

    def told(pair: Pair) -> str:
        nonlocal without, with_files, number
        number, without = number + 1, without + pair.without_exact
        with_files += pair.with_exact
        return (
            f"{pair.kind}, exact without {100 * without / number:.0f} %, "
            f"with {100 * with_files / number:.0f} %"
        )

    return told


def _rates() -> Callable[[Answer], str]:
    exact = passed = number = 0

    def told(answer: Answer) -> str:
        nonlocal exact, passed, number
        number, exact = number + 1, exact + answer.is_exact
        passed += answer.has_passed
        return (
            f"{answer.kind}, exact {100 * exact / number:.0f} %, "
            f"passed {100 * passed / number:.0f} %"
        )

    return told


def _costs() -> Callable[[Case], str]:
    exact, spliced = 0.0, 0.0

    def told(case: Case) -> str:
        nonlocal exact, spliced
        exact += sum(case.exact)
        spliced += sum(case.spliced[max(case.spliced)])
        return (
            f"ratio {spliced / exact if exact else 1:.3f} after {max(case.spliced)} typed, "
            f"now {case.file}"
        )

    return told


def _watched(
    all_found: Iterator[Found], count: int, told: Callable[[Found], str]
) -> Iterator[Found]:
    """Say on standard error how far it is."""
    began_s = spoke_s = time.monotonic()
    for number, found in enumerate(all_found, start=1):
        words = told(found)
        now_s = time.monotonic()
        if now_s - spoke_s >= LINE_EVERY_S or number == count:
            spoke_s = now_s
            left_s = (now_s - began_s) / number * (count - number)
            typer.echo(f"{number} of {count}, {words}, {left_s:.0f} s left", err=True)
        yield found


def _written(all_found: Iterator[Found], path: Path) -> Iterator[Found]:
    """Write each answer as it comes, so that a run that is stopped leaves what it had."""
    from lcursor.errors import LcursorError

    try:
        file = path.open("w", encoding="utf-8", buffering=1)
    except OSError as error:
        raise LcursorError(f"{path} cannot be written ({error.strerror})") from error
    with file:
        for found in all_found:
            file.write(json.dumps(asdict(found)) + "\n")
            yield found
