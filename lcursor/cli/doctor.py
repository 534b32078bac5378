"""`python -m lcursor doctor`: check the installation, and name the command that fixes each problem.

Prints the facts one by one, so that the editor's health check receives all of them before one that
hangs or crashes. Must work without installed packages: imports only the standard library at the
top, and typer only for the command line.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcursor import system
from lcursor.cli import environment
from lcursor.cli.facts import AGAIN, COMMAND, Fact, exact
from lcursor.config import ChatConfig, CompletionConfig, Config, ModelConfig
from lcursor.config_table import from_table
from lcursor.errors import (
    ConfigInvalid,
    DependencyMissing,
    EngineFailed,
    LcursorError,
    ModelMissing,
    SandboxMissing,
    ServerEnded,
)
from lcursor.installer import gpu, selftest
from lcursor.process.sandbox import HELP, WITHOUT, open_sandbox, probe

if TYPE_CHECKING:
    import typer

LEAVES = "what you write leaves this machine"
LISTS = {"package": "packages", "chat_model": "chat_models", "edit": "edit_checks"}
"""Sections with several facts, and their names in JSON."""
BUILTINS = "case cd command eval exec export for if pushd set shopt source time trap ulimit while"
"""Words that begin a command of bash without being programs."""


def _hardware() -> Fact:
    from lcursor.catalog import hardware, speed
    from lcursor.catalog.recommend import recommend

    here, measured = hardware.detect(), speed.load()
    recommended = recommend(here, measured).as_dict() | {"is_measured": measured is not None}
    return Fact("hardware", here.describe(), here.as_dict() | {"recommended": recommended})


def _model(setting: str) -> Fact:
    from lcursor.catalog import gguf, manifest, store
    from lcursor.catalog.store import format_bytes

    name = store.completion_model(setting)
    fact = Fact("model", name, {"name": name, "path": None})
    try:
        path = store.resolve(name, "completion")
        fact.data |= {"path": str(path), "bytes": path.stat().st_size}
        head = gguf.check_for_completion(path)
        known = manifest.with_file(path.name)
        is_adapted = bool(known and store.is_adapted(known) and store.adapted_path(known) == path)
        if known and not is_adapted and store.path_of(known) != path:
            known = None
        checked = bool(known and (is_adapted or store.read_record(path, known)))
        fact.data |= {"architecture": head.architecture, "is_verified": checked}
        if known and not checked:
            fact.data["verify"] = exact(f"{COMMAND} models verify {known.name}")
        how = ", with its adapter" if is_adapted else ", digest verified" if checked else ""
        words = f", {head.architecture}{how}"
        label = name if known else "a file of your own"
        fact.text = f"{label}: {path} ({format_bytes(path.stat().st_size)}{words})"
    except LcursorError as error:
        fact.problem = error
    return fact


def _size(folder: Path) -> int:
    """Return the size of all files in a folder."""
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(where, name)).st_size
    return total


def _index(embedder: str, path: str) -> Fact:
    """Describe the stored indexes, and that of the project of a path; "" for none."""
    from lcursor.catalog import manifest, store
    from lcursor.catalog.store import format_bytes
    from lcursor.project.root import BEGUN, is_begun, root_of
    from lcursor.storage import folders

    folder, vectors = folders.data_home() / "index", folders.vectors_home()
    files = manifest.find(embedder).files if embedder else ()
    projects = len([*folder.glob(f"*/{BEGUN}")])
    sizes = _size(folder), _size(vectors)
    data = {
        "path": str(folder),
        "projects": projects,
        "bytes": sizes[0],
        "vectors_path": str(vectors),
        "vectors_bytes": sizes[1],
        "embedder": embedder,
        "is_embedder_here": bool(files) and all(store.path_of(each).is_file() for each in files),
    }
    if path:
        root = root_of(Path(path))
        data |= {"root": str(root), "is_begun": is_begun(root)}
    many = "1 project" if projects == 1 else f"{projects} projects"
    own, shared = map(format_bytes, sizes)
    text = f"{many} in {folder} ({own}), vectors in {vectors} ({shared})"
    if not embedder:
        text += "; no semantic search: index.embedder is empty"
    elif data["is_embedder_here"]:
        text += f"; the embedder {embedder} is here"
    else:
        command = exact(store.pull_command(embedder))
        text += f"; no semantic search without the embedder: {command}"
    return Fact("index", text, data, level="warn")


def _chat(config: ChatConfig, completion: str) -> Fact:
    """Describe the server that the chat would start.

    Args:
        config: the settings of the chat.
        completion: the completion model, whose memory stays free; "" for none.
    """
    from lcursor.llm import launch

    fact = Fact("chat", "no local server is possible", {"program": None}, None, "warn")
    if config.model in {each.name for each in config.models}:
        if config.server == "off":
            fact.text = "the local server is switched off by the setting chat.server"
            return fact
        config = replace(config, model="")  # that is on another server
    notes: list[str] = []
    try:
        engine = launch.choose_engine(config, notes.append)
        fact.data["program"], fact.text = engine.name, f"{engine.name} would serve"
        plan = launch.make_plan(config, engine, completion, notes.append)
        fact.data |= {
            "model": plan.model.name,
            "context_tokens": plan.context_tokens,
            "need_bytes": plan.need_bytes,
        }
        fact.text = f"{engine.name} serves {plan.describe()}"
    except ModelMissing as error:
        notes.append(str(error))  # a chat model is optional
    except LcursorError as error:
        fact.problem = error
    if notes:
        text = "; ".join(notes)
        if command := re.search(r"models pull (\S+)", text):
            fact.data["pull"] = command[1]
        fact.text += f" ({exact(text)})"
    return fact


def _local_server() -> Fact:
    """Look for a server of the user that can complete until the engine is compiled."""
    from lcursor.fim.families import family_of
    from lcursor.llm import discovery

    ports = {
        port: api
        for port, api in discovery.PORTS.items()
        if api != "openai" and discovery.is_own(port)
    }
    fact = Fact("local_server", "no llama-server or Ollama of yours runs here", {"url": None})
    for found in discovery.running(ports):
        names = [name for name in found.models if family_of(name) and not discovery.is_remote(name)]
        if names:
            model = min(names, key=discovery.parameters)
            fact.text = f"{model} at {found.url}"
            fact.data = {"url": found.url, "api": found.api, "model": model}
            break
    return fact


def _chat_model(model: ModelConfig) -> Fact:
    """Check the address and the key of a model on another server, without asking it."""
    from lcursor.http import endpoint

    stays_here = endpoint.is_local(model.url)
    where = f"{model.model or 'its only model'} at {endpoint.display_url(model.url)}"
    fact = Fact("chat_model", f"{model.name}: {where}", {"is_local": stays_here})
    try:
        endpoint.check_url(model.url, f"{model.setting}url")
        endpoint.read_key(model.key_env, "", model.setting)
    except LcursorError as error:
        fact.problem = error
    if not stays_here and not fact.problem:
        fact.text += f"; {LEAVES}"
    return fact


def _check(name: str, command: str) -> Fact:
    """Look for the program of a setting: formatter, linter or tests."""
    fact = Fact("edit", f"edit.{name} is {command}", level="warn")
    program = next(iter(command.split()), "")
    is_plain = re.fullmatch(r"\w[\w.+-]*|/[\w.+/-]+", program) and program not in BUILTINS.split()
    if is_plain and shutil.which(program) is None:
        fact.problem = ConfigInvalid(
            f"edit.{name}: there is no program {program} here",
            "Correct it where you configure lcursor; see :help lcursor-edit-checks",
        )
    return fact


def _sandbox() -> Fact:
    """Describe what confines agents, and the commands of `edit.lint` and `edit.test`."""
    level = open_sandbox().level
    fact = Fact("sandbox", f"agents and checks run in a sandbox ({level})", {"level": level})
    fact.level = "warn"
    if level == "none":
        fact.text = WITHOUT
    if level == "none" and not system.IS_LINUX:
        fact.problem = SandboxMissing("No sandbox works", HELP)
    elif level in ("landlock", "none"):
        best = probe("bubblewrap")
        words = "No sandbox works" if level == "none" else "Only the weakest sandbox works"
        fact.problem = SandboxMissing(f"{words}; bubblewrap: {best.output}", best.fix)
    return fact


def _endpoint(config: CompletionConfig, model: ModelConfig) -> Fact:
    from lcursor.fim.endpoint import Endpoint
    from lcursor.http.endpoint import display_url, is_local

    where, stays_here = display_url(model.url), is_local(model.url)
    fact = Fact("endpoint", where, {"url": where, "is_local": stays_here})
    server = None
    try:
        server = Endpoint(config, model)
        server.connect()
        fact.text = server.description
    except LcursorError as error:
        fact.problem = error
    finally:
        if server:
            server.close()
    if not stays_here:
        fact.text += f"; {LEAVES}"
    return fact


def _grammars() -> Fact:
    from lcursor.code import grammars

    known = sorted(grammars.LANGUAGES)
    missing = [name for name in known if grammars.parser(name) is None]
    found = len(known) - len(missing)
    fact = Fact(
        "grammars", f"{found} of {len(known)} languages", {"missing": missing}, level="warn"
    )
    if missing and found:  # if all are missing, the line of the package tree-sitter reports it
        fact.problem = DependencyMissing(
            f"No grammar for {', '.join(missing)}: the index cuts such files by lines", AGAIN
        )
    return fact


def _engine(
    vendor: str, installed: dict[str, str], config: CompletionConfig, cores: int = 1
) -> Fact:
    """Describe the engine.

    Args:
        vendor: of the GPU; `none` without one.
        installed: the engine in the environment's stamp; empty in another environment.
        cores: physical ones.
    """
    fact = Fact("engine", "llama.cpp", {"has_gpu": False, "system_info": "", **installed})
    try:
        from lcursor.catalog.memory import gib
        from lcursor.fim import gpus, llama

        fact.data |= {"has_gpu": llama.has_gpu(), "system_info": llama.system_info().strip()}
        fact.data["gpus"] = [asdict(device) for device in gpus.find()]
    except LcursorError as error:
        fact.problem = error
        return fact
    kind = "with" if fact.data["has_gpu"] else "without"
    threads = f"{config.threads or cores} threads"
    layers = "all layers on the GPU" if config.gpu_layers < 0 else f"{config.gpu_layers} layers"
    used = layers if fact.data["has_gpu"] else threads
    names = ", ".join(
        f"{each['name']} ({gib(each['free_bytes'])} of {gib(each['total_bytes'])} free)"
        for each in fact.data["gpus"]
    )
    used += f"; {names}" if names else ""
    fact.text = f"llama.cpp {kind} a GPU backend: {fact.data['system_info']} {used}"
    if step := installed.get("step"):
        fact.text = f"the {step} build of {fact.text}"
    if reason := installed.get("reason"):
        fact.level = "warn"
        fact.problem = EngineFailed(
            f"A slower engine ({step}) is in use. {reason}", f"{AGAIN}, to try the faster one again"
        )
    elif advice := installed.get("advice"):
        fact.level = "warn"
        fact.problem = EngineFailed(f"The engine does not use the GPU: {advice}")
    elif installed.get("step", "").startswith(gpu.KINDS) and not fact.data["has_gpu"]:
        fact.level = "warn"
        fact.problem = EngineFailed(
            f"The {installed['step']} engine finds no GPU now, and uses the CPU",
            "After an update of the driver, restart the machine",
        )
    elif vendor == "nvidia" and not fact.data["has_gpu"]:
        fact.level = "warn"
        fact.problem = EngineFailed(
            "There is an NVIDIA GPU, but this llama.cpp was built without CUDA", AGAIN
        )
    return fact


def _guarded(section: str, find: Callable[[], Fact]) -> Fact:
    """Return the error of a failed check as a fact, so that the other checks run."""
    hint = "Fix the packages first"
    try:
        return find()
    except ModuleNotFoundError as error:
        problem = DependencyMissing(f"Not checked, since {error.name} is missing", hint)
        return Fact(section, section, {}, problem, "warn")
    except Exception as error:  # noqa: BLE001 - the root of every check
        reason = f"{type(error).__name__}: {error}"
        return Fact(section, section, {}, LcursorError(f"This check failed ({reason})", hint))


def _selftest(*, on_gpu: bool) -> Fact:
    """Test the engine in a child process, because it may crash."""
    outcome = selftest.run_engine(Path(sys.executable), on_gpu=on_gpu)
    fact = Fact("selftest", f"the engine {outcome.sentence}", {"kind": outcome.kind})
    if outcome.kind != "passed":
        fact.problem = EngineFailed(
            f"The engine {outcome.sentence}",
            "Run :LCursor install, which finds a build that works; in a checkout:"
            f" python3 lcursor/install.py --venv {shlex.quote(sys.prefix)} --verify",
        )
    return fact


def _chat_selftest() -> Fact:
    """Test the chat server with a tiny model."""
    outcome = selftest.run_server(Path(sys.executable))
    fact = Fact("chat_selftest", f"the chat server {outcome.sentence}", {"kind": outcome.kind})
    if outcome.kind != "passed":
        fact.level = "warn"
        fact.problem = ServerEnded(
            f"The chat server {outcome.sentence}",
            "Put a llama-server of llama.cpp that was built for this machine on PATH, or name a"
            " server in models",
        )
    return fact


def examine(
    config: Config,
    trying: Callable[[str], None] = lambda _: None,
    *,
    path: str = "",
    with_selftest: bool = False,
) -> Iterator[Fact]:
    """Run all checks; those that may crash the process come last.

    Args:
        config: the settings of the host.
        path: of a file; its project's index is reported too.
        trying: called with the name of a module before it is imported.
        with_selftest: also run the self-tests of engine and chat server, which takes seconds.
    """
    completion, server = config.completion, config.completion.endpoint
    yield environment.python()
    installed = _guarded("environment", environment.environment)
    yield installed
    if installed.data.get("is_ours") and "engine" not in installed.data["parts"]:
        yield _guarded("local_server", _local_server)
    here = _guarded("hardware", _hardware)
    yield here
    if server:
        yield _guarded("endpoint", partial(_endpoint, completion, server))
    else:
        yield _guarded("model", lambda: _model(completion.model))
    yield _guarded("index", lambda: _index(config.index.embedder, path))
    for model in config.chat.models:
        yield _guarded("chat_model", partial(_chat_model, model))
    local_model = "" if server else completion.model
    chat = _guarded("chat", lambda: _chat(config.chat, local_model))
    yield chat
    for name in ("formatter", "lint", "test"):
        if command := getattr(config.edit, name):
            yield _guarded("edit", partial(_check, name, command))
    yield _guarded("sandbox", _sandbox)
    trying("grammars")
    yield _guarded("grammars", _grammars)
    lock = environment.LOCK
    text = lock.read_text(encoding="utf-8") if lock.is_file() else ""
    locked, engine_is_there = environment.locked_versions(text), True
    for name, module in environment.PACKAGES.items():
        if module == "llama_cpp" and not installed.data.get("cpu_runs", True):
            return
        trying(name)
        package = environment.package(name, module, locked, installed)
        if module in ("llama_cpp", "numpy") and package.data["version"] is None:
            engine_is_there = False
        yield package
    if not engine_is_there:
        return
    trying("llama.cpp")
    build = installed.data.get("engine", {})
    vendor, cores = here.data.get("vendor", "none"), here.data.get("cores", 1)
    engine = _guarded("engine", lambda: _engine(vendor, build, completion, cores))
    yield engine
    if with_selftest:
        yield _guarded("selftest", lambda: _selftest(on_gpu=bool(engine.data.get("has_gpu"))))
        if chat.data.get("program"):
            yield _guarded("chat_selftest", _chat_selftest)


def print_lines(settings: str, path: str = "") -> None:
    """Print each fact as one line of JSON as soon as it is known, for the editor.

    Args:
        settings: those of the host, as JSON.
        path: see `examine`.
    """

    def line(table: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(table) + "\n")
        sys.stdout.flush()

    def trying(name: str) -> None:
        line({"section": "trying", "name": name})

    for fact in examine(from_table(json.loads(settings)), trying, path=path):
        line(fact.as_dict())
    line({"section": "end"})


def _is_broken(fact: Fact) -> bool:
    return fact.problem is not None and fact.level == "error"


def _document(facts: list[Fact]) -> dict[str, Any]:
    document: dict[str, Any] = {"ok": not any(map(_is_broken, facts))}
    for fact in facts:
        table = fact.as_dict()
        if (section := table.pop("section")) in LISTS:
            document.setdefault(LISTS[section], []).append(table)
        else:
            document[section] = table
    return document


def add_to(app: typer.Typer) -> None:
    """Add the command to the command line."""
    import typer

    @app.command()
    def doctor(
        model: str = typer.Option("", help="The setting completion.model."),
        settings: str = typer.Option(
            "{}", help='Settings as JSON: {"models": {"desk": {"url": "http://…"}}}.'
        ),
        as_json: bool = typer.Option(False, "--json", help="Print JSON for programs."),
        quick: bool = typer.Option(False, "--quick", help="Skip the self-tests."),
    ) -> None:
        """Check packages, engine, machine and models; exit with 1 if something is broken."""
        try:
            table = json.loads(settings)
        except ValueError as error:
            raise ConfigInvalid(f"--settings is no JSON ({error})", "See --help") from error
        if model:
            table["completion"] = {**(table.get("completion") or {}), "model": model}
        config = from_table(table)
        facts = []
        for fact in examine(config, with_selftest=not quick):
            facts.append(fact)
            if as_json:
                continue
            typer.echo(f"{fact.section:<13} {fact.text}")
            if fact.problem:
                typer.echo(f"{'':<12}! {fact.problem.message}. {exact(fact.problem.hint)}")
        if as_json:
            typer.echo(json.dumps(_document(facts), indent=1))
        if any(map(_is_broken, facts)):
            raise typer.Exit(1)
