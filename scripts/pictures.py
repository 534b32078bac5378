"""Record the pictures of the README: `make pictures`.

Drives a real Neovim with real models through completion, next edits, an edit, a chat, a search and
an agent, and writes an animation and stills to `doc/pictures/`. In the animation the waiting for
models is played faster, and pauses are shorter.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from lcursor.cli.editor import find_neovim  # noqa: E402
from lcursor.drive import demo_agent, demo_chat, demo_edit  # noqa: E402
from lcursor.drive.demo import SAMPLE, SOURCE  # noqa: E402
from lcursor.drive.editor import Editor  # noqa: E402
from lcursor.drive.screen import Screen  # noqa: E402
from scripts import svg  # noqa: E402

FOLDER = ROOT / "doc/pictures"
COLUMNS, LINES = 84, 24
MAX_FRAME_S, MIN_FRAME_S, LAST_FRAME_S = 0.9, 0.05, 2.0
"""Length of a frame in the animation: the longest, the shortest, and that of the last one."""
MAX_S = 19.0
"""A longer animation is played faster."""
PACE_MS = 70
WAIT_SPEED = 4.0
"""How much faster the waiting for the chat's model is played."""
SHOWS = (
    "tests/screens/*.txt",
    "lua/lcursor/ui/highlights.lua",
    "scripts/pictures.py",
)
"""What the pictures show, by files: when one changes, they have to be recorded again."""
SEARCHED = ("project", "storage")
"""Packages of lcursor that are searched, besides the sample."""
INIT = """
vim.o.showmode, vim.o.ruler, vim.o.laststatus, vim.o.number = false, false, 0, true
vim.o.wrap, vim.o.cmdheight = false, 1
"""
IS_DRAWN = "return require('lcursor.next_edit.view').is_inline()"
AGENT_TIMEOUT_S = 240.0
LISTEN_AGENT = """
vim.api.nvim_create_autocmd("User", { pattern = "LCursorAgentDone", callback = function(args)
  _G.agent_state = args.data.state
end })
require("lcursor").setup({ edit = { test = %r } })
"""
IS_INDEXED = """
local state = require("lcursor.index").states()[1]
return state ~= nil and state.phase == "ready"
"""


def digest() -> str:
    """Return a digest of what the pictures show; a test compares it with the one in them."""
    found = hashlib.sha256()
    for pattern in SHOWS:
        for path in sorted(ROOT.glob(pattern)):
            found.update(path.read_bytes())
    return found.hexdigest()[:16]


class Recorder:
    """Records each screen of an editor, and the stills that are asked for."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        self._frames: list[svg.Frame] = []
        self._at_s = 0.0
        self._speed = 1.0
        editor.screen.on_flush = self._keep

    def _keep(self, screen: Screen) -> None:
        now_s = time.perf_counter()
        frame = svg.Frame(tuple(tuple(row) for row in screen.cells()), screen.cursor)
        last = self._frames[-1] if self._frames else None
        if last and (last.rows, last.cursor) == (frame.rows, frame.cursor):
            return
        if last:
            last = replace(last, duration_s=min((now_s - self._at_s) / self._speed, MAX_FRAME_S))
            self._frames[-1] = last
            if last.duration_s < MIN_FRAME_S:  # too short to be seen
                self._frames.pop()
                now_s = self._at_s
        self._frames.append(frame)
        self._at_s = now_s

    @contextlib.contextmanager
    def faster(self, times: float) -> Iterator[None]:
        """Play what happens meanwhile that many times as fast."""
        self._speed = times
        try:
            yield
        finally:
            self._speed = 1.0

    def pause(self, seconds: float) -> None:
        """Stay on the present screen."""
        self._editor.command("redraw")
        time.sleep(seconds)

    def still(self, name: str) -> None:
        """Write the present screen."""
        self._editor.command("redraw")
        self._write(name, self._frames[-1:])

    def animation(self, name: str) -> None:
        """Write everything since the start."""
        frames = [*self._frames[:-1], replace(self._frames[-1], duration_s=LAST_FRAME_S)]
        factor = min(1.0, MAX_S / sum(frame.duration_s for frame in frames))
        self._write(name, [replace(f, duration_s=f.duration_s * factor) for f in frames])

    def _write(self, name: str, frames: list[svg.Frame]) -> None:
        path = FOLDER / f"{name}.svg"
        path.write_text(svg.draw(frames, self._editor.screen.looks, f"made from {digest()}"))
        seconds = sum(frame.duration_s for frame in frames)
        print(f"{path.name}: {len(frames)} screens, {seconds:.1f} s, {path.stat().st_size} bytes")


def complete(editor: Editor, recorder: Recorder) -> None:
    """Type a line through, and accept the suggestion word by word."""
    editor.lua("vim.fn.search('middle = (low', 'w') vim.cmd.normal({ 'zz', bang = true })")
    recorder.pause(0.8)
    editor.keys('"_cc')
    editor.type("middle", PACE_MS)
    editor.wait_ghost(timeout_s=60)
    editor.wait_lua("return require('lcursor.complete').is_settled()", timeout_s=60)
    recorder.pause(0.9)
    recorder.still("completion")
    editor.keys("<C-Right>")
    recorder.pause(0.6)
    editor.keys("<C-Right>")
    recorder.pause(0.6)
    editor.keys("<Tab>")
    recorder.pause(0.5)
    editor.keys("<Esc>")


def rename(editor: Editor, recorder: Recorder) -> None:
    """Rename a parameter, and apply the change to its uses with one key each."""
    editor.lua("vim.fn.search('^def chunks', 'w') vim.cmd.normal({ 'zt', bang = true })")
    editor.keys("f(lcw")
    editor.type("numbers", PACE_MS)
    editor.keys("<Esc>")
    editor.wait_lua(IS_DRAWN)
    recorder.pause(0.9)
    recorder.still("next-edit")
    editor.keys("<Tab>")
    editor.wait_lua(IS_DRAWN)
    recorder.pause(0.5)
    editor.keys("<Tab>")
    recorder.pause(0.5)


def edit(editor: Editor, recorder: Recorder) -> None:
    """Have a function changed, and accept the hunks."""
    editor.lua(demo_edit.LISTEN)
    editor.lua("vim.fn.search('^def common', 'w') vim.cmd.normal({ 'zt', bang = true })")
    editor.keys("V6j")
    recorder.pause(0.5)
    editor.type(f":LCEdit {demo_edit.INSTRUCTION}", PACE_MS / 2)
    recorder.pause(0.4)
    editor.keys("<CR>")
    with recorder.faster(WAIT_SPEED):
        done = editor.wait_lua(demo_edit.DONE, timeout_s=demo_edit.TIMEOUT_S)
    if done["reason"] != "proposed":
        raise TimeoutError(f"nothing was proposed: {done['reason']} {done['message']}")
    editor.keys("gg]h")
    editor.lua("vim.fn.search('^def common', 'bw') vim.cmd.normal({ 'zt', bang = true })")
    editor.keys("]h")
    editor.screen.wait(lambda screen: screen.has("DiffAdd"), 5)
    recorder.pause(1.0)
    recorder.still("edit")
    while count := editor.lua(demo_edit.COUNT):
        editor.keys("ghh")
        editor.wait_lua(f"return (function() {demo_edit.COUNT} end)() < ...", count)
        recorder.pause(0.5)
        editor.keys("]h")


def chat(editor: Editor, recorder: Recorder) -> None:
    """Ask about a function."""
    editor.lua("vim.fn.search('^def common', 'w') vim.cmd.normal({ 'zt', bang = true })")
    editor.keys("V6j")
    editor.type(f":LCChat {demo_chat.QUESTION}", PACE_MS / 2)
    editor.keys("<CR>")
    with recorder.faster(WAIT_SPEED):
        done = editor.wait_lua(demo_chat.LAST, timeout_s=demo_chat.TIMEOUT_S)
    if failure := done.get("failure"):
        raise TimeoutError(f"the chat did not answer: {failure}")
    recorder.pause(0.9)
    recorder.still("chat")
    editor.keys("<Esc>")
    editor.command("stopinsert | only | bdelete!")


def search(editor: Editor, recorder: Recorder) -> None:
    """Search by meaning while typing."""
    editor.type(":LCursor search", PACE_MS / 2)
    editor.keys("<CR>")
    recorder.pause(0.5)
    editor.type("which files hold secrets", PACE_MS)
    recorder.pause(1.2)
    recorder.still("search")
    editor.keys("<Esc><Esc>")


def agent(editor: Editor, recorder: Recorder) -> None:
    """Let an agent correct a function whose test fails, and show its hunks."""
    editor.command(f"stopinsert | only | edit {demo_agent.FILE}")
    editor.lua(LISTEN_AGENT % demo_agent.TEST)
    editor.type(f":LCursor agent {demo_agent.TASK}", PACE_MS / 2)
    editor.keys("<CR>")
    with recorder.faster(WAIT_SPEED):
        state = editor.wait_lua("return _G.agent_state", timeout_s=AGENT_TIMEOUT_S)
    if state != "done":
        raise TimeoutError(f"the agent did not succeed: {state}")
    editor.screen.wait(lambda screen: screen.has("DiffAdd"), 5)
    recorder.pause(1.2)
    recorder.still("agent")


def main() -> None:
    """Record all pictures."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lcursor-pictures-") as folder:
        project, home = Path(folder) / "project", Path(folder) / "home"
        (project / "src").mkdir(parents=True)
        (project / "pyproject.toml").touch()
        shutil.copy(SAMPLE, project / SOURCE)
        (project / demo_agent.FILE).write_text(demo_agent.TEXT)
        for name in SEARCHED:
            shutil.copytree(ROOT / "lcursor" / name, project / "src" / name)
        home.mkdir()
        init = f"vim.g.lcursor = {{ chat = {demo_chat.SETTINGS} }}\n{INIT}"
        try:
            with Editor(
                find_neovim(), home, init=init, files=(SOURCE,), columns=COLUMNS, lines=LINES,
                cwd=project,
            ) as editor:  # fmt: skip
                editor.keys("i")
                editor.wait_state("ready", timeout_s=120)
                editor.keys("<Esc>")
                editor.command("LCursor index start")
                editor.wait_lua(IS_INDEXED, timeout_s=120)
                editor.command("echo")
                recorder = Recorder(editor)
                complete(editor, recorder)
                rename(editor, recorder)
                edit(editor, recorder)
                chat(editor, recorder)
                search(editor, recorder)
                agent(editor, recorder)
                recorder.animation("tour")
        finally:
            demo_chat.leave(home)


if __name__ == "__main__":
    main()
