"""Which calls are cut and what they are shown, in a repository of three small files."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from evals import calls, context, fim
from lcursor.__main__ import app
from lcursor.errors import LcursorError
from lcursor.fim.engine import Engine, Result
from lcursor.fim.prompt import File, Source

TOOLS = '''"""Tools."""


class Hammer:
    weight: int

    def __init__(self, weight: int) -> None:
        self.weight = weight


def measure(length: float, unit: str = "m") -> str:
    """Measure."""
    return f"{length} {unit}"
'''
MAIN = """import os
from shop import tools
from shop.tools import Hammer as Tool, measure
from .other import lonely


def measured(ä: str) -> None:
    print("ä", measure(length=3, unit="km"))
    os.getcwd()
    tools.measure(4)
    hammer = Tool(weight=3)
    lonely()
    measured("x")
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "tools.py").write_text(TOOLS)
    (folder / "main.py").write_text(MAIN)
    (folder / "other.py").write_text("def lonely() -> None: ...\n")
    (folder / "broken.py").write_text("def (")
    return folder


def cut_at(shop: Path, kind: calls.Kind) -> list[tuple[str, str, str]]:
    chosen = calls.choose(calls.read(shop), kind, 99, 1)
    return [(call.prefix.rpartition("\n")[2].strip(), call.rest, call.callee) for call in chosen]


def test_names_are_cut_behind_two_characters(shop: Path) -> None:
    assert cut_at(shop, "name") == [
        ('print("ä", me', 'asure(length=3, unit="km"))', "measure"),
        ("tools.me", "asure(4)", "measure"),
        ("hammer = To", "ol(weight=3)", "Hammer"),
        ("lo", "nely()", "lonely"),
    ]


def test_arguments_are_cut_behind_the_bracket_where_there_are_some(shop: Path) -> None:
    assert cut_at(shop, "arguments") == [
        ('print("ä", measure(', 'length=3, unit="km"))', "measure"),
        ("hammer = Tool(", "weight=3)", "Hammer"),
    ]


def test_the_file_is_whole_around_the_cut(shop: Path) -> None:
    for kind, count in zip(calls.KINDS, (4, 2), strict=True):
        chosen = calls.choose(calls.read(shop), kind, 99, 1)
        assert len(chosen) == count
        for call in chosen:
            assert call.prefix + call.rest + call.suffix == MAIN
            assert call.path == "shop/main.py"
            assert call.defined_in in {"shop/tools.py", "shop/other.py"}


def test_a_choice_depends_on_the_seed_alone(shop: Path) -> None:
    modules = calls.read(shop)
    assert calls.choose(modules, "name", 2, 5) == calls.choose(modules, "name", 2, 5)
    assert {call.callee for call in calls.choose(modules, "name", 1, 1)} <= {
        "measure",
        "Hammer",
        "lonely",
    }
    assert len({calls.choose(modules, "name", 1, seed)[0].prefix for seed in range(20)}) > 1


def test_a_folder_without_python_says_so(tmp_path: Path) -> None:
    with pytest.raises(LcursorError, match="no Python file"):
        calls.read(tmp_path)


def test_the_files_are_the_definition_and_the_headers(shop: Path) -> None:
    modules = calls.read(shop)
    call = next(each for each in calls.choose(modules, "name", 9, 1) if each.callee == "Hammer")
    shown = context.visited_files(modules, call, 9999, len)
    assert [file.path for file in shown] == ["shop/tools.py", "shop/tools.py", "shop/other.py"]
    assert "self.weight = weight" in shown[0].text
    assert "class Hammer:" in shown[1].text
    assert "def measure(length: float" in shown[1].text
    assert "self.weight" not in shown[1].text


class Parrot:
    """An engine that knows a callee only where a file names it."""

    model = SimpleNamespace(
        tokenize=lambda text: list(text), path=Path("none.gguf"), description=""
    )
    files: tuple[File, ...] = ()
    files_tokens = 9999

    def __init__(self) -> None:
        self.abort = threading.Event()
        self.asked: list[tuple[Source, int]] = []
        self.reader = self

    def complete(
        self,
        source: Source,
        on_text: Callable[[str], None],
        *,
        single_line: bool = False,
        bypass_cache: bool = False,
    ) -> Result:
        assert single_line
        assert bypass_cache  # what is remembered was written with other files
        self.asked.append((source, self.files_tokens))
        knows = any("class Hammer" in file.text for file in self.files)
        return Result(text="ol(weight=3)" if knows else "tal()")

    def close(self) -> None:
        """Free nothing."""


def test_each_cut_is_completed_without_files_and_with_them(shop: Path) -> None:
    engine, modules = Parrot(), calls.read(shop)
    chosen = calls.choose(modules, "name", 9, 1)
    found = list(context.pairs(cast("Engine", engine), modules, chosen, "shop", 9999))
    assert [tokens for _, tokens in engine.asked] == [0, 9999] * 4
    assert {source.repo for source, _ in engine.asked} == {"shop"}
    assert all(source.first_row == 0 for source, _ in engine.asked)
    assert [(pair.without_exact, pair.with_exact) for pair in found] == [
        (False, False),
        (False, False),
        (False, True),
        (False, False),
    ]
    assert all(pair.has_callee for pair in found)
    assert [pair.with_word for pair in found] == [pair.with_exact for pair in found]
    assert not any(pair.without_word for pair in found)


def test_the_last_line_is_json(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fim, "load", lambda model: Parrot())
    cases = shop.parent / "cases.jsonl"
    options = ["--n", "2", "--files-tokens", "500", "--json", "--cases", str(cases)]
    done = CliRunner().invoke(app, ["eval", "context", str(shop), *options])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout.splitlines()[-1])
    assert {name: row["cuts"] for name, row in document["cuts"].items()} == {
        "name": 2,
        "arguments": 2,
        "all": 4,
    }
    assert (document["repository"], document["files_tokens"]) == ("shop", 500)
    assert len(cases.read_text().splitlines()) == 4
    assert "exact without" in done.stderr


def test_a_folder_where_nobody_calls_anybody_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("print(1)\n")
    done = CliRunner().invoke(app, ["eval", "context", str(tmp_path)])
    assert done.exit_code == 2
    assert "calls what another one defines" in " ".join(done.stderr.split())


def pair(kind: calls.Kind, without: bool, with_files: bool) -> context.Pair:
    return context.Pair(
        kind, "a.py", "f", "x", "", "", without, with_files, False, with_files, True, 0
    )


def test_gains_and_losses_are_counted_pair_by_pair() -> None:
    found = [
        pair("name", False, True),
        pair("name", True, True),
        pair("name", True, False),
        pair("name", False, True),
        pair("arguments", False, False),
    ]
    facts: dict[str, Any] = {"machine": {"cpu": "x"}, "model": "m", "repository": "r"}
    facts |= {"files_tokens": 256, "seed": 1, "command": "c"}
    document = context.as_dict(found, facts)
    names = document["cuts"]["name"]
    assert (names["without_exact"], names["with_exact"]) == (0.5, 0.75)
    assert (names["gained"], names["lost"]) == (2, 1)
    assert document["cuts"]["all"]["cuts"] == 5
    assert 0 < names["with_exact_margin"] < 0.5
    assert (names["without_word"], names["with_word"]) == (0, 0.75)
    assert "| name | 4 | 50 % ± " in "\n".join(context.as_markdown(document))
