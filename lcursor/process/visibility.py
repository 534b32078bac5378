"""Decide which files of the user a sandboxed command may see.

    why_hidden(Path.home())  # "it contains your home"

Each folder that the sandbox shows besides the system's is judged here, whoever names it: our list
of toolchains, PATH, a virtual environment, the project, or the user's settings. Any thread.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

from lcursor.project.secrets import SECRET_NAME, is_secret_path
from lcursor.storage import folders

KEYS: Final = (
    ".ssh", ".gnupg", ".pki", ".password-store", ".netrc", ".git-credentials", ".aws", ".azure",
    ".kube", ".docker", ".mozilla", ".thunderbird", ".local/share/keyrings", ".config/gcloud",
    ".local/share/kwalletd", ".config/gh", ".config/op", ".config/google-chrome",
    ".config/chromium",
)  # fmt: skip
"""Keys, passwords and sessions, relative to a home: neither shown nor in what is shown."""
PRIVATE: Final = (".config", ".local/share", ".local/state", ".cache")
"""Folders of a home that have something of everything: only what is below them may be shown."""
VARIABLES: Final = ("HOME", "LCURSOR_DATA", "XDG_DATA_HOME", "XDG_CACHE_HOME")
"""What determines where the home and lcursor's data are."""
MARKS: Final = (".env", ".git", ".hg", ".jj", ".svn", "keyrings")
"""Entries of a folder that is another project, or has keys."""


def home() -> Path:
    """Return the path of the home, which is empty in the sandbox."""
    found = Path(os.path.expanduser("~"))
    return found if found.is_absolute() and found != Path("/") else Path("/home/agent")


def why_hidden(
    path: Path, *, is_chosen: bool = False, follows_links: bool = True, root: Path | None = None
) -> str:
    """Return why commands must not see a file or folder; "" if they may.

    Args:
        is_chosen: the user named it in the settings, so it may be another project.
        follows_links: what it leads to is judged; otherwise nothing on its path may be a link.
        root: the project, whose own links are not followed, by any of its names.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return "it does not exist"
    real = os.path.realpath(path)
    if not follows_links and real != os.path.normpath(path):
        return f"it is, or is below, a link to {real}"
    if root is not None:
        if _is_in(os.path.realpath(root), real):
            return "it contains the project"
        top = part_in(path, root)
        if top and real != os.path.normpath(os.path.realpath(top) / path.relative_to(top)):
            return f"it is, or is below, a link of the project to {real}"
    if stat.S_ISREG(mode):
        if is_secret_path(real):
            return SECRET_NAME
    elif not stat.S_ISDIR(mode):
        return "it is neither a folder nor a file"
    own_home, *owned = _known_folders(*map(os.environ.get, VARIABLES))
    if _is_in(own_home, real):
        return "it contains your home"
    for own in owned:
        if _is_in(own, real) or _is_in(real, own):
            return "it has data of lcursor"
    for name in KEYS if _is_in(real, own_home) else ():
        each = f"{own_home}/{name}"
        if _is_in(real, each) or (_is_in(each, real) and os.path.lexists(each)):
            return f"it has keys or passwords: ~/{name}"
    for name in PRIVATE:
        if _is_in(f"{own_home}/{name}", real):
            return f"it has data of many programs: ~/{name}"
    if not is_chosen:
        for mark in MARKS:
            if os.path.lexists(f"{real}/{mark}"):
                return f"it has {mark}, as another project does"
    return ""


def part_in(path: Path, root: Path) -> Path | None:
    """Return the first part of a path that leads into a project; None if it is elsewhere."""
    real = os.path.realpath(root)
    parts = (*reversed(path.parents), path)
    return next((each for each in parts if _is_in(os.path.realpath(each), real)), None)


def _is_in(path: str, folder: str) -> bool:
    """Return whether a path is a folder or below it; both without links."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


@cache
def _known_folders(*_: str | None) -> list[str]:
    """Return the home and the folders of lcursor's data, without links, for some `VARIABLES`."""
    return [os.path.realpath(each) for each in (home(), folders.data_home(), folders.cache_home())]


def visible_parts(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    """Yield those of a folder's entries with these names that exist and may be shown."""
    paths = (folder / name for name in names if os.path.lexists(f"{folder}/{name}"))
    yield from (path for path in paths if not why_hidden(path))
