"""The screen of `:checkhealth lcursor`, 80 and 60 columns wide, with nothing cut off."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.nvim.pilot import Pilot
from tests.nvim.test_start import MISSING, READY, STUBS, Fact, facts_file

PACKAGES = [{"section": "package", "text": f"{name} 1.2.3"} for name in ("pynvim", "numpy")]
CASES: dict[str, tuple[dict[str, Fact], str]] = {
    # name: facts of the doctor, Lua before
    "ready": (READY, ""),
    "missing": (MISSING, "vim.g.lcursor_enabled = false vim.keymap.set('n', ']h', '<Nop>')\n"),
}
# Replaces what depends on the machine, before Neovim wraps the lines.
SETTLE = """
local lines, home = vim.api.nvim_buf_get_lines(0, 0, -1, false), vim.pesc(...)
for i, line in ipairs(lines) do
  line = line:gsub(home, "/home/me"):gsub("Neovim %d[%w.+-]*", "Neovim 0.11.0")
  lines[i] = line:gsub("answered in [%d.]+ s", "answered in 0.4 s")
end
vim.bo.modifiable = true
vim.api.nvim_buf_set_lines(0, 0, -1, false, lines)
vim.cmd("1 | redraw")
return lines
"""


@pytest.mark.parametrize("columns", [80, 60])
@pytest.mark.parametrize("name", CASES)
def test_screen(
    editor: Callable[..., Pilot],
    golden: Callable[[str, str], None],
    tmp_path: Path,
    name: str,
    columns: int,
) -> None:
    facts, init = CASES[name]
    path = facts_file(tmp_path, facts)
    path.write_text(path.read_text() + "".join(json.dumps(row) + "\n" for row in PACKAGES))
    stubs = STUBS % json.dumps(["cat", str(path)])
    nvim = editor({"a.py": "x = 1\n"}, init=stubs + init, columns=columns, lines=120)
    nvim.command("checkhealth lcursor")
    lines = nvim.lua(SETTLE, str(nvim.home))
    shown = nvim.grid()
    golden(f"health-{name}.{columns}", shown)
    for line in lines:
        assert squeezed(line) in squeezed(shown), line


def squeezed(text: str) -> str:
    """Return a text without blanks, and without rulers and marks that Neovim conceals."""
    return re.sub(r"^=+$|~$|[\s`|]+", "", text, flags=re.M)
