"""Which addresses are good, which stay here, and what of them is shown."""

from __future__ import annotations

import pytest

from lcursor.errors import ConfigInvalid
from lcursor.http import address


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
    assert address.is_local(address.check(url, "x"))


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
    assert not address.is_local(address.check(url, "x"))


@pytest.mark.parametrize(
    "url",
    ["", "127.0.0.1:8012", "localhost", "ftp://x", "http://", "http://x:99999", "http://[",
     "unix://", "unix:///", "unix://x.sock", "unix:/x", "/run/x.sock"],
)  # fmt: skip
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(ConfigInvalid, match="endpoint_url"):
        address.check(url, "completion.endpoint_url")


def test_passwords_and_queries_are_not_shown() -> None:
    assert address.shown("http://me:secret@host:1/v1?key=secret#x") == "http://host:1/v1"
    with pytest.raises(ConfigInvalid) as e:
        address.check("ftp://me:secret@host", "x")
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
    assert address.socket_path(url) == path
    assert address.shown(url) == url


def test_names_of_settings() -> None:
    assert address.named("completion.endpoint", "url") == "completion.endpoint_url"
    assert address.named("chat.models.big.", "url") == "chat.models.big.url"
