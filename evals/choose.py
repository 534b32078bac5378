"""Let a small model choose the next action of fixed transcripts, in the dialect `choice`.

The transcripts are in evals/data/agent/choose.jsonl, each with the actions that are right. That an
action is valid follows from the grammar; whether it is right is what this measures.
"""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from bench.report import Json, emit, head, percent, run_facts, table
from evals import run
from evals.corpus import ROOT
from lcursor.agent.guided.choice import Choice, facts
from lcursor.agent.records import Answer, Known, Observation, Shown
from lcursor.config import ChatConfig
from lcursor.errors import LcursorError
from lcursor.http.client import Client, Limits
from lcursor.llm.server import LocalServer

DATA = ROOT / "evals/data/agent/choose.jsonl"
MODEL = "qwen2.5-coder-1.5b"
CONTEXT_TOKENS = 4096
MAX_TOKENS = 120
LIMIT_S = 300.0
WORDS = {"find", "grep", "done"}
"""Verbs whose target is free text."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A transcript and the actions that may come next."""

    name: str
    task: str
    turns: Sequence[tuple[str, str]]
    """Actions and their results."""
    known: Known
    right: Sequence[tuple[str, str]]
    """Verbs and targets; of a text, a part of it."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a model chose."""

    name: str
    text: str
    is_valid: bool
    has_right_verb: bool
    is_right: bool
    prompt_tokens: int
    """Tokens of the prompt that were evaluated; the others were cached."""
    answer_tokens: int
    seconds: float


def command(
    data: Annotated[Path, typer.Option(help="The transcripts.", show_default=False)] = DATA,
    name: Annotated[str, typer.Option(help="Only those with this in their name.")] = "",
    model: run.Model = MODEL,
    cases: run.Cases = None,
    as_json: Json = False,
) -> None:
    """Let a model choose the next action of an agent: share of right verbs and targets."""
    decisions = [one for one in load(data) if name in one.name]
    with serving(model) as client:
        answers = (choose(client, one) for one in decisions)
        found = run.collect(answers, len(decisions), _describe, cases)
    document = as_dict(found, run_facts(model=model))
    emit(document, as_markdown(document), as_json)


def load(path: Path = DATA) -> list[Decision]:
    """Read the transcripts.

    Raises:
        LcursorError: the file is missing or malformed.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [_decision(json.loads(line)) for line in lines]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LcursorError(
            f"{path} is not a file of transcripts ({error})", f"Give the file: --data {DATA}"
        ) from error


def _decision(row: Mapping[str, Any]) -> Decision:
    known = row["known"]
    return Decision(
        row["id"],
        row["task"],
        [(action, result) for action, result in row["turns"]],
        Known(
            tuple(known["paths"]),
            {path: tuple(names) for path, names in known["symbols"].items()},
            {key: Shown(*region) for key, region in known["regions"].items()},
            known["commands"],
        ),
        [(verb, target) for verb, target in row["right"]],
    )


@contextmanager
def serving(model: str) -> Iterator[Client]:
    """Run a local server with a model."""
    with tempfile.TemporaryDirectory(prefix="lcursor-eval-") as folder:
        config = ChatConfig(model=model, context_tokens=CONTEXT_TOKENS, idle_minutes=5)
        server = LocalServer(config, Path(folder), lambda _: None)
        try:
            target = server.ensure()
            yield Client(target.url, target.key, target.setting, Limits(silence_s=LIMIT_S))
        finally:
            server.stop()


def choose(client: Client, decision: Decision) -> Chosen:
    """Let the model choose."""
    dialect = Choice()
    messages = [
        {"role": "system", "content": dialect.system((), facts(decision.known))},
        {"role": "user", "content": decision.task},
    ]
    for action, result in decision.turns:
        messages.append({"role": "assistant", "content": action})
        messages.append({"role": "user", "content": _shown(decision.known, action, result)})
    prompt = client.request("/apply-template", {"messages": messages}).json()["prompt"]
    body = {
        "prompt": prompt,
        "grammar": dialect.grammar((), decision.known),
        "temperature": dialect.temperature,
        "n_predict": MAX_TOKENS,
        "cache_prompt": True,
    }
    began_s = time.monotonic()
    found = client.request("/completion", body, LIMIT_S).json()
    seconds = time.monotonic() - began_s
    timings = found["timings"]
    text = found["content"].strip()
    is_valid, has_right_verb, is_right = judge(decision, text)
    return Chosen(
        decision.name,
        text,
        is_valid,
        has_right_verb,
        is_right,
        timings["prompt_n"],
        timings["predicted_n"],
        round(seconds, 2),
    )


def _shown(known: Known, action: str, result: str) -> str:
    """Return the message with a result."""
    dialect = Choice()
    calls = dialect.parse(Answer(action), (), known).calls
    match = re.match(r"exit (\d+)", result)
    found = Observation(result, status=int(match[1]) if match else None)
    return dialect.observations(calls, [found])


def judge(decision: Decision, text: str) -> tuple[bool, bool, bool]:
    """Return whether a step is valid, has a right verb, and a right target for it."""
    reply = Choice().parse(Answer(text), (), decision.known)
    if reply.problem or not reply.calls:
        return False, False, False
    verb, _, target = Choice().render(reply.calls[0], decision.known).partition(" ")
    wanted = [each for right, each in decision.right if right == verb]
    if verb in WORDS:
        is_right = any(each.lower() in target.lower() for each in wanted)
    else:
        is_right = target.partition(" : ")[0] in wanted
    return True, bool(wanted), is_right


def as_dict(found: Sequence[Chosen], head_facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the report as JSON."""
    count = max(len(found), 1)
    wrong = [one for one in found if not one.is_right]
    return {
        **head_facts,
        "decisions": len(found),
        "valid": round(sum(one.is_valid for one in found) / count, 4),
        "right_verb": round(sum(one.has_right_verb for one in found) / count, 4),
        "right": round(sum(one.is_right for one in found) / count, 4),
        "prompt_tokens": round(sum(one.prompt_tokens for one in found) / count, 1),
        "answer_tokens": round(sum(one.answer_tokens for one in found) / count, 1),
        "seconds": round(sum(one.seconds for one in found) / count, 2),
        "wrong": [{"name": one.name, "text": one.text} for one in wrong],
    }


def as_markdown(document: Mapping[str, Any]) -> list[str]:
    """Return the lines of the report."""
    names = {
        "valid": "valid action",
        "right_verb": "right verb",
        "right": "right verb and target",
    }
    rows: list[tuple[object, object]] = [
        (words, percent(document[key])) for key, words in names.items()
    ]
    rows += [
        ("tokens evaluated a decision", document["prompt_tokens"]),
        ("tokens written a decision", document["answer_tokens"]),
        ("seconds a decision", document["seconds"]),
    ]
    wrong = document["wrong"]
    lines = [
        *head(document, f"Model: {document['model']}"),
        *table([f"{document['decisions']} decisions", "result:"], rows),
        "",
    ]
    shown = (f"- {one['name']}: {' / '.join(one['text'].split(chr(10)))}" for one in wrong)
    return [*lines, *shown]


def _describe(found: Sequence[Chosen]) -> str:
    return f"{sum(one.is_right for one in found)} right"
