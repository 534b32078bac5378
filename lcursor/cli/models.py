"""`python -m lcursor models …`: list, recommend, pull, verify, path."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Annotated, Any

import typer

app = typer.Typer(
    help="The models: which there are, which fit this machine, and getting them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(help="A name of `models list`.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@app.command("list")
def list_models(as_json: Json = False) -> None:
    """List the models that lcursor knows, and which of them are on this machine."""
    from lcursor.catalog import manifest, store
    from lcursor.catalog.sink import human

    rows = []
    for model in manifest.load():
        path = store.path_of(model)
        paths = [(store.path_of(each), each) for each in model.files]
        state = ""
        if all(store.read_receipt(each, of) for each, of in paths):
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
            ("" if model.bytes_exact else "~") + human(model.all_bytes),
            model.licence,
            model.digest,
            state,
        )
        for model, state, _ in rows
    ]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        typer.echo(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        )
    typer.echo(f"\nFiles are in {store.models_dir()}. Get one: {store.pull_command('NAME')}")


@app.command()
def recommend(as_json: Json = False) -> None:
    """Look at this machine and say which pair of models it would take, and why."""
    from lcursor.catalog import hardware, manifest, store
    from lcursor.catalog.recommend import recommend as decide
    from lcursor.errors import OutOfMemory
    from lcursor.llm import fit

    here = hardware.detect()
    found = decide(here)
    served = None
    with suppress(OutOfMemory):
        served = fit.expected(found.chat.model, here, found.completion.model)
    present = {
        model.name for model in manifest.load() if store.read_receipt(store.path_of(model), model)
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
        typer.echo(f"{slot + ':':<12}{pick.model}, {pick.place}{mark}\n{'':<12}{pick.why}")
    if served is not None:
        typer.echo(f"{'':<12}now its server would take: {served.describe()}")
    for note in found.notes:
        typer.echo(f"\nNote: {note}")
    typer.echo("\n" + ("Get them:" if commands else "Both are on this machine."))
    for command in commands:
        typer.echo(f"  {command}")


@app.command()
def pull(name: Name) -> None:
    """Download a model and verify it; goes on where an earlier try stopped."""
    from lcursor.catalog import download, manifest
    from lcursor.cli.progress import watching

    model = manifest.find(name)
    try:
        with watching(model.name) as watch:
            path = download.pull(model, watch)
    except KeyboardInterrupt:
        typer.echo("lcursor: interrupted; the same command goes on where it stopped", err=True)
        raise typer.Exit(130) from None
    typer.echo(f"{model.name} is here and verified: {path}")


@app.command()
def verify(
    name: Annotated[str | None, typer.Argument(help="Default: all that are here.")] = None,
    as_json: Json = False,
) -> None:
    """Hash the files on this machine and compare with what they should be."""
    from lcursor.catalog import download, manifest, store
    from lcursor.cli.progress import watching
    from lcursor.errors import ModelError

    models = (
        [manifest.find(name)]
        if name
        else [model for model in manifest.load() if store.path_of(model).is_file()]
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
            typer.echo(f"{model.name} is right: sha256 {result['sha256']}")
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
    """Print where a model's file is; fails when it is not here."""
    from lcursor.catalog import manifest, store

    model = manifest.find(name)
    typer.echo(store.resolve(model.name, model.slots[0]))
