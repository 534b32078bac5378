from __future__ import annotations

import pytest

from lcursor.code import grammars, languages
from lcursor.code.languages import detect


@pytest.mark.parametrize(
    ("path", "first_line", "language"),
    [
        ("a.py", "", "python"),
        ("a/b/C.PY", "", "python"),
        ("a.py/b", "", "text"),
        ("lua/init.lua", "", "lua"),
        ("a.h", "", "c"),
        ("a.hpp", "", "cpp"),
        ("a.tsx", "", "tsx"),
        ("a.d.ts", "", "typescript"),
        ("a.mli", "", "ocaml_interface"),
        ("Makefile", "", "make"),
        ("src/Dockerfile.dev", "", "dockerfile"),
        ("dockerfile", "", "dockerfile"),
        ("CMakeLists.txt", "", "cmake"),
        ("Gemfile", "", "ruby"),
        (".bashrc", "", "bash"),
        ("a.unknown", "", "text"),
        ("notes.txt", "#!/bin/sh", "bash"),
        ("run", "#!/usr/bin/env python3.11", "python"),
        ("run", "#!/usr/bin/env -S FOO=1 node --harmony", "javascript"),
        ("run", "#! /usr/bin/lua5.1", "lua"),
        ("run", "#!/bin/bash -eu", "bash"),
        ("run", "#!/usr/bin/env", "text"),
        ("run", "#!", "text"),
        ("run", "plain", "text"),
        ("", "", "text"),
        ("odd\nname.rs", "", "rust"),
        ("bad\udcff.go", "", "go"),
    ],
)
def test_a_file_is_in_a_language(path: str, first_line: str, language: str) -> None:
    assert detect(path, first_line) == language


def test_every_language_with_definitions_has_a_name_that_leads_to_it() -> None:
    assert set(grammars.LANGUAGES) <= set(languages.EXTENSIONS)


def test_no_word_stands_for_two_languages() -> None:
    for table in (languages.EXTENSIONS, languages.NAMES, languages.INTERPRETERS):
        words = [word for line in table.values() for word in line.split()]
        assert len(words) == len(set(words))
