"""Keys: found where they are said to be, and never repeated."""

from __future__ import annotations

import sys

import pytest

from lcursor.errors import KeyMissing
from lcursor.http import keys

SECRET = "sk-very-secret"


def test_none_is_configured() -> None:
    assert keys.find("", "", "x") == ""


def test_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", f" {SECRET}\n")
    assert keys.find("MY_KEY", "", "x") == SECRET


def test_from_a_command() -> None:
    assert keys.find("", f"{sys.executable} -c \"print('{SECRET}'); print('more')\"", "x") == SECRET


@pytest.mark.parametrize("value", [None, "", "  ", "two words", "naïve", "a\x07b"])
def test_what_is_no_key(value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("MY_KEY", value)
    with pytest.raises(KeyMissing, match="MY_KEY") as e:
        keys.find("MY_KEY", "", "completion.endpoint")
    assert "completion.endpoint_key_env" in e.value.hint
    assert not (value or "").strip() or (value or "").strip() not in str(e.value)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("no-such-program-anywhere", "cannot be run"),
        (f"{sys.executable} -c \"print('{SECRET}'); exit(3)\"", "ended with 3"),
        ('"unbalanced', "cannot be run"),
        (f'{sys.executable} -c ""', "gives no key"),
    ],
)
def test_a_command_that_fails_tells_nothing_of_what_it_printed(command: str, why: str) -> None:
    with pytest.raises(KeyMissing, match=why) as e:
        keys.find("", command, "x")
    assert SECRET not in str(e.value)
    assert SECRET not in repr((e.value.__cause__, e.value.args))


def test_a_command_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "COMMAND_S", 0.1)
    with pytest.raises(KeyMissing, match="took more than"):
        keys.find("", f'{sys.executable} -c "import time; time.sleep(9)"', "x")


@pytest.mark.parametrize(
    "url",
    ["https://api.example.com", "http://127.0.0.1:8012", "http://localhost", "unix:///run/x.sock"],
)
def test_no_warning_where_nobody_can_read_a_key(url: str) -> None:
    assert keys.exposed({"completion.endpoint": url}) is None


@pytest.mark.parametrize("url", ["http://me:secret@10.0.0.5:8012/v1", " HTTP://models.example/"])
def test_a_key_that_is_sent_unencrypted(url: str) -> None:
    warning = keys.exposed({"chat.models.big.": url, "completion.endpoint": "https://a.example"})
    assert warning is not None
    assert "unencrypted to http" in warning.message.lower()
    assert "secret" not in str(warning)
    assert "chat.models.big.url" in warning.hint
    assert "completion" not in warning.hint
