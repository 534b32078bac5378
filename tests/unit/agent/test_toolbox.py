"""Views and edits by a toolbox: what the model reads, and what it may change."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lcursor.agent.records import Shown, ToolCall
from lcursor.agent.tools.lookup import Lookup
from lcursor.agent.tools.tool import Test
from lcursor.changes.records import Check
from lcursor.config import AgentConfig, EditConfig
from lcursor.errors import Cancelled
from lcursor.project.redaction import PLACEHOLDER
from tests.unit.agent.toolboxes import ToolUser
from tests.unit.workspace.projects import Project, project

__all__ = ["project"]
CODE = "import os\n\n\ndef add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a - b\n"


@pytest.fixture
def agent(project: Project) -> ToolUser:
    project.repository({
        "a.py": CODE, "long.txt": "".join(f"line {n}\n" for n in range(1, 813)),
        "wide.txt": "y" * 2000 + "\n", "src/b.py": "b = 1\n", "src/deep/er/c.py": "c = 1\n",
        "empty.py": "", "bin": b"\0\1",
        "windows.txt": "a\r\nb\r\n",
    })  # fmt: skip
    return ToolUser(project)


def test_a_view_has_line_numbers_and_says_how_much_there_is(agent: ToolUser) -> None:
    found = agent.view("a.py")
    assert found.text.splitlines()[0] == "a.py lines 1–9 of 9"
    assert "     4\tdef add(a, b):\n     5\t    return a - b" in found.text
    assert (found.target, found.result) == ("a.py:1-9", "9 lines")
    assert found.shown == (Shown("a.py", 0, 9),)
    assert agent.view(f"{agent.tree.root}/a.py") == found


def test_a_long_file_is_cut_with_a_note(agent: ToolUser) -> None:
    found = agent.view("long.txt")
    (shown,) = found.shown
    assert found.text.startswith(f"long.txt lines 1–{shown.last_row} of 812\n")
    assert found.text.endswith(f"(view_range [{shown.last_row + 1}, 200] has the rest)")
    assert f"\tline {shown.last_row}\n" in found.text
    part = agent.view("long.txt", [800, -1])
    assert part.shown == (Shown("long.txt", 799, 812),)
    assert part.text.startswith("long.txt lines 800–812 of 812\n")
    assert "1,500 more characters" in agent.view("wide.txt").text


ERRORS = [
    (("missing.py", ()), "no file"),
    (("bin", ()), "binary"),
    (("../elsewhere", ()), "outside of the project"),
    (("a.py", (5, 3)), "is not in the 9 lines"),
    (("a.py", (90, 99)), "is not in the 9 lines"),
    (("a.py", (1,)), "two line numbers"),
    (("a.py#nothing", ()), "defines no nothing"),
    (("out:5", ()), "no stored output"),
]


@pytest.mark.parametrize(("given", "words"), ERRORS)
def test_an_impossible_view_is_an_error(
    agent: ToolUser, given: tuple[str, tuple[int, ...]], words: str
) -> None:
    found = agent.view(*given)
    assert found.is_error
    assert words in found.text


def test_a_folder_is_shown_with_two_levels(agent: ToolUser) -> None:
    lines = agent.view(".").text.splitlines()
    assert {"a.py", "src/", "src/b.py", "src/deep/"} <= {*lines}
    assert not any("er" in line.split("/") for line in lines)
    assert agent.view("src").text == "src/\nb.py\ndeep/\ndeep/er/"


def test_an_edit_shows_the_lines_around_it(agent: ToolUser) -> None:
    agent.view("a.py")
    found = agent.replace(
        "a.py", "def add(a, b):\n    return a - b", "def add(a, b):\n    return a + b"
    )
    assert not found.is_error
    assert found.text.splitlines()[0] == "edited a.py: 1 line at 5"
    assert "     5\t    return a + b" in found.text
    assert "new problem" not in found.text
    assert found.result == "1 line changed"
    assert agent.text("a.py") == CODE.replace("-", "+", 1)
    again = agent.replace(
        "a.py", "def add(a, b):\n    return a - b", "def add(a, b):\n    return a + b"
    )
    assert again.is_error
    assert "made already" in again.text


def test_lines_that_were_not_read_are_not_changed(agent: ToolUser) -> None:
    found = agent.replace("a.py", "import os", "import re")
    assert found.is_error
    assert "not read these lines" in found.text
    assert "     1\timport os" in found.text
    assert agent.text("a.py") == CODE
    assert not agent.replace("a.py", "import os", "import re").is_error  # they were shown now


def test_lines_that_changed_since_are_shown_again(agent: ToolUser) -> None:
    agent.view("a.py")
    (agent.tree.path / "a.py").write_text(CODE.replace("a - b", "a * b"))
    found = agent.replace(
        "a.py", "def add(a, b):\n    return a * b", "def add(a, b):\n    return 1"
    )
    assert found.is_error
    assert "have changed since" in found.text
    assert "     5\t    return a * b" in found.text
    # Unchanged lines are still known.
    assert not agent.replace("a.py", "import os", "import re").is_error


@pytest.mark.sandbox
def test_lines_that_a_command_printed_may_be_changed(agent: ToolUser) -> None:
    agent.bash("head -n 1 a.py")
    assert not agent.replace("a.py", "import os", "import re").is_error
    assert agent.replace("a.py", "def sub(", "def minus(").is_error


def test_only_new_syntax_errors_are_reported(agent: ToolUser) -> None:
    agent.view("a.py")
    found = agent.replace("a.py", "import os", "import os)")
    assert "new problem: line 1: " in found.text
    found = agent.replace("a.py", "def sub(a, b):", "def minus(a, b):")
    assert "new problem" not in found.text


@pytest.mark.parametrize("name", [".vscode/a[1].json", "vendor/shim.js", ".idea/x.xml"])
def test_a_new_file_counts_although_git_ignores_it(agent: ToolUser, name: str) -> None:
    (agent.tree.path / ".gitignore").write_text(".vscode/\n*.js\n")
    agent.call("str_replace_editor", command="create", path=name, file_text="{}\n")
    agent.call("bash", command="touch .vscode/of-a-command; true")
    assert {each.path for each in agent.tree.changed()} == {".gitignore", name}
    before = agent.tree.checkpoint()
    (agent.tree.path / name).unlink()
    agent.tree.restore(before)
    assert agent.text(name) == "{}\n"


def test_files_are_created_and_lines_inserted(agent: ToolUser) -> None:
    made = agent.call(
        "str_replace_editor", command="create", path="new/n.py", file_text="x = 1\ny = (\n"
    )
    assert made.text.startswith("edited new/n.py: 2 lines at 1\n")
    assert "new problem: line " in made.text
    exists = agent.call("str_replace_editor", command="create", path="a.py", file_text="")
    assert "not read" in exists.text
    insert = {"command": "insert", "path": "new/n.py", "new_str": "    2)\n"}
    assert not agent.call("str_replace_editor", insert_line=2, **insert).is_error
    assert agent.text("new/n.py") == "x = 1\ny = (\n    2)\n"
    far = agent.call("str_replace_editor", insert_line=9, **insert)
    assert "has 3 lines" in far.text
    unread = {"command": "insert", "path": "long.txt", "insert_line": 5, "new_str": "x"}
    assert "not read" in agent.call("str_replace_editor", **unread).text
    empty = {"command": "insert", "path": "empty.py", "insert_line": 0, "new_str": "a = 1"}
    assert not agent.call("str_replace_editor", **empty).is_error
    assert agent.text("empty.py") == "a = 1\n"


def test_a_placeholder_never_replaces_a_secret_value(agent: ToolUser) -> None:
    token = "ghp_" + "a" * 36
    text, shown = f'A = "{token}"\nB = 1\n', f'A = "{PLACEHOLDER}"\nB = 2\n'
    create = {"command": "create", "path": "key.py"}
    agent.call("str_replace_editor", file_text=text, **create)
    for found in (
        agent.call("str_replace_editor", file_text=shown, **create),
        agent.call("str_replace_editor", command="create", path="copy.py", file_text=shown),
        agent.replace("key.py", f'A = "{PLACEHOLDER}"\nB = 1', "B = 2"),
        agent.replace("key.py", text, shown),
    ):
        assert found.is_error
        assert "a secret value that you were not shown" in found.text
    assert agent.text("key.py") == text
    assert not (agent.tree.path / "copy.py").exists()
    assert not agent.replace("key.py", "B = 1", "B = 2").is_error


def test_a_placeholder_that_is_in_a_file_can_be_changed(agent: ToolUser) -> None:
    (agent.tree.path / "own.py").write_text(f'A = "{PLACEHOLDER}"\n')
    agent.view("own.py")
    assert not agent.replace("own.py", f'A = "{PLACEHOLDER}"', f'B = "{PLACEHOLDER}"').is_error
    assert agent.text("own.py") == f'B = "{PLACEHOLDER}"\n'


def test_edits_keep_line_ends(agent: ToolUser) -> None:
    agent.view("windows.txt")
    assert not agent.replace("windows.txt", "a\nb", "a\nc").is_error
    assert (agent.tree.path / "windows.txt").read_bytes() == b"a\r\nc\r\n"
    mixed = agent.tree.path / "mixed.txt"
    mixed.write_bytes(b"a\r\nb\r\nc\n")
    agent.view("mixed.txt")
    assert not agent.replace("mixed.txt", "a\nb", "a\nx\ny").is_error
    insert = {"command": "insert", "path": "mixed.txt", "insert_line": 4, "new_str": "d\n"}
    assert not agent.call("str_replace_editor", **insert).is_error
    assert mixed.read_bytes() == b"a\r\nx\r\ny\r\nc\nd\n"


def test_a_large_edit_is_shown_in_part(agent: ToolUser) -> None:
    text = "".join(f"value_{n} = {n}\n" for n in range(400))
    made = agent.call("str_replace_editor", command="create", path="n.py", file_text=text)
    assert "edited n.py: 400 lines at 1" in made.text
    assert "… " in made.text
    assert agent.text("n.py") == text


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (ToolCall("nothing", {}), "there is no tool"),
        (ToolCall("str_replace_editor", {"command": "delete", "path": "a.py"}), "must be view"),
        (
            ToolCall("rewrite", {"path": "a.py", "region": "r", "instruction": "x"}),
            "there is no tool",
        ),
        *(
            (ToolCall(tool, given), f"{tool} needs the argument {missing!r}")
            for tool, given, missing in (
                ("str_replace_editor", {"path": "x"}, "command"),
                ("str_replace_editor", {"command": "create", "path": "x"}, "file_text"),
                ("str_replace_editor", {"command": "str_replace", "path": "x"}, "old_str"),
                ("str_replace_editor", {"command": "insert", "path": "x"}, "insert_line"),
                (
                    "str_replace_editor",
                    {"command": "insert", "path": "x", "insert_line": 0},
                    "new_str",
                ),
                ("bash", {}, "command"),
                ("grep", {"path": "a.py"}, "pattern"),
                ("glob", {}, "pattern"),
                ("search", {}, "query"),
                ("finish", {}, "summary"),
            )
        ),
    ],
)
def test_an_impossible_call_is_an_error(agent: ToolUser, call: ToolCall, words: str) -> None:
    found = agent.tools.run(call, lambda: False)
    assert found.is_error
    assert words in found.text


@pytest.mark.parametrize("bug", [KeyError("path"), TypeError("x"), RecursionError()])
def test_a_bug_in_a_tool_is_logged_and_no_fault_of_the_model(
    bug: Exception, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def grep(*_: object) -> None:
        raise bug

    project.repository({"a.py": CODE})
    logged: list[Exception] = []
    agent = ToolUser(project, log=logged.append)
    monkeypatch.setattr(Lookup, "grep", grep)
    found = agent.call("grep", pattern="x", path="a.py")
    assert found.is_error
    assert found.text == "grep failed because of a bug in it. Do this in another way."
    assert logged == [bug]


def test_lines_that_were_shown_are_restored(project: Project) -> None:
    project.repository({"a.py": CODE})
    first = ToolUser(project)
    shown = first.view("a.py").shown
    second = ToolUser(project, folder="again")
    second.tools.remember([*shown, Shown("gone.py", 0, 3)])
    assert not second.replace("a.py", "import os", "import re").is_error


# The dialect "choice".


def rewrite(
    path: str, lines: Sequence[str], first: int, last: int, instruction: str, *_: object
) -> Sequence[str] | str:
    """Rewrite as a model would."""
    if "fail" in instruction:
        return "the answer was no code"
    return [line.replace("-", "+") for line in lines[first:last]]


def choice(project: Project, **given: object) -> ToolUser:
    if not project.root.exists():
        project.repository({"a.py": CODE, "src/b.py": "b = 1\n", "test_a.py": "import a\n"})

    given = {"dialect": "choice", "rewrite": rewrite, **given}
    return ToolUser(project, **given)  # type: ignore[arg-type]


def test_regions_are_functions_with_ids(project: Project) -> None:
    agent = choice(project)
    found = agent.view("a.py")
    assert "a.py#add:\n     4\tdef add(a, b):" in found.text
    assert agent.tools.known().regions == {
        "a.py#top": Shown("a.py", 0, 1),
        "a.py#add": Shown("a.py", 3, 5),
        "a.py#sub": Shown("a.py", 7, 9),
    }
    assert agent.view("a.py").text == found.text  # the same ids
    assert agent.view("a.py#sub").shown == (Shown("a.py", 7, 9),)


@pytest.mark.sandbox
def test_a_region_is_rewritten(project: Project) -> None:
    agent = choice(project)
    agent.view("a.py")
    found = agent.call("rewrite", path="a.py", region="a.py#add", instruction="add")
    assert "edited a.py: 1 line at 5" in found.text
    assert agent.text("a.py") == CODE.replace("-", "+", 1)
    problem = agent.call("rewrite", path="a.py", region="a.py#sub", instruction="fail")
    assert problem.text == "a.py#sub was not changed: the answer was no code"
    assert agent.call("rewrite", path="a.py", region="r9", instruction="x").is_error
    agent.bash("sed -i 's/a - b/a * b/' a.py")
    changed = agent.call("rewrite", path="a.py", region="a.py#sub", instruction="fail")
    assert "have changed since" in changed.text  # the model was not asked


@pytest.mark.sandbox
def test_a_rewrite_can_be_tested_before_it_is_made(project: Project) -> None:
    tests: list[Check | None] = []

    def tested(
        path: str, lines: Sequence[str], first: int, last: int, _: str, seen: str, test: Test
    ) -> Sequence[str]:
        good = [line.replace("-", "+", 1) if first <= row < last else line
                for row, line in enumerate(lines)]  # fmt: skip
        tests.extend([test(lines), test(good), test(["raise SystemExit(3)"])])
        assert it.text("a.py") == CODE
        return good[first:last]

    test = 'python3 -c "import a; print(a.add(1, 2)); assert a.add(1, 2) == 3"'
    it = choice(project, edit=EditConfig(test=test), rewrite=tested)
    it.view("a.py")
    it.call("rewrite", path="a.py", region="a.py#add", instruction="add")
    assert [each and each.is_ok for each in tests] == [False, True, False]
    assert tests[0]
    assert "-1" in tests[0].text.splitlines()
    assert it.text("a.py") == CODE.replace("-", "+", 1)


def test_without_tests_a_rewrite_has_none(project: Project) -> None:
    def untested(
        path: str, lines: Sequence[str], first: int, last: int, _: str, seen: str, test: Test
    ) -> str:
        return str(test(lines))

    for given in ({}, {"edit": EditConfig(test="true"), "level": "none"}):
        agent = choice(project, rewrite=untested, folder=str(len(given)), **given)
        agent.view("a.py")
        found = agent.call("rewrite", path="a.py", region="a.py#add", instruction="add")
        assert found.text.endswith("None")


@pytest.mark.sandbox
def test_names_that_the_model_may_use(project: Project) -> None:
    edit = EditConfig(test="python3 test_a.py", lint="check {path}")
    agent = choice(project, edit=edit, config=AgentConfig(allow=("make docs",)))
    known = agent.tools.known()
    assert {*known.paths} == {"a.py", "src/b.py", "src", "test_a.py"}
    assert known.symbols == {"a.py": ("add", "sub")}
    assert known.commands == {"test": "python3 test_a.py", "make docs": "make docs"}
    agent.bash("echo 'File \"src/b.py\", line 1: gone.py, /etc/passwd, ../x.py'")
    agent.view("a.py")
    known = agent.tools.known()
    assert known.paths[:2] == ("a.py", "src/b.py")
    assert known.symbols == {"a.py": ("add", "sub")}
    agent.call("rewrite", path="a.py", region="a.py#add", instruction="add")
    assert agent.tools.known().commands["lint"] == "check a.py"


def test_ids_are_restored_in_the_order_of_the_log(project: Project) -> None:
    agent = choice(project)
    shown = [*agent.view("a.py#sub").shown, *agent.view("a.py").shown]
    regions = agent.tools.known().regions
    again = choice(project, folder="again")
    again.tools.remember(shown)
    assert again.tools.known().regions == regions


@pytest.mark.sandbox
def test_a_stopped_run_is_not_an_observation(project: Project) -> None:
    project.repository({"a.py": CODE})
    agent = ToolUser(project)
    with pytest.raises(Cancelled):
        agent.tools.run(ToolCall("bash", {"command": "sleep 60"}), lambda: True)
