"""Every feature that opens a project, on one of a stranger; each returns all that it gives out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing

from lcursor.agent.result import file_changes
from lcursor.config import AgentConfig, EditConfig
from lcursor.context import complete, gather, prompts, rules
from lcursor.context.codebase import GrepSearch
from lcursor.edit import commit
from lcursor.errors import AgentFailed, EditFailed, IndexFailed
from lcursor.index import pipeline
from lcursor.index.chunk_embedder import ChunkEmbedder
from lcursor.index.store import Store
from lcursor.index.throttle import Throttle
from lcursor.index.watch import Watcher
from lcursor.llm.client import ChatClient
from lcursor.llm.pool import Connection
from lcursor.llm.records import ServedModel
from lcursor.process.sandbox import Sandbox, probe_all
from lcursor.project import ignore, listing
from lcursor.project.reading import Reader
from lcursor.project.secrets import SecretGlobs
from lcursor.stop import Stop
from lcursor.workspace.edit_checks import EditChecks
from lcursor.workspace.tree import Tree
from tests.fakes.chat_server import ChatServer, say
from tests.hostile.world import World, everything_below
from tests.waiting import wait_for

WORDS = "where is gamma, main, KEY or canary?"
MENTIONS = (
    "@file:main.py", "@file:hard.txt", "@file:docs/notes.md", "@file:*.md", "@dir:docs",
    "@dir:bare", "@dir:nested", "@dir:lib", "@dir:.", "@diff", "@diff:--staged",
    "@diff:HEAD~1", "@diff:HEAD",
    "@diff:topic", "@commit", "@commit:HEAD~1", "@commit:topic", "@commit:old", "@commit:stash@{0}",
    "@codebase", "@symbol:gamma", "@symbol:KEY", "@rules:x", "@file:bare/notes.py",
)  # fmt: skip
TYPED = (
    "@", "@file:", "@file:let", "@dir:", "@diff:", "@commit:", "@symbol:ga", "@rules:", "@buffer:",
    "/", "/y",
)  # fmt: skip
SCREENS = ("main.py", "bare/notes.py", "nested/a.py", "lib/util.py", "sub/a.py")
IN_THE_SANDBOX = """
git status; git log -p --all; git log -p -g; git stash list -p; git diff; git diff --cached
git show HEAD~1:.env topic:prod.env old:tagged.env :prod.env stash:set-aside.env
git cat-file --batch-all-objects --batch
git for-each-ref; git config -l; git notes; git grep -a KEY $(git rev-list --all)
find . ! -path './.git/objects/*' \\( -type f -o -type l \\) -exec cat {} +
cat $HOME/.ssh/* $HOME/.netrc $HOME/.aws/* $HOME/letters/* $HOME/other/* $HOME/other/.git/HEAD
cat $HOME/.local/share/keyrings/* $HOME/.local/share/lcursor/chats/*/* $HOME/src/*/.env
find -L . -maxdepth 8 -name '*.env' -exec cat {} + ; ls -R $HOME
find -L . -maxdepth 6 \\( -name id_ed25519 -o -name .netrc -o -name credentials \\) -exec cat {} +
find -L . -maxdepth 6 \\( -name '*.txt' -o -name '*.jsonl' -o -name '*.keyring' \\) -exec cat {} +
find -L . -maxdepth 6 -name 'canary*'
""".replace("$HOME", "{home}")
"""What a model might try."""
IN_A_TEST = """
cat .env prod.env hard.txt vendor/.ssh/* vendor/.netrc lib/*/.netrc lib/*/other/* docs/*/.aws/*
cat *.egg-info/.ssh/* .venv/.netrc {home}/.ssh/* {home}/.netrc {home}/other/*
""".strip().replace("\n", "; ")

Feature = Callable[[World], str]


def survey(world: World) -> str:
    """List the project for the index and for completion."""
    try:
        found = str(listing.survey(world.project))
    except IndexFailed as error:
        found = error.message
    names = [str(listing.names(world.project / name)) for name in (".", "bare", "nested", "docs")]
    return "\n".join([found, *names])


def why(world: World) -> str:
    """Say why files are left out."""
    paths = ("main.py", ".env", "docs/notes.md", "bare/notes.py", "nested/a.py", "vendor/.netrc")
    return "\n".join(ignore.why(world.project, path) for path in paths)


def index(world: World) -> str:
    """Index the project by words."""
    store = Store(world.path / "index")
    reader, said = store.reader(), list[str]()
    watcher = Watcher(world.project, lambda _: None, lambda: None)
    pipe = pipeline.Pipeline(
        world.project,
        store,
        Throttle(),
        ChunkEmbedder("none", reader),
        watcher,
        SecretGlobs(world.project),
        lambda: None,
        said.append,
    )
    try:
        pipe.begin()
        wait_for(lambda: pipe.progress.phase in {"ready", "failed"})
        texts = [each.text for path in reader.files() for each in reader.chunks_of(path)]
        return "\n".join([*reader.files(), *texts, *said])
    finally:
        assert pipe.stop(timeout_s=30)
        reader.close()
        store.close()


def grep(world: World) -> str:
    """Search by words."""
    found = GrepSearch(world.project)
    return f"{found.find(WORDS, 4000)}{found.symbols('gamma')}{found.symbols('KEY')}"


def questions(world: World) -> str:
    """Gather the context of questions with each mention, and with the screen."""
    found = []
    for mention in MENTIONS:
        found += _gathered(world, f"{WORDS} {mention}")
    for command in ("/commit", "/review", "/tests", "/y"):
        found += _gathered(world, command, path=f"{world.project}/main.py")
    for name in SCREENS:
        path = f"{world.project}/{name}"
        found += _gathered(world, "why?", path=path, screen=path)
    return "\n".join(found)


def _gathered(world: World, text: str, *, path: str = "", screen: str = "") -> list[str]:
    items = gather.gather(
        text,
        root=world.project,
        path=path,
        attachments=[
            {
                "kind": "screen",
                "name": "screen",
                "path": screen,
                "first_row": 0,
                "text": "x = 1\n",
                "is_offered": True,
            }
        ]
        if screen
        else [],
        codebase=GrepSearch(world.project),
        with_rules=True,
        with_screen=bool(screen),
    )
    return [str(item) for item in items]


def completion(world: World) -> str:
    """Complete mentions and commands."""
    search = GrepSearch(world.project)
    return str([complete.complete(world.project, typed, search) for typed in TYPED])


def texts_of_the_project(world: World) -> str:
    """Load the project's prompts and rules."""
    reader = Reader(world.project)
    expanded = [
        prompts.expand(f"/{each.name}", world.project) for each in prompts.library(world.project)
    ]
    return f"{expanded}{rules.known(reader, ['docs/notes.md'])}"


def commit_message(world: World) -> str:
    """Ask a server for a commit message; return what it was sent."""
    with (
        ChatServer(lambda _: say("Change main\n")) as server,
        closing(ChatClient(ServedModel("fake", server.url))) as client,
    ):
        connection = Connection("fake", client, client.probe())
        try:
            said = str(commit.message(connection, world.project, Stop()))
        except EditFailed as error:
            said = error.message
        return f"{server.bodies}{said}"


def checks(world: World) -> str:
    """Run a test command that prints each secret that it can read."""
    token = "canary-[a-z-]+-[0-9a-f]{4,}"
    command = f"{{ grep -rahE '{token}' .; {world.filled(IN_A_TEST)}; }} | grep -aoE '{token}'"
    config = EditConfig(test=f"{command} | sort -u; ls lib; exit 1", check_seconds=30)
    with EditChecks(world.project, config) as made:
        files = {str(world.project / "main.py"): ("main = 2",)}
        return str(made.run(files, Stop()))


def agent(world: World) -> str:
    """Copy the project for an agent, and run commands at each level of the sandbox."""
    found = []
    for each in probe_all():
        if each.works:
            found.append(f"{each.level}:\n{_agent(world, Sandbox(each.level))}")
    return "\n".join(found)


def _agent(world: World, sandbox: Sandbox) -> str:
    folder = world.home / f".local/share/lcursor/agents/p/{sandbox.level}"
    try:
        tree = Tree.create(world.project, folder, unsaved={})
    except AgentFailed as error:
        return error.message
    script = world.filled(IN_THE_SANDBOX)
    output = sandbox.run(
        ["bash", "-c", f"{script}\necho 'new = 1' >> main.py"],
        tree.confinement(AgentConfig()),
        max_s=60,
        max_bytes=1 << 22,
    )
    said = (output.data + output.errors).decode(errors="replace")
    tree.checkpoint()
    result = file_changes(tree)
    below = everything_below(tree.path)
    return f"{said}\n{tree.changed()}\n{result}\n{tree.left_out}\n{below}"


ALL: Mapping[str, tuple[Feature, str]] = {
    "survey": (survey, "lib/util.py"),
    "why": (why, "git ignores it"),
    "index": (index, "return 4"),
    "grep": (grep, "return 4"),
    "questions": (questions, "+    return gamma()"),
    "completion": (completion, "@commit:"),
    "texts_of_the_project": (texts_of_the_project, "Review these changes"),
    "commit_message": (commit_message, "+    return 4"),
    "checks": (checks, "util.py"),
    "agent": (agent, "+    return gamma()"),
}
"""With what it gives out of an ordinary project, which shows that it did not just fail."""
