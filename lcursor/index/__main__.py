"""`python -m lcursor.index ROOT`: the worker of one project. Clients start it; people need not.

Exit status: 0 it left in peace, 3 another worker has the project, 1 a failure on standard error.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

if not __package__:  # run as a file, isolated from the user's own modules
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


def main() -> int:
    """Run the worker."""
    from lcursor.index import launch

    parser = argparse.ArgumentParser("python -m lcursor.index", description=__doc__)
    parser.add_argument("root", type=Path, help="the project")
    parser.add_argument("--embedder", default="", help="its name; none for words alone")
    parser.add_argument("--idle-s", type=float, default=0.0, help="leave after so long alone")
    options = parser.parse_args()
    for name, value in launch.CAPS.items():
        os.environ.setdefault(name, value)  # before a library reads them

    from lcursor.index import worker

    root = Path(os.path.realpath(options.root))
    return worker.run(root, options.embedder, options.idle_s or worker.IDLE_S)


if __name__ == "__main__":
    sys.exit(main())
