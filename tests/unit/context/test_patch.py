"""Which file a part of a diff is about."""

from __future__ import annotations

import pytest

from lcursor.context import patch


@pytest.mark.parametrize(
    ("quoted", "path"),
    [
        ('"a/tab\\there"', "tab\there"),
        ('"a/quote\\"d"', 'quote"d'),
        ('"a/\\001"', "\x01"),
        ('"a/\\\\123.pem"', "\\123.pem"),
        ('"a/\\\\\\123"', "\\S"),
        ('"a/\\\\n"', "\\n"),
        ("a/plain\\123", "plain\\123"),
    ],
)
def test_a_quoted_path_is_read_as_git_wrote_it(quoted: str, path: str) -> None:
    assert patch.paths(f"diff --git x y\n--- {quoted}\n+++ /dev/null\n@@ -1 +0,0 @@\n") == [path]
