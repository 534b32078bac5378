"""Has a local model write the real replies of the apply corpus: four ways to write a change.

`python scripts/apply_replies.py OUT.jsonl [SECONDS [STEP]]`; goes on where it stopped. What is
right for each reply is written by hand into the corpus, see `scripts/apply_corpus.py`.
"""

from __future__ import annotations

import ast
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
FILES = (
    "lcursor/index/globs.py",
    "lcursor/fim/drafts.py",
    "lcursor/fim/result.py",
    "lcursor/host/sender.py",
    "lcursor/index/lock.py",
    "lcursor/index/reconcile.py",
    "lcursor/context/trace.py",
    "lcursor/llm/tokens.py",
    "lcursor/chat/export.py",
    "lua/lcursor/complete/reader.lua",
    "lua/lcursor/joined.lua",
    "lua/lcursor/chat/models.lua",
)
SMALL = (
    "lcursor/index/globs.py::_test",
    "lcursor/index/explain.py::name_of",
    "lcursor/llm/tokens.py::",
    "lcursor/edit/diff.py::shifted",
    "lcursor/edit/diff.py::apply",
    "lcursor/index/patterns_data.py::",
    "lcursor/edit/placing/indents.py::blank",
    "lcursor/folders.py::cache_home",
    "lcursor/folders.py::data_home",
    "lcursor/context/patch.py::first_row",
    "lcursor/context/patch.py::sections",
    "lcursor/index/structure.py::by_parent",
    "lcursor/index/structure.py::of_rows",
    "lcursor/index/structure.py::signature_end",
    "lcursor/errors.py::levels",
    "lcursor/errors.py::tree",
)
"""Single functions of files, which a small model answers about in time."""
TASKS = (
    "Make the first function return early where its first argument is empty.",
    "Rename the first parameter of the last function to `value`, wherever it is used.",
    "Add a short comment above every return statement.",
    "Add a function `describe` that returns one sentence on what this file is for.",
)
FORMATS = {
    "search_replace": (
        "Answer with SEARCH/REPLACE blocks only. The SEARCH part must be copied exactly from the "
        "file, with enough lines to be unique. Example:\n\n{path}\n```\n<<<<<<< SEARCH\nold line\n"
        "=======\nnew line\n>>>>>>> REPLACE\n```"
    ),
    "udiff": "Answer with one unified diff in a ```diff block, with --- {path} and +++ {path}.",
    "lazy": (
        "Answer with one code block that begins with the path as a comment. Write only what "
        "changes; write `{sign} ... existing code ...` for each part that stays as it is."
    ),
    "fence": "Answer with one code block that has the whole changed function and nothing else.",
}


def texts() -> Iterator[tuple[str, str]]:
    """Yield what is asked about: small functions, then files."""
    for place in SMALL:
        path, _, name = place.partition("::")
        source = (ROOT / path).read_text()
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                yield path, (ast.get_source_segment(source, node) or "") + "\n"
    for path in FILES:
        yield path, (ROOT / path).read_text()


def main(out: Path, seconds: float, step: int) -> None:
    """Ask for what is not there yet, from the last on where `step` is -1."""
    import tempfile

    from lcursor.config import ChatConfig
    from lcursor.llm.client import ChatClient
    from lcursor.llm.records import Message, Text, Wish
    from lcursor.llm.server import LocalServer

    done = {json.loads(line)["id"] for line in out.read_text().splitlines()} if out.exists() else ()
    began = time.monotonic()
    config = replace(ChatConfig(), model="qwen2.5-coder-0.5b")
    with tempfile.TemporaryDirectory() as folder:
        server = LocalServer(config, Path(folder) / "server", lambda text: None, idle_s=5.0)
        client = ChatClient(server.ensure())
        try:
            for number, (path, text) in list(enumerate(texts()))[::step]:
                for place, (name, rule) in enumerate(FORMATS.items()):
                    key = f"{path}:{name}:{len(text)}"
                    if key in done or time.monotonic() - began > seconds:
                        continue
                    sign = "--" if path.endswith(".lua") else "#"
                    system = "You change code. " + rule.format(path=path, sign=sign)
                    task = TASKS[(number + place) % len(TASKS)]
                    asked = f"{path}\n```\n{text}```\n\n{task}"
                    messages = [Message("system", system), Message("user", asked)]
                    wish = Wish(max_tokens=200, temperature=0.0)
                    said = [e.text for e in client.stream(messages, wish) if isinstance(e, Text)]
                    row = {"id": key, "path": path, "form": name, "task": task, "base": text}
                    with out.open("a") as file:
                        file.write(json.dumps({**row, "reply": "".join(said)}) + "\n")
                    print(key, f"{time.monotonic() - began:.0f} s", flush=True)
        finally:
            client.close()
            server.stop()
            server.close()


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    main(Path(sys.argv[1]), float(given.get(2, 150)), int(given.get(3, 1)))
