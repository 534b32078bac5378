"""The reading process of `bulk.py`: groups of paths in, what their files are out, until the end.

Run as a file by `Bulk`; people need not. Low in priority; ends when nobody asks any more.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

if not __package__:  # run as a file, isolated from the user's own modules
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


def main() -> None:
    """Answer until standard input ends."""
    from lcursor.index import priority
    from lcursor.index.taking import take

    priority.lower()
    root = Path(sys.argv[1])
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    answer: object = "ready"
    while True:
        pickle.dump(answer, answers, protocol=pickle.HIGHEST_PROTOCOL)
        answers.flush()
        try:
            group = pickle.load(questions)  # noqa: S301 - from our own process
        except EOFError:
            return
        answer = [take(root, path, known) for path, known in group]


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(0)
