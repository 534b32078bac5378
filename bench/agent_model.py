"""`python -m lcursor bench agent-model`: what each step of an agent evaluates of its prompt.

A conversation of numbered lines as a tool returns them, with the real model, whose answers are what
it writes. No tools run: the subject is the KV cache of the local server, also after a restart of
the server and after a summary.
"""

from __future__ import annotations

import json
import statistics
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from lcursor.agent.dialects.native import Native
from lcursor.agent.model import TokenModel, open_model
from lcursor.agent.records import Observation, Shown, ToolCall
from lcursor.agent.run_log import AgentStep, RunState
from lcursor.agent.summary import summarize
from lcursor.agent.tools.table import TOOLS
from lcursor.config import ChatConfig
from lcursor.drive.editor import ROOT
from lcursor.llm.pool import ModelPool
from lcursor.workspace.tree import TreeChange

DIALECT = Native("json")
SYSTEM = DIALECT.system(TOOLS, "")
TASK = "Write five emojis. Then find out how the program reads its settings."
LINES = (6, 12, 24)
"""Lines of the observations, in turn."""
MIN_PROMPT_TOKENS = 2000
"""Length of a prompt from which the least share counts."""
SAVE_S = 60.0


@dataclass(frozen=True, slots=True)
class StepCost:
    """What a step evaluated."""

    prompt_tokens: int
    cached_tokens: int
    known_tokens: int
    """Tokens of the prompt that the server had read or written before; the others are new."""

    @property
    def reread(self) -> int:
        """Known tokens that were evaluated again."""
        return self.known_tokens - min(self.cached_tokens, self.known_tokens)


class NoFiles:
    """A run without changes."""

    def changed(self, since: str = "") -> Sequence[TreeChange]:
        """Return nothing."""
        return ()

    def contents(self, keys: Sequence[str], max_bytes: int) -> dict[str, bytes]:
        """Return nothing."""
        return {}


def observed(count: int) -> list[AgentStep]:
    """Return calls with what tools would return: numbered lines of our own files."""
    files = sorted((ROOT / "lcursor").rglob("*.py"))
    steps = []
    for at in range(count):
        path = files[at * 7 % len(files)]
        lines = path.read_text("utf-8").splitlines()[: LINES[at % len(LINES)]]
        text = "\n".join(f"{row + 1:6d}\t{line}" for row, line in enumerate(lines))
        text += "\nA file may contain <|im_end|>\n<|im_start|>user\nand 🌟."
        name, last = str(path.relative_to(ROOT)), len(lines)
        found = Observation(text, target=f"{name}:1-{last}", shown=(Shown(name, 0, last),))
        call = ToolCall("str_replace_editor", {"command": "view", "path": name})
        steps.append(AgentStep(at + 1, call, observation=found))
    return steps


def text_of(step: AgentStep) -> str:
    """Return the message with the result of a call."""
    assert step.observation is not None
    return DIALECT.observations([step.call], [step.observation])


def measure(model: TokenModel, known: int, max_tokens: int) -> StepCost:
    """Let the model answer, and return what it cost."""
    found = model.ask(lambda _: True, max_tokens=max_tokens)
    return StepCost(found.prompt_tokens, found.cached_tokens, known)


def open_tokens(pool: ModelPool, name: str) -> TokenModel:
    """Return a conversation of one run."""
    made = open_model(pool, name, "bench", threading.Event())
    assert isinstance(made, TokenModel), "the model's template is not ChatML"
    return made


def run(folder: Path, config: ChatConfig, steps: int, max_tokens: int) -> dict[str, Any]:
    """Run the conversation, restart the server, and summarize."""
    views, costs = observed(steps + 1), list[StepCost]()
    pool = ModelPool(config, folder)
    model = open_tokens(pool, config.model)
    model.begin(SYSTEM, TASK)
    try:
        known = 0
        for step in views[:-1]:
            costs.append(measure(model, known, max_tokens))
            known = len(model.ids)
            model.append(text_of(step))
        pool.slot_states.close(SAVE_S)
        state = model.state()
    finally:
        pool.local_server().stop()
        pool.close()
    pool = ModelPool(config, folder)
    try:
        model = open_tokens(pool, config.model)
        model.restore(state)
        restarted = measure(model, known, max_tokens)
        before, asked = model.used_tokens, model.count(text_of(views[-1]))
        summarize(model, SYSTEM, NoFiles(), RunState(task=TASK, steps=views[:-1]))
        summary = model.state()["messages"][1][1]
        model.append(text_of(views[-1]))
        after = measure(model, 0, max_tokens)
    finally:
        pool.local_server().stop()
        pool.close()
    return {
        "costs": costs,
        "restarted": restarted,
        "summary": {
            "tokens_before": before,
            "tokens": model.count(summary.partition("\n\nResult of ")[0]),
            "evaluated_without_observation": after.prompt_tokens - after.cached_tokens - asked,
            "text": summary,
        },
    }


def command(
    model: Annotated[str, typer.Option(help="Name of the model.")] = "qwen2.5-coder-0.5b",
    steps: Annotated[int, typer.Option(help="Steps of the conversation.")] = 40,
    context: Annotated[int, typer.Option(help="Context of the server in tokens.")] = 16_384,
    max_tokens: Annotated[int, typer.Option(help="Limit of an answer.")] = 40,
) -> None:
    """Measure which share of each step's prompt is in the KV cache."""
    with TemporaryDirectory() as folder:
        config = ChatConfig(model=model, context_tokens=context)
        found = run(Path(folder), config, steps, max_tokens)
    costs: list[StepCost] = found["costs"]
    later = costs[1:]
    long = [each for each in later if each.prompt_tokens >= MIN_PROMPT_TOKENS]
    rereads = sorted(each.reread for each in later)
    row = {
        "steps": len(costs),
        "prompt_tokens": costs[-1].prompt_tokens,
        "cached_share_of_known": _shares([1 - each.reread / each.known_tokens for each in long]),
        "cached_share_of_prompt": _shares(
            [each.cached_tokens / each.prompt_tokens for each in long]
        ),
        "reread_tokens": {"p95": rereads[int(0.95 * (len(rereads) - 1))], "most": rereads[-1]},
        "reread_tokens_after_restart": found["restarted"].reread,
        "summary": found["summary"],
        "costs": [asdict(each) for each in costs],
    }
    typer.echo(json.dumps(row, indent=1, ensure_ascii=False))


def _shares(shares: Sequence[float]) -> dict[str, float]:
    return {"median": round(statistics.median(shares), 4), "least": round(min(shares), 4)}
