"""`python -m lcursor.index ROOT`: the worker of one project. Clients start it; users need not.

Exit status: 0 after it was stopped, 3 if another worker has the project, 1 after an error, which
is printed.
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
    parser.add_argument("--embedder", default="", help="its name; none for lexical search only")
    parser.add_argument("--idle-s", type=float, default=0.0, help="exit after this time alone")
    parser.add_argument("--lock", type=int, help="file descriptor of the lock, if inherited")
    options = parser.parse_args()
    for name, value in launch.CAPS.items():
        os.environ.setdefault(name, value)  # before a library reads them

    from lcursor.index import worker

    root = Path(os.path.realpath(options.root))
    return worker.run(root, options.embedder, options.idle_s or worker.IDLE_S, options.lock)


if __name__ == "__main__":
    sys.exit(main())
