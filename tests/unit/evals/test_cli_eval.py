"""`python -m lcursor eval fim`: its output, its complaints."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from evals import fim
from lcursor.__main__ import app
from lcursor.errors import LcursorError
from lcursor.fim.engine import Result
from lcursor.fim.prompt import Source


class Engine:
    """An engine that knows nothing."""

    model = SimpleNamespace(
        path=Path("none.gguf"),
        description="none",
        tokenize=lambda text: list(text.encode("utf-8", "replace")),
        piece=lambda token: bytes([token]),
    )
    closed = 0
    read_tokens = 99
    splices = True
    threshold = 0.0

    def __init__(self) -> None:
        self.abort, self.reader = threading.Event(), self

    def complete(
        self,
        source: Source,
        on_text: Callable[[str], None],
        *,
        single_line: bool = False,
        bypass_cache: bool = False,
    ) -> Result:
        return Result(text="pass", confidence=0.4)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    fake = Engine()
    monkeypatch.setattr(fim, "load", lambda model, **switches: fake)
    return fake


def test_the_last_line_is_json(engine: Engine, tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    done = CliRunner().invoke(
        app, ["eval", "fim", "--n", "2", "--json", "--no-heal", "--cases", str(cases)]
    )
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout.splitlines()[-1])
    assert {name: row["cuts"] for name, row in document["cuts"].items()} == {
        "char": 2,
        "word": 2,
        "span": 2,
        "all": 6,
    }
    assert (document["heals"], document["splices"]) == (False, True)
    assert document["machine"]["load"]
    assert len([json.loads(line) for line in cases.read_text().splitlines()]) == 6
    assert engine.closed == 1


def test_people_get_tables(engine: Engine) -> None:
    done = CliRunner().invoke(app, ["eval", "fim", "--n", "1", "--cut", "word", "--gate", "0.5"])
    assert done.exit_code == 0, done.output
    assert "| word | 1 |" in done.stdout
    assert "Model: none.gguf" in done.stdout
    assert "1 of 1" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--cut", "line"], "unknown cut: line"), (["--gate", "2"], "--gate"), (["--n", "0"], "--n")],
)
def test_a_wrong_option_is_a_wrong_command_line(
    engine: Engine, options: list[str], said: str
) -> None:
    done = CliRunner().invoke(app, ["eval", "fim", *options])
    assert done.exit_code == 2
    assert said in done.stderr


def test_a_folder_without_data_says_so(engine: Engine, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["eval", "fim", "--data", str(tmp_path)])
    assert isinstance(done.exception, LcursorError)
    assert str(tmp_path) in str(done.exception)


def test_cases_that_cannot_be_written_say_so(engine: Engine, tmp_path: Path) -> None:
    target = tmp_path / "nowhere/cases.jsonl"
    done = CliRunner().invoke(app, ["eval", "fim", "--n", "1", "--cases", str(target)])
    assert isinstance(done.exception, LcursorError)
    assert str(target) in str(done.exception)
