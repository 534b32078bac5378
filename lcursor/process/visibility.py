"""Decide which files of the user a sandboxed command may see.

    why_hidden(Path.home())  # "it contains your home"

Each folder that the sandbox shows besides the system's is judged here, whoever names it: our list
of toolchains, PATH, a virtual environment, the project, or the user's settings. Any thread.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from lcursor.project.secrets import SECRET_NAME, is_secret_path
from lcursor.storage import folders

KEYS: Final = (
    ".ssh .gnupg .pki .password-store .netrc .git-credentials .aws .azure .kube .docker .mozilla"
    " .thunderbird .local/share/keyrings .local/share/kwalletd .config/gcloud .config/gh .config/op"
    " .config/google-chrome .config/chromium"
)
"""Keys, passwords and sessions, relative to a home: neither shown nor in what is shown."""
PRIVATE: Final = (".config", ".local/share", ".local/state", ".cache")
"""Folders of a home that have something of everything: only what is below them may be shown."""
MARKS: Final = frozenset({".git", ".hg", ".svn", ".jj", ".env", "keyrings"})
"""Entries of a folder that is another project, or has keys."""


def home() -> Path:
    """Return the path of the home, which is empty in the sandbox."""
    found = Path(os.path.expanduser("~"))
    return found if found.is_absolute() and found != Path("/") else Path("/home/agent")


def why_hidden(path: Path, *, is_chosen: bool = False, follows_links: bool = True) -> str:
    """Return why commands must not see a file or folder; "" if they may.

    Args:
        is_chosen: the user named it in the settings, so it may be another project.
        follows_links: what it leads to is judged; otherwise nothing on its path may be a link.
    """
    real = Path(os.path.realpath(path))
    if not os.path.lexists(real):
        return "it does not exist"
    if not follows_links and os.fspath(real) != os.path.normpath(path):
        return f"it is, or is below, a link to {real}"
    if not (real.is_dir() or real.is_file()):
        return "it is neither a folder nor a file"
    if real.is_file() and is_secret_path(os.fspath(real)):
        return SECRET_NAME
    here = Path(os.path.realpath(home()))
    if here.is_relative_to(real):
        return "it contains your home"
    for own in _own_folders():
        if own.is_relative_to(real) or real.is_relative_to(own):
            return "it has data of lcursor"
    for name in KEYS.split():
        each = here / name
        if real.is_relative_to(each) or (each.is_relative_to(real) and each.exists()):
            return f"it has keys or passwords: ~/{name}"
    for name in PRIVATE:
        if (here / name).is_relative_to(real):
            return f"it has data of many programs: ~/{name}"
    if not is_chosen and (mark := next(_marks_in(real), "")):
        return f"it has {mark}, as another project does"
    return ""


def visible_parts(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    """Yield those of a folder's entries with these names that exist and may be shown."""
    paths = (folder / name for name in names)
    yield from (path for path in paths if not why_hidden(path))


def _own_folders() -> list[Path]:
    """Return where lcursor keeps what it stores."""
    found = (folders.data_home(), folders.cache_home())
    return [Path(os.path.realpath(each)) for each in found]


def _marks_in(folder: Path) -> Iterator[str]:
    yield from (name for name in sorted(MARKS) if os.path.lexists(folder / name))
