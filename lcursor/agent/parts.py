"""What a run consists of: its parts, its budgets, how it shows itself to the user, its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from lcursor.agent.dialects.dialect import Dialect
from lcursor.agent.records import (
    Decision,
    Known,
    Model,
    Observation,
    Policy,
    Shown,
    State,
    ToolCall,
)
from lcursor.agent.run_log import AgentStep, RunLog, RunState
from lcursor.agent.tools.tool import Tool
from lcursor.context.servers import AskUser
from lcursor.process.run import Cancel
from lcursor.process.sandbox import Sandbox
from lcursor.protocol.agent import AgentChoice, AgentModel, StepState
from lcursor.stop import Stop
from lcursor.workspace.tree import Tree


class ChangedFile(Protocol):
    """A changed file; see `tree.TreeChange`."""

    @property
    def path(self) -> str:
        """Relative to the root."""

    @property
    def added(self) -> int:
        """Number of lines."""

    @property
    def removed(self) -> int:
        """Number of lines."""


class Checkpoints(Protocol):
    """The copy of the project that a run works on."""

    base: str
    """Id of its files at the start."""

    def checkpoint(self) -> str:
        """Store all files and return the id; equal files have equal ids."""

    def restore(self, tree_id: str) -> None:
        """Make the files as they were at a checkpoint."""

    def changed(self, since: str = "") -> Sequence[ChangedFile]:
        """Return the files that differ from a checkpoint, by default from the start."""


class Toolbox(Protocol):
    """The tools of a run. On the run's thread."""

    tools: Sequence[Tool]

    def run(
        self,
        call: ToolCall,
        cancel: Cancel,
        *,
        is_unconfined: bool = False,
        ask: AskUser | None = None,
    ) -> Observation:
        """Run a call; an error is an observation, not an exception.

        Args:
            is_unconfined: run a command without the sandbox, which the user approved.
            ask: asks the user what a server wants to know; None asks nobody.

        Raises:
            Cancelled: `cancel` returned true.
        """

    def remember(self, shown: Sequence[Shown]) -> None:
        """Restore what an earlier observation showed, in the order of the run's log."""

    def known(self) -> Known:
        """Return what the model may name."""


class Approver(Protocol):
    """Decides which calls may run; see `approvals.Approvals`."""

    policy: Policy

    def decide(self, call: ToolCall) -> Decision:
        """Decide about a call."""

    def remember(
        self, call: ToolCall, choice: AgentChoice, reason: str = "", *, is_earlier: bool = False
    ) -> None:
        """Remember the user's answer for equal calls; `is_earlier` if the run was continued."""

    def ran(self, call: ToolCall) -> None:
        """Note that a command outside of the sandbox has run."""


class User(Protocol):
    """Shows a run to the user and asks for decisions. The run's thread waits for the answers."""

    def step(self, step: AgentStep, state: StepState) -> None:
        """Show a step or its change."""

    def delta(self, text: str, *, is_new: bool) -> None:
        """Show the next text of the model; `is_new` for another answer."""

    def status(self, state: State) -> None:
        """Show the state, and what is left of the budgets."""

    def ask(self, step: AgentStep, asked: Decision) -> tuple[AgentChoice, str]:
        """Ask whether a call may run; return the choice and a reason or a changed command."""

    def plan(self, text: str, *, is_question: bool = False) -> str:
        """Show a plan, and return it as approved and edited; "" if it is rejected.

        Args:
            is_question: it is a form that the user fills in.
        """


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The budgets of a run, since it was started or continued."""

    steps: int = 40
    seconds: float = 1800.0
    """Time of work, without waiting for the user."""
    tokens: int = 2_000_000
    """Tokens that the model evaluates and writes."""


@dataclass(frozen=True, slots=True)
class RunParts:
    """What a run consists of."""

    model: Model
    dialect: Dialect
    toolbox: Toolbox
    tree: Checkpoints
    approvals: Approver
    summarize: Callable[[RunState], None]
    """Replaces the conversation by a summary and the last observations."""
    system: str = ""
    """The system text."""
    limits: RunLimits = RunLimits()
    policy: Policy = "auto"
    """Policy after the approval of a plan."""
    temperature: float = 0.0
    """The least of its answers."""
    on_end: Callable[[], None] = lambda: None
    """Called when the run ends."""


@dataclass(frozen=True, slots=True)
class End:
    """How a run ended."""

    state: State
    message: str = ""
    """The model's summary, or the reason."""
    is_checked: bool = False
    """Whether the user's tests passed."""


class Work(Protocol):
    """What carries out the task of a run: a model with our loop, or someone else's agent."""

    @property
    def tree(self) -> Checkpoints:
        """The files that it works on."""

    @property
    def limits(self) -> RunLimits:
        """Its budgets."""

    @property
    def dialect(self) -> str:
        """How it calls tools, for the user."""

    @property
    def used_tokens(self) -> int:
        """The length of the conversation."""

    @property
    def context_tokens(self) -> int:
        """The context; 0 if unknown."""

    def run(self, log: RunLog, user: User, stopped: Stop) -> End:
        """Work until the end. On the run's thread.

        Raises:
            Cancelled: it was stopped.
            LcursorError: it failed; it can be continued.
        """

    def close(self) -> None:
        """Stop what it does. Thread: any."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a run is assembled from."""

    root: Path
    folder: Path
    """Of the run."""
    policy: Policy
    model: str
    """Name of the model; "" for the settings'."""
    task: str
    unsaved: Mapping[str, str]
    """Texts of the editor by absolute path, for a new run."""
    is_new: bool
    stopped: Stop
    log: Callable[[Exception], None]
    """Writes an unexpected error of a tool to the log."""
    temperature: float = 0.0
    """The least of its answers; see `attempts.temperature`."""
    test: str = ""
    """The only failing test that it has to correct; "" for all."""


@dataclass(frozen=True, slots=True)
class AssembledRun:
    """What carries out a run, with descriptions for the user."""

    work: Work
    model: str
    sandbox: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class ForeignRequest:
    """What the run of someone else's agent is assembled from."""

    name: str
    wanted: RunRequest
    tree: Tree
    sandbox: Sandbox
    approvals: Approver
    limits: RunLimits
    policy: Policy
    """Policy after the approval of a plan."""
    check: Callable[[str, Cancel], Observation] | None
    """Runs the user's linter and tests at the end; None if there are none."""


class ForeignAgents(Protocol):
    """The agents of others, by name; see `acp.agents`."""

    def has(self, name: str) -> bool:
        """Return whether a name is that of an agent, not of a model."""

    def open(self, request: ForeignRequest) -> tuple[Work, str]:
        """Return what carries out a run, and what the user should know of it.

        Raises:
            LcursorError: it is not installed, or there is no model for it.
        """

    def rows(self) -> Sequence[AgentModel]:
        """Return all agents, with what is missing for each."""


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """The stored changes of a run."""

    turn: str = ""
    """Key of the turn; "" without changes."""
    paths: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Messages about changes that cannot be hunks."""
    digest: str = ""
    """Result of `attempts.digest`."""
    added: int = 0
    """Number of lines."""
    removed: int = 0
    changes_tests: bool = False
    """Result of `result.changed_tests`."""
