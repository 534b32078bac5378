"""The command `eval keys`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Annotated

import typer

from bench.report import Json, emit, progress, run_facts
from evals.keys import in_neovim, insertions, report
from evals.keys.completing import Completing, SimulatedEngine
from evals.keys.recorded import Clock, Record, Speed, measure
from evals.keys.typist import BODY_S, LINE_S, Typed, Typist
from evals.run import Cases, Model, collect
from lcursor.catalog import manifest, store
from lcursor.config import CompletionConfig
from lcursor.errors import LcursorError
from lcursor.fim import llama
from lcursor.fim.slots import context_size
from lcursor.storage import folders

BUDGET_MS = 600_000
"""The engine's own limit counts real time."""


def command(
    repo: Annotated[list[Path], typer.Option(help="A git clone; may be repeated.")],
    n: Annotated[int, typer.Option("--n", min=1, help="Texts of each repository.")] = 20,
    model: Model = "",
    in_editor: Annotated[
        bool, typer.Option("--neovim", help="Type into a real Neovim, in real time.")
    ] = False,
    threshold: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Replaces completion.min_confidence.")
    ] = CompletionConfig().min_confidence,
    pass_ms: Annotated[float, typer.Option(help="Time of one decode; 0 measures it.")] = 0.0,
    token_ms: Annotated[float, typer.Option(help="Time of each of its tokens.")] = 0.0,
    threads: Annotated[int, typer.Option(min=0, help="That evaluate; 0 for all cores.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed for the choice of texts.")] = 1,
    record: Annotated[
        Path | None, typer.Option(help="Where the model's answers are recorded.")
    ] = None,
    examples: Annotated[bool, typer.Option("--examples", help="Print each suggestion.")] = False,
    bodies: Annotated[
        bool, typer.Option("--bodies", help="Type only bodies of new functions.")
    ] = False,
    cases: Cases = None,
    as_json: Json = False,
) -> None:
    """Type the added lines of real commits, and count the keys that completion saves.

    The real engine answers on a simulated clock: a decode takes the time that it takes on this
    machine, or what --pass-ms and --token-ms say. What the model answers is recorded, so a second
    run takes seconds.
    """
    loaded = [
        [(one, text) for text in insertions.load(one, n, seed, bodies=bodies)] for one in repo
    ]
    texts = [text for row in zip_longest(*loaded) for text in row if text]
    if not texts:
        raise LcursorError("no commit of these adds code", "Name clones with their history")
    config = CompletionConfig(
        budget_ms=BUDGET_MS, save_cache=False, min_confidence=threshold, threads=threads
    )
    config = replace(config, model=model or config.model)
    path = store.resolve(config.model, "completion")
    speed = Speed(pass_ms / 1000, token_ms / 1000) if pass_ms else speed_of(path)
    facts = run_facts(
        seed=seed,
        model=path.name,
        pass_ms=1000 * speed.pass_s,
        token_ms=1000 * speed.token_s,
        repositories=", ".join(each.name for each in repo),
        texts=len(texts),
    )
    recorded = Record(record or folders.cache_home() / "keys" / f"{path.stem}.db")
    first_s = BODY_S if bodies else LINE_S
    if in_editor:
        typed = _type_in_neovim(config, texts, first_s)
    else:
        typed = _type(path, config, speed, recorded, texts, first_s)
    found = collect(typed, len(texts), _progress, cases)
    if examples:
        for each in found:
            typer.echo(f"{each.insertion.commit} {each.insertion.path}")
            for shown in each.shown:
                typer.echo("  " + report.describe(shown))
    document = report.as_dict(found, facts)
    emit(document, report.as_markdown(document), as_json)


def speed_of(path: Path) -> Speed:
    """Measure the time of a decode with a model."""
    model = llama.Model(path, 0, lambda fraction: True)
    context = llama.Context(model, context_size(CompletionConfig(context_tokens=2048), False, 0))
    try:
        return measure(context, model.tokenize("a")[0])
    finally:
        context.close()
        model.close()


def _type(
    path: Path,
    config: CompletionConfig,
    speed: Speed,
    record: Record,
    texts: list[tuple[Path, insertions.Insertion]],
    first_s: float,
) -> Iterator[Typed]:
    clock = Clock()
    engine = SimulatedEngine(path, manifest.family_of(path), config, clock, speed, record)
    try:
        while engine.idle():  # reads the vocabulary
            pass
        for repo, text in texts:
            yield Typist(clock, Completing(engine, clock, repo.name), first_s).type(text)
    finally:
        record.save()
        engine.close()


def _type_in_neovim(
    config: CompletionConfig, texts: list[tuple[Path, insertions.Insertion]], first_s: float
) -> Iterator[Typed]:
    clock, mismatches = Clock(), 0
    with in_neovim.opened(config) as editor:
        for repo, text in texts:
            completer = in_neovim.InNeovim(editor, clock, repo.name)
            yield Typist(clock, completer, first_s).type(text)
            mismatches += completer.mismatches
    progress(f"{mismatches} acceptances gave another text")


def _progress(found: Sequence[Typed]) -> str:
    return f"{report.figures(found).saved:.1%} of the keys saved"
