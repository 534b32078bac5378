"""The dialect of servers that have tools: calls are fields of a message, not text. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from lcursor.agent.dialects import call_parser, prompts
from lcursor.agent.dialects.arguments import Malformed, call_of
from lcursor.agent.dialects.dialect import Dialect
from lcursor.agent.records import Answer, DialectName, Known, Observation, Reply, ToolCall
from lcursor.agent.tools.tool import Tool
from lcursor.llm.tool_calls import arguments_of


class Api(Dialect):
    """The dialect."""

    name: DialectName = "api"
    temperature = 0.7

    def system(self, tools: Sequence[Tool], facts: str) -> str:
        """Return the system text, without the tools, which are in the request."""
        return prompts.with_facts(prompts.RULES, facts)

    def grammar(self, tools: Sequence[Tool], known: Known) -> str:
        """Return no grammar: the server keeps calls in their form."""
        return ""

    def parse(self, answer: Answer, tools: Sequence[Tool], known: Known) -> Reply:
        """Check the calls of an answer; a model without a server's help may write them as text."""
        if not answer.calls:
            return call_parser.read(answer, tools)
        calls: list[ToolCall] = []
        problem = ""
        for each in answer.calls:
            values = arguments_of(each)
            try:
                if values is None:
                    raise Malformed(f"The arguments of {each.name} are not a JSON object.")
                calls.append(call_of(each.name, values, tools))
            except Malformed as error:
                problem = problem or str(error)
        return Reply(answer.text.strip(), tuple(calls), problem)

    def observations(self, calls: Sequence[ToolCall], found: Sequence[Observation]) -> str:
        """Return the results as one text, for a conversation that was summarized meanwhile."""
        return "\n\n".join(each.text for each in found)
