"""Every key of git-config(1) that names a program, or a file that git reads, set by a project."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.hostile.world import TOKENS, Trick, World

HOOKS = (
    "applypatch-msg commit-msg fsmonitor-watchman post-applypatch post-checkout post-commit"
    " post-index-change post-merge post-rewrite post-update pre-applypatch pre-auto-gc pre-commit"
    " pre-merge-commit pre-push pre-rebase pre-receive prepare-commit-msg push-to-checkout"
    " reference-transaction sendemail-validate update"
)
SIGNATURES = {"openpgp": "PGP SIGNATURE", "ssh": "SSH SIGNATURE", "x509": "SIGNED MESSAGE"}
LAZY = "git ls-files --others --exclude-standard"
MISSING = "7cd77acbc83432685b034811071eb9868166935f"
"""The object of a `.gitignore` that only the index has."""


def _sets(
    values: Mapping[str, str], control: str, *keys: str, more: Callable[[World], None] | None = None
) -> Trick:
    """Return a trick that consists of settings; `keys` if git's manual spells them differently."""

    def build(world: World) -> None:
        if more:
            more(world)
        world.at_last(lambda: world.configure(values))

    return Trick(", ".join(values), build, control, keys=keys or tuple(values))


def _hooks(world: World, folder: str) -> None:
    for name in HOOKS.split():
        hook = f"#!/bin/sh\n{{canary}} {folder}/{name}\n"
        world.write(f"{folder}/{name}", hook).chmod(0o755)


def _attributes(name: str, line: str) -> Callable[[World], None]:
    return lambda world: world.at_last(lambda: world.append(name, line))


def _signed(format: str, key: str) -> Trick:
    """Return a trick with a signed commit, which git verifies where it is logged."""
    words = SIGNATURES[format]

    def sign(world: World) -> None:
        about, _, message = world.git("cat-file", "commit", "HEAD").partition("\n\n")
        signature = f"gpgsig -----BEGIN {words}-----\n \n aaaa\n -----END {words}-----"
        text = f"{about}\n{signature}\n\n{message}\n"
        made = world.git("hash-object", "-t", "commit", "-w", "--stdin", stdin=text)
        world.git("update-ref", "refs/heads/main", made)

    values = {"log.showSignature": "true", key: "{canary}"}
    if format == "ssh":
        values["gpg.ssh.allowedSignersFile"] = "{home}/.netrc"
    named = "gpg.<format>.program" if key.count(".") > 1 else key
    return _sets(values, "git log -1", named, "gpg.ssh.allowedSignersFile", more=sign)


def _submodule(world: World) -> None:
    """Add a submodule that is not at the commit that the project names."""
    sub = world.project / "sub"
    world.write("sub/a.py", "a = 1\n")
    world.git("init", "-q", cwd=sub)
    for subject in ("one", "two"):
        world.git("add", "a.py", cwd=sub)
        world.git("commit", "-qm", subject, "--allow-empty", cwd=sub)
        if subject == "one":
            world.git("add", "sub")
    world.write(".gitmodules", '[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n')
    world.git("add", ".gitmodules")
    world.configure({"core.fsmonitor": "{canary} submodule; false"}, "sub/.git/config")
    world.configure({"submodule.sub.url": "./sub", "submodule.sub.active": "true"})


def _conflict(world: World) -> None:
    """Let the index have a conflict in a file that nothing else uses."""
    key = world.git("hash-object", "-w", "--stdin", stdin="x\n")
    rows = "".join(f"100644 {key} {stage}\tconflict.txt\n" for stage in (1, 2, 3))
    world.git("update-index", "--index-info", stdin=rows)
    world.write("conflict.txt", "x\n")


def _alternate(world: World) -> None:
    """Borrow objects from a repository in the project itself."""
    world.git("clone", "-q", "--bare", ".", "shared.git")
    world.append(".git/objects/info/alternates", "{project}/shared.git/objects\n")


def _lazy(values: Mapping[str, str], name: str) -> Trick:
    """Return a trick that makes git fetch a missing object, which it needs for its ignore rules."""

    def build(world: World) -> None:
        row = f"100644 {MISSING} 0\t.gitignore\n"
        world.git("rm", "-q", "--cached", ".gitignore")
        (world.project / ".gitignore").unlink()
        world.git("update-index", "--index-info", stdin=row)
        world.git("update-index", "--skip-worktree", ".gitignore")
        world.write("new.py", "new = 1\n")
        world.configure(
            {
                "core.repositoryFormatVersion": "1",
                "extensions.partialClone": "origin",
                "remote.origin.promisor": "true",
                **values,
            }
        )

    keys = ("extensions.partialClone", "url.<base>.insteadOf", "remote.<name>.url")
    return Trick(f"a missing object, {name}", build, LAZY, keys=keys, is_alone=True)


def _reads(key: str, value: str, control: str, shows: str) -> Trick:
    return Trick(key, lambda world: world.configure({key: value}), control, shows, (key,))


def _mailmap(world: World) -> None:
    world.write(world.home / ".contacts", f"{TOKENS['letters']} <a@example.org>\n")
    world.configure({"mailmap.file": "{home}/.contacts"})


TRICKS = (
    _sets({"core.fsmonitor": "{canary} fsmonitor; false"}, "git status"),
    Trick(
        "hooks in .git/hooks",
        lambda world: _hooks(world, ".git/hooks"),
        "git commit -qm x --allow-empty",
    ),
    _sets(
        {"core.hooksPath": "tracked-hooks"},
        "git commit -qm x --allow-empty",
        more=lambda world: _hooks(world, "tracked-hooks"),
    ),
    _sets(
        {"core.sshCommand": "{canary} ssh", "remote.by-ssh.url": "ssh://host.invalid/x"},
        "git fetch by-ssh",
        "core.sshCommand",
    ),
    _sets(
        {"core.gitProxy": "{canary}", "remote.by-git.url": "git://host.invalid/x"},
        "git fetch by-git",
        "core.gitProxy",
    ),
    _sets(
        {"core.askPass": "{canary}"},
        "printf 'protocol=https\\nhost=other.invalid\\n\\n' | git credential fill",
    ),
    _sets(
        {"credential.helper": "!{canary} helper"},
        "printf 'protocol=https\\nhost=h.invalid\\n\\n' | GIT_ASKPASS=true git credential fill",
    ),
    _sets(
        {"credential.https://h.invalid.helper": "!{canary} helper of an address"},
        "printf 'protocol=https\\nhost=h.invalid\\n\\n' | GIT_ASKPASS=true git credential fill",
        "credential.<url>.*",
    ),
    _sets({"core.editor": "{canary} editor"}, "git config -e"),
    _sets({"sequence.editor": "{canary} sequence"}, "git rebase -i --autostash HEAD~1"),
    _sets({"core.pager": "{canary} pager"}, "{pty} git branch"),
    _sets({"pager.log": "{canary} pager of log"}, "{pty} git log", "pager.<cmd>"),
    _sets(
        {"core.alternateRefsCommand": "{canary} alternates; true"},
        "git rev-list --alternate-refs",
        more=_alternate,
    ),
    _sets({"diff.external": "{canary} external"}, "git diff"),
    _sets(
        {"diff.evil.command": "{canary} command"},
        "git diff",
        "diff.<driver>.command",
        more=_attributes(".gitattributes", "*.py diff=evil\n"),
    ),
    _sets(
        {"diff.evil2.textconv": "{canary} textconv; cat"},
        "git diff; git log -p",
        "diff.<driver>.textconv",
        more=_attributes(".git/info/attributes", "*.py diff=evil2\n"),
    ),
    _sets(
        {
            "core.attributesFile": "named-attributes",
            "filter.named.clean": "{canary} clean; cat",
        },
        "git diff",
        "core.attributesFile",
        "filter.<driver>.clean",
        more=_attributes("named-attributes", "*.py filter=named\n"),
    ),
    _sets(
        {"filter.evil.process": "{canary} process", "filter.evil.required": "true"},
        "touch main.py; git diff",
        "filter.<driver>.process",
        more=_attributes(".git/info/attributes", "main.py filter=evil\n"),
    ),
    _sets(
        {"filter.evil2.smudge": "{canary} smudge; cat"},
        "rm docs/notes.md; git checkout docs/notes.md",
        "filter.<driver>.smudge",
        more=_attributes(".gitattributes", "*.md filter=evil2\n"),
    ),
    _sets(
        {"merge.evil.driver": "{canary} driver"},
        "git rm -q --cached prod.env; git commit -qam x; rm -f prod.env; git merge topic",
        "merge.<driver>.driver",
        more=_attributes(".gitattributes", "*.py merge=evil\n"),
    ),
    _signed("openpgp", "gpg.program"),
    _signed("openpgp", "gpg.openpgp.program"),
    _signed("ssh", "gpg.ssh.program"),
    _signed("x509", "gpg.x509.program"),
    _sets(
        {"gpg.format": "ssh", "gpg.ssh.defaultKeyCommand": "{canary} key"},
        "git commit -S --allow-empty -m x",
        "gpg.ssh.defaultKeyCommand",
    ),
    _sets(
        {"interactive.diffFilter": "{canary} diff filter"},
        "printf 'q\\n' | TERM=xterm {pty} git add -p",
    ),
    _sets(
        {"remote.evil.url": ".", "remote.evil.uploadpack": "{canary} upload"},
        "git fetch evil",
        "remote.<name>.uploadpack",
    ),
    _sets(
        {"remote.evil2.url": ".", "remote.evil2.receivepack": "{canary} receive"},
        "git push evil2 main",
        "remote.<name>.receivepack",
    ),
    _sets(
        {
            "protocol.ext.allow": "always",
            "remote.evil3.vcs": "ext",
            "remote.evil3.url": "{canary} vcs",
        },
        "git fetch evil3",
        "remote.<name>.vcs",
        "protocol.<name>.allow",
    ),
    _sets(
        {"submodule.sub.update": "!{canary} update"},
        "git submodule update",
        "submodule.<name>.update",
        more=_submodule,
    ),
    Trick("settings of a submodule", _submodule, "git status"),
    _sets(
        dict.fromkeys(("alias.x", "alias.ls-files", "alias.diff"), "!{canary} alias"),
        "git x",
        "alias.*",
    ),
    _sets(
        {
            "trailer.evil.key": "Evil",
            "trailer.evil.command": "{canary} trailer",
            "trailer.evil2.key": "Worse",
            "trailer.evil2.cmd": "{canary} trailer",
        },
        "echo x | git interpret-trailers --trailer Worse",
        "trailer.<token>.command",
        "trailer.<token>.cmd",
    ),
    _sets(
        {"tar.evil.command": "{canary} archive"},
        "git archive --format=evil HEAD",
        "tar.<format>.command",
    ),
    _sets(
        {"imap.tunnel": "{canary} tunnel", "imap.folder": "x"},
        r"printf 'From a Mon Sep 17 00:00:00 2001\nFrom: a\nDate: b\nSubject: c\n\nx'"
        " | git imap-send",
        "imap.tunnel",
    ),
    _sets(
        {"diff.tool": "evil", "difftool.evil.cmd": "{canary} difftool"},
        "git difftool -y -t evil",
        "difftool.<tool>.cmd",
    ),
    _sets(
        {"merge.tool": "evil", "mergetool.evil.cmd": "{canary} mergetool"},
        "git mergetool -y",
        "mergetool.<tool>.cmd",
        more=_conflict,
    ),
    _sets(
        {"man.viewer": "evil", "man.evil.cmd": "{canary} man"},
        "git help -m status",
        "man.<tool>.cmd",
    ),
    _sets(
        {"difftool.kompare.path": "{canary}"},
        "git difftool -y -t kompare",
        "difftool.<tool>.path",
    ),
    _sets(
        {"mergetool.vimdiff.path": "{canary}"},
        "git mergetool -y -t vimdiff",
        "mergetool.<tool>.path",
        more=_conflict,
    ),
    _sets({"man.man.path": "{canary}"}, "git help -m status", "man.<tool>.path"),
    _sets(
        {"browser.firefox.path": "{canary}"},
        "git web--browse -b firefox http://a.invalid",
        "browser.<tool>.path",
    ),
    _sets(
        {"web.browser": "evil", "browser.evil.cmd": "{canary} browser"},
        "git web--browse http://a.invalid",
        "browser.<tool>.cmd",
    ),
    _sets(
        {"include.path": "../named.config", "includeIf.gitdir:/.path": "../named.config"},
        "git status",
        "include.path",
        "includeIf.<condition>.path",
        more=lambda world: world.configure(
            {"core.fsmonitor": "{canary} include; false"}, "named.config"
        ),
    ),
    _sets(
        {"extensions.worktreeConfig": "true", "core.repositoryFormatVersion": "1"},
        "git status",
        "extensions.worktreeConfig",
        more=lambda world: world.configure(
            {"core.fsmonitor": "{canary} config.worktree; false"}, ".git/config.worktree"
        ),
    ),
    _lazy({"remote.origin.url": ".", "remote.origin.uploadpack": "{canary} up; false"}, "upload"),
    _lazy({"remote.origin.url": "ssh://h.invalid/x", "core.sshCommand": "{canary} ssh"}, "ssh"),
    _lazy({"remote.origin.url": "git://h.invalid/x", "core.gitProxy": "{canary}"}, "proxy"),
    _lazy(
        {
            "protocol.ext.allow": "always",
            "remote.origin.url": "nowhere:x",
            "url.ext::{canary} lazy .insteadOf": "nowhere:",
        },
        "ext",
    ),
    Trick(
        "core.worktree",
        lambda world: world.configure({"core.worktree": "{home}"}),
        "git ls-files --others :/",
        "file name",
        ("core.worktree",),
        is_alone=True,
    ),
    _reads("core.excludesFile", "{home}/.netrc", "cat $(git config core.excludesFile)", "netrc"),
    _reads("blame.ignoreRevsFile", "{home}/.netrc", "git blame main.py", "netrc"),
    _reads("commit.template", "{home}/.netrc", "GIT_EDITOR=cat git commit", "netrc"),
    Trick("mailmap.file", _mailmap, "git log --format=%aN", "letters", ("mailmap.file",)),
    _reads("diff.orderFile", "{home}/.netrc", "cat $(git config diff.orderFile)", "netrc"),
)
HARMLESS = {
    "git itself ignores it in the configuration of a repository": (
        "init.templateDir safe.directory uploadpack.packObjectsHook"
    ),
    "it selects a tool by its name, of which another key has the command": (
        "diff.guitool diff.tool help.browser man.viewer merge.guitool merge.tool web.browser"
        " instaweb.browser"
    ),
    "only a program that is no part of git's core reads it: cvsserver, gui, instaweb, send-email": (
        "gitcvs.dbDriver gitcvs.logFile gitweb.url gui.newBranchTemplate guitool.<name>.cmd"
        " guitool.<name>.needsFile instaweb.httpd instaweb.modulePath sendemail.<identity>.*"
        " sendemail.aliasesFile sendemail.ccCmd sendemail.smtpsslcertpath sendemail.tocmd"
    ),
    "it matters only where git contacts a server": (
        "bundle.* bundle.<id>.* http.<url>.* http.cookieFile http.pinnedPubkey http.proxy"
        " http.proxySSLCert http.proxySSLKey http.sslCAPath http.sslCert http.sslKey protocol.allow"
        " remote.<name>.partialclonefilter remote.<name>.proxy remote.<name>.pushurl"
        " submodule.<name>.url transfer.credentialsInUrl uploadpack.allowFilter"
        " uploadpackfilter.<filter>.allow uploadpackfilter.allow url.<base>.pushInsteadOf"
    ),
    "the file is only used to sign or to verify, or is written": (
        "format.outputDirectory format.signatureFile gpg.ssh.revocationFile user.signingKey"
        " fsmonitor.socketDir help.htmlPath"
    ),
    "it names neither a program nor a file": (
        "clone.rejectShallow color.branch.worktree color.pager column.clean"
        " core.fsmonitorHookVersion core.quotePath credential.useHttpPath"
        " diff.<driver>.cachetextconv feature.* fsck.gitmodulesPath fsck.gitmodulesUrl"
        " interactive.singleKey receive.fsck.gitmodulesPath receive.fsck.gitmodulesUrl"
    ),
}
"""Keys whose names look as if they named a program or a file, by the reason for no trick."""
