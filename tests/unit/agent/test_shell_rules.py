"""The rules for shell commands: what is plain, what is safe, and the user's own rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.agent import shell_rules
from lcursor.agent.records import Verdict
from lcursor.agent.shell_rules import Rules
from lcursor.config import AgentConfig
from lcursor.errors import ConfigInvalid

RULES = Rules.of(
    AgentConfig(
        allow=("make test", "pytest", "git", "cat /etc/hosts"),
        forbid=("git push", "curl"),
    ),
    ["*.private"],
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    for name in ("a.txt", ".env", "sub/.env", "x.private"):
        (root / name).write_text("x\n")
    (tmp_path / "outside").write_text("x\n")
    (root / "link").symlink_to("../outside")
    (root / "dangling").symlink_to("/none/of/it")
    (root / "folder").symlink_to("..")
    return root


@pytest.mark.parametrize(
    ("command", "verdict", "why"),
    [
        # known commands
        ("ls", "allow", ""),
        ("ls -la sub | head -n 5 && cat a.txt; pwd\nwc -l a.txt", "allow", ""),
        ("grep \"a\\|b\" 'a.txt'", "allow", ""),
        ('"ca"t a.txt', "allow", ""),
        ("find . -name '*.py' -newer a.txt", "allow", ""),
        ("sed -n 1,5p a.txt", "allow", ""),
        ("sed -n 1,5p -i a.txt", "ask", "no rule"),
        ("sed -n '1,5w x' a.txt", "ask", "no rule"),
        ("uniq a.txt b.txt", "ask", "no rule"),
        ("base64 --output=x a.txt", "ask", "no rule"),
        ("find . -fprintf x y", "ask", "no rule"),
        ("grep -rn a .", "ask", "no rule"),
        ("rg a", "ask", "no rule"),
        ("./ls", "ask", "no rule"),
        ("rm a.txt", "ask", "no rule allows rm a.txt"),
        ("ls; rm a.txt", "ask", "no rule"),
        # rules
        ("make test -j4", "allow", ""),
        ("make tests", "ask", "no rule"),
        ("make", "ask", "no rule"),
        ("git status", "allow", ""),
        ("git push", "forbid", "git push"),
        ("git -C sub push", "forbid", "git push"),
        ("ls && /usr/bin/curl x", "forbid", "curl"),
        ("echo $(curl x)", "forbid", "curl"),
        ("for i in a; do (A=1 curl x); done", "forbid", "curl"),
        ("cat /etc/hosts", "allow", ""),
        ("cat /etc/hosts /etc/passwd", "ask", "outside the project: /etc/passwd"),
        # paths
        ("cat ../outside", "ask", "outside"),
        ("pytest ../outside", "ask", "outside"),
        ("cat link", "ask", "outside"),
        ("cat dangling", "ask", "outside"),
        ("cat folder/outside", "ask", "outside"),
        ("grep -f../outside a.txt", "ask", "outside"),
        ("pytest --rootdir=/etc", "ask", "outside"),
        ("cat .env", "ask", "secrets: .env"),
        ("cd sub && cat .env", "ask", "secrets"),
        ("cat x.private", "ask", "secrets"),
        ("grep secrets a.txt", "allow", ""),
        ("cd sub && ls", "allow", ""),
        ("cd", "ask", "leaves"),
        ("cd -", "ask", "leaves"),
        ("cd folder", "ask", "outside"),
        # what is not plain
        ("ls > x", "ask", "redirects"),
        ("ls 2>&1", "ask", "redirects"),
        ("cat <<E\nx\nE", "ask", "redirects"),
        ("cat <<< x", "ask", "redirects"),
        ("ls |& cat", "ask", "plain"),
        ("ls &", "ask", "background"),
        ("ls $HOME", "ask", "variable"),
        ('ls "$HOME"', "ask", "variable"),
        ("ls `pwd`", "ask", "output of a command"),
        ("ls <(pwd)", "ask", "output of a command"),
        ("A=1 ls", "ask", "sets a variable"),
        ("export A=1", "ask", "sets a variable"),
        ("(ls)", "ask", "subshell"),
        ("! ls", "ask", "plain"),
        ("ls() { pwd; }; ls", "ask", "defines a function"),
        ("cat *.txt", "ask", "pattern"),
        ("cat {a,b}.txt", "ask", "pattern"),
        ("cat ~/x", "ask", "pattern"),
        ("cat a\\.txt", "ask", "escaped"),
        ('cat "a\\$b"', "ask", "escaped"),
        ("cat $'a'", "ask", "plain"),
        ("ls # rm", "ask", "plain"),
        ("ls\r\nrm", "ask", "control"),
        ("cat -n\u2028a.txt", "ask", "plain"),  # the two parsers disagree
        ("echo 'a", "ask", "syntax"),
        ("(" * 3000, "ask", ""),
        ("echo " + "a" * 5000, "ask", "longer than 4,000 characters"),
    ],
)
def test_a_command(command: str, verdict: Verdict, why: str, root: Path) -> None:
    found = shell_rules.check(command, RULES, root, is_confined=False)
    assert found.verdict == verdict, found
    assert why in found.why


@pytest.mark.parametrize("command", ["grep -rn a .", "rg a"])
def test_folders_are_searched_where_secrets_are_hidden(command: str, root: Path) -> None:
    assert shell_rules.check(command, RULES, root, is_confined=True).verdict == "allow"


def test_programs_of_a_search_are_not_run(root: Path) -> None:
    for option in ("--pre sh", "--pre=sh", "--search-zip", "-nz"):
        found = shell_rules.check(f"rg {option} a", RULES, root, is_confined=True)
        assert found.verdict == "ask", option


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("make  test", " make 'test'\n", True),
        ("ls; make", "ls;make", True),
        ("ls; make", "ls && make", False),
        ("ls\nmake", "ls make", False),
        ("echo '&&' ls", "echo && ls", False),
        ("echo 'a b'", "echo a b", False),
        ("ls > x", "ls  > x", False),
        ("a && b\nc", "a\nb && c", False),
    ],
)
def test_equal_commands(one: str, other: str, is_same: bool) -> None:
    assert (shell_rules.normalize(one) == shell_rules.normalize(other)) is is_same


@pytest.mark.parametrize("rule", ["", "make | cat", "make $x", "rm *", "a\\ b"])
def test_a_rule_that_is_no_beginning_of_a_command(rule: str) -> None:
    for config in (AgentConfig(allow=(rule,)), AgentConfig(forbid=(rule,))):
        with pytest.raises(ConfigInvalid, match="no beginning of a command"):
            Rules.of(config)


PIECES = st.sampled_from(
    ["ls", "rm", " ", "  ", "\n", "\t", ";", "&", "|", "&&", "'", '"', "\\", "$", "(", ")", "{",
     "}", "<", ">", "#", "`", "a.txt", "=", "!", "~", "*", "-n", "\u00a0", "\u2028", "é", "\x00"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=12).map("".join))
def test_what_is_allowed_has_only_known_commands(text: str) -> None:
    """In any text, an allowed command line has no other programs than the safe ones."""
    found = shell_rules.check(text, Rules(), Path("/none/root"), is_confined=False)
    if found.verdict == "allow":
        lines = text.replace("&&", ";").replace("|", ";").replace("\n", ";").split(";")
        names = [line.split()[0].strip("\"'") for line in lines if line.split()]
        assert "rm" not in names
        assert not set(text) & set("$`<>(){}\\~*\x00")
