"""Download from the publisher's repository on the hub. The only importer of huggingface_hub.

Uses the library's `http_get`, which resumes a partial file: `hf_hub_download` deletes it when it
fails or is interrupted, and models have several gigabytes.
Honours HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE and proxies.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lcursor.catalog import store
from lcursor.catalog.manifest import Model
from lcursor.errors import DownloadFailed
from lcursor.http import endpoint
from lcursor.http.client import FAILURES

# Send only what a download needs. The library reads this once, when it is imported.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

from huggingface_hub import constants, errors, get_hf_file_metadata, hf_hub_url
from huggingface_hub.file_download import http_get
from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

LOOK_UP_S = 4.0
"""Timeout for a response with size and digest."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_BLOB = re.compile(r"[0-9a-f]{40}")
"""Git's digest of a file that is not in large file storage."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A file on the hub."""

    url: str
    sha256: str
    """From the hub, or from the manifest for a small file."""
    bytes: int
    commit: str | None


def look_up(model: Model) -> Remote:
    """Ask the hub for the size and the sha256 of a file.

    Raises:
        DownloadFailed: it cannot be reached, or has no such file.
    """
    if not model.repo:
        raise DownloadFailed(f"no hub has {model.file}", "Check the network")
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    url = hf_hub_url(model.repo, model.path, revision=model.revision)
    try:
        found = get_hf_file_metadata(url, timeout=LOOK_UP_S)
        sha256 = found.etag or ""
        if _BLOB.fullmatch(sha256):
            sha256 = model.sha256 or ""
        if not _SHA256.fullmatch(sha256) or found.size is None:
            raise ValueError("it reports no sha256 and size of the file, so it is not a model hub")
    except (ImportError, *FAILURES) as e:  # the library lacks what a SOCKS proxy needs
        raise _failed(model, e) from e
    if model.sha256 not in (None, sha256):
        raise DownloadFailed(
            f"the hub's {model.file} has the sha256 {sha256}, expected {model.sha256}",
            "Update lcursor: its models/manifest.toml is older than the repository",
        )
    # Later requests go to the commit, so that a branch that moves cannot mix two files.
    pinned = hf_hub_url(model.repo, model.path, revision=found.commit_hash or model.revision)
    return Remote(pinned, sha256, found.size, found.commit_hash)


def fetch(model: Model, remote: Remote, partial: Path, report: Callable[[int], None]) -> None:
    """Download the rest of a file, continuing after a broken connection.

    Args:
        remote: from `look_up`.
        partial: file to append to.
        report: called regularly with its size.

    Raises:
        DownloadFailed: the hub denies access, or timed out several times in a row.
        OSError: the file cannot be written.
    """

    class Bar:
        """The part of a tqdm progress bar that `http_get` uses."""

        def __init__(self, initial: int, **_: Any) -> None:
            self._done = initial

        def update(self, count: int) -> None:
            self._done += count
            report(self._done)

        def __enter__(self) -> Bar:
            return self

        def __exit__(self, *_: object) -> None: ...

    store.check_space(partial, remote.bytes - partial.stat().st_size)
    headers = build_hf_headers() | {"Accept-Encoding": "identity"}
    with partial.open("ab") as file:
        try:
            http_get(
                remote.url,
                file,
                resume_size=file.tell(),
                headers=headers,
                expected_size=remote.bytes,
                tqdm_class=Bar,
            )
        except FAILURES as e:
            if getattr(e, "errno", None):  # a disk error
                raise
            raise _failed(model, e) from e


def _failed(model: Model, error: Exception) -> DownloadFailed:
    """Return a download error as one with a hint."""
    host = constants.ENDPOINT.partition("://")[2]
    hint = "Check the network, or set HF_ENDPOINT to a mirror"
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(error, errors.GatedRepoError) or status in (401, 403):
        why = f"{host} denies access to {model.repo}"
        hint = "Accept its licence there if required, and set HF_TOKEN to your token"
    elif status == 404:
        why = f"{host} has no {model.path} in {model.repo} at {model.revision}"
        hint = "Update lcursor: its models/manifest.toml is older than the repository"
    elif status is not None:
        why = f"{host} answers with status {status}"
        hint = "Try again later"
    elif isinstance(error, errors.OfflineModeIsEnabled):
        why = "HF_HUB_OFFLINE disables the hub"
        hint = "Unset HF_HUB_OFFLINE"
    elif isinstance(error, ImportError):
        why = f"{host} cannot be reached: SOCKS proxies are not supported"
        hint = "Run it without the variable ALL_PROXY"
    else:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        proxy = endpoint.display_url(endpoint.proxy_of(constants.ENDPOINT))
        via = f" through the proxy {proxy}" if proxy else ""
        why = f"{host} is unreachable{via} ({first})"
    return DownloadFailed(why, hint)
