"""Which kind of server answers, by the rules that both slots share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from lcursor.errors import (
    ServerDenied,
    ServerError,
    ServerFailed,
    ServerGarbled,
    ServerModelMissing,
    ServerUnreachable,
)
from lcursor.http import detect

Told = Mapping[str, Any]


def with_status(error: ServerError, status: int) -> ServerError:
    error.status = status
    return error


PROPS = {"default_generation_settings": {"n_ctx": 4096}}
MODELS: Told = {"data": [{"id": "a"}]}
MISSING = with_status(ServerModelMissing("there is no such path"), 404)
ODD = ServerGarbled("it answers with a page")


def found(
    told: Mapping[str, Told | ServerError], *, has_key: bool = False, api: str = "/v1"
) -> detect.Detected | None:
    paths = {"props": "/props", "version": "/api/version", "models": f"{api}/models"}
    answers = {paths[name]: value for name, value in told.items()}

    def ask(path: str) -> Told:
        answer = answers.get(path, MISSING)
        if isinstance(answer, ServerError):
            raise answer
        return answer

    return detect.detect(ask, api=api, has_key=has_key)


CASES: list[tuple[dict[str, Told | ServerError], str]] = [
    ({"props": PROPS, "models": MODELS}, "llama.cpp"),  # it answers the others as well
    ({"version": {"version": "0.12"}, "models": MODELS}, "ollama"),
    ({"models": MODELS}, "openai"),
    ({"props": {"x": 1}, "version": {"version": 2}, "models": MODELS}, "openai"),
    ({"props": ODD, "version": ODD, "models": MODELS}, "openai"),
    ({"props": with_status(ServerFailed("no"), 405), "models": MODELS}, "openai"),
    ({"models": {"data": {}}}, ""),
    ({}, ""),
]


@pytest.mark.parametrize(("told", "wanted"), CASES)
def test_what_a_server_is(told: dict[str, Told | ServerError], wanted: str) -> None:
    one = found(told)
    assert (one.kind if one else "") == wanted
    if one:
        assert told[{"llama.cpp": "props", "ollama": "version"}.get(wanted, "models")] == one.reply


def test_other_paths_of_openai() -> None:
    one = found({"models": MODELS}, api="/api/v3")
    assert one is not None
    assert (one.kind, one.path) == ("openai", "/api/v3/models")


WRONG: list[tuple[ServerError, bool, bool]] = [
    (ServerUnreachable("nobody is there"), False, True),
    (with_status(ServerFailed("it loads"), 503), False, True),
    (with_status(ServerDenied("a key"), 401), False, True),
    (
        with_status(ServerDenied("no such key"), 403),
        True,
        False,
    ),  # a proxy may refuse what it lacks
]


@pytest.mark.parametrize(("error", "has_key", "is_end"), WRONG)
def test_what_ends_the_search(error: ServerError, has_key: bool, is_end: bool) -> None:
    with pytest.raises(type(error)):
        found({"props": error}, has_key=has_key)
    if is_end:
        with pytest.raises(type(error)):
            found({"props": error, "models": MODELS}, has_key=has_key)
    else:
        assert found({"props": error, "models": MODELS}, has_key=has_key)


def test_what_is_said_of_a_server_that_is_unknown() -> None:
    error = detect.unknown_server("it at http://x", "models.desk.")
    assert "neither a llama-server nor an Ollama, and has no /v1/models" in error.message
    assert "models.desk.url" in error.hint
