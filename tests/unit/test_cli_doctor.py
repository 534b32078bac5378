"""`python -m lcursor doctor`: its facts, its exit status, and that hardly anything can stop it."""

from __future__ import annotations

import importlib
import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import ANY

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor import __version__
from lcursor.catalog import hardware, store
from lcursor.cli import doctor, environment
from lcursor.cli.facts import ROOT, Fact, exact
from lcursor.code import grammars
from lcursor.config import CompletionConfig, Config
from lcursor.config_table import from_table
from lcursor.errors import LcursorError
from lcursor.index import embed
from lcursor.installer import selftest
from lcursor.installer.selftest import SelftestOutcome
from lcursor.llm import discovery
from lcursor.llm.discovery import Found
from lcursor.project.root import begun_path

RUNNER = "import sys; sys.path.insert(0, {root!r}); {first}; from lcursor.cli import doctor; {last}"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A file with a model of one tensor in it."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    markers = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 2)
    head += text("general.architecture") + struct.pack("<I", 8) + text("qwen2")
    head += text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 3)
    head += b"".join(map(text, markers)) + text("weight") + struct.pack("<IQIQ", 1, 8, 0, 0)
    path = tmp_path / "tiny.gguf"
    path.write_bytes(head + bytes(-len(head) % 32) + bytes(32))
    return path


def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a person would."""
    return subprocess.run(
        [sys.executable, "-m", "lcursor", "doctor", "--quick", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **env},
        timeout=60,
        check=False,
    )


def lines_of(model: Path | str, first: str = "pass") -> list[dict[str, Any]]:
    """Run the doctor as the editor half does, and return its lines."""
    code = RUNNER.format(root=str(ROOT), first=first, last="doctor.print_lines(sys.argv[1])")
    settings = json.dumps({"completion": {"model": str(model)}})
    command = [sys.executable, "-I", "-c", code, settings]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", timeout=60)
    return [json.loads(line) for line in done.stdout.splitlines()]


def facts(model: Path | str) -> dict[str, Fact]:
    """Return all facts by section, packages by name."""
    return {
        fact.data["name"] if fact.section == "package" else fact.section: fact
        for fact in doctor.examine(settings(model))
    }


def settings(model: Path | str = "none", **sections: object) -> Config:
    """Return the settings with a completion model."""
    return from_table({"completion": {"model": str(model)}, **sections})


def test_a_person_sees_a_line_for_each_fact(model: Path) -> None:
    done = run("--model", str(model))
    assert (done.returncode, done.stderr) == (0, "")
    for line in (
        rf"python +3\.\d+\.\d+, {re.escape(sys.executable)}",
        r"environment +/",
        r"hardware +.* physical cores",
        rf"model +a file of your own: {re.escape(str(model))} \(.*qwen2\)",
        r"package +numpy \d",
        r"index +\d+ projects? in /.*/index \(.*\), vectors in /.*/vectors \(",
        rf"grammars +{len(grammars.LANGUAGES)} of {len(grammars.LANGUAGES)} languages",
        r"package +llama-cpp-python \d",
        r"engine +(the \S+ build of )?llama\.cpp with(out)? a GPU backend: ",
    ):
        assert re.search(f"^{line}", done.stdout, re.M), line


def test_json(model: Path) -> None:
    done = run("--json", "--model", str(model))
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert document["ok"] is True
    assert document["python"]["executable"] == sys.executable
    assert document["python"]["lcursor"] == __version__
    assert document["model"]["path"] == str(model)
    assert document["model"]["bytes"] == model.stat().st_size
    assert document["engine"]["system_info"].startswith("CPU")
    assert document["hardware"]["cores"] >= 1
    assert [package["name"] for package in document["packages"]] == list(environment.PACKAGES)
    assert all(package["version"] for package in document["packages"])


def test_what_is_broken_is_said_with_the_exact_command(tmp_path: Path) -> None:
    done = run(LCURSOR_MODELS=str(tmp_path))
    assert done.returncode == 1
    problems = [line for line in done.stdout.splitlines() if line.strip().startswith("!")]
    [line] = [line for line in problems if "sandbox" not in line]
    assert "The model qwen2.5-coder-0.5b is not on this machine" in line
    command = f"cd {ROOT} && {sys.executable} -m lcursor models pull qwen2.5-coder-0.5b"
    assert line.endswith(command)
    document = json.loads(run("--json", LCURSOR_MODELS=str(tmp_path)).stdout)
    assert document["ok"] is False
    assert document["model"]["problem"]["code"] == "model_missing"


def test_the_settings_of_the_chat_are_those_of_the_editor() -> None:
    def text(models: object = None, **chat: object) -> str:
        said = doctor.examine(settings(chat=chat, models=models))
        return next(f"{it.text} {it.problem}" for it in said if it.section == "chat")

    assert "no-such-model" in text(model="no-such-model")
    elsewhere = {"no-such-model": {"url": "http://127.0.0.1:9"}}
    assert "no-such-model" not in text(model="no-such-model", models=elsewhere)
    assert "switched off" in text(model="no-such-model", models=elsewhere, server="off")
    assert 'chat.server is "off", and' in text(server="off")


def test_chat_models_and_edit_commands_are_checked_without_running_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    models = {
        "desk": {"url": "http://me:secret@192.168.1.7:8080", "model": "big"},
        "here": {"url": "http://localhost:11434", "key_command": "touch /no/such/file"},
        "odd": {"model": "x"},
        "paid": {"url": "https://api.example.com/v1", "key_env": "NO_SUCH_KEY"},
    }
    edit = {
        "formatter": f"'{sys.executable}' -m black -",
        "lint": "no-such-linter {path}",
        "test": "CI=1 make test",
    }
    found = [*doctor.examine(settings(models=models, edit=edit))]
    rows = [
        (fact.text, fact.data.get("is_local"), fact.problem and str(fact.problem))
        for fact in found
        if fact.section in {"chat_model", "edit"}
    ]
    away = "what you write leaves this machine"
    assert rows == [
        (f"desk: big at http://192.168.1.7:8080; {away}", False, None),
        ("here: its only model at http://localhost:11434", True, None),
        ("odd: x at ", False, ANY),
        ("paid: its only model at https://api.example.com/v1", False, ANY),
        (f"edit.formatter is '{sys.executable}' -m black -", None, None),
        ("edit.lint is no-such-linter {path}", None, ANY),
        ("edit.test is CI=1 make test", None, None),
    ]
    problems = [problem for *_, problem in rows if problem]
    assert "models.odd.url: '' is not the address" in problems[0]
    assert "the variable NO_SUCH_KEY returned no key" in problems[1]
    assert "edit.lint: there is no program no-such-linter here. Correct it" in problems[2]


@pytest.mark.parametrize(
    "command",
    [
        *("cd web && npm test", "source .venv/bin/activate && pytest", "set -e; pytest"),
        *("(cd web; ls)", "if true; then true; fi", "time true", "! grep x y", "CI=1 true"),
        *("./gradlew test", "node_modules/.bin/eslint {path}", "~/bin/lint", "true # don't"),
    ],
)
def test_no_program_is_missing_in_what_bash_can_run(command: str) -> None:
    assert doctor._check("test", command).problem is None


@pytest.mark.parametrize("program", ["no-such-linter", "/no/such/linter"])
def test_a_program_that_is_not_here_is_missing(program: str) -> None:
    problem = doctor._check("lint", f"{program} {{path}} | head").problem
    assert f"there is no program {program} here" in str(problem)


def test_what_the_index_keeps_is_said(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LCURSOR_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LCURSOR_MODELS", raising=False)
    empty = facts(model)["index"]
    assert empty.problem is None
    assert empty.text.startswith(f"0 projects in {tmp_path}/data/index (0 bytes)")
    assert "without the embedder: cd " in empty.text
    assert empty.text.endswith("-m lcursor models pull minilm-l6-v2-int8")
    folder = tmp_path / "data" / "index" / "mine-1"
    folder.mkdir(parents=True)
    (folder / "begun.json").write_text("{}")
    (folder / "index.sqlite3").write_bytes(b"x" * 5000)
    (tmp_path / "cache/lcursor/vectors").mkdir(parents=True)
    (tmp_path / "cache/lcursor/vectors/a.sqlite3").write_bytes(b"x" * 700)
    spec = embed.find(embed.DEFAULT)
    for each in spec.model.files:
        path = store.path_of(each)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    data = facts(model)["index"].data
    assert (data["projects"], data["bytes"], data["vectors_bytes"]) == (1, 5002, 700)
    assert data["is_embedder_here"]
    config = settings(model, index={"embedder": ""})
    [alone] = [one for one in doctor.examine(config) if one.section == "index"]
    assert alone.text.endswith("no semantic search: index.embedder is empty")


def test_the_command_that_is_named_can_be_typed() -> None:
    hint = exact("Check it: python -m lcursor models list")
    command = hint.removeprefix("Check it: ")
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stderr
    assert "qwen2.5-coder-0.5b" in done.stdout


def test_the_editor_reads_lines_that_end_with_end(model: Path) -> None:
    lines = lines_of(model)
    assert [line["section"] for line in lines[:4]] == ["python", "environment", "hardware", "model"]
    assert lines[-1] == {"section": "end"}
    tried = [line["name"] for line in lines if line["section"] == "trying"]
    assert tried == ["grammars", *environment.PACKAGES, "llama.cpp"]


@pytest.mark.parametrize("missing", ["typer", "rich", "pynvim"])
def test_a_missing_package_stops_nothing_else(model: Path, missing: str) -> None:
    lines = lines_of(model, f"sys.modules[{missing!r}] = None")
    packages = {line["name"]: line for line in lines if line["section"] == "package"}
    assert packages[missing]["problem"]["code"] == "dependency_missing"
    assert "install" in packages[missing]["problem"]["hint"]
    assert [name for name in packages if "problem" in packages[name]] == [missing]
    assert lines[-1] == {"section": "end"}


def test_without_a_toml_reader_the_packages_are_still_reported(model: Path) -> None:
    reader = "tomllib" if sys.version_info >= (3, 11) else "tomli"
    lines = lines_of(model, f"sys.modules[{reader!r}] = None")
    problem = next(line for line in lines if line["section"] == "model")["problem"]
    assert (problem["code"], problem["level"]) == ("dependency_missing", "warn")
    assert f"{reader} is missing" in problem["message"]
    assert any(line.get("name") == "numpy" and "version" in line for line in lines)
    assert lines[-1] == {"section": "end"}


def test_without_numpy_the_engine_is_not_even_tried(model: Path) -> None:
    lines = lines_of(model, "sys.modules['numpy'] = None")
    assert not [line for line in lines if line["section"] == "engine"]
    assert lines[-1] == {"section": "end"}


def test_what_was_reported_before_a_crash_is_not_lost(model: Path) -> None:
    crash = "import os; sys.meta_path.insert(0, type('C', (), {'find_spec': staticmethod("
    crash += "lambda name, *_: os._exit(9) if name[:10] == 'llama_cpp.' else None)}))"
    lines = lines_of(model, crash)
    assert lines[-1] == {"section": "trying", "name": "llama-cpp-python"}
    assert any(line.get("name") == "numpy" and "version" in line for line in lines)


def test_only_the_standard_library_is_imported_at_the_top() -> None:
    code = RUNNER.format(
        root=str(ROOT),
        first="before = set(sys.modules)",
        last="print(sorted({m.split('.')[0] for m in set(sys.modules) - before}"
        " - set(sys.stdlib_module_names)))",
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "['lcursor']"


def test_every_requirement_is_looked_at() -> None:
    text = (ROOT / "requirements.in").read_text()
    wanted = set(re.findall(r"^([A-Za-z][\w-]*)", text, re.M))
    wheels = {name for name in wanted if name.startswith("tree-sitter-")}
    assert wanted - wheels - {"tomli"} <= set(environment.PACKAGES)
    modules = {
        grammars.MODULES.get(name, (f"tree_sitter_{name}",))[0] for name in grammars.LANGUAGES
    }
    assert {name.replace("-", "_") for name in wheels} == modules
    locked = environment.locked_versions((ROOT / "requirements.lock").read_text())
    assert {name.replace("-", "_") for name in environment.PACKAGES} <= set(locked)


NAMES = st.from_regex(r"[a-z][a-z0-9]{0,5}([-_.][a-z0-9]{1,4})?", fullmatch=True)
VERSIONS = st.from_regex(r"[0-9]{1,2}(\.[0-9]{1,3}){1,3}(rc1|\.post2)?", fullmatch=True)


@given(st.dictionaries(NAMES, st.lists(VERSIONS, min_size=1, max_size=3), max_size=8))
def test_a_lock_says_which_versions_it_allows(wanted: dict[str, list[str]]) -> None:
    lines = ["# made by a tool"]
    for name, versions in wanted.items():
        for number, version in enumerate(versions):
            marker = f" ; python_full_version < '3.{number}'" if len(versions) > 1 else ""
            lines += [f"{name}=={version}{marker} \\", "    --hash=sha256:00", "    # via other==9"]
    expected: dict[str, set[str]] = {}
    for name, versions in wanted.items():
        expected.setdefault(name.replace("-", "_"), set()).update(versions)
    assert environment.locked_versions("\n".join(lines)) == expected


def stamp(prefix: Path, monkeypatch: pytest.MonkeyPatch, **values: object) -> None:
    """Let this interpreter seem to stand in an environment with such a stamp."""
    table = {"format": 1, "lcursor": __version__, "python": "3", "cpu": [], "parts": {}, **values}
    (prefix / "lcursor-stamp.json").write_text(json.dumps(table))
    monkeypatch.setattr(sys, "prefix", str(prefix))


def test_an_engine_for_another_cpu_is_not_loaded(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stamp(tmp_path, monkeypatch, cpu=["avx9"], parts={"runtime": "x", "engine": "y"})
    found = facts(model)
    problem = found["environment"].problem
    assert problem is not None
    assert "another CPU" in problem.message
    assert ":LCursor install" in problem.hint
    assert "numpy" in found
    assert not {"llama-cpp-python", "engine"} & found.keys()


@pytest.mark.parametrize(
    ("parts", "complaint", "level"),
    [
        ({"runtime": "x"}, "incomplete", "error"),
        ({"runtime": "x", "engine": "y"}, "another", "warn"),
    ],
)
def test_an_environment_that_is_not_finished(
    tmp_path: Path,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    parts: dict[str, str],
    complaint: str,
    level: str,
) -> None:
    stamp(tmp_path, monkeypatch, parts=parts)
    fact = facts(model)["environment"]
    assert fact.problem is not None
    assert complaint in fact.problem.message
    assert fact.level == level


def test_a_version_that_was_not_tested_is_a_warning(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text("rich==0.0.1 \\\n    --hash=sha256:00\n")
    monkeypatch.setattr(environment, "LOCK", lock)
    with monkeypatch.context() as own:
        own.setattr(sys, "prefix", str(tmp_path / "own"))  # nothing that lcursor made
        assert facts(model)["rich"].problem is None
    stamp(tmp_path, monkeypatch, parts={"runtime": "x", "engine": "y"})
    fact = facts(model)["rich"]
    assert fact.problem is not None
    assert "tested with 0.0.1" in fact.problem.message
    assert fact.level == "warn"


def test_a_gpu_that_the_build_cannot_use(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lcursor.fim import gpus, llama

    gpu = hardware.Hardware("nvidia", "H100", 80 << 30, 79 << 30, 64 << 30, 8)
    monkeypatch.setattr(hardware, "detect", lambda: gpu)
    monkeypatch.setattr(llama, "has_gpu", lambda: False)
    fact = facts(model)["engine"]
    assert fact.problem is not None
    assert "without CUDA" in fact.problem.message
    assert ":LCursor install" in fact.problem.hint
    stamp(tmp_path, monkeypatch, engine={"step": "cuda, native"})
    fact = facts(model)["engine"]
    assert fact.problem is not None
    assert "The cuda, native engine finds no GPU now" in fact.problem.message
    assert "restart" in fact.problem.hint
    monkeypatch.setattr(llama, "has_gpu", lambda: True)
    monkeypatch.setattr(gpus, "find", lambda: [hardware.Device("H100", 80 << 30, 79 << 30)])
    assert facts(model)["engine"].problem is None
    assert "H100 (79.0 GiB of 80.0 GiB free)" in facts(model)["engine"].text


def test_one_broken_check_leaves_the_others(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def boom() -> None:
        raise ZeroDivisionError("no cores")

    monkeypatch.setattr(hardware, "detect", boom)
    found = facts(model)
    assert isinstance(found["hardware"].problem, LcursorError)
    assert "ZeroDivisionError: no cores" in found["hardware"].problem.message
    assert found["model"].problem is None
    assert found["engine"].problem is None


def test_a_package_that_breaks_while_it_loads(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def load(name: str) -> ModuleType:
        if name == "numpy":
            raise OSError("libopenblas.so: cannot open shared object file")
        return real(name)

    monkeypatch.setattr(importlib, "import_module", load)
    problem = facts(model)["numpy"].problem
    assert problem is not None
    assert "numpy does not load (OSError: libopenblas.so" in problem.message


def test_the_engines_step_and_the_reason_for_it_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = {"step": "avx2", "reason": "The native engine crashes: SIGSEGV"}
    fact = doctor._engine("none", installed, CompletionConfig())
    assert fact.text.startswith("the avx2 build of llama.cpp")
    assert fact.level == "warn"
    assert fact.problem
    assert fact.problem.message == (
        "A slower engine (avx2) is in use. The native engine crashes: SIGSEGV"
    )
    assert doctor._engine("none", {"step": "native"}, CompletionConfig()).problem is None
    advice = {"step": "native", "reason": "", "advice": "Vulkan for the AMD GPU needs glslc"}
    unused = doctor._engine("amd", advice, CompletionConfig()).problem
    assert unused
    assert unused.message == f"The engine does not use the GPU: {advice['advice']}"


@pytest.mark.parametrize("kind", ["passed", "crashed", "hung", "wrong"])
def test_the_self_tests_are_facts(
    monkeypatch: pytest.MonkeyPatch, model: Path, kind: selftest.Kind
) -> None:
    outcome = SelftestOutcome(kind, "reading 8 tokens")
    monkeypatch.setattr(selftest, "run_engine", lambda *_, **__: outcome)
    monkeypatch.setattr(selftest, "run_server", lambda *_, **__: outcome)
    found = {each.section: each for each in doctor.examine(settings(model), with_selftest=True)}
    for section in ("selftest", "chat_selftest"):
        fact = found[section]
        assert outcome.sentence in fact.text
        assert (fact.problem is None) == (kind == "passed")


def test_a_local_server_is_looked_for_until_there_is_an_engine(
    monkeypatch: pytest.MonkeyPatch, model: Path
) -> None:
    """Only servers of the user are asked, and only their models that can complete are used."""
    asked = []
    found = Found("http://127.0.0.1:1", "ollama", ("llama3:8b", "qwen2.5-coder:7b-cloud"))
    better = Found("http://127.0.0.1:2", "ollama", ("qwen2.5-coder:7b", "qwen2.5-coder:1.5b"))

    def running(ports: dict[int, str]) -> list[Found]:
        asked.append(ports)
        return [found, better]

    monkeypatch.setattr(discovery, "running", running)
    monkeypatch.setattr(discovery, "is_own", lambda port: port == 11434)
    for parts, is_looked_for in (({"runtime": "x"}, True), ({"engine": "x"}, False)):
        installed = Fact("environment", "", {"is_ours": True, "parts": parts})
        monkeypatch.setattr(environment, "environment", lambda installed=installed: installed)
        fact = facts(model).get("local_server")
        assert (fact is not None) is is_looked_for
        if fact:
            url, name = "http://127.0.0.1:2", "qwen2.5-coder:1.5b"
            assert fact.data == {"url": url, "api": "ollama", "model": name}
    assert asked == [{11434: "ollama"}]


def test_the_index_of_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LCURSOR_DATA", str(tmp_path / "data"))
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/Makefile").touch()
    path = str(tmp_path / "shop/a.py")
    for is_begun in (False, True):
        found = {fact.section: fact for fact in doctor.examine(settings("/no.gguf"), path=path)}
        assert found["index"].data["root"] == str(tmp_path / "shop")
        assert found["index"].data["is_begun"] is is_begun
        begun = begun_path(tmp_path / "shop")
        begun.parent.mkdir(parents=True, exist_ok=True)
        begun.touch()
