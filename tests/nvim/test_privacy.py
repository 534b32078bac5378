"""What is never read: files with secrets by name or text, and files that git ignores."""

from __future__ import annotations

import os
import re
import subprocess
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest

from lcursor.project import secrets
from lcursor.project.secrets import has_private_key, is_secret_path
from scripts import gen_docs
from tests.fakes.control import FakeHost
from tests.nvim.pilot import Pilot
from tests.unit.project.test_secrets import GLOBS, ROOT

Start = Callable[..., Pilot]

DEF = {"a.py": "def f(x):\n"}
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
    "secrets.prod.json",
    "secrets.json.bak",
    "secret.env",
    "secrets",
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
    "config/kubeconfig-prod.yml",
    "group_vars/all/vault.yml",
    "accessKeys.csv",
    "wp-config.php.bak",
    "keystore/UTC--2020-01-01",
    "Login Data",
    "wg12.conf",
    "k8s/secrets/prod.yaml",
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
    "secrets.py",
    "secret.go",
    "secrets.rs",
    "tokenizer.py",
    "token.py",
    "shadow.css",
    "monkey.py",
    "credential_form.py",
]


def test_each_glob_of_secrets_finds_its_names(editor: Start) -> None:
    nvim = editor(DEF)
    globs = [each for glob in secrets.SECRETS for each in gen_docs.expanded(glob)]
    names = [re.sub(r"\[.(.)?[^]]*\]", lambda found: found[0][1], glob) for glob in globs]
    names = [name.replace("**", "x/y").replace("*", "x") for name in names]
    code = "return require('lcursor.editor.privacy').is_secret_path('/home/me/' .. ..., {})"
    assert [name for name in names if not nvim.lua(code, name)] == []
    assert [name for name in names if not nvim.lua(code, name.upper())] == []


def test_names_of_secrets(editor: Start) -> None:
    nvim = editor(DEF)
    code = "return require('lcursor.editor.privacy').is_secret_path('/home/me/' .. ..., {})"
    assert [name for name in SECRET_NAMES if not nvim.lua(code, name)] == []
    assert [name for name in PUBLIC_NAMES if nvim.lua(code, name)] == []
    assert all(map(is_secret_path, SECRET_NAMES))
    assert not any(map(is_secret_path, PUBLIC_NAMES))


def test_the_users_globs_match_as_in_python(editor: Start) -> None:
    """Also beside others that are no globs."""
    nvim = editor(DEF)
    code = "return require('lcursor.editor.privacy').is_secret_path(...)"
    for glob, path, is_secret in GLOBS:
        for globs in ([glob], ["[z-a", "{x", "y}", glob, "[", "a]", "}", "z\\"]):
            assert nvim.lua(code, f"{ROOT}/{path}", globs) == is_secret, (globs, path)


def test_the_editor_recognizes_the_same_private_keys_as_python(editor: Start) -> None:
    start, wireguard = "-----BEGIN " + "PRIVATE KEY", "yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk="
    keys = [
        f"{start}-----\nMIIE",
        start.replace("PRIVATE", "OPENSSH PRIVATE"),
        "---- BEGIN SSH2 " + "ENCRYPTED PRIVATE KEY ----",
        "PuTTY-User-Key-File-" + "3: ssh-rsa",
        "AGE-SECRET-KEY-1" + "QL3Z7HJY54PW3",
        '{"kty": "EC",\n "d" : "' + "A" * 43,
        f"PrivateKey = {wireguard}",
        *(b64encode((" " * shift + start).encode()).decode() for shift in range(3)),
    ]
    others = [
        "BEGIN PRIVATE KEY",
        "PuTTY-User-Key-File-",
        '{"kty": "EC", "x": "A"}',
        "PrivateKey =",
    ]
    nvim = editor(DEF)
    code = "return require('lcursor.editor.privacy').has_private_key(...)"
    for text, is_key in [*((key, True) for key in keys), *((other, False) for other in others)]:
        assert (nvim.lua(code, text), has_private_key(text.encode())) == (is_key, is_key), text


@pytest.mark.parametrize("name", [".env", "x.pem", ".aws/credentials"])
def test_a_secret_file_is_never_sent(editor: Start, host: FakeHost, name: str) -> None:
    nvim = editor({name: "KEY=1\n"})
    nvim.lua("vim.bo.filetype = 'sh'")
    nvim.stays_silent("secret")
    assert not nvim.has_started_host()


def test_patterns_of_the_users_own(editor: Start, host: FakeHost) -> None:
    nvim = editor({"private/a.py": ""}, config={"privacy": {"exclude": ["private/*", "*.hidden"]}})
    nvim.stays_silent("secret")
    assert not nvim.has_started_host()


def test_a_link_to_a_secret_file(editor: Start, host: FakeHost) -> None:
    nvim = editor({".env": "KEY=1\n"})
    nvim.lua("vim.uv.fs_symlink('.env', 'plain.py')")
    nvim.command("edit plain.py")
    nvim.stays_silent("secret")


@pytest.mark.parametrize("place", ["top", "near the cursor"])
def test_text_with_a_private_key(editor: Start, host: FakeHost, place: str) -> None:
    head = "-----BEGIN OPENSSH PRIVATE KEY-----\n"
    text = head + "x\n" * 400 if place == "top" else "x\n" * 400 + head
    nvim = editor({"notes.py": text})
    nvim.press("Go")
    nvim.wait_why("secret_text") if place == "top" else nvim.wait_state()
    nvim.press("y")
    assert host.requests == []
    assert nvim.why() == "secret_text"


def git(folder: str, *args: str) -> None:
    """Run git in a folder."""
    subprocess.run(["git", "-C", folder, *args], check=True, capture_output=True)


def test_files_that_git_ignores(editor: Start, host: FakeHost) -> None:
    nvim = editor({"kept.py": "", "build/out.py": "", ".gitignore": "build/\n"})
    root = nvim.lua("return vim.uv.cwd()")
    git(root, "init", "-q")
    nvim.command("edit build/out.py")
    nvim.stays_silent("ignored")
    assert not nvim.has_started_host()
    nvim.press("<Esc>")
    nvim.command("edit! kept.py")
    assert nvim.insert("A")["name"] == "kept.py"
    nvim.press("<Esc>")
    sent = len(host.requests)
    nvim.command("silent saveas! build/other.py")
    nvim.press("Ax")
    nvim.wait_why("ignored")
    assert len(host.requests) == sent


def test_git_is_asked_again_when_its_rules_change(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "", ".gitignore": ""})
    git(nvim.lua("return vim.uv.cwd()"), "init", "-q")
    nvim.insert("A")
    nvim.press("<Esc>")
    nvim.command("edit .gitignore | call setline(1, '*.py') | write | edit a.py")
    host.skip()
    nvim.press("Ax")
    nvim.wait_why("ignored")
    assert nvim.count() == 1
    nvim.press("<Esc>")
    Path(nvim.lua("return vim.uv.cwd()"), ".gitignore").write_text("")
    nvim.command("doautocmd FocusGained")
    nvim.press("Ay")
    assert nvim.request("xy")["prefix"] == "xy"


def test_patterns_are_compiled_once(editor: Start) -> None:
    nvim = editor(DEF)
    code = """
    local privacy, count, regex = require("lcursor.editor.privacy"), 0, vim.regex
    vim.regex = function(...) count = count + 1 return regex(...) end
    local found = {}
    for _, globs in ipairs({ { "*.x" }, { "*.x" }, { "*.x" }, { "*.y" } }) do
      table.insert(found, privacy.is_secret_path("/p/a.x", globs))
    end
    vim.regex = regex
    return { found, count }
    """
    found, count = nvim.lua(code)
    assert found == [True, True, True, False]
    assert count <= 4  # two of them for the built-in lists


@pytest.mark.parametrize("has_earlier", [False, True])
def test_while_git_is_asked_nothing_is_read(
    editor: Start, host: FakeHost, has_earlier: bool
) -> None:
    nvim = editor(
        {"a.py": ""},
        init="""
        local system = vim.system
        vim.system = function(command, opts, done)
          if vim.list_contains(command, "check-ignore") then
            _G.answer = function() done({ code = 1 }) end
            return
          end
          return system(command, opts, done)
        end
        """,
    )
    git(nvim.lua("return vim.uv.cwd()"), "init", "-q")
    if has_earlier:  # another part of the plugin asked before
        nvim.lua(
            "require('lcursor.editor.privacy').block_reason(0, {}, function()"
            " error('a broken one') end)"
        )
    nvim.press("ix")
    assert nvim.why() == "checking"
    nvim.press("y")
    assert (host.pids, host.requests) == ([], [])
    nvim.lua("_G.answer()")
    assert nvim.request("xy")["prefix"] == "xy"


def test_a_file_of_a_repository_is_not_read_where_git_cannot_be_run(
    editor: Start, host: FakeHost
) -> None:
    nvim = editor({"a.py": "", "outside/b.py": ""}, init="vim.env.PATH = '/nowhere'\n")
    nvim.lua("vim.fn.mkdir('inside/.git', 'p') vim.fn.writefile({}, 'inside/.git/HEAD')")
    nvim.command("edit inside/a.py")
    nvim.press("ix")
    nvim.wait_why("ignored_unknown")
    assert "cannot be run" in nvim.lua("return require('lcursor.complete').why().text")
    nvim.press("<Esc>")
    nvim.command("edit outside/b.py")
    assert nvim.insert("i")


FAILING_REPOSITORIES = {
    "of another owner": ("chown -R 1234:1234 .", "dubious ownership"),
    "with a damaged configuration": ("echo '[core' > .git/config", "bad config"),
    "of a newer version": ("git config core.repositoryFormatVersion 9", "version"),
}


@pytest.mark.parametrize("name", FAILING_REPOSITORIES)
def test_a_file_is_not_read_where_git_fails_and_the_reason_is_shown(
    editor: Start, host: FakeHost, name: str
) -> None:
    command, words = FAILING_REPOSITORIES[name]
    if command.startswith("chown") and os.getuid():
        pytest.skip("needs root")
    nvim = editor({"a.py": "", ".gitignore": "a.py\n"})
    root = nvim.lua("return vim.uv.cwd()")
    git(root, "init", "-q")
    subprocess.run(command, cwd=root, shell=True, check=True)
    nvim.press("ix")
    nvim.wait_why("ignored_unknown")
    assert words in nvim.lua("return require('lcursor.complete').why().text")
    assert host.requests == []


def test_variables_for_another_repository_do_not_matter(
    editor: Start, host: FakeHost, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(str(other), "init", "-q")
    (other / ".git/info/exclude").write_text("*\n")
    init = f"vim.env.GIT_DIR, vim.env.GIT_WORK_TREE = '{other}/.git', '/'\n"
    nvim = editor({"a.py": "", "b.py": "", ".gitignore": "b.py\n"}, init=init)
    subprocess.run(["git", "init", "-q"], cwd=nvim.lua("return vim.uv.cwd()"), check=True)
    assert nvim.insert("i")
    nvim.press("<Esc>")
    nvim.command("edit b.py")
    nvim.press("ix")
    nvim.wait_why("ignored")


def test_opening_a_file_and_typing_runs_no_program_of_the_repository(
    editor: Start, host: FakeHost, tmp_path: Path
) -> None:
    nvim = editor({"a.py": ""})
    root, canary = nvim.lua("return vim.uv.cwd()"), tmp_path / "canary"
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "config", "core.fsmonitor", f"touch {canary}; false")
    assert nvim.insert("i")
    assert not canary.exists()
    git(root, "status")  # without the protection it runs
    assert canary.exists()


def test_a_link_is_judged_by_what_it_leads_to(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "", "sub/b.py": "", ".gitignore": "sub\n"})
    root = nvim.lua("return vim.uv.cwd()")
    git(root, "init", "-q")
    Path(root, "link").symlink_to("sub")
    nvim.command("edit link/b.py")
    nvim.press("ix")
    nvim.wait_why("ignored")


def test_a_hard_link_to_a_secret_file_is_secret(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "", ".env": "KEY=1\n", "sub/c.py": "x\n"})
    root = Path(nvim.lua("return vim.uv.cwd()"))
    git(str(root), "init", "-q")
    os.link(root / ".env", root / "sub/notes.py")
    os.link(root / "sub/c.py", root / "sub/d.py")
    nvim.command("edit sub/notes.py")
    nvim.press("ix")
    nvim.wait_why("secret_link")
    nvim.press("<Esc>")
    nvim.command("edit! sub/d.py")
    assert nvim.insert("A")


def test_a_hard_link_to_a_secret_file_elsewhere_is_secret(editor: Start, host: FakeHost) -> None:
    nvim = editor({"a.py": "", "config/.env": "KEY=1\n", "sub/c.py": "x\n"})
    root = Path(nvim.lua("return vim.uv.cwd()"))
    home = Path(nvim.lua("return vim.uv.os_homedir()"))
    git(str(root), "init", "-q")
    (home / ".ssh").mkdir(exist_ok=True)
    (home / ".ssh/work").write_text("KEY\n")
    os.link(root / "config/.env", root / "sub/notes.py")
    os.link(home / ".ssh/work", root / "sub/work.py")
    for name in ("notes", "work"):
        nvim.command(f"edit! sub/{name}.py")
        nvim.press("ix")
        nvim.wait_why("secret_link")
        nvim.press("<Esc>")


def test_git_is_started_once_for_many_files(editor: Start, host: FakeHost) -> None:
    count = 60
    files = {f"f{number}.py": "" for number in range(count)}
    init = """
    local system = vim.system
    _G.started, _G.running, _G.most = 0, 0, 0
    vim.system = function(command, opts, done)
      if not vim.list_contains(command, "check-ignore") then
        return system(command, opts, done)
      end
      _G.started, _G.running = _G.started + 1, _G.running + 1
      _G.most = math.max(_G.most, _G.running)
      return system(command, opts, function(result)
        _G.running = _G.running - 1
        done(result)
      end)
    end
    """
    nvim = editor({"a.py": "", ".gitignore": "f7.py\n", **files}, init=init)
    git(nvim.lua("return vim.uv.cwd()"), "init", "-q")
    code = """
    local privacy = require("lcursor.editor.privacy")
    _G.codes = {}
    for number = 0, ... - 1 do
      local buf = vim.fn.bufadd(("f%d.py"):format(number))
      vim.fn.bufload(buf)
      privacy.block_reason(buf, {}, function()
        _G.codes[number + 1] = privacy.block_reason(buf, {}, print) or "fine"
      end)
    end
    """
    nvim.lua(code, count)
    nvim.wait_lua("return vim.tbl_count(_G.codes) == ...", count)
    assert nvim.lua("return { _G.started, _G.most }") == [1, 1]
    codes = nvim.lua("return _G.codes")
    assert codes[7] == "ignored"
    assert set(codes) == {"fine", "ignored"}
    assert codes.count("ignored") == 1


def test_a_git_of_the_project_is_not_started(editor: Start, host: FakeHost, tmp_path: Path) -> None:
    init = "vim.env.PATH = 'bin::./bin:' .. vim.env.PATH\n"
    nvim = editor({"a.py": "", ".gitignore": "a.py\n"}, init=init)
    root, canary = Path(nvim.lua("return vim.uv.cwd()")), tmp_path / "canary"
    git(str(root), "init", "-q")
    for folder in (root, root / "bin"):
        folder.mkdir(exist_ok=True)
        (folder / "git").write_text(f"#!/bin/sh\ntouch {canary}\n")
        (folder / "git").chmod(0o755)
    nvim.press("ix")
    nvim.wait_why("ignored")
    assert not canary.exists()


def test_a_rule_file_that_is_a_pipe_is_waited_for_once(editor: Start, host: FakeHost) -> None:
    init = """
    local system = vim.system
    _G.started = 0
    vim.system = function(command, opts, done)
      if vim.list_contains(command, "check-ignore") then
        _G.started = _G.started + 1
        opts.timeout = 500
      end
      return system(command, opts, done)
    end
    """
    nvim = editor({"a.py": "", "b.py": "", "c.py": ""}, init=init)
    root = nvim.lua("return vim.uv.cwd()")
    git(root, "init", "-q")
    os.mkfifo(f"{root}/.gitignore")
    code = """
    _G.answers = {}
    for _, name in ipairs({ "a.py", "b.py", "c.py" }) do
      require("lcursor.editor.privacy").ask_file(vim.uv.cwd() .. "/" .. name, {}, function(is_fine)
        table.insert(_G.answers, is_fine)
      end)
    end
    """
    nvim.lua(code)
    nvim.wait_lua("return #_G.answers == 3")
    assert nvim.lua("return { _G.answers, _G.started }") == [[False] * 3, 1]
    nvim.press("ix")
    nvim.wait_why("ignored_unknown")
    assert "took longer" in nvim.lua("return require('lcursor.complete').why().text")


def test_a_message_of_git_shows_no_line_of_a_file(
    editor: Start, host: FakeHost, tmp_path: Path
) -> None:
    nvim = editor({"a.py": ""})
    root, secret = nvim.lua("return vim.uv.cwd()"), tmp_path / "netrc"
    git(root, "init", "-q")
    secret.write_text("machine a.b login me password s3cr3t/T0K+EN/x\n")
    Path(root, ".git/commondir").symlink_to(secret)
    nvim.press("ix")
    nvim.wait_why("ignored_unknown")
    text = nvim.lua("return require('lcursor.complete').why().text")
    assert "git failed with status 128" in text
    assert "machine" not in text
