"""Rewrite a weight-only quantized ONNX network so that it multiplies bytes, when it is loaded.

The default embedder's file holds `MatMul(x, Cast(bytes) * scales) + bias`: onnxruntime turns the
weights into floats when it loads them, which takes four times the memory, and multiplies floats.
Here each such product becomes one `MatMulIntegerToFloat`, and rows of the word table are looked up
before they become floats: nearly twice as fast, in half the memory.

The publisher also has a file with such products. The manifest names the other one because it can be
downloaded from a package registry too, on machines that cannot reach the model hub. Writing the
rewritten network once next to it would need a second file to check and to delete; rewriting takes a
fraction of the second that loading takes. Pure functions of the file's content. Any thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Value: TypeAlias = "int | bytes | memoryview"
Field: TypeAlias = "tuple[int, Value]"
"""The number of a field in a protobuf message, and its value."""

_VARINT, _BYTES = 0, 2
_FLOAT, _BYTE = 1, 3
"""Types of a tensor."""
_INT_ATTRIBUTE = 2
_GRAPH, _OPSETS = 7, 8
_NODE, _INITIALIZER, _OUTPUT, _VALUES = 1, 5, 12, 13
PRODUCTS = "com.microsoft"
"""The set of operations that `MatMulIntegerToFloat` is of."""


@dataclass(slots=True)
class _Node:
    """A node of the graph."""

    body: bytes | memoryview
    kind: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Weights:
    """Quantized weights: the names of their bytes and their scales."""

    values: str
    scales: str


def in_bytes(network: bytes) -> bytes | None:
    """Return a rewritten network; None if it has no products to rewrite.

    Args:
        network: the content of an ONNX file.
    """
    try:
        return _rewritten(network)
    except (ValueError, LookupError):
        return None  # let onnxruntime report what is wrong with it


def _rewritten(network: bytes) -> bytes | None:
    model = list(fields(network))
    at = [number for number, _ in model].index(_GRAPH)
    graph = list(fields(_bytes(model[at][1])))
    nodes = [_node(_bytes(value)) for number, value in graph if number == _NODE]
    bodies = [_bytes(value) for number, value in graph if number == _INITIALIZER]
    tensors = {_name(body): body for body in bodies}
    outputs = [_name(_bytes(value), 1) for number, value in graph if number == _OUTPUT]
    made, new = _in_bytes(_without_guards(nodes), tensors)
    if not new:
        return None
    kept, needed = _needed(made, outputs)
    every: dict[str, bytes | memoryview] = {**tensors, **new}
    rest = [each for each in graph if each[0] not in (_NODE, _INITIALIZER, _VALUES)]
    whole: list[Field] = [(_NODE, node.body) for node in kept]
    whole += [(_INITIALIZER, body) for name, body in every.items() if name in needed]
    model[at] = (_GRAPH, message([*whole, *rest]))
    return message([*model, (_OPSETS, message([(1, PRODUCTS.encode()), (2, 1)]))])


def _in_bytes(
    nodes: Sequence[_Node], tensors: Mapping[str, memoryview]
) -> tuple[list[_Node], dict[str, bytes]]:
    """Return the nodes with byte products, and the constants that these need."""
    weights_of = _weights(nodes, tensors)
    users = Counter(name for node in nodes for name in node.inputs)
    added = {
        name: node
        for node in nodes
        if node.kind == "Add"
        for name in node.inputs
        if users[name] == 1 and any(_is_row(tensors.get(other)) for other in node.inputs)
    }
    made: list[_Node] = []
    new: dict[str, bytes] = {}
    rounded: dict[str, list[str]] = {}
    done: set[int] = set()
    for node in nodes:
        weights = weights_of.get(node.inputs[1]) if len(node.inputs) > 1 else None
        table = weights_of.get(node.inputs[0]) if node.inputs else None
        if node.kind == "MatMul" and weights:
            source, name = node.inputs[0], node.outputs[0]
            if source not in rounded:
                rounded[source] = [f"{source}.{part}" for part in ("bytes", "scale", "zero")]
                made.append(_new_node("DynamicQuantizeLinear", [source], rounded[source]))
            columns = _shape(tensors[weights.values])[1][-1]
            scales = _floats(tensors[weights.scales])
            if _shape(tensors[weights.scales])[1][-1:] != [columns] or len(scales) != 4 * columns:
                raise ValueError("its weights are not measured by column")
            new[f"{name}.scales"] = _tensor(f"{name}.scales", scales)
            values, scale, zero = rounded[source]
            inputs = [values, weights.values, scale, f"{name}.scales", zero]
            if sum_ := added.get(name):
                inputs += ["", next(each for each in sum_.inputs if each != name)]
                done.add(id(sum_))
                name = sum_.outputs[0]
            made.append(_new_node("MatMulIntegerToFloat", inputs, [name], of=PRODUCTS))
        elif node.kind == "Gather" and table:
            made += _gather(node, table)
        elif id(node) not in done:
            made.append(node)
    return made, new


def _without_guards(nodes: Sequence[_Node]) -> list[_Node]:
    """Return the nodes without those that replace NaN by zero.

    NaN is the attention of a row without tokens; here each text has one.
    """
    tests = {node.outputs[0]: node.inputs[0] for node in nodes if node.kind == "IsNaN"}
    instead = {
        node.outputs[0]: node.inputs[2]
        for node in nodes
        if node.kind == "Where" and tests.get(node.inputs[0]) == node.inputs[2]
    }
    return [_replace_inputs(node, instead) for node in nodes if node.outputs[0] not in instead]


def _weights(nodes: Iterable[_Node], tensors: Mapping[str, memoryview]) -> dict[str, _Weights]:
    """Return the quantized weights that are converted to floats, by the name of the result."""
    casts = {
        node.outputs[0]: node.inputs[0]
        for node in nodes
        if node.kind == "Cast"
        and node.inputs[0] in tensors
        and _shape(tensors[node.inputs[0]])[0] == _BYTE
    }
    return {
        node.outputs[0]: _Weights(casts[node.inputs[0]], node.inputs[1])
        for node in nodes
        if node.kind == "Mul" and node.inputs[0] in casts and node.inputs[1] in tensors
    }


def _gather(node: _Node, table: _Weights) -> list[_Node]:
    """Return nodes that convert only the rows looked up in a table of bytes to floats."""
    which, found = node.inputs[1], node.outputs[0]
    return [
        _new_node("Gather", [table.values, which], [f"{found}.bytes"], {"axis": 0}),
        _new_node("Gather", [table.scales, which], [f"{found}.scales"], {"axis": 0}),
        _new_node("Cast", [f"{found}.bytes"], [f"{found}.floats"], {"to": _FLOAT}),
        _new_node("Mul", [f"{found}.floats", f"{found}.scales"], [found]),
    ]


def _needed(nodes: Sequence[_Node], outputs: Iterable[str]) -> tuple[list[_Node], set[str]]:
    """Return the nodes that the outputs depend on, and all names that these use."""
    needed, kept = set(outputs), []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.outputs):
            kept.append(node)
            needed.update(node.inputs)
    return kept[::-1], needed


# The messages of an ONNX file


def _node(body: memoryview) -> _Node:
    node = _Node(body)
    for number, value in fields(body):
        if number == 1:
            node.inputs.append(_text(value))
        elif number == 2:
            node.outputs.append(_text(value))
        elif number == 4:
            node.kind = _text(value)
        elif number == 5 and node.kind in ("If", "Loop", "Scan"):
            raise ValueError("a network with branches")  # these may use replaced names
    return node


def _new_node(
    kind: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    numbers: dict[str, int] | None = None,
    of: str = "",
) -> _Node:
    parts: list[Field] = [(1, name.encode()) for name in inputs]
    parts += [(2, name.encode()) for name in outputs]
    parts += [(3, f"{outputs[0]}.{kind}".encode()), (4, kind.encode())]
    for name, value in (numbers or {}).items():
        parts.append((5, message([(1, name.encode()), (3, value), (20, _INT_ATTRIBUTE)])))
    if of:
        parts.append((7, of.encode()))
    return _Node(message(parts), kind, list(inputs), list(outputs))


def _name(body: memoryview, number: int = 8) -> str:
    """Return the name of a tensor, or of a value, where it is field 1."""
    return next((_text(value) for each, value in fields(body) if each == number), "")


def _replace_inputs(node: _Node, instead: Mapping[str, str]) -> _Node:
    """Return a node with some inputs replaced."""
    if instead.keys().isdisjoint(node.inputs):
        return node
    inputs = [instead.get(name, name) for name in node.inputs]
    parts: list[Field] = [(1, name.encode()) for name in inputs]
    parts += [each for each in fields(node.body) if each[0] != 1]
    return _Node(message(parts), node.kind, inputs, node.outputs)


def _shape(body: memoryview) -> tuple[int, list[int]]:
    """Return the type and the dimensions of a tensor."""
    kind, sizes = 0, []
    for number, value in fields(body):
        if number == 1:
            sizes += [value] if isinstance(value, int) else packed(value)
        elif number == 2 and isinstance(value, int):
            kind = value
    return kind, sizes


def _is_row(body: memoryview | None) -> bool:
    if body is None:
        return False
    kind, sizes = _shape(body)
    return kind == _FLOAT and len(sizes) == 1


def _floats(body: memoryview) -> memoryview:
    """Return the raw content of a tensor of floats."""
    raw = next((_bytes(value) for number, value in fields(body) if number == 9), None)
    if _shape(body)[0] != _FLOAT or raw is None:
        raise ValueError("numbers of another type")
    return raw


def _tensor(name: str, floats: memoryview) -> bytes:
    """Return a tensor with one row of floats."""
    return message([(1, len(floats) // 4), (2, _FLOAT), (8, name.encode()), (9, floats)])


def _bytes(value: int | bytes | memoryview) -> memoryview:
    if isinstance(value, int):
        raise ValueError("a number where a message should be")
    return memoryview(value)


def _text(value: int | bytes | memoryview) -> str:
    return bytes(_bytes(value)).decode()


# Protobuf without a schema


def fields(message: bytes | memoryview) -> Iterator[Field]:
    """Yield the fields of a protobuf message: integers, and everything else as views of bytes.

    Raises:
        ValueError: it is not a protobuf message.
    """
    view = memoryview(message)
    at, end = 0, len(view)
    while at < end:
        key, at = _varint(view, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _varint(view, at)
            yield number, value
            continue
        if kind != _BYTES:  # numbers of fixed size are only in parts that are not read
            raise ValueError(f"a field of an unknown kind ({kind})")
        size, at = _varint(view, at)
        if at + size > end:
            raise ValueError("it ends in the middle of a field")
        yield number, view[at : at + size]
        at += size


def packed(value: bytes | memoryview) -> list[int]:
    """Return the integers of a packed field."""
    view, at, found = memoryview(value), 0, []
    while at < len(view):
        number, at = _varint(view, at)
        found.append(number)
    return found


def message(parts: Iterable[Field]) -> bytes:
    """Return a protobuf message with some fields."""
    found = bytearray()
    for number, value in parts:
        if isinstance(value, int):
            found += _number(number << 3 | _VARINT) + _number(value)
        else:
            found += _number(number << 3 | _BYTES) + _number(len(value))
            found += value
    return bytes(found)


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(view) or shift > 63:
            raise ValueError("it ends in the middle of a number")
        byte = view[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7


def _number(value: int) -> bytes:
    value &= (1 << 64) - 1  # a negative one has ten bytes
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
