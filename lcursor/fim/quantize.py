"""The child process of `catalog/requantize.py`.

    python -m lcursor.fim.quantize SOURCE TARGET

writes a Q4_0 copy of a GGUF file. The last line on standard error is the error.
"""

from __future__ import annotations

import sys
from pathlib import Path

from lcursor.catalog.requantize import Q4_0
from lcursor.errors import LcursorError
from lcursor.fim import llama


def main() -> None:
    """Write the copy."""
    try:
        llama.quantize(Path(sys.argv[1]), Path(sys.argv[2]), Q4_0)
    except LcursorError as error:
        sys.exit(error.message)


if __name__ == "__main__":
    main()
