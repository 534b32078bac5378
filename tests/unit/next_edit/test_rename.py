"""Changed names that are renames, and those that may be something new."""

from __future__ import annotations

import pytest

from lcursor.next_edit import predict
from lcursor.next_edit.records import Edit
from tests.unit.next_edit.test_predict import edited, proposed

CASES = {
    "a variable that two uses have left, and its declaration": (
        "a.py",
        """
def f():
    left = g()
    a(left)
    b(left)
""",
        [(2, "    a(first)"), (3, "    b(first)")],
        [(1, "    first = g()")],
    ),
    "a function that took the head of another one": (
        "a.py",
        """
def link(to):
    set(to)
link(1)
link(2)
""",
        [(0, "def link0(to):")],
        [],
    ),
    "the same, and a call": (
        "a.py",
        """
def link(to):
    set(to)
link(1)
link(2)
""",
        [(0, "def link0(to):"), (2, "link0(1)")],
        [(3, "link0(2)")],
    ),
    "another function without parameters": (
        "a.py",
        """
def main():
    pass
main()
""",
        [(0, "def traverse():")],
        [],
    ),
    "a function without parameters, with a word of its name": (
        "a.py",
        """
def load_all():
    pass
load_all()
""",
        [(0, "def load_every():")],
        [(2, "load_every()")],
    ),
    "another value of a loop": (
        "a.py",
        """
for hunk in found:
    use(hunk)
""",
        [(0, "for result in found:")],
        [],
    ),
    "another fixture of a test": (
        "test_a.py",
        """
def test_a(tmpdir):
    use(tmpdir)
""",
        [(0, "def test_a(folder):")],
        [],
    ),
    "a variable with a longer name that two uses have": (
        "a.js",
        """
function f(width) {
  a(width)
  b(width)
  c(width)
}
""",
        [(2, "  b(columnWidth)"), (3, "  c(columnWidth)")],
        [],
    ),
    "a parameter that is extended": (
        "a.py",
        """
def f(url):
    return get(url, key=url)
""",
        [(0, "def f(base_url):")],
        [(1, "    return get(base_url, key=base_url)")],
    ),
    "an ordinary word in a comment is no name": (
        "a.rs",
        """
/// Add a file to `file_list`.
/// `file` may be missing.
fn file(path: u32) {}
fn g() { file(1) }
""",
        [(2, "fn document(path: u32) {}")],
        [(1, "/// `document` may be missing."), (3, "fn g() { document(1) }")],
    ),
    "a keyword of a macro": (
        "a.rs",
        """
fn f() {
    let sep = g();
    h!("{sep}", sep = sep);
}
""",
        [(1, "    let line_sep = g();"), (2, '    h!("{sep}", sep = line_sep);')],
        [],
    ),
    "a variable in a macro": (
        "a.rs",
        """
fn f(sep: u32) {
    h!("{sep}", sep = sep);
}
""",
        [(0, "fn f(line: u32) {")],
        [(1, '    h!("{sep}", sep = line);')],
    ),
    "a new name that a comment has": (
        "a.py",
        """
# The limit of all.
def f(timeout):
    return timeout
""",
        [(1, "def f(limit):")],
        [(2, "    return limit")],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_proposals_after_a_changed_name(name: str) -> None:
    path, text, edits, wanted = CASES[name]
    assert proposed(path, text, *edits) == wanted


@pytest.mark.parametrize(("path", "count"), [("a.py", 0), ("b.py", 1)])
def test_a_parameter_gets_no_other_name_of_its_own_file(path: str, count: int) -> None:
    texts = {"a.py": "def f(width):\n    return width\n", "b.py": ""}
    texts[path] += "size = 1"
    lines, edits = edited("a.py", texts["a.py"], (0, "def f(size):"))
    found = predict.predict({"a.py": lines, "b.py": (texts["b.py"],)}, edits)
    assert len(found) == count


def test_a_method_of_another_class_that_is_wrapped_keeps_its_name() -> None:
    files = {
        "a.py": "class Cookies:\n    def extract_cookies(self, response):\n"
        "        self.jar.extract_cookies(response)\n        self.extract_cookies(1)\n",
        "b.py": "def send(client):\n    client.cookies.extract_cookies(1)\n",
    }
    texts = {name: tuple(text.split("\n")) for name, text in files.items()}
    new = "    def take_cookies(self, response):"
    edit = Edit("a.py", 1, (texts["a.py"][1],), (new,))
    lines = texts["a.py"]
    now = texts | {"a.py": (lines[0], new, *lines[2:])}
    found = predict.predict(now, [edit])
    assert sorted((one.path, one.row) for one in found) == [("a.py", 3), ("b.py", 1)]
