"""Next-edit prediction in the host: on a thread of its own, without any model."""

from __future__ import annotations

from lcursor.executor import SerialExecutor
from lcursor.next_edit.records import Edit, Proposal
from lcursor.protocol.next_edit import NextEdit, NextEditPredict, NextEditProposal
from lcursor.reporting import Notify, report_error

THREAD = "lcursor-next-edit"
CLOSE_S = 0.5


class NextEdits:
    """Answers the requests of one Neovim; only the newest one.

    Args:
        notify: sends a message to Neovim, from any thread.
    """

    def __init__(self, notify: Notify) -> None:
        self._notify = notify
        self._newest = 0
        self._executor = SerialExecutor(
            THREAD, lambda error, number: report_error(notify, error, number, "prediction failed")
        )

    def predict(self, params: NextEditPredict) -> None:
        """Answer `next_edit.predict`."""
        self._newest = params["id"]
        self._executor.submit(lambda: self._predict(params), params["id"])

    def close(self) -> None:
        """End the thread."""
        if self._executor.is_started:
            self._newest = 0
            self._executor.close(CLOSE_S)

    def _predict(self, params: NextEditPredict) -> None:
        from lcursor.code import languages
        from lcursor.next_edit import trees
        from lcursor.next_edit.predict import predict

        if params["id"] != self._newest:
            return
        texts = {file["path"]: tuple(file["text"].split("\n")) for file in params["files"]}
        if not params["edits"]:
            for path, lines in texts.items():  # the next text is parsed from this one
                trees.tree(languages.detect(path), lines)
        found = predict(texts, [_edit(one) for one in params["edits"]])
        if params["id"] == self._newest:
            proposals = [_to_wire(one) for one in found]
            self._notify("next_edit.predicted", {"id": params["id"], "proposals": proposals})


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
