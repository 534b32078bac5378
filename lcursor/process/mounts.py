"""List the files that a sandboxed command can see: the system, toolchains, and its tree.

Everything else is missing: the home is empty, and so are the folders of sockets and of temporary
files. `visibility` decides about what is not the system's. What is listed applies at each level of
the sandbox.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from lcursor import system
from lcursor.process.covers import covered, repositories
from lcursor.process.visibility import home, part_in, visible_parts, why_hidden
from lcursor.project.reading import open_regular

SYSTEM: Final = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store",
    "/nix/var/nix/profiles",
)  # fmt: skip
CONFIGURATION: Final = (
    "ld.so.cache alternatives passwd group nsswitch.conf hosts localtime ssl/certs ssl/openssl.cnf"
    " pki/ca-trust pki/tls/certs crypto-policies mime.types services os-release terminfo fonts"
    " java-* static"
)
"""What is readable in /etc: no passwords, no keys."""
EMPTY: Final = ("/tmp", "/run", "/var/tmp")  # noqa: S108 - folders inside the sandbox
TOOLCHAINS: Final = (
    ".cargo/bin .cargo/registry .cargo/git .rustup/toolchains .rustup/settings.toml"
    " .nvm/versions .volta .gem/ruby .bun/bin .deno/bin .sdkman/candidates .ghcup"
    " .juliaup .m2/repository .local/bin .local/lib .local/pipx .local/share/pipx"
    " .local/share/pypoetry/venv"
    " .local/share/uv/python .local/share/uv/tools .local/share/mise .local/share/fnm"
    " .local/share/pnpm .local/share/nvim/mason/packages .nix-profile go/bin go/pkg/mod"
)
"""Readable in the home: programs and downloaded packages, no credentials."""
MANAGERS: Final = (".pyenv", ".asdf", ".rbenv", ".nodenv")
"""Folders in the home with the programs of a version manager."""
INSTALLED: Final = ("bin", "lib", "lib64", "include")
"""Parts of a Python installation that are shown."""
PARTS: Final = (
    *INSTALLED, "libexec", "sbin", "share", "etc", "ssl", "condabin", "conda-meta",
    "compiler_compat", "pyvenv.cfg", "shims", "versions", "version", "installs", "plugins",
    "pyenv.d", "rbenv.d", "completions", "asdf.sh",
)  # fmt: skip
"""Parts of an environment or a version manager that are shown."""
MAX_BYTES: Final = 1 << 16
"""Maximum read of a file `pyvenv.cfg`."""
MAX_COVERS: Final = 500
"""Maximum of files that are covered in one folder; bubblewrap takes 0.5 s for them."""
UPPER: Final = 2
"""Where nothing can be covered, packages with secrets up to this depth are not shown."""
PROGRAMS: Final = ("/usr/local/bin", "/usr/bin", "/bin")

Kind = Literal["read", "write", "empty", "link"]


@dataclass(frozen=True, slots=True)
class Mount:
    """Something a command sees; a later one covers an earlier one."""

    kind: Kind
    target: str
    """Its path for the command."""
    source: str = ""
    """Its path on disk, for "read" and "write"; the text of a "link"."""


def of_system() -> Iterator[Mount]:
    """Yield the system's programs, libraries and public configuration, and empty folders."""
    for name in SYSTEM:
        if os.path.islink(name):
            yield Mount("link", name, os.readlink(name))
        elif os.path.isdir(name):
            yield Mount("read", name, name)
    etc = Path("/etc")
    for pattern in CONFIGURATION.split():
        for path in etc.glob(pattern) if "*" in pattern else [etc / pattern]:
            if path.exists():
                yield Mount("read", str(path), os.path.realpath(path))
    if os.path.isdir(system.CPUS):
        yield Mount("read", system.CPUS, system.CPUS)
    for name in (*EMPTY, str(home())):
        yield Mount("empty", name)


def toolchains(search_path: str) -> Iterator[Mount]:
    """Yield programs outside of the system's folders: known toolchains, and folders on PATH."""
    here = home()
    parts = [*visible_parts(here, TOOLCHAINS.split())]
    for manager in MANAGERS:
        parts += visible_parts(here / manager, PARTS)
    for path in parts:
        yield from _readable(path)
    shown = tuple(f"{path}/" for path in (*SYSTEM, *parts))
    for name in dict.fromkeys(search_path.split(":")):
        folder = Path(name)
        if f"{folder}/".startswith(shown) and not (folder.parent / "pyvenv.cfg").exists():
            continue
        if not folder.is_absolute() or not folder.is_dir() or folder.parent == folder:
            continue
        environment = folder.parent
        is_manager = (environment / "shims").is_dir()  # often a clone of a version manager
        is_environment = is_manager or any(
            (environment / each).exists() for each in ("pyvenv.cfg", "conda-meta")
        )
        if is_environment and not why_hidden(environment, is_chosen=is_manager):
            for path in visible_parts(environment, PARTS):
                yield from _readable(path)
            yield from interpreter(environment)
        elif not why_hidden(folder):
            yield from _readable(folder)


def interpreter(environment: Path) -> Iterator[Mount]:
    """Yield the Python installation that a virtual environment refers to.

    The file that names it may be of the project and name any folder, also one that has links to
    others, so only what looks like an installation is shown, without following its links.
    """
    with contextlib.suppress(OSError, ValueError):
        with open_regular(environment / "pyvenv.cfg", follows_links=False) as file:
            lines = file.read(MAX_BYTES).decode("utf-8").splitlines()
        for line in lines:
            name, _, value = line.partition("=")
            if name.strip() == "home":
                yield from _installation(Path(os.path.realpath(value.strip())).parent)


def _installation(prefix: Path) -> Iterator[Mount]:
    """Yield the parts of a Python installation; nothing if it is none."""
    needed = (prefix.glob(each) for each in ("bin/python3*", "lib/python3*/os.py"))
    if not all(any(map(_is_own_file, each)) for each in needed):
        return
    for path in (prefix / each for each in INSTALLED):
        is_own = os.path.realpath(path) in (str(path), f"{prefix}/lib")  # lib64 may be lib
        if is_own and not why_hidden(path):
            yield from _readable(path)


def environments(root: Path, commands: Iterable[str]) -> list[Path]:
    """Return the environments outside of a project that commands of the settings need.

    These are those that a command names by a path, the active one, and those that Poetry and Pipenv
    have made for the project; and programs that a command names by an absolute path.
    """
    folders = [environment_of(root, word) for command in commands for word in _words(command)]
    folders += [Path(os.environ[name]) for name in ("VIRTUAL_ENV", "CONDA_PREFIX")
              if os.environ.get(name)]  # fmt: skip
    for folder, named in ((".cache/pypoetry", root), (".local/share", root / "Pipfile")):
        key = hashlib.sha256(os.path.realpath(named).encode("utf-8", "surrogateescape")).digest()
        mark = base64.urlsafe_b64encode(key).decode()[:8]
        folders += sorted((home() / folder / "virtualenvs").glob(f"*-{mark}*"))
    return [
        each
        for each in dict.fromkeys(folders)
        if each is not None and each.is_absolute() and not is_system(each)
        and part_in(each, root) is None
    ]  # fmt: skip


def is_system(path: str | Path) -> bool:
    """Return whether a path is below a folder of the system's programs."""
    return f"{path}/".startswith(tuple(f"{each}/" for each in SYSTEM))


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []  # the shell reports it


def environment_of(root: Path, word: str) -> Path | None:
    """Return the environment of a program that a word names, or else the program; None for none."""
    word = os.path.expanduser(word)
    path = os.path.normpath(root / word)
    if "/" not in word or not os.path.isfile(path) or not os.access(path, os.X_OK):
        return None
    prefix = Path(path).parent.parent
    is_installed = Path(path).parent.name == "bin" and any(_environment_names(prefix))
    return prefix if is_installed else Path(path) if os.path.isabs(word) else None


def _environment_names(path: Path) -> tuple[str, ...]:
    """Return the names of the parts of an environment, or an installation, of Python."""
    has_mark = any((path / name).exists() for name in ("pyvenv.cfg", "conda-meta"))
    if has_mark and any(path.glob("lib/python3*/site-packages")):
        return PARTS
    return INSTALLED if any(_installation(path)) else ()


def _environment_parts(path: Path, root: Path) -> Iterator[Path]:
    """Yield what may be shown of a result of `environments`: nothing of the project."""
    if path.is_file():
        found = visible_parts(path.parent, [path.name])
    else:
        found = visible_parts(path, () if why_hidden(path) else _environment_names(path))
    yield from (each for each in found if part_in(each, root) is None)


def _is_own_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _readable(path: Path) -> Iterator[Mount]:
    """Yield a path that may be shown, and what it is a link to, since scripts may name that."""
    real = os.path.realpath(path)
    yield from (Mount("read", name, real) for name in dict.fromkeys((str(path), real)))


def all_mounts(
    tree: Path,
    root: Path,
    read_only: Iterable[tuple[Path, Path]],
    packages: Iterable[Path],
    readable: Iterable[Path],
    search_path: str,
    environments: Iterable[Path] = (),
    writable: Sequence[Path] = (),
    private: Iterable[Path] = (),
    secrets: Sequence[str] = (),
    *,
    can_cover: bool = True,
) -> list[Mount]:
    """List everything that a command sees; see `Confinement`.

    Args:
        can_cover: a part of what is shown can be covered. Otherwise packages with secrets in their
            upper folders, and what contains the project, are not shown; never shown is what has
            more than `MAX_COVERS`.
    """
    shown, hidden, project = list(of_system()), list[Mount](), Path(os.path.realpath(root))

    def show(
        mounts: Iterable[Mount], globs: Sequence[str] = (), *, may_be_bare: bool = can_cover
    ) -> None:
        """Add mounts and their covers, unless one shows what cannot be covered."""
        for each in mounts:
            if each in shown:
                continue
            covers = [] if is_system(each.source) else [*_covers(each, globs)]
            is_bare = not may_be_bare and _is_bare(each, covers)
            if project.is_relative_to(each.source):
                is_bare = not can_cover or each.target != each.source
                covers = [cover for cover in covers if not _is_below(cover, root)]
            if len(covers) <= MAX_COVERS and not is_bare:
                shown.append(each)
                hidden.extend(covers)

    shown += dict.fromkeys(toolchains(""))
    known = [root, *(Path(each.target) for each in shown if each.kind == "read")]

    def show_new(mounts: Iterable[Mount]) -> None:
        """Show what is neither of the project nor below a toolchain."""
        show(each for each in mounts if not any(_is_below(each, it) for it in known))

    show_new(toolchains(search_path))
    for path in environments:
        if parts := [*_environment_parts(path, root)]:
            show(each for part in parts for each in _readable(part))
            show_new(interpreter(path))
    shown.append(Mount("write", str(root), os.path.realpath(tree)))
    shown += [Mount("read", str(target), os.path.realpath(source)) for source, target in read_only]
    for path in packages:
        if not why_hidden(path, follows_links=False):
            show([Mount("read", str(path), str(path))], secrets)
            show_new(interpreter(path))
    for path in readable:
        if not why_hidden(path, is_chosen=True, root=root):
            show(_readable(path), secrets, may_be_bare=True)
            show_new(interpreter(Path(os.path.realpath(path))))
    for path in writable:
        if not why_hidden(path, is_chosen=True, root=root):
            show([Mount("write", str(path), os.path.realpath(path))], may_be_bare=True)
            for each in map(Path, repositories(str(path))):  # their hooks would run later
                if each not in writable and not each.is_symlink():
                    shown.append(Mount("read", str(each), str(each)))
    shown += [Mount("write", str(path), os.path.realpath(path)) for path in private]
    hidden += _covered_sockets(shown)
    return [*shown, *dict.fromkeys(hidden)] if can_cover else shown


def _is_bare(mount: Mount, covers: Iterable[Mount]) -> bool:
    """Return whether one of the upper folders of what is shown has a secret."""
    upper = mount.target.count("/") + UPPER
    return any(
        each.target.startswith(f"{mount.target}/") and each.target.count("/") <= upper
        for each in covers
    )


def _is_below(mount: Mount, root: Path) -> bool:
    return Path(mount.target).is_relative_to(root)


def _covers(mount: Mount, globs: Sequence[str]) -> Iterator[Mount]:
    """Yield mounts over what commands must not see or reach below another."""
    for path in covered(mount.source, globs):
        yield Mount("read", mount.target + path[len(mount.source) :], os.devnull)


def _covered_sockets(mounts: Sequence[Mount]) -> Iterator[Mount]:
    """Yield mounts over the sockets of other programs below what is shown.

    A read-only mount does not prevent a connection. The kernel lists all sockets that have a name.
    """
    shown = [each for each in mounts if each.kind == "read"]
    for name in sorted(system.unix_sockets()):
        real = os.path.realpath(name)
        for each in shown:
            if real.startswith(f"{each.source}/") and os.path.lexists(real):
                yield Mount("read", each.target + real[len(each.source) :], os.devnull)


def with_mount_points(mounts: Iterable[Mount], tree: Path, root: Path) -> list[Mount]:
    """Create the folders and files in the tree where others are mounted.

    Returns:
        The mounts without those whose target leads through a link, which could lead anywhere.

    Raises:
        OSError: one cannot be created.
    """
    present, missing = [], list[str]()
    for mount in mounts:
        if name := _name(mount, root):
            with _parent(tree, name) as parent:
                if parent is None or not _make_mount_point(parent, mount):
                    missing.append(f"{mount.target}/")
                    continue
        if not (_is_cover(mount) and mount.target.startswith(tuple(missing))):
            present.append(mount)
    return present


@contextlib.contextmanager
def linked(mounts: Iterable[Mount], tree: Path, root: Path) -> Iterator[None]:
    """Let links in the tree lead to what is mounted there elsewhere; removed afterwards."""
    with contextlib.ExitStack() as stack:
        for mount in mounts:
            if name := _name(mount, root):
                parent = stack.enter_context(_parent(tree, name))
                if parent is not None:
                    stack.enter_context(_link(mount.source, os.path.basename(name), parent))
        yield


def _name(mount: Mount, root: Path) -> str:
    """Return the target relative to the root; "" if it is not below."""
    name = os.path.relpath(mount.target, root)
    return "" if mount.kind != "read" or _is_cover(mount) or name.startswith("..") else name


def _is_cover(mount: Mount) -> bool:
    return mount.source == os.devnull


@contextlib.contextmanager
def _parent(tree: Path, name: str) -> Iterator[int | None]:
    """Open the parent folder of a path in the tree, and create it, without following links.

    Yields:
        Its file descriptor; None if there is a link or a file.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.ExitStack() as stack:
        folder_fd = os.open(tree, flags & ~os.O_NOFOLLOW)
        stack.callback(os.close, folder_fd)
        for part in Path(name).parts[:-1]:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, dir_fd=folder_fd)
            try:
                folder_fd = os.open(part, flags, dir_fd=folder_fd)
            except OSError:
                yield None
                return
            stack.callback(os.close, folder_fd)
        yield folder_fd


def _make_mount_point(parent: int, mount: Mount) -> bool:
    """Create a folder or an empty file; return whether it exists and is of that type."""
    name = os.path.basename(mount.target)
    is_folder = os.path.isdir(mount.source)
    with contextlib.suppress(FileExistsError):
        if is_folder:
            os.mkdir(name, dir_fd=parent)
        else:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            os.close(os.open(name, flags, 0o600, dir_fd=parent))
    mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    return stat.S_ISDIR(mode) if is_folder else stat.S_ISREG(mode)


@contextlib.contextmanager
def _link(source: str, name: str, parent: int) -> Iterator[None]:
    """Make a link, unless something has its name."""
    try:
        os.symlink(source, name, dir_fd=parent)
    except FileExistsError:
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # the command has removed or replaced it
            if os.readlink(name, dir_fd=parent) == source:
                os.unlink(name, dir_fd=parent)


def variables(mounts: Sequence[Mount], env: Mapping[str, str], search_path: str) -> dict[str, str]:
    """Return the environment of a command: a few fixed variables, and those of `env`."""
    seen = tuple(f"{each.target}/" for each in mounts if each.kind != "empty")
    entries = [name for name in search_path.split(":") if f"{name}/".startswith(seen)]
    user = os.environ.get("USER", "agent")
    return {
        "PATH": ":".join(dict.fromkeys([*entries, *PROGRAMS])),
        "HOME": str(home()),
        "USER": user,
        "LOGNAME": user,
        "SHELL": "/bin/sh",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "TMPDIR": "/tmp",  # noqa: S108 - of the sandbox
        "CI": "1",
        "NO_COLOR": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        **env,
    }
