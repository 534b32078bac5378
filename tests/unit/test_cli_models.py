"""The command line itself: what it prints, its exit status, one line of trouble, Ctrl-C."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from lcursor.catalog import hardware
from lcursor.cli import models
from tests.fakes.hub import FakeHub
from tests.gguf_files import write_model

REPOSITORY = Path(__file__).resolve().parents[2]
BLOB = random.Random(11).randbytes(400_000)
SHA256 = hashlib.sha256(BLOB).hexdigest()
COMMIT = "ab" * 20

MANIFEST = """
[[model]]
name = "small"
slots = ["completion", "chat"]
family = "qwen2.5-coder"
parameters = "0.1M"
file = "small.gguf"
bytes = {bytes}
sha256 = "{sha256}"
digest = "verified"
repo = "someone/Small-GGUF"
revision = "{commit}"
licence = "MIT"
context_tokens = 32
kv_bytes_per_token = 8
"""

RUNNER = (
    "import pathlib, sys; from lcursor.catalog import hub, manifest;"
    "from huggingface_hub import constants; constants.DOWNLOAD_CHUNK_SIZE = 10_000;"
    "manifest.MANIFEST = pathlib.Path(sys.argv.pop(1));"
    "from lcursor.__main__ import main; main()"
)


@pytest.fixture
def server() -> Iterator[FakeHub]:
    with FakeHub(BLOB, COMMIT) as hub:
        hub.chunk_bytes = 20_000
        yield hub


class Shell:
    """Runs the command line in a process of its own; `blob` is the model of its manifest."""

    def __init__(self, tmp_path: Path, endpoint: str, blob: bytes = BLOB) -> None:
        self.models = tmp_path / "models"
        manifest = tmp_path / "manifest.toml"
        sha256 = hashlib.sha256(blob).hexdigest()
        manifest.write_text(MANIFEST.format(bytes=len(blob), sha256=sha256, commit=COMMIT))
        self.command = [sys.executable, "-c", RUNNER, str(manifest), "models"]
        self.env = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("HF_", "COVERAGE"))},
            "LCURSOR_MODELS": str(self.models),
            "HF_ENDPOINT": endpoint,
            "HF_HOME": str(tmp_path / "hf"),
        }

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.command, *arguments],
            capture_output=True,
            text=True,
            env=self.env,
            cwd=REPOSITORY,
            timeout=30,
            check=False,
        )


@pytest.fixture
def shell(tmp_path: Path, server: FakeHub) -> Shell:
    return Shell(tmp_path, server.url)


@pytest.fixture
def lonely(tmp_path: Path) -> Shell:
    """Make a shell whose hub is a port where nobody listens."""
    return Shell(tmp_path, "http://127.0.0.1:9")


def test_pull_path_list_verify(shell: Shell, server: FakeHub) -> None:
    pulled = shell.run("pull", "small")
    target = shell.models / "small.gguf"
    assert (pulled.returncode, pulled.stdout) == (0, f"small is here and verified: {target}\n")
    assert "Downloading from the hub" in pulled.stderr
    assert "\r" not in pulled.stderr  # no terminal, no bar
    assert target.read_bytes() == BLOB

    assert shell.run("path", "small").stdout == f"{target}\n"
    row = json.loads(shell.run("list", "--json").stdout)[0]
    assert (row["name"], row["state"], row["path"]) == ("small", "here", str(target))
    assert "small" in shell.run("list").stdout
    report = json.loads(shell.run("verify", "--json").stdout)
    assert report == [{"name": "small", "path": str(target), "ok": True, "sha256": SHA256}]

    again = shell.run("pull", "small")
    assert (again.returncode, again.stderr) == (0, "")
    assert server.asked == ["GET 0"]

    target.write_bytes(b"GGUF")
    broken = shell.run("verify")
    assert broken.returncode == 1
    assert SHA256 in broken.stderr
    report = json.loads(shell.run("verify", "small", "--json").stdout)
    assert report[0]["error"] == "model_corrupt"


def test_a_q4_0_copy_is_made_listed_and_verified(tmp_path: Path) -> None:
    shell = Shell(tmp_path, "http://127.0.0.1:9")
    shell.models.mkdir()
    write_model(shell.models / "small.gguf")
    target = shell.models / "small-q4_0.gguf"
    made = shell.run("requantize", "small", "--to", "q4_0")
    assert made.returncode == 0, made.stderr
    assert made.stdout == (
        f'Made from small.gguf: {target}\nUse it: completion.model = "small-q4_0"\n'
    )
    assert shell.run("path", "small-q4_0").stdout == f"{target}\n"
    assert "here, made from small\n" in shell.run("list").stdout
    row = json.loads(shell.run("list", "--json").stdout)[-1]
    assert (row["name"], row["state"], row["digest"]) == ("small-q4_0", "here", "made")
    assert (row["made_from"], row["bytes"]) == ("small", target.stat().st_size)

    right = json.loads(shell.run("verify", "--json").stdout)[-1]
    assert right["ok"]
    assert right["sha256"] == hashlib.sha256(target.read_bytes()).hexdigest()
    stat = target.stat()
    target.write_bytes(bytes(stat.st_size))
    os.utime(target, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    wrong = shell.run("verify", "small-q4_0")
    assert wrong.returncode == 1
    assert right["sha256"] in wrong.stderr


def test_a_q4_0_copy_is_pulled_with_its_source(tmp_path: Path) -> None:
    write_model(tmp_path / "model.gguf")
    blob = (tmp_path / "model.gguf").read_bytes()
    with FakeHub(blob, COMMIT) as hub:
        shell = Shell(tmp_path, hub.url, blob)
        first, second = (shell.run("pull", "small-q4_0") for _ in range(2))
        assert hub.asked == ["GET 0"]
    target = shell.models / "small-q4_0.gguf"
    assert first.stdout == f"small-q4_0 is here and made from small: {target}\n"
    assert "Requantizing to Q4_0" in first.stderr
    assert (second.stdout, second.stderr) == (first.stdout, "")
    assert (shell.models / "small.gguf").read_bytes() == blob
    again = shell.run("requantize", "small-q4_0")
    assert again.returncode == 1
    assert again.stderr.startswith("lcursor: small-q4_0.gguf is Q4_0 already")


def test_a_model_is_adapted_when_it_is_pulled_and_completion_alone_uses_the_copy(
    tmp_path: Path,
) -> None:
    write_model(tmp_path / "model.gguf")
    blob = (tmp_path / "model.gguf").read_bytes()
    matrix = np.full((1, 256), 0.01, np.float16)
    arrays = {"blk.0.attn_q.a": matrix, "blk.0.attn_q.b": matrix.T}
    adapter = tmp_path / "small.npz"
    np.savez(adapter, base=hashlib.sha256(blob).hexdigest(), alpha=2.0, **arrays)
    digest = hashlib.sha256(adapter.read_bytes()).hexdigest()
    right = adapter.read_bytes()
    with FakeHub(blob, COMMIT) as hub:
        shell = Shell(tmp_path, hub.url, blob)
        with (tmp_path / "manifest.toml").open("a") as file:
            file.write(f'[model.adapter]\nfile = "small.npz"\nsha256 = "{digest}"\n')
        adapter.write_bytes(b"damaged")
        plain = shell.run("pull", "small")
        assert plain.returncode == 0
        assert plain.stderr.endswith(
            "lcursor: small completes without its adapter: models/small.npz is missing or damaged\n"
        )
        assert not json.loads(shell.run("list", "--json").stdout)[0]["is_adapted"]

        adapter.write_bytes(right)
        pulled = shell.run("pull", "small")
        assert (pulled.returncode, "lcursor:" in pulled.stderr) == (0, False), pulled.stderr
        assert hub.asked == ["GET 0"]
    copy = shell.models / "small-adapted.gguf"
    assert copy.is_file()
    assert json.loads(shell.run("list", "--json").stdout)[0]["is_adapted"]
    assert "here, adapted\n" in shell.run("list").stdout
    assert shell.run("path", "small").stdout == f"{shell.models / 'small.gguf'}\n"
    made = shell.run("requantize", "small")
    assert "Made from small.gguf: " in made.stdout, made.stderr
    assert shell.run("verify").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("requantize", "small"), "lcursor: The model small is not on this machine"),
        (("requantize", __file__), f"lcursor: {__file__} is not a GGUF file"),
        (("pull", "smal"), "lcursor: No model is called 'smal'. Nearest: small. See"),
        (("path", "small"), "lcursor: The model small is not on this machine"),
        (("verify", "small"), "lcursor: The model small is not on this machine"),
        (("pull", "small"), "lcursor: small could not be downloaded: 127.0.0.1:9 is unreachable"),
    ],
)
def test_trouble_is_one_line_and_exit_status_1(
    lonely: Shell, arguments: tuple[str, ...], message: str
) -> None:
    done = lonely.run(*arguments)
    assert (done.returncode, done.stdout) == (1, "")
    lines = [line for line in done.stderr.splitlines() if line.startswith("lcursor: ")]
    assert len(lines) == 1
    assert lines[0].startswith(message)
    assert "Traceback" not in done.stderr


def test_nothing_to_verify_is_no_error(lonely: Shell) -> None:
    done = lonely.run("verify")
    assert done.returncode == 0
    assert "No model is on this machine" in done.stdout


def test_ctrl_c_keeps_the_partial_file(shell: Shell, server: FakeHub) -> None:
    server.chunk_delay_s = 0.05
    child = subprocess.Popen(
        [*shell.command, "pull", "small"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=shell.env,
        cwd=REPOSITORY,
        # Who runs the tests in the background may have had it ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    partial = shell.models / "small.gguf.partial"
    deadline_s = time.monotonic() + 20
    while not partial.exists() or partial.stat().st_size < 40_000:
        assert time.monotonic() < deadline_s
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    _, stderr = child.communicate(timeout=10)
    assert child.returncode == 130
    assert stderr.splitlines()[-1].startswith("lcursor: interrupted")
    assert "Traceback" not in stderr
    kept = partial.stat().st_size
    assert 40_000 <= kept < len(BLOB)

    server.chunk_delay_s = 0.0
    assert shell.run("pull", "small").returncode == 0
    assert server.asked == ["GET 0", f"GET {kept}"]


def test_on_a_terminal_there_is_a_bar(shell: Shell, server: FakeHub) -> None:
    server.chunk_delay_s = 0.02
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [*shell.command, "pull", "small"],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**shell.env, "TERM": "xterm-256color", "COLUMNS": "100"},
        cwd=REPOSITORY,
    )
    os.close(theirs)
    screen = b""
    try:
        while chunk := os.read(ours, 65536):
            screen += chunk
    except OSError:
        pass  # Linux says EIO when the other end is closed
    os.close(ours)
    stdout, _ = child.communicate(timeout=20)
    assert child.returncode == 0
    assert b"small is here" in stdout
    assert "━".encode() in screen


def test_recommend_says_why(lonely: Shell) -> None:
    command = [sys.executable, "-m", "lcursor", "models", "recommend"]
    text = subprocess.run(command, capture_output=True, text=True, env=lonely.env, cwd=REPOSITORY)
    assert text.returncode == 0, text.stderr
    assert "physical core" in text.stdout
    assert "python -m lcursor models pull qwen2.5-coder" in text.stdout
    both = subprocess.run(
        [*command, "--json"], capture_output=True, text=True, env=lonely.env, cwd=REPOSITORY
    )
    document = json.loads(both.stdout)
    assert document["completion"]["why"]
    assert document["hardware"]["cores"] >= 1
    assert len(document["commands"]) >= 1


def test_the_engine_says_which_gpus_it_can_use(monkeypatch: pytest.MonkeyPatch) -> None:
    from lcursor.fim import gpus

    card = hardware.Device("Radeon RX 7900", 24 << 30, 20 << 30)
    monkeypatch.setattr(gpus, "find", lambda: [card])
    here = models._hardware()
    assert (here.gpu, here.gpu_bytes, here.gpu_free_bytes) == ("Radeon RX 7900", 24 << 30, 20 << 30)
    monkeypatch.setattr(gpus, "find", list)
    assert models._hardware() == hardware.detect()


def test_help_is_quick_because_it_imports_little() -> None:
    code = (
        "import sys; import lcursor.__main__;"
        "heavy = ('rich', 'huggingface_hub', 'httpx2', 'numpy', 'llama_cpp', 'pynvim', 'filelock');"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_wrong_command_line_is_exit_status_2(lonely: Shell) -> None:
    assert lonely.run("paint").returncode == 2
    assert lonely.run("requantize", "small", "--to", "Q9").returncode == 2
