from __future__ import annotations

import re
import sys
import sysconfig
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lcursor.code import grammars
from lcursor.index.chunk import MAX_CHARS, embedded, read, weigh
from lcursor.index.records import Chunk, Parsed
from tests.unit.index.samples import SAMPLES, Sample

STDLIB = Path(sysconfig.get_paths()["stdlib"])
ROOT = Path(__file__).resolve().parents[3]


def rows_of(text: str) -> list[str]:
    rows = text.split("\n")
    return rows[:-1] if not rows[-1] else rows


def plain(parsed: Parsed) -> list[Chunk]:
    return [item for item in parsed.chunks if item.kind != "outline"]


def size(text: str) -> int:
    return weigh(text.split("\n"))[-1]


def check(path: str, text: str) -> Parsed:
    """Assert what holds for every text."""
    parsed = read(path, text)
    rows, chunks = rows_of(text), plain(parsed)
    if not text.strip():
        assert not parsed.chunks
        return parsed
    assert chunks[0].first_row == 0
    assert chunks[-1].end_row == len(rows)
    for one, two in pairwise(chunks):
        assert one.end_row == two.first_row
    for item in chunks:
        assert item.text == "\n".join(rows[item.first_row : item.end_row])
        assert item.end_row - item.first_row == 1 or size(item.text) <= MAX_CHARS
    for item in parsed.chunks:
        assert 0 <= item.first_row < item.end_row <= len(rows)
        assert len(item.digest) == 16
    for symbol in parsed.symbols:
        assert symbol.name
        assert 0 <= symbol.first_row < symbol.end_row <= len(rows)
    return parsed


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.path)
def test_definitions_are_found_in_each_language(sample: Sample) -> None:
    parsed = check(sample.path, sample.text)
    assert parsed.language == sample.language
    found = [
        f"{symbol.kind} {'>'.join(filter(None, [*symbol.scope.split(' > '), symbol.name]))}"
        for symbol in parsed.symbols
    ]
    assert ", ".join(found) == sample.defines
    rows = rows_of(sample.text)
    for symbol in parsed.symbols:
        assert symbol.name.split(".")[0].split("\\")[0] in rows[symbol.first_row]
    assert [item.kind for item in plain(parsed)] == ["code"]


def test_each_language_with_definitions_has_a_sample_and_its_wheel() -> None:
    assert {sample.language for sample in SAMPLES} == set(grammars.LANGUAGES)
    assert all(grammars.parser(language) for language in grammars.LANGUAGES)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.path)
def test_a_long_file_of_each_language_is_cut_between_its_parts(sample: Sample) -> None:
    if sample.language in {"json", "html", "php", "ocaml_interface"}:
        text = sample.text
        while len(text) < 9000:
            text = text + sample.text
    else:
        text = sample.text * (9000 // len(sample.text) + 1)
    parsed = check(sample.path, text)
    chunks = plain(parsed)
    assert 4 <= len(chunks) <= 14
    # A chunk does not begin in the middle of a statement: with a closing bracket, or right below
    # a comment.
    for item in chunks[1:]:
        first = item.text.lstrip()
        assert not re.match(r"[)}\]]|end\b|else\b", first), first[:40]


PY = '''\
import os


class Store:
    """Keeps."""

    def __init__(self, path):
        {long}

    # Says why.
    @cached(
        size=3,
    )
    def get(self, key):
        {long}

    def put(self, key, value):
        def inner():
            pass
        {long}


def main():
    pass
'''.replace("{long}", "\n        ".join(f"self.value_{at} = compute({at})" for at in range(35)))


def test_a_class_that_is_cut_has_chunks_with_scope_and_an_outline() -> None:
    parsed = check("a/store.py", PY)
    scopes = [(item.kind, item.scope) for item in parsed.chunks]
    assert scopes == [
        ("code", "Store > __init__"),
        ("code", "Store > get"),
        ("code", "Store > put"),
        ("outline", "Store"),
    ]
    outline = parsed.chunks[-1]
    assert outline.text == (
        "class Store:\n"
        '    """Keeps."""\n\n'
        "    def __init__(self, path):\n        …\n\n"
        "    # Says why.\n    @cached(\n        size=3,\n    )\n"
        "    def get(self, key):\n        …\n\n"
        "    def put(self, key, value):\n        …"
    )
    assert (outline.first_row, outline.end_row) == (3, parsed.symbols[0].end_row)
    assert embedded("a/store.py", outline) == f"store.py > Store\n{outline.text}"
    assert embedded("a/store.py", parsed.chunks[2]).startswith("store.py > Store > put\n")
    assert embedded("b/a.py", read("a.py", "call()").chunks[0]) == "a.py\ncall()"


def test_a_function_that_is_too_long_is_cut_between_its_statements() -> None:
    body = "".join(
        f"    if x{at}:\n        call_{at}(\n            {at},\n        )\n" for at in range(200)
    )
    parsed = check("a.py", f"def long():\n{body}")
    chunks = plain(parsed)
    assert len(chunks) > 2
    assert all(item.text.startswith("    if x") for item in chunks[1:])
    assert {item.scope for item in chunks} == {"long"}


def test_an_edit_changes_few_digests() -> None:
    text = (STDLIB / "argparse.py").read_text()
    before = [item.digest for item in read("argparse.py", text).chunks]
    rows = text.split("\n")
    at = next(n for n, row in enumerate(rows) if "def _get_formatter" in row)
    for new in (["        x = 1"], ["", "    def more(self):", "        return 1", ""]):
        changed = "\n".join(rows[: at + 1] + new + rows[at + 1 :])
        after = {item.digest for item in read("argparse.py", changed).chunks}
        assert len([digest for digest in before if digest not in after]) <= 5
    assert len(before) > 50


def test_a_digest_depends_on_text_file_name_and_scope() -> None:
    one, two = read("a.py", "x = 1\n"), read("a.py", "x = 1")
    other, renamed = read("a.py", "x = 2\n"), read("b.py", "x = 1\n")
    assert one.chunks[0].digest == two.chunks[0].digest
    assert len({item.chunks[0].digest for item in (one, other, renamed)}) == 3
    alone = read("a.py", "def f():\n    x = 1\n")
    assert alone.chunks[0].scope == "f"
    assert alone.chunks[0].digest != read("a.py", "def g():\n    x = 1\n").chunks[0].digest
    below = read("a.py", "\n" * 3 + "y = '" + "y" * 1499 + "'\nx = 1\n")
    assert below.chunks[-1].digest == one.chunks[0].digest


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("empty.py", ""),
        ("blank.py", " \n\n\t\n"),
        ("crlf.py", "def f():\r\n    pass\r\n" * 300),
        ("no_end.lua", "return {"),
        ("broken.py", "def f(:\n  x = )\n" * 400),
        ("broken.c", "}}}} int ) { ( \n" * 400),
        ("line.js", "x" * 100_000),
        ("line.txt", "word " * 20_000),
        ("nul.py", "a = '\0'\n" * 300),
        ("surrogate.py", "a = '\ud800'\n" * 500),
        ("accents.py", "é = 'ß→漢字🙂'\n" * 500),
        ("bom.py", "\ufeffx = 1\n"),
        ("sum.py", "x = (" + "\n + ".join(f"a{at}" for at in range(3000)) + ")\n"),
        ("deep.json", "[\n" * 3000 + "]\n" * 3000),
        ("text.py", 'x = """\n' + "words of a long text\n" * 400 + '"""\n'),
        ("notes.txt", "A paragraph.\nOf rows.\n\n" * 300),
    ],
    ids=lambda value: value if len(value) < 20 else "",
)
def test_every_row_of_odd_texts_is_in_one_chunk(path: str, text: str) -> None:
    check(path, text)


LINES = st.sampled_from(
    [
        "",
        "    ",
        "# note",
        "@cached(",
        ")",
        "def f(a):",
        "    def g(self):",
        "class A(B):",
        "    x = 1",
        "        return [1,",
        "    2]",
        '    """Text',
        "x = {",
        "}",
        "}}",
        "function f()",
        "end",
        "import os, sys  # " + "w" * 300,
        "y" * 1600,
    ]
)


@given(
    st.sampled_from(["a.py", "a.lua", "a.c", "a.md", "a.yaml", "a.html", "a.txt", "a.hs", "a.rs"]),
    st.lists(LINES, max_size=120),
    st.booleans(),
)
@example("a.py", ["y" * 1600, "", "y" * 1600], False)
@settings(max_examples=50, deadline=None)
def test_every_row_is_in_one_chunk(path: str, rows: list[str], has_end: bool) -> None:
    check(path, "\n".join(rows) + ("\n" if has_end else ""))


def test_headers_of_cpp_and_c_are_distinguished() -> None:
    assert read("a.h", "namespace x {\nclass A {};\n}\n").language == "cpp"
    assert read("a.h", "struct a { int b; };\n").language == "c"


def test_a_missing_wheel_means_chunks_of_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "lua/lcursor/editor/privacy.lua").read_text()
    monkeypatch.setitem(sys.modules, "tree_sitter_lua", None)
    monkeypatch.setattr(grammars, "_grammar", grammars._grammar.__wrapped__)
    monkeypatch.setattr(grammars, "_here", threading.local())
    parsed = check("lua/lcursor/editor/privacy.lua", text)
    assert parsed.language == "lua"
    assert {item.kind for item in parsed.chunks} == {"lines"}


def test_a_parser_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "def f():\n    return 1\n" * 3000
    monkeypatch.setattr(grammars, "MAX_PARSE_S", 0.0)
    assert {item.kind for item in read("a.py", text).chunks} == {"lines"}
    monkeypatch.undo()
    assert {item.kind for item in read("a.py", text).chunks} == {"code"}


@pytest.mark.parametrize("text", ["(" * 60_000, "*" * 60_000 + "\n", "- " * 60_000])
def test_garbage_is_parsed_quickly(text: str) -> None:
    before_s = time.thread_time()
    check("a.c", text)
    assert time.thread_time() - before_s < 5


def test_nothing_of_tree_sitter_is_loaded_at_import() -> None:
    import subprocess

    code = "import sys, lcursor.index.chunk; print('tree_sitter' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    assert done.stdout.strip() == b"False"
