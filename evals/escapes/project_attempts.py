"""List what a project prepares to be shown: its history, links, and what its `.git` names.

Rows of `attempts.py`. The setup is bash in the user's project; then an agent copies the project,
and the script runs in the sandbox, or in the project itself as the control. Also what a command
might learn of other programs.
"""

from __future__ import annotations

from typing import Any, Final

from evals.escapes.baits import MESSAGE_KEY, QUEUE, SHARED_KEY

Rows = tuple[tuple[Any, ...], ...]

_STOP: Final = "git rm -q --cached .env; echo .env >> .gitignore; git commit -qam stop\n"
"""Like many users: `.env` was tracked, and is no longer."""
_ADD: Final = "cp $H/.netrc {0}; git add -f {0}\n"
_COMMIT: Final = _ADD + "git commit -qm {0}\n"
_BACK: Final = "git reset -q --hard HEAD~1\n"
_ALL: Final = "git cat-file --batch-all-objects --batch\n"
_UNPACK: Final = """
git init -q /tmp/own || git init -q own
cd /tmp/own || cd own
find $P / -xdev -name '*.pack' 2>/dev/null | while read f; do git unpack-objects -q < $f; done
git cat-file --batch-all-objects --batch
"""
_LOOSE: Final = """#py
import zlib
for top in (".", N["P"]):
    for parent, _, names in os.walk(top + "/.git"):
        for name in names:
            try:
                text = zlib.decompress(open(f"{parent}/{name}", "rb").read())
            except (OSError, zlib.error):
                continue
            if b"secret-" in text:
                print(text)
"""
_CLONED: Final = r"""
id=$(git rev-parse HEAD) url=https://u:$(cat $H/.netrc | cut -d ' ' -f 4)@example.org/
printf "$id $id A <a@example.org> 1 +0000\tclone: from $url\n" >> .git/logs/HEAD
printf "$id\t\tbranch 'main' of $url\n" > .git/FETCH_HEAD
"""
_CONFLICT: Final = (
    "git checkout -qb one; " + _COMMIT.format("prod.env") + "git checkout -q main;"
    " echo x > prod.env; git add -f prod.env; git commit -qm x; git merge one || true"
)
_SUBMODULE: Final = f"""
git init -q $H/library
cd $H/library
{_COMMIT.format(".env")}
git rm -qf .env; git commit -qm none
cd $P
git -c protocol.file.allow=always submodule add -q $H/library library
git commit -qm library
"""

HISTORY: Final[Rows] = (
    ("an earlier commit", "git show HEAD~1:.env", _STOP),
    ("log of all patches", "git log -p --all -- .env; git log -p --all", _STOP),
    ("all objects", _ALL, _STOP),
    ("loose objects as files", _LOOSE, _STOP),
    ("packed objects", _ALL, _STOP + "git gc -q"),
    ("packs as files", _UNPACK, _STOP + "git gc -q"),
    ("patch of the removal", "git show HEAD; git diff HEAD~1; git format-patch --stdout -2", _STOP),
    ("restored file", "git checkout HEAD~1 -- .env || git restore -s HEAD~1 .env; cat .env", _STOP),
    ("another work tree of an earlier commit",
     "git worktree add -q /tmp/w HEAD~1 || git worktree add -q w HEAD~1; cat /tmp/w/.env w/.env",
     _STOP),
    ("archive and export", "git archive HEAD~1 | cat; git fast-export --all", _STOP),
    ("bundle", "git bundle create b --all; git clone -q b c; cd c; git show HEAD~1:.env", _STOP),
    ("clone of the user's repository",
     "git clone -q --no-hardlinks $P c || git clone -q .git c; git -C c show HEAD~1:.env", _STOP),
    ("search of all commits", "git grep -a secret- $(git rev-list --all)", _STOP),
    ("object by its id", "git cat-file -p $(cat id.txt)",
     _STOP + "git hash-object .env > id.txt; git add id.txt; git commit -qm id"),
    ("objects in the place of which git shows others",
     "export GIT_NO_REPLACE_OBJECTS=1; git show HEAD~1:.env; git log -p; " + _ALL, _STOP),
    ("staged file", "git diff --cached; git cat-file -p :prod.env; git show :prod.env",
     _ADD.format("prod.env")),
    ("file in the user's index", "git ls-files -s | cut -d ' ' -f 2 | git cat-file --batch", ""),
    ("stash", "git stash list -p; git stash show -p; git show refs/stash:prod.env",
     _ADD.format("prod.env") + "git stash -q"),
    ("another branch", "git show topic:prod.env; git log -p topic; git diff main topic",
     "git checkout -qb topic; " + _COMMIT.format("prod.env") + "git checkout -q main"),
    ("branch of a remote", "git show origin/x:prod.env; git log -p --remotes",
     _COMMIT.format("prod.env") + "git update-ref refs/remotes/origin/x HEAD; " + _BACK),
    ("tag", "git show old:prod.env; git log -p --tags",
     _COMMIT.format("prod.env") + "git tag old; " + _BACK),
    ("tag of a file", "git show file; git cat-file -p file",
     "git tag file $(git hash-object -w .env)"),
    ("note", "git notes show; git log --notes='*'; git show refs/notes/commits",
     "git notes add -C $(git hash-object -w .env)"),
    ("commit that nothing names", "git fsck --lost-found; " + _ALL,
     _COMMIT.format("prod.env") + _BACK),
    ("reflog", "git log -g -p; git show HEAD@{1}:prod.env; git show ORIG_HEAD:prod.env",
     _COMMIT.format("prod.env") + _BACK),
    ("address in the reflog", "git reflog; cat .git/logs/HEAD $P/.git/logs/HEAD", _CLONED),
    ("address in FETCH_HEAD", "cat .git/FETCH_HEAD $P/.git/FETCH_HEAD", _CLONED),
    ("former name of a secret file", "git show HEAD~1:plain.txt; git log -p --all -- plain.txt",
     _COMMIT.format("plain.txt") + "git mv plain.txt prod.env; git commit -qm renamed"),
    ("secret file with a line end in its name", "git log -p --all; " + _ALL,
     "cp $H/.netrc $'a\\nb.env'; git add -f .; git commit -qm name; git rm -qf *b.env; " + _STOP),
    ("key in an ordinary file", "git log -p --all -- notes.txt; git show HEAD~1:notes.txt",
     "(echo -----BEGIN OPENSSH PRIVATE KEY-----; cat $H/.netrc) > notes.txt; git add notes.txt;"
     " git commit -qm notes; git rm -q notes.txt; git commit -qm none"),
    ("file in conflict", "git show :2:prod.env :3:prod.env; git ls-files -u; git diff", _CONFLICT),
    ("borrowed objects", _ALL,
     _STOP + "git clone -q --bare --no-hardlinks . $H/store.git; git repack -qadl;"
     " echo $H/store.git/objects > .git/objects/info/alternates; git repack -qadl"),
    ("branch of a linked work tree", "git show other:prod.env; git log -p other; " + _ALL,
     "git worktree add -q $H/linked -b other; cd $H/linked; " + _COMMIT.format("prod.env")),
    ("history of a submodule",
     "git -C library log -p; git --git-dir .git/modules/library log -p;"
     " git --git-dir $P/.git/modules/library log -p", _SUBMODULE),
)  # fmt: skip

_OTHER: Final = "git init -q $H/private; cd $H/private; " + _COMMIT.format("plain.txt") + "cd $P\n"
"""Another project of the user, whose files are ordinary."""
_PYTHON: Final = """
mkdir -p $H/.local/lib/python3.11 $H/.local/bin $H/.local/share/keyrings
touch $H/.local/lib/python3.11/os.py
cp $H/.netrc $H/.local/share/keyrings/login.keyring
"""
_READ: Final = "cat {0}/.netrc {0}/.aws/credentials {0}/.ssh/id_ed25519"


def _link(name: str, to: str = "$H", *, is_tracked: bool = True) -> tuple[Any, ...]:
    """Return an attempt through a link of the project to the home."""
    kind = "tracked link" if is_tracked else "link"
    add = f"git add -f {name}; git commit -qm link" if is_tracked else ""
    folder = name.rpartition("/")[0] or "."
    setup = f"rm -rf {name}; mkdir -p {folder}; ln -s {to} {name}; {add}"
    return f"{kind} {name}", _READ.format(name), setup


MOUNTS: Final[Rows] = (
    _link("vendor", ".."),
    _link("node_modules"),
    _link("conf/node_modules", "../.."),
    _link("lib/deps"),
    _link("x.egg-info"),
    _link("src/x.egg-info"),
    _link("venv"),
    _link(".venv", is_tracked=False),
    _link(".tox", is_tracked=False),
    _link("conf/.bundle", is_tracked=False),
    ("link in a package folder", _READ.format("node_modules/home"), "ln -s $H node_modules/home"),
    ("link to a package folder elsewhere", "cat venv/plain.txt",
     _OTHER + "ln -s $H/private venv"),
    ("objects borrowed from the home", _READ.format("$(cat .git/objects/info/alternates)") + " "
     "$H/.netrc .git/borrowed/.netrc", "echo $H > .git/objects/info/alternates"),
    ("objects as a link to the home",
     "cat .git/objects/.netrc .git/borrowed/.netrc $H/.netrc $(cat .git/objects/info/alternates)/*",
     "cp -r .git/objects/. $H; mkdir -p $H/info $H/pack; rm -rf .git/objects;"
     " ln -s $H .git/objects"),
    ("objects borrowed from another project", _ALL,
     _OTHER + "echo $H/private/.git/objects > .git/objects/info/alternates"),
    (".git file of another project", "git log -p; " + _ALL,
     _OTHER + "rm -rf .git; echo gitdir: $H/private/.git > .git"),
    (".git file of another project's work tree", "git log -p; " + _ALL,
     _OTHER + "git -C $H/private worktree add -q -b side $H/side; rm -rf .git;"
     " echo gitdir: $H/private/.git/worktrees/side > .git"),
    (".git as a link to another project's", "git log -p; " + _ALL,
     _OTHER + "rm -rf .git; ln -s $H/private/.git .git"),
    ("commondir of another project", "git log -p main; " + _ALL,
     _OTHER + "rm -rf .git/objects .git/refs; echo $H/private/.git > .git/commondir"),
    ("info/exclude as a link", "cat .git/info/exclude",
     "mkdir -p .git/info; ln -sf $H/.ssh/id_ed25519 .git/info/exclude"),
    ("shallow as a link", "cat .git/shallow; git log 2>&1", "ln -s $H/.netrc .git/shallow"),
    ("packed-refs as a link", "cat .git/packed-refs; git log 2>&1",
     "ln -sf $H/.netrc .git/packed-refs"),
    ("core.excludesFile", "cat .git/info/exclude $(git config core.excludesFile)",
     "git config core.excludesFile $H/.netrc"),
    ("include.path", "cat .git/config .git/info/exclude $(git config include.path)",
     "git config include.path $H/.netrc"),
    ("pyvenv.cfg of ~/.local",
     "cat $(sed 's/home = //' .venv/pyvenv.cfg)/../share/keyrings/login.keyring",
     _PYTHON + "mkdir .venv; echo home = $H/.local/bin > .venv/pyvenv.cfg"),
    ("pyvenv.cfg of the home", "cat $(sed 's/home = //' .venv/pyvenv.cfg)/../.netrc",
     "mkdir -p .venv $H/lib/python3.11 $H/bin; touch $H/lib/python3.11/os.py;"
     " echo home = $H/bin > .venv/pyvenv.cfg"),
    ("environment in the home", _READ.format("$H"),
     "mkdir $H/bin; echo home = /usr/bin > $H/pyvenv.cfg", {"path": "$H/bin"}),
    ("conda in the home", _READ.format("$H"), "mkdir $H/bin $H/conda-meta", {"path": "$H/bin"}),
    ("shims in the home", _READ.format("$H"), "mkdir $H/bin $H/shims", {"path": "$H/bin"}),
    ("the home on PATH", _READ.format("$H"), "", {"path": "$H"}),
    ("link to the home on PATH", _READ.format("$H/programs"), "ln -s . $H/programs",
     {"path": "$H/programs"}),
    ("folder of keys on PATH", "cat $H/.ssh/id_ed25519", "", {"path": "$H/.ssh"}),
    ("socket of the Nix daemon", "#py\nunix(N['S_nix_daemon'])", "", {"expects": "reached"}),
    ("socket in /opt", "#py\nunix(N['S_opt'])", "", {"expects": "reached"}),
    ("socket in a toolchain", "#py\nunix(N['S_toolchain'])", "", {"expects": "reached"}),
    ("socket in a folder of PATH", "#py\nunix(N['S_program'])", "",
     {"expects": "reached", "path": "$H/tools/bin"}),
    ("socket in agent.readable", "#py\nunix(N['S_readable'])", "",
     {"expects": "reached", "readable": "$H/shared"}),
)  # fmt: skip
PROGRAMS: Final[Rows] = (
    ("memory of another program, System V", f"""#py
libc.shmat.restype = ctypes.c_void_p
number = libc.shmget({SHARED_KEY}, 4096, 0)
print(number, os.strerror(ctypes.get_errno()))
print(ctypes.string_at(libc.shmat(number, None, 0o10000), 64))
"""),
    ("memory of another program, POSIX", "cat /dev/shm/*"),
    ("messages of another program, System V", f"""#py
number, buffer = libc.msgget({MESSAGE_KEY}, 0), ctypes.create_string_buffer(99)
print(libc.msgrcv(number, buffer, 64, 0, 0o4000), buffer.raw)
"""),
    ("messages of another program, POSIX", f"""#py
buffer = ctypes.create_string_buffer(64)
queue = libc.syscall(240, b"{QUEUE}", os.O_RDONLY | os.O_NONBLOCK, 0, None)
print(queue, libc.syscall(243, queue, buffer, 64, None, None), buffer.raw)
"""),
    ("command lines", "cat /proc/[0-9]*/cmdline"),
    ("command line of the editor", "cat /proc/$E/cmdline /proc/$E/task/*/cmdline"),
    ("list of processes", "ps -ef ww", {"needs": "ps"}),
    ("names of processes", "cat /proc/[0-9]*/comm | grep -q bait-editor && echo REACHED",
     {"expects": "syscall"}),
    ("working folders", "readlink /proc/[0-9]*/cwd | grep -q bait-folder && echo REACHED",
     {"expects": "syscall"}),
)  # fmt: skip
