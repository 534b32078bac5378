"""A disk that loses power: what of a program's writes survives is up to chance.

`Disk` records the calls that change files. Of the bytes of a file only those count as stored that
were flushed after they were written, and of a folder's names those after whose change the folder
was flushed. Of everything else any part may survive a power failure: a rename without the bytes of
the file, a deletion without the creation before it, half of a text, or zeros in its place. What one
call does to names happens as a whole or not at all, as file systems with a journal promise.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lcursor import system

Content = tuple[bytes, int, tuple[tuple[str, bytes], ...]]
"""Bytes, permissions and extended attributes."""
DATA_CALLS = ("open", "write", "ftruncate", "fchmod", "chmod", "setxattr", "removexattr")
NAME_CALLS = ("replace", "rename", "link", "unlink", "remove", "mkdir", "rmdir")


@dataclass(eq=False)
class Node:
    """A file or a folder."""

    is_folder: bool
    contents: list[tuple[int, Content]] = field(default_factory=list)
    """Time and content of a file after each change."""
    synced: list[int] = field(default_factory=list)
    """Times when it was flushed."""


@dataclass
class Naming:
    """A change of names, which happens as a whole."""

    at: int
    names: list[tuple[Node, str, Node | None]]
    """Folder, name, and what has the name afterwards."""


@dataclass
class State:
    """What is on the disk."""

    names: dict[str, Node | None]
    """Files by path; None for a folder. A folder comes before its files."""
    contents: dict[Node, Content]

    @property
    def files(self) -> dict[str, Content | None]:
        """The content of each path, None for a folder."""
        return {path: self.contents[node] if node else None for path, node in self.names.items()}


Survives = Callable[[], bool]
"""Returns whether a change of names survives that was not flushed."""
Choose = Callable[[Sequence[Content]], Content]
"""Returns the content of a file, given the flushed one and the later ones."""


class Disk:
    """A folder, whose changes are recorded in `recording`."""

    def __init__(self, place: Path) -> None:
        self.place = Path(os.path.realpath(place))
        self.now = 0
        """Number of changes so far."""
        self._nodes: dict[int, Node] = {}
        self._tree: dict[Node, dict[str, Node]] = {}
        self._namings: list[Naming] = []
        self._root = self._scan(self.place)

    # Recording.

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record what happens in this block."""
        with pytest.MonkeyPatch.context() as patch:
            for name in filter(os.__dict__.__contains__, DATA_CALLS):
                patch.setattr(os, name, self._data_call(getattr(os, name)))
            for name in NAME_CALLS:
                patch.setattr(os, name, self._name_call(name, getattr(os, name)))
            patch.setattr(os, "fsync", self._sync)
            yield
        for path in self.place.rglob("*"):
            self._look(path)
        whole = self.state(self.now, lambda: True, lambda found: found[-1])
        assert whole.files == self._actual(), "a call was not recorded"

    def _data_call(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(target: Any, *args: Any, **more: Any) -> Any:
            path = self._inside(target)
            is_new = path is not None and not os.path.lexists(path)
            result = real(target, *args, **more)
            if path is not None and os.path.lexists(path):
                if is_new:
                    self._name((path, self._new(path)))
                self._look(path)
            return result

        return call

    def _name_call(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(source: Any, *args: Any, **more: Any) -> Any:
            old = self._inside(source)
            new = self._inside(args[0]) if name in ("replace", "rename", "link") else None
            node = None
            if old is not None and new is not None:
                self._look(old)  # what a closed file was given
                node = self._node(old)
            real(source, *args, **more)
            if old is not None and name == "mkdir":
                self._name((old, self._new(old)))
            elif old is not None and new is None:
                self._name((old, None))
            elif old is not None and new is not None:
                self._name(*([] if name == "link" else [(old, None)]), (new, node))

        return call

    def _sync(self, fd: int) -> None:
        path = self._inside(fd)
        if path is not None and os.path.lexists(path):
            self._look(path)
            self.now += 1
            self._node(path).synced.append(self.now)

    def _inside(self, target: Any) -> Path | None:
        """Return the path of a file of the disk, given its path or its descriptor."""
        if isinstance(target, int):
            target = system.path_of(target)
        path = Path(os.path.abspath(os.fsdecode(target)))
        return path if path.is_relative_to(self.place) else None

    def _scan(self, path: Path) -> Node:
        """Take what is there as flushed."""
        if (known := self._nodes.get(os.lstat(path).st_ino)) is not None:
            return known  # another name of the file
        node = self._new(path)
        if node.is_folder:
            self._tree[node] = {each.name: self._scan(each) for each in path.iterdir()}
        else:
            node.contents = [(0, _content(path))]
        return node

    def _new(self, path: Path) -> Node:
        node = self._nodes[os.lstat(path).st_ino] = Node(path.is_dir())
        node.contents.append((self.now, (b"", 0o600, ())))
        return node

    def _node(self, path: Path) -> Node:
        return self._nodes[os.lstat(path).st_ino]

    def _look(self, path: Path) -> None:
        """Record the content of a file if it has changed."""
        node = self._node(path)
        if not node.is_folder and (found := _content(path)) != node.contents[-1][1]:
            self.now += 1
            node.contents.append((self.now, found))

    def _name(self, *names: tuple[Path, Node | None]) -> None:
        self.now += 1
        changes = [(self._node(path.parent), path.name, node) for path, node in names]
        self._namings.append(Naming(self.now, changes))

    # After a power failure.

    def states(self, at: int, count: int, seed: int = 0) -> Iterator[State]:
        """Yield states in which the disk may be after so many changes.

        First the extreme ones: nothing survives that was not flushed; the names, with old, new or
        no bytes. Then some by chance.
        """
        chance = random.Random(f"{seed}.{at}")
        yield self.state(at, lambda: False, lambda found: found[0])
        for choose in (_old, _new, _empty):
            yield self.state(at, lambda: True, choose)
        for _ in range(count):
            share = chance.random()
            yield self.state(
                at,
                lambda share=share: chance.random() < share,  # type: ignore[misc]
                lambda found: _torn(found, chance),
            )

    def state(self, at: int, survives: Survives, choose: Choose) -> State:
        """Return the state after so many changes."""
        tree = {node: dict(names) for node, names in self._tree.items()}
        for naming in itertools.takewhile(lambda one: one.at <= at, self._namings):
            folders = {folder for folder, _, _ in naming.names}
            if any(naming.at < t <= at for each in folders for t in each.synced) or survives():
                for folder, name, node in naming.names:
                    tree.setdefault(folder, {}).pop(name, None)
                    if node is not None:
                        tree[folder][name] = node
        found = State({}, {})
        self._collect(self._root, "", tree, found)
        for node in {node: None for node in found.names.values() if node is not None}:
            synced = max((t for t in node.synced if t <= at), default=0)
            durable = [content for t, content in node.contents if t <= synced] or [
                node.contents[0][1]
            ]
            later = [content for t, content in node.contents if synced < t <= at]
            found.contents[node] = choose([durable[-1], *later]) if later else durable[-1]
        return found

    def _collect(
        self, folder: Node, above: str, tree: dict[Node, dict[str, Node]], to: State
    ) -> None:
        for name, node in sorted(tree.get(folder, {}).items()):
            to.names[above + name] = None if node.is_folder else node
            if node.is_folder:
                self._collect(node, f"{above}{name}/", tree, to)

    def _actual(self) -> dict[str, Content | None]:
        return {
            str(path.relative_to(self.place)): None if path.is_dir() else _content(path)
            for path in self.place.rglob("*")
        }

    def restore(self, state: State) -> None:
        """Bring the folder into a state."""
        for path in self.place.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        made = dict[Node, Path]()
        for name, node in state.names.items():
            path = self.place / name
            if node is None:
                path.mkdir(mode=0o700)
            elif node in made:
                os.link(made[node], path)
            else:
                made[node] = path
                data, mode, extended = state.contents[node]
                path.write_bytes(data)
                path.chmod(mode)
                with path.open("rb") as file:
                    system.set_extended_attributes(file.fileno(), dict(extended))


def _content(path: Path) -> Content:
    extended = tuple(sorted(system.extended_attributes(str(path)).items()))
    return path.read_bytes(), path.lstat().st_mode & 0o7777, extended


def _old(found: Sequence[Content]) -> Content:
    return found[0]


def _new(found: Sequence[Content]) -> Content:
    return found[-1]


def _kept(found: Sequence[Content]) -> int:
    """Return how many bytes were flushed and not touched since, as in a file that only grows."""
    flushed = found[0][0]
    return len(flushed) if all(data.startswith(flushed) for data, _, _ in found) else 0


def _empty(found: Sequence[Content]) -> Content:
    """Return the last content without what was not flushed."""
    data, mode, extended = found[-1]
    return (data if data == found[0][0] else data[: _kept(found)]), mode, extended


def _torn(found: Sequence[Content], chance: random.Random) -> Content:
    """Return one of some contents, of which the end may be missing, or parts be zeros."""
    data, mode, extended = chance.choice(found)
    if data != found[0][0]:
        kept = _kept(found)
        length = chance.choice((len(data), chance.randint(kept, len(data))))
        first = chance.choice((length, length, chance.randint(kept, length)))
        data = data[:first] + bytes(length - first)
    return data, mode, extended
