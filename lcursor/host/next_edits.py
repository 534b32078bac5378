"""Next-edit prediction in the host: derived edits by an executor, then a model's."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lcursor.config import Config
from lcursor.executor import SerialExecutor
from lcursor.next_edit.records import Edit, Lines, Proposal
from lcursor.protocol.next_edit import NextEdit, NextEditPredict, NextEditProposal
from lcursor.reporting import Notify, report_error

if TYPE_CHECKING:
    from lcursor.host.next_edit_model import NextEditModel
    from lcursor.next_edit.records import Texts

THREAD = "lcursor-next-edit"
CLOSE_S = 0.5
"""Time limit at close; predictions are not stored."""
MAX_NAMES, MIN_LETTERS = 4, 3
"""Names that are searched in the project, and their length."""
MAX_FILES, MAX_LINES = 16, 10_000
"""Other files of the project that are read, and their lines in total."""
SEARCH_S = 1.0


class NextEdits:
    """Answers the requests of one Neovim; only the newest one.

    Args:
        notify: sends a message to Neovim, from any thread.
    """

    def __init__(self, notify: Notify) -> None:
        self._notify = notify
        self._newest = 0
        self._settings = Config()
        self._model: NextEditModel | None = None
        self._executor = SerialExecutor(
            THREAD, lambda error, number: report_error(notify, error, number, "prediction failed")
        )

    def configure(self, settings: Config) -> None:
        """Apply settings; another model is asked from the next edit on."""
        old, self._settings = self._settings, settings
        if self._executor.is_used and old.next_edit != settings.next_edit:
            self._executor.submit(self._close_model)

    def predict(self, params: NextEditPredict) -> None:
        """Answer `next_edit.predict`."""
        self._newest = params["id"]
        self._executor.submit(lambda: self._predict(params), params["id"])

    def close(self) -> None:
        """Stop predicting, and close the model."""
        self._newest = 0
        self._executor.submit(self._close_model)
        self._executor.finish(CLOSE_S)

    def _predict(self, params: NextEditPredict) -> None:
        from lcursor.code import languages
        from lcursor.next_edit import trees
        from lcursor.next_edit.predict import predict, replaced_names, why_nothing

        if params["id"] != self._newest:
            return
        texts = {file["path"]: tuple(file["text"].split("\n")) for file in params["files"]}
        edits = [_edit(one) for one in params["edits"]]
        if not edits:
            for path, lines in texts.items():  # the next text is parsed from this one
                trees.tree(languages.detect(path), lines)
        names = [name for name in replaced_names(edits) if len(name) >= MIN_LETTERS][:MAX_NAMES]
        is_wide, secrets = params["is_wide"] and bool(names), self._settings.privacy.exclude
        others = files_with(names, tuple(texts), secrets) if is_wide else {}
        found = [
            one
            for one in predict({**texts, **others}, edits)
            if one.path in texts or one.kind == "rename"
        ]
        answer = {
            "has_names": bool(names),
            "reason": why_nothing(texts, edits) if edits and not found else "",
        }
        self._send(params["id"], found, answer)
        if edits and self._settings.next_edit.model:
            self._ask_model(params, texts, edits, found, answer)

    def _send(self, number: int, found: Sequence[Proposal], answer: Mapping[str, object]) -> None:
        if number == self._newest:
            proposals = [_to_wire(one) for one in found]
            self._notify("next_edit.predicted", {**answer, "id": number, "proposals": proposals})

    def _ask_model(
        self,
        params: NextEditPredict,
        texts: Texts,
        edits: list[Edit],
        found: list[Proposal],
        answer: Mapping[str, object],
    ) -> None:
        """Ask the model if nothing follows from the edits in the current file."""
        from lcursor.host.next_edit_model import ModelQuestion, NextEditModel

        path = params["files"][0]["path"]
        settings = self._settings
        if self._model is None:
            self._model = NextEditModel(
                settings.next_edit, settings.completion.local_model, self._notify
            )
        if any(one.path == path for one in found):
            return self._model.cancel()
        names = _names([*texts, *(one.path for one in edits)], path)
        lines, row = texts[path], params["row"]
        before = lines[row].encode("utf-8", "surrogateescape")[: params["column"]]
        question = ModelQuestion(
            names[path],
            lines,
            tuple(replace(one, path=names[one.path]) for one in edits),
            row,
            len(before.decode("utf-8", "ignore")),
        )
        paths = {name: one for one, name in names.items()}

        def send(more: list[Proposal]) -> None:
            own = [replace(one, path=paths[one.path]) for one in more]
            self._send(params["id"], [*found, *own], {**answer, "reason": ""})

        known = {names[one]: text for one, text in texts.items()}
        return self._model.ask(question, known, send)

    def _close_model(self) -> None:
        model, self._model = self._model, None
        if model is not None:
            model.close()


def _names(paths: Iterable[str], current: str) -> dict[str, str]:
    """Return the paths relative to the project of the current file."""
    from lcursor.project.root import relative_name, root_of

    root = root_of(Path(current))
    return {path: relative_name(root, path) for path in paths}


def files_with(
    names: Sequence[str], known: Sequence[str], secrets: Sequence[str]
) -> dict[str, Lines]:
    """Return the lines of the project's files that contain a name, by absolute path.

    Only files in the language of the first known one, without the known ones, secret files and
    those that git ignores.
    """
    from lcursor.code import languages
    from lcursor.context import grep
    from lcursor.project.reading import Reader
    from lcursor.project.root import root_of

    root, language = root_of(Path(known[0])), languages.detect(known[0])
    reader = Reader(root, secrets, max_s=SEARCH_S)
    rows, _ = grep.search(reader.root, names, reader, is_whole=True, keeps_case=True)
    skipped = {os.path.realpath(path) for path in known}
    found, left = dict[str, Lines](), MAX_LINES
    for name in rows:
        path = reader.root / name
        if languages.detect(name) == language and os.path.realpath(path) not in skipped:
            text = reader.read(path).text.replace("\r\n", "\n")
            lines = tuple(text.removesuffix("\n").split("\n"))
            if 1 < len(lines) <= left and len(found) < MAX_FILES:
                found[str(root / name)] = lines
                left -= len(lines)
    return found


def _edit(one: NextEdit) -> Edit:
    return Edit(one["path"], one["row"], tuple(one["old"]), tuple(one["new"]), one["is_accepted"])


def _to_wire(one: Proposal) -> NextEditProposal:
    return {
        "kind": one.kind,
        "path": one.path,
        "row": one.row,
        "old": list(one.old),
        "new": list(one.new),
        "cause": one.cause,
        "group": one.group,
    }
