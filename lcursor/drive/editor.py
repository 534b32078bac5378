"""A Neovim with the plugin installed as users install it, in a separate home.

The plugin is a package on the package path (`pack/*/start`), so that Neovim sources it by itself.
The user's own configuration is neither read nor written.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from lcursor.catalog import store
from lcursor.drive.client import Client, NeovimError
from lcursor.drive.screen import Screen

ROOT = Path(__file__).resolve().parent.parent.parent
GHOST = "LCursorGhost"
WHY = "return require('lcursor.complete').why().text"
# Redraw events name the target of a linked group, so the ghost's group must not be a link. In each
# Python file, Neovim's own file type plugin would search for a Python provider, for up to a second.
PREAMBLE = """
vim.api.nvim_set_hl(0, "LCursorGhost", { fg = "#7f848e", italic = true })
vim.g.loaded_python3_provider = 0
"""


def prepare_home(home: Path, init: str, plugin: bool) -> dict[str, str]:
    """Create a home for Neovim with the plugin as a package.

    Returns:
        The environment variables that select it.
    """
    folders = {
        "XDG_CONFIG_HOME": home / "config",
        "XDG_DATA_HOME": home / "data",
        "XDG_STATE_HOME": home / "state",
        "XDG_CACHE_HOME": home / "cache",
        "XDG_RUNTIME_DIR": home / "run",
    }
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
    config = folders["XDG_CONFIG_HOME"] / "nvim"
    config.mkdir(exist_ok=True)
    (config / "init.lua").write_text(init)
    if plugin:
        start = folders["XDG_DATA_HOME"] / "nvim/site/pack/user/start"
        start.mkdir(parents=True, exist_ok=True)
        if not (start / "lcursor.nvim").exists():
            (start / "lcursor.nvim").symlink_to(ROOT)
    models = {"LCURSOR_MODELS": str(store.models_dir())}  # they stay where they are
    return {"HOME": str(home), **{k: str(v) for k, v in folders.items()}, **models}


class Editor:
    """One Neovim with a screen.

    Args:
        neovim: its executable, 0.11 or newer.
        home: an empty folder that becomes the home of the child.
        init: Lua text of its init.lua.
        files: command line arguments after the options.
        env: more environment variables; PATH, locale and LCURSOR_* of this process are kept.
    """

    def __init__(
        self,
        neovim: Path,
        home: Path,
        *,
        init: str = "",
        files: tuple[Path | str, ...] = (),
        columns: int = 80,
        lines: int = 24,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        plugin: bool = True,
    ) -> None:
        self.home = home
        self.screen = Screen()
        passed = {"PATH", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH"}
        environment = {
            "LANG": "C.UTF-8",
            **{k: v for k, v in os.environ.items() if k in passed or k.startswith("LCURSOR_")},
            **prepare_home(home, PREAMBLE + init, plugin),
            **(env or {}),
        }
        self.client = Client(
            [str(neovim), "--embed", "-n", "-i", "NONE", *map(str, files)],
            env=environment,
            cwd=cwd or home,
            stderr=home / "neovim.stderr",
            on_notify=self._on_notify,
        )
        options = {"rgb": True, "ext_linegrid": True, "ext_hlstate": True}
        self.client.request("nvim_ui_attach", columns, lines, options)

    def _on_notify(self, method: str, args: list[Any]) -> None:
        if method == "redraw":
            self.screen.feed(args)

    def __enter__(self) -> Editor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Quit Neovim without saving; kill it if it does not end."""
        with contextlib.suppress(NeovimError):
            self.client.notify("nvim_command", "silent! qall!")
        self.client.close()

    def lua(self, code: str, *args: object, timeout_s: float = 20) -> Any:
        """Run Lua in the editor and return its result.

        Raises:
            NeovimError: it failed, or Neovim does not answer; the message includes the screen.
        """
        try:
            return self.client.request("nvim_exec_lua", code, list(args), timeout_s=timeout_s)
        except NeovimError as error:
            raise NeovimError(f"{error}; the screen:\n{self._shown()}") from None

    def command(self, text: str) -> None:
        """Run an Ex command."""
        self.client.request("nvim_command", text)

    def keys(self, keys: str) -> None:
        """Press keys, in Neovim's notation (`<Esc>`, `<lt>` for a literal `<`)."""
        while keys:
            taken = self.client.request("nvim_input", keys)
            keys = keys.encode()[taken:].decode()

    def type(self, text: str, pace_ms: float = 0) -> None:
        """Type text key by key at that pace."""
        for char in text:
            self.keys("<lt>" if char == "<" else "<CR>" if char == "\n" else char)
            time.sleep(pace_ms / 1000)

    def lines(self) -> list[str]:
        """Return the lines of the current buffer."""
        lines: list[str] = self.client.request("nvim_buf_get_lines", 0, 0, -1, False)
        return lines

    def ghost(self) -> str:
        """Return the ghost text on the screen."""
        return self.screen.text_of(GHOST)

    def wait_ghost(self, wanted: str | Callable[[str], bool] = bool, timeout_s: float = 20) -> str:
        """Wait until the ghost on the screen is a text or satisfies a predicate, and return it.

        Raises:
            TimeoutError: it did not; the message includes the reason and the screen.
        """
        is_wanted = wanted.__eq__ if isinstance(wanted, str) else wanted
        if not self.screen.wait(lambda s: is_wanted(s.text_of(GHOST)), timeout_s):
            why = self.lua(WHY)
            raise TimeoutError(
                f"no such ghost in {timeout_s} s: {why}\nThe screen:\n{self._shown()}"
            )
        return self.ghost()

    def wait_lua(self, code: str, *args: object, timeout_s: float = 20) -> Any:
        """Run Lua repeatedly until the result is true, and return it.

        Raises:
            TimeoutError: it was never true.
        """
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            value = self.lua(code, *args)
            if value:
                return value
            time.sleep(0.01)
        raise TimeoutError(f"not true in {timeout_s} s: {code}")

    def _shown(self) -> str:
        return "\n".join(self.screen.marked(GHOST, "«", "»"))

    def wait_state(self, state: str = "ready", timeout_s: float = 60) -> None:
        """Wait until the host is in a state."""
        self.wait_lua(
            "return require('lcursor.host.status').get().state == ...", state, timeout_s=timeout_s
        )
