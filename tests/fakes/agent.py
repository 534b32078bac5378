"""The parts of a run without a model server, a sandbox or git: scripted, instant, and counted."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lcursor.agent.dialects.dialect import Dialect
from lcursor.agent.parts import RunLimits, RunParts
from lcursor.agent.records import (
    Answer,
    Decision,
    DialectName,
    Known,
    Observation,
    OnText,
    OnWait,
    Policy,
    Reply,
    Shown,
    ToolCall,
)
from lcursor.agent.run_log import AgentStep, RunState
from lcursor.agent.tools.table import ALL, has_effect
from lcursor.agent.tools.tool import Tool
from lcursor.context.servers import AskUser
from lcursor.errors import Cancelled
from lcursor.llm.records import Usage, add_usage
from lcursor.process.run import Cancel
from lcursor.protocol.agent import AgentChoice, StepState

NO_LIMITS = RunLimits()
TOOLS = tuple(ALL[name] for name in ("str_replace_editor", "bash", "grep", "finish"))

Scripted = str | Exception | Answer | Callable[["ScriptModel"], str]


def call(tool: str, **arguments: Any) -> str:
    """Return an answer that calls a tool."""
    return json.dumps({"tool": tool, **arguments})


def view(path: str) -> str:
    return call("str_replace_editor", command="view", path=path)


def create(path: str, text: str) -> str:
    return call("str_replace_editor", command="create", path=path, file_text=text)


def replace(path: str, old: str, new: str) -> str:
    return call("str_replace_editor", command="str_replace", path=path, old_str=old, new_str=new)


def bash(command: str) -> str:
    return call("bash", command=command)


def finish(summary: str = "It is done.") -> str:
    return call("finish", summary=summary)


class ScriptModel:
    """A model that follows a script; an exception in it is raised in place of an answer.

    Each entry answers the request with its index, counted over the whole conversation, so that a
    run that is continued goes on where it was.
    """

    def __init__(self, script: Sequence[Scripted], context_tokens: int = 8192) -> None:
        self.script, self.context_tokens = list(script), context_tokens
        self.rows: list[list[str]] = []
        self.asked: list[dict[str, Any]] = []
        """Arguments of each request."""
        self.prompts: list[list[list[str]]] = []
        self.played = 0
        """Number of entries that were answered or raised."""
        self.is_closed = False
        self.usage = Usage()

    def begin(self, system: str, task: str) -> None:
        self.rows = [["system", system], ["user", task]]

    def append(self, text: str, results: Sequence[str] = ()) -> None:
        self.rows.append(["user", text])

    def add_answer(self, text: str) -> None:
        self.rows.append(["assistant", text])

    def ask(
        self,
        on_text: OnText,
        *,
        max_tokens: int,
        temperature: float = 0.0,
        grammar: str = "",
        is_forced: bool = False,
        on_wait: OnWait = lambda _: None,
    ) -> Answer:
        if self.is_closed:
            raise Cancelled("closed")
        self.asked.append(
            {"max_tokens": max_tokens, "temperature": temperature, "is_forced": is_forced}
        )
        self.prompts.append([list(row) for row in self.rows])
        entry = self.script[min(self.played, len(self.script) - 1)]
        self.played += 1
        if isinstance(entry, Exception):
            raise entry
        if callable(entry):
            entry = entry(self)
        answer = (
            entry if isinstance(entry, Answer) else Answer(entry, answer_tokens=len(entry) // 4)
        )
        text = ""
        for at in range(0, len(answer.text), 8):
            text += answer.text[at : at + 8]
            if not on_text(answer.text[at : at + 8]):
                answer = Answer(text, "stopped", answer_tokens=len(text) // 4)
                break
        used = self.used_tokens
        self.rows.append(["assistant", answer.text])
        self.usage = add_usage(self.usage, Usage(used, used - 2, answer.answer_tokens))
        return Answer(answer.text, answer.finish, used, used - 2, answer.answer_tokens)

    def drop_answer(self) -> None:
        assert self.rows.pop()[0] == "assistant"

    def count(self, text: str) -> int:
        return len(text) // 4

    @property
    def used_tokens(self) -> int:
        return sum(len(text) // 4 + 4 for _, text in self.rows)

    def state(self) -> Mapping[str, Any]:
        return {"rows": [list(row) for row in self.rows], "played": self.played}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.rows, self.played = [list(row) for row in state["rows"]], state["played"]

    def close(self) -> None:
        self.is_closed = True


class LineDialect(Dialect):
    """A dialect with a JSON object per line for each call."""

    name: DialectName = "native"
    temperature = 0.5

    def system(self, tools: Sequence[Tool], facts: str) -> str:
        return f"tools: {', '.join(each.name for each in tools)}\n{facts}"

    def grammar(self, tools: Sequence[Tool], known: Known) -> str:
        return "root ::= call"

    def parse(self, answer: Answer, tools: Sequence[Tool], known: Known) -> Reply:
        calls, names = [], {each.name for each in tools}
        for line in answer.text.splitlines():
            if not line.startswith("{"):
                continue
            try:
                row = dict(json.loads(line))
            except ValueError:
                return Reply(problem="This is no JSON.")
            if row.get("tool") not in names:
                return Reply(problem=f"There is no tool {row.get('tool')}.")
            calls.append(ToolCall(row.pop("tool"), row))
        return Reply(calls=tuple(calls))

    def observations(self, calls: Sequence[ToolCall], found: Sequence[Observation]) -> str:
        return "\n".join(each.text for each in found)


@dataclass(frozen=True)
class ChangedPath:
    path: str
    added: int = 1
    removed: int = 1


class FolderTree:
    """A copy of a project whose checkpoints are copies, by digest."""

    def __init__(self, folder: Path, files: Mapping[str, str] | None = None) -> None:
        self.path, self._store = folder / "tree", folder / "store"
        if files is not None and not self.path.is_dir():
            self.path.mkdir(parents=True)
            for name, text in files.items():
                (self.path / name).parent.mkdir(parents=True, exist_ok=True)
                (self.path / name).write_text(text)
        base = folder / "base"
        if not base.is_file():
            base.write_text(self.checkpoint())
        self.base = base.read_text()

    def files(self) -> dict[str, str]:
        paths = sorted(each for each in self.path.rglob("*") if each.is_file())
        return {str(each.relative_to(self.path)): each.read_text() for each in paths}

    def checkpoint(self) -> str:
        digest = hashlib.sha256(repr(self.files()).encode()).hexdigest()[:12]
        if not (self._store / digest).is_dir():
            part = self._store / f"{digest}.part"
            shutil.rmtree(part, ignore_errors=True)
            shutil.copytree(self.path, part)
            part.rename(self._store / digest)
        return digest

    def restore(self, tree_id: str) -> None:
        shutil.rmtree(self.path)
        shutil.copytree(self._store / tree_id, self.path)

    def changed(self, since: str = "") -> list[ChangedPath]:
        before, now = FolderTree.files_of(self._store / (since or self.base)), self.files()
        names = (name for name in before.keys() | now if before.get(name) != now.get(name))
        return [ChangedPath(name) for name in sorted(names)]

    @staticmethod
    def files_of(folder: Path) -> dict[str, str]:
        paths = sorted(each for each in folder.rglob("*") if each.is_file())
        return {str(each.relative_to(folder)): each.read_text() for each in paths}


class FolderTools:
    """Tools on a folder; `gate` are the results of calls of finish, the last one repeated."""

    tools: Sequence[Tool] = TOOLS

    def __init__(self, folder: Path, gate: Sequence[bool] = (True,)) -> None:
        self.folder, self.gate = folder, list(gate)
        self.ran: list[ToolCall] = []
        self.remembered: list[Shown] = []

    def known(self) -> Known:
        return Known()

    def remember(self, shown: Sequence[Shown]) -> None:
        self.remembered += shown

    def run(
        self,
        call: ToolCall,
        cancel: Cancel,
        *,
        is_unconfined: bool = False,
        ask: AskUser | None = None,
    ) -> Observation:
        self.ran.append(call)
        arguments = call.arguments
        if call.tool == "finish":
            passed = self.gate.pop(0) if len(self.gate) > 1 else self.gate[0]
            if passed:
                return Observation("done", result="done", status=0)
            return Observation("the tests fail", is_error=True, result="tests fail", status=1)
        if call.tool == "bash":
            done = subprocess.run(
                ["bash", "-c", arguments["command"]],
                cwd=self.folder,
                capture_output=True,
                text=True,
            )
            text = f"exit {done.returncode} · 0.1 s\n{done.stdout}{done.stderr}"
            return Observation(
                text, target=arguments["command"], result=f"exit {done.returncode}",
                status=done.returncode,
            )  # fmt: skip
        if call.tool == "grep":
            hits = [
                f"{name}: {line}"
                for name, text in FolderTree.files_of(self.folder).items()
                for line in text.splitlines()
                if arguments["pattern"] in line
            ]
            return Observation("\n".join(hits) or "no hits", result=f"{len(hits)} hits")
        return self._edit(arguments)

    def _edit(self, arguments: Mapping[str, Any]) -> Observation:
        path, name = self.folder / arguments["path"], arguments["path"]
        if arguments["command"] == "create":
            path.write_text(arguments["file_text"])
            return Observation("created", target=name, result="created")
        if not path.is_file():
            return Observation(f"{name} does not exist", is_error=True, target=name)
        text = path.read_text()
        if arguments["command"] == "view":
            shown = (Shown(name, 0, len(text.splitlines())),)
            return Observation(text, target=name, shown=shown)
        if text.count(arguments["old_str"]) != 1:
            return Observation("no unique match", is_error=True, target=name)
        path.write_text(text.replace(arguments["old_str"], arguments["new_str"]))
        return Observation("edited", target=name, result="1 line changed")


class Approver:
    """Asks about commands that contain `asks`, and forbids writes in plan mode."""

    def __init__(self, asks: str = "") -> None:
        self.policy: Policy = "auto"
        self._asks = asks
        self._allowed: dict[str, Decision] = {}

    def decide(self, call: ToolCall) -> Decision:
        if known := self._allowed.get(call.key):
            return known
        if self.policy == "plan" and has_effect(call):
            return Decision("forbid", "This is plan mode.")
        if self._asks and self._asks in call.arguments.get("command", ""):
            return Decision("ask", f"uses {self._asks}")
        return Decision("allow")

    def remember(
        self, call: ToolCall, choice: AgentChoice, reason: str = "", *, is_earlier: bool = False
    ) -> None:
        found = Decision("forbid", f"rejected: {reason}")
        if choice != "once":
            self._allowed[call.key] = Decision("allow") if choice == "run" else found

    def ran(self, call: ToolCall) -> None:
        """Keep all answers."""


@dataclass
class Watcher:
    """A user who answers from lists, and sees everything."""

    choices: list[tuple[AgentChoice, str]] = field(default_factory=list)
    plans: list[str] = field(default_factory=list)
    steps: list[tuple[int, str, StepState]] = field(default_factory=list)
    text: str = ""
    states: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    shown_plans: list[str] = field(default_factory=list)

    def step(self, step: AgentStep, state: StepState) -> None:
        self.steps.append((step.number, step.kind, state))

    def delta(self, text: str, *, is_new: bool) -> None:
        self.text += ("\n" if is_new else "") + text

    def status(self, state: str) -> None:
        self.states.append(state)

    def ask(self, step: AgentStep, asked: Decision) -> tuple[AgentChoice, str]:
        self.questions.append(asked.why)
        return self.choices.pop(0)

    def plan(self, text: str, *, is_question: bool = False) -> str:
        self.shown_plans.append(text)
        return self.plans.pop(0)


def parts(
    folder: Path,
    script: Sequence[Scripted],
    files: Mapping[str, str] | None = None,
    *,
    asks: str = "",
    gate: Sequence[bool] = (True,),
    limits: RunLimits = NO_LIMITS,
    context_tokens: int = 8192,
) -> tuple[RunParts, ScriptModel, FolderTree, FolderTools]:
    """Return the parts of a run in a folder; a second call continues with the same files."""
    model = ScriptModel(script, context_tokens)
    tree = FolderTree(folder, files or {"a.py": "x = 1\n"})
    tools = FolderTools(tree.path, gate)

    def summarize(state: RunState) -> None:
        last = model.rows[-2:]
        model.begin("system", f"{state.task}\nsummary of {len(state.steps)} steps")
        model.rows += last

    made = RunParts(model, LineDialect(), tools, tree, Approver(asks), summarize, limits=limits)
    return made, model, tree, tools
