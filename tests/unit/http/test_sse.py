"""Streams of JSON: cut anywhere, they are the same objects; what is no object is said."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.errors import ServerFailed, ServerGarbled
from lcursor.http import sse

OBJECTS = st.lists(st.dictionaries(st.sampled_from("abc"), st.text(), min_size=1), max_size=5)


def read(body: bytes, sizes: list[int] | None = None) -> list[dict[str, object]]:
    lines, cutter = [], sse.LineSplitter()
    for size in sizes or [len(body)]:
        part, body = body[:size], body[size:]
        lines += cutter.feed(part)
    lines += cutter.feed(body)
    return list(sse.objects([*lines, bytes(cutter.rest)], "it"))


@given(OBJECTS, st.lists(st.integers(1, 30)), st.booleans(), st.sampled_from([b"\n", b"\r\n"]))
def test_any_cut_gives_the_same_objects(
    wanted: list[dict[str, str]], sizes: list[int], is_sse: bool, end: bytes
) -> None:
    # ensure_ascii off: raw U+2028 and U+0085 are no ends of lines in JSON
    rows = [json.dumps(one, ensure_ascii=False).encode("utf-8", "replace") for one in wanted]
    expected = [json.loads(row) for row in rows]
    body = b"".join((b"data: " if is_sse else b"") + row + end * (1 + is_sse) for row in rows)
    assert read(body, sizes) == expected


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"", []),
        (b'data: {"a": 1}\n\ndata: [DONE]\n\ndata: {"a": 2}\n\n', [{"a": 1}]),
        (b'data: {"a": 1}\n\ndata: [DONE]', [{"a": 1}]),
        (b': hello\nevent: x\nid: 3\nretry: 5\ndata:{"a": 1}\n\n', [{"a": 1}]),
        (b'data: {"a":\ndata: 1}\n\n', [{"a": 1}]),
        (b'data: {"a": 1}', [{"a": 1}]),
        (b' {"a": 1}\n\n\n{"a": 2}', [{"a": 1}, {"a": 2}]),
        (b'data:\n\ndata: {"a": 1}\n\n', [{"a": 1}]),
    ],
)
def test_forms(body: bytes, found: list[dict[str, int]]) -> None:
    assert read(body) == found


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"error": "model runner has unexpectedly stopped"}', "unexpectedly stopped"),
        (b'data: {"error": {"message": "context is full.", "code": 400}}\n\n', "context is full"),
        (b'error: {"code": 500, "message": "slot broke"}\n', "slot broke"),
        (b'{"error": {"code": 5}}', '"code": 5'),
    ],
)
def test_an_error_in_the_stream(body: bytes, words: str) -> None:
    with pytest.raises(ServerFailed, match="it failed: ") as e:
        read(b'{"fine": 1}\n' + body)
    assert words in e.value.message


@pytest.mark.parametrize("body", [b"<html>", b"data: no\n\n", b"data: [1]\n\n", b'{"a": ', b"\xff"])
def test_what_is_no_json(body: bytes) -> None:
    with pytest.raises(ServerGarbled, match="invalid JSON"):
        read(body)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"error": {"message": "No such model.\\n\\nTry."}}', "No such model. Try"),
        (b'{"error": "plain"}', "plain"),
        (b'{"detail": "Not Found"}', "Not Found"),
        (b'{"object": "error", "message": "gone", "code": 404}', "gone"),
        (b"Bad Gateway\nmore", "Bad Gateway"),
        (b"[]", "[]"),
        (b"{}", ""),
        (b"", ""),
    ],
)
def test_what_a_server_says_is_wrong(body: bytes, words: str) -> None:
    assert sse.body_message(body) == words


@pytest.mark.parametrize(
    ("found", "detail"),
    [
        (b'{"error": {"code": 400, "type": "x", "n_ctx": 5, "message": "secret"}}',
         {"code": 400, "type": "x", "n_ctx": 5}),
        ({"error": {"error": {"code": "y"}}}, {"code": "y"}),
        ({"object": "error", "code": 3}, {"code": 3}),
        ({"error": "plain", "code": []}, {}),
        (b"no", {}), (b"[]", {}), ([], {}), (None, {}),
    ],
)  # fmt: skip
def test_what_an_error_says_for_programs(found: object, detail: dict[str, object]) -> None:
    assert sse.error_detail(found) == detail


def test_an_error_carries_it() -> None:
    with pytest.raises(ServerFailed) as e:
        read(b'data: {"error": {"message": "full", "n_ctx": 5}}\n\n')
    assert e.value.detail == {"n_ctx": 5}


DEEP = b"[" * 200_000


@pytest.mark.parametrize("body", [DEEP, b'data: {"a":' + DEEP + b"\n\n", b'{"a":' + DEEP])
def test_json_that_is_nested_too_deeply_is_garbled(body: bytes) -> None:
    with pytest.raises(ServerGarbled):
        read(body)


def test_a_document_that_is_nested_too_deeply_is_garbled() -> None:
    with pytest.raises(ServerGarbled):
        sse.parse(DEEP, "it")


def test_an_error_that_is_nested_too_deeply_has_a_message() -> None:
    assert sse.body_message(DEEP).startswith("[[[")
    assert sse.error_detail(DEEP) == {}
    with pytest.raises(ServerFailed, match=r"failed: \[\[\["):
        read(b"error: " + DEEP + b"\n")


def test_a_value_that_can_just_be_read_is_a_message() -> None:
    value: object = 1
    for _ in range(5000):  # json.dumps gives up
        value = [value]
    assert sse.error_message({"error": value}) == "it is nested too deeply"


def test_a_line_that_comes_in_many_pieces_is_copied_once() -> None:
    splitter, copied = sse.LineSplitter(), 0
    for _ in range(2000):
        before = splitter.rest
        assert splitter.feed(b"x" * 500) == []
        copied += splitter.rest is not before
    assert copied == 0
    assert splitter.feed(b"y\r\nz") == [b"x" * 1_000_000 + b"y"]
    assert splitter.rest == b"z"
