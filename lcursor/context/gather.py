"""Gather the context of a question from its mentions and the editor's attachments.

Reads files, runs git and searches the index, with limits. Never fails: missing, secret, binary or
huge files become items that are left out, with the reason. Blocks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from lcursor.context import changes, item_builders, mentions, paths, prompts, rules, trace
from lcursor.context.codebase import Codebase, GrepSearch
from lcursor.context.items import DROPPED, Item, missing
from lcursor.context.mentions import Mention
from lcursor.context.servers import ServerTexts
from lcursor.errors import DependencyMissing, McpFailed
from lcursor.process.run import Cancel
from lcursor.project import git
from lcursor.project.reading import MAX_BYTES, MAX_S, Reader
from lcursor.protocol.chat import ChatAttachment

CODEBASE_TOKENS = 4000
"""Default limit of `@codebase`."""
MAX_TEST_CHARS = 16_000
"""Limit of a test file that serves as an example."""
MAX_FRAMES = 12
FRAME_ROWS = 20
"""Lines before and after a line of a stack trace."""
ABOUT_USES: Final = re.compile(r"\b(?:call(?:s|ed|ers?)?|us(?:e|es|ed|ages?)|references?)\b", re.I)
"""Words of a question about the places that use a definition."""
NOTHING: Final = {
    "buffer": "no file is open",
    "selection": "nothing is selected",
    "screen": "no code is visible",
    "diagnostics": "there are no diagnostics",
    "quickfix": "the quickfix list is empty",
    "terminal": "no terminal has any output",
}
NO_SERVERS: Final = "no MCP servers are configured"
NOT_NAMED: Final = "a prompt of the project cannot attach it"


def gather(
    text: str,
    *,
    root: Path,
    path: str = "",
    attachments: Sequence[ChatAttachment] = (),
    codebase: Codebase | None = None,
    servers: ServerTexts | None = None,
    expanded: prompts.Expanded | None = None,
    secrets: Sequence[str] = (),
    cancel: Cancel | None = None,
    dropped: Collection[str] = (),
    codebase_tokens: int = CODEBASE_TOKENS,
    with_rules: bool = False,
    with_screen: bool = False,
    max_s: float = MAX_S,
) -> list[Item]:
    """Return the context of a question, without duplicates.

    The user's attachments are always included, the editor's offers only if they are mentioned; the
    text of an offered buffer replaces its file in any case. Failed searches become notes.

    Args:
        path: absolute path of the current file; "" for none.
        attachments: text that only the editor can read.
        codebase: for `@codebase` and `@symbol`; None to search by words.
        servers: for `@mcp`; None for no servers.
        expanded: the text with its command expanded; None to do it here, without servers.
        dropped: keys of items that the user removed.
        with_rules: add the rules files that apply.
        with_screen: add the visible lines if the text mentions nothing.

    Raises:
        Cancelled: `cancel` returned True.
    """
    expanded = expanded or prompts.expand(text, root)
    buffers = {
        each["path"]: each["text"]
        for each in attachments
        if each["kind"] == "buffer" and each["path"] and not _is_saved(each)
    }
    reader = Reader(root, secrets, buffers, cancel, max_s)
    gathering = _Gathering(
        attachments,
        paths.PathResolver(reader, path),
        codebase or GrepSearch(reader.root, secrets),
        servers,
        codebase_tokens,
        is_command=expanded.prompt is not None,
        is_foreign=bool(expanded.prompt and expanded.prompt.origin == "project"),
    )
    is_of_server = bool(expanded.prompt and expanded.prompt.origin == "server")
    gathering.add_mentions(text if is_of_server else expanded.text)  # a server mentions nothing
    brings = expanded.prompt.brings if expanded.prompt else ""
    if brings == "trace":
        gathering.add_trace(expanded.text)
    elif brings == "tests":
        gathering.add_tests()
    elif with_screen and not gathering.items and not gathering.is_command:
        gathering.add_screen()
    items = item_builders.remove_overlaps(gathering.items, dropped)
    if with_rules:
        items = [*gathering.rules(items), *items]
    return [
        replace(item, text="", note=DROPPED, is_left_out=True)
        if item.key in dropped and not item.is_left_out
        else item
        for item in items
    ]


def storable(
    attachments: Sequence[ChatAttachment],
    *,
    root: Path,
    secrets: Sequence[str] = (),
    dropped: Collection[str] = (),
) -> list[ChatAttachment]:
    """Return the attachments to store with a question, to reuse if it is edited.

    These are the user's attachments, the selection and the visible lines, unless they are secret or
    dropped.
    """
    reader = Reader(root, secrets)
    return [
        each
        for each in attachments
        if (each["kind"] in {"selection", "screen"} or not _is_ambient(each))
        and _key(each) not in dropped
        and not _secret(each, reader)
    ]


def _is_saved(each: ChatAttachment) -> bool:
    """Return whether a buffer has no unsaved changes."""
    data, path = each["text"].encode("utf-8", "surrogatepass"), Path(each["path"])
    try:
        return path.stat().st_size == len(data) and path.read_bytes() == data
    except (OSError, ValueError):
        return False


@dataclass
class _Gathering:
    """Gathers the items of one question."""

    attachments: Sequence[ChatAttachment]
    resolver: paths.PathResolver
    codebase: Codebase
    servers: ServerTexts | None
    codebase_tokens: int
    is_command: bool
    is_foreign: bool
    """Whether the text is a prompt of the project, which must not name files outside."""
    items: list[Item] = field(default_factory=list)
    mentioned: set[int] = field(default_factory=set)
    """Indexes of the mentioned attachments."""

    def __post_init__(self) -> None:
        self.reader, self.path = self.resolver.reader, self.resolver.path
        self._file = partial(item_builders.file_item, self.resolver)

    def add_mentions(self, text: str) -> None:
        """Add the mentions of a text, and the user's attachments."""
        found = mentions.parse(text)
        named: list[Item] = []
        for mention in found:
            self.reader.check()
            named += self._mention_items(mention, text, found)
        for number, each in enumerate(self.attachments):
            if number not in self.mentioned and not _is_ambient(each):
                self.items.append(self._attached(each))
        self.items += named

    def add_trace(self, text: str) -> None:
        """Add the project's lines in a stack trace."""
        texts = [text, *(item.text for item in self.items if item.kind in {"terminal", "quickfix"})]
        spans: dict[str, list[list[int]]] = {}
        number = 0
        for frame in trace.frames("\n".join(texts)):
            where = self.resolver.find_frame(frame.path)
            if where is None or number >= MAX_FRAMES:
                continue
            number += 1
            first, end = max(frame.row - FRAME_ROWS, 0), frame.row + FRAME_ROWS + 1
            near = next(
                (span for span in spans.get(str(where), ()) if first <= span[1] and span[0] <= end),
                None,
            )
            if near:
                near[0], near[1] = min(near[0], first), max(near[1], end)
            else:
                spans.setdefault(str(where), []).append([first, end])
        for path, ranges in spans.items():
            for first, end in ranges:
                item = self._file(Path(path), first, end, "named in the trace")
                if not item.is_left_out:
                    self.items.append(item)

    def add_tests(self) -> None:
        """Add the tests of the current file, else other tests as examples."""
        about = next((item.path for item in self.items if item.path), self.path)
        for path, note in self.resolver.tests_of(about) if about else ():
            item = self._file(path, 0, -1, note)
            if not item.is_left_out and len(item.text) <= MAX_TEST_CHARS:
                self.items.append(item)
                return

    def add_screen(self) -> None:
        """Add the visible lines, unless git ignores their file."""
        self.items += [
            self._attached(each)
            for each in self.attachments
            if each["kind"] == "screen" and not self._is_ignored(each["path"])
        ]

    def rules(self, items: Sequence[Item]) -> list[Item]:
        """Return the rules that apply to the current file and to the items."""
        about = [item.path for item in items if item.path and not item.is_left_out]
        have = {item.key for item in items}
        found = rules.applicable(self.reader, [self.path, *about])
        return [item for item in found if item.key not in have]

    def _mention_items(
        self, mention: Mention, text: str, all_of: Sequence[Mention]
    ) -> Iterable[Item]:
        kind, argument = mention.kind, mention.argument
        sources: dict[str, Callable[[], Iterable[Item]]] = {
            "file": lambda: self._files(argument),
            "dir": lambda: self._folder(argument),
            "buffer": lambda: self._buffer(argument),
            "symbol": lambda: item_builders.symbol_items(
                argument, self.codebase, self.resolver, has_uses=bool(ABOUT_USES.search(text))
            ),
            "diff": lambda: self._diff(argument),
            "commit": lambda: changes.commit(argument, self.reader),
            "codebase": lambda: item_builders.codebase_items(
                argument or mentions.without(text, all_of),
                self.codebase,
                self.resolver,
                self.codebase_tokens,
            ),
            "rules": lambda: [rules.named(argument, [self.path], self.reader)],
            "mcp": lambda: [self._resource(argument)],
        }
        try:
            return sources[kind]() if kind in sources else self._sent(kind, argument)
        except paths.PathError as error:
            return [missing(kind, argument, str(error))]

    def _sent(self, kind: str, argument: str) -> list[Item]:
        """Return the attachments of a kind whose name contains the argument."""
        found = []
        for number, each in enumerate(self.attachments):
            if each["kind"] == kind and argument.lower() in each["name"].lower():
                self.mentioned.add(number)
                found.append(self._attached(each))
        if found:
            return found
        if kind == "selection" and self.is_command:  # without a selection `/explain` uses the file
            return [
                item if item.is_left_out else replace(item, note="nothing is selected")
                for item in self._buffer("")
            ]
        if self.is_command and kind != "terminal":
            return []  # the editor would have attached it
        why = NOTHING.get(kind, "there is none")
        if kind == "terminal" and argument:
            why = "no terminal of that name has output"
        return [missing(kind, argument or kind, why)]

    def _resource(self, name: str) -> Item:
        """Return a resource of a server."""
        if self.is_foreign or self.servers is None:
            return missing("mcp", name, NOT_NAMED if self.is_foreign else NO_SERVERS)
        try:
            text = self.servers.read(name, self.reader.cancel or (lambda: False))
        except (DependencyMissing, McpFailed) as error:
            return missing("mcp", name, error.message)
        return self._attached(
            {
                "kind": "mcp",
                "name": name,
                "path": "",
                "first_row": 0,
                "text": text,
                "is_offered": False,
            }
        )

    def _attached(self, each: ChatAttachment) -> Item:
        kind, name, path, row = each["kind"], each["name"], each["path"], each["first_row"]
        key, why = _key(each), _secret(each, self.reader)
        if not why and not each["text"].strip():
            why = "it is empty"
        if not why and len(each["text"]) > MAX_BYTES:
            why = f"it has {len(each['text']) / (1 << 20):,.1f} MB"
        if why:
            return Item(key, kind, name, path, row, "", why, is_left_out=True)
        return Item(key, kind, name, path, row, each["text"])

    def _buffer(self, argument: str) -> list[Item]:
        """Return the current buffer, or one by name; from the disk if it was not attached."""
        wanted = argument.lower()
        here = os.path.realpath(self.path) if self.path else ""
        found: list[tuple[int, ChatAttachment]] = [
            (number, each)
            for number, each in enumerate(self.attachments)
            if each["kind"] == "buffer" and wanted in (each["name"] or each["path"]).lower()
        ]
        if not argument:
            of_path = [one for one in found if here and os.path.realpath(one[1]["path"]) == here]
            found = of_path or ([] if here else found[:1])
        self.mentioned.update(number for number, _ in found)
        if found:
            return [self._attached(each) for _, each in found]
        if argument:  # may be a file that is not open
            try:
                return self._files(argument)
            except paths.PathError as error:
                raise paths.PathError(f"there is no such buffer, and {error}") from error
        if not here:
            return [missing("buffer", "buffer", NOTHING["buffer"])]
        return [self._file(Path(self.path), 0, -1, "", "buffer")]

    def _files(self, argument: str) -> list[Item]:
        """Return a file, some of its lines, or all files that match a glob."""
        found = self.resolver.find_files(argument, is_foreign=self.is_foreign)
        if found is None:
            return self._folder(argument)
        items = [
            self._file(path, found.first_row, found.end_row, found.note) for path in found.paths
        ]
        if found.more:
            items.append(missing("file", f"{argument}: the rest", found.more))
        return items

    def _folder(self, argument: str) -> list[Item]:
        """Return a list of a folder's files, and the text files themselves."""
        found = self.resolver.find_folder(argument, is_foreign=self.is_foreign)
        name = self.resolver.display_name(found.folder)
        items = [Item(f"dir:{name}", "dir", f"{name}/", str(found.folder), 0, found.listing)]
        note = f"in {name}"
        for path, why in found.files:
            if why:
                shown = self.resolver.display_name(path)
                key, where = f"file:{shown}", str(path)
                items.append(Item(key, "dir", shown, where, note=why, is_left_out=True))
            else:
                items.append(replace(self._file(path, 0, -1, note), kind="dir"))
        if found.more:
            items.append(missing("dir", f"{name}: the rest", found.more))
        return items

    def _diff(self, argument: str) -> list[Item]:
        found = changes.diff(argument, self.reader)
        if self.is_command and argument == "--staged" and all(item.is_left_out for item in found):
            every = changes.diff("", self.reader)  # `/commit` without staged changes
            if any(not item.is_left_out for item in every):
                note = "nothing is staged: all changes"
                return [
                    item
                    if item.is_left_out
                    else replace(item, note=f"{note}; {item.note}" if item.note else note)
                    for item in every
                ]
        return found

    def _is_ignored(self, path: str) -> bool:
        """Return whether git ignores a file, or cannot tell."""
        try:
            return bool(path) and git.is_ignored(Path(path), self.reader.cancel)
        except git.GitFailed:
            return True


def _is_ambient(each: ChatAttachment) -> bool:
    return each.get("is_offered", False)  # optional


def _key(each: ChatAttachment) -> str:
    if each["kind"] == "screen":
        return "screen"  # there is only one, and its name depends on the cursor
    key = f"{each['kind']}:{each['name']}" if each["name"] != each["kind"] else each["kind"]
    return f"{key}:{each['first_row'] + 1}" if each["kind"] == "selection" else key


def _secret(each: ChatAttachment, reader: Reader) -> str:
    """Return why an attachment must not be sent; "" if it may."""
    why = reader.secret(each["path"]) if each["path"] else ""
    return why or reader.secret_text(each["text"])
