"""The first source: the publisher's repository on the hub. The only importer of huggingface_hub.

It takes from that library what is hard (endpoint, mirrors, tokens, redirects, what the hub's
headers mean) and streams the bytes itself, because the library's own download writes to names and
in places of its own and retries a dead host for minutes. Honours HF_ENDPOINT, HF_TOKEN,
HF_HUB_OFFLINE and proxies. Every wait has an end.
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

# The library tells its hub what is installed and who runs it, and asks it for a list of agents to
# look for. lcursor sends what a download needs and nothing else. Read once, when it is imported.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

CONNECT_S = 4.0
LOOK_UP_S = 8.0
"""Longest that the first question may take in all: resolvers keep to no timeout of ours."""
STALL_S = 20.0
"""Longest silence of a server that is sending."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_BLOB = re.compile(r"[0-9a-f]{40}")
"""What the hub has for a file that is in no large file storage: git's own digest."""


@dataclass(frozen=True, slots=True)
class Remote:
    """What the hub says about the file."""

    url: str
    sha256: str
    """As the hub says, or as the manifest does for a small file, of which the hub knows none."""
    bytes: int
    commit: str | None


def _failed(model: Model, error: Exception, did: str = "is unreachable") -> DownloadFailed:
    """Say in one sentence, for people, why the hub could not help."""
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

    # A resolver that hangs cannot be timed out from here, only be left behind.
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
