"""Files as the editor has them: line ends, byte order marks, encodings, and what is no text."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.changes import text
from lcursor.changes.records import Change, digest
from lcursor.changes.text import Text
from lcursor.errors import EditMissing, EditRejected, EditStale, EditUnsaved

SAMPLES = {
    "plain": b"a\nb\n",
    "no_end": b"a\nb",
    "crlf": b"a\r\nb\r\n",
    "crlf_no_end": b"a\r\nb",
    "one_crlf": b"a\r\n",
    "mixed": b"a\r\nb\nc\r\n",
    "lone_cr": b"a\rb\nc\r",
    "crlf_then_cr": b"a\r\nb\r",
    "bom": b"\xef\xbb\xbfa\nb\n",
    "bom_crlf": b"\xef\xbb\xbfa\r\nb\r\n",
    "latin": b"caf\xe9\nna\xefve\n",
    "utf8": "café 😀\n\u2028x\x0c\x85\n".encode(),
    "empty": b"",
    "one_line_end": b"\n",
    "blank_lines": b"\n\n\n",
    "tabs": b"\tif x:\n\t\ty\n",
    "form_feed": b"a\x0cb\x1cc\n",
}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_file_is_written_as_the_bytes_that_were_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(SAMPLES[name])
    assert text.read(path).encode() == SAMPLES[name]


@given(st.binary().filter(lambda data: b"\0" not in data))
def test_any_bytes_come_back(data: bytes) -> None:
    assert text.from_bytes(data).encode() == data


def test_lines_are_those_of_the_editor(neovim: Path, tmp_path: Path) -> None:
    for name, data in SAMPLES.items():
        (tmp_path / name).write_bytes(data)
    ask = tmp_path / "ask.lua"
    ask.write_text(
        """
        local found = {}
        for _, path in ipairs(vim.fn.argv()) do
          vim.cmd.edit(path)
          local lines = vim.api.nvim_buf_get_lines(0, 0, -1, false)
          found[path] = {
            lines = lines,
            digest = vim.fn.sha256(table.concat(lines, "\\n")),
            newline = vim.bo.fileformat == "dos" and "\\r\\n" or "\\n",
            has_bom = vim.bo.bomb,
            ends = vim.bo.endofline,
          }
        end
        local file = assert(io.open("found.json", "w"))
        file:write(vim.json.encode(found))
        file:close()
        """
    )
    subprocess.run(
        [neovim, "--clean", "--headless", *SAMPLES, "+luafile ask.lua", "+qa!"],
        cwd=tmp_path,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
        check=True,
        timeout=30,
    )
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    for name in SAMPLES:
        ours, its = text.read(tmp_path / name), found[name]
        assert (name, list(ours.lines)) == (name, its["lines"])
        assert (name, ours.digest) == (name, its["digest"])
        if len(ours.lines) > 1:  # else the editor has nothing to tell them by
            told = (ours.newline, ours.has_bom, ours.ends)
            assert (name, *told) == (name, its["newline"], its["has_bom"], its["ends"])


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        (b"a\nb\nc\n", Change(1, 2, ("b",), ("x", "y")), b"a\nx\ny\nc\n"),
        (b"a\r\nb\r\n", Change(1, 1, (), ("x",)), b"a\r\nx\r\nb\r\n"),
        (b"a\r\nb\nc\n", Change(2, 3, ("c",), ("d",)), b"a\r\nb\nd\n"),
        (b"\xef\xbb\xbfa\n", Change(0, 1, ("a",), ("b",)), b"\xef\xbb\xbfb\n"),
        (b"a\nb", Change(1, 2, ("b",), ("c",)), b"a\nc"),
        (b"a", Change(0, 1, ("a",), ()), b""),
        (b"a\n", Change(0, 1, ("a",), ()), b""),
        (b"", Change(0, 0, (), ("a", "b")), b"a\nb\n"),
        (b"", Change(0, 1, ("",), ("a",)), b"a\n"),
        (b"\n", Change(0, 0, (), ("a",)), b"a\n\n"),
        (b"\xe9\n", Change(1, 1, (), ("é",)), b"\xe9\n\xe9\n"),
        (b"\ta\n", Change(0, 1, ("\ta",), ("\tb",)), b"\tb\n"),
    ],
)
def test_a_change_leaves_all_else_as_it_was(before: bytes, change: Change, after: bytes) -> None:
    assert text.from_bytes(before).changed([change]).encode() == after


@pytest.mark.parametrize(
    "changes",
    [
        [Change(0, 1, ("b",), ("x",))],
        [Change(1, 2, ("b",), ()), Change(0, 1, ("a",), ())],
        [Change(0, 2, ("a", "b"), ()), Change(1, 2, ("b",), ())],
        [Change(5, 5, (), ("x",))],
        [Change(1, 3, ("b",), ("x",))],
    ],
)
def test_a_change_that_does_not_fit_is_rejected(changes: list[Change]) -> None:
    with pytest.raises(EditStale):
        text.from_bytes(b"a\nb\n").changed(changes)


def test_a_line_that_a_file_cannot_hold_is_rejected() -> None:
    with pytest.raises(EditUnsaved, match="latin-1"):
        text.from_bytes(b"\xe9\n").with_lines(["😀"]).encode()
    for line in ("a\nb", "a\0b"):
        with pytest.raises(EditUnsaved, match="line end or a null byte"):
            Text((line,)).encode()


def test_a_file_that_is_no_text_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "binary").write_bytes(b"a\0b")
    (tmp_path / "large").write_bytes(b"a" * 100)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name, word in (("binary", "binary"), ("pipe", "regular"), ("folder", "regular")):
        with pytest.raises(EditRejected, match=word):
            text.read(tmp_path / name)
    with pytest.raises(EditMissing):
        text.read(tmp_path / "none")
    with pytest.raises(EditMissing):
        text.read(tmp_path / "binary" / "below")
    monkeypatch.setattr(text, "MAX_BYTES", 50)
    with pytest.raises(EditRejected, match="more than"):
        text.read(tmp_path / "large")


@pytest.mark.linux
def test_a_file_of_the_kernel_is_rejected() -> None:
    with pytest.raises(EditRejected):
        text.read("/proc/self/mem")


def test_an_empty_file_and_an_empty_line_have_one_digest() -> None:
    assert text.from_bytes(b"").digest == text.from_bytes(b"\n").digest == digest([""])
    assert text.from_bytes(b"").is_empty
    assert not text.from_bytes(b"\n").is_empty
