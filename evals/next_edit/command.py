"""`eval next`: replay the commits of a repository, and judge the proposed next edits.

Steps and labels come from the commits, and traps were written by hand: what is right never comes
from the code under test. Asks no model and writes nothing.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from bench.report import Json, progress, run_facts
from evals.next_edit import commits, replay, report, traps
from lcursor.drive.editor import ROOT
from lcursor.next_edit.predict import predict

PROGRESS_EVERY_S = 10.0


def command(
    repo: Annotated[Path, typer.Option(help="A git clone.", show_default=False)] = ROOT,
    revision: Annotated[str, typer.Option("--rev", help="The newest commit.")] = "HEAD",
    count: Annotated[int, typer.Option("--n", min=1, help="Commits to replay.")] = 200,
    seed: Annotated[int, typer.Option(help="For the intervals.")] = 1,
    max_s: Annotated[float, typer.Option(help="Stop after this time.")] = 900.0,
    as_json: Json = False,
) -> None:
    """Replay commits as edits in six orders, and judge each proposed next edit.

    A proposal is right if it does what any remaining edit of the commit does. Also asks after edits
    that are traps. Asks no model.
    """
    judged = [*traps.judge(traps.load(), predict)]
    sessions: list[replay.Session] = []
    began_s = printed_s = time.monotonic()
    for number, commit in enumerate(commits.load(repo, count, revision), 1):
        sessions += replay.replay(commit, predict)
        now_s = time.monotonic()
        if now_s - printed_s >= PROGRESS_EVERY_S:
            printed_s = now_s
            progress(f"{number} commits, {now_s - began_s:.0f} s")
        if now_s - began_s > max_s:
            progress(f"stopped after {number} commits")
            break
    facts = run_facts(repository=repo.resolve().name, revision=commits.digest(repo, revision))
    document = report.as_dict(sessions, judged, facts, seed)
    typer.echo(json.dumps(document) if as_json else "\n".join(report.as_markdown(document)))
