"""Find Markdown fences, and parse their language and path.

A nested fence, as in a docstring, does not end the outer one if it is indented deeper, has fewer
marks, or has a language. Models write paths in many ways: after the language, above the
fence, in the first comment. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from lcursor.code import languages

_OPEN: Final = re.compile(
    r"^(?P<indent>[ \t]*(?:(?:[-*+]|\d+[.)])[ \t]+|>[ \t]?)?)(?P<marks>`{3,}|~{3,})(?P<info>[^`]*)$"
)
_CLOSE: Final = re.compile(r"^(?P<indent>[ \t]*(?:>[ \t]?)?)(?P<marks>`{3,}|~{3,})[ \t]*$")


@dataclass(slots=True)
class Fence:
    """An open fence."""

    marks: str
    indent: int
    info: str
    _inner: list[str] = field(default_factory=list)

    def is_end(self, line: str) -> bool:
        """Return whether a line ends the fence; call it for each line, in order."""
        close = _CLOSE.match(line)
        if close:
            marks = close["marks"]
            if self._inner and marks.startswith(self._inner[-1]):
                self._inner.pop()
                return False
            is_long = marks.startswith(self.marks)
            return not self._inner and is_long and len(close["indent"]) <= self.indent
        opened = _OPEN.match(line)
        if opened and re.fullmatch(r"\s*[\w+#.-]+\s*", opened["info"]):
            marks = opened["marks"]
            if marks[0] == self.marks[0] and len(opened["indent"]) <= self.indent:
                self._inner.append(marks)
        return False

    def unindent(self, line: str) -> str:
        """Return a line without the indentation of the fence."""
        cut = 0
        while cut < min(self.indent, len(line)) and line[cut] in " \t>":
            cut += 1
        return line[cut:]


def opening(line: str) -> Fence | None:
    """Return the fence that a line opens; None if it opens none."""
    found = _OPEN.match(line)
    return Fence(found["marks"], len(found["indent"]), found["info"].strip()) if found else None


# Languages and paths.

_ALIASES: Final = """
    py=python python3=python js=javascript node=javascript jsx=javascript ts=typescript
    sh=bash shell=bash zsh=bash console=bash c++=cpp c#=csharp cs=csharp golang=go rs=rust
    rb=ruby yml=yaml md=markdown makefile=make patch=diff udiff=diff plaintext=text txt=text
    code=text vimscript=vim viml=vim
"""
ALIASES: Final = dict(pair.split("=") for pair in _ALIASES.split())
RELATED: Final = tuple(
    {*group.split()}
    for group in (
        "javascript typescript tsx",
        "c cpp objc",
        "ocaml ocaml_interface",
        "bash fish batch powershell",
        "json yaml toml ini",
        "html vue svelte jinja xml php",
        "css scss less",
        "lisp scheme clojure",
    )
)
"""Groups of languages that models confuse."""
_KNOWN: Final = {*languages.EXTENSIONS, *ALIASES.values()}

_BARE_NAMES: Final = {
    *(name for names in languages.NAMES.values() for name in names.split()),
    *["Makefile", "Dockerfile", "Containerfile", "LICENSE", "README", "CHANGELOG"],
    *[".gitignore", ".dockerignore", ".editorconfig", ".env"],
}
_PATH: Final = re.compile(r"(?:[A-Za-z]:)?[\w.@+~$/\\()\[\]-]*[\w)\]+]")
MAX_CHARS: Final = 200
"""Maximum length of text that may be a path."""
_LABEL: Final = re.compile(
    r"^(?:new |updated? |modified |edited |in |create |full )?"
    r"(?:file(?:name| name| path)?|path|filepath)?\s*:\s*",
    re.IGNORECASE,
)
_KEY: Final = re.compile(
    r"(?:path|file|filename|filepath|title|name)\s*[=:]\s*(\"[^\"]+\"|'[^']+'|[^\s,}]+)"
)
_QUOTED: Final = re.compile(r"[`*]{1,3}([^`*\s]+)[`*]{1,3}")
_COMMENT: Final = re.compile(
    r"^\s*(?:#|//|--|;+|%|/\*|<!--|\{-|\(\*|\")\s*(.*?)\s*(?:\*/|-->|-\}|\*\))?$"
)


def language(word: str) -> str:
    """Return the normalized name of a fence's language; "" if unknown."""
    low = word.strip().lower()
    low = ALIASES.get(low, low)
    if low in _KNOWN:
        return low
    found = languages.detect(f"x.{low}") if low.isalnum() else languages.TEXT
    return "" if found == languages.TEXT else found


def are_related(one: str, other: str) -> bool:
    """Return whether models label code in one language with the other."""
    same = not one or not other or one == other or languages.TEXT in (one, other)
    return same or any({one, other} <= group for group in RELATED)


def from_info(info: str) -> tuple[str, str, str]:
    """Return the language and path in the info string of a fence, and the text for the path.

    The text is a path that `is_path` does not recognize if there is such a file.
    """
    info = info.strip().strip("{}").strip()
    key = _KEY.search(info)
    path = key[1].strip("\"'") if key else ""
    rest = _KEY.sub("", info) if key else info
    words = rest.replace(",", " ").split()
    first = words[0].lstrip(".") if words else ""
    known = language(first)
    if not known and ":" in first and not path:  # python:src/a.py, 12:15:src/a.py
        head, _, tail = first.partition(":")
        known = language(head)
        path = tail.rpartition(":")[2] if re.fullmatch(r"[\d:]*\d:.+", tail) else tail
        if not known:
            path = first.rpartition(":")[2]
        path = re.sub(r"[:#]L?\d+(?:-L?\d+)?$", "", path)
    candidates = words[1:] if known else words
    text = path or rest.strip().removeprefix(words[0] if known and words else "").strip(", ")
    if not path:
        path = next((word for word in candidates if is_path(word)), "")
    if path and not is_path(path):
        path = ""
    return known or (languages.detect(path) if path else ""), path, text


def is_path(text: str) -> bool:
    """Return whether a word looks like a file path."""
    name = re.split(r"[/\\]", text)[-1]
    if text != text.strip() or not _PATH.fullmatch(text) or "//" in text or not name:
        return False
    if name in _BARE_NAMES:
        return True
    stem, dot, ending = name.rpartition(".")
    if not dot or not (stem or "/" in text) or not re.fullmatch(r"[A-Za-z][\w+-]{0,9}", ending):
        return False
    if "/" in text or "\\" in text:
        return True
    is_known = languages.detect(name) != languages.TEXT
    return is_known or ending.lower() in {"txt", "lock", "log", "csv"}


def path_in_heading(line: str) -> str:
    """Return the path if a line above a fence consists only of it."""
    text = heading_text(line)
    return text if is_path(text) else ""


def heading_text(line: str) -> str:
    """Return a line above a fence without marks, labels and remarks."""
    text = line.strip().lstrip("#").strip()
    text = re.sub(r"^(?:\d+[.)]|[-*+])\s+", "", text)
    text = _unmarked(text)
    text = _unmarked(_LABEL.sub("", text, count=1))
    text = re.sub(r"\s*\((?:new|modified|updated|edited|new file|existing|created)\)$", "", text)
    return _unmarked(text.rstrip(":"))


def _unmarked(text: str) -> str:
    """Return text without marks; a `_` in front may be part of a name such as `__init__.py`."""
    text = text.strip("*`\"' ")
    return text.strip("_") if text.endswith("_") else text


def path_in_sentence(line: str) -> str:
    """Return the only path in a sentence; "" for none or several."""
    found = {word.rstrip(":") for word in _QUOTED.findall(line) if is_path(word.rstrip(":"))}
    if not found:
        words = (_unmarked(word.strip("`*\"'(),;:").rstrip(".")) for word in line.split())
        found = {word for word in words if "/" in word and is_path(word)}
    return found.pop() if len(found) == 1 else ""


def path_in_comment(line: str) -> str:
    """Return the path if a comment consists only of it."""
    text = comment_text(line)
    is_known = "/" in text or languages.detect(text) != languages.TEXT
    return text if is_path(text) and is_known else ""


def comment_text(line: str) -> str:
    """Return the text of a comment without its label; "" if it is none."""
    match = _COMMENT.match(line)
    return _LABEL.sub("", match[1].strip(), count=1).strip("`\"' ") if match else ""


def may_be_path(text: str) -> bool:
    """Return whether text that is no path for `is_path` is one if there is such a file."""
    is_fit = text.isprintable() and len(text) <= MAX_CHARS and not {*"./"}.isdisjoint(text)
    return is_fit and not is_path(text)
