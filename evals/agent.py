"""`python -m lcursor eval agent`: how many small tasks an agent solves, and how many a peer.

The agents are `python -m lcursor agent` and, with --peer, mini-swe-agent, which has only a shell.
Both use the same local server, the same number of answers, temperature 0, and a sandbox.
"""

from __future__ import annotations

import json
import os
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from bench.report import Json, emit, head, run_facts, table
from evals import run
from evals.agent_tasks import TASKS, Task, is_done, is_sound, load, make_project
from lcursor.config import ChatConfig
from lcursor.drive.editor import ROOT
from lcursor.errors import LcursorError
from lcursor.http import endpoint
from lcursor.llm.server import LocalServer
from lcursor.llm.server_state import default_folder
from lcursor.storage import folders

MODEL = "qwen2.5-coder-1.5b"
MAX_STEPS = 10
MAX_ANSWER_TOKENS = 1024
"""Of the peer, whose answers would otherwise end with the context."""
MAX_S = 900.0


@dataclass(frozen=True, slots=True)
class Result:
    """What an agent did with a task. Tokens are those of its model."""

    task: str
    agent: str
    is_solved: bool
    end: str
    """How the run ended."""
    cause: str
    """Why it is not solved: "no change", "wrong place" or "wrong change"."""
    steps: int
    """Answers of the model."""
    malformed: int
    read_tokens: int
    """Evaluated, not cached; -1 if unknown."""
    answer_tokens: int
    seconds: float


def command(
    name: Annotated[str, typer.Option(help="Only tasks with this in their name.")] = "",
    tasks: Annotated[
        Path | None, typer.Option(help="A file of other tasks.", exists=True, dir_okay=False)
    ] = None,
    only_check: Annotated[
        bool, typer.Option("--only-check", help="Check the tasks; run no agent.")
    ] = False,
    model: run.Model = MODEL,
    max_steps: Annotated[int, typer.Option(min=1, help="Answers a task.")] = MAX_STEPS,
    peer: Annotated[
        Path | None,
        typer.Option(help="The program `mini` of mini-swe-agent, to run as well.", exists=True),
    ] = None,
    evidence: Annotated[
        bool, typer.Option("--evidence", help="Trace failed tests for the model.")
    ] = False,
    attempts: Annotated[int, typer.Option(min=1, help="Attempts at a task.")] = 1,
    native: Annotated[
        bool,
        typer.Option("--native", help="Call tools by the server's API, whatever the model."),
    ] = False,
    only_peer: Annotated[bool, typer.Option("--only-peer", help="Run only the peer.")] = False,
    cases: run.Cases = None,
    as_json: Json = False,
) -> None:
    """Let an agent do small tasks; compare it with one that has only a shell.

    Exits with 1 if a check passes without the task being done, or fails with its solution.
    """
    wanted = [each for each in load(tasks or TASKS) if name in each.name]
    chosen = [each for each in wanted if each.language.is_here]
    skipped = {
        each.name: f"{each.language.runs[0]} is not here" for each in wanted if each not in chosen
    }
    began_s = time.monotonic()
    if wrong := [each.name for each in chosen if not is_sound(each)]:
        raise LcursorError(f"these checks are wrong: {', '.join(wrong)}")
    if only_check:
        seconds = round(time.monotonic() - began_s, 1)
        checked = {"checked": len(chosen), "skipped": skipped, "seconds": seconds}
        lines = [f"{len(chosen)} tasks are right, {seconds} s", *_skips(skipped)]
        emit(checked, lines, as_json)
        return
    with _own_data(), _serving(model) as url:
        agents: list[Callable[[Task, Path], Result]] = []
        if not only_peer:
            module = "evals.native_calls" if native else "lcursor"
            more = ["--model", model, "--max-steps", str(max_steps)]
            more += ["--evidence"] * evidence
            more += ["--attempts", str(attempts)] * (attempts > 1)
            agents.append(lambda task, folder: _run_lcursor(task, folder, module, more))
        if peer is not None:
            agents.append(lambda task, folder: _run_peer(task, folder, model, max_steps, peer, url))
        results = (measure(task, agent) for agent in agents for task in chosen)
        found = run.collect(results, len(chosen) * len(agents), _describe, cases)
    document = {**run_facts(model=model), **as_dict(found, len(chosen), skipped)}
    emit(document, as_markdown(document), as_json)


def measure(task: Task, agent: Callable[[Task, Path], Result]) -> Result:
    """Let an agent do a task in a new folder, and check what it did."""
    with tempfile.TemporaryDirectory(prefix="lcursor-eval-") as name:
        folder = Path(os.path.realpath(name)) / task.project.name
        make_project(task, folder)
        began_s = time.monotonic()
        found = agent(task, folder)
        seconds = round(time.monotonic() - began_s, 1)
        is_solved = is_done(task, folder)
        words = ["git", "diff", "--name-only", "HEAD"]
        changed = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True)
        cause = "" if is_solved else _cause(task, set(changed.stdout.splitlines()))
        return replace(found, is_solved=is_solved, cause=cause, seconds=seconds)


def _cause(task: Task, changed: set[str]) -> str:
    if not changed:
        return "no change"
    return "wrong change" if changed & {each.file for each in task.solution} else "wrong place"


def _run_lcursor(task: Task, folder: Path, module: str, more: Sequence[str]) -> Result:
    words = [sys.executable, "-m", module, "agent", task.text, "--test", task.language.test, *more]
    words += ["--apply", "--json", "--path", str(folder)]
    output = subprocess.run(
        words, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, timeout=MAX_S, check=False
    )
    messages = [json.loads(line) for line in output.stdout.splitlines()]
    ends = {each["run"]: each for each in messages if each["method"] == "agent.done"}
    if not ends or "" in ends:
        error = output.stderr.decode(errors="replace")[-500:]
        raise LcursorError(f"the agent did not start: {error}")
    done = messages[-1]
    answers = [each for key in ends for each in _answers(key)]
    return Result(
        task.name,
        "lcursor",
        False,
        done["state"],
        "",
        len(answers),
        sum(bool(each["problem"]) for each in answers),
        sum(each["read_tokens"] for each in ends.values()),
        sum(each["answer_tokens"] for each in ends.values()),
        0.0,
    )


def _answers(key: str) -> list[dict[str, Any]]:
    """Return the answers of the model in a run."""
    path = next((folders.data_home() / "agents").rglob(f"{key}/run.jsonl"))
    ops = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [each for each in ops if each.get("op") == "answer"]


def _run_peer(
    task: Task, folder: Path, model: str, max_steps: int, program: Path, url: str
) -> Result:
    trace, settings = folder.parent / "trace.json", folder.parent / "settings.yaml"
    environment = {"environment_class": "bubblewrap", "cwd": str(folder)}
    arguments = {
        "api_base": f"{url}/v1",
        "api_key": "none",
        "temperature": 0,
        "max_tokens": MAX_ANSWER_TOKENS,
    }
    asked = {"model_class": "litellm_textbased", "model_kwargs": arguments}
    limits = {"agent_class": "default", "step_limit": max_steps}
    settings.write_text(json.dumps({"environment": environment, "model": asked, "agent": limits}))
    asked_for = f"{task.text}\n\nThe tests: {task.language.test}"
    words = [str(program), "-c", "mini_textbased.yaml", "-c", str(settings), "-l", "0", "-y"]
    words += ["-m", f"openai/{model}", "-t", asked_for, "-o", str(trace)]
    env = {"HOME": str(folder.parent), "PATH": os.environ["PATH"], "LITELLM_LOCAL_MODEL_COST_MAP":
           "True", "MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors"}  # fmt: skip
    output = subprocess.run(
        words, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=MAX_S,
        check=False,
    )  # fmt: skip
    try:
        made = json.loads(trace.read_text(encoding="utf-8"))
    except OSError as error:
        words = output.stderr.decode(errors="replace").splitlines()[-3:]
        raise LcursorError(f"the peer did not start: {' '.join(words)}") from error
    answers = [each for each in made["messages"] if each["role"] == "assistant"]
    usages = [each["extra"]["response"]["usage"] for each in answers]
    cached = [each["prompt_tokens_details"]["cached_tokens"] for each in usages]
    return Result(
        task.name,
        "mini-swe-agent",
        False,
        made["info"]["exit_status"],
        "",
        made["info"]["model_stats"]["api_calls"],
        made["info"]["model_stats"]["api_calls"] - len(answers),
        sum(each["prompt_tokens"] for each in usages) - sum(cached),
        sum(each["completion_tokens"] for each in usages),
        0.0,
    )


@contextmanager
def _own_data() -> Iterator[None]:
    """Use a data folder with the models and nothing else."""
    models = folders.data_home() / "models"
    with tempfile.TemporaryDirectory(prefix="lcursor-eval-") as name:
        Path(name, "models").symlink_to(models)
        before = os.environ.get("LCURSOR_DATA")
        os.environ["LCURSOR_DATA"] = name
        try:
            yield
        finally:
            if before is None:
                del os.environ["LCURSOR_DATA"]
            else:
                os.environ["LCURSOR_DATA"] = before


@contextmanager
def _serving(model: str) -> Iterator[str]:
    """Run the local server, and yield its address for a program that needs TCP."""
    server = LocalServer(ChatConfig(model=model), default_folder(), lambda _: None)
    try:
        path = endpoint.socket_path(server.ensure().url)
        with bridge(path) as url:
            yield url
    finally:
        server.stop()
        server.close()


@contextmanager
def bridge(path: str) -> Iterator[str]:
    """Connect a TCP port with a Unix socket, and yield its address."""
    with _Bridge(("127.0.0.1", 0), _Pipe) as server:
        server.path = path
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


class _Bridge(socketserver.ThreadingTCPServer):
    daemon_threads = True
    path = ""


class _Pipe(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, _Bridge)
        with socket.socket(socket.AF_UNIX) as other:
            other.connect(self.server.path)
            back = threading.Thread(target=_copy, args=(other, self.request), daemon=True)
            back.start()
            _copy(self.request, other)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # one of them has closed


def as_dict(
    found: Sequence[Result], count: int, skipped: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the report as JSON: the numbers of tasks solved, and the share of valid answers.

    Args:
        count: of the tasks.
        skipped: names of other tasks, and why they cannot be done here.
    """
    ours = [each for each in found if each.agent == "lcursor"]
    peer = [each for each in found if each.agent != "lcursor"]
    answers = sum(each.steps for each in ours)
    return {
        "tasks": count,
        "skipped": dict(skipped or {}),
        "solved": sum(each.is_solved for each in ours) if ours else None,
        "baseline": sum(each.is_solved for each in peer) if peer else None,
        "valid": round(1 - sum(each.malformed for each in ours) / answers, 4) if answers else None,
        "agents": [_sums(each) for each in (ours, peer) if each],
        "unsolved": [
            {"agent": each.agent, "task": each.task, "cause": each.cause, "end": each.end}
            for each in found
            if not each.is_solved
        ],
    }


def _sums(found: Sequence[Result]) -> dict[str, Any]:
    count = len(found)
    return {
        "agent": found[0].agent,
        "solved": sum(each.is_solved for each in found),
        "steps": round(sum(each.steps for each in found) / count, 1),
        "malformed": sum(each.malformed for each in found),
        "read_tokens": round(sum(each.read_tokens for each in found) / count),
        "answer_tokens": round(sum(each.answer_tokens for each in found) / count),
        "seconds": round(sum(each.seconds for each in found) / count, 1),
    }


def as_markdown(document: Mapping[str, Any]) -> list[str]:
    """Return the lines of the report."""
    names = {
        "solved": f"solved, of {document['tasks']}",
        "steps": "answers a task",
        "malformed": "malformed answers, all tasks",
        "read_tokens": "tokens evaluated a task",
        "answer_tokens": "tokens written a task",
        "seconds": "seconds a task",
    }
    agents = document["agents"]
    rows = [(words, *(each[key] for each in agents)) for key, words in names.items()]
    lines = [
        *head(document, f"Model: {document['model']}"),
        *table(["", *(f"{each['agent']}:" for each in agents)], rows),
        "",
    ]
    lines += [
        f"- not solved: {each['task']}, {each['agent']}: {each['cause']}, {each['end']}"
        for each in document["unsolved"]
    ]
    return lines + _skips(document["skipped"])


def _skips(skipped: Mapping[str, str]) -> list[str]:
    return [f"- skipped: {name}, {reason}" for name, reason in skipped.items()]


def _describe(found: Sequence[Result]) -> str:
    return f"{sum(each.is_solved for each in found)} solved"
