"""A commit message for what is staged in a real repository, by a scripted server."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lcursor.edit import commit
from lcursor.errors import Cancelled, EditFailed, NothingStaged
from lcursor.llm.client import ChatClient
from lcursor.llm.pool import Connection
from lcursor.llm.records import ServedModel
from lcursor.stop import Stop
from tests.fakes.chat_server import Answer as Said
from tests.fakes.chat_server import ChatServer, Hang, say
from tests.waiting import wait_for

Reach = Callable[[ChatServer], Connection]
SUBJECT = "Say hello to the world"
LONG = "Say hello to the world and to all those who live in it, whoever they are and wherever"
DIFF = """\
diff --git a/hello.py b/hello.py
index 9bc8014..64a8c88 100644
--- a/hello.py
+++ b/hello.py
@@ -1 +1 @@
-print('hello')
+print('hello, world')
"""


def git(root: Path, *words: str) -> None:
    names = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", str(root), *names, *words], check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "hello.py").write_text("print('hello')\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "Begin with a greeting")
    return folder


@pytest.fixture
def reach() -> Iterator[Reach]:
    with ExitStack() as stack:

        def connection(server: ChatServer) -> Connection:
            stack.enter_context(server)
            client = ChatClient(ServedModel("fake", server.url))
            stack.callback(client.close)
            return Connection("fake", client, client.probe())

        yield connection


def stage(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    git(root, "add", name)


def asked(server: ChatServer) -> str:
    return str(server.bodies[-1]["messages"][-1]["content"])


def test_it_is_written_from_what_is_staged_and_nothing_else(root: Path, reach: Reach) -> None:
    stage(root, "hello.py", "print('hello, world')\n")
    (root / "hello.py").write_text("print('not staged')\n")
    server = ChatServer([say(f"{SUBJECT}.\n", "\nIt was ", "too short.")])
    text, note = commit.message(reach(server), root, Stop(), rules="Be brief.")
    assert text == f"{SUBJECT}\n\nIt was too short."
    assert note == ""
    said = asked(server)
    assert "+print('hello, world')" in said
    assert "hello.py (+1 -1)" in said
    assert "Begin …" in said
    assert "greeting" not in said
    assert "Be brief." in said
    assert "not staged" not in said


def test_from_a_folder_below_and_before_the_first_commit(tmp_path: Path, reach: Reach) -> None:
    git(tmp_path, "init", "-q")
    stage(tmp_path, "lib/a.py", "x = 1\n")
    server = ChatServer([say("Add x")])
    assert commit.message(reach(server), tmp_path / "lib", Stop())[0] == "Add x"
    assert "+x = 1" in asked(server)


def test_nothing_staged_says_what_to_do(root: Path, reach: Reach) -> None:
    (root / "hello.py").write_text("print('changed')\n")
    server = ChatServer()
    with pytest.raises(NothingStaged, match="nothing is staged") as caught:
        commit.message(reach(server), root, Stop())
    assert "git add" in caught.value.hint
    assert not server.bodies


def test_a_folder_without_git_says_so(tmp_path: Path, reach: Reach) -> None:
    with pytest.raises(NothingStaged, match="no git repository"):
        commit.message(reach(ChatServer()), tmp_path, Stop())


def test_secrets_are_named_and_not_shown(root: Path, reach: Reach) -> None:
    stage(root, ".env", "TOKEN=abc123secret\n")
    stage(root, "hello.py", "print('x')\n")
    server = ChatServer([say("Change it")])
    _, note = commit.message(reach(server), root, Stop())
    assert "abc123secret" not in asked(server)
    assert ".env" in note
    stage(root, "own.txt", "hidden word\n")
    _, note = commit.message(reach(server), root, Stop(), secrets=["own.txt"])
    assert "hidden word" not in asked(server)
    assert "own.txt" in note


def test_what_does_not_fit_is_cut_and_reported(root: Path, reach: Reach) -> None:
    stage(root, "big.py", "".join(f"value_{number} = {number}\n" for number in range(4000)))
    stage(root, "hello.py", "print('small')\n")
    server = ChatServer([say("Add values")], context_tokens=2048)
    _, note = commit.message(reach(server), root, Stop())
    said = asked(server)
    assert server.tokens(said) < 2048 - commit.ANSWER_TOKENS
    assert "+print('small')" in said
    assert "+value_0 = 0" in said
    assert "+value_3999 = 3999" not in said
    assert "more rows of this file are not shown" in said
    assert note == "The model saw big.py in part"


def test_deleted_renamed_and_binary_files(root: Path, reach: Reach) -> None:
    git(root, "mv", "hello.py", "greeting.py")
    (root / "image.bin").write_bytes(bytes(range(256)) * 20)
    git(root, "add", ".")
    server = ChatServer([say("Rename the greeting")])
    text, _ = commit.message(reach(server), root, Stop())
    assert text == "Rename the greeting"
    assert "rename to greeting.py" in asked(server)


def test_stopping_lets_go_at_once(root: Path, reach: Reach) -> None:
    stage(root, "hello.py", "print('x')\n")
    server = ChatServer([Said([Hang()])])
    cancel = Stop()
    connection = reach(server)

    def stop() -> None:
        wait_for(lambda: server.bodies)
        cancel.set()

    threading.Thread(target=stop).start()
    with pytest.raises(Cancelled):  # the server would never end
        commit.message(connection, root, cancel)


def test_an_empty_answer_is_an_error(root: Path, reach: Reach) -> None:
    stage(root, "hello.py", "print('x')\n")
    with pytest.raises(EditFailed, match="no commit message"):
        commit.message(reach(ChatServer([say("  \n"), say("```")])), root, Stop())


def test_a_first_line_that_is_too_long_is_asked_for_again(root: Path, reach: Reach) -> None:
    stage(root, "hello.py", "print('hello, world')\n")
    server = ChatServer([say(f"{LONG}\n\nIt was short."), say(SUBJECT)])
    text, _ = commit.message(reach(server), root, Stop())
    assert text == f"{SUBJECT}\n\nIt was short."
    first, second = (body["messages"] for body in server.bodies)
    assert second[: len(first)] == first  # what was read stays in the cache
    assert second[len(first)]["content"] == LONG
    assert f"{len(LONG)} characters" in second[-1]["content"]


def test_a_first_line_that_stays_too_long_goes_on_below(root: Path, reach: Reach) -> None:
    stage(root, "hello.py", "print('hello, world')\n")
    server = ChatServer([say(LONG), say(f"{LONG} else")])
    text, _ = commit.message(reach(server), root, Stop())
    rows = text.split("\n")
    assert rows[0] == "Say hello to the world and to all those who live in it, whoever they …"
    assert rows[1] == ""
    assert " ".join(rows[2:]) == LONG
    assert max(map(len, rows)) <= commit.WIDTH


def test_a_copy_of_the_diff_is_no_message(root: Path, reach: Reach) -> None:
    stage(root, "hello.py", "print('hello, world')\n")
    server = ChatServer([say(f"```diff\n{DIFF}```"), say(f"`{SUBJECT}`")])
    assert commit.message(reach(server), root, Stop())[0] == SUBJECT
    assert "no commit message" in server.bodies[1]["messages"][-1]["content"]
    with pytest.raises(EditFailed, match="no commit message"):
        commit.message(reach(ChatServer([say(DIFF), say(DIFF)])), root, Stop())


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("Add a thing", "Add a thing"),
        ("Add a thing.", "Add a thing"),
        ("`Add a thing`", "Add a thing"),
        ('"Add a thing"\n', "Add a thing"),
        ("**Add a thing**", "Add a thing"),
        ("# `Add a thing`", "Add a thing"),
        ("Rename `a` to `b`", "Rename `a` to `b`"),
        ("`a` becomes `b`", "`a` becomes `b`"),
        ("``", ""),
        ("Commit message: Add a thing", "Add a thing"),
        ("**Commit message:**\n\nAdd a thing", "Add a thing"),
        ("Here is the commit message:\n\n```\nAdd a thing\n\nBody.\n```", "Add a thing\n\nBody."),
        ("```text\nAdd a thing\n```\nI hope it helps!", "Add a thing"),
        ("Add a thing\nBody right below.", "Add a thing\n\nBody right below."),
        ("Wait...", "Wait..."),
        ("Commit messages are made by the model", "Commit messages are made by the model"),
        ("", ""),
        ("```\n```", ""),
        (f"```diff\n{DIFF}```\n", ""),
        (f"```diff\n{DIFF}", ""),
        (f"Add a thing\n\n{DIFF}", "Add a thing"),
        (f"```diff\n{DIFF}```\n\nAdd a thing", "Add a thing"),
        (f"```diff\n{DIFF}```\n```\nAdd a thing\n```\n", "Add a thing"),
        ("Add a thing\n\nThese files are staged:\na.py (+1 -1)\n", "Add a thing"),
        ("Add a thing\n\n- one\n- two", "Add a thing\n\n- one\n- two"),
    ],
)
def test_replies_are_tidied(reply: str, message: str) -> None:
    assert commit.tidied(reply) == message


def test_long_rows_of_the_body_are_broken_and_lists_keep_their_form() -> None:
    long = "word " * 30
    made = commit.tidied(f"Subject\n\n{long}\n\n- {long}\n- short")
    rows = made.split("\n")
    assert max(map(len, rows)) <= commit.WIDTH
    assert rows[:2] == ["Subject", ""]
    listed = rows[rows.index("- short") - 1]
    assert listed.startswith("  word")


@pytest.mark.parametrize(
    ("needs", "room", "given"),
    [
        ([10, 20], 100, [10, 20]),
        ([100, 10], 60, [50, 10]),
        ([100, 100], 60, [30, 30]),
        ([5], 0, [0]),
        ([], 10, []),
    ],
)
def test_room_is_shared(needs: list[int], room: int, given: list[int]) -> None:
    assert commit.shares(needs, room) == given


@pytest.mark.parametrize(
    ("subject", "is_repeated"),
    [
        ("Expose `FunctionAuth` in `__all__` (#3699)", True),
        ("expose FunctionAuth in __all__", True),
        ("Expose FunctionAuth", False),
        ("Expose `BasicAuth` in `__all__`", False),
        ("Release 1.2.3", True),
        ("Release 1.2.4", False),
        ("", False),
    ],
)
def test_a_subject_that_says_nothing_new_repeats_an_earlier_one(
    subject: str, is_repeated: bool
) -> None:
    earlier = ["Expose `FunctionAuth` in `__all__` (#3699)", "Release 1.2.3"]
    assert commit.repeats(subject, earlier) is is_repeated


@pytest.mark.parametrize(
    ("subject", "beginning"),
    [
        ("Expose `FunctionAuth` in `__all__` (#3699)", "Expose …"),
        ("feat(ui)!: add a button", "feat(ui)!: add …"),
        ("net/http: fix a leak", "net/http: fix …"),
        ("[docs] Correct it", "[docs] Correct …"),
        ("übersetze alles", "übersetze …"),
        ("…", "…"),
    ],
)
def test_of_earlier_subjects_only_the_beginning_is_shown(subject: str, beginning: str) -> None:
    assert commit.beginning(subject) == beginning


def test_a_message_that_repeats_an_earlier_one_is_written_again(root: Path, reach: Reach) -> None:
    stage(root, "hello.py", "print('hello, world')\n")
    copied = "Begin with a greeting\n\nThis adds one."
    server = ChatServer([say(copied), say(SUBJECT)])
    assert commit.message(reach(server), root, Stop()) == (SUBJECT, "")
    assert "An earlier commit has that subject" in server.bodies[1]["messages"][-1]["content"]
    server = ChatServer([say(copied), say("Begin with a greeting")])
    text, note = commit.message(reach(server), root, Stop())
    assert (text, note) == ("Begin with a greeting", commit.REPEATED)


def test_the_subject_of_the_amended_commit_may_be_repeated(root: Path, reach: Reach) -> None:
    stage(root, "hello.py", "print('hello, world')\n")
    server = ChatServer([say("Begin with a greeting")])
    text, _ = commit.message(reach(server), root, Stop(), is_amend=True)
    assert text == "Begin with a greeting"
    assert "+print('hello, world')" in asked(server)
    assert "-print" not in asked(server)  # compared with the commit before, here none
