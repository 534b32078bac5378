"""Make `models/minilm-l6-v2-int8.patch.npz`, with which the default embedder multiplies bytes.

    pip install onnx && python scripts/make_embedder_patch.py ~/.local/share/lcursor/models

The embedder's file holds `MatMul(x, Cast(bytes) * scales) + bias`: onnxruntime turns the weights
into floats when it loads them, which takes four times the memory, and multiplies floats. Here each
such product becomes one `MatMulIntegerToFloat`, and rows of the word table are looked up before
they become floats: 2.6 times as fast, in half the memory.

The publisher also has a file with such products. The manifest names the other one because it can be
downloaded from a package registry too, on machines that cannot reach the model hub. The patch holds
what differs (see `lcursor.index.embed`): the weights stay in the downloaded file.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

NAME = "minilm-l6-v2-int8"
PATCH = Path(__file__).resolve().parents[1] / "models" / f"{NAME}.patch.npz"
PRODUCTS = "com.microsoft"
"""The set of operations that `MatMulIntegerToFloat` belongs to."""
MIN_COPIED_BYTES = 256
"""Smaller tensors are stored in the patch."""


def rewrite(model: onnx.ModelProto) -> None:
    """Replace the products with quantized weights by products of bytes."""
    graph = model.graph
    nodes = without_nan_guards(list(graph.node))
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    casts = {
        node.output[0]: node.input[0]
        for node in nodes
        if node.op_type == "Cast"
        and node.input[0] in tensors
        and tensors[node.input[0]].data_type == TensorProto.INT8
    }
    weights = {
        node.output[0]: (casts[node.input[0]], node.input[1])
        for node in nodes
        if node.op_type == "Mul" and node.input[0] in casts and node.input[1] in tensors
    }
    users = Counter(name for node in nodes for name in node.input)
    sums = {
        name: node
        for node in nodes
        if node.op_type == "Add"
        for name in node.input
        if users[name] == 1
        and any(len(tensors[other].dims) == 1 for other in node.input if other in tensors)
    }
    made: list[NodeProto] = []
    quantized: dict[str, list[str]] = {}
    merged: list[NodeProto] = []
    for node in nodes:
        if node.op_type == "MatMul" and node.input[1] in weights:
            source, name = node.input[0], node.output[0]
            if source not in quantized:
                quantized[source] = [f"{source}.{part}" for part in ("bytes", "scale", "zero")]
                made.append(new_node("DynamicQuantizeLinear", [source], quantized[source]))
            values, scales = weights[node.input[1]]
            row = numpy_helper.to_array(tensors[scales]).reshape(-1)
            assert len(row) == tensors[values].dims[-1], "the weights have a scale for each column"
            graph.initializer.append(numpy_helper.from_array(row, f"{name}.scales"))
            inputs = [quantized[source][0], values, quantized[source][1], f"{name}.scales"]
            inputs.append(quantized[source][2])
            if added := sums.get(name):
                inputs += ["", next(each for each in added.input if each != name)]
                merged.append(added)
                name = added.output[0]
            made.append(new_node("MatMulIntegerToFloat", inputs, [name], domain=PRODUCTS))
        elif node.op_type == "Gather" and node.input[0] in weights:
            made += gather(node, *weights[node.input[0]])
        elif not any(node is each for each in merged):
            made.append(node)
    keep_needed(graph, made)
    del graph.value_info[:]
    model.opset_import.append(helper.make_opsetid(PRODUCTS, 1))


def without_nan_guards(nodes: list[NodeProto]) -> list[NodeProto]:
    """Return the nodes without those that replace NaN by zero.

    NaN is the attention of a row without tokens; every text of ours has one.
    """
    tests = {node.output[0]: node.input[0] for node in nodes if node.op_type == "IsNaN"}
    instead = {
        node.output[0]: node.input[2]
        for node in nodes
        if node.op_type == "Where" and tests.get(node.input[0]) == node.input[2]
    }
    kept = [node for node in nodes if node.output[0] not in instead]
    for node in kept:
        node.input[:] = [instead.get(name, name) for name in node.input]
    return kept


def gather(node: NodeProto, values: str, scales: str) -> list[NodeProto]:
    """Return nodes that convert only the rows looked up in a table of bytes to floats."""
    which, found = node.input[1], node.output[0]
    return [
        new_node("Gather", [values, which], [f"{found}.bytes"], axis=0),
        new_node("Gather", [scales, which], [f"{found}.scales"], axis=0),
        new_node("Cast", [f"{found}.bytes"], [f"{found}.floats"], to=TensorProto.FLOAT),
        new_node("Mul", [f"{found}.floats", f"{found}.scales"], [found]),
    ]


def new_node(kind: str, inputs: list[str], outputs: list[str], **more: str | int) -> NodeProto:
    """Return a node."""
    return helper.make_node(kind, inputs, outputs, f"{outputs[0]}.{kind}", **more)


def keep_needed(graph: onnx.GraphProto, nodes: list[NodeProto]) -> None:
    """Reduce a graph to the nodes and tensors that its outputs depend on."""
    needed = {output.name for output in graph.output}
    kept: list[NodeProto] = []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.output):
            kept.append(node)
            needed.update(node.input)
    tensors = [tensor for tensor in graph.initializer if tensor.name in needed]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(reversed(kept))
    graph.initializer.extend(tensors)


def main(folder: Path) -> None:
    """Write the patch.

    Args:
        folder: has the embedder's file.
    """
    old = (folder / f"{NAME}.onnx").read_bytes()
    model = onnx.load_from_string(old)
    rewrite(model)
    new = model.SerializeToString()
    added, parts, at = bytearray(), [], 0
    for tensor in model.graph.initializer:
        if len(tensor.raw_data) >= MIN_COPIED_BYTES:
            start, copied = new.index(tensor.raw_data, at), old.index(tensor.raw_data)
            added += new[at:start]
            at = start + len(tensor.raw_data)
            parts.append((len(added), copied, copied + len(tensor.raw_data)))
    added += new[at:]
    parts.append((len(added), 0, 0))
    np.savez_compressed(
        PATCH,
        size=np.int64(len(old)),
        parts=np.array(parts, np.int64),
        added=np.frombuffer(bytes(added), np.uint8),
    )
    print(f"{PATCH}: {PATCH.stat().st_size:,} bytes; the network has {len(new):,}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).expanduser())
