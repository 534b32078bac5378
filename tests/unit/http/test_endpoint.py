"""Addresses and keys of servers: which are good, which stay here, and what messages show."""

from __future__ import annotations

import sys

import pytest

from lcursor.errors import ConfigInvalid, KeyMissing
from lcursor.http import endpoint

SECRET = "sk-very-secret"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8012",
        "http://localhost:11434/",
        "http://LOCALHOST",
        "https://model.localhost:1",
        "http://127.9.9.9",
        "http://[::1]:8080/v1",
        "http://0.0.0.0:8080",
        "unix:///run/user/1000/lcursor/server.sock",
    ],
)
def test_what_stays_here(url: str) -> None:
    assert endpoint.is_local(endpoint.check_url(url, "x"))


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.com/v1",
        "http://localhost.example.com",
        "http://127.0.0.1.example.com",
        "http://127.0.0.1@example.com",
        "http://example.com/?http://127.0.0.1",
        "http://192.168.1.5:8012",
        "http://[::2]:80",
    ],
)
def test_what_leaves(url: str) -> None:
    assert not endpoint.is_local(endpoint.check_url(url, "x"))


@pytest.mark.parametrize(
    "url",
    ["", "127.0.0.1:8012", "localhost", "ftp://x", "http://", "http://x:99999", "http://[",
     "unix://", "unix:///", "unix://x.sock", "unix:/x", "/run/x.sock"],
)  # fmt: skip
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(ConfigInvalid, match=r"models\.x\.url"):
        endpoint.check_url(url, "models.x.url")


def test_passwords_and_queries_are_not_shown() -> None:
    assert endpoint.display_url("http://me:secret@host:1/v1?key=secret#x") == "http://host:1/v1"
    with pytest.raises(ConfigInvalid) as e:
        endpoint.check_url("ftp://me:secret@host", "x")
    assert "secret" not in str(e.value)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("unix:///run/x.sock", "/run/x.sock"),
        ("unix:///tmp/with space/x", "/tmp/with space/x"),
        ("unix://x", ""),
        ("http://x/unix:///y", ""),
        ("", ""),
    ],
)
def test_sockets(url: str, path: str) -> None:
    assert endpoint.socket_path(url) == path
    assert endpoint.display_url(url) == url


def test_no_key_is_configured() -> None:
    assert endpoint.read_key("", "", "x") == ""


def test_a_key_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", f" {SECRET}\n")
    assert endpoint.read_key("MY_KEY", "", "x") == SECRET


def test_a_key_from_a_command() -> None:
    assert (
        endpoint.read_key("", f"{sys.executable} -c \"print('{SECRET}'); print('more')\"", "x")
        == SECRET
    )


@pytest.mark.parametrize("value", [None, "", "  ", "two words", "naïve", "a\x07b"])
def test_what_is_no_key(value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("MY_KEY", value)
    with pytest.raises(KeyMissing, match="MY_KEY") as e:
        endpoint.read_key("MY_KEY", "", "models.x.")
    assert "models.x.key_env" in e.value.hint
    assert not (value or "").strip() or (value or "").strip() not in str(e.value)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("no-such-program-anywhere", "cannot be run"),
        (f"{sys.executable} -c \"print('{SECRET}'); exit(3)\"", "ended with 3"),
        ('"unbalanced', "cannot be run"),
        (f'{sys.executable} -c ""', "returned no key"),
    ],
)
def test_a_command_that_fails_reports_nothing_of_what_it_printed(command: str, why: str) -> None:
    with pytest.raises(KeyMissing, match=why) as e:
        endpoint.read_key("", command, "x")
    assert SECRET not in str(e.value)
    assert SECRET not in repr((e.value.__cause__, e.value.args))


def test_a_command_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "KEY_COMMAND_S", 0.1)
    with pytest.raises(KeyMissing, match="took more than"):
        endpoint.read_key("", f'{sys.executable} -c "import time; time.sleep(9)"', "x")


@pytest.mark.parametrize(
    "url",
    ["https://api.example.com", "http://127.0.0.1:8012", "http://localhost", "unix:///run/x.sock"],
)
def test_no_warning_where_nobody_can_read_a_key(url: str) -> None:
    assert endpoint.plaintext_warning({"models.x.": url}) is None


@pytest.mark.parametrize("url", ["http://me:secret@10.0.0.5:8012/v1", " HTTP://models.example/"])
def test_a_key_that_is_sent_unencrypted(url: str) -> None:
    warning = endpoint.plaintext_warning({"models.big.": url, "models.other.": "https://a.example"})
    assert warning is not None
    assert "unencrypted to http" in warning.message.lower()
    assert "secret" not in str(warning)
    assert "models.big.url" in warning.hint
    assert "other" not in warning.hint
