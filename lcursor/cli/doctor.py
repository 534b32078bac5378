"""`python -m lcursor doctor`: check the installation, and name the command that fixes each problem.

Prints the facts one by one, so that the editor's health check gets all up to one that hangs or
crashes. It must work if packages are missing: only the standard library is imported at the top, and
typer only for the command line.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import json
import os
import platform
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcursor import __version__
from lcursor.cli import selftests
from lcursor.cli.facts import AGAIN, COMMAND, ROOT, Fact, exact
from lcursor.config import ChatConfig, CompletionConfig, IndexConfig, from_table
from lcursor.errors import (
    DependencyMissing,
    EngineFailed,
    InstallFailed,
    LcursorError,
    ModelMissing,
)

if TYPE_CHECKING:
    import typer

LOCK = ROOT / "requirements.lock"
PACKAGES = {
    "pynvim": "pynvim",
    "msgpack": "msgpack",
    "numpy": "numpy",
    "typer": "typer",
    "rich": "rich",
    "huggingface_hub": "huggingface_hub",
    "httpx2": "httpx2",
    "pathspec": "pathspec",
    "watchdog": "watchdog",
    "tree-sitter": "tree_sitter",
    "tokenizers": "tokenizers",
    "onnxruntime": "onnxruntime",
    "usearch": "usearch",
    "xllamacpp": "xllamacpp",
    "llama-cpp-python": "llama_cpp",
}
"""Package to the module that is imported; the one that may crash comes last."""
if sys.version_info < (3, 11):
    PACKAGES = {"tomli": "tomli", **PACKAGES}


def locked_versions(lock: str) -> dict[str, set[str]]:
    """Read which versions of each package a lock file allows, over all Pythons.

    Args:
        lock: the file's text.
    """
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)==([^\s;\\]+)", lock, re.MULTILINE):
        found.setdefault(name.replace("-", "_"), set()).add(version)
    return found


def _python() -> Fact:
    where = sys.executable
    data = {
        "executable": where,
        "version": platform.python_version(),
        "prefix": sys.prefix,
        "is_venv": sys.prefix != sys.base_prefix,
        "root": str(ROOT),
        "lcursor": __version__,
    }
    return Fact("python", f"{platform.python_version()}, {where}", data)


def _environment() -> Fact:
    from lcursor.installer.engine import cpu_runs
    from lcursor.installer.venv import STAMP, digest, read_stamp

    venv = Path(sys.prefix)
    stamp = read_stamp(venv)
    is_ours = (venv / STAMP).is_file()
    fact = Fact(
        "environment",
        f"{venv}, made by lcursor {stamp.lcursor}" if is_ours else f"{venv}, not made by lcursor",
        {
            "path": str(venv),
            "is_ours": is_ours,
            "parts": stamp.parts,
            "engine": stamp.engine,
            "cpu_runs": True,
        },
    )
    if not is_ours:
        return fact
    if not cpu_runs(stamp.cpu):
        fact.data["cpu_runs"] = False
        fact.problem = InstallFailed(
            "The engine was compiled for another CPU, and would crash on this one", AGAIN
        )
    elif not {"runtime", "engine"} <= stamp.parts.keys():
        fact.problem = InstallFailed(f"The environment in {venv} is incomplete", AGAIN)
    elif stamp.parts["runtime"] != digest(LOCK):
        fact.problem = InstallFailed("The environment was made for another version", AGAIN)
        fact.level = "warn"
    return fact


def _hardware() -> Fact:
    from lcursor.catalog import hardware

    here = hardware.detect()
    return Fact("hardware", here.describe(), here.as_dict())


def _model(name: str) -> Fact:
    from lcursor.catalog import gguf, manifest, store
    from lcursor.catalog.store import format_bytes

    fact = Fact("model", name, {"name": name, "path": None})
    try:
        path = store.resolve(name, "completion")
        fact.data |= {"path": str(path), "bytes": path.stat().st_size}
        head = gguf.check_for_completion(path)
        known = manifest.with_file(path.name)
        if known and store.path_of(known) != path:
            known = None
        checked = bool(known and store.read_record(path, known))
        fact.data |= {"architecture": head.architecture, "is_verified": checked}
        if known and not checked:
            fact.data["verify"] = exact(f"{COMMAND} models verify {known.name}")
        words = f", {head.architecture}" + (", digest verified" if checked else "")
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


def _index(embedder: str) -> Fact:
    from lcursor.catalog import manifest, store
    from lcursor.catalog.store import format_bytes
    from lcursor.project.root import BEGUN
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
    """Find out what would serve the chat; starts no server.

    Args:
        config: the settings of the chat.
        completion: the completion model, whose memory stays free; "" for none.
    """
    from lcursor.llm import launch

    if config.model in {each.name for each in config.models}:
        config = replace(config, model="")  # that is on another server
    notes: list[str] = []
    fact = Fact(
        "chat", "no local server is possible", {"program": None, "model": None}, None, "warn"
    )
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
        notes.append(str(error))  # none is needed before one asks something
    except LcursorError as error:
        fact.problem = error
    if notes:
        fact.text += f" ({exact('; '.join(notes))})"
    return fact


def _endpoint(config: CompletionConfig) -> Fact:
    from lcursor.fim.endpoint import Endpoint
    from lcursor.http.endpoint import display_url, is_local

    where, stays_here = display_url(config.endpoint_url), is_local(config.endpoint_url)
    fact = Fact("endpoint", where, {"url": where, "is_local": stays_here})
    server = None
    try:
        server = Endpoint(config)
        server.connect()
        fact.text = server.description
    except LcursorError as error:
        fact.problem = error
    finally:
        if server:
            server.close()
    if not stays_here:
        fact.text += "; what you write leaves this machine"
    return fact


def _repair_hint(environment: Fact) -> str:
    """Return the command that repairs the packages."""
    if not environment.data.get("is_ours"):
        install = shlex.join([sys.executable, "-m", "pip", "install", "-r", str(LOCK)])
        return f"Remove the setting python and run :LCursor install, or run {install}"
    if environment.problem:
        return AGAIN
    return f"Run rm -rf {shlex.quote(sys.prefix)}, then :LCursor install"


def _package(name: str, module: str, locked: dict[str, set[str]], environment: Fact) -> Fact:
    hint = _repair_hint(environment)
    is_ours = environment.data.get("is_ours", False)
    wanted = locked.get(name.replace("-", "_"), set())
    data = {"name": name, "module": module, "version": None, "locked": sorted(wanted)}
    fact = Fact("package", name, data)
    try:
        importlib.import_module(module)
        version = importlib.metadata.version(name)
    except ModuleNotFoundError as error:
        missing = name if error.name == module else f"{error.name}, which {name} needs,"
        fact.problem = DependencyMissing(f"The package {missing} is missing", hint)
    except importlib.metadata.PackageNotFoundError:
        fact.text = f"{name}, version unknown"
    except Exception as error:  # noqa: BLE001 - a foreign package may raise anything
        reason = f"{type(error).__name__}: {error}"
        fact.problem = DependencyMissing(f"The package {name} does not load ({reason})", hint)
    else:
        data["version"], fact.text = version, f"{name} {version}"
        if is_ours and wanted and version not in wanted:
            fact.level = "warn"
            fact.problem = DependencyMissing(
                f"{name} is {version}, and lcursor was tested with {', '.join(sorted(wanted))}",
                hint,
            )
    return fact


def _grammars() -> Fact:
    from lcursor.code import grammars

    known = sorted(grammars.LANGUAGES)
    missing = [name for name in known if grammars.parser(name) is None]
    found = len(known) - len(missing)
    fact = Fact("grammars", f"{found} of {len(known)}", {"missing": missing}, level="warn")
    if missing and found:  # without the package tree-sitter there is none, and its own line says so
        fact.problem = DependencyMissing(
            f"No grammar for {', '.join(missing)}: the index cuts such files by lines", AGAIN
        )
    return fact


def _engine(vendor: str, installed: dict[str, str]) -> Fact:
    """Describe the engine.

    Args:
        vendor: of the GPU, `none` without one.
        installed: what the environment's stamp says of it; empty in another environment.
    """
    fact = Fact("engine", "llama.cpp", {"has_gpu": False, "system_info": "", **installed})
    try:
        from lcursor.fim import llama

        fact.data |= {"has_gpu": llama.has_gpu(), "system_info": llama.system_info().strip()}
    except LcursorError as error:
        fact.problem = error
        return fact
    kind = "with" if fact.data["has_gpu"] else "without"
    fact.text = f"llama.cpp {kind} a GPU backend: {fact.data['system_info']}"
    if step := installed.get("step"):
        fact.text = f"the {step} build of {fact.text}"
    if reason := installed.get("reason"):
        fact.level = "warn"
        fact.problem = EngineFailed(
            f"A slower engine ({step}) is in use. {reason}", f"{AGAIN}, to try the faster one again"
        )
    elif vendor == "nvidia" and not fact.data["has_gpu"]:
        fact.level = "warn"
        fact.problem = EngineFailed(
            "There is an NVIDIA GPU, but this llama.cpp was built without CUDA",
            "Install the CUDA toolkit, so that nvcc is on PATH, then run :LCursor install",
        )
    return fact


def _guarded(section: str, find: Callable[[], Fact]) -> Fact:
    """Keep one broken check from taking the others with it."""
    hint = "Fix the packages first"
    try:
        return find()
    except ModuleNotFoundError as error:
        problem = DependencyMissing(f"Not checked, since {error.name} is missing", hint)
        return Fact(section, section, {}, problem, "warn")
    except Exception as error:  # noqa: BLE001 - the root of every check
        reason = f"{type(error).__name__}: {error}"
        return Fact(section, section, {}, LcursorError(f"This check failed ({reason})", hint))


def examine(
    model: str,
    trying: Callable[[str], None] = lambda _: None,
    endpoint: CompletionConfig | None = None,
    embedder: str = IndexConfig().embedder,
    chat: ChatConfig | None = None,
    *,
    with_selftest: bool = False,
) -> Iterator[Fact]:
    """Find out everything, the harmless first and what may crash the process last.

    Args:
        model: the setting completion.model.
        trying: told the name of a module before it is imported.
        endpoint: the settings, where the model runs on a server; then it is asked instead.
        embedder: the setting index.embedder.
        chat: the settings of the chat.
        with_selftest: also run the self-tests of engine and chat server, which takes seconds.
    """
    yield _python()
    environment = _guarded("environment", _environment)
    yield environment
    here = _guarded("hardware", _hardware)
    yield here
    if endpoint:
        yield _guarded("endpoint", lambda: _endpoint(endpoint))
    else:
        yield _guarded("model", lambda: _model(model))
    yield _guarded("index", lambda: _index(embedder))
    talk = _guarded("chat", lambda: _chat(chat or ChatConfig(), "" if endpoint else model))
    yield talk
    trying("grammars")
    yield _guarded("grammars", _grammars)
    locked = locked_versions(LOCK.read_text(encoding="utf-8")) if LOCK.is_file() else {}
    runs, engine_is_there = environment.data.get("cpu_runs", True), True
    for name, module in PACKAGES.items():
        if module == "llama_cpp" and not runs:
            return
        trying(name)
        package = _package(name, module, locked, environment)
        if module in ("llama_cpp", "numpy") and package.data["version"] is None:
            engine_is_there = False
        yield package
    if engine_is_there:
        trying("llama.cpp")
        installed = environment.data.get("engine", {})
        built = _guarded("engine", lambda: _engine(here.data.get("vendor", "none"), installed))
        yield built
        if with_selftest:
            yield _guarded("selftest", lambda: selftests.engine(bool(built.data.get("has_gpu"))))
            if talk.data.get("program"):
                yield _guarded("chat_selftest", selftests.chat_server)


def tell(
    model: str, completion: str = "", embedder: str = IndexConfig().embedder, chat: str = ""
) -> None:
    """Print each fact as one line of JSON as soon as it is known, for the editor half.

    Args:
        model: the setting completion.model.
        completion: all settings of completion as JSON, where the model runs on a server.
        embedder: the setting index.embedder.
        chat: all settings of the chat as JSON.
    """
    endpoint = from_table({"completion": json.loads(completion)}).completion if completion else None
    talk = from_table({"chat": json.loads(chat)}).chat if chat else None

    def line(table: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(table) + "\n")
        sys.stdout.flush()

    def trying(name: str) -> None:
        line({"section": "trying", "name": name})

    for fact in examine(model, trying, endpoint, embedder, talk):
        line(fact.as_dict())
    line({"section": "end"})


def _is_broken(fact: Fact) -> bool:
    return fact.problem is not None and fact.level == "error"


def _document(facts: list[Fact]) -> dict[str, Any]:
    tables = [fact.as_dict() for fact in facts]
    sections = {table.pop("section"): table for table in tables if table["section"] != "package"}
    for table in tables:
        table.pop("section", None)
    packages = [table for table in tables if "module" in table]
    return {"ok": not any(map(_is_broken, facts)), **sections, "packages": packages}


def add_to(app: typer.Typer) -> None:
    """Add the command to the command line."""
    import typer

    @app.command()
    def doctor(
        model: str = typer.Option(CompletionConfig().model, help="The setting completion.model."),
        endpoint: str = typer.Option("", help="The setting completion.endpoint_url."),
        endpoint_model: str = typer.Option("", help="The setting completion.endpoint_model."),
        endpoint_family: str = typer.Option("", help="The setting completion.endpoint_family."),
        endpoint_key_env: str = typer.Option("", help="The setting completion.endpoint_key_env."),
        as_json: bool = typer.Option(False, "--json", help="Print JSON for programs."),
        quick: bool = typer.Option(False, "--quick", help="Skip the self-tests."),
    ) -> None:
        """Check packages, engine, machine and models; exit with 1 if something is broken."""
        server = CompletionConfig(
            backend="endpoint",
            endpoint_url=endpoint,
            endpoint_model=endpoint_model,
            endpoint_family=endpoint_family,
            endpoint_key_env=endpoint_key_env,
        )
        facts = []
        for fact in examine(model, endpoint=server if endpoint else None, with_selftest=not quick):
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
