"""A network is rewritten so that it multiplies bytes, and anything else is left alone."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcursor.index import onnx_rewrite
from lcursor.index.embed import DEFAULT, find
from lcursor.index.onnx_rewrite import Field, fields, in_bytes, message, packed


@cache
def original() -> bytes:
    return find(DEFAULT).files()[0].read_bytes()


def kinds(content: bytes) -> list[str]:
    graph = next(value for number, value in fields(content) if number == onnx_rewrite._GRAPH)
    every = fields(onnx_rewrite._bytes(graph))
    nodes = [
        onnx_rewrite._node(onnx_rewrite._bytes(value)) for number, value in every if number == 1
    ]
    return [node.kind for node in nodes]


def test_every_product_with_weights_becomes_one_of_bytes() -> None:
    rewritten = in_bytes(original())
    assert rewritten is not None
    before, after = kinds(original()), kinds(rewritten)
    assert after.count("MatMulIntegerToFloat") == 36
    assert before.count("MatMul") - 36 == after.count("MatMul") == 12, "those of attention stay"
    assert after.count("DynamicQuantizeLinear") == 24, "what three products use is rounded once"
    assert before.count("Add") - after.count("Add") == 36
    assert after.count("IsNaN") == 0
    assert len(rewritten) < len(original()) * 1.01, "no weights are there twice"


def test_it_is_not_rewritten_twice() -> None:
    rewritten = in_bytes(original())
    assert rewritten is not None
    assert in_bytes(rewritten) is None


@pytest.mark.parametrize("content", [b"", b"x", b"GGUF" * 100, bytes(100), message([(7, b"")])])
def test_other_networks_are_not_rewritten(content: bytes) -> None:
    assert in_bytes(content) is None


@pytest.mark.parametrize("size", [1000, 100_000, 5_000_000, 22_000_000])
def test_a_truncated_file_is_left_alone(size: int) -> None:
    assert in_bytes(original()[:size]) is None


NUMBERS = st.integers(1, 2**29 - 1)
FIELDS = st.tuples(NUMBERS, st.one_of(st.integers(0, 2**64 - 1), st.binary(max_size=300)))


@given(st.lists(FIELDS, max_size=10))
@settings(max_examples=200, deadline=None)
def test_a_message_is_read_as_it_was_written(parts: list[Field]) -> None:
    found = [
        (number, value if isinstance(value, int) else bytes(value))
        for number, value in fields(message(parts))
    ]
    assert found == parts


@given(st.binary(max_size=300))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_fields_or_refused(content: bytes) -> None:
    try:
        found = list(fields(content))
    except ValueError:
        return
    assert all(isinstance(value, int) or len(value) <= len(content) for _, value in found)


def test_integers_in_one_field() -> None:
    assert packed(b"") == []
    assert packed(b"\x03\x80\x03\x01") == [3, 384, 1]


def test_the_sizes_of_a_tensor_are_read_in_both_forms() -> None:
    apart = message([(1, 30522), (1, 384), (2, 3)])
    together = message([(1, b"\xba\xee\x01\x80\x03"), (2, 3)])
    for body in (apart, together):
        assert onnx_rewrite._shape(memoryview(body)) == (3, [30522, 384])


def test_a_row_of_floats_keeps_its_numbers() -> None:
    row = np.arange(5, dtype=np.float32)
    body = onnx_rewrite._tensor("row", memoryview(row.tobytes()))
    assert bytes(onnx_rewrite._floats(memoryview(body))) == row.tobytes()
    assert onnx_rewrite._name(memoryview(body)) == "row"
