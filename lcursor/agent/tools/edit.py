"""The tool that views and changes text files."""

from __future__ import annotations

from typing import Final

from lcursor.agent.records import Observation
from lcursor.agent.tools.tool import Arguments, Tool, ToolContext
from lcursor.workspace.files import Denied


def run(given: Arguments, context: ToolContext) -> Observation:
    """View or change a file.

    Raises:
        Denied: there is no such command, or the file cannot be read or written.
    """
    command, path, editor = given["command"], given["path"], context.editor
    if command == "view":
        return editor.view(path, given.get("view_range") or ())
    if command == "create":
        return editor.create(path, given["file_text"], context.cancel)
    if command == "str_replace":
        new = given.get("new_str", "")
        return editor.str_replace(path, given["old_str"], new, context.cancel)
    if command == "insert":
        return editor.insert(path, given["insert_line"], given["new_str"], context.cancel)
    raise Denied(f"command is {command!r}, but must be view, create, str_replace or insert")


TOOL: Final = Tool(
    "str_replace_editor",
    "View, create and change text files. To change one, view its lines first.",
    {
        "command": "view, create, str_replace or insert",
        "path": "a file; to view, also a folder or a stored output out:N",
    },
    {
        "view_range": "[first, last]; last -1 is the end",
        "file_text": "for create: the whole text",
        "old_str": "for str_replace: text that occurs once",
        "new_str": "the text instead, or to insert",
        "insert_line": "for insert: the line before new_str; 0 for the start",
    },
    integers=frozenset({"insert_line"}),
    lists=frozenset({"view_range"}),
    kind="edit",
    reads=frozenset({"view"}),
    needs={
        "create": ("file_text",),
        "str_replace": ("old_str",),
        "insert": ("insert_line", "new_str"),
    },
    examples={
        "view": "Show lines of a file, or list a folder:\n\n```view src/dates.py:1-80\n```",
        "edit": """\
Replace lines of a file by others. SEARCH has whole lines exactly as they are in the file; there \
may be several pairs. An empty SEARCH creates the file:

```edit src/dates.py
<<<<<<< SEARCH
    return text.split("-")
=======
    return [int(part) for part in text.split("-")]
>>>>>>> REPLACE
```""",
    },
    run=run,
)
