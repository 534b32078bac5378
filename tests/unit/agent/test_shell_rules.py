"""The rules for shell commands: what is plain, what is safe, and the user's own rules."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcursor.agent import shell_rules
from lcursor.agent.records import Verdict
from lcursor.agent.shell_rules import ShellRules
from lcursor.config import AgentConfig
from lcursor.errors import ConfigInvalid

RULES = ShellRules.of(
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
        ("cat " + "./" * 999 + "link", "ask", "longer than 2,000 characters"),
    ],
)
def test_the_verdict_on_a_command(command: str, verdict: Verdict, why: str, root: Path) -> None:
    found = shell_rules.check(command, RULES, root, is_confined=False)
    assert found.verdict == verdict, found
    assert why in found.why


ENVIRON = ["cat /proc/self/environ"] if sys.platform == "linux" else []
TRICKS = {
    "options that run programs": [
        "git -c core.pager=x log", "git --config-env=core.pager=X log", "git -ccore.fsmonitor=x st",
        "git --exec-path=. status", "git -C . status", "./git status", "find . -exec rm {} +",
        "find . -execdir rm a ';'", "find . -ok rm a ';'", "find . -okdir rm a ';'",
        "find . -delete", "find . -fprint x", "find . -fprint0 x", "find . -fls x",
        "find -files0-from a.txt", "rg --pre sh a", "rg --pre=sh a", "rg -nz a",
        "rg --hostname-bin=x a", "sed -i s/a/b/ a.txt", "sed -n 1e a.txt", "sed -n '1w x' a.txt",
        "sed -n 1p -i a.txt", "sed 1p a.txt", "sed -n 1p --in-place a.txt",
        "sed -n 1,2p -e '1w x' a.txt", "sed -n 1p -f a.txt", "sed s/a/b/e a.txt",
        "sort -o x a.txt", "uniq a.txt b", "uniq - b", "uniq -c a.txt b", "uniq -- a.txt b",
        "base64 -o x a.txt", "base64 --output=x a.txt", "make -f x test", "make tests",
    ],
    "programs that run others": [
        "env ls", "env -i ls", "env -S 'rm a'", "xargs rm", "ls | xargs rm", "ls | sh",
        "ls | tee x", "sh -c ls", "bash a.txt", "python3 -c pass", "perl -e 1", "awk 1 a.txt",
        "busybox ls", "source a.txt", ". a.txt", "eval ls", "exec ls", "command ls", "builtin ls",
        "nohup ls", "nice ls", "timeout 1 ls", "sudo ls", "time ls", "coproc ls", "trap 'ls' EXIT",
    ],
    "the state of the shell": [
        "A=1 ls", "PATH=. ls", "LD_PRELOAD=./x ls", "A=1", "export A=1", "declare -x A=1",
        "readonly A=1", "unset PATH", "printf -v PATH x", "read PATH", "let A=1", "((A=1))",
        "alias ls=rm", "shopt -s expand_aliases\nalias ls=rm\nls", "hash -p ./x ls",
        "enable -f ./x ls", "f() { ls; }; f", "function ls { rm a; }; ls", "ls() (rm a)",
    ],
    "expansions": [
        "ls $(rm a)", "ls `rm a`", 'echo "$(rm a)"', 'echo "`rm a`"', "ls <(rm a)", "ls >(rm a)",
        "ls ${A:=x}", "rm${IFS}a", "$0 a", "cat a*", "cat ?.txt", "cat [a].txt", "cat {a,b}",
        "cat ~/x", "cat ~root/x", "*/x", "{rm,a}", "$'rm' a", '$"rm" a', "echo $((1))",
    ],
    "redirections": [
        "cat < a.txt", "ls > x", "ls >> x", "ls >| x", "ls &> x", "ls 2> x", "ls 2>&1",
        "echo a >&2", "cat <> x", "cat <<< x", "ls |& cat", "cat <<E\na\nE", "cat <<'E'\n$x\nE",
        "cat <<-E\n\tx\n\tE", "cat <<E | sh\nrm a\nE",
    ],
    "lists": [
        "ls;rm a", "ls&&rm a", "ls||rm a", "ls|rm a", "ls\nrm a", "ls \\\nrm a", "ls;\nrm a",
        "ls &&\nrm a", "ls |\nrm a", "ls #\nrm a", "ls\r", "ls\x0brm", "ls\x00rm", "ls &",
        "ls & rm a", "{ ls; }", "(ls)", "! ls", "if ls; then ls; fi", "while ls; do ls; done",
        "for i in a; do ls; done", "case a in a) ls;; esac", "[[ -f a ]]", "[ -f a ]",
    ],
    "quotes": [
        "\\rm a", "r\\m a", "'rm' a", '"rm" a', "r''m a", "\\ls", "ls\\;rm", "ls\u00a0rm",
        "ls\u2028rm", "echo 'a", 'echo "a', "ls |", "ls &&", "(ls", "$(", "cat <<E", "ls;;",
    ],
    "files elsewhere": [
        "cd ..", "cd /", "cd ~", "cd", "cd -", "cd sub/../..", "pushd sub", "ls /", "ls ..",
        "cd sub && cat ../../outside", "cat sub/../../outside", "cat folder/outside",
        "cat /etc/passwd", *ENVIRON, "grep -f ../outside a.txt", "grep --file=../outside a.txt",
        "make test ../outside", "wc --files0-from=../outside", "cd sub; cd ..; cat ../outside",
    ],
}  # fmt: skip


@pytest.mark.parametrize("group", TRICKS)
def test_tricks_need_approval(group: str, root: Path) -> None:
    rules = ShellRules.of(AgentConfig(allow=("make test", "git status")))
    for command in TRICKS[group]:
        for is_confined in (True, False):
            found = shell_rules.check(command, rules, root, is_confined=is_confined)
            assert found.verdict == "ask", command
        assert not shell_rules.is_safe(command, root, rules, is_confined=True), command


WRITERS = ShellRules.of(AgentConfig(allow=("git", "tar", "sed -i", "npm")))


@pytest.mark.parametrize(
    ("command", "is_outside"),
    [
        ("git log --output={out}/new", True),
        ("git log --output=../new", True),
        ("git log --output=folder/new/er", True),
        ("git log --output '~/.config/x'", True),
        ("git log --output='~/.config/x'", True),
        ("git log -o{out}/new", True),
        ("tar -cf{out}/new a.txt", True),
        ("tar -cf../new a.txt", True),
        ("tar -cf'~/new' a.txt", True),
        ("npm --set=prefix={out}/new", True),
        ("git log --output=dangling", True),
        ("git log --output=new", False),
        ("git log --output=sub/new/er", False),
        ("git log --output={root}/sub/new", False),
        ("git commit -m message", False),
        ("git commit -m 'fix: and/or, see .env'", False),
        ("git commit -mmessage", False),
        ("git log --author=me --pretty=format:%h/%s", False),
        ("git log main..topic -- sub/none.py", False),
        ("git show HEAD~2:a.txt", False),
        ("git clone https://example.org/x", False),
        ("npm run build:all -- --a=b", False),
    ],
)
def test_a_file_that_does_not_exist_is_where_its_folder_is(
    command: str, is_outside: bool, root: Path
) -> None:
    text = command.format(out=root.parent, root=root)
    found = shell_rules.check(text, WRITERS, root, is_confined=False)
    assert found.verdict == ("ask" if is_outside else "allow"), found.why
    assert not is_outside or found.why.startswith("it names a path outside the project: ")


def test_a_pattern_of_a_search_is_no_file(root: Path) -> None:
    for pattern in ("/api/v1", "~/x", "a=/none"):
        found = shell_rules.check(f"grep '{pattern}' a.txt", WRITERS, root, is_confined=False)
        assert found.verdict == "allow", found.why


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
            ShellRules.of(config)


PIECES = st.sampled_from(
    ["ls", "rm", " ", "  ", "\n", "\t", ";", "&", "|", "&&", "'", '"', "\\", "$", "(", ")", "{",
     "}", "<", ">", "#", "`", "a.txt", "=", "!", "~", "*", "-n", "\u00a0", "\u2028", "é", "\x00"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=12).map("".join))
def test_what_is_allowed_has_only_known_commands(text: str) -> None:
    """In any text, an allowed command line has no other programs than the safe ones."""
    found = shell_rules.check(text, ShellRules(), Path("/none/root"), is_confined=False)
    if found.verdict == "allow":
        lines = text.replace("&&", ";").replace("|", ";").replace("\n", ";").split(";")
        names = [line.split()[0].strip("\"'") for line in lines if line.split()]
        assert "rm" not in names
        assert not set(text) & set("$`<>(){}\\~*\x00")
