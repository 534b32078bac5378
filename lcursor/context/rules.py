"""The rules files of a project: AGENTS.md, .cursor/rules, .lcursor/rules.

They apply to files in their folder and below, and to the globs in their front matter.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lcursor.context import front_matter
from lcursor.context.items import Item, missing
from lcursor.project import listing
from lcursor.project.globs import path_test
from lcursor.project.reading import Reader

AGENTS: Final = "AGENTS.md"
LEGACY: Final = ".cursorrules"
FOLDERS: Final = ((".cursor/rules", ".mdc"), (".lcursor/rules", ".md"))
LEADS_OUT: Final = "it is a link to outside the project"
"""A cloned project must not select files of the user to be read."""
MAX_FILE_CHARS = 24_000
"""About 7,000 tokens."""
MAX_CHARS = 64_000
MAX_FILES = 200


@dataclass(frozen=True, slots=True)
class Rule:
    """A rules file."""

    path: Path
    folder: str
    """The folder to which it applies, relative with a final slash; "" for the whole project."""
    name: str
    """The name in `@rules:NAME`."""
    text: str
    description: str = ""
    globs: tuple[str, ...] = ()
    is_always: bool = False
    error: str = ""

    def applies_to(self, path: str) -> str:
        """Return why it applies to a file, or to the project for ""; "" if it does not."""
        if not path.startswith(self.folder):
            return ""
        if self.is_always:
            return f"it applies to {self.folder}" if self.folder else "it applies everywhere"
        below = path[len(self.folder) :]
        for glob in self.globs if below else ():
            if _test(glob)(below):
                return f"it applies to {glob}"
        return ""


def applicable(reader: Reader, paths: Sequence[str] = ()) -> list[Item]:
    """Return the rules that apply to files, given by absolute paths; general rules first."""
    names = [name for path in paths if (name := inside(reader.root, path))]
    items, total = [], 0
    for rule in known(reader, names):
        why = next((why for name in names or [""] if (why := rule.applies_to(name))), "")
        if not why:
            continue
        item = as_item(rule, why, reader.root)
        if not item.is_left_out:
            total += len(item.text)
            if total > MAX_CHARS:
                why = f"limit of {MAX_CHARS:,} characters for rules reached"
                item = Item(item.key, "rules", item.name, item.path, 0, "", why, is_left_out=True)
                total -= len(item.text)
        items.append(item)
    return items


def named(name: str, paths: Sequence[str], reader: Reader) -> Item:
    """Return the rules of `@rules:NAME`; left out with the reason if there are none."""
    names = [each for path in paths if (each := inside(reader.root, path))]
    for rule in known(reader, names):
        if name in {rule.name, rule.path.name, os.path.relpath(rule.path, reader.root)}:
            return as_item(rule, "", reader.root)
    return missing("rules", name, "there are no such rules")


def known(reader: Reader, names: Sequence[str] = ()) -> list[Rule]:
    """Return all rules in the folders above some files, the user's own first."""
    rules: list[Rule] = []
    for path in _files(own_folder(), ".md"):
        rules += _read(path, "", path.stem, reader)
    for folder in _folders(names):
        directory = reader.root / folder
        if not folder:
            rules += _read(directory / LEGACY, "", LEGACY, reader)
        rules += _read(directory / AGENTS, folder, f"{folder}{AGENTS}", reader)
        for where, ending in FOLDERS:
            for path in _files(directory / where, ending):
                rules += _read(path, folder, path.stem, reader)
        if len(rules) > MAX_FILES:
            break
    return rules[:MAX_FILES]


def own_folder() -> Path:
    """Return the folder of the user's own rules, which apply to all projects."""
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(home).expanduser() / "lcursor/rules"


def as_item(rule: Rule, why: str, root: Path) -> Item:
    """Return a rule as an item, truncated if it is too long."""
    name = inside(root, rule.path) or f"~/{rule.path.name}"
    key, path = f"rules:{name}", str(rule.path)
    if rule.error:
        return Item(key, "rules", name, path, 0, "", rule.error, is_left_out=True)
    text = rule.text.strip() + "\n"
    if len(text) > MAX_FILE_CHARS:
        cut = text[: text.rfind("\n", 0, MAX_FILE_CHARS) + 1] or text[:MAX_FILE_CHARS]
        size = f"the first {len(cut):,} of its {len(text):,} characters"
        why, text = f"{why}; {size}".lstrip("; "), cut
    return Item(key, "rules", name, path, 0, text, why)


def inside(root: Path, path: Path | str) -> str:
    """Return a path relative to the project; "" if it is outside."""
    given = os.path.normpath(path)
    for each in (given, os.path.realpath(given)):
        if each.startswith(f"{root}/"):
            return os.path.relpath(each, root)
    return ""


def _folders(names: Sequence[str]) -> list[str]:
    """Return the folders above some files, the root first as ""."""
    found = {"", *(f"{folder}/" for name in names for folder in listing.folders_of(name))}
    return sorted(found, key=lambda folder: (folder.count("/"), folder))


def _files(folder: Path, ending: str) -> Iterator[Path]:
    """Yield the files in a folder and below, sorted; follows no links to folders."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries[:MAX_FILES]:
        if entry.is_dir(follow_symlinks=False):
            yield from _files(folder / entry.name, ending)
        elif entry.name.endswith(ending):
            yield folder / entry.name


def _read(path: Path, folder: str, name: str, reader: Reader) -> Iterator[Rule]:
    if not path.exists():
        return
    is_own = path.is_relative_to(own_folder())  # the user's dotfiles may be links
    if not is_own and not Path(os.path.realpath(path)).is_relative_to(reader.root):
        yield Rule(path, folder, name, "", is_always=True, error=LEADS_OUT)
        return
    read = reader.read(path)
    if read.error:
        yield Rule(path, folder, name, "", is_always=True, error=read.error)
        return
    is_plain = path.name in {AGENTS, LEGACY}
    head, text = ({}, read.text) if is_plain else front_matter.split(read.text)
    if not text.strip():
        return
    globs = front_matter.globs(head.get("globs"))
    # Without front matter our rules always apply; Cursor's must be mentioned.
    is_always = is_plain or front_matter.is_true(head.get("alwaysapply"))
    is_always = is_always or (path.suffix == ".md" and not globs and "alwaysapply" not in head)
    about = front_matter.words(head.get("description"))
    yield Rule(path, folder, name, text, about, tuple(globs), is_always)


def _test(glob: str) -> Callable[[str], bool]:
    """Return a function that matches paths with a rule's glob, in any folder if it has no slash."""
    bare = glob.removeprefix("./")
    is_rooted = "/" in bare.rstrip("/") and not bare.startswith("**/")
    is_wild = any(sign in bare for sign in "*?[")
    if not is_wild and not is_rooted and not bare.endswith("/"):
        return lambda path: path == bare or path.endswith(f"/{bare}")
    if not is_wild:
        top = bare.strip("/")
        if is_rooted:
            return lambda path: path == top or path.startswith(f"{top}/")
        return lambda path: f"/{top}/" in f"/{path}"
    return path_test([f"/{bare.lstrip('/')}" if is_rooted else bare])
