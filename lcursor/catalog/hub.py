"""Download from the publisher's repository on the hub. The only importer of huggingface_hub.

The library handles endpoint, mirrors, tokens, redirects and headers; the bytes are streamed here,
because its own download uses other file names and retries a dead host for minutes. Honours
HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE and proxies. Every wait has a limit.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lcursor.catalog.manifest import Model
from lcursor.errors import DownloadFailed

if TYPE_CHECKING:
    from lcursor.http.client import Response

# lcursor sends only what a download needs. The library reads this once, when it is imported.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

CONNECT_S = 4.0
LOOK_UP_S = 8.0
"""Time limit of the first request in all: name resolution has no timeout."""
STALL_S = 20.0
"""Longest pause of a server that sends."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_BLOB = re.compile(r"[0-9a-f]{40}")
"""Git's digest, for a file that is not in large file storage."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A file on the hub."""

    url: str
    sha256: str
    """From the hub, or from the manifest for a small file."""
    bytes: int
    commit: str | None


def _failed(model: Model, error: Exception, did: str = "is unreachable") -> DownloadFailed:
    """Return the error for the user."""
    from huggingface_hub import constants, errors

    host = constants.ENDPOINT.partition("://")[2]
    hint = "Check the network, or set HF_ENDPOINT to a mirror"
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(error, errors.GatedRepoError) or status in (401, 403):
        why = f"{host} refuses access to {model.repo}"
        hint = "Accept its licence there if it asks for that, and set HF_TOKEN to your token"
    elif status == 404:
        why = f"{host} has no {model.path} in {model.repo} at {model.revision}"
        hint = "Update lcursor: its models/manifest.toml is older than the repository"
    elif status is not None:
        why = f"{host} answers with status {status}"
        hint = "Try again later"
    elif isinstance(error, errors.OfflineModeIsEnabled):
        why = "the hub is switched off by HF_HUB_OFFLINE"
        hint = "Unset HF_HUB_OFFLINE"
    else:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        why = f"{host} {did} ({first})"
    return DownloadFailed(why, hint)


def _foreign() -> tuple[type[Exception], ...]:
    from lcursor.http.client import FAILURES

    return FAILURES


def _ask(model: Model) -> Remote:
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    url = hf_hub_url(model.repo, model.path, revision=model.revision)
    found = get_hf_file_metadata(url, timeout=CONNECT_S)
    sha256: str | None = found.etag
    if sha256 is not None and _BLOB.fullmatch(sha256):
        sha256 = model.sha256
    if sha256 is None or not _SHA256.fullmatch(sha256) or found.size is None:
        raise ValueError("it gives no sha256 and size for the file: it is no such hub")
    # Later requests go to the commit, so that a branch that moves cannot mix two files.
    pinned = hf_hub_url(model.repo, model.path, revision=found.commit_hash or model.revision)
    return Remote(pinned, sha256, found.size, found.commit_hash)


def look_up(model: Model) -> Remote:
    """Ask the hub for the size and the sha256 of the file.

    Raises:
        DownloadFailed: it cannot be reached, within `LOOK_UP_S`, or has no such file.
    """
    if not model.repo:
        raise DownloadFailed(f"no hub has {model.file}", "Check the network")
    try:
        import huggingface_hub as _  # noqa: F401
    except ImportError as e:
        raise DownloadFailed(
            "the package huggingface_hub is missing", "Run :LCursor install"
        ) from e
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    answer: list[Remote | Exception] = []

    def ask() -> None:
        try:
            answer.append(_ask(model))
        except _foreign() as e:
            answer.append(e)

    # Name resolution cannot be canceled, only abandoned.
    thread = threading.Thread(target=ask, name="lcursor-hub", daemon=True)
    thread.start()
    thread.join(LOOK_UP_S)
    result = answer[0] if answer else TimeoutError(f"no answer within {LOOK_UP_S:.0f} s")
    if isinstance(result, Exception):
        raise _failed(model, result) from result
    return result


def _chunks(model: Model, response: Response) -> Iterator[bytes]:
    try:
        # As they arrive: a chunk size would hold bytes back, and lose them when the line breaks.
        yield from response.iter_raw()
    except _foreign() as e:
        raise _failed(model, e, "broke off") from e


@contextmanager
def stream(model: Model, remote: Remote, offset: int) -> Iterator[tuple[int, Iterator[bytes]]]:
    """Open the file at `offset`.

    Returns:
        Where the bytes begin (0 when the server cannot resume) and the bytes.

    Raises:
        DownloadFailed: the server refuses, breaks off or falls silent; also from the iterator.
    """
    from huggingface_hub import get_session, hf_raise_for_status
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

    headers = build_hf_headers()
    headers["Accept-Encoding"] = "identity"
    if offset:
        headers["Range"] = f"bytes={offset}-"
    timeout = (CONNECT_S, STALL_S, STALL_S, STALL_S)  # connect, read, write, a free connection
    request = get_session().stream("GET", remote.url, headers=headers, timeout=timeout)
    try:
        response = request.__enter__()
    except _foreign() as e:
        raise _failed(model, e) from e
    try:
        try:
            hf_raise_for_status(response)
        except _foreign() as e:
            raise _failed(model, e) from e
        yield (offset if response.status_code == 206 else 0), _chunks(model, response)
    finally:
        request.__exit__(None, None, None)
