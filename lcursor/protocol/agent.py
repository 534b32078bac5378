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
AgentState = Literal["preparing", "running", "waiting", "done", "stuck", "failed", "stopped"]
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


class AgentResume(TypedDict):
    """Continue a run that was interrupted, stopped or stuck, or show one that is done."""

    id: int
    run: str
    path: str  # absolute: of a file or folder of the project
    continues: bool  # false only shows it


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


class AgentListed(TypedDict):
    """The runs of a project, newest first."""

    id: int
    runs: list[AgentRow]


TO_PYTHON: dict[str, type] = {
    "agent.start": AgentStart,
    "agent.resume": AgentResume,
    "agent.say": AgentSay,
    "agent.stop": AgentStop,
    "agent.decide": AgentDecide,
    "agent.approve_plan": AgentApprovePlan,
    "agent.list": AgentList,
    "agent.models": AgentModels,
}
TO_LUA: dict[str, type] = {
    "agent.started": AgentStarted,
    "agent.step": AgentStep,
    "agent.delta": AgentDelta,
    "agent.status": AgentStatus,
    "agent.asks": AgentAsks,
    "agent.planned": AgentPlanned,
    "agent.done": AgentDone,
    "agent.listed": AgentListed,
    "agent.offered": AgentOffered,
}
