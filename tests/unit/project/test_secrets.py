"""The user's own globs: what they mean, what is kept of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lcursor.index import launch
from lcursor.project import secrets
from lcursor.project.root import begun_path
from lcursor.project.secrets import REASON, SecretGlobs

ROOT = Path("/home/me/project")

GLOBS = [
    ("*.vault", "a.vault", True),
    ("*.vault", "deep/in/a.VAULT", True),
    ("*.vault", "a.vault.py", False),
    ("*.vault", "vault", False),
    ("private/*", "private/a.py", True),
    ("private/*", "a/private/b/c.py", True),
    ("private/*", "private.py", False),
    ("private/*", "notprivate/a.py", False),
    ("me/project/*", "a.py", True),  # as in the editor, which has whole paths
    ("{a,b}.txt", "b.txt", True),
    ("?.txt", "ab.txt", False),
    ("[abc].txt", "b.txt", True),
    ("odd[.txt", "odd[.txt", True),
    ("[z-a].txt", "[z-a].txt", True),
    ("{open", "{open", True),
    ("*\n*", "a\nb", True),
    ("app/[slug]/*", "app/[slug]/page.tsx", True),  # it is a name, or has a class
    ("app/[slug]/*", "app/s/page.tsx", True),
    ("app/[slug]/*", "app/x/page.tsx", False),
    ("[[...slug]]/[a-c].ts", "[[...slug]]/b.ts", True),
    ("[...all].ts", "[...ALL].ts", True),
    (r"app/\[slug\]/x", "app/[slug]/x", True),
    (r"app/\[slug\]/x", "app/s/x", False),
    (r"\*.vault", "*.vault", True),
    (r"\*.vault", "a.vault", False),
    (r"a\d", "a5", False),
    (r"a\d", r"a\d", True),
    ("[^a].txt", "a.txt", False),
    ("[^a].txt", "b.txt", True),
    ("[[:alpha:]].txt", "[[:ALPHA:]].txt", True),
    ("a}b,c", "a}b,c", True),
    ("{a,{b,c}}.txt", "c.txt", True),
    ("(a)+$ %~@^", "(a)+$ %~@^", True),
]
"""Globs, paths, and whether the paths are excluded."""


@pytest.mark.parametrize(("glob", "path", "is_secret"), GLOBS)
def test_a_glob_matches_as_in_the_editor(glob: str, path: str, is_secret: bool) -> None:
    expected = f"{REASON}: {glob}" if is_secret else ""
    assert SecretGlobs(ROOT, [glob]).reason(path) == expected


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(("name", "is_key"), [("PRIVATE", True), ("PUBLIC", False)])
def test_private_keys_are_recognized_in_each_encoding(
    encoding: str, name: str, is_key: bool
) -> None:
    text = f"some text\n-----BEGIN RSA {name} KEY-----\n"
    assert secrets.has_private_key(text.encode(encoding)) == is_key


def test_what_was_said_once_holds() -> None:
    secrets = SecretGlobs(ROOT)
    assert not secrets.add(["", ""])
    assert secrets.reason("a.b") == ""
    assert secrets.add(["*.b", "*.a"])
    assert not secrets.add(["*.a"])
    assert secrets.globs == ("*.a", "*.b")
    secrets.replace(["*.c"])
    assert list(secrets.globs) == ["*.c"]


@pytest.mark.parametrize(
    ("text", "globs"),
    [
        ('{"root": "/x", "is_confirmed": false, "secrets": ["*.b", 3, "*.a"]}', ("*.a", "*.b")),
        ('{"root": "/x", "is_confirmed": false}', ()),
        ('{"secrets": "*.a"}', ()),
        ("[]", ()),
        ("{", ()),
        (None, ()),
    ],
)
def test_what_was_kept_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, globs: tuple[str, ...]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    if text is not None:
        launch.make_folder(tmp_path)
        begun_path(tmp_path).write_text(text)
    assert secrets.load(tmp_path).globs == globs
