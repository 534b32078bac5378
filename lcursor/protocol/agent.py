"""The messages of agents.

A request has an `id`, and all messages of its run repeat it. A run is named by its key, which also
names its folder. A run ends with `agent.done`; its changes are then a turn of edits, whose hunks
the editor opens with `edit.resume`.
"""

from __future__ import annotations

from typing import Literal, TypedDict

from lcursor.protocol.edit import EditBuffer

AgentPolicy = Literal["", "plan", "ask", "auto", "full"]
"""What needs approval; empty for the setting `agent.policy`."""
AgentState = Literal[
    "preparing", "running", "waiting", "checking", "done", "stuck", "failed", "stopped"
]
StepKind = Literal["read", "edit", "command", "search", "finish", "note"]
StepState = Literal["running", "waiting", "done", "failed", "rejected"]
AgentChoice = Literal["once", "run", "reject"]
"""Approve a call once, or all calls like it in this run; or reject it."""


class AgentStart(TypedDict):
    """Start a run."""

    id: int
    task: str
    path: str  # absolute: of the current buffer, or of a folder of the project
    policy: AgentPolicy
    model: str  # empty: the settings'
    context: str  # selected lines, a diagnostic or a failing test, as text; empty for none
    buffers: list[EditBuffer]  # unsaved ones
    group: str  # of the runs that attempt the same task; empty for a run of its own
    attempt: int  # its number in the group, from 1; 0 for a run of its own
    test: str  # the only failing test that it has to correct; empty for all
    when_idle: bool  # it begins on an idle machine with mains power


class AgentResume(TypedDict):
    """Continue a run that was interrupted, stopped or stuck, or show one that is done."""

    id: int
    run: str
    path: str  # absolute: of a file or folder of the project
    continues: bool  # false only shows it
    text: str  # the user's message to it; "" for none
    seen: int  # number of steps that are shown already


class AgentSay(TypedDict):
    """Send a message to a running agent, which reads it with its next step."""

    id: int
    text: str


class AgentStop(TypedDict):
    """Stop run `id`; its `agent.done` follows."""

    id: int


class AgentDecide(TypedDict):
    """Answer `agent.asks`."""

    id: int
    ask: int
    choice: AgentChoice
    text: str  # the reason for a rejection, for the model; or the changed command


class AgentApprovePlan(TypedDict):
    """Answer `agent.planned`: carry out the plan, as edited; an empty text rejects it."""

    id: int
    text: str


class AgentList(TypedDict):
    """List the runs of a project."""

    id: int
    path: str


class AgentFork(TypedDict):
    """Create a run that continues after a step of another one."""

    id: int
    run: str
    step: int
    path: str


class AgentForked(TypedDict):
    """The new run, which does not run yet."""

    id: int
    run: str


class AgentCompare(TypedDict):
    """Compare the attempts of a group."""

    id: int
    path: str
    group: str


class AgentFind(TypedDict):
    """Find tasks in a project."""

    id: int
    path: str


class AgentTask(TypedDict):
    """A task that was found."""

    task: str
    context: str
    test: str  # the failing test that it is about; empty for none


class AgentFound(TypedDict):
    """The tasks that were found."""

    id: int
    root: str  # of the project
    tasks: list[AgentTask]
    note: str  # why there may be more; empty for nothing


class AgentModels(TypedDict):
    """List what may work on a task."""

    id: int


class AgentModel(TypedDict):
    """A model or a foreign agent that may work on a task."""

    name: str
    title: str
    missing: str  # what installs it; empty if it is there
    is_agent: bool


class AgentOffered(TypedDict):
    """What may work on a task, the default first."""

    id: int
    models: list[AgentModel]


class AgentStarted(TypedDict):
    """The run has a folder, a model and a sandbox."""

    id: int
    run: str
    task: str
    policy: AgentPolicy
    model: str
    dialect: str  # "native", "fenced", "choice", "api", or "acp" of a foreign agent
    sandbox: str  # "bubblewrap", "unshare", "landlock" or "none"
    note: str  # what the user should know of them; empty for nothing
    group: str
    attempt: int


class AgentStep(TypedDict):
    """A step, or its change: a later message with the same number replaces it."""

    id: int
    number: int
    kind: StepKind
    target: str  # `src/a.py:1-40`, `pytest -x`
    state: StepState
    result: str  # a few words: `exit 1`, `3 lines changed`
    text: str  # what the model read as its result; empty while it runs
    seconds: float


class AgentDelta(TypedDict):
    """The next text that the model writes; `is_new` begins another step."""

    id: int
    text: str
    is_new: bool


class AgentSaid(TypedDict):
    """A message of the user to a run that is shown again."""

    id: int
    text: str


class AgentStatus(TypedDict):
    """The state and what is left of the budgets."""

    id: int
    state: AgentState
    steps: int
    max_steps: int
    used_tokens: int
    context_tokens: int
    cached_share: float  # of the last prompt
    seconds: float  # of work
    max_seconds: float
    added: int  # lines that differ from the user's files
    removed: int


class AgentAsks(TypedDict):
    """A call needs approval; the run waits."""

    id: int
    ask: int
    number: int  # of the step
    command: str
    why: str  # one line: "opens the network: example.org"
    is_bound: bool  # an approval for the run would end when a file changes


class AgentPlanned(TypedDict):
    """The plan of a run in plan mode, or a question of a foreign agent; the run waits."""

    id: int
    text: str  # Markdown
    is_question: bool  # it is no plan, but a form that the user fills in


class AgentDone(TypedDict):
    """The run has ended."""

    id: int
    run: str
    state: AgentState
    message: str  # the model's summary, or the reason
    is_checked: bool  # the user's tests passed
    turn: str  # key of the turn with its changes; empty if there are none
    paths: list[str]  # absolute: files of the turn
    root: str  # of the project


class AgentRow(TypedDict):
    """A run in a list."""

    run: str
    task: str
    state: AgentState
    at_s: float
    steps: int
    turn: str
    group: str
    attempt: int


class AgentListed(TypedDict):
    """The runs of a project, newest first."""

    id: int
    runs: list[AgentRow]


class AgentAttempt(TypedDict):
    """An attempt of a group."""

    run: str
    attempt: int
    state: AgentState
    tests: Literal["passed", "failed", ""]
    added: int
    removed: int
    turn: str
    paths: list[str]  # absolute: files of the turn
    names: list[str]  # the same, relative to the project
    only: list[str]  # those of them that no other attempt changes
    same_as: int  # an earlier attempt with the same changes; 0 for none


class AgentCompared(TypedDict):
    """The attempts of a group, the best first."""

    id: int
    attempts: list[AgentAttempt]


class AgentCheck(TypedDict):
    """Run the user's tests on a project as it is in the editor."""

    id: int
    path: str  # absolute: of a file or folder of the project
    buffers: list[EditBuffer]  # unsaved ones


class AgentChecked(TypedDict):
    """What the tests say."""

    id: int
    tests: Literal["passed", "failed", ""]  # empty: they were not run
    text: str  # names of failed tests, else the end of the output; why they were not run


TO_PYTHON: dict[str, type] = {
    "agent.start": AgentStart,
    "agent.resume": AgentResume,
    "agent.say": AgentSay,
    "agent.stop": AgentStop,
    "agent.decide": AgentDecide,
    "agent.approve_plan": AgentApprovePlan,
    "agent.list": AgentList,
    "agent.compare": AgentCompare,
    "agent.check": AgentCheck,
    "agent.fork": AgentFork,
    "agent.find": AgentFind,
    "agent.models": AgentModels,
}
TO_LUA: dict[str, type] = {
    "agent.started": AgentStarted,
    "agent.step": AgentStep,
    "agent.delta": AgentDelta,
    "agent.said": AgentSaid,
    "agent.status": AgentStatus,
    "agent.asks": AgentAsks,
    "agent.planned": AgentPlanned,
    "agent.done": AgentDone,
    "agent.listed": AgentListed,
    "agent.compared": AgentCompared,
    "agent.checked": AgentChecked,
    "agent.forked": AgentForked,
    "agent.found": AgentFound,
    "agent.offered": AgentOffered,
}
