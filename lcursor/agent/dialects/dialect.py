"""The form in which a model calls tools, and what it is offered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from lcursor.agent.records import Answer, DialectName, Known, Observation, Reply, ToolCall
from lcursor.agent.run_log import RunState
from lcursor.agent.tools.pages import Pages
from lcursor.agent.tools.read_lines import ReadLines
from lcursor.agent.tools.table import TOOLS
from lcursor.agent.tools.tool import Tool, ToolContext


class Dialect(ABC):
    """A form of tool calls.

    The methods that are not abstract are for small models, which get help: see `agent.guided`.
    """

    name: DialectName
    temperature: float
    tools: Sequence[Tool] = TOOLS
    is_forced = False
    """Whether the grammar is about the whole answer, not only about a call."""
    note = ""
    """For the user, at the start of a run."""
    can_plan = True
    """Whether its models can plan a change of the project."""
    searches_servers = True
    """Whether its models search for tools of servers; others are offered those for the task."""

    @abstractmethod
    def system(self, tools: Sequence[Tool], facts: str) -> str:
        """Return the system text: the task's rules, the tools, and facts on the project."""

    @abstractmethod
    def grammar(self, tools: Sequence[Tool], known: Known) -> str:
        """Return the GBNF grammar of an answer, or of a call; "" for none."""

    @abstractmethod
    def parse(self, answer: Answer, tools: Sequence[Tool], known: Known) -> Reply:
        """Parse an answer."""

    @abstractmethod
    def observations(self, calls: Sequence[ToolCall], found: Sequence[Observation]) -> str:
        """Return the message with the results of calls."""

    def pages(self, seen: ReadLines) -> Pages:
        """Return what shows rows of files."""
        return Pages(seen)

    def facts(self, known: Known, of_project: Callable[[], str]) -> str:
        """Return what a model should know of the project at the start."""
        return of_project()

    def known(self, context: ToolContext) -> Known:
        """Return what the model may name."""
        return Known(commands=context.commands())

    def offered(self, known: Known, state: RunState, tree_id: str) -> Known:
        """Return what may be named in the next answer.

        Args:
            known: all that may be named.
            tree_id: the present files.
        """
        return known

    def own_answer(self, known: Known, state: RunState, tree_id: str) -> str:
        """Return the next answer if it needs no model, else ""; arguments as in `offered`."""
        return ""

    def observe(self, call: ToolCall, found: Observation, context: ToolContext) -> None:  # noqa: B027
        """Record what a result names."""
