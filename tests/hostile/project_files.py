"""Files of a project, and of its `.git`, that lead to files of the user or to a program."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping

from tests.hostile.world import Trick, World

PACKAGE_FOLDERS = (
    ".bundle", ".eggs", ".nox", ".pixi", ".tox", "Pods", "__pypackages__",
    "bower_components", "deps", "elm-stuff", "jspm_packages", "node_modules", "vendor", "venv",
)  # fmt: skip
KEY, KEYRING = ".ssh/id_ed25519", ".local/share/keyrings/login.keyring"


def _link(name: str, to: str, *, is_tracked: bool = False) -> Trick:
    """Return a trick that consists of a link to the home, in a clone (tracked) or an archive."""

    def build(world: World) -> None:
        path = world.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(world.filled(to))
        if is_tracked:
            world.git("add", "-f", name)

    kind = "tracked link" if is_tracked else "link"
    return Trick(f"{kind} {name} -> {to}", build, f"cat {name}/{KEY}", "ssh key")


def _file_link(name: str, to: str, shows: str, *, is_alone: bool = False) -> Trick:
    def build(world: World) -> None:
        path = world.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(world.filled(to))

    return Trick(f"link {name} -> {to}", build, f"cat {name}", shows, is_alone=is_alone)


def _bare_repository(world: World) -> None:
    """Add the files of a bare repository, which a clone contains as any other files."""
    world.git("init", "-q", "--bare", "bare")
    world.write("bare/config", "")
    world.write("bare/notes.py", "notes = 1\n")
    for name in ("refs/keep", "objects/keep"):
        world.write(f"bare/{name}", "")
    world.configure(
        {
            "core.repositoryFormatVersion": "0",
            "core.bare": "false",
            "core.worktree": "..",
            "core.fsmonitor": "{canary} bare; false",
        },
        "bare/config",
    )
    world.git("add", "bare")
    world.git("commit", "-qm", "bare", "--", "bare")


def _nested(world: World) -> None:
    """Add a repository that the project's does not track."""
    world.write("nested/a.py", "nested = 1\n")
    world.git("init", "-q", cwd=world.project / "nested")
    world.configure({"core.fsmonitor": "{canary} nested; false"}, "nested/.git/config")


def _git_file(world: World) -> None:
    """Move `.git` elsewhere in the project, which a file then names."""
    os.rename(world.project / ".git", world.project / "elsewhere")
    world.write(".git", "gitdir: elsewhere\n")
    world.configure({"core.fsmonitor": "{canary} .git file; false"}, "elsewhere/config")


def _others_git(world: World) -> None:
    """Let `.git` name the repository of another project."""
    shutil.rmtree(world.project / ".git")
    world.write(".git", "gitdir: {home}/other/.git\n")


def _others_work_tree(world: World) -> None:
    """Let `.git` name a work tree that another project has elsewhere."""
    other = world.home / "other"
    world.git("worktree", "add", "-q", "-b", "side", str(world.home / "side"), cwd=other)
    shutil.rmtree(world.project / ".git")
    world.write(".git", "gitdir: {home}/other/.git/worktrees/side\n")


def _others_submodule(world: World) -> None:
    """Let `.git` name the repository of a submodule of another project."""
    other = world.home / "other"
    shutil.copytree(other / ".git", other / ".git/modules/part")
    world.configure({"core.worktree": "../../../part"}, other / ".git/modules/part/config")
    shutil.rmtree(world.project / ".git")
    world.write(".git", "gitdir: {home}/other/.git/modules/part\n")


def _common_folder(world: World) -> None:
    """Let `.git` share the objects of another project, as a linked work tree does."""
    shutil.rmtree(world.project / ".git/objects")
    shutil.rmtree(world.project / ".git/refs")
    world.write(".git/commondir", "{home}/other/.git\n")


def _others_history(name: str, build: Callable[[World], None]) -> Trick:
    """Return a trick that replaces `.git`, so that it has the history of another project."""

    def replaced(world: World) -> None:
        shutil.rmtree(world.project / ".git")
        build(world)

    return Trick(f"history by a {name}", replaced, "git log -p", "other history", is_alone=True)


def _others_branch(world: World) -> None:
    world.git("init", "-q")
    _alternates(world, "{home}/other/.git/objects")
    branch = world.home / "other/.git/refs/heads/main"
    (world.project / ".git/refs/heads/main").symlink_to(branch)


def _bare_elsewhere(world: World) -> None:
    world.git("clone", "-q", "--bare", "other", ".dotfiles", cwd=world.home)
    world.write(".git", "gitdir: {home}/.dotfiles\n")


def _name_with_zero(world: World) -> None:
    world.write(".git", "gitdir: {home}/other/.git\0x\n")


def _name_with_blank(world: World) -> None:
    world.write("l/a.py", "")
    (world.project / " l").symlink_to(world.home / "other/.git")
    world.write(".git", "gitdir:  l\n")


def _alternates(world: World, to: str) -> None:
    world.append(".git/objects/info/alternates", f"{to}\n")


def _alternates_of_alternates(world: World) -> None:
    """Borrow from a folder of the project, which borrows from another project."""
    world.write("store/objects/info/alternates", "{home}/other/.git/objects\n")
    _alternates(world, "{project}/store/objects")


def _home_as_objects(world: World) -> None:
    """Let `.git/objects` be a link to the home, which has all that git wants of it."""
    objects = world.project / ".git/objects"
    for each in objects.iterdir():
        shutil.move(each, world.home / each.name)
    objects.rmdir()
    objects.symlink_to(world.home)


def _python_of_home(world: World) -> None:
    """Let an environment name the home's own folder of programs as that of its Python."""
    world.write(world.home / ".local/lib/python3.11/os.py", "")
    world.write(world.home / ".local/bin/python3", "#!/bin/sh\n").chmod(0o755)
    world.write(".venv/pyvenv.cfg", "home = {home}/.local/bin\n")


def _hard_link(world: World) -> None:
    os.link(world.project / ".env", world.project / "hard.txt")


def _names(world: World) -> None:
    for name in ("a\nb.py", "c\x1b]0;title\x07d.py", "## Done\n\n- x.md", "\x9b2J.txt"):
        world.write(name, "odd = 1\n")


def _prompt(world: World) -> None:
    world.write(
        ".lcursor/prompts/explain.md",
        "---\ndescription: explain what it does and how\n---\nREPLACED @diff:HEAD~1\n",
    )


def _inherited(values: Mapping[str, str], control: str) -> Trick:
    """Return a trick of variables that Neovim inherited, for example from an alias of git."""

    def build(world: World) -> None:
        evil = world.path / "evil"
        if not evil.exists():
            world.write(evil / "a.py", "a = 1\n")
            world.git("init", "-q", cwd=evil)
            world.git("add", "a.py", cwd=evil)
            world.configure({"core.fsmonitor": "{canary} GIT_DIR; false"}, evil / ".git/config")

    return Trick(", ".join(values), build, control, env=values)


TRICKS = (
    _link("vendor", "../..", is_tracked=True),
    _link("docs/node_modules", "{home}", is_tracked=True),
    _link("x.egg-info", "{home}", is_tracked=True),
    _link("src/y.egg-info", "{home}", is_tracked=True),
    *(_link(f"lib/{name}", "{home}") for name in PACKAGE_FOLDERS),
    _link(".venv", "../.."),
    _link("docs/home", "../../..", is_tracked=True),
    Trick(
        "pyvenv.cfg that names the home",
        _python_of_home,
        "cat $(sed 's/home = //' .venv/pyvenv.cfg)/../share/keyrings/login.keyring",
        "keyring",
    ),
    Trick("bare repository among the files", _bare_repository, "git -C bare status"),
    Trick("nested repository", _nested, "git -C nested status"),
    Trick(".git file", _git_file, "git status", is_alone=True),
    Trick(
        ".git file of another project",
        _others_git,
        "git log -p",
        "other history",
        is_alone=True,
    ),
    Trick(
        ".git file of another project's work tree",
        _others_work_tree,
        "git log -p",
        "other history",
        is_alone=True,
    ),
    Trick(
        ".git file of another project's submodule",
        _others_submodule,
        "git --work-tree . log -p",
        "other history",
        is_alone=True,
    ),
    Trick(
        "alternates of alternates",
        _alternates_of_alternates,
        "git cat-file --batch --batch-all-objects",
        "other history",
        is_alone=True,
    ),
    Trick("commondir", _common_folder, "git log -p", "other history", is_alone=True),
    Trick(
        "alternates in the home",
        lambda world: _alternates(world, "{home}"),
        f"cat $(cat .git/objects/info/alternates)/{KEY}",
        "ssh key",
    ),
    Trick(
        "alternates of another project",
        lambda world: _alternates(world, "{home}/other/.git/objects"),
        "git cat-file --batch --batch-all-objects",
        "other history",
        is_alone=True,
    ),
    Trick(
        "objects in the home", _home_as_objects, f"cat .git/objects/{KEY}", "ssh key", is_alone=True
    ),
    _others_history("linked branch", _others_branch),
    _others_history("bare repository", _bare_elsewhere),
    _others_history("name with a zero byte", _name_with_zero),
    _others_history("link with a blank in its name", _name_with_blank),
    Trick(
        "git in a relative folder of PATH",
        lambda world: world.write("bin/git", "#!/bin/sh\n{canary} PATH\n").chmod(0o755),
        "git status",
        is_alone=True,
        env={"PATH": f"bin:./bin:{os.environ['PATH']}"},
    ),
    _file_link(".git/info/exclude", "{home}/.netrc", "netrc", is_alone=True),
    _file_link(".git/info/attributes", "{home}/.netrc", "netrc", is_alone=True),
    _file_link(".git/shallow", "{home}/.netrc", "netrc", is_alone=True),
    _file_link(".git/packed-refs", "{home}/.netrc", "netrc", is_alone=True),
    _file_link(".git/info/grafts", "{home}/.netrc", "netrc", is_alone=True),
    _file_link("AGENTS.md", "{home}/.aws/credentials", "aws"),
    _file_link("docs/letter.md", "{home}/letters/to-a-friend.txt", "letters"),
    _file_link(".lcursor/rules/x.md", "{home}/letters/to-a-friend.txt", "letters"),
    _file_link(".lcursor/prompts/y.md", "{home}/letters/to-a-friend.txt", "letters"),
    _file_link(".cursorrules", "{home}/letters/to-a-friend.txt", "letters"),
    _file_link(".lcursorignore", "{home}/letters/to-a-friend.txt", "letters"),
    Trick("hard link to a secret", _hard_link, "cat hard.txt", "work tree"),
    Trick("names with line ends and escape sequences", _names, "ls", "\x1b]0;title\x07"),
    Trick(
        "prompt that replaces a built-in one",
        _prompt,
        "cat .lcursor/prompts/explain.md",
        "REPLACED",
    ),
    _inherited({"GIT_DIR": "{path}/evil/.git", "GIT_WORK_TREE": "{path}/evil"}, "git status"),
    _inherited({"GIT_CONFIG_PARAMETERS": "'core.fsmonitor'='{canary} inherited'"}, "git status"),
    _inherited(
        {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "core.fsmonitor",
            "GIT_CONFIG_VALUE_0": "{canary} counted",
        },
        "git status",
    ),
    _inherited({"GIT_EXTERNAL_DIFF": "{canary} external"}, "git diff"),
    _inherited({"GIT_SSH_COMMAND": "{canary} ssh"}, "git ls-remote ssh://h.invalid/x"),
    _inherited({"GIT_SSH": "{canary}"}, "git ls-remote ssh://h.invalid/x"),
    _inherited({"GIT_PROXY_COMMAND": "{canary}"}, "git ls-remote git://h.invalid/x"),
    _inherited(
        {"GIT_ASKPASS": "{canary}", "SSH_ASKPASS": "{canary}"},
        "printf 'protocol=https\\nhost=h.invalid\\n\\n' | git credential fill",
    ),
    _inherited({"GIT_EDITOR": "{canary} editor"}, "git config -e"),
    _inherited({"GIT_PAGER": "{canary} pager"}, "{pty} git log"),
)
