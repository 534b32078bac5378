"""`python -m lcursor models …`: list, recommend, pull, requantize, verify, path."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from lcursor.catalog.download import Reporter
    from lcursor.catalog.hardware import Hardware
    from lcursor.catalog.manifest import Model

app = typer.Typer(
    help="List, recommend, download and verify models.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(help="A name of `models list`.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@app.command("list")
def list_models(as_json: Json = False) -> None:
    """List the models in the manifest, and which are on this machine."""
    from lcursor.catalog import manifest, store
    from lcursor.catalog.store import format_bytes

    rows = []
    for model in [*manifest.load(), *store.made_here()]:
        path = store.path_of(model)
        paths = [(store.path_of(each), each) for each in model.files]
        state = ""
        if all(store.read_record(each, of) for each, of in paths):
            state = "here"
        elif all(each.is_file() for each, _ in paths):
            state = "unchecked"
        elif any(each.is_file() or store.partial_of(each).is_file() for each, _ in paths):
            state = "partial"
        rows.append((model, state, path))
    if as_json:
        table = [
            {
                "name": model.name,
                "slots": model.slots,
                "family": model.family,
                "parameters": model.parameters,
                "bytes": model.all_bytes,
                "bytes_exact": model.bytes_exact,
                "licence": model.licence,
                "context_tokens": model.context_tokens,
                "digest": model.digest,
                "made_from": model.made_from,
                "is_adapted": store.is_adapted(model),
                "sha256": model.sha256,
                "repo": model.repo,
                "revision": model.revision,
                "notes": model.notes,
                "state": state or "absent",
                "path": str(path),
            }
            for model, state, path in rows
        ]
        typer.echo(json.dumps(table, indent=1))
        return
    lines = [("NAME", "FOR", "SIZE", "LICENCE", "DIGEST", "STATE")]
    lines += [
        (
            model.name,
            "+".join(model.slots),
            ("" if model.bytes_exact else "~") + format_bytes(model.all_bytes),
            model.licence,
            model.digest,
            f"{state}, made from {model.made_from}"
            if model.made_from
            else state + (", adapted" if state and store.is_adapted(model) else ""),
        )
        for model, state, _ in rows
    ]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        typer.echo(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        )
    typer.echo(f"\nFiles are in {store.models_dir()}. Get one: {store.pull_command('NAME')}")


def _hardware() -> Hardware:
    """Return this machine's hardware, with the GPUs and their memory as the engine sees them.

    Without an engine, or with one that can use no GPU, those that another engine could use.
    """
    from lcursor.catalog import hardware
    from lcursor.errors import DependencyMissing

    here = hardware.detect()
    try:
        from lcursor.fim import gpus
    except DependencyMissing:
        return here
    devices = gpus.find()
    return here.using(devices) if devices else here


@app.command()
def recommend(as_json: Json = False) -> None:
    """Recommend a pair of models for this machine, with the reasons.

    Measures first how fast a completion model is here, if that is not known.
    """
    from lcursor.catalog import manifest, speed, store
    from lcursor.catalog.recommend import recommend as decide
    from lcursor.errors import OutOfMemory
    from lcursor.llm import fit

    here = _hardware()
    note = "" if here.gpu_bytes is not None or speed.load() else _measure_speed()
    found = decide(here, speed.load())
    served = None
    with suppress(OutOfMemory):
        served = fit.expected_plan(found.chat.model, here, found.completion.model)
    present = {
        model.name
        for model in [*manifest.load(), *store.made_here()]
        if store.read_record(store.path_of(model), model)
    }
    names = list(dict.fromkeys((found.completion.model, found.chat.model)))
    commands = [store.pull_command(name) for name in names if name not in present]
    if as_json:
        document: dict[str, Any] = {
            "hardware": here.as_dict(),
            **found.as_dict(),
            "present": sorted(present),
            "commands": commands,
            "chat_server": None
            if served is None
            else {"context_tokens": served.context_tokens, "need_bytes": served.need_bytes},
        }
        typer.echo(json.dumps(document, indent=1))
        return
    typer.echo(f"This machine: {here.describe()}\n")
    for slot, pick in (("Completion", found.completion), ("Chat", found.chat)):
        mark = "  (on this machine)" if pick.model in present else ""
        typer.echo(f"{slot + ':':<12}{pick.model}, {pick.placement}{mark}\n{'':<12}{pick.why}")
    if served is not None:
        typer.echo(f"{'':<12}the server would use now: {served.describe()}")
    for each in filter(None, (note, *found.notes)):
        typer.echo(f"\nNote: {each}")
    typer.echo("\n" + ("Get them:" if commands else "Both are on this machine."))
    for command in commands:
        typer.echo(f"  {command}")


def _measure_speed() -> str:
    """Measure the speed of the completion model that is here; return why it is not measured."""
    from lcursor.catalog import store
    from lcursor.config import AUTO
    from lcursor.errors import LcursorError

    try:
        from lcursor.fim import speed

        found = speed.measure_here(store.completion_model(AUTO))
    except LcursorError as error:
        return f"the speed of this machine was not measured: {error}"
    return "" if found else "other programs use the processor: run this again when it is idle"


@app.command()
def pull(name: Name) -> None:
    """Download a model and verify it; an interrupted download continues.

    A name that ends in -q4_0 downloads the model before it, and makes its Q4_0 copy. A model for
    which lcursor has an adapter gets a copy with it, which completion uses.
    """
    from lcursor.catalog import copies, download, manifest
    from lcursor.cli.progress import watching
    from lcursor.errors import LcursorError

    model = manifest.find(name)
    with _interruptible("run the same command to continue"), watching(model.name) as watch:
        path = _make(model, watch) if model.made_from else download.pull(model, watch)
        try:
            copies.adapt(model, watch)
        except LcursorError as error:
            words = f"{model.name} completes without its adapter: {error.message}"
            typer.echo(f"lcursor: {words}", err=True)
    origin = f"made from {model.made_from}" if model.made_from else "verified"
    typer.echo(f"{model.name} is here and {origin}: {path}")


@contextmanager
def _interruptible(words: str) -> Iterator[None]:
    """Print these words when the user presses Ctrl-C, or the terminal is closed."""
    for signum in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"lcursor: interrupted; {words}", err=True)
        raise typer.Exit(130) from None


def _make(model: Model, watch: Reporter) -> Path:
    """Return the file of a Q4_0 copy; if it is missing, download its source and make it."""
    from lcursor.catalog import download, manifest, store
    from lcursor.catalog.copies import requantize

    path = store.path_of(model)
    if store.read_record(path, model):
        return path
    return requantize(download.pull(manifest.find(model.made_from), watch), watch)


@app.command()
def requantize(
    name: Annotated[
        str,
        typer.Argument(
            help="A model for completion: a name of `models list`, or the path of a GGUF file.",
            show_default=False,
        ),
    ],
    to: Annotated[str, typer.Option(help="The format of the copy; only Q4_0.")] = "Q4_0",
) -> None:
    """Make a Q4_0 copy of a completion model: faster on many CPUs, less exact.

    The copy is written next to the model; its name is that of the model with -q4_0.
    """
    from lcursor.catalog import manifest, store
    from lcursor.catalog.copies import requantize as make
    from lcursor.cli.progress import watching

    if to.upper() != "Q4_0":
        raise typer.BadParameter(f"unknown format: {to}; only Q4_0", param_hint="--to")
    source = store.resolve(name, "completion")
    known = manifest.with_file(source.name)
    if known and source == store.adapted_path(known):
        source = store.path_of(known)
    with _interruptible("no copy was made"), watching(source.stem) as watch:
        path = make(source, watch)
    copy = manifest.with_file(path.name)
    setting = copy.name if copy and store.path_of(copy) == path else path
    typer.echo(f'Made from {source.name}: {path}\nUse it: completion.model = "{setting}"')


@app.command()
def verify(
    name: Annotated[str | None, typer.Argument(help="Default: all on this machine.")] = None,
    as_json: Json = False,
) -> None:
    """Compare the sha256 of the files on this machine with the manifest."""
    from lcursor.catalog import download, manifest, store
    from lcursor.cli.progress import watching
    from lcursor.errors import ModelError

    models = (
        [manifest.find(name)]
        if name
        else [
            *(model for model in manifest.load() if store.path_of(model).is_file()),
            *store.made_here(),
        ]
    )
    results, failures = [], []
    for model in models:
        result: dict[str, Any] = {"name": model.name, "path": str(store.path_of(model))}
        try:
            with watching(model.name) as watch:
                result |= {"ok": True, "sha256": download.verify(model, watch)}
        except ModelError as e:
            failures.append(e)
            result |= {"ok": False, "error": e.code, "message": e.message, "hint": e.hint}
        results.append(result)
        if result["ok"] and not as_json:
            typer.echo(f"{model.name} matches: sha256 {result['sha256']}")
    if as_json:
        typer.echo(json.dumps(results, indent=1))
    elif not results:
        typer.echo(f"No model is on this machine ({store.models_dir()}).")
    if failures:
        for failure in failures[:-1]:
            typer.echo(f"lcursor: {failure}", err=True)
        raise failures[-1]


@app.command()
def path(name: Name) -> None:
    """Print the path of a model's file; fails if it is not on this machine."""
    from lcursor.catalog import manifest, store

    model = manifest.find(name)
    store.resolve(model.name, model.slots[0])
    typer.echo(store.path_of(model))
