"""From a question to what goes along with it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from lcursor.context import file_names
from lcursor.context.gather import gather, storable
from lcursor.context.items import DROPPED, Item, SearchHit, SearchResult, SymbolLocation
from lcursor.errors import Cancelled
from lcursor.process.run import Cancel
from lcursor.project import reading
from lcursor.protocol.chat import AttachmentKind, ChatAttachment
from tests.unit.project.test_reading import KEY
from tests.unit.project.trees import git, write


def attached(
    kind: AttachmentKind,
    name: str,
    text: str,
    path: Path | str = "",
    first_row: int = 0,
    is_offered: bool = False,
) -> ChatAttachment:
    return {
        "kind": kind,
        "name": name,
        "path": str(path),
        "first_row": first_row,
        "text": text,
        "is_offered": is_offered,
    }


def offered(kind: AttachmentKind, name: str, text: str, path: Path | str = "") -> ChatAttachment:
    return attached(kind, name, text, path, is_offered=True)


def keys(items: Sequence[Item]) -> list[str]:
    return [item.key for item in items if not item.is_left_out]


def out(items: Sequence[Item]) -> dict[str, str]:
    return {item.name: item.note for item in items if item.is_left_out}


class FakeCodebase:
    """What knows a project, as the test says."""

    def __init__(
        self, receipt: SearchResult | None = None, names: Sequence[SymbolLocation] = ()
    ) -> None:
        self.receipt, self.names = receipt or SearchResult(), names
        self.asked: list[str] = []

    def find(self, text: str, tokens: int, cancel: Cancel | None = None) -> SearchResult:
        self.asked.append(text)
        return self.receipt

    def symbols(
        self, name: str, limit: int = 20, *, prefix: bool = False, cancel: Cancel | None = None
    ) -> list[SymbolLocation]:
        return [one for one in self.names if one.name.startswith(name) or prefix]


FILES = [
    ("@file:src/a.py", ["file:src/a.py"]),
    ("@file:./src/a.py", ["file:src/a.py"]),
    ("@file:src/../src/a.py", ["file:src/a.py"]),
    ("@file:url.py", ["file:src/net/url.py"]),
    ("@file:net/url.py", ["file:src/net/url.py"]),
    ("@file:src/a.py @file:src/a.py", ["file:src/a.py"]),
    ("@file:src/*.py", ["file:src/a.py"]),
    ("@file:**/*.py", ["file:src/a.py", "file:src/net/url.py"]),
    ("@file:*.py", ["file:src/a.py", "file:src/net/url.py"]),
    ("@file:src", ["dir:src", "file:src/a.py", "file:src/net/url.py"]),
    ("@dir:src", ["dir:src", "file:src/a.py", "file:src/net/url.py"]),
    ("@dir:src/net/", ["dir:src/net", "file:src/net/url.py"]),
    ("@dir:net", ["dir:src/net", "file:src/net/url.py"]),
    ("nothing here", []),
    ("`@file:src/a.py`", []),
]


@pytest.mark.parametrize(("text", "found"), FILES)
def test_files_and_folders_are_attached(root: Path, text: str, found: list[str]) -> None:
    assert keys(gather(text, root=root)) == found


def test_paths_count_from_the_file_one_is_in_too_and_from_anywhere(
    root: Path, home: Path, tmp_path: Path
) -> None:
    write(home, "notes.md", text="mine\n")
    write(tmp_path, "other/x.py", text="x\n")
    here = str(root / "src/net/url.py")
    assert keys(gather("@file:url.py @file:../a.py", root=root, path=here)) == [
        "file:src/net/url.py",
        "file:src/a.py",
    ]
    assert keys(gather("@file:~/notes.md", root=root)) == ["file:~/notes.md"]
    (item,) = gather(f"@file:{tmp_path}/other/x.py", root=root)
    assert (item.text, item.path) == ("x\n", f"{tmp_path}/other/x.py")


def test_rows_of_a_file_are_attached(root: Path) -> None:
    write(root, "rows.py", "odd:3", text="".join(f"{row}\n" for row in range(1, 101)))
    (item,) = gather("@file:rows.py:10-12", root=root)
    assert (item.text, item.first_row, item.name) == ("10\n11\n12\n", 9, "rows.py:10-12")
    (item,) = gather("@file:rows.py:50", root=root)
    assert (item.first_row, item.end_row, item.note) == (34, 65, "around line 50")
    (item,) = gather("@file:rows.py:98-", root=root)
    assert (item.text, item.key) == ("98\n99\n100\n", "file:rows.py:98-100")
    (item,) = gather("@file:odd:3", root=root)  # the file is called so
    assert item.name == "odd:3"
    assert len(item.text.split()) == 100
    assert out(gather("@file:rows.py:200-210", root=root)) == {
        "rows.py:200-210": "it has only 100 lines"
    }


def test_rows_that_are_in_already_are_not_in_twice(root: Path) -> None:
    write(root, "rows.py", text="".join(f"{row}\n" for row in range(1, 101)))
    found = gather("@file:rows.py:10-20 @file:rows.py @file:rows.py:5-30", root=root)
    assert keys(found) == ["file:rows.py"]
    assert out(found) == {
        "rows.py:10-20": "already included with rows.py",
        "rows.py:5-30": "already included with rows.py",
    }
    found = gather("@file:rows.py:10-20 @file:rows.py", root=root, dropped=["file:rows.py"])
    assert keys(found) == ["file:rows.py:10-20"]


REFUSED = [
    ("@file:nope.py", "nope.py", "there is no such file"),
    ("@file:scr/a.py", "scr/a.py", "there is no such file; did you mean src/a.py?"),
    ("@dir:scr/net", "scr/net", "there is no such folder; did you mean src/net?"),
    ("@file:*.rs", "*.rs", "the project has no such file"),
    ("@file:.env", ".env", reading.SECRET_NAME),
    ("@file:key.txt", "key.txt", reading.SECRET_TEXT),
    ("@file:x.bin", "x.bin", "it is binary"),
    ("@file:same.py", "same.py", "there are several: one/same.py, two/same.py"),
    ("@dir:README.md", "README.md", "it is a file: write @file:README.md"),
    ("@dir:~", "~", "it is your home directory, or above it"),
    ("@dir:/", "/", "it is your home directory, or above it"),
    ("@dir:hollow", "hollow", "all its files are ignored"),
    ("@buffer", "buffer", "no file is open"),
    ("@buffer:zz", "zz", "there is no such buffer, and there is no such file"),
    ("@selection", "selection", "nothing is selected"),
    ("@terminal", "terminal", "no terminal has any output"),
    ("@quickfix", "quickfix", "the quickfix list is empty"),
    ("@diagnostics", "diagnostics", "there are no diagnostics"),
    ("@symbol:zork", "zork", "no definition in the project"),
    ("@rules:none", "none", "there are no such rules"),
    ("@codebase", "codebase", "there is no question to search with"),
    ("@commit:zzz", "commit zzz", "there is no such commit"),
    ("@diff", "diff", "nothing is changed"),
]


@pytest.mark.parametrize(("text", "name", "why"), REFUSED)
def test_a_missing_item_says_why(root: Path, text: str, name: str, why: str) -> None:
    write(root, ".env", text="A=1\n")
    write(root, "key.txt", text=KEY)
    write(root, "one/same.py", "two/same.py")
    (root / "x.bin").write_bytes(b"\0" * 9)
    (root / "hollow").mkdir()
    git(root, "add", "-A")
    git(root, "commit", "-qm", "two")
    found = gather(text, root=root, codebase=FakeCodebase())
    assert out(found) == {name: why}
    assert len(found) == 1
    assert found[0].text == ""


def test_a_folder_adds_its_names_and_its_readable_files(root: Path, home: Path) -> None:
    write(root, "lib/a.py", "lib/.env", "lib/yarn.lock", "lib/app.min.js", "lib/deep/b.py")
    write(root, "lib/key.txt", text=KEY)
    (root / "lib/pic.png").write_bytes(b"\x89PNG\0")
    (root / "lib/link").symlink_to(home)
    (root / ".gitignore").write_text("*.log\n")
    write(root, "lib/x.log")
    found = gather("@dir:lib", root=root)
    assert keys(found) == ["dir:lib", "file:lib/a.py", "file:lib/deep/b.py"]
    assert {item.kind for item in found} == {"dir"}
    assert "deep/b.py\n" in found[0].text
    assert "x.log" not in found[0].text
    assert out(found) == {
        "lib/.env": reading.SECRET_NAME,
        "lib/app.min.js": "minified, or a source map",
        "lib/key.txt": reading.SECRET_TEXT,
        "lib/link": "a symbolic link",
        "lib/pic.png": "binary (.png)",
        "lib/yarn.lock": "a lock file",
    }


def test_a_large_folder_is_named_to_its_end(root: Path) -> None:
    write(root, *(f"many/f{number:03}.py" for number in range(260)))
    found = gather("@dir:many", root=root)
    assert len(keys(found)) == 201
    assert found[0].text.count("\n") == 260
    left = out(found)
    assert left["many/f200.py"] == "the folder has over 200 files"
    assert left["many: the rest"] == "40 more files are not included"


def test_unsaved_text_replaces_the_text_of_a_file(root: Path) -> None:
    for put in (offered, attached):
        buffer = put("buffer", "src/a.py", "unsaved\nrows\n", root / "src/a.py")
        for text in ("@file:src/a.py", "@file:a.py", "@dir:src", "@buffer"):
            here = str(root / "src/a.py")
            found = gather(text, root=root, path=here, attachments=[buffer])
            texts = [item.text for item in found if item.path == here]
            assert texts == ["unsaved\nrows\n"], text
    (item,) = gather("@file:src/a.py", root=root, attachments=[buffer])
    assert item.key == "buffer:src/a.py"
    whole, part = gather("@file:src/a.py:2-2", root=root, attachments=[buffer])
    assert (whole.text, part.note) == ("unsaved\nrows\n", "already included with src/a.py")
    buffer["is_offered"] = True
    (item,) = gather("@file:src/a.py:2-2", root=root, attachments=[buffer])
    assert (item.text, item.note) == ("rows\n", "not saved yet")
    new = offered("buffer", "src/new.py", "n\n", root / "src/new.py")
    (item,) = gather("@file:src/new.py", root=root, attachments=[new])
    assert item.text == "n\n"
    assert gather("see", root=root, attachments=[buffer]) == []


def test_unsaved_changes_are_in_the_attached_diff(root: Path) -> None:
    unsaved = offered("buffer", "src/a.py", "x = 3\n", root / "src/a.py")
    for text in ("@diff", "/review"):
        (item,) = gather(text, root=root, attachments=[unsaved])
        assert (item.kind, item.note) == ("diff", "with unsaved changes")
        assert "-x = 1\n+x = 3\n" in item.text


COMMANDS = ["/explain", "/fix", "/review", "/trace", "/tests it", "/own", "see"]


@pytest.mark.parametrize("text", COMMANDS)
def test_an_explicitly_attached_item_is_never_left_out(root: Path, text: str) -> None:
    write(root, ".lcursor/prompts/own.md", text="Say it in French.")
    kinds: tuple[AttachmentKind, ...] = ("buffer", "diagnostics", "quickfix", "terminal", "text")
    sent = [attached(kind, f"own {kind}", f"of {kind}") for kind in kinds]
    spare = [offered(kind, f"other {kind}", "spare") for kind in kinds]
    found = gather(text, root=root, attachments=[*sent, *spare])
    assert {f"{kind}:own {kind}" for kind in kinds} <= set(keys(found))
    if text == "see":
        assert not [item for item in found if item.text == "spare"]


def test_items_that_are_stored_with_a_question(root: Path) -> None:
    sent = [
        attached("text", "note", "x"),
        attached("text", "key", KEY),
        attached("buffer", ".env", "A=1\n", root / ".env"),
        attached("text", "dropped", "y"),
        offered("buffer", "src/a.py", "x = 3\n", root / "src/a.py"),
        offered("selection", "src/a.py:1", "x", root / "src/a.py"),
    ]
    found = storable(sent, root=root, dropped=["text:dropped"])
    assert [each["name"] for each in found] == ["note", "src/a.py:1"]


def test_the_buffer_one_is_in(root: Path) -> None:
    here = str(root / "src/a.py")
    (item,) = gather("@buffer", root=root, path=here)
    assert (item.kind, item.key, item.text) == ("buffer", "file:src/a.py", "x = 1\n")
    other = attached("buffer", "README.md", "read\n", root / "README.md")
    found = gather("@buffer and @buffer:readme", root=root, path=here, attachments=[other])
    assert [item.text for item in found] == ["x = 1\n", "read\n"]
    scratch = attached("buffer", "[No Name]", "scratch\n")
    (item,) = gather("@buffer", root=root, attachments=[scratch])
    assert item.text == "scratch\n"


def test_items_that_only_the_editor_knows(root: Path) -> None:
    sent = [
        attached("selection", "src/a.py:1-1", "x = 1", root / "src/a.py"),
        attached("diagnostics", "diagnostics", "src/a.py:1: error: boom"),
        attached("terminal", "zsh", "$ make"),
        attached("terminal", "pytest", "1 failed"),
    ]
    found = gather("@selection @diagnostics @terminal:py", root=root, attachments=sent)
    assert sorted(keys(found)) == [
        "diagnostics",
        "selection:src/a.py:1-1:1",
        "terminal:pytest",
        "terminal:zsh",  # it was sent, so it is shown in the bill
    ]
    assert len({item.key for item in found}) == len(found)


def test_secrets_are_kept_also_when_the_editor_sends_them(root: Path) -> None:
    sent = [
        attached("buffer", ".env", "A=1\n", root / ".env"),
        attached("terminal", "zsh", f"$ cat key\n{KEY}"),
        attached("selection", "prod.conf:1", "password", root / "prod.conf"),
        attached("quickfix", "quickfix", "  \n"),
    ]
    found = gather("see", root=root, attachments=sent, secrets=["prod.*"])
    assert keys(found) == []
    assert out(found) == {
        ".env": reading.SECRET_NAME,
        "zsh": reading.SECRET_TEXT,
        "prod.conf:1": "a pattern of privacy.exclude names it: prod.*",
        "quickfix": "it is empty",
    }


def test_commands_add_their_items_and_no_others(root: Path) -> None:
    here = root / "src/a.py"
    sent = [
        offered("buffer", "src/a.py", "x = 1\n", here),
        offered("diagnostics", "diagnostics", "boom"),
        offered("terminal", "zsh", "$ make"),
    ]
    ask = partial(gather, root=root, path=str(here), attachments=sent)
    assert keys(ask("/explain")) == ["buffer:src/a.py"]
    assert ask("/explain")[0].note == "nothing is selected"
    assert keys(ask("/fix")) == ["buffer:src/a.py", "diagnostics"]
    sent.append(attached("selection", "src/a.py:1", "x", here))
    assert keys(ask("/fix it")) == ["selection:src/a.py:1:1", "diagnostics"]
    del sent[1]
    assert keys(ask("/fix")) == ["selection:src/a.py:1:1"]
    assert out(ask("/fix")) == {}


def test_code_named_in_a_stack_trace_is_added(root: Path, home: Path) -> None:
    write(root, "src/deep.py", text="".join(f"{row}\n" for row in range(1, 201)))
    write(home, "outside.py")
    trace = (
        f'  File "{root}/src/deep.py", line 100, in f\n  File "{root}/src/deep.py", line 110\n'
        f'  File "{home}/outside.py", line 1\n  at Url (url.py:1:1)\n  gone.py:3\n'
    )
    found = gather(f"/trace\n{trace}", root=root)
    assert keys(found) == ["file:src/deep.py:80-130", "file:src/net/url.py:1-1"]
    assert found[0].note == "named in the trace"
    sent = [attached("terminal", "zsh", trace)]
    found = gather("/trace", root=root, attachments=sent)
    assert keys(found)[1:] == ["file:src/deep.py:80-130", "file:src/net/url.py:1-1"]


def test_an_existing_test_is_added_as_an_example(root: Path) -> None:
    here = str(root / "src/net/url.py")
    write(root, "tests/test_other.py", text="other\n")
    found = gather("/tests", root=root, path=here)
    assert [(item.name, item.note) for item in found] == [
        ("src/net/url.py", "nothing is selected"),
        ("tests/test_other.py", "example of a test"),
    ]
    write(root, "tests/net/test_url.py", "web/url.test.ts", text="own\n")
    file_names._cache.clear()
    assert gather("/tests", root=root, path=here)[1].name == "tests/net/test_url.py"
    write(root, "tests/net/test_url.py", text="x\n" * 20_000)  # too long to be an example
    assert gather("/tests", root=root, path=here)[1].name == "tests/test_other.py"
    assert keys(gather("/tests", root=root, path=str(root / "README.md"))) == ["file:README.md"]


def test_a_commit_message_is_about_all_where_nothing_is_staged(root: Path) -> None:
    assert out(gather("/commit", root=root)) == {"diff --staged": "nothing is changed"}
    write(root, "src/a.py", text="x = 2\n")
    (item,) = gather("/commit", root=root)
    assert (item.name, item.note) == ("diff src/a.py", "nothing is staged: all changes")
    here = attached("buffer", "src/a.py", "x = 3\n", root / "src/a.py")
    same = attached("buffer", "src/a.py", "x = 2\n", root / "src/a.py")
    saved = gather("@file:src/a.py @diff", root=root, attachments=[same])
    assert not any("saved yet" in item.note for item in saved)
    found = gather("/commit", root=root, attachments=[here])
    diff = next(item for item in found if item.kind == "diff")
    assert diff.note == "nothing is staged: all changes; with unsaved changes"
    git(root, "add", "-A")
    write(root, "README.md", text="more\n")
    assert [one.name for one in gather("/commit", root=root)] == ["diff src/a.py"]


def test_a_prompt_of_the_project_reads_nothing_outside_of_it(root: Path, home: Path) -> None:
    write(home, "notes.md")
    text = "@file:~/notes.md @dir:/etc @file:src/a.py @file:/etc/passwd"
    write(root, ".lcursor/prompts/evil.md", text=text)
    found = gather("/evil", root=root)
    assert keys(found) == ["file:src/a.py"]
    assert len(out(found)) == 3
    assert keys(gather(text, root=root))[0] == "file:~/notes.md"  # typed by the user


def test_a_link_that_leads_out_is_reported_and_a_glob_does_not_take_it(
    root: Path, home: Path
) -> None:
    write(home, "notes.txt", text="mine\n")
    (root / "notes.txt").symlink_to(home / "notes.txt")
    (item,) = gather("@file:notes.txt", root=root)
    assert (item.text, item.note) == ("mine\n", f"a link to {home.resolve()}/notes.txt")
    assert keys(gather("@file:*.txt", root=root)) == []


def test_definitions_come_as_they_are_now(root: Path) -> None:
    write(root, "src/a.py", text="\n\n\ndef needle():\n    return 1\n\n\nx = 1\n")
    names = [SymbolLocation("src/a.py", "needle", "function", 0, 2)]
    (item,) = gather("@symbol:needle", root=root, codebase=FakeCodebase(names=names))
    assert (item.text, item.first_row) == ("def needle():\n    return 1\n", 3)
    assert item.note == "function needle"
    many = [SymbolLocation(f"f{number}.py", "needle", "function", 0, 1) for number in range(7)]
    write(root, *(f"f{number}.py" for number in range(7)), text="needle\n")
    found = gather("@symbol:needle", root=root, codebase=FakeCodebase(names=many))
    assert len(keys(found)) == 5
    assert out(found) == {"needle: 2 more definitions": "in f5.py:1, f6.py:1"}
    near = [SymbolLocation("src/a.py", "needles", "function", 0, 1)]
    found = gather("@symbol:needlez", root=root, codebase=FakeCodebase(names=near))
    assert out(found)["needlez"].endswith("; similar: needles")


def test_the_codebase_is_asked_with_the_question_and_says_why(root: Path) -> None:
    write(root, "b.py", text="1\n2\n3\n4\n")
    used = (
        SearchHit("src/a.py", 0, 1, "x = 1", "matching words", "A"),
        SearchHit("b.py", 1, 3, "2\n3", "similar meaning"),
        SearchHit(".env", 0, 1, "A=1", "matching words"),
    )
    left = tuple(
        SearchHit(f"c{number}.py", 0, 1, "", "token limit reached") for number in range(20)
    )
    fake = FakeCodebase(SearchResult(used, left, 9, "only 1 of 2 files are indexed yet"))
    found = gather("@codebase how is x set? @file:b.py", root=root, codebase=fake)
    assert fake.asked == ["how is x set?"]
    assert keys(found) == ["codebase:src/a.py:1-1", "file:b.py"]
    assert found[0].note == "matching words (only 1 of 2 files are indexed yet)"
    assert found[0].name == "src/a.py:1-1 A"
    notes = out(found)
    assert notes["b.py:2-3"] == "already included with b.py"
    assert notes[".env:1-1"] == reading.SECRET_NAME
    assert notes["20 weaker hits"] == "token limit reached: c0.py:1, c1.py:1, c2.py:1, …"
    assert len(notes) == 3
    fake.receipt = SearchResult(used[:1], left[:1])
    assert out(gather("@codebase x", root=root, codebase=fake)) == {
        "1 weaker hit": "token limit reached: c0.py:1"
    }
    gather('@codebase:"another thing" x', root=root, codebase=fake)
    assert fake.asked[-1] == "another thing"
    none = gather("@codebase x", root=root, codebase=FakeCodebase())
    assert out(none) == {"codebase": "nothing in the project matches the question"}


def test_without_an_index_the_project_is_searched_plainly(root: Path) -> None:
    write(root, "src/retry.py", text="def backoff():\n    return 2\n")
    for text in ("@codebase where is backoff?", "@symbol:backoff"):
        (item,) = gather(text, root=root)
        assert (item.path, item.text.split("(")[0]) == (str(root / "src/retry.py"), "def backoff")
    (item,) = gather("@codebase backoff @symbol:backoff", root=root)  # the same rows, once
    assert item.kind == "symbol"


def test_a_dropped_item_stays_in_the_list(root: Path) -> None:
    found = gather("@dir:src", root=root, dropped=["file:src/a.py", "nonsense"])
    assert keys(found) == ["dir:src", "file:src/net/url.py"]
    assert out(found) == {"src/a.py": DROPPED}
    again = gather("@dir:src", root=root)
    assert [item.key for item in again] == [item.key for item in found]


def test_rules_hold_for_what_is_attached(root: Path) -> None:
    write(root, "AGENTS.md", text="Be kind.\n")
    write(root, "src/net/AGENTS.md", text="No sockets.\n")
    write(root, ".cursor/rules/x.mdc", text="---\ndescription: by hand\n---\nX.\n")
    assert keys(gather("hello", root=root, with_rules=True)) == ["rules:AGENTS.md"]
    assert keys(gather("@file:url.py @rules:x", root=root, with_rules=True)) == [
        "rules:AGENTS.md",
        "rules:src/net/AGENTS.md",
        "file:src/net/url.py",
        "rules:.cursor/rules/x.mdc",
    ]
    assert keys(gather("hello", root=root)) == []


def test_gathering_can_be_cancelled_and_has_a_time_limit(root: Path) -> None:
    with pytest.raises(Cancelled):
        gather("@file:src/a.py", root=root, cancel=lambda: True)
    with pytest.raises(Cancelled):
        gather("@codebase x", root=root, codebase=FakeCodebase(), cancel=lambda: True)
    found = gather("@file:src/a.py @file:README.md", root=root, max_s=0)
    assert set(out(found).values()) == {"there was no time left to read it"}


def test_the_same_question_gives_the_same_items(root: Path) -> None:
    write(root, *(f"pkg/f{number}.py" for number in range(150)), text="x = 1\n" * 200)
    first = gather("@dir:pkg @diff @commit", root=root)
    assert gather("@dir:pkg @diff @commit", root=root) == first
