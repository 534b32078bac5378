"""Add an adapter to the weights that it was trained on, and quantize the sum.

    python -m train.merge BASE.gguf ADAPTER.npz OUT.gguf

The result costs as much memory and time as the base.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import gguf
import numpy as np
import typer

from lcursor.fim import llama

Q4_K_M = 15
"""enum llama_ftype"""


def main(
    base: Annotated[Path, typer.Argument()],
    adapter: Annotated[Path, typer.Argument()],
    out: Annotated[Path, typer.Argument()],
) -> None:
    """Merge."""
    reader, change = gguf.GGUFReader(base), np.load(adapter)
    part = out.with_suffix(".f16.part")
    writer = gguf.GGUFWriter(part, "qwen2")
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        if field.name == "general.file_type":
            writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
            continue
        kind, *inner = field.types
        writer.add_key_value(field.name, field.contents(), kind, inner[0] if inner else None)
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        name = tensor.name.removesuffix(".weight")
        if f"{name}.a" in change:
            down, up = (change[f"{name}.{end}"].astype(np.float32) for end in "ab")
            values = values + float(change["alpha"]) / len(down) * (up @ down)
        is_matrix = values.ndim > 1
        writer.add_tensor(tensor.name, values.astype(np.float16 if is_matrix else np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    llama.quantize(part, out, Q4_K_M)
    part.unlink()


if __name__ == "__main__":
    typer.run(main)
