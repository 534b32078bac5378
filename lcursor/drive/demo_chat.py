"""A chat turn in the demo: a question about the file, and its answer.

Runs the chat server in the home of the demo's Neovim, and stops it.
"""

from __future__ import annotations

from pathlib import Path

from lcursor.config import ChatConfig
from lcursor.drive.editor import Editor
from lcursor.llm.server import LocalServer

MODEL = "qwen2.5-coder-0.5b"
SETTINGS = (
    f'{{ model = "{MODEL}", context_tokens = 4096, max_tokens = 120, idle_minutes = 1, '
    'window = { position = "below", size = 0.6 } }'
)
"""Of the chat, in Lua."""
QUESTION = "What does `common` return?"
RANGE = "/^def common/,/return length/"
WIDTH = 78
TIMEOUT_S = 180.0

LAST = """
local session = require("lcursor.chat").current()
if session and session.failure then
  return { failure = session.failure.message }
end
return session and not session.turn and session.last
"""


def play(editor: Editor) -> None:
    """Ask about a part of the file, and print the screen.

    Raises:
        TimeoutError: no answer came.
    """
    print(f"\nAsked about a function with its lines attached: `:{RANGE}LCChat {QUESTION}`")
    editor.lua("vim.o.wrap = false vim.fn.search('^def common', 'w') vim.cmd.normal('zt')")
    editor.command(f"{RANGE}LCChat {QUESTION}")
    done = editor.wait_lua(LAST, timeout_s=TIMEOUT_S)
    if failure := done.get("failure"):
        raise TimeoutError(f"the chat did not answer: {failure}")
    editor.command("redraw")
    print("  ┌" + "─" * WIDTH)
    for row in editor.screen.rows():
        print(f"  │{row}".rstrip())
    print("  └" + "─" * WIDTH + "\n")
    writing_s = max(done["answer_ms"], 1) / 1000
    print(
        f"  {MODEL} on a local server that was started for it: {done['prompt_tokens']:.0f} "
        f"tokens read,\n  first word after {done['first_ms'] / 1000:.1f} s, "
        f"{done['answer_tokens']:.0f} tokens written, {done['answer_tokens'] / writing_s:.0f} a "
        "second"
    )


def leave(home: Path) -> None:
    """End the server of the demo's home."""
    for folder in home.glob("data/lcursor/server/*"):
        server = LocalServer(ChatConfig(model=MODEL), folder, lambda _: None)
        server.stop()
        server.close()
