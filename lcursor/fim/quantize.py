"""The child process of `catalog/copies.py`: writes a copy of a GGUF file.

    python -m lcursor.fim.quantize SOURCE TARGET FILE_TYPE [ADAPTER SHA256 MODEL]

quantizes the file to a type of llama.cpp. With an adapter, its change is added to the weights
first; it must have been trained on the file with this digest. The copy is tested with the logits
that are recorded for the model. The last line on standard error is the error.

An adapter is a NumPy archive: `base`, the sha256 of the file that it was trained on; `alpha`; and
for each changed layer `<layer>.a` [rank, in] and `<layer>.b` [out, rank], whose product times
alpha / rank is added to the layer's weights.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lcursor.catalog import gguf, selftest_model, store
from lcursor.errors import EngineFailed, LcursorError, ModelCorrupt
from lcursor.fim import llama, selftest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[np.float16]

F16 = 1  # LLAMA_FTYPE_MOSTLY_F16


def main() -> None:
    """Write the copy."""
    source, target, file_type = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    try:
        if len(sys.argv) == 4:
            llama.quantize(source, target, file_type)
            return
        merge(source, sys.argv[5], Path(sys.argv[4]), target, file_type)
        check(target, sys.argv[6])
    except LcursorError as error:
        sys.exit(error.message)


def merge(source: Path, sha256: str, adapter: Path, target: Path, file_type: int) -> None:
    """Add an adapter to the weights of a file, and quantize the sum.

    Args:
        sha256: of the source.

    Raises:
        ModelCorrupt: the adapter is damaged, or belongs to another file.
        EngineFailed: llama.cpp failed.

    Cost: 11 s for 0.5B and 60 s for 1.5B on two cores.
    """
    base, alpha, changes = _read(adapter)
    if base != sha256:
        raise ModelCorrupt(f"{adapter.name} was trained on another file than {source.name}")
    whole = store.float16_of(target)
    try:
        llama.quantize(source, whole, F16)
        tensors = gguf.tensors(whole)
        try:
            for layer, (down, up) in changes.items():
                tensor = tensors[f"{layer}.weight"]
                weights = np.memmap(whole, np.float16, "r+", tensor.start, tensor.shape[::-1])
                change = (alpha / len(down) * up.astype(np.float32)) @ down.astype(np.float32)
                weights += change.astype(np.float16)
                del weights  # writes it
        except (KeyError, ValueError) as error:
            raise ModelCorrupt(f"{adapter.name} does not fit {source.name} ({error})") from error
        llama.quantize(whole, target, file_type)
    finally:
        whole.unlink(missing_ok=True)


def _read(adapter: Path) -> tuple[str, float, dict[str, tuple[Matrix, Matrix]]]:
    """Return the digest of the base, alpha, and the two matrices of each layer."""
    try:
        with np.load(adapter) as archive:
            found = {name: archive[name] for name in archive.files}
        layers = [name.removesuffix(".a") for name in found if name.endswith(".a")]
        changes = {layer: (found[f"{layer}.a"], found[f"{layer}.b"]) for layer in layers}
        return str(found["base"]), float(found["alpha"]), changes
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise ModelCorrupt(f"{adapter.name} is not an adapter ({error})") from error


def check(path: Path, model: str) -> None:
    """Compare the logits of a merged file with those recorded for it.

    Raises:
        EngineFailed: they differ.
    """
    expected = selftest_model.references().get(selftest_model.adapted(model))
    if not expected:
        return
    for batch, found in selftest.decode(model, path, 0, 1, False):
        if not selftest_model.error(found, expected[str(batch)]) <= selftest_model.MAX_ERROR:
            raise EngineFailed(f"the copy of {model} does not compute what it should")


if __name__ == "__main__":
    main()
