"""Programs that run in the sandbox for long, with a part of the network."""

from __future__ import annotations

import contextlib
import http.server
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lcursor.errors import SandboxFailed
from lcursor.process.program import prepare
from lcursor.process.relay import Network
from lcursor.process.sandbox import Confinement, open_sandbox
from tests.waiting import wait_for

if open_sandbox().level not in ("bubblewrap", "unshare"):
    pytest.skip("no sandbox with a network works here", allow_module_level=True)

GET = """
import sys, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())
except Exception as error:
    print(f"failed: {error} {getattr(error, 'read', bytes)().decode()}")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


@pytest.fixture
def number() -> str:
    """Return a number of seconds, which no other test sleeps."""
    return f"86400.{time.monotonic_ns()}"


@pytest.fixture
def port() -> Iterator[int]:
    """Return the port of a web server of this machine."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = f"{self.path} for {self.headers['Host']}".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def running(number: str) -> int:
    """Return the number of processes that have a number as an argument."""
    count = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            count += number.encode() in path.read_bytes().split(b"\0")
    return count


def start(
    command: list[str], confinement: Confinement, network: Network | None = None
) -> subprocess.Popen[str]:
    words, env = prepare(command, confinement, network or Network())
    pipe = subprocess.PIPE
    return subprocess.Popen(words, env=env, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def output_of(
    command: list[str], confinement: Confinement, network: Network | None = None
) -> tuple[int, str]:
    """Run a program to its end; return its status and what it printed."""
    with start(command, confinement, network) as process:
        printed, errors = process.communicate(timeout=60)
    return process.returncode, (printed + errors).strip()


def get(folder: Path, url: str, network: Network) -> str:
    return output_of(["/usr/bin/env", "python3", "-c", GET, url], at(folder), network)[1]


def at(folder: Path) -> Confinement:
    return Confinement(folder, folder, readable=(Path(sys.prefix),))


def test_a_program_has_the_streams_of_its_starter(folder: Path) -> None:
    with start(["sh", "-c", "pwd; cat; echo end >&2; exit 3"], at(folder)) as process:
        printed, errors = process.communicate("one\ntwo\n", timeout=60)
    assert (process.returncode, printed, errors) == (3, f"{folder}\none\ntwo\n", "end\n")


def test_secrets_are_in_no_command_line(folder: Path, number: str) -> None:
    confinement = Confinement(folder, folder, env={"TOKEN": "12345-secret"})
    with start(["sh", "-c", f"echo $TOKEN; exec sleep {number}"], confinement) as process:
        assert process.stdout
        assert process.stdout.readline() == "12345-secret\n"
        lines = [each.read_bytes() for each in Path("/proc").glob("[0-9]*/cmdline") if is_own(each)]
        process.terminate()
    assert not [line for line in lines if b"12345-secret" in line]


def is_own(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return bool(path.read_bytes())
    return False


STARTER = """
import os, subprocess, sys
from pathlib import Path
from lcursor.process.program import prepare
from lcursor.process.sandbox import Confinement
folder, script, way = sys.argv[1:]
words, env = prepare(["sh", "-c", script], Confinement(Path(folder), Path(folder)))
process = subprocess.Popen(words, env=env)
if "at once" not in way:
    process.wait()
os._exit(0)
"""


def test_a_program_does_not_start_for_a_starter_that_has_ended(folder: Path, number: str) -> None:
    script = f"touch started; exec sleep {number}"
    words = [sys.executable, "-c", STARTER, str(folder), script, "it ends at once"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    subprocess.run(words, env=environment, check=True, stdin=subprocess.DEVNULL)
    time.sleep(3)
    assert not running(number)


@pytest.mark.parametrize("way", ["it ends", "terminated", "killed", "its starter is killed"])
def test_no_process_outlives_a_program(folder: Path, number: str, way: str) -> None:
    script = f"setsid sh -c 'trap \"\" TERM HUP; sleep {number}' & sleep {number} & cat"
    if way.startswith("its starter"):
        pipe = subprocess.PIPE
        words = [sys.executable, "-c", STARTER, str(folder), script, way]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
        process = subprocess.Popen(words, env=environment, stdin=pipe)
    else:
        process = start(["sh", "-c", script], at(folder))  # type: ignore[assignment]
    with process:
        wait_for(lambda: running(number) == 2, what="the program runs")
        if way == "it ends":
            assert process.stdin
            process.stdin.close()
        else:
            process.send_signal(signal.SIGTERM if way == "terminated" else signal.SIGKILL)
        wait_for(lambda: not running(number), what="its processes end")


def test_a_program_that_fills_the_disk_is_stopped(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lcursor.process.sandbox import Limits

    confinement = Confinement(folder, folder, limits=Limits(growth_bytes=1 << 24))
    script = "head -c 40M /dev/zero > one; exec sleep 60"
    status, printed = output_of(["sh", "-c", script], confinement)
    assert status == 143
    assert "16 MiB" in printed


def test_only_chosen_folders_can_be_written(folder: Path, tmp_path: Path) -> None:
    for name in ("chosen/.git", "chosen/sub/.git/hooks", "other"):
        (tmp_path / name).mkdir(parents=True)
    confinement = Confinement(
        folder, folder, writable=(tmp_path / "chosen",), readable=(tmp_path / "other",)
    )
    names = "tree chosen other chosen/.git chosen/sub/.git/hooks"
    script = f"cd {tmp_path}; for at in {names}; do echo 1 > $at/new; done"
    output_of(["sh", "-c", script], confinement)
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("new"))
    assert found == ["chosen/new", "tree/new"]


def test_a_named_port_of_this_machine_is_reached(folder: Path, port: int) -> None:
    url = f"http://127.0.0.1:{port}/one"
    assert get(folder, url, Network(ports=(port,))) == f"/one for 127.0.0.1:{port}"
    assert get(folder, url, Network(ports=(port + 1,))).startswith("failed")
    assert get(folder, url, Network()).startswith("failed")


def test_a_named_host_is_reached_through_a_proxy(folder: Path, port: int) -> None:
    code = GET.replace("import sys,", "import os, sys,").replace(
        "try:", "os.environ.pop('NO_PROXY'); os.environ.pop('no_proxy')\ntry:", 1
    )

    def fetch(url: str, *hosts: str) -> str:
        words = ["/usr/bin/env", "python3", "-c", code, url]
        return output_of(words, at(folder), Network(hosts))[1]

    url = f"http://localhost:{port}/two?a=b"
    assert fetch(url, f"localhost:{port}") == f"/two?a=b for localhost:{port}"
    assert "no network to 'localhost'" in fetch(url, "localhost")  # another port
    assert "no network to 'localhost'" in fetch(url, "example.org")
    assert "no network to '127.0.0.1'" in fetch(f"http://127.0.0.1:{port}/", f"localhost:{port}")


def test_a_name_of_a_host_does_not_lead_to_this_machine(folder: Path, port: int) -> None:
    named = next((name for name in ("ip6-localhost", socket.gethostname()) if is_here(name)), "")
    if not named:
        pytest.skip("this machine has no other name for itself")
    code = CONNECT.format(host=named, port=port)
    words = ["/usr/bin/env", "python3", "-c", code]
    answer = output_of(words, at(folder), Network((f"{named}:{port}",)))[1]
    assert "an address of this machine" in answer


@pytest.mark.parametrize(
    "host", ["127.0.0.1\0.x.test", "127.0.0.1 .x.test", "a b.x.test", "%.x.test"]
)
def test_only_names_match_a_glob(folder: Path, port: int, host: str) -> None:
    code = CONNECT.format(host=host.replace("\0", "\\0"), port=port)
    answer = output_of(
        ["/usr/bin/env", "python3", "-c", code], at(folder), Network((f"*.x.test:{port}",))
    )[1]
    assert "403" in answer
    assert "no network to" in answer or "no address" in answer


def test_a_host_is_named_with_its_port() -> None:
    network = Network(("localhost:1", "*:2", "[::1]:3", "x.test"))
    assert network.is_named("LOCALHOST", 1)
    assert not network.is_named("localhost", 2)
    assert network.allows("x.test", 443)
    assert not network.allows("x.test", 2222)
    with pytest.raises(SandboxFailed, match="port 80 "):
        Network(ports=(80,))


def test_many_connections_do_not_end_the_program(folder: Path, port: int) -> None:
    code = (
        "import socket, sys, time\n"
        "found = [socket.create_connection(('127.0.0.1', int(sys.argv[1]))) for _ in range(260)]\n"
        "time.sleep(2); [each.close() for each in found]; time.sleep(1)\n"
        "one = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
        "one.sendall(b'GET /last HTTP/1.0\\r\\nHost: x\\r\\n\\r\\n')\n"
        "print(b''.join(iter(lambda: one.recv(65536), b'')).decode())\n"
    )
    words = ["/usr/bin/env", "python3", "-c", code, str(port)]
    status, answer = output_of(words, at(folder), Network(ports=(port,)))
    assert (status, answer.splitlines()[-1]) == (0, "/last for x")


@pytest.mark.parametrize("host", ["127.0.0.1", "[::ffff:127.0.0.1]", "0.0.0.0", "localhost"])
def test_a_glob_of_hosts_does_not_include_this_machine(folder: Path, port: int, host: str) -> None:
    words = ["/usr/bin/env", "python3", "-c", CONNECT.format(host=host, port=port)]
    answer = output_of(words, at(folder), Network((f"*:{port}",)))[1]
    assert "an address of this machine" in answer


CONNECT = """
import os, socket
host, _, port = os.environ["HTTPS_PROXY"].removeprefix("http://").partition(":")
with socket.create_connection((host, int(port))) as proxy:
    proxy.sendall(b"CONNECT {host}:{port} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    answer = proxy.recv(1000)
    if b"200" in answer:
        proxy.sendall(b"GET /tunnel HTTP/1.0\\r\\nHost: y\\r\\n\\r\\n")
        while block := proxy.recv(1000):
            answer += block
    print(answer.decode())
"""


def is_here(name: str) -> bool:
    with contextlib.suppress(OSError):
        address = socket.getaddrinfo(name, None)[0][4][0]
        return str(address).startswith(("127.", "::1"))
    return False


def test_a_tunnel_to_a_named_host(folder: Path, port: int) -> None:
    code = CONNECT.format(host="localhost", port=port)
    words = ["/usr/bin/env", "python3", "-c", code]
    answer = output_of(words, at(folder), Network((f"localhost:{port}",)))[1]
    assert answer.endswith("/tunnel for y")


def test_large_answers_and_many_connections_pass(folder: Path) -> None:
    data = os.urandom(1 << 22)

    def serve(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=answer, args=(client,), daemon=True).start()

    def answer(client: socket.socket) -> None:
        with client, contextlib.suppress(ConnectionError):  # the digests below tell
            client.sendall(data)

    code = (
        "import hashlib, socket, sys, threading\n"
        "def read():\n"
        "    with socket.create_connection(('127.0.0.1', int(sys.argv[1]))) as one:\n"
        "        found = b''.join(iter(lambda: one.recv(65536), b''))\n"
        "    print(hashlib.sha256(found).hexdigest(), flush=True)\n"
        "threads = [threading.Thread(target=read) for _ in range(20)]\n"
        "[each.start() for each in threads]; [each.join() for each in threads]\n"
    )
    import hashlib

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        port = listener.getsockname()[1]
        words = ["/usr/bin/env", "python3", "-c", code, str(port)]
        printed = output_of(words, at(folder), Network(ports=(port,)))[1]
    assert printed.split() == [hashlib.sha256(data).hexdigest()] * 20
