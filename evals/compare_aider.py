"""Run the corpus of `eval apply` through aider's appliers and through ours, and print a table.

    python -m venv aider && aider/bin/pip install aider-chat
    .venv/bin/python -m evals.compare_aider aider/lib/python3.*/site-packages

Uses the replies in the three forms that both understand: search/replace blocks, unified diffs and
`*** Begin Patch`. Git's `a/`, `b/` and header lines are removed before aider sees a diff. The parts
of aider that ask a model are not loaded.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import tempfile
import types
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from evals import apply
from evals.corpus import ROOT

FORMS = {
    "search_replace": ("editblock_coder", "EditBlockCoder"),
    "udiff": ("udiff_coder", "UnifiedDiffCoder"),
    "patch": ("patch_coder", "PatchCoder"),
}
GIT = re.compile(r"^(?:diff --git|index ).*\n|(?<=^--- )a/|(?<=^\+\+\+ )b/", re.MULTILINE)
State = dict[str, tuple[str, ...]]


class Disk:
    """The file access that aider's appliers use; ignores their messages."""

    def read_text(self, path: str) -> str | None:
        """Return a file's text, None without it."""
        return Path(path).read_text() if Path(path).exists() else None

    def write_text(self, path: str, text: str) -> None:
        """Write a file."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)

    def tool_error(self, *_: object) -> None:
        """Ignore a message."""

    tool_warning = tool_output = tool_error


class Given:
    """The conversation state that an applier of aider needs."""

    def give(self, root: Path, names: list[str], reply: str) -> None:
        """Set the files and the reply."""
        self.root, self.io, self.shell_commands = str(root), Disk(), list[str]()
        self.names, self.partial_response_content = names, reply
        self.abs_fnames = {str(root / name) for name in names}
        self.fence = ("```", "```")

    def get_inchat_relative_files(self) -> list[str]:
        """Return the names of the files."""
        return self.names

    def abs_root_path(self, path: str) -> str:
        """Return an absolute path."""
        return str(Path(self.root) / path)

    def get_rel_fname(self, path: str) -> str:
        """Return a path relative to the root."""
        return os.path.relpath(path, self.root)


def appliers(site: Path) -> dict[str, type[Any]]:
    """Return aider's applier of each form."""
    sys.path.append(str(site))
    package, base = types.ModuleType("aider.coders"), types.ModuleType("aider.coders.base_coder")
    package.__path__ = [str(site / "aider/coders")]
    base.Coder = type("Coder", (), {})  # type: ignore[attr-defined]
    sys.modules |= {"aider.coders": package, "aider.coders.base_coder": base}
    found = {}
    for form, (module, name) in FORMS.items():
        applier = getattr(importlib.import_module(f"aider.coders.{module}"), name)
        found[form] = type(name, (Given, applier), {})
    return found


def form_of(task: apply.Task) -> str:
    """Return the form of a reply; "" to skip it."""
    if task.form in FORMS:
        return task.form
    if task.form != "trap":
        return ""
    marks = {"search_replace": "<<<<<<<", "patch": "*** Begin Patch", "udiff": "\n@@"}
    return next((form for form, mark in marks.items() if mark in task.reply), "")


def state(root: Path) -> State:
    """Return all files, normalized by `lines`."""
    return {
        str(path.relative_to(root)): lines(path.read_text().split("\n"))
        for path in root.rglob("*")
        if path.is_file()
    }


def lines(found: Any) -> tuple[str, ...]:
    """Return lines without line ends and without trailing empty lines."""
    return tuple("\n".join(each.rstrip("\r") for each in found).rstrip("\n").split("\n"))


def outcome(applier: type[Any], task: apply.Task) -> str:
    """Have aider apply a reply: right, rejected, wrong, or partly (an error after a change)."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        disk = Disk()
        for name, text in task.files.items():
            disk.write_text(str(root / name), "\n".join(text))
        os.chdir(root)
        before, failed = state(root), False
        coder = applier()
        coder.give(root, sorted(task.files), GIT.sub("", task.reply))
        try:
            coder.apply_edits(coder.get_edits())
        except Exception:  # noqa: BLE001 - it says that it could not
            failed = True
        after = state(root)
        os.chdir(ROOT)
    right = task.right and {name: lines(text) for name, text in task.right.items()}
    if right is not None and after == right:
        return "right"
    return "rejected" if after == before else "partly" if failed else "wrong"


def main() -> None:
    """Print the table."""
    found = appliers(Path(sys.argv[1]).resolve())
    tasks = [task for task in apply.load() if form_of(task)]
    ours = {judged.task.name: judged.outcome for judged in apply.judge(tasks)}
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for task in tasks:
        is_one = task.is_unique and task.right is not None
        theirs = outcome(found[form_of(task)], task)
        name = f"trap, {form_of(task)}" if task.form == "trap" else task.form
        for group in (name, "all"):
            table[group].update(n=1, one=is_one)
            table[group].update({f"aider {theirs}": 1, f"ours {ours[task.name]}": 1})
            table[group].update({"aider one": is_one and theirs == "right"})
            table[group].update({"ours one": is_one and ours[task.name] == "right"})
    print("| reply | n | one right answer | lcursor: of these right | wrong "
          "| aider: of these right | wrong | half done |")  # fmt: skip
    print("|---|" + "--:|" * 7)
    for name, row in sorted(table.items(), key=lambda each: (each[0] == "all", each[0])):
        cells = [row["n"], row["one"], row["ours one"], row["ours wrong"], row["aider one"],
                 row["aider wrong"], row["aider partly"]]  # fmt: skip
        print(f"| {name} | " + " | ".join(map(str, cells)) + " |")


if __name__ == "__main__":
    main()
