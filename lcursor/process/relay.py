"""Give a sandboxed program a part of the network: named hosts, and ports of this machine.

The program's network has no way out. A first step inside of it opens listening sockets, passes them
to this process, and becomes the program; what connects to them is forwarded from here. Nothing else
of the sandbox changes. The relay serves on threads until it is closed.

- A port of this machine is forwarded as it is, from the same port inside.
- Hosts are reached through a proxy for HTTP, which the environment names. A name that resolves to
  this machine or to a link-local address is not connected, unless it was named that way.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from lcursor.errors import SandboxFailed

CODE: Final = """
import os, socket, sys
gate, first, ports = int(sys.argv[1]), 4, [int(port) for port in sys.argv[3].split(",")]
with socket.socket(fileno=gate) as passing:
    listeners = [socket.create_server(("127.0.0.1", port), backlog=64) for port in ports]
    socket.send_fds(passing, [b"1"], [each.fileno() for each in listeners])
os.execvp(sys.argv[first], sys.argv[first:])
"""
"""What runs inside before the program. `sys.argv[2]` only names it in a list of processes."""
PROXY_PORT: Final = 3128
"""Of the proxy inside; the next free one if it is forwarded."""
MAX_PORTS: Final = 32
MIN_PORT: Final = 1024
"""Lower ones cannot be opened inside."""
MAX_CONNECTIONS: Final = 200
"""At a time; further ones wait."""
MAX_HEAD_BYTES: Final = 1 << 16
BLOCK_BYTES: Final = 1 << 16
CONNECT_S: Final = 20.0
PAUSE_S: Final = 0.05
HTTP: Final = 80
WEB_PORTS: Final = (HTTP, 443)
"""Ports of a named host, unless it was named with one."""
HOST: Final = re.compile(r"[\w.:-]+", re.ASCII)
"""A name or an address. A null byte, for example, would end it before the part that is allowed."""
PORT: Final = re.compile(r"\d{1,5}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Network:
    """What a program may connect to; nothing by default."""

    hosts: tuple[str, ...] = ()
    """Names or globs (`api.example.org`, `*.example.org`), with `:port` for others than the web's.
    """
    ports: tuple[int, ...] = ()
    """Ports of this machine's 127.0.0.1."""

    def __post_init__(self) -> None:
        if low := [port for port in self.ports if not MIN_PORT <= port < 1 << 16]:
            raise SandboxFailed(f"port {low[0]} of this machine cannot be forwarded to a program")

    def allows(self, host: str, port: int) -> bool:
        """Return whether the program may connect to a host."""
        return any(
            port in ports and fnmatchcase(host.lower(), name) for name, ports in self._named()
        )

    def is_named(self, host: str, port: int) -> bool:
        """Return whether a host is named literally, without a glob."""
        return any(name == host.lower() and port in ports for name, ports in self._named())

    def _named(self) -> Iterator[tuple[str, Sequence[int]]]:
        """Yield each name or glob with its ports."""
        for each in self.hosts:
            name, _, number = each.lower().rpartition(":")
            if PORT.fullmatch(number) and name:
                yield name, (int(number),)
            else:
                yield each.lower(), WEB_PORTS


NO_NETWORK: Final = Network()


class Relay:
    """The way out of a program's network.

        with Relay(network) as relay:
            process = Popen(sandboxed(relay.wrap(command)), pass_fds=[relay.inner], …)
            relay.serve()

    Attributes:
        inner: file descriptor that the command inherits.
        env: environment variables of the program.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._outer, passed = socket.socketpair()
        self.inner = passed.detach()
        self._listeners = list[socket.socket]()
        self._open = set[socket.socket]()
        self._is_closed = False
        self._room = threading.Semaphore(MAX_CONNECTIONS)
        self._lock = threading.Lock()
        self._ports = list(dict.fromkeys(network.ports))[:MAX_PORTS]
        self.env: dict[str, str] = {}
        if network.hosts:
            port = next(each for each in range(PROXY_PORT, 1 << 16) if each not in self._ports)
            self._ports.append(port)
            address = f"http://127.0.0.1:{port}"
            names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
            self.env = dict.fromkeys(names, address)
            self.env |= dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
            self.env["NODE_USE_ENV_PROXY"] = "1"

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def wrap(self, command: Sequence[str]) -> list[str]:
        """Return the command with the step before it."""
        ports = ",".join(map(str, self._ports))
        return [interpreter(), "-I", "-S", "-c", CODE, str(self.inner), "relay", ports, *command]

    def serve(self) -> None:
        """Serve from now on. Call it when the command has started."""
        self._close_inner()
        threading.Thread(target=self._accept_all, name="lcursor-relay", daemon=True).start()

    def close(self) -> None:
        """Close all connections."""
        self._close_inner()
        self._is_closed = True
        self._room.release(len(self._listeners) or 1)  # for those that wait in `_accept`
        with self._lock:
            closing = [self._outer, *self._listeners, *self._open]
            self._open.clear()
        for each in closing:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for it
            each.close()

    def _close_inner(self) -> None:
        if self.inner >= 0:
            os.close(self.inner)
            self.inner = -1

    def _accept_all(self) -> None:
        """Receive the listening sockets, and serve each on a thread."""
        with contextlib.suppress(OSError):
            _, fds, *_ = socket.recv_fds(self._outer, 16, len(self._ports))
            self._listeners = [socket.socket(fileno=fd) for fd in fds]
            for listener in self._listeners:
                threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        port = listener.getsockname()[1]
        while not self._is_closed:
            self._room.acquire()
            try:
                client, _ = listener.accept()
            except OSError:
                self._room.release()
                time.sleep(PAUSE_S)  # no descriptor is left, or it was closed
                continue
            threading.Thread(target=self._serve, args=(client, port), daemon=True).start()

    def _serve(self, client: socket.socket, port: int) -> None:
        """Serve a connection until both sides have ended."""
        with contextlib.ExitStack() as stack:
            stack.callback(self._room.release)
            stack.enter_context(self._opened(client))
            with contextlib.suppress(OSError):
                first, head = b"", b""
                if port in self._network.ports:
                    server = socket.create_connection(("127.0.0.1", port), CONNECT_S)
                else:
                    request = _read_head(client)
                    try:
                        server, first, head = self._connect(request)
                    except OSError as error:
                        client.sendall(_forbidden(str(error)))
                        return
                stack.enter_context(self._opened(server))
                server.settimeout(None)
                server.sendall(head)
                client.sendall(first)
                back = threading.Thread(target=_copy, args=(server, client), daemon=True)
                back.start()
                _copy(client, server)
                back.join()

    @contextlib.contextmanager
    def _opened(self, connection: socket.socket) -> Iterator[None]:
        """Close a connection on leaving; `close` ends it before."""
        with connection:
            with self._lock:
                self._open.add(connection)
            try:
                yield
            finally:
                with self._lock:
                    self._open.discard(connection)

    def _connect(self, request: bytes) -> tuple[socket.socket, bytes, bytes]:
        """Connect to what a request for the proxy names.

        Returns:
            The connection, what to send to the program first, and what to the server.

        Raises:
            OSError: it may not be reached, or cannot be.
        """
        line, _, rest = request.partition(b"\r\n")
        method, _, target = line.decode("latin-1").partition(" ")
        target = target.partition(" ")[0]
        address, path = target, ""
        if method != "CONNECT":
            scheme, _, address = target.partition("://")
            address, slash, path = address.partition("/")
            if scheme.lower() != "http":
                raise PermissionError("only http, and https by CONNECT, are forwarded")
            path = slash + path or "/"
        host, number = _split(address.rpartition("@")[2])
        if not HOST.fullmatch(host) or not self._network.allows(host, number):
            raise PermissionError(f"the sandbox has no network to {host!r}, port {number}")
        server = self._open_connection(host, number)
        if method == "CONNECT":
            return server, b"HTTP/1.1 200 Connected\r\n\r\n", rest.partition(b"\r\n\r\n")[2]
        names = (b"proxy-", b"connection:", b"keep-alive:")
        fields, _, body = rest.partition(b"\r\n\r\n")
        sent = [each for each in fields.split(b"\r\n") if not each.lower().startswith(names)]
        sent = [f"{method} {path} HTTP/1.1".encode("latin-1"), *sent, b"Connection: close"]
        return server, b"", b"\r\n".join(sent) + b"\r\n\r\n" + body

    def _open_connection(self, host: str, port: int) -> socket.socket:
        """Connect to a host that is allowed.

        Raises:
            OSError: it cannot be reached, or its name leads to this machine.
        """
        failure = OSError(f"{host} has no address")
        for *_, target in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            address = str(target[0])
            is_literal = host.lower() == "localhost" or address == host
            may_be_own = is_literal and self._network.is_named(host, port)
            try:
                if not may_be_own and _is_own(address):
                    raise _own(host, address)
                connection = socket.create_connection((address, port), CONNECT_S)
            except PermissionError:
                raise
            except OSError as error:
                failure = error
                continue
            if not may_be_own and connection.getpeername()[0] == connection.getsockname()[0]:
                connection.close()
                raise _own(host, address)
            return connection
        raise failure


def interpreter() -> str:
    """Return the Python that runs the first step, without a virtual environment."""
    return os.path.realpath(sys.executable)


def interpreter_folders() -> list[Path]:
    """Return what the first step needs to see."""
    prefix = Path(os.path.realpath(sys.base_prefix))
    return [prefix / name for name in ("bin", "lib") if (prefix / name).is_dir()]


def _is_own(address: str) -> bool:
    """Return whether an address always is one of this machine, or of its link."""
    number = ipaddress.ip_address(address.partition("%")[0])
    number = getattr(number, "ipv4_mapped", None) or number
    return number.is_loopback or number.is_link_local or number.is_unspecified


def _own(host: str, address: str) -> PermissionError:
    return PermissionError(f"{host} is {address}, an address of this machine")


def _split(address: str) -> tuple[str, int]:
    """Return host and port of an authority, 80 by default."""
    host, _, port = address.rpartition(":")
    if host and PORT.fullmatch(port) and not host.endswith(":"):
        return host.strip("[]"), int(port)
    return address.strip("[]"), HTTP


def _read_head(connection: socket.socket) -> bytes:
    """Read the head of a request, and perhaps the beginning of its body.

    Raises:
        OSError: it has no end.
    """
    connection.settimeout(CONNECT_S)
    head = b""
    while b"\r\n\r\n" not in head:
        block = connection.recv(BLOCK_BYTES)
        if not block or len(head) > MAX_HEAD_BYTES:
            raise OSError("the request has no end")
        head += block
    connection.settimeout(None)
    return head


def _forbidden(reason: str) -> bytes:
    body = f"{reason}\n".encode()
    head = f"HTTP/1.1 403 Forbidden\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Copy until one side ends, and say so to the other."""
    with contextlib.suppress(OSError):
        while block := source.recv(BLOCK_BYTES):
            target.sendall(block)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
