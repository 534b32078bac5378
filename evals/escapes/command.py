"""`python -m lcursor eval sandbox`: how many attempts to escape succeed, and what works inside."""

from __future__ import annotations

import json
import platform
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import typer

from bench.report import Json, head, run_facts, table
from evals.escapes import file_tools, runners
from evals.escapes.attempts import FILES, PROJECT, Attempt, all_attempts
from evals.escapes.host import Machine, Report
from evals.escapes.namespaces import accounts
from evals.escapes.workloads import BEYOND_LANDLOCK, WORKLOADS
from lcursor.process.sandbox import LEVELS, Level, probe_all

COUNTS = ("attempts", "escapes", "controls", "workloads", "workloads_tried")
RUNNERS: Mapping[str, runners.Runner] = {
    "git": runners.handoff,
    "tools": file_tools.attempt,
    "policy": runners.policy,
    "history": runners.project,
    "mounts": runners.project,
    "work": runners.work,
}


@dataclass(frozen=True, slots=True)
class Tried:
    """An attempt or ordinary work at a level of the sandbox; None as the level is a control."""

    account: str
    level: Level | None
    attempt: Attempt
    report: Report

    @property
    def is_work(self) -> bool:
        """Whether it is ordinary work."""
        return self.attempt.group == "work"

    @property
    def has_succeeded(self) -> bool:
        """Whether the attempt reached what it wants, or the work ended well."""
        if self.is_work:
            return "failed" not in self.report.findings
        if self.level is None:
            return self.attempt.expects in self.report.findings
        return bool(self.report.findings)

    @property
    def is_right(self) -> bool:
        """Whether the result is the one that is wanted, or known to be impossible."""
        if self.is_work:
            known = self.level == "landlock" and any(
                self.attempt.name in names for names in BEYOND_LANDLOCK.values()
            )
            return self.has_succeeded or known
        return self.has_succeeded == (self.level is None)

    def __str__(self) -> str:
        findings = " ".join(sorted(self.report.findings)) or "nothing"
        details = " ".join(self.report.details)
        if self.is_work:
            details = (self.report.failure or self.report.output)[-300:]
        words = f"{self.attempt.group}/{self.attempt.name}, {self.account}"
        return f"{words}, {self.level or 'control'}: {findings} {details}".strip()


def command(
    level: Annotated[str, typer.Option(help="Only this level of the sandbox.")] = "",
    group: Annotated[str, typer.Option(help="Only attempts of this group, or `work`.")] = "",
    name: Annotated[list[str] | None, typer.Option(help="Only these; part of the name.")] = None,
    account: Annotated[str, typer.Option(help="Only as this account: root or user.")] = "",
    as_json: Json = False,
) -> None:
    """Try to escape from the sandbox, and run ordinary work in it.

    Each attempt runs on a pretended machine, which sees from outside whether it changed or reached
    anything, and once more without the sandbox, where it must succeed. Exits with 1 if an attempt
    escapes, or a control or ordinary work fails.
    """
    chosen = [
        each
        for each in (*all_attempts(), *WORKLOADS)
        if each.group.startswith(group)
        and (not name or any(part.lower() in each.name.lower() for part in name))
        and (not each.needs or shutil.which(each.needs))
    ]
    probe_all()  # compiles the launcher
    tried: list[Tried] = []
    missing: list[str] = []
    for each in accounts():
        if account in ("", each.name):
            with closing(Machine(each, FILES, PROJECT)) as machine:
                levels = []
                for one in LEVELS:
                    if level in ("", one):
                        if why_not := _why_missing(machine, one):
                            missing.append(f"{one}, {each.name}: {why_not}")
                        else:
                            levels.append(one)
                tried += _results(machine, levels, chosen) if levels else ()
    document = {
        **as_dict(tried),
        "wrong": [str(each) for each in tried if not each.is_right],
        "missing": missing,
    }
    if not as_json:
        typer.echo("\n".join(as_markdown(document)) + "\n")
    typer.echo(json.dumps(document))
    if document["wrong"] or not tried:
        raise typer.Exit(1)


def _why_missing(machine: Machine, level: Level) -> str:
    """Return why a level does not work for an account; "" if it works."""
    simple = Attempt("writes", "", "echo it works", "changed")
    try:
        report = machine.do(partial(runners.attempt, simple, level))
    except OSError as error:
        return f"no namespace can be made for the attempts: {error}"
    return "" if report.output == "it works\n" else report.failure or report.output


def _results(
    machine: Machine, levels: Sequence[Level], chosen: Sequence[Attempt]
) -> Iterator[Tried]:
    """Make attempts at each level, and their controls; do work at each level."""
    for attempt in chosen:
        for level in (None, *levels) if attempt.group != "work" else levels:
            runner = RUNNERS.get(attempt.group, runners.attempt)
            report = machine.do(
                partial(runner, attempt, level),
                setup=attempt.setup,
                max_s=runners.WORK_S if attempt.group == "work" else 4 * attempt.max_s + 5,
                is_privileged=attempt.needs_root and level is None,
            )
            if report.failure:
                report.findings = {"failed"}
                report.details = report.failure.splitlines()[-1:]
            yield Tried(machine.account.name, level, attempt, report)


def as_dict(tried: Sequence[Tried]) -> dict[str, Any]:
    """Count by level and account."""
    counts: Counter[tuple[str, Level | None, str]] = Counter()
    found: dict[str, Any] = {name: {} for name in COUNTS}
    for each in tried:
        all_of, those = ("workloads_tried", "workloads") if each.is_work else COUNTS[:2]
        counts[all_of, each.level, each.account] += 1
        counts[those, each.level, each.account] += each.has_succeeded
    for level, account in dict.fromkeys((each.level, each.account) for each in tried if each.level):
        for name in COUNTS:
            is_control = name == "controls"
            count = counts[
                "escapes" if is_control else name, None if is_control else level, account
            ]
            found[name].setdefault(level, {})[account] = count
    return found


def as_markdown(document: Mapping[str, Any]) -> list[str]:
    """Return a table of the counts, and what is not as it should be."""
    rows = [
        (level, account, *(document[name][level][account] for name in COUNTS))
        for level, by_account in document["attempts"].items()
        for account in by_account
    ]
    lines = head(run_facts(), f"Kernel: {platform.release()}")
    lines += table(["level", "account", *(f"{name.replace('_', ' ')}:" for name in COUNTS)], rows)
    notes = [*document["wrong"], *(f"no level {line}" for line in document["missing"])]
    return lines + ["", *(f"- {line}" for line in notes)] * bool(notes)
