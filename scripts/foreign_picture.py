"""Record the picture of an agent of someone else: `python scripts/foreign_picture.py PACKAGES`.

PACKAGES is a folder in which `npm install opencode-ai` was run. The agent and all it does are real,
in the sandbox; only its model is scripted, so that neither an account nor a large model is needed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from evals.foreign import commands_of  # noqa: E402
from evals.scripted_api import MODEL, Script, serving  # noqa: E402
from lcursor.cli.editor import find_neovim  # noqa: E402
from lcursor.drive import demo_agent  # noqa: E402
from lcursor.drive.editor import Editor  # noqa: E402
from scripts.pictures import AGENT_TIMEOUT_S, COLUMNS, INIT, LINES, PACE_MS, Recorder  # noqa: E402

NAME = "foreign-agent"
AGENT = "opencode"
CHANGE = {
    "path": demo_agent.FILE,
    "old": "    return sum(values) / len(values)",
    "new": "    if not values:\n        return None\n    return sum(values) / len(values)",
}
SETTINGS = """
vim.g.lcursor = {
  completion = { auto_trigger = false, model = "scripted" },
  models = { scripted = { url = %r, model = %r, api = "openai" } },
  chat = { model = "scripted", server = "off" },
  agent = { readable = { %r } },
  agents = { [%r] = { command = { %s } } },
}
vim.api.nvim_create_autocmd("User", { pattern = "LCursorAgentDone", callback = function(args)
  _G.agent_state = args.data.state
end })
"""


def main() -> None:
    """Record the picture."""
    packages = Path(sys.argv[1]).absolute()
    command = commands_of(packages, "node")[AGENT]
    words = ", ".join(f"{each!r}" for each in command)
    with tempfile.TemporaryDirectory(prefix="lcursor-pictures-") as folder:
        project, home = Path(folder) / "stats", Path(folder) / "home"
        for each in (project / ".git", home):
            each.mkdir(parents=True)
        (project / demo_agent.FILE).write_text(demo_agent.TEXT)
        read = {"path": str(project / demo_agent.FILE)}
        actions = [
            ("read", read),
            ("edit", {**CHANGE, **read}),
            ("command", {"command": demo_agent.TEST, "description": "Run the test"}),
            ("say", {"text": "`mean` returns `None` if there are no values; the test passes."}),
        ]
        with serving(Script({"": actions})) as url:
            modules = str(packages / "node_modules")
            init = SETTINGS % (f"{url}/v1", MODEL, modules, AGENT, words)
            with Editor(
                find_neovim(), home, init=init + INIT, files=(demo_agent.FILE,), columns=COLUMNS,
                lines=LINES, cwd=project,
            ) as editor:  # fmt: skip
                recorder = Recorder(editor)
                recorder.pause(0.5)
                editor.type(f":LCursor agent model={AGENT} {demo_agent.TASK}", PACE_MS / 2)
                editor.keys("<CR>")
                state = editor.wait_lua("return _G.agent_state", timeout_s=AGENT_TIMEOUT_S)
                if state != "done":
                    raise TimeoutError(f"the agent did not succeed: {state}")
                editor.screen.wait(lambda screen: screen.has("DiffAdd"), 5)
                recorder.pause(1.5)
                editor.keys("<C-w>p]h")
                recorder.pause(0.8)
                editor.keys("ghh")
                recorder.pause(1.0)
                recorder.animation(NAME)


if __name__ == "__main__":
    main()
