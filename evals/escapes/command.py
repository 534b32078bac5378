"""`python -m lcursor eval sandbox`: how many attempts to escape succeed, and what works inside."""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, TypeVar

import typer

from bench.report import Json, head, run_facts, table
from evals.escapes import file_tools, runners
from evals.escapes.attempts import FILES, PROJECT, Attempt, all_attempts
from evals.escapes.host import Machine, Report
from evals.escapes.namespaces import accounts
from evals.escapes.workloads import WORKLOADS, Workload
from lcursor.process.sandbox import LEVELS, Level


@dataclass(frozen=True, slots=True)
class Tried:
    """An attempt at a level of the sandbox, or its control without a sandbox."""

    account: str
    level: Level | None
    attempt: Attempt
    report: Report

    @property
    def escaped(self) -> bool:
        """Whether anything outside was affected; for a control, whether that was expected."""
        if self.level is None:
            return self.attempt.expects in self.report.findings
        return bool(self.report.findings)


@dataclass(frozen=True, slots=True)
class Worked:
    """Ordinary work at a level of the sandbox."""

    account: str
    level: Level
    name: str
    report: Report

    @property
    def succeeded(self) -> bool:
        """Whether it ended with status 0."""
        return "failed" not in self.report.findings


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
    found: list[Tried] = []
    worked: list[Worked] = []
    missing: list[str] = []
    for each in accounts():
        if account not in ("", each.name):
            continue
        with closing(Machine(each, FILES, PROJECT)) as machine:
            levels = [one for one in LEVELS if level in ("", one)]
            for one in tuple(levels):
                if reason := _why_missing(machine, one):
                    levels.remove(one)
                    missing.append(f"{one}, {each.name}: {reason}")
            found += _attempts(machine, levels, _chosen(all_attempts(), group, name))
            if group in ("", "work"):
                worked += _work(machine, levels, _chosen(WORKLOADS, "", name))
    document = as_dict(found, worked, missing)
    if not as_json:
        typer.echo("\n".join(as_markdown(document)) + "\n")
    typer.echo(json.dumps({key: value for key, value in document.items() if key != "facts"}))
    if document["wrong"] or not (found or worked):
        raise typer.Exit(1)


_Row = TypeVar("_Row", Attempt, Workload)


def _chosen(rows: Iterable[_Row], group: str, names: Sequence[str] | None) -> list[_Row]:
    """Return the rows of a group with one of the names whose programs are installed."""
    return [
        each
        for each in rows
        if getattr(each, "group", "").startswith(group)
        and (not names or any(name.lower() in each.name.lower() for name in names))
        and (not each.needs or shutil.which(each.needs))
    ]


def _why_missing(machine: Machine, level: Level) -> str:
    """Return why a level does not work for an account; "" if it works."""
    simple = Attempt("writes", "", "echo it works", "changed")
    try:
        report = machine.do(lambda names: runners.attempt(simple, level, names))
    except OSError as error:
        return f"no namespace can be made for the attempts: {error}"
    return "" if report.output == "it works\n" else report.failure or report.output


def _attempts(
    machine: Machine, levels: Sequence[Level], chosen: Sequence[Attempt]
) -> Iterator[Tried]:
    """Make attempts at each level, and their controls."""
    for attempt in chosen if levels else ():
        for level in (None, *levels):
            runner = _RUNNERS.get(attempt.group, runners.attempt)
            report = machine.do(
                partial(runner, attempt, level),
                max_s=4 * attempt.max_s + 5,
                is_privileged=attempt.needs_root and level is None,
            )
            if report.failure:
                report.findings = {"failed"}
                report.details = report.failure.splitlines()[-1:]
            yield Tried(machine.account.name, level, attempt, report)


def _work(
    machine: Machine, levels: Sequence[Level], chosen: Sequence[Workload]
) -> Iterator[Worked]:
    for level in levels:
        for workload in chosen:
            report = machine.do(
                partial(runners.work, workload, level),
                max_s=runners.WORK_S + 10,
            )
            if report.failure:
                report.findings.add("failed")
            yield Worked(machine.account.name, level, workload.name, report)


_RUNNERS: Mapping[str, runners.Runner] = {
    "git": runners.handoff,
    "tools": file_tools.attempt,
    "policy": runners.policy,
}


def as_dict(
    found: Sequence[Tried], worked: Sequence[Worked], missing: Sequence[str]
) -> dict[str, Any]:
    """Count by level and account."""
    keys = [(t.level, t.account) for t in found if t.level]
    keys += [(w.level, w.account) for w in worked]
    names = ("attempts", "escapes", "controls", "workloads", "workloads_tried")
    counts: dict[str, Any] = {name: {} for name in names}
    for level, account in dict.fromkeys(keys):
        tried = [t for t in found if (t.level, t.account) == (level, account)]
        controls = [t for t in found if t.level is None and t.account == account]
        work = [w for w in worked if (w.level, w.account) == (level, account)]
        numbers = (
            len(tried),
            sum(t.escaped for t in tried),
            sum(t.escaped for t in controls),
            sum(w.succeeded for w in work),
            len(work),
        )
        for name, number in zip(names, numbers, strict=True):
            counts[name].setdefault(level, {})[account] = number
    wrong = [
        f"{t.attempt.group}/{t.attempt.name}, {t.account}, {t.level or 'control'}:"
        f" {' '.join(sorted(t.report.findings)) or 'nothing'} {' '.join(t.report.details)}".strip()
        for t in found
        if t.escaped != (t.level is None)
    ]
    wrong += [
        f"work/{w.name}, {w.account}, {w.level}: {(w.report.failure or w.report.output)[-300:]}"
        for w in worked
        if not w.succeeded
    ]
    facts = run_facts(kernel=platform.release())
    return {**counts, "wrong": wrong, "missing": list(missing), "facts": facts}


def as_markdown(document: dict[str, Any]) -> list[str]:
    """Return a table of the counts, and what is not as it should be."""
    rows = [
        (
            level,
            account,
            number,
            *(document[name][level][account] for name in ("escapes", "controls")),
            f"{document['workloads'][level][account]} of"
            f" {document['workloads_tried'][level][account]}",
        )
        for level, by_account in document["attempts"].items()
        for account, number in by_account.items()
    ]
    lines = head(document["facts"], f"Kernel: {document['facts']['kernel']}")
    columns = ["level", "account", "attempts:", "escapes:", "controls:", "workloads:"]
    lines += table(columns, rows)
    notes = [*document["wrong"], *(f"no level {line}" for line in document["missing"])]
    return lines + ["", *(f"- {line}" for line in notes)] * bool(notes)
