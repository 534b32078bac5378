"""Create the Python environment, for `make` and for `:LCursor install`.

    python3 lcursor/install.py --venv .venv [--with dev] [--with neovim] [--model NAME]
        [--embedder NAME]

Uses only the standard library, because no package is installed yet. This file checks the
version before it imports anything, and must remain valid syntax in every Python 3. The work is in
`installer/`: plan, venv, engine, process, and report, which shows progress.
"""

import os
import sys

if sys.version_info < (3, 10):  # noqa: UP036 - this file reports it
    sys.exit(
        "lcursor: Python 3.10 or newer is required, this is Python %d.%d. "  # noqa: UP031
        "Install a newer one, then run: make PYTHON=python3.11 test, or: python3.11 %s"
        % (sys.version_info[0], sys.version_info[1], " ".join(sys.argv))
    )
if not __package__:
    # Python puts a script's folder on the path, where our modules would shadow others.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from lcursor.installer.plan import main
from lcursor.installer.venv import find_neovim, read_stamp

__all__ = ["find_neovim", "main", "read_stamp"]

if __name__ == "__main__":
    sys.exit(main())
