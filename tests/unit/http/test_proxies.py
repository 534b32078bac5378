"""Models on other hosts through the proxies that the environment names."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from lcursor.errors import ServerError
from tests.fakes.model_server import ModelServer
from tests.unit.http.conftest import Make, ended, free_port

HOST = "model.test"


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Set the proxy of the environment."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return lambda url: monkeypatch.setenv("ALL_PROXY", url)


def failure(make: Make, url: str) -> ServerError:
    found = ended(make(url).request("/ask", {}))
    assert isinstance(found, ServerError), found
    return found


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_does_not_answer_is_named(
    make: Make, proxied: Callable[[str], None], scheme: str
) -> None:
    port = free_port()
    proxied(f"http://me:word@127.0.0.1:{port}")
    found = failure(make, f"{scheme}://{HOST}/v1")
    assert f"the proxy http://127.0.0.1:{port} does not answer (connection refused)" in str(found)
    assert f"so {scheme}://{HOST}/v1 was not reached" in found.message
    assert f"add {HOST} to NO_PROXY" in found.hint
    assert "Start the server" not in str(found)
    assert "word" not in str(found)


@pytest.mark.parametrize("kind", ["socks5", "socks5h", "socks4"])
def test_socks_is_named_as_not_supported(
    make: Make, proxied: Callable[[str], None], kind: str
) -> None:
    proxied(f"{kind}://127.0.0.1:1080")
    found = failure(make, f"http://{HOST}")
    assert "SOCKS proxies are not supported" in found.message
    assert f"{kind}://127.0.0.1:1080" in found.message
    assert "NO_PROXY" in found.hint


@pytest.mark.parametrize("excepted", [HOST, ".test", "*", f"{HOST}:80", "other.test, model.test"])
def test_no_proxy_excepts_hosts_from_any_proxy(
    make: Make,
    proxied: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    excepted: str,
) -> None:
    proxied("socks5://127.0.0.1:1080")
    monkeypatch.setenv("NO_PROXY", excepted)
    assert "proxy" not in str(failure(make, f"http://{HOST}:80"))


def test_this_machine_needs_no_proxy(
    server: ModelServer, make: Make, proxied: Callable[[str], None]
) -> None:
    proxied("socks5://127.0.0.1:1080")
    server.json("/x", {})
    assert ended(make(server.url).request("/x")) == [b"{}"]


@pytest.mark.parametrize(
    ("scheme", "status", "words"),
    [
        ("http", 407, "the proxy {proxy} does not accept the user (407"),
        ("https", 407, "the proxy {proxy} responded with status 407"),
        ("https", 502, "the proxy {proxy} responded with status 502"),
        ("http", 403, "http://model.test denies access through the proxy {proxy} (403"),
        ("http", 502, "http://model.test responded through the proxy {proxy} with status 502"),
    ],
)
def test_a_proxy_that_answers_with_an_error_is_named(
    make: Make, proxied: Callable[[str], None], scheme: str, status: int, words: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as odd:
        proxy = f"http://127.0.0.1:{odd.getsockname()[1]}"
        proxied(proxy)
        call = make(f"{scheme}://{HOST}").stream("/ask", {})
        peer, _ = odd.accept()
        with peer:
            peer.recv(1 << 16)
            peer.sendall(b"HTTP/1.1 %d Odd\r\nContent-Length: 0\r\n\r\n" % status)
            found = ended(call)
    assert words.format(proxy=proxy) in str(found)
