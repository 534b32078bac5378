"""Where nothing is offered, and why: each refusal, with no request ever sent."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot

Start = Callable[..., Pilot]

DEF = {"a.py": "def f(x):\n"}


def assert_silent(nvim: Pilot, code: str) -> None:
    """Type in insert mode and see that nobody was asked, for that reason."""
    nvim.press("ox")
    nvim.wait_why(code)
    nvim.press("y")
    assert nvim.host.requests == []
    assert nvim.ghost() == ""


@pytest.mark.parametrize(
    ("code", "setting"),
    [
        ("disabled", "vim.g.lcursor_enabled = false"),
        ("disabled_buffer", "vim.b.lcursor_enabled = false"),
        ("disabled", "require('lcursor').setup({ enabled = false })"),
        ("disabled", "require('lcursor').setup({ completion = { enabled = false } })"),
        ("disabled", "vim.b.lcursor = { completion = { enabled = false } }"),
        ("readonly", "vim.bo.readonly = true"),
        ("special", "vim.bo.buftype = 'nofile'"),
        ("special", "vim.bo.buftype = 'acwrite'"),
        ("special", "vim.bo.buflisted = false"),
        ("filetype", "require('lcursor').setup({ completion = { filetypes = { python = false } } })"),
        ("filetype", "require('lcursor').setup({ completion = { filetypes = { ['*'] = false } } })"),
        ("filetype", "vim.bo.filetype = 'gitcommit'"),
        ("filetype", "vim.b.lcursor = { completion = { filetypes = { python = false } } }"),
        ("big_file", "require('lcursor').setup({ completion = { max_file_bytes = 4 } })"),
        ("secret", "vim.api.nvim_buf_set_name(0, '.env')"),
    ],
)
def test_switched_off(editor: Start, code: str, setting: str) -> None:
    nvim = editor(DEF)
    nvim.lua(setting)
    assert_silent(nvim, code)


def test_a_filetype_is_on_where_all_others_are_off(editor: Start) -> None:
    filetypes = {"*": False, "python": True}
    nvim = editor(DEF, config={"completion": {"filetypes": filetypes}})
    assert nvim.insert("o")["filetype"] == "python"


def test_a_buffer_that_is_off_does_not_even_start_the_host(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF, init="vim.g.lcursor_enabled = false\n")
    nvim.press("ox<Esc>ox")
    assert host.pids == []
    assert nvim.why() == "disabled"


def test_not_modifiable(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.lua("vim.bo.modifiable = false")
    nvim.press("o")
    assert nvim.why() == "readonly"
    assert host.requests == []


def test_a_long_line(editor: Start) -> None:
    nvim = editor(DEF, config={"completion": {"max_line_bytes": 10}})
    nvim.keys("o")
    assert nvim.request("\n    ")
    nvim.press("1234567")
    assert nvim.why() == "long_line"


@pytest.mark.parametrize(
    ("tail", "single_line"),
    [("", False), ("  ", False), (")", True), ("):", True), ("')", True), ("]};", True), (" ,", True)],
)
def test_text_to_the_right_that_does_not_count(
    editor: Start, tail: str, single_line: bool
) -> None:
    nvim = editor({"a.py": "x" + tail + "\n"})
    assert nvim.insert("a")["single_line"] is single_line


@pytest.mark.parametrize("tail", ["y", ") y", "+", " + 1", "(", "))::"])
def test_text_to_the_right_that_counts(editor: Start, host: FakeHost, tail: str) -> None:
    nvim = editor({"a.py": "x" + tail + "\n"})
    nvim.press("a")
    nvim.wait_why("midline")
    assert host.requests == []


@pytest.mark.parametrize(
    ("name", "text", "keys"),
    [
        ("a.py", "# one\n", "A more"),
        ("a.py", "x = 1\n", "A  # one"),
        ("a.lua", "local x = 1 -- one\n", "A more"),
        ("a.lua", "--[[\nlong\n]]\n", "jA more"),
        ("a.c", "/* one\n", "A more"),
    ],
)
def test_comments_when_they_are_off(
    editor: Start, host: FakeHost, name: str, text: str, keys: str
) -> None:
    nvim = editor({name: text}, config={"completion": {"in_comments": False}})
    nvim.press(keys)
    nvim.wait_state()
    nvim.press(" word")
    nvim.wait_why("comment")
    host.skip()
    nvim.press(" and more")
    assert [r for r in host.requests if r["prefix"].endswith("more")] == []


def test_comments_are_completed_unless_they_are_off(editor: Start) -> None:
    nvim = editor({"a.py": "# one\n"})
    assert nvim.insert("A")["prefix"] == "# one"


def test_code_is_completed_when_comments_are_off(editor: Start) -> None:
    nvim = editor({"a.lua": "local x = 1\n"}, config={"completion": {"in_comments": False}})
    assert nvim.insert("A")["prefix"] == "local x = 1"


def test_recording_a_macro_records_no_ghost(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "one\ntwo\n"})
    host.reply = lambda request: "GHOST"
    nvim.keys("A")
    nvim.wait_ghost()
    nvim.press("<Esc>")
    host.skip()
    before = len(host.requests)
    nvim.keys("qaA<Tab>x<Esc>q")
    nvim.settle()
    assert len(host.requests) == before
    assert nvim.lua("return vim.fn.getreg('a')") == "A\tx\x1b"
    nvim.press("j@a")
    assert [line.split() for line in nvim.lines()] == [["one", "x"], ["two", "x"]]
    assert "GHOST" not in "\n".join(nvim.lines())
    assert len(host.requests) == before
    assert nvim.why() == "macro"


def test_replace_mode(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "one two\n"})
    nvim.insert("A")
    nvim.press("<Esc>0")
    count = nvim.count()
    nvim.press("Rxyz")
    assert nvim.why() == "replace"
    assert nvim.count() == count
    nvim.press("<Insert>")
    nvim.press("<End>")
    assert nvim.count() == count + 1


def test_a_ghost_goes_when_replace_mode_comes(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.offer("return x", "o")
    nvim.press("<Insert>")
    assert nvim.ghost() == ""


def test_a_terminal(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.command("terminal cat")
    nvim.keys("ihello<CR>")
    nvim.wait_lua("return vim.api.nvim_buf_get_lines(0, 0, 1, false)[1]:find('hello') ~= nil")
    assert host.pids == []
    assert nvim.why() == "special"


def test_a_prompt(editor: Start, host: FakeHost) -> None:
    nvim = editor(DEF)
    nvim.lua("vim.cmd.new(); vim.bo.buftype = 'prompt'")
    nvim.press("ihello")
    assert host.pids == []
    assert nvim.why() == "special"


SECRET_NAMES = [
    ".env",
    ".env.local",
    "prod.env",
    ".envrc",
    "server.pem",
    "server.key",
    "store.p12",
    "store.pfx",
    "store.jks",
    "release.keystore",
    "id_rsa",
    "id_ed25519_work",
    "mail.gpg",
    ".netrc",
    ".pgpass",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".htpasswd",
    "credentials",
    "credentials.json",
    "secrets.yaml",
    "secrets.py",
    "main.tfstate",
    "prod.tfvars",
    "vault.kdbx",
    "home.ovpn",
    ".aws/config",
    ".ssh/config",
    ".kube/config",
    ".docker/config.json",
    "shadow",
    "deep/in/a/.ENV",
]
PUBLIC_NAMES = [
    ".env.example",
    ".env.sample",
    ".env.template",
    "id_rsa.pub",
    "environment.py",
    "env.py",
    "config.json",
    "kube/config",
    "keys.py",
    "secretary.py",
    "tokenizer.py",
    "token.py",
    "shadow.css",
    "monkey.py",
    "credential_form.py",
]


def test_names_of_secrets(editor: Start) -> None:
    nvim = editor(DEF)
    code = "return require('lcursor.privacy').is_secret_path('/home/me/' .. ..., {})"
    assert [name for name in SECRET_NAMES if not nvim.lua(code, name)] == []
    assert [name for name in PUBLIC_NAMES if nvim.lua(code, name)] == []


@pytest.mark.parametrize("name", [".env", "x.pem", ".aws/credentials"])
def test_a_secret_file_is_never_sent(editor: Start, host: FakeHost, name: str) -> None:
    nvim = editor({name: "KEY=1\n"})
    nvim.lua("vim.bo.filetype = 'sh'")
    assert_silent(nvim, "secret")
    assert host.pids == []


def test_patterns_of_the_users_own(editor: Start, host: FakeHost) -> None:
    nvim = editor(
        {"private/a.py": ""}, config={"completion": {"secrets": ["private/*", "*.hidden"]}}
    )
    assert_silent(nvim, "secret")
    assert host.pids == []


def test_a_link_to_a_secret_file(editor: Start, host: FakeHost) -> None:
    nvim = editor({".env": "KEY=1\n"})
    nvim.lua("vim.uv.fs_symlink('.env', 'plain.py')")
    nvim.command("edit plain.py")
    assert_silent(nvim, "secret")


@pytest.mark.parametrize("place", ["top", "near the cursor"])
def test_text_with_a_private_key(editor: Start, host: FakeHost, place: str) -> None:
    head = "-----BEGIN OPENSSH PRIVATE KEY-----\n"
    text = head + "x\n" * 400 if place == "top" else "x\n" * 400 + head
    nvim = editor({"notes.py": text})
    nvim.press("Go")
    nvim.wait_why("secret") if place == "top" else nvim.wait_state()
    nvim.press("y")
    assert host.requests == []
    assert nvim.why() == "secret"


def git(folder: str, *args: str) -> None:
    """Run git in a folder."""
    subprocess.run(["git", "-C", folder, *args], check=True, capture_output=True)


def test_files_that_git_ignores(editor: Start, host: FakeHost) -> None:
    nvim = editor({"kept.py": "", "build/out.py": "", ".gitignore": "build/\n"})
    root = nvim.lua("return vim.uv.cwd()")
    git(root, "init", "-q")
    nvim.command("edit build/out.py")
    assert_silent(nvim, "ignored")
    assert host.pids == []
    nvim.press("<Esc>")
    nvim.command("edit! kept.py")
    assert nvim.insert("A")["name"] == "kept.py"
    nvim.press("<Esc>")
    sent = len(host.requests)
    nvim.command("silent saveas! build/other.py")
    nvim.press("Ax")
    nvim.wait_why("ignored")
    assert len(host.requests) == sent


def test_while_git_is_asked_nothing_is_read(editor: Start, host: FakeHost) -> None:
    nvim = editor(
        {"a.py": ""},
        init="""
        local system = vim.system
        vim.system = function(command, opts, done)
          if command[4] == "check-ignore" then
            _G.answer = function() done({ code = 1 }) end
            return
          end
          return system(command, opts, done)
        end
        """,
    )
    git(nvim.lua("return vim.uv.cwd()"), "init", "-q")
    nvim.press("ix")
    assert nvim.why() == "checking"
    nvim.press("y")
    assert (host.pids, host.requests) == ([], [])
    nvim.lua("_G.answer()")
    assert nvim.request()["prefix"] == "xy"


def test_without_git_files_are_read(editor: Start) -> None:
    nvim = editor({"a.py": ""}, init="vim.env.PATH = '/nowhere'\n")
    nvim.lua("vim.fn.mkdir('.git')")
    assert nvim.insert("i")
